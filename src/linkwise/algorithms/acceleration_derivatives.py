"""Derivatives of forward dynamics, through those of inverse dynamics.

    ∂q̈/∂q = -M⁻¹ ∂τ/∂q,      ∂q̈/∂q̇ = -M⁻¹ ∂τ/∂q̇,      ∂q̈/∂τ = M⁻¹

Derivation: with q̈(q, q̇, τ) in it, inverse dynamics gives τ back, whatever q and q̇ are. So its
derivatives by q and q̇, at that q̈, and M ∂q̈ add up to zero [Carpentier and Mansard 2018].

By composite bodies, M and ∂τ/∂q̇ are there before q̈ is. The torques of rates alone are quadratic in
them, and so half of ``∂τ/∂q̇ q̇`` [Euler on homogeneous functions]: with those of rest, the bias.
"""

from __future__ import annotations

from linkwise.algorithms import ltl, program_derivatives
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot, plus, transpose
from linkwise.algorithms.derivative_bodies import state_of, torques
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
from linkwise.algorithms.torque_derivatives import by_rates, by_turns, resisting
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Vector


def less_inverse(factors: ltl.Factors, columns: Matrix) -> Matrix:
    """``-M⁻¹ b`` of many columns b; on a tree as ``-L⁻¹ (D⁻¹ L⁻ᵀ b)``, with the inverse of L.

    For a branch where b is zero, that asks only the ancestors which it shares with other branches,
    where elimination by L asks all. Without branches, elimination keeps the zeros of L.
    """
    if tuple(factors.parent) == tuple(range(-1, len(factors.inv_d) - 1)):
        less = factors._replace(inv_d=[-x for x in factors.inv_d])
        return [ltl.solve(less, b) for b in columns]
    W = ltl.inverse_triangle(factors)
    scaled = transpose([[-x for x in row] for row in ltl.inverse_scaled(factors, W)])
    inward = [[dot(row, b) for row in scaled] for b in columns]
    return [[dot(row, y) for row in W] for y in inward]


def released(factors: ltl.Factors, by_q: Matrix, by_qd: Matrix, qdd: Vector) -> Matrix:
    """Rows of ∂q̈/∂q, of ∂q̈/∂q̇, of M⁻¹, and q̈, from ∂τ/∂q and ∂τ/∂q̇."""
    # both columns of a joint, one after the other: they use the same numbers of its links
    pairs = zip(transpose(by_q), transpose(by_qd), strict=True)
    found = less_inverse(factors, [column for pair in pairs for column in pair])
    parts = transpose(found[::2]), transpose(found[1::2]), ltl.inverse(factors)
    return [*(row for part in parts for row in part), list(qdd)]


def by_composites(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂q̈/∂q, of ∂q̈/∂q̇, of M⁻¹, and q̈."""
    none = [0.0] * tree.nv
    met, by_qd, M = by_rates(tree, state_of(tree, q, qd, none, external))
    resting = torques(tree, state_of(tree, q, none, none, external), qd, none)
    rows = zip(tau, by_qd, resting, strict=True)
    factors = ltl.factor(M, tree.dof_parent)
    qdd = ltl.solve(factors, [t - dot(row, qd) * 0.5 - own for t, row, own in rows])
    by_q = by_turns(tree, state_of(tree, q, qd, qdd, external), met)
    return released(factors, by_q, plus(by_qd, resisting(tree, qd)), qdd)


def forward(tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()) -> Matrix:
    """The same by differentiating each operation of RNEA."""
    factors = ltl.factor(crba(tree, q), tree.dof_parent)
    qdd = ltl.solve(factors, unbiased(tree, q, qd, tau, external))
    rows = program_derivatives.inverse_dynamics_derivatives(tree, q, qd, qdd, external=external)
    return released(factors, rows[: tree.nv], rows[tree.nv : 2 * tree.nv], qdd)
