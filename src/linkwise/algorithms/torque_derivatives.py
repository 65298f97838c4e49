"""Derivatives of inverse dynamics by composite bodies.

    ∂τ_i/∂q_j = A_i·Ψ̈_j + b_i·Ψ̇_j + e_i·S_j,   ∂τ_j/∂q_i = S_j·P_i,       i beyond j
    ∂τ_i/∂q̇_j = A_i·(Ṡ_j + Ψ̇_j) + b_i·S_j,      ∂τ_j/∂q̇_i = S_j·Q_i,      M_ij = S_j·A_i

[Singh, Russell and Wensing 2022], in link axes; ``derivative_wrenches.py`` has the letters:

    each pair     A, P, Q, b, e of every column, carried to every ancestor and projected there

Derivation: column j moves all beyond it rigidly: there S_k changes by S_j x S_k. The sums of
S_k q̇_k and of S_k q̈_k + Ṡ_k q̇_k from the base out to a body, its motion, then change by

    δv = S_j x v + Ψ̇_j,     δa = S_j x a + Ψ̇_j x v + Ψ̈_j

The first terms only turn what they belong to, as the force I a + v x* I v on the body turns. With
the others, that force changes by ``S_j x* f + I Ψ̈_j + 2 B Ψ̇_j``. By a rate q̇_j the motion changes
by δv = S_j, δa = Ṡ_j + Ψ̇_j - v x S_j, and the force by ``I (Ṡ_j + Ψ̇_j) + 2 B S_j``. τ_i is S_iᵀ of
the sum of forces beyond i. Where j moves i, S_i turns as that sum does, and ``S_j x* f`` is no part
of it; where j is beyond i, only the forces beyond j change.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.algorithms.derivative_blocks import Rates, meet, meet_itself
from linkwise.algorithms.derivative_wrenches import Subtree, carry, felt, subtrees, wrenches
from linkwise.algorithms.external import External
from linkwise.algorithms.moved_columns import Moving, base, move
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, Scalar, Vector
from linkwise.sweep import base_to_tip, each_link, each_pair

Met = tuple[tuple[int, int], tuple[Rates, Rates]]  # (inner, outer) and their two blocks


def torque(link: Link, m: Moving, bodies: list[Subtree], qd: Vector, qdd: Vector) -> list[Scalar]:
    """Joint torque of a link."""
    F = [S.dot(felt(step, body)) for step, body in zip(m.steps, bodies, strict=True) for S in step.S]
    own = zip(F, link.armature, qdd, link.resistance(qd), strict=True)
    return [t + rotor * acc + lost for t, rotor, acc, lost in own]


def torque_rates(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, external: External
) -> tuple[Rates, list[Scalar]]:
    """Derivatives of inverse dynamics, and its value."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    moving = base_to_tip(tree, move, base(tree.base_acceleration), q_, qd_, qdd_)
    bodies = subtrees(tree, q, moving, external)
    starts = each_link(tree, wrenches, moving, bodies)
    itself = each_link(tree, meet_itself, starts, moving, qd_)
    found = gathered(tree, itself, each_pair(tree, carry, meet, starts, moving))
    return found, tree.gather(each_link(tree, torque, moving, bodies, qd_, qdd_))


def gathered(tree: Tree, itself: list[Rates], met: Iterable[Met]) -> Rates:
    """All blocks as matrices over the degrees of freedom, rotors included."""
    apart = [pair for pair in met if pair[0][0] != pair[0][1]]
    own = [((i, i), block) for i, block in enumerate(itself)]
    inner = [*own, *(((j, i), block) for (j, i), (block, _) in apart)]
    whole = [*inner, *(((i, j), block) for (j, i), (_, block) in apart)]
    by_q, by_qd = (tree.gather_matrix((at, block[k]) for at, block in whole) for k in (0, 1))
    M = tree.gather_symmetric((at, block.M) for at, block in inner)
    return Rates(by_q, by_qd, tree.with_rotors(M))


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂τ/∂q, of ∂τ/∂q̇, of M, and τ."""
    found, tau = torque_rates(tree, q, qd, qdd, external)
    return [*found.q, *found.qd, *found.M, tau]
