"""What a walk over a rolled tree keeps of each link, for the next link and for later walks.

A state is a record of numbers. Of each class of links some of them are constants, some are read
again where they came from, and the others are kept in a row of scratch, one row per link. Which
numbers of the states that are passed from link to link are constants is found by tracing until
nothing changes: a body is first given the base's state, then one in which every number that came
out different is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from linkwise.spatial.records import UNLIKE, joined, leaves, mapped, parts
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.rolled import Step
from linkwise.trace.rolledtree import PerLink, Place, RolledTree, Visit, Way


class Leaf(float):
    """A leaf of a record that stands for a number; a number itself, so that it can be a leaf."""

    of: Any

    def __new__(cls, of: Any) -> Self:
        """A leaf that says where its number is."""
        self = super().__new__(cls)
        self.of = of
        return self


class Element(Leaf):
    """An element of an array, at a place that depends on the link."""

    of: Place


class Column(Leaf):
    """A number that is kept in the link's row: which one of it."""

    of: int


class Stored(PerLink):
    """What a walk has left of each link: a record of constants and elements for each class."""

    def __init__(self, way: Way, records: dict[int, Any]) -> None:
        self.way, self.records = way, records

    def at(self, visit: Visit) -> Any:
        """The link's own, read from memory."""
        through = self.way.through
        partial = through or self.way.length < visit.tree.n_links
        if partial and self.way != visit.way._replace(order=self.way.order):
            raise TypeError("what was computed along a path is read by a walk over other links")

        def value(x: Any) -> Any:
            if not isinstance(x, Element):
                return x
            # rows of a path are those of its items, any other place is one of the link
            return visit.step.read(*x.of) if through else visit.read(x.of)

        return mapped(value, self.records[visit.kind])


class Rows:
    """The rows that a walk writes: first the numbers that the next link needs, then all others."""

    def __init__(self, tree: RolledTree, way: Way, passed_on: Any, first_row: int) -> None:
        self.tree, self.way, self.first_row = tree, way, first_row
        self.template = passed_on
        self.name = tree.room(0)
        self.columns: dict[int, int] = {}  # where a number of a state is in the row
        self.records: dict[int, Any] = {}  # what states of a class are made of
        self._count = 0

    def look(self, kind: int, record: Any) -> None:
        """See what states of a class are made of, before rows are laid out."""
        self.records[kind], values = self._placed(record)
        self._count = max(self._count, len(values))

    def laid_out(self) -> Stored:
        """Lay the rows out; returns what later walks see."""
        tree, unread = self.tree, self.tree.unread
        kept = [k for k in range(self._count) if (self.name, k) not in unread]
        self.columns = {k: column for column, k in enumerate(kept)}
        width, rows = len(kept), self.way.length + self.first_row
        tree.scratch[self.name] = width * rows
        tree.widths[self.name] = max(width, 1)

        records = {kind: mapped(self.placed, record) for kind, record in self.records.items()}
        return Stored(self.way, records)

    def placed(self, x: Any) -> Any:
        """A number of a state as it is read later; of one that nobody reads, no more than a name:
        it may stand in sums where it cancels.
        """
        if not isinstance(x, Column):
            return x
        if x.of not in self.columns:
            return self.tree.graph.node("carry", value=("unread", self.name, x.of))
        start = self.width * self.first_row + self.columns[x.of]
        return Element(Place(self.name, start, self.width))

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return len(self.columns)

    def write(self, step: Step, record: Any) -> None:
        """Write a link's row."""
        for k, value in enumerate(self._placed(record)[1]):
            if k in self.columns:
                start = self.width * self.first_row + self.columns[k]
                step.write(self.name, value, start, self.width)

    def write_base(self, step: Step, values: Sequence[Expr]) -> list[Expr]:
        """Write the row of the base, before the links'."""
        for k, value in enumerate(values):
            if k in self.columns:
                step.write(self.name, value, self.columns[k])
        return []

    def of_parent(self, visit: Visit) -> Any:
        """The state that a link's parent passes on."""
        start, stride, places = self.tree.parents
        values: list[Expr] = []
        for k in range(sum(isinstance(x, Expr) for x in leaves(self.template))):
            if k in self.columns:
                at = start * self.width + self.columns[k]
                values.append(visit.read(Place(self.name, at, stride * self.width, places)))
            else:
                values.append(unknown(self.tree.graph, k + 1))  # as `numbered` has it
        return filled(self.template, values)

    def _placed(self, record: Any) -> tuple[Any, list[Expr]]:
        """A state's record with the places of its numbers, and the numbers of its row."""
        values = passed(self.tree.graph, self.template, record)
        known = {x.id: k for k, x in reversed(list(enumerate(values)))}

        def place(x: Any) -> Any:
            value = constant(x)
            if not isinstance(value, Expr):
                return value
            if value.op == "read" and not self.way.through:
                array, at = value.value
                if array not in self.tree.scratch:
                    return Element(Place(array, at.start, at.stride, at.places))
            if value.id not in known:
                known[value.id] = len(values)
                values.append(value)
            return Column(known[value.id])

        return mapped(place, record), values


