"""Manipulability of a frame [Yoshikawa 1985], and its gradient.

    w = √det(J Jᵀ)  =  Π r_i,    J = L Q

the volume of the ellipsoid of the frame's velocities at joint rates of length one. L is lower
triangular with diagonal r, the rows of Q are orthonormal: rows of J are made orthogonal one after
another (modified Gram-Schmidt), which keeps the digits that det loses near singular poses, and a
row of which nothing is left makes w zero. Where fewer than six degrees of freedom move the frame,
the same of the columns: ``w = √det(Jᵀ J)``, the volume in the space that they span.

Of det A, the derivative is ``det A tr(A⁻¹ A')``; so along a rate k, with the change ``∂_k J`` that
``kic.py`` has,

    ∂_k w = w tr(J⁺ ∂_k J),    J⁺ᵀ = (J Jᵀ)⁻¹ J = L⁻ᵀ Q

which does not exist at singular poses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.algorithms.dense import dot, transpose
from linkwise.algorithms.kic import kinematic_hessian
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Matrix, Scalar, Vector, reciprocal, sqrt
from linkwise.spatial.scalar import reciprocal_or_zero


def manipulability(tree: Tree, q: Vector, *, frame: Frame) -> Scalar:
    """The volume w."""
    J = jacobian_columns(tree, q, frame, "base")
    return _product(orthogonal(tree.short_side(J, 6), reciprocal_or_zero)[1])


def manipulability_gradient(tree: Tree, q: Vector, *, frame: Frame) -> list[Scalar]:
    """How w changes along each degree of freedom."""
    J = jacobian_columns(tree, q, frame, "base")
    moving, rows = list(J), tree.short_side(J, 6)
    inverses: list[Scalar] = []

    def kept(x: Scalar) -> Scalar:
        inverses.append(reciprocal(x, 1.0))
        return inverses[-1]

    Q, lengths, L = orthogonal(rows, kept)
    Y = _back(L, inverses, Q)
    Y = transpose(Y) if len(moving) < 6 else Y  # 6 rows again, a column per moving joint
    w, H = _product(lengths), kinematic_hessian(tree, q, frame=frame)
    out: list[Scalar] = [0.0] * tree.nv
    own = [x for row in Y for x in row]
    for k in moving:
        out[k] = w * dot(own, [row[k][j] for row in H for j in moving])
    return out


def orthogonal(
    rows: Sequence[Any], inverse: Callable[[Scalar], Scalar]
) -> tuple[list[Any], list[Scalar], Matrix]:
    """Orthonormal rows, lengths r, and L; ``inverse`` is what the reciprocal of a length is.

    Rows are vectors that know their sums, multiples and products (`Row`).
    """
    rest = list(rows)
    lengths: list[Scalar] = []
    L: Matrix = [[0.0] * len(rest) for _ in rest]
    for i, row in enumerate(rest):
        lengths.append(sqrt(row.dot(row)))
        rest[i] = row * inverse(lengths[i])
        for j in range(i + 1, len(rest)):
            L[j][i] = rest[j].dot(rest[i])
            rest[j] = rest[j] - rest[i] * L[j][i]
    return rest, lengths, L


def _back(L: Matrix, inverses: Vector, Q: list[Any]) -> list[Any]:
    """``L⁻ᵀ Q``, by the inverses of the diagonal."""
    X = list(Q)
    for i in reversed(range(len(X))):
        X[i] = X[i] * inverses[i]
        for j in range(i):
            X[j] = X[j] - X[i] * L[i][j]
    return X


def _product(lengths: Vector) -> Scalar:
    total: Scalar = 1.0
    for x in lengths:
        total = total * x
    return total
