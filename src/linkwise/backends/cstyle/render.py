"""Program -> a C99 function of one state. An operation is a row of the table.

Compiled with ``-ffp-contract=off``, it gives the bits of the kernels of a processor that has fused
multiply-adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from linkwise.backends.cstyle.functions import EXPRESSIONS, Dialect, functions
from linkwise.errors import printable
from linkwise.trace.expr import At, Expr, Whole, Write
from linkwise.trace.program import (
    FLAGS,
    FLAGS_C,
    NUMBER,
    Array,
    Block,
    Carry,
    Case,
    For,
    Output,
    Program,
    Region,
    Repeat,
)

DIALECTS = {"float64": Dialect(64), "float32": Dialect(32)}

# an operation as an expression; f: the suffix of the number type, fma: who multiplies and adds
OPS = {operation: expression for operation, (_, expression) in EXPRESSIONS.items()} | {
    "sign": "({0} > 0 ? 1 : {0} < 0 ? -1 : {0})",
    "flag": "({0} > 0 ? 1 : 0)",
    "finite": "({0} - {0} == 0 ? 1 : 0)",
    "eps": "{eps}",
    "sqrt": "sqrt{f}({0})",
    "select": "({0} > 0 ? {1} : {2})",
    "atan2": "linkwise_atan2{f}({0}, {1})",
    "fms": "{fma}({0}, {1}, -{2})",
    "fnma": "{fma}(-{0}, {1}, {2})",
}


MOST_INT = 2**31 - 1  # the greatest place that an int counts to


def render_c(program: Program, robot: str, dtype: str = "float64") -> str:
    """C source of the program."""
    dialect = DIALECTS[dtype]
    head = [
        comment(f"{program.name} of {robot}: one state."),
        "#include <math.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
    ]
    return "\n".join((*head, state_function(program, dialect, "void", word(program.name))))


class Leaving(NamedTuple):
    """How an output leaves in groups of consecutive numbers, each when it is complete."""

    argument: str  # its declaration; {0}: the name of the output, here and below
    size: int  # numbers of a group
    store: str  # one number: {1} its place in the group, {2} its value
    leave: str  # a complete group: {1} its first number, {2} how many


USUAL_ELEMENT, USUAL_STORE = "{0}[{1}]", "{0}[{1}] = {2};"


class Lent(NamedTuple):
    """How an array is reached in a way of the caller's: rows, or a table or scratch beside them."""

    argument: str  # its declaration; {0}: the name of the array, here and below
    element: str = USUAL_ELEMENT  # {1}: the place of an element
    store: str = USUAL_STORE  # {2}: a value
    # a loop that carries and reads so many numbers, or fewer, reads it one step ahead
    ahead: int = 0
    # or sends it ahead by several steps, to a place of the thread's own: macros SEND and AHEAD take
    # which of the loop's numbers it is and which step's, the former also where it is
    sent: bool = False


AT_THE_END: Mapping[str, Leaving] = {}
AS_USUAL: Mapping[str, Lent] = {}


def state_function(
    program: Program,
    dialect: Dialect,
    declared: str,
    name: str,
    leaving: Mapping[str, Leaving] = AT_THE_END,
    lent: Mapping[str, Lent] = AS_USUAL,
) -> str:
    """A function of one state, and before it the functions that it calls: `own_function`."""
    called = functions({node.op for node in program.nodes()}, dialect)
    return called + own_function(program, dialect, declared, name, leaving, lent)


