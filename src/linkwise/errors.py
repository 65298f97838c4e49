"""The exceptions and warnings a user can meet, and how problems of robot files are reported.

A reader hands each problem over at its place: ``where.report(Code.NO_LIMIT)``. Usually that raises
for an error and warns for what is told. Within `collecting` it notes the problem instead, and the
reader goes on past a hole: NaN for a number, `HOLE` for a text, a `Node` marked as a hole for an
element. Whoever finds a hole says nothing about it: its problem is noted already.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from string import Formatter
from typing import Any, TypeVar

from linkwise.codes import ERROR, HINT, WARNING, Code

T = TypeVar("T")


class RobotFileError(ValueError):
    """Something is wrong with a robot description: says where, what, and what was expected."""

    problem: Problem | None = None  # the same for programs


class LinkwiseWarning(UserWarning):
    """Base class of all warnings of linkwise: ``warnings.simplefilter("error", LinkwiseWarning)``.

    A warning comes once per call, with the first row it is about and the number of rows.
    """


class RobotFileWarning(LinkwiseWarning):
    """Something in a robot description was ignored or assumed."""

    problem: Problem | None = None


class CacheWarning(LinkwiseWarning):
    """The kernel cache could not be used, or an entry was damaged and is replaced."""


class PerformanceWarning(LinkwiseWarning):
    """Calls are right, and slower than they should be."""


class FrictionWarning(LinkwiseWarning):
    """The robot description has joint damping or friction, and the dynamics leave it out."""


class StateWarning(LinkwiseWarning):
    """A state is used, and is probably not the one that was meant: a quaternion of wrong norm."""


class SimulationWarning(LinkwiseWarning, RuntimeWarning):
    """Rows of a simulation failed, or it was interrupted."""


class LimitWarning(LinkwiseWarning):
    """A motion exceeded position, velocity or effort limits that nothing enforced."""


class ContactWarning(LinkwiseWarning):
    """A contact that can only push was computed to pull."""


class ControlWarning(LinkwiseWarning):
    """A controller is made, and its gains make errors grow: some are negative."""


class ConvergenceWarning(LinkwiseWarning):
    """An iteration, such as inverse kinematics, did not converge for some rows."""


class IdentificationWarning(LinkwiseWarning):
    """The data of an identification are doubtful, or do not determine what was asked for."""


class StudyWarning(LinkwiseWarning, RuntimeWarning):
    """Results of a study were lost or damaged, and are computed again."""


class BackendUnavailable(RuntimeError):
    """A backend's library is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Where:
    """A place in a robot description: ``arm.urdf:12: <joint name="elbow">``."""

    path: str
    line: int | None = None
    element: str = ""
    span: tuple[int, int] | None = field(default=None, compare=False, repr=False)  # bytes

    def __str__(self) -> str:
        """Write the place the way a compiler would."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return printable(f"{place}: {self.element}" if self.element else place)

    def problem(self, code: Code, **facts: Any) -> RobotFileError:
        """Return the error to raise where nothing more can be read."""
        return Problem(code, self, facts).error()

    def report(self, code: Code, **facts: Any) -> None:
        """Raise an error, warn of what is told; while problems are collected, note it and go on."""
        outcome = _harmless.get() or ("" if is_strict() else code.otherwise)
        report(Problem(code, self, facts, outcome if code.severity == ERROR else ""))

    def error(self, message: str) -> RobotFileError:
        """Return the error to raise for a robot that comes from no file."""
        return self.problem(Code.OTHER, message=message, advice="")

    def warn(self, message: str) -> None:
        """Warn about a robot that comes from no file."""
        self.report(Code.OTHER_TOLD, message=message, advice="", kind_of=message)


NOWHERE = Where("<robot>")


# --- problems ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, or worth a word, at one place of a robot file."""

    code: Code
    where: Where
    facts: Mapping[str, Any]
    outcome: str = ""  # of an error that is only a warning here: what becomes of it

    @property
    def file(self) -> str:
        """The path of the file."""
        return self.where.path

    @property
    def line(self) -> int | None:
        """The line, starting at 1; None for the whole file."""
        return self.where.line

    @property
    def element(self) -> str:
        """The element, as ``<joint name="elbow">``."""
        return self.where.element

    @property
    def severity(self) -> str:
        """``"error"``, ``"warning"`` or ``"hint"``."""
        return WARNING if self.outcome else self.code.severity

    @property
    def message(self) -> str:
        """What is wrong, and what was expected."""
        text = printable(_WORDS.vformat(self.code.text, (), self.facts))
        if self.outcome:
            return f"{text}: {self.outcome}"
        return f"{text}; {self.code.ways_out}" if self.code.ways_out else text

    @property
    def suggestion(self) -> str:
        """What to do about it."""
        return printable(_WORDS.vformat(self.code.advice, (), self.facts))

    def __repr__(self) -> str:
        """Short, since `check` returns a list of these."""
        return f"<Problem {self.code.name}: {self.where}: {self.severity}: {self.message}>"

    def as_dict(self) -> dict[str, str | int | None]:
        """The same as plain data."""
        return {
            "code": self.code.name, "file": self.file, "line": self.line, "element": self.element,
            "severity": self.severity, "message": self.message, "suggestion": self.suggestion,
        }  # fmt: skip

    def error(self) -> RobotFileError:
        """The exception to raise."""
        error = RobotFileError(f"{self.where}: {self.message}")
        error.problem = self
        return error

    def warn(self, count: int = 1) -> None:
        """Warn the user, at the line that called linkwise; ``count`` places have this problem."""
        more = f" (the first of {count} such places)" if count > 1 else ""
        warning = RobotFileWarning(f"{self.where}: {self.message}{more}")
        warning.problem = self
        warnings.warn(warning, stacklevel=user_level())

    def __str__(self) -> str:
        """Write it the way a compiler would."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        label = f"{self.element}: " if self.element else ""
        text = printable(f"{place}: {self.severity}: {label}{self.message}")
        return f"{text}\n    suggestion: {self.suggestion}" if self.suggestion else text


class _Words(Formatter):
    """Texts with facts in braces; ``{x!q}`` is a fact in quotes, cut to one line."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return quote(value) if conversion == "q" else super().convert_field(value, conversion)


