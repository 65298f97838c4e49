"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any

import click
from click.shell_completion import CompletionItem

from linkwise.errors import meant, printable, quote
from linkwise.load import USUAL, load
from linkwise.models import BUNDLED
from linkwise.robot import Robot

Command = Callable[..., Any]

json_option = click.option("--json", "as_json", is_flag=True,
                           help="Print JSON; docs/command_line.md lists the keys.")  # fmt: skip


def complete_robot(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """What a shell may complete a robot to: the name of a bundled robot, or a file."""
    names = [CompletionItem(name) for name in BUNDLED if name.startswith(begun)]
    return [*names, CompletionItem(begun, type="file")]


def complete_frame(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The frames of the robot that stands before; none where it cannot be loaded."""
    robot = ctx.params.get("robot")
    if robot is None:
        return []
    with suppress(ValueError, OSError, ImportError), warnings.catch_warnings(action="ignore"):
        names = load(robot).frame_names
        return [CompletionItem(name) for name in names if name.startswith(begun)]
    return []


def robot_argument(**settings: Any) -> Callable[[Command], Command]:
    """The argument ROBOT."""
    return click.argument("robot", shell_complete=complete_robot, **settings)


class Words(click.Choice[str]):
    """A choice of words whose error names the one that was probably meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The words there are, and the nearest."""
        known = super().get_invalid_choice_message(value, ctx)
        return known.rstrip(".") + (meant(value, self.choices, 1) or ".")


class NewFile(click.Path):
    """The path of a file to write; its folder must be there before the work begins."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a folder that does not exist."""
        path = str(super().convert(value, param, ctx))
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            self.fail(f"there is no folder {quote(folder)}; expected one that exists", param, ctx)
        return path


_REPAIR = click.option(
    "--repair",
    type=Words(["nearest"]),
    help="Replace physically inconsistent bodies by the nearest consistent ones.",
)
_READING = (
    click.option("--package-dir", "package_dirs", type=click.Path(), multiple=True,
                 help="A further folder to search for files that the robot file names; may be "
                      "repeated."),
    click.option("--loops", type=Words(["closed", "open"]), default="closed",
                 show_default=True,
                 help="Close the loops that constraints of an MJCF describe, or leave them open."),
    click.option("--strict/--no-strict", default=True, show_default=True,
                 help="Refuse physically inconsistent bodies, or take them as they are, with a "
                      "warning."),
    click.option("--mimic", type=Words(["follow", "free"]), default="follow",
                 show_default=True,
                 help="Let mimic joints follow the joints they name, or move on their own."),
    click.option("--base", type=Words(["fixed", "free"]), default="fixed", show_default=True,
                 help="Fix the base to the world, or let it move freely."),
)  # fmt: skip


_FRICTION = click.option(
    "--friction/--no-friction",
    default=None,
    help="Let joint damping and friction act, or leave them out without a warning.",
)


def reading_options(command: Command) -> Command:
    """How to read: the base, mimic joints, loops, inconsistent bodies, further folders."""
    return reduce(lambda made, option: option(made), _READING, command)


def robot_options(command: Command) -> Command:
    """How to load: how to read, and what to do about physically inconsistent bodies."""
    return reading_options(_FRICTION(_REPAIR(command)))


def refuse_robot_options(options: Mapping[str, Any]) -> None:
    """Raise if any of `robot_options` was given, for a command without a robot."""
    if any(value != USUAL.get(name, ()) for name, value in options.items()):
        raise click.UsageError(
            "--base, --mimic, --no-strict, --repair, --friction, --loops and --package-dir are for "
            "a ROBOT."
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
