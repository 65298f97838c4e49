"""Arrays that counted loops read and write by step: inputs, outputs, tables and scratch.

Inputs and outputs are rows in memory, one per state. A table is the same for every state, and no
part of the code: its address is put into ``@tables`` when the kernel is loaded. Scratch has the
states of a tile side by side in each element. It is on the stack, or where it is large, from
``malloc``, whose address is put into ``@tables`` too, with that of a number of this process that
counts how often there was none left.

A thread may have a stack of 256 KiB, and the registers that a large program spills take their part
of it, so a kernel puts at most two blocks of `MOST_STACK` bytes there: scratch of a tile, and rows.
"""

from __future__ import annotations

from linkwise.backends.llvm.rows import FLAG, pack, pitch, transpose, unpack
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.expr import At, Whole, Write
from linkwise.trace.program import FLAGS, FLAGS_BYTES, Program, Signature

MOST_STACK = 1 << 15  # bytes on the stack, of scratch as of rows
MALLOC, FREE, SHORT = 0, 1, 2  # where their addresses are in @tables; tables come after
FIRST_TABLE = 3
AHEAD = 8  # steps ahead of a loop at which the numbers of a tile are prefetched


class Memory:
    """The arrays of one program for one lane layout."""

    def __init__(self, program: Program, lanes: Lanes, out: Lines) -> None:
        self.lanes, self.out = lanes, out
        ports = [(port.name, (f"%in{k}", port.size)) for k, port in enumerate(program.inputs)]
        slots = [
            (o.name, (f"%out{k}", o.slot.size if o.kind == FLAGS else pitch(lanes, o.slot.size)))
            for k, o in enumerate(program.outputs)
        ]
        self._rows = dict((*ports, *slots))  # pointer and length of a row
        self._tiled = {port.name for port in program.inputs if port.tiled}
        self._tiled |= {output.name for output in program.outputs if output.tiled}
        tables = enumerate(program.tables)
        self._tables = {a.name: f"%table{k}" for k, a in tables}
        scratch = [a for a in program.arrays if a.values is None]
        self._scratch = {a.name: f"%room{k}" for k, a in enumerate(scratch)}
        width, number = lanes.width, lanes.number
        sizes = [(self._scratch[a.name], a.size * width * number.bytes) for a in scratch]
        self.rooms = Rooms(dict(sizes))
        self._flags = {o.name for o in program.outputs if o.kind == FLAGS}

    def begin(self) -> str:
        """Addresses of tables and scratch, at the start of the tile."""
        addresses = [_address(t, FIRST_TABLE + k) for k, t in enumerate(self._tables.values())]
        return "".join(addresses) + self.rooms.begin()

    def whole(self, x: Whole) -> str:
        """A number that may be given with the tables."""
        return self.out.load("i64", self._tables[x], 0) if isinstance(x, str) else str(x)

    def which(self, at: At, step: str) -> str:
        """The case that a step is."""
        return self._index(at, step)

    def _index(self, at: At, step: str) -> str:
        """The element that a step touches: its item, or the item's place, times the stride."""
        out, (first, by) = self.out, at.order
        item = step if by == 1 else out.let(f"mul i64 {step}, {by}")
        if isinstance(first, str):
            item, first = out.let(f"add i64 {item}, {self.whole(first)}"), 0
        if at.places:
            item = out.let(f"add i64 {item}, {first}") if first else item
            place = out.load("i64", self._tables[at.places], item)
            return self._linear(place, at.stride, at.start)
        return self._linear(item, at.stride, at.start + at.stride * first)

    def _linear(self, x: str, stride: int, start: int) -> str:
        """``start + stride x``."""
        scaled = x if stride == 1 else self.out.let(f"mul i64 {x}, {stride}")
        return self.out.let(f"add i64 {scaled}, {start}") if start else scaled

    def read(self, array: str, at: At, step: str) -> str:
        """One element of every state."""
        out, number, index = self.out, self.lanes.number, self._index(at, step)
        if array in self._scratch:
            return out.load(self.lanes.type, self._scratch[array], index, number.bytes)
        if array in self._tables:
            one = out.load(number.llvm, self._tables[array], index)
            return pack(out, self.lanes, [one] * self.lanes.width)
        if array in self._tiled:
            tile, soon = self._rows[array][0], AHEAD * at.order[1] * at.stride
            if soon and not at.places:
                out.prefetch(self.lanes.type, tile, out.let(f"add i64 {index}, {soon}"))
            return out.load(self.lanes.type, tile, index, number.bytes)
        base, places = self._places_of(array, index)
        return pack(out, self.lanes, [out.load(number.llvm, base, place) for place in places])

    def write(self, writes: list[tuple[Write, str]], step: str) -> None:
        """Elements of every state, in order; the step counts the writes."""
        rest = list(writes)
        while rest:
            together = rest[: self.lanes.width]
            if self._side_by_side([write for write, _ in together]):
                self._write_rows(together, step)
                rest = rest[self.lanes.width :]
            else:
                self._write(*rest.pop(0), step)

    def _side_by_side(self, writes: list[Write]) -> bool:
        """Whether elements fill a register's worth of one output, one after another."""
        (array, at, _, _, _), width = writes[0], self.lanes.width
        if len(writes) < width or width == 1:
            return False
        if array in self._scratch or array in self._flags or array in self._tiled:
            return False
        next_to = [at._replace(start=at.start + k) for k in range(width)]
        return [(w.array, w.at) for w in writes] == [(array, x) for x in next_to]

    def _write_rows(self, writes: list[tuple[Write, str]], step: str) -> None:
        """A register's worth of neighbours, row by row."""
        first, out = writes[0][0], self.out
        base, places = self._places_of(first.array, self._index(first.at, step))
        rows = transpose(out, self.lanes, [value for _, value in writes])
        for place, row in zip(places, rows, strict=True):
            at = out.element(self.lanes.number.llvm, base, place)
            out.add(f"  store {self.lanes.type} {row}, ptr {at}, align {self.lanes.number.bytes}")

    def _write(self, write: Write, value: str, step: str) -> None:
        """One element of every state."""
        out, number, index = self.out, self.lanes.number, self._index(write.at, step)
        if write.array in self._scratch:
            where = (self._scratch[write.array], index, number.bytes)
            if write.add:
                old = out.load(self.lanes.type, *where)
                value = out.let(f"fadd {self.lanes.type} {old}, {value}")
            out.store(self.lanes.type, value, *where)
            return
        if write.array in self._tiled:
            out.store(self.lanes.type, value, self._rows[write.array][0], index, number.bytes)
            return
        base, places = self._places_of(write.array, index)
        for place, one in zip(places, unpack(out, self.lanes, value), strict=True):
            if write.array in self._flags:
                flags = out.let(f"fptoui {number.llvm} {one} to {FLAG}")
                out.store(FLAG, flags, base, place, FLAGS_BYTES)
            else:
                out.store(number.llvm, one, base, place)

    def _places_of(self, array: str, index: str) -> tuple[str, list[str]]:
        """The rows of an input or output, and where the element of each state is in them."""
        base, size = self._rows[array]
        rows = range(self.lanes.width)
        return base, [self.out.let(f"add i64 {index}, {row * size}") for row in rows]


