"""How rows of a frame's motion yield to torques, from one factorization of M.

    J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ,   J M⁻¹ x = Y D⁻¹ L⁻ᵀ x      with M = Lᵀ D L and Y = J L⁻¹

Neither M⁻¹ nor a dense inverse is formed. Where some joints have no motor, the others move the rows
against their reaction: ``reaction.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from linkwise.algorithms import ltl
from linkwise.algorithms.dense import dot, square, zero
from linkwise.algorithms.reaction import reaction
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector, rounding

ROUNDING = 64.0  # rounding units beside its scale below which a pivot is zero


def reached(
    factors: ltl.Factors, columns: Mapping[int, Vector], size: int
) -> dict[int, list[Scalar]]:
    """``Y = J L⁻¹`` by its nonzero columns, J by its own, of ``size`` numbers."""
    L, _, parent = factors
    Y = {j: list(column) for j, column in columns.items()}
    for k in reversed(range(len(L))):
        for i in ltl.ancestors(parent, k) if k in Y else ():
            known = Y.get(i, [0.0] * size)
            Y[i] = [y - L[k][i] * z for y, z in zip(known, Y[k], strict=True)]
    return Y


def form(factors: ltl.Factors, columns: Mapping[int, Vector], size: int) -> Matrix:
    """``J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ``, J by its nonzero columns of ``size`` numbers, ``Y = J L⁻¹``."""
    Y = reached(factors, columns, size)
    return square(list(Y.values()), [factors.inv_d[k] for k in Y]) if Y else zero(size, size)


class Mobility(NamedTuple):
    """How the rows yield to the joints' torques."""

    inverse: Matrix  # J M⁻¹ Jᵀ, or J_g M_r⁻¹ J_gᵀ
    scale: list[Scalar]  # beside which its pivots are compared with rounding
    pulls: Matrix  # Jᵀ or J_gᵀ: a row per degree of freedom
    moved: Callable[[Vector], list[Scalar]]  # x -> J M⁻¹ x


def combined(columns: Mapping[int, Vector], x: Vector, size: int) -> list[Scalar]:
    """``J x``."""
    total: list[Scalar] = [0.0] * size
    for j, column in columns.items():
        total = [a + b * x[j] for a, b in zip(total, column, strict=True)]
    return total


def mobility(tree: Tree, M: Matrix, columns: Mapping[int, list[Scalar]], size: int) -> Mobility:
    """Where every joint has a motor."""
    factors = ltl.factor(M, tree.dof_parent)
    Y = reached(factors, columns, size)
    inverse = square(list(Y.values()), [factors.inv_d[j] for j in Y])
    pulls = [columns.get(j, [0.0] * size) for j in range(tree.nv)]

    def moved(x: Vector) -> list[Scalar]:
        weighed = [a * d for a, d in zip(ltl.inward(factors, x), factors.inv_d, strict=True)]
        return combined(Y, weighed, size)

    return Mobility(inverse, diagonal(inverse), pulls, moved)


def mobility_beside(
    tree: Tree, M: Matrix, columns: Mapping[int, list[Scalar]], size: int, passive: Sequence[int]
) -> Mobility:
    """Where passive joints have none: by the generalised Jacobian."""
    r = reaction(M, passive)
    own = mobility(tree, M, r.columns(columns, size), size)
    J_b = [[columns[i][k] if i in columns else 0.0 for i in range(len(M))] for k in range(size)]
    A = [r.met(row) for row in J_b]  # M_bb⁻¹ J_bᵀ, by columns
    # J_g is what reactions leave of J: rounding of what they take is squared in the inverse
    tiny = ROUNDING * rounding(own.scale[0])
    taken = [dot([row[i] for i in passive], a) for row, a in zip(J_b, A, strict=True)]
    scale = [x + tiny * (x + y) for x, y in zip(own.scale, taken, strict=True)]

    def moved(x: Vector) -> list[Scalar]:
        base, met = [x[i] for i in passive], r.met(x)
        rest = [0.0 if j in passive else r.left(j, y, met) for j, y in enumerate(x)]
        return [dot(base, a) + y for a, y in zip(A, own.moved(rest), strict=True)]

    return own._replace(scale=scale, moved=moved)


def diagonal(A: Matrix) -> list[Scalar]:
    """The diagonal of a matrix."""
    return [row[k] for k, row in enumerate(A)]