def own_function(
    program: Program,
    dialect: Dialect,
    declared: str,
    name: str,
    leaving: Mapping[str, Leaving] = AT_THE_END,
    lent: Mapping[str, Lent] = AS_USUAL,
) -> str:
    """A function of one state, without the functions that it calls.

    Outputs are written at the end, except for those that are ``leaving`` in groups. Tables and
    scratch are the function's own, except for those that are ``lent`` to it: these are arguments
    behind the outputs.
    """
    T = dialect.number
    kinds = {NUMBER: T, FLAGS: FLAGS_C}
    told = {name: how.argument.format(word(name)) for name, how in leaving.items()}
    told |= {name: how.argument.format(word(name)) for name, how in lent.items()}
    inputs = [told.get(p.name, f"const {T} {word(p.name)}[{p.size}]") for p in program.inputs]
    outputs = [
        told.get(o.name, f"{kinds[o.kind]} {word(o.name)}[{o.slot.size}]") for o in program.outputs
    ]
    early = (_groups(o, leaving[o.name]) for o in program.outputs if o.name in leaving)
    writer = _Writer(dialect, [group for groups in early for group in groups], lent)
    beside = [told[a.name] for a in program.arrays if a.name in lent]
    far = any(array.size > MOST_INT for array in program.arrays)
    if far or any(how.sent for how in lent.values()):  # constant parts of addresses stay apart
        writer.step = "long long"
    for array in program.arrays:
        if array.name not in lent:
            writer.array(array)
    for region in program.regions:
        writer.region(region)
    writer.leave([group for group in writer.groups if not group.left])
    casts = {NUMBER: "", FLAGS: f"({FLAGS_C})"}
    stores = [
        f"    {word(output.name)}[{i}] = {casts[output.kind]}{writer.value(value)};"
        for output in program.outputs
        if output.name not in leaving
        for i, value in enumerate(output.values)
    ]
    head = f"{declared} {name}({', '.join((*inputs, *outputs, *beside))})"
    return "\n".join((head, "{", *writer.lines, *stores, "}", ""))


class _Group:
    """Numbers of an output that leave together, as soon as none is missing."""

    def __init__(self, name: str, start: int, values: Sequence[Expr], how: Leaving) -> None:
        self.name, self.start, self.values, self.how = name, start, values, how
        self.missing = {v.id for v in values if v.op not in ("const", "input")}
        self.left = False


def _groups(output: Output, how: Leaving) -> Iterator[_Group]:
    for start in range(0, len(output.values), how.size):
        yield _Group(word(output.name), start, output.values[start : start + how.size], how)


