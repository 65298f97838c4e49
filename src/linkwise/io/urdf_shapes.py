"""Parts of a URDF that links and joints share: poses, and shapes with their colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan, nan, pi

from linkwise.codes import Code
from linkwise.errors import HOLE, harmless
from linkwise.io.files import FileRoots
from linkwise.io.rpy import rpy_rotation
from linkwise.io.xml import Node
from linkwise.model.description import LARGEST, Geometry, Pose, Triple

MOST_ANGLE = 2.0 * pi + 0.01  # rad of <origin rpy>; larger ones are degrees
SHAPES = ("mesh", "box", "cylinder", "sphere", "capsule")
Rgba = tuple[float, float, float, float]


def read_triple(node: Node, attribute: str, default: Triple | None = None) -> Triple:
    """Three numbers of an attribute."""
    x, y, z = node.numbers(attribute, 3, default)
    return x, y, z


def read_origin(node: Node) -> Pose:
    """The pose in an element's <origin>."""
    origin = node.child("origin")
    if origin is None:
        return Pose()
    zeros = (0.0, 0.0, 0.0)
    angles = read_triple(origin, "rpy", zeros)
    x, y, z = origin.numbers("xyz", 3, zeros, largest=LARGEST)
    if max(map(abs, angles)) > MOST_ANGLE:
        origin.report(Code.LARGE_ANGLE, value=origin.text("rpy"))
    if isnan(sum(angles)):
        return Pose(translation=(nan, nan, nan))
    return Pose(rpy_rotation(*angles), (x, y, z))


def read_shapes(
    nodes: Iterable[Node], colours: Mapping[str, Rgba], files: FileRoots
) -> tuple[Geometry, ...]:
    """Every <visual> or <collision>; one that cannot be read is told and left out."""
    with harmless("the shape is left out"):
        shapes = [_shape(node, colours, files) for node in nodes]
    return tuple(shape for shape in shapes if shape is not None)


def _shape(node: Node, colours: Mapping[str, Rgba], files: FileRoots) -> Geometry | None:
    geometry = node.child("geometry")
    shapes = [] if geometry is None else [c for c in geometry.children if c.tag in SHAPES]
    place = geometry or node
    if not shapes:
        place.report(Code.NO_SHAPE, known=", ".join(SHAPES))
        return None
    if len(shapes) > 1:
        place.report(Code.MANY_SHAPES, count=len(shapes))
    shape = shapes[0]
    path = shape.text("filename") if shape.tag == "mesh" else ""
    size = () if shape.tag == "mesh" else _size(shape)
    scale, origin = read_triple(shape, "scale", (1.0, 1.0, 1.0)), read_origin(node)
    if path is HOLE or isnan(sum((*size, *scale, *origin.translation))):
        return None
    rgba = _colour(node.child("material"), colours)
    file = path and files.find(path)
    return Geometry(shape.tag, size, file or path, scale, origin, rgba, file)


def _size(shape: Node) -> tuple[float, ...]:
    if shape.tag == "sphere":
        return (shape.number("radius", minimum=0.0),)
    if shape.tag != "box":
        return shape.number("radius", minimum=0.0), shape.number("length", minimum=0.0)
    return shape.numbers("size", 3, minimum=0.0)


def read_named_colour(material: Node) -> tuple[str, Rgba] | None:
    """Name and colour of a top-level <material>, if it has one."""
    with harmless("the colour is left out"):
        colour = _colour(material, {})
    return None if colour is None else (material.attributes.get("name", ""), colour)


def _colour(material: Node | None, colours: Mapping[str, Rgba]) -> Rgba | None:
    if material is None:
        return None
    colour = material.child("color")
    if colour is None:
        return colours.get(material.attributes.get("name", ""))
    red, green, blue, alpha = colour.numbers("rgba", 4)
    return None if isnan(red) else (red, green, blue, alpha)
