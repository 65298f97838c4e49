"""An MJCF file and what it includes, as one text of one element a line that opens nothing else.

Includes are put in place, paths become real paths under the declared folders, textures and skins
go, and a mesh that is not there is replaced by a stand-in of a size that can be chosen: a body
whose inertia depends on that size cannot be read. Numbers are checked here, where values have a
place in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from linkwise.errors import Where
from linkwise.io.files import FileRoots
from linkwise.io.xml import Node, ReadLimits, parse_number, quote, read_xml

Read = Callable[[str, ReadLimits], Node]  # how a file becomes elements

MAX_INCLUDES = 32
MAX_COPIES = 20_000

_DROPPED = ("texture", "skin", "layer", "visual", "keyframe", "custom")
_REPEATS = ("replicate", "composite", "flexcomp")
_SHAPES = ("mesh", "hfield")
_FOLDERS = ("assetdir", "meshdir", "texturedir")
_MEMORY = ("memory", "njmax", "nconmax", "nstack")
_TETRAHEDRON = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))

# attributes that hold numbers wherever they stand, and those that may not be negative; in any
# attribute but a name, what is no finite number is refused
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
_NOT_NEGATIVE = frozenset(
    "mass diaginertia armature damping frictionloss density viscosity".split()
)


@dataclass(frozen=True)
class Element:
    """A start tag or, with ``closes``, an end tag; ``inside`` are the enclosing tags."""

    node: Node
    closes: bool = False
    inside: tuple[str, ...] = ()


@dataclass
class Document:
    """A whole model: its elements in order, and what to write for each."""

    root: Node
    files: FileRoots
    elements: list[Element] = field(default_factory=list)
    stand_ins: dict[str, Where] = field(default_factory=dict)  # meshes that are not there
    _written: list[dict[str, str]] = field(default_factory=list)

    def text(self, size: float) -> str:
        """What MuJoCo compiles; stand-ins have this size."""
        return "\n".join(
            f"</{e.node.tag}>" if e.closes else _tag(e.node.tag, attributes, size)
            for e, attributes in zip(self.elements, self._written, strict=True)
        )

    def opened(self) -> Iterator[Element]:
        """Elements, in file order."""
        return (e for e in self.elements if not e.closes)

    def tagged(self, tag: str) -> list[Element]:
        """Elements with a tag, those among the defaults aside."""
        return [e for e in self.opened() if e.node.tag == tag and "default" not in e.inside]

    def inside(self, section: str) -> list[Element]:
        """Elements of a section."""
        return [e for e in self.opened() if e.inside[-1:] == (section,)]

    def bodies(self) -> list[Element]:
        """Bodies, in MuJoCo's order."""
        return self.tagged("body")

    def joints(self) -> list[Element]:
        """Joints, in MuJoCo's order: body by body, whatever stands between them."""
        per_body: list[list[Element]] = [[]]
        open_bodies = [0]
        for e in self.elements:
            if e.node.tag == "body":
                if e.closes:
                    open_bodies.pop()
                else:
                    per_body.append([])
                    open_bodies.append(len(per_body) - 1)
            elif e.node.tag in ("joint", "freejoint") and not e.closes and "body" in e.inside:
                per_body[open_bodies[-1]].append(e)
        return [e for joints in per_body for e in joints]


def flatten(root: Node, files: FileRoots, limits: ReadLimits, read: Read = read_xml) -> Document:
    """Put includes in place, check values and paths, and say what to write."""
    document = Document(root, files)
    _walk(document, limits, read)
    folders = _folders(document)
    for e in document.elements:
        document._written.append({} if e.closes else _attributes(e, document, folders))
    return document


