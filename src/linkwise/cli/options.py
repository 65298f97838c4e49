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
                 help="A further folder where files that ROBOT names may lie; may be repeated."),
    click.option("--loops", type=click.Choice(["refuse", "open"]), default="refuse",
                 show_default=True,
                 help="Refuse an MJCF whose constraints close a loop, or leave these out."),
    click.option("--repair", type=click.Choice(["nearest"]),
                 help="Replace bodies that cannot exist by the nearest ones that can."),
    click.option("--no-strict", is_flag=True,
                 help="Take bodies that cannot exist as the file has them, with a warning, instead "
                      "of refusing the file."),
    click.option("--mimic", type=click.Choice(["follow", "free"]), default="follow",
                 show_default=True,
                 help="Let mimic joints follow the joints they name, or move on their own."),
    click.option("--base", type=click.Choice(["fixed", "free"]), default="fixed", show_default=True,
                 help="Fix the base to the world, or let it move freely."),
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
