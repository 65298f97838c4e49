"""``method="auto"``: the fastest method for a robot, from what each was measured to cost.

How much longer a method takes than the first of its function is taken as a sum over degrees of
freedom of what they cost at their depth d (degrees of freedom between them and the base):

    Δt = Σ (c0 if d < 2 else c1) + c2 Σ d + c3 Σ d (d - 1) / 2 + c4 p + c5 p²

with p the degrees of freedom that move the frame, for functions of one. The numbers are in
costs.py: fitted by ``tools/cost_model.py`` to times of kernels on chains, arms, hands, quadrupeds
and humanoids. On a CPU they are nanoseconds per state. On a GPU times jump where registers run out,
so the same sum is only a score there, and its numbers are those of the least loss by wrong choices.
docs/choosing.md has the times, the choice and what it loses, on robots kept out of the fit too.

A single state uses the batch's method even where another is faster for one, so that it has the same
bits alone and in any row. On a GPU, where registers are short, another method may be the fastest:
then states have other bits there, unless the method is named.
"""

from __future__ import annotations

from linkwise.algorithms import functions_of
from linkwise.engine.costs import COSTS
from linkwise.model.tree import Frame, Tree

# what is worth choosing from, first what every robot has; others are always dearer, or lose digits
CANDIDATES: dict[str, tuple[str, ...]] = {
    "forward_dynamics": ("crba", "aba", "fd3"),
    "mass_matrix": ("crba", "mixed", "gdahj-symmetric"),
    "mass_matrix_inverse": ("crba", "innovations"),
    "coriolis_matrix": ("composite", "mixed"),
    "operational_inertia": ("crba", "recursive"),
    "operational_inertia_inverse": ("crba", "recursive"),
    "position_inertia": ("crba", "recursive"),
}
LIKE = {"position_inertia": "operational_inertia"}  # whose methods cost as those of another

# Beyond so many links, or for matrices so many pairs of a degree of freedom and another inward,
# code is loops over the links, where a method can be: written out, it takes two seconds to compile.
MOST_UNROLLED = {"cpu": {1: 44, 2: 40}, "cuda": {1: 40, 2: 40}}  # links, by vectors and matrices
MOST_PAIRS = 650  # for results that are matrices over the joints, on the processor
MOST_PAIRS_OF = {
    "mass_matrix_inverse": 300, "coriolis_matrix": 220, "christoffel": 350,
    "regressor": 350,  # fewer pairs are far faster written out, though they compile longer
}  # fmt: skip
MOST_LINKS_OF = {"mass_matrix_inverse": 30}  # it has entries between branches too
MOST_PIECES = 8  # links of a scan that is written out, each a piece of its own
# degrees of freedom between some joint and the base from which on articulated bodies take fewer
# operations for closed loops than factors of the mass matrix (docs/closed_chains.md)
DEEP = 14
MOST_WEIGHED = 500  # links up to which methods are weighed against each other; fitted up to 60


def in_loops(function: str, tree: Tree, device: str = "cpu") -> bool:
    """Whether the code of a function shall be loops over the links."""
    if tree.loops is not None:
        return tree.loops
    some = next(iter(functions_of(tree)[function].values()))
    order = 2 if sum(size == tree.nv for size in some.output_shape(tree)) > 1 else 1
    if tree.n_links > MOST_UNROLLED[device][order]:
        return True
    if (order == 1 and function not in MOST_PAIRS_OF) or device != "cpu":
        return False
    pairs = MOST_PAIRS_OF.get(function, MOST_PAIRS)
    return tree.n_links > MOST_LINKS_OF.get(function, tree.n_links) or sum(_depths(tree)) > pairs


def choose_method(
    function: str,
    tree: Tree,
    dtype: str = "float64",
    frame: Frame | None = None,
    device: str = "cpu",
) -> str:
    """The method to use for this robot on a kind of device: ``cpu`` or ``cuda``."""
    large = tree.n_links > MOST_WEIGHED
    if large or in_loops(function, tree, device):
        rolled = _by_loops(function, tree, device)
        if rolled:
            return rolled
    first = next(iter(functions_of(tree)[function]))
    if first == "ltl" and DEEP <= max(_depths(tree)) and not tree.coupled:
        return "pv-r"
    if large or first not in CANDIDATES.get(function, ()):
        return first
    extra = extra_cost(function, tree, dtype, frame, device)
    return min(extra, key=lambda method: extra[method])


def _by_loops(function: str, tree: Tree, device: str) -> str:
    """The first method that this robot has and that can be loops; empty if there is none.

    Where joints follow others, "fd3" finds their forces with the factors it has already.
    """
    methods = functions_of(tree)[function]
    order = ["fd3", *methods] if tree.coupled and "fd3" in methods else list(methods)
    usual = (x for x in map(methods.__getitem__, order) if not (x.iterates or x.scans))
    able = (x for x in usual if x.can_roll(tree, device) and x.exists_for(tree))
    return next((x.method for x in able), "")


def extra_cost(
    function: str,
    tree: Tree,
    dtype: str = "float64",
    frame: Frame | None = None,
    device: str = "cpu",
) -> dict[str, float]:
    """What a method costs beyond the first, of those that this robot has."""
    known = features(tree, frame)
    first, *others = CANDIDATES[function]
    able = [m for m in others if functions_of(tree)[function][m].exists_for(tree)]
    measured = LIKE.get(function, function)
    terms = {m: zip(COSTS[device, dtype, measured, m], known, strict=True) for m in able}
    return {first: 0.0} | {m: sum(c * x for c, x in pairs) for m, pairs in terms.items()}


def features(tree: Tree, frame: Frame | None = None) -> tuple[float, ...]:
    """What the costs of a robot are taken to depend on."""
    depths = _depths(tree)
    path = 0
    if frame is not None:  # what hangs on another link of the base has no part in it
        links = tree.path(frame.link)
        path = sum(tree.links[i].joint.nv for i in links)
        root = tree.links[links[0]].v_index if links else -1
        depths = [d for k, d in enumerate(depths) if _root(tree, k) == root]
    return (
        sum(d < 2 for d in depths),
        sum(d > 1 for d in depths),
        sum(depths),
        sum(d * (d - 1) for d in depths) / 2,
        path,
        path * path,
    )


def _depths(tree: Tree) -> list[int]:
    depths: list[int] = []
    for parent in tree.dof_parent:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    return depths


def _root(tree: Tree, dof: int) -> int:
    """The degree of freedom at the base that moves this one."""
    while tree.dof_parent[dof] >= 0:
        dof = tree.dof_parent[dof]
    return dof
