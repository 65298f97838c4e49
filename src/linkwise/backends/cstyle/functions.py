"""Sine, cosine and atan2 as C functions (`elementary.py`): the same bits as on every backend.

Equal bits need a compiler that does not fuse on its own: ``-ffp-contract=off``.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace

import numpy as np

from linkwise.backends import elementary


@dataclass(frozen=True)
class Dialect:
    """A number type, and how functions are declared."""

    bits: int = 64
    inline: str = "static inline"  # a function that is worth a copy wherever it is called
    apart: str = "static"  # one that is rarely called, and large
    fused: bool = True  # a multiply-add rounds once
    multiply_add: str = ""  # the name of the function or macro for it; the library's unless given
    reciprocal: str = ""  # a function for 1/x, where there is a better one than division

    @property
    def number(self) -> str:
        """The number type."""
        return "double" if self.bits == 64 else "float"

    @property
    def suffix(self) -> str:
        """What literals and the names of the library's functions end in."""
        return "" if self.bits == 64 else "f"

    @property
    def fma(self) -> str:
        """The function of a multiply-add."""
        return self.multiply_add or f"fma{self.suffix}"

    def literal(self, x: float) -> str:
        """A constant, rounded to the number type and then exact."""
        with np.errstate(over="ignore"):
            value = x if self.bits == 64 else float(np.float32(x))
        if not math.isfinite(value):
            return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
        text = f"{value!r}{self.suffix}"
        return f"({text})" if text.startswith("-") else text


NUMBER, INTEGER, MASK = "{T}", "uint{bits}_t", "int"

# operation -> the type of its result, and its expression; f: the suffix of the number type, fma:
# the function of multiply-adds
EXPRESSIONS = {
    "add": (NUMBER, "{0} + {1}"),
    "sub": (NUMBER, "{0} - {1}"),
    "mul": (NUMBER, "{0} * {1}"),
    "div": (NUMBER, "{0} / {1}"),
    "neg": (NUMBER, "-{0}"),
    "abs": (NUMBER, "fabs{f}({0})"),
    "fma": (NUMBER, "{fma}({0}, {1}, {2})"),
    "choose": (NUMBER, "{0} ? {1} : {2}"),
    "greater": (MASK, "{0} > {1}"),
    "equal": (MASK, "{0} == {1}"),
    "unequal": (MASK, "{0} != {1}"),
    "below": (MASK, "(int{bits}_t){0} < (int{bits}_t){1}"),
    "differ": (MASK, "{0} != {1}"),
    "bits": (INTEGER, "bits_of{f}({0})"),
    "from_bits": (NUMBER, "from_bits{f}({0})"),
    "to_number": (NUMBER, "(double)(int64_t){0}"),
    "plus": (INTEGER, "{0} + {1}"),
    "minus": (INTEGER, "{0} - {1}"),
    "times": (INTEGER, "{0} * {1}"),
    "and": (INTEGER, "{0} & {1}"),
    "or": (INTEGER, "{0} | {1}"),
    "xor": (INTEGER, "{0} ^ {1}"),
    "left": (INTEGER, "{0} << {1}"),
    "right": (INTEGER, "{0} >> {1}"),
    "right_signed": (INTEGER, "(uint64_t)((int64_t){0} >> {1})"),
    "carry": (INTEGER, "{0} < {1}"),
    "high": (INTEGER, "high({0}, {1})"),
    "word": (INTEGER, "two_pi_inverse[{0}]"),
}

BITS = """\
{inline} uint{bits}_t bits_of{f}({T} x) {{ uint{bits}_t n; memcpy(&n, &x, sizeof n); return n; }}
{inline} {T} from_bits{f}(uint{bits}_t n) {{ {T} x; memcpy(&x, &n, sizeof x); return x; }}
"""

HIGH = """\
/* The upper half of a product. */
static uint64_t high(uint64_t a, uint64_t b)
{
    const uint64_t low = 0xffffffffu;
    const uint64_t cross = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (((cross & low) + (a & low) * (b >> 32)) >> 32);
}
"""


