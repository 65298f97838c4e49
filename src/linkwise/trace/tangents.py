"""Derivatives along motions: a configuration moves along its joints' rates, a pose by a twist.

A `Space` tells how the numbers of an argument or a result change at given rates:

    along     rates -> how the numbers change              for arguments, forward
    by_rate   derivatives by numbers -> by rates           its transpose, for arguments in reverse
    rates     how the numbers change -> rates              for results, forward
    weights   weights of rates -> weights of numbers       its transpose, for results in reverse

Between them, ``diff.py`` differentiates the graph by numbers. A second derivative is the derivative
of the first one's entries: with D_a the derivative along the rate a, entry (a, b) is ``D_b D_a f``.
D_a and D_b change places but within one spherical or free joint, whose rates are no derivatives of
coordinates: there ``D_b D_a - D_a D_b`` is the derivative along their bracket, and both are made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple, final

from linkwise.algorithms.configurations import tangent
from linkwise.algorithms.dense import unit
from linkwise.model.tree import Tree
from linkwise.spatial import total
from linkwise.trace import diff
from linkwise.trace.diff import Mode
from linkwise.trace.expr import Expr, reachable, summed
from linkwise.trace.implicit import Implicit

Values = Sequence[Expr | float]
MOST_WEIGHED = 8_000  # nodes up to which both modes are traced, to count the operations of each
FEWER = 3  # times fewer rows than columns, with which systems are solved for rows


class Space(ABC):
    """The numbers of an argument or result, and the rates at which they can change."""

    shape: tuple[int, ...]  # of the rates
    flat = False  # whether numbers change at their rates

    @property
    def size(self) -> int:
        """How many rates there are."""
        return prod(self.shape)

    @abstractmethod
    def along(self, x: list[Expr], v: Values) -> Values:
        """How numbers x change at the rates v."""

    @abstractmethod
    def by_rate(self, x: list[Expr], slopes: list[Expr]) -> list[Expr]:
        """Derivatives by rates from those by the numbers x."""

    @abstractmethod
    def rates(self, y: list[Expr], change: list[Expr]) -> list[Expr]:
        """The rates at which numbers y change so."""

    @abstractmethod
    def weights(self, y: list[Expr], w: Values) -> Values:
        """Weights of the numbers y whose sum is that of the rates with weights w."""

    def joints(self) -> list[int | None]:
        """Of each rate: the joint among whose rates the order of derivatives matters, if one."""
        return [None] * self.size


@final
class Numbers(Space):
    """Numbers that change at their rates."""

    flat = True

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def along(self, x: list[Expr], v: Values) -> Values:
        return v

    def by_rate(self, x: list[Expr], slopes: list[Expr]) -> list[Expr]:
        return slopes

    def rates(self, y: list[Expr], change: list[Expr]) -> list[Expr]:
        return change

    def weights(self, y: list[Expr], w: Values) -> Values:
        return w


@final
class Configurations(Space):
    """Configurations of a robot, which move at rates in the convention of ``qd``.

    The numbers of q change by columns that are perpendicular to each other, one for each rate, of
    the same lengths at every q: one, or a half for a turn. So rates are products with columns.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree, self.shape = tree, (tree.nv,)

    @cached_property
    def _squares(self) -> list[float]:
        """Of the length of each column."""
        rest = [x for link in self.tree.links if link.follows is None for x in link.joint.neutral()]
        columns = (tangent(self.tree, rest, e) for e in unit(self.tree.nv))
        return [total(x * x for x in column) for column in columns]

    def along(self, x: list[Expr], v: Values) -> Values:
        return tangent(self.tree, x, v)

    def by_rate(self, x: list[Expr], slopes: list[Expr]) -> list[Expr]:
        return [_dot(slopes, tangent(self.tree, x, e)) for e in unit(self.tree.nv)]

    def rates(self, y: list[Expr], change: list[Expr]) -> list[Expr]:
        found = self.by_rate(y, change)
        return [x * (1.0 / square) for x, square in zip(found, self._squares, strict=True)]

    def weights(self, y: list[Expr], w: Values) -> Values:
        scaled = [x * (1.0 / square) for x, square in zip(w, self._squares, strict=True)]
        return tangent(self.tree, y, scaled)

    def joints(self) -> list[int | None]:
        own = [link for link in self.tree.links if link.follows is None]
        return [k if x.joint.quasi else None for k, x in enumerate(own) for _ in range(x.joint.nv)]


