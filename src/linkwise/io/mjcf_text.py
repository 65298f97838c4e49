"""An MJCF file and what it includes, as one text of one element a line that opens nothing else.

Includes are put in place, paths become real paths under the declared folders, textures and skins
go, and a mesh that is not there is replaced by a stand-in of a size that can be chosen: a body
whose inertia depends on that size cannot be read. Numbers are checked here, where values have a
place in the file.

Where problems are collected, what cannot be read leaves a hole: an attribute or an element that is
not written, or a body with an inertia that it was given. Names that go with a hole are not missed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from linkwise.codes import Code
from linkwise.errors import RobotFileError, Where, is_collecting, plain, report
from linkwise.io.files import FileRoots
from linkwise.io.poses import HUGE
from linkwise.io.xml import Node, ReadLimits, parse_number, read_xml

MAX_INCLUDES = 32
MAX_COPIES = 20_000

_DROPPED = ("texture", "skin", "layer", "visual", "keyframe", "custom")
_REPEATS = ("replicate", "composite", "flexcomp")
_SHAPES = ("mesh", "hfield")
_FOLDERS = ("assetdir", "meshdir", "texturedir")
_MEMORY = ("memory", "njmax", "nconmax", "nstack")
_TETRAHEDRON = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
_GIVEN = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'

# Attributes that hold numbers wherever they stand, those of them that may not be negative, and
# attributes that hold names. In all others, NaN and infinity are refused.
_NUMBERS = frozenset(
    "pos quat axis axisangle euler xyaxes zaxis mass diaginertia fullinertia armature damping "
    "frictionloss range ref gravity polycoef density stiffness springref fromto wind viscosity "
    "boundmass boundinertia settotalmass scale size".split()
)
_NAMES = frozenset("name class childclass model joint body site geom mesh material".split())
_NOT_NUMBERS = frozenset("nan inf infinity".split())
_RANGES = frozenset("range ctrlrange forcerange actrange actuatorfrcrange lengthrange".split())
_RANGED = ("joint", "spatial", "fixed", "tendon")  # elements whose range is one of numbers
_DIRECTIONS = ("quat", "axis")
_NO_DIRECTION = 1e-12  # MuJoCo takes what is shorter as some direction of its own
_NOT_NEGATIVE = frozenset("mass diaginertia armature frictionloss density viscosity".split())


@dataclass
class Element:
    """A start tag or, with ``closes``, an end tag, as it is written for MuJoCo."""

    node: Node
    tag: str
    parent: int  # the index of the enclosing element; the root's own is 0
    closes: bool = False
    partner: int = 0  # the index of its other tag
    attributes: dict[str, str] = field(default_factory=dict)
    is_hole: bool = False  # not written
    is_given: bool = False  # a body with an inertia that was put in


@dataclass
class Document:
    """A whole model: its elements in order, one a line."""

    root: Node
    files: FileRoots
    elements: list[Element] = field(default_factory=list)
    stand_ins: dict[str, Where] = field(default_factory=dict)  # meshes that are not there
    lost: set[str] = field(default_factory=set)  # names of elements that are holes

    def text(self, size: float) -> str:
        """What MuJoCo compiles; stand-ins have this size."""
        return "\n".join(_line(e, size) for e in self.elements)

    def opened(self) -> Iterator[tuple[int, Element]]:
        """Elements that are written, in file order, with their index."""
        return ((i, e) for i, e in enumerate(self.elements) if not (e.closes or e.is_hole))

    def around(self, e: Element) -> Iterator[Element]:
        """The enclosing elements, from the inside out."""
        while e is not self.elements[0]:
            e = self.elements[e.parent]
            yield e

    def tagged(self, *tags: str) -> list[Element]:
        """Elements with a tag, those among the defaults aside."""
        found = [e for _, e in self.opened() if e.tag in tags]
        return [e for e in found if all(outer.tag != "default" for outer in self.around(e))]

    def inside(self, section: str) -> list[Element]:
        """Elements of a section."""
        return [e for _, e in self.opened() if self.elements[e.parent].tag == section]

    def body(self, index: int) -> int:
        """The body that an element is or belongs to; 0 where there is none."""
        while index and self.elements[index].tag != "body":
            index = self.elements[index].parent
        return index

    def joints(self) -> list[Element]:
        """Joints, in MuJoCo's order: body by body, whatever stands between them."""
        per_body: dict[int, list[Element]] = {}
        for i, e in self.opened():
            if e.tag == "body":
                per_body[i] = []
            elif e.tag in ("joint", "freejoint") and (body := self.body(i)):
                per_body[body].append(e)
        return [e for joints in per_body.values() for e in joints]

    def own(self, body: int, *tags: str) -> list[int]:
        """Elements of a body itself, not of a body in it."""
        return [i for i, e in self.opened() if e.tag in tags and self.body(e.parent) == body]

    # holes

    def remove(self, index: int) -> None:
        """Make an element a hole, with all it contains; a body without its shape is given mass."""
        for e in self.elements[index : self.elements[index].partner + 1]:
            e.is_hole = True
            said = e.node.attributes
            self.lost.update(said[key] for key in ("name", "class") if key in said)
        tag, body = self.elements[index].tag, self.body(index)
        if tag == "inertial" or (tag == "geom" and not self.own(body, "inertial")):
            self.give_inertia(body)

    def give_inertia(self, body: int) -> None:
        """Give a body an inertia that can exist."""
        if body:
            self.elements[body].is_given = True
            for i in self.own(body, "inertial"):
                self.elements[i].is_hole = self.elements[self.elements[i].partner].is_hole = True


