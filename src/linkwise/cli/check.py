"""``linkwise check``: every problem of a robot file, for people and for CI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from linkwise.checking.collect import check as problems_of
from linkwise.checking.mend import Repaired, repair
from linkwise.cli.options import NewFile, complete_robot, json_option, reading_options
from linkwise.cli.output import BAD, DOUBTFUL, GOOD, HINTED, answer, say
from linkwise.codes import ERROR, HINT, WARNING
from linkwise.errors import Problem
from linkwise.load import bundled
from linkwise.models import Bundled

MOST = 100  # problems that are printed
COLOURS = {ERROR: BAD, WARNING: DOUBTFUL, HINT: HINTED}


class FileOrBundled(click.Path):
    """The path of a file that exists, or the name of a bundled robot, which has none."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Let names of bundled robots pass."""
        return value if bundled(value) is not None else str(super().convert(value, param, ctx))


@click.command()
@click.argument("file", type=FileOrBundled(), shell_complete=complete_robot)
@json_option
@click.option("--repair", "out", type=NewFile(), metavar="OUT",
              help="Write a repaired copy of the file here, and list every change.")  # fmt: skip
@reading_options
@click.pass_context
def check(ctx: click.Context, /, file: str, as_json: bool, out: str | None, **options: Any) -> None:
    """Check the robot file FILE and print every problem with its place and a suggestion.

    FILE is a URDF or an MJCF, or the name of a bundled robot, which has no file; of an MJCF, the
    files that it includes are checked too.

    --repair mends misspelt words, exchanged limits and children written twice; in a URDF also axes
    that are not of unit length, revolute joints without a range, and physically inconsistent
    inertias. FILE and the files it includes are never changed. The exit code is 1 if there are
    errors, 0 if there are none or only warnings.
    """
    robot = bundled(file)
    if robot is not None:
        if out is not None:
            raise click.UsageError(f"--repair: {file} is a bundled robot, which has no file")
        answer(as_json, lambda: _facts([], None, None, None), lambda: _show_bundled(robot))
        return
    problems = problems_of(file, **options)
    repaired, left = (None, None) if out is None else _write(file, out, options)

    def show() -> None:
        _show(problems)
        if out is not None:
            _show_repair(file, out, repaired, left)

    answer(as_json, lambda: _facts(problems, out, repaired, left), show)
    ctx.exit(1 if count(problems if left is None else left, ERROR) else 0)


def _write(
    file: str, out: str, options: Mapping[str, Any]
) -> tuple[Repaired | None, list[Problem] | None]:
    """Write the repaired file; returns what was changed and what is still wrong with it."""
    if Path(out).exists() and Path(out).samefile(file):
        raise click.UsageError("--repair: give another file than FILE, which is never changed")
    if Path(out).exists():
        raise FileExistsError(f"--repair: {out} exists; expected the name of a new file")
    repaired = repair(file, **options)
    if repaired is None:
        return None, None
    Path(out).write_bytes(repaired.data)
    return repaired, problems_of(out, **options)


def _show_bundled(robot: Bundled) -> None:
    """Say what published numbers leave to be desired."""
    say(f"{robot.name}: a bundled robot, of published numbers and no file: {robot.source}")
    for note in robot.notes:
        say(f"note: {note}", colour=HINTED)
    say(summary([]), colour=GOOD)


def _show(problems: list[Problem]) -> None:
    for problem in problems[:MOST]:
        say(problem, colour=COLOURS[problem.severity])
    if len(problems) > MOST:
        say(f"{len(problems) - MOST} more problems")
    say(summary(problems), colour=BAD if count(problems, ERROR) else GOOD)


def _show_repair(
    file: str, out: str, repaired: Repaired | None, left: list[Problem] | None
) -> None:
    if repaired is None or left is None:
        say(f"{out}: not written: the file cannot be read")
        return
    for line, change in repaired.changes:
        say(f"repaired: {file}:{line}: {change}")
    changes = "1 change" if len(repaired.changes) == 1 else f"{len(repaired.changes)} changes"
    say(f"{out}: written, {changes}; left: {summary(left)}")


def count(problems: list[Problem], severity: str) -> int:
    """How many problems are errors, warnings or hints."""
    return Counter(problem.severity for problem in problems)[severity]


def summary(problems: list[Problem]) -> str:
    """``3 errors, 2 warnings``, and hints where there are some."""
    counts = {word: count(problems, word) for word in (ERROR, WARNING, HINT)}
    said = [(word, n) for word, n in counts.items() if n or word != HINT]
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for word, n in said)


def _facts(
    problems: list[Problem], out: str | None, repaired: Repaired | None, left: list[Problem] | None
) -> dict[str, object]:
    facts: dict[str, object] = {
        "problems": [problem.as_dict() for problem in problems],
        "errors": count(problems, ERROR),
        "warnings": count(problems, WARNING),
    }
    if out is not None:
        changes = repaired.changes if repaired else []
        facts["repair"] = {
            "path": out if repaired else None,
            "changes": [{"line": line, "change": change} for line, change in changes],
            "errors_left": None if left is None else count(left, ERROR),
        }
    return facts