_WORDS = _Words()


# --- where problems go ---------------------------------------------------------------------


_harmless: ContextVar[str] = ContextVar("harmless", default="")
_strict: ContextVar[bool] = ContextVar("strict", default=True)
_notes: ContextVar[list[Problem] | None] = ContextVar("notes", default=None)
_told: ContextVar[list[Problem] | None] = ContextVar("told", default=None)


def report(problem: Problem) -> None:
    """Raise an error, warn of what is told; while problems are collected, note it and go on."""
    notes, told = _notes.get(), _told.get()
    if notes is not None:
        notes.append(problem)
    elif problem.severity == ERROR:
        raise problem.error()
    elif problem.severity == HINT:
        return
    elif told is not None:
        told.append(problem)
    else:
        problem.warn()


def is_collecting() -> bool:
    """Whether problems are noted, and reading goes on past them."""
    return _notes.get() is not None


def is_strict() -> bool:
    """Whether what is doubtful is an error."""
    return _strict.get()


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Within the block, a context variable has another value."""
    before = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(before)


def harmless(outcome: str) -> AbstractContextManager[str]:
    """Within the block, errors are warnings that say what becomes of the part they are in."""
    return _set(_harmless, outcome)


def strictness(strict: bool) -> AbstractContextManager[bool]:
    """Within the block, what is doubtful is an error, or else a warning."""
    return _set(_strict, strict)


@contextmanager
def collecting() -> Iterator[list[Problem]]:
    """Note every problem instead of raising and warning; an error that is raised ends the block."""
    notes: list[Problem] = []
    with _set(_notes, notes):
        try:
            yield notes
        except RobotFileError as error:
            facts = {"message": str(error), "advice": ""}
            notes.append(error.problem or Problem(Code.OTHER, NOWHERE, facts))


@contextmanager
def one_warning_per_kind() -> Iterator[None]:
    """Warn once per kind of problem and file, at the end of the block, with the number of places.

    Nothing is told of a robot that is refused.
    """
    told: list[Problem] = []
    with _set(_told, told):
        yield
    kinds: dict[tuple[Code, str, Any], list[Problem]] = {}
    for problem in told:
        kind = (problem.code, problem.file, problem.facts.get("kind_of"))
        kinds.setdefault(kind, []).append(problem)
    for problems in kinds.values():
        problems[0].warn(len(problems))


def user_level() -> int:
    """The stack level, for the caller of this, of the first line that is not linkwise's own."""
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(own) and os.path.basename(file) != "contextlib.py":
            break
        frame, level = frame.f_back, level + 1
    return level


def warn(category: type[LinkwiseWarning], message: str) -> None:
    """Warn at the user's line: the first caller outside linkwise."""
    warnings.warn(message, category, stacklevel=user_level())


# --- how messages are worded ---------------------------------------------------------------


class _Hole(str):
    """The type of `HOLE`."""


HOLE = _Hole()  # a text that could not be read, and whose problem is noted already


# characters that count as printable, but are drawn as nothing: joiners, fillers, selectors
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """Write a text from a file so that a terminal, a log and a reader see what is there.

    Control characters, ends of lines, marks that turn the direction of writing, lone surrogates and
    whatever else is not seen become escapes such as ``\\x1b`` and ``\\u202e``.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() and not _UNSEEN.match(c) else ascii(c)[1:-1] for c in text)


def quote(text: str, longest: int = 60) -> str:
    """Write a value from a file so that it fits on one line of a message."""
    short = text if len(text) <= longest else text[:longest] + "..."
    return f'"{printable(short)}"'


def plain(word: str) -> str:
    """Write a tag or a key from a file so that it fits on one line of a message."""
    return quote(word)[1:-1]


@lru_cache(maxsize=256)
def suggestion(word: str, known: frozenset[str]) -> str | None:
    """Return the known word that ``word`` was probably meant to be."""
    if len(word) > 100:
        return None
    folded, lower = word.lower(), {k.lower(): k for k in sorted(known)}
    swapped = [k for k in lower if sorted(k) == sorted(folded)]
    close = swapped or get_close_matches(folded, lower, n=1, cutoff=0.8)
    # <axes> for <axis>: too short for the cutoff; digits count, as in arm1 and arm2
    close = close or [k for k in lower if _one_letter_differs(folded, k)]
    return lower[close[0]] if close else None


def _one_letter_differs(a: str, b: str) -> bool:
    """Whether two words of four letters differ in one letter."""
    if not len(a) == len(b) == 4 or not (a + b).isalpha():
        return False
    return sum(x != y for x, y in zip(a, b, strict=True)) == 1


def meant(word: object, known: Iterable[str], most: int = 2) -> str:
    """``; did you mean 'aba'?``, to end a message with; nothing where no word is like it."""
    near = get_close_matches(str(word)[:100], list(known), most)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class NoProgram(ValueError):
    """A method that is several programs, so that no one can be shown or counted."""


class StudyStopped(RuntimeError):
    """A study's workers were lost; the message says where what was computed is kept."""


class ProgramTooLarge(MemoryError):
    """A program has more operations than this machine has the memory to compile."""
