"""The functions of a kernel that others call: one state, and a loop over many.

    one(ports)                       one state; ports are addresses of inputs, then outputs
    batch(ports, steps, begin, end)  rows [begin, end); steps are, for each input, the bytes from
                                     one row to the next and from one number to the next
    stream(ports, steps, begin, end) the same; long rows are written past the caches (copies.py)

Outputs are contiguous. A tile is ``width`` states: an input whose rows are contiguous is read where
it is; one with other steps is first gathered into scratch rows, and one whose rows are all the same
(a step of 0) is gathered once. An input of whole tiles is always read where it is. The last
incomplete tile repeats its last state in scratch, so the same tile function computes every state
and nothing is read or written out of bounds.
"""

from __future__ import annotations

from copy import copy

from linkwise.backends.llvm.columns import Columns, by_columns
from linkwise.backends.llvm.copies import LONG, copy_function, holes, table
from linkwise.backends.llvm.memory import Rooms, takes_heap
from linkwise.backends.llvm.rows import FLAG, pitch
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.program import FLAGS, FLAGS_BYTES, Output, Port, Program

ALIAS = "@stream = alias void (ptr, ptr, i64, i64), ptr @batch\n"


def render_one(program: Program, _lanes: Lanes) -> str:
    """IR of the function for one state."""
    count = len(program.inputs) + len(program.outputs)
    pointers = ", ".join(f"ptr %base{i}" for i in range(count))
    return f"""
define void @one(ptr %ports) #2 {{
entry:
{bases(count)}
  call void @tile({pointers})
  ret void
}}
"""


def render_batch(program: Program, lanes: Lanes) -> str:
    """IR of the loops over tiles."""
    first = len(program.inputs)
    outputs = [Out(k, output, lanes) for k, output in enumerate(program.outputs, first)]
    code = [beside(outputs), gather_function(lanes), _loop("batch", program, lanes, outputs)]
    if program.signature.rolled or not any(x.long for x in outputs):
        return "\n".join((*code, ALIAS))
    streamed = [x.streamed() for x in outputs]
    return "\n".join((*code, _loop("stream", program, lanes, streamed), stream_function(lanes)))


def beside(outputs: list[Out]) -> str:
    """Functions that copy outputs, and the tables of their holes."""
    kinds = sorted({(x.T, x.bytes) for x in outputs})
    tables = "".join(table(f"holes{x.i}", x.holes) for x in outputs)
    rows = "".join(x.columns.functions(stream=x.long) for x in outputs if x.columns)
    return "".join(copy_function(*kind, False) for kind in kinds) + tables + rows


def stream_function(lanes: Lanes) -> str:
    """The function that copies past the caches."""
    return copy_function(lanes.number.llvm, lanes.number.bytes, True) + "!2 = !{i32 1}\n"


def _loop(name: str, program: Program, lanes: Lanes, outputs: list[Out]) -> str:
    """A loop over tiles."""
    W, b = lanes.width, lanes.number.bytes
    inputs = program.inputs
    k, count = len(inputs), len(inputs) + len(outputs)
    sizes = {f"%pad{i}": W * p.size * b for i, p in enumerate(inputs) if not p.tiled}
    for x in outputs:
        sizes |= x.rooms(W)
    rooms = Rooms(sizes, heap=takes_heap(program.signature, lanes))
    rest = [f"%end{i}" if p.tiled else f"%pad{i}" for i, p in enumerate(inputs)]
    rest += [f"%end{x.i}" if x.tiled else f"%pad{x.i}" for x in outputs]
    return f"""
define void @{name}(ptr %ports, ptr %steps, i64 %begin, i64 %end) #2 {{
entry:
{rooms.begin()}
{bases(count)}
  %last = sub i64 %end, 1
{"".join(_prepare(i, port, b) for i, port in enumerate(inputs))}
  br label %head
head:
  %row = phi i64 [ %begin, %prepared{k} ], [ %next, %body{k} ]
  %next = add i64 %row, {W}
  %whole = icmp sle i64 %next, %end
  br i1 %whole, label %body0, label %tail
{"".join(_read(i, port) for i, port in enumerate(inputs))}
body{k}:
{"".join(x.place() for x in outputs)}
  call void @tile({", ".join(f"ptr %p{i}" for i in range(count))})
{_copied([x for x in outputs if x.apart], f"{W}", "%w")}
  br label %head
tail:
  %left = sub i64 %end, %row
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %pad, label %done
pad:
{"".join(_last(i, port) for i, port in enumerate(inputs))}
{"".join(x.place("end") for x in outputs if x.tiled)}
  call void @tile({", ".join(f"ptr {x}" for x in rest)})
{_copied([x for x in outputs if not x.tiled], "%left", "%l")}
  br label %done
done:
{"  fence seq_cst" if name == "stream" else ""}
{rooms.end()}  ret void
}}
"""


