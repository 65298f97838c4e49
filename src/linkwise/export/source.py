"""Header and source: the functions' C, what it needs of the machine, and its counts as comments."""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from linkwise.backends import elementary
from linkwise.backends.cstyle.functions import Code, Dialect, functions
from linkwise.backends.cstyle.render import DIALECTS, comment, own_function, word
from linkwise.export.wanted import Wanted, identifier, ports, unique
from linkwise.functions import Functions
from linkwise.model.configuration import own_joints
from linkwise.model.tree import Tree
from linkwise.trace.program import (
    FLAGS,
    FLAGS_C,
    For,
    OperationCount,
    Program,
    Repeat,
    count_operations,
)
from linkwise.trace.status import Status

MOST_NAMED = 1000  # joints that get names in the header
CHOICES = ("select", "sign", "flag", "finite")

HEAD = """\
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "compile without -ffast-math: states without an answer are told by NaN"
#endif
"""

MULTIPLY_ADD = """\
/* A multiply-add: in one rounding where the machine has an instruction for it, else in two. */
#if defined({fast}) && !defined(LINKWISE_PLAIN)
#define LINKWISE_FMA(a, b, c) {fma}(a, b, c)
#else
#undef LINKWISE_PLAIN
#define LINKWISE_PLAIN
#define LINKWISE_FMA(a, b, c) ((a) * (b) + (c))
#endif

"""

LIBM = """\
/* Sine, cosine and the angle of a point are those of the C library. */
static inline void linkwise_sincos{f}({T} x, {T} *sine, {T} *cosine)
{{
    *sine = sin{f}(x);
    *cosine = cos{f}(x);
}}

static inline {T} linkwise_atan2{f}({T} y, {T} x) {{ return atan2{f}(y, x); }}
"""


class Robot(NamedTuple):
    """What is exported, and how."""

    name: str  # as its file has it
    prefix: str  # of everything in C
    tree: Tree
    dtype: str
    libm: bool  # whether sines are the C library's
    version: str

    @property
    def dialect(self) -> Dialect:
        """The number type, with multiply-adds by a macro."""
        return replace(DIALECTS[self.dtype], multiply_add="LINKWISE_FMA")

    @property
    def macro(self) -> str:
        """What macros begin with."""
        return self.prefix.upper()

    @property
    def made(self) -> str:
        """Where the text comes from."""
        return f"{self.name}, in {self.dialect.number}; written by linkwise {self.version}."


def prototype(robot: Robot, one: Wanted) -> str:
    """A function's declaration, without its end."""
    T = robot.dialect.number
    inputs = [f"const {T} {word(p.name)}[{p.size}]" for p in one.program.inputs]
    outputs = [
        f"{FLAGS_C if o.kind == FLAGS else T} {word(o.name)}[{o.slot.size}]"
        for o in one.program.outputs
    ]
    return f"void {one.name}({', '.join((*inputs, *outputs))})"


# -- header ---------------------------------------------------------------------------------------


def header(robot: Robot, functions: Sequence[Wanted]) -> str:
    """The header: sizes, joints, and a declaration of each function, with what it costs."""
    guard = f"{robot.macro}_H"
    sizes = [
        f"#define {robot.macro}_NQ {robot.tree.nq}",
        f"#define {robot.macro}_NV {robot.tree.nv}",
    ]
    return "\n".join(
        (
            comment(robot.made),
            _block(
                "SI units: m, rad, kg, N, N m. Matrices are written row by row. Spatial vectors "
                "are (angular, linear). Functions allocate nothing, keep nothing between calls, "
                "and may be called from several threads. A state without an answer (a number "
                "that is not finite, a singular mass matrix) gives NaN. Outputs must be other "
                "arrays than inputs."
            ),
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            *sizes,
            f"typedef {robot.dialect.number} {robot.prefix}_real;",
            "",
            *_joints(robot),
            *(_status() if any(one.key.status for one in functions) else ()),
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *(line for one in functions for line in _declared(robot, one)),
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        )
    )


def _status() -> Iterator[str]:
    yield comment("Bits of a status; 0: nothing is wrong with the state.")
    yield from (f"#define LINKWISE_{bit.name} {bit.value}" for bit in Status if bit.value)


def _joints(robot: Robot) -> Iterator[str]:
    """Where each joint's numbers begin in q, and in qd, tau and the rows of matrices."""
    if robot.tree.n_links > MOST_NAMED:
        yield comment(f"{robot.tree.n_links} links: their joints' places are not listed.")
        return
    yield comment("Where a joint's numbers begin: in q, and in qd, qdd, tau.")
    new = unique()
    for link, q, v in own_joints(robot.tree):
        joint = new(identifier(link.joint_name) or "joint").upper()
        told = comment(f"{link.joint_name}: {link.kind}, moves {link.name}")
        yield f"#define {robot.macro}_Q_{joint} {q.start} {told}"
        yield f"#define {robot.macro}_V_{joint} {v.start}"
    for link in robot.tree.links:
        if link.follows is not None:
            driver = robot.tree.links[link.follows.link].joint_name
            yield comment(f"{link.joint_name} follows {driver} and has no number of its own.")


