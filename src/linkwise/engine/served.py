"""Functions of states that are in no table of algorithms, and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from linkwise.backends.base import BATCH, ONE, Backend, Kernel, Site
from linkwise.backends.choice import cpu, gpu
from linkwise.backends.process import build_lock
from linkwise.engine import devices
from linkwise.engine.calls import AnyBatch, Calls
from linkwise.engine.recipes import Recipe, kernel_of, kernel_of_loops
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.guard import guard
from linkwise.trace.program import FLAGS, FLAGS_DTYPE, NUMBER, Port, Program, Signature, Slot
from linkwise.trace.tracer import program_of, used_pivots


class Robot(Protocol):
    """Whose kernels they are."""

    _calls: Calls


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
    # the program, where it is loops over the links, and not written out
    rolled: Callable[[], Program] | None = None

    def __call__(
        self, robot: Robot, values: Sequence[Any], threads: int | None = None, out: Any = None
    ) -> Any:
        """Run it on arrays (..., size), one for each port; returns an array (..., size), or a list
        of all outputs where there are several.
        """
        found = self.run(robot, values, threads, out)
        return found[0] if len(found) == 1 else list(found)

    def run(
        self,
        robot: Robot,
        values: Sequence[Any],
        threads: int | None = None,
        out: Any = None,
        made: Callable[[Kernel], None] | None = None,
        device: str | None = None,
    ) -> tuple[Any, ...]:
        """All outputs, where the arrays are, or with arrays of NumPy moved to a device; ``made`` is
        given a kernel of the processor.
        """
        number = None if device is None else devices.number(device)
        sizes = [(port.name, port.size) for port in self.ports]

        def run(batch: AnyBatch, backend: Backend, out: Any) -> tuple[Any, ...]:
            there = isinstance(batch, devices.DeviceBatch) or backend.kind != "cpu"
            form = BATCH if there or batch.shape or batch.dtype != "float64" else ONE
            own: Kernel | None = None
            if batch.states and self.size:
                own = self.kernel(robot, batch.dtype, form, backend)
                if made is not None and not there:
                    made(own)
            outputs = [
                (x.shape, batch.dtype if x.kind == NUMBER else FLAGS_DTYPE) for x in self.slots
            ]
            return tuple(batch.run(own, outputs, out, threads))

        moved_to = None if number is None else gpu(number)
        found = robot._calls.where_they_are(
            self.name, sizes, tuple(values), out, threads, run, moved_to
        )
        return cast(tuple[Any, ...], found)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Its outputs."""
        bits = () if self.status is None else (Slot("status", kind=FLAGS),)
        return (Slot("result", (self.size,)), *self.more, *bits)

    def kernel(self, robot: Robot, dtype: str, form: str, machine: Backend | None = None) -> Kernel:
        """Its kernel."""
        outputs = tuple(slot.name for slot in self.slots)
        key = ("function", self.name, *self.key, *outputs)
        arrays = Signature(self.ports, self.slots)
        recipe = Recipe(self.name, key, arrays, self._guarded)
        make = kernel_of if self.rolled is None else kernel_of_loops
        return make(robot._calls.kernels, recipe, dtype, form, machine)

    def program(self) -> Program:
        """Its equations, traced."""
        if self.rolled is not None:
            return self.rolled()
        graph = Graph()
        inputs = [[graph.input(port.name, k) for k in range(port.size)] for port in self.ports]
        results = [graph.lift(x) for x in self.trace(graph, inputs)]
        graph.pivots = used_pivots(graph, results)
        if self.status is not None:
            results.append(self.status(graph, inputs, results))
        return program_of(self.name, self.ports, graph, self.slots, results)

    def _guarded(self) -> Program:
        return guard(self.program())


class Served:
    """A function of one robot with one output, and perhaps the status, which takes the usual
    arguments without Python.
    """

    def __init__(self, robot: Robot, function: Function) -> None:
        self.robot, self.function = robot, function
        self._site: Site | None = None
        self.fast: Callable[..., Any] = _declined  # the site's: NotImplemented where it declines

    def __call__(
        self,
        values: Sequence[Any],
        out: Any = None,
        threads: int | None = None,
        device: str | None = None,
    ) -> Any:
        """Run it on arrays of any kind."""
        found = self.function.run(self.robot, values, threads, out, self._connect, device)
        return found[0] if len(found) == 1 else found

    def _connect(self, made: Kernel) -> None:
        """Let the site use a kernel; calls may run in it already, so there is one for ever."""
        with build_lock:
            if self._site is None:
                sizes = [port.size for port in self.function.ports]
                status, shape = self.function.status is not None, (self.function.size,)
                self._site = self.robot._calls.other_site(cpu(), sizes, shape, status)
            if self._site is not None:
                self._site.connect(made)
                self.fast = self._site.run


def _declined(*_values: Any, out: Any = None, threads: Any = None) -> Any:
    return NotImplemented