def _walk(document: Document, limits: ReadLimits, read: Read) -> None:
    """List start and end tags depth first, without recursion; includes are put in place."""
    seen: dict[str, Node] = {}
    opened = 0
    todo: list[tuple[Node, bool, tuple[str, ...], int]] = [(document.root, False, (), 1)]
    while todo:
        node, closes, inside, copies = todo.pop()
        if closes:
            document.elements.append(Element(node, True, inside))
            continue
        opened += 1
        if opened > limits.max_elements or len(inside) >= limits.max_depth:
            most = f"max_elements {limits.max_elements}, max_depth {limits.max_depth}"
            raise node.error(f"too many elements; expected at most {most}, includes counted")
        if node.tag == "include":
            children = _included(node, document.files, seen, lambda path: read(path, limits))
        elif node.tag in _DROPPED:
            continue
        else:
            copies *= _copies(node, copies)
            document.elements.append(Element(node, False, inside))
            todo.append((node, True, inside, copies))
            children, inside = node.children, (*inside, node.tag)
        todo += [(child, False, inside, copies) for child in reversed(children)]


def _included(
    node: Node, files: FileRoots, seen: dict[str, Node], read: Callable[[str], Node]
) -> tuple[Node, ...]:
    """The children of an included file's root, whatever that is called."""
    name = node.text("file")
    path = files.resolve(name.replace("\\", "/"), node.where, _beside(node, files))
    if not _is_there(path):
        raise node.error(f"file={quote(name)} is not there; expected a file to include")
    if path in seen:
        first = seen[path].where
        raise node.error(f"file={quote(name)} is already included ({first}); expected it once")
    if len(seen) >= MAX_INCLUDES:
        raise node.error(f"more than {MAX_INCLUDES} files are included; expected at most that")
    seen[path] = node
    if node.children:
        raise node.error("has elements of its own; expected them in the included file")
    return read(path).children


def _beside(node: Node, files: FileRoots) -> str:
    """The folder of an included file: where MuJoCo looks for what is not beside the main file."""
    folder = os.path.dirname(os.path.abspath(node.path))
    return "" if folder == files.folder else folder


def _copies(node: Node, so_far: int) -> int:
    """How often an element's contents are repeated; too often is refused before it is done."""
    if node.tag not in _REPEATS or "count" not in node.attributes:
        return 1
    copies = 1
    for word in node.attributes["count"].split():
        number = parse_number(word)
        if number is None or number != int(number) or number < 0:
            raise node.error(f"count={quote(node.attributes['count'])}; expected whole numbers")
        copies *= max(int(number), 1)
    if so_far * copies > MAX_COPIES:
        raise node.error(f"{so_far * copies} copies; expected at most {MAX_COPIES}")
    return copies


# --- attributes ----------------------------------------------------------------------------


def _folders(document: Document) -> dict[str, str]:
    """Folders that <compiler> declares for meshes and textures; the last one counts."""
    said: dict[str, str] = {}
    for e in document.tagged("compiler"):
        said |= {k: v for k, v in e.node.attributes.items() if k in (*_FOLDERS, "strippath")}
    assets = said.get("assetdir", "")
    mesh, texture = said.get("meshdir", assets), said.get("texturedir", assets)
    strip = said.get("strippath", "false")
    folders = {"mesh": mesh, "hfield": mesh, "flexcomp": mesh}
    return folders | {"texture": texture, "strippath": strip}


def _file_keys(node: Node) -> list[str]:
    return [key for key in node.attributes if key.startswith("file")]


def _attributes(e: Element, document: Document, folders: dict[str, str]) -> dict[str, str]:
    node = e.node
    attributes = dict(node.attributes)
    _check_numbers(node)
    if node.tag == "compiler":
        _without(attributes, *_FOLDERS, "strippath")
    elif node.tag == "size":
        _without(attributes, *_MEMORY)
    elif node.tag in ("material", "light"):
        _without(attributes, "texture")
    elif node.tag == "model" and "asset" in e.inside:
        raise node.error("a model inside a model is not read; expected its elements, or <include>")
    for key in _file_keys(node):
        _resolve(node, key, attributes, document, folders)
    return attributes


