"""Finding one's way around a description."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from linkwise.model import values
from linkwise.model.description import JointDescription, LinkDescription, RobotDescription

Record = TypeVar("Record", LinkDescription, JointDescription)


def names_of(robot: RobotDescription) -> dict[str, None]:
    """All names of links, joints and frames, each once."""
    parts = (robot.links, robot.joints, robot.frames)
    return {each.name: None for part in parts for each in part}


def find_link(robot: RobotDescription, name: str) -> LinkDescription:
    """The link of a name; of a joint or a frame, the error says which link it is on."""
    if isinstance(name, str) and all(x.name != name for x in robot.links):
        links = {x.name: ("joint", x.child) for x in robot.joints}
        links |= {x.name: ("frame", x.link) for x in robot.frames}
        if name in links:
            what, link = links[name]
            raise ValueError(
                f"link {name!r}: robot {robot.name!r} has no such link; {name!r} is a {what}, "
                f"expected its link {link!r}"
            )
    return _named(robot, "link", robot.links, name)


def find_joint(robot: RobotDescription, name: str) -> JointDescription:
    """The joint of a name."""
    return _named(robot, "joint", robot.joints, name)


def _named(robot: RobotDescription, what: str, among: Sequence[Record], name: str) -> Record:
    is_name = isinstance(name, str)
    found = next((each for each in among if is_name and each.name == name), None)
    if found is None:
        raise values.unknown(what, name, robot.name, [each.name for each in among])
    return found


def way_to(robot: RobotDescription, link: str) -> list[JointDescription]:
    """Joints from the base out to a link."""
    inboard = {joint.child: joint for joint in robot.joints}
    name, way = find_link(robot, link).name, list[JointDescription]()
    while name in inboard:
        way.append(inboard[name])
        name = inboard[name].parent
    return way[::-1]


def outward(robot: RobotDescription) -> Iterable[JointDescription]:
    """Every joint, those nearer the base first."""
    children: dict[str, list[JointDescription]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint)
    todo = [robot.base]
    while todo:
        for joint in children.get(todo.pop(), []):
            yield joint
            todo.append(joint.child)
