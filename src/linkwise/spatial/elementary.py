"""Sine, cosine, angles and lengths of floats, with the same bits on every processor.

The C library and NumPy choose their code for these functions by the kind of processor (with or
without fused multiply-adds, by the width of registers), and each choice rounds differently. The
constants of a robot must not depend on the machine that loads it. So floats go by exact integers
here: fixed point with `BITS` bits after the point, rounded once at the end. Results are correctly
rounded, unless the exact value is closer to the middle of two floats than 2^-60 of their distance.

Arrays take elementwise + - * and rounding to integers only, which IEEE 754 fixes: a million sines
in some 0.1 s, right to one unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BITS = 128
ONE = 1 << BITS
WIDE = 1300  # bits of pi/2 after the point: enough for the largest float less many right angles
NARROW, USUAL = 256, 2.0**30  # the same for angles up to here
TINY = 2.0**-27  # below it an angle's sine is the angle, its cosine 1, to half a last place
FLAT = 2.0**-60  # below it a quotient is its own angle


def _arctan_inverse(k: int, one: int) -> int:
    """The angle whose tangent is 1/k."""
    term = total = one // k
    n = 1
    while term:
        term //= -k * k
        n += 2
        total += term // n
    return total


def _half_pi(bits: int) -> int:
    """Machin's formula, with 64 bits to spare."""
    one = 1 << (bits + 64)
    return (8 * _arctan_inverse(5, one) - 2 * _arctan_inverse(239, one)) >> 64


HALF_PI = _half_pi(WIDE)


def sincos(angle: float) -> tuple[float, float]:
    """Sine and cosine of an angle in radians; NaN where it is not finite."""
    if not math.isfinite(angle):
        return math.nan, math.nan
    if abs(angle) < TINY:
        return float(angle), 1.0
    bits = NARROW if abs(angle) < USUAL else WIDE
    right = HALF_PI >> (WIDE - bits)
    top, bottom = angle.as_integer_ratio()
    x = (top << bits) // bottom
    n = (2 * x + right) // (2 * right)
    s, c = _series((x - n * right) >> (bits - BITS))
    s, c = ((s, c), (c, -s), (-s, -c), (-c, s))[n % 4]
    return s / ONE, c / ONE


def _series(r: int) -> tuple[int, int]:
    """Sine and cosine of an angle of at most an eighth of a turn."""
    square = (r * r) >> BITS
    term = total = r
    k = 1
    while term:
        term = -((term * square) >> BITS) // ((k + 1) * (k + 2))
        k += 2
        if abs(term) <= 1:
            break
        total += term
    return total, math.isqrt((ONE << BITS) - total * total)


