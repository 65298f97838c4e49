"""Kernels of algorithms that scan, on a device: the stages of ``scans.py``, a thread per piece.

Pieces are shorter than on a processor, since thousands of them are needed to keep a GPU busy. All
work goes to the caller's stream, and so into a graph where one is captured; the room for maps and
for what pieces are given is taken from the device for the time of the call.
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
from linkwise.trace.program import Program
from linkwise.trace.stages import Stage
from linkwise.trace.tracer import Task

Array = NDArray[Any]
Start = Callable[[int, Sequence[int]], None]
Loader = Callable[[Program], DeviceKernel]
LoadTree = Callable[[Program], DeviceTree]
SHORTEST, LONGEST = 10, 40  # links of a piece
AT_ONCE = {"float64": 32_768, "float32": 50_000}  # pieces that a GPU computes at the same time
BYTES = 256  # what begins at a multiple of so many is read in as few pieces as can be


def piece_length(links: int, dtype: str = "float64") -> int:
    """How many links each piece has, or one more: so few that all pieces are computed at once, but
    not so few that joining them would take longer, nor so many that it would take hardly less.
    """
    return int(min(max(-(-links // AT_ONCE[dtype]), SHORTEST), LONGEST))


class Part(NamedTuple):
    """Pieces of one length: which they are, and where their links' numbers are."""

    first_link: int
    first: int
    pieces: int
    length: int
    kernels: list[DeviceKernel]
    numbers: list[Block]  # of the links, and where wrenches from outside are


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
        self._along = [isinstance(sizes.get(p.name), str) for p in self.signature.inputs]
        length_of = partial(piece_length, dtype=dtype)
        parts = traced(task, tree, length_of, backend.tile(dtype), dtype, on_device=True)
        self._parts = [self._part(own, load) for own in parts]
        stages = parts[-1].stages
        self._last = load(stages[-1].program) if stages[-1].of_chain else None
        self._pieces = sum(part.pieces for part in self._parts)
        self._levels = _levels(self._pieces)
        self._scans = [self._scan(stage, load_tree) for stage in stages if stage.joints]
        self._memory.wait()

    def _part(self, own: Traced, load: Loader) -> Part:
        kernels = [load(program) for program in own.programs]
        sent = [self._memory.sent(x) for x in own.numbers]
        return Part(own.first_link, own.first, own.pieces, own.length, kernels, sent)

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
        taken = [_whole(self._levels * s.size * self._number) for s in self._scans]
        given = [_whole(self._levels * s.taken * self._number) for s in self._scans]
        total = sum(taken) + sum(given)
        plan = self._plan()
        inputs = len(self._along)
        size = self.signature.outputs[0].size

        def start(stream: int, pointers: Sequence[int]) -> None:
            room = self._memory.take(total, stream)
            maps = [room + sum(taken[:k]) for k in range(len(taken))]
            found = [room + sum(taken) + sum(given[:k]) for k in range(len(given))]
            try:
                for state in range(states):
                    own = [p + state * row * self._number
                           for p, row in zip(pointers[:inputs], rows, strict=True)]  # fmt: skip
                    out = pointers[inputs] + state * size * self._number
                    for step in plan:
                        step(stream, own, out, maps, found)
            finally:
                self._memory.give(room, stream)

        return start

    def _plan(self) -> list[Callable[..., None]]:
        """What is started, one after another: ``step(stream, inputs, output, maps, found)``."""
        steps: list[Callable[..., None]] = []
        for k, scan in enumerate(self._scans):
            steps += [self._of_pieces(part, k) for part in self._parts]
            steps += [self._of_tree(scan, k)]
        if len(self._parts[0].kernels) > len(self._scans):
            steps += [self._of_pieces(part, -1) for part in self._parts]
        if self._last is not None:
            steps.append(self._of_chain(self._last))
        return steps

    def _of_pieces(self, part: Part, k: int) -> Callable[..., None]:
        """One stage of some pieces."""
        number, scans = self._number, self._scans
        before = [j for j in range(k % len(part.kernels)) if scans[j].taken]
        rows = [part.length] * sum(self._along)
        rows += [block.view.shape[-1] for block in part.numbers]
        rows += [scans[j].taken for j in before]
        rows += [0] * (len(self._along) - sum(self._along))
        start = part.kernels[k].starter(part.pieces, rows)
        numbers = [block.view.pointer for block in part.numbers]

        def step(
            stream: int, inputs: list[int], output: int, maps: list[int], found: list[int]
        ) -> None:
            along = [x + part.first_link * number
                     for x, own in zip(inputs, self._along, strict=True) if own]  # fmt: skip
            beside = [x for x, own in zip(inputs, self._along, strict=True) if not own]
            given = [found[j] + part.first * scans[j].taken * number for j in before]
            into = output + part.first_link * number
            if k >= 0:
                into = maps[k] + part.first * self._scans[k].size * number
            start(stream, [*along, *numbers, *given, *beside, into])

        return step

    def _of_tree(self, scan: Scan, k: int) -> Callable[..., None]:
        """The tree of one scan."""

        def step(
            stream: int, inputs: list[int], output: int, maps: list[int], found: list[int]
        ) -> None:
            for level in scan.inward:
                level(stream, [maps[k]])
            for level in scan.outward:
                assert scan.chain is not None
                level(stream, [maps[k], scan.chain.view.pointer, found[k]])

        return step

    def _of_chain(self, kernel: DeviceKernel) -> Callable[..., None]:
        """The result, from totals."""
        beside = len(self._along) - sum(self._along)
        wanted = [k for k, scan in enumerate(self._scans) if scan.totals]
        rows = [*(self._scans[k].size for k in wanted), *[0] * beside]
        start, own = kernel.starter(1, rows), kernel.signature.outputs[0].size
        behind = (self.signature.outputs[0].size - own) * self._number

        def step(
            stream: int, inputs: list[int], output: int, maps: list[int], found: list[int]
        ) -> None:
            more = [x for x, own in zip(inputs, self._along, strict=True) if not own]
            last = (self._levels - 1) * self._number
            totals = [maps[k] + last * self._scans[k].size for k in wanted]
            start(stream, [*totals, *more, output + behind])

        return step


def why_not(task: Task, tree: Tree) -> str:
    """A reason where a task cannot scan on a device."""
    if task.status:
        return "status= of a scan is computed on the processor only"
    if not tree.nq == tree.nv == tree.n_links:
        return "a scan on a GPU is for joints of one axis"
    return ""


def _levels(pieces: int) -> int:
    """Rows of all levels of a tree together."""
    total = pieces
    while pieces > 1:
        pieces = (pieces + 1) // 2
        total += pieces
    return total


def _whole(size: int) -> int:
    return -(-size // BYTES) * BYTES
