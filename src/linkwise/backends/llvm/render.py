"""Program -> LLVM IR of one tile: ``width`` states side by side, rows contiguous in memory.

The tile function reads and writes exactly ``width`` rows. `loops.py` calls it: for one state, or in
a loop over a batch, the last incomplete tile included.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from linkwise.backends import elementary
from linkwise.backends.llvm.columns import Columns, Repeated, by_columns
from linkwise.backends.llvm.copies import edge, holes
from linkwise.backends.llvm.memory import Memory
from linkwise.backends.llvm.rows import (
    load_column,
    pack,
    pitch,
    store_columns,
    store_flags,
    unpack,
)
from linkwise.backends.llvm.sincos import cold_reduction, emit_sincos
from linkwise.backends.llvm.types import Code, Lanes, Lines
from linkwise.trace.expr import Expr, Write
from linkwise.trace.program import FLAGS, Block, Case, For, Output, Program, Repeat, blocks


class Stepped(NamedTuple):
    """The end of a loop's body: whether to go on, the number of the next step, carried values."""

    more: str
    step: str
    values: list[str]


class Renderer:
    """Renders one program for one lane layout."""

    def __init__(
        self,
        program: Program,
        lanes: Lanes,
        register: Lanes,
        fused: bool,
        *,
        whole_tiles: bool = True,  # rows leave tile by tile, not one by one
    ) -> None:
        self.program, self.lanes, self.fused = program, lanes, fused
        self.register = register  # for one state, angles go side by side in a full register
        self.out = Lines()
        self.code = Code(self.out, lanes, fused)
        self.values: dict[int, str] = {}
        self.sizes = {port.name: port.size for port in program.inputs}
        self.ports = {port.name: k for k, port in enumerate(program.inputs)}
        used = {a.id for node in program.nodes() for a in node.args}
        # computed when their neighbours are there too, just before they are written together
        self.only_stored = {value.id for value in program.results} - used
        self.masks: dict[int, str] = {}  # where a choice takes its first alternative
        self.chosen: dict[int, Expr] = {}  # what it is
        self.turned: dict[tuple[str, ...], list[str]] = {}
        self.memory, self.step = Memory(program, lanes, self.out), ""
        self.out.current = self.memory.rooms.block
        outputs = enumerate(program.outputs)
        self.stores = [_Stores(k, output, lanes, register, whole_tiles) for k, output in outputs]

    def tile(self) -> str:
        """IR of the tile function."""
        for region in self.program.regions:
            if isinstance(region, Block):
                self.block(region.nodes)
            elif isinstance(region, Repeat):
                self._repeat(region)
            else:
                self._for(region)
        self.store_rest()
        outputs = [f"out{k}" for k in range(len(self.stores))]
        names = [*(f"in{k}" for k in self.ports.values()), *outputs]
        arguments = ", ".join(f"ptr noalias %{name}" for name in names)
        body = "\n".join(self.out.text)
        rooms, reduction = self.large_angles()
        rooms += self.memory.begin()
        reduction += "".join(x.repeated.function() for x in self.stores)
        return (
            f"define internal void @tile({arguments}) #0 {{\n"
            f"entry:\n{rooms}{body}\n{self.memory.rooms.end()}  ret void\n}}\n{reduction}"
        )

    def large_angles(self) -> tuple[str, str]:
        """Room for angles that need the long reduction, and that reduction; nothing without any."""
        angles = {n.args[0].id for n in self.program.nodes() if n.op in ("sin", "cos")}
        if not angles:
            return "", ""
        size = (len(angles) + self.register.width) * self.lanes.width
        room = f"alloca [{size} x {self.lanes.number.llvm}], align 64"
        rooms = "".join(f"  %{name} = {room}\n" for name in ("angles", "rest", "turns"))
        return rooms, cold_reduction(self.lanes.number, self.fused)

    def _sincos(self, angles: list[str]) -> list[tuple[str, str]]:
        """Sines and cosines; the angles of one state are evaluated side by side."""
        if self.lanes.width > 1 or len(angles) == 1:
            return emit_sincos(self.code, angles)
        wide, code = self.register, Code(self.out, self.register, self.fused)
        vectors = []
        for start in range(0, len(angles), wide.width):
            some = angles[start : start + wide.width]
            some += [some[-1]] * (wide.width - len(some))
            vectors.append(pack(self.out, wide, some))
        pairs: list[tuple[str, str]] = []
        for sines, cosines in emit_sincos(code, vectors):
            both = unpack(self.out, wide, sines), unpack(self.out, wide, cosines)
            pairs += zip(*both, strict=True)
        return pairs[: len(angles)]

    def block(self, nodes: tuple[Expr, ...]) -> None:
        """Angles first, in groups that depend on no sine of their own; then the rest in order.

        What stands before every sine is done before them.
        """
        for node in itertools.takewhile(lambda node: node.op not in ("sin", "cos"), nodes):
            self._node(node)
        for group in _angle_groups(nodes):
            for node in _needed_by(nodes, group):
                self._node(node)
            angles = [self.value(a) for a in group]
            pairs = self._sincos(angles)
            made = {a.id: pair for a, pair in zip(group, pairs, strict=True)}
            for node in nodes:
                if node.op in ("sin", "cos") and node.args[0].id in made:
                    self.values[node.id] = made[node.args[0].id][node.op == "cos"]
        region = self.program.regions[-1]
        last = isinstance(region, Block) and nodes is region.nodes
        for node in nodes:
            if not (last and node.id in self.only_stored):
                self._node(node)
            if last:
                self.store(node)

    def _node(self, node: Expr) -> None:
        if node.id not in self.values and node.op not in ("const", "input"):
            self.values[node.id] = self._operation(node)

    def _operation(self, node: Expr) -> str:
        if node.op == "select":
            return self._select(node)
        if node.op == "read":
            array, at = node.value
            return self.memory.read(array, at, self.step)
        args = [self.value(a) for a in node.args]
        if node.op in COMPOSED:
            return COMPOSED[node.op](self.code, *args)
        return self.code.do(node.op, *args)

    def _select(self, node: Expr) -> str:
        """A choice. Where its first alternative is a choice with the same second, both are one."""
        condition, a, b = node.args
        mask = self.code.do("greater", self.value(condition), self.code.number(0.0))
        if a.id in self.masks and a.args[2] is b:
            mask, a = self.code.do("both", mask, self.masks[a.id]), self.chosen[a.id]
        self.masks[node.id], self.chosen[node.id] = mask, a
        return self.code.do("choose", mask, self.value(a), self.value(b))

    def value(self, node: Expr) -> str:
        """The register of a node; it is computed here where it was not before."""
        if node.op == "const":
            return self.lanes.constant(node.value)
        if node.id not in self.values:
            self.values[node.id] = (
                self._load(*node.value) if node.op == "input" else self._operation(node)
            )
        return self.values[node.id]

    def _load(self, port: str, index: int) -> str:
        """One input of every state."""
        base = f"%in{self.ports[port]}"
        return load_column(self.out, self.lanes, base, self.sizes[port], index)

    def store(self, result: Expr) -> None:
        """Write each group of neighbouring results as soon as its last one is known."""
        for into in self.stores:
            for start, values in into.ready(result):
                where = (self.out, self.lanes, into.base, into.pitch, start)
                if into.columns is not None:
                    into.columns.store(self.out, into.base, result, self.value(result))
                elif into.kind == FLAGS:
                    store_flags(*where, self.value(values[0]))
                else:
                    columns = [self.value(value) for value in values]
                    store_columns(*where, columns, self.turned)

    def store_rest(self) -> None:
        """Write what is not written yet, values that are written in many places last."""
        for result in self.program.results:
            self.store(result)
        for into in self.stores:
            into.repeated.fill(self.out, [self.value(x) for x in into.repeated.ranges])

    def _repeat(self, loop: Repeat) -> None:
        """A loop whose states stop one by one; it ends when none is active, or at the limit."""
        limit = self.value(loop.limit)

        def body(step: str) -> Stepped:
            end = self.step_of(loop, limit, step)
            return end._replace(more=self.code.any(end.more))

        self.loop(loop, self.lanes.type, self.code.number(0.0), body)

    def step_of(self, loop: Repeat, limit: str, step: str) -> Stepped:
        """One step of such a loop; whether to go on is a mask."""
        code = self.code
        self.block(loop.body.nodes)
        going = code.do("greater", self.value(loop.active), code.number(0.0))
        going = code.do("both", going, code.do("greater", limit, step))
        values = [
            code.do("choose", going, self.value(c.next), self.value(c.value)) for c in loop.carries
        ]
        count = code.do("add", step, code.number(1.0))
        more = code.do("both", going, code.do("greater", limit, count))
        return Stepped(more, count, values)

    def _for(self, loop: For) -> None:
        """A loop of a fixed number of steps; every state takes all of them."""

        for case in loop.cases:
            written = (write.value for write in case.writes)
            used = (arg for node in case.body.nodes for arg in node.args)
            for node in (*used, *case.nexts, *written):
                if node.op == "input":  # read once, where every step and every case sees it
                    self.value(node)

        count, limit = self.memory.whole(loop.count), loop.limit
        if limit is not None:  # the same in every state: that of the first says
            some = unpack(self.out, self.lanes, self.value(limit))[0]
            most = self.out.let(f"fptosi {self.lanes.number.llvm} {some} to i64")
            count = self.out.let(f"call i64 @llvm.smin.i64(i64 {most}, i64 {count})")

        def body(step: str) -> Stepped:
            self.step = step
            first, *others = loop.cases
            values = self._cases(loop) if others else self._case(first)
            next_ = self.out.let(f"add i64 {step}, 1")
            more = self.out.let(f"icmp slt i64 {next_}, {count}")
            return Stepped(more, next_, values)

        self.loop(loop, "i64", "0", body)

    def _case(self, case: Case) -> list[str]:
        """One step, as one case of it goes; returns the values it carries on."""
        self.block(case.body.nodes)
        values = [self.value(x) for x in case.nexts]
        for every, writes in itertools.groupby(case.writes, lambda write: write.every):
            self._write(every, [(write, self.value(write.value)) for write in writes])
        return values

    def _cases(self, loop: For) -> list[str]:
        """A step that is one of several cases, the same for all states."""
        assert loop.which is not None  # a legal program says which case a step is
        out, T = self.out, self.lanes.type
        labels, join = [out.label("case") for _ in loop.cases], out.label("join")
        targets = " ".join(f"i64 {k}, label %{name}" for k, name in enumerate(labels))
        which = self.memory.which(loop.which, self.step)
        out.add(f"  switch i64 {which}, label %{labels[0]} [ {targets} ]")
        ends: list[tuple[str, list[str]]] = []
        for name, case in zip(labels, loop.cases, strict=True):
            out.start(name)
            values = self._case(case)
            ends.append((out.current, values))
            out.add(f"  br label %{join}")
            self._forget(case.body)
        out.start(join)
        return [
            out.let(f"phi {T} {', '.join(f'[ {v[k]}, %{block} ]' for block, v in ends)}")
            for k in range(len(loop.carries))
        ]

    def loop(
        self,
        loop: Repeat | For,
        counter: str,
        first: str,
        body: Callable[[str], Stepped],
        starts: list[str] | None = None,
    ) -> None:
        """A loop around a body, which is handed the number of its step."""
        out, T = self.out, self.lanes.type
        before, head, done = out.current, out.label("loop"), out.label("after")
        starts = starts or [self.value(c.start) for c in loop.carries]
        out.add(f"  br label %{head}")
        out.start(head)
        at = len(out.text)  # the phis go here, once the back edge is known
        held = [f"%{head}.{k}" for k in range(len(loop.carries))]
        self._carry(loop, held)
        more, count, values = body(f"%{head}.step")
        phis = [(counter, f"%{head}.step", first, count)]
        phis += [(T, *names) for names in zip(held, starts, values, strict=True)]
        out.text[at:at] = [
            f"  {name} = phi {kind} [ {start}, %{before} ], [ {new}, %{out.current} ]"
            for kind, name, start, new in phis
        ]
        out.add(f"  br i1 {more}, label %{head}, label %{done}")
        out.start(done)
        for block in blocks(loop):  # of the last step: no use after the loop
            self._forget(block)
        self._carry(loop, values)

    def _forget(self, block: Block) -> None:
        for node in block.nodes:
            self.values.pop(node.id, None)
            self.masks.pop(node.id, None)

    def _carry(self, loop: Repeat | For, values: list[str]) -> None:
        for carry, value in zip(loop.carries, values, strict=True):
            self.values[carry.value.id] = value

    def _write(self, every: int, writes: list[tuple[Write, str]]) -> None:
        """Write values at the end of a step, if it is one of those that do."""
        if every == 1:
            self.memory.write(writes, self.step)
            return
        out = self.out
        due, skip = out.label("due"), out.label("go")
        count = out.let(f"udiv i64 {self.step}, {every}")
        rest = out.let(f"urem i64 {self.step}, {every}")
        now = out.let(f"icmp eq i64 {rest}, {every - 1}")
        out.add(f"  br i1 {now}, label %{due}, label %{skip}")
        out.start(due)
        self.memory.write(writes, count)
        out.add(f"  br label %{skip}")
        out.start(skip)


