"""What a scalar must do.

A scalar has ``+ - * /`` and unary minus with its own kind and with Python floats, and the
functions below are registered for its type. Floats and NumPy arrays are registered here; traced
nodes in ``trace/expr.py``; mpmath numbers in ``precise.py``. Of floats and float64 arrays they give
the same bits on every processor (``elementary.py``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce, singledispatch
from operator import add
from typing import Any

import numpy as np

from linkwise.spatial import elementary

# Any type that satisfies the sentence above; the algebra is generic over it.
Scalar = Any
Vector = Sequence[Scalar]
Matrix = list[list[Scalar]]  # by rows
# rounding units beside its scale below which a pivot of constraints counts as zero
INDEPENDENT = 2.0**8
Step = Callable[[list[Scalar]], tuple[Sequence[Scalar], Scalar]]


@singledispatch
def sincos(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of an angle in radians."""
    raise TypeError(f"sincos: no rule for {type(angle).__name__}; register one")


@singledispatch
def constant(like: Scalar, x: float) -> Scalar:
    """A link's constant as the kind of number ``like`` is; a float where no kind is registered."""
    return x


@singledispatch
def sign(x: Scalar) -> Scalar:
    """1, 0 or -1 as x is positive, zero or negative; NaN for NaN."""
    raise TypeError(f"sign: no rule for {type(x).__name__}; register one")


@singledispatch
def sqrt(x: Scalar) -> Scalar:
    """The square root; NaN of negative numbers."""
    raise TypeError(f"sqrt: no rule for {type(x).__name__}; register one")


