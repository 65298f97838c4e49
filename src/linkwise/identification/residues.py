"""Numbers without rounding: residues modulo a prime, many states side by side.

A function of states that is made of ``+ - * /`` can be computed modulo a prime P, with no rounding
at all. A matrix of such functions at random states has the rank there that it has over the rational
numbers, but for a chance of about 1/P for each pivot. Angles take part by their half-angle: with
t = tan(a/2), ``sin a = 2t/(1+t²)`` and ``cos a = (1-t²)/(1+t²)`` are rational, and a sine and a
cosine made so belong to one exact rotation. Here the residue of an angle stands for its t.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial import Rotation, Turn
from linkwise.spatial.scalar import sincos

P = 2**31 - 1  # so that products fit into 64 bits
Whole = NDArray[np.int64]


class Residue:
    """A number modulo P for each state; mixes with floats, which are exact fractions."""

    __slots__ = ("x",)
    __array_ufunc__ = None  # NumPy's numbers leave sums and products to the methods below

    def __init__(self, x: Any) -> None:
        self.x: Whole = np.asarray(x, np.int64) % P

    def __add__(self, o: Any) -> Residue:
        return Residue(self.x + _of(o))

    def __sub__(self, o: Any) -> Residue:
        return Residue(self.x - _of(o))

    def __rsub__(self, o: Any) -> Residue:
        return Residue(_of(o) - self.x)

    def __mul__(self, o: Any) -> Residue:
        return Residue(self.x * _of(o))

    def __truediv__(self, o: Any) -> Residue:
        return Residue(self.x * inverse(np.asarray(_of(o))))

    def __rtruediv__(self, o: Any) -> Residue:
        return Residue(_of(o) * inverse(self.x))

    def __neg__(self) -> Residue:
        return Residue(-self.x)

    __radd__, __rmul__ = __add__, __mul__


def _of(x: Any) -> Any:
    return x.x if isinstance(x, Residue) else fraction(float(x))


@lru_cache(maxsize=4096)
def fraction(x: float) -> int:
    """The residue of a float."""
    exact = Fraction(x)
    return exact.numerator * pow(exact.denominator, -1, P) % P


def inverse(x: Whole) -> Whole:
    """``1/x``, which is ``x^(P-2)``."""
    result, power, left = np.ones_like(x), x % P, P - 2
    while left:
        if left & 1:
            result = result * power % P
        power, left = power * power % P, left >> 1
    return result


@sincos.register
def _(half: Residue) -> tuple[Residue, Residue]:
    square = half * half
    per = 1.0 / (square + 1.0)
    return (half + half) * per, (1.0 - square) * per


def exact_turn(turn: Turn | Rotation) -> Turn:
    """A turn by the same angle to rounding, whose sine and cosine have squares that add up to 1."""
    assert isinstance(turn, Turn)  # frames of links are placed by turns about axes (frames.py)
    if 0.0 in (turn.c, turn.s):  # quarter turns are exact as they are
        return turn
    s, c = sincos(Residue(fraction(turn.s / (1.0 + turn.c))))
    return Turn(turn.axis, c, s)


def independent_columns(rows: Whole) -> list[int]:
    """The columns that are no combination of those to their left, by elimination modulo P."""
    A, chosen = rows % P, list[int]()
    for k in range(A.shape[1]):
        at = len(chosen)
        if at == len(A):
            break
        found = np.flatnonzero(A[at:, k])
        if not len(found):
            continue
        A[[at, at + found[0]]] = A[[at + found[0], at]]
        pivot = A[at] * inverse(A[at, k : k + 1]) % P
        below = np.flatnonzero(A[at + 1 :, k]) + at + 1
        A[below, k:] = (A[below, k:] - A[below, k : k + 1] * pivot[k:]) % P
        chosen.append(k)
    return chosen
