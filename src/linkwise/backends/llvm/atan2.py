"""The angle of a point (x, y) in line, to 2 units in the last place, for every pair of numbers.

    small = min(|x|, |y|),  large = max(|x|, |y|)
    t = small / large,  or (small - large) / (small + large) where small > large / 2

Then |t| <= 1/2, the difference is exact, and the angle is ``k pi/4 ± atan t`` with k from 0 to 4,
atan t by a polynomial; ``k pi/4`` is added in two parts. Signs of zeros count as in IEEE 754, and
(0, 0) has the angle 0; two infinite numbers have none (NaN).
Coefficients: tools/sincos_coefficients.py.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.backends.llvm.sincos import multiply_add, polynomial
from linkwise.backends.llvm.types import Lanes, Lines

ATAN = {
    64: (-0.009215792047089858, 0.025006503566489507, -0.03806653672057366, 0.04628024868570153,
         -0.05240099507994713, 0.05879578429582425, -0.06666435677235948, 0.07692294712540285,
         -0.09090908620322523, 0.11111111100917376, -0.14285714285599188, 0.19999999999999488,
         -0.3333333333333333),
    32: (0.04225685963021552, -0.08235505763636282, 0.11006880681346318, -0.14279801095810957,
         0.1999987524978264, -0.33333332901484686),
}  # fmt: skip
QUARTER = {
    64: (math.pi / 4, 3.061616997868383e-17),
    32: (0.7853981852531433, -2.185569500093120e-08),
}


def emit_atan2(out: Lines, lanes: Lanes, fused: bool, y: str, x: str) -> str:
    """The angle of each lane."""
    T, bit, bits = lanes.type, lanes.vector("i1"), lanes.number.bits
    zero = lanes.constant(0.0)

    def choose(mask: str, a: str, b: str) -> str:
        return out.let(f"select {bit} {mask}, {T} {a}, {T} {b}")

    wide, high = (_absolute(out, lanes, v) for v in (x, y))
    steep = out.let(f"fcmp ogt {T} {high}, {wide}")
    large, small = choose(steep, high, wide), choose(steep, wide, high)
    # a quarter of both, where their sum could overflow
    most = float(np.finfo(lanes.number.dtype).max)
    huge = out.let(f"fcmp ogt {T} {large}, {lanes.constant(most / 4)}")
    scale = choose(huge, lanes.constant(0.25), lanes.constant(1.0))
    large, small = (out.let(f"fmul {T} {v}, {scale}") for v in (large, small))
    half = out.let(f"fmul {T} {large}, {lanes.constant(0.5)}")
    diagonal = out.let(f"fcmp ogt {T} {small}, {half}")
    above = choose(diagonal, out.let(f"fsub {T} {small}, {large}"), small)
    below = choose(diagonal, out.let(f"fadd {T} {small}, {large}"), large)
    origin = out.let(f"fcmp oeq {T} {below}, {zero}")
    t = out.let(f"fdiv {T} {above}, {choose(origin, lanes.constant(1.0), below)}")
    z = out.let(f"fmul {T} {t}, {t}")
    tz = out.let(f"fmul {T} {t}, {z}")
    angle = multiply_add(out, lanes, fused, tz, polynomial(out, lanes, fused, z, ATAN[bits]), t)

    left = _negative(out, lanes, x)
    turned = out.let(f"xor {bit} {left}, {steep}")
    angle = choose(turned, out.let(f"fneg {T} {angle}"), angle)
    across = choose(left, lanes.constant(3.0), lanes.constant(1.0))
    along = choose(steep, lanes.constant(2.0), choose(left, lanes.constant(4.0), zero))
    k = choose(diagonal, across, along)
    main, rest = (lanes.constant(part) for part in QUARTER[bits])
    angle = multiply_add(out, lanes, fused, k, rest, angle)
    angle = multiply_add(out, lanes, fused, k, main, angle)
    return _with_sign_of(out, lanes, angle, y)


def _absolute(out: Lines, lanes: Lanes, x: str) -> str:
    return out.let(f"call {lanes.type} @llvm.fabs.{lanes.suffix}({lanes.type} {x})")


def _negative(out: Lines, lanes: Lanes, x: str) -> str:
    """Whether the sign of x is set, of a zero too."""
    raw = out.let(f"bitcast {lanes.type} {x} to {lanes.integer}")
    return out.let(f"icmp slt {lanes.integer} {raw}, {lanes.bits(0)}")


def _with_sign_of(out: Lines, lanes: Lanes, value: str, y: str) -> str:
    """``value`` negated where the sign of y is set."""
    T, I = lanes.type, lanes.integer  # noqa: E741
    raw, given = (out.let(f"bitcast {T} {v} to {I}") for v in (value, y))
    sign = out.let(f"and {I} {given}, {lanes.bits(-(1 << (lanes.number.bits - 1)))}")
    return out.let(f"bitcast {I} {out.let(f'xor {I} {raw}, {sign}')} to {T}")
