"""Sine, cosine and the angle of a point: written once, over the operations that machines have.

A backend hands in its `Code` and gets lines of its own language; it has a row in a table for each
operation. So every backend performs the same roundings, and a state has the same bits on all.

    numbers    add sub mul div neg abs, fma (a*b + c, in one rounding where the machine can),
               choose (the second where the first, a mask, holds, else the third)
    masks      greater equal (of numbers), unequal below (of integers, signed), differ (of masks)
    integers   bits (those of a number), from_bits, plus and xor left
    64 bits    minus times high (upper half of a product) or right, right_signed, carry (1 where the
               first is below the second, else 0), to_number (of a signed integer), word (of
               `two_pi_inverse`, by its place): for `reduce_large` alone

Sine and cosine, of every finite angle to 2.2e-16 (float32: 1.1e-7) absolute:

    n = round(x 2/pi),  r = x - n pi/2  (pi/2 in parts; with fused multiply-adds the first step is
    exact),  sin r and cos r by polynomials on |r| <= pi/4, then swapped and signed by n mod 4.

The parts hold up to a limit. Larger angles are rare; a Payne-Hanek reduction with 192 bits of
1/(2 pi) finds r and n for them. Infinite and NaN angles give NaN.

The angle of (x, y), to 2 units in the last place, for every pair of numbers:

    small = min(|x|, |y|),  large = max(|x|, |y|)
    t = small / large,  or (small - large) / (small + large) where small > large / 2

Then |t| <= 1/2, the difference is exact, and the angle is ``k pi/4 ± atan t`` with k from 0 to 4,
atan t by a polynomial; ``k pi/4`` is added in two parts. Signs of zeros count as in IEEE 754, and
(0, 0) has the angle 0; two infinite numbers have none (NaN).

Coefficients: tools/sincos_coefficients.py.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple, Protocol

SIN = {
    64: (1.591810123027412e-10, -2.5051131455427946e-08, 2.755731610068303e-06,
         -0.0001984126983675497, 0.008333333333330946, -0.16666666666666666),
    32: (-0.00019587840521305324, 0.008332748037517147, -0.16666664661114838),
}  # fmt: skip
COS = {
    64: (-1.1382614868556325e-11, 2.0876146024689747e-09, -2.7557317270560326e-07,
         2.4801587298763433e-05, -0.0013888888888887395, 0.041666666666666664),
    32: (2.454789161981386e-05, -0.0013888302802309161, 0.04166666465830042),
}  # fmt: skip
ATAN = {
    64: (-0.009215792047089858, 0.025006503566489507, -0.03806653672057366, 0.04628024868570153,
         -0.05240099507994713, 0.05879578429582425, -0.06666435677235948, 0.07692294712540285,
         -0.09090908620322523, 0.11111111100917376, -0.14285714285599188, 0.19999999999999488,
         -0.3333333333333333),
    32: (0.04225685963021552, -0.08235505763636282, 0.11006880681346318, -0.14279801095810957,
         0.1999987524978264, -0.33333332901484686),
}  # fmt: skip
QUARTER = {  # pi/4 in parts
    64: (math.pi / 4, 3.061616997868383e-17),
    32: (0.7853981852531433, -2.185569500093120e-08),
}

# pi/2 in parts. Fused: each part is the rest rounded. Plain: leading parts are short, so that
# their products with n are exact.
PARTS_FUSED = {
    64: (1.5707963267948966, 6.123233995736766e-17),
    32: (1.5707963705062866, -4.371139000186241e-08, -1.7151245100058819e-15),
}
PARTS_PLAIN = {
    64: (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    32: (1.5703125, 0.0004838267783634, 6.077094383e-11),
}
LIMIT_FUSED = {64: 2.0**30, 32: 2.0**16}
LIMIT_PLAIN = {64: 2.0**19, 32: 2.0**9}

SHIFT = {64: 1.5 * 2.0**52, 32: 1.5 * 2.0**23}  # adding it rounds to an integer in the low bits
MOST = {64: (2.0 - 2.0**-52) * 2.0**1023, 32: (2.0 - 2.0**-23) * 2.0**127}  # the largest number

TABLE_BITS = 1216


class Code(Protocol):
    """Source code under construction; a value is the text that stands for it."""

    bits: int  # of a number: 64 or 32
    fused: bool  # a multiply-add rounds once

    def number(self, x: float) -> str:
        """A constant."""

    def integer(self, n: int) -> str:
        """A constant integer of as many bits as a number has."""

    def do(self, operation: str, *values: str) -> str:
        """One more operation; returns its result."""


class Reduced(NamedTuple):
    """An angle less the nearest multiple of a right angle; ``t`` holds the multiple in low bits."""

    r: str
    t: str


def polynomial(code: Code, z: str, coefficients: tuple[float, ...]) -> str:
    """Horner's scheme, highest power first."""
    value = code.number(coefficients[0])
    for c in coefficients[1:]:
        value = code.do("fma", value, z, code.number(c))
    return value


