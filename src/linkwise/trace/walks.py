"""Walks over a rolled tree: each traces its body once per class of links, and is one loop.

What a walk passes on, a state per link, is kept in scratch memory, and read by later walks where
they need it; along a chain the state of the link before is also carried from step to step. Which
numbers of a state are constants is found by tracing until nothing changes: a body is first given
the base's state, then one in which every number that came out different is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise import sweep
from linkwise.model.linktable import numbers, with_numbers
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import Scalar
from linkwise.spatial.records import UNLIKE, joined, leaves, mapped, parts
from linkwise.trace.classes import Classes
from linkwise.trace.expr import FORTH, At, Expr, Graph, Order
from linkwise.trace.program import Array
from linkwise.trace.rolled import Step, loop

LINKS, FRAMES = "links", "frames"  # tables of numbers, a row per link


class Place(NamedTuple):
    """Where a number of link i is: ``start + stride i``, or with what a list has for i."""

    array: str
    start: int
    stride: int
    places: str = ""


class Way(NamedTuple):
    """Links in the order in which a walk visits them."""

    length: int
    order: Order = FORTH
    through: str = ""  # list of the links on a path; empty: an item is a link

    def backward(self) -> Way:
        """The same way from its end."""
        return self._replace(order=Order(self.length - 1, -1))


class Visit(NamedTuple):
    """One step of a walk, at a link of one class."""

    tree: RolledTree
    way: Way
    kind: int
    step: Step

    def read(self, place: Place) -> Expr:
        """A number of the link."""
        array, start, stride, places = self.tree.on(self.way, place)
        return self.step.read(array, start, stride, places)

    @property
    def link(self) -> Link:
        """The link; its numbers are constants, or read from the table."""
        kind = self.tree.classes.classes[self.kind]
        columns = iter(kind.columns)
        width = self.tree.classes.table.shape[1]

        def number(x: Any) -> Any:
            column = next(columns)
            return x if column is None else self.read(Place(LINKS, column, width))

        return with_numbers(kind.example, mapped(number, numbers(kind.example)))


class PerLink:
    """Something of every link, as a walk meets it."""

    def at(self, visit: Visit) -> Any:
        """The link's own."""
        raise NotImplementedError


class Lazy(PerLink):
    """Computed where it is read."""

    def __init__(self, compute: Callable[[Visit], Any]) -> None:
        self._compute = compute

    def at(self, visit: Visit) -> Any:
        """The link's own, computed anew."""
        return self._compute(visit)


class Stored(PerLink):
    """What a walk has left of each link in scratch: for each class, a record of numbers, of which
    some are constants, some are read again where they came from, and others are in the link's row.
    """

    def __init__(self, way: Way, records: dict[int, Any]) -> None:
        self.way, self.records = way, records

    def at(self, visit: Visit) -> Any:
        """The link's own, read from memory."""
        through = self.way.through
        if through and visit.way.through != through:
            raise TypeError("what was computed along a path is read by a walk over other links")

        def value(x: Any) -> Any:
            if not isinstance(x, At_):
                return x
            # rows of a path are those of its items, any other place is one of the link
            return visit.step.read(*x.place) if through else visit.read(x.place)

        return mapped(value, self.records[visit.kind])


class At_(float):
    """A leaf of a record that is read from memory."""

    place: Place

    def __new__(cls, place: Place) -> At_:
        """A number, so that it can be a leaf."""
        self = super().__new__(cls)
        self.place = place
        return self


