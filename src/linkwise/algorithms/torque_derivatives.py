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

from typing import NamedTuple

from linkwise.algorithms import derivative_blocks as blocks
from linkwise.algorithms import derivative_wrenches as wrenches
from linkwise.algorithms.dense import plus
from linkwise.algorithms.derivative_bodies import State, state_of, torques
from linkwise.algorithms.external import External
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector
from linkwise.sweep import each_link, each_pair

Met = list[tuple[tuple[int, int], blocks.Meeting]]  # (inner, outer) joint, and what meets


class Rates(NamedTuple):
    """∂τ/∂q, ∂τ/∂q̇ and M."""

    q: Matrix
    qd: Matrix
    M: Matrix


def by_rates(tree: Tree, state: State) -> tuple[Met, Matrix, Matrix]:
    """What meets at each pair of joints; of it, ∂τ/∂q̇ of the bodies alone, and M, with rotors.

    None of them depends on accelerations.
    """
    starts = each_link(tree, wrenches.rate_wrenches, *state)
    met = list(each_pair(tree, wrenches.carry, blocks.meet, starts, state.moving))
    by_qd = tree.gather_pairs(met, blocks.inner_rates, blocks.outer_rates, ())
    M = tree.gather_symmetric((at, blocks.inertia(*meeting)) for at, meeting in met)
    return met, by_qd, tree.with_rotors(M)


def by_turns(tree: Tree, state: State, met: Met) -> Matrix:
    """∂τ/∂q."""
    starts = each_link(tree, wrenches.turned_forces, *state)
    forces = each_pair(tree, wrenches.carry_force, blocks.meet_force, starts, state.moving)
    both = zip(forces, met, strict=True)
    turned = [(at, (P, columns, m)) for (at, (P, m)), (_, (columns, _)) in both]
    own = each_link(tree, blocks.own_turns, *state)
    return tree.gather_pairs(turned, blocks.inner_turns, blocks.outer_turns, own)


def resisting(tree: Tree, qd: Vector) -> Matrix:
    """∂τ/∂q̇ of rotors and friction."""
    own = each_link(tree, blocks.resistance, tree.per_link_v(qd))
    return tree.gather_matrix(((i, i), block) for i, block in enumerate(own))


def torque_rates(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, external: External
) -> tuple[Rates, list[Scalar]]:
    """Derivatives of inverse dynamics, and its value."""
    state = state_of(tree, q, qd, qdd, external)
    met, by_qd, M = by_rates(tree, state)
    found = Rates(by_turns(tree, state, met), plus(by_qd, resisting(tree, qd)), M)
    return found, torques(tree, state, qd, qdd)


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂τ/∂q, of ∂τ/∂q̇, of M, and τ."""
    found, tau = torque_rates(tree, q, qd, qdd, external)
    return [*found.q, *found.qd, *found.M, tau]
