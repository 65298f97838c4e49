"""A step of damped least squares, with some unknowns held.

    minimise |J x - e|² + μ |x|²,    x_j = 0 where column j is held

by the smaller of two symmetric systems: ``(J Jᵀ + μ) y = e, x = Jᵀ y`` with one unknown per row of
J, or ``(Jᵀ J + μ) x = Jᵀ e`` with one per column. A held column is a column of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import ldl
from linkwise.algorithms.dense import dot, transpose
from linkwise.spatial import Matrix, Scalar, Vector, rounding

LEAST = 64.0  # rounding units beside the trace, so that no pivot is lost to rounding


def damped_step(
    columns: Sequence[Vector], free: Vector, e: Vector, damping: Scalar
) -> list[Scalar]:
    """The step; columns of J, 1 for each that is free and 0 for each that is held."""
    open_ = [[x * k for x in column] for column, k in zip(columns, free, strict=True)]
    if len(e) <= len(columns):
        y = _solve(transpose(open_), transpose([list(c) for c in columns]), e, damping)
        return [dot(column, y) for column in open_]
    return _solve(open_, open_, [dot(column, e) for column in open_], damping)


def _solve(A: Matrix, B: Matrix, b: Vector, damping: Scalar) -> list[Scalar]:
    """``(A Bᵀ + μ)⁻¹ b`` of a symmetric product."""
    n = range(len(b))
    S = [[dot(A[max(i, j)], B[min(i, j)]) for j in n] for i in n]
    trace: Scalar = damping
    for i in n:
        trace = trace + S[i][i]
    mu = damping + trace * (LEAST * rounding(trace))
    for i in n:
        S[i][i] = S[i][i] + mu
    L, inv_d = ldl.factor(S, [1.0] * len(b))
    y = [[x[0] * d] for x, d in zip(ldl.forward(L, [[x] for x in b]), inv_d, strict=True)]
    return [x[0] for x in ldl.backward(L, y)]
