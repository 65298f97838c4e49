"""Read a URDF file into a `RobotDescription`.

Whatever the file says twice, misspells, leaves out or contradicts is reported with its place and a
`Code`; the table of codes decides what is an error and what is only told. What does not matter to
the mechanics is skipped. Whether an inertia is physical is judged later, once fixed joints are
merged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from math import copysign, inf, isnan, nan, pi

import numpy as np

from linkwise.codes import Code
from linkwise.errors import HOLE, is_strict, quote, suggestion
from linkwise.io.files import FileRoots
from linkwise.io.rpy import rpy_rotation as rpy_rotation
from linkwise.io.urdf_shapes import (
    SHAPES,
    Rgba,
    read_named_colour,
    read_origin,
    read_shapes,
    read_triple,
)
from linkwise.io.xml import Node, ReadLimits, Vocabulary, Words
from linkwise.model.description import (
    IDENTITY,
    LARGEST,
    BodyInertia,
    JointDescription,
    Limits,
    LinkDescription,
    Mimic,
    RobotDescription,
    Rotation,
    Tensor,
    Triple,
    tensor_of,
)
from linkwise.model.structure import mended_tree, resolved_mimics
from linkwise.model.values import at_right_angle, unit
from linkwise.spatial.elementary import length
from linkwise.spatial.matrices import congruence

# joint types of URDF, and beyond it those that `save` writes, with the kinds they are
_TYPES = "revolute continuous prismatic fixed floating planar spherical universal helical"
JOINT_KINDS = {word: word for word in _TYPES.split()} | {"floating": "free"}
WITHOUT_AXIS = ("fixed", "free", "spherical")
LIMITED = ("revolute", "prismatic", "helical", "universal", "planar")
UNBOUNDED = sys.float_info.max  # how a file writes "no limit": its numbers are finite
_NEARLY_UNIT = 1e-6  # how far from 1 the length of a unit vector is in a file that rounds
# lengths are in metres and angles in radians: from where on others are likelier
FAR, TOO_FAR = 5.0, 20.0  # m, of a centre of mass
WIDE, ENDLESS = 20.0, 1000.0  # rad, of a range; ends beyond the second mean that there is none
TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_TWINS = {"iyx": "ixy", "izx": "ixz", "izy": "iyz"}  # entries that some files write twice


def _words(attributes: str, children: str = "", *, strict: bool = False) -> Words:
    return Words(frozenset(attributes.split()), frozenset(children.split()), strict)


_URDF = Vocabulary(
    elements={
        "robot": _words("name version", "link joint material"),
        "link": _words("name type", "inertial visual collision"),
        "joint": _words(
            "name type dont_collapse", "origin parent child axis axis2 limit dynamics mimic"
        ),
        "inertial": _words("", "origin mass inertia"),
        "origin": _words("xyz rpy", strict=True),
        "mass": _words("value", strict=True),
        "inertia": _words(" ".join((*TENSOR, *_TWINS))),
        "parent": _words("link", strict=True),
        "child": _words("link", strict=True),
        "axis": _words("xyz pitch"),
        "axis2": _words("xyz"),
        "limit": _words("lower upper velocity effort"),
        # the last four are for Franka's controllers, and change nothing here
        "dynamics": _words("damping friction armature D K mu_coulomb mu_viscous"),
        "mimic": _words("joint multiplier offset", strict=True),
        "visual": _words("name", "origin geometry material"),
        "collision": _words("name", "origin geometry material"),
        "geometry": _words("name", " ".join(SHAPES)),
        "mesh": _words("filename scale name"),
        "box": _words("size name"),
        "cylinder": _words("radius length name"),
        "capsule": _words("radius length name"),
        "sphere": _words("radius name"),
        "material": _words("name", "color texture"),
        "color": _words("rgba"),
        "texture": _words("filename"),
    },
    skipped=frozenset(
        "gazebo mujoco ros2_control transmission sensor plugin contact contact_coefficients "
        "surface safety_controller calibration collision_checking self_filter verbose "
        "self_collision_checking self_collide gravity kinematic hardwareInterface".split()
    ),
    structural=frozenset(
        "robot link joint inertial mass inertia parent child axis limit dynamics mimic".split()
    ),
    homes={
        **{word: f'<dynamics {word}="..."/>' for word in ("damping", "friction", "armature")},
        **{word: f'<limit {word}="..."/>' for word in ("lower", "upper", "velocity", "effort")},
        **{word: f'<inertial><inertia {word}="..."/>' for word in TENSOR},
        "mass": '<inertial><mass value="..."/>',
        "multiplier": '<mimic multiplier="..."/>',
        "offset": '<mimic offset="..."/>',
        "xyz": '<origin xyz="..."/>',
        "rpy": '<origin rpy="..."/>',
    },
)


def describe_urdf(root: Node, files: FileRoots, limits: ReadLimits, mimic: str) -> RobotDescription:
    """Turn a parsed URDF into a description; ``mimic="free"`` leaves out what joints follow."""
    root = _URDF.read(root)
    _check_link_count(root, limits)
    name = root.attributes.get("name", "")
    name = name if name.strip() else "robot"
    colours = dict(filter(None, map(read_named_colour, root.all("material"))))
    links = tuple(_link(node, colours, files) for node in root.all("link"))
    joints = tuple(_joint(node) for node in root.all("joint"))
    if mimic == "free":
        joints = tuple(replace(joint, mimic=None) for joint in joints)
    joints = resolved_mimics(joints)
    base, links, joints = mended_tree(links, joints)
    return RobotDescription(name, links, joints, where=root.where, base=base)


def _check_link_count(root: Node, limits: ReadLimits) -> None:
    links = list(root.all("link"))
    if not links:
        raise root.problem(Code.NO_LINK)
    if len(links) > limits.max_links:
        extra = links[limits.max_links]
        raise extra.problem(Code.TOO_MANY_LINKS, count=len(links), most=limits.max_links)


# --- links ---------------------------------------------------------------------------------


def _link(node: Node, colours: Mapping[str, Rgba], files: FileRoots) -> LinkDescription:
    inertial = node.child("inertial")
    return LinkDescription(
        name=node.text("name"),
        inertia=None if inertial is None else _inertia(inertial),
        visuals=read_shapes(node.all("visual"), colours, files),
        collisions=read_shapes(node.all("collision"), colours, files),
        where=node.where,
    )


def _inertia(node: Node) -> BodyInertia:
    mass_node, inertia = _part(node, "mass", "value"), _part(node, "inertia", *TENSOR)
    mass = mass_node.number("value", minimum=0.0, largest=LARGEST)
    xx, xy, xz, yy, yz, zz = (inertia.number(entry, largest=LARGEST) for entry in TENSOR)
    _check_twins(inertia)
    pose = read_origin(node)
    distance = length(pose.translation)
    if distance > FAR:
        far = Code.FAR_CENTRE if distance > TOO_FAR else Code.DISTANT_CENTRE
        node.report(far, distance=distance)
    tensor = _turn_tensor(pose.rotation, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    return BodyInertia(mass, pose.translation, tensor)


def _turn_tensor(turn: Rotation, tensor: Rotation) -> Tensor:
    """Express a tensor given in child axes in parent axes: ``R I R^T``."""
    return tensor_of(np.array(tensor) if turn == IDENTITY else congruence(turn, tensor))


def _part(inertial: Node, tag: str, *keys: str) -> Node:
    """A part of a link's inertia; one that is missing is a hole, or zero if that is allowed."""
    found = inertial.child(tag)
    if found is not None:
        return found
    inertial.report(Code.MISSING_PART, tag=tag)
    zeros = {} if is_strict() else dict.fromkeys(keys, "0")
    return replace(inertial, tag=tag, attributes=zeros, children=(), is_hole=True)


