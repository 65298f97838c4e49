"""The equations that accelerations and forces of closed loops solve, and how their solution moves.

    r = (M qdd + bias - tau - Jᵀ λ,  J qdd + J̇ qd) = 0,      K = ∂r/∂(qdd, λ) = [[M, -Jᵀ], [J, 0]]

Where states and torques change, r stays zero: with dr its change at constant qdd and λ,
``d(qdd, λ) = -K⁻¹ dr``, whichever way qdd and λ were found. With M = Lᵀ D L, Y = J L⁻¹ and
Ω = Y D⁻¹ Yᵀ, a system ``K (a, l) = (f, g)`` is

    y = L⁻ᵀ f,    Ω l = g - Y D⁻¹ y,    a = L⁻¹ D⁻¹ (y + Yᵀ l)

and ``Kᵀ (a, l) = (f, g)`` is ``K (a, -l) = (f, -g)``. Directions that depend on others are left
out, as in ``constrained.py``; what comes out is then right for changes that keep as many of them
dependent, as all motions do under which the loops stay closed.

The smallest λ has ``Zᵀ λ = 0`` for the null space Z of Jᵀ, which changes too: ``dZᵀ J = -Zᵀ dJ``.
With any y for which ``λ = J y``, that is ``Zᵀ dλ = -dZᵀ J y = Zᵀ dJ y``. So a third part of r,
``-J y`` at constant y, tells what dλ has along Z; across, it is that of K⁻¹.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense, ldl, ltl
from linkwise.algorithms.closed_ltl import Columns, jacobian_columns
from linkwise.algorithms.closure_rates import drifts
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.crba import crba
from linkwise.algorithms.yielding import combined, reached
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector

Pair = tuple[list[Scalar], list[Scalar]]  # per degree of freedom, and per direction that is held


def loop_balance(tree: Tree, q: Vector, qd: Vector, qdd: Vector, forces: Vector) -> Pair:
    """What closed loops add to r: ``-Jᵀ λ`` and ``J qdd + J̇ qd``."""
    closed = seams(tree, q)
    J, _ = jacobian_columns(tree, q, closed)
    pulled = [-dense.dot(J[j], forces) if j in J else 0.0 for j in range(tree.nv)]
    apart = zip(combined(J, qdd, tree.n_constraints), drifts(tree, q, qd, closed), strict=True)
    return pulled, [a + b for a, b in apart]


class Balance(NamedTuple):
    """K at a configuration, factored."""

    mass: ltl.Factors
    J: Columns
    Y: Columns
    omega: Factors

    @property
    def rows(self) -> int:
        """Directions that are held."""
        return len(self.omega.inv_d)

    def solve(self, torques: Vector, accelerations: Vector) -> Pair:
        """``(a, l)`` with ``K (a, l) = (f, g)``."""
        y = ltl.inward(self.mass, torques)
        inv_d = self.mass.inv_d
        moved = combined(self.Y, [x * d for x, d in zip(y, inv_d, strict=True)], self.rows)
        held = self.omega.solve([g - x for g, x in zip(accelerations, moved, strict=True)])
        x = [a + dense.dot(self.Y[j], held) if j in self.Y else a for j, a in enumerate(y)]
        return ltl.outward(self.mass, [a * d for a, d in zip(x, inv_d, strict=True)]), held

    def solve_transposed(self, torques: Vector, accelerations: Vector) -> Pair:
        """``(a, l)`` with ``Kᵀ (a, l) = (f, g)``."""
        a, held = self.solve(torques, [-x for x in accelerations])
        return a, [-x for x in held]

    def preimage(self, forces: Vector) -> list[Scalar]:
        """Some y with ``J y = λ``, of forces that have one: ``M⁻¹ Jᵀ Ω⁻¹ λ``."""
        weights = self.omega.solve(forces)
        pushed = [dense.dot(self.J[j], weights) if j in self.J else 0.0 for j in range(self._nv)]
        return ltl.solve(self.mass, pushed)

    @property
    def _nv(self) -> int:
        return len(self.mass.inv_d)


def balance(tree: Tree, q: Vector) -> Balance:
    """K at a configuration."""
    mass = ltl.factor(crba(tree, q), tree.dof_parent)
    J, most = jacobian_columns(tree, q, seams(tree, q))
    Y, inv_d = reached(mass, J, tree.n_constraints), mass.inv_d
    omega = dense.square(list(Y.values()), [inv_d[j] for j in Y])
    bounds = dense.scaled(list(most.values()), [inv_d[j] for j in most])
    scale = [dense.dot(column, [1.0] * len(most)) for column in zip(*bounds, strict=True)]
    return Balance(mass, J, Y, Factors(*ldl.factor_independent(omega, scale)))
