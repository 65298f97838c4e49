"""Programs: what a backend renders.

A program is a sequence of regions. A `Block` is straight-line code. A `Repeat` is a loop with
carried values that every state leaves when it is done. A `For` runs a given number of steps, which
read and write arrays by the number of the step. A value made in one region may be used in any later
one, so nothing assumes that a program is one block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from linkwise.trace.expr import Expr, Write, reachable


@dataclass(frozen=True)
class Port:
    """A named array of ``size`` numbers per state."""

    name: str
    size: int


NUMBER, BYTE = "number", "byte"  # the kernel's own dtype; a small whole number as uint8


@dataclass(frozen=True)
class Slot:
    """Where an output is written: its name, its shape for one state, and how it is stored."""

    name: str
    shape: tuple[int, ...] = ()
    kind: str = NUMBER

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

    @property
    def slot(self) -> Slot:
        """The output without its values."""
        return Slot(self.name, self.shape, self.kind)


@dataclass(frozen=True)
class Signature:
    """The arrays of a kernel: every input, then every output."""

    inputs: tuple[Port, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True)
class Array:
    """Memory of a program beside its ports, for counted loops."""

    name: str
    size: int
    values: tuple[float, ...] = ()  # of a table of constants; none: scratch, each state its own


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


@dataclass(frozen=True)
class For:
    """Run ``body`` exactly ``count`` times, with carried values; see rolled.py.

    Nodes of op "read" take elements of inputs, tables or scratch by the number of the step; writes
    are done at its end, in order.
    """

    count: int
    carries: tuple[Carry, ...]
    body: Block
    writes: tuple[Write, ...]


Region = Block | Repeat | For


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
        return Signature(self.inputs, tuple(output.slot for output in self.outputs))

    @property
    def results(self) -> tuple[Expr, ...]:
        """The values of all outputs, one after another."""
        return tuple(value for output in self.outputs for value in output.values)

    def nodes(self) -> Iterator[Expr]:
        """Every computed node, in order of execution; those in a loop once."""
        for region in self.regions:
            yield from region.nodes if isinstance(region, Block) else region.body.nodes


@dataclass(frozen=True)
class OperationCount:
    """Exact operations of one evaluation; a fused multiply-add is one of each.

    Signs, and the tests that end a loop, are not counted.
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

    def iterated(self, times: int) -> OperationCount:
        """What is done when a loop runs so many times."""
        if self.iteration is None:
            return self
        again = {f: getattr(self.iteration, f) * (times - 1) for f in _COUNTED}
        return replace(self, **{f: getattr(self, f) + x for f, x in again.items()})

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
        needed += [write.value for write in getattr(region, "writes", ())]
    # a threshold that only the test at a loop's end looks at is part of that test
    counted = {n.id for n in (*bodies, *reachable(needed))}
    total = _count([n for n in program.nodes() if n.id in counted])
    for region in program.regions:
        if isinstance(region, For):  # all its steps, of which one is counted already
            total = replace(total, iteration=_count(region.body.nodes)).iterated(region.count)
    return replace(total, iteration=_count(bodies) if bodies else None)


def _count(nodes: Iterable[Expr]) -> OperationCount:
    ops: dict[str, int] = {}
    angles = set()
    for node in nodes:
        ops[node.op] = ops.get(node.op, 0) + 1
        if node.op in ("sin", "cos"):
            angles.add(node.args[0].id)
    fused = _sum(ops, "fma", "fms", "fnma")
    return OperationCount(
        multiplications=_sum(ops, "mul") + fused,
        additions=_sum(ops, "add", "sub") + fused,
        divisions=_sum(ops, "div"),
        sincos=len(angles),
        fused=fused,
        square_roots=_sum(ops, "sqrt"),
        arctangents=_sum(ops, "atan2"),
    )


def _sum(counts: Mapping[str, int], *names: str) -> int:
    return sum(counts.get(name, 0) for name in names)
