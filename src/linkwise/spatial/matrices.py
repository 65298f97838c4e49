"""Small matrices as arrays, with the same bits on every processor.

BLAS, LAPACK and NumPy's sums and norms of arrays choose their code by the kind of processor, and
each choice rounds differently. Here a sum of products is formed term by term, from the left, and
everything else is made of elementwise + - * / and roots, which IEEE 754 fixes. Axes in front are a
batch. Symmetric results are symmetric exactly: entries below the diagonal are copies.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.spatial.scalar import select, sqrt

Array = NDArray[np.float64]
Entries = list[list[Any]]  # floats, or arrays of one entry over a batch

EPS = 2.0**-52
SWEEPS = 40  # far more than it takes: off-diagonal entries fall quadratically
NEGLIGIBLE = 2.0**-60  # off-diagonal entries beside the largest entry
STEPS = 8  # to the nearest rotation: the error is squared each time


def product(*factors: ArrayLike) -> Array:
    """The product of matrices, from the left; the last factor may be a vector."""
    return reduce(_product, (np.asarray(x, dtype=np.float64) for x in factors))


def _product(a: Array, b: Array) -> Array:
    if a.shape == (3, 3) and b.shape in ((3, 3), (3,)):
        return _product_of_three(a.tolist(), b.T.tolist())
    if b.ndim == 1:
        return _product(a, b[:, None])[..., 0]
    terms = a[..., :, :, None] * b[..., None, :, :]
    return added(terms, -2)


def _product_of_three(rows: Any, columns: Any) -> Array:
    """The same of floats, many times faster for the size that robots are made of."""
    if isinstance(columns[0], float):
        a, b, c = columns
        return np.array([x * a + y * b + z * c for x, y, z in rows])
    return np.array([[x * a + y * b + z * c for a, b, c in columns] for x, y, z in rows])


def added(terms: ArrayLike, axis: int = -1) -> Array:
    """The sum along an axis, from its first term to the last."""
    parts = np.moveaxis(np.asarray(terms, dtype=np.float64), axis, 0)
    if not len(parts):
        return np.zeros(parts.shape[1:])
    return np.asarray(np.add.accumulate(parts)[-1])


def dot(a: ArrayLike, b: ArrayLike) -> Any:
    """The sum of products of two vectors."""
    return added(np.asarray(a) * np.asarray(b))[()]


def trace(matrix: Array) -> Any:
    """The sum of the diagonal."""
    return added(np.diagonal(matrix, axis1=-2, axis2=-1))[()]


def lengths(rows: ArrayLike) -> Array:
    """Lengths of vectors along the last axis; their squares must be in the range of float64."""
    x = np.asarray(rows, dtype=np.float64)
    return np.asarray(np.sqrt(added(x * x)))


def congruence(R: ArrayLike, S: ArrayLike) -> Array:
    """``R S Rᵀ`` of a symmetric matrix, symmetric."""
    return mirrored(product(R, S, np.swapaxes(R, -1, -2)))


def mirrored(matrix: Array) -> Array:
    """The matrix with its upper entries below the diagonal too."""
    whole = matrix.copy()
    for i in range(1, matrix.shape[-1]):
        whole[..., i, :i] = matrix[..., :i, i]
    return whole


def about(second: Array) -> Array:
    """``tr(Σ) 1 - Σ``: of second moments along axes, those about them."""
    sizes = trace(second)
    return np.asarray(np.multiply.outer(sizes, np.eye(second.shape[-1])) - second)


def determinant(R: Array) -> float:
    """The determinant of a 3x3 matrix."""
    return float(dot(R[0], np.cross(R[1], R[2])))


def nearest_rotation(R: Array) -> Array:
    """The rotation nearest to a matrix that is almost one, by ``R (3 - RᵀR)/2``."""
    for _ in range(STEPS):
        R = product(R, 1.5 * np.eye(3) - 0.5 * congruence(R.T, np.eye(3)))
    return R


def orthonormal(rows: ArrayLike, least: float = 64.0 * EPS) -> Array:
    """Orthonormal rows that span the same: Gram and Schmidt, each row twice.

    Rows of which no more than ``least`` of their length is left, rounding, are dropped.
    """
    basis: list[Array] = []
    for row in np.asarray(rows, dtype=np.float64):
        left = row
        for _ in range(2):
            for known in basis:
                left = left - known * dot(known, left)
        size = float(lengths(left))
        if size > least * float(lengths(row)):
            basis.append(left / size)
    return np.array(basis).reshape(len(basis), np.shape(rows)[-1])


# -- symmetric matrices ---------------------------------------------------------------------------


def principal(matrix: ArrayLike) -> tuple[Array, Array]:
    """Eigenvalues (..., n) of symmetric matrices, ascending, and unit eigenvectors as columns.

    Jacobi's method: entries off the diagonal are turned to zero, one after another, until all are
    negligible. Right to rounding beside the largest eigenvalue; NaN of what is not finite.
    """
    A = np.asarray(matrix, dtype=np.float64)
    n = A.shape[-1]
    exponent = np.frexp(np.abs(A).max(axis=(-2, -1), initial=0.0))[1]
    a, v = _entries(np.ldexp(A, -exponent[..., None, None])), _entries(np.eye(n))
    pairs = [(p, q) for p in range(n) for q in range(p + 1, n)]
    for _ in range(SWEEPS):
        if not any(_somewhere(abs(a[p][q]) > NEGLIGIBLE) for p, q in pairs):
            break
        for p, q in pairs:
            _turn(a, v, p, q)
    batch = A.shape[:-2]
    values = np.array([np.broadcast_to(a[k][k], batch) for k in range(n)])
    axes = np.array([[np.broadcast_to(x, batch) for x in row] for row in v])
    values, axes = np.moveaxis(values, 0, -1), np.moveaxis(axes, (0, 1), (-2, -1))
    order = np.argsort(values, axis=-1, kind="stable")
    values = np.take_along_axis(values, order, -1)
    axes = np.take_along_axis(axes, order[..., None, :], -1)
    return np.ldexp(values, exponent[..., None]), axes


def _entries(A: Array) -> Entries:
    """Of one matrix as floats, of a batch as arrays."""
    if A.ndim == 2:
        rows: Entries = A.tolist()
        return rows
    return [list(row) for row in np.moveaxis(A, (-2, -1), (0, 1))]


def _turn(a: Entries, v: Entries, p: int, q: int) -> None:
    """Turn axes p and q so that a[p][q] is zero; the columns of v are the axes."""
    off = a[p][q]
    if not _somewhere(abs(off) > NEGLIGIBLE):
        return
    away = abs(off) - NEGLIGIBLE
    twice = 2.0 * select(away, off, 0.0)
    apart = a[q][q] - a[p][p]
    root = sqrt(apart * apart + twice * twice)
    below = select(apart, apart + root, apart - root)  # no cancellation
    t = twice / select(abs(below), below, 1.0)
    c = 1.0 / sqrt(t * t + 1.0)
    s = t * c
    a[p][p], a[q][q] = a[p][p] - t * off, a[q][q] + t * off
    a[p][q] = a[q][p] = select(away, 0.0, off)
    for k in range(len(a)):
        if k not in (p, q):
            x, y = a[k][p], a[k][q]
            a[k][p] = a[p][k] = c * x - s * y
            a[k][q] = a[q][k] = s * x + c * y
        x, y = v[k][p], v[k][q]
        v[k][p], v[k][q] = c * x - s * y, s * x + c * y


def _somewhere(condition: Any) -> bool:
    return condition if isinstance(condition, bool) else bool(np.any(condition))


def eigenvalues(matrix: ArrayLike) -> Array:
    """Eigenvalues of symmetric matrices, ascending."""
    return principal(matrix)[0]


def of_principal(values: Array, axes: Array) -> Array:
    """The symmetric matrix with these eigenvalues and eigenvectors."""
    return mirrored(product(axes * values[..., None, :], np.swapaxes(axes, -1, -2)))


def pseudo_inverse(matrix: ArrayLike) -> Array:
    """Of symmetric matrices; eigenvalues that are rounding beside the largest count as zero."""
    values, axes = principal(matrix)
    size = np.abs(values)
    counts = size > 8.0 * EPS * size.max(axis=-1, keepdims=True, initial=0.0)
    return of_principal(np.where(counts, 1.0 / np.where(counts, values, 1.0), 0.0), axes)
