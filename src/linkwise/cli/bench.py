"""``linkwise bench``: speed beside Pinocchio and MuJoCo, in one run on one core."""

from __future__ import annotations

from typing import Any

import click

from linkwise.bench import speed
from linkwise.bench.calls import LARGE, CallContest, calls_notes, calls_table
from linkwise.bench.facts import calls_facts, contest_facts, suite_facts
from linkwise.bench.states import exists, tip
from linkwise.bench.suite import run_suite, suite_notes, suite_table
from linkwise.cli.options import load_robot, robot_options
from linkwise.cli.output import say, say_json
from linkwise.errors import printable
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
        if robot is not None:
            raise click.UsageError("--suite takes no ROBOT: it has its own")
        _run_suite(speed.Settings(batch, seconds), as_json)
        return
    if robot is None:
        raise click.UsageError("Missing argument 'ROBOT' (or --suite).")
    loaded = load_robot(robot, **loading)
    if calls:
        _run_calls(loaded, as_json, seconds)
        return
    functions: tuple[str, ...] = speed.MEASURED
    if methods:
        functions = tuple(f for f in speed.SEVERAL if exists(loaded, f, tip(loaded)))
    settings = speed.Settings(batch, seconds, threads, dtype, functions, methods)
    contest = speed.Contest(loaded, settings)
    if not as_json:
        _print_head(settings, loaded, contest.frame)
        say(pairs(speed.agreement_lines(contest)))
    rows = list(contest.rows(progress))
    if as_json:
        say_json(contest_facts(contest, rows))
    else:
        say(f"\n{speed.speed_table(rows, contest)}\n\n{speed.footnotes(contest, rows)}")


def _run_suite(settings: speed.Settings, as_json: bool) -> None:
    if not as_json:
        say(f"{speed.header(settings)}\n")
    peak, lines = run_suite(settings)
    if as_json:
        say_json(suite_facts(settings, peak, lines))
    else:
        say(f"{suite_table(lines)}\n\n{suite_notes(peak)}")


def _run_calls(robot: Robot, as_json: bool, seconds: float) -> None:
    contest, settings = CallContest(robot, seconds), speed.Settings(LARGE, seconds)
    if not as_json:
        _print_head(settings, robot, contest.frame)
    empty = contest.empty()
    rows = [*contest.rows(progress), *contest.first_calls()]
    if as_json:
        say_json(calls_facts(contest, settings, empty, rows))
    else:
        say(f"{calls_table(rows)}\n\n{calls_notes(contest, empty)}")


def _print_head(settings: speed.Settings, robot: Robot, frame: str) -> None:
    joints = "1 joint" if robot.nv == 1 else f"{robot.nv} joints"
    say(speed.header(settings))
    say(f"robot     {printable(robot.name)}, {joints}, frame {printable(frame)}\n")
