"""What a legal program is: checked after tracing in the tests, and before rendering by request."""

from __future__ import annotations

from linkwise.trace.expr import ARITY, Expr
from linkwise.trace.program import BYTE, NUMBER, Block, Output, Program, Repeat


class IllegalProgram(ValueError):
    """A program breaks a rule that backends rely on."""


def verify(program: Program) -> Program:
    """Return the program, or say which rule which node breaks."""
    sizes = {port.name: port.size for port in program.inputs}
    if len(sizes) != len(program.inputs):
        raise IllegalProgram(f"{program.name}: two inputs share a name")
    known: set[int] = set()
    for region in program.regions:
        if isinstance(region, Block):
            known |= _block(region, sizes, known)
        else:
            _repeat(region, sizes, known)
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
    if output.kind not in (NUMBER, BYTE):
        raise IllegalProgram(f"{where} is of kind {output.kind!r}; expected number or byte")
    if len(output.values) != output.slot.size:
        raise IllegalProgram(
            f"{where} has {len(output.values)} values; expected {output.slot.size}, "
            f"as its shape {output.shape} says"
        )
    for index, value in enumerate(output.values):
        _require(value.id in known, f"element {index} of {output.name} is never computed", value)


def _block(block: Block, sizes: dict[str, int], known: set[int]) -> set[int]:
    """Ids the block makes; each node once, after its arguments."""
    made: set[int] = set()
    for node in block.nodes:
        _require(node.op in ARITY, "unknown operation", node)
        _require(len(node.args) == ARITY[node.op], f"expected {ARITY[node.op]} arguments", node)
        _require(node.id not in made | known, "computed twice", node)
        _require(node.op != "carry", "a carried value belongs to its loop", node)
        for arg in node.args:
            _require(arg.id in made or arg.id in known, f"uses %{arg.id} before it is made", node)
        _leaf(node, sizes)
        made.add(node.id)
    return made


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
    for carry in loop.carries:
        _require(
            carry.value.op == "carry", "a loop carries a node that is not a carry", carry.value
        )
        _require(carry.start.id in known, "start of a carried value is not known", carry.start)
    known |= {carry.value.id for carry in loop.carries}
    inside = known | _block(loop.body, sizes, known)
    for node in (loop.active, *(carry.next for carry in loop.carries)):
        _require(node.id in inside, "needed by a loop, never computed", node)


def _require(holds: bool, rule: str, node: Expr) -> None:
    if not holds:
        raise IllegalProgram(f"{node!r}: {rule}")
