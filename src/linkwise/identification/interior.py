"""Least squares over positive semidefinite matrices: a primal-dual interior-point method.

    least ½|F x - f|²,    every X(x) = Σ x_a U_a positive semidefinite

At the least, matrices Z exist with ``Fᵀ(F x - f) = U*(Z)``, Z positive semidefinite and tr(X Z)
zero. Newton's method follows X Z = μ 1 to it, in the scaling of Nesterov and Todd: G with
``G⁻¹ X G⁻ᵀ = Gᵀ Z G = Λ``, diagonal. Each step is itself a problem of least squares,

    least |F dx - (f - F x)|² + Σ |G⁻¹ X(dx) G⁻ᵀ - (Λ + C)|²

solved by QR, so that no condition is squared; C is the complementarity to be reached, with the
corrector of Mehrotra [Nocedal and Wright 2006, section 14.2; Vandenberghe 2010, "The CVXOPT linear
and quadratic cone program solvers"].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS = 150
BACK = 0.98  # share of the way to the boundary


class Cone(NamedTuple):
    """Matrices ``Σ x[columns[k, a]] units[a]``, k = 0, 1, ...: all of one size."""

    columns: NDArray[np.intp]  # (n, p)
    units: Array  # (p, s, s)

    def matrices(self, x: Array) -> Array:
        """(n, s, s)."""
        return np.tensordot(x[self.columns], self.units, 1)


class Ended(NamedTuple):
    """The point at which a search ended, and its multipliers."""

    x: Array
    converged: bool
    steps: int
    gap: float  # tr(X Z), and what is left of the slope
    Z: list[Array]


class _Scaled(NamedTuple):
    """A cone at a point, in the scaling of Nesterov and Todd."""

    half: Array  # G⁻¹ (n, s, s)
    lam: Array  # Λ (n, s)

    @classmethod
    def at(cls, X: Array, Z: Array) -> _Scaled:
        L, M = np.linalg.cholesky(X), np.linalg.cholesky(Z)
        _, lam, Vt = np.linalg.svd(np.asarray(np.swapaxes(M, -1, -2) @ L, float))
        root = np.sqrt(lam)
        return cls(root[..., None] * (Vt @ np.linalg.inv(L)), lam)


def minimize(
    F: Array, f: Array, cones: Sequence[Cone], x: Array, least: Callable[[Array], float]
) -> Ended:
    """Search from a point inside until the gap is at most ``least(x)``."""
    cones = [cone for cone in cones if cone.columns.size]
    kept = sum(cone.columns.shape[0] * cone.units.shape[1] for cone in cones)
    mu = max(0.5 * _square(F @ x - f), least(x)) / kept
    Z = [mu * np.linalg.inv(cone.matrices(x)) for cone in cones]
    steps = 0
    for steps in range(STEPS):
        gap, left = _gap(F, f, cones, x, Z)
        if gap + left <= least(x):
            return Ended(x, True, steps, gap + left, Z)
        try:
            scaled = [_Scaled.at(c.matrices(x), z) for c, z in zip(cones, Z, strict=True)]
            dx, dZ, alpha = _step(F, f, cones, x, scaled, gap / kept)
        except np.linalg.LinAlgError:  # on the boundary, to rounding
            break
        if alpha < 1e-9:
            break
        x, Z = x + alpha * dx, [z + alpha * d for z, d in zip(Z, dZ, strict=True)]
    gap, left = _gap(F, f, cones, x, Z)
    return Ended(x, gap + left <= 1e2 * least(x), steps, gap + left, Z)


def _gap(
    F: Array, f: Array, cones: Sequence[Cone], x: Array, Z: list[Array]
) -> tuple[float, float]:
    """tr(X Z), and how far the slope is from the multipliers', along x."""
    slope = F.T @ (F @ x - f)
    gap = 0.0
    for cone, z in zip(cones, Z, strict=True):
        gap += float(np.sum(cone.matrices(x) * z))
        np.add.at(slope, cone.columns, -np.einsum("aij,kij->ka", cone.units, z))
    return gap, float(np.abs(slope) @ np.abs(x))


def _step(
    F: Array, f: Array, cones: Sequence[Cone], x: Array, scaled: list[_Scaled], mu: float
) -> tuple[Array, list[Array], float]:
    """One step of the predictor and the corrector: of x, of Z, and how far it may go."""
    units = [
        s.half[:, None] @ c.units @ _t(s.half)[:, None] for c, s in zip(cones, scaled, strict=True)
    ]
    Q, R = np.linalg.qr(_rows(F, cones, units))

    def solved(goals: list[Array]) -> tuple[Array, list[Array], list[Array]]:
        wanted = np.concatenate([f - F @ x, *(_vector(g).ravel() for g in goals)])
        dx = np.linalg.solve(R, Q.T @ wanted)
        X = [np.einsum("ka,kaij->kij", dx[c.columns], u) for c, u in zip(cones, units, strict=True)]
        lams = [_diagonal(s.lam) for s in scaled]
        return dx, X, [g - v - lam for g, v, lam in zip(goals, X, lams, strict=True)]

    _, X, Z = solved([np.zeros_like(s.half) for s in scaled])
    most = _longest(scaled, X, Z)
    center = (1.0 - min(1.0, most)) ** 3 * mu
    goals = [
        _diagonal(center / s.lam) - _divided(v @ z + z @ v, s.lam)
        for s, v, z in zip(scaled, X, Z, strict=True)
    ]
    dx, X, Z = solved(goals)
    alpha = min(1.0, BACK * _longest(scaled, X, Z))
    return dx, [_t(s.half) @ z @ s.half for s, z in zip(scaled, Z, strict=True)], alpha


def _rows(F: Array, cones: Sequence[Cone], units: list[Array]) -> Array:
    """F, and below it each scaled matrix per unit of x, one row per entry."""
    parts = [F]
    for cone, u in zip(cones, units, strict=True):
        entries = _vector(u)
        part = np.zeros((len(u), entries.shape[-1], F.shape[1]))
        part[np.arange(len(u))[:, None], :, cone.columns] = entries
        parts.append(part.reshape(-1, F.shape[1]))
    return np.concatenate(parts)


def _longest(scaled: list[_Scaled], X: list[Array], Z: list[Array]) -> float:
    """How far a step may go until a matrix is no longer positive definite."""
    least = 1e-9
    for s, *moves in zip(scaled, X, Z, strict=True):
        root = 1.0 / np.sqrt(s.lam)
        for move in moves:
            values = np.linalg.eigvalsh(root[:, :, None] * move * root[:, None, :])
            least = max(least, -float(values.min()))
    return 1.0 / least


def _vector(M: Array) -> Array:
    """Entries of symmetric matrices on and below the diagonal, with the same sum of squares."""
    i, j = np.tril_indices(M.shape[-1])
    return np.asarray(M[..., i, j] * np.where(i == j, 1.0, 2.0**0.5))


def _divided(M: Array, lam: Array) -> Array:
    """Y of ``Λ Y + Y Λ = M``."""
    return np.asarray(M / (lam[:, :, None] + lam[:, None, :]))


def _diagonal(x: Array) -> Array:
    return np.asarray(x[..., None] * np.eye(x.shape[-1]))


def _t(M: Array) -> Array:
    return np.swapaxes(M, -1, -2)


def _square(x: Array) -> float:
    return float(x @ x)