class RolledTree(Tree):
    """A tree whose walks are loops, in one graph."""

    graph: Graph
    classes: Classes
    lists: dict[str, NDArray[np.int64]]
    scratch: dict[str, int]
    tables: dict[str, NDArray[np.float64]]

    @staticmethod
    def of(tree: Tree, classes: Classes, graph: Graph) -> RolledTree:
        """Roll a tree up."""
        rolled = object.__new__(RolledTree)
        rolled.__dict__.update(tree.__dict__)
        table = {LINKS: classes.table.ravel()} if classes.table.size else {}
        rolled.__dict__.update(graph=graph, classes=classes, lists={}, scratch={}, tables=table)
        return rolled

    # -- memory

    def room(self, size: int) -> str:
        """Scratch for so many numbers."""
        name = f"room{len(self.scratch)}"
        self.scratch[name] = size
        return name

    def cleared(self, size: int) -> str:
        """Scratch for so many numbers, all zero."""
        name = self.room(size)
        loop(self.graph, size, [], lambda step, _: _zero(step, name))
        return name

    def listed(self, name: str, values: ArrayLike) -> tuple[int, int, str]:
        """Start, stride and list of places; where these grow evenly there is no list."""
        own = np.asarray(values, np.int64)
        if len(own) < 2:
            return (int(own[0]) if len(own) else 0), 0, ""
        steps = np.diff(own)
        if (steps == steps[0]).all():
            return int(own[0]), int(steps[0]), ""
        self.lists[name] = own
        return 0, 1, name

    def arrays(self) -> tuple[Array, ...]:
        """Tables, lists and scratch of the program."""
        tables = (self.tables | self.lists).items()
        scratch = (Array(name, size) for name, size in self.scratch.items())
        return (*(Array(name, len(own), own) for name, own in tables), *scratch)

    def on(self, way: Way, place: Place) -> Place:
        """The place as the walk along a way finds it, by item."""
        if not way.through:
            return place
        path = self.lists[way.through]
        if not place.places:
            return place._replace(places=way.through)
        name = f"{place.places} of {way.through}"
        self.lists.setdefault(name, self.lists[place.places][path])
        return place._replace(places=name)

    # -- ways

    @property
    def all(self) -> Way:
        """Every link, parents first."""
        return Way(self.n_links)

    @property
    def serial(self) -> bool:
        """Whether each link's parent is the link before."""
        return bool((self._parents == np.arange(self.n_links)).all())

    @property
    def _parents(self) -> NDArray[np.int64]:
        """The row of each link's parent; row 0 is the base's."""
        return self.parent_numbers + 1

    def kinds(self, way: Way) -> tuple[list[int], At | None]:
        """The classes on a way, and where a step finds which of them its link is."""
        own = self.classes.of_link
        if way.through:
            own = own[self.lists[way.through]]
        present = np.unique(own[: way.length])
        if len(present) == 1:
            return [int(present[0])], None
        name = f"class of {way.through}" if way.through else "class"
        self.lists[name] = np.searchsorted(present, own)
        return [int(k) for k in present], At(0, 1, name, way.order)

    def walk(self, way: Way, state: Sequence[Expr | float], body: Callable[..., Any]) -> list[Expr]:
        """A loop over links: ``body(visit, state) -> state`` for each class."""
        kinds, which = self.kinds(way)

        def of(kind: int) -> Callable[[Step, list[Expr]], Sequence[Expr | float]]:
            return lambda step, state: body(Visit(self, way, kind, step), state)

        bodies = [of(kind) for kind in kinds]
        return loop(self.graph, way.length, state, *bodies, which=which, order=way.order)

    def once(self, body: Callable[[Step], Sequence[Expr | float]], count: int = 0) -> list[Expr]:
        """One step, to write elements of arrays, or to read ``count`` of them."""
        return loop(self.graph, 1, [0.0] * count, lambda step, _: body(step))

    # -- states

    def unknown(self) -> Expr:
        """A number that is not the same in all links."""
        return self.graph.node("carry", value=("unknown", 0))

    def _meet(self, a: Any, b: Any) -> Any:
        """Two numbers as one: the constant that both are, or unknown."""
        x, y = _constant(a), _constant(b)
        return x if isinstance(x, float) and x == y else self.unknown()

    def settled(self, first: Any, results: Callable[[Any], Iterable[Any]]) -> Any:
        """What the states that are passed on have in common: constants, and what is unknown."""
        template = mapped(_constant, first)
        pivots = list(self.graph.pivots)
        while True:
            before = _shown(template)
            for result in results(self._numbered(template)):
                template = joined(template, result, self._meet)
            if _shown(template) == before:
                self.graph.pivots = pivots
                return template

    def _numbered(self, template: Any) -> Any:
        """The template with a number of its own in each place that is unknown."""
        count = iter(range(1, 1 << 30))
        return mapped(
            lambda x: self.graph.node("carry", value=("unknown", next(count)))
            if isinstance(x, Expr) else x,
            template,
        )  # fmt: skip

    def divides(self, per_link: PerLink) -> bool:
        """Whether computing something of the links divides by pivots."""
        before = list(self.graph.pivots)
        self.traced(self.all, per_link.at)
        new, self.graph.pivots = len(self.graph.pivots) > len(before), before
        return new

    def traced(self, way: Way, body: Callable[[Visit], Any]) -> list[Any]:
        """What a body gives at a link of each class, to look at and throw away."""
        return [body(Visit(self, way, kind, Step(self.graph))) for kind in self.kinds(way)[0]]

    # -- what drivers ask of a tree

    def per_link_q(self, q: Any) -> Any:
        """Each link's own part of a configuration."""
        start, stride, places = self.places_of_q

        def own(visit: Visit) -> list[Scalar]:
            link = visit.link
            found = [visit.read(Place(q.name, start + k, stride, places))
                     for k in range(link.joint.nq)]  # fmt: skip
            if link.follows is None:
                return found
            return [found[0] * link.follows.multiplier + link.follows.offset]

        return Lazy(own)

    def per_link_v(self, v: Any) -> Any:
        """Each link's own part of joint rates."""
        if isinstance(v, Gathered):
            return v.per_link
        if not isinstance(v, Input):
            (value,) = {float(x) for x in v}
            return Lazy(lambda visit: [value] * visit.link.joint.nv)
        start, stride, places = self.dofs

        def own(visit: Visit) -> list[Scalar]:
            link = visit.link
            found: list[Scalar] = [
                visit.read(Place(v.name, start + k, stride, places)) for k in range(link.joint.nv)
            ]
            return [x * link.follows.multiplier for x in found] if link.follows else found

        return Lazy(own)

    @property
    def places_of_q(self) -> tuple[int, int, str]:
        """Where the numbers of each link are in a configuration: start, stride and list."""
        return self.listed("of q", self.q_indices)

    @property
    def dofs(self) -> tuple[int, int, str]:
        """Where the degrees of freedom of each link are in a vector: start, stride and list."""
        return self.listed("of v", self.v_indices)

    @property
    def parents(self) -> tuple[int, int, str]:
        """Where the parent of each link is in rows of which the first is the base's."""
        return self.listed("of parent", self._parents)

    def gather(self, per_link: Any) -> Any:
        """Each link's joint forces, to be written by degree of freedom."""
        return Gathered(per_link)

    def own_numbers(self, per_link: Any) -> Any:
        """Each link's numbers, to be written one after another; followers have none."""
        return Gathered(per_link, added=False)

    @property
    def joint_frames(self) -> Any:
        """The frame of each joint, its numbers in a table."""
        found = [self._joint_frame(i, link) for i, link in enumerate(self.links)]
        rows = np.array([[*f.origin, *np.ravel(f.rotation)] for f in found])
        self.tables[FRAMES] = rows.ravel()

        def own(visit: Visit) -> Frame:
            x = [visit.read(Place(FRAMES, k, 12)) for k in range(12)]
            rows: Any = tuple(tuple(x[k : k + 3]) for k in (3, 6, 9))
            origin: Any = tuple(x[:3])
            return Frame(BASE, origin, rows)

        return Lazy(own)

    def without_gravity(self) -> RolledTree:
        """The same tree, weightless."""
        return self._with(replace(self._plain, gravity=(0.0, 0.0, 0.0)))

    @property
    def _plain(self) -> Tree:
        return Tree(self.links, self.gravity, self.frames, self.unmoved, self.loops)

    def _with(self, tree: Tree) -> RolledTree:
        other = RolledTree.of(tree, self.classes, self.graph)
        other.__dict__.update(lists=self.lists, scratch=self.scratch, tables=self.tables)
        return other


