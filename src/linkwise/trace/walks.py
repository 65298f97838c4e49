"""Walks over a rolled tree: each traces its body once per class of links, and is one loop.

What a walk passes on, a state per link, is kept in rows of scratch, and read by later walks where
they need it. Along a chain the state of the link before is carried from step to step instead, and
so are sums over the links further out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linkwise import sweep
from linkwise.model.tree import BASE
from linkwise.spatial.records import leaves, mapped
from linkwise.trace.expr import At, Expr
from linkwise.trace.kept import (
    Column,
    Element,
    Rows,
    Stored,
    constant,
    filled,
    numbered,
    passed,
    settled,
    traced,
    unknown,
)
from linkwise.trace.rolledtree import Lazy, PerLink, Place, RolledTree, Visit, Way


def outward(
    tree: RolledTree, way: Way, body: sweep.Body, base: Any, per_link: Sequence[PerLink]
) -> tuple[PerLink, Rows, list[Expr]]:
    """States from the base outward: what later walks see of them, their rows, and what the last
    one passes on along a chain.

    Where states are computed anew, a row is what the link's parent passes on.
    """
    graph = tree.graph

    def state_of(visit: Visit, parent: Any) -> Any:
        return body(visit.link, parent, *(x.at(visit) for x in per_link))

    def states(parent: Any) -> dict[int, Any]:
        return traced(tree, way, lambda visit: state_of(visit, parent))

    template = settled(tree, base, lambda parent: states(parent).values())
    chained = bool(way.through) or tree.serial
    rows = Rows(tree, way, template, first_row=0 if tree.anew else 1)
    for kind, record in states(numbered(graph, template)).items():
        rows.look(kind, numbered(graph, template) if tree.anew else record)
    stored, starts = rows.laid_out(), passed(graph, template, base)
    if not chained:
        tree.once(lambda step: rows.write_base(step, starts))

    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Expr]:
        parent = filled(template, carried) if chained else rows.of_parent(visit)
        record = state_of(visit, parent)
        rows.write(visit.step, parent if tree.anew else record)
        return passed(graph, template, record) if chained else []

    found = Lazy(lambda visit: state_of(visit, stored.at(visit))) if tree.anew else stored
    return found, rows, tree.walk(way, starts if chained else [], visited)


@sweep.base_to_tip.register
def _(tree: RolledTree, body: sweep.Body, base: Any, *per_link: Any) -> Any:
    return tree.asked_once(
        "base_to_tip",
        (body, base, *per_link),
        lambda: outward(tree, tree.all, body, base, per_link)[0],
    )


@sweep.tip_to_base.register
def _(tree: RolledTree, body: sweep.Body, empty: Any, *per_link: Any) -> Any:
    return tree.asked_once(
        "tip_to_base", (body, empty, *per_link), lambda: inward(tree, body, empty, per_link)
    )


def inward(
    tree: RolledTree, body: sweep.Body, empty: Any, per_link: Sequence[PerLink]
) -> tuple[Stored, Any]:
    """Sums from the tips inward: what later walks see of the links, and the sum at the base.

    With a carried sum along a chain; else sums in memory, to which each link adds.
    """
    way, graph, serial = tree.all.backward(), tree.graph, tree.serial

    def results(visit: Visit, children: Any) -> Any:
        return body(visit.link, children, *(x.at(visit) for x in per_link))

    def tried(children: Any) -> dict[int, Any]:
        return traced(tree, way, lambda visit: results(visit, children))

    zeros = mapped(lambda x: x if constant(x) == 0.0 else unknown(graph), empty)
    # sums of zeros are zero; of any other number, sums are not the same in all links
    template = settled(tree, zeros, lambda sums: [up for _, up in tried(sums).values()])
    rows = Rows(tree, tree.all, (), first_row=0)
    for kind, (out, _) in tried(numbered(graph, template)).items():
        rows.look(kind, out)
    stored, starts = rows.laid_out(), passed(graph, template, empty)
    count = len(starts)
    sums = "" if serial else tree.cleared(count * (tree.n_links + 1))

    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Expr]:
        children = carried
        if not serial:
            children = [visit.read(Place(sums, count + k, count)) for k in range(count)]
        out, up = results(visit, filled(template, children))
        rows.write(visit.step, out)
        to_parent = passed(graph, template, up)
        if serial:
            return to_parent
        start, stride, places = tree.parents
        for k, value in enumerate(to_parent):
            at = (start * count + k, stride * count, places)
            visit.step.write(sums, value, *at, add=True)
        return []

    end = tree.walk(way, starts if serial else [], visited)
    if not serial:
        end = tree.once(lambda step: [step.read(sums, k) for k in range(count)], count)
    return stored, filled(template, end)


@sweep.each_link.register
def _(tree: RolledTree, body: sweep.Body, *per_link: Any) -> Any:
    own = Lazy(lambda visit: body(visit.link, *(x.at(visit) for x in per_link)))
    return tree.asked_once("each_link", (body, *per_link), lambda: own)


@sweep.sum_links.register
def _(tree: RolledTree, body: sweep.Body, total: Any, *per_link: Any, inward: bool = False) -> Any:
    template = mapped(lambda _: unknown(tree.graph), total)

    def visited(visit: Visit, carried: list[Expr]) -> Sequence[Any]:
        sum_ = filled(template, carried)
        return leaves(body(visit.link, sum_, *(x.at(visit) for x in per_link)))

    way = tree.all.backward() if inward else tree.all
    return filled(template, tree.walk(way, leaves(total), visited))


@sweep.along_path.register
def _(tree: RolledTree, last: int, body: sweep.Body, base: Any, *per_link: Any) -> Any:
    if last == BASE:
        return {}, base
    way = _way_to(tree, last)
    stored, rows, carried = outward(tree, way, body, base, per_link)
    item = way.length - 1

    def number(x: Any) -> Any:
        """A number of the last link: carried to the end, or read from its row."""
        if isinstance(x, Column) and x.of < len(carried):
            return carried[x.of]
        place = rows.placed(x)
        return _read(tree, place.of, item) if isinstance(place, Element) else place

    return stored, mapped(number, rows.records[int(tree.classes.of_link[last])])


def _way_to(tree: RolledTree, last: int) -> Way:
    path = np.array(tree.path(last), np.int64)
    if (path == np.arange(len(path))).all():
        return Way(len(path))
    name = f"path to {last}"
    tree.lists[name] = path
    return Way(len(path), through=name)


@sweep.on_path.register
def _(tree: RolledTree, last: int, body: sweep.Body, *per_link: Any) -> Any:
    def own(visit: Visit) -> Any:
        return body(visit.link, *(x.at(visit) for x in per_link))

    return (_way_to(tree, last) if last != BASE else None), Lazy(own)


@sweep.every_link.register
def _(tree: RolledTree, body: sweep.Body, *per_link: Any) -> Any:
    return tree.all, Lazy(lambda visit: body(visit.link, *(x.at(visit) for x in per_link)))


@sweep.of_link.register
def _(tree: RolledTree, i: int, per_link: Any) -> Any:
    if not isinstance(per_link, Stored):
        return _computed(tree, i, per_link)
    found = per_link.records[int(tree.classes.of_link[i])]

    def number(x: Any) -> Any:
        return _read(tree, x.of, i) if isinstance(x, Element) else x

    return mapped(number, found)


def _computed(tree: RolledTree, i: int, per_link: PerLink) -> Any:
    """What one link has of something that is computed where it is read."""
    name = f"link {i}"
    tree.lists.setdefault(name, np.array([i]))
    way = Way(1, through=name)
    (template,) = traced(tree, way, per_link.at).values()

    def body(visit: Visit, _: list[Expr]) -> list[Any]:
        return leaves(per_link.at(visit))

    found = iter(tree.walk(way, [0.0] * len(leaves(template)), body))
    return mapped(lambda _: next(found), template)


def _read(tree: RolledTree, place: Place, item: int) -> Expr:
    """The number of one item at a place, after the walks that have written it."""
    array, start, stride, places = place
    element = At(start, stride, places).element(item, tree.lists)
    return tree.once(lambda step: [step.read(array, element)], 1)[0]


@sweep.at_links.register
def _(tree: RolledTree, empty: Any, given: Iterable[tuple[int, Any]]) -> Any:
    pairs = [(i, x) for i, x in given if i != BASE]
    if not pairs:
        return tree.asked_once("at no link", (empty,), lambda: Lazy(lambda _: empty))

    def own(visit: Visit) -> Any:
        """What is given, times one at its link and zero at all others."""
        sums = leaves(empty)
        for i, x in pairs:
            mark = visit.read(tree.mark(i))
            sums = [a + mark * b for a, b in zip(sums, leaves(x), strict=True)]
        rest = iter(sums)
        return mapped(lambda _: next(rest), empty)

    return Lazy(own)
