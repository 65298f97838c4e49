"""What drives a robot: its motors' torques less friction, and wrenches from outside.

Wrenches are given at frames in base axes, and used at links in link axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Flux, Force, Scalar, Vec3, Vector, cross
from linkwise.sweep import at_links

# (frame, (moment, force) at its origin in base axes), acting on the robot
External = Sequence[tuple[Frame, Vector]]


def drive(link: Link, tau: Vector, qd: Vector) -> list[Scalar]:
    """The motors' torques, less friction."""
    return [t - lost for t, lost in zip(tau, link.resistance(qd), strict=True)]


def external_forces(tree: Tree, q: Vector, external: External) -> list[Force]:
    """The wrench on each link from outside, at the link's origin in link axes."""
    given = ((frame.link, _at_link(tree, q, frame, wrench)) for frame, wrench in external)
    return at_links(tree, Force.zero(), given)


def external_fluxes(tree: Tree, q: Vector, external: External) -> list[Flux]:
    """What the wrench on each link changes by as it turns (`Flux.of_wrench`), in link axes."""
    given = (
        (frame.link, Flux.of_wrench(*_turned(tree, q, frame, wrench), Vec3(*frame.origin)))
        for frame, wrench in external
    )
    return at_links(tree, Flux.zero(), given)


def _turned(tree: Tree, q: Vector, frame: Frame, wrench: Vector) -> tuple[Vec3, Vec3]:
    """Moment and force at the frame's origin, in link axes."""
    turn = link_pose(tree, q, frame.link).R.T
    return turn @ Vec3(*wrench[:3]), turn @ Vec3(*wrench[3:])


def _at_link(tree: Tree, q: Vector, frame: Frame, wrench: Vector) -> Force:
    moment, force = _turned(tree, q, frame, wrench)
    return Force(moment + cross(Vec3(*frame.origin), force), force)
