"""Numbers with derivatives: a value, and its derivative along some directions.

Equations that are run with such numbers give their derivatives beside their values, forward, by
the rule of each operation. Values and derivatives are scalars of any one kind; a direction along
which nothing changes is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwise.spatial.scalar import (
    Scalar,
    _atan2,
    _divided,
    flagged,
    known,
    never_positive,
    quotient,
    reciprocal,
    rounding,
    select,
    sign,
    sincos,
    sqrt,
)

Slopes = Mapping[int, Scalar]  # by direction


class Dual:
    """A value and its derivatives."""

    __slots__ = ("slopes", "value")
    __array_ufunc__ = None  # numbers of NumPy leave arithmetic with duals to duals

    def __init__(self, value: Scalar, slopes: Slopes) -> None:
        self.value, self.slopes = value, slopes

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {dict(self.slopes)!r})"

    def slope(self, direction: int) -> Scalar:
        """The derivative along one direction."""
        return self.slopes.get(direction, 0.0)

    def __add__(self, o: Any) -> Dual:
        other = lifted(o)
        return Dual(self.value + other.value, _sum(self.slopes, other.slopes))

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, {k: -x for k, x in self.slopes.items()})

    def __sub__(self, o: Any) -> Dual:
        return self + -lifted(o)

    def __rsub__(self, o: Any) -> Dual:
        return lifted(o) - self

    def __mul__(self, o: Any) -> Dual:
        other = lifted(o)
        first, second = _scaled(self.slopes, other.value), _scaled(other.slopes, self.value)
        return Dual(self.value * other.value, _sum(first, second))

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Dual:
        return _ratio(self, lifted(o), lambda a, b: a / b)

    def __rtruediv__(self, o: Any) -> Dual:
        return lifted(o) / self


def lifted(x: Any) -> Dual:
    """A number that does not change, as a dual; a dual as it is."""
    return x if isinstance(x, Dual) else Dual(x, {})


def _sum(a: Slopes, b: Slopes) -> Slopes:
    return {**a, **{k: a[k] + x if k in a else x for k, x in b.items()}}


def _scaled(a: Slopes, k: Scalar) -> Slopes:
    return {direction: x * k for direction, x in a.items()}


def _ratio(a: Dual, b: Dual, divided: Any) -> Dual:
    """``(a / b)' = (a' - (a / b) b') / b``."""
    value, per = divided(a.value, b.value), divided(1.0, b.value)
    return Dual(value, _scaled(_sum(a.slopes, _scaled(b.slopes, -value)), per))


def _sincos(angle: Dual) -> tuple[Dual, Dual]:
    s, c = sincos(angle.value)
    return Dual(s, _scaled(angle.slopes, c)), Dual(c, _scaled(angle.slopes, -s))


def _sqrt(x: Dual) -> Dual:
    root = sqrt(x.value)
    return Dual(root, _scaled(x.slopes, quotient(0.5, root)))


def _angle(_: Dual, y: Any, x: Any) -> Dual:
    up, along = lifted(y), lifted(x)
    like = up.value if up.slopes else along.value
    square = up.value * up.value + along.value * along.value
    over, under = quotient(along.value, square), quotient(-up.value, square)
    value = _atan2(like, up.value, along.value)
    return Dual(value, _sum(_scaled(up.slopes, over), _scaled(along.slopes, under)))


def _select(condition: Dual, a: Any, b: Any) -> Dual:
    one, other = lifted(a), lifted(b)
    both = {**one.slopes, **other.slopes}
    slopes = {k: select(condition.value, one.slope(k), other.slope(k)) for k in both}
    return Dual(select(condition.value, one.value, other.value), slopes)


def _reciprocal(x: Dual, scale: Any = 0.0) -> Dual:
    value = reciprocal(x.value, lifted(scale).value)
    return Dual(value, _scaled(x.slopes, -(value * value)))


sincos.register(Dual, _sincos)
sqrt.register(Dual, _sqrt)
_atan2.register(Dual, _angle)
select.register(Dual, _select)
reciprocal.register(Dual, _reciprocal)
sign.register(Dual, lambda x: lifted(sign(x.value)))
known.register(Dual, lambda x: known(x.value))
never_positive.register(Dual, lambda x: never_positive(x.value))
rounding.register(Dual, lambda like: lifted(rounding(like.value)))
flagged.register(Dual, lambda x, bit: flagged(x.value, bit))
_divided.register(Dual, lambda b, a: _ratio(lifted(a), b, quotient))
