"""Ways to spoil a parsed robot file, whatever its format."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from faults.document import Element, File, part

F = TypeVar("F", bound=File)

# what Python's float() takes and a file should not say, and what it does not take either
NUMBERS = (
    "nan",
    "inf",
    "-infinity",
    "1e999",
    "1_000",
    "0x10",
    "",
    "٣",
    "1,5",
    "one",
    "1.0.0",
    "1d3",
)
WORST_NUMBERS = ("nan", "-inf", "1e999", "pi/2")


@dataclass(frozen=True)
class Defect(Generic[F]):
    """One kind of defect of one format."""

    name: str
    where: Callable[[F], list[Element]]
    spoil: Callable[[F, Element], None]
    after: Callable[[str], str] = str  # what is done to the text of the spoiled document


def spoiled(document: F, defect: Defect[F]) -> Iterator[str]:
    """The document with the defect at the first, middle and last of its places."""
    order = {id(element): k for k, element in enumerate(document.root.iter())}
    eligible = [order[id(element)] for element in defect.where(document)]
    last = len(eligible) - 1
    for k in sorted({0, last // 2, last}) if eligible else ():
        bad = document.copy()
        defect.spoil(bad, list(bad.root.iter())[eligible[k]])
        yield defect.after(bad.text())


# -- ways to spoil --------------------------------------------------------------------------------

Spoil = Callable[[File, Element], None]


def put(key: str, value: str, path: str = ".") -> Spoil:
    """Set an attribute."""
    return lambda _, element: part(element, path).set(key, value)


def drop(key: str, path: str = ".") -> Spoil:
    """Take an attribute away."""

    def spoil(_: File, element: Element) -> None:
        part(element, path).attrib.pop(key, None)

    return spoil


def rename(tag: str, path: str = ".") -> Spoil:
    """Give an element another tag."""

    def spoil(_: File, element: Element) -> None:
        part(element, path).tag = tag

    return spoil


def rename_key(old: str, new: str, path: str = ".") -> Spoil:
    """Give an attribute another name."""

    def spoil(_: File, element: Element) -> None:
        found = part(element, path)
        found.set(new, found.attrib.pop(old))

    return spoil


def remove(path: str) -> Spoil:
    """Take a child away."""
    return lambda _, element: element.remove(part(element, path))


def double(path: str) -> Spoil:
    """Have a child twice."""
    return lambda _, element: element.append(copy.deepcopy(part(element, path)))


def add(xml_tag: str, **attributes: str) -> Spoil:
    """Add a child."""

    def spoil(_: File, element: Element) -> None:
        element.append(Element(xml_tag, attributes))

    return spoil


def instead(tag: str, **attributes: str) -> Spoil:
    """Have this child, and no other of its kind."""

    def spoil(_: File, element: Element) -> None:
        for found in element.findall(tag):
            element.remove(found)
        element.append(Element(tag, attributes))

    return spoil


def only(tag: str, **attributes: str) -> Spoil:
    """Have this child, and no other at all."""

    def spoil(_: File, element: Element) -> None:
        element.clear()
        element.append(Element(tag, attributes))

    return spoil


def within(path: str, change: Spoil) -> Spoil:
    """Spoil a part of an element."""
    return lambda document, element: change(document, part(element, path))


def one_number(index: int, word: str, key: str, path: str = ".") -> Spoil:
    """Replace one number of an attribute."""

    def spoil(_: File, element: Element) -> None:
        found = part(element, path)
        words = found.get(key, "").split()
        words[index] = word
        found.set(key, " ".join(words))

    return spoil


def nothing(_: File, __: Element) -> None:
    """Leave the tree; the text is spoiled."""


def top(document: File) -> list[Element]:
    """The root element."""
    return [document.root]


# -- text, once it is written ----------------------------------------------------------------------

MARK = "@HERE@"  # put into the tree, found again in the text


def mark(_: File, element: Element) -> None:
    """Say where the text is to be spoiled."""
    element.set("mark", MARK)


def replaced(new: str) -> Callable[[str], str]:
    """Write this where the mark is."""
    return lambda text: text.replace(f'mark="{MARK}"', new)


def cut(text: str) -> str:
    """End the file at the mark."""
    return text[: text.index(MARK)]


def prefixed(line: str) -> Callable[[str], str]:
    """Have a line before the root element."""
    return lambda text: text.replace("\n", f"\n{line}\n", 1)