class Input(NamedTuple):
    """An argument of the program."""

    name: str


class Gathered(NamedTuple):
    """A vector by link; numbers of followers are added to their drivers', or left out."""

    per_link: PerLink
    added: bool = True


def _constant(x: Any) -> Any:
    """A number that is known as a float."""
    if isinstance(x, Expr):
        return x.value if x.op == "const" else x
    return x if isinstance(x, At_) else float(x)


def _shown(template: Any) -> str:
    return repr([x if isinstance(x, float) else "?" for x in leaves(template)]) + str(
        _count_unlike(template)
    )


def _count_unlike(x: Any) -> int:
    if x is UNLIKE:
        return 1
    return sum(_count_unlike(part) for part in parts(x) or ())


class _Rows:
    """The rows that a walk writes: first the numbers that the next link needs, then all others."""

    def __init__(self, tree: RolledTree, way: Way, shared: Any) -> None:
        self.tree, self.way = tree, way
        self.shared = sum(isinstance(x, Expr) for x in leaves(shared))
        self.template = shared
        self._slots: dict[int, list[Expr]] = {}  # by class: what its links keep beyond
        self._records: dict[int, Any] = {}

    def keep(self, kind: int, record: Any) -> list[Expr]:
        """Decide what of a state is kept in the row; returns the numbers to be written."""
        graph = self.tree.graph
        passed = _passed(graph, self.template, record)
        slots = list(passed)
        known = {x.id: k for k, x in reversed(list(enumerate(passed)))}

        def source(x: Any) -> Any:
            value = _constant(x)
            if not isinstance(value, Expr):
                return value
            if value.op == "read" and not self.way.through:
                array, at = value.value
                if array not in self.tree.scratch:
                    return At_(Place(array, at.start, at.stride, at.places))
            if value.id not in known:
                known[value.id] = len(slots)
                slots.append(value)
            return known[value.id]

        self._records[kind] = mapped(lambda x: _Slot(source(x)), record)
        self._slots[kind] = slots
        return slots

    def finish(self, first_row: int) -> tuple[str, int, Stored]:
        """Scratch for the rows, numbers of a row, and what later walks see."""
        width = max(len(slots) for slots in self._slots.values())
        rows = self.way.length + first_row
        array = self.tree.room(max(width * rows, 1))

        def place(x: Any) -> Any:
            if isinstance(x, _Slot):
                k = x.source
                if isinstance(k, int):
                    return At_(Place(array, width * first_row + k, width))
                return k
            return x

        records = {kind: mapped(place, record) for kind, record in self._records.items()}
        return array, width, Stored(self.way, records)


