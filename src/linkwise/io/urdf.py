"""Read a URDF file into a `RobotDescription`.

Every element that matters is read strictly and located: what the file says twice, misspells,
leaves out or contradicts is a `RobotFileError`. What does not matter to the mechanics is
skipped. Whether an inertia is physical is judged later, once fixed joints are merged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import copysign, hypot, inf

from linkwise.errors import quote
from linkwise.io.rpy import rpy_rotation as rpy_rotation
from linkwise.io.urdf_shapes import (
    SHAPES,
    Rgba,
    read_named_colour,
    read_origin,
    read_shape,
    read_triple,
)
from linkwise.io.xml import (
    DEFAULT_LIMITS,
    FileRoots,
    Node,
    PathLike,
    ReadLimits,
    Vocabulary,
    Words,
    parse_xml,
    read_xml,
)
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
    Triple,
)
from linkwise.model.structure import check_tree, mimic_problem

# joint types of URDF, and beyond it those that `save` writes, with the kinds they are
JOINT_KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "spherical": "spherical",
    "universal": "universal",
    "helical": "helical",
}
WITHOUT_AXIS = ("fixed", "free", "spherical")
LIMITED = ("revolute", "prismatic", "helical", "universal", "planar")
UNBOUNDED = sys.float_info.max  # how a file writes "no limit": its numbers are finite
_UNIT = 2.0**-51  # how far from 1 the length of a unit vector is rounded
_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_Tensor = tuple[float, float, float, float, float, float]


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
        "inertia": _words(" ".join(_TENSOR), strict=True),
        "parent": _words("link", strict=True),
        "child": _words("link", strict=True),
        "axis": _words("xyz pitch", strict=True),
        "axis2": _words("xyz", strict=True),
        "limit": _words("lower upper velocity effort"),
        "dynamics": _words("damping friction armature"),
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
        "gazebo mujoco ros2_control sensor plugin contact contact_coefficients surface "
        "safety_controller calibration collision_checking self_filter verbose "
        "self_collision_checking self_collide gravity kinematic hardwareInterface".split()
    ),
    structural=frozenset(
        "robot link joint inertial mass inertia parent child axis limit dynamics mimic".split()
    ),
)


def read_urdf(
    path: PathLike,
    *,
    package_dirs: Sequence[PathLike] = (),
    limits: ReadLimits = DEFAULT_LIMITS,
) -> RobotDescription:
    """Read a URDF file; meshes are located under its package and ``package_dirs``, not opened."""
    return describe_urdf(read_xml(path, limits), FileRoots.of(path, package_dirs), limits)


def parse_urdf(
    text: bytes | str,
    path_label: str = "<urdf>",
    *,
    package_dirs: Sequence[PathLike] = (),
    limits: ReadLimits = DEFAULT_LIMITS,
) -> RobotDescription:
    """Read a URDF from memory; messages call it ``path_label``."""
    return describe_urdf(
        parse_xml(text, path_label, limits), FileRoots.of(None, package_dirs), limits
    )


def describe_urdf(
    root: Node, files: FileRoots, limits: ReadLimits = DEFAULT_LIMITS
) -> RobotDescription:
    """Turn a parsed URDF into a description."""
    if root.tag != "robot":
        raise root.error(f"the root element is <{quote(root.tag)[1:-1]}>; expected <robot>")
    _URDF.check(root)
    _check_link_count(root, limits)
    name = root.text("name") if "name" in root.attributes else _default_name(root)
    colours = dict(filter(None, map(read_named_colour, root.all("material"))))
    links = tuple(_link(node, colours, files) for node in root.all("link"))
    joints = tuple(_joint(node) for node in root.all("joint"))
    base = check_tree(links, joints)
    _check_mimics(list(root.all("joint")))
    return RobotDescription(name, links, joints, where=root.where, base=base)


def _default_name(root: Node) -> str:
    root.where.warn('has no name attribute: called "robot"')
    return "robot"


def _check_link_count(root: Node, limits: ReadLimits) -> None:
    links = list(root.all("link"))
    if not links:
        raise root.error("has no <link>; expected at least one")
    if len(links) > limits.max_links:
        extra = links[limits.max_links]
        raise extra.error(f"{len(links)} links; expected max_links of at most {limits.max_links}")


# --- links ---------------------------------------------------------------------------------


def _link(node: Node, colours: Mapping[str, Rgba], files: FileRoots) -> LinkDescription:
    inertial = node.child("inertial")
    return LinkDescription(
        name=node.text("name"),
        inertia=None if inertial is None else _inertia(inertial),
        visuals=tuple(read_shape(shape, colours, files) for shape in node.all("visual")),
        collisions=tuple(read_shape(shape, colours, files) for shape in node.all("collision")),
        where=node.where,
    )


def _inertia(node: Node) -> BodyInertia:
    mass = node.required_child("mass").number("value", minimum=0.0, largest=LARGEST)
    inertia = node.required_child("inertia")
    xx, xy, xz, yy, yz, zz = (inertia.number(entry, largest=LARGEST) for entry in _TENSOR)
    pose = read_origin(node)
    tensor = _turn_tensor(pose.rotation, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    return BodyInertia(mass, pose.translation, tensor)


def _turn_tensor(turn: Rotation, tensor: Rotation) -> _Tensor:
    """Express a tensor given in child axes in parent axes: ``R I R^T``."""

    def entry(i: int, j: int) -> float:
        if turn == IDENTITY:
            return tensor[i][j]
        return sum(turn[i][k] * tensor[k][m] * turn[j][m] for k in range(3) for m in range(3))

    return entry(0, 0), entry(0, 1), entry(0, 2), entry(1, 1), entry(1, 2), entry(2, 2)


# --- joints --------------------------------------------------------------------------------


def _joint(node: Node) -> JointDescription:
    name, named = node.text("name"), node.text("type")
    if named not in JOINT_KINDS:
        known = ", ".join(JOINT_KINDS)
        raise node.error(f"type={quote(named)} is not supported; expected one of {known}")
    kind = JOINT_KINDS[named]
    dynamics = node.child("dynamics")
    axis = _axis(node, kind)
    return JointDescription(
        name=name,
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


def _axis(joint: Node, kind: str) -> Triple:
    """Return the unit axis; a fixed joint has none, and files often write zeros there."""
    node = joint.child("axis")
    if kind in WITHOUT_AXIS:
        return JointDescription.axis
    return _direction(node) if node is not None else (1.0, 0.0, 0.0)


def _second_axis(joint: Node, kind: str, axis: Triple) -> Triple:
    """The second axis of a universal joint, at a right angle to the first."""
    if kind != "universal":
        return (1.0, 0.0, 0.0)
    node = joint.required_child("axis2")
    second = _direction(node)
    if abs(sum(a * b for a, b in zip(axis, second, strict=True))) > 1e-9:
        raise node.error(f"xyz={quote(node.text('xyz'))} is not at a right angle to <axis>")
    return second


def _pitch(joint: Node, kind: str) -> float:
    """Metres per radian of a helical joint."""
    node = joint.child("axis")
    if kind != "helical":
        return 0.0
    if node is None:
        raise joint.error("has no <axis>; expected one with a pitch")
    return node.number("pitch", largest=LARGEST)


def _mimic(joint: Node) -> Mimic | None:
    """What a joint follows; where it is fixed, files often leave the words in."""
    node = joint.child("mimic")
    if node is None:
        return None
    multiplier = node.number("multiplier", 1.0, largest=LARGEST)
    mimic = Mimic(node.text("joint"), multiplier, node.number("offset", 0.0))
    return None if joint.text("type") == "fixed" else mimic


def _direction(node: Node) -> Triple:
    """A unit vector from an element's xyz; one that is written as such is taken as it is."""
    x, y, z = read_triple(node, "xyz")
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:
        raise node.error("xyz=(0 0 0) has no direction; expected a vector that is not zero")
    if abs(hypot(x, y, z) - 1.0) <= _UNIT:
        return x + 0.0, y + 0.0, z + 0.0
    x, y, z = x / largest, y / largest, z / largest  # so that no length overflows
    length = hypot(x, y, z)
    return x / length + 0.0, y / length + 0.0, z / length + 0.0


