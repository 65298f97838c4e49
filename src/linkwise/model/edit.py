"""Editing: descriptions in, new descriptions out. Nothing is changed in place.

The methods of `Robot` have the same names and arguments, and say what they mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import Where, quote
from linkwise.model import values
from linkwise.model.description import (
    BodyInertia,
    FrameDescription,
    JointDescription,
    Limits,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.model.find import find_joint, find_link, names_of, outward, way_to
from linkwise.model.frames import Array, Placed, own_axes, pose_arrays
from linkwise.model.joints import FIXED, make_joint
from linkwise.model.tree import BASE
from linkwise.spatial import Vec3
from linkwise.spatial.elementary import length
from linkwise.spatial.matrices import product

# kinds whose motion is undone by turning the axis round, so that q keeps its meaning
REVERSIBLE = (FIXED, "revolute", "continuous", "prismatic", "helical")
UNIT = 1e-6  # how far from 1 the length of a quaternion may be

# --- the whole robot -----------------------------------------------------------------------


def with_gravity(robot: RobotDescription, gravity: ArrayLike) -> RobotDescription:
    """The same robot under another gravity."""
    return replace(robot, gravity=values.triple("gravity", gravity))


def free_mimics(robot: RobotDescription) -> RobotDescription:
    """The same robot with every joint on its own."""
    return replace(robot, joints=tuple(replace(joint, mimic=None) for joint in robot.joints))


def with_free_base(robot: RobotDescription, joint: str = "base") -> RobotDescription:
    """The same robot with a free joint between a new link and the old base."""
    world = _unused("world", [link.name for link in robot.links])
    named = values.name("with_free_base: joint", joint)
    name = _unused(named, [j.name for j in robot.joints])
    fly = JointDescription(name, "free", world, robot.base, where=robot.where)
    links = (LinkDescription(world, where=robot.where), *robot.links)
    return replace(robot, links=links, joints=(fly, *robot.joints), base=world)


def rename(
    robot: RobotDescription, names: Mapping[str, str] | None, name: str | None
) -> RobotDescription:
    """The same robot with links, joints and frames called otherwise, and perhaps itself."""
    names = values.mapping("rename: names", {} if names is None else names, "{old: new}")
    known = names_of(robot)
    for old, new in names.items():
        if old not in known:
            raise values.unknown("link, joint or frame", old, robot.name, known)
        values.name(f"the new name of {old!r}", new)
    stay = known.keys() - names.keys()
    times = Counter(names.values())
    for new in times:
        if new in stay or times[new] > 1:
            raise ValueError(f"rename: two things would be called {new!r}; expected a new name")
    renamed = _renamed(robot, names)
    return renamed if name is None else replace(renamed, name=values.name("the name", name))


# --- links and frames ----------------------------------------------------------------------


def with_inertia(
    robot: RobotDescription,
    link: str,
    mass: float | None,
    com: ArrayLike | None,
    inertia: ArrayLike | None,
) -> RobotDescription:
    """The same robot with another body on a link; what is None stays."""
    own = find_link(robot, link)
    old = own.inertia or BodyInertia(0.0)
    make = values.body if inertia is None else values.new_body
    body = make(
        f"link {link!r}",
        old.mass if mass is None else mass,
        old.com if com is None else com,
        old.tensor if inertia is None else inertia,
    )
    place = f"<link name={quote(link)}> changed by with_inertia"
    given = Where(own.where.path, own.where.line, place)
    changed = replace(own, inertia=body, where=given)
    links = (changed if own is each else each for each in robot.links)
    return replace(robot, links=tuple(links))


def with_payload(
    robot: RobotDescription,
    link: str,
    mass: float,
    com: ArrayLike,
    inertia: ArrayLike,
    name: str,
) -> RobotDescription:
    """The robot with a body of its own link ``name``, in the same place as a link."""
    find_link(robot, link)
    _check_new(robot, "payload", name)
    payload = LinkDescription(
        name, values.whole_body(f"payload {name!r}", mass, com, inertia), where=robot.where
    )
    weld = JointDescription(name, FIXED, link, name, where=robot.where)
    return replace(robot, links=(*robot.links, payload), joints=(*robot.joints, weld))


def with_frame(
    robot: RobotDescription, name: str, link: str, pose: ArrayLike | Pose | None
) -> RobotDescription:
    """The robot with one more frame on a link."""
    find_link(robot, link)
    _check_new(robot, "frame", name)
    frame = FrameDescription(name, link, values.pose(f"pose of frame {name!r}", pose))
    return replace(robot, frames=(*robot.frames, frame))


# --- joints --------------------------------------------------------------------------------


def with_joint(
    robot: RobotDescription,
    joint: str,
    *,
    limits: Sequence[float] | Limits | None = None,
    velocity: float | None = None,
    effort: float | None = None,
    armature: float | None = None,
    damping: float | None = None,
    friction: float | None = None,
) -> RobotDescription:
    """The same robot with other numbers on a joint; what is None stays."""
    own = find_joint(robot, joint)
    what = f"joint {joint!r}"
    if own.kind == FIXED:
        raise ValueError(f"{what} is fixed; expected one that moves")
    old = own.limits
    if not isinstance(limits, Limits):
        limits = values.limits(
            what,
            (old.lower, old.upper) if limits is None else limits,
            old.velocity if velocity is None else velocity,
            old.effort if effort is None else effort,
        )
    given = {"armature": armature, "damping": damping, "friction": friction}
    numbers: dict[str, Any] = {
        key: values.positive(f"{what}: {key}", x) for key, x in given.items() if x is not None
    }
    new = replace(own, limits=limits, **numbers)
    return replace(robot, joints=tuple(new if own is each else each for each in robot.joints))


def lock(robot: RobotDescription, configuration: Mapping[str, ArrayLike]) -> RobotDescription:
    """The robot with joints held for good, and those that follow them where that puts them."""
    held: dict[str, Array] = {}
    given = values.mapping("lock: configuration", configuration, "{joint: value}")
    for name, value in given.items():
        joint = find_joint(robot, name)
        if joint.kind == FIXED:
            raise ValueError(f"lock: joint {name!r} is fixed; expected one that moves")
        if joint.mimic is not None:
            driver = joint.mimic.joint
            raise ValueError(
                f"lock: joint {name!r} follows {driver!r}; expected {driver!r} to be locked, "
                "which holds both"
            )
        held[name] = _own_configuration(joint, value)
    for joint in robot.joints:
        if joint.mimic is not None and joint.mimic.joint in held:
            at = held[joint.mimic.joint]
            held[joint.name] = joint.mimic.multiplier * at + joint.mimic.offset
    joints = (_held(each, held[each.name]) if each.name in held else each for each in robot.joints)
    return replace(robot, joints=tuple(joints))


def _own_configuration(joint: JointDescription, value: ArrayLike) -> Array:
    """A joint's own numbers in q, checked."""
    kind = make_joint(joint.kind, joint.pitch)
    shapes = ((), (1,)) if kind.nq == 1 else ((kind.nq,),)
    q = values.numbers(f"lock: value of joint {joint.name!r}", value, *shapes).reshape(-1)
    if joint.kind in ("spherical", "free") and abs(length(q[:4]) - 1.0) > UNIT:
        raise ValueError(
            f"lock: value of joint {joint.name!r} is {value!r}; expected it to start with a unit "
            "quaternion (w, x, y, z)"
        )
    return q


