"""Derivatives of forward dynamics, through those of inverse dynamics.

    ∂q̈/∂q = -M⁻¹ ∂τ/∂q,      ∂q̈/∂q̇ = -M⁻¹ ∂τ/∂q̇,      ∂q̈/∂τ = M⁻¹

Derivation: with q̈(q, q̇, τ) in it, inverse dynamics gives τ back, whatever q and q̇ are. So its
derivatives by q and q̇, at that q̈, and M ∂q̈ add up to zero [Carpentier and Mansard 2018].
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import ltl, program_derivatives, torque_derivatives
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot, transpose
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
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


def through(torques: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """Derivatives of forward dynamics from a way to find those of inverse dynamics."""

    def driver(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> Matrix:
        """Rows of ∂q̈/∂q, of ∂q̈/∂q̇, of M⁻¹, and q̈."""
        factors = ltl.factor(crba(tree, q), tree.dof_parent)
        qdd = ltl.solve(factors, unbiased(tree, q, qd, tau, external))
        rows = torques(tree, q, qd, qdd, external=external)[: 2 * tree.nv]
        halves = (transpose(half) for half in (rows[: tree.nv], rows[tree.nv :]))
        # both columns of a joint, one after the other: they use the same numbers of its links
        both = [column for pair in zip(*halves, strict=True) for column in pair]
        found = less_inverse(factors, both)
        by_q, by_qd = transpose(found[::2]), transpose(found[1::2])
        return [*by_q, *by_qd, *ltl.inverse(factors), qdd]

    return driver


by_composites = through(torque_derivatives.inverse_dynamics_derivatives)
forward = through(program_derivatives.inverse_dynamics_derivatives)
