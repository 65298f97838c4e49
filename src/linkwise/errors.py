"""The exceptions and warnings a user can meet."""

from __future__ import annotations

import warnings
from dataclasses import dataclass


class RobotFileError(ValueError):
    """Something is wrong with a robot description: says where, what, and what was expected."""


class RobotFileWarning(UserWarning):
    """Something in a robot description was ignored or assumed."""


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
        return RobotFileError(f"{self}: {message}")

    def warn(self, message: str) -> None:
        """Tell the user about something ignored or assumed at this place."""
        warnings.warn(f"{self}: {message}", RobotFileWarning, stacklevel=3)


NOWHERE = Where("<robot>")
