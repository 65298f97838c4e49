"""What a legal program is: checked after tracing in the tests, and before rendering by request."""

from __future__ import annotations

from linkwise.trace.expr import ARITY, Expr
from linkwise.trace.program import Block, Program, Repeat


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
    for index, result in enumerate(program.results):
        _require(result.id in known, f"result {index} is never computed", result)
    for pivot in program.pivots:
        _require(pivot.id in known, "a pivot is never computed", pivot)
    return program


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
    if loop.limit < 1:
        raise IllegalProgram(f"a loop runs at most {loop.limit} times; expected at least once")
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
