"""The functions of a kernel that others call: one state, and a loop over many.

    one(ports)                       one state; ports are addresses of inputs, then outputs
    batch(ports, steps, begin, end)  rows [begin, end); steps are, for each input, the bytes from
                                     one row to the next and from one number to the next

Outputs are contiguous. A tile is ``width`` states: an input whose rows are contiguous is read where
it is; one with other steps is first gathered into scratch rows, and one whose rows are all the same
(a step of 0) is gathered once. An input of whole tiles is always read where it is. The last
incomplete tile repeats its last state in scratch, so the same tile function computes every state
and nothing is read or written out of bounds.
"""

from __future__ import annotations

from linkwise.backends.llvm.memory import Rooms
from linkwise.backends.llvm.rows import pitch
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.program import BYTE, Port, Signature, Slot


def render_one(signature: Signature, _lanes: Lanes) -> str:
    """IR of the function for one state."""
    count = len(signature.inputs) + len(signature.outputs)
    pointers = ", ".join(f"ptr %base{i}" for i in range(count))
    return f"""
define void @one(ptr %ports) #2 {{
entry:
{bases(count)}
  call void @tile({pointers})
  ret void
}}
"""


def render_batch(signature: Signature, lanes: Lanes) -> str:
    """IR of the loop over tiles."""
    W, b = lanes.width, lanes.number.bytes
    inputs = signature.inputs
    outputs = [Out(k, slot, lanes) for k, slot in enumerate(signature.outputs, len(inputs))]
    k, count = len(inputs), len(inputs) + len(outputs)
    sizes = {f"%pad{i}": W * p.size * b for i, p in enumerate(inputs) if not p.tiled}
    copies = "".join(map(copy_function, sorted({x.T for x in outputs})))
    sizes |= {f"%pad{x.i}": W * x.pitch * (1 if x.T == "i8" else b) for x in outputs}
    rooms = Rooms(sizes, heap=signature.rolled)
    rest = [f"%end{i}" if p.tiled else f"%pad{i}" for i, p in enumerate(inputs)]
    rest += [f"%pad{x.i}" for x in outputs]
    return f"""
define void @batch(ptr %ports, ptr %steps, i64 %begin, i64 %end) #2 {{
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
{"".join(x.copy(f"{W}", "%row") for x in outputs if x.apart)}
  br label %head
tail:
  %left = sub i64 %end, %row
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %pad, label %done
pad:
{"".join(_last(i, port) for i, port in enumerate(inputs))}
  call void @tile({", ".join(f"ptr {x}" for x in rest)})
{"".join(x.copy("%left", "%row") for x in outputs)}
  br label %done
done:
{rooms.end()}  ret void
}}
{gather_function(lanes)}{copies}"""


class Out:
    """Where a tile writes one output: straight to its rows, or to scratch that is copied."""

    def __init__(self, i: int, slot: Slot, lanes: Lanes) -> None:
        self.i, self.size = i, slot.size
        self.T = "i8" if slot.kind == BYTE else lanes.number.llvm
        self.pitch = slot.size if slot.kind == BYTE else pitch(lanes, slot.size)
        self.apart = self.pitch != slot.size

    def place(self) -> str:
        """The address that a whole tile writes to."""
        if self.apart:
            return f"  %p{self.i} = getelementptr {self.T}, ptr %pad{self.i}, i64 0\n"
        return (
            f"  %o{self.i} = mul i64 %row, {self.size}\n"
            f"  %p{self.i} = getelementptr {self.T}, ptr %base{self.i}, i64 %o{self.i}\n"
        )

    def copy(self, rows: str, row: str) -> str:
        """Copy rows from scratch."""
        sizes = f"i64 {self.size}, i64 {self.pitch}"
        where = f"ptr %pad{self.i}, ptr %base{self.i}"
        return f"  call void @copy_{self.T}({where}, {sizes}, i64 {row}, i64 {rows})\n"


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


def copy_function(T: str) -> str:
    """Copy rows of scratch, ``pitch`` apart, to contiguous rows of an output."""
    out = Lines()
    with out.counting("%rows") as k:
        source = out.element(T, "%from", k, "%pitch")
        target = out.element(T, "%to", out.let(f"add i64 %row, {k}"), "%size")
        whole = out.let("and i64 %size, -8")
        with out.counting(whole, step=8) as j:  # eight at once
            some = out.let(f"load <8 x {T}>, ptr {out.element(T, source, j)}, align 1")
            out.add(f"  store <8 x {T}> {some}, ptr {out.element(T, target, j)}, align 1")
        with out.counting("%size", whole) as j:
            out.store(T, out.load(T, source, j), target, j)
    arguments = "ptr %from, ptr %to, i64 %size, i64 %pitch, i64 %row, i64 %rows"
    return out.function(f"@copy_{T}({arguments}) #0")