def _without(attributes: dict[str, str], *keys: str) -> None:
    for key in keys:
        attributes.pop(key, None)


def _check_numbers(node: Node) -> None:
    if node.tag == "flag":  # the same words, to switch things on and off
        return
    for key in sorted(node.attributes.keys() - _NUMBERS - _NAMES):
        if _NOT_NUMBERS & {w.lstrip("+-").lower() for w in node.attributes[key].split()}:
            found = f"{quote(key)[1:-1]}={quote(node.attributes[key])}"
            raise node.error(f"{found}; expected finite decimal numbers")
    for key in sorted(_NUMBERS & node.attributes.keys()):
        _check_values(node, key, [parse_number(word) for word in node.attributes[key].split()])
    for key in sorted(_RANGES & node.attributes.keys()):
        _check_range(node, key)


def _check_values(node: Node, key: str, values: Sequence[float | None]) -> None:
    found = f"{key}={quote(node.attributes[key])}"
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        raise node.error(f"{found}; expected finite decimal numbers")
    if key in _NOT_NEGATIVE and min(numbers) < 0.0:
        raise node.error(f"{found} is negative; expected at least 0")
    if key in _DIRECTIONS and max(map(abs, numbers)) < _NO_DIRECTION:
        raise node.error(f"{found} has no direction; expected numbers that are not all zero")


def _check_range(node: Node, key: str) -> None:
    """MuJoCo takes a range the wrong way round as none."""
    if key == "range" and node.tag not in _RANGED:
        return
    lower, upper = node.numbers(key, 2)
    if lower > upper:
        found = f"{key}={quote(node.attributes[key])}"
        raise node.error(f"{found} starts above its end; expected lower <= upper")


def _resolve(
    node: Node, key: str, attributes: dict[str, str], document: Document, folders: dict[str, str]
) -> None:
    """Replace a file's name by its real path, or by a stand-in where it is not there."""
    if node.tag not in folders:
        raise node.error(f"{key}={quote(attributes[key])}: files are not read here; expected none")
    name = attributes.pop(key)
    if folders["strippath"] == "true":
        name = os.path.basename(name)
    if node.tag in _SHAPES:
        attributes.setdefault("name", os.path.splitext(os.path.basename(name))[0])
    path = _find(node, name, document.files, folders)
    if node.tag == "hfield":  # ground to stand on, without mass: never opened
        attributes |= {"nrow": "2", "ncol": "2"}
        _without(attributes, "content_type")
    elif _is_there(path):
        attributes[key] = path
    elif node.tag == "mesh":
        document.stand_ins[name] = node.where
        attributes["stand-in"] = ""
        _without(attributes, "content_type")
    else:
        raise node.error(f"{key}={quote(name)} is not there; expected a file")


def _find(node: Node, name: str, files: FileRoots, folders: dict[str, str]) -> str:
    """A file of the main file's asset folder, or else one beside the included file.

    A file outside the declared folders is never opened; it matters only where an inertia comes
    from it.
    """
    name = name.replace("\\", "/")
    path = files.locate(os.path.join(folders[node.tag].replace("\\", "/"), name))
    if not _is_there(path) and (beside := _beside(node, files)):
        path = files.locate(os.path.join(beside, name))
    return path


def _is_there(path: str) -> bool:
    """Whether `FileRoots` found a file; one that is not there stays as written."""
    return os.path.isabs(path) and os.path.isfile(path)


def _tag(tag: str, attributes: dict[str, str], size: float) -> str:
    if "stand-in" in attributes:
        attributes = {k: v for k, v in attributes.items() if k != "stand-in"}
        attributes["vertex"] = " ".join(f"{size * x:g}" for row in _TETRAHEDRON for x in row)
    return f"<{tag}" + "".join(f" {k}={quoteattr(v)}" for k, v in attributes.items()) + ">"
