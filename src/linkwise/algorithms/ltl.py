"""Sparse factors of a mass matrix: M = Lᵀ D L, no fill-in on a tree.

[RBDA Table 6.3, 6.4]; ``parent[i]`` is the next degree of freedom toward the base. Entries are
touched only between a degree of freedom and its ancestors, as M itself is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.dense import dot
from linkwise.spatial import Matrix, Scalar, reciprocal


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
    return outward(factors, (x * d for x, d in zip(inward(factors, b), factors.inv_d, strict=True)))


def inward(factors: Factors, b: Sequence[Scalar]) -> list[Scalar]:
    """``L⁻ᵀ b``."""
    L, _, parent = factors
    x = list(b)
    for k in reversed(range(len(x))):
        for i in ancestors(parent, k):
            x[i] = x[i] - L[k][i] * x[k]
    return x


def outward(factors: Factors, b: Iterable[Scalar]) -> list[Scalar]:
    """``L⁻¹ b``; each number of b is taken when its turn comes."""
    L, _, parent = factors
    x: list[Scalar] = []
    for k, own in enumerate(b):
        for i in ancestors(parent, k):
            own = own - L[k][i] * x[i]
        x.append(own)
    return x


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
    W, n = inverse_triangle(factors), len(factors.L)
    out: Matrix = [[0.0] * n for _ in range(n)]
    for i, scaled in enumerate(inverse_scaled(factors, W)):
        for j in range(i + 1):
            out[i][j] = out[j][i] = dot(scaled[: j + 1], W[j])
    return out


def inverse_scaled(factors: Factors, W: Matrix) -> Matrix:
    """``L⁻¹ D⁻¹`` by rows, from L⁻¹."""
    return [[w * d for w, d in zip(row, factors.inv_d, strict=True)] for row in W]
