"""A batch of states that take uneven numbers of steps: a lane that is done takes the next row.

A program of blocks, one loop that each state leaves when it is done, and blocks is three functions:

    start(inputs, room)    the blocks before the loop, of the next rows
    turn(room, live, ...)  steps of the loop, until a live lane is done, or once no row is left,
                           until all are; which lanes still go on
    finish(room, outputs)  the blocks after the loop, of rows that are done

A room has the values that pass from one to the next, number by number, with the lanes of a register
side by side. There are three: of rows that are ready, of those in work, and of those that are done.
Rows move between them one column at a time, so that `start` and `finish` work on full registers
too. Lanes do not see each other, and a row takes the same steps in any lane: its bits do not depend
on which rows are beside it, nor on when it begins.
"""

from __future__ import annotations

from linkwise.backends.llvm.loops import ALIAS, Out, bases, beside, gather_function
from linkwise.backends.llvm.render import Renderer, Stepped
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.expr import Expr
from linkwise.trace.program import Block, Port, Program, Repeat

READY, WORK, DONE = "%ready", "%work", "%done"


def uneven(program: Program) -> bool:
    """Whether the rows of a program are worth refilling: its only loop says so."""
    loops = [region for region in program.regions if not isinstance(region, Block)]
    return len(loops) == 1 and isinstance(loops[0], Repeat) and loops[0].uneven


def render_refill(program: Program, lanes: Lanes, register: Lanes, fused: bool) -> str:
    """IR of the three functions, and of the loop over rows that calls them."""
    parts = _Parts(program, lanes, register, fused)
    functions = parts.start(), parts.turn(), parts.finish()
    return "\n".join((*functions, parts.reduction, _batch(program, lanes, len(parts.kept) + 1)))


class _Parts:
    """The three functions of a program."""

    def __init__(self, program: Program, lanes: Lanes, register: Lanes, fused: bool) -> None:
        self.program, self.lanes = program, lanes
        self._renderer = program, lanes, register, fused
        at = next(k for k, region in enumerate(program.regions) if isinstance(region, Repeat))
        loop = program.regions[at]
        assert isinstance(loop, Repeat)
        self.loop, self.before, self.after = loop, program.regions[:at], program.regions[at + 1 :]
        self.kept = self._crossing()  # what a room has, before the number of steps taken
        self.reduction = ""  # of large angles: one function for all

    def _crossing(self) -> list[Expr]:
        """Values made before the loop, and inputs, that the loop or what follows it uses; then the
        carried ones.
        """
        carried = {carry.value.id for carry in self.loop.carries}
        made: set[int] = set()
        found: dict[int, Expr] = {}
        for block in (self.loop.body, *(r for r in self.after if isinstance(r, Block))):
            made |= {node.id for node in block.nodes}
            found |= {arg.id: arg for node in block.nodes for arg in node.args}
        for node in (self.loop.limit, self.loop.active, *self.program.results):
            found[node.id] = node
        for carry in self.loop.carries:
            found[carry.next.id] = carry.next
        outer = {n.id for r in self.before if isinstance(r, Block) for n in r.nodes}
        kept = [
            node
            for node in found.values()
            if node.op != "const"
            and node.id not in carried
            and (node.op == "input" or node.id in outer or node.id not in made)
        ]
        return [*kept, *(carry.value for carry in self.loop.carries)]

    def _new(self) -> Renderer:
        return Renderer(*self._renderer, whole_tiles=False)

    def _function(self, part: Renderer, head: str, end: str) -> str:
        rooms, reduction = part.large_angles()
        self.reduction = reduction
        body = "\n".join(part.out.text)
        return f"\ndefine internal {head} #0 {{\nentry:\n{rooms}{body}\n  {end}\n}}\n"

    def _load(self, part: Renderer) -> str:
        """Take every value from the room; returns the number of steps taken."""
        align = self.lanes.number.bytes
        for k, node in enumerate(self.kept):
            part.values[node.id] = part.out.load(self.lanes.type, "%room", k, align)
        return part.out.load(self.lanes.type, "%room", len(self.kept), align)

    def _store(self, part: Renderer, first: int, values: list[str]) -> None:
        for k, value in enumerate(values, first):
            part.out.store(self.lanes.type, value, "%room", k, self.lanes.number.bytes)

    def start(self) -> str:
        """The blocks before the loop."""
        part = self._new()
        for region in self.before:
            assert isinstance(region, Block)
            part.block(region.nodes)
        starts = {carry.value.id: carry.start for carry in self.loop.carries}
        values = [part.value(starts.get(node.id, node)) for node in self.kept]
        self._store(part, 0, [*values, part.code.number(0.0)])
        ports = "".join(f"ptr noalias %in{k}, " for k in range(len(self.program.inputs)))
        return self._function(part, f"void @start({ports}ptr noalias %room)", "ret void")

    def turn(self) -> str:
        """Steps of the loop, until no more than ``least`` of the live lanes go on."""
        part, loop = self._new(), self.loop
        taken = self._load(part)
        out, bits = part.out, f"i{self.lanes.width}"
        starts = [part.values[carry.value.id] for carry in loop.carries]
        limit = part.value(loop.limit)

        def body(step: str) -> Stepped:
            end = part.step_of(loop, limit, step)
            mask = out.let(f"bitcast {self.lanes.vector('i1')} {end.more} to {bits}")
            live = out.let(f"and {bits} {mask}, %live")
            going = out.let(f"call {bits} @llvm.ctpop.{bits}({bits} {live})")
            ends[:] = [live, end.step, *end.values]
            return end._replace(more=out.let(f"icmp ugt {bits} {going}, %least"))

        ends: list[str] = []
        part.loop(loop, self.lanes.type, taken, body, starts)
        live, count, *values = ends
        self._store(part, len(self.kept) - len(values), [*values, count])
        head = f"{bits} @turn(ptr noalias %room, {bits} %live, {bits} %least)"
        return self._function(part, head, f"ret {bits} {live}")

    def finish(self) -> str:
        """The blocks after the loop."""
        part = self._new()
        self._load(part)
        for region in self.after:
            assert isinstance(region, Block)
            part.block(region.nodes)
        part.store_rest()
        ports = "".join(f", ptr noalias %out{k}" for k in range(len(self.program.outputs)))
        return self._function(part, f"void @finish(ptr noalias %room{ports})", "ret void")


