"""Sine, cosine and atan2 as C functions (`elementary.py`): the same bits as on every backend.

Equal bits need a compiler that does not fuse on its own: ``-ffp-contract=off``.
"""

from __future__ import annotations

import math

from linkwise.backends import elementary

NUMBER, INTEGER, MASK = "double", "uint64_t", "int"

# operation -> the type of its result, and its expression
EXPRESSIONS = {
    "add": (NUMBER, "{0} + {1}"),
    "sub": (NUMBER, "{0} - {1}"),
    "mul": (NUMBER, "{0} * {1}"),
    "div": (NUMBER, "{0} / {1}"),
    "neg": (NUMBER, "-{0}"),
    "abs": (NUMBER, "fabs({0})"),
    "fma": (NUMBER, "fma({0}, {1}, {2})"),
    "choose": (NUMBER, "{0} ? {1} : {2}"),
    "greater": (MASK, "{0} > {1}"),
    "equal": (MASK, "{0} == {1}"),
    "unequal": (MASK, "{0} != {1}"),
    "below": (MASK, "(int64_t){0} < (int64_t){1}"),
    "differ": (MASK, "{0} != {1}"),
    "bits": (INTEGER, "bits_of({0})"),
    "from_bits": (NUMBER, "from_bits({0})"),
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
static uint64_t bits_of(double x) { uint64_t n; memcpy(&n, &x, sizeof n); return n; }
static double from_bits(uint64_t n) { double x; memcpy(&x, &n, sizeof x); return x; }
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

    bits, fused = 64, True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = "    "

    def number(self, x: float) -> str:
        """A constant."""
        return number(x)

    def integer(self, n: int) -> str:
        """A constant integer."""
        return str(n) if 0 <= n < 1 << 31 else f"UINT64_C({n % (1 << 64):#x})"

    def do(self, operation: str, *values: str) -> str:
        """One more operation; returns its result."""
        kind, expression = EXPRESSIONS[operation]
        name = f"t{len(self.lines)}"
        self.lines.append(f"{self.indent}const {kind} {name} = {expression.format(*values)};")
        return name


def number(x: float) -> str:
    """A constant, exact."""
    if not math.isfinite(x):
        return "NAN" if math.isnan(x) else "INFINITY" if x > 0 else "(-INFINITY)"
    return repr(x) if x >= 0.0 else f"({x!r})"


def functions(ops: set[str]) -> str:
    """The C functions that programs with these operations call; sources may be put together."""
    parts = {"BITS": BITS} if ops & {"sin", "cos", "atan2"} else {}
    parts |= {"SINCOS": f"{HIGH}\n{_sincos()}"} if ops & {"sin", "cos"} else {}
    parts |= {"ATAN2": _atan2()} if "atan2" in ops else {}
    return "".join(
        f"#ifndef LINKWISE_{name}\n#define LINKWISE_{name}\n{text}#endif\n\n"
        for name, text in parts.items()
    )


def _sincos() -> str:
    code = Code()
    near = elementary.reduce(code, "x")
    limit = number(elementary.limit(code.bits, code.fused))
    code.lines += [f"    double r = {near.r}, turns = {near.t};", f"    if (fabs(x) > {limit}) {{"]
    code.indent = "        "
    far = elementary.reduce_large(code, "x", code.bits)
    code.lines += [f"        r = {far.r};", f"        turns = {far.t};", "    }"]
    code.indent = "    "
    sine, cosine = elementary.sincos(code, elementary.Reduced("r", "turns"))
    words = ",\n".join(f"    {code.integer(word)}" for word in elementary.two_pi_inverse())
    return "\n".join(
        (
            f"static const uint64_t two_pi_inverse[] = {{\n{words}\n}};",
            "",
            "static void linkwise_sincos(double x, double *sine, double *cosine)",
            "{",
            *code.lines,
            f"    *sine = {sine};",
            f"    *cosine = {cosine};",
            "}",
            "",
        )
    )


def _atan2() -> str:
    code = Code()
    angle = elementary.atan2(code, "y", "x")
    head = "static double linkwise_atan2(double y, double x)"
    return "\n".join((head, "{", *code.lines, f"    return {angle};", "}", ""))
