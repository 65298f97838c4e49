"""Traced scalars: a hash-consed graph that folds work away while it is built.

Equal expressions are one node. Multiplications by 0, 1 and -1, additions of 0, operations on
constants, and pairs that cancel (``x - x``, ``a - (a - b)``, ``x * (1/x)``) never become nodes.
Signs are pulled outward and constants made positive, so that ``-(a*b)`` and ``(-a)*b``, ``a - b``
and ``b - a``, are one node plus a sign, which a sum absorbs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from linkwise.spatial.dual import Dual, lifted
from linkwise.spatial.scalar import (
    Step,
    _atan2,
    _repeat,
    atan2,
    flagged,
    known,
    never_positive,
    reciprocal,
    rounding,
    select,
    sign,
    sincos,
    sqrt,
)

# operations a program may contain, with their number of arguments
ARITY = {
    "input": 0,
    "carry": 0,
    "read": 0,  # of an array, at an index that depends on the step of a counted loop
    "const": 0,
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "neg": 1,
    "sin": 1,
    "cos": 1,
    "sqrt": 1,
    "atan2": 2,  # the angle of the point (x, y): arguments y, x
    "select": 3,  # the second where the first is positive, else the third
    "sign": 1,
    "flag": 1,  # 1 where positive, else 0
    "finite": 1,  # 1 where neither infinite nor NaN, else 0
    "eps": 0,  # rounding unit of the number type
    "fma": 3,  # a*b + c, rounded once
    "fms": 3,  # a*b - c
    "fnma": 3,  # c - a*b
}


class Expr:
    """A node of the graph; arithmetic on it adds nodes.

    A dual whose parts are nodes decides what it makes of a node: as the second operand it is left
    to its reflected methods, as NumPy leaves it (``Dual.__array_ufunc__``).
    """

    __slots__ = ("args", "graph", "id", "op", "value")

    def __init__(self, graph: Graph, id_: int, op: str, args: tuple[Expr, ...], value: Any) -> None:
        self.graph, self.id, self.op, self.args, self.value = graph, id_, op, args, value

    def __repr__(self) -> str:
        inner = repr(self.value) if not self.args else ", ".join(f"%{a.id}" for a in self.args)
        return f"%{self.id} = {self.op}({inner})"

    def __add__(self, o: Any) -> Expr:
        if isinstance(o, Dual):
            return NotImplemented
        return self.graph.add(self, self.graph.lift(o))

    def __radd__(self, o: float) -> Expr:
        return self.graph.add(self.graph.lift(o), self)

    def __sub__(self, o: Any) -> Expr:
        if isinstance(o, Dual):
            return NotImplemented
        return self.graph.sub(self, self.graph.lift(o))

    def __rsub__(self, o: float) -> Expr:
        return self.graph.sub(self.graph.lift(o), self)

    def __mul__(self, o: Any) -> Expr:
        if isinstance(o, Dual):
            return NotImplemented
        return self.graph.mul(self, self.graph.lift(o))

    def __rmul__(self, o: float) -> Expr:
        return self.graph.mul(self.graph.lift(o), self)

    def __truediv__(self, o: Any) -> Expr:
        if isinstance(o, Dual):
            return NotImplemented
        return self.graph.div(self, self.graph.lift(o))

    def __rtruediv__(self, o: float) -> Expr:
        return self.graph.div(self.graph.lift(o), self)

    def __neg__(self) -> Expr:
        return self.graph.neg(self)


@sincos.register(Expr)
def _(angle: Expr) -> tuple[Expr, Expr]:
    graph = angle.graph
    return graph.turned(angle) or (graph.node("sin", angle), graph.node("cos", angle))


known.register(Expr, lambda x: False)
never_positive.register(Expr, lambda x: x.op == "const" and _float(x) <= 0.0)
sign.register(Expr, lambda x: x.graph.node("sign", x))


@rounding.register(Expr)
def _(like: Expr) -> Expr:
    return like.graph.node("eps")


@sqrt.register(Expr)
def _(x: Expr) -> Expr:
    return x.graph.const(sqrt(_float(x))) if x.op == "const" else x.graph.node("sqrt", x)


@select.register(Expr)
def _(condition: Expr, a: Any, b: Any) -> Any:
    if isinstance(a, Dual) or isinstance(b, Dual):
        return select(lifted(condition), a, b)
    graph = condition.graph
    first, second = graph.lift(a), graph.lift(b)
    if condition.op == "const":
        return first if _float(condition) > 0 else second
    return first if first is second else graph.node("select", condition, first, second)


@_atan2.register(Expr)
def _(like: Expr, y: Any, x: Any) -> Any:
    if isinstance(y, Dual) or isinstance(x, Dual):
        return _atan2(lifted(like), y, x)
    graph = like.graph
    up, along = graph.lift(y), graph.lift(x)
    if up.op == along.op == "const":
        return graph.const(atan2(_float(up), _float(along)))
    return graph.node("atan2", up, along)


@_repeat.register(Expr)
def _(x: Expr, step: Step, state: Sequence[Expr | float], limit: Expr | float) -> list[Expr]:
    """Trace the step once, on carried values; what comes after the loop sees their last state."""
    graph = x.graph
    carries = [graph.node("carry", value=(len(graph.loops), k)) for k in range(len(state))]
    starts = [graph.lift(s) for s in state]
    new, active = step(list(carries))
    nexts = [graph.lift(n) for n in new]
    graph.loops.append(Loop(graph.lift(limit), carries, starts, nexts, graph.lift(active)))
    return carries


@reciprocal.register(Expr)
def _(x: Expr, scale: Any = 0.0) -> Expr:
    if x.op == "const":
        return x.graph.const(reciprocal(_float(x)))
    # a pivot is compared with the value of its scale, whichever way that changes
    x.graph.pivots.append((x, x.graph.lift(lifted(scale).value)))
    return 1.0 / x


@flagged.register(Expr)
def _(x: Expr, bit: str) -> None:
    if x.op != "const" or _float(x) > 0.0:
        x.graph.flags.append((x, bit))


class Loop(NamedTuple):
    """A loop that ends by a test, as it was traced."""

    limit: Expr
    carries: list[Expr]
    starts: list[Expr]
    nexts: list[Expr]
    active: Expr

    def roots(self) -> list[Expr]:
        """Every node that the loop needs."""
        return [*self.starts, *self.nexts, self.active, self.limit]

    def renamed(self, roots: Iterator[Expr]) -> Loop:
        """The same loop with the next nodes in place of its roots."""
        starts, nexts = ([next(roots) for _ in some] for some in (self.starts, self.nexts))
        active = next(roots)
        return Loop(next(roots), self.carries, starts, nexts, active)


Whole = int | str  # a number, or the name of a list of one that is given with the tables


def whole(x: Whole, lists: Mapping[str, Any]) -> int:
    """A number that may be given with the tables."""
    return int(lists[x][0]) if isinstance(x, str) else x


class Order(NamedTuple):
    """The item that step k of a counted loop is about: ``first + step k``."""

    first: Whole = 0
    step: int = 1

    def item(self, k: int, lists: Mapping[str, Any]) -> int:
        """The item of a step."""
        return whole(self.first, lists) + self.step * k


FORTH = Order()


class At(NamedTuple):
    """The element of an array that step k of a counted loop touches.

    ``start + stride x``, where x is the step's item, or what a list of places has for the item.
    """

    start: int
    stride: int = 0
    places: str = ""  # name of the list
    order: Order = FORTH

    def element(self, k: int, lists: Mapping[str, Any]) -> int:
        """The element of a step."""
        item = self.order.item(k, lists)
        return self.start + self.stride * int(lists[self.places][item] if self.places else item)


class Write(NamedTuple):
    """A value written at the end of a step: to an output, or to a program's scratch."""

    array: str
    at: At
    value: Expr
    every: int = 1  # only at the end of each so many steps; the index then counts the writes
    add: bool = False  # to what is there (scratch only)


