"""Weighted least squares that knows what the data do not tell.

    A x = b,    x nearest to a start

Columns are scaled to length 1, and singular values below a tolerance count as none: along those
directions x stays where it starts. A number is told by the data if no such direction changes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.identification.base import RANK

Array = NDArray[np.float64]
LEAST_WEIGHT = 1e-9  # a joint's residual beside the largest torque, below which it counts as exact
SHARED = 1e-6  # share of a number in directions that are not told, up to which it is told


class Fit(NamedTuple):
    """Numbers that fit the data, and how well they are known."""

    values: Array  # (k)
    covariance: Array  # (k, k): infinite variance where the data do not determine, 0 next to it
    rank: int
    condition: float  # of the directions that are determined, columns scaled
    weights: Array  # (nv): of each joint's torques, one over their residual

    @property
    def identifiable(self) -> NDArray[np.bool_]:
        """Whether the data determine each number by itself."""
        return np.isfinite(np.diag(self.covariance))


class Rows(NamedTuple):
    """Weighted rows, columns scaled to length 1: ``R (scale x) = c``, and N where they say nothing.

    R = diag(d) V of the singular value decomposition; rows of N are orthonormal, and to V.
    """

    V: Array  # (rank, k)
    d: Array  # (rank)
    c: Array  # (rank)
    N: Array  # (k - rank, k)
    scale: Array  # (k)
    outside: float  # squares that no x explains
    states: int  # number of weighted rows

    @property
    def R(self) -> Array:
        """(rank, k) of the scaled numbers."""
        return self.d[:, None] * self.V

    @classmethod
    def of(cls, A: Array, b: Array, weights: Array) -> Rows:
        """``A`` (states, nv, k) and ``b`` (states, nv), each joint with its weight."""
        W = (A * weights[:, None]).reshape(-1, A.shape[-1])
        y, k = (b * weights).ravel(), A.shape[-1]
        size = np.linalg.norm(W, axis=0)
        scale = np.where(size > RANK * size.max(), size, size.max() or 1.0)  # noise is not scaled
        rows = np.column_stack([W / scale, y])
        if len(rows) > k:  # the same squares in fewer rows
            rows = np.asarray(np.linalg.qr(rows, mode="r"))
        U, s, Vt = np.linalg.svd(rows[:, :k], full_matrices=True)
        rank = int(np.sum(s > RANK * s.max(initial=0.0)))
        y = U.T @ rows[:, k]
        return cls(Vt[:rank], s[:rank], y[:rank], Vt[rank:], scale, float(y[rank:] @ y[rank:]),
                   len(W))  # fmt: skip


def fitted(A: Array, b: Array, start: Array) -> Fit:
    """``A`` (states, nv, k) and ``b`` (states, nv); each joint weighs as well as it fits.

    With no more states than numbers are determined, all joints weigh alike: one of them may fit by
    chance, and would outweigh all others.
    """
    weights = np.ones(b.shape[-1])
    for _ in range(2):  # the second time by how well each joint fits
        found = _solved(Rows.of(A, b, weights), start, weights)
        left = residuals(A, b, found.values)
        if len(b) <= found.rank:
            left = np.full_like(left, np.sqrt(np.mean(left**2)))
        weights = 1.0 / np.maximum(left, LEAST_WEIGHT * max(1.0, float(np.abs(b).max())))
    return found._replace(weights=weights)


def residuals(A: Array, b: Array, x: Array) -> Array:
    """Root mean square of what is left of each joint's torques."""
    return np.asarray(np.sqrt(np.mean((b - A @ x) ** 2, axis=0)))


def _solved(rows: Rows, start: Array, weights: Array) -> Fit:
    V, d, scale = rows.V, rows.d, rows.scale
    rank = len(d)
    x = V.T @ (rows.c / d - V @ (start * scale))
    variance = rows.outside / max(1, rows.states - rank)
    half = (V / d[:, None]) / scale
    covariance = variance * (half.T @ half)
    # nothing of a number that the data determine is in the directions that they do not
    hidden = 1.0 - np.sum(V**2, axis=0) > SHARED
    covariance[hidden], covariance[:, hidden] = 0.0, 0.0
    covariance[hidden, hidden] = np.inf
    condition = float(d.max() / d.min()) if rank else float("inf")
    return Fit(start + x / scale, covariance, rank, condition, weights)
