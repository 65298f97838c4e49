"""``linkwise ops``: exact operation counts of every method, and what papers claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from linkwise.algorithms import FUNCTIONS
from linkwise.bench.states import exists, tip
from linkwise.cli.options import load_robot, robot_options
from linkwise.engine.auto import choose_method
from linkwise.robot import Robot
from linkwise.study.claims import LENGTHS
from linkwise.study.counts import Row, compare
from linkwise.study.counts_page import cell, number, page
from linkwise.study.generic import KINDS, generic_chain
from linkwise.text import aligned, progress
from linkwise.trace.program import OperationCount

LONGEST = 30  # joints of a general arm; inertial power by links grows with their fourth power
SLOW = 20  # joints from which on it takes long enough to say so
_AS_USUAL = ("fixed", "follow", False, None)  # how a robot is loaded unless told otherwise
HEAD = ("function", "method", "auto", "mul", "add", "div", "sqrt", "sincos", "fused", "total")


@dataclass(frozen=True)
class Counted:
    """One way to compute one function, and what it costs."""

    function: str
    method: str
    chosen: bool
    count: OperationCount


@click.command()
@click.argument("robot", required=False)
@click.option(
    "--generic",
    metavar="N",
    type=click.IntRange(1, LONGEST),
    help="A general arm of N joints, without accidental zeros, and what papers claim for it.",
)
@click.option(
    "--papers",
    is_flag=True,
    help=f"General arms of {', '.join(map(str, LENGTHS))} joints beside the claims of the papers.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the general arm; 0 unless given.")
@click.option(
    "--kind",
    type=click.Choice([*KINDS, "mixed"]),
    help="Joints of the general arm; revolute unless given, as in the papers.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="With --papers: print the page docs/counts.md.")
@robot_options
def ops(
    robot: str | None,
    generic: int | None,
    papers: bool,
    seed: int | None,
    kind: str | None,
    as_json: bool,
    markdown: bool,
    **loading: Any,
) -> None:
    """Count the operations of every function and method of ROBOT, exactly.

    Counts are those of the compiled programs, constants folded. A loop's body is counted once, and
    again in a row of its own.
    """
    _check(robot, generic, papers, (seed, kind) != (None, None), as_json, markdown)
    if robot is None and any(value not in _AS_USUAL for value in loading.values()):
        raise click.UsageError("--base, --mimic, --no-strict and --repair are for a ROBOT.")
    if robot is not None:
        loaded = load_robot(robot, **loading)
        click.echo(_json(loaded) if as_json else f"{loaded.name}\n\n{operation_table(loaded)}")
        return
    arm = {"seed": seed or 0, "kind": kind or "revolute"}
    if generic is not None:
        _one_arm(generic, arm, as_json)
        return
    progress(f"counting arms of up to {max(LENGTHS)} joints")
    rows = list(compare(LENGTHS, **arm))  # type: ignore[arg-type]
    if markdown:
        click.echo(page(rows), nl=False)
    else:
        click.echo(_rows_json(rows, arm) if as_json else _claims(rows))


def _check(
    robot: str | None,
    generic: int | None,
    papers: bool,
    arm: bool,
    as_json: bool,
    markdown: bool,
) -> None:
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
    if markdown and not papers:
        raise click.UsageError("--markdown is for --papers.")
    if markdown and as_json:
        raise click.UsageError("--markdown or --json, not both.")


def _one_arm(n: int, arm: dict[str, Any], as_json: bool) -> None:
    """Print all methods of a general arm, and the claims at its length."""
    if n >= SLOW:
        progress(f"counting an arm of {n} joints")
    robot = Robot(generic_chain(n, arm["seed"], kind=arm["kind"]))
    rows = list(compare((n,), arm["seed"], arm["kind"]))
    if as_json:
        facts = {"joints": n, **arm, "operations": operations(robot), "papers": _facts(rows)}
        click.echo(json.dumps(facts, indent=2))
        return
    title = f"A general arm of {n} joints ({arm['kind']}, seed {arm['seed']})"
    click.echo(f"{title}\n\n{operation_table(robot)}\n\n{_claims(rows)}")


# -- every method ---------------------------------------------------------------------------------


def count_all(robot: Robot, only_chosen: bool = False) -> list[Counted]:
    """Count every function and method of the robot that exists for it."""
    counted = []
    for function, methods in FUNCTIONS.items():
        if not exists(robot, function, tip(robot)):
            continue
        for method, algorithm in methods.items():
            frame = tip(robot) if algorithm.takes_frame else None
            at = robot.tree.frames[frame] if frame else None
            chosen = choose_method(function, robot.tree, frame=at) == method
            if not algorithm.exists_for(robot.tree) or (only_chosen and not chosen):
                continue
            count = robot.operation_count(function, method, frame=frame)
            counted.append(Counted(function, method, chosen, count))
    return counted


def operation_table(robot: Robot, only_chosen: bool = False) -> str:
    """Functions and methods with their exact operation counts; those that auto picks, or all."""
    rows = [row for c in count_all(robot, only_chosen) for row in _lines(c)]
    head, words = (HEAD[:2] + HEAD[3:], 2) if only_chosen else (HEAD, 3)
    shown = [row[:2] + row[3:] for row in rows] if only_chosen else rows
    star = "" if only_chosen else "; * is what auto picks"
    note = (
        f"Operations of one evaluation; fused pairs run as one instruction{star}.\n"
        f"Functions of a frame: {tip(robot)}."
    )
    return f"{aligned(head, shown, words)}\n\n{note}"


def _lines(c: Counted) -> Iterable[tuple[str, ...]]:
    yield (c.function, c.method, "*" if c.chosen else "", *_numbers(c.count))
    if c.count.iteration is not None:
        yield (c.function, f"{c.method}, an iteration", "", *_numbers(c.count.iteration))


def _numbers(c: OperationCount) -> tuple[str, ...]:
    kinds = (c.multiplications, c.additions, c.divisions, c.square_roots, c.sincos, c.fused)
    return tuple(f"{n:,}" for n in (*kinds, c.total))


def operations(robot: Robot) -> list[dict[str, Any]]:
    """Every function and method, for JSON."""
    return [
        {"function": c.function, "method": c.method, "chosen": c.chosen, **asdict(c.count)}
        for c in count_all(robot)
    ]


def _json(robot: Robot) -> str:
    facts = {"name": robot.name, "frame": tip(robot), "operations": operations(robot)}
    return json.dumps(facts, indent=2)


# -- claims ---------------------------------------------------------------------------------------


def _claims(rows: Sequence[Row]) -> str:
    """Multiplications / additions as claimed and as counted."""
    head = ("n", "<claim", "printed", "corrected", "ours", "ours / claim", "<")
    lines = [
        (str(r.n), r.claim.name, cell(r.printed), cell(r.corrected), cell(r.ours),
         f"{r.ratio:.2f}", "" if r.holds else "above")
        for r in rows
    ]  # fmt: skip
    note = (
        "Multiplications / additions; papers count arms of revolute joints. What each claim\n"
        "includes, and what of ours it is compared with: docs/counts.md."
    )
    return f"{aligned(head, lines, 0)}\n\n{note}"


def _rows_json(rows: Sequence[Row], arm: dict[str, Any]) -> str:
    return json.dumps({**arm, "papers": _facts(rows)}, indent=2)


def _facts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {"claim": r.claim.name, "source": r.claim.source, "n": r.n,
         **{name: {"multiplications": number(pair[0]), "additions": number(pair[1])}
            for name, pair in (("printed", r.printed), ("corrected", r.corrected),
                               ("ours", r.ours))},
         "holds": r.holds}
        for r in rows
    ]  # fmt: skip
