"""Kernels of algorithms that scan: a chain is cut into pieces, and pieces are rows of a batch.

    for each scan    every piece finds its map; maps are joined two by two, level by level; from the
                     whole chain back, each pair shares what it is given (`trace/stages.py`)
    at the end       every piece computes its part of the result, from what it was given

A chain is cut into pieces of the same length, which depends on the number of links and the number
type, and one more piece nearest the base, with the links that are left. Where a chain begins or
ends with a few links of other kinds, these are in pieces of their own, and code for them is no part
of the others. So results are the same for any number of threads, and for a state alone or in a
batch; states of a batch are computed one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.backends.base import Kernel
from linkwise.model.joints import Free, Spherical
from linkwise.model.tree import Tree
from linkwise.trace.classes import Classes, classes_of
from linkwise.trace.piecetree import Layout, shortened
from linkwise.trace.program import Program
from linkwise.trace.stages import Joined, Stage, trace_stages
from linkwise.trace.status import UNIT_TOLERANCE, Status
from linkwise.trace.tracer import Task
from linkwise.trace.turns import TURNS

Array = NDArray[Any]
LONGEST = {"float64": 256, "float32": 16}  # links of a piece
SIDE_BY_SIDE = 16  # pieces that a cut counts with, whatever registers hold
FEW = 256  # pairs that are joined by one thread
CACHE_LINE = 64  # bytes
ODD = 64  # links of other kinds, at most, that a chain may begin or end with


class PieceKernel(Kernel, Protocol):
    """A kernel whose rows are pieces."""

    def bound(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A call with these very arrays, on one thread."""


Loader = Callable[[Program], PieceKernel]


