"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from linkwise.load import load
from linkwise.robot import Robot

Command = Callable[..., Any]


def robot_options(command: Command) -> Command:
    """``--no-strict`` and ``--repair``: what to do about bodies that cannot exist."""
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
    return strict(repair(command))


def load_robot(name: str, no_strict: bool, repair: str | None) -> Robot:
    """Load the robot that a command was given."""
    return load(name, strict=not no_strict, repair=repair)


def tip(robot: Robot) -> str:
    """The frame moved by the most joints; the last of them where there are several."""
    tree = robot.tree
    return max(reversed(robot.frame_names), key=lambda name: len(tree.path(tree.frames[name].link)))


def exists(robot: Robot, function: str, frame: str) -> bool:
    """Whether a function exists for this robot: an operational inertia needs six joints."""
    return (
        function != "operational_inertia" or len(robot.tree.path(robot.tree.frames[frame].link)) > 5
    )


def progress(message: str) -> None:
    """Say on stderr what is going on, for work that takes a while."""
    click.echo(f"linkwise: {message}", err=True)