def _line(e: Element, size: float) -> str:
    if e.is_hole:
        return ""
    if e.closes:
        return f"</{e.tag}>"
    attributes = dict(e.attributes)
    if "stand-in" in attributes:
        del attributes["stand-in"]
        attributes["vertex"] = " ".join(f"{size * x:g}" for row in _TETRAHEDRON for x in row)
    written = "".join(f" {k}={quoteattr(v)}" for k, v in attributes.items())
    return f"<{e.tag}{written}>{_GIVEN if e.is_given else ''}"


# --- includes ------------------------------------------------------------------------------


def flatten(root: Node, files: FileRoots, limits: ReadLimits) -> Document:
    """List start and end tags depth first, without recursion; includes are put in place."""
    document = Document(root, files)
    elements, seen, wrong = document.elements, dict[str, Node](), list[int]()
    todo = [_Todo(root)]
    count = 0
    while todo:
        node, parent, depth, copies, begins = todo.pop()
        if begins is not None:
            elements[begins].partner = len(elements)
            elements.append(Element(node, node.tag, parent, True, begins))
            continue
        count += 1
        if count > limits.max_elements or depth >= limits.max_depth:
            most = f"max_elements {limits.max_elements}, max_depth {limits.max_depth}"
            raise node.problem(Code.TOO_MANY_ELEMENTS, limit=f"at most {most}, includes counted")
        if node.tag in _DROPPED:
            continue
        if node.tag == "include":
            children = _included(node, files, seen, limits)
        else:
            repeats = _copies(node, copies)
            here, children = len(elements), node.children
            elements.append(Element(node, node.tag, parent, attributes=dict(node.attributes)))
            todo.append(_Todo(node, parent, depth, copies, here))
            parent, depth, copies = here, depth + 1, copies * (repeats or 1)
            wrong += [here] if repeats is None else []
        todo += [_Todo(child, parent, depth, copies) for child in reversed(children)]
    for index in wrong:
        document.remove(index)
    return document


class _Todo(NamedTuple):
    """An element to list, or with ``begins`` its end tag; ``copies`` are made of what is in it."""

    node: Node
    parent: int = 0
    depth: int = 0
    copies: int = 1
    begins: int | None = None


def _included(
    node: Node, files: FileRoots, seen: dict[str, Node], limits: ReadLimits
) -> tuple[Node, ...]:
    """The children of an included file's root, whatever that is called."""
    name = node.text("file")
    if not name:
        return ()
    written, beside = name.replace("\\", "/"), _beside(node, files)
    path = files.find(written, beside)
    if not path:
        files.report_missing(written, node.where, beside)
        return ()
    if path in seen:
        node.report(Code.INCLUDED_TWICE, name=name, first=str(seen[path].where))
        return ()
    if len(seen) >= MAX_INCLUDES:
        raise node.problem(Code.TOO_MANY_INCLUDES, most=MAX_INCLUDES)
    if node.children:
        node.report(Code.INCLUDE_NOT_EMPTY)
    seen[path] = node
    try:
        return read_xml(path, limits).children
    except RobotFileError as error:
        if error.problem is None or not is_collecting():
            raise
        report(error.problem)
        return ()


def _beside(node: Node, files: FileRoots) -> str:
    """The folder of an included file: where MuJoCo looks for what is not beside the main file."""
    folder = os.path.dirname(os.path.abspath(node.path))
    return "" if folder == files.folder else folder


def _copies(node: Node, so_far: int) -> int | None:
    """How often an element's contents are repeated; None where that is not read."""
    if node.tag not in _REPEATS or "count" not in node.attributes:
        return 1
    copies = 1
    for word in node.attributes["count"].split():
        number = parse_number(word)
        if number is None or number != int(number) or number < 0:
            node.report(Code.NOT_WHOLE, value=node.attributes["count"])
            return None
        copies *= max(int(number), 1)
    if so_far * copies > MAX_COPIES:
        node.report(Code.TOO_MANY_COPIES, count=so_far * copies, most=MAX_COPIES)
        return None
    return copies


