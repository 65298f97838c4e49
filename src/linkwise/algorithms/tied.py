"""Joints that follow others, for algorithms that know only joints on their own.

    A qdd = 0,   A = rows (follower - multiplier driver)
    qdd = qdd_free - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹ A qdd_free

``qdd_free`` ignores the ties; ``M⁻¹ Aᵀ`` comes from the same algorithm, one unit force per tie, at
rest and without gravity, so that its factors are shared [Featherstone's constraint form].

A solver may return more numbers after the joint accelerations, as long as they are linear in the
torques too: accelerations of frames, say. The ties then change these alike.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import ltl
from linkwise.algorithms.dense import mirrored, transpose, unit
from linkwise.algorithms.external import External
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector

# joints that follow others, in loops over few links and over many: code grows with their number
MOST_TIES = (8, 40)
Solver = Callable[..., list[Scalar]]  # (tree, q, qd, tau, external) -> qdd, more


def why_not(tree: Tree) -> str:
    """For algorithms that know only joints on their own: a joint that follows another."""
    if not tree.coupled:
        return ""
    name, driver = tree.first_follower
    return f"joint {name!r} follows {driver!r}, and articulated bodies ask for joints on their own"


def many_ties(tree: Tree) -> str:
    """For loops over the links: each joint that follows another takes a solve of its own."""
    count, most = tree.n_followers, min(max(MOST_TIES), max(min(MOST_TIES), tree.n_links // 8))
    if count <= most:
        return ""
    return f"{count} joints follow others, and loops over {tree.n_links} links take at most {most}"


def refuse_followers(tree: Tree) -> None:
    """For drivers that are called directly; a robot's calls are refused before."""
    if tree.coupled:
        raise ValueError(why_not(tree))


def tied(
    tree: Tree, solver: Solver, q: Vector, qd: Vector, tau: Vector, external: External
) -> list[Scalar]:
    """Joint accelerations of a tree with followers or none, by a solver for trees without."""
    if not tree.coupled:
        return solver(tree, q, qd, tau, external)
    loose, G = tree.uncoupled(), tree.projection
    ties, full_q = G.ties(), tree.uncoupled_q(q)
    free = solver(loose, full_q, G.column_rates(qd), G.owners_only(tau), external)
    at_rest, weightless = [0.0] * loose.nv, loose.without_gravity()
    Y = [solver(weightless, full_q, at_rest, G.push(row), ()) for row in ties]
    K = [[G.along(row, y) for y in Y] for row in ties]
    factors = ltl.factor(K, tuple(range(-1, len(ties) - 1)))
    forces = ltl.solve(factors, [G.along(row, free) for row in ties])
    return G.released(free, forces, Y)


def with_ties(solver: Solver) -> Callable[..., list[Scalar]]:
    """Forward dynamics of any tree, by a solver for trees without followers."""

    def forward_dynamics(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> list[Scalar]:
        return tied(tree, solver, q, qd, tau, external)

    return forward_dynamics


def inverse_with_ties(solver: Solver) -> Callable[[Tree, Vector], Matrix]:
    """``M⁻¹`` of any tree: a column per unit torque, at rest and without gravity.

    The columns share the solver's factors.
    """

    def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
        still, weightless = [0.0] * tree.nv, tree.without_gravity()
        columns = [tied(weightless, solver, q, still, torque, ()) for torque in unit(tree.nv)]
        return mirrored(transpose(columns))

    return mass_matrix_inverse
