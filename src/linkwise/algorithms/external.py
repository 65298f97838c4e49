"""External wrenches: given at frames in base axes, used at links in link axes."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.kinematics import BASE_POSE, place
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Force, Scalar, Vec3, cross
from linkwise.sweep import along_path

# (frame, (moment, force) at its origin in base axes), acting on the robot
External = Sequence[tuple[Frame, Sequence[Scalar]]]


def external_forces(tree: Tree, q: Sequence[Sequence[Scalar]], external: External) -> list[Force]:
    """The wrench on each link from outside, at the link's origin in link axes."""
    forces = [Force.zero()] * len(tree.links)
    for frame, wrench in external:
        if frame.link == BASE:
            continue  # the ground holds it
        _, pose = along_path(tree, frame.link, place, BASE_POSE, q)[-1]
        moment, force = (pose.R.T @ Vec3(*part) for part in (wrench[:3], wrench[3:]))
        here = Force(moment + cross(Vec3(*frame.origin), force), force)
        forces[frame.link] = forces[frame.link] + here
    return forces
