"""Ways to a robot: a file, a bundled name, a DH table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from linkwise.errors import RobotFileError, RobotFileWarning
from linkwise.io.dh import Row, describe_dh
from linkwise.io.urdf import read_urdf
from linkwise.model.bodies import Policy
from linkwise.model.build import build
from linkwise.model.description import RobotDescription
from linkwise.models import BUNDLED
from linkwise.robot import Robot

REPAIRS = (None, "nearest")


def load(
    source: str | os.PathLike[str],
    *,
    strict: bool = True,
    repair: str | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> Robot:
    """Load a robot: the path of a URDF file, or the name of a bundled robot.

    A body that cannot exist (no mass, indefinite inertia, triangle inequality broken) is refused
    with its place in the file; ``strict=False`` takes it as written with a warning,
    ``repair="nearest"`` replaces it by the nearest body that can exist and logs what changed.
    ``package_dirs`` are further folders for ``package://`` paths.
    """
    _check_repair(repair)
    if isinstance(source, str) and source in BUNDLED and not Path(source).exists():
        return _bundled(source)
    if not Path(source).exists():
        names = ", ".join(sorted(BUNDLED))
        raise RobotFileError(f"{source}: no such file; bundled robots are {names}")
    description = read_urdf(source, package_dirs=package_dirs)
    return robot_from(description, strict=strict, repair=repair)


def from_dh(
    rows: Sequence[Row],
    convention: str = "standard",
    *,
    name: str = "dh",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    strict: bool = True,
    repair: str | None = None,
) -> Robot:
    """Make a robot from a Denavit-Hartenberg table, one `DHRow` or mapping per joint.

    ``convention``: ``"standard"`` (link frame at the far end) or ``"modified"`` (Craig).
    """
    _check_repair(repair)
    return robot_from(describe_dh(rows, convention, name, gravity), strict=strict, repair=repair)


def robot_from(
    description: RobotDescription, *, strict: bool = True, repair: str | None = None
) -> Robot:
    """Build a robot from a description."""
    return Robot(description, strict=strict, repair=repair, friction=friction)


def _bundled(name: str) -> Robot:
    """A bundled robot; where its published numbers break a rule, models/ says so, not a warning."""
    bundled = BUNDLED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotFileWarning)
        return robot_from(bundled.describe(), strict=bundled.strict)


def _check_repair(repair: str | None) -> None:
    if repair not in REPAIRS:
        raise ValueError(f"repair {repair!r}: expected None or 'nearest'")