def _held(joint: JointDescription, q: Array) -> JointDescription:
    """The fixed joint that a joint is at a configuration."""
    kind = make_joint(joint.kind, joint.pitch)
    R, p = pose_arrays(joint.origin)
    axes = product(R, own_axes(Placed(BASE, kind, joint.axis, joint.second_axis, R, p)))
    X = kind.transform(q.tolist())
    turn = np.column_stack([list(X.rotate_back(Vec3(*e))) for e in np.eye(3).tolist()])
    origin = values.pose_of(product(axes, turn, axes.T, R), p + product(axes, list(X.r)))
    return JointDescription(joint.name, FIXED, joint.parent, joint.child, origin, where=joint.where)


# --- chains and trees ----------------------------------------------------------------------


def with_attached(
    robot: RobotDescription,
    other: RobotDescription,
    link: str,
    pose: ArrayLike | Pose | None,
    prefix: str,
) -> RobotDescription:
    """Two robots in one: the other's base is fixed on a link of this one."""
    find_link(robot, link)
    if prefix:
        values.name("with_attached: prefix", prefix)
        other = _renamed(other, {name: prefix + name for name in names_of(other)})
    taken = names_of(robot)
    both = [name for name in names_of(other) if name in taken]
    if both:
        raise ValueError(
            f"with_attached: robots {robot.name!r} and {other.name!r} both have "
            f"{values.some(both)}; expected different names (prefix= goes before the other's)"
        )
    name = _unused(f"{other.base}_mount", taken | names_of(other))
    place = values.pose("with_attached: pose", pose)
    mount = JointDescription(name, FIXED, link, other.base, place, where=other.where)
    return replace(
        robot,
        links=robot.links + other.links,
        joints=(*robot.joints, mount, *other.joints),
        frames=robot.frames + other.frames,
        order=robot.order + other.order,
    )


