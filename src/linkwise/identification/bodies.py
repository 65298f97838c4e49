"""Physically consistent bodies, and those of them that fit measured torques best.

A body is physically consistent if its pseudo-inertia ``J = [[Σ, h], [hᵀ, m]]`` is positive
definite. Torques are linear in J, so that the best fit is a convex problem, a semidefinite program:

    least ½|A x - b|²,    every J(x) positive semidefinite, rotors and friction not negative

Fit first, prior second: of all x that fit best, the one nearest to the robot's own values, along
the directions N that the data do not determine. With a small weight ε,

    least ½|A x - b|² + ½ ε |N (x - prior)|²

is solved by a primal-dual interior-point method (``interior.py``); ε falls until what the fit gains
by it is less than noise explains by chance: where measurements are noisy, bodies of a thousand
tonnes may fit better by a thousandth of that, and nobody wants them.
Multipliers Z of the J(x) prove it: by convexity, for every consistent y,

    ½|A x - b|² - ½|A y - b|² ≤ tr(J Z) + ε |N (x - prior)| |N (y - x)|

`Found.gap` is this bound for every y whose N y is no further from the prior than twice x's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.identification.fit import Fit, Rows
from linkwise.identification.interior import Cone, minimize
from linkwise.model.parameters import TEN, body_of

Array = NDArray[np.float64]
PRIOR = 1e-4  # first weight of the robot's own values; columns of the data have length 1
LEAST_PRIOR = 1e-14  # below, directions that are not determined are lost in rounding
EASE = 1e-2  # of the prior's weight from one round to the next
INSIDE = 1e-2  # eigenvalue of a first guess's pseudo-inertia, relative to its largest
DEFINITE = 1e-12  # eigenvalue of every pseudo-inertia that is returned, relative to its largest
GAP = 1e-7  # of the sum of squares: how far it may be from its least
NEAR = 0.1  # of the noise's variance, in half squares: one more number explains 0.5 by chance
STALL = 1e5  # of rounding: where a search may end that gets no further
ROUNDING = 1e-15  # of the torques' own squares: below, a sum of squares is rounding


class Found(NamedTuple):
    """The result of a search for consistent bodies."""

    values: Array
    converged: bool
    steps: int
    gap: float = 0.0  # bound on the squares above their least, as a share of the torques' own


class _Weighted(NamedTuple):
    """The best fit with one weight of the prior."""

    x: Array
    converged: bool
    steps: int
    gap: float
    squares: float


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


def best_bodies(rows: Rows, fit: Fit, start: Array, count: int) -> Found:
    """Return the best fit whose first ``10 count`` numbers are consistent bodies, and whose other
    numbers, rotors and friction, are not below zero.
    """
    ends = range(0, TEN * count, TEN)
    bodies, rest = [fit.values[k : k + TEN] for k in ends], fit.values[TEN * count :]
    noise = -1e-9 * float(np.abs(rest).max(initial=0.0))
    if all(map(can_exist, bodies)) and (rest >= noise).all():
        # least squares has found such bodies by itself
        return Found(np.concatenate([*bodies, np.maximum(rest, 0.0)]), True, 0)
    inside = [_ten(_raised(x, INSIDE)) for x in bodies]
    least = INSIDE * max(float(np.abs(rest).max(initial=0.0)), INSIDE)
    found = Squares(rows, start, count).least(np.concatenate([*inside, np.maximum(rest, least)]))
    for k in ends:
        found.values[k : k + TEN] = _definite(found.values[k : k + TEN])
    return found


class Squares:
    """The sum of squares over consistent bodies, in triangular form: no square of a condition."""

    def __init__(self, rows: Rows, start: Array, count: int) -> None:
        self.R, self.c = rows.R * rows.scale, rows.c  # of the data: R x = c, to rounding
        self.N = rows.N * rows.scale  # what the data do not determine
        self.n = self.N @ start
        self.constant = 0.5 * rows.outside  # half the squares that no x explains
        self.total = self.constant + 0.5 * float(rows.c @ rows.c)  # half the torques' squares
        self.floor = ROUNDING * self.total
        spare = max(1, rows.states - len(rows.d))
        self.near = NEAR * rows.outside / spare  # of squares: what cannot be told from noise
        size = TEN * count
        numbers, joints = np.arange(size).reshape(count, TEN), np.arange(size, len(start))
        self.cones = [Cone(numbers, UNITS), Cone(joints[:, None], np.ones((1, 1, 1)))]

    def squares(self, x: Array) -> float:
        """Half the sum of squares."""
        return 0.5 * _square(self.R @ x - self.c) + self.constant

    def least(self, x: Array) -> Found:
        """Return the best fit, by falling weights of the prior, from a point inside."""
        steps, weight, before = 0, PRIOR, None
        while True:
            here = self._weighted(x, weight)
            steps += here.steps
            fall = float("inf") if before is None else before.squares - here.squares
            if before is not None and fall <= max(self.near, self._rounding(here.x)):
                gap = max(fall, 0.0) + here.gap  # the last weight that showed nothing is not needed
                return Found(before.x, here.converged, steps, gap / self.total)
            if weight <= LEAST_PRIOR or not here.converged:
                return Found(here.x, here.converged, steps, here.gap / self.total)
            before, weight = here, weight * EASE

    def _weighted(self, x: Array, weight: float) -> _Weighted:
        """Return the best fit with one weight of the prior."""
        root = weight**0.5
        rows = np.concatenate([self.R, root * self.N]), np.concatenate([self.c, root * self.n])
        ended = minimize(*rows, self.cones, x, self._rounding)
        converged = ended.converged or ended.gap <= STALL * self.floor  # rounding, either way
        gap = ended.gap + 3.0 * weight * _square(self.N @ ended.x - self.n)
        squares = max(self.squares(ended.x), self.floor)
        return _Weighted(ended.x, converged, ended.steps, gap, squares)

    def _rounding(self, x: Array) -> float:
        """Squares that count as none."""
        return max(GAP * self.squares(x), self.floor)


def _square(x: Array) -> float:
    return float(x @ x)


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
    """The body, or one that differs by a rounding and whose pseudo-inertia is positive definite."""
    return ten if can_exist(ten) else _ten(_raised(ten, 2.0 * DEFINITE))


UNITS = np.array([pseudo_inertia(unit) for unit in np.eye(TEN)])  # J is linear in ten numbers
