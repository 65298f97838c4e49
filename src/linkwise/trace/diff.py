"""Derivatives of a traced graph, as more nodes of it: forward, reverse, or a whole Jacobian.

Every operation has one rule: its derivative by each argument, as nodes. A forward pass carries a
tangent from the inputs to the outputs, a reverse pass an adjoint from the outputs to the inputs;
both go through the graph once, before multiply-adds are chosen. Derivatives are hash-consed and
folded like any nodes, so that what several columns or rows of a Jacobian share is computed once.

`sign`, `flag` and `finite` have the derivative 0, as they have wherever they have one. A choice has
the derivative of the alternative that is taken; in a reverse pass the other one is given the
adjoint 0, so its own derivative must be finite. A square root has the derivative 0 where it is 0:
functions of the length of a vector then have the derivative of a smooth one where there is none.

A forward pass goes through a loop that ends by a test: the loop carries tangents beside its values,
and each step differentiates itself. Such a derivative is that of the steps that were taken; of an
iteration that converges, it converges one step later than the value. A reverse pass, which would
need all steps backward, has no rule for it, nor has any pass for what counted loops read: those
have ``rolled_tangents.py`` and ``rolled_adjoints.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from linkwise.algorithms.dense import unit
from linkwise.spatial.scalar import select
from linkwise.trace.expr import Expr, Graph, Loop, reachable, summed

Mode = Literal["forward", "reverse", "auto"]


class NotDifferentiable(ValueError):
    """The graph holds an operation that has no derivative rule."""


def _none(*_: Expr) -> tuple[Expr | float, ...]:
    return ()


# node -> its derivative by each argument; a missing one is 0
PARTIALS: dict[str, Callable[[Expr], tuple[Expr | float, ...]]] = {
    "input": _none,
    "const": _none,
    "eps": _none,
    "sign": _none,
    "flag": _none,
    "finite": _none,
    "add": lambda n: (1.0, 1.0),
    "sub": lambda n: (1.0, -1.0),
    "neg": lambda n: (-1.0,),
    "mul": lambda n: (n.args[1], n.args[0]),
    "div": lambda n: (1.0 / n.args[1], -n / n.args[1]),
    "sin": lambda n: (n.graph.node("cos", n.args[0]),),
    "cos": lambda n: (-n.graph.node("sin", n.args[0]),),
    "sqrt": lambda n: (select(n, 0.5 / n, 0.0),),
    "atan2": lambda n: _angle(*n.args),
    "fma": lambda n: (n.args[1], n.args[0], 1.0),
    "fms": lambda n: (n.args[1], n.args[0], -1.0),
    "fnma": lambda n: (-n.args[1], -n.args[0], 1.0),
}


def _angle(y: Expr, x: Expr) -> tuple[Expr, Expr]:
    per_square = 1.0 / (x * x + y * y)
    return x * per_square, -(y * per_square)


def jvp(
    outputs: Sequence[Expr], inputs: Sequence[Expr], directions: Sequence[Expr | float]
) -> list[Expr]:
    """The derivative of each output along one direction of the inputs: a forward pass."""
    if not outputs:
        return []
    graph = outputs[0].graph
    tangents = {x.id: graph.lift(d) for x, d in zip(inputs, directions, strict=True)}
    nodes = _through_loops(graph, outputs)
    _refuse(nodes, "carry")
    carried = _carried_along(graph, nodes, {k for k, d in tangents.items() if d is not graph.zero})
    more = {carry.id: _carry_beside(graph, carried, carry) for carry in carried}
    tangents = {**more, **tangents}
    for node in nodes:
        if node.id not in tangents:
            tangents[node.id] = tangent_of(graph, node, tangents)
    for carry in carried:
        _carry_more(graph, carry, more[carry.id], tangents)
    return [tangents[y.id] for y in outputs]


def _loop_of(graph: Graph, carry: Expr) -> tuple[Loop, int]:
    """The loop that carries a value, and its place there."""
    number, k = carry.value
    loop = graph.loops[number] if number < len(graph.loops) else None
    if not isinstance(loop, Loop):
        raise NotDifferentiable(
            "what a counted loop carries has no derivative rule; expected straight-line equations, "
            "or a loop that ends by a test"
        )
    return loop, k


def _through_loops(graph: Graph, outputs: Sequence[Expr]) -> list[Expr]:
    """Nodes that the outputs depend on, those inside loops too, in the order of their creation."""
    found: dict[int, Expr] = {}
    rest = list(outputs)
    while rest:
        new = [node for node in reachable(rest) if node.id not in found]
        found |= {node.id: node for node in new}
        rest = []
        for carry in (node for node in new if node.op == "carry"):
            loop, k = _loop_of(graph, carry)
            rest += [loop.starts[k], loop.nexts[k]]
    return [found[i] for i in sorted(found)]


def _carried_along(graph: Graph, nodes: Sequence[Expr], moving: set[int]) -> list[Expr]:
    """The carried values that change while some nodes do."""
    carries = [node for node in nodes if node.op == "carry" and node.id not in moving]
    found: list[Expr] = []
    while True:
        changing = _depending_on(nodes, (*moving, *(x.id for x in found)))
        new = [x for x in carries if x not in found and _starts_or_steps(graph, x) & changing]
        if not new:
            return found
        found += new


def _starts_or_steps(graph: Graph, carry: Expr) -> set[int]:
    loop, k = _loop_of(graph, carry)
    return {loop.starts[k].id, loop.nexts[k].id}


def _carry_beside(graph: Graph, carried: Sequence[Expr], carry: Expr) -> Expr:
    """A new carried value: the tangent of another one."""
    loop, _ = _loop_of(graph, carry)
    same = [x for x in carried if x.value[0] == carry.value[0]]
    place = len(loop.carries) + same.index(carry)
    return graph.node("carry", value=(carry.value[0], place))


def _carry_more(graph: Graph, carry: Expr, beside: Expr, tangents: dict[int, Expr]) -> None:
    """Let the loop of a value carry its tangent too."""
    loop, k = _loop_of(graph, carry)
    starts, nexts = tangents[loop.starts[k].id], tangents[loop.nexts[k].id]
    more = ([*loop.carries, beside], [*loop.starts, starts], [*loop.nexts, nexts])
    graph.loops[carry.value[0]] = Loop(loop.limit, *more, loop.active)


def tangent_of(graph: Graph, node: Expr, tangents: dict[int, Expr]) -> Expr:
    """The tangent of a node from those of its arguments."""
    own = [tangents[a.id] for a in node.args]
    if all(t is graph.zero for t in own):
        return graph.zero
    if node.op == "select":
        return select(node.args[0], own[1], own[2])  # type: ignore[no-any-return]
    partials = PARTIALS[node.op](node)
    return summed(graph, (t * p for t, p in zip(own, partials, strict=False)))


def vjp(
    outputs: Sequence[Expr],
    inputs: Sequence[Expr],
    weights: Sequence[Expr | float],
    *,
    known: Sequence[str] = (),
) -> list[Expr]:
    """The derivative of the weighted sum of the outputs by each input: a reverse pass.

    Operations that are ``known`` are constants where they are no inputs.
    """
    if not outputs:
        return [x.graph.zero for x in inputs]
    graph = outputs[0].graph
    nodes = reachable(outputs, frozenset(x.id for x in inputs))
    _refuse(nodes, *known)
    moving = _depending_on(nodes, (x.id for x in inputs))
    adjoints: dict[int, Expr] = {}
    for y, w in zip(outputs, weights, strict=True):
        adjoints[y.id] = adjoints.get(y.id, graph.zero) + w
    for node in reversed(nodes):
        adjoint = adjoints.get(node.id, graph.zero)
        if adjoint is graph.zero or not node.args:
            continue
        for arg, part in zip(node.args, _parts(graph, node, adjoint), strict=False):
            if arg.id in moving:
                adjoints[arg.id] = adjoints.get(arg.id, graph.zero) + part
    return [adjoints.get(x.id, graph.zero) for x in inputs]


def _parts(graph: Graph, node: Expr, adjoint: Expr) -> list[Expr]:
    """What an adjoint adds to that of each argument."""
    if node.op == "select":
        condition = node.args[0]
        return [graph.zero, select(condition, adjoint, 0.0), select(condition, 0.0, adjoint)]
    return [adjoint * partial for partial in PARTIALS[node.op](node)]


def jacobian(
    outputs: Sequence[Expr], inputs: Sequence[Expr], mode: Mode = "auto"
) -> list[list[Expr]]:
    """The derivative of every output (rows) by every input (columns).

    ``auto`` traces both modes and takes the one of fewer operations.
    """
    if mode == "auto":
        both = (jacobian(outputs, inputs, way) for way in ("forward", "reverse"))
        return min(both, key=lambda rows: len(reachable(x for row in rows for x in row)))
    if mode == "reverse":
        return [vjp([y], inputs, [1.0]) for y in outputs]
    if mode == "forward":
        columns = [jvp(outputs, inputs, direction) for direction in unit(len(inputs))]
        return [[column[row] for column in columns] for row in range(len(outputs))]
    raise ValueError(f"mode {mode!r}: expected 'forward', 'reverse' or 'auto'")


def _refuse(nodes: Sequence[Expr], *known: str) -> None:
    """Raise NotDifferentiable where a node has no rule, besides the operations that are known."""
    for node in nodes:
        if node.op in ("carry", "read") and node.op not in known:
            raise NotDifferentiable(
                "what a loop carries or reads has no derivative rule; expected straight-line "
                "equations (for forward dynamics, a method that does not iterate)"
            )
        if node.op not in PARTIALS and node.op not in ("select", *known):
            raise NotDifferentiable(f"{node!r}: no derivative rule for {node.op!r}")


def _depending_on(nodes: Iterable[Expr], moving: Iterable[int]) -> set[int]:
    """Ids of nodes that move, and of those that depend on them."""
    found = set(moving)
    for node in nodes:
        if any(a.id in found for a in node.args):
            found.add(node.id)
    return found
