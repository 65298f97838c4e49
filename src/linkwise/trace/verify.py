"""What a legal program is: checked after tracing in the tests, and before rendering by request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from linkwise.trace.expr import ARITY, At, Expr, Write, whole
from linkwise.trace.program import FLAGS, NUMBER, Block, Carry, For, Output, Program, Repeat


class IllegalProgram(ValueError):
    """A program breaks a rule that backends rely on."""


Lists = Mapping[str, Any]  # whole numbers, by the name of the list


class _Reads(NamedTuple):
    """What the steps of a case may read: sizes of arrays, the steps, and lists of places."""

    sizes: Mapping[str, int]
    steps: Sequence[int]
    lists: Lists

    def within(self, array: str, at: At) -> bool:
        """Whether every step reads an element that is there."""
        return _within(at, self.steps, self.sizes.get(array, 0), self.lists)


def verify(program: Program) -> Program:
    """Return the program, or say which rule which node breaks."""
    sizes = {port.name: port.size for port in program.inputs}
    if len(sizes) != len(program.inputs):
        raise IllegalProgram(f"{program.name}: two inputs share a name")
    everything = [*sizes, *(o.name for o in program.outputs), *(a.name for a in program.arrays)]
    for array in program.arrays:
        if everything.count(array.name) != 1:
            raise IllegalProgram(f"{program.name}: two arrays are named {array.name!r}")
    known: set[int] = set()
    for region in program.regions:
        if isinstance(region, Block):
            known |= _block(region, sizes, known)
        elif isinstance(region, Repeat):
            _repeat(region, sizes, known)
        else:
            _for(program, region, sizes, known)
    for output in program.outputs:
        _output(program, output, known)
    for pivot in program.pivots:
        _require(pivot.id in known, "a pivot is never computed", pivot)
    return program


def _output(program: Program, output: Output, known: set[int]) -> None:
    """An output has a name of its own, a value for each element, and a kind that is known."""
    where = f"{program.name}: output {output.name!r}"
    if sum(other.name == output.name for other in program.outputs) != 1:
        raise IllegalProgram(f"{where} is there twice")
    if output.kind not in (NUMBER, FLAGS):
        raise IllegalProgram(f"{where} is of kind {output.kind!r}; expected number or flags")
    if not output.values and output.slot.size:
        if not any(w.array == output.name for w in _writes(program)):
            raise IllegalProgram(f"{where} has no values and no loop writes it")
        return
    if len(output.values) != output.slot.size:
        raise IllegalProgram(
            f"{where} has {len(output.values)} values; expected {output.slot.size}, "
            f"as its shape {output.shape} says"
        )
    for index, value in enumerate(output.values):
        _require(value.id in known, f"element {index} of {output.name} is never computed", value)


def _block(
    block: Block,
    sizes: dict[str, int],
    known: set[int],
    reads: _Reads | None = None,
) -> set[int]:
    """Ids the block makes; each node once, after its arguments."""
    made: set[int] = set()
    for node in block.nodes:
        _require(node.op in ARITY, "unknown operation", node)
        _require(len(node.args) == ARITY[node.op], f"expected {ARITY[node.op]} arguments", node)
        _require(node.id not in made and node.id not in known, "computed twice", node)
        _require(node.op != "carry", "a carried value belongs to its loop", node)
        for arg in node.args:
            _require(arg.id in made or arg.id in known, f"uses %{arg.id} before it is made", node)
        _leaf(node, sizes)
        if node.op == "read":
            _require(reads is not None, "an element by step belongs to a counted loop", node)
            array, at = node.value
            inside = reads is not None and reads.within(array, at)
            _require(inside, f"read outside of {array!r}", node)
        made.add(node.id)
    return made


def _writes(program: Program) -> list[Write]:
    return [w for region in program.regions if isinstance(region, For) for w in region.writes]


def _for(program: Program, loop: For, sizes: dict[str, int], known: set[int]) -> None:
    """A counted loop reads inputs, tables and scratch, and writes scratch and outputs."""
    count = whole(loop.count, program.lists)
    if count < 1:
        raise IllegalProgram(f"a counted loop has {count} steps; expected at least one")
    scratch = {a.name: a.size for a in program.arrays if a.values is None}
    outputs = {o.name: o.slot.size for o in program.outputs if not o.values}
    if loop.limit is not None:
        _require(loop.limit.id in known, "the limit of a loop is not known before it", loop.limit)
    _carries(loop.carries, known)
    lists = program.lists
    for number, case in enumerate(loop.cases):
        steps = _steps(loop, number, lists)
        reads = _Reads(_readable(program), steps, lists)
        inside = known | _block(case.body, sizes, known, reads)
        if len(case.nexts) != len(loop.carries):
            raise IllegalProgram("a case of a loop carries on another number of values")
        for node in case.nexts:
            _require(node.id in inside, "needed by a loop, never computed", node)
        for write in case.writes:
            _require(write.value.id in inside, "written by a loop, never computed", write.value)
            into = scratch if write.add else scratch | outputs
            _require(write.array in into, f"no loop may write to {write.array!r}", write.value)
            _require(write.every >= 1, f"written every {write.every} steps", write.value)
            times = steps if write.every == 1 else range(count // write.every)
            inside_array = _within(write.at, times, into[write.array], lists)
            _require(inside_array, f"written outside of {write.array!r}", write.value)


def _steps(loop: For, case: int, lists: Lists) -> Sequence[int]:
    """The steps that are a case."""
    if loop.which is None:
        if len(loop.cases) != 1:
            raise IllegalProgram("nothing says which case a step of a loop is")
        return range(whole(loop.count, lists))
    known = [loop.which.element(k, lists) for k in range(whole(loop.count, lists))]
    if not all(0 <= k < len(loop.cases) for k in known):
        raise IllegalProgram("a step of a loop is a case that is not there")
    return [k for k, which in enumerate(known) if which == case]


def _readable(program: Program) -> dict[str, int]:
    """Sizes of what a step may read."""
    for array in program.arrays:
        if array.values is not None and array.values.size != array.size:
            raise IllegalProgram(
                f"table {array.name!r} has {array.values.size} values; expected {array.size}"
            )
    ports = {port.name: port.size for port in program.inputs}
    return ports | {array.name: array.size for array in program.arrays if not array.lists_places}


def _within(at: At, steps: Sequence[int], size: int, lists: Lists) -> bool:
    if at.places:
        items = [at.order.item(k, lists) for k in steps]
        if at.places not in lists or not all(0 <= i < len(lists[at.places]) for i in items):
            return False
    return all(0 <= at.element(k, lists) < size for k in steps)


def _leaf(node: Expr, sizes: dict[str, int]) -> None:
    if node.op == "input":
        port, index = node.value
        inside = port in sizes and 0 <= index < sizes[port]
        _require(inside, f"no element {index} of input {port!r}", node)
    if node.op == "const":
        _require(isinstance(node.value, float), "a constant must be a float", node)


def _repeat(loop: Repeat, sizes: dict[str, int], known: set[int]) -> None:
    """A loop's body sees what came before and the carried values; only those outlive it."""
    _require(loop.limit.id in known, "the limit of a loop is not known before it", loop.limit)
    _carries(loop.carries, known)
    inside = known | _block(loop.body, sizes, known)
    for node in (loop.active, *(carry.next for carry in loop.carries)):
        _require(node.id in inside, "needed by a loop, never computed", node)


def _carries(carries: tuple[Carry, ...], known: set[int]) -> None:
    """Carried values start from what is known; from then on they are known themselves."""
    for carry in carries:
        node = carry.value
        _require(node.op == "carry", "a loop carries a node that is not a carry", node)
        _require(carry.start.id in known, "start of a carried value is not known", carry.start)
    known |= {carry.value.id for carry in carries}


def _require(holds: bool, rule: str, node: Expr) -> None:
    if not holds:
        raise IllegalProgram(f"{node!r}: {rule}")