def takes_heap(signature: Signature, lanes: Lanes) -> bool:
    """Whether the code of a kernel may take memory that is not on the stack: scratch of loops, or
    rows of a tile, those of results twice (`columns.py`).
    """
    if signature.rolled or lanes.width == 1:
        return signature.rolled
    inputs = sum(port.size for port in signature.inputs)
    numbers = inputs + 2 * sum(slot.size for slot in signature.outputs)
    return numbers * lanes.width * lanes.number.bytes > MOST_STACK


def given_when_loaded(program: Program) -> str:
    """The array of addresses that a kernel is given when it is loaded."""
    return f"@tables = global [{FIRST_TABLE + len(program.tables)} x ptr] zeroinitializer\n"


class Rooms:
    """Memory that a function uses while it runs, by name and bytes."""

    def __init__(self, sizes: dict[str, int], *, heap: bool = True) -> None:
        self._sizes = {name: -(-size // 64) * 64 for name, size in sizes.items()}
        self._total = sum(self._sizes.values())
        self.on_heap = heap and self._total > MOST_STACK

    def begin(self) -> str:
        """Take it; a function that gets none returns at once."""
        if not self.on_heap:
            return "".join(
                f"  {name} = alloca [{size} x i8], align 64\n" for name, size in self._sizes.items()
            )
        lines = [
            _address("%malloc", MALLOC),
            _address("%free", FREE),
            f"  %heap = call ptr %malloc(i64 {self._total + 64})\n",
            "  %none = icmp eq ptr %heap, null\n",
            "  br i1 %none, label %nothing, label %roomy\n",
            "nothing:\n",
            _address("%short", SHORT),
            "  %before = atomicrmw add ptr %short, i64 1 monotonic\n  ret void\nroomy:\n",
            "  %unaligned = ptrtoint ptr %heap to i64\n",
            "  %above = add i64 %unaligned, 63\n",
            "  %aligned = and i64 %above, -64\n",
            "  %rooms = inttoptr i64 %aligned to ptr\n",
        ]
        start = 0
        for name, size in self._sizes.items():
            lines.append(f"  {name} = getelementptr i8, ptr %rooms, i64 {start}\n")
            start += size
        return "".join(lines)

    @property
    def block(self) -> str:
        """The label of the block that `begin` ends in."""
        return "roomy" if self.on_heap else "entry"

    def end(self) -> str:
        """Give it back."""
        return "  call void %free(ptr %heap)\n" if self.on_heap else ""


def _address(name: str, k: int) -> str:
    at = f"getelementptr (ptr, ptr @tables, i64 {k})"
    return f"  {name} = load ptr, ptr {at}\n"