def piece_length(links: int, dtype: str = "float64") -> int:
    """How many links each piece has.

    Enough that joining pieces takes little beside what is done in them, and no more than stay in
    the cache, or than keep the digits: errors of a map grow with its links, and in float32 they
    would be far beyond those of the recursion (docs/chain_accuracy.md). Of lengths that do, the one
    with which the links fill whole groups of pieces best.
    """
    most = int(min(max(2 * links**0.5, 8), LONGEST[dtype]))
    if most == LONGEST["float32"]:
        return most

    def steps(length: int) -> tuple[int, int]:
        count, left = divmod(links, length)
        return -(-count // SIDE_BY_SIDE) * length + left, -length

    return min(range(most // 2, most + 1), key=steps)


class Cut(NamedTuple):
    """Where a chain is cut: links of the first piece, pieces of one length, links of the last; and
    how many of the pieces have one link more.
    """

    first: int
    pieces: int
    length: int
    last: int = 0
    longer: int = 0

    @property
    def longest(self) -> int:
        """Links of the longest piece between the first and the last."""
        return self.length + bool(self.longer)

    def parts(self) -> Iterator[tuple[int, int, int, int]]:
        """Pieces of one length after another: their first link, how many, their length, and how
        many of them have one link more.
        """
        end = self.first + self.pieces * self.length + self.longer
        most = self.first, self.pieces, self.length, self.longer
        rows = (0, 1, self.first, 0), most, (end, 1, self.last, 0)
        yield from (row for row in rows if row[1] and row[2])


def cut(classes: Classes) -> Cut:
    """Cut a chain for a processor."""
    return cut_links(classes, piece_length)


def cut_links(classes: Classes, length_of: Callable[[int], int], *, even: bool = False) -> Cut:
    """Cut a chain, by a rule for the length of pieces; links that are left are a piece of their
    own, or with ``even`` one more of the first pieces each.
    """
    links = len(classes.of_link)
    usual = np.flatnonzero(classes.of_link == np.bincount(classes.of_link).argmax())
    before, after = int(usual[0]), links - 1 - int(usual[-1])
    if len(usual) != links - before - after or max(before, after) > ODD:
        before = after = 0  # kinds take turns
    usual_links = links - before - after
    length = length_of(usual_links)
    count, left = divmod(usual_links, length)
    if even:
        count += bool(left)
        return Cut(before, count, usual_links // count, after, usual_links % count)
    return Cut(before + left, count, length, after)


class Traced(NamedTuple):
    """Pieces of one length, traced: their first link and piece, how many, their length, and how
    many have one link more; the programs of all stages, and what is given of their links, a row per
    piece.
    """

    first_link: int
    first: int
    pieces: int
    length: int
    longer: int
    layout: Layout
    stages: list[Stage]
    numbers: list[Array]

    @property
    def links(self) -> slice:
        """All of their links."""
        return slice(self.first_link, self.first_link + self.pieces * self.length)

    @property
    def programs(self) -> list[Program]:
        """Of the pieces, for pieces of this length."""
        own = (s.program for s in self.stages if not s.of_chain)
        return [shortened(program, self.length, self.longer) for program in own]


def traced(
    task: Task,
    tree: Tree,
    length_of: Callable[[int], int],
    width: int,
    dtype: DTypeLike,
    *,
    on_device: bool = False,
) -> list[Traced]:
    """A chain, cut, and each of its parts traced; tiles are of so many pieces.

    A device has pieces of two lengths in one kernel, and computes anew what several walks need of a
    link, because it waits for memory.
    """
    classes = classes_of(tree)
    at, joints, first = cut_links(classes, length_of, even=on_device), Joined(), 0
    pushed = dict.fromkeys(frame.link for frame in task.external)
    found = []
    for first_link, count, length, longer in at.parts():
        links = slice(first_link, first_link + count * length + longer)
        kinds = tuple(int(k) for k in np.unique(classes.of_link[links]))
        layout = Layout(max(length, at.longest), classes, kinds, on_device)
        rows = _rows(count, length, longer)
        numbers = [
            *tiled(layout.table(links), rows, layout.length, width, dtype),
            *(_place(link - first_link, rows, dtype) for link in pushed),
        ]
        stages = trace_stages(task, tree, layout, joints)
        found.append(Traced(first_link, first, count, length, longer, layout, stages, numbers))
        first += count
    return found


def _rows(count: int, length: int, longer: int) -> Array:
    """The first link of each piece, and the end of the last."""
    pieces = np.arange(count + 1)
    return pieces * length + np.minimum(pieces, longer)


def _place(at: int, rows: Array, dtype: DTypeLike) -> Array:
    """Which step of each piece a link is; -1 where it is in another."""
    inside = (rows[:-1] <= at) & (at < rows[1:])
    return np.where(inside, at - rows[:-1], -1.0).astype(dtype)[:, None]


class Part:
    """Pieces of one length: where they are, of all stages their kernels, and their links."""

    def __init__(self, tree: Tree, own: Traced, load: Loader) -> None:
        self.rows, self.count = slice(own.first, own.first + own.pieces), own.pieces
        self.kernels = [load(program) for program in own.programs]
        self._turns = [port.size for x in self.kernels for port in x.signature.inputs
                       if port.name == TURNS]  # fmt: skip
        self.numbers = own.numbers
        self._q = _Places(tree.q_indices, tree.nq, own, own.layout.widest("nq"))
        self._v = _Places(tree.v_indices, tree.nv, own, own.layout.widest("nv"))

    def taken(self, x: Array, size: str) -> Array:
        """The pieces' numbers of an input, (pieces, numbers)."""
        return (self._q if size == "nq" else self._v).taken(x)

    def target(self, out: Array) -> Array:
        """Where the pieces write their part of a result."""
        return self._v.target(out)

    def turns(self, width: int, dtype: np.dtype) -> Array:
        """Room for the sines and cosines that the first stage leaves; none where it does not."""
        size = max(self._turns, default=0)
        return _aligned((-(-self.count // width) * width if size else 0, size), dtype)

    def give(self, rows: Array, out: Array) -> None:
        """Bring a part of a result to its place, if it is not there."""
        self._v.give(rows, out)


class _Places:
    """Where numbers of the links of some pieces are in a vector over the chain."""

    def __init__(self, indices: Array, total: int, own: Traced, width: int) -> None:
        count, length, most = own.pieces, own.length, own.layout.length
        ends = np.append(indices[1:], total)
        sizes = (ends - indices)[own.links]
        starts = indices[own.links]
        self._plain = width == 1 and length == most
        self._shape = (count, most * width)
        if self._plain:
            self._slice = slice(int(starts[0]), int(starts[-1]) + 1)
            return
        slots = np.arange(width)
        places = starts[:, None] + np.minimum(slots, sizes[:, None] - 1)
        self._from = np.zeros((count, most, width), np.int64)
        self._from[:, :length] = places.reshape(count, length, width)
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


def tiled(table: Array, rows: Array, most: int, width: int, dtype: DTypeLike) -> tuple[Array, ...]:
    """Numbers of the links of pieces that begin at these rows, pieces side by side as many as
    registers hold.
    """
    columns, count = table.shape[1], len(rows) - 1
    if not columns:
        return ()
    numbers = np.zeros((-(-count // width) * width, most, columns), dtype)
    links = np.arange(len(table))
    piece = np.searchsorted(rows, links, "right") - 1
    numbers[piece, links - rows[piece]] = table
    tiles = numbers.reshape(-1, width, most * columns).transpose(0, 2, 1)
    found = _aligned(tiles.shape, tiles.dtype)
    found[...] = tiles
    return (found.reshape(-1, most * columns),)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """An array that begins with a cache line: a register's worth of it is then never in two lines,
    which costs a tenth of the time of a long random chain.
    """
    size = int(np.prod(shape)) * dtype.itemsize
    room = np.empty(size + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + size].view(dtype).reshape(shape)


class Pairs(NamedTuple):
    """What joins two pieces of a scan, and gives each its share; numbers of a map, and what the
    chain is given.
    """

    size: int
    given: list[float]
    totals: bool
    join: PieceKernel
    share: PieceKernel | None


class Joining:
    """The tree in which the pieces of one scan are joined, and shares given back."""

    def __init__(self, pairs: Pairs, count: int, dtype: np.dtype) -> None:
        size, given = pairs.size, pairs.given
        sizes = [count]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        self._levels = [np.empty((n, size), dtype) for n in sizes]
        self._given = [np.empty((n, len(given)), dtype) for n in sizes]
        self._chain = np.array(given, dtype)
        inward, outward = range(len(sizes) - 1), reversed(range(len(sizes) - 1))
        self._inward = [self._joined(pairs.join, k) for k in inward]
        self.totals = [self._levels[-1]] if pairs.totals else []  # after a run
        self.given = self._given[:1] if pairs.share else []  # to each piece, after a run
        share = pairs.share
        self._outward = [self._shared(share, k) for k in outward] if share else []
        self.pieces = self._levels[0]  # where the pieces' maps go

    def run(self, threads: int | None) -> None:
        """Join the pieces, and share what the chain is given: NaN, where one of the maps is."""
        for step in self._inward:
            step(threads)
        with np.errstate(invalid="ignore"):
            self._given[-1][0] = self._chain + 0.0 * self._levels[-1][0, 0]
        for step in self._outward:
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


class Room(NamedTuple):
    """Memory of one run: trees of pieces, and of each part what its first stage leaves."""

    trees: list[Joining]
    turns: list[Array]


class ScanKernel:
    """All kernels of one task on one chain, run one after another."""

    def __init__(self, task: Task, tree: Tree, dtype: str, load: Loader, width: int) -> None:
        self.signature, self._dtype = task.signature(tree), np.dtype(dtype)
        self._sizes = dict(task.algorithm.inputs)
        self._quaternions = _quaternions(tree)
        length_of = partial(piece_length, dtype=dtype)
        parts = traced(task, tree, length_of, width, self._dtype)
        self._parts = [Part(tree, own, load) for own in parts]
        stages = parts[-1].stages
        self._last = load(stages[-1].program) if stages[-1].of_chain else None
        self._pairs = [
            Pairs(stage.program.outputs[0].slot.size, joints.given, joints.totals,
                  load(joints.join), load(joints.share) if joints.share else None)
            for stage in stages for joints in [stage.joints] if joints
        ]  # fmt: skip
        self._width = width
        self._free = [self._room()]  # that no thread uses now

    def _room(self) -> Room:
        count = sum(part.count for part in self._parts)
        trees = [Joining(pairs, count, self._dtype) for pairs in self._pairs]
        return Room(trees, [part.turns(self._width, self._dtype) for part in self._parts])

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill the outputs (states, size) from the inputs (states, size)."""
        try:
            room = self._free.pop()
        except IndexError:
            room = self._room()
        for k in range(len(outputs[0])):
            self._state([x[k] for x in inputs], [x[k] for x in outputs], room, threads)
        self._free.append(room)  # not after an interrupt: a thread may still write to them

    def _state(
        self, inputs: list[Array], outputs: list[Array], room: Room, threads: int | None
    ) -> None:
        trees = room.trees
        names = [port.name for port in self.signature.inputs]
        along = {n: x for n, x in zip(names, inputs, strict=True)
                 if isinstance(self._sizes.get(n), str)}  # fmt: skip
        beside = [x[None] for n, x in zip(names, inputs, strict=True) if n not in along]
        parts = [
            (part, self._own(part, along), turns)
            for part, turns in zip(self._parts, room.turns, strict=True)
        ]

        def run(k: int, part: Part, mine: list[Array], turns: Array, into: list[Array]) -> None:
            kernel = part.kernels[k]
            found = [x[part.rows] for tree in trees[: k % len(part.kernels)] for x in tree.given]
            same = [np.broadcast_to(x, (part.count, x.shape[1])) for x in beside]
            turned = [turns for port in kernel.signature.inputs if port.name == TURNS]
            left = [turns for slot in kernel.signature.outputs if slot.name == TURNS]
            kernel([*mine, *found, *same, *turned], [*into, *left], threads)

        for k, tree in enumerate(trees):
            for part, mine, turns in parts:
                run(k, part, mine, turns, [tree.pieces[part.rows]])
            tree.run(threads)
        statuses: list[Array] = []

        def made(result: Array) -> list[Array]:
            if len(outputs) == 1:
                return [result]
            statuses.append(np.empty((len(result), 1), np.uint16))
            return [result, statuses[-1]]

        joints = outputs[0]
        if self._last is not None:
            size = self._last.signature.outputs[0].size
            joints, chain = np.split(outputs[0].reshape(-1), [outputs[0].size - size])
            totals = [x for tree in trees for x in tree.totals]
            self._last([*totals, *beside], made(chain.reshape(1, size)), 1)
        for part, mine, turns in parts if joints.size else ():
            rows = part.target(joints)
            run(-1, part, mine, turns, made(rows))
            part.give(rows, joints)
        if statuses:
            outputs[1][...] = self._status(np.concatenate(statuses), inputs)

    def _own(self, part: Part, along: dict[str, Array]) -> list[Array]:
        """What is given of the links of some pieces."""
        rows = [part.taken(x, str(self._sizes[name])) for name, x in along.items()]
        return [*rows, *part.numbers]

    def _status(self, rows: Array, inputs: list[Array]) -> int:
        """The status of a state from those of its pieces: a singular one spoils the others."""
        if not all(np.isfinite(x).all() for x in inputs):
            return int(Status.NOT_FINITE)
        found = int(np.bitwise_or.reduce(rows, axis=None))
        if found & Status.SINGULAR:
            found &= ~int(Status.OVERFLOW)
        lengths = (inputs[0][self._quaternions] ** 2).sum(-1)  # the first input is q
        if (np.abs(lengths - 1.0) > 2.0 * UNIT_TOLERANCE).any():
            found |= Status.NOT_UNIT
        return found


def _quaternions(tree: Tree) -> Array:
    """Where quaternions are in a configuration, (joints, 4)."""
    classes = classes_of(tree)
    turning = [
        k for k, x in enumerate(classes.classes) if isinstance(x.example.joint, (Spherical, Free))
    ]
    starts = tree.q_indices[np.isin(classes.of_link, turning)]
    return np.asarray(starts[:, None] + np.arange(4))
