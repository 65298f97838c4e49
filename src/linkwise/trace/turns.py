"""Sines and cosines that the first stage of a scan leaves to later ones, two for each angle in q.

A stage computes anew what it needs of a link, but for these: they cost more than reading two
numbers that lie as registers take them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from linkwise.trace.expr import At, Expr, Graph, Write
from linkwise.trace.program import Case, For, Output, Port, Program

TURNS, ANGLES = "turns", "q"
BOTH = ("sin", "cos")
Element = tuple[int, int, str]  # of each link: where a number of it is


def left_by(program: Program) -> frozenset[Element]:
    """The angles whose sine and cosine a program computes for every link."""
    sines, cosines = (
        {at[:3] for loop in _loops(program) for case in loop.cases
         for node, at in _turned(case) if node.op == op}
        for op in BOTH
    )  # fmt: skip
    return frozenset(sines & cosines)


def found_in(graph: Graph, left: frozenset[Element]) -> None:
    """Let a trace read what an earlier stage has left."""

    def turned(angle: Expr) -> tuple[Expr, Expr] | None:
        if angle.op != "read" or angle.value[0] != ANGLES or angle.value[1][:3] not in left:
            return None
        sine, cosine = (graph.node("read", value=(TURNS, _at(op, angle.value[1]))) for op in BOTH)
        return sine, cosine

    graph.turned = turned


def reading(program: Program) -> bool:
    """Whether a program reads them."""
    return any(node.op == "read" and node.value[0] == TURNS for node in program.nodes())


def port(size: int) -> Port:
    """The input, for so many numbers of q in a piece."""
    return Port(TURNS, 2 * size, tiled=True)


def leaving(program: Program, size: int) -> Program:
    """The program that also writes the sine and cosine of every angle."""

    def case(own: Case) -> Case:
        more = [Write(TURNS, _at(node.op, at), node) for node, at in _turned(own)]
        return replace(own, writes=(*own.writes, *more))

    regions = tuple(
        replace(r, cases=tuple(map(case, r.cases))) if isinstance(r, For) else r
        for r in program.regions
    )
    output = Output(TURNS, (2 * size,), (), tiled=True)
    return replace(program, regions=regions, outputs=(*program.outputs, output))


def _loops(program: Program) -> Iterator[For]:
    return (region for region in program.regions if isinstance(region, For))


def _turned(case: Case) -> Iterator[tuple[Expr, At]]:
    """Sines and cosines of angles that a step reads from q, and where it does."""
    for node in case.body.nodes:
        if node.op in BOTH and node.args[0].op == "read" and node.args[0].value[0] == ANGLES:
            yield node, node.args[0].value[1]


def _at(op: str, at: At) -> At:
    return at._replace(start=2 * at.start + BOTH.index(op), stride=2 * at.stride)
