"""mpmath numbers as scalars: import this module to run any algorithm to 50 digits."""

from __future__ import annotations

import mpmath

from linkwise.spatial.scalar import _atan2, _divided, constant, sign, sincos, sqrt


@sincos.register(mpmath.mpf)
def _(angle: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    return mpmath.sin(angle), mpmath.cos(angle)


@sign.register(mpmath.mpf)
def _(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sign(x)


@sqrt.register(mpmath.mpf)
def _(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sqrt(x) if x >= 0 else mpmath.nan


@_atan2.register(mpmath.mpf)
def _(_: mpmath.mpf, y: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.atan2(y, x)


@_divided.register(mpmath.mpf)
def _(b: mpmath.mpf, a: mpmath.mpf) -> mpmath.mpf:
    return a / b if b else mpmath.nan


@constant.register(mpmath.mpf)
def _(like: mpmath.mpf, x: float) -> mpmath.mpf:
    return mpmath.mpf(x)
