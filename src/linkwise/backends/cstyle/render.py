"""Program -> a C99 function of one state. An operation is a row of the table.

Compiled with ``-ffp-contract=off``, it gives the bits of the kernels of a processor that has fused
multiply-adds.
"""

from __future__ import annotations

import re

from linkwise.backends.cstyle.functions import EXPRESSIONS, functions, number
from linkwise.errors import printable
from linkwise.trace.expr import At, Expr, Write
from linkwise.trace.program import BYTE, NUMBER, Array, Block, For, Program, Region, Repeat

KINDS = {NUMBER: "double", BYTE: "unsigned char"}

OPS = {operation: expression for operation, (_, expression) in EXPRESSIONS.items()} | {
    "sign": "({0} > 0 ? 1.0 : {0} < 0 ? -1.0 : {0})",
    "flag": "({0} > 0 ? 1.0 : 0.0)",
    "finite": "(isfinite({0}) ? 1.0 : 0.0)",
    "eps": "DBL_EPSILON",
    "sqrt": "sqrt({0})",
    "select": "({0} > 0 ? {1} : {2})",
    "atan2": "linkwise_atan2({0}, {1})",
    "fms": "fma({0}, {1}, -{2})",
    "fnma": "fma(-{0}, {1}, {2})",
}


def render_c(program: Program, robot: str) -> str:
    """C source of the program."""
    writer = _Writer()
    name = re.sub(r"\W+", "_", program.name).strip("_")
    inputs = ", ".join(f"const double {_word(p.name)}[{p.size}]" for p in program.inputs)
    outputs = ", ".join(f"{KINDS[o.kind]} {_word(o.name)}[{o.slot.size}]" for o in program.outputs)
    head = [
        _comment(f"{program.name} of {robot}: one state."),
        "#include <float.h>",
        "#include <math.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        functions({node.op for node in program.nodes()}) + f"void {name}({inputs}, {outputs})",
        "{",
    ]
    for array in program.arrays:
        writer.array(array)
    for region in program.regions:
        writer.region(region)
    stores = [
        f"    {_word(output.name)}[{i}] = {writer.value(value)};"
        for output in program.outputs
        for i, value in enumerate(output.values)
    ]
    tables = [f"    {line}" for line in writer.tables]
    return "\n".join((*head, *tables, *writer.lines, *stores, "}", ""))


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.places: dict[tuple[int, ...], str] = {}  # lists of elements by step
        self.tables: list[str] = []

    def block(self, block: Block, indent: str = "    ") -> None:
        pairs: dict[int, dict[str, str]] = {}  # names of sine and cosine, by angle
        for node in block.nodes:
            if node.op in ("sin", "cos"):
                angle = node.args[0]
                if angle.id not in pairs:
                    sine, cosine = f"s{node.id}", f"c{node.id}"
                    pairs[angle.id] = {"sin": sine, "cos": cosine}
                    call = f"linkwise_sincos({self.value(angle)}, &{sine}, &{cosine});"
                    self.lines += [f"{indent}double {sine}, {cosine};", indent + call]
                self.names[node.id] = pairs[angle.id][node.op]
            if node.op == "read" or node.op in OPS:
                self.names[node.id] = f"v{node.id}"
                self.lines.append(f"{indent}const double v{node.id} = {self._expression(node)};")

    def _expression(self, node: Expr) -> str:
        if node.op == "read":
            array, at = node.value
            return f"{_word(array)}[{self._index(at, 'k')}]"
        return OPS[node.op].format(*(self.value(a) for a in node.args))

    def region(self, region: Region) -> None:
        """A block, or a loop around one."""
        if isinstance(region, Block):
            self.block(region)
            return
        for carry in region.carries:
            self.names[carry.value.id] = f"c{carry.value.id}"
            self.lines.append(f"    double c{carry.value.id} = {self.value(carry.start)};")
        most = region.count if isinstance(region, For) else self.value(region.limit)
        self.lines.append(f"    for (int k = 0; k < {most}; ++k) {{")
        self.block(region.body, " " * 8)
        if isinstance(region, Repeat):
            self.lines.append(f"        if (!({self.value(region.active)} > 0)) break;")
        else:
            self.lines += [self._write(write) for write in region.writes]
        new = [
            f"        const double n{c.value.id} = {self.value(c.next)};" for c in region.carries
        ]
        self.lines += new
        self.lines += [f"        c{c.value.id} = n{c.value.id};" for c in region.carries]
        self.lines.append("    }")

    def array(self, array: Array) -> None:
        """A table of constants, or room on the stack."""
        values = ", ".join(map(number, array.values))
        kind, start = ("static const double", f" = {{{values}}}") if values else ("double", "")
        self.lines.append(f"    {kind} {_word(array.name)}[{array.size}]{start};")

    def _write(self, write: Write) -> str:
        count = "k" if write.every == 1 else f"(k / {write.every})"
        target = f"{_word(write.array)}[{self._index(write.at, count)}]"
        due = "" if write.every == 1 else f"if (k % {write.every} == {write.every - 1}) "
        return f"        {due}{target} {'+=' if write.add else '='} {self.value(write.value)};"

    def _index(self, at: At, step: str) -> str:
        if not at.where:
            return f"{at.start} + {at.stride} * {step}"
        name = self.places.get(at.where)
        if name is None:
            name = self.places[at.where] = f"where{len(self.places)}"
            self.tables.append(f"static const int {name}[] = {{{', '.join(map(str, at.where))}}};")
        return f"{at.start} + {name}[{step}]"

    def value(self, node: Expr) -> str:
        """How a node is written where it is used."""
        if node.op == "const":
            return number(node.value)
        if node.op == "input":
            port, index = node.value
            return f"{_word(port)}[{index}]"
        return self.names[node.id]


def _comment(text: str) -> str:
    """A comment that no name in it can end: stars and slashes are kept apart."""
    apart = re.sub(r"([*/])(?=[*/])", r"\1 ", printable(text))
    return f"/* {apart} */"


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")
