"""Editing: descriptions in, new descriptions out. Nothing is changed in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from linkwise.model.description import JointDescription, LinkDescription, RobotDescription


def set_gravity(robot: RobotDescription, gravity: Sequence[float]) -> RobotDescription:
    """The same robot under another gravity, m/s² in base axes."""
    values = tuple(float(x) for x in gravity)
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise ValueError(f"gravity {gravity!r}: expected three finite numbers")
    return replace(robot, gravity=(values[0], values[1], values[2]))


def free_mimics(robot: RobotDescription) -> RobotDescription:
    """The same robot with every joint on its own."""
    return replace(robot, joints=tuple(replace(joint, mimic=None) for joint in robot.joints))


def free_base(robot: RobotDescription, joint: str = "base") -> RobotDescription:
    """The same robot on a free-flying base: a free joint between a new link and the old base."""
    world = _unused("world", [link.name for link in robot.links])
    name = _unused(joint, [j.name for j in robot.joints])
    fly = JointDescription(name, "free", world, robot.base, where=robot.where)
    links = (LinkDescription(world, where=robot.where), *robot.links)
    return replace(robot, links=links, joints=(fly, *robot.joints), base=world)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
