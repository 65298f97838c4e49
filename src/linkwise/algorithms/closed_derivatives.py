"""Derivatives of the dynamics of robots with closed loops.

Forward dynamics, by implicit differentiation of its equations (``closed_balance.py``):

    ∂qdd = -[K⁻¹ (∂τ/∂x - ∂(Jᵀ λ)/∂x,  ∂(J qdd + J̇ qd)/∂x)]      of x = q, qd;    at its qdd and λ
    ∂qdd/∂tau = M⁻¹ - M⁻¹ Jᵀ Ω⁻¹ J M⁻¹

with ∂τ those of inverse dynamics of the open tree (``torque_derivatives.py``). What loops add is
differentiated forward, by numbers that carry derivatives.

Inverse dynamics: the smallest torques of ``closed_inverse.py``, forward by such numbers. Where
every joint has a motor, ∂tau/∂qdd is the part of M that loops do not take, no inertia of its own.
"""

from __future__ import annotations

from linkwise.algorithms import closed_inverse, grasp_inverse
from linkwise.algorithms.closed_balance import balance, loop_balance
from linkwise.algorithms.closed_ltl import constrained
from linkwise.algorithms.constrained import forces
from linkwise.algorithms.dense import transpose, unit
from linkwise.algorithms.external import External
from linkwise.algorithms.program_derivatives import moving, sorted_slopes
from linkwise.algorithms.torque_derivatives import torque_rates
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Vector
from linkwise.spatial.dual import lifted


def forward_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂q̈/∂q, of ∂q̈/∂q̇, of ∂q̈/∂τ, and q̈."""
    n, c = tree.nv, constrained(tree, q, qd, tau, external)
    held = forces(c)
    qdd, K = c.released(held), balance(tree, q)
    rates, _ = torque_rates(tree, q, qd, qdd, external)
    q_, qd_ = moving(tree, q, qd)
    constant = [lifted(x) for x in qdd], [lifted(x) for x in held]
    pulled, apart = loop_balance(tree, q_, qd_, *constant)
    turned, accelerated = (sorted_slopes(x, 2 * n) for x in (pulled, apart))
    both = [*transpose(rates.q), *transpose(rates.qd)]
    columns = []
    for own, f, g in zip(both, turned, accelerated, strict=True):
        found, _ = K.solve([a + b for a, b in zip(own, f, strict=True)], g)
        columns.append([-x for x in found])
    driven = [K.solve(e, [0.0] * tree.n_constraints)[0] for e in unit(n)]
    parts = (transpose(columns[:n]), transpose(columns[n:]), transpose(driven))
    return [*(row for part in parts for row in part), qdd]


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂τ/∂q, of ∂τ/∂q̇, of ∂τ/∂q̈, and τ."""
    n = tree.nv
    still = [(frame, [lifted(x) for x in wrench]) for frame, wrench in external]
    values = moving(tree, q, qd, qdd)
    least = grasp_inverse if tree.held else closed_inverse
    found = least.inverse_dynamics(tree, *values, external=still)
    columns = sorted_slopes(found, 3 * n)
    parts = (transpose(columns[k : k + n]) for k in (0, n, 2 * n))
    return [*(row for part in parts for row in part), [lifted(x).value for x in found]]
