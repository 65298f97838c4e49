"""Counted loops, written down: a walk over many links, or many steps of one state.

The body is traced once for each case of it, on carried values, and may read and write elements of
arrays whose index depends on the step (`At`). A step reads first and writes last, so it never sees
its own writes.

    a walk over links     tables hold the constants of each link, scratch its state; the state of
                          the parent is read by index; inward walks add to the parent's element
    steps of a state      torques are read per step, and every k-th state is written to an output
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.spatial import select
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import (
    FORTH,
    At,
    Counted,
    Done,
    Expr,
    Graph,
    Order,
    Whole,
    Write,
    reachable,
)
from linkwise.trace.guard import SHORTEST
from linkwise.trace.program import Array, Output, Port, Program, Slot


class Step:
    """What the body of a counted loop may do beside arithmetic."""

    def __init__(self, graph: Graph, order: Order = FORTH) -> None:
        self.graph, self.order = graph, order
        self.writes: list[Write] = []

    def read(self, array: str, start: int = 0, stride: int = 0, places: str = "") -> Expr:
        """An element of an input, a table or scratch; each step takes the one that `At` says."""
        return self.graph.node("read", value=(array, At(start, stride, places, self.order)))

    def write(
        self,
        array: str,
        value: Expr | float,
        start: int = 0,
        stride: int = 0,
        places: str = "",
        *,
        every: int = 1,
        add: bool = False,
    ) -> None:
        """Write, or add to, an element of an output or of scratch at the end of the step.

        With ``every`` only each so many steps, the first time at the end of step ``every - 1``;
        the index then counts the writes.
        """
        at = At(start, stride, places, self.order)
        self.writes.append(Write(array, at, self.graph.lift(value), every, add))


Body = Callable[[Step, list[Expr]], Sequence[Expr | float]]


def loop(
    graph: Graph,
    count: Whole,
    state: Sequence[Expr | float],
    *bodies: Body,
    which: At | None = None,
    order: Order = FORTH,
    limit: Expr | None = None,
) -> list[Expr]:
    """Run ``body(step, state) -> next state`` exactly ``count`` times; returns the last state.

    A ``limit`` makes that fewer, as many in every state. Of several bodies each step takes the one
    that ``which`` says. Pivots of the bodies become one number that is carried along, positive as
    long as they all were.
    """
    number = len(graph.loops)
    carries = [graph.node("carry", value=(number, k)) for k in range(len(state))]
    sound = graph.node("carry", value=(number, "sound"))
    before, cases, watched = list(graph.pivots), [], False
    for body in bodies:
        step, graph.pivots = Step(graph, order), []
        nexts = [graph.lift(x) for x in body(step, list(carries))]
        still = sound
        for pivot in dict.fromkeys(pivot for pivot, _ in graph.pivots):
            if pivot.op == "sqrt":  # a length: see guard.py
                still = graph.lift(select(graph.node("finite", pivot), still, -1.0))
                pivot = pivot - SHORTEST
            still, watched = graph.lift(select(pivot, still, -1.0)), True
        cases.append(Done([*nexts, still], step.writes))
    if len(graph.loops) != number:
        raise TypeError("a counted loop begins inside the body of another; expected one after it")
    starts = [*(graph.lift(x) for x in state), graph.one]
    if watched:
        graph.pivots = [*before, (sound, graph.zero)]
    else:
        graph.pivots, starts = before, starts[:-1]
        cases = [Done(case.nexts[:-1], case.writes) for case in cases]
    held = [*carries, sound] if watched else carries
    graph.loops.append(Counted(count, held, starts, cases, which, limit))
    return carries


def merge(graph: Graph) -> None:
    """Make the last two loops one, if they have the same steps, and a step of the second needs of
    the first only what the same step of the first has written.
    """
    counted = [each for each in graph.loops[-2:] if isinstance(each, Counted)]
    if len(counted) < 2 or any(x.which or x.limit or len(x.cases) > 1 for x in counted):
        return
    first, second = counted
    (one,), (other,) = first.cases, second.cases
    made = {(w.array, w.at): w.value for w in one.writes if w.every == 1 and not w.add}
    written, later = {w.array for w in one.writes}, {w.array for w in other.writes}
    read = {n.value[0] for n in reachable(first.roots()) if n.op == "read"}
    if first.steps != second.steps or later & (read | written):
        return
    new: dict[int, Expr] = {}
    for node in reachable(second.roots()):
        needs_all = node.op == "read" and node.value[0] in written and node.value not in made
        if needs_all or node in first.carries:  # what the first has when it ends
            return
        arguments = [new[x.id] for x in node.args]
        here = made.get(node.value) if node.op == "read" else None
        new[node.id] = here or graph.node(node.op, *arguments, value=node.value)
    after = second.renamed(new[x.id] for x in second.roots())
    carries, starts = [*first.carries, *after.carries], [*first.starts, *after.starts]
    nexts = [*one.nexts, *after.cases[0].nexts]
    done = Done(nexts, [*one.writes, *after.cases[0].writes])
    graph.loops[-2:] = [Counted(first.steps, carries, starts, [done])]


def program(
    graph: Graph,
    name: str,
    ports: Sequence[Port],
    arrays: Sequence[Array],
    written: Sequence[Slot] = (),
    results: Sequence[Expr] = (),
) -> Program:
    """The program of a graph with loops: outputs that loops write, and a row of results."""
    pivots = [pivot for pivot, _ in graph.pivots]
    regions, roots = assemble(graph, [*results, *pivots])
    roots, pivots = roots[: len(results)], roots[len(results) :]
    outputs = [Output(slot.name, slot.shape, (), slot.kind) for slot in written]
    outputs += [Output("result", (len(roots),), tuple(roots))] if roots else []
    return Program(name, tuple(ports), regions, tuple(outputs), tuple(pivots), tuple(arrays))
