"""``method="auto"``: the cheapest method for a robot, from its shape.

Operations per joint at depth d (joints between it and the base), fitted to traced programs of
general chains of 2 to 40 joints and of trees:

    CRBA, bias and factors   110 + 31 d + 0.6 d (d + 1) / 2
    ABA                      330, less near the base (90 and 200 at d = 0 and 1)

A chain changes over at 13 joints; a humanoid of 32 joints in five branches does not. The inverse
of the mass matrix is cheaper from factors of M at every size.
"""

from __future__ import annotations

from linkwise.algorithms import FUNCTIONS
from linkwise.model.tree import Tree


def choose_method(function: str, tree: Tree) -> str:
    """The method to use for this robot."""
    if function == "forward_dynamics":
        return "crba" if crba_cost(tree) <= aba_cost(tree) else "aba"
    return next(iter(FUNCTIONS[function]))


def crba_cost(tree: Tree) -> float:
    """Operations of forward dynamics by mass matrix and factors, about."""
    return sum(110 + 31 * d + 0.6 * d * (d + 1) / 2 for d in _depths(tree))


def aba_cost(tree: Tree) -> float:
    """Operations of forward dynamics by articulated bodies, about."""
    near_base = {0: 90, 1: 200}
    return sum(near_base.get(d, 330) for d in _depths(tree))


def _depths(tree: Tree) -> list[int]:
    depths: list[int] = []
    for parent in tree.dof_parent:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths
