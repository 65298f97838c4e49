"""A file as a tree that can be changed, and that a reader can read as it is."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from xml.parsers import expat

from linkwise.errors import quote
from linkwise.io.xml import Node

Element = ET.Element


@dataclass
class Page:
    """A file as a tree that can be changed; elements are numbered as they stand in the file."""

    root: Element
    elements: list[Element]
    lines: dict[Element, int]
    path: str = ""
    head: str = ""  # comments before the root element
    is_output: bool = False  # only what is repaired is changed
    orphans: int = 0  # links that hang on nothing because of a change, not of the file
    needs_xacro: bool = False  # elements are missing that a macro would have written
    gone: set[str] = field(default_factory=set)  # names that a change took away
    _numbers: dict[Element, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {element: k for k, element in enumerate(self.elements)}

    def index(self, element: Element) -> int | None:
        """The number of an element of the file, None for one put in later."""
        return self._numbers.get(element)

    def parent(self, element: Element) -> Element | None:
        """The element around this one."""
        return next((e for e in self.root.iter() if element in list(e)), None)

    def owner(self, element: Element) -> str:
        """The label of the nearest named element around this one."""
        around = self.parent(element)
        while around is not None and not around.get("name"):
            around = self.parent(around)
        return "" if around is None else f"<{around.tag} name={quote(around.get('name', ''))}>"

    def remove(self, element: Element) -> None:
        """Take an element out; what follows it on its line stays."""
        parent = self.parent(element)
        if parent is not None:
            self.gone.update(name for e in element.iter() if (name := e.get("name")))
            parent.remove(element)

    def text(self) -> str:
        """The page as a file."""
        parts = re.split(r"(<!--.*?-->)", ET.tostring(self.root, encoding="unicode"), flags=re.S)
        parts[::2] = [part.replace(" />", "/>") for part in parts[::2]]
        return f'<?xml version="1.0" encoding="utf-8"?>\n{self.head}{"".join(parts)}\n'


MARK = "\u205e"  # between a name and the number that tells it from another; nobody writes it
_numbers = itertools.count()


def other_name(name: str) -> str:
    """A name like this one that nothing else has, for a working copy."""
    return f"{name}{MARK}{next(_numbers)}"


def as_written(text: str) -> str:
    """A text with every name as the file has it."""
    return re.sub(rf"{MARK}\d+", "", text)


class Place(int):
    """A line of a page that knows which element stands there."""

    page: Page
    element: Element

    @classmethod
    def of(cls, page: Page, element: Element) -> Place:
        """The line of an element."""
        place = cls(page.lines.get(element, 0))
        place.page, place.element = page, element
        return place


def parse_page(path: str, data: bytes) -> Page:
    """Elements with lines and comments; prefixes stay as they are written."""
    builder = ET.TreeBuilder(insert_comments=True, insert_pis=True)
    parser = expat.ParserCreate()
    elements: list[Element] = []
    starts: list[int] = []
    lines: dict[Element, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if not elements:
            starts.append(parser.CurrentByteIndex)
        element = builder.start(tag, attributes)
        elements.append(element)
        lines[element] = parser.CurrentLineNumber

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.CommentHandler = builder.comment
    parser.buffer_text = True
    parser.Parse(data, True)
    head = re.sub(r"^\s*<\?xml.*?\?>\s*", "", data[: starts[0]].decode("utf-8-sig", "replace"))
    return Page(builder.close(), elements, lines, path, head if "\0" not in head else "")


def node_of(page: Page, element: Element, owner: str = "") -> Node:
    """The element as a reader wants it; its depth was checked when the file was first read."""
    name = element.get("name")
    label = f"<{element.tag} name={quote(name)}>" if name else owner
    children = tuple(node_of(page, e, label) for e in element if isinstance(e.tag, str))
    line = Place.of(page, element)
    return Node(element.tag, dict(element.attrib), children, page.path, line, owner)