def atan2(y: float, x: float) -> float:
    """The angle of the point (x, y) from the x axis, in [-pi, pi]; signs of zeros as in C."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    left = math.copysign(1.0, x) < 0.0
    high, wide = abs(y), abs(x)
    if math.isinf(high) or math.isinf(wide):
        high, wide = float(math.isinf(high)), float(math.isinf(wide))
    return math.copysign(_angle(high, wide, left), y)


def _angle(high: float, wide: float, left: bool) -> float:
    """The angle of a point in the upper half plane."""
    if high == 0.0:
        return _over(2 * HALF_PI, WIDE) if left else 0.0
    steep = high > wide
    small, large = (wide, high) if steep else (high, wide)
    if not (steep or left) and small < FLAT * large:
        return small / large
    (a, b), (c, d) = small.as_integer_ratio(), large.as_integer_ratio()
    angle = _arctan((a * d << BITS) // (b * c))
    right = HALF_PI >> (WIDE - BITS)
    if steep:
        angle = right + angle if left else right - angle
    elif left:
        angle = 2 * right - angle
    return angle / ONE


def _over(x: int, bits: int) -> float:
    return x / (1 << bits)


def _arctan(t: int) -> int:
    """The angle of a tangent of at most 1: halved three times, then a series."""
    for _ in range(3):
        t = (t << BITS) // (ONE + math.isqrt((ONE << BITS) + t * t))
    square = (t * t) >> BITS
    term = total = t
    k = 1
    while abs(term) > 1:
        term = -((term * square) >> BITS)
        k += 2
        total += term // k
    return 8 * total


def length(numbers: Iterable[float]) -> float:
    """The root of the sum of squares; no square overflows or vanishes."""
    x = [float(v) for v in numbers]
    if not all(map(math.isfinite, x)):
        return math.inf if any(map(math.isinf, x)) else math.nan
    ratios = [v.as_integer_ratio() for v in x]
    bottom = max(b for _, b in ratios)
    square = sum((a * (bottom // b)) ** 2 for a, b in ratios)
    shift = max(0, 2 * BITS - square.bit_length()) // 2 * 2  # the root has some BITS digits
    return math.isqrt(square << shift) / (bottom << (shift // 2))


# -- arrays ---------------------------------------------------------------------------------------

CHUNK = 4096  # numbers whose intermediate results stay in a fast cache
DIGITS = 40
LARGE = 2.0**19  # up to here the parts of pi/2 hold
EXACT = 33  # bits of a part, whose products with integers are exact
# of (sin r - r)/r³ and (cos r - 1 + r²/2)/r⁴ in powers of r², lowest first: the next minimax
# polynomials to these Taylor series on |r| <= pi/4, as in FreeBSD's msun
SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


def _parts() -> list[float]:
    """pi/2 in three parts of `EXACT` bits and a rest."""
    parts, rest = [], HALF_PI
    for _ in range(3):
        low = rest.bit_length() - EXACT
        parts.append(_over(rest >> low << low, WIDE))
        rest -= rest >> low << low
    return [*parts, _over(rest, WIDE)]


PARTS = _parts()


def sincos_array(angles: Array) -> tuple[Array, Array]:
    """Sines and cosines of a float64 array of any shape."""
    x = np.asarray(angles, dtype=np.float64).ravel()
    usual, out = np.abs(x) < LARGE, np.empty((2, x.size))
    for start in range(0, x.size, CHUNK):
        part = slice(start, start + CHUNK)
        out[:, part] = _usual(np.where(usual[part], x[part], 0.0))
    for k in np.flatnonzero(~usual):
        out[:, k] = sincos(float(x[k]))
    s, c = out.reshape(2, *np.shape(angles))
    return s, c


def _usual(x: Array) -> tuple[Array, Array]:
    """Sines and cosines of angles below `LARGE`."""
    n = np.rint(x * (2.0 / math.pi))
    r, low = x - n * PARTS[0], np.zeros_like(x)
    for part in PARTS[1:]:
        r, lost = _difference(r, n * part)
        low = low + lost
    z = r * r
    half = 0.5 * z
    rz, whole = z * r, 1.0 - half
    s = r - ((z * (0.5 * low - rz * _horner(z, SIN[1:])) - low) - rz * SIN[0])
    c = whole + (((1.0 - whole) - half) + (z * (z * _horner(z, COS)) - r * low))
    quarter = n.astype(np.int64) & 3
    swap = (quarter & 1) == 1
    sine = np.where(swap, c, s) * np.where(quarter >= 2, -1.0, 1.0)
    cosine = np.where(swap, s, c) * np.where((quarter == 1) | (quarter == 2), -1.0, 1.0)
    return sine, cosine


def _horner(z: Array, coefficients: tuple[float, ...]) -> Array:
    value = np.full_like(z, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * z + c
    return value


def _difference(a: Array, b: Array) -> tuple[Array, Array]:
    """``a - b`` rounded, and what rounding lost."""
    total = a - b
    back = a - total
    return total, (a - (total + back)) + (back - b)


def golden_steps(n: int) -> list[Decimal]:
    """``1/φ, 1/φ², ...``, n steps of a sequence that fills a cube of n dimensions evenly.

    φ is the positive root of ``x^(n+1) = x + 1``: the golden ratio for one dimension.
    """
    if not n:
        return []
    with localcontext() as context:
        context.prec = DIGITS
        phi = Decimal(2)
        for _ in range(100):  # each at least halves the error
            phi = (1 + phi) ** (Decimal(1) / (n + 1))
        return [phi ** -(j + 1) for j in range(n)]


def powers(end: float, n: int) -> Array:
    """``n`` numbers from 1 to ``end``, positive, each the same part of the one before.

    Decimals of `DIGITS` give the ratio and its powers: some of them, and the others as products of
    two, to 2 units in the last place.
    """
    with localcontext() as context:
        context.prec = DIGITS
        ratio = Decimal(end) ** (Decimal(1) / max(n - 1, 1))
        step = math.isqrt(n) + 1
        small = np.array([float(ratio**k) for k in range(step)])
        large = np.array([float(ratio ** (step * k)) for k in range(step)])
    return np.asarray(np.multiply.outer(large, small).ravel()[:n])
