"""Kernels of algorithms that scan, on a device: the stages of ``scans.py``, a thread per piece.

Pieces are shorter than on a processor, since thousands of them are needed to keep a GPU busy. All
work goes to the caller's stream, and so into a graph where one is captured; the room for maps and
for what pieces are given is taken from the device for the time of the call.

Numbers of links are read where they are, a piece's behind those of the piece before. Only where
joints of several kinds take turns, these are first brought to rows in which every link has as many
places, and the result from such rows to its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.base import Block, DeviceBackend, DeviceKernel, DeviceTree, Rows
from linkwise.engine.scans import Traced, traced
from linkwise.model.tree import Tree
from linkwise.trace.program import FLAGS_BYTES, NUMBER, Program
from linkwise.trace.stages import Stage
from linkwise.trace.status import Status
from linkwise.trace.tracer import Task

Array = NDArray[Any]
Start = Callable[[int, Sequence[int]], None]
Loader = Callable[[Program], DeviceKernel]
LoadTree = Callable[[Program], DeviceTree]
Step = Callable[[int, "Arrays"], None]
RESULT, STATUS = "result", "status"  # outputs of pieces
# of the bits that pieces tell: inputs that are not finite hide all others, and a singular piece
# spoils the numbers of others
RULES = (
    (int(Status.NOT_FINITE), int(Status.NOT_FINITE)),
    (int(Status.SINGULAR), 255 - int(Status.OVERFLOW)),
)
SHORTEST, LONGEST = 10, 40  # links of a piece
AT_ONCE = {"float64": 32_768, "float32": 50_000}  # pieces that a GPU computes at the same time
BYTES = 256  # what begins at a multiple of so many is read in as few pieces as can be


def piece_length(links: int, dtype: str = "float64") -> int:
    """How many links each piece has, or one more: so few that all pieces are computed at once, but
    not so few that joining them would take longer, nor so many that it would take hardly less.
    """
    return int(min(max(-(-links // AT_ONCE[dtype]), SHORTEST), LONGEST))


class Numbers(NamedTuple):
    """Numbers of the links of some pieces in a vector over the chain: the first of them, and how
    many each link has; where links have more or fewer, how rows are made of them, and they of rows.
    """

    start: int
    width: int
    size: int  # numbers of all rows
    taken: Start | None = None
    given: Start | None = None


class Part(NamedTuple):
    """Pieces of one length: which they are, and where their links' numbers are."""

    first: int
    pieces: int
    length: int
    kernels: list[DeviceKernel]
    numbers: list[Block]  # of the links, and where wrenches from outside are
    along: dict[str, Numbers]  # in configurations (nq) and vectors (nv)


class Arrays(NamedTuple):
    """Where everything of one state is."""

    inputs: list[int]
    outputs: list[int]
    maps: list[int]  # of each scan
    found: list[int]
    told: int  # flags of each piece, and of the chain
    rows: dict[tuple[int, str], int]  # of an input or the result, by the first of the pieces


class Scan(NamedTuple):
    """One scan: numbers of a map and of what a piece is given, and its trees."""

    size: int
    taken: int
    inward: list[Start]
    outward: list[Start]
    chain: Block | None
    totals: bool  # the total is wanted


