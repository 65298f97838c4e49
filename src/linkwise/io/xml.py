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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TypeAlias
from urllib.parse import unquote
from xml.parsers import expat

from linkwise.errors import RobotFileError, Where
from linkwise.errors import quote as quote
from linkwise.errors import suggestion as suggestion

PathLike: TypeAlias = str | os.PathLike[str]
Floats: TypeAlias = tuple[float, ...]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = _MOST_UNKNOWN = 100
_SPACE = " \t\r\n"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/[/]+")
XACRO = "xacro runs code and is never expanded implicitly: run xacro first, then read its output"
_TAG = re.compile(rb"</?[A-Za-z_][A-Za-z0-9_:.-]{0,60}")
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

    @property
    def label(self) -> str:
        """Write the element as a reader of the file knows it: ``<joint name="elbow">``."""
        if self.attributes.get("name"):
            return _named(self.tag, self.attributes["name"])
        return f"{self.owner} <{self.tag}>".lstrip()

    @property
    def where(self) -> Where:
        """Return the place to name in messages."""
        return Where(self.path, self.line, self.label)

    def error(self, message: str) -> RobotFileError:
        """Return the error to raise for this element."""
        return self.where.error(message)

    def all(self, tag: str) -> Iterator[Node]:
        """Iterate over the children with this tag, in file order."""
        return (child for child in self.children if child.tag == tag)

    def child(self, tag: str) -> Node | None:
        """Return the only child with this tag, None if there is none."""
        found = list(self.all(tag))
        if len(found) > 1:
            first = found[0].line
            raise found[1].error(f"a second <{tag}>; expected one (the first is on line {first})")
        return found[0] if found else None

    def required_child(self, tag: str) -> Node:
        """Return the only child with this tag."""
        child = self.child(tag)
        if child is None:
            raise self.error(f"has no <{tag}>; expected exactly one")
        return child

    def text(self, key: str) -> str:
        """Return an attribute that must be there and not be blank."""
        value = self.attributes.get(key)
        if value is None:
            raise self.error(f"has no {key} attribute; expected {key}=...")
        if not value.strip():
            raise self.error(f"{key}={quote(value)} is empty; expected some text")
        return value

    def number(
        self,
        key: str,
        default: float | None = None,
        minimum: float = -inf,
        largest: float = inf,
    ) -> float:
        """Return a finite number, at least ``minimum``; required unless there is a default."""
        if key not in self.attributes and default is not None:
            return default
        (value,) = self.numbers(key, 1, largest=largest)
        if value < minimum:
            raise self.error(f"{key}={value:g} is too small; expected at least {minimum:g}")
        return value

    def numbers(
        self, key: str, count: int, default: Floats | None = None, largest: float = inf
    ) -> Floats:
        """Return ``count`` finite numbers, none beyond ±``largest``; required without a default."""
        if key not in self.attributes and default is not None:
            return default
        text = self.text(key)
        words = re.split(f"[{_SPACE}]+", text.strip(_SPACE))
        wanted = "1 finite decimal number" if count == 1 else f"{count} finite decimal numbers"
        if len(words) != count:
            raise self.error(f"{key}={quote(text)} has {len(words)}; expected {wanted}")
        values = tuple(v for v in map(parse_number, words) if v is not None)
        if len(values) != count:
            bad = next(word for word in words if parse_number(word) is None)
            found = f"{key}={quote(text)}" + (f", {quote(bad)}" if count > 1 else "")
            raise self.error(f"{found} is not such a number; expected {wanted}")
        if max(map(abs, values)) > largest:
            raise self.error(f"{key}={quote(text)} is too large; expected at most {largest:g}")
        return values


def _named(tag: str, name: str) -> str:
    return f"<{tag} name={quote(name)}>"


@dataclass(slots=True)
class _Open:
    """An element whose end tag has not been read."""

    tag: str
    attributes: dict[str, str]
    line: int
    owner: str
    label: str  # what its children call their owner
    children: list[Node] = field(default_factory=list)


