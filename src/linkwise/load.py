"""Ways to a robot: a file, a bundled name, a DH table, a model of another library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise.errors import RobotFileError, one_warning_per_kind, strictness
from linkwise.io.dh import Row, describe_dh
from linkwise.io.mjequality import Reading
from linkwise.io.read import WORDS, check_option, is_text, read
from linkwise.model import edit
from linkwise.model.bodies import Policy
from linkwise.model.description import RobotDescription
from linkwise.models import BUNDLED
from linkwise.robot import Robot


def load(
    source: str | os.PathLike[str],
    *,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    friction: bool = False,
    mimic: str = "follow",
    strict: bool = True,
    repair: str | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    loops: str = "refuse",
) -> Robot:
    """Load a robot: the path of a URDF or MJCF file, its text, or the name of a bundled robot.

    The format is recognised by content, not by the ending of the name; MJCF is compiled by MuJoCo,
    an extra (``pip install 'linkwise[mujoco]'``).

    Joints go depth first. ``q`` of a spherical joint is a unit quaternion (w, x, y, z), of a free
    joint that and the position; ``qd`` of a free joint is (angular, linear) in the link's axes; a
    planar joint has (x, y, angle).

    ``base="free"`` lets the base fly: six more degrees of freedom, first in ``q`` and ``qd``.
    ``gravity`` replaces the file's, which in a URDF is (0, 0, -9.81). ``friction=True`` lets the
    dynamics use the file's joint damping and Coulomb friction; they are otherwise kept as data.
    Mimic joints, and joints that an MJCF ties by ``<equality>``, follow the joint they name;
    ``mimic="free"`` gives them numbers of their own, as Pinocchio does by default and MuJoCo
    always.

    A body that cannot exist (indefinite inertia, triangle inequality broken; up to 5 % beyond it
    only warns) and what else is
    doubtful is refused with its place in the file; ``strict=False`` takes it with a warning, and
    ``repair="nearest"`` replaces such a body by the nearest that can exist and logs what changed.
    A robot without inertia loads for kinematics; where a joint moves none, functions that divide
    by it are refused when they are called, or with ``strict=False`` give NaN.

    Files that the robot file names are looked for in the package or repository around it and in
    ``package_dirs``, further folders. Nothing else is opened.

    A constraint that closes a loop (``<connect>``, ``<weld>`` of MJCF) is refused;
    ``loops="open"`` leaves it out with a warning.
    """
    options = Options(base, gravity, friction, strict, repair, mimic, loops)
    if isinstance(source, str) and source in BUNDLED and not os.path.exists(os.fspath(source)):
        return _bundled(source, options)
    if not is_text(source) and not os.path.exists(os.fspath(source)):
        names = ", ".join(sorted(BUNDLED))
        raise RobotFileError(f"{source or repr(source)}: no such file; bundled robots are {names}")
    with one_warning_per_kind(), strictness(strict):
        return options.robot(read(source, package_dirs, loops, mimic))


def from_mujoco(
    model: Any,
    *,
    name: str = "",
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    friction: bool = False,
    mimic: str = "follow",
    strict: bool = True,
    repair: str | None = None,
    loops: str = "refuse",
) -> Robot:
    """Make a robot from a `mujoco.MjModel` in memory; options as in `load`.

    Numbers of hinges, slides and balls are MuJoCo's. A free joint has position, then quaternion
    there, and (linear in world axes, angular in body axes) velocities; here quaternion, then
    position, and (angular, linear), both in body axes.
    """
    options = Options(base, gravity, friction, strict, repair, mimic, loops)
    from linkwise.io.mjmodel import describe_mjmodel

    reading = Reading(loops, mimic == "follow")
    with one_warning_per_kind(), strictness(strict):
        return options.robot(describe_mjmodel(model, name, reading=reading))


def from_pinocchio(
    model: Any,
    *,
    name: str = "",
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    friction: bool = False,
    mimic: str = "follow",
    strict: bool = True,
    repair: str | None = None,
) -> Robot:
    """Make a robot from a `pinocchio.Model` in memory; options as in `load`.

    Joints keep their names and go depth first, which may not be Pinocchio's order. Continuous
    joints are angles here, cosine and sine there; quaternions start with w here, end with it
    there; a free joint is quaternion, position and (angular, linear) here, both the other way
    round there; a planar joint's rates are along the joint's axes here, along the link's there.
    """
    options = Options(base, gravity, friction, strict, repair, mimic)
    from linkwise.io.pinocchio import describe_pinocchio

    with one_warning_per_kind():
        return options.robot(describe_pinocchio(model, name))


def from_dh(
    rows: Sequence[Row],
    convention: str = "standard",
    *,
    name: str = "dh",
    base: str = "fixed",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    strict: bool = True,
    repair: str | None = None,
) -> Robot:
    """Make a robot from a Denavit-Hartenberg table, one `DHRow` or mapping per joint.

    ``convention``: ``"standard"`` (link frame at the far end) or ``"modified"`` (Craig).
    """
    options = Options(base, None, False, strict, repair)
    return options.robot(describe_dh(rows, convention, name, gravity))


@dataclass(frozen=True)
class Options:
    """What is the same for every way to a robot."""

    base: str = "fixed"
    gravity: Sequence[float] | None = None
    friction: bool = False
    strict: bool = True
    repair: str | None = None
    mimic: str = "follow"
    loops: str = "refuse"
    quiet: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown words before any file is read."""
        for option in WORDS:
            check_option(option, getattr(self, option))

    def robot(self, description: RobotDescription) -> Robot:
        """Build a robot from a description."""
        if self.mimic == "free":
            description = edit.free_mimics(description)
        if self.gravity is not None:
            description = edit.with_gravity(description, self.gravity)
        if self.base == "free":
            description = edit.with_free_base(description)
        return Robot(description, Policy(self.strict, self.repair, self.friction, self.quiet))


def _bundled(name: str, options: Options) -> Robot:
    """A bundled robot; where its published numbers break a rule, models/ says so, not a warning."""
    bundled = BUNDLED[name]
    options = replace(options, strict=options.strict and bundled.strict, quiet=True)
    return options.robot(bundled.describe())
