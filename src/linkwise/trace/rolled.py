"""Counted loops, written down: a walk over many links, or many steps of one state.

The body is traced once, on carried values, and may read and write elements of arrays whose index
depends on the step (`At`). A step reads first and writes last, so it never sees its own writes.

    a walk over links     tables hold the constants of each link, scratch its state; the state of
                          the parent is read by index; inward walks add to the parent's element
    steps of a state      torques are read per step, and every k-th state is written to an output
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.trace.assemble import assemble
from linkwise.trace.expr import At, Counted, Expr, Graph, Write
from linkwise.trace.program import Array, Output, Port, Program, Slot


class Step:
    """What the body of a counted loop may do beside arithmetic."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.writes: list[Write] = []

    def read(self, array: str, start: int = 0, stride: int = 0, where: Sequence[int] = ()) -> Expr:
        """An element of an input, a table or scratch; step k takes the one that `At` says."""
        return self.graph.node("read", value=(array, At(start, stride, tuple(where))))

    def write(
        self,
        array: str,
        value: Expr | float,
        start: int = 0,
        stride: int = 0,
        where: Sequence[int] = (),
        *,
        every: int = 1,
        add: bool = False,
    ) -> None:
        """Write, or add to, an element of an output or of scratch at the end of the step.

        With ``every`` only each so many steps, the first time at the end of step ``every - 1``;
        the index then counts the writes.
        """
        at = At(start, stride, tuple(where))
        self.writes.append(Write(array, at, self.graph.lift(value), every, add))


Body = Callable[[Step, list[Expr]], Sequence[Expr | float]]


def loop(graph: Graph, count: int, state: Sequence[Expr | float], body: Body) -> list[Expr]:
    """Run ``body(step, state) -> next state`` exactly ``count`` times; returns the last state."""
    carries = [graph.node("carry", value=(len(graph.loops), k)) for k in range(len(state))]
    step = Step(graph)
    nexts = [graph.lift(x) for x in body(step, list(carries))]
    starts = [graph.lift(x) for x in state]
    graph.loops.append(Counted(count, carries, starts, nexts, step.writes))
    return carries


def program(
    graph: Graph,
    name: str,
    ports: Sequence[Port],
    arrays: Sequence[Array],
    written: Sequence[Slot] = (),
    results: Sequence[Expr] = (),
) -> Program:
    """The program of a graph with loops: outputs that loops write, and a row of results."""
    regions, roots = assemble(graph, list(results))
    outputs = [Output(slot.name, slot.shape, (), slot.kind) for slot in written]
    outputs += [Output("result", (len(roots),), tuple(roots))] if roots else []
    return Program(name, tuple(ports), regions, tuple(outputs), arrays=tuple(arrays))
