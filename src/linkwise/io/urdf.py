"""Read a URDF file into a `RobotDescription`.

Every element that matters is read strictly and located: what the file says twice, misspells,
leaves out or contradicts is a `RobotFileError`. What does not matter to the mechanics is
skipped. Whether an inertia is physical is judged later, once fixed joints are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import cos, hypot, inf, isfinite, sin

from linkwise.errors import Where
from linkwise.io.xml import (
    DEFAULT_LIMITS,
    FileRoots,
    Node,
    PathLike,
    ReadLimits,
    Vocabulary,
    Words,
    parse_xml,
    quote,
    read_xml,
    suggestion,
)
from linkwise.model.description import (
    IDENTITY,
    BodyInertia,
    Geometry,
    JointDescription,
    Limits,
    LinkDescription,
    Mimic,
    Pose,
    RobotDescription,
    Rotation,
    Triple,
)

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
FOLLOWING = ("revolute", "continuous", "prismatic", "helical")
LIMITED = ("revolute", "prismatic", "helical", "universal", "planar")
_SHAPES = ("mesh", "box", "cylinder", "sphere", "capsule")
_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_SNAP = 2.0**-52
_Rgba = tuple[float, float, float, float]
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
        "geometry": _words("name", " ".join(_SHAPES)),
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
    return _robot(read_xml(path, limits), FileRoots.of(path, package_dirs), limits)


def parse_urdf(
    text: bytes | str,
    path_label: str = "<urdf>",
    *,
    package_dirs: Sequence[PathLike] = (),
    limits: ReadLimits = DEFAULT_LIMITS,
) -> RobotDescription:
    """Read a URDF from memory; messages call it ``path_label``."""
    return _robot(parse_xml(text, path_label, limits), FileRoots.of(None, package_dirs), limits)


def _robot(root: Node, files: FileRoots, limits: ReadLimits) -> RobotDescription:
    if root.tag != "robot":
        raise root.error(f"the root element is <{quote(root.tag)[1:-1]}>; expected <robot>")
    _check_link_count(root, limits)
    _URDF.check(root)
    name = root.text("name") if "name" in root.attributes else _default_name(root)
    colours = dict(filter(None, map(_named_colour, root.all("material"))))
    links = tuple(_link(node, colours, files) for node in root.all("link"))
    joints = tuple(_joint(node) for node in root.all("joint"))
    base = _check_tree(links, joints)
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


def _link(node: Node, colours: Mapping[str, _Rgba], files: FileRoots) -> LinkDescription:
    inertial = node.child("inertial")
    return LinkDescription(
        name=node.text("name"),
        inertia=None if inertial is None else _inertia(inertial),
        visuals=tuple(_shape(shape, colours, files) for shape in node.all("visual")),
        collisions=tuple(_shape(shape, colours, files) for shape in node.all("collision")),
        where=node.where,
    )


def _inertia(node: Node) -> BodyInertia:
    mass = node.required_child("mass").number("value", minimum=0.0)
    inertia = node.required_child("inertia")
    xx, xy, xz, yy, yz, zz = (inertia.number(entry) for entry in _TENSOR)
    pose = _origin(node)
    tensor = _turn_tensor(pose.rotation, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    if not all(map(isfinite, tensor)):
        raise inertia.error(
            f"the tensor turned into link axes is {tensor}; expected finite numbers"
        )
    return BodyInertia(mass, pose.translation, tensor)


def _turn_tensor(turn: Rotation, tensor: Rotation) -> _Tensor:
    """Express a tensor given in child axes in parent axes: ``R I R^T``."""

    def entry(i: int, j: int) -> float:
        if turn == IDENTITY:
            return tensor[i][j]
        return sum(turn[i][k] * tensor[k][m] * turn[j][m] for k in range(3) for m in range(3))

    return entry(0, 0), entry(0, 1), entry(0, 2), entry(1, 1), entry(1, 2), entry(2, 2)


def _shape(node: Node, colours: Mapping[str, _Rgba], files: FileRoots) -> Geometry:
    geometry = node.required_child("geometry")
    shapes = [child for child in geometry.children if child.tag in _SHAPES]
    if len(shapes) != 1:
        wanted = ", ".join(f"<{tag}>" for tag in _SHAPES)
        raise geometry.error(f"has {len(shapes)} shapes; expected exactly one of {wanted}")
    shape = shapes[0]
    is_mesh = shape.tag == "mesh"
    return Geometry(
        kind=shape.tag,
        size=() if is_mesh else _size(shape),
        path=files.resolve(shape.text("filename"), shape.where) if is_mesh else "",
        scale=_triple(shape, "scale", (1.0, 1.0, 1.0)),
        origin=_origin(node),
        rgba=_colour(node.child("material"), colours),
    )


def _size(shape: Node) -> tuple[float, ...]:
    if shape.tag == "sphere":
        return (shape.number("radius", minimum=0.0),)
    if shape.tag != "box":
        return shape.number("radius", minimum=0.0), shape.number("length", minimum=0.0)
    size = shape.numbers("size", 3)
    if min(size) < 0.0:
        raise shape.error(f"size={quote(shape.text('size'))} is negative; expected lengths >= 0")
    return size


def _named_colour(material: Node) -> tuple[str, _Rgba] | None:
    colour = _colour(material, {})
    return None if colour is None else (material.text("name"), colour)


def _colour(material: Node | None, colours: Mapping[str, _Rgba]) -> _Rgba | None:
    if material is None:
        return None
    colour = material.child("color")
    if colour is None:
        return colours.get(material.attributes.get("name", ""))
    red, green, blue, alpha = colour.numbers("rgba", 4)
    return red, green, blue, alpha


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
        origin=_origin(node),
        axis=axis,
        second_axis=_second_axis(node, kind, axis),
        pitch=_pitch(node, kind),
        mimic=_mimic(node),
        limits=_limits(node, kind),
        damping=0.0 if dynamics is None else dynamics.number("damping", 0.0, minimum=0.0),
        friction=0.0 if dynamics is None else dynamics.number("friction", 0.0, minimum=0.0),
        armature=0.0 if dynamics is None else dynamics.number("armature", 0.0, minimum=0.0),
        where=node.where,
    )


def _axis(joint: Node, kind: str) -> Triple:
    """Return the unit axis; a fixed joint has none, and files often write zeros there."""
    node = joint.child("axis")
    if node is None or kind in ("fixed", "free", "spherical"):
        return (1.0, 0.0, 0.0)
    return _direction(node)


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
    return node.number("pitch")


def _mimic(joint: Node) -> Mimic | None:
    """What a joint follows; where it is fixed, files often leave the words in."""
    node = joint.child("mimic")
    if node is None:
        return None
    mimic = Mimic(node.text("joint"), node.number("multiplier", 1.0), node.number("offset", 0.0))
    return None if joint.text("type") == "fixed" else mimic


def _direction(node: Node) -> Triple:
    """A unit vector from an element's xyz."""
    x, y, z = _triple(node, "xyz")
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:
        raise node.error("xyz=(0 0 0) has no direction; expected a vector that is not zero")
    x, y, z = x / largest, y / largest, z / largest  # so that no length overflows
    length = hypot(x, y, z)
    return x / length + 0.0, y / length + 0.0, z / length + 0.0