class _Writer:
    def __init__(
        self, dialect: Dialect, groups: Sequence[_Group], lent: Mapping[str, Lent]
    ) -> None:
        self.dialect, self.T, self.groups = dialect, dialect.number, groups
        self.lent = lent
        self.step = "int"  # the type of what counts the steps of a loop
        self.ahead: set[int] = set()  # what the step before has read already
        self.once: dict[str, str] = {}  # names of what lists of one number have
        eps = dialect.literal(2.0 ** (-52 if dialect.bits == 64 else -23))
        self.words = {"f": dialect.suffix, "fma": dialect.fma, "eps": eps}
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.waiting: dict[int, list[_Group]] = {}  # groups that miss a value
        for group in groups:
            for id_ in group.missing:
                self.waiting.setdefault(id_, []).append(group)

    def _made(self, node: Expr) -> None:
        """A value is known from here on: groups that missed only it leave."""
        groups = self.waiting.pop(node.id, [])
        for group in groups:
            group.missing.discard(node.id)
        self.leave([group for group in groups if not group.missing])

    def leave(self, groups: Sequence[_Group]) -> None:
        """Write groups that are complete."""
        for group in groups:
            for k, value in enumerate(group.values):
                line = group.how.store.format(group.name, k, self.value(value))
                self.lines.append(f"    {line}")
            line = group.how.leave.format(group.name, group.start, len(group.values))
            self.lines.append(f"    {line}")
            group.left = True

    def block(self, block: Block, indent: str = "    ") -> None:
        pairs: dict[int, dict[str, str]] = {}  # names of sine and cosine, by angle
        for node in block.nodes:
            if node.op in ("sin", "cos"):
                angle = node.args[0]
                if angle.id not in pairs:
                    sine, cosine = f"s{node.id}", f"c{node.id}"
                    pairs[angle.id] = {"sin": sine, "cos": cosine}
                    called = f"linkwise_sincos{self.dialect.suffix}"
                    call = f"{called}({self.value(angle)}, &{sine}, &{cosine});"
                    self.lines += [f"{indent}{self.T} {sine}, {cosine};", indent + call]
                self.names[node.id] = pairs[angle.id][node.op]
            if node.id not in self.ahead and (node.op == "read" or node.op in OPS):
                self.names[node.id] = f"v{node.id}"
                self.lines.append(f"{indent}const {self.T} v{node.id} = {self._expression(node)};")
            self._made(node)

    def _expression(self, node: Expr) -> str:
        if node.op == "read":
            return self._read(node, "k")
        if node.op == "div" and self.dialect.reciprocal and node.args[0] is node.graph.one:
            return f"{self.dialect.reciprocal}({self.value(node.args[1])})"
        return OPS[node.op].format(*map(self.value, node.args), **self.words)

    def _read(self, node: Expr, step: str) -> str:
        array, at = node.value
        return self._element(array, self._index(at, step))

    def region(self, region: Region) -> None:
        """A block, or a loop around one."""
        if isinstance(region, Block):
            self.block(region)
            return
        for carry in region.carries:
            self.names[carry.value.id] = f"c{carry.value.id}"
            self.lines.append(f"    {self.T} c{carry.value.id} = {self.value(carry.start)};")
        if isinstance(region, Repeat):
            self._repeat(region)
        else:
            self._counted(region)

    def _repeat(self, loop: Repeat) -> None:
        self._steps(f"{MOST_INT} && ({self.T})k < {self.value(loop.limit)}")
        self.block(loop.body, " " * 8)
        self.lines.append(f"        if (!({self.value(loop.active)} > 0)) break;")
        self._next(loop.carries, [carry.next for carry in loop.carries], " " * 8)
        self.lines.append("    }")

    def _counted(self, loop: For) -> None:
        self._wholes(loop)
        count = self._whole(loop.count)
        most = count
        if loop.limit is not None:
            most += f" && ({self.T})k < {self.value(loop.limit)}"
        early = self._read_ahead(loop)
        sent = [x for x in early if self.lent[x.value[0]].sent]
        ahead = [x for x in early if x not in sent]
        self.lines += [f"    {self.T} a{x.id} = {self._read(x, '0')};" for x in ahead]
        if sent:
            self._steps("STAGES - 1")
            self._send(sent, "k", count)
            self.lines.append("    }")
        self._steps(most)
        if sent:
            self._send(sent, "k + STAGES - 1", count)
            self.lines.append("        ARRIVED;")
        here = [f"a{x.id}" for x in ahead] + [f"AHEAD({j}, k)" for j in range(len(sent))]
        self.lines += [f"        const {self.T} v{x.id} = {value};"
                       for x, value in zip([*ahead, *sent], here, strict=True)]  # fmt: skip
        if ahead:
            self.lines.append(f"        const {self.step} next = k + (k < {count} - 1);")
        self.lines += [f"        a{x.id} = {self._read(x, 'next')};" for x in ahead]
        self._cases(loop)
        self.lines.append("    }")
        if sent:  # what is still under way would land on what comes next
            self.lines.append("    COPIED;")
        self.lines += ["    }"] if early else []

    def _steps(self, most: str) -> None:
        self.lines.append(f"    for ({self.step} k = 0; k < {most}; ++k) {{")

    def _cases(self, loop: For) -> None:
        """One step of a counted loop."""
        if loop.which is None:
            self._case(loop, loop.cases[0], " " * 8)
            return
        self.lines.append(f"        switch ({self._index(loop.which, 'k')}) {{")
        for number, case in enumerate(loop.cases):
            self.lines.append(f"        case {number}: {{")
            self._case(loop, case, " " * 12)
            self.lines += [" " * 12 + "break;", " " * 8 + "}"]
        self.lines.append("        }")

    def _send(self, reads: Sequence[Expr], step: str, count: str) -> None:
        """Send what a step will read; beyond the last step, once more what that one reads."""
        self.lines.append(f"        const {self.step} to = {step};")
        self.lines.append(f"        const {self.step} from = to < {count} ? to : {count} - 1;")
        self.lines += [f"        SEND({j}, to, {self._read(x, 'from')});"
                       for j, x in enumerate(reads)]  # fmt: skip
        self.lines.append("        SENT;")

    def _read_ahead(self, loop: For) -> list[Expr]:
        """What every step reads and no step writes, where it is read one step ahead: then no step
        waits for it. The names of what is read ahead hold in a block around the loop.
        """
        reads = [{n.id: n for n in case.body.nodes if n.op == "read"} for case in loop.cases]
        count = len(loop.carries) + max(map(len, reads))
        written = {write.array for write in loop.writes}
        usual = Lent("")
        found = [
            node
            for id_, node in reads[0].items()
            if all(id_ in others for others in reads)
            and node.value[0] not in written
            and count <= self.lent.get(node.value[0], usual).ahead
        ]
        self.ahead = {node.id for node in found}
        self.names |= {node.id: f"v{node.id}" for node in found}
        if found:
            self.lines.append("    {")
        return found

    def _case(self, loop: For, case: Case, indent: str) -> None:
        """One step of a counted loop, as one case of it goes."""
        self.block(case.body, indent)
        self.lines += [indent + self._write(write) for write in case.writes]
        self._next(loop.carries, case.nexts, indent)

    def _next(self, carries: Sequence[Carry], nexts: Sequence[Expr], indent: str) -> None:
        """Carry values on, all at once."""
        pairs = list(zip(carries, nexts, strict=True))
        self.lines += [f"{indent}const {self.T} n{c.value.id} = {self.value(x)};" for c, x in pairs]
        self.lines += [f"{indent}c{c.value.id} = n{c.value.id};" for c, _ in pairs]

    def array(self, array: Array) -> None:
        """A table of constants, or room on the stack."""
        name = f"{word(array.name)}[{array.size}]"
        if array.values is None:
            self.lines.append(f"    {self.T} {name};")
            return
        literal, kind = (str, "int") if array.lists_places else (self.dialect.literal, self.T)
        values = ", ".join(map(literal, array.values.tolist()))
        self.lines.append(f"    static const {kind} {name} = {{{values}}};")

    def _write(self, write: Write) -> str:
        count = "k" if write.every == 1 else f"(k / {write.every})"
        index, value = self._index(write.at, count), self.value(write.value)
        due = "" if write.every == 1 else f"if (k % {write.every} == {write.every - 1}) "
        if write.add:
            return f"{due}{self._element(write.array, index)} += {value};"
        store = self.lent[write.array].store if write.array in self.lent else USUAL_STORE
        return due + store.format(word(write.array), index, value)

    def _wholes(self, loop: For) -> None:
        """Read the numbers of a loop that are given with the tables, once for all its steps."""
        nodes = [node for case in loop.cases for node in case.body.nodes if node.op == "read"]
        places = [node.value[1] for node in nodes] + [write.at for write in loop.writes]
        for x in (loop.count, *(at.order.first for at in places)):
            if isinstance(x, str) and x not in self.once:
                self.once[x] = f"only_{word(x)}"
                first = self._element(x, "0")
                self.lines.append(f"    const {self.step} {self.once[x]} = {first};")

    def _whole(self, x: Whole) -> str:
        """A number that may be given with the tables."""
        return self.once[x] if isinstance(x, str) else str(x)

    def _index(self, at: At, step: str) -> str:
        first, by = at.order
        item = step if by == 1 else f"{by} * {step}"
        item = f"{self._whole(first)} + {item}" if first else item
        item = self._element(at.places, item) if at.places else f"({item})"
        return f"{at.start} + {at.stride} * {item}"

    def _element(self, array: str, index: str) -> str:
        """An element of an array, to be read or written."""
        element = self.lent[array].element if array in self.lent else USUAL_ELEMENT
        return element.format(word(array), index)

    def value(self, node: Expr) -> str:
        """How a node is written where it is used."""
        if node.op == "const":
            return self.dialect.literal(node.value)
        if node.op == "input":
            port, index = node.value
            return self._element(port, index)
        return self.names[node.id]


def comment(text: str) -> str:
    """A comment that no name in it can end: stars and slashes are kept apart."""
    apart = re.sub(r"([*/])(?=[*/])", r"\1 ", printable(text))
    return f"/* {apart} */"


def word(name: str) -> str:
    """A name as an identifier."""
    return re.sub(r"\W+", "_", name).strip("_")