class _Builder:
    """Turns the events of the XML parser into nodes, from the leaves up."""

    def __init__(self, path: str, limits: ReadLimits, line: Callable[[], int]) -> None:
        self.path, self.limits, self.line = path, limits, line
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        owner = self._open[-1].label if self._open else ""
        name = attributes.get("name")
        label = _named(tag, name) if name else owner
        self._open.append(_Open(tag, attributes, self.line(), owner, label))
        self._count += 1
        if len(self._open) > self.limits.max_depth:
            raise self._too_many(tag, f"max_depth of at most {self.limits.max_depth}")
        if self._count > self.limits.max_elements:
            raise self._too_many(tag, f"max_elements of at most {self.limits.max_elements}")

    def _too_many(self, tag: str, limit: str) -> RobotFileError:
        place = Where(self.path, self.line(), f"<{quote(tag)[1:-1]}>")
        return place.error(f"too many elements; expected {limit}")

    def end(self, tag: str) -> None:
        done = self._open.pop()
        children = tuple(done.children)
        node = Node(tag, done.attributes, children, self.path, done.line, done.owner)
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def doctype(self, name: str, *_: object) -> None:
        place = Where(self.path, self.line(), f"<!DOCTYPE {quote(name)[1:-1]}>")
        raise place.error("a DOCTYPE can define entities and is refused; expected none")

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            message = f"encoding={quote(encoding)} is not read; expected one of "
            place = Where(self.path, self.line(), "<?xml?>")
            raise place.error(message + ", ".join(_ENCODINGS))


