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
    covariance: Array  # (k, k): infinite variance where the data do not tell, 0 beside it
    rank: int
    condition: float  # of the directions that are told, columns scaled
    weights: Array  # (nv): of each joint's torques, one over their residual
    untold: Array  # (k, k): squares of x along what is not told, in the units of the data

    @property
    def told(self) -> NDArray[np.bool_]:
        """Whether the data tell each number by itself."""
        return np.isfinite(np.diag(self.covariance))


def fitted(A: Array, b: Array, start: Array) -> Fit:
    """``A`` (states, nv, k) and ``b`` (states, nv); each joint weighs as well as it fits.

    With no more states than numbers are told, all joints weigh alike: one of them may fit by
    chance, and would outweigh all others.
    """
    weights = np.ones(b.shape[-1])
    for _ in range(2):  # the second time by how well each joint fits
        found = _solved(A, b, start, weights)
        left = residuals(A, b, found.values)
        if len(b) <= found.rank:
            left = np.full_like(left, np.sqrt(np.mean(left**2)))
        weights = 1.0 / np.maximum(left, LEAST_WEIGHT * max(1.0, float(np.abs(b).max())))
    return found._replace(weights=weights)


def residuals(A: Array, b: Array, x: Array) -> Array:
    """Root mean square of what is left of each joint's torques."""
    return np.asarray(np.sqrt(np.mean((b - A @ x) ** 2, axis=0)))


def _solved(A: Array, b: Array, start: Array, weights: Array) -> Fit:
    W = (A * weights[:, None]).reshape(-1, A.shape[-1])
    y = ((b - A @ start) * weights).ravel()
    size = np.linalg.norm(W, axis=0)
    scale = np.where(size > RANK * size.max(), size, size.max() or 1.0)  # of a column that is noise
    U, s, Vt = np.linalg.svd(W / scale, full_matrices=False)
    told = s > RANK * s.max(initial=0.0)
    rank, V, d = int(told.sum()), Vt[told], s[told]
    x = V.T @ ((U.T @ y)[told] / d)
    variance = float(np.sum((y - (W / scale) @ x) ** 2)) / max(1, len(y) - rank)
    half = (V / d[:, None]) / scale
    covariance = variance * (half.T @ half)
    # of a number that the data tell, nothing is in the directions that they do not
    hidden = 1.0 - np.sum(V**2, axis=0) > SHARED
    covariance[hidden], covariance[:, hidden] = 0.0, 0.0
    covariance[hidden, hidden] = np.inf
    condition = float(d.max() / d.min()) if rank else float("inf")
    untold = scale[:, None] * (np.eye(len(scale)) - V.T @ V) * scale
    return Fit(start + x / scale, covariance, rank, condition, weights, untold)
