"""Forces of closed loops, from the constraint-space inverse inertia Ω = J M⁻¹ Jᵀ.

    Ω λ = -(J qdd_free + J̇ qd),      qdd = qdd_free + M⁻¹ Jᵀ λ

Ω, also called the Delassus matrix, and both accelerations come from one of several ways
(`Constrained`). It is factored as L D Lᵀ. A direction whose pivot is zero to rounding depends on
directions before it: at this state it is redundant, or the loops are in a singular pose. It is left
out, its force zero, and the state is flagged. Where the constraints do not contradict each other
qdd is the same whichever of them are left out; forces are not, and `least` makes them the smallest:
with Z the columns of L⁻ᵀ that belong to zero pivots, which span the null space of Ω,

    λ_least = λ - Z (Zᵀ Z)⁻¹ Zᵀ λ

Where another measure of small is given, xᵀ Q x + 2 cᵀ x, it is ``λ - Z (Zᵀ Q Z)⁻¹ Zᵀ (Q λ + c)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.closures import Seam
from linkwise.spatial import Matrix, Scalar, Vector, select


class Constrained(NamedTuple):
    """A tree with closed loops at a state, by one of the ways to Ω."""

    seams: list[Seam]
    inverse: Matrix  # Ω
    scale: list[Scalar]  # what each of its pivots is compared with
    free: list[Scalar]  # relative accelerations along the directions, were the loops open
    released: Callable[[Vector], list[Scalar]]  # joint accelerations under forces of the loops


class Measure(NamedTuple):
    """What is small: ``xᵀ Q x + 2 cᵀ x``."""

    Q: Matrix
    c: list[Scalar]

    def slope(self, x: Vector) -> list[Scalar]:
        """Half its gradient."""
        return [dense.dot(row, x) + y for row, y in zip(self.Q, self.c, strict=True)]


class Factors(NamedTuple):
    """``Ω = L D Lᵀ``; the inverse of D is 0 for directions that are left out."""

    L: Matrix
    inv_d: list[Scalar]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """``x`` with ``Ω x = b``, zero along directions that are left out."""
        y = ldl.forward(self.L, [[x] for x in b])
        z = ldl.backward(self.L, dense.scaled(y, self.inv_d))
        kept = [select(d, 1.0, 0.0) for d in self.inv_d]
        return [x[0] * k for x, k in zip(z, kept, strict=True)]

    def least(self, x: Vector, measure: Measure | None = None) -> list[Scalar]:
        """The smallest vector that Ω takes to the same as x."""
        if measure is None:
            off = self.along_null_space(x)
        else:
            off = self.along_null_space(measure.slope(x), measure.Q)
        return [a - b for a, b in zip(x, off, strict=True)]

    def along_null_space(self, x: Vector, Q: Matrix | None = None) -> list[Scalar]:
        """``Z (Zᵀ Q Z)⁻¹ Zᵀ x``, with 1 for Q unless given."""
        loose = [select(d, 0.0, 1.0) for d in self.inv_d]
        rows = dense.scaled(ldl.forward(self.L, dense.unit(len(x))), loose)  # Zᵀ
        longer = rows if Q is None else dense.times(rows, Q)
        n = range(len(rows))
        gram = [[dense.dot(longer[max(i, j)], rows[min(i, j)]) for j in n] for i in n]
        for k, own in enumerate(loose):
            gram[k][k] = gram[k][k] + (1.0 - own)
        L, inv_d = ldl.factor(gram, [row[k] for k, row in enumerate(gram)])
        y = ldl.forward(L, [[dense.dot(row, x)] for row in rows])
        z = [row[0] for row in ldl.backward(L, dense.scaled(y, inv_d))]
        return [dense.dot(column, z) for column in zip(*rows, strict=True)]


def factor(c: Constrained) -> Factors:
    """Factors of Ω without directions that depend on others."""
    return Factors(*ldl.factor_independent(c.inverse, c.scale))


def forces(c: Constrained) -> list[Scalar]:
    """``λ`` along the directions of all loops; zero for those that are left out."""
    return [-x for x in factor(c).solve(c.free)]


def least_forces(c: Constrained) -> list[Scalar]:
    """``λ``, the smallest where directions depend on each other."""
    factors = factor(c)
    return [-x for x in factors.least(factors.solve(c.free))]
