"""A rolled tree: what drivers ask of a tree, answered for all links by one loop.

A walk visits links in some order, and its body is traced once for each class of links (`Visit`).
Numbers of a link are constants of its class, or elements of arrays whose place depends on the link:
inputs, tables, and scratch that earlier walks have written (``kept.py``). The walks: ``walks.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model.description import IDENTITY
from linkwise.model.linktable import LinkFrames, numbers, with_numbers
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import Scalar
from linkwise.spatial.records import mapped, parts
from linkwise.trace.classes import Classes
from linkwise.trace.expr import FORTH, At, Counted, Expr, Graph, Loop, Order, Whole, reachable
from linkwise.trace.program import Array
from linkwise.trace.rolled import Step, loop

LINKS, FRAMES = "links", "frames"  # tables of numbers, a row per link
Slots = frozenset[tuple[str, int]]  # numbers of the rows of arrays


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
    # lists of one number that say how many steps there are, and which is the last, where code does
    # not know: then the length is the most
    counted: tuple[str, str] | None = None

    def backward(self) -> Way:
        """The same way from its end."""
        last = self.counted[1] if self.counted else self.length - 1
        return self._replace(order=Order(last, -1))

    @property
    def steps(self) -> Whole:
        """How many."""
        return self.counted[0] if self.counted else self.length


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
        width = self.tree.table_width

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


class Input(NamedTuple):
    """An argument of the program."""

    name: str


class Gathered(NamedTuple):
    """A vector by link; numbers of followers are added to their drivers', or left out."""

    per_link: PerLink
    added: bool = True
    beside: tuple[Scalar, ...] = ()  # more numbers, of no link


class Columns(NamedTuple):
    """Columns of a matrix over degrees of freedom, of the joints on a way."""

    way: Way | None  # None: there are none
    per_link: PerLink
    rows: int = 0


class Blocks(NamedTuple):
    """A block of each link, side by side in a matrix."""

    per_link: PerLink