@singledispatch
def select(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """``a`` where the condition is positive, else ``b``; both are computed."""
    return a if condition > 0 else b


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y) from the x axis, in [-pi, pi]."""
    for like in (y, x):
        if _atan2.dispatch(type(like)) is not _atan2.dispatch(object):
            return _atan2(like, y, x)
    return elementary.atan2(y, x)


@singledispatch
def _atan2(like: Scalar, y: Scalar, x: Scalar) -> Scalar:
    raise TypeError(f"atan2: no rule for {type(like).__name__}; register one")


def _array_atan2(_: Any, y: Any, x: Any) -> Any:
    near = np.arctan2(np.real(y), np.real(x))
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return near
    # turned back by the angle of the real parts, the point lies near the x axis
    c, s = np.cos(near), np.sin(near)
    return near + np.arctan((c * y - s * x) / (c * x + s * y))


def repeat(step: Step, state: Sequence[Scalar], limit: Scalar) -> list[Scalar]:
    """Run ``step(state) -> (next state, active)`` at most ``limit`` times, while ``active > 0``.

    With several states side by side (an array, a traced batch) each stops on its own and keeps what
    it has.
    """
    for x in (*state, limit):
        rule = _repeat.dispatch(type(x))
        if rule is not _repeat.dispatch(object):
            return rule(x, step, state, limit)
    return _repeat(state[0], step, state, limit)


@singledispatch
def _repeat(_: Scalar, step: Step, state: Sequence[Scalar], limit: Scalar) -> list[Scalar]:
    now, count = list(state), 0
    while count < limit:
        new, active = step(now)
        if not active > 0:
            break
        now, count = list(new), count + 1
    return now


@_repeat.register(np.ndarray)
def _(_: Any, step: Step, state: Sequence[Scalar], limit: Scalar) -> list[Scalar]:
    now = [np.asarray(x) for x in state]
    for count in itertools.count():
        new, active = step(now)
        going = (np.asarray(active) > 0) & (count < np.asarray(limit))
        if not going.any():
            break
        now = [np.where(going, a, b) for a, b in zip(new, now, strict=True)]
    return now


def total(terms: Iterable[Scalar]) -> Scalar:
    """The sum from the first term to the last, 0 of none.

    Python's own ``sum`` of floats rounds in another way from 3.12 on.
    """
    return reduce(add, terms, 0.0)


def quotient(a: Scalar, b: Scalar) -> Scalar:
    """``a / b``; not a number where b is zero, in every kind of number."""
    return _divided(b, a)


@singledispatch
def _divided(b: Scalar, a: Scalar) -> Scalar:
    return a / b


@singledispatch
def reciprocal(x: Scalar, scale: Scalar = 0.0) -> Scalar:
    """``1/x`` of a pivot, which is positive and not tiny beside ``scale`` where there is an answer.

    A solve divides once per pivot, here, and multiplies after; so tracing knows every pivot.
    """
    return 1.0 / x


@singledispatch
def flagged(x: Scalar, bit: str) -> None:
    """Where x is positive, a state's status has a bit: "REDUNDANT" or "NOT_CONVERGED".

    Only tracing keeps it.
    """


@singledispatch
def never_positive(x: Scalar) -> bool:
    """Whether a scalar is known to be zero or less in every state."""
    return False


def reciprocal_if_independent(x: Scalar, scale: Scalar) -> Scalar:
    """``1/x`` of a pivot that may be zero, 0 where it is, to rounding beside its scale.

    What the pivot belongs to then depends on what was eliminated before, and is left out; the state
    is flagged as redundant.
    """
    if never_positive(x):
        flagged(0.0 * scale + 1.0, "REDUNDANT")
        return 0.0
    left = x - (INDEPENDENT * rounding(scale)) * scale
    flagged(-left, "REDUNDANT")
    return select(left, 1.0 / select(x, x, 1.0), 0.0)  # the division need not wait for the scale


def reciprocal_if_regular(x: Scalar, scale: Scalar) -> Scalar:
    """``1/x`` of a pivot; no answer where it is zero to rounding beside its scale."""
    left = x - (INDEPENDENT * rounding(scale)) * scale
    return reciprocal(select(left, x, 0.0), scale)


@singledispatch
def rounding(like: Scalar) -> Scalar:
    """The distance from 1 to the next number of the kind that ``like`` is."""
    return float(np.finfo(np.asarray(like).dtype).eps)


def reciprocal_or_zero(x: Scalar) -> Scalar:
    """``1/x`` where x is positive, else 0: for a mass that may be zero."""
    return select(x, 1.0 / select(x, x, 1.0), 0.0)


@singledispatch
def known(x: Scalar) -> bool:
    """Whether a scalar is one number that can be compared now; a traced one has no value yet."""
    return True


def _array_sincos(angle: Any) -> tuple[Any, Any]:
    if np.asarray(angle).dtype != np.float64:  # complex steps, other precisions: no robot has them
        return np.sin(angle), np.cos(angle)
    if np.ndim(angle) == 0:
        return elementary.sincos(float(angle))
    return elementary.sincos_array(angle)


def _array_sqrt(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def _array_select(condition: Any, a: Any, b: Any) -> Any:
    return np.where(np.real(condition) > 0, a, b)[()]


for _real in (float, int):
    sincos.register(_real, elementary.sincos)
    sign.register(_real, lambda x: math.nan if math.isnan(x) else float((x > 0) - (x < 0)))
    sqrt.register(_real, lambda x: math.sqrt(x) if x >= 0 else math.nan)
    _divided.register(_real, lambda b, a: a / b if b else a * math.nan)
    # of a pivot that is not positive, the mechanism has no answer in any state
    reciprocal.register(_real, lambda x, scale=0.0: 1.0 / x if x > 0 else math.nan)
    never_positive.register(_real, lambda x: x <= 0)
for _array in (np.ndarray, np.floating, np.complexfloating):
    sincos.register(_array, _array_sincos)
    sign.register(_array, lambda x: np.sign(np.real(x)))
    sqrt.register(_array, _array_sqrt)
    select.register(_array, _array_select)
    _atan2.register(_array, _array_atan2)
known.register(np.ndarray, lambda x: False)