class Done(NamedTuple):
    """What a step of a counted loop ends with: carried values, and elements to write."""

    nexts: list[Expr]
    writes: list[Write]

    def roots(self) -> list[Expr]:
        """Every node that the step needs."""
        return [*self.nexts, *(write.value for write in self.writes)]

    def renamed(self, roots: Iterator[Expr]) -> Done:
        """The same with the next nodes in place of its roots."""
        nexts = [next(roots) for _ in self.nexts]
        return Done(nexts, [write._replace(value=next(roots)) for write in self.writes])


class Counted(NamedTuple):
    """A loop of a fixed number of steps, as it was traced; which of its cases a step is, a list of
    places says.
    """

    steps: Whole
    carries: list[Expr]
    starts: list[Expr]
    cases: list[Done]
    which: At | None = None
    limit: Expr | None = None  # fewer steps than that, known before the loop

    def roots(self) -> list[Expr]:
        """Every node that the loop needs."""
        inside = [root for case in self.cases for root in case.roots()]
        return [*self.starts, *inside, *([] if self.limit is None else [self.limit])]

    def renamed(self, roots: Iterator[Expr]) -> Counted:
        """The same loop with the next nodes in place of its roots."""
        starts = [next(roots) for _ in self.starts]
        cases = [case.renamed(roots) for case in self.cases]
        limit = None if self.limit is None else next(roots)
        return self._replace(starts=starts, cases=cases, limit=limit)


