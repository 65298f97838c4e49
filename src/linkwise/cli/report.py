"""``linkwise report``: all there is about a robot on one page."""

from __future__ import annotations

import os
from typing import Any

import click

from linkwise.checking.collect import check as problems
from linkwise.cli.options import load_moving, robot_options
from linkwise.cli.output import say
from linkwise.errors import Problem
from linkwise.load import USUAL
from linkwise.report.findings import Findings
from linkwise.report.sections import write_report
from linkwise.text import file_size, progress


@click.command()
@click.argument("robot")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True),
              default="report.html", show_default=True, help="The file to write.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0), default=0.25, show_default=True,
              help="Seconds spent on each row of the speed table; 0 leaves it out.")  # fmt: skip
@robot_options
@click.pass_context
def report(ctx: click.Context, /, robot: str, output: str, seconds: float, **loading: Any) -> None:
    """Write a report on ROBOT as one HTML file.

    It shows the tree, joints and inertias, problems of the file, how far methods agree with each
    other and with other libraries, operation counts, speed, workspace and a simulated swing.
    Pictures need matplotlib (pip install 'linkwise[plot]'). The exit code is 1 if a check fails.
    """
    loaded = load_moving(robot, **loading)
    found = Findings(loaded, robot, problems_of(robot, loading), seconds, progress)
    write(found, output)
    if not all(check.ok for check in found.checks):
        ctx.exit(1)


def write(found: Findings, output: str) -> None:
    """Write a report, and say where it is."""
    path = write_report(found, output)
    failed = sum(not check.ok for check in found.checks)
    verdict = f"{failed} of {len(found.checks)} checks FAILED" if failed else "all checks passed"
    say(f"{path}: {file_size(path.stat().st_size)}, opens in any browser; {verdict}")


def problems_of(robot: str, loading: dict[str, Any]) -> list[Problem] | None:
    """Problems of a robot's file; None where it is no file."""
    if not os.path.exists(robot):
        return None
    known = {name: value for name, value in loading.items() if name in (*USUAL, "package_dirs")}
    return problems(robot, **known)