# -- sine and cosine ------------------------------------------------------------------------------


def limit(bits: int, fused: bool) -> float:
    """The largest angle that `reduce` is good for."""
    return (LIMIT_FUSED if fused else LIMIT_PLAIN)[bits]


def reduce(code: Code, x: str) -> Reduced:
    """An angle of ordinary size."""
    shift = code.number(SHIFT[code.bits])
    t = code.do("fma", x, code.number(2 / math.pi), shift)
    minus = code.do("neg", code.do("sub", t, shift))
    r = x
    for part in (PARTS_FUSED if code.fused else PARTS_PLAIN)[code.bits]:
        r = code.do("fma", minus, code.number(part), r)
    return Reduced(r, t)


def sincos(code: Code, angle: Reduced) -> tuple[str, str]:
    """Sine and cosine of a reduced angle."""
    r, n, one = angle.r, angle.t, code.integer(1)
    z = code.do("mul", r, r)
    rz = code.do("mul", r, z)
    zz = code.do("mul", z, z)
    s = code.do("fma", rz, polynomial(code, z, SIN[code.bits]), r)
    head = code.do("fma", z, code.number(-0.5), code.number(1.0))
    c = code.do("fma", zz, polynomial(code, z, COS[code.bits]), head)
    n = code.do("bits", n)
    swap = code.do("unequal", code.do("and", n, one), code.integer(0))
    sine = code.do("choose", swap, c, s)
    cosine = code.do("choose", swap, s, c)
    following = code.do("plus", n, one)
    return _signed(code, sine, n), _signed(code, cosine, following)


def _signed(code: Code, value: str, n: str) -> str:
    """``value``, negated where bit 1 of n is set."""
    return _negated(code, value, code.do("left", n, code.integer(code.bits - 2)))


def _negated(code: Code, value: str, like: str) -> str:
    """``value``, negated where the highest bit of ``like`` is set."""
    sign = code.do("and", like, code.integer(-(1 << (code.bits - 1))))
    return code.do("from_bits", code.do("xor", code.do("bits", value), sign))


