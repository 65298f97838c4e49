"""Sparse factors of a mass matrix: M = Lᵀ D L, no fill-in on a tree.

[RBDA Table 6.3, 6.4]; ``parent[i]`` is the next degree of freedom toward the base. Entries are
touched only between a degree of freedom and its ancestors, as M itself is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from linkwise.algorithms.dense import dot, square, zero
from linkwise.spatial import Matrix, Scalar, Vector, reciprocal


class Factors(NamedTuple):
    """Unit lower-triangular L by rows, and the inverse of D."""

    L: Matrix
    inv_d: list[Scalar]
    parent: Sequence[int]


def ancestors(parent: Sequence[int], i: int) -> Iterator[int]:
    """Degrees of freedom between ``i`` and the base, nearest first."""
    i = parent[i]
    while i >= 0:
        yield i
        i = parent[i]


def factor(M: Matrix, parent: Sequence[int]) -> Factors:
    """Factor M, eliminating from the tips inward."""
    n = len(M)
    A = [row[:] for row in M]
    L: Matrix = [[0.0] * n for _ in range(n)]
    inv_d: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        inv_d[k] = reciprocal(A[k][k], M[k][k])
        for i in ancestors(parent, k):
            L[k][i] = A[k][i] * inv_d[k]
            A[i][i] = A[i][i] - L[k][i] * A[k][i]
            for j in ancestors(parent, i):
                A[i][j] = A[i][j] - L[k][i] * A[k][j]
    return Factors(L, inv_d, parent)


def solve(factors: Factors, b: Sequence[Scalar]) -> list[Scalar]:
    """``x`` with ``M x = b``: inward with Lᵀ, scale, outward with L."""
    L, inv_d, parent = factors
    x = inward(factors, b)
    for k in range(len(x)):
        x[k] = x[k] * inv_d[k]
        for i in ancestors(parent, k):
            x[k] = x[k] - L[k][i] * x[i]
    return x


def inward(factors: Factors, b: Sequence[Scalar]) -> list[Scalar]:
    """``L⁻ᵀ b``."""
    L, _, parent = factors
    x = list(b)
    for k in reversed(range(len(x))):
        for i in ancestors(parent, k):
            x[i] = x[i] - L[k][i] * x[k]
    return x


def reached(factors: Factors, columns: Mapping[int, Vector], size: int) -> dict[int, list[Scalar]]:
    """``Y = J L⁻¹`` by its nonzero columns, J by its own, of ``size`` numbers."""
    L, _, parent = factors
    Y = {j: list(column) for j, column in columns.items()}
    for k in reversed(range(len(L))):
        for i in ancestors(parent, k) if k in Y else ():
            known = Y.get(i, [0.0] * size)
            Y[i] = [y - L[k][i] * z for y, z in zip(known, Y[k], strict=True)]
    return Y


def form(factors: Factors, columns: Mapping[int, Vector], size: int) -> Matrix:
    """``J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ``, J by its nonzero columns of ``size`` numbers, ``Y = J L⁻¹``."""
    Y = reached(factors, columns, size)
    return square(list(Y.values()), [factors.inv_d[k] for k in Y]) if Y else zero(size, size)


def inverse_triangle(factors: Factors) -> Matrix:
    """``L⁻¹`` by rows, with the sparsity of L."""
    L, _, parent = factors
    W: Matrix = [[0.0] * len(L) for _ in L]
    for k in range(len(L)):
        W[k][k] = 1.0
        for i in ancestors(parent, k):
            for j in ancestors(parent, k):
                W[k][i] = W[k][i] - L[k][j] * W[j][i]
                if j == i:
                    break
    return W


def inverse(factors: Factors) -> Matrix:
    """``M⁻¹ = L⁻¹ D⁻¹ L⁻ᵀ``, symmetric by construction."""
    W, inv_d, n = inverse_triangle(factors), factors.inv_d, len(factors.L)
    out: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        scaled = [w * d for w, d in zip(W[i], inv_d, strict=True)]
        for j in range(i + 1):
            out[i][j] = out[j][i] = dot(scaled[: j + 1], W[j])
    return out