# --- attributes ----------------------------------------------------------------------------


def check_values(document: Document) -> None:
    """Check numbers, resolve paths, and leave out what MuJoCo is not to know."""
    folders = _folders(document)
    for i, e in document.opened():
        if e.tag == "compiler":
            _without(e, *_FOLDERS, "strippath")
        elif e.tag == "size":
            _without(e, *_MEMORY)
        elif e.tag in ("material", "light"):
            _without(e, "texture")
        elif e.tag == "model" and document.elements[e.parent].tag == "asset":
            e.node.report(Code.NESTED_MODEL)
            document.remove(i)
            continue
        for key in [key for key in e.attributes if key.startswith("file")]:
            _resolve(e, key, document, folders)
        bad = [key for key in sorted(e.attributes) if not _is_good(e, key)]
        for key in bad:
            leave_out(document, i, key)


def leave_out(document: Document, index: int, key: str) -> None:
    """Leave an attribute out; where MuJoCo asks for it, the whole element."""
    e = document.elements[index]
    e.attributes.pop(key, None)
    if e.tag == "inertial" or (e.tag == "geom" and key in ("size", "fromto")):
        document.remove(index)


def _without(e: Element, *keys: str) -> None:
    for key in keys:
        e.attributes.pop(key, None)


def _is_good(e: Element, key: str) -> bool:
    """Whether a value is what it should be; if not, that is reported."""
    if e.tag == "flag" or key in _NAMES:  # flags are the same words, to switch things on and off
        return True
    node = replace(e.node, attributes=e.attributes)
    if key in _RANGES and (key != "range" or e.tag in _RANGED):
        return _is_range(node, key)
    if key in _NUMBERS:
        return _are_numbers(node, key)
    words = [w for w in e.attributes[key].split() if w.lstrip("+-").lower() in _NOT_NUMBERS]
    if words:
        facts = {"key": plain(key), "value": e.attributes[key], "word": words[0]}
        node.report(Code.NOT_A_NUMBER, **facts, wanted="finite decimal numbers")
    return not words


def _are_numbers(node: Node, key: str) -> bool:
    minimum = 0.0 if key in _NOT_NEGATIVE else -inf
    numbers = node.numbers(key, None, minimum=minimum, largest=HUGE)
    if key in _DIRECTIONS and max(map(abs, numbers)) < _NO_DIRECTION:
        node.report(Code.NO_DIRECTION, key=key, value=node.attributes[key])
        return False
    return not isnan(numbers[0])


def _is_range(node: Node, key: str) -> bool:
    """MuJoCo takes a range the wrong way round as none."""
    lower, upper = node.numbers(key, 2)
    if lower > upper:
        node.report(Code.RANGE_SWAPPED, key=key, value=node.attributes[key])
    return lower <= upper


# --- files ---------------------------------------------------------------------------------


def _folders(document: Document) -> dict[str, str]:
    """Folders that <compiler> declares for meshes and textures; the last one counts."""
    said: dict[str, str] = {}
    for e in document.tagged("compiler"):
        said |= {k: v for k, v in e.attributes.items() if k in (*_FOLDERS, "strippath")}
    mesh = said.get("meshdir", said.get("assetdir", ""))
    return {"mesh": mesh, "flexcomp": mesh, "strippath": said.get("strippath", "false")}


def _resolve(e: Element, key: str, document: Document, folders: dict[str, str]) -> None:
    """Replace a file's name by its real path, or by a stand-in where it is not there."""
    name = e.attributes.pop(key)
    if e.tag in _SHAPES:
        _without(e, "content_type")
        stem = os.path.splitext(os.path.basename(name.replace("\\", "/")))[0]
        e.attributes.setdefault("name", stem)
    if e.tag == "hfield":  # ground to stand on, without mass: never opened
        e.attributes |= {"nrow": "2", "ncol": "2"}
        return
    if e.tag not in folders:
        e.node.report(Code.FILE_NOT_READ, key=key, name=name)
        return
    path = _find(e.node, name, document.files, folders)
    if path:
        e.attributes[key] = path
    elif e.tag == "mesh":
        document.stand_ins[name] = e.node.where
        e.attributes["stand-in"] = ""
    else:
        e.node.report(Code.FILE_NOT_THERE, key=key, name=name)


def _find(node: Node, name: str, files: FileRoots, folders: dict[str, str]) -> str:
    """A file of the main file's asset folder, or else one beside the included file, or nothing.

    A file outside the declared folders is never opened; it matters only where an inertia comes
    from it.
    """
    name = name.replace("\\", "/")
    if folders["strippath"] == "true":
        name = os.path.basename(name)
    path = files.find(os.path.join(folders[node.tag].replace("\\", "/"), name))
    beside = _beside(node, files)
    return path or (files.find(os.path.join(beside, name)) if beside else "")
