"""A function of a robot and its derivatives of any order, as kernels: what autograd is made of.

A `Node` is a function of rows: inputs and outputs of given sizes, and how its equations are traced.
Its `vjp`, `jvp` and `jacobian` are nodes again, traced by differentiating the graph
(``trace/diff.py``), so that derivatives of derivatives need nothing more.

Derivatives are by the numbers of the inputs; of a quaternion, by all four. A function reads the
turn of a quaternion p of any length, f(p) = f(p/|p|), and the derivative is that of this function:
along p it is zero, and p need not stay on the sphere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from linkwise.backends.base import BATCH, USUAL, Backend, Effort, Kernel
from linkwise.engine.build import TRACING, free_memory
from linkwise.engine.calls import Calls
from linkwise.engine.equations import Equations, Values
from linkwise.engine.tasks import Key
from linkwise.errors import NoProgram, ProgramTooLarge, quote
from linkwise.trace import diff
from linkwise.trace.expr import Expr, Graph, TooManyNodes
from linkwise.trace.guard import guard
from linkwise.trace.program import Port, Program, Slot
from linkwise.trace.tracer import evaluate, flatten, program_of, used_pivots

Trace = Callable[[Graph, Values], Values]


class Node:
    """A function of rows, and its derivatives."""

    def __init__(
        self,
        calls: Calls,
        name: str,
        key: tuple[Any, ...],
        ports: tuple[Port, ...],
        slots: tuple[Slot, ...],
        trace: Trace,
    ) -> None:
        self.calls, self.name, self.key, self.trace = calls, name, key, trace
        self.ports, self.slots = ports, slots
        equations = Equations(name, ("derived", *key), ports, slots, self._program)
        self._function = calls.compiled(equations)

    @cached_property
    def vjp(self) -> Node:
        """(inputs, a weight for each number of each output) -> for each input, the derivative of
        the weighted sum.
        """
        ports, k = self.ports, len(self.ports)

        def trace(graph: Graph, inputs: Values) -> Values:
            results = _flat(self.trace(graph, inputs[:k]))
            found = diff.vjp(results, _flat(inputs[:k]), _flat(inputs[k:]))
            return _cut(found, [port.size for port in ports])

        weights = tuple(Port(f"w{len(ports) + i}", s.size) for i, s in enumerate(self.slots))
        slots = tuple(Slot(f"g{i}", (port.size,)) for i, port in enumerate(ports))
        return self._derived("vjp", (*ports, *weights), slots, trace)

    @cached_property
    def jvp(self) -> Node:
        """(inputs, a rate for each number of each input) -> the rate of each output."""
        ports, k = self.ports, len(self.ports)

        def trace(graph: Graph, inputs: Values) -> Values:
            results = _flat(self.trace(graph, inputs[:k]))
            found = diff.jvp(results, _flat(inputs[:k]), _flat(inputs[k:]))
            return _cut(found, [slot.size for slot in self.slots])

        rates = tuple(Port(f"r{len(ports) + i}", port.size) for i, port in enumerate(ports))
        slots = tuple(Slot(f"r{i}", slot.shape) for i, slot in enumerate(self.slots))
        return self._derived("jvp", (*ports, *rates), slots, trace)

    @cached_property
    def jacobian(self) -> Node:
        """inputs -> for each output, the derivatives by each input (output's size, input's)."""
        sizes = [port.size for port in self.ports]

        def trace(graph: Graph, inputs: Values) -> Values:
            rows = iter(diff.jacobian(_flat(self.trace(graph, inputs)), _flat(inputs)))
            found: Values = []
            for slot in self.slots:
                parts = [_cut(row, sizes) for row in islice(rows, slot.size)]
                found += [[x for part in parts for x in part[i]] for i in range(len(sizes))]
            return found

        slots = tuple(
            Slot(f"j{i}_{k}", (slot.size, size))
            for i, slot in enumerate(self.slots)
            for k, size in enumerate(sizes)
        )
        return self._derived("jacobian", self.ports, slots, trace)

    def _derived(
        self, kind: str, ports: tuple[Port, ...], slots: tuple[Slot, ...], trace: Trace
    ) -> Node:
        return Node(self.calls, f"{self.name}, {kind}", (*self.key, kind), ports, slots, trace)

    def run(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs (..., shape) of arrays (..., size), in the library and place of these."""
        found = self._function(values)
        return found if len(self.slots) > 1 else (found,)

    def kernel(self, dtype: str, backend: Backend | None = None) -> Kernel:
        """The kernel for many states."""
        return self._function.kernel(dtype, BATCH, backend)

    def program(self) -> Program:
        """The node as a program, guarded; refused if it could not be compiled."""
        return guard(self._program(USUAL))

    def _program(self, effort: Effort) -> Program:
        most = free_memory() // (TRACING + effort.bytes)
        try:
            return self._traced(Graph(most))
        except TooManyNodes:
            raise ProgramTooLarge(
                f"{self.name} of {quote(self.calls.tasks.name)}: more than {most:,} operations, "
                "which cannot be compiled in the free memory; expected a smaller robot "
                "(robot.lock, robot.sub_chain), or robot.vjp and robot.jvp"
            ) from None

    def _traced(self, graph: Graph) -> Program:
        inputs = [[graph.input(port.name, i) for i in range(port.size)] for port in self.ports]
        results = _flat(self.trace(graph, inputs))
        graph.pivots = used_pivots(graph, results)
        return program_of(self.name, self.ports, graph, self.slots, results)


def node(calls: Calls, key: Key) -> Node:
    """The node of a function of a robot, every name checked."""
    tree, task = calls.tasks.tree, calls.tasks.task(key)
    if task.algorithm.iterates:
        raise ValueError(
            f"{task.name}: an iteration has no derivatives here; expected another method"
        )

    if task.rolled:
        raise NoProgram(
            f"{task.name} of {quote(calls.tasks.name)}: its code is loops over the robot's "
            f"{tree.n_links} links, and PyTorch, JAX and CasADi take unrolled code only; expected "
            "robot.vjp and robot.jvp, which are loops too, or robot.with_codegen('unrolled'), "
            "whose code and time to compile grow with the links"
        )

    def trace(graph: Graph, inputs: Values) -> Values:
        return [[graph.lift(x) for x in flatten(evaluate(task, tree, *inputs))]]

    slot = Slot("result", task.algorithm.output_shape(tree))
    content = (task.name, task.frame, task.axes, task.external, task.parameters)
    return Node(calls, task.name, content, task.ports(tree), (slot,), trace)


def _flat(values: Values) -> list[Expr]:
    return [x for value in values for x in value]


def _cut(values: Sequence[Expr], sizes: Sequence[int]) -> Values:
    rest = iter(values)
    return [list(islice(rest, size)) for size in sizes]