@final
class States(Space):
    """A configuration and then as many numbers as it has rates."""

    def __init__(self, tree: Tree) -> None:
        self.first, self.rest = Configurations(tree), Numbers((tree.nv,))
        self.shape, self._nq = (2 * tree.nv,), tree.nq

    def along(self, x: list[Expr], v: Values) -> Values:
        raise NotImplementedError("no function takes a state as one argument")

    def by_rate(self, x: list[Expr], slopes: list[Expr]) -> list[Expr]:
        raise NotImplementedError("no function takes a state as one argument")

    def rates(self, y: list[Expr], change: list[Expr]) -> list[Expr]:
        n = self._nq
        return [*self.first.rates(y[:n], change[:n]), *change[n:]]

    def weights(self, y: list[Expr], w: Values) -> Values:
        n = self.first.size
        return [*self.first.weights(y[: self._nq], w[:n]), *w[n:]]


@final
class Poses(Space):
    """Poses (..., 4, 4), which move by twists: (angular, linear) of their origins, in base axes.

    A turning R has ``Ṙ = w~ R``, so that w is made of the rows of Ṙ and R.
    """

    def __init__(self, several: tuple[int, ...] = ()) -> None:
        self.shape = (*several, 6)

    def along(self, x: list[Expr], v: Values) -> Values:
        raise NotImplementedError("no function takes a pose")

    def by_rate(self, x: list[Expr], slopes: list[Expr]) -> list[Expr]:
        raise NotImplementedError("no function takes a pose")

    def rates(self, y: list[Expr], change: list[Expr]) -> list[Expr]:
        return [x for k in range(0, len(y), 16) for x in _twist(y[k : k + 16], change[k : k + 16])]

    def weights(self, y: list[Expr], w: Values) -> Values:
        pairs = ((y[16 * k : 16 * k + 16], w[6 * k : 6 * k + 6]) for k in range(len(y) // 16))
        return [x for pose, own in pairs for x in _wrench(pose, own)]


def _twist(pose: list[Expr], change: list[Expr]) -> list[Expr]:
    """How a pose moves whose numbers change."""
    x, y, z = _rows(pose)
    dx, dy, dz = _rows(change)
    return [_dot(dz, y), _dot(dx, z), _dot(dy, x), *(change[k] for k in (3, 7, 11))]


def _wrench(pose: list[Expr], w: Values) -> Values:
    """Weights of a pose's numbers whose sum is that of its twist with weights w."""
    x, y, z = _rows(pose)
    turned = [[a * w[1] for a in z], [a * w[2] for a in x], [a * w[0] for a in y]]
    rows = ([*row, w[3 + k]] for k, row in enumerate(turned))
    return [*(a for row in rows for a in row), 0.0, 0.0, 0.0, 0.0]


def _rows(pose: Sequence[Expr]) -> list[Sequence[Expr]]:
    return [pose[4 * k : 4 * k + 3] for k in range(3)]


def _dot(a: Sequence[Expr], b: Values) -> Expr:
    graph = a[0].graph
    return summed(graph, (x * y for x, y in zip(a, b, strict=True)))


class Argument(NamedTuple):
    """An argument of a function: its numbers, and how they can change."""

    numbers: list[Expr]
    space: Space


Rows = list[list[Expr]]  # of each rate of the result: its derivative by each rate of the arguments


class Traced(NamedTuple):
    """A function's results, and the arguments that they are differentiated by."""

    results: list[Expr]
    space: Space
    arguments: list[Argument]
    implicit: Implicit | None = None  # whose unknowns the results depend on, if on some

    @property
    def rates(self) -> int:
        """Of all arguments together."""
        return sum(each.space.size for each in self.arguments)

    def along(self, directions: Sequence[Values]) -> list[Expr]:
        """The rates of the result at given rates of each argument: a forward pass."""
        change = self.changes(self.results, directions)
        return self.space.rates(self.results, change)

    def changes(self, values: list[Expr], directions: Sequence[Values]) -> list[Expr]:
        """How numbers change at given rates of each argument."""
        pairs = zip(self.arguments, directions, strict=True)
        moved = [x for each, v in pairs for x in each.space.along(each.numbers, v)]
        if self.implicit is not None:
            return self.implicit.changes(values, self._numbers, moved)
        return diff.jvp(values, self._numbers, moved)

    @property
    def _numbers(self) -> list[Expr]:
        """Of all arguments."""
        return [x for each in self.arguments for x in each.numbers]

    def gradient(self, weights: Values) -> list[Expr]:
        """The derivative of the weighted sum of the result's rates, by each rate.

        In reverse; forward where there are choices, among whose alternatives one that is not taken
        may have no finite derivative.
        """
        if self.has_choices():
            return [_dot(self.along(v), weights) for v in self.directions()]
        own = self.space.weights(self.results, weights)
        if self.implicit is not None:
            by = self.implicit.gradient(self.results, self._numbers, own)
        else:
            by = diff.vjp(self.results, self._numbers, own)
        rest, found = iter(by), []
        for numbers, space in self.arguments:
            found += space.by_rate(numbers, [next(rest) for _ in numbers])
        return found

    def has_choices(self) -> bool:
        """Whether what is differentiated has choices between alternatives, or loops, which end by
        one.
        """
        equations = [] if self.implicit is None else self.implicit.residual
        nodes = reachable([*self.results, *equations])
        return any(node.op in ("select", "carry") for node in nodes)

    def directions(self) -> list[list[Values]]:
        """Rates of all arguments of which one is 1 and all others are zero."""
        sizes = [each.space.size for each in self.arguments]
        still: list[Values] = [[0.0] * size for size in sizes]
        return [
            [e if other == k else still[other] for other in range(len(sizes))]
            for k, size in enumerate(sizes)
            for e in unit(size)
        ]

    def jacobian(self, mode: Mode = "auto") -> Rows:
        """The derivative of every rate of the result by every rate of the arguments.

        ``auto`` takes the mode of fewer operations, of large functions by the numbers of rows and
        columns; where there are choices, ``forward``.
        """
        if mode == "forward":
            columns = [self.along(v) for v in self.directions()]
            return [[column[i] for column in columns] for i in range(self.space.size)]
        if mode == "reverse":
            return [self.gradient(e) for e in unit(self.space.size)]
        if self.has_choices():
            return self.jacobian("forward")
        if self.implicit is not None:  # a system is solved for each row, or for each column
            fewer = self.space.size * FEWER < self.rates
            return self.jacobian("reverse" if fewer else "forward")
        fewest = min(self.space.size, self.rates)
        if len(reachable(self.results)) * fewest > MOST_WEIGHED:
            return self.jacobian("reverse" if self.space.size < self.rates else "forward")
        return min((self.jacobian("forward"), self.jacobian("reverse")), key=operations)

    def second(self, first: Rows) -> list[list[list[Expr]]]:
        """Derivatives of each row of first derivatives by every rate: row, then column, then rate.

        Of two that are the same, one is made: of two arguments, the derivative along the first one
        of those by the second, which of dynamics are the simpler ones.
        """
        n = self.rates
        joints = [(k, j) for k, each in enumerate(self.arguments) for j in each.space.joints()]

        def same(a: int, b: int) -> bool:
            return self.space.flat and (joints[a][1] is None or joints[a] != joints[b])

        def wanted(a: int, b: int) -> bool:
            mine, other = joints[a][0], joints[b][0]
            return mine > other or (mine == other and a <= b) or not same(a, b)

        found = [[[first[0][0].graph.zero] * n for _ in range(n)] for _ in first]
        for b, direction in enumerate(self.directions()):
            made = [a for a in range(n) if wanted(a, b)]
            changes = iter(self.changes([row[a] for row in first for a in made], direction))
            for block in found:
                for a in made:
                    block[a][b] = next(changes)
                    if same(a, b):
                        block[b][a] = block[a][b]
        return found


def operations(rows: Rows) -> int:
    """Nodes that derivatives depend on."""
    return len(reachable(x for row in rows for x in row))