def parse_xml(data: bytes | str, path: str, limits: ReadLimits = DEFAULT_LIMITS) -> Node:
    """Parse a whole XML document; ``path`` is what messages call it."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > limits.max_bytes:
        raise Where(path).error(f"too large; expected at most {limits.max_bytes} bytes")
    if not raw.strip():
        raise Where(path, 1).error("the file is empty; expected an XML document")
    parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
    builder = _Builder(path, limits, lambda: parser.CurrentLineNumber)
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
        raise place.error(f"not well-formed XML: {reason}; expected an XML document") from None
    assert builder.root is not None  # the parser refuses a document without an element
    return builder.root


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
        message = f"cannot be read: {reason}; expected a readable file"
        raise Where(label).error(message) from None
    return parse_xml(data, label, limits)


def _read_bytes(path: str, most: int) -> bytes:
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):  # a pipe or a device could block or never end
        kind = "it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file"
        raise OSError(errno.EINVAL, kind)
    with open(path, "rb") as file:
        return file.read(most)


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

    def check(self, root: Node) -> None:
        """Refuse misspelt and misplaced words; warn once about each other unknown one."""
        warned: set[str] = set()
        todo = [root]
        while todo:
            node = todo.pop()
            words = self.elements[node.tag]
            for key in node.attributes:
                self._check_attribute(node, key, words, warned)
            for child in node.children:
                if child.tag not in words.children:
                    self._check_unknown(child, node, words, warned)
            todo += [child for child in reversed(node.children) if child.tag in words.children]

    def _check_attribute(self, node: Node, key: str, words: Words, warned: set[str]) -> None:
        found = f"{quote(key)[1:-1]}={quote(node.attributes[key])}"
        if any(opening in node.attributes[key] for opening in ("${", "$(")):
            raise node.error(f"{found} is a xacro expression; {XACRO}")
        if key in words.attributes or key.startswith("xmlns"):
            return
        meant = suggestion(key, words.attributes)
        if meant or words.strict:
            known = meant or " or ".join(sorted(words.attributes))
            raise node.error(f"unknown attribute {found}; expected {known}")
        _warn_once(node, f"unknown attribute {quote(key)} ignored", warned)

    def _check_unknown(self, node: Node, parent: Node, words: Words, warned: set[str]) -> None:
        if node.tag.startswith("xacro:"):
            raise node.error(f"this file needs xacro; {XACRO}")
        if node.tag in self.skipped:
            return
        if node.tag in self.structural:
            homes = [f"<{tag}>" for tag, w in self.elements.items() if node.tag in w.children]
            home = " or ".join(homes) or "the top of the file"
            raise node.error(f"<{node.tag}> inside <{parent.tag}>; expected it inside {home}")
        if meant := suggestion(node.tag, words.children):
            raise node.error(f"unknown element <{node.tag}>; expected <{meant}>")
        _warn_once(node, f"<{node.tag[:60]}> is not read: ignored, here and below", warned)


def _warn_once(node: Node, message: str, warned: set[str]) -> None:
    if len(warned) >= _MOST_UNKNOWN:
        raise node.error(f"more than {_MOST_UNKNOWN} unknown words; expected a robot file")
    if f"{node.tag}: {message}" not in warned:
        warned.add(f"{node.tag}: {message}")
        node.where.warn(message)


@dataclass(frozen=True)
class FileRoots:
    """The folders a robot file may name files in; all are real paths."""

    folder: str | None  # what relative paths start from
    own: tuple[str, ...] = ()  # the robot file's folder and the packages around it
    packages: tuple[str, ...] = ()  # what the user declared

    @classmethod
    def of(cls, path: PathLike | None, package_dirs: Sequence[PathLike] = ()) -> FileRoots:
        """Declare the folder of a robot file, the package around it, and ``package_dirs``."""
        given = [package_dirs] if isinstance(package_dirs, str | os.PathLike) else package_dirs
        packages = tuple(os.path.realpath(os.fspath(folder)) for folder in given)
        if path is None:
            return cls(None, (), packages)
        file = os.path.abspath(os.fspath(path))
        own: list[str] = []
        for folder in (os.path.dirname(file), os.path.dirname(os.path.realpath(file))):
            own += [os.path.realpath(folder), *package_root(os.path.realpath(folder))]
        return cls(os.path.dirname(file), tuple(dict.fromkeys(own)), packages)

    def resolve(self, text: str, where: Where) -> str:
        """Return the real path of a file that is there, else ``text`` as written; opens nothing.

        A path that leads out of the declared folders is an error. One that is absolute and
        names nothing on this machine is a leftover of another machine, and is kept as written.
        """
        scheme = _SCHEME.match(text)
        kind, rest = (scheme[1].lower(), text[scheme.end() :]) if scheme else ("", text)
        if kind not in ("", "file", "package"):
            where.warn(f"{quote(text)} is not a local file: never followed")
            return text
        if kind == "file":
            rest = unquote(text[len("file://") :])
        try:
            candidates = self._in_package(rest) if kind == "package" else self._beside(rest)
            real = [os.path.realpath(candidate) for candidate in candidates]
        except ValueError as problem:
            raise where.error(f"{quote(text)} is no path ({problem}); expected a file") from None
        return self._first_file(real, text, rest, where)

    def _in_package(self, rest: str) -> list[str]:
        package, _, inside = rest.partition("/")
        under = [os.path.join(folder, package, inside) for folder in self.packages]
        named = [f for f in (*self.packages, *self.own) if os.path.basename(f) == package]
        return under + [os.path.join(folder, inside) for folder in named]

    def _beside(self, rest: str) -> list[str]:
        if self.folder is None:
            return [rest] if os.path.isabs(rest) else []
        return [os.path.join(self.folder, rest)]

    def _first_file(self, candidates: list[str], text: str, rest: str, where: Where) -> str:
        roots = self.own + self.packages
        inside = [c for c in candidates if any(os.path.commonpath([c, r]) == r for r in roots)]
        outside = [c for c in candidates if c not in inside]
        for found in filter(os.path.isfile, inside):
            return found
        climbs = not candidates and os.path.normpath(rest).startswith(os.pardir + os.sep)
        stray = [c for c in outside if os.path.exists(c) or not os.path.isabs(rest)]
        if climbs or stray:
            message = f"{quote(text)} leads out of the declared folders; expected a file under one"
            allowed = ", ".join(roots) or "none"
            raise where.error(f"{message} of: {allowed} (package_dirs= declares more)")
        return text


def package_root(folder: str) -> list[str]:
    """Return the nearest folder upwards with a package.xml, if any."""
    while folder != os.path.dirname(folder):
        if os.path.isfile(os.path.join(folder, "package.xml")):
            return [folder]
        folder = os.path.dirname(folder)
    return []
