"""``A = L D Lᵀ`` of one small dense block: L a unit lower triangle, D diagonal.

The first column is eliminated first. Factors that stay sparse on a tree: ``ltl.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.dense import square, unit
from linkwise.spatial import Matrix as Block
from linkwise.spatial import Scalar, reciprocal, reciprocal_if_independent

Factors = tuple[Block, list[Scalar]]  # L and D⁻¹
Inverted = Callable[[Scalar, Scalar], Scalar]  # (pivot, scale) -> its reciprocal


def factor(A: Block, scale: Sequence[Scalar], invert: Inverted = reciprocal) -> Factors:
    """L and D⁻¹; ``scale`` is what each pivot is compared with."""
    return _eliminated(A, lambda k, pivot, _: invert(pivot, scale[k]))


def factor_independent(
    A: Block, scale: Sequence[Scalar], inverted: Inverted = reciprocal_if_independent
) -> Factors:
    """L and D⁻¹ of a positive semidefinite A; D⁻¹ is 0 for rows that depend on rows before them.

    Row k of L⁻¹ is the combination v of row k with those before it that leaves least, and the pivot
    is what it leaves, ``vᵀ A v``. ``scale`` is what the diagonal of A could be at most: rounding of
    ``A_ij`` is in proportion to ``√(s_i s_j)``, that of the pivot to ``Σ v_i² s_i``, which is large
    where the rows before it nearly depend on each other.
    """
    combinations: Block = []

    def invert(k: int, pivot: Scalar, L: Block) -> Scalar:
        v = unit(k + 1)[k]
        for i, row in enumerate(combinations):
            v[: i + 1] = [x - L[k][i] * y for x, y in zip(v, row, strict=False)]
        combinations.append(v)
        terms = [(x * x) * s for x, s in zip(v, scale, strict=False)]
        return inverted(pivot, _sum_of_halves(terms))

    return _eliminated(A, invert)


def _sum_of_halves(terms: Sequence[Scalar]) -> Scalar:
    """A sum that few additions wait for each other in: the next pivot waits for it."""
    half = len(terms) // 2
    if not half:
        return terms[0]
    return _sum_of_halves(terms[half:]) + _sum_of_halves(terms[:half])


def _eliminated(A: Block, invert: Callable[[int, Scalar, Block], Scalar]) -> Factors:
    """L and D⁻¹, pivot k inverted by ``invert(k, pivot, L)`` once row k of L is known."""
    n = len(A)
    rest = [row[:] for row in A]
    L = unit(n)
    inv_d: list[Scalar] = []
    for k in range(n):
        inv_d.append(invert(k, rest[k][k], L))
        for i in range(k + 1, n):
            L[i][k] = rest[i][k] * inv_d[k]
            for j in range(k + 1, i + 1):
                rest[i][j] = rest[i][j] - L[i][k] * rest[j][k]
    return L, inv_d


def inverse(A: Block) -> Block:
    """``A⁻¹``, symmetric by construction."""
    L, inv_d = factor(A, [row[k] for k, row in enumerate(A)])
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


def solve(factors: tuple[Block, list[Scalar]], b: Sequence[Scalar]) -> list[Scalar]:
    """``x`` with ``A x = b``."""
    L, inv_d = factors
    half = forward(L, [[x] for x in b])
    scaled = [[row[0] * d] for row, d in zip(half, inv_d, strict=True)]
    return [row[0] for row in backward(L, scaled)]