def _check_twins(inertia: Node) -> None:
    """Entries below the diagonal may be there if they say what those above say."""
    for key in _TWINS.keys() & inertia.attributes.keys():
        value, other = inertia.number(key), inertia.number(_TWINS[key])
        if value != other and not isnan(value + other):
            inertia.report(
                Code.UNEQUAL_INERTIAS, key=key, value=value, twin=_TWINS[key], other=other
            )


# --- joints --------------------------------------------------------------------------------


def _joint(node: Node) -> JointDescription:
    kind = _kind(node)
    dynamics = node.child("dynamics")
    axis = _axis(node, kind)
    return JointDescription(
        name=node.text("name"),
        kind=kind,
        parent=node.required_child("parent").text("link"),
        child=node.required_child("child").text("link"),
        origin=read_origin(node),
        axis=axis,
        second_axis=_second_axis(node, kind, axis),
        pitch=_pitch(node, kind),
        mimic=_mimic(node),
        limits=_limits(node, kind),
        damping=0.0 if dynamics is None else dynamics.number("damping", 0.0, minimum=0.0),
        friction=0.0 if dynamics is None else dynamics.number("friction", 0.0, minimum=0.0),
        armature=0.0 if dynamics is None else dynamics.number("armature", 0.0, 0.0, LARGEST),
        where=node.where,
    )


