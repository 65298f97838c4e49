"""Every problem of a URDF or MJCF file, not just the first.

The reader and the builder stop at what is wrong. Here the file is read again and again: each time,
what was told is noted, and the working copy is changed so that the next problem shows. A rule of
`urdf_rules` or `mjcf_rules` says, per kind of problem, what to advise and how to change the copy;
changes that are deliberate repairs go into a second copy as well, the one that
``--repair`` writes. Files that an MJCF includes have working copies of their own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from linkwise.check import mjcf_rules
from linkwise.check import urdf_rules as rules
from linkwise.check.pages import Element, Page, Place, as_written, node_of, parse_page
from linkwise.check.urdf_rules import Fix, Rule, rule_for
from linkwise.errors import RobotFileError, RobotFileWarning, Where
from linkwise.io.files import FileRoots
from linkwise.io.mjcf import describe_mjcf
from linkwise.io.mjcf_text import Read
from linkwise.io.urdf import describe_urdf
from linkwise.io.xml import DEFAULT_LIMITS, Node, PathLike, ReadLimits, read_xml
from linkwise.model.bodies import Policy
from linkwise.model.build import build
from linkwise.model.description import RobotDescription

MOST = 100  # problems of one file that are told


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


@dataclass(frozen=True)
class Format:
    """How files of a format are read, and what to do about their problems."""

    describe: Callable[[Node, FileRoots, Read], RobotDescription]
    rules: Sequence[Rule]
    is_of_a_change: Callable[[Page, str], bool]  # whether an earlier change made a problem
    style: Callable[[Page], Iterator[tuple[Element, str, str, Fix]]]


URDF = Format(
    lambda root, files, _: describe_urdf(root, files),
    rules.URDF_RULES,
    rules.orphaned,
    rules.style_problems,
)
MJCF = Format(
    lambda root, files, read: describe_mjcf(root, files, read=read),
    mjcf_rules.MJCF_RULES,
    mjcf_rules.named_what_is_gone,
    lambda _: iter(()),
)


def lint(path: PathLike, *, strict: bool = True) -> Report:
    """Find every problem of a robot file."""
    report, label = Report(), os.fspath(path)
    try:
        root = read_xml(path)  # refuses what must not be parsed again
    except RobotFileError as error:
        where, message = _told(error, label)
        report.problems.append(_problem(where, message, "error", rules.XML_RULES))
        return report
    is_mjcf = root.tag in ("mujoco", "mujocoinclude")
    search = _Search(label, MJCF if is_mjcf else URDF, report, Policy(strict=strict))
    search.style()
    search.run()
    report.problems.sort(key=lambda p: (p.path != label, p.path, p.line or 0, p.severity))
    report.changes.sort(key=lambda change: change[0])
    report.repaired = search.output.text()
    return report


def _problem(where: Where, message: str, severity: str, table: Sequence[Rule]) -> Problem:
    rule = rule_for(message, table)
    line = None if where.line is None else int(where.line)
    advice = rule.advise(message, where.element) if rule else ""
    element, message, advice = map(as_written, (where.element, message, advice))
    return Problem(where.path, line, element, severity, message, advice)


class _Search:
    """Reads working copies until nothing more is wrong with them."""

    def __init__(self, path: str, format_: Format, report: Report, policy: Policy) -> None:
        self.path, self.format, self.report, self.policy = path, format_, report, policy
        self.files = FileRoots.of(path)
        self.pages: dict[str, Page] = {}
        self.told: set[tuple[str, int | None, str, str]] = set()
        self.working, self.output = self._page(path), _page_of(path)
        self.output.is_output = True

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
        root = node_of(self.working, self.working.root)
        return self.format.describe(root, self.files, self._read)

    def _read(self, path: str, limits: ReadLimits = DEFAULT_LIMITS) -> Node:
        """The working copy of an included file; one that cannot be read is told, and empty."""
        if path not in self.pages:
            try:
                read_xml(path, limits)
                self._page(path)
            except RobotFileError as error:
                self._note(error)
                self.pages[path] = parse_page(path, b"<mujocoinclude/>")
        return node_of(self.pages[path], self.pages[path].root)

    def _page(self, path: str) -> Page:
        page = self.pages[path] = _page_of(path)
        page.gone = self.pages[self.path].gone  # a name can be missed in another file
        return page

    def _note(self, error: RobotFileError) -> bool:
        """Tell an error and get it out of the way; False if that cannot be done."""
        where, message = _told(error, self.path)
        rule, key = rule_for(message, self.format.rules), (*_key(where), message)
        if key in self.told:
            return False
        self.told.add(key)
        if not self.format.is_of_a_change(self.working, message):
            self.report.problems.append(self._problem(where, message, "error"))
        if (
            rule is None
            or not isinstance(where.line, Place)
            or where.line.element is self.working.root
        ):
            return False
        self._change(rule.fix, rule.repairs, message, where.line)
        return True

    def _problem(self, where: Where, message: str, severity: str) -> Problem:
        return _problem(where, message, severity, self.format.rules)

    def _note_warning(self, warning: RobotFileWarning) -> None:
        where, message = _told(warning, self.path)
        rule = rule_for(message, self.format.rules)
        if where.line == 0 or len(self.report.problems) >= MOST:
            return  # about an element that was put in on the way, or one too many
        self.report.problems.append(self._problem(where, message, "warning"))
        if rule and rule.repairs and isinstance(where.line, Place):
            self._change(rule.fix, True, message, where.line)

    def style(self) -> None:
        """What the reader accepts without a word, and a linter should mention."""
        for element, message, advice, fix in self.format.style(self.working):
            node = node_of(self.working, element, self.working.owner(element))
            problem = self._problem(node.where, message, "warning")
            self.report.problems.append(replace(problem, suggestion=advice))
            self._change(fix, True, message, Place.of(self.working, element))

    def _change(self, fix: Fix, repairs: bool, message: str, place: Place) -> None:
        """Change the working copy, and the output where the change is a repair of the main file."""
        index = place.page.index(place.element)
        fix(place.page, place.element, message)
        if repairs and index is not None and place.page is self.working:
            change = fix(self.output, self.output.elements[index], message)
            if change:
                self.report.changes.append((int(place), change))


def _told(error: RobotFileError | RobotFileWarning, path: str) -> tuple[Where, str]:
    if error.problem is None:
        return Where(path), str(error)
    return error.problem.where, error.problem.message


def _key(where: Where) -> tuple[str, int | None, str]:
    return where.path, where.line, where.element


def _page_of(path: str) -> Page:
    with open(path, "rb") as file:
        return parse_page(path, file.read())
