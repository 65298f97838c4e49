"""What commands print. Names come from robot files, so every line passes through `printable`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import IO, Any

import click

from linkwise.errors import printable

SHOWN = 5  # warnings about a file that are printed one by one


def say(text: object = "", *, err: bool = False) -> None:
    """Print lines."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)


def say_json(facts: Mapping[str, Any]) -> None:
    """Print facts as JSON, in ASCII."""
    click.echo(json.dumps(facts, indent=2))


def heading(title: str) -> None:
    """Print a section's title."""
    say(f"\n{title}\n{'=' * len(title)}")


class Failure(click.ClickException):
    """An error that the user can do something about: one line, exit code 1."""

    exit_code = 1

    def __init__(self, error: Exception) -> None:
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename is not None else ""
            message = f"{place}{error.strerror}"
        super().__init__(printable(" ".join(message.splitlines())))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error."""
        click.echo(f"linkwise: error: {self.format_message()}", file=file, err=file is None)


class NoteHandler(logging.Handler):
    """Prints what the library logs, such as bodies that were repaired."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        say(f"linkwise: note: {record.getMessage()}", err=True)


class WarningReporter:
    """Prints warnings as one line each, and only counts those after the first few."""

    def __init__(self) -> None:
        self._count = 0

    def show(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Take the place of `warnings.showwarning`."""
        self._count += 1
        if self._count <= SHOWN:
            say(f"linkwise: warning: {' '.join(str(message).splitlines())}", err=True)

    def close(self) -> None:
        """Say how many were not printed."""
        if self._count > SHOWN:
            say(f"linkwise: warning: and {self._count - SHOWN} more", err=True)
