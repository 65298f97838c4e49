"""Print the polynomial coefficients of backends/elementary.py, and their errors.

sin(r) = r + r z S(z) and cos(r) = 1 - z/2 + z² C(z), z = r², |r| <= pi/4: Chebyshev fits of S and
C in 40 digits. atan(t) = t + t z A(z), z = t², |t| <= 1/2. Run: python tools/sincos_coefficients.py
"""

from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 40
TOP = (mp.pi / 4 * mp.mpf("1.0001")) ** 2


def sine_rest(z: Any) -> Any:
    """(sin r - r) / (r z)."""
    terms = [-((-z) ** k) / mp.factorial(2 * k + 3) for k in range(18)]
    return mp.fsum(terms)


def cosine_rest(z: Any) -> Any:
    """(cos r - 1 + z/2) / z²."""
    return mp.fsum([(-z) ** k / mp.factorial(2 * k + 4) for k in range(18)])


def arctangent_rest(z: Any) -> Any:
    """(atan t - t) / (t z)."""
    t = mp.sqrt(z)
    return (mp.atan(t) / t - 1) / z if z > mp.mpf("1e-15") else z / 5 - mp.mpf(1) / 3


def show(name: str, function: Callable[[Any], Any], terms: int, top: Any = TOP) -> None:
    """Fit and print, highest power first."""
    coefficients, error = mp.chebyfit(function, [0, top], terms, error=True)
    print(name, [float(c) for c in coefficients], "error", mp.nstr(error, 3))


if __name__ == "__main__":
    show("SIN f64", sine_rest, 6)
    show("COS f64", cosine_rest, 6)
    show("SIN f32", sine_rest, 3)
    show("COS f32", cosine_rest, 3)
    show("ATAN f64", arctangent_rest, 13, mp.mpf(1) / 4)
    show("ATAN f32", arctangent_rest, 6, mp.mpf(1) / 4)