def _batch(program: Program, lanes: Lanes, values: int) -> str:
    """The loop over rows: lanes that are done hand their row over and take the next one."""
    W, T, bits = lanes.width, lanes.number.llvm, f"i{lanes.width}"
    inputs = program.inputs
    outputs = [
        Out(k, output, lanes, whole_tiles=False)
        for k, output in enumerate(program.outputs, len(inputs))
    ]
    pads = [W * port.size * lanes.number.bytes for port in inputs]
    pads += [W * x.pitch * x.bytes for x in outputs]
    rooms = [(name, W * values * lanes.number.bytes) for name in (READY, WORK, DONE)]
    rooms += [(f"%pad{k}", size) for k, size in enumerate(pads)]
    rooms += [("%row", 8 * W), ("%ended", 8 * W), ("%ahead", 8), ("%at", 8), ("%count", 8)]
    out = Lines()
    for name, size in rooms:
        out.add(f"  {name} = alloca [{max(size, 1)} x i8], align 64")
    out.add(f"  %live = alloca {bits}\n{bases(len(inputs) + len(outputs))}")
    out.add("  %last = sub i64 %end, 1")
    for k in range(len(inputs)):
        out.add(f"  %step{k} = load i64, ptr {out.element('i64', '%steps', 2 * k)}")
        out.add(f"  %inner{k} = load i64, ptr {out.element('i64', '%steps', 2 * k + 1)}")
    for name, value in (("%ahead", "%begin"), ("%at", f"{W}"), ("%count", "0")):
        out.store("i64", value, name, 0)
    out.store(bits, "0", "%live", 0)
    with out.counting(W) as lane:
        out.store("i64", "-1", "%row", lane)
    serve, step, done = map(out.label, ("serve", "step", "done"))
    before = out.current
    out.add(f"  br label %{serve}")
    out.start(serve)
    out.add(f"  %stopped = phi {bits} [ -1, %{before} ], [ %over, %{step} ]")
    with out.counting(W) as lane:
        _serve(out, lane, bits, W, inputs, outputs)
    live = out.load(bits, "%live", 0)
    some = out.let(f"icmp ne {bits} {live}, 0")
    out.add(f"  br i1 {some}, label %{step}, label %{done}")
    out.start(step)
    more = out.let(f"icmp slt i64 {_next_row(out, W)}, %end")
    least = out.let(f"select i1 {more}, {bits} {W - 1}, {bits} 0")
    going = out.let(f"call {bits} @turn(ptr {WORK}, {bits} {live}, {bits} {least})")
    out.add(f"  %over = xor {bits} {live}, {going}")
    out.add(f"  br label %{serve}")
    out.start(done)
    count = out.load("i64", "%count", 0)
    with out.counting(W, count) as column:  # of an incomplete room: its first row again
        _move(out, DONE, "0", DONE, column)
    _hand_over(out, count, outputs)
    body = "\n".join(out.text)
    return f"""
define void @batch(ptr %ports, ptr %steps, i64 %begin, i64 %end) #2 {{
entry:
{body}
  ret void
}}
declare {bits} @llvm.ctpop.{bits}({bits})
{_move_function(T, W, values)}{gather_function(lanes)}{beside(outputs)}{ALIAS}"""


