"""``method="auto"``: the fastest method for a robot, from what each was measured to cost.

Time per state is taken as a sum over degrees of freedom of what they cost at their depth d (degrees
of freedom between them and the base):

    t = c0 + Σ (c1 if d = 0, c2 if d = 1, else c3) + c4 Σ d + c5 Σ d (d - 1) / 2 + c6 p + c7 p²

with p the degrees of freedom that move the frame, for functions of one. A recursion has c4 = c5 = 0,
composite bodies have not. The numbers are in costs.py: fitted by ``tools/cost_model.py`` to times
of kernels on chains, arms, hands, quadrupeds and humanoids; docs/choosing.md has the times, the
choice and what it loses, on robots that were kept out of the fit too.

A state alone is given the method that many are given, though another may be faster for one: so that
it has the same bits alone and in any row.
"""

from __future__ import annotations

from linkwise.algorithms import FUNCTIONS
from linkwise.costs import COSTS
from linkwise.model.tree import Frame, Tree

# what is worth choosing from: the rest are dearer on every robot, or lose digits
CANDIDATES: dict[str, tuple[str, ...]] = {
    "forward_dynamics": ("crba", "aba", "fd3"),
    "mass_matrix": ("crba", "mixed", "gdahj-symmetric"),
    "mass_matrix_inverse": ("crba", "innovations"),
    "operational_inertia": ("crba", "recursive"),
    "operational_inertia_inverse": ("crba", "recursive"),
}


def choose_method(
    function: str, tree: Tree, dtype: str = "float64", frame: Frame | None = None
) -> str:
    """The method to use for this robot."""
    if function not in CANDIDATES:
        return next(iter(FUNCTIONS[function]))
    costs = predicted(function, tree, dtype, frame)
    return min(costs, key=lambda method: costs[method])


def predicted(
    function: str, tree: Tree, dtype: str = "float64", frame: Frame | None = None
) -> dict[str, float]:
    """Nanoseconds per state of the methods that exist for this robot, about."""
    known, numbers = features(tree, frame), COSTS[dtype][function]
    return {
        method: sum(c * x for c, x in zip(numbers[method], known, strict=True))
        for method in CANDIDATES[function]
        if FUNCTIONS[function][method].exists_for(tree)
    }


def features(tree: Tree, frame: Frame | None = None) -> tuple[float, ...]:
    """What the costs of a robot are taken to depend on."""
    depths: list[int] = []
    for parent in tree.dof_parent:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    path = 0 if frame is None else sum(tree.links[i].joint.nv for i in tree.path(frame.link))
    return (
        1.0,
        depths.count(0),
        depths.count(1),
        sum(d > 1 for d in depths),
        sum(depths),
        sum(d * (d - 1) for d in depths) / 2,
        path,
        path * path,
    )
