"""Small dense matrices of scalars, by rows: products and sums.

Symmetric results are formed once per pair of mirrored entries, so that they are symmetric to the
last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial import Matrix as Block
from linkwise.spatial import Scalar


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


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Inner product, over the shorter of two vectors."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=False):
        total = total + x * y
    return total
