"""Every problem of a URDF file, not just the first.

The reader and the builder stop at what is wrong. Here the file is read again and again: each time,
what was told is noted, and the working copy is changed so that the next problem shows. A rule of
`linkwise.cli.rules` says, per kind of problem, what to advise and how to change the copy; changes
that are deliberate repairs go into a second copy as well, the one that ``--repair`` writes.
"""

from __future__ import annotations

import os
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.parsers import expat

from linkwise.cli.repairs import Page
from linkwise.cli.rules import rule_for, style_problems
from linkwise.errors import RobotFileError, RobotFileWarning, Where, quote
from linkwise.io.mjcf import read_mjcf
from linkwise.io.urdf import describe_urdf
from linkwise.io.xml import FileRoots, Node, PathLike, read_xml
from linkwise.model.bodies import Policy
from linkwise.model.build import build
from linkwise.model.description import RobotDescription

MOST = 100  # problems of one file that are told


class Place(int):
    """A line of the file that knows which element stands there."""

    element: ET.Element

    @classmethod
    def of(cls, line: int, element: ET.Element) -> Place:
        """The line of an element."""
        place = cls(line)
        place.element = element
        return place


@dataclass(frozen=True)
class Problem:
    """One thing to tell about a file."""

    path: str
    line: int | None
    element: str
    severity: str  # "error" or "warning"
    message: str
    suggestion: str

    def __str__(self) -> str:
        """Write it the way a compiler would."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        label = f"{self.element}: " if self.element else ""
        text = f"{place}: {self.severity}: {label}{self.message}"
        return f"{text}\n    suggestion: {self.suggestion}" if self.suggestion else text


@dataclass
class Report:
    """What was found, and what a repair changes."""

    problems: list[Problem] = field(default_factory=list)
    changes: list[tuple[int, str]] = field(default_factory=list)  # lines, and what changed there
    repaired: str = ""  # the repaired file

    def count(self, severity: str) -> int:
        """How many problems are errors, or warnings."""
        return sum(problem.severity == severity for problem in self.problems)


def lint(path: PathLike, *, strict: bool = True) -> Report:
    """Find every problem of a URDF file, or what the reader of another format has to say."""
    report, label = Report(), os.fspath(path)
    try:
        root = read_xml(path)  # refuses what must not be parsed again
        other = root.tag in ("mujoco", "mujocoinclude")
    except RobotFileError as error:
        report.problems.append(_problem(error.where, error.problem, "error"))
        return report
    if other:
        return _read_only(path, strict)
    with open(label, "rb") as file:
        data = file.read()
    working, output = _parse(data), _parse(data)
    output.is_output = True
    search = _Search(label, working, output, report, Policy(strict=strict))
    if root.tag == "robot":
        search.style()
    search.run()
    report.problems.sort(key=lambda p: (p.line or 0, p.severity))
    report.changes.sort(key=lambda change: change[0])
    report.repaired = output.text()
    return report


MJCF_ADVICE = "see MuJoCo's XML reference for what this element takes"


def _read_only(path: PathLike, strict: bool) -> Report:
    """Warnings of a file that is read by somebody else's compiler, and its first error."""
    report = Report()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", RobotFileWarning)
        try:
            build(read_mjcf(path), Policy(strict=strict))
        except RobotFileError as error:
            report.problems.append(_problem(error.where, error.problem, "error", MJCF_ADVICE))
    for each in heard:
        if isinstance(each.message, RobotFileWarning):
            told = each.message
            report.problems.append(_problem(told.where, told.problem, "warning", MJCF_ADVICE))
    return report


def _problem(where: Where | None, message: str, severity: str, advice: str = "") -> Problem:
    where, rule = where or Where(""), rule_for(message)
    line = None if where.line is None else int(where.line)
    advice = advice or (rule.advise(message) if rule else "")
    return Problem(where.path, line, where.element, severity, message, advice)


class _Search:
    """Reads a working copy until nothing more is wrong with it."""

    def __init__(
        self, path: str, working: Page, output: Page, report: Report, policy: Policy
    ) -> None:
        self.path, self.working, self.output = path, working, output
        self.report, self.policy = report, policy
        self.files = FileRoots.of(path)
        self.told: set[tuple[int | None, str, str]] = set()

    def run(self) -> None:
        """Note problems until there are no more, or one that cannot be got out of the way."""
        more = True
        while more:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    build(self._describe(), self.policy)
                    more = False
                except RobotFileError as error:
                    more = self._note(error)
            more = more and len(self.report.problems) < MOST
        for entry in caught:
            if isinstance(entry.message, RobotFileWarning):
                self._note_warning(entry.message)

    def _describe(self) -> RobotDescription:
        return describe_urdf(_node(self.working, self.working.root, self.path, ""), self.files)

    def _note(self, error: RobotFileError) -> bool:
        """Tell an error and get it out of the way; False if that cannot be done."""
        where, message = error.where or Where(self.path), error.problem or str(error)
        rule, key = rule_for(message), (where.line, where.element, message)
        if key in self.told:
            return False
        self.told.add(key)
        if rule is None or not rule.follows_from(self.working, message):
            self.report.problems.append(_problem(where, message, "error"))
        if (
            rule is None
            or not isinstance(where.line, Place)
            or where.line.element is self.working.root
        ):
            return False
        self._change(rule.fix, rule.repairs, message, where.line.element)
        return True

    def _note_warning(self, warning: RobotFileWarning) -> None:
        where, message = warning.where or Where(self.path), warning.problem
        rule = rule_for(message)
        if where.line == 0 or len(self.report.problems) >= MOST:
            return  # about an element that was put in on the way, or one too many
        self.report.problems.append(_problem(where, message, "warning"))
        if rule and rule.repairs and isinstance(where.line, Place):
            self._change(rule.fix, True, message, where.line.element)

    def style(self) -> None:
        """What the reader accepts without a word, and a linter should mention."""
        for element, message, advice, fix in style_problems(self.working):
            node = _node(self.working, element, self.path, self.working.owner(element))
            self.report.problems.append(_problem(node.where, message, "warning", advice))
            self._change(fix, True, message, element)

    def _change(
        self,
        fix: Callable[[Page, ET.Element, str], str],
        repairs: bool,
        message: str,
        at: ET.Element,
    ) -> None:
        """Change the working copy, and the output where the change is a repair."""
        index, line = self.working.index(at), self.working.lines.get(at, 0)
        fix(self.working, at, message)
        if repairs and index is not None:
            change = fix(self.output, self.output.elements[index], message)
            if change:
                self.report.changes.append((line, change))


# -- the file as a tree that can be changed -------------------------------------------------------


def _parse(data: bytes) -> Page:
    """Elements with lines and comments; prefixes stay as they are written."""
    builder = ET.TreeBuilder(insert_comments=True, insert_pis=True)
    parser = expat.ParserCreate()
    elements: list[ET.Element] = []
    starts: list[int] = []
    lines: dict[ET.Element, int] = {}

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
    return Page(builder.close(), elements, lines, head if "\0" not in head else "")


def _node(page: Page, element: ET.Element, path: str, owner: str) -> Node:
    """The element as the reader wants it; its depth was checked when the file was first read."""
    name = element.get("name")
    label = f"<{element.tag} name={quote(name)}>" if name else owner
    children = tuple(_node(page, e, path, label) for e in element if isinstance(e.tag, str))
    line = Place.of(page.lines.get(element, 0), element)
    return Node(element.tag, dict(element.attrib), children, path, line, owner)
