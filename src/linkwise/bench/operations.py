"""Operation counts of every function and method of a robot."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from linkwise.bench.states import algorithms_of, frame_for, tip
from linkwise.engine.auto import choose_method, in_loops
from linkwise.errors import NoProgram, printable
from linkwise.robot import Robot
from linkwise.text import aligned
from linkwise.trace.program import OperationCount

HEAD = ("function", "method", "auto", "mul", "add", "div", "sqrt", "sincos", "fused", "total")


@dataclass(frozen=True)
class Counted:
    """One way to compute one function, and what it costs."""

    function: str
    method: str
    chosen: bool  # by method="auto"
    count: OperationCount


def count_all(
    robot: Robot, only_chosen: bool = False, functions: Collection[str] = ()
) -> list[Counted]:
    """Count every function and method that exists for the robot, or those that auto chooses.

    ``functions``: only these, if any are given.

    Of a robot whose functions are loops, methods that are not loops are left out: their code is
    written out link by link, and takes long to trace. So are methods that are several programs.
    """
    counted = []
    wanted = [x for x in algorithms_of(robot) if not functions or x.function in functions]
    for algorithm in wanted:
        function, method, frame = algorithm.function, algorithm.method, frame_for(robot, algorithm)
        at = robot.tree.frames[frame] if frame else None
        chosen = choose_method(function, robot.tree, frame=at) == method
        long = in_loops(function, robot.tree) and not algorithm.can_roll(robot.tree)
        if (chosen or not only_chosen) and not long:
            with suppress(NoProgram):
                count = robot.operation_count(function, method, frame=frame)
                counted.append(Counted(function, method, chosen, count))
    return counted


def operation_table(
    robot: Robot, only_chosen: bool = False, functions: Collection[str] = ()
) -> str:
    """The counts as a table."""
    rows = [row for c in count_all(robot, only_chosen, functions) for row in _lines(c)]
    head, words = (HEAD[:2] + HEAD[3:], 2) if only_chosen else (HEAD, 3)
    shown = [row[:2] + row[3:] for row in rows] if only_chosen else rows
    star = "" if only_chosen else " * marks the method that auto chooses."
    note = (
        f"Operations of one evaluation; a fused pair is one instruction.{star}\n"
        f"Functions of a frame are counted for {printable(tip(robot))}."
    )
    if in_loops("forward_dynamics", robot.tree):
        note += (
            "\nA robot of many links: methods that are not one program of loops are left out "
            "(docs/long_chains.md)."
        )
    return f"{aligned(head, shown, words)}\n\n{note}"


def _lines(c: Counted) -> Iterable[tuple[str, ...]]:
    yield (c.function, c.method, "*" if c.chosen else "", *_numbers(c.count))
    if c.count.iteration is not None:
        yield (c.function, f"{c.method}, an iteration", "", *_numbers(c.count.iteration))


def _numbers(c: OperationCount) -> tuple[str, ...]:
    kinds = (c.multiplications, c.additions, c.divisions, c.square_roots, c.sincos, c.fused)
    return tuple(f"{n:,}" for n in (*kinds, c.total))


def operation_facts(robot: Robot) -> list[dict[str, Any]]:
    """The counts of every function and method, for JSON."""
    return counted_facts(count_all(robot))


def counted_facts(counts: Iterable[Counted]) -> list[dict[str, Any]]:
    """Counts for JSON."""
    return [
        {"function": c.function, "method": c.method, "chosen": c.chosen, **asdict(c.count)}
        for c in counts
    ]
