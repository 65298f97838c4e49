"""Safe reading of robot XML: bytes, elements with line numbers, numbers, words and paths.

Nothing here knows a robot format. Whatever is wrong becomes a located `RobotFileError`.
A DOCTYPE is refused, so there are no entities to expand; `ReadLimits` bound memory; no walk
is recursive; a file named by a robot file counts only when it lies under a declared folder.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan
from typing import Any, TypeAlias
from xml.parsers import expat

from linkwise.codes import Code
from linkwise.errors import HOLE, RobotFileError, Where, plain
from linkwise.errors import quote as quote
from linkwise.errors import suggestion as suggestion

PathLike: TypeAlias = str | os.PathLike[str]
Floats: TypeAlias = tuple[float, ...]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 100
_SPACE = " \t\r\n"
_TAG = re.compile(rb"</?[A-Za-z_][A-Za-z0-9_:.-]{0,60}")
_LATE = re.compile(
    rb"""\s+(<\?xml\s+version\s*=\s*["']1.0["'](?:\s+encoding\s*=\s*["'](?i:utf-8)["'])?\s*\?>)"""
)
_ENCODINGS = ("utf-8", "utf-16", "us-ascii", "iso-8859-1", "windows-1252")


@dataclass(frozen=True)
class ReadLimits:
    """How much of a file to accept before refusing it."""

    max_bytes: int = 64 * 2**20
    max_depth: int = 100
    max_links: int = 20_000
    max_elements: int = 500_000


DEFAULT_LIMITS = ReadLimits()


def parse_number(text: str) -> float | None:
    """Return a finite decimal number, or None: no ``nan``, ``1_000``, hex or other digits."""
    text = text.strip(_SPACE)
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if isfinite(value) else None


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Node:
    """One XML element, and where it stands."""

    tag: str
    attributes: Mapping[str, str]
    children: tuple[Node, ...]
    path: str
    line: int
    owner: str = ""  # label of the nearest enclosing element that has a name
    span: tuple[int, int] | None = None  # where its start and end tag begin, in bytes
    is_hole: bool = False  # stands for an element that is missing, which is noted already

    @property
    def label(self) -> str:
        """Write the element as a reader of the file knows it: ``<joint name="elbow">``."""
        if self.attributes.get("name"):
            return _named(self.tag, self.attributes["name"])
        return f"{self.owner} <{plain(self.tag)}>".lstrip()

    @property
    def where(self) -> Where:
        """Return the place to name in messages."""
        return Where(self.path, self.line, self.label, self.span)

    @property
    def content(self) -> tuple[Any, ...]:
        """What the element says, wherever it stands."""
        return self.tag, dict(self.attributes), tuple(child.content for child in self.children)

    def problem(self, code: Code, **facts: Any) -> RobotFileError:
        """Return the error to raise where nothing more can be read."""
        return self.where.problem(code, **facts)

    def report(self, code: Code, **facts: Any) -> None:
        """Report a problem of this element; returns only where reading goes on past it."""
        if not self.is_hole:
            self.where.report(code, **facts)

    def all(self, tag: str) -> Iterator[Node]:
        """Iterate over the children with this tag, in file order."""
        return (child for child in self.children if child.tag == tag)

    def child(self, tag: str) -> Node | None:
        """Return the only child with this tag, None if there is none."""
        found = list(self.all(tag))
        for extra in found[1:]:
            same = extra.content == found[0].content
            extra.report(Code.SECOND_CHILD, tag=tag, first=found[0].line, same=same)
        return found[0] if found else None

    def required_child(self, tag: str) -> Node:
        """Return the only child with this tag."""
        child = self.child(tag)
        if child is None:
            self.report(Code.MISSING_CHILD, tag=tag)
            return Node(tag, {}, (), self.path, self.line, self.label, is_hole=True)
        return child

    def text(self, key: str) -> str:
        """Return an attribute that must be there and not be blank."""
        value = self.attributes.get(key)
        if value is None:
            self.report(Code.MISSING_ATTRIBUTE, key=key)
            return HOLE
        if not value.strip():
            if value is not HOLE:
                self.report(Code.BLANK_ATTRIBUTE, key=key, value=value)
            return HOLE
        return value

    def number(
        self, key: str, default: float | None = None, minimum: float = -inf, largest: float = inf
    ) -> float:
        """Return a number as `numbers` does; required unless there is a default."""
        if key not in self.attributes and default is not None:
            return default
        return self.numbers(key, 1, minimum=minimum, largest=largest)[0]

    def numbers(
        self,
        key: str,
        count: int | None,
        default: Floats | None = None,
        minimum: float = -inf,
        largest: float = inf,
    ) -> Floats:
        """Return ``count`` finite numbers (None: any), from ``minimum`` on, within ±``largest``.

        They are required without a default. Past what is wrong with them, they are NaN.
        """
        if key not in self.attributes and default is not None:
            return default
        text = self.text(key)
        words = re.split(f"[{_SPACE}]+", text.strip(_SPACE))
        many = "finite decimal numbers" if count is None else f"{count} finite decimal numbers"
        wanted = "1 finite decimal number" if count == 1 else many
        values = [value for value in map(parse_number, words) if value is not None]
        if text is HOLE:
            pass
        elif count not in (None, len(words)):
            self.report(Code.WRONG_COUNT, key=key, value=text, count=len(words), wanted=wanted)
        elif len(values) != len(words):
            bad = next(word for word in words if parse_number(word) is None)
            self.report(Code.NOT_A_NUMBER, key=key, value=text, word=bad, wanted=wanted)
        elif max(map(abs, values)) > largest:
            self.report(Code.NUMBER_TOO_LARGE, key=key, value=text, largest=largest)
        elif min(values) < minimum:
            self.report(Code.TOO_SMALL, key=key, value=text, minimum=minimum)
        else:
            return tuple(values)
        return (nan,) * (count or 1)


def _named(tag: str, name: str) -> str:
    return f"<{tag} name={quote(name)}>"


@dataclass(slots=True)
class _Open:
    """An element whose end tag has not been read."""

    tag: str
    attributes: dict[str, str]
    line: int
    begins: int
    owner: str
    label: str  # what its children call their owner
    children: list[Node] = field(default_factory=list)


class _Builder:
    """Turns the events of the XML parser into nodes, from the leaves up."""

    def __init__(self, path: str, limits: ReadLimits, parser: expat.XMLParserType) -> None:
        self.path, self.limits, self.parser = path, limits, parser
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        owner = self._open[-1].label if self._open else ""
        name = attributes.get("name")
        label = _named(tag, name) if name else owner
        line, begins = self.parser.CurrentLineNumber, self.parser.CurrentByteIndex
        self._open.append(_Open(tag, attributes, line, begins, owner, label))
        self._count += 1
        if len(self._open) > self.limits.max_depth:
            raise self._too_many(tag, f"max_depth of at most {self.limits.max_depth}")
        if self._count > self.limits.max_elements:
            raise self._too_many(tag, f"max_elements of at most {self.limits.max_elements}")

    def _too_many(self, tag: str, limit: str) -> RobotFileError:
        return self._place(f"<{plain(tag)}>").problem(Code.TOO_MANY_ELEMENTS, limit=limit)

    def _place(self, element: str) -> Where:
        return Where(self.path, self.parser.CurrentLineNumber, element)

    def end(self, tag: str) -> None:
        done = self._open.pop()
        children = tuple(done.children)
        span = done.begins, self.parser.CurrentByteIndex
        node = Node(tag, done.attributes, children, self.path, done.line, done.owner, span)
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def doctype(self, name: str, *_: object) -> None:
        raise self._place(f"<!DOCTYPE {plain(name)}>").problem(Code.DOCTYPE)

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            known = ", ".join(_ENCODINGS)
            place = self._place("<?xml?>")
            raise place.problem(Code.UNKNOWN_ENCODING, encoding=encoding, known=known)


def parse_xml(data: bytes | str, path: str, limits: ReadLimits = DEFAULT_LIMITS) -> Node:
    """Parse a whole XML document; ``path`` is what messages call it."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > limits.max_bytes:
        raise Where(path).problem(Code.TOO_LARGE, most=limits.max_bytes)
    if not raw.strip():
        raise Where(path, 1).problem(Code.EMPTY_FILE)
    raw = _without_late_declaration(raw)
    parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
    builder = _Builder(path, limits, parser)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.StartDoctypeDeclHandler = builder.doctype
    if isinstance(data, bytes):
        parser.XmlDeclHandler = builder.declaration
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as problem:
        place = Where(path, problem.lineno, _tag_before(raw, parser.ErrorByteIndex))
        reason = f"{expat.ErrorString(problem.code)}, column {problem.offset + 1}"
        raise place.problem(Code.BROKEN_XML, reason=reason) from None
    assert builder.root is not None  # the parser refuses a document without an element
    return builder.root


def _without_late_declaration(raw: bytes) -> bytes:
    """The document; a declaration after blank lines, which XML forbids, is blanked out too."""
    late = _LATE.match(raw)
    if late is None:
        return raw
    begins, ends = late.span(1)
    return raw[:begins] + b" " * (ends - begins) + raw[ends:]


def _tag_before(raw: bytes, at: int) -> str:
    """The tag that a parser stopped in or after, as far as bytes can tell."""
    begins = raw.rfind(b"<", 0, at + 1)
    while begins >= 0:
        if tag := _TAG.match(raw, begins):
            return f"{tag[0].decode('ascii')}>"
        begins = raw.rfind(b"<", 0, begins)
    return ""


def read_xml(path: PathLike, limits: ReadLimits = DEFAULT_LIMITS) -> Node:
    """Read and parse an XML file."""
    label = os.fspath(path)
    try:
        data = _read_bytes(label, limits.max_bytes + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise Where(label).problem(Code.UNREADABLE, reason=str(reason)) from None
    return parse_xml(data, label, limits)


def _read_bytes(path: str, most: int) -> bytes:
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):  # a pipe or a device could block or never end
        kind = "it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file"
        raise OSError(errno.EINVAL, kind)
    with open(path, "rb") as file:
        return file.read(most)


def _is_zero(text: str) -> bool:
    """Whether a text is of zeros alone, which change nothing wherever they stand."""
    return all(parse_number(word) == 0.0 for word in text.split())


@dataclass(frozen=True)
class Words:
    """The attributes and children an element may have; ``strict`` refuses any other attribute."""

    attributes: frozenset[str]
    children: frozenset[str] = frozenset()
    strict: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """The words of a format: what is read, what is known and skipped, what only fits one place."""

    elements: Mapping[str, Words]
    skipped: frozenset[str]
    structural: frozenset[str]  # tags that must never be ignored, wherever they stand
    # words of the mechanics -> where they are read; ignoring one elsewhere is told
    homes: Mapping[str, str] = field(default_factory=dict)

    def read(self, node: Node) -> Node:
        """The element with the words that are read; misspelt and misplaced ones are reported.

        Past a misspelt word, reading goes on with the word that was meant.
        """
        words = self.elements[node.tag]
        attributes = self._attributes(node, words)
        meant = (self._child(child, node, words) for child in node.children)
        children = tuple(self.read(child) for child in meant if child is not None)
        return replace(node, attributes=attributes, children=children)

    def _attributes(self, node: Node, words: Words) -> dict[str, str]:
        read = {key: value for key, value in node.attributes.items() if key in words.attributes}
        for key, value in node.attributes.items():
            if "${" in value or "$(" in value:
                raise node.problem(Code.XACRO_EXPRESSION, key=plain(key), value=value)
            if key in read or key.startswith("xmlns"):
                continue
            meant = suggestion(key, words.attributes)
            if meant is not None:
                node.report(Code.MISSPELT_ATTRIBUTE, key=plain(key), value=value, meant=meant)
                read.setdefault(meant, value)
            elif words.strict:
                known = " or ".join(sorted(words.attributes))
                node.report(Code.FOREIGN_ATTRIBUTE, key=plain(key), value=value, known=known)
            elif key in self.homes and node.tag in self.structural and not _is_zero(value):
                written, home = f"{key}={quote(value)}", self.homes[key]
                node.report(Code.MISPLACED_WORD, written=written, home=home, kind_of=key)
            else:
                node.report(Code.UNKNOWN_ATTRIBUTE, key=key)
        return read

    def _child(self, node: Node, parent: Node, words: Words) -> Node | None:
        """The child as it is read, None where it is not."""
        tag = plain(node.tag)
        if node.tag in words.children:
            return node
        if node.tag.startswith("xacro:"):
            raise node.problem(Code.NEEDS_XACRO)
        if node.tag in self.skipped:
            return None
        if node.tag in self.structural:
            homes = [f"<{tag}>" for tag, w in self.elements.items() if node.tag in w.children]
            home = " or ".join(homes) or "the top of the file"
            node.report(Code.MISPLACED_ELEMENT, tag=tag, parent=parent.tag, home=home)
            return None
        if meant := suggestion(node.tag, words.children):
            node.report(Code.MISSPELT_ELEMENT, tag=tag, meant=meant)
            return replace(node, tag=meant)
        if node.tag in self.homes and parent.tag in self.structural:
            home = self.homes[node.tag]
            node.report(Code.MISPLACED_WORD, written=f"<{tag}>", home=home, kind_of=tag)
        else:
            node.report(Code.UNKNOWN_ELEMENT, tag=tag)
        return None