def _serve(
    out: Lines, lane: str, bits: str, W: int, inputs: tuple[Port, ...], outputs: list[Out]
) -> None:
    """A lane that has stopped: its row is done, if it has one, and it takes the next, if there is
    one.
    """
    stop, full, free, new, fetch, taken, idle, go = map(
        out.label, ("stop", "full", "free", "new", "fetch", "taken", "idle", "go")
    )
    narrow = out.let(f"trunc i64 {lane} to {bits}") if bits != "i64" else lane
    bit = out.let(f"shl {bits} 1, {narrow}")
    hit = out.let(f"and {bits} %stopped, {bit}")
    out.add(f"  br i1 {out.let(f'icmp ne {bits} {hit}, 0')}, label %{stop}, label %{go}")

    out.start(stop)
    row = out.load("i64", "%row", lane)
    out.add(f"  br i1 {out.let(f'icmp sge i64 {row}, 0')}, label %{full}, label %{free}")
    out.start(full)
    count = out.load("i64", "%count", 0)
    _move(out, WORK, lane, DONE, count)
    out.store("i64", row, "%ended", count)
    more = out.let(f"add i64 {count}, 1")
    out.store("i64", more, "%count", 0)
    flush = out.label("flush")
    out.add(f"  br i1 {out.let(f'icmp eq i64 {more}, {W}')}, label %{flush}, label %{free}")
    out.start(flush)
    _hand_over(out, f"{W}", outputs)
    out.store("i64", "0", "%count", 0)
    out.add(f"  br label %{free}")

    out.start(free)
    at = out.load("i64", "%at", 0)
    out.add(f"  br i1 {out.let(f'icmp eq i64 {at}, {W}')}, label %{fetch}, label %{new}")
    out.start(fetch)  # the next rows; beyond the last one, that one again
    ahead = out.load("i64", "%ahead", 0)
    for k, port in enumerate(inputs):
        where = f"ptr %base{k}, i64 %step{k}, i64 %inner{k}, ptr %pad{k}, i64 {port.size}"
        out.add(f"  call void @gather({where}, i64 {ahead}, i64 %last)")
    pads = "".join(f"ptr %pad{k}, " for k in range(len(inputs)))
    out.add(f"  call void @start({pads}ptr {READY})")
    out.store("i64", out.let(f"add i64 {ahead}, {W}"), "%ahead", 0)
    out.store("i64", "0", "%at", 0)
    out.add(f"  br label %{new}")

    out.start(new)
    row, at = _next_row(out, W), out.load("i64", "%at", 0)
    _move(out, READY, at, WORK, lane)  # an idle lane computes some row once more
    live = out.load(bits, "%live", 0)
    out.add(f"  br i1 {out.let(f'icmp slt i64 {row}, %end')}, label %{taken}, label %{idle}")
    out.start(taken)
    out.store("i64", row, "%row", lane)
    out.store("i64", out.let(f"add i64 {at}, 1"), "%at", 0)
    out.store(bits, out.let(f"or {bits} {live}, {bit}"), "%live", 0)
    out.add(f"  br label %{go}")
    out.start(idle)
    out.store("i64", "-1", "%row", lane)
    out.store(bits, out.let(f"and {bits} {live}, {out.let(f'xor {bits} {bit}, -1')}"), "%live", 0)
    out.add(f"  br label %{go}")
    out.start(go)


def _next_row(out: Lines, W: int) -> str:
    """The number of the row that the next free lane takes."""
    first = out.let(f"sub i64 {out.load('i64', '%ahead', 0)}, {W}")
    return out.let(f"add i64 {first}, {out.load('i64', '%at', 0)}")


def _hand_over(out: Lines, count: str, outputs: list[Out]) -> None:
    """Finish the rows that are done, and write each to its place."""
    pads = "".join(f", ptr %pad{x.i}" for x in outputs)
    out.add(f"  call void @finish(ptr {DONE}{pads})")
    with out.counting(count) as column:
        row = out.load("i64", "%ended", column)
        for x in outputs:
            source = out.element(x.T, f"%pad{x.i}", column, f"{x.pitch}")
            x.copy(out, "1", row, source)


def _move(out: Lines, source: str, column: str, target: str, into: str) -> None:
    out.add(f"  call void @move(ptr {source}, i64 {column}, ptr {target}, i64 {into})")


def _move_function(T: str, W: int, values: int) -> str:
    """Copy a column of one room into one of another."""
    out = Lines()
    source, target = out.element(T, "%from", "%column"), out.element(T, "%to", "%into")
    with out.counting(W * values, step=W) as k:
        out.store(T, out.load(T, source, k), target, k)
    return out.function("@move(ptr %from, i64 %column, ptr %to, i64 %into) #0")
