"""``linkwise demo``: one robot from its table to its speed, every function checked on the way."""

from __future__ import annotations

from typing import Any

import click

from linkwise.bench.operations import operation_table
from linkwise.bench.selfcheck import Check, check_table
from linkwise.bench.worked import worked_state
from linkwise.cli.options import load_moving, robot_options
from linkwise.cli.output import heading, say
from linkwise.cli.report import problems_of, write
from linkwise.report.findings import Findings
from linkwise.text import progress


@click.command()
@click.argument("robot", default="iiwa14")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=0.25,
              show_default=True, help="Seconds spent on each row of the speed table.")  # fmt: skip
@click.option("--report", "output", type=click.Path(dir_okay=False, writable=True), metavar="FILE",
              help="Also write it as a page, as linkwise report does.")  # fmt: skip
@robot_options
@click.pass_context
def demo(
    ctx: click.Context, /, robot: str, seconds: float, output: str | None, **loading: Any
) -> None:
    """Show everything about ROBOT: a worked state, a self-check, operation counts, speed.

    ROBOT is iiwa14 unless given. The exit code is 1 if a check fails.
    """
    loaded = load_moving(robot, **loading)
    heading("Robot")
    say(loaded)
    heading("A worked state")
    say(worked_state(loaded))
    heading("Self-check")
    found = Findings(loaded, robot, problems_of(robot, loading), seconds, progress)
    checks = found.checks
    say(f"{check_table(checks)}\n\n{_verdict(checks)}")
    heading("Operation counts")
    say(operation_table(loaded))
    heading("Speed")
    speed, rows = found.speed
    say(speed.head())
    say(speed.text(rows))
    if output is not None:
        heading("Report")
        write(found, output)
    if not all(check.ok for check in checks):
        ctx.exit(1)


def _verdict(checks: list[Check]) -> str:
    failed = sum(not check.ok for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks FAILED"
    return f"all {len(checks)} checks passed; errors are relative to the largest entry"
