"""Programs: what a backend renders.

A program is a sequence of regions. A `Block` is straight-line code. A `Repeat` is a loop with
carried values that every state leaves when it is done. A `For` runs a given number of steps, which
read and write arrays by the number of the step. A value made in one region may be used in any later
one, so nothing assumes that a program is one block.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from linkwise.trace.expr import At, Expr, Whole, Write, reachable, whole

# kinds of inputs
NUMBERS, CONFIGURATION, VELOCITY = "numbers", "configuration", "velocity"
ACCELERATION, TORQUE, WRENCH = "acceleration", "torque", "wrench"
POSE, TWIST, PARAMETER = "pose", "twist", "parameter"


@dataclass(frozen=True)
class Port:
    """A named array of ``size`` numbers per state.

    ``tiled``: states that a kernel computes side by side also lie side by side, number by number.
    ``close``: states are pieces of a chain, and these are so many numbers of each of their links: a
    state's follow those of the state before, perhaps fewer than ``size``.
    ``kind``: what the numbers are; a configuration has quaternions, which the status looks at and
    derivatives move by joint velocities.
    """

    name: str
    size: int
    tiled: bool = False
    close: int = 0
    kind: str = NUMBERS

    @property
    def configuration(self) -> bool:
        """Whether it is a configuration of the robot."""
        return self.kind == CONFIGURATION


NUMBER, FLAGS = "number", "flags"  # numbers of the kernel's dtype; status flags
FLAGS_DTYPE, FLAGS_BYTES, FLAGS_C = "uint16", 2, "unsigned short"  # how flags are stored


@dataclass(frozen=True)
class Slot:
    """Where an output is written: its name, its shape for one state, and how it is stored.

    ``tiled``: as inputs may be (`Port`).
    """

    name: str
    shape: tuple[int, ...] = ()
    kind: str = NUMBER
    tiled: bool = False

    @property
    def size(self) -> int:
        """Elements of one state."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Output:
    """Values that a program writes into an array of their own, in row-major order.

    An output without values is written by counted loops.
    """

    name: str
    shape: tuple[int, ...]
    values: tuple[Expr, ...]
    kind: str = NUMBER
    tiled: bool = False

    @property
    def slot(self) -> Slot:
        """The output without its values."""
        return Slot(self.name, self.shape, self.kind, self.tiled)


@dataclass(frozen=True)
class Array:
    """Memory of a program beside its ports, for counted loops.

    A table has values, numbers or whole numbers (a list of places), the same for every state. It is
    no part of the code: a kernel is given it when it is loaded. Scratch has none, and each state
    has its own.
    """

    name: str
    size: int
    values: NDArray[Any] | None = field(default=None, compare=False)

    @property
    def lists_places(self) -> bool:
        """Whether the values are whole numbers, for `At`."""
        return self.values is not None and self.values.dtype.kind == "i"


@dataclass(frozen=True)
class Signature:
    """The arrays of a kernel: every input, then every output; and the tables it reads."""

    inputs: tuple[Port, ...]
    outputs: tuple[Slot, ...]
    tables: tuple[Array, ...] = ()
    rolled: bool = False  # whether there are counted loops, with scratch or tables
    scratch: int = 0  # numbers of a state that they keep beside


@dataclass(frozen=True)
class Block:
    """Straight-line nodes, each after its arguments."""

    nodes: tuple[Expr, ...]


@dataclass(frozen=True)
class Carry:
    """A value carried around a loop: inside and after it, ``value`` is its current state."""

    value: Expr  # a node of op "carry"
    start: Expr
    next: Expr


@dataclass(frozen=True)
class Repeat:
    """Run ``body`` at most ``limit`` times while ``active > 0``, each state for itself.

    ``active`` is computed in the body from the carried values, ``limit`` before the loop. A state
    that has stopped keeps what it has, whatever its neighbours still do.
    """

    limit: Expr
    carries: tuple[Carry, ...]
    body: Block
    active: Expr
    # whether states leave it after very different numbers of steps, so that where several are
    # computed side by side, the next one should take the place of one that is done
    uneven: bool = False


@dataclass(frozen=True)
class Case:
    """One way a step of a counted loop can go: its nodes, what it carries on, what it writes."""

    body: Block
    nexts: tuple[Expr, ...]  # one per carried value
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class For:
    """Take exactly ``count`` steps, with carried values; see rolled.py. The count may be given with
    the tables, so that loops of any length have the same code.

    With a ``limit``, a whole number from 1 on that all states have in common, take no more than
    that. Nodes of op "read" take elements of inputs, tables or scratch by the number of the step;
    writes are done at its end, in order. Which case a step is, a list of places says.
    """

    count: Whole
    carries: tuple[Carry, ...]  # their ``next`` is that of the first case
    cases: tuple[Case, ...]
    which: At | None = None  # needed by several cases
    limit: Expr | None = None

    @property
    def writes(self) -> tuple[Write, ...]:
        """What any of the cases writes."""
        return tuple(write for case in self.cases for write in case.writes)


Region = Block | Repeat | For


def blocks(region: Region) -> tuple[Block, ...]:
    """The straight-line parts of a region."""
    if isinstance(region, For):
        return tuple(case.body for case in region.cases)
    return (region,) if isinstance(region, Block) else (region.body,)


