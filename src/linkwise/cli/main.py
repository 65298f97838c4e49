"""``linkwise``: the group of commands, and what an error looks like on a terminal."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import linkwise
from linkwise.cli.bench import bench
from linkwise.cli.cache import cache
from linkwise.cli.check import check
from linkwise.cli.convert import convert
from linkwise.cli.demo import demo
from linkwise.cli.export import export
from linkwise.cli.ik import ik
from linkwise.cli.info import info
from linkwise.cli.ops import ops
from linkwise.cli.output import Failure, NoteHandler, WarningReporter, say
from linkwise.cli.report import report
from linkwise.cli.sim import sim
from linkwise.cli.source import source
from linkwise.cli.study import study
from linkwise.cli.view import view
from linkwise.errors import (
    BackendUnavailable,
    CacheWarning,
    LimitWarning,
    RobotFileWarning,
    StudyStopped,
    meant,
)

# what users can do something about
FAILURES = (ValueError, TypeError, OSError, ImportError, MemoryError, BackendUnavailable,
            StudyStopped)  # fmt: skip
INTERRUPTED = 130  # what a shell reports for a process ended by SIGINT


class Commands(click.Group):
    """A group whose commands end with a message, never with a traceback."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; of one that does not exist, say which may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = meant(args[0], self.commands)
            if not hint or "Did you mean" in error.format_message():
                raise
            raise click.UsageError(error.message.rstrip(".") + hint, ctx) from None  # older click

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        _print_anything()
        with _notes(), _warnings():
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise  # click ends quietly
            except KeyboardInterrupt:
                say("linkwise: interrupted", err=True)
                ctx.exit(INTERRUPTED)
            except FAILURES as error:
                raise Failure(error) from error


def _print_anything() -> None:
    """Where a terminal's encoding lacks a character, print a question mark, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def _notes() -> Iterator[None]:
    logger, handler = logging.getLogger("linkwise"), NoteHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def _warnings() -> Iterator[None]:
    reporter = WarningReporter()
    with warnings.catch_warnings():
        warnings.simplefilter("always", RobotFileWarning)
        warnings.simplefilter("always", LimitWarning)
        warnings.simplefilter("default", CacheWarning)
        warnings.showwarning = reporter.show
        try:
            yield
        finally:
            reporter.close()


EPILOG = """ROBOT is the path of a URDF or MJCF file, or a bundled robot (puma560, iiwa14).

\b
Exit codes: 0 success; 1 wrong input or a failed check; 2 wrong usage; 130 interrupted.
Shell completion, in ~/.bashrc or ~/.zshrc (zsh_source); fish: docs/command_line.md
  eval "$(_LINKWISE_COMPLETE=bash_source linkwise)"
"""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.version_option(linkwise.__version__, prog_name="linkwise")
def main() -> None:
    """Robot dynamics, compiled link by link."""


COMMANDS = (info, view, ops, check, convert, bench, report, source, export, sim, ik, study, cache,
            demo)  # fmt: skip
for command in COMMANDS:
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="linkwise")
