"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from linkwise.load import load
from linkwise.robot import Robot

Command = Callable[..., Any]


def robot_options(command: Command) -> Command:
    """How to load: the base, what mimic joints do, and bodies that cannot exist."""
    strict = click.option(
        "--no-strict",
        is_flag=True,
        help="Take bodies that cannot exist as the file has them, with a warning.",
    )
    repair = click.option(
        "--repair",
        type=click.Choice(["nearest"]),
        help="Replace bodies that cannot exist by the nearest ones that can.",
    )
    base = click.option(
        "--base",
        type=click.Choice(["fixed", "free"]),
        default="fixed",
        help="Hold the base, or let it fly.",
    )
    mimic = click.option(
        "--mimic",
        type=click.Choice(["follow", "free"]),
        default="follow",
        help="Let mimic joints follow theirs, or move on their own.",
    )
    return base(mimic(strict(repair(command))))


def load_robot(name: str, **options: Any) -> Robot:
    """Load the robot that a command was given."""
    return load(name, strict=not options.pop("no_strict"), **options)
