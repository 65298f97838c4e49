"""The functions of a grasp: parts of its outcome, by each way to it.

forward_dynamics      joint accelerations
object_acceleration   the object's
contact_forces        wrenches of the contacts on the object
motion                all of these
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from linkwise.algorithms.closed_dynamics import Way
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_dynamics import solved
from linkwise.algorithms.grasp_outcome import Outcome
from linkwise.model.tree import Tree
from linkwise.spatial import Vector

Solve = Callable[..., Outcome]  # (tree, q, qd, tau, external)


class Drivers(NamedTuple):
    """The functions of a grasp by one way to its outcome."""

    forward_dynamics: Callable[..., Any]
    motion: Callable[..., Any]
    object_acceleration: Callable[..., Any]
    contact_forces: Callable[..., Any]


def drivers(solve: Solve) -> Drivers:
    """All functions by one way to the outcome."""

    def driver(part: Callable[[Outcome], Any]) -> Callable[..., Any]:
        def run(tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()) -> Any:
            return part(solve(tree, q, qd, tau, external))

        return run

    return Drivers(
        driver(lambda o: o.qdd),
        driver(Outcome.numbers),
        driver(lambda o: o.acceleration),
        driver(lambda o: o.wrenches),
    )


def by(way: Way) -> Drivers:
    """All functions, with closed loops by one of the ways."""
    return drivers(partial(solved, way))