def _limits(joint: Node, kind: str) -> Limits:
    node = joint.child("limit")
    if node is None:
        if kind in LIMITED:
            joint.where.warn("has no <limit>: the joint is not limited")
        return Limits()
    lower, upper = node.number("lower", 0.0), node.number("upper", 0.0)
    velocity = node.number("velocity", inf, minimum=0.0)
    effort = node.number("effort", inf, minimum=0.0)
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


def _check_mimics(joints: list[Node]) -> None:
    """Check what mimic joints follow: another joint of one degree that follows none."""
    mimics = {node.text("name"): node.child("mimic") for node in joints}
    kinds = {node.text("name"): node.text("type") for node in joints}
    for name, mimic in mimics.items():
        if mimic is None:
            continue
        target = mimic.text("joint")
        if target not in mimics:
            raise mimic.error(f"joint={quote(target)} {_unknown(target, mimics)}")
        if target == name:
            raise mimic.error(f"joint={quote(target)} is the joint itself; expected another joint")
        if mimics[target] is not None:
            raise mimic.error(f"joint={quote(target)} is a mimic too; expected a joint that is not")
        for joint in (name, target) if kinds[name] != "fixed" else ():
            if kinds[joint] not in FOLLOWING:
                known = ", ".join(FOLLOWING)
                raise mimic.error(f"{quote(joint)} is {kinds[joint]}; expected one of {known}")


