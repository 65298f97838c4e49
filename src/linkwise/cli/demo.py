"""``linkwise demo``: one robot from its table to its speed, every function checked on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise.bench.operations import operation_facts, operation_table
from linkwise.bench.selfcheck import Check, check_table
from linkwise.bench.worked import worked_facts, worked_state
from linkwise.cli.options import NewFile, json_option, load_moving, robot_argument, robot_options
from linkwise.cli.output import BAD, GOOD, answer, heading, say
from linkwise.cli.report import facts_of, problems_of, tell
from linkwise.report.findings import Findings
from linkwise.report.sections import write_report
from linkwise.text import progress


@click.command()
@robot_argument(default="iiwa14")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=0.25,
              show_default=True, help="Seconds spent on each row of the speed table.")  # fmt: skip
@click.option("--report", "output", type=NewFile(), metavar="FILE",
              help="Also write it as a page, as linkwise report does.")  # fmt: skip
@json_option
@robot_options
@click.pass_context
def demo(
    ctx: click.Context, /, robot: str, seconds: float, output: str | None, as_json: bool,
    **loading: Any,
) -> None:  # fmt: skip
    """Show everything about ROBOT: a worked state, a self-check, operation counts, speed.

    ROBOT is iiwa14 unless given. The exit code is 1 if a check fails.
    """
    loaded = load_moving(robot, **loading)
    found = Findings(loaded, robot, problems_of(robot, loading), seconds, progress)
    answer(as_json, lambda: _facts(found, output), lambda: _show(found, output))
    if not all(check.ok for check in found.checks):
        ctx.exit(1)


def _show(found: Findings, output: str | None) -> None:
    """Each part is printed as soon as it is computed."""
    robot = found.robot
    heading("Robot")
    say(robot)
    heading("A worked state")
    say(worked_state(robot))
    heading("Self-check")
    checks = found.checks
    say(f"{check_table(checks)}\n")
    say(_verdict(checks), colour=GOOD if all(check.ok for check in checks) else BAD)
    heading("Operation counts")
    say(operation_table(robot))
    heading("Speed")
    speed, rows = found.speed
    say(speed.head())
    say(speed.text(rows))
    if output is not None:
        heading("Report")
        tell(found, write_report(found, output))


def _facts(found: Findings, output: str | None) -> dict[str, Any]:
    """What a report says in numbers, a state, the counts of every method, and the report's path."""
    written = None if output is None else str(Path(write_report(found, output)))
    more = {"state": worked_facts(found.robot), "operations": operation_facts(found.robot)}
    return facts_of(found) | more | {"written": written}


def _verdict(checks: list[Check]) -> str:
    failed = sum(not check.ok for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks FAILED"
    return f"all {len(checks)} checks passed; errors are relative to the largest entry"
