"""mpmath numbers as scalars: import this module to run any algorithm to 50 digits."""

from __future__ import annotations

import mpmath

from linkwise.spatial.scalar import (
    _atan2,
    _divided,
    constant,
    reciprocal,
    rounding,
    sign,
    sincos,
    sqrt,
)

sincos.register(mpmath.mpf, lambda angle: (mpmath.sin(angle), mpmath.cos(angle)))
sign.register(mpmath.mpf, mpmath.sign)
sqrt.register(mpmath.mpf, lambda x: mpmath.sqrt(x) if x >= 0 else mpmath.nan)
_atan2.register(mpmath.mpf, lambda _, y, x: mpmath.atan2(y, x))
_divided.register(mpmath.mpf, lambda b, a: a / b if b else mpmath.nan)
constant.register(mpmath.mpf, lambda like, x: mpmath.mpf(x))
reciprocal.register(mpmath.mpf, lambda x, scale=0.0: 1 / x if x > 0 else mpmath.nan)
rounding.register(mpmath.mpf, lambda _: mpmath.mp.eps)