# --- poses ---------------------------------------------------------------------------------


def _triple(node: Node, attribute: str, default: Triple | None = None) -> Triple:
    x, y, z = node.numbers(attribute, 3, default)
    return x, y, z


def _origin(node: Node) -> Pose:
    origin = node.child("origin")
    if origin is None:
        return Pose()
    zeros = (0.0, 0.0, 0.0)
    return Pose(rpy_rotation(*_triple(origin, "rpy", zeros)), _triple(origin, "xyz", zeros))


def rpy_rotation(roll: float, pitch: float, yaw: float) -> Rotation:
    """Rotation by roll, pitch, yaw about the fixed x, y, z axes: ``Rz(yaw) Ry(pitch) Rx(roll)``.

    Entries within rounding of 0 and 1 are made exact: 1.5707963267948966 means a right angle.
    """
    cr, cp, cy = _snap(cos(roll)), _snap(cos(pitch)), _snap(cos(yaw))
    sr, sp, sy = _snap(sin(roll)), _snap(sin(pitch)), _snap(sin(yaw))
    return (
        (_snap(cy * cp), _snap(cy * sp * sr - sy * cr), _snap(cy * sp * cr + sy * sr)),
        (_snap(sy * cp), _snap(sy * sp * sr + cy * cr), _snap(sy * sp * cr - cy * sr)),
        (_snap(-sp), _snap(cp * sr), _snap(cp * cr)),
    )


def _snap(entry: float) -> float:
    nearest = float(round(entry))
    return nearest + 0.0 if abs(entry - nearest) <= _SNAP else entry


# --- structure -----------------------------------------------------------------------------


def _check_tree(links: Sequence[LinkDescription], joints: Sequence[JointDescription]) -> str:
    """Check that links and joints form one tree, and return its root link."""
    _check_unique("link", links)
    _check_unique("joint", joints)
    parents: dict[str, JointDescription] = {}
    names = {link.name for link in links}
    for joint in joints:
        _check_ends(joint, names)
        if joint.child in parents:
            first = parents[joint.child]
            raise joint.where.error(
                f"child link {quote(joint.child)} is also the child of joint {quote(first.name)} "
                f"(line {first.where.line}); expected one parent joint per link"
            )
        parents[joint.child] = joint
    roots = [link for link in links if link.name not in parents]
    if len(roots) > 1:
        raise roots[1].where.error(
            f"no joint has this link as child, nor {quote(roots[0].name)} "
            f"(line {roots[0].where.line}); expected one root link, got {len(roots)}"
        )
    _check_no_cycle((link.name for link in links), parents)
    return roots[0].name


def _check_unique(what: str, records: Sequence[LinkDescription | JointDescription]) -> None:
    seen: dict[str, Where] = {}
    for record in records:
        if record.name in seen:
            raise record.where.error(
                f"{what} name {quote(record.name)} is already used "
                f"(line {seen[record.name].line}); expected a new name"
            )
        seen[record.name] = record.where


def _check_ends(joint: JointDescription, names: set[str]) -> None:
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in names:
            raise joint.where.error(f"{end} link {quote(name)} {_unknown(name, names)}")
    if joint.parent == joint.child:
        message = f"parent and child are both {quote(joint.child)}; expected two links"
        raise joint.where.error(message)


def _unknown(name: str, known: Iterable[str]) -> str:
    meant = suggestion(name, frozenset(known))
    hint = f", perhaps {quote(meant)}" if meant else ""
    return f"does not exist; expected a name in this file{hint}"


def _check_no_cycle(names: Iterable[str], parents: Mapping[str, JointDescription]) -> None:
    """Walk from each link towards the root; a link met twice on the way closes a cycle."""
    hangs: set[str] = set()
    for start in names:
        name, way = start, dict[str, None]()
        while name in parents and name not in hangs and name not in way:
            way[name] = None
            name = parents[name].parent
        if name in way:
            loop = list(way)[list(way).index(name) :]
            shown = " -> ".join(map(quote, loop[:5])) + (" -> ..." if len(loop) > 5 else "")
            message = f"closes a cycle of {len(loop)} links ({shown}); expected a tree"
            raise parents[name].where.error(message)
        hangs.update(way)
