"""Sparse symmetric systems in small dense blocks: A = L D Lᵀ in a given order of elimination.

    D_k = L_k d_k L_kᵀ,   Z_kj = L_k⁻¹ A_kj,   A_ij <- A_ij - Z_kiᵀ d_k⁻¹ Z_kj

Every update is symmetric by construction. The orders of elimination are those of ``orders.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linkwise.algorithms import dense, ldl
from linkwise.spatial import Scalar

Block = list[list[Scalar]]  # rows
Matrix = dict[tuple[int, int], Block]  # (i, j) with i >= j; blocks that are not there are zero
Terms = list[tuple[tuple[int, int], Block]]  # blocks of a sum
Columns = dict[int, Block]  # right-hand sides, by block


class Pivot(NamedTuple):
    """Factors of a diagonal block, and the blocks beside it at the time of its elimination."""

    L: Block  # unit lower triangle
    inv_d: list[Scalar]
    Z: dict[int, Block]


Factors = dict[int, Pivot]  # in the order of elimination


def summed(terms: Iterable[Terms]) -> Matrix:
    """The matrix of all terms together."""
    A: Matrix = {}
    for at, block in (term for some in terms for term in some):
        A[at] = dense.plus(A[at], block) if at in A else block
    return A


def factor(A: Matrix, order: Iterable[int]) -> Factors:
    """Eliminate the blocks one after another."""
    scale = {i: [row[k] for k, row in enumerate(B)] for (i, j), B in A.items() if i == j}
    rest = dict(A)
    left = list(order)
    factors: Factors = {}
    while left:
        k, *left = left
        L, inv_d = ldl.factor(rest[k, k], scale[k])
        Z = {j: ldl.forward(L, B) for j in left if (B := _between(rest, k, j)) is not None}
        factors[k] = Pivot(L, inv_d, Z)
        for i, j in ((i, j) for i in Z for j in Z if i >= j):
            change = dense.square(Z[i], inv_d) if i == j else dense.mixed(Z[i], inv_d, Z[j])
            old = rest.get((i, j), dense.zero(len(Z[i][0]), len(Z[j][0])))
            rest[i, j] = dense.minus(old, change)
    return factors


def _between(A: Matrix, k: int, j: int) -> Block | None:
    """``A_kj``, from the half that is kept."""
    if k >= j:
        return A.get((k, j))
    B = A.get((j, k))
    return None if B is None else dense.transpose(B)


def reduce(factors: Factors, b: Columns) -> Columns:
    """``L⁻¹ b``: forward substitution."""
    y = dict(b)
    for k, pivot in factors.items():
        y[k] = ldl.forward(pivot.L, y[k])
        for j, Z in pivot.Z.items():
            y[j] = dense.minus(y[j], dense.mixed(Z, pivot.inv_d, y[k]))
    return y


def restore(factors: Factors, y: Columns) -> Columns:
    """``L⁻ᵀ D⁻¹ y``: back substitution."""
    x: Columns = {}
    for k, pivot in reversed(factors.items()):
        rest = y[k]
        for j, Z in pivot.Z.items():
            rest = dense.minus(rest, dense.times(Z, x[j]))
        x[k] = ldl.backward(pivot.L, dense.scaled(rest, pivot.inv_d))
    return x


def solve(factors: Factors, b: Columns) -> Columns:
    """``A⁻¹ b``."""
    return restore(factors, reduce(factors, b))


def form(factors: Factors, b: Columns, size: int) -> Block:
    """``bᵀ A⁻¹ b`` of ``size`` columns: half a solve, symmetric by construction."""
    total, y = dense.zero(size, size), reduce(factors, b)
    for k, pivot in factors.items():
        total = dense.plus(total, dense.square(y[k], pivot.inv_d))
    return total
