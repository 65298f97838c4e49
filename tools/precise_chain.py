"""Forward dynamics of a chain of revolute joints in as many digits as wanted: a judge of its own.

The articulated-body algorithm [RBDA Table 7.1] with 6 x 6 matrices of gmpy2's numbers, or mpmath's,
which are slower. Nothing of it is linkwise's: not the algebra, not the walk, not the equations
(linkwise propagates ordinary accelerations and second moments, this file spatial accelerations and
inertia tensors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

BITS = 200  # 60 digits: a million links lose fewer than ten
try:
    import gmpy2

    number, sine_and_cosine = gmpy2.mpfr, gmpy2.sin_cos
except ImportError:
    import mpmath

    def number(x: Any) -> Any:
        """A number of many digits."""
        return mpmath.mpf(x)

    def sine_and_cosine(x: Any) -> tuple[Any, Any]:
        """Both, of an angle in radians."""
        return mpmath.sin(x), mpmath.cos(x)


Array = Any  # of gmpy2 numbers, dtype object


class Rod(NamedTuple):
    """A link in numbers that float32 holds exactly; its joint turns about z."""

    mass: float
    length: float  # along x, from its joint to the next
    second: tuple[float, float, float]  # moments ∫ x² dm, ∫ y² dm, ∫ z² dm at its joint
    turns: bool  # whether its joint is turned by a right angle about x from the one before


def accelerations(
    rods: Sequence[Rod], q: Array, qd: Array, tau: Array, gravity: Sequence[float]
) -> np.ndarray:
    """Joint accelerations, rounded to float64 at the end."""
    if "mpmath" in globals():
        mpmath.mp.prec = BITS
    else:
        gmpy2.get_context().precision = BITS
    q, qd, tau = ([number(float(x)) for x in values] for values in (q, qd, tau))
    inertias = {rod: inertia(rod) for rod in set(rods)}
    before = [rods[0].length, *(rod.length for rod in rods[:-1])]
    # base to tip: velocities v, the bias c of accelerations, the bias p of forces
    v, states = _zeros(6), []
    for rod, shift, angle, rate in zip(rods, before, q, qd, strict=True):
        X = transform(rod, shift, angle)
        v = X @ v
        joint = _zeros(6)
        joint[2] = rate
        v = v + joint
        c = cross(v) @ joint
        states.append((X, c, -cross(v).T @ (inertias[rod] @ v)))
    # tip to base: articulated inertia IA and bias p
    IA, p, kept = _zeros((6, 6)), _zeros(6), []
    for rod, (X, c, own), torque in zip(rods[::-1], states[::-1], tau[::-1], strict=True):
        IA, p = IA + inertias[rod], p + own
        U, D, u = IA[:, 2].copy(), IA[2, 2], torque - p[2]
        kept.append((U, D, u))
        IA = IA - np.multiply.outer(U, U / D)
        p = X.T @ (p + IA @ c + U * (u / D))
        IA = X.T @ (IA @ X)
    # base to tip: accelerations, that of the base against gravity
    a, found = _zeros(6), []
    a[3:] = [number(-float(g)) for g in gravity]
    for (X, c, _), (U, D, u) in zip(states, reversed(kept), strict=True):
        a = X @ a + c
        qdd = (u - U @ a) / D
        a[2] = a[2] + qdd
        found.append(float(qdd))
    return np.array(found)


def inertia(rod: Rod) -> Array:
    """The spatial inertia at the joint: tensor, first moment along x, mass."""
    x, y, z = map(number, rod.second)
    mass = number(rod.mass)
    h = skew(mass * rod.length / 2, 0, 0)
    own = _zeros((6, 6))
    own[0, 0], own[1, 1], own[2, 2] = y + z, x + z, x + y
    own[:3, 3:], own[3:, :3] = h, h.T
    own[3, 3] = own[4, 4] = own[5, 5] = mass
    return own


def transform(rod: Rod, shift: float, angle: Any) -> Array:
    """Motions from the link before, whose next joint is ``shift`` along x, to this link."""
    s, c = sine_and_cosine(angle)
    E = _zeros((3, 3))
    E[0, 0], E[1, 0] = c, -s
    across = 2 if rod.turns else 1  # the axis of the link before that y turns out of
    E[0, across], E[1, across] = s, c
    E[2, 3 - across] = number(-1 if rod.turns else 1)
    X = _zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = E
    X[3:, :3] = -E @ skew(number(shift), 0, 0)
    return X


def cross(v: Array) -> Array:
    """The matrix of v x for motions; minus its transpose is that for forces."""
    C = _zeros((6, 6))
    C[:3, :3] = C[3:, 3:] = skew(*v[:3])
    C[3:, :3] = skew(*v[3:])
    return C


def skew(x: Any, y: Any, z: Any) -> Array:
    """The matrix of (x, y, z) x."""
    found = _zeros((3, 3))
    found[0, 1], found[0, 2], found[1, 2] = -z, y, -x
    found[1, 0], found[2, 0], found[2, 1] = z, -y, x
    return found


def _zeros(shape: int | tuple[int, ...]) -> Array:
    return np.full(shape, number(0), object)
