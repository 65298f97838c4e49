"""Kernels of algorithms that scan: a chain is cut into pieces, and pieces are rows of a batch.

    for each scan    every piece finds its map; maps are joined two by two, level by level; from the
                     whole chain back, each pair shares what it is given (`trace/stages.py`)
    at the end       every piece computes its part of the result, from what it was given

A chain of n links is cut into pieces of the same length, which depends on n alone, and one more
piece nearest the base, with the links that are left. Where a chain begins or ends with a few links
of other kinds, these are in pieces of their own, and code for them is no part of the others. So
results are the same for any number of threads, and for a state alone or in a batch; states of a
batch are computed one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.backends.base import Kernel
from linkwise.model.tree import Tree
from linkwise.trace.classes import Classes, classes_of
from linkwise.trace.program import Program
from linkwise.trace.stages import Piece, Stage, shortened, trace_stages
from linkwise.trace.status import Status
from linkwise.trace.tracer import Task

Array = NDArray[Any]
SIDE_BY_SIDE = 16  # pieces that a cut counts with, whatever registers hold
FEW = 256  # pairs that are joined by one thread
ODD = 64  # links of other kinds, at most, that a chain may begin or end with


class PieceKernel(Kernel, Protocol):
    """A kernel whose rows are pieces."""

    def bound(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A call with these very arrays, on one thread."""


Load = Callable[[Program], PieceKernel]


