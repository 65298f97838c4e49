"""Parts of a URDF that links and joints share: poses, and shapes with their colours."""

from __future__ import annotations

from collections.abc import Mapping

from linkwise.errors import quote
from linkwise.io.rpy import rpy_rotation
from linkwise.io.xml import FileRoots, Node
from linkwise.model.description import LARGEST, Geometry, Pose, Triple

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
    turn = rpy_rotation(*read_triple(origin, "rpy", zeros))
    x, y, z = origin.numbers("xyz", 3, zeros, largest=LARGEST)
    return Pose(turn, (x, y, z))


def read_shape(node: Node, colours: Mapping[str, Rgba], files: FileRoots) -> Geometry:
    """A <visual> or <collision>."""
    geometry = node.required_child("geometry")
    shapes = [child for child in geometry.children if child.tag in SHAPES]
    if len(shapes) != 1:
        wanted = ", ".join(f"<{tag}>" for tag in SHAPES)
        raise geometry.error(f"has {len(shapes)} shapes; expected exactly one of {wanted}")
    shape = shapes[0]
    is_mesh = shape.tag == "mesh"
    return Geometry(
        kind=shape.tag,
        size=() if is_mesh else _size(shape),
        path=files.resolve(shape.text("filename"), shape.where) if is_mesh else "",
        scale=read_triple(shape, "scale", (1.0, 1.0, 1.0)),
        origin=read_origin(node),
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


def read_named_colour(material: Node) -> tuple[str, Rgba] | None:
    """Name and colour of a top-level <material>, if it has one."""
    colour = _colour(material, {})
    return None if colour is None else (material.text("name"), colour)


def _colour(material: Node | None, colours: Mapping[str, Rgba]) -> Rgba | None:
    if material is None:
        return None
    colour = material.child("color")
    if colour is None:
        return colours.get(material.attributes.get("name", ""))
    red, green, blue, alpha = colour.numbers("rgba", 4)
    return red, green, blue, alpha
