"""The exceptions and warnings a user can meet."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache


class RobotFileError(ValueError):
    """Something is wrong with a robot description: says where, what, and what was expected."""

    where: Where | None = None  # the place, and what is wrong there, for programs
    problem: str = ""


class RobotFileWarning(UserWarning):
    """Something in a robot description was ignored or assumed."""

    where: Where | None = None
    problem: str = ""


class BackendUnavailable(RuntimeError):
    """A backend's library is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Where:
    """A place in a robot description: ``arm.urdf:12: <joint name="elbow">``."""

    path: str
    line: int | None = None
    element: str = ""

    def __str__(self) -> str:
        """Write the place the way a compiler would."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.element}" if self.element else place

    def error(self, message: str) -> RobotFileError:
        """Return the error to raise for this place."""
        error = RobotFileError(f"{self}: {message}")
        error.where, error.problem = self, message
        return error

    def warn(self, message: str) -> None:
        """Tell the user about something ignored or assumed at this place."""
        warning = RobotFileWarning(f"{self}: {message}")
        warning.where, warning.problem = self, message
        warnings.warn(warning, stacklevel=3)


NOWHERE = Where("<robot>")


# --- how messages are worded ---------------------------------------------------------------


def quote(text: str, longest: int = 60) -> str:
    """Write a value from a file so that it fits on one line of a message."""
    short = text if len(text) <= longest else text[:longest] + "..."
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + '"'


@lru_cache(maxsize=256)
def suggestion(word: str, known: frozenset[str]) -> str | None:
    """Return the known word that ``word`` was probably meant to be."""
    if len(word) > 100:
        return None
    folded, lower = word.lower(), {k.lower(): k for k in sorted(known)}
    swapped = [k for k in lower if sorted(k) == sorted(folded)]
    close = swapped or get_close_matches(folded, lower, n=1, cutoff=0.8)
    return lower[close[0]] if close else None