class TooManyNodes(MemoryError):
    """A trace was longer than its limit."""


class Graph:
    """All nodes of one trace, at most ``most`` of them."""

    def __init__(self, most: int = 2**62) -> None:
        self.most = most
        self.nodes: list[Expr] = []
        self.loops: list[Loop | Counted] = []  # in order of execution
        self.pivots: list[tuple[Expr, Expr]] = []  # what was divided by, and its scale
        self.flags: list[tuple[Expr, str]] = []  # where positive, a bit of the state's status
        # the sine and cosine of an angle, where they need not be computed
        self.turned: Callable[[Expr], tuple[Expr, Expr] | None] = lambda angle: None
        self._known: dict[tuple[object, ...], Expr] = {}
        self.zero, self.one = self.const(0.0), self.const(1.0)

    def node(self, op: str, *args: Expr, value: object = None) -> Expr:
        """The node for an operation, made once."""
        key = (op, value, *args)  # nodes are equal to themselves only
        found = self._known.get(key)
        if found is None:
            if len(self.nodes) >= self.most:
                raise TooManyNodes
            found = Expr(self, len(self.nodes), op, args, value)
            self.nodes.append(found)
            self._known[key] = found
        return found

    def const(self, value: float) -> Expr:
        """A constant."""
        return self.node("const", value=float(value) + 0.0)  # -0.0 becomes 0.0

    def input(self, port: str, index: int) -> Expr:
        """An element of an input."""
        return self.node("input", value=(port, index))

    def lift(self, x: Expr | float) -> Expr:
        """A traced scalar from either kind of number."""
        return x if isinstance(x, Expr) else self.const(x)

    def add(self, a: Expr, b: Expr) -> Expr:
        """``a + b``."""
        if a is self.zero:
            return b
        if b is self.zero:
            return a
        if a.op == "const" and b.op == "const":
            return self.const(_float(a) + _float(b))
        if _lost(a) or _lost(b):
            return a if _lost(a) else b
        if b.op == "neg":
            return self.sub(a, b.args[0])
        if a.op == "neg":
            return self.sub(b, a.args[0])
        if a.op == "sub" and a.args[1] is b:
            return a.args[0]
        if b.op == "sub" and b.args[1] is a:
            return b.args[0]
        return self.node("add", *((a, b) if a.id < b.id else (b, a)))

    def sub(self, a: Expr, b: Expr) -> Expr:
        """``a - b``."""
        if _lost(a) or _lost(b):
            return a if _lost(a) else b
        if a is b:
            return self.zero
        if b is self.zero:
            return a
        if a is self.zero:
            return self.neg(b)
        if a.op == "const" and b.op == "const":
            return self.const(_float(a) - _float(b))
        if b.op == "neg":
            return self.add(a, b.args[0])
        if a.op == "neg":
            return self.neg(self.add(a.args[0], b))
        if b.op == "sub" and b.args[0] is a:
            return b.args[1]
        if a.op == "add" and b in a.args:
            return a.args[1] if a.args[0] is b else a.args[0]
        swapped = self._known.get(("sub", None, b, a))
        return self.node("sub", a, b) if swapped is None else self.neg(swapped)

    def neg(self, a: Expr) -> Expr:
        """``-a``."""
        if a.op == "neg":
            return a.args[0]
        if a.op == "const":
            return self.const(-_float(a))
        return self.node("neg", a)

    def mul(self, a: Expr, b: Expr) -> Expr:
        """``a * b``."""
        if b.op == "const":
            a, b = b, a
        if a.op == "const":
            return self._scale(a, b)
        if a.op == "neg":
            return self.neg(self.mul(a.args[0], b))
        if b.op == "neg":
            return self.neg(self.mul(a, b.args[0]))
        for x, y in ((a, b), (b, a)):
            rest = self._without_reciprocal(x, y)
            if rest is not None:
                return rest
        return self.node("mul", *((a, b) if a.id < b.id else (b, a)))

    def _scale(self, k: Expr, x: Expr) -> Expr:
        value = _float(k)
        if _lost(k) or _lost(x):
            return k if _lost(k) else x
        if value == 0.0:
            return self.zero
        if value == 1.0:
            return x
        if value < 0.0:
            return self.neg(self._scale(self.const(-value), x))
        if x.op == "const":
            return self.const(value * _float(x))
        if x.op == "neg":
            return self.neg(self._scale(k, x.args[0]))
        if x.op == "mul" and x.args[0].op == "const":
            return self._scale(self.const(value * _float(x.args[0])), x.args[1])
        return self.node("mul", k, x)

    def _without_reciprocal(self, x: Expr, y: Expr) -> Expr | None:
        """``x * y`` where y holds the factor 1/x."""
        if _is_reciprocal(y, x):
            return self.one
        if y.op == "mul":
            for factor, rest in (y.args, y.args[::-1]):
                if _is_reciprocal(factor, x):
                    return rest
        return None

    def div(self, a: Expr, b: Expr) -> Expr:
        """``a / b``."""
        if b is self.one or a is self.zero:
            return a
        if a.op == "const" and b.op == "const":
            return self.const(_float(a) / _float(b))
        if a is b:
            return self.one
        if b.op == "neg":
            return self.neg(self.div(a, b.args[0]))
        if a.op == "neg":
            return self.neg(self.div(a.args[0], b))
        if b.op == "const":
            return self.mul(a, self.const(1.0 / _float(b)))
        return self.node("div", a, b)


def _float(a: Expr) -> float:
    assert isinstance(a.value, float)
    return a.value


def _lost(x: Expr) -> bool:
    """Whether a node is NaN, the reciprocal of a constant pivot of zero: so is all that it enters,
    zero times it as well.
    """
    return x.op == "const" and x.value != x.value


def _is_reciprocal(y: Expr, x: Expr) -> bool:
    return y.op == "div" and y.args[1] is x and y.args[0].value == 1.0


def summed(graph: Graph, terms: Iterable[Expr]) -> Expr:
    """Terms added up, from the first to the last."""
    return reduce(add, terms, graph.zero)


def reachable(roots: Iterable[Expr], known: frozenset[int] = frozenset()) -> list[Expr]:
    """Nodes that the roots depend on, arguments before users; not beyond what is known."""
    seen: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id not in seen and node.id not in known:
            seen[node.id] = node
            stack.extend(node.args)
    return [seen[i] for i in sorted(seen)]
