"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import click

from linkwise.errors import printable
from linkwise.load import USUAL, load
from linkwise.robot import Robot

Command = Callable[..., Any]

_REPAIR = click.option(
    "--repair",
    type=click.Choice(["nearest"]),
    help="Replace physically inconsistent bodies by the nearest consistent ones.",
)
_READING = (
    click.option("--package-dir", "package_dirs", type=click.Path(), multiple=True,
                 help="A further folder to search for files that the robot file names; may be "
                      "repeated."),
    click.option("--loops", type=click.Choice(["closed", "open"]), default="closed",
                 show_default=True,
                 help="Close the loops that constraints of an MJCF describe, or leave them open."),
    click.option("--strict/--no-strict", default=True, show_default=True,
                 help="Refuse physically inconsistent bodies, or take them as they are, with a "
                      "warning."),
    click.option("--mimic", type=click.Choice(["follow", "free"]), default="follow",
                 show_default=True,
                 help="Let mimic joints follow the joints they name, or move on their own."),
    click.option("--base", type=click.Choice(["fixed", "free"]), default="fixed", show_default=True,
                 help="Fix the base to the world, or let it move freely."),
)  # fmt: skip


def reading_options(command: Command) -> Command:
    """How to read: the base, mimic joints, loops, inconsistent bodies, further folders."""
    return reduce(lambda made, option: option(made), _READING, command)


def robot_options(command: Command) -> Command:
    """How to load: how to read, and what to do about physically inconsistent bodies."""
    return reading_options(_REPAIR(command))


def refuse_robot_options(options: Mapping[str, Any]) -> None:
    """Raise if any of `robot_options` was given, for a command without a robot."""
    if any(value != USUAL.get(name, ()) for name, value in options.items()):
        raise click.UsageError(
            "--base, --mimic, --no-strict, --repair, --loops and --package-dir are for a ROBOT."
        )


def load_robot(name: str, **options: Any) -> Robot:
    """Load the robot that a command was given."""
    return load(name, **options)


def load_moving(name: str, **options: Any) -> Robot:
    """Load the robot that a command was given, which has joints to count or to measure."""
    robot = load_robot(name, **options)
    if not robot.nv:
        raise click.UsageError(
            f"{printable(robot.name)} has no joint that moves: there is nothing to count or to "
            "measure. linkwise info shows what it is; --base free lets it move."
        )
    return robot