def _declared(robot: Robot, one: Wanted) -> Iterator[str]:
    """A function in the header."""
    said = [f"{word(port.name)}: {what}." for port, what in ports(one) if what]
    shapes = [
        f"{word(o.name)} has the shape ({', '.join(map(str, o.shape))})."
        for o in one.program.outputs
        if len(o.shape) > 1
    ]
    yield _block(" ".join((f"{one.title}: {_meaning(one)}", *shapes, *said)), *cost(robot, one))
    yield f"#define {one.name.upper()}_SIZE {one.program.outputs[0].slot.size}"
    yield f"{prototype(robot, one)};"
    yield ""


def _meaning(one: Wanted) -> str:
    """The first sentence of the documentation of the robot's function."""
    method = getattr(Functions, one.key.function, None)
    first = (inspect.getdoc(method) or "").split("\n\n")[0] if method else ""
    return " ".join(first.replace("``", "").replace("(..., ", "(").replace("(...)", "").split())


def _block(*paragraphs: str) -> str:
    """A comment of several lines."""
    lines = [line for text in paragraphs for line in textwrap.wrap(comment(text)[3:-3], 92) if line]
    return "\n".join(("/*", *(f" * {line}" for line in lines), " */"))


# -- costs ----------------------------------------------------------------------------------------


def cost(robot: Robot, one: Wanted) -> Iterator[str]:
    """What one call takes at most, counted in the program as it is exported."""
    count = count_operations(one.program)
    yield f"Operations: {_counted(count)}{_choices(one)}."
    if count.iteration is not None:
        once = replace(count.iteration, iteration=None)
        yield (
            f"Of these, each iteration takes {_counted(once)}; they are counted once above, and "
            "done at most as often as the limit says."
        )
    if not one.program.arrays and count.iteration is None:
        yield "There is no loop: every call does the same operations."
    if not robot.libm and count.sincos:
        near, far = sincos_operations(robot.dialect)
        fused, plain = (elementary.limit(robot.dialect.bits, x) for x in (True, False))
        yield (
            f"Each sincos is {near} instructions, and {far} more for an angle beyond {fused:g} rad "
            f"({plain:g} without fused multiply-adds)."
        )
    if one.scratch(robot.dtype):
        yield f"Arrays on the stack: {one.scratch(robot.dtype)} bytes."


def _counted(count: OperationCount) -> str:
    """The counts, and how many instructions they are."""
    plain = count.total
    text = str(replace(count, iteration=None))
    return (
        f"{text}, so {plain - count.fused} instructions with fused multiply-adds, {plain} without"
    )


def _choices(one: Wanted) -> str:
    if any(isinstance(region, For | Repeat) for region in one.program.regions):
        return ""
    ops = Counter(node.op for node in one.program.nodes())
    found = sum(ops[op] for op in CHOICES)
    return f", besides {found} comparisons" if found else ""


def sincos_operations(dialect: Dialect) -> tuple[int, int]:
    """Instructions of our sine and cosine: of every call, and the more that a large angle takes."""
    near, far = Code(dialect), Code(replace(dialect, bits=64))
    elementary.sincos(near, elementary.reduce(near, "x"))
    elementary.reduce_large(far, "x", dialect.bits)
    return len(near.lines), len(far.lines)


# -- source ---------------------------------------------------------------------------------------


def source(robot: Robot, functions: Sequence[Wanted]) -> str:
    """The source of all functions."""
    texts = [own_function(one.program, robot.dialect, "void", one.name) for one in functions]
    return "\n".join(
        (
            comment(robot.made),
            f'#include "{robot.prefix}.h"',
            "",
            HEAD,
            helpers(robot, {node.op for one in functions for node in one.program.nodes()}),
            *(line for one, text in zip(functions, texts, strict=True)
              for line in (comment(one.title), with_unused(one.program, text))),
        )
    )  # fmt: skip


def with_unused(program: Program, text: str) -> str:
    """The function; inputs that no result depends on are named, so that no compiler warns."""
    head, body = text.split("{\n", 1)
    unused = [word(port.name) for port in program.inputs if f"{word(port.name)}[" not in body]
    return "{\n".join((head, "".join(f"    (void){name};\n" for name in unused) + body))


def helpers(robot: Robot, ops: set[str]) -> str:
    """Multiply-adds, sines and angles, for machines with fused multiply-adds and others."""
    dialect = robot.dialect
    f, T = dialect.suffix, dialect.number
    fast = "FP_FAST_FMAF" if f else "FP_FAST_FMA"
    text = MULTIPLY_ADD.format(fast=fast, fma=f"fma{f}")
    if not ops & {"sin", "cos", "atan2"}:
        return text
    if robot.libm:
        return text + LIBM.format(f=f, T=T)
    fused, plain = (functions(ops, replace(dialect, fused=x)) for x in (True, False))
    if fused == plain:
        return text + fused
    return f"{text}#ifndef LINKWISE_PLAIN\n{fused}#else\n{plain}#endif\n"
