"""``linkwise ops``: exact operation counts of every method, and what papers claim."""

from __future__ import annotations

from typing import Any

import click

from linkwise.bench.operations import operation_facts, operation_table
from linkwise.bench.states import tip
from linkwise.cli.options import (
    Words,
    json_option,
    load_moving,
    refuse_robot_options,
    robot_argument,
    robot_options,
)
from linkwise.cli.output import answer, say
from linkwise.errors import printable
from linkwise.robot import Robot
from linkwise.study.claims import LENGTHS
from linkwise.study.claims_table import claims_facts, claims_table
from linkwise.study.counts import compare
from linkwise.study.generic import KINDS, generic_chain
from linkwise.text import progress

LONGEST = 30  # joints of a general arm; inertial power by links grows with their fourth power
SLOW = 20  # joints from which on counting takes long enough to say so


@click.command()
@robot_argument(required=False)
@click.option("--generic", metavar="N", type=click.IntRange(1, LONGEST),
              help="Instead of ROBOT: an arm of N joints without special geometry, and what papers "
                   "claim for one.")  # fmt: skip
@click.option("--papers", is_flag=True,
              help="Instead of ROBOT: such arms of 6 to 30 joints beside what papers claim."
              )  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0),
              help="Seed of the random numbers of such an arm; 0 unless given.")  # fmt: skip
@click.option("--kind", type=Words([*KINDS, "mixed"]),
              help="Joints of such an arm; revolute unless given.")  # fmt: skip
@json_option
@robot_options
def ops(robot: str | None, as_json: bool, **options: Any) -> None:
    """Count the operations of every function and method of ROBOT, exactly.

    The counts are those of the compiled programs, in which all work on constants was done at
    compile time. A method that iterates is counted with one iteration, which also has its own row.
    """
    generic, papers, seed, kind = (options.pop(x) for x in ("generic", "papers", "seed", "kind"))
    _check(robot, generic, papers, (seed, kind) != (None, None))
    if robot is None:
        refuse_robot_options(options)
    arm = {"seed": seed or 0, "kind": kind or "revolute"}
    if robot is not None:
        _one_robot(load_moving(robot, **options), as_json)
    elif generic is not None:
        _one_arm(generic, arm, as_json)
    else:
        _compare_with_papers(arm, as_json)


def _check(robot: str | None, generic: int | None, papers: bool, arm: bool) -> None:
    """Refuse what does not go together."""
    general = papers or generic is not None
    if robot is None and not general:
        raise click.UsageError("Missing ROBOT; or --generic N, or --papers.")
    if robot is not None and general:
        raise click.UsageError("--generic and --papers take no ROBOT.")
    if papers and generic is not None:
        raise click.UsageError("--papers has its own lengths: leave out --generic.")
    if arm and not general:
        raise click.UsageError("--seed and --kind are for --generic and --papers.")


def _one_robot(robot: Robot, as_json: bool) -> None:
    answer(
        as_json,
        lambda: {"name": robot.name, "frame": tip(robot), "operations": operation_facts(robot)},
        lambda: say(f"{printable(robot.name)}\n\n{operation_table(robot)}"),
    )


def _one_arm(n: int, arm: dict[str, Any], as_json: bool) -> None:
    """Print all methods of a general arm, and the claims at its length."""
    if n >= SLOW:
        progress(f"counting an arm of {n} joints")
    robot = Robot(generic_chain(n, arm["seed"], kind=arm["kind"]))
    rows = list(compare((n,), **arm))
    title = f"A general arm of {n} joints ({arm['kind']}, seed {arm['seed']})"
    answer(
        as_json,
        lambda: {"joints": n, **arm, "operations": operation_facts(robot),
                 "papers": claims_facts(rows)},
        lambda: say(f"{title}\n\n{operation_table(robot)}\n\n{claims_table(rows)}"),
    )  # fmt: skip


def _compare_with_papers(arm: dict[str, Any], as_json: bool) -> None:
    progress(f"counting arms of up to {max(LENGTHS)} joints")
    rows = list(compare(LENGTHS, **arm))
    answer(as_json, lambda: {**arm, "papers": claims_facts(rows)}, lambda: say(claims_table(rows)))
