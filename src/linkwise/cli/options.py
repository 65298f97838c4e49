"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import click

from linkwise.load import load
from linkwise.robot import Robot

Command = Callable[..., Any]

_USUAL = {
    "base": "fixed", "mimic": "follow", "no_strict": False, "repair": None, "loops": "refuse",
    "package_dirs": (),
}  # fmt: skip
_OPTIONS = (
    click.option("--package-dir", "package_dirs", type=click.Path(), multiple=True,
                 help="A further folder for files that the robot file names; may be repeated."),
    click.option("--loops", type=click.Choice(["refuse", "open"]), default="refuse",
                 help="Refuse constraints that close a loop of an MJCF, or leave them out."),
    click.option("--repair", type=click.Choice(["nearest"]),
                 help="Replace bodies that cannot exist by the nearest ones that can."),
    click.option("--no-strict", is_flag=True,
                 help="Take bodies that cannot exist as the file has them, with a warning."),
    click.option("--mimic", type=click.Choice(["follow", "free"]), default="follow",
                 help="Let mimic joints follow the joints they name, or move on their own."),
    click.option("--base", type=click.Choice(["fixed", "free"]), default="fixed",
                 help="Hold the base, or let it fly."),
)  # fmt: skip


def robot_options(command: Command) -> Command:
    """How to load: the base, mimic joints, loops, bodies that cannot exist, further folders."""
    return reduce(lambda made, option: option(made), _OPTIONS, command)


def refuse_robot_options(options: Mapping[str, Any]) -> None:
    """Raise if any of `robot_options` was given, for a command without a robot."""
    if options != _USUAL:
        raise click.UsageError(
            "--base, --mimic, --no-strict, --repair, --loops and --package-dir are for a ROBOT."
        )


def load_robot(name: str, **options: Any) -> Robot:
    """Load the robot that a command was given."""
    return load(name, strict=not options.pop("no_strict"), **options)