def _kind(joint: Node) -> str:
    """The kind of a joint; past a type that is unknown, the one that was perhaps meant."""
    named = joint.text("type")
    if named in JOINT_KINDS:
        return JOINT_KINDS[named]
    if named is not HOLE:
        meant = suggestion(named, frozenset(JOINT_KINDS))
        perhaps = f"; did you mean {quote(meant)}?" if meant else ""
        facts = {"known": ", ".join(JOINT_KINDS), "meant": meant, "perhaps": perhaps}
        joint.report(Code.UNKNOWN_TYPE, key="type", value=named, **facts)
        return JOINT_KINDS[meant] if meant else HOLE
    return HOLE


def _axis(joint: Node, kind: str) -> Triple:
    """Return the unit axis; a fixed joint has none, and files often write zeros there."""
    node = joint.child("axis")
    if kind in WITHOUT_AXIS:
        return JointDescription.axis
    return _direction(node, kind) if node is not None else (1.0, 0.0, 0.0)


def _second_axis(joint: Node, kind: str, axis: Triple) -> Triple:
    """The second axis of a universal joint, at a right angle to the first."""
    if kind != "universal":
        return (1.0, 0.0, 0.0)
    node = joint.required_child("axis2")
    second = _direction(node, kind)
    if not at_right_angle(axis, second):
        node.report(Code.SKEW_AXES, value=node.text("xyz"))
    return second


def _pitch(joint: Node, kind: str) -> float:
    """Metres per radian of a helical joint."""
    node = joint.child("axis")
    if kind != "helical":
        return 0.0
    if node is None:
        joint.report(Code.NO_PITCH_AXIS)
        return nan
    return node.number("pitch", largest=LARGEST)


def _mimic(joint: Node) -> Mimic | None:
    """What a joint follows; the <mimic> that files often leave in a fixed joint is passed over."""
    node = joint.child("mimic")
    if node is None:
        return None
    multiplier = node.number("multiplier", 1.0, largest=LARGEST)
    mimic = Mimic(node.text("joint"), multiplier, node.number("offset", 0.0), node.where)
    return None if joint.attributes.get("type") == "fixed" else mimic


def _direction(node: Node, kind: str) -> Triple:
    """A unit vector from an element's xyz; one that is written as such is taken as it is."""
    given = read_triple(node, "xyz")
    if not any(given) and kind is not HOLE:
        node.report(Code.NO_DIRECTION, key="xyz", value=node.text("xyz"))
    if isnan(sum(given)) or not any(given):
        return 1.0, 0.0, 0.0
    direction, size = unit(given), length(given)
    if abs(size - 1.0) > _NEARLY_UNIT:
        shown = " ".join(f"{entry:.16g}" for entry in direction)
        node.report(Code.AXIS_LENGTH, value=node.text("xyz"), length=size, unit=shown)
    return direction


def _limits(joint: Node, kind: str) -> Limits:
    node = joint.child("limit")
    if node is None:
        if kind in LIMITED and joint.attributes["type"] in JOINT_KINDS:
            joint.report(Code.NO_LIMIT)
        return Limits()
    lower, upper = _bound(node, "lower", 0.0), _bound(node, "upper", 0.0)
    velocity = _bound(node, "velocity", inf, minimum=0.0)
    effort = _bound(node, "effort", inf, minimum=0.0)
    if kind == "fixed":
        return Limits()
    if kind not in LIMITED:
        return Limits(velocity=velocity, effort=effort)
    if not {"lower", "upper"} & node.attributes.keys():
        node.report(Code.NO_RANGE)
        return Limits(velocity=velocity, effort=effort)
    if lower > upper:
        node.report(Code.LIMITS_SWAPPED, lower=lower, upper=upper)
        return Limits(velocity=velocity, effort=effort)
    if kind == "revolute" and WIDE < max(abs(lower), abs(upper)) < ENDLESS:
        looks = Code.DEGREES if _are_degrees(lower, upper) else Code.WIDE_RANGE
        node.report(looks, lower=lower, upper=upper, turns=(upper - lower) / (2.0 * pi))
    return Limits(lower, upper, velocity, effort)


def _are_degrees(lower: float, upper: float) -> bool:
    """Whether ends of a wide range are such as are written in degrees: 170, and not 100 or 31.4."""
    ends = {abs(x) for x in (lower, upper)}
    return all(x <= 360.0 and x % 5.0 == 0.0 for x in ends) and any(x % 100.0 for x in ends)


def _bound(node: Node, key: str, default: float, minimum: float = -inf) -> float:
    value = node.number(key, default, minimum)
    return copysign(inf, value) if abs(value) >= UNBOUNDED else value
