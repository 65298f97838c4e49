"""``linkwise bench``: speed beside Pinocchio and MuJoCo, in one run on one core."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import click

from linkwise.bench.calls import Calls
from linkwise.bench.contest import Bench, Measured, Settings
from linkwise.bench.gpu import Gpu
from linkwise.bench.speed import MEASURED, SEVERAL, Speed
from linkwise.bench.states import exists, tip
from linkwise.bench.suite import Suite
from linkwise.cli.options import (
    Words,
    json_option,
    load_moving,
    refuse_robot_options,
    robot_argument,
    robot_options,
)
from linkwise.cli.output import answer, say
from linkwise.robot import Robot
from linkwise.text import progress


@click.command()
@robot_argument(required=False)
@click.option("--suite", is_flag=True,
              help="Instead: the reference table of xarm7, talos_reduced and start-up. No ROBOT."
              )  # fmt: skip
@click.option("--calls", is_flag=True,
              help="Instead: every way of calling, such as lists, views and small batches."
              )  # fmt: skip
@click.option("--device", type=Words(["cpu", "cuda"]), default="cpu", show_default=True,
              help="Where to run: cuda is the first NVIDIA GPU.")  # fmt: skip
@json_option
@click.option("--batch", type=click.IntRange(min=1), default=4096, show_default=True,
              help="States in a batch.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=0.3,
              show_default=True, help="Seconds spent on each row.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True,
              help="Threads for a batch, of linkwise and of the peers.")  # fmt: skip
@click.option("--dtype", type=Words(["float64", "float32"]), default="float64",
              show_default=True,
              help="Number type of a batch; peers always use float64.")  # fmt: skip
@click.option("--methods", is_flag=True,
              help="Time all methods of the functions that have several.")  # fmt: skip
@robot_options
def bench(
    robot: str | None, suite: bool, calls: bool, device: str, as_json: bool, **options: Any
) -> None:
    """Measure the functions of ROBOT beside Pinocchio and MuJoCo, where they are installed.

    Pinocchio and MuJoCo, the peers, are given the same robot link by link. A peer is timed only if
    its results agree with those of linkwise. With --device cuda the peers are MJX (MuJoCo over JAX)
    and a textbook implementation in JAX.
    """
    settings = Settings(**{field.name: options.pop(field.name) for field in fields(Settings)})
    if device == "cuda" and (suite or calls):
        raise click.UsageError("--suite and --calls are of the CPU: they take no --device cuda.")
    if suite:
        if robot is not None:
            raise click.UsageError("--suite takes no ROBOT: it has its own")
        if calls:
            raise click.UsageError("--suite and --calls are two tables: choose one.")
        _refuse_others(settings, "--suite", "batch", "seconds")
        refuse_robot_options(options)
        _run(Suite(settings), as_json)
    elif robot is None:
        raise click.UsageError("Missing argument 'ROBOT' (or --suite).")
    elif device == "cuda":
        _refuse_others(settings, "--device cuda")
        _run(Gpu(_tree(robot, options)), as_json)
    elif calls:
        _refuse_others(settings, "--calls", "seconds")
        _run(Calls(_tree(robot, options), settings.seconds), as_json)
    else:
        _run(_functions(_tree(robot, options), settings), as_json)


def _tree(name: str, options: dict[str, Any]) -> Robot:
    """The robot; peers are given its links and joints, and no closed loops."""
    robot = load_moving(name, **options)
    if robot.loops:
        raise click.UsageError(
            "ROBOT has closed loops, and the peers are given links and joints only: --loops open "
            "measures it without them (tools/closed_chains.py has closed loops)."
        )
    return robot


def _run(table: Bench[Measured], as_json: bool) -> None:
    def show() -> None:
        say(table.head())
        say(table.text(list(table.rows(progress))))

    answer(as_json, lambda: table.facts(list(table.rows(progress))), show)


def _refuse_others(settings: Settings, what: str, *used: str) -> None:
    """Raise if an option was given that would be ignored."""
    usual = replace(Settings(), **{name: getattr(settings, name) for name in used})
    given = [name for name, x in asdict(settings).items() if x != getattr(usual, name)]
    if given:
        raise click.UsageError(f"--{given[0]} has no meaning with {what}.")


def _functions(robot: Robot, settings: Settings) -> Speed:
    """The usual functions, or with --methods all that have several methods."""
    functions: tuple[str, ...] = MEASURED
    if settings.methods:
        functions = tuple(f for f in SEVERAL if exists(robot, f, tip(robot)))
    return Speed(robot, settings, functions)