def _limits(joint: Node, kind: str) -> Limits:
    node = joint.child("limit")
    if node is None:
        if kind in LIMITED:
            joint.where.warn("has no <limit>: the joint is not limited")
        return Limits()
    lower, upper = _bound(node, "lower", 0.0), _bound(node, "upper", 0.0)
    velocity = _bound(node, "velocity", inf, minimum=0.0)
    effort = _bound(node, "effort", inf, minimum=0.0)
    if kind == "fixed":
        return Limits()
    if kind not in LIMITED:
        return Limits(velocity=velocity, effort=effort)
    if not {"lower", "upper"} & node.attributes.keys():
        node.where.warn("has neither lower nor upper: the joint's range is not limited")
        return Limits(velocity=velocity, effort=effort)
    if lower > upper:
        raise node.error(f"lower={lower:g} is above upper={upper:g}; expected lower <= upper")
    return Limits(lower, upper, velocity, effort)


def _bound(node: Node, key: str, default: float, minimum: float = -inf) -> float:
    value = node.number(key, default, minimum)
    return copysign(inf, value) if abs(value) >= UNBOUNDED else value


def _check_mimics(joints: list[Node]) -> None:
    """Check what mimic joints follow, also where a fixed one has no use for it."""
    mimics = {node.text("name"): node.child("mimic") for node in joints}
    kinds = {node.text("name"): node.text("type") for node in joints}
    drivers = {name: mimic.text("joint") if mimic else None for name, mimic in mimics.items()}
    for name, mimic in mimics.items():
        problem = mimic_problem(name, kinds, drivers, mimic.where) if mimic else None
        if mimic and problem:
            raise mimic.error(problem)
