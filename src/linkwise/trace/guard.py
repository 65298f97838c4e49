"""A pass: states that have no answer get NaN, by ordinary operations.

A state has an answer where every input is finite and every pivot positive. The guard is a number
that is 0 in such a state and NaN in any other, and it is added to every number the program writes,
which changes no bit of an answer:

    guard = 0 x_1 + 0 x_2 + ... + 0 x_n,    or NaN where a pivot is not positive

A pivot that is a length, a square root, must also be finite and no shorter than `SHORTEST`.
No finite input overflows that sum, as the sum of the inputs themselves could.

Each input is added where it is first used, while it is in a register anyway; angles come first,
because backends compute all sines of a block at its start. A program with counted loops adds all
inputs up in loops of their own, before the others. Status flags are not guarded.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.trace.expr import At, Expr, Graph
from linkwise.trace.program import NUMBER, Block, Carry, Case, For, Output, Program, Region

SHORTEST = 2.0**-486  # squares of shorter lengths lose digits to underflow; 0 in float32


def guard(program: Program) -> Program:
    """The same program with NaN in states that have no answer; it has no pivots left to watch."""
    if not next(iter(program.nodes()), None) or not any(port.size for port in program.inputs):
        return program
    writer = _Writer(program)
    if any(isinstance(region, For) for region in program.regions):
        writer.sum_in_loops()
    *first, last = program.regions
    for region in first:
        writer.region(region)
    writer.last(last)
    outputs = tuple(writer.output(output) for output in program.outputs)
    return replace(program, regions=tuple(writer.regions), outputs=outputs, pivots=())


class _Writer:
    """The regions of the guarded program, as far as they are written."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph: Graph = next(iter(program.nodes())).graph
        self.regions: list[Region] = []
        self._nodes: list[Expr] = []  # of the block being written
        self._known: set[int] = set()
        counted = any(isinstance(region, For) for region in program.regions)
        ports = () if counted else program.inputs  # loops add all inputs up, however many
        self._unseen = {(p.name, k): None for p in ports for k in range(p.size)}
        self._sum: Expr | None = None  # of the inputs met so far
        self._guard: Expr | None = None
        self._watched: set[int] = set()  # pivots that the guard depends on
        self._wanted = {v.id for o in program.outputs if o.kind == NUMBER for v in o.values}

    def region(self, region: Region) -> None:
        """A region that is not the last: only watched."""
        if isinstance(region, Block):
            self._block(region, finish=False)
            self._close()
        else:
            if isinstance(region, For) and self._writes_results(region):
                self._finished()
                self._close()
            self.regions.append(self._for(region) if isinstance(region, For) else region)
            self._known |= {carry.value.id for carry in region.carries}

    def sum_in_loops(self) -> None:
        """Add all inputs up before anything else, for counted loops that write as they go."""
        for port in (port for port in self.program.inputs if port.size):
            start = self._emit(self._sum or self.graph.zero)
            self._emit(self.graph.zero)
            self._close()
            x = self.graph.node("read", value=(port.name, At(0, 1)))
            self._sum = self.graph.node("carry", value=("guard", port.name))
            self._known.add(self._sum.id)
            more = self._plus(x)
            carry = Carry(self._sum, start, more)
            self.regions.append(For(port.size, (carry,), (Case(Block((x, more)), (more,), ()),)))

    def _writes_results(self, loop: For) -> bool:
        return any(o.name == w.array for o in self.program.outputs for w in loop.writes)

    def _for(self, loop: For) -> For:
        """A counted loop with guarded writes to outputs."""
        if not self._writes_results(loop):
            return loop
        return replace(loop, cases=tuple(self._case(loop, case) for case in loop.cases))

    def _case(self, loop: For, case: Case) -> Case:
        """A case that writes NaN where its state has no answer, from the step that shows it on."""
        numbers = {o.name for o in self.program.outputs if o.kind == NUMBER}
        nodes, guard, writes = list(case.body.nodes), self._finished(), []
        nan = self.graph.const(float("nan"))
        for carry, after in zip(loop.carries, case.nexts, strict=True):
            if carry.value in self.program.pivots:
                guard = self.graph.node("select", after, guard, nan)
                nodes += [nan, guard]
        for write in case.writes:
            if write.array in numbers:
                value = self.graph.node("add", write.value, guard)
                nodes.append(value)
                write = write._replace(value=value)
            writes.append(write)
        own = tuple(n for n in dict.fromkeys(nodes) if n.id not in self._known)
        return replace(case, body=Block(own), writes=tuple(writes))

    def last(self, region: Region) -> None:
        """The last region; results are guarded as they come, or after the last pivot."""
        if isinstance(region, Block):
            self._block(region, finish=not self.program.pivots)
        else:
            self.region(region)
        for output in self.program.outputs:
            for value in output.values if output.kind == NUMBER else ():
                self.guarded(value)
        self._close()

    def _close(self) -> None:
        self.regions.append(Block(tuple(self._nodes)))
        self._nodes = []

    def _block(self, block: Block, finish: bool) -> None:
        for node in block.nodes:
            if node.op in ("sin", "cos") and node.args[0].op == "input":
                self._see(node.args[0])
        for node in block.nodes:
            for arg in node.args:
                if arg.op == "input":
                    self._see(arg)
            self._emit(node)
            if finish and node.id in self._wanted:
                self.guarded(node)

    def _see(self, x: Expr) -> None:
        """Add an input to the sum, the first time it is met."""
        if x.value in self._unseen:
            del self._unseen[x.value]
            self._emit(x)
            self._emit(self.graph.zero)
            self._sum = self._emit(self._plus(x))

    def _plus(self, x: Expr) -> Expr:
        """The sum with 0 times one more input."""
        zero = self.graph.zero
        return self.graph.node("fma", x, zero, self._sum or zero)

    def _emit(self, node: Expr) -> Expr:
        if node.id not in self._known:
            self._known.add(node.id)
            self._nodes.append(node)
        return node

    def guarded(self, value: Expr) -> Expr:
        """The value as it is written to an output."""
        return self._emit(self.graph.node("add", value, self._finished()))

    def _finished(self) -> Expr:
        """The guard, once every input has been met."""
        if self._guard is None:
            for name, k in list(self._unseen):
                self._see(self.graph.input(name, k))
            assert self._sum is not None  # every program has inputs
            self._guard = self._sum
        return self._unless_singular(self._guard)

    def _unless_singular(self, guard: Expr) -> Expr:
        """The guard where every pivot known by now is positive, and every length neither tiny nor
        infinite; else NaN.
        """
        for pivot in self.program.pivots:
            if pivot.id in self._known and pivot.id not in self._watched:
                self._watched.add(pivot.id)
                nan = self._emit(self.graph.const(float("nan")))
                if pivot.op == "sqrt":  # a length, whose square may have overflowed or underflowed
                    infinite = self._emit(self.graph.node("sub", pivot, pivot))
                    guard = self._emit(self.graph.node("add", guard, infinite))
                    least = self._emit(self.graph.const(SHORTEST))
                    pivot = self._emit(self.graph.node("sub", pivot, least))
                guard = self._guard = self._emit(self.graph.node("select", pivot, guard, nan))
        return guard

    def output(self, output: Output) -> Output:
        """An output with its guarded values."""
        if output.kind != NUMBER:
            return output
        return replace(output, values=tuple(self.guarded(value) for value in output.values))
