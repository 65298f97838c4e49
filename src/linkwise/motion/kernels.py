"""Kernels of motion: programs that are no function of a robot alone, made and kept as those are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from linkwise.backends.base import BATCH, ONE, Backend, Kernel
from linkwise.backends.choice import cpu
from linkwise.backends.process import build_lock
from linkwise.engine.arrays import prepare
from linkwise.engine.build import built
from linkwise.engine.identity import source_digest
from linkwise.engine.kernels import Kernels, cached
from linkwise.robot import Robot
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.guard import guard
from linkwise.trace.program import Output, Port, Program, Signature, Slot


class Recipe(NamedTuple):
    """How a kernel is made: what its program depends on besides the robot, arrays, and trace."""

    key: tuple[Any, ...]
    signature: Signature
    trace: Callable[[], Program]


_made: WeakKeyDictionary[Kernels, dict[tuple[Any, ...], Kernel]] = WeakKeyDictionary()


def kernel(
    robot: Robot, recipe: Recipe, dtype: str, form: str, machine: Backend | None = None
) -> Kernel:
    """The kernel of a recipe for a robot: from memory, from the disk cache, or made now.

    It runs on the processor, unless another machine is named.
    """
    backend, tree = machine or cpu(), robot.tree
    key = (*recipe.key, dtype, form)

    def make() -> bytes:
        program = backend.ordered(recipe.trace(), dtype, form)
        return built(backend, program, dtype, form, robot.name)

    with build_lock:
        own = _made.setdefault(robot._calls.kernels, {})
        place = (*key, backend)
        if place not in own:
            sources = source_digest("motion") if source_digest() else None
            code = cached(backend, (tree.digest, sources, *key), make) if sources else make()
            own[place] = backend.load(code, recipe.signature, dtype, form)
        return own[place]


class Function(NamedTuple):
    """A function of states as straight-line code: ``trace(graph, inputs) -> results``."""

    name: str
    key: tuple[Any, ...]
    ports: tuple[Port, ...]
    size: int
    trace: Callable[[Graph, list[list[Expr]]], Sequence[Expr | float]]

    def __call__(self, robot: Robot, values: Sequence[Any], threads: int | None = None) -> Any:
        """Run it on arrays (..., size), one for each port; returns an array (..., size)."""
        batch = prepare(self.name, [(port.name, port.size) for port in self.ports], values)
        form = BATCH if batch.shape or batch.dtype != "float64" else ONE
        made = self.kernel(robot, batch.dtype, form) if batch.states and self.size else None
        return batch.run(made, [((self.size,), batch.dtype)], None, threads)[0]

    def kernel(self, robot: Robot, dtype: str, form: str) -> Kernel:
        """Its kernel."""
        recipe = Recipe(("function", self.name, *self.key), self._signature(), self._program)
        return kernel(robot, recipe, dtype, form)

    def _signature(self) -> Signature:
        return Signature(self.ports, (Slot("result", (self.size,)),))

    def _program(self) -> Program:
        graph = Graph()
        inputs = [[graph.input(port.name, k) for k in range(port.size)] for port in self.ports]
        results = [graph.lift(x) for x in self.trace(graph, inputs)]
        pivots = list(dict.fromkeys(pivot for pivot, _ in graph.pivots))
        regions, roots = assemble(graph, [*results, *pivots])
        values, watched = tuple(roots[: self.size]), tuple(roots[self.size :])
        output = Output("result", (self.size,), values)
        return guard(Program(self.name, self.ports, regions, (output,), watched))