def reduce_large(code: Code, x: str, bits: int) -> Reduced:
    """A float64 angle beyond the limit of numbers of so many bits, by ``code`` of float64.

    With x = m 2^e, m of 53 bits, the turns are m 2^e / (2 pi). Bits of 1/(2 pi) above a window of
    192 (and up to 7 more, for the window starts with a byte) make whole turns, those below it do
    not matter. So the product of m and the window, in words of 64 bits, has in its third word, less
    those few bits, the fraction of a turn; the nearest quarter of it is n, the rest r.
    """

    def do(operation: str, a: str, b: str | int) -> str:
        return code.do(operation, a, code.integer(b) if isinstance(b, int) else b)

    size = code.do("abs", x)
    raw = code.do("bits", size)
    e = do("minus", do("right", raw, 52), 1075)
    m = do("or", do("and", raw, (1 << 52) - 1), 1 << 52)
    above = do("minus", code.integer(TABLE_BITS - 192), e)
    extra, start = do("and", above, 7), do("and", above, 56)
    first = do("right", above, 6)
    words = [code.do("word", do("plus", first, k)) for k in range(5)]
    w = [_joined(code, a, b, start) for a, b in pairwise(words)]
    low = [do("times", part, m) for part in w[1:]]  # of the second word on
    high = [do("high", part, m) for part in w[:3]]
    carried = do("carry", do("plus", low[0], high[0]), high[0])
    more = do("plus", high[1], carried)
    third = do("plus", low[1], more)
    fourth = do("plus", do("plus", low[2], high[2]), do("carry", third, more))
    turn = _joined(code, third, fourth, extra)
    n = do("right_signed", do("plus", turn, 1 << 61), 62)
    left = do("minus", turn, do("left", n, 62))
    r = do("mul", code.do("to_number", left), code.number(math.pi / 2 * 2.0**-62))
    turns = code.do("to_number", n)
    negative = do("greater", code.number(0.0), x)
    r = code.do("choose", negative, code.do("neg", r), r)
    turns = code.do("choose", negative, code.do("neg", turns), turns)
    endless = do("equal", size, code.number(math.inf))
    r = code.do("choose", endless, code.number(math.nan), r)
    return Reduced(r, do("add", turns, code.number(SHIFT[bits])))


def _joined(code: Code, low: str, high: str, by: str) -> str:
    """64 bits of two words, from bit ``by`` of the lower one on."""
    rest = code.do("left", high, code.do("minus", code.integer(63), by))
    rest = code.do("left", rest, code.integer(1))
    return code.do("or", code.do("right", low, by), rest)


def two_pi_inverse() -> list[int]:
    """2^TABLE_BITS / (2 pi) in words of 64 bits, lowest first, from Machin's formula."""
    digits = TABLE_BITS + 64
    unit = 1 << digits

    def arctan_inverse(x: int) -> int:
        term = total = unit // x
        k, sign = 1, -1
        while term:
            term //= x * x
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    value = (1 << (digits + TABLE_BITS)) // (2 * pi)
    return [value >> 64 * k & (1 << 64) - 1 for k in range(TABLE_BITS // 64 + 3)]


# -- angles ---------------------------------------------------------------------------------------


def atan2(code: Code, y: str, x: str) -> str:
    """The angle of the point (x, y)."""
    zero, one, bits = code.number(0.0), code.number(1.0), code.bits
    wide, high = code.do("abs", x), code.do("abs", y)
    steep = code.do("greater", high, wide)
    large, small = code.do("choose", steep, high, wide), code.do("choose", steep, wide, high)
    # a quarter of both, where their sum could overflow
    huge = code.do("greater", large, code.number(MOST[bits] / 4))
    scale = code.do("choose", huge, code.number(0.25), one)
    large, small = code.do("mul", large, scale), code.do("mul", small, scale)
    half = code.do("mul", large, code.number(0.5))
    diagonal = code.do("greater", small, half)
    above = code.do("choose", diagonal, code.do("sub", small, large), small)
    below = code.do("choose", diagonal, code.do("add", small, large), large)
    origin = code.do("equal", below, zero)
    t = code.do("div", above, code.do("choose", origin, one, below))
    z = code.do("mul", t, t)
    tz = code.do("mul", t, z)
    angle = code.do("fma", tz, polynomial(code, z, ATAN[bits]), t)

    left = code.do("below", code.do("bits", x), code.integer(0))  # of a zero too
    turned = code.do("differ", left, steep)
    angle = code.do("choose", turned, code.do("neg", angle), angle)
    across = code.do("choose", left, code.number(3.0), one)
    along = code.do("choose", left, code.number(4.0), zero)
    along = code.do("choose", steep, code.number(2.0), along)
    k = code.do("choose", diagonal, across, along)
    main, rest = (code.number(part) for part in QUARTER[bits])
    angle = code.do("fma", k, rest, angle)
    angle = code.do("fma", k, main, angle)
    return _negated(code, angle, code.do("bits", y))
