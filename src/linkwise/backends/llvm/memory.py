"""Arrays that counted loops read and write by step: inputs, outputs, tables and scratch.

Inputs and outputs are rows in memory, one per state. A table is a constant of the module, the same
for every state. Scratch is on the stack, the states of a tile side by side in each element.
"""

from __future__ import annotations

from linkwise.backends.llvm.rows import pack, unpack
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.expr import At, Write
from linkwise.trace.program import BYTE, Program

MOST_SCRATCH = 256 * 1024  # bytes on the stack of a tile


class Memory:
    """The arrays of one program for one lane layout."""

    def __init__(self, program: Program, lanes: Lanes, out: Lines) -> None:
        self.lanes, self.out = lanes, out
        ports = [(port.name, (f"%in{k}", port.size)) for k, port in enumerate(program.inputs)]
        slots = [(o.name, (f"%out{k}", o.slot.size)) for k, o in enumerate(program.outputs)]
        self._rows = dict((*ports, *slots))  # pointer and length of a row
        self._tables = {a.name: f"@table{k}" for k, a in enumerate(program.arrays) if a.values}
        self._scratch = {a.name: f"%room{k}" for k, a in enumerate(program.arrays) if not a.values}
        self._arrays = {a.name: a for a in program.arrays}
        self._bytes = {o.name for o in program.outputs if o.kind == BYTE}
        self._places: dict[tuple[int, ...], str] = {}  # lists of elements by step

    def rooms(self) -> str:
        """Scratch, at the start of the tile."""
        number, width = self.lanes.number, self.lanes.width
        sizes = {name: self._arrays[name].size * width for name in self._scratch}
        needed = sum(sizes.values()) * number.bytes
        if needed > MOST_SCRATCH:
            raise ValueError(
                f"a program needs {needed} bytes of scratch for {width} states; expected at most "
                f"{MOST_SCRATCH}"
            )
        return "".join(
            f"  {self._scratch[name]} = alloca [{size} x {number.llvm}], align 64\n"
            for name, size in sizes.items()
        )

    def constants(self) -> str:
        """Tables and lists of elements, beside the tile."""
        T = self.lanes.number.llvm
        lines = []
        for name, symbol in self._tables.items():
            values = [f"{T} {self.lanes.number.constant(x)}" for x in self._arrays[name].values]
            lines.append(_constant(symbol, T, values))
        for where, symbol in self._places.items():
            lines.append(_constant(symbol, "i64", [f"i64 {k}" for k in where]))
        return "".join(lines)

    def _index(self, at: At, step: str) -> str:
        """The element that a step touches."""
        if at.where:
            table = self._places.setdefault(at.where, f"@where{len(self._places)}")
            spot = self.out.let(f"getelementptr i64, ptr {table}, i64 {step}")
            base = self.out.let(f"load i64, ptr {spot}")
        else:
            base = self.out.let(f"mul i64 {step}, {at.stride}")
        return self.out.let(f"add i64 {base}, {at.start}")

    def read(self, array: str, at: At, step: str) -> str:
        """One element of every state."""
        scalar, index = self.lanes.number.llvm, self._index(at, step)
        if array in self._scratch:
            return self._load(self._room(array, index))
        if array in self._tables:
            spot = self.out.let(f"getelementptr {scalar}, ptr {self._tables[array]}, i64 {index}")
            one = self.out.let(f"load {scalar}, ptr {spot}")
            return pack(self.out, self.lanes, [one] * self.lanes.width)
        spots = self._spots(array, index, scalar)
        return pack(self.out, self.lanes, [self.out.let(f"load {scalar}, ptr {p}") for p in spots])

    def write(self, write: Write, value: str, step: str) -> None:
        """One element of every state; the step counts the writes."""
        T, index = self.lanes.type, self._index(write.at, step)
        if write.array in self._scratch:
            room = self._room(write.array, index)
            if write.add:
                value = self.out.let(f"fadd {T} {self._load(room)}, {value}")
            self.out.add(f"  store {T} {value}, ptr {room}, align {self.lanes.number.bytes}")
            return
        scalar = "i8" if write.array in self._bytes else self.lanes.number.llvm
        spots = self._spots(write.array, index, scalar)
        for spot, one in zip(spots, unpack(self.out, self.lanes, value), strict=True):
            if scalar == "i8":
                one = self.out.let(f"fptoui {self.lanes.number.llvm} {one} to i8")
            self.out.add(f"  store {scalar} {one}, ptr {spot}")

    def _room(self, array: str, index: str) -> str:
        return self.out.let(
            f"getelementptr {self.lanes.type}, ptr {self._scratch[array]}, i64 {index}"
        )

    def _load(self, room: str) -> str:
        align = self.lanes.number.bytes
        return self.out.let(f"load {self.lanes.type}, ptr {room}, align {align}")

    def _spots(self, array: str, index: str, scalar: str) -> list[str]:
        """Where the element is in the row of each state."""
        base, size = self._rows[array]
        spots = []
        for lane in range(self.lanes.width):
            at = self.out.let(f"add i64 {index}, {lane * size}")
            spots.append(self.out.let(f"getelementptr {scalar}, ptr {base}, i64 {at}"))
        return spots


def _constant(symbol: str, kind: str, values: list[str]) -> str:
    return (
        f"{symbol} = private unnamed_addr constant [{len(values)} x {kind}] [{', '.join(values)}]\n"
    )