class _Slot(float):
    """A leaf that says where its number will be: a constant, a place, or an element of the row."""

    source: Any

    def __new__(cls, source: Any) -> _Slot:
        """A number, so that it can be a leaf."""
        self = super().__new__(cls)
        self.source = source
        return self


def _passed(graph: Graph, template: Any, record: Any) -> list[Expr]:
    """The numbers of a state that are unknown in the template."""
    found: list[Expr] = []

    def pick(t: Any, x: Any) -> Any:
        if isinstance(t, Expr):
            found.append(graph.lift(x))
        return t

    joined(template, record, pick)
    return found


def _filled(template: Any, values: Sequence[Any]) -> Any:
    """The template with values in its unknown places."""
    rest = iter(values)
    return mapped(lambda x: next(rest) if isinstance(x, Expr) else x, template)


# -- the walks


def _outward(
    tree: RolledTree, way: Way, body: sweep.Body, base: Any, per_link: Sequence[PerLink]
) -> tuple[Stored, Any]:
    """States from the base outward; what later walks see of them, and the last one."""

    def state_of(visit: Visit, parent: Any) -> Any:
        return body(visit.link, parent, *(x.at(visit) for x in per_link))

    template = tree.settled(
        base, lambda guess: tree.traced(way, lambda visit: state_of(visit, guess))
    )
    chained = bool(way.through) or tree.serial
    starts = _passed(tree.graph, template, base)
    rows = _Rows(tree, way, template)
    pivots = list(tree.graph.pivots)
    unknown = tree._numbered(template)
    for kind in tree.kinds(way)[0]:  # what is kept depends on nothing that the parent's values are
        rows.keep(kind, state_of(Visit(tree, way, kind, Step(tree.graph, way.order)), unknown))
    tree.graph.pivots = pivots
    array, width, stored = rows.finish(1)
    if not chained:
        tree.once(lambda step: _written(step, array, starts))
    last: dict[str, Any] = {}

    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Expr]:
        if chained:
            parent = _filled(template, carried)
        else:
            start, stride, places = tree.parents
            at = [Place(array, start * width + k, stride * width, places)
                  for k in range(rows.shared)]  # fmt: skip
            parent = _filled(template, [visit.read(x) for x in at])
        record = state_of(visit, parent)
        values = rows.keep(visit.kind, record)
        by_item = visit.way.order
        assert by_item == way.order
        for k, value in enumerate(values):
            visit.step.write(array, value, width + k, width)
        last["template"] = record
        return _passed(tree.graph, template, record) if chained else []

    end = tree.walk(way, starts if chained else [], visited)
    return stored, end


def _written(step: Step, array: str, values: Sequence[Expr]) -> list[Expr]:
    for k, value in enumerate(values):
        step.write(array, value, k)
    return []


@sweep.base_to_tip.register
def _(tree: RolledTree, body: sweep.Body, base: Any, *per_link: Any) -> Any:
    return _outward(tree, tree.all, body, base, per_link)[0]


