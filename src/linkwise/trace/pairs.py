"""Each pair of a link and an ancestor, on a rolled tree: one loop writes a matrix.

Its steps, for each link in turn: start there and meet the link itself; then for each ancestor,
carry the state over the link before and meet the ancestor. What a step does is a case of the loop,
by its role, the class of the link it is about, and how many columns the link has where the state
started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise import sweep
from linkwise.algorithms.dense import plus
from linkwise.model.tree import BASE
from linkwise.spatial.records import leaves, mapped
from linkwise.trace.expr import At, Expr, summed
from linkwise.trace.kept import filled, traced, unknown
from linkwise.trace.rolled import Body, Step, loop
from linkwise.trace.rolledtree import PerLink, RolledTree, Visit, Way, copied, zeroed
from linkwise.trace.status import not_finite

START, CARRY, MEET = range(3)
LINK, CASE, ENTRY, MIRRORED = "link of pair", "case of pair", "entry of pair", "mirrored of pair"


class Pairs(NamedTuple):
    """What `each_pair` was asked for, and what is made of it: a symmetric matrix, with the rotors'
    inertias on the diagonal or without, or a matrix whose blocks are computed from what is met.
    """

    carry: sweep.Body
    meet: sweep.Body
    starts: PerLink
    per_link: tuple[PerLink, ...]
    rotors: bool = False
    inner: Callable[..., Any] | None = None  # of what is met: the block of the ancestor's rows
    outer: Callable[..., Any] | None = None  # the block of its columns
    own: PerLink | None = None  # added to the block of each link with itself


@sweep.each_pair.register
def _(
    _tree: RolledTree, carry: sweep.Body, meet: sweep.Body, starts: PerLink, *per_link: PerLink
) -> Any:
    return Pairs(carry, meet, starts, per_link)


def write_matrix(tree: RolledTree, pairs: Pairs, name: str) -> Expr:
    """Write the matrix, zeros between branches; returns how many numbers are not finite."""
    nv, into = tree.nv, tree.cleared(tree.nv**2) if tree.coupled else name
    if not (tree.serial or tree.coupled):
        loop(tree.graph, nv * nv, [], lambda step, _: zeroed(step, name))
    lists, cases = tree.noted("pairs", lambda: _lists(tree))
    tree.lists |= lists
    steps = len(lists[LINK])
    way = Way(steps, through=LINK)
    shapes = traced(tree, tree.all, pairs.starts.at)
    states = {k: mapped(lambda _: unknown(tree.graph), shape) for k, shape in shapes.items()}
    count = max(len(leaves(state)) for state in states.values())
    write = _Write(tree, pairs, into)

    def body(role: int, own: int, started: int) -> Body:
        def stepped(step: Step, carried: list[Expr]) -> Sequence[Expr | float]:
            visit = Visit(tree, way, own, step)
            inputs = [x.at(visit) for x in pairs.per_link]
            *numbers, factor, broken = carried  # the factor of the link where the state started
            follows = visit.link.follows
            own_factor: Any = follows.multiplier if follows else 1.0
            state = filled(states[started], numbers)
            if role == START:
                state, factor = pairs.starts.at(visit), tree.graph.lift(own_factor)
            if role == CARRY:
                state = pairs.carry(visit.link, state, *inputs)
            else:
                found = pairs.meet(visit.link, state, *inputs)
                write.factor = factor * own_factor
                broken = broken + write.met(visit, found, role == START)
            new = leaves(state)
            return [*new, *numbers[len(new) :], factor, broken]

        return stepped

    bodies = [body(*case) for case in cases]
    which_at = At(0, 1, CASE) if len(bodies) > 1 else None
    starts = [0.0] * count + [1.0, 0.0]
    broken = loop(tree.graph, steps, starts, *bodies, which=which_at)[-1]
    if tree.coupled:
        loop(tree.graph, nv * nv, [], lambda step, _: copied(step, into, name))
    return broken


class _Write:
    """Writes blocks of a matrix; each method returns how many numbers are not finite.

    Where joints follow others, blocks are multiplied by the factors of both links and added up.
    """

    def __init__(self, tree: RolledTree, pairs: Pairs, name: str) -> None:
        self.tree, self.pairs, self.name = tree, pairs, name
        self.factor: Any = 1.0  # of the two links together

    def _put(self, visit: Visit, value: Any, start: int, places: str) -> Expr:
        own = self.tree.graph.lift(value * self.factor if self.tree.coupled else value)
        visit.step.write(self.name, own, start, 1, places, add=self.tree.coupled)
        return not_finite(self.tree.graph, own)

    def met(self, visit: Visit, found: Any, diagonal: bool) -> Expr:
        """What a link has met, at itself or at an ancestor."""
        inner, outer, own = self.pairs.inner, self.pairs.outer, self.pairs.own
        if inner is None or outer is None or own is None:
            return self.block(visit, found, diagonal)
        block = inner(*found)
        if diagonal:
            return self._entries(visit, plus(block, own.at(visit)), ENTRY)
        broken = self._entries(visit, block, ENTRY)
        return broken + self._entries(visit, outer(*found), MIRRORED)

    def _entries(self, visit: Visit, block: Sequence[Sequence[Any]], places: str) -> Expr:
        broken = [
            self._put(visit, x, a * self.tree.nv + b, places)
            for a, row in enumerate(block)
            for b, x in enumerate(row)
        ]
        return summed(self.tree.graph, broken)

    def block(self, visit: Visit, block: Sequence[Sequence[Any]], diagonal: bool) -> Expr:
        """A block, rows of the link that is met, and its mirror image.

        Of a block on the diagonal, only the entries on and below the diagonal are used.
        """
        nv, rotors = self.tree.nv, visit.link.armature
        broken = self.tree.graph.zero
        for a, row in enumerate(block):
            for b, x in enumerate(row):
                if diagonal and b > a:
                    continue
                value = x + rotors[a] if diagonal and a == b and self.pairs.rotors else x
                broken = broken + self._put(visit, value, a * nv + b, ENTRY)
                if not (diagonal and a == b):
                    self._put(visit, value, b * nv + a, MIRRORED)
        return broken


def _lists(tree: RolledTree) -> tuple[dict[str, np.ndarray], list[tuple[int, ...]]]:
    """Of each step its link, its case, and the entries it writes; and what the cases are."""
    link, role, start = _steps(tree)
    which, cases = cases_of(tree, role, link, start)
    small = np.int32 if tree.nv**2 < 2**31 else np.int64
    v = tree.v_indices.astype(small)
    lists = {
        LINK: link, CASE: which,
        ENTRY: v[link] * small(tree.nv) + v[start], MIRRORED: v[start] * small(tree.nv) + v[link],
    }  # fmt: skip
    return lists, cases


def cases_of(
    tree: RolledTree, role: np.ndarray, link: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The case of each step, and what the cases are: role, class of the link, and the first class
    with as many columns as the link where the state started.
    """
    kind, columns = tree.classes.of_link, [x.example.joint.nv for x in tree.classes.classes]
    alike = np.array([columns.index(n) for n in columns])
    shape = (int(role.max()) + 1, len(columns), len(columns))
    key = np.ravel_multi_index((role, kind[link], alike[kind[start]]), shape)
    present = np.flatnonzero(np.bincount(key))
    which = np.zeros(int(np.prod(shape)), np.int16)
    which[present] = np.arange(len(present))
    cases = [tuple(map(int, case)) for case in np.transpose(np.unravel_index(present, shape))]
    return which[key], cases


def links_inward(tree: RolledTree) -> list[np.ndarray]:
    """Of each link: itself and its ancestors, on the way to the base."""
    inward: list[np.ndarray] = []
    for i, parent in enumerate(tree.parent_numbers.tolist()):
        before = inward[parent] if parent != BASE else np.empty(0, np.int32)
        inward.append(np.concatenate([np.array([i], np.int32), before]))
    return inward


def _steps(tree: RolledTree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each step: the link it is about, its role, and the link where its state started."""
    inward = links_inward(tree)
    counts = [2 * len(path) - 1 for path in inward]  # nothing is carried over the last link
    links = np.concatenate([np.repeat(path, 2)[:-1] for path in inward])
    turns = np.resize(np.array([MEET, CARRY], np.int8), max(counts))
    roles = np.concatenate([turns[:count] for count in counts])
    roles[np.cumsum(counts) - counts] = START
    return links, roles, np.repeat(np.arange(tree.n_links, dtype=np.int32), counts)