def _flag(code: Code, x: str) -> str:
    positive = code.do("greater", x, code.number(0.0))
    return code.do("choose", positive, code.number(1.0), code.number(0.0))


def _finite(code: Code, x: str) -> str:
    finite = code.do("equal", code.do("sub", x, x), code.number(0.0))
    return code.do("choose", finite, code.number(1.0), code.number(0.0))


def _sign(code: Code, x: str) -> str:
    """1 or -1; zero and NaN stay what they are."""
    zero = code.number(0.0)
    below, above = code.do("greater", zero, x), code.do("greater", x, zero)
    rest = code.do("choose", below, code.number(-1.0), x)
    return code.do("choose", above, code.number(1.0), rest)


# operations of a program that are more than one of the machine
COMPOSED: dict[str, Callable[..., str]] = {
    "sign": _sign,
    "flag": _flag,
    "finite": _finite,
    "atan2": elementary.atan2,
    "eps": lambda code: code.number(code.lanes.number.eps),
}


class _Stores:
    """The stores of one output: groups of neighbours, each written once all its values exist."""

    def __init__(
        self, index: int, output: Output, lanes: Lanes, register: Lanes, whole_tiles: bool
    ) -> None:
        self.base, self.size, self.kind = f"%out{index}", len(output.values), output.kind
        self.pitch = self.size if output.kind == FLAGS else pitch(lanes, self.size)
        columns = whole_tiles and by_columns(output, lanes)
        self.columns = Columns(index, output, lanes) if columns else None
        self.repeated = Repeated(index, output, lanes, register)
        self._width = 1 if output.kind == FLAGS else lanes.width
        self._values = output.values
        self._groups: dict[int, list[int]] = {}  # for each value the groups it is in
        self._waiting: dict[int, int] = {}  # for each group how many values it waits for
        if self.columns is not None:  # each value is a group of its own
            self._groups = {value.id: [k] for value, k in self.columns.places.items()}
            self._waiting = dict.fromkeys(self.columns.places.values(), 1)
            return
        filled = holes(output.values, lanes) if output.kind != FLAGS else ()
        skipped = {
            k for a, b in filled for k in range(a + edge(lanes), b - edge(lanes), lanes.width)
        }  # which `copies.py` fills
        skipped |= self.repeated.covered()
        for start in range(0, self.size, self._width):
            if start in skipped:
                continue
            members = {value.id for value in self._group(start)}
            self._waiting[start] = len(members)
            for id_ in members:
                self._groups.setdefault(id_, []).append(start)

    def _group(self, start: int) -> tuple[Expr, ...]:
        return self._values[start : start + self._width]

    def ready(self, value: Expr) -> Iterator[tuple[int, tuple[Expr, ...]]]:
        """Groups that this value completes, each with the index of its first element."""
        for start in self._groups.pop(value.id, ()):
            self._waiting[start] -= 1
            if self._waiting[start] == 0:
                yield start, self._group(start)


def _angle_groups(nodes: tuple[Expr, ...]) -> list[list[Expr]]:
    """Distinct angles, grouped by how many sines deep they are."""
    depth: dict[int, int] = {}
    groups: dict[int, dict[int, Expr]] = {}
    for node in nodes:
        level = max((depth.get(a.id, 0) for a in node.args), default=0)
        if node.op in ("sin", "cos"):
            groups.setdefault(level, {})[node.args[0].id] = node.args[0]
            level += 1
        depth[node.id] = level
    return [list(groups[level].values()) for level in sorted(groups)]


def _needed_by(nodes: tuple[Expr, ...], roots: list[Expr]) -> list[Expr]:
    """Nodes of this block that the roots are computed from, in order."""
    wanted = {r.id for r in roots}
    for node in reversed(nodes):
        if node.id in wanted:
            wanted.update(a.id for a in node.args)
    return [node for node in nodes if node.id in wanted]
