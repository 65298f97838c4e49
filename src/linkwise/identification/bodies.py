"""Bodies that can exist, and those of them that fit measured torques best.

A body can exist if its pseudo-inertia ``J = [[Σ, h], [hᵀ, m]]`` is positive definite. Torques are
linear in J, so that to fit them best is a convex problem, a semidefinite program:

    least ½|A x - b|² + prior,    every J(x) positive definite, rotors and friction positive

The prior holds x to the robot's own values along what the data do not tell, and only there.
It is solved by Newton's method with a barrier, ``-μ Σ log det J - μ Σ log x``, which keeps x
inside; as μ falls, x follows a path to the best of all such bodies. On that path the sum of squares
is off by at most μ times the number of eigenvalues and signs that are kept positive [Boyd and
Vandenberghe 2004, section 11.2], which is how the end is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.identification.fit import Fit
from linkwise.model.parameters import TEN, body_of

Array = NDArray[np.float64]
PRIOR = 1e-2  # weight of the robot's own values, beside the data, where these do not tell
INSIDE = 1e-2  # eigenvalue of a first guess's pseudo-inertia, beside its largest
DEFINITE = 1e-12  # eigenvalue of every pseudo-inertia that is returned, beside its largest
GAP = 1e-7  # of the sum of squares: how far it may be from its least
ROUNDING = 1e-15  # of the torques' own squares: below, a sum of squares is rounding
FALL = 0.1  # of the barrier from one round to the next
STEPS = 400  # of Newton's method


class Found(NamedTuple):
    """Where a search for bodies ended."""

    values: Array
    converged: bool
    steps: int


def pseudo_inertia(ten: Array) -> Array:
    """``[[Σ, h], [hᵀ, m]]`` (4, 4) of a body's ten numbers."""
    body = body_of(ten.tolist())
    J = np.empty((4, 4))
    J[:3, :3] = [list(row) for row in body.second.full().rows]
    J[:3, 3] = J[3, :3] = list(body.h)
    J[3, 3] = body.m
    return J


def can_exist(ten: Array) -> bool:
    """Whether a body's pseudo-inertia is positive definite, beyond rounding."""
    values = np.linalg.eigvalsh(pseudo_inertia(ten))
    return bool(values[0] >= DEFINITE * values[-1] and values[-1] > 0.0)


def best_bodies(A: Array, b: Array, fit: Fit, start: Array, count: int) -> Found:
    """The best fit whose first ``10 count`` numbers are bodies that can exist, and whose others,
    rotors and friction, are not below zero.
    """
    ends = range(0, TEN * count, TEN)
    bodies, rest = [fit.values[k : k + TEN] for k in ends], fit.values[TEN * count :]
    noise = -1e-9 * float(np.abs(rest).max(initial=0.0))
    if all(map(can_exist, bodies)) and (rest >= noise).all():
        # least squares has found such bodies by itself
        return Found(np.concatenate([*bodies, np.maximum(rest, 0.0)]), True, 0)
    inside = [_ten(_raised(x, INSIDE)) for x in bodies]
    least = INSIDE * max(float(np.abs(rest).max(initial=0.0)), INSIDE)
    found = _Squares(A, b, fit, start, count).least(
        np.concatenate([*inside, np.maximum(rest, least)])
    )
    for k in ends:
        found.values[k : k + TEN] = _definite(found.values[k : k + TEN])
    return found


class Point(NamedTuple):
    """A function with a barrier at a point: its value, slope and curvature."""

    value: float
    slope: Array
    curvature: Array


class _Squares:
    """The squares to be made small: of torques, and of what the robot's own values were."""

    def __init__(self, A: Array, b: Array, fit: Fit, start: Array, count: int) -> None:
        W = (A * fit.weights[:, None]).reshape(-1, A.shape[-1])
        y = (b * fit.weights).ravel()
        prior = PRIOR**2 * fit.untold
        self.count = count
        self.H = W.T @ W + prior
        self.g = W.T @ y + prior @ start
        self.constant = 0.5 * float(y @ y + start @ prior @ start)
        self.kept = 4 * count + len(start) - TEN * count  # eigenvalues and signs

    def squares(self, x: Array) -> float:
        """Half the sum of squares."""
        return float(x @ (0.5 * (self.H @ x) - self.g)) + self.constant

    def least(self, x: Array) -> Found:
        """Follow the path of falling barriers from a point inside."""
        floor = ROUNDING * self.constant
        mu, steps = max(self.squares(x), floor) / self.kept, 0
        while steps < STEPS:
            x, taken = self._centred(x, mu, STEPS - steps)
            steps += taken
            if self.kept * mu <= GAP * max(self.squares(x), floor):
                return Found(x, True, steps)
            mu *= FALL
        return Found(x, False, steps)

    def _centred(self, x: Array, mu: float, most: int) -> tuple[Array, int]:
        """Newton's method for one barrier: where it ends, and its steps."""
        for k in range(most):
            here = self.at(x, mu)
            assert here is not None  # every step stays inside
            step = np.asarray(-np.linalg.solve(here.curvature, here.slope), float)
            fall = -float(here.slope @ step)
            if fall <= 1e-3 * mu:  # near enough to the path
                return x, k + 1
            length = self._length(x, step, here.value, 0.1 * fall, mu)
            if length == 0.0:  # nothing is gained any more: rounding
                return x, k + 1
            x = x + length * step
        return x, most

    def _length(self, x: Array, step: Array, value: float, fall: float, mu: float) -> float:
        """How far to go: half as far again and again, until inside and lower by enough."""
        length = 1.0
        while length > 1e-9:
            there = self.at(x + length * step, mu)
            if there is not None and there.value < value - length * fall:
                return length
            length *= 0.5
        return 0.0

    def at(self, x: Array, mu: float) -> Point | None:
        """The squares with a barrier; None outside."""
        size, rest = TEN * self.count, x[TEN * self.count :]
        if (rest <= 0.0).any():
            return None
        slope, curvature = self.H @ x - self.g, self.H.copy()
        value = self.squares(x) - mu * float(np.log(rest).sum())
        slope[size:] -= mu / rest
        curvature[range(size, len(x)), range(size, len(x))] += mu / rest**2
        for k in range(0, size, TEN):
            part, J = slice(k, k + TEN), np.tensordot(x[k : k + TEN], UNITS, 1)
            try:
                L = np.linalg.cholesky(J)
            except np.linalg.LinAlgError:
                return None
            value -= 2.0 * mu * float(np.log(np.diag(L)).sum())
            M = np.linalg.inv(J) @ UNITS
            slope[part] -= mu * np.trace(M, axis1=1, axis2=2)
            curvature[part, part] += mu * np.einsum("aij,bji->ab", M, M)
        return Point(value, slope, curvature)


def _ten(J: Array) -> Array:
    """Ten numbers of a pseudo-inertia; linear in it."""
    inertia = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.array([J[3, 3], *J[:3, 3], *inertia[np.tril_indices(3)]])


def _raised(ten: Array, least: float) -> Array:
    """A body's pseudo-inertia with no eigenvalue below a share of its largest."""
    values, axes = np.linalg.eigh(pseudo_inertia(ten))
    values = np.maximum(values, least * max(float(values.max()), least))
    return np.asarray(axes @ np.diag(values) @ axes.T)


def _definite(ten: Array) -> Array:
    """The body, or one a rounding beside it whose pseudo-inertia is positive definite."""
    return ten if can_exist(ten) else _ten(_raised(ten, 2.0 * DEFINITE))


UNITS = np.array([pseudo_inertia(unit) for unit in np.eye(TEN)])  # J is linear in ten numbers
