"""Bundled robots: published parameters, every number with its source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwise.io.dh import DHRow, describe_dh
from linkwise.model.description import BodyInertia, RobotDescription
from linkwise.models import iiwa14, puma560


@dataclass(frozen=True)
class Bundled:
    """A robot's table, its sources, and what its published numbers leave to be desired.

    Where they break a rule of `load`, the robot is taken as written (``strict=False``), and
    ``notes`` says so; `linkwise info` prints sources and notes.
    """

    name: str
    rows: tuple[DHRow, ...]
    convention: str
    strict: bool
    source: str
    notes: tuple[str, ...]
    base: BodyInertia | None = None  # of the base link, if it is published

    def describe(self) -> RobotDescription:
        """The robot as a description."""
        robot = describe_dh(self.rows, self.convention, self.name)
        base, *others = robot.links
        return replace(robot, links=(replace(base, inertia=self.base), *others))


BUNDLED = {
    each.name: each
    for each in (
        Bundled("puma560", puma560.ROWS, "standard", False, puma560.SOURCE, puma560.NOTES),
        Bundled("iiwa14", iiwa14.ROWS, "modified", False, iiwa14.SOURCE, iiwa14.NOTES, iiwa14.BASE),
    )
}
