"""``linkwise bench``: speed beside Pinocchio and MuJoCo, in one run on one core."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from linkwise.bench.calls import LARGE, CallContest, calls_notes, calls_table
from linkwise.bench.speed import (
    MEASURED,
    SEVERAL,
    Contest,
    Row,
    Settings,
    agreement_lines,
    command_line,
    footnotes,
    header,
    speed_table,
)
from linkwise.bench.states import exists, tip
from linkwise.bench.timing import machine, versions
from linkwise.cli.options import load_robot, robot_options
from linkwise.robot import Robot
from linkwise.text import pairs, progress


@click.command()
@click.argument("robot", required=False)
@click.option("--suite", is_flag=True, help="The reference table: xarm7, talos_reduced, start-up.")
@click.option("--calls", is_flag=True,
              help="Every way of calling: lists, views, small batches, options.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--batch", type=click.IntRange(min=1), default=4096, show_default=True,
              help="States in a batch.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=0.3,
              show_default=True, help="Time spent on each row.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True,
              help="Threads for a batch, ours and the peers'.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64",
              show_default=True, help="Numbers in a batch; peers always use float64.")  # fmt: skip
@click.option(
    "--methods", is_flag=True, help="Every method of each function that has several, side by side."
)
@robot_options
def bench(
    robot: str | None,
    suite: bool,
    calls: bool,
    as_json: bool,
    batch: int,
    seconds: float,
    threads: int,
    dtype: str,
    methods: bool,
    **loading: Any,
) -> None:
    """Measure the functions of ROBOT beside Pinocchio and MuJoCo, where they are installed.

    Peers are given the same robot, link by link, and must agree before they are timed.
    """
    if suite:
        from linkwise.bench.suite import run_suite

        if robot is not None:
            raise click.UsageError("--suite takes no ROBOT: it has its own")
        run_suite(as_json, batch, seconds)
        return
    if robot is None:
        raise click.UsageError("Missing argument 'ROBOT' (or --suite).")
    loaded = load_robot(robot, **loading)
    if calls:
        _run_calls(loaded, as_json, seconds)
        return
    functions = tuple(f for f in SEVERAL if exists(loaded, f, tip(loaded))) if methods else MEASURED
    settings = Settings(batch, seconds, threads, dtype, functions, methods)
    contest = Contest(loaded, settings)
    if not as_json:
        _print_head(contest)
    rows = list(contest.rows(progress))
    if as_json:
        click.echo(json.dumps(_facts(contest, rows), indent=2))
    else:
        click.echo(f"\n{speed_table(rows, contest)}\n\n{footnotes(contest, rows)}")


def _run_calls(robot: Robot, as_json: bool, seconds: float) -> None:
    contest, settings = CallContest(robot, seconds), Settings(LARGE, seconds)
    if not as_json:
        click.echo(f"{header(settings)}\nrobot     {robot.name}, frame {contest.frame}\n")
    empty = contest.empty()
    rows = [*contest.rows(progress), *contest.first_calls()]
    if as_json:
        entries = [asdict(row) | {"ratio": row.ratio} for row in rows]
        facts = _setting(settings, robot, contest.frame) | {"unit": "nanoseconds per call"}
        click.echo(json.dumps(facts | {"empty": asdict(empty), "rows": entries}, indent=2))
    else:
        click.echo(f"{calls_table(rows)}\n\n{calls_notes(contest, empty)}")


def _print_head(contest: Contest) -> None:
    robot = contest.robot
    click.echo(header(contest.settings))
    joints = "1 joint" if robot.nv == 1 else f"{robot.nv} joints"
    click.echo(f"robot     {robot.name}, {joints}, frame {contest.frame}\n")
    click.echo(pairs(agreement_lines(contest)))


def _facts(contest: Contest, rows: list[Row]) -> dict[str, Any]:
    def entry(row: Row) -> dict[str, Any]:
        ratios = {name: row.ratio(name) for name in row.peers}
        return asdict(row) | {"ratios": ratios}

    return _setting(contest.settings, contest.robot, contest.frame) | {
        "unit": "nanoseconds per state",
        "agreement": contest.agreement,
        "missing": contest.missing,
        "rows": [entry(row) for row in rows],
    }


def _setting(settings: Settings, robot: Robot, frame: str) -> dict[str, Any]:
    """What was measured, on what."""
    return {
        "command": command_line(),
        "machine": machine(),
        "versions": versions(),
        "settings": asdict(settings),
        "robot": {"name": robot.name, "nv": robot.nv, "frame": frame, "digest": robot.tree.digest},
    }
