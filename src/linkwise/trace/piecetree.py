"""A piece of a chain: a rolled tree whose links' numbers, and number of links, are given to code.

Pieces are computed side by side, and a link of one may be of another class than that of the next
piece. So the body of a walk is traced for every class that occurs, and of the results each link
takes those of its class: a column of the links' numbers says which. Each link has as many places in
a configuration and in a vector as the largest joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.model.tree import Tree
from linkwise.spatial import select
from linkwise.trace.classes import Classes
from linkwise.trace.expr import Expr, Graph, Write
from linkwise.trace.program import Program
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolledtree import LINKS, Gathered, Place, RolledTree, Slots, Visit, Way

# lists of one number: links of a piece, and its last link; or of two, where the first of the pieces
# have one link more, as many as a third list says
STEPS, LAST, LONGER = "steps", "last", "longer"
NUMBERS = "numbers"  # of the links in a piece


class Layout(NamedTuple):
    """What pieces have in common: their greatest length, the classes of their links, and how many
    numbers a link has in the table, its class last where there are several.
    """

    length: int
    classes: Classes
    kinds: tuple[int, ...]
    anew: bool = False  # see `RolledTree`

    @property
    def columns(self) -> int:
        """Numbers of a link."""
        return int(self.classes.table.shape[1]) + (len(self.kinds) > 1)

    def widest(self, size: str) -> int:
        """The most numbers that a joint has in a configuration (nq) or a vector (nv)."""
        joints = (self.classes.classes[k].example.joint for k in self.kinds)
        return int(max(getattr(joint, size) for joint in joints))

    def table(self, links: slice) -> NDArray[np.float64]:
        """The numbers of some links, (links, columns)."""
        own = self.classes.table[links]
        if len(self.kinds) == 1:
            return own
        return np.column_stack([own, self.classes.of_link[links]])


def place_of(link: int) -> str:
    """The input that says which step of a piece a link is."""
    return f"place of link {link}"


class Both(NamedTuple):
    """A result over the joints, and numbers of the whole chain behind it."""

    rows: Gathered
    chain: list[Any]


class PieceTree(RolledTree):
    """One piece, while an algorithm is traced on it up to the scan with the number ``stage``."""

    layout: Layout
    stage: int
    met: int  # scans met so far
    inputs: dict[str, int]  # of each link: how many numbers of them
    seen: frozenset[str]  # arrays that earlier stages have read
    common: list[Expr]  # inputs that are the same for all pieces

    @staticmethod
    def cut(
        tree: Tree,
        layout: Layout,
        graph: Graph,
        stage: int,
        unread: Slots,
        seen: frozenset[str] = frozenset(),
    ) -> PieceTree:
        """One piece of a chain."""
        own = object.__new__(PieceTree)
        own.__dict__.update(RolledTree.of(tree, layout.classes, graph, unread).__dict__)
        numbers = {NUMBERS: np.arange(float(layout.length))}
        own.__dict__.update(layout=layout, stage=stage, met=0, inputs={}, common=[])
        own.__dict__.update(seen=seen, tables=numbers)
        own.lists.update(_counts(layout.length, 0, layout.anew))
        return own

    @property
    def n_links(self) -> int:
        """Links of a piece at most."""
        return self.layout.length

    serial = True

    @property
    def anew(self) -> bool:  # type: ignore[override]
        """As the layout says."""
        return self.layout.anew

    @property
    def table_width(self) -> int:
        """Numbers of a link."""
        return self.layout.columns

    def kinds(self, way: Way) -> tuple[list[int], None]:
        """Every class may occur at any step."""
        return list(self.layout.kinds), None

    @property
    def places_of_q(self) -> tuple[int, int, str]:
        """As many for every link."""
        return 0, self.slots("nq"), ""

    @property
    def dofs(self) -> tuple[int, int, str]:
        """As many for every link."""
        return 0, self.slots("nv"), ""

    def slots(self, size: str) -> int:
        """Places of a link in a configuration (nq) or a vector (nv)."""
        return self.layout.widest(size)

    @property
    def all(self) -> Way:
        """Every link of the piece, parents first."""
        return Way(self.n_links, counted=(STEPS, LAST))

    def beside(self, rows: Any, more: Any) -> Any:
        """A result over the joints, and numbers of the whole chain behind it."""
        return Both(rows, more)

    def read_all(self, visit: Visit) -> list[Expr]:
        """All that is given of one link."""
        return [x for name in self.inputs for x in self.read_of(name, visit)]

    def read_of(self, name: str, visit: Visit) -> list[Expr]:
        """What an input gives of one link."""
        width = self.inputs[name]
        return [visit.read(Place(name, k, width)) for k in range(width)]

    def walk(self, way: Way, state: Sequence[Expr | float], body: Callable[..., Any]) -> list[Expr]:
        """A loop over links; of several classes, each link takes what the body gives for its own.

        ``body(visit, state) -> state``.
        """
        graph, kinds = self.graph, self.layout.kinds

        def step(step: Step, before: list[Expr]) -> Sequence[Expr | float]:
            found, writes, pivots = [], [], graph.pivots
            flags = [self._is(step, kind) for kind in kinds] if len(kinds) > 1 else [graph.one]
            for kind, flag in zip(kinds, flags, strict=True):
                own, graph.pivots = Step(graph, step.order), []
                found.append([graph.lift(x) for x in body(Visit(self, way, kind, own), before)])
                writes.append(own.writes)
                pivots += [
                    (graph.lift(select(flag, x, 1.0)), graph.lift(select(flag, scale, 0.0)))
                    for x, scale in graph.pivots
                ]
            graph.pivots = pivots
            step.writes += _chosen_writes(graph, flags, writes)
            return [_chosen(flags, values) for values in zip(*found, strict=True)]

        return loop(graph, way.steps, state, step, order=way.order)

    def _is(self, step: Step, kind: int) -> Expr:
        """Positive at links of a class."""
        width = self.layout.columns
        off = step.read(LINKS, width - 1, width) - float(kind)
        return 0.25 - off * off


def _chosen(flags: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    """The value whose flag is set; else the first."""
    found = values[0]
    for flag, value in zip(flags[1:], values[1:], strict=True):
        found = found.graph.lift(select(flag, value, found))
    return found


def _chosen_writes(
    graph: Graph, flags: Sequence[Expr], writes: Sequence[Sequence[Write]]
) -> list[Write]:
    """What each class writes; where a class writes nothing that another does, zero."""
    places = dict.fromkeys((w.array, w.at, w.every, w.add) for own in writes for w in own)
    by_place = [{(w.array, w.at, w.every, w.add): w.value for w in own} for own in writes]
    found = []
    for place in places:
        array, at, every, add = place
        values = [own.get(place, graph.zero) for own in by_place]
        found.append(Write(array, at, _chosen(flags, values), every, add))
    return found


def shortened(made: Program, length: int, longer: int = 0) -> Program:
    """The same program for pieces of fewer links: the same code, other tables."""
    new = _counts(length, longer, True)
    arrays = tuple(replace(a, values=new[a.name]) if a.name in new else a for a in made.arrays)
    return replace(made, arrays=arrays)


def _counts(length: int, longer: int, with_longer: bool) -> dict[str, NDArray[np.int64]]:
    """How many links pieces have."""
    lengths = np.array([length, length + 1] if longer else [length])
    found = {STEPS: lengths, LAST: lengths - 1}
    return found | {LONGER: np.array([longer])} if with_longer else found
