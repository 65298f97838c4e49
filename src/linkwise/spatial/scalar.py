"""What a scalar must do.

A scalar has ``+ - * /`` and unary minus with its own kind and with Python floats, and the
functions below are registered for its type. Floats and NumPy arrays are registered here; traced
nodes in ``trace/expr.py``; mpmath numbers in ``precise.py``.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

# Any type that satisfies the sentence above; the algebra is generic over it.
Scalar = Any


@singledispatch
def sincos(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of an angle in radians."""
    raise TypeError(f"sincos: no rule for {type(angle).__name__}; register one")


@sincos.register(float)
@sincos.register(int)
def _(angle: float) -> tuple[float, float]:
    return math.sin(angle), math.cos(angle)


@sincos.register(np.ndarray)
@sincos.register(np.floating)
@sincos.register(np.complexfloating)
def _(angle: Any) -> tuple[Any, Any]:
    return np.sin(angle), np.cos(angle)


def reciprocal(x: Scalar) -> Scalar:
    """``1/x``: written once per pivot, so that a solve divides once and multiplies after."""
    return 1.0 / x
