"""Numbers that know the size of the terms they were summed from.

A result that is zero except for rounding, such as the bias of a robot whose gravity and velocities
cancel, has no digits to compare: its error is judged against the terms. Running an algorithm on
these numbers gives their size, as a running error analysis does: sums add sizes, products multiply
them, and a quotient keeps the relative size of its divisor.
"""

from __future__ import annotations

import math
from typing import Any

from linkwise.spatial import scalar


class Magnitude(float):
    """A float with the sum of the absolute values of its terms."""

    size: float

    def __new__(cls, value: float, size: float | None = None) -> Magnitude:
        """Make a number; by itself, its size is its absolute value."""
        made = super().__new__(cls, value)
        made.size = abs(float(value)) if size is None else size
        return made

    def __add__(self, other: float) -> Magnitude:
        return Magnitude(float(self) + float(other), self.size + size_of(other))

    __radd__ = __add__

    def __sub__(self, other: float) -> Magnitude:
        return Magnitude(float(self) - float(other), self.size + size_of(other))

    def __rsub__(self, other: float) -> Magnitude:
        return Magnitude(float(other) - float(self), self.size + size_of(other))

    def __mul__(self, other: float) -> Magnitude:
        return Magnitude(float(self) * float(other), self.size * size_of(other))

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Magnitude:
        return self * inverse(other)

    def __rtruediv__(self, other: float) -> Magnitude:
        return inverse(self) * other

    def __neg__(self) -> Magnitude:
        return Magnitude(-float(self), self.size)

    def __abs__(self) -> Magnitude:
        return Magnitude(abs(float(self)), self.size)


def size_of(x: float) -> float:
    """The size of the terms of a number."""
    return x.size if isinstance(x, Magnitude) else abs(float(x))


def inverse(x: float) -> Magnitude:
    """``1/x``: as uncertain, relative to its value, as x is; NaN of zero."""
    value = 1.0 / float(x) if x else math.nan
    return Magnitude(value, abs(value) * (size_of(x) * abs(value)))


def _root(x: Magnitude) -> Magnitude:
    value = math.sqrt(x) if x >= 0 else math.nan
    return Magnitude(value, x.size / value if value > 0 else math.sqrt(x.size))


def _sincos(x: Magnitude) -> tuple[Magnitude, Magnitude]:
    return Magnitude(math.sin(x)), Magnitude(math.cos(x))


def _atan2(_: Any, y: float, x: float) -> Magnitude:
    return Magnitude(math.atan2(y, x))


scalar.sincos.register(Magnitude, _sincos)
scalar.sqrt.register(Magnitude, _root)
scalar.constant.register(Magnitude, lambda like, x: Magnitude(x))
scalar._atan2.register(Magnitude, _atan2)
scalar._divided.register(Magnitude, lambda b, a: a * inverse(b))
scalar.reciprocal.register(
    Magnitude, lambda x, scale=0.0: inverse(x) if x > 0 else Magnitude(math.nan)
)