class Out:
    """Where a tile writes one output: straight to its rows, or to scratch that is copied."""

    def __init__(self, i: int, output: Output, lanes: Lanes, *, whole_tiles: bool = True) -> None:
        slot, flags = output.slot, output.kind == FLAGS
        self.i, self.size = i, slot.size
        self.T, self.bytes = (
            (FLAG, FLAGS_BYTES) if flags else (lanes.number.llvm, lanes.number.bytes)
        )
        columns = whole_tiles and by_columns(output, lanes)
        self.columns = Columns(i, output, lanes) if columns else None
        self.tiled = output.tiled
        plain = flags or self.tiled or self.columns is not None
        self.pitch = slot.size if plain else pitch(lanes, slot.size)
        self.holes = () if plain else holes(output.values, lanes)
        self.apart = self.pitch != slot.size or bool(self.holes) or self.columns is not None
        self.long = not (flags or self.tiled) and slot.size * self.bytes >= LONG
        self._copy = "copy"

    def rooms(self, width: int) -> dict[str, int]:
        """Scratch of a tile: for rows, or for columns and rows made of them."""
        rows = width * self.pitch * self.bytes
        if self.tiled:
            return {}
        if self.columns is None:
            return {f"%pad{self.i}": rows}
        return {f"%pad{self.i}": self.columns.bytes, f"%rows{self.i}": rows}

    def streamed(self) -> Out:
        """The same, past the caches where rows are long."""
        made = copy(self)
        made.apart = self.apart or self.long
        made._copy = "stream" if self.long else "copy"
        return made

    def place(self, name: str = "p") -> str:
        """The address that a whole tile writes to."""
        if self.apart:
            return f"  %{name}{self.i} = getelementptr {self.T}, ptr %pad{self.i}, i64 0\n"
        return (
            f"  %{name}o{self.i} = mul i64 %row, {self.size}\n"
            f"  %{name}{self.i} = getelementptr {self.T}, ptr %base{self.i}, i64 %{name}o{self.i}\n"
        )

    def copy(self, out: Lines, rows: str, row: str, source: str = "") -> None:
        """Copy rows from scratch; as one long row where they lie there as in the output."""
        to = out.element(self.T, f"%base{self.i}", row, str(self.size))
        if self.columns is not None:
            self.columns.put_together(out, rows, to, stream=self._copy == "stream")
            return
        size, gaps = str(self.size), f"ptr @holes{self.i}, i64 {len(self.holes)}"
        if not self.holes:
            gaps = "ptr null, i64 0"
            if self.pitch == self.size:
                size, rows = out.let(f"mul i64 {size}, {rows}"), "1"
        where = f"ptr {source or f'%pad{self.i}'}, ptr {to}"
        sizes = f"i64 {size}, i64 {self.pitch}, i64 {rows}"
        out.add(f"  call void @{self._copy}_{self.T}({where}, {sizes}, {gaps})")


def _copied(outputs: list[Out], rows: str, stem: str) -> str:
    """Outputs of a tile, from scratch to their rows."""
    out = Lines(stem)
    for x in outputs:
        x.copy(out, rows, "%row")
    return "\n".join(out.text)


def bases(count: int) -> str:
    """Addresses of the arrays of a kernel."""
    return "\n".join(
        f"  %at{i} = getelementptr ptr, ptr %ports, i64 {i}\n  %base{i} = load ptr, ptr %at{i}"
        for i in range(count)
    )


def _prepare(i: int, port: Port, number_bytes: int) -> str:
    """How an input lies in memory; one row for all states is gathered now."""
    label = "" if i else "  br label %prepared0\nprepared0:\n"
    return f"""{label}  %sp{i} = getelementptr i64, ptr %steps, i64 {2 * i}
  %step{i} = load i64, ptr %sp{i}
  %ip{i} = getelementptr i64, ptr %steps, i64 {2 * i + 1}
  %inner{i} = load i64, ptr %ip{i}
  %whole_rows{i} = icmp eq i64 %step{i}, {port.size * number_bytes}
  %close{i} = icmp eq i64 %inner{i}, {number_bytes}
  %direct{i} = {"or i1 true, true" if port.tiled else f"and i1 %whole_rows{i}, %close{i}"}
  %still{i} = {"or i1 false, false" if port.tiled else f"icmp eq i64 %step{i}, 0"}
  %ready{i} = or i1 %direct{i}, %still{i}
  br i1 %still{i}, label %same{i}, label %prepared{i + 1}
same{i}:
{_gather(i, port, "0")}  br label %prepared{i + 1}
prepared{i + 1}:
"""


def _read(i: int, port: Port) -> str:
    """The address of an input's tile, gathered where its rows are not contiguous."""
    return f"""body{i}:
  br i1 %ready{i}, label %there{i}, label %fetch{i}
fetch{i}:
{_gather(i, port, "%row")}  br label %there{i}
there{i}:
  %o{i} = mul i64 %row, %step{i}
  %d{i} = getelementptr i8, ptr %base{i}, i64 %o{i}
  %p{i} = select i1 %direct{i}, ptr %d{i}, ptr {f"%d{i}" if port.tiled else f"%pad{i}"}
  br label %body{i + 1}
"""


def _last(i: int, port: Port) -> str:
    """The last tile of an input, which may be incomplete; one of whole tiles never is."""
    if not port.tiled:
        return _gather(i, port, "%row")
    return (
        f"  %endo{i} = mul i64 %row, %step{i}\n"
        f"  %end{i} = getelementptr i8, ptr %base{i}, i64 %endo{i}\n"
    )


def _gather(i: int, port: Port, row: str) -> str:
    if port.tiled:
        return ""
    arguments = f"ptr %base{i}, i64 %step{i}, i64 %inner{i}, ptr %pad{i}, i64 {port.size}"
    return f"  call void @gather({arguments}, i64 {row}, i64 %last)\n"


def gather_function(lanes: Lanes) -> str:
    """Copy the rows of a tile, the last row again where there are no more."""
    T, out = lanes.number.llvm, Lines()
    with out.counting(lanes.width) as k:
        ahead = out.let(f"add i64 %row, {k}")
        row = out.let(f"call i64 @llvm.smin.i64(i64 {ahead}, i64 %last)")
        source = out.element("i8", "%from", row, "%step")
        target = out.element(T, "%to", k, "%size")
        with out.counting("%size") as j:
            number = out.let(f"load {T}, ptr {out.element('i8', source, j, '%inner')}")
            out.store(T, number, target, j)
    arguments = "ptr %from, i64 %step, i64 %inner, ptr %to, i64 %size, i64 %row, i64 %last"
    return out.function(f"@gather({arguments}) #0")