def piece_length(links: int) -> int:
    """How many links each piece has.

    Enough that joining pieces takes little beside what is done in them, and no more than stay in
    the cache; of lengths that do, the one with which the links fill whole groups of pieces best.
    """
    most = int(min(max(2 * links**0.5, 8), 128))

    def steps(length: int) -> tuple[int, int]:
        count, left = divmod(links, length)
        return -(-count // SIDE_BY_SIDE) * length + left, -length

    return min(range(most // 2, most + 1), key=steps)


class Cut(NamedTuple):
    """Where a chain is cut: links of the first piece, pieces of one length, links of the last."""

    first: int
    pieces: int
    length: int
    last: int = 0


def cut(classes: Classes) -> Cut:
    """Cut a chain for a processor."""
    return cut_links(classes, piece_length)


def cut_links(classes: Classes, length_of: Callable[[int], int]) -> Cut:
    """Cut a chain, by a rule for the length of pieces."""
    links = len(classes.of_link)
    usual = np.flatnonzero(classes.of_link == np.bincount(classes.of_link).argmax())
    before, after = int(usual[0]), links - 1 - int(usual[-1])
    if len(usual) != links - before - after or max(before, after) > ODD:
        before = after = 0  # kinds take turns
    length = length_of(links - before - after)
    count, left = divmod(links - before - after, length)
    return Cut(before + left, count, length, after)


class Part:
    """Pieces of one length: where they are, of all stages their kernels, and their links."""

    def __init__(
        self, tree: Tree, piece: Piece, stages: Sequence[Stage], load: Load, first: int,
        rows: slice, length: int, width: int, dtype: np.dtype,
    ) -> None:  # fmt: skip
        self.rows, self._length, self._most = rows, length, piece.length
        count = rows.stop - rows.start
        self.links = slice(first, first + count * length)
        self.kernels = [load(shortened(s.program, length)) for s in stages if not s.of_chain]
        self.numbers = tiled(piece.table(self.links), count, length, piece.length, width, dtype)
        self._q = _Places(tree.q_indices, tree.nq, self, piece.widest("nq"))
        self._v = _Places(tree.v_indices, tree.nv, self, piece.widest("nv"))

    @property
    def count(self) -> int:
        """How many pieces."""
        return int(self.rows.stop - self.rows.start)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Pieces, links of each, and links that there is room for."""
        return self.count, self._length, self._most

    def taken(self, x: Array, size: str) -> Array:
        """The pieces' numbers of an input, (pieces, numbers)."""
        return (self._q if size == "nq" else self._v).taken(x)

    def target(self, out: Array) -> Array:
        """Where the pieces write their part of a result."""
        return self._v.target(out)

    def give(self, rows: Array, out: Array) -> None:
        """Bring a part of a result to its place, if it is not there."""
        self._v.give(rows, out)

    def place(self, link: int) -> Array:
        """Which step of each piece a link is; -1 where it is in another."""
        places = np.full((self.count, 1), -1.0)
        at = link - self.links.start
        if 0 <= at < self.count * self._length:
            places[at // self._length] = at % self._length
        return places


class _Places:
    """Where numbers of the links of some pieces are in a vector over the chain."""

    def __init__(self, indices: Array, total: int, part: Part, width: int) -> None:
        count, length, most = part.shape
        ends = np.append(indices[1:], total)
        sizes = (ends - indices)[part.links]
        starts = indices[part.links]
        self._plain = width == 1 and length == most
        self._shape = (count, most * width)
        if self._plain:
            self._slice = slice(int(starts[0]), int(starts[-1]) + 1)
            return
        slots = np.arange(width)
        own = starts[:, None] + np.minimum(slots, sizes[:, None] - 1)
        self._from = np.zeros((count, most, width), np.int64)
        self._from[:, :length] = own.reshape(count, length, width)
        room = np.arange(count * most * width).reshape(count, most, width)[:, :length]
        real = (slots < sizes[:, None]).reshape(count, length, width)
        self._rows, self._vector = room[real], self._from[:, :length][real]

    def taken(self, x: Array) -> Array:
        if self._plain:
            return np.ascontiguousarray(x[self._slice]).reshape(self._shape)
        return x[self._from].reshape(self._shape)

    def target(self, out: Array) -> Array:
        if self._plain and out.flags.c_contiguous:
            return out[self._slice].reshape(self._shape)
        return np.empty(self._shape, out.dtype)

    def give(self, rows: Array, out: Array) -> None:
        if np.may_share_memory(rows, out):
            return
        if self._plain:
            out[self._slice] = rows.reshape(-1)
        else:
            out[self._vector] = rows.reshape(-1)[self._rows]


def tiled(
    table: Array, count: int, length: int, most: int, width: int, dtype: DTypeLike
) -> tuple[Array, ...]:
    """Numbers of the links of some pieces, pieces side by side as many as registers hold."""
    columns = table.shape[1]
    if not columns:
        return ()
    rows = np.zeros((-(-count // width) * width, most * columns), dtype)
    rows[:count, : length * columns] = table.reshape(count, length * columns)
    tiles = rows.reshape(-1, width, most * columns).transpose(0, 2, 1)
    return (np.ascontiguousarray(tiles).reshape(rows.shape),)


class Joining:
    """The tree in which the pieces of one scan are joined, and shares given back."""

    def __init__(self, stage: Stage, load: Load, count: int, dtype: np.dtype) -> None:
        assert stage.joints is not None
        size, given = stage.program.outputs[0].slot.size, stage.joints.given
        sizes = [count]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        self._levels = [np.empty((n, size), dtype) for n in sizes]
        self._given = [np.empty((n, len(given)), dtype) for n in sizes]
        self._given[-1][0] = given
        inward, outward = range(len(sizes) - 1), reversed(range(len(sizes) - 1))
        join = load(stage.joints.join)
        self._steps = [self._joined(join, k) for k in inward]
        self.totals = [self._levels[-1]] if stage.joints.totals else []  # after a run
        self.given = self._given[:1] if stage.joints.share else []  # to each piece, after a run
        if stage.joints.share:
            share = load(stage.joints.share)
            self._steps += [self._shared(share, k) for k in outward]
        self.pieces = self._levels[0]  # where the pieces' maps go

    def run(self, threads: int | None) -> None:
        """Join the pieces, and share what the chain is given."""
        for step in self._steps:
            step(threads)

    def _joined(self, join: PieceKernel, k: int) -> Callable[[int | None], None]:
        level, above = self._levels[k], self._levels[k + 1]
        pairs = len(level) // 2
        inner, outer = level[: 2 * pairs : 2], level[1::2]
        last, odd = above[pairs:], level[2 * pairs :]
        return _ready(join, [inner, outer], [above[:pairs]], last, odd)

    def _shared(self, share: PieceKernel, k: int) -> Callable[[int | None], None]:
        level, above, below = self._levels[k], self._given[k + 1], self._given[k]
        pairs = len(level) // 2
        inner, outer = level[: 2 * pairs : 2], level[1::2]
        both = below[: 2 * pairs].reshape(pairs, 2 * below.shape[1])
        last, odd = below[2 * pairs :], above[pairs:]
        return _ready(share, [inner, outer, above[:pairs]], [both], last, odd)


def _ready(
    kernel: PieceKernel, inputs: list[Array], outputs: list[Array], last: Array, odd: Array
) -> Callable[[int | None], None]:
    """A step of a tree: pairs by a kernel, and the odd one left as it is."""
    alone = kernel.bound(inputs, outputs) if len(outputs[0]) <= FEW else None

    def step(threads: int | None) -> None:
        if alone is not None:
            alone()
        else:
            kernel(inputs, outputs, threads)
        if len(odd):
            last[:] = odd

    return step


class ScanKernel:
    """All kernels of one task on one chain, run one after another."""

    def __init__(self, task: Task, tree: Tree, dtype: str, load: Load, width: int) -> None:
        self.signature, self._dtype = task.signature(tree), np.dtype(dtype)
        self._sizes = dict(task.algorithm.inputs)
        self._pushed = list(dict.fromkeys(frame.link for frame in task.external))
        classes = classes_of(tree)
        at = cut(classes)
        odd = int(at.first > 0)

        def part(first: int, rows: slice, length: int) -> tuple[Part, list[Stage]]:
            links = slice(first, first + length * (rows.stop - rows.start))
            kinds = tuple(int(k) for k in np.unique(classes.of_link[links]))
            piece = Piece(max(length, at.length), classes, kinds)
            stages = trace_stages(task, tree, piece)
            made = Part(tree, piece, stages, load, first, rows, length, width, self._dtype)
            return made, stages

        parts = []
        if at.first:
            parts.append(part(0, slice(0, 1), at.first))
        if at.pieces:
            parts.append(part(at.first, slice(odd, odd + at.pieces), at.length))
        if at.last:
            end = odd + at.pieces
            parts.append(part(tree.n_links - at.last, slice(end, end + 1), at.last))
        self._parts = [part for part, _ in parts]
        stages = parts[-1][1]
        count = sum(part.count for part in self._parts)
        self._last = load(stages[-1].program) if stages[-1].of_chain else None

        def trees() -> list[Joining]:
            scans = (stage for stage in stages if stage.joints)
            return [Joining(stage, load, count, self._dtype) for stage in scans]

        self._new = trees
        self._free: list[list[Joining]] = [trees()]  # trees that no thread uses now

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill the outputs (states, size) from the inputs (states, size)."""
        try:
            trees = self._free.pop()
        except IndexError:
            trees = self._new()
        for k in range(len(outputs[0])):
            self._state([x[k] for x in inputs], [x[k] for x in outputs], trees, threads)
        self._free.append(trees)

    def _state(
        self, inputs: list[Array], outputs: list[Array], trees: list[Joining], threads: int | None
    ) -> None:
        names = [port.name for port in self.signature.inputs]
        along = {n: x for n, x in zip(names, inputs, strict=True)
                 if isinstance(self._sizes.get(n), str)}  # fmt: skip
        beside = [x[None] for n, x in zip(names, inputs, strict=True) if n not in along]
        own = [self._own(part, along) for part in self._parts]

        def run(k: int, part: Part, mine: list[Array], into: list[Array]) -> None:
            found = [x[part.rows] for tree in trees[: k % len(part.kernels)] for x in tree.given]
            same = [np.broadcast_to(x, (part.count, x.shape[1])) for x in beside]
            part.kernels[k]([*mine, *found, *same], into, threads)

        for k, tree in enumerate(trees):
            for part, mine in zip(self._parts, own, strict=True):
                run(k, part, mine, [tree.pieces[part.rows]])
            tree.run(threads)
        statuses: list[Array] = []

        def made(result: Array) -> list[Array]:
            if len(outputs) == 1:
                return [result]
            statuses.append(np.empty((len(result), 1), np.uint8))
            return [result, statuses[-1]]

        joints = outputs[0]
        if self._last is not None:
            size = self._last.signature.outputs[0].size
            joints, chain = np.split(outputs[0].reshape(-1), [outputs[0].size - size])
            totals = [x for tree in trees for x in tree.totals]
            self._last([*totals, *beside], made(chain.reshape(1, size)), 1)
        for part, mine in zip(self._parts, own, strict=True) if joints.size else ():
            rows = part.target(joints)
            run(-1, part, mine, made(rows))
            part.give(rows, joints)
        if statuses:
            finite = all(np.isfinite(x).all() for x in inputs)
            outputs[1][...] = _status(np.concatenate(statuses), finite)

    def _own(self, part: Part, along: dict[str, Array]) -> list[Array]:
        """What is given of the links of some pieces."""
        rows = [part.taken(x, str(self._sizes[name])) for name, x in along.items()]
        places = [part.place(link).astype(self._dtype) for link in self._pushed]
        return [*rows, *part.numbers, *places]


def _status(rows: Array, finite: bool) -> int:
    """The status of a state from those of its pieces: a singular one spoils the others."""
    found = int(np.bitwise_or.reduce(rows, axis=None))
    if not finite:
        return int(Status.NOT_FINITE)
    if found & Status.SINGULAR:
        return found & ~int(Status.OVERFLOW)
    return found
