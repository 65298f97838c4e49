"""Dynamics of robots with closed loops.

    forward      M qdd + bias = tau + Jᵀ λ,   J qdd = -J̇ qd
    impulse      M (qd' - qd) = Jᵀ p,   J qd' = 0                                 inelastic

Each from one of the ways to Ω = J M⁻¹ Jᵀ (`Constrained`): pv.py, closed_ltl.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from linkwise.algorithms import closed_ltl, pv, pv_cuts
from linkwise.algorithms.closure_rates import velocities
from linkwise.algorithms.closures import Seam
from linkwise.algorithms.constrained import Constrained, forces
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_least import smallest
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vector

Way = Callable[..., Constrained]  # (tree, q, qd, tau, external)


class Drivers(NamedTuple):
    """The functions of closed loops by one way to Ω."""

    forward_dynamics: Callable[..., list[Scalar]]
    constraint_forces: Callable[..., Matrix]
    delassus: Callable[..., Matrix]
    impulse: Callable[..., list[Scalar]]


def at_rest(way: Way, tree: Tree, q: Vector) -> Constrained:
    """Closed loops without weight, velocities and torques."""
    none = [0.0] * tree.nv
    return way(tree.without_gravity(), q, none, none)


def base_wrenches(tree: Tree, q: Vector, seams: list[Seam], along: Vector) -> Matrix:
    """Forces along the directions, as wrenches on frames a at their origins in base axes."""
    found, rest = [], list(along)
    for seam in seams:
        own, rest = rest[: seam.closure.rank], rest[seam.closure.rank :]
        total = Motion.zero()
        for row, x in zip(seam.rows, own, strict=True):
            total = total + row * x
        R = link_pose(tree, q, seam.closure.b.link).R
        found.append([*(R @ total.ang), *(R @ total.lin)])
    return found


def drivers(way: Way) -> Drivers:
    """All functions by one way to Ω."""

    def forward_dynamics(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> list[Scalar]:
        """Joint accelerations."""
        c = way(tree, q, qd, tau, external)
        return c.released(forces(c))

    def constraint_forces(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> Matrix:
        """The wrench of each loop on its frame a."""
        c = way(tree, q, qd, tau, external)
        qdd = c.released(forces(c)) if tree.held else []
        return base_wrenches(tree, q, c.seams, smallest(tree, q, qd, qdd, c, external))

    def delassus(tree: Tree, q: Vector) -> Matrix:
        """``J M⁻¹ Jᵀ``."""
        return at_rest(way, tree, q).inverse

    def impulse(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
        """Joint rates after the loops have closed, and the impulse of each loop on its frame a."""
        c = at_rest(way, tree, q)
        c = c._replace(free=velocities(tree, q, qd, c.seams))
        change, still = c.released(forces(c)), [0.0] * tree.nv
        least = smallest(tree.without_gravity(), q, still, change, c)
        p = base_wrenches(tree, q, c.seams, least)
        after = [x + y for x, y in zip(qd, change, strict=True)]
        return [*after, *(x for wrench in p for x in wrench)]

    return Drivers(forward_dynamics, constraint_forces, delassus, impulse)


WAYS: dict[str, Way] = {
    "ltl": closed_ltl.constrained,
    "pv": pv.constrained,
    "pv-r": pv_cuts.constrained,
}
by_ltl, by_pv, by_pvr = (drivers(WAYS[name]) for name in WAYS)
