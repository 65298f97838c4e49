"""Sparse symmetric systems in small dense blocks: A = L D Lᵀ in a given order of elimination.

    D_k = L_k d_k L_kᵀ,   Z_kj = L_k⁻¹ A_kj,   A_ij <- A_ij - Z_kiᵀ d_k⁻¹ Z_kj

Every update is symmetric by construction. In the order of a chain this is block LDLᵀ of a
block-tridiagonal matrix; with every other block first, and again with every other one of those that
are left, it is block cyclic reduction: the blocks of one round do not touch one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from linkwise.spatial import Scalar, reciprocal

Block = list[list[Scalar]]  # rows
Matrix = dict[tuple[int, int], Block]  # (i, j) with i >= j; blocks that are not there are zero
Columns = dict[int, Block]  # right-hand sides, by block


class Pivot(NamedTuple):
    """Factors of a diagonal block, and what it was coupled to when its turn came."""

    L: Block  # unit lower triangle
    inv_d: list[Scalar]
    Z: dict[int, Block]


Factors = dict[int, Pivot]  # in the order of elimination


def zero(rows: int, columns: int) -> Block:
    """Nothing."""
    return [[0.0] * columns for _ in range(rows)]


def unit(n: int) -> Block:
    """The unit matrix."""
    return [[float(i == j) for j in range(n)] for i in range(n)]


def transpose(B: Block) -> Block:
    """Rows as columns."""
    return [list(row) for row in zip(*B, strict=True)]


def times(A: Block, B: Block) -> Block:
    """``A B``."""
    return [[_dot(row, column) for column in zip(*B, strict=True)] for row in A]


def scaled(A: Block, d: Sequence[Scalar]) -> Block:
    """``diag(d) A``."""
    return [[x * k for x in row] for row, k in zip(A, d, strict=True)]


def square(A: Block, d: Sequence[Scalar]) -> Block:
    """``Aᵀ diag(d) A``, each pair of mirrored entries formed once."""
    columns, longer = transpose(A), transpose(scaled(A, d))
    n = range(len(columns))
    return [[_dot(longer[max(i, j)], columns[min(i, j)]) for j in n] for i in n]


def mirrored(A: Block) -> Block:
    """The lower half, and its mirror image."""
    n = range(len(A))
    return [[A[max(i, j)][min(i, j)] for j in n] for i in n]


def plus(A: Block, B: Block) -> Block:
    """``A + B``."""
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(A, B, strict=True)]


def minus(A: Block, B: Block) -> Block:
    """``A - B``."""
    return [[x - y for x, y in zip(*rows, strict=True)] for rows in zip(A, B, strict=True)]


def ldl(A: Block, scale: Sequence[Scalar]) -> tuple[Block, list[Scalar]]:
    """``A = L D Lᵀ`` of one block: L and D⁻¹; pivots are watched beside ``scale``."""
    n = len(A)
    rest = [row[:] for row in A]
    L = unit(n)
    inv_d: list[Scalar] = []
    for k in range(n):
        inv_d.append(reciprocal(rest[k][k], scale[k]))
        for i in range(k + 1, n):
            L[i][k] = rest[i][k] * inv_d[k]
            for j in range(k + 1, i + 1):
                rest[i][j] = rest[i][j] - L[i][k] * rest[j][k]
    return L, inv_d


def inverse(A: Block) -> Block:
    """``A⁻¹`` of one block, symmetric by construction."""
    L, inv_d = ldl(A, [row[k] for k, row in enumerate(A)])
    return square(forward(L, unit(len(A))), inv_d)


def forward(L: Block, B: Block) -> Block:
    """``L⁻¹ B``."""
    X = [row[:] for row in B]
    for i in range(len(L)):
        for k in range(i):
            X[i] = [x - L[i][k] * y for x, y in zip(X[i], X[k], strict=True)]
    return X


def backward(L: Block, B: Block) -> Block:
    """``L⁻ᵀ B``."""
    X = [row[:] for row in B]
    for i in reversed(range(len(L))):
        for k in range(i + 1, len(L)):
            X[i] = [x - L[k][i] * y for x, y in zip(X[i], X[k], strict=True)]
    return X


def factor(A: Matrix, order: Iterable[int]) -> Factors:
    """Eliminate the blocks one after another."""
    scale = {i: [row[k] for k, row in enumerate(B)] for (i, j), B in A.items() if i == j}
    rest = dict(A)
    left = list(order)
    factors: Factors = {}
    while left:
        k, *left = left
        L, inv_d = ldl(rest[k, k], scale[k])
        Z = {j: forward(L, B) for j in left if (B := _between(rest, k, j)) is not None}
        factors[k] = Pivot(L, inv_d, Z)
        for i in Z:
            for j in Z:
                if i >= j:
                    change = square(Z[i], inv_d) if i == j else _mixed(Z[i], inv_d, Z[j])
                    rest[i, j] = minus(rest.get((i, j), zero(len(Z[i][0]), len(Z[j][0]))), change)
    return factors


def _mixed(A: Block, d: Sequence[Scalar], B: Block) -> Block:
    """``Aᵀ diag(d) B``."""
    return times(transpose(scaled(A, d)), B)


def _between(A: Matrix, k: int, j: int) -> Block | None:
    """``A_kj``, from the half that is kept."""
    if k >= j:
        return A.get((k, j))
    B = A.get((j, k))
    return None if B is None else transpose(B)


def reduce(factors: Factors, b: Columns) -> Columns:
    """``L⁻¹ b``: forward substitution."""
    y = dict(b)
    for k, pivot in factors.items():
        y[k] = forward(pivot.L, y[k])
        for j, Z in pivot.Z.items():
            y[j] = minus(y[j], _mixed(Z, pivot.inv_d, y[k]))
    return y


def restore(factors: Factors, y: Columns) -> Columns:
    """``L⁻ᵀ D⁻¹ y``: back substitution."""
    x: Columns = {}
    for k, pivot in reversed(factors.items()):
        rest = y[k]
        for j, Z in pivot.Z.items():
            rest = minus(rest, times(Z, x[j]))
        x[k] = backward(pivot.L, scaled(rest, pivot.inv_d))
    return x


def solve(factors: Factors, b: Columns) -> Columns:
    """``A⁻¹ b``."""
    return restore(factors, reduce(factors, b))


def form(factors: Factors, b: Columns, size: int) -> Block:
    """``bᵀ A⁻¹ b`` of ``size`` columns: half a solve, symmetric by construction."""
    total, y = zero(size, size), reduce(factors, b)
    for k, pivot in factors.items():
        total = plus(total, square(y[k], pivot.inv_d))
    return total


def one_by_one(A: Matrix) -> list[int]:
    """From the last block to the first: on a tree only siblings fill in."""
    return sorted((i for i, j in A if i == j), reverse=True)


def every_other(A: Matrix) -> list[int]:
    """Rounds of blocks that do not touch: log2 n rounds for a chain of n."""
    near: Mapping[int, set[int]] = {i: set() for i in one_by_one(A)}
    for i, j in A:
        if i != j:
            near[i].add(j)
            near[j].add(i)
    order: list[int] = []
    while len(order) < len(near):
        touched: set[int] = set(order)
        for k in near:
            if k not in touched:
                order.append(k)
                touched |= {k} | near[k]
                for j in near[k]:
                    near[j].update(near[k] - {j})
                    near[j].discard(k)
    return order


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
