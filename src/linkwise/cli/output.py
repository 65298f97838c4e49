"""What commands print. Names come from robot files, so every line passes through `printable`.

Colours are for terminals: click leaves them out of files and pipes, and ``NO_COLOR`` anywhere.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import IO, Any

import click
import numpy as np

from linkwise.errors import printable
from linkwise.text import progress

SHOWN = 5  # warnings about a file that are printed one by one
GOOD, BAD, DOUBTFUL, HINTED = "green", "red", "yellow", "cyan"
# options that messages name as ways out, as a command has them
AS_OPTIONS = {
    "strict=False": "--no-strict",
    'repair="nearest"': "--repair nearest",
    'base="free"': "--base free",
    'mimic="free"': "--mimic free",
    'loops="open"': "--loops open",
    "friction=True when it is loaded, or robot.with_friction(),": "--friction",
    "friction=False": "--no-friction",
    "limits='stop' or 'event'": "--limits stop or --limits event",
    "limits='ignore'": "--limits ignore",
    "expected limits=None, or": "expected no --limits, or, in Python,",
    "lw.control.saturated(controller) for efforts": (
        "lw.control.saturated(controller), in Python, for efforts"
    ),
}


def say(
    text: object = "", *, err: bool = False, colour: str | None = None, bold: bool | None = None
) -> None:
    """Print lines, after taking away a bar of progress; in a colour, on a terminal."""
    progress.end()
    shown = "\n".join(map(printable, str(text).split("\n")))
    styled = click.style(shown, fg=colour, bold=bold) if colour or bold else shown
    click.echo(styled, err=err, color=_in_colour())


def _in_colour() -> bool | None:
    """None, which lets click look whether it prints to a terminal; False where NO_COLOR is set."""
    return False if os.environ.get("NO_COLOR") else None


def answer(as_json: bool, facts: Callable[[], Mapping[str, Any]], show: Callable[[], None]) -> None:
    """Print what a command found: facts as JSON, or what it shows people.

    The one way to JSON of every command; docs/command_line.md lists the keys.
    """
    if as_json:
        say_json(facts())
    else:
        show()


def say_json(facts: Mapping[str, Any]) -> None:
    """Print facts as JSON, in ASCII; null for numbers that JSON does not have."""
    progress.end()
    click.echo(json.dumps(_plain(facts), indent=2, allow_nan=False))


def _plain(x: Any) -> Any:
    """A value of JSON: arrays become lists; NaN and infinite numbers become None."""
    if isinstance(x, Mapping):
        return {key: _plain(value) for key, value in x.items()}
    if isinstance(x, np.ndarray | np.generic):
        return _plain(x.tolist())
    if isinstance(x, Sequence) and not isinstance(x, str):
        return [_plain(value) for value in x]
    return None if isinstance(x, float) and not isfinite(x) else x


def heading(title: str) -> None:
    """Print a section's title."""
    say()
    say(f"{title}\n{'=' * len(title)}", bold=True)


def as_options(message: str) -> str:
    """A message of the library as one line, with options of the command for those of Python."""
    for written, option in AS_OPTIONS.items():
        message = message.replace(written, option)
    message = re.sub(r"package_dirs=(\[(.*?)\])?", r"--package-dir \2", message)
    return " ".join(message.splitlines())


class Failure(click.ClickException):
    """An error that the user can do something about: one line, exit code 1."""

    exit_code = 1

    def __init__(self, error: Exception) -> None:
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename is not None else ""
            message = f"{place}{error.strerror}"
        super().__init__(printable(as_options(message)))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error."""
        progress.end()
        title = click.style("linkwise: error:", fg=BAD, bold=True)
        text = f"{title} {self.format_message()}"
        click.echo(text, file=file, err=file is None, color=_in_colour())


class NoteHandler(logging.Handler):
    """Prints what the library logs, such as bodies that were repaired."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        say(f"linkwise: note: {record.getMessage()}", err=True, colour=HINTED)


class WarningReporter:
    """Prints warnings as one line each, and only counts those after the first few."""

    def __init__(self) -> None:
        self._count = 0

    def show(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Take the place of `warnings.showwarning`."""
        self._count += 1
        if self._count <= SHOWN:
            text = f"linkwise: warning: {as_options(str(message))}"
            say(text, err=True, colour=DOUBTFUL)

    def close(self) -> None:
        """Say how many were not printed."""
        if self._count > SHOWN:
            more = f"linkwise: warning: and {self._count - SHOWN} more"
            say(more, err=True, colour=DOUBTFUL)
