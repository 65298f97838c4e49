"""Changes to the text of an XML file, by element; all that is not changed stays byte for byte."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from linkwise.io.xml import Node

Span = tuple[int, int]  # where the start tag and the end tag, if any, of an element begin

_TAG = re.compile(rb"""<([^\s/>]+)((?:\s+[^\s=>/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*/?>""")
_ATTRIBUTE = re.compile(rb"""([^\s=>/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Edits:
    """The bytes of a file, and what to write instead of some of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._changes: dict[Span, bytes] = {}

    def rename(self, node: Node, tag: str) -> None:
        """Give an element another tag."""
        begins, closes = _span(node)
        start = self._tag(begins)
        self._replace(start.span(1), tag)
        if not _is_empty(start):
            self._replace((closes + 2, closes + 2 + len(start[1])), tag)

    def rename_key(self, node: Node, key: str, meant: str) -> None:
        """Give an attribute another name."""
        self._replace(self._attributes(node)[key].span(1), meant)

    def set(self, node: Node, key: str, value: str) -> None:
        """Give an attribute a value; it may be new."""
        found = self._attributes(node).get(key)
        text = escape(value, {'"': "&quot;", "'": "&apos;"})
        if found is None:
            after = self._tag(_span(node)[0]).end(1)
            self._replace((after, after), f' {key}="{text}"')
        else:
            self._replace(found.span(2 if found[2] is not None else 3), text)

    def remove(self, node: Node) -> None:
        """Take an element out, with the blanks before it."""
        begins, closes = _span(node)
        start = self._tag(begins)
        ends = start.end() if _is_empty(start) else self.data.index(b">", closes) + 1
        while begins > 0 and self.data[begins - 1 : begins] in (b" ", b"\t"):
            begins -= 1
        self._replace((begins, ends), "")

    def result(self) -> bytes:
        """The file with every change; of changes that overlap, the first is made."""
        out, at = [], 0
        for (begins, ends), new in sorted(self._changes.items()):
            if begins >= at:
                out += [self.data[at:begins], new]
                at = ends
        return b"".join([*out, self.data[at:]])

    def _replace(self, span: Span, text: str) -> None:
        self._changes.setdefault(span, text.encode("ascii", "xmlcharrefreplace"))

    def _tag(self, begins: int) -> re.Match[bytes]:
        found = _TAG.match(self.data, begins)
        assert found is not None, "a start tag of a file that was parsed"
        return found

    def _attributes(self, node: Node) -> dict[str, re.Match[bytes]]:
        tag = self._tag(_span(node)[0])
        found = _ATTRIBUTE.finditer(self.data, *tag.span(2))
        return {match[1].decode("utf-8", "replace"): match for match in found}


def _span(node: Node) -> Span:
    assert node.span is not None, "an element of a file that was parsed"
    return node.span


def _is_empty(start: re.Match[bytes]) -> bool:
    """Whether a start tag is all there is of its element."""
    return start[0].endswith(b"/>")