def sub_chain(robot: RobotDescription, base: str, tip: str) -> RobotDescription:
    """The links from one to another further out, and what is fixed to them, as a robot."""
    way, inboard = way_to(robot, tip), way_to(robot, base)
    path = {joint.name for joint in way[len(inboard) :]}
    if way[: len(inboard)] != inboard or not path:
        raise ValueError(
            f"sub_chain: link {tip!r} is not further out than {base!r}; expected a base on the way "
            f"to {tip!r}: {values.some([joint.parent for joint in way])}"
        )
    links, joints = {base}, set[str]()
    for joint in outward(robot):
        if joint.parent in links and (joint.name in path or joint.kind == FIXED):
            links.add(joint.child)
            joints.add(joint.name)
    _check_drivers(robot, joints)
    return replace(
        robot,
        links=tuple(each for each in robot.links if each.name in links),
        joints=tuple(each for each in robot.joints if each.name in joints),
        frames=tuple(each for each in robot.frames if each.link in links),
        gravity=_gravity_at(robot, inboard),
        base=base,
    )


def change_base(robot: RobotDescription, link: str) -> RobotDescription:
    """The same machine held by another link: joints on the way to it are turned round.

    A turned joint moves a link without mass, on which the old parent is fixed.
    """
    find_link(robot, link)
    way = way_to(robot, link)
    stuck = [joint for joint in way if joint.kind not in REVERSIBLE]
    if stuck:
        raise ValueError(
            f"change_base: joint {stuck[0].name!r} on the way to {link!r} is {stuck[0].kind}; "
            f"expected only {', '.join(REVERSIBLE)}, whose values mean the same from either side"
        )
    links, joints = list(robot.links), list[JointDescription]()
    turned, taken = {joint.name for joint in way}, names_of(robot)
    for joint in robot.joints:
        if joint.name not in turned:
            joints.append(joint)
            continue
        helper = _unused(f"{joint.name}_turned", taken)
        parts = _turned(joint, helper)
        joints += parts
        if len(parts) > 1:
            links.append(LinkDescription(helper, where=joint.where))
    gravity = _gravity_at(robot, way)
    return replace(robot, links=tuple(links), joints=tuple(joints), base=link, gravity=gravity)


def _turned(joint: JointDescription, helper: str) -> list[JointDescription]:
    """A joint seen from its child: ``(O J(q))⁻¹ = J(q)⁻¹ O⁻¹``, and J⁻¹ has the opposite axis."""
    back = values.inverse(joint.origin)
    if joint.kind == FIXED:
        return [replace(joint, parent=joint.child, child=joint.parent, origin=back)]
    x, y, z = joint.axis
    axis = (0.0 - x, 0.0 - y, 0.0 - z)
    turned = replace(joint, parent=joint.child, child=joint.parent, origin=Pose(), axis=axis)
    if joint.origin == Pose():
        return [turned]
    mount = JointDescription(helper, FIXED, helper, joint.parent, back, where=joint.where)
    return [replace(turned, child=helper), mount]


# --- checks and parts ----------------------------------------------------------------------


def _check_new(robot: RobotDescription, what: str, name: str) -> None:
    if values.name(f"{what}: name", name) in names_of(robot):
        raise ValueError(
            f"{what} {name!r}: robot {robot.name!r} has a link, joint or frame of that name; "
            "expected a new one"
        )


def _check_drivers(robot: RobotDescription, kept: Container[str]) -> None:
    """No joint that is kept may follow one that is not."""
    for joint in robot.joints:
        if joint.name in kept and joint.mimic is not None and joint.mimic.joint not in kept:
            raise ValueError(
                f"sub_chain: joint {joint.name!r} follows {joint.mimic.joint!r}, which is not on "
                "the chain; expected it to be locked first, or the robot loaded with mimic='free'"
            )


def _gravity_at(robot: RobotDescription, way: list[JointDescription]) -> tuple[float, float, float]:
    """Gravity in the axes that the base has after some joints at rest."""
    turns = (np.array(joint.origin.rotation) for joint in way)
    R = np.array(values.pose_of(product(np.eye(3), *turns), np.zeros(3)).rotation)
    return values.triple("gravity", product(R.T, robot.gravity))


def _renamed(robot: RobotDescription, names: Mapping[str, str]) -> RobotDescription:
    def of(name: str) -> str:
        return names.get(name, name)

    def joint(each: JointDescription) -> JointDescription:
        mimic = each.mimic and replace(each.mimic, joint=of(each.mimic.joint))
        parent, child = of(each.parent), of(each.child)
        return replace(each, name=of(each.name), parent=parent, child=child, mimic=mimic)

    return replace(
        robot,
        links=tuple(replace(each, name=of(each.name)) for each in robot.links),
        joints=tuple(map(joint, robot.joints)),
        frames=tuple(replace(f, name=of(f.name), link=of(f.link)) for f in robot.frames),
        base=of(robot.base),
        order=tuple(map(of, robot.order)),
    )


def _unused(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name
