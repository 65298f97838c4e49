"""``linkwise report``: all there is about a robot on one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from linkwise.bench.operations import counted_facts
from linkwise.checking.collect import check as problems
from linkwise.cli.facts import bundled_facts, check_facts, robot_facts
from linkwise.cli.options import NewFile, json_option, load_moving, robot_argument, robot_options
from linkwise.cli.output import BAD, GOOD, answer, say
from linkwise.errors import Problem
from linkwise.load import USUAL
from linkwise.report.findings import Findings
from linkwise.report.sections import write_report
from linkwise.text import file_size, progress


@click.command()
@robot_argument()
@click.option("-o", "--output", type=NewFile(), default="report.html", show_default=True,
              help="The file to write.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0), default=0.25, show_default=True,
              help="Seconds spent on each row of the speed table; 0 leaves it out.")  # fmt: skip
@json_option
@robot_options
@click.pass_context
def report(
    ctx: click.Context, /, robot: str, output: str, seconds: float, as_json: bool, **loading: Any
) -> None:
    """Write a report on ROBOT as one HTML file.

    It shows the tree, joints and inertias, problems of the file, how far methods agree with each
    other and with other libraries, operation counts, speed, workspace and a simulated swing.
    Pictures need matplotlib (pip install 'linkwise[plot]'). The exit code is 1 if a check fails.
    """
    loaded = load_moving(robot, **loading)
    found = Findings(loaded, robot, problems_of(robot, loading), seconds, progress)
    path = write_report(found, output)
    answer(as_json, lambda: facts_of(found) | {"written": str(path)}, lambda: tell(found, path))
    if not all(check.ok for check in found.checks):
        ctx.exit(1)


def tell(found: Findings, path: Path) -> None:
    """Say where a report is, and what became of the checks."""
    failed = sum(not check.ok for check in found.checks)
    verdict = f"{failed} of {len(found.checks)} checks FAILED" if failed else "all checks passed"
    size = file_size(path.stat().st_size)
    say(f"{path}: {size}, opens in any browser; {verdict}", colour=BAD if failed else GOOD)


def facts_of(found: Findings) -> dict[str, Any]:
    """What a report says in numbers."""
    known = found.problems
    speed = found.speed[0].facts(found.speed[1]) if found.seconds else None
    return {
        "robot": robot_facts(found.robot) | bundled_facts(found.source),
        "problems": None if known is None else [problem.as_dict() for problem in known],
        **check_facts(found.checks),
        "operations": counted_facts(found.counts),
        "speed": speed,
    }


def problems_of(robot: str, loading: dict[str, Any]) -> list[Problem] | None:
    """Problems of a robot's file; None where it is no file."""
    if not os.path.exists(robot):
        return None
    known = {name: value for name, value in loading.items() if name in (*USUAL, "package_dirs")}
    return problems(robot, **known)
