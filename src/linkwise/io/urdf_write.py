"""Write a `RobotDescription` as URDF: everything that the reader reads, to the last digit.

Names, numbers, limits and axes come back exactly; a rotation written as roll, pitch and yaw comes
back to rounding, and exactly where it came from short decimals. Frames are written as links
without mass on fixed joints. Gravity has no place in a URDF.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from math import inf, isfinite
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from linkwise.errors import quote
from linkwise.io.files import is_within, package_root
from linkwise.io.rpy import rotation_rpy
from linkwise.io.urdf import JOINT_KINDS, LIMITED, TENSOR, UNBOUNDED, WITHOUT_AXIS
from linkwise.io.xml import PathLike
from linkwise.model.description import (
    IDENTITY,
    BodyInertia,
    FrameDescription,
    Geometry,
    JointDescription,
    Limits,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.model.values import path_text

GRAVITY = RobotDescription.gravity
TYPES = {kind: named for named, kind in JOINT_KINDS.items()}
SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}
# characters that XML cannot hold, and openings that the reader takes for xacro
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\$[{(]")


def save_urdf(robot: RobotDescription, path: PathLike) -> None:
    """Write a URDF file; meshes under its folder are named relative to it."""
    name = path_text("save: path", path)
    if not name.endswith(".urdf"):
        raise ValueError(f"save: path is {name!r}; expected a name that ends in .urdf")
    text = write_urdf(robot, os.path.dirname(os.path.abspath(name)))
    with open(name, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def write_urdf(robot: RobotDescription, folder: str = "") -> str:
    """The text of a URDF file that will stand in ``folder``."""
    if not robot.links:
        raise ValueError(f"robot {robot.name!r} has no description; expected links to write")
    if robot.gravity != GRAVITY:
        robot.where.warn(
            f"gravity {robot.gravity} is not written: URDF has no place for it, and readers take "
            f"{GRAVITY} (load it with gravity=...)"
        )
    _warn_of_strays(robot, folder)
    root = Element("robot", name=_text("robot name", robot.name))
    for link in robot.links:
        _link(root, link, folder)
    for joint in robot.joints:
        _joint(root, joint)
    for frame in robot.frames:
        _frame(root, frame)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


# --- links ---------------------------------------------------------------------------------


def _link(root: Element, link: LinkDescription, folder: str) -> None:
    node = SubElement(root, "link", name=_text("link name", link.name))
    if link.inertia is not None:
        _inertial(node, link.inertia)
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes:
            _shape(SubElement(node, tag), shape, folder)


def _inertial(link: Element, body: BodyInertia) -> None:
    node = SubElement(link, "inertial")
    _origin(node, Pose(IDENTITY, body.com))
    SubElement(node, "mass", value=_number(body.mass))
    entries = zip(TENSOR, body.tensor, strict=True)
    SubElement(node, "inertia", {key: _number(value) for key, value in entries})


def _shape(node: Element, shape: Geometry, folder: str) -> None:
    _origin(node, shape.origin)
    geometry = SubElement(node, "geometry")
    if shape.kind == "mesh":
        scale = {} if shape.scale == (1.0, 1.0, 1.0) else {"scale": _numbers(shape.scale)}
        name = _text("mesh path", _mesh_name(shape.path, folder))
        SubElement(geometry, "mesh", {"filename": name} | scale)
    elif shape.kind == "box":
        SubElement(geometry, "box", size=_numbers(shape.size))
    elif shape.kind in SIZES:
        sizes = zip(SIZES[shape.kind], map(_number, shape.size), strict=True)
        SubElement(geometry, shape.kind, dict(sizes))
    else:
        raise ValueError(f"shape {shape.kind!r}: expected mesh, {', '.join(SIZES)}")
    if shape.rgba is not None:
        colour = _numbers(shape.rgba)
        material = SubElement(node, "material", name=f"rgba {colour}")
        SubElement(material, "color", rgba=colour)


def _mesh_name(path: str, folder: str) -> str:
    """How to name a mesh so that a file in ``folder`` finds it.

    Readers may refuse a path that leads out of their folders, so a mesh outside is named by its
    package, or else by the folder it is in.
    """
    if not os.path.isabs(path) or not os.path.exists(path):
        return path
    real = os.path.realpath(folder)
    if folder and is_within(path, real):
        return os.path.relpath(path, real).replace(os.sep, "/")
    root = _package_of(path)
    return f"package://{os.path.basename(root)}/" + os.path.relpath(path, root).replace(os.sep, "/")


def _package_of(path: str) -> str:
    folder = os.path.dirname(path)
    return next(iter(package_root(folder)), folder)


def _warn_of_strays(robot: RobotDescription, folder: str) -> None:
    """Say once which meshes will not be found by themselves."""
    shapes = (g for link in robot.links for g in (*link.visuals, *link.collisions))
    meshes = {g.path for g in shapes if g.kind == "mesh" and os.path.isabs(g.path)}
    real = os.path.realpath(folder)
    outside = {_package_of(p) for p in meshes if os.path.exists(p) and not is_within(p, real)}
    own = package_root(real) if folder else []
    far = sorted(outside - set(own))
    if far:
        shown = ", ".join(map(repr, far[:3])) + (", ..." if len(far) > 3 else "")
        robot.where.warn(
            "meshes outside the saved file's folder are named by package; to find them again, "
            f"load it with package_dirs=[{shown}]"
        )


# --- joints --------------------------------------------------------------------------------


def _joint(root: Element, joint: JointDescription) -> None:
    if joint.kind not in TYPES:
        raise ValueError(
            f"joint {joint.name!r} is {joint.kind}, which URDF has no word for; expected one of "
            f"{', '.join(TYPES)}"
        )
    name = _text("joint name", joint.name)
    node = SubElement(root, "joint", name=name, type=TYPES[joint.kind])
    _origin(node, joint.origin)
    SubElement(node, "parent", link=joint.parent)
    SubElement(node, "child", link=joint.child)
    _axes(node, joint)
    if joint.kind != "fixed":
        _limit(node, joint.limits, joint.kind in LIMITED)
    if isinstance(joint.armature, tuple) or (joint.rotor_axes and joint.armature):
        raise ValueError(
            f"joint {joint.name!r} has armature {joint.armature} per axis, which URDF has no word "
            "for; expected one number along the axes of the joint's rates"
        )
    values = {k: getattr(joint, k) for k in ("damping", "friction", "armature")}
    if any(values.values()):
        SubElement(node, "dynamics", {key: _number(x) for key, x in values.items() if x})
    if joint.mimic is not None:
        multiplier, offset = _number(joint.mimic.multiplier), _number(joint.mimic.offset)
        SubElement(node, "mimic", joint=joint.mimic.joint, multiplier=multiplier, offset=offset)


def _axes(node: Element, joint: JointDescription) -> None:
    if joint.kind in WITHOUT_AXIS:
        return
    axis = SubElement(node, "axis", xyz=_numbers(joint.axis))
    if joint.kind == "helical":
        axis.set("pitch", _number(joint.pitch))
    if joint.kind == "universal":
        SubElement(node, "axis2", xyz=_numbers(joint.second_axis))


def _limit(node: Element, limits: Limits, has_range: bool) -> None:
    """Limits; where URDF asks for a number and there is none, the largest there is."""
    bounds = {"lower": limits.lower, "upper": limits.upper} if has_range else {}
    bounds |= {"effort": limits.effort, "velocity": limits.velocity}
    if has_range or any(value != inf for value in bounds.values()):
        SubElement(node, "limit", {key: _number(_finite(value)) for key, value in bounds.items()})


def _finite(value: float) -> float:
    return max(-UNBOUNDED, min(UNBOUNDED, value))


def _frame(root: Element, frame: FrameDescription) -> None:
    """A frame as a link without mass on a fixed joint of the same name."""
    SubElement(root, "link", name=_text("frame name", frame.name))
    _joint(root, JointDescription(frame.name, "fixed", frame.link, frame.name, frame.origin))


# --- numbers and text ----------------------------------------------------------------------


def _origin(node: Element, pose: Pose) -> None:
    if pose == Pose():
        return
    origin = SubElement(node, "origin", xyz=_numbers(pose.translation))
    if pose.rotation != IDENTITY:
        origin.set("rpy", _numbers(rotation_rpy(pose.rotation)))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(map(_number, values))


def _number(value: float) -> str:
    """The shortest decimal that reads back as the same number."""
    if not isfinite(value):
        raise ValueError(f"{value} cannot be written; expected a finite number")
    return repr(float(value)).removesuffix(".0")


def _text(what: str, text: str) -> str:
    if not text.strip() or _UNWRITABLE.search(text):
        raise ValueError(f"{what} {quote(text)} cannot be written; expected text that XML can hold")
    return text
