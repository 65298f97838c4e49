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
            base = self.out.load("i64", table, step)
        else:
            base = self.out.let(f"mul i64 {step}, {at.stride}")
        return self.out.let(f"add i64 {base}, {at.start}")

    def read(self, array: str, at: At, step: str) -> str:
        """One element of every state."""
        out, number, index = self.out, self.lanes.number, self._index(at, step)
        if array in self._scratch:
            return out.load(self.lanes.type, self._scratch[array], index, number.bytes)
        if array in self._tables:
            one = out.load(number.llvm, self._tables[array], index)
            return pack(out, self.lanes, [one] * self.lanes.width)
        base, places = self._places_of(array, index)
        return pack(out, self.lanes, [out.load(number.llvm, base, place) for place in places])

    def write(self, write: Write, value: str, step: str) -> None:
        """One element of every state; the step counts the writes."""
        out, number, index = self.out, self.lanes.number, self._index(write.at, step)
        if write.array in self._scratch:
            where = (self._scratch[write.array], index, number.bytes)
            if write.add:
                old = out.load(self.lanes.type, *where)
                value = out.let(f"fadd {self.lanes.type} {old}, {value}")
            out.store(self.lanes.type, value, *where)
            return
        base, places = self._places_of(write.array, index)
        for place, one in zip(places, unpack(out, self.lanes, value), strict=True):
            if write.array in self._bytes:
                byte = out.let(f"fptoui {number.llvm} {one} to i8")
                out.store("i8", byte, base, place)
            else:
                out.store(number.llvm, one, base, place)

    def _places_of(self, array: str, index: str) -> tuple[str, list[str]]:
        """The rows of an input or output, and where the element of each state is in them."""
        base, size = self._rows[array]
        rows = range(self.lanes.width)
        return base, [self.out.let(f"add i64 {index}, {row * size}") for row in rows]


def _constant(symbol: str, kind: str, values: list[str]) -> str:
    return (
        f"{symbol} = private unnamed_addr constant [{len(values)} x {kind}] [{', '.join(values)}]\n"
    )