@dataclass(frozen=True)
class Program:
    """Inputs, regions in order, and outputs."""

    name: str
    inputs: tuple[Port, ...]
    regions: tuple[Region, ...]
    outputs: tuple[Output, ...]
    pivots: tuple[Expr, ...] = ()  # positive in a state that has an answer; see guard.py
    arrays: tuple[Array, ...] = ()  # tables and scratch of counted loops

    @property
    def signature(self) -> Signature:
        """The arrays that a kernel of this program reads and writes."""
        slots = tuple(output.slot for output in self.outputs)
        scratch = sum(array.size for array in self.arrays if array.values is None)
        return Signature(self.inputs, slots, self.tables, bool(self.arrays), scratch)

    @property
    def tables(self) -> tuple[Array, ...]:
        """Constants beside the code."""
        return tuple(array for array in self.arrays if array.values is not None)

    @property
    def lists(self) -> dict[str, NDArray[Any]]:
        """The lists of places by name."""
        return {a.name: a.values for a in self.tables if a.lists_places and a.values is not None}

    @property
    def results(self) -> tuple[Expr, ...]:
        """The values of all outputs, one after another."""
        return tuple(value for output in self.outputs for value in output.values)

    def nodes(self) -> Iterator[Expr]:
        """Every computed node, in order of execution; those in a loop once."""
        for region in self.regions:
            for block in blocks(region):
                yield from block.nodes


@dataclass(frozen=True)
class OperationCount:
    """Exact operations of one evaluation; a fused multiply-add is one of each.

    Signs, and the tests that end a loop, are not counted.

    >>> import linkwise as lw
    >>> count = lw.load("puma560").operation_count("mass_matrix")
    >>> count.multiplications, count.additions, count.total
    (85, 74, 159)
    """

    multiplications: int
    additions: int
    divisions: int
    sincos: int
    fused: int  # how many of the pairs above run as one instruction
    square_roots: int = 0
    arctangents: int = 0
    iteration: OperationCount | None = None  # what a loop repeats; counted above once

    @property
    def total(self) -> int:
        """Multiplications, additions, divisions and square roots."""
        return self.multiplications + self.additions + self.divisions + self.square_roots

    def repeated(self, times: int) -> OperationCount:
        """What is done when all of it is done so many times."""
        return self._plus(self, times - 1)

    def iterated(self, times: int) -> OperationCount:
        """What is done when a loop runs so many times."""
        return self if self.iteration is None else self._plus(self.iteration, times - 1)

    def __add__(self, o: OperationCount) -> OperationCount:
        return self._plus(o, 1)

    def __sub__(self, o: OperationCount) -> OperationCount:
        return self._plus(o, -1)

    def _plus(self, o: OperationCount, times: int) -> OperationCount:
        return replace(self, **{f: getattr(self, f) + getattr(o, f) * times for f in _COUNTED})

    def __str__(self) -> str:
        """Write the counts as a sentence."""
        text = (
            f"{self.multiplications} multiplications, {self.additions} additions, "
            f"{self.divisions} divisions, {self.square_roots} square roots, "
            f"{self.sincos} sincos ({self.fused} fused pairs)"
        )
        text += f", {self.arctangents} arctangents" if self.arctangents else ""
        return text if self.iteration is None else f"{text}; in each iteration: {self.iteration}"


_COUNTED = (
    "multiplications", "additions", "divisions", "sincos", "fused", "square_roots", "arctangents",
)  # fmt: skip


def count_operations(program: Program) -> OperationCount:
    """Count what the program does per state; a loop's body is counted once, and apart."""
    loops = [region for region in program.regions if isinstance(region, Repeat)]
    bodies = [node for loop in loops for node in loop.body.nodes]
    needed = [*program.results, *program.pivots]
    for region in program.regions:
        needed += [c for x in getattr(region, "carries", ()) for c in (x.start, x.next)]
        for case in region.cases if isinstance(region, For) else ():
            needed += [*case.nexts, *(write.value for write in case.writes)]
    # a threshold that only the test at a loop's end looks at is part of that test
    counted = {n.id for n in (*bodies, *reachable(needed))}
    straight = [r for r in program.regions if not isinstance(r, For)]
    total = _count([n for r in straight for b in blocks(r) for n in b.nodes if n.id in counted])
    for region in program.regions:
        for times, case in _taken(program, region) if isinstance(region, For) else ():
            once = replace(total, iteration=_count(case.body.nodes))
            total = once.iterated(times + 1)
    return replace(total, iteration=_count(bodies) if bodies else None)


def _taken(program: Program, loop: For) -> Iterator[tuple[int, Case]]:
    """How often each case of a loop is taken."""
    if loop.which is None:
        yield whole(loop.count, program.lists), loop.cases[0]
        return
    lists = program.lists
    steps = range(whole(loop.count, lists))
    taken = Counter(loop.which.element(k, lists) for k in steps)
    yield from ((taken[k], case) for k, case in enumerate(loop.cases))


def _count(nodes: Sequence[Expr]) -> OperationCount:
    ops = Counter(node.op for node in nodes)
    fused = ops["fma"] + ops["fms"] + ops["fnma"]
    return OperationCount(
        multiplications=ops["mul"] + fused,
        additions=ops["add"] + ops["sub"] + fused,
        divisions=ops["div"],
        sincos=len({node.args[0].id for node in nodes if node.op in ("sin", "cos")}),
        fused=fused,
        square_roots=ops["sqrt"],
        arctangents=ops["atan2"],
    )