class Code:
    """Operations on one state's numbers, written as C."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect, self.bits, self.fused = dialect, dialect.bits, dialect.fused
        self.names = {"T": dialect.number, "bits": str(dialect.bits), "f": dialect.suffix}
        self.names["fma"] = dialect.fma
        self.lines: list[str] = []

    def number(self, x: float) -> str:
        """A constant."""
        return self.dialect.literal(x)

    def integer(self, n: int) -> str:
        """A constant integer."""
        if 0 <= n < 1 << 31:
            return str(n)
        return f"UINT{self.bits}_C({n % (1 << self.bits):#x})"

    def do(self, operation: str, *values: str) -> str:
        """One more operation; returns its result."""
        kind, expression = (text.format(*values, **self.names) for text in EXPRESSIONS[operation])
        name = f"t{len(self.lines)}"
        self.lines.append(f"    const {kind} {name} = {expression};")
        return name


def functions(ops: set[str], dialect: Dialect) -> str:
    """The C functions that programs with these operations call; sources may be put together."""
    bits, parts = dialect.bits, {}
    if ops & {"sin", "cos", "atan2"}:
        parts[f"BITS{bits}"] = _bits(dialect)
    if ops & {"sin", "cos"}:
        parts["BITS64"] = _bits(replace(dialect, bits=64))
        parts["LARGE"] = HIGH + _two_pi_inverse()
        parts[f"SINCOS{bits}"] = _reduce_large(dialect) + _sincos(dialect)
    if "atan2" in ops:
        parts[f"ATAN2{bits}"] = _atan2(dialect)
    return "".join(
        f"#ifndef LINKWISE_{name}\n#define LINKWISE_{name}\n{text}#endif\n\n"
        for name, text in parts.items()
    )


def _bits(dialect: Dialect) -> str:
    return BITS.format(T=dialect.number, bits=dialect.bits, f=dialect.suffix, inline=dialect.inline)


def _two_pi_inverse() -> str:
    words = ", ".join(f"UINT64_C({word:#x})" for word in elementary.two_pi_inverse())
    lines = "\n".join(textwrap.wrap(words, 96, initial_indent="    ", subsequent_indent="    "))
    return f"static const uint64_t two_pi_inverse[] = {{\n{lines}\n}};\n"


def _reduce_large(dialect: Dialect) -> str:
    """The reduction of large angles, in float64 for every number type."""
    code, T, f = Code(replace(dialect, bits=64)), dialect.number, dialect.suffix
    far = elementary.reduce_large(code, "x", dialect.bits)
    return "\n".join(
        (
            f"typedef struct {{ {T} r, turns; }} reduced{f};",
            "",
            f"{dialect.apart} reduced{f} reduce_large{f}(double x)",
            "{",
            *code.lines,
            f"    const reduced{f} found = {{({T}){far.r}, ({T}){far.t}}};",
            "    return found;",
            "}",
            "",
            "",
        )
    )


def _sincos(dialect: Dialect) -> str:
    code, T, f = Code(dialect), dialect.number, dialect.suffix
    near = elementary.reduce(code, "x")
    limit = code.number(elementary.limit(code.bits, code.fused))
    code.lines += [
        f"    reduced{f} angle = {{{near.r}, {near.t}}};",
        f"    if (fabs{f}(x) > {limit}) angle = reduce_large{f}(x);",
    ]
    sine, cosine = elementary.sincos(code, elementary.Reduced("angle.r", "angle.turns"))
    return "\n".join(
        (
            f"{dialect.inline} void linkwise_sincos{f}({T} x, {T} *sine, {T} *cosine)",
            "{",
            *code.lines,
            f"    *sine = {sine};",
            f"    *cosine = {cosine};",
            "}",
            "",
        )
    )


def _atan2(dialect: Dialect) -> str:
    code, T = Code(dialect), dialect.number
    angle = elementary.atan2(code, "y", "x")
    head = f"{dialect.inline} {T} linkwise_atan2{dialect.suffix}({T} y, {T} x)"
    return "\n".join((head, "{", *code.lines, f"    return {angle};", "}", ""))