class RolledTree(Tree):
    """A tree whose walks are loops, in one graph."""

    graph: Graph
    classes: Classes
    lists: dict[str, NDArray[np.int64]]
    scratch: dict[str, int]
    widths: dict[str, int]  # of the rows in scratch
    tables: dict[str, NDArray[np.float64]]

    present: dict[str, list[int]]  # classes on a way, by the name of their list
    even: dict[str, tuple[int, int, str]]
    unread: Slots  # of scratch: what is known that nobody reads, and so is not kept
    prefix: str = ""  # of the names of lists that are this tree's own
    anew = False  # whether walks along a chain compute a link's state where they need it, from
    # what its parent passes on, instead of keeping it; for machines that wait for memory
    # what was asked for before, with what it was made of: those are alive, and their ids their own
    answers: dict[tuple[Any, ...], tuple[Any, Any]]
    notes: dict[
        str, Any
    ]  # what depends on the tree alone: the next trace of the same task finds it

    @staticmethod
    def of(
        tree: Tree,
        classes: Classes,
        graph: Graph,
        unread: Slots = frozenset(),
        notes: dict[str, Any] | None = None,
    ) -> RolledTree:
        """Roll a tree up."""
        rolled = object.__new__(RolledTree)
        rolled.__dict__.update(tree.__dict__)
        table = {LINKS: classes.table.ravel()} if classes.table.size else {}
        rolled.__dict__.update(graph=graph, classes=classes, tables=table, unread=unread)
        rolled.__dict__["notes"] = {} if notes is None else notes
        rolled.__dict__.update(lists={}, scratch={}, widths={}, present={}, even={}, answers={})
        return rolled

    # -- memory

    def room(self, size: int, width: int = 1) -> str:
        """Scratch for so many numbers, in rows of so many."""
        name = f"room{len(self.scratch)}"
        self.scratch[name] = size
        self.widths[name] = width
        return name

    def forget_unread(self, roots: Sequence[Expr]) -> Slots:
        """Drop what is written to scratch and never read; returns all that is not read there."""
        loops = self.graph.loops
        while True:
            nodes = reachable([*roots, *(root for each in loops for root in each.roots())])
            reads = {self._slot(*n.value) for n in nodes if n.op == "read"}
            wanted = [self._without(each, reads) for each in loops]
            if wanted == loops:
                read = {array for array, _ in reads}
                self.scratch.update((name, 0) for name in self.scratch if name not in read)
                kept = ((name, k) for name, width in self.widths.items() for k in range(width))
                return frozenset(kept) - reads
            loops[:] = wanted

    def _slot(self, array: str, at: At) -> tuple[str, int]:
        """A place in the rows of an array."""
        return array, at.start % self.widths.get(array, 1)

    def _without(self, each: Loop | Counted, reads: set[tuple[str, int]]) -> Loop | Counted:
        if not isinstance(each, Counted):
            return each
        cases = [
            case._replace(
                writes=[w for w in case.writes
                        if w.array not in self.scratch or self._slot(w.array, w.at) in reads]
            )
            for case in each.cases
        ]  # fmt: skip
        return each._replace(cases=cases)

    def cleared(self, size: int) -> str:
        """Scratch for so many numbers, all zero."""
        name = self.room(size)
        loop(self.graph, size, [], lambda step, _: zeroed(step, name))
        return name

    def mark(self, link: int) -> Place:
        """A number of each link: one of this link, zero of all others."""
        name = f"mark of {link}"
        if name not in self.tables:
            self.tables[name] = (np.arange(self.n_links) == link).astype(float)
        return Place(name, 0, 1)

    def listed(self, name: str, values: ArrayLike) -> tuple[int, int, str]:
        """Start, stride and list of places; where these grow evenly there is no list."""
        name = self.prefix + name
        if name not in self.even:
            own = np.asarray(values, np.int64)
            steps = np.diff(own)
            self.even[name] = (
                (int(own[0]), int(steps[0]) if len(steps) else 0, "")
                if (steps == steps[:1]).all()
                else (0, 1, name)
            )
            if self.even[name][2]:
                self.lists[name] = own
        return self.even[name]

    def arrays(self) -> tuple[Array, ...]:
        """Tables, lists and scratch of the program."""
        tables = (self.tables | self.lists).items()
        scratch = (Array(name, size) for name, size in self.scratch.items() if size)
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

    def asked_once(self, what: Any, of: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What is asked for, made when it is first asked for: walks with the same body over the
        same inputs are one walk.
        """
        key = (what, *map(identity, of))
        if key not in self.answers:
            self.answers[key] = (of, make())
        return self.answers[key][1]

    @property
    def table_width(self) -> int:
        """Numbers of a link in the table."""
        return int(self.classes.table.shape[1])

    def noted(self, what: str, make: Callable[[], Any]) -> Any:
        """What depends on the tree alone, made once for all traces of a task."""
        if what not in self.notes:
            self.notes[what] = make()
        return self.notes[what]

    # -- ways

    @property
    def all(self) -> Way:
        """Every link, parents first."""
        return Way(self.n_links)

    @property
    def _parents(self) -> NDArray[np.int64]:
        """The row of each link's parent; row 0 is the base's."""
        return self.parent_numbers + 1

    def kinds(self, way: Way) -> tuple[list[int], At | None]:
        """The classes on a way, and where a step finds which of them its link is."""
        name = f"class of {way.through or f'the first {way.length}'}"
        if name not in self.present:
            links = self.lists[way.through] if way.through else slice(way.length)
            own = self.classes.of_link[links]
            present = np.flatnonzero(np.bincount(own))
            self.present[name] = [int(k) for k in present]
            if len(present) > 1:
                self.lists[name] = np.searchsorted(present, own)
        kinds = self.present[name]
        return kinds, At(0, 1, name, way.order) if len(kinds) > 1 else None

    def walk(self, way: Way, state: Sequence[Expr | float], body: Callable[..., Any]) -> list[Expr]:
        """A loop over links: ``body(visit, state) -> state`` for each class."""
        kinds, which = self.kinds(way)

        def of(kind: int) -> Callable[[Step, list[Expr]], Sequence[Expr | float]]:
            return lambda step, state: body(Visit(self, way, kind, step), state)

        bodies = [of(kind) for kind in kinds]
        return loop(self.graph, way.steps, state, *bodies, which=which, order=way.order)

    def once(self, body: Callable[[Step], Sequence[Expr | float]], count: int = 0) -> list[Expr]:
        """One step, to write elements of arrays, or to read ``count`` of them."""
        return loop(self.graph, 1, [0.0] * count, lambda step, _: body(step))

    def some(self, links: Sequence[int], per_link: PerLink) -> list[Expr]:
        """The first number that each of some links has, after the walks that have written them."""
        name = f"links {list(links)}"
        self.lists.setdefault(name, np.array(links))
        way, room = Way(len(links), through=name), self.room(len(links))

        def body(visit: Visit, _: list[Expr]) -> list[Expr]:
            visit.step.write(room, per_link.at(visit)[0], 0, 1)
            return []

        self.walk(way, [], body)
        count = len(links)
        return self.once(lambda step: [step.read(room, k) for k in range(count)], count)

    # -- what drivers ask of a tree

    def per_link_q(self, q: Any) -> Any:
        """Each link's own part of a configuration."""
        if isinstance(q, PerLink):
            return q
        start, stride, places = self.places_of_q

        def own(visit: Visit) -> list[Scalar]:
            link = visit.link
            found = [visit.read(Place(q.name, start + k, stride, places))
                     for k in range(link.joint.nq)]  # fmt: skip
            if link.follows is None:
                return found
            return [found[0] * link.follows.multiplier + link.follows.offset]

        return self.asked_once("q", (q.name, self.prefix), lambda: Lazy(own))

    def per_link_v(self, v: Any) -> Any:
        """Each link's own part of joint rates."""
        if isinstance(v, Gathered):
            return v.per_link
        if not isinstance(v, Input):
            (value,) = {float(x) for x in v}
            same = Lazy(lambda visit: [value] * visit.link.joint.nv)
            return self.asked_once("v", (value,), lambda: same)
        start, stride, places = self.dofs

        def own(visit: Visit) -> list[Scalar]:
            link = visit.link
            found: list[Scalar] = [
                visit.read(Place(v.name, start + k, stride, places)) for k in range(link.joint.nv)
            ]
            return [x * link.follows.multiplier for x in found] if link.follows else found

        return self.asked_once("v", (v.name, self.prefix), lambda: Lazy(own))

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

    def gather_columns(self, by_link: Any, finish: Callable[[Any], list[Scalar]]) -> Any:
        """Numbers of each joint's columns along a path, to be written by degree of freedom."""
        way, per_link = by_link

        def own(visit: Visit) -> list[list[Scalar]]:
            return [finish(x) for x in per_link.at(visit)]

        return Columns(way, Lazy(own))

    def as_matrix(self, columns: Any, rows: int) -> Any:
        """Columns, to be written as a matrix."""
        return columns._replace(rows=rows)

    def gather_symmetric(self, blocks: Any) -> Any:
        """Blocks of each pair of links, to be written as a symmetric matrix."""
        return blocks

    def gather_pairs(self, met: Any, inner: Any, outer: Any, own: Any) -> Any:
        """What links meet at their ancestors, to be written as a matrix."""
        return met._replace(inner=inner, outer=outer, own=own)

    def gather_rows(self, met: Any, width: int) -> Any:
        """Numbers that links have of the joints inboard, to be written as rows."""
        return met._replace(width=width)

    def side_by_side(self, per_link: Any) -> Any:
        """A block of each link, to be written side by side."""
        return Blocks(per_link)

    def short_side(self, columns: Any, rows: int) -> Any:
        """Rows of a matrix, or its columns where those are fewer, in scratch."""
        from linkwise.trace.vectors import short_side

        return short_side(self, columns, rows)

    def with_rotors(self, M: Any) -> Any:
        """The matrix with rotors on its diagonal."""
        return M._replace(rotors=True)

    def own_numbers(self, per_link: Any) -> Any:
        """Each link's numbers, to be written one after another; followers have none."""
        return Gathered(per_link, added=False)

    @property
    def joint_frames(self) -> Any:
        """The frame of each joint, its numbers in a table unless they are the links' own."""
        if isinstance(self.frames, LinkFrames):
            return Lazy(lambda _: Frame(BASE, (0.0, 0.0, 0.0), IDENTITY))
        described = (self.links[i] for i in range(self.n_links))
        rows = np.array([[*x.frame_origin, *np.ravel(x.frame_rotation)] for x in described])
        self.tables[FRAMES] = rows.ravel()

        def own(visit: Visit) -> Frame:
            x = [visit.read(Place(FRAMES, k, 12)) for k in range(12)]
            rows: Any = tuple(tuple(x[k : k + 3]) for k in (3, 6, 9))
            origin: Any = tuple(x[:3])
            return Frame(BASE, origin, rows)

        return Lazy(own)

    @property
    def projection(self) -> Any:
        """From rates of the degrees of freedom to those of every joint's columns, and back."""
        from linkwise.trace.followers import RolledProjection

        return RolledProjection(self, self._plain.projection)

    def uncoupled_q(self, q: Any) -> Any:
        """Each joint's own part of a configuration."""
        return self.per_link_q(q)

    def uncoupled(self) -> RolledTree:
        """The same links with every joint on its own."""
        return self._with(self._plain.uncoupled(), "uncoupled ")

    def beside(self, rates: Any, more: Any) -> Any:
        """Numbers of the degrees of freedom, and more numbers after them."""
        return rates._replace(beside=tuple(more))

    def beside_of(self, numbers: Any) -> Any:
        """The numbers that come after those of the degrees of freedom."""
        return list(numbers.beside)

    def without_gravity(self) -> RolledTree:
        """The same tree, weightless."""
        return self._with(replace(self._plain, gravity=(0.0, 0.0, 0.0)))

    @property
    def _plain(self) -> Tree:
        return Tree(self.links, self.gravity, self.frames, self.unmoved, self.loops)

    def _with(self, tree: Tree, prefix: str = "") -> RolledTree:
        other = RolledTree.of(tree, self.classes, self.graph, self.unread)
        other.__dict__["prefix"] = prefix or self.prefix
        shared = ("lists", "scratch", "widths", "tables", "present", "even", "answers", "notes")
        other.__dict__.update((name, self.__dict__[name]) for name in shared)
        return other


def identity(x: Any) -> Any:
    """What tells an input of a walk from others: the numbers of a record, else the thing itself."""
    inside = parts(x)
    if inside is not None:
        return (type(x), *map(identity, inside))
    if isinstance(x, Expr):
        return ("node", x.id)
    return x if isinstance(x, (str, float, int)) or x is None else id(x)


def zeroed(step: Step, array: str) -> list[Expr]:
    """Write zero to one element after another."""
    step.write(array, 0.0, 0, 1)
    return []


def copied(step: Step, source: str, target: str) -> list[Expr]:
    """Copy one element after another."""
    step.write(target, step.read(source, 0, 1), 0, 1)
    return []
