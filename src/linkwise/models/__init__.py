"""Bundled robots: published parameters, every number with its source."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.io.dh import DHRow, describe_dh
from linkwise.model.description import RobotDescription
from linkwise.models import iiwa14, puma560


@dataclass(frozen=True)
class Bundled:
    """A robot's table, and whether its published inertias hold up to the checks of `load`."""

    name: str
    rows: tuple[DHRow, ...]
    convention: str
    strict: bool

    def describe(self) -> RobotDescription:
        """The robot as a description."""
        return describe_dh(self.rows, self.convention, self.name)


BUNDLED = {
    "puma560": Bundled("puma560", puma560.ROWS, "standard", strict=False),
    "iiwa14": Bundled("iiwa14", iiwa14.ROWS, "modified", strict=False),
}
