"""Each pair of a link and one beyond it, on a rolled tree: one loop writes rows by the inner one.

Its steps, for each link in turn: start there and meet the link itself; then for each link beyond,
parents first, carry the parent's state there and meet it. Along a chain that state is the one of
the step before; on a tree it is read from a row of scratch that the parent's step has written.
What a step does is a case of the loop, as in ``pairs.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise import sweep
from linkwise.spatial.records import leaves, mapped
from linkwise.trace.expr import At, Expr
from linkwise.trace.kept import filled, traced, unknown
from linkwise.trace.pairs import cases_of, links_inward
from linkwise.trace.rolled import Body, Step, loop
from linkwise.trace.rolledtree import PerLink, RolledTree, Visit, Way, copied, zeroed
from linkwise.trace.status import not_finite

START, CARRY = range(2)
LINK, CASE = "link beyond", "case beyond"
ENTRY, PARENT = "entry beyond", "parent of link beyond"


class Beyond(NamedTuple):
    """What `each_beyond` was asked for, and how many numbers of each column links have."""

    carry: sweep.Body
    meet: sweep.Body
    starts: PerLink
    per_link: tuple[PerLink, ...]
    width: int = 0


@sweep.each_beyond.register
def _(
    _tree: RolledTree, carry: sweep.Body, meet: sweep.Body, starts: PerLink, *per_link: PerLink
) -> Any:
    return Beyond(carry, meet, starts, per_link)


def write_rows(tree: RolledTree, beyond: Beyond, name: str) -> Expr:
    """Write a row per degree of freedom, zeros where it moves no link; returns how many numbers
    are not finite.

    Where joints follow others, rows are multiplied by their factors and added up.
    """
    row, graph = beyond.width * tree.n_links, tree.graph
    into = tree.cleared(tree.nv * row) if tree.coupled else name
    if not tree.coupled:
        loop(graph, tree.nv * row, [], lambda step, _: zeroed(step, name))
    lists, cases = tree.noted("beyond", lambda: _lists(tree, beyond.width))
    tree.lists |= lists
    way = Way(len(lists[LINK]), through=LINK)
    shapes = traced(tree, tree.all, beyond.starts.at)
    states = {k: mapped(lambda _: unknown(graph), shape) for k, shape in shapes.items()}
    count = max(len(leaves(state)) for state in states.values())
    kept = "" if tree.serial else tree.room(count * tree.n_links, count)

    def body(role: int, own: int, started: int) -> Body:
        def stepped(step: Step, carried: list[Expr]) -> Sequence[Expr | float]:
            visit = Visit(tree, way, own, step)
            inputs = [x.at(visit) for x in beyond.per_link]
            *numbers, factor, broken = carried  # the factor of the link where the state started
            if role == START:
                follows = visit.link.follows
                factor = graph.lift(follows.multiplier if follows else 1.0)
                state = beyond.starts.at(visit)
            else:
                if kept:
                    numbers = [step.read(kept, k, count, PARENT) for k in range(count)]
                state = beyond.carry(visit.link, filled(states[started], numbers), *inputs)
            found = beyond.meet(visit.link, state, *inputs)
            for k, x in enumerate(leaves(state) if kept else ()):
                step.write(kept, x, k, count, LINK)
            for a, column in enumerate(found):
                for k, x in enumerate(column):
                    value = graph.lift(x * factor if tree.coupled else x)
                    step.write(into, value, a * row + k, 1, ENTRY, add=tree.coupled)
                    broken = broken + not_finite(graph, value)
            new = [] if kept else leaves(state)
            return [*new, *carried[len(new) : -2], factor, broken]

        return stepped

    bodies = [body(*case) for case in cases]
    which = At(0, 1, CASE) if len(bodies) > 1 else None
    starts = [0.0] * (0 if kept else count) + [1.0, 0.0]
    broken = loop(graph, way.length, starts, *bodies, which=which)[-1]
    if tree.coupled:
        loop(graph, tree.nv * row, [], lambda step, _: copied(step, into, name))
    return broken


def _lists(tree: RolledTree, width: int) -> tuple[dict[str, np.ndarray], list[tuple[int, ...]]]:
    """Of each step its link, that link's parent, its case, and where it writes; and the cases."""
    inward = links_inward(tree)
    starts = np.concatenate(inward)
    links = np.repeat(np.arange(tree.n_links, dtype=np.int32), [len(path) for path in inward])
    order = np.argsort(starts, kind="stable")
    link, start = links[order], starts[order]
    role = np.where(link == start, START, CARRY)
    which, cases = cases_of(tree, role, link, start)
    row = width * tree.n_links
    small = np.dtype(np.int32 if tree.nv * row < 2**31 else np.int64)
    entry = (tree.v_indices[start] * row + link.astype(np.int64) * width).astype(small)
    parent = np.maximum(tree.parent_numbers, 0)[link]  # nothing is read of a start's
    return {LINK: link, CASE: which, ENTRY: entry, PARENT: parent}, cases