class DeviceScanKernel:
    """All kernels of one task on one chain."""

    def __init__(
        self, task: Task, tree: Tree, dtype: str, backend: DeviceBackend, load: Loader,
        load_tree: LoadTree,
    ) -> None:  # fmt: skip
        self._dtype, self._memory = np.dtype(dtype), backend.memory
        self._number = self._dtype.itemsize
        self.signature = task.signature(tree)
        sizes = dict(task.algorithm.inputs)
        known = ((port.name, sizes.get(port.name)) for port in self.signature.inputs)
        self._sizes = {name: size if isinstance(size, str) else "" for name, size in known}
        length_of = partial(piece_length, dtype=dtype)
        parts = traced(task, tree, length_of, backend.tile(dtype), dtype, on_device=True)
        self._parts = [self._part(own, tree, load) for own in parts]
        stages = parts[-1].stages
        self._last = load(stages[-1].program) if stages[-1].of_chain else None
        self._pieces = sum(part.pieces for part in self._parts)
        self._levels = _levels(self._pieces)
        self._scans = [self._scan(stage, load_tree) for stage in stages if stage.joints]
        told = self._pieces + 1 if self._last is not None else self._pieces
        self._told = self._memory.summer(told, RULES) if task.status else None
        self._memory.wait()

    def _part(self, own: Traced, tree: Tree, load: Loader) -> Part:
        kernels = [load(program) for program in own.programs]
        sent = [self._memory.sent(x) for x in own.numbers]
        along = {
            "nq": self._numbers(tree.q_indices, tree.nq, own, own.layout.widest("nq")),
            "nv": self._numbers(tree.v_indices, tree.nv, own, own.layout.widest("nv")),
        }
        return Part(own.first, own.pieces, own.length, kernels, sent, along)

    def _numbers(self, indices: Array, total: int, own: Traced, width: int) -> Numbers:
        links = slice(own.first_link, own.first_link + own.pieces * own.length + own.longer)
        starts, sizes = indices[links], np.diff(indices, append=total)[links]
        first, size = int(starts[0]), len(starts) * width
        if (sizes == width).all():
            return Numbers(first, width, size)
        slots, name = np.arange(width), self._dtype.name
        taken = starts[:, None] - first + np.minimum(slots, np.maximum(sizes[:, None] - 1, 0))
        given = np.flatnonzero(slots < sizes[:, None])
        gather = self._memory.gatherer
        return Numbers(first, width, size, gather(taken.ravel(), name), gather(given, name))

    def _scan(self, stage: Stage, load_tree: LoadTree) -> Scan:
        assert stage.joints is not None
        size = stage.program.outputs[0].slot.size
        inward = load_tree(stage.joints.join).starts(self._pieces)
        if stage.joints.share is None:
            return Scan(size, 0, inward, [], None, True)
        chain = self._memory.sent(np.array(stage.joints.given, self._dtype))
        outward = load_tree(stage.joints.share).starts(self._pieces)
        totals = stage.joints.totals
        return Scan(size, len(stage.joints.given), inward, outward, chain, totals)

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill arrays on the host: there, computed, and back."""
        memory, name = self._memory, self._dtype.name
        sent = [memory.sent(np.ascontiguousarray(x)) for x in inputs]
        made = [memory.empty(x.shape, name) for x in outputs]
        rows = [x.shape[1] for x in inputs]
        pointers = [block.view.pointer for block in (*sent, *made)]
        self.starter(len(outputs[0]), rows)(memory.stream, pointers)
        for block, array in zip(made, outputs, strict=True):
            memory.fetch(block, array)

    def launch(self, inputs: Sequence[Rows], outputs: Sequence[Rows], stream: int) -> None:
        """Start filling the outputs; returns before that is done."""
        pointers = [rows.pointer for rows in (*inputs, *outputs)]
        self.starter(outputs[0].states, [rows.row for rows in inputs])(stream, pointers)

    def starter(self, states: int, rows: Sequence[int]) -> Start:
        """Starts everything for so many states, one after another."""
        plan, inputs, number = self._plan(), len(self._sizes), self._number
        sizes = [s.size for s in self._scans] + [s.taken for s in self._scans]
        wanted = {k: self._levels * size * number for k, size in enumerate(sizes)}
        apart = [((part.first, name), part.along[size].size * number)
                 for part in self._parts for name, size in (*self._sizes.items(), (RESULT, "nv"))
                 if size and part.along[size].taken]  # fmt: skip
        ends = np.cumsum([0, *map(_whole, [*wanted.values(), *dict(apart).values()])])
        total = int(ends[-1]) + (FLAGS_BYTES * (self._pieces + 1) if self._told else 0)
        slots = [slot.size * (number if slot.kind == NUMBER else FLAGS_BYTES)
                 for slot in self.signature.outputs]  # fmt: skip

        def start(stream: int, pointers: Sequence[int]) -> None:
            room = self._memory.take(total, stream)
            at = [room + int(end) for end in ends]
            scans = len(self._scans)
            beside = {key: at[2 * scans + k] for k, (key, _) in enumerate(apart)}
            try:
                for state in range(states):
                    own = [p + state * row * number
                           for p, row in zip(pointers[:inputs], rows, strict=True)]  # fmt: skip
                    into = [p + state * size
                            for p, size in zip(pointers[inputs:], slots, strict=True)]  # fmt: skip
                    found = at[scans : 2 * scans]
                    arrays = Arrays(own, into, at[:scans], found, at[-1], beside)
                    for step in plan:
                        step(stream, arrays)
            finally:
                self._memory.give(room, stream)

        return start

    def _plan(self) -> list[Step]:
        """What is started, one after another: ``step(stream, arrays)``."""
        steps = [step for part in self._parts for step in self._brought(part)]
        for k, scan in enumerate(self._scans):
            steps += [self._of_pieces(part, k) for part in self._parts]
            steps += [self._of_tree(scan, k)]
        if len(self._parts[0].kernels) > len(self._scans):
            for part in self._parts:
                steps += [self._of_pieces(part, -1), *self._returned(part)]
        if self._last is not None:
            steps.append(self._of_chain(self._last))
        if self._told is not None:
            told = self._told
            steps.append(lambda stream, x: told(stream, [x.told, x.outputs[1]]))
        return steps

    def _brought(self, part: Part) -> list[Step]:
        """Numbers of the links of some pieces, to rows of their own where that is needed."""

        def step(k: int, name: str, numbers: Numbers, taken: Start) -> Step:
            first, to = numbers.start * self._number, (part.first, name)
            return lambda stream, x: taken(stream, [x.inputs[k] + first, x.rows[to]])

        every = [
            (k, n, part.along[size]) for k, (n, size) in enumerate(self._sizes.items()) if size
        ]
        return [step(k, name, x, x.taken) for k, name, x in every if x.taken]

    def _returned(self, part: Part) -> list[Step]:
        """The result of some pieces, from such rows to its place."""
        numbers = part.along["nv"]
        first, given, rows = numbers.start * self._number, numbers.given, (part.first, RESULT)
        if given is None:
            return []
        return [lambda stream, x: given(stream, [x.rows[rows], x.outputs[0] + first])]

    def _of_pieces(self, part: Part, k: int) -> Step:
        """One stage of some pieces."""
        number, scans = self._number, self._scans
        before = [j for j in range(k % len(part.kernels)) if scans[j].taken]
        along = [
            (j, n, part.along[size]) for j, (n, size) in enumerate(self._sizes.items()) if size
        ]
        beside = [j for j, size in enumerate(self._sizes.values()) if not size]
        rows = [part.length * x.width for *_, x in along]
        rows += [block.view.shape[-1] for block in part.numbers]
        rows += [scans[j].taken for j in before]
        rows += [0] * len(beside)
        start = part.kernels[k].starter(part.pieces, rows)
        numbers = [block.view.pointer for block in part.numbers]
        result = part.along["nv"].start * number
        written = [slot.name for slot in part.kernels[k].signature.outputs]

        def step(stream: int, x: Arrays) -> None:
            own = [x.rows.get((part.first, n), x.inputs[j] + at.start * number)
                   for j, n, at in along]  # fmt: skip
            given = [x.found[j] + part.first * scans[j].taken * number for j in before]
            more = [x.inputs[j] for j in beside]
            if k >= 0:
                into = [x.maps[k] + part.first * scans[k].size * number]
            else:
                places = {RESULT: x.rows.get((part.first, RESULT), x.outputs[0] + result),
                          STATUS: x.told + FLAGS_BYTES * part.first}  # fmt: skip
                into = [places[name] for name in written]
            start(stream, [*own, *numbers, *given, *more, *into])

        return step

    def _of_tree(self, scan: Scan, k: int) -> Step:
        """The tree of one scan."""

        def step(stream: int, x: Arrays) -> None:
            for level in scan.inward:
                level(stream, [x.maps[k]])
            for level in scan.outward:
                assert scan.chain is not None
                level(stream, [x.maps[k], scan.chain.view.pointer, x.found[k]])

        return step

    def _of_chain(self, kernel: DeviceKernel) -> Step:
        """The result, from totals."""
        beside = [j for j, size in enumerate(self._sizes.values()) if not size]
        wanted = [k for k, scan in enumerate(self._scans) if scan.totals]
        rows = [*(self._scans[k].size for k in wanted), *[0] * len(beside)]
        start, own = kernel.starter(1, rows), kernel.signature.outputs[0].size
        behind = (self.signature.outputs[0].size - own) * self._number
        last = (self._levels - 1) * self._number

        def step(stream: int, x: Arrays) -> None:
            totals = [x.maps[k] + last * self._scans[k].size for k in wanted]
            into = [
                x.outputs[0] + behind,
                *([x.told + FLAGS_BYTES * self._pieces] if self._told else []),
            ]
            start(stream, [*totals, *(x.inputs[j] for j in beside), *into])

        return step


def _levels(pieces: int) -> int:
    """Rows of all levels of a tree together."""
    total = pieces
    while pieces > 1:
        pieces = (pieces + 1) // 2
        total += pieces
    return total


def _whole(size: int) -> int:
    return -(-size // BYTES) * BYTES
