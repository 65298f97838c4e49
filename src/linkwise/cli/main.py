"""``linkwise``: the group of commands, and what an error looks like on a terminal."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

import linkwise
from linkwise.cli.bench import bench
from linkwise.cli.cache import cache
from linkwise.cli.check import check
from linkwise.cli.demo import demo
from linkwise.cli.info import info
from linkwise.cli.ops import ops
from linkwise.cli.source import source
from linkwise.engine.cache import CacheWarning
from linkwise.errors import BackendUnavailable, RobotFileWarning

INTERRUPTED = 130  # what a shell reports for a process ended by SIGINT
SHOWN = 5  # warnings about a file that are printed one by one


class Failure(click.ClickException):
    """An error that the user can do something about: one line, exit code 1."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error."""
        click.echo(f"linkwise: error: {self.format_message()}", file=file, err=file is None)


class Commands(click.Group):
    """A group whose commands end with a message, never with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        _print_anything()
        with _notes(), warnings.catch_warnings():
            reporter = WarningReporter()
            warnings.simplefilter("always", RobotFileWarning)
            warnings.simplefilter("default", CacheWarning)
            warnings.showwarning = reporter.show
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise  # click ends quietly
            except KeyboardInterrupt:
                click.echo("linkwise: interrupted", err=True)
                ctx.exit(INTERRUPTED)
            except (ValueError, TypeError, OSError, BackendUnavailable) as error:
                raise Failure(_one_line(error)) from error
            finally:
                reporter.close()


class _NoteHandler(logging.Handler):
    """Prints what the library logs, such as bodies that were repaired."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        click.echo(f"linkwise: note: {record.getMessage()}", err=True)


@contextmanager
def _notes() -> Iterator[None]:
    logger, handler = logging.getLogger("linkwise"), _NoteHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _print_anything() -> None:
    """Where a terminal's encoding lacks a character, print a question mark, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror}"
    return " ".join(str(error).splitlines())


class WarningReporter:
    """Prints warnings as one line each, and only counts those after the first few."""

    def __init__(self) -> None:
        self._count = 0

    def show(self, message: Warning | str, *_: Any, **__: Any) -> None:
        """Take the place of `warnings.showwarning`."""
        self._count += 1
        if self._count <= SHOWN:
            click.echo(f"linkwise: warning: {message}", err=True)

    def close(self) -> None:
        """Say how many were not printed."""
        if self._count > SHOWN:
            click.echo(f"linkwise: warning: and {self._count - SHOWN} more", err=True)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="ROBOT is the path of a URDF or MJCF file, or a bundled robot (puma560, iiwa14).",
)
@click.version_option(linkwise.__version__, prog_name="linkwise")
def main() -> None:
    """Robot dynamics, compiled link by link."""


for command in (info, ops, check, bench, source, cache, demo):
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="linkwise")
