"""Joints that follow others, for algorithms that know only joints on their own.

    A qdd = 0,   A = rows (follower - multiplier driver)
    qdd = qdd_free - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹ A qdd_free

``qdd_free`` ignores the ties; ``M⁻¹ Aᵀ`` comes from the same algorithm, one unit force per tie, at
rest and without gravity, so that its factors are shared [Featherstone's constraint form].

A solver may return more numbers after the joint accelerations, as long as they are linear in the
torques too: accelerations of frames, say. The ties then change these alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms import ltl
from linkwise.algorithms.external import External
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar

Solver = Callable[..., list[Scalar]]  # (tree, q, qd, tau, external) -> qdd, more


def possible(tree: Tree) -> bool:
    """Whether every joint moves on its own."""
    return not tree.coupled


def why_not(tree: Tree) -> str:
    """The joint that does not."""
    pairs = ((link, link.follows) for link in tree.links)
    name, driver = next((k.joint_name, f.link) for k, f in pairs if f is not None)
    other = tree.links[driver].joint_name
    return f"joint {name!r} follows {other!r}, and articulated bodies ask for joints on their own"


def refuse_followers(tree: Tree) -> None:
    """For drivers that are called directly; a robot's calls are refused before."""
    if tree.coupled:
        raise ValueError(why_not(tree))


def tied(
    tree: Tree,
    solver: Solver,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External,
) -> list[Scalar]:
    """Joint accelerations of a tree with followers or none, by a solver for trees without."""
    if not tree.coupled:
        return solver(tree, q, qd, tau, external)
    loose = tree.uncoupled()
    full_q = [x for own in tree.per_link_q(q) for x in own]
    full_qd = [x for own in tree.per_link_v(qd) for x in own]
    free = solver(loose, full_q, full_qd, _drive(tree, loose, tau), external)
    ties = ties_of(tree, loose)
    at_rest = [0.0] * loose.nv
    weightless = loose.without_gravity()
    pushes = [[row.get(i, 0.0) for i in range(loose.nv)] for row in ties]
    Y = [solver(weightless, full_q, at_rest, push, ()) for push in pushes]
    K = [[_dot(row, y) for y in Y] for row in ties]
    factors = ltl.factor(K, tuple(range(-1, len(ties) - 1)))
    forces = ltl.solve(factors, [_dot(row, free) for row in ties])
    qdd = list(free)
    for y, force in zip(Y, forces, strict=True):
        qdd = [a - force * b for a, b in zip(qdd, y, strict=True)]
    return [qdd[i] for i in independent(tree, loose)] + qdd[loose.nv :]


def ties_of(tree: Tree, loose: Tree) -> list[dict[int, float]]:
    """Rows of A, by degree of freedom of the loose tree."""
    rows = []
    for link, alone in zip(tree.links, loose.links, strict=True):
        if link.follows is not None:
            driver = loose.links[link.follows.link].v_index
            rows.append({alone.v_index: 1.0, driver: -link.follows.multiplier})
    return rows


def independent(tree: Tree, loose: Tree) -> list[int]:
    """Degrees of freedom of the loose tree that are the tree's own, in its order."""
    pairs = zip(tree.links, loose.links, strict=True)
    own = (alone for link, alone in pairs if link.follows is None)
    return [alone.v_index + k for alone in own for k in range(alone.joint.nv)]


def _drive(tree: Tree, loose: Tree, tau: Sequence[Scalar]) -> list[Scalar]:
    """Torques of the loose tree: followers have no motor."""
    full: list[Scalar] = [0.0] * loose.nv
    for i, t in zip(independent(tree, loose), tau, strict=True):
        full[i] = t
    return full


def _dot(row: dict[int, float], x: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for i, factor in row.items():
        total = total + x[i] * factor
    return total