@sweep.tip_to_base.register
def _(tree: RolledTree, body: sweep.Body, empty: Any, *per_link: Any) -> Any:
    """With a carried sum along a chain; else sums of rows in memory, to which each link adds."""
    way, graph = tree.all.backward(), tree.graph

    def results(visit: Visit, children: Any) -> tuple[Any, Any]:
        out, up = body(visit.link, children, *(x.at(visit) for x in per_link))
        return out, up

    def sums(guess: Any) -> Iterable[Any]:
        return [up for _, up in tree.traced(way, lambda visit: results(visit, guess))]

    template = mapped(lambda x: x if x == 0.0 else tree.unknown(), tree.settled(empty, sums))
    pivots = list(graph.pivots)
    rows, unknown = _Rows(tree, tree.all, ()), tree._numbered(template)
    for kind in tree.kinds(way)[0]:
        rows.keep(kind, results(Visit(tree, way, kind, Step(graph, way.order)), unknown)[0])
    graph.pivots = pivots
    array, width, stored = rows.finish(0)
    starts = _passed(graph, template, empty)
    count = len(starts)
    summed = "" if tree.serial else tree.cleared(count * (tree.n_links + 1))

    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Expr]:
        if tree.serial:
            children = carried
        else:
            children = [visit.read(Place(summed, count + k, count)) for k in range(count)]
        out, up = results(visit, _filled(template, children))
        for k, value in enumerate(rows.keep(visit.kind, out)):
            visit.step.write(array, value, k, width)
        passed = _passed(graph, template, up)
        if tree.serial:
            return passed
        start, stride, places = tree.parents
        for k, value in enumerate(passed):
            at = (start * count + k, stride * count, places)
            visit.step.write(summed, value, *at, add=True)
        return []

    end = tree.walk(way, starts if tree.serial else [], visited)
    if not tree.serial:
        end = tree.once(lambda step: [step.read(summed, k) for k in range(count)], count)
    return stored, _filled(template, end)


def _zero(step: Step, array: str) -> list[Expr]:
    step.write(array, 0.0, 0, 1)
    return []


@sweep.each_link.register
def _(tree: RolledTree, body: sweep.Body, *per_link: Any) -> Any:
    return Lazy(lambda visit: body(visit.link, *(x.at(visit) for x in per_link)))


@sweep.sum_links.register
def _(tree: RolledTree, body: sweep.Body, total: Any, *per_link: Any, inward: bool = False) -> Any:
    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Any]:
        summed = _filled(template, carried)
        return leaves(body(visit.link, summed, *(x.at(visit) for x in per_link)))

    template = mapped(lambda _: tree.unknown(), total)
    way = tree.all.backward() if inward else tree.all
    return _filled(template, tree.walk(way, leaves(total), visited))


@sweep.along_path.register
def _(tree: RolledTree, last: int, body: sweep.Body, base: Any, *per_link: Any) -> Any:
    if last == BASE:
        return {}, base
    path = np.array(tree.path(last), np.int64)
    way = Way(len(path))
    if not (path == np.arange(len(path))).all():
        way = way._replace(through=f"path to {last}")
        tree.lists[way.through] = path
    stored, _ = _outward(tree, way, body, base, per_link)
    kind = int(tree.classes.of_link[last])
    record = stored.records[kind]
    found = [x for x in leaves(record) if isinstance(x, At_)]

    def read(step: Step) -> list[Expr]:
        item = len(path) - 1
        return [step.read(x.place.array, x.place.start + x.place.stride * item) for x in found]

    values = iter(tree.once(read, len(found)))
    return stored, mapped(lambda x: next(values) if isinstance(x, At_) else x, record)


@sweep.at_links.register
def _(tree: RolledTree, empty: Any, given: Iterable[tuple[int, Any]]) -> Any:
    pairs = [(i, x) for i, x in given if i != BASE]
    if not pairs:
        return Lazy(lambda _: empty)
    count = len(leaves(empty))
    array = tree.cleared(count * tree.n_links)
    for i, x in pairs:
        tree.once(lambda step, i=i, x=x: _added(step, array, count * i, leaves(x)))  # type: ignore[misc]
    at = iter(range(count))
    record = mapped(lambda _: At_(Place(array, next(at), count)), empty)
    return Stored(tree.all, dict.fromkeys(range(len(tree.classes.classes)), record))


def _added(step: Step, array: str, start: int, values: Sequence[Any]) -> list[Expr]:
    for k, value in enumerate(values):
        step.write(array, value, start + k, add=True)
    return []
