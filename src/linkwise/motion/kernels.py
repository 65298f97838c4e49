"""Kernels of motion: programs that are no function of a robot alone, made and kept as those are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from linkwise.backends.base import BATCH, ONE, Backend, Kernel, Site
from linkwise.backends.choice import cpu
from linkwise.engine.arrays import check_threads, prepare
from linkwise.engine.recipes import Recipe, kernel_of
from linkwise.robot import Robot
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.guard import guard
from linkwise.trace.program import BYTE, NUMBER, Port, Program, Signature, Slot
from linkwise.trace.tracer import program_of, used_pivots


def kernel(
    robot: Robot, recipe: Recipe, dtype: str, form: str, machine: Backend | None = None
) -> Kernel:
    """The kernel of a recipe for a robot, on the processor unless another machine is named."""
    return kernel_of(robot._calls.kernels, recipe, dtype, form, machine)


class Function(NamedTuple):
    """A function of states as straight-line code: ``trace(graph, inputs) -> results``."""

    name: str
    key: tuple[Any, ...]
    ports: tuple[Port, ...]
    size: int
    trace: Callable[[Graph, list[list[Expr]]], Sequence[Expr | float]]
    more: tuple[Slot, ...] = ()  # outputs whose values follow those of the first
    # (graph, inputs, results) -> bits of `Status`, which are then the last output
    status: Callable[[Graph, list[list[Expr]], list[Expr]], Expr] | None = None

    def __call__(
        self, robot: Robot, values: Sequence[Any], threads: int | None = None, out: Any = None
    ) -> Any:
        """Run it on arrays (..., size), one for each port; returns an array (..., size), or a list
        of all outputs where there are several.
        """
        found, _ = self.run(robot, values, threads, out)
        return found[0] if len(found) == 1 else found

    def run(
        self, robot: Robot, values: Sequence[Any], threads: int | None = None, out: Any = None
    ) -> tuple[list[Any], Kernel | None]:
        """All outputs, and the kernel that made them."""
        batch = prepare(self.name, [(port.name, port.size) for port in self.ports], values)
        form = BATCH if batch.shape or batch.dtype != "float64" else ONE
        made = self.kernel(robot, batch.dtype, form) if batch.states and self.size else None
        outputs = [(x.shape, batch.dtype if x.kind == NUMBER else "uint8") for x in self.slots]
        return batch.run(made, outputs, out, threads), made

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Its outputs."""
        bits = () if self.status is None else (Slot("status", kind=BYTE),)
        return (Slot("result", (self.size,)), *self.more, *bits)

    def kernel(self, robot: Robot, dtype: str, form: str) -> Kernel:
        """Its kernel."""
        outputs = tuple(slot.name for slot in self.slots)
        key = ("function", self.name, *self.key, *outputs)
        return kernel(
            robot, Recipe(key, Signature(self.ports, self.slots), self._program), dtype, form
        )

    def _program(self) -> Program:
        graph = Graph()
        inputs = [[graph.input(port.name, k) for k in range(port.size)] for port in self.ports]
        results = [graph.lift(x) for x in self.trace(graph, inputs)]
        graph.pivots = used_pivots(graph, results)
        if self.status is not None:
            results.append(self.status(graph, inputs, results))
        return guard(program_of(self.name, self.ports, graph, self.slots, results))


class Served:
    """A function of one robot with one output, and perhaps the status, which takes the usual
    arguments without Python.
    """

    def __init__(self, robot: Robot, function: Function) -> None:
        self.robot, self.function = robot, function
        self._site: Site | None = None
        self.fast: Callable[..., Any] = _declined  # the site's: NotImplemented where it declines

    def __call__(self, values: Sequence[Any], out: Any = None, threads: int | None = None) -> Any:
        """Run it on arrays of any kind."""
        check_threads(threads)
        found, made = self.function.run(self.robot, values, threads, out)
        if made is not None:
            self._connect(made)
        return found[0] if len(found) == 1 else tuple(found)

    def _connect(self, made: Kernel) -> None:
        if self._site is None:
            sizes = [port.size for port in self.function.ports]
            status = self.function.status is not None
            calls, shape = self.robot._calls, (self.function.size,)
            self._site = calls.other_site(cpu(), sizes, shape, status)
        if self._site is not None:
            self._site.connect(made)
            self.fast = self._site.run


def _declined(*_values: Any, out: Any = None, threads: Any = None) -> Any:
    return NotImplemented
