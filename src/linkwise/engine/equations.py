"""What can be compiled: the equations of a function of states, and the arrays that it takes.

    Equations --trace--> Program --order, guard--> Program --render, build, load--> Kernel

Whatever runs compiled, functions of the table, derivatives, searches, controllers, rollouts, is one
of these first; `Kernels` compiles it and `CompiledFunction` calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.backends.base import Effort
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import FLAGS, Array, Port, Program, Signature, Slot
from linkwise.trace.tracer import Task, program_of, used_pivots

Values = list[list[Expr]]  # the numbers of each input


@dataclass(frozen=True)
class Equations:
    """A function of states of one robot, as it is traced.

    ``name`` and ``key`` hold all that the program depends on besides the robot: with the robot's
    digest they name its kernel, in memory and in the disk cache.
    """

    name: str  # what messages call it
    key: tuple[Any, ...]
    inputs: tuple[Port, ...] = field(compare=False)
    outputs: tuple[Slot, ...] = field(compare=False)
    trace: Callable[[Effort], Program] = field(compare=False)
    tables: tuple[Array, ...] = field(default=(), compare=False)  # of counted loops
    # loops over the links: the code is the same for all robots whose links are of the same
    # classes, so that the disk cache names it by its text
    rolled: bool = field(default=False, compare=False)
    guarded: bool = field(default=True, compare=False)  # states without an answer become NaN
    segments: Task | None = field(default=None, compare=False)  # a scan: several programs
    # (function, batch, backend, out, threads) -> the outputs, in place of one kernel for all
    run: Callable[..., Sequence[Any]] | None = field(default=None, compare=False)

    @property
    def signature(self) -> Signature:
        """The arrays of its kernels, known without tracing unless the code is rolled."""
        return Signature(self.inputs, self.outputs, self.tables, bool(self.tables))


def flags(status: bool) -> tuple[Slot, ...]:
    """The output with status flags, if they are asked for: the last one."""
    return (Slot("status", kind=FLAGS),) if status else ()


def straight_line(
    name: str,
    key: tuple[Any, ...],
    inputs: tuple[Port, ...],
    outputs: tuple[Slot, ...],
    trace: Callable[[Graph, Values], Sequence[Expr | float]],
    status: Callable[[Graph, Values, list[Expr]], Expr] | None = None,
) -> Equations:
    """Return equations that are run on traced scalars, without counted loops.

    Args:
        trace: ``trace(graph, inputs)``, the numbers of all outputs, one after another.
        status: ``status(graph, inputs, results)``, status flags, the last of the outputs.
    """

    def program(_effort: Effort) -> Program:
        graph = Graph()
        values = [[graph.input(port.name, k) for k in range(port.size)] for port in inputs]
        results = [graph.lift(x) for x in trace(graph, values)]
        graph.pivots = used_pivots(graph, results)
        if status is not None:
            results.append(status(graph, values, results))
        return program_of(name, inputs, graph, outputs, results)

    return Equations(name, key, inputs, outputs, program)
