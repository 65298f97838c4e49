"""``method="auto"``: the cheapest method for a robot, from its shape."""

from __future__ import annotations

from linkwise.algorithms import FUNCTIONS
from linkwise.model.tree import Tree


def choose_method(function: str, tree: Tree) -> str:
    """The method to use for this robot."""
    methods = FUNCTIONS[function]
    if set(methods) != {"crba", "aba"}:
        return next(iter(methods))
    return "crba" if _depth_cost(tree) <= ABA_PER_JOINT * tree.nv else "aba"


# Operations per joint, read off traced programs of chains and trees: ABA grows with the number of
# joints, CRBA and its factors with the depth of each joint as well.
ABA_PER_JOINT = 230.0
CRBA_PER_JOINT, PER_ANCESTOR, PER_ANCESTOR_PAIR = 120.0, 20.0, 1.0


def _depth_cost(tree: Tree) -> float:
    depth: list[int] = []
    for parent in tree.dof_parent:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(
        CRBA_PER_JOINT + PER_ANCESTOR * d + PER_ANCESTOR_PAIR * d * (d + 1) / 2 for d in depth
    )
