"""Small dense matrices of scalars, by rows: products, sums, and ``A = L D Lᵀ`` of one block.

Symmetric results are formed once per pair of mirrored entries, so that they are symmetric to the
last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial import Matrix as Block
from linkwise.spatial import Scalar, reciprocal


def zero(rows: int, columns: int) -> Block:
    """The zero matrix."""
    return [[0.0] * columns for _ in range(rows)]


def unit(n: int) -> Block:
    """The unit matrix."""
    return [[float(i == j) for j in range(n)] for i in range(n)]


def transpose(B: Block) -> Block:
    """Rows as columns."""
    return [list(row) for row in zip(*B, strict=True)]


def times(A: Block, B: Block) -> Block:
    """``A B``."""
    return [[dot(row, column) for column in zip(*B, strict=True)] for row in A]


def mixed(A: Block, d: Sequence[Scalar], B: Block) -> Block:
    """``Aᵀ diag(d) B``."""
    return times(transpose(scaled(A, d)), B)


def scaled(A: Block, d: Sequence[Scalar]) -> Block:
    """``diag(d) A``."""
    return [[x * k for x in row] for row, k in zip(A, d, strict=True)]


def square(A: Block, d: Sequence[Scalar]) -> Block:
    """``Aᵀ diag(d) A``, each pair of mirrored entries formed once."""
    columns, longer = transpose(A), transpose(scaled(A, d))
    n = range(len(columns))
    return [[dot(longer[max(i, j)], columns[min(i, j)]) for j in n] for i in n]


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
    """``A = L D Lᵀ`` of one block: L and D⁻¹; ``scale`` is what each pivot is compared with."""
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


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Inner product, over the shorter of two vectors."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=False):
        total = total + x * y
    return total
