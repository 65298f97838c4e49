"""Derivatives of forward dynamics, through those of inverse dynamics.

    ∂q̈/∂q = -M⁻¹ ∂τ/∂q,      ∂q̈/∂q̇ = -M⁻¹ ∂τ/∂q̇,      ∂q̈/∂τ = M⁻¹

Derivation: with q̈(q, q̇, τ) in it, inverse dynamics gives τ back, whatever q and q̇ are. So its
derivatives by q and q̇, at that q̈, and M ∂q̈ add up to zero [Carpentier and Mansard 2018].
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import ltl, program_derivatives, torque_derivatives
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import transpose
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Vector


def through(torques: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """Derivatives of forward dynamics from a way to find those of inverse dynamics."""

    def driver(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> Matrix:
        """Rows of ∂q̈/∂q, of ∂q̈/∂q̇, of M⁻¹, and q̈."""
        factors = ltl.factor(crba(tree, q), tree.dof_parent)
        qdd = ltl.solve(factors, unbiased(tree, q, qd, tau, external))
        rows = torques(tree, q, qd, qdd, external=external)[: 2 * tree.nv]
        inverse = ltl.inverse_of(factors)
        less = inverse.negative()
        halves = (transpose(half) for half in (rows[: tree.nv], rows[tree.nv :]))
        # both columns of a joint, one after the other: they use the same numbers of its links
        both = [[less.solve(column) for column in pair] for pair in zip(*halves, strict=True)]
        by_q, by_qd = (transpose(list(half)) for half in zip(*both, strict=True))
        return [*by_q, *by_qd, *inverse.matrix(), qdd]

    return driver


by_composites = through(torque_derivatives.inverse_dynamics_derivatives)
forward = through(program_derivatives.inverse_dynamics_derivatives)