# -- what states have in common


def unknown(graph: Graph, number: int = 0) -> Expr:
    """A number that is not the same in all links."""
    return graph.node("carry", value=("unknown", number))


def constant(x: Any) -> Any:
    """A number that is known as a float."""
    if isinstance(x, Expr):
        return x.value if x.op == "const" else x
    return float(x)


def settled(tree: RolledTree, first: Any, results: Callable[[Any], Iterable[Any]]) -> Any:
    """What the states that are passed on have in common: constants, and what is unknown."""
    graph, pivots = tree.graph, list(tree.graph.pivots)

    def meet(a: Any, b: Any) -> Any:
        x, y = constant(a), constant(b)
        return x if isinstance(x, float) and x == y else unknown(graph)

    template, before = mapped(constant, first), ""
    while _shown(template) != before:
        before = _shown(template)
        for result in results(numbered(graph, template)):
            template = joined(template, result, meet)
    graph.pivots = pivots
    return template


def numbered(graph: Graph, template: Any) -> Any:
    """The template with a number of its own in each place that is unknown."""
    count = iter(range(1, 1 << 30))
    return mapped(lambda x: unknown(graph, next(count)) if isinstance(x, Expr) else x, template)


def _shown(template: Any) -> str:
    """A text that differs where templates do."""
    inside = parts(template)
    if inside is not None:
        return f"({' '.join(map(_shown, inside))})"
    return "unlike" if template is UNLIKE else "?" if isinstance(template, Expr) else repr(template)


def passed(graph: Graph, template: Any, record: Any) -> list[Expr]:
    """The numbers of a state that are unknown in the template."""
    found: list[Expr] = []

    def pick(t: Any, x: Any) -> Any:
        if isinstance(t, Expr):
            found.append(graph.lift(x))
        return t

    joined(template, record, pick)
    return found


def filled(template: Any, values: Sequence[Any]) -> Any:
    """The template with values in its unknown places."""
    rest = iter(values)
    return mapped(lambda x: next(rest) if isinstance(x, Expr) else x, template)


def traced(tree: RolledTree, way: Way, body: Callable[[Visit], Any]) -> dict[int, Any]:
    """What a body gives at a link of each class, to look at and throw away."""
    pivots = list(tree.graph.pivots)
    steps = {kind: Step(tree.graph, way.order) for kind in tree.kinds(way)[0]}
    found = {kind: body(Visit(tree, way, kind, step)) for kind, step in steps.items()}
    tree.graph.pivots = pivots
    return found


def divides(tree: RolledTree, per_link: PerLink) -> bool:
    """Whether computing something of the links divides by pivots."""
    before, tree.graph.pivots = tree.graph.pivots, []
    for kind in tree.kinds(tree.all)[0]:
        per_link.at(Visit(tree, tree.all, kind, Step(tree.graph)))
    found, tree.graph.pivots = bool(tree.graph.pivots), before
    return found
