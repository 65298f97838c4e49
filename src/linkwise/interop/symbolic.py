"""What the two doors to symbols share: the equations of a function, run on a package's scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple, NoReturn

from linkwise.algorithms import functions_of
from linkwise.engine.calls import Calls
from linkwise.engine.tasks import Key
from linkwise.interop.arguments import names
from linkwise.spatial import scalar
from linkwise.trace.expr import Graph, TooManyNodes, reachable
from linkwise.trace.program import Port
from linkwise.trace.tracer import Task, evaluate, flatten

MOST_NODES = 1_000_000  # of which no expression is worth writing


class Scalars(NamedTuple):
    """A package's functions of its own scalars."""

    kind: type
    sin: Callable[[Any], Any]
    cos: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    sign: Callable[[Any], Any]
    atan2: Callable[[Any, Any], Any]
    select: Callable[[Any, Any, Any], Any]  # of a condition that is positive or not


class NoExpression(ValueError):
    """A function that a loop computes until its numbers say stop: no expression is that."""


def register(own: Scalars) -> None:
    """Let equations run on a package's scalars (``spatial/scalar.py``)."""

    def refuse(*_: Any) -> NoReturn:
        raise NoExpression("iterates until its numbers say stop, which no expression can")

    kind = own.kind
    scalar.sincos.register(kind, lambda x: (own.sin(x), own.cos(x)))
    scalar.sqrt.register(kind, own.sqrt)
    scalar.sign.register(kind, own.sign)
    scalar.select.register(kind, own.select)
    scalar.known.register(kind, lambda x: False)
    scalar.rounding.register(kind, lambda like: 2.0**-52)
    scalar._atan2.register(kind, lambda _, y, x: own.atan2(y, x))
    scalar._repeat.register(kind, refuse)


class Wanted(NamedTuple):
    """A function to be run, and its inputs."""

    task: Task
    calls: Calls
    ports: tuple[Port, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.task.algorithm.output_shape(self.calls.tasks.tree)

    def written_size(self, values: Sequence[Sequence[float | None]], choice: float) -> float:
        """How many numbers, symbols and operators the result has, shared parts counted at each use,
        choices so many times; None stands for a symbol.
        """
        if all(x is not None for own in values for x in own):
            return 0.0  # a number each
        graph, tree = Graph(MOST_NODES), self.calls.tasks.tree
        inputs = [
            [graph.input(port.name, k) if x is None else graph.const(x) for k, x in enumerate(own)]
            for port, own in zip(self.ports, values, strict=True)
        ]
        try:
            results = [graph.lift(x) for x in flatten(evaluate(self.task, tree, *inputs))]
        except TooManyNodes:
            return inf
        size: dict[int, float] = {}
        for node in reachable(results):
            own = 1.0 + sum(size[x.id] for x in node.args)
            size[node.id] = own * choice if node.op == "select" else own
        return sum(size[x.id] for x in results)

    def run(self, what: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        """The numbers of the result, in order."""
        try:
            return list(flatten(evaluate(self.task, self.calls.tasks.tree, *values)))
        except NoExpression as error:
            own, tree = self.task.algorithm, self.calls.tasks.tree
            methods = functions_of(tree)[own.function].values()
            others = [x.method for x in methods if x != own and not (x.iterates or x.why_not(tree))]
            instead = f"; expected one of {', '.join(map(repr, others))}" if others else ""
            raise NoExpression(f"{what}: {self.task.name} {error}{instead}") from None


def wanted(calls: Calls, key: Key) -> Wanted:
    """The function that a key names, every name checked; inputs without tolerance and limit."""
    task = calls.tasks.task(key)
    ports = [port for port in task.ports(calls.tasks.tree) if port.name not in ("tol", "limit")]
    named = zip(names(ports, key.external), ports, strict=True)
    return Wanted(task, calls, tuple(Port(name, port.size) for name, port in named))
