"""The order of joints in q: as a file has them, as other libraries do, or as users ask.

| order | rule |
|---|---|
| ours, and MuJoCo's | depth first, the joints of a link in the order of the file |
| Pinocchio's, of a URDF | depth first, the joints of a link by their names |
| asked for | any in which a joint comes after those that carry it |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from linkwise.model.description import JointDescription, RobotDescription
from linkwise.model.find import outward
from linkwise.model.joints import FIXED
from linkwise.model.values import some, unknown

OF_LIBRARIES = ("mujoco", "pinocchio")
Siblings = Callable[[Iterable[JointDescription]], Iterable[JointDescription]]


def reorder(robot: RobotDescription, order: Any) -> RobotDescription:
    """The same robot with its joints in another order: names, or that of a library."""
    if isinstance(order, str):
        return replace(robot, order=of_library(robot, order))
    return replace(robot, order=_checked(robot, order))


def of_library(robot: RobotDescription, library: str) -> tuple[str, ...]:
    """Joints that move, in the order in which a library that reads the robot's file has them."""
    if library not in OF_LIBRARIES:
        raise ValueError(
            f"order is {library!r}; expected {' or '.join(map(repr, OF_LIBRARIES))}, or a list of "
            "the names of all joints"
        )
    by_name = library == "pinocchio"
    joints = depth_first(robot, _by_name if by_name else list)
    return tuple(joint.name for joint in joints if joint.kind != FIXED)


def _by_name(joints: Iterable[JointDescription]) -> list[JointDescription]:
    return sorted(joints, key=lambda joint: joint.name.encode())


def depth_first(robot: RobotDescription, siblings: Siblings = list) -> list[JointDescription]:
    """Every joint, fixed ones too; ``siblings`` puts those of one link in order."""
    children: dict[str, list[JointDescription]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint)
    found, todo = list[JointDescription](), [*siblings(children.get(robot.base, []))][::-1]
    while todo:
        found.append(todo.pop())
        todo += [*siblings(children.get(found[-1].child, []))][::-1]
    return found


def _checked(robot: RobotDescription, order: Any) -> tuple[str, ...]:
    """Names of all joints with numbers of their own, each after those that carry it."""
    if not isinstance(order, Sequence) or not all(isinstance(name, str) for name in order):
        raise TypeError(f"order is {order!r}; expected a list of the names of all joints")
    own = {joint.name: joint for joint in robot.joints if _has_numbers(joint)}
    for name in order:
        if name not in own:
            raise unknown("joint", name, robot.name, own)
    missing = [name for name in own if name not in order]
    if missing:
        raise ValueError(f"order: {some(missing)} missing; expected the names of all joints")
    if len(order) > len(own):
        twice = next(name for name in order if list(order).count(name) > 1)
        raise ValueError(f"order: joint {twice!r} is there twice; expected each joint once")
    place = {name: k for k, name in enumerate(order)}
    carrier = _carriers(robot)
    for name in order:
        under = carrier[name]
        if under and place[under] > place[name]:
            raise ValueError(
                f"order: joint {name!r} comes before {under!r}, which carries it; expected a joint "
                "after all that carry it (robot.joint(name).q_slice finds a joint's numbers in q)"
            )
    return tuple(order)


def _has_numbers(joint: JointDescription) -> bool:
    return joint.kind != FIXED and joint.mimic is None


def _carriers(robot: RobotDescription) -> dict[str, str]:
    """For each joint the next one towards the base that has numbers of its own, or nothing."""
    on_link, found = {robot.base: ""}, {}
    for joint in outward(robot):
        found[joint.name] = on_link[joint.parent]
        on_link[joint.child] = joint.name if _has_numbers(joint) else on_link[joint.parent]
    return found
