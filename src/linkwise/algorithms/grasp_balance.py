"""The balance of an object between the arms that hold it.

    (M_c + Σ W Λ Wᵀ) a = push - b_c - Σ W Λ free,      f = -Λ (free + Wᵀ a)

``grasp_recursive.py`` has the symbols. Λ [free, Wᵀ] is solved for each robot by itself, from the
LDLᵀ factors of its Ω; what the object then feels of the robot is added to its own inertia.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.pv import Sums
from linkwise.model.forest import directions_of_robots
from linkwise.model.tree import Tree
from linkwise.spatial import (
    Force,
    Mat3,
    Matrix,
    Motion,
    RigidInertia,
    Scalar,
    Vec3,
    Vector,
    reciprocal_if_regular,
)


class Equations(NamedTuple):
    """``K a = r``, of the object's acceleration."""

    K: Matrix
    r: list[Scalar]


def alone(body: RigidInertia, spin: Mat3, push: Vector) -> Equations:
    """The object without arms: its inertia, and what pushes it less what its turning needs."""
    inertia, needed = body.articulated(), list(body.force(Vec3.zero(), spin))
    units = [Motion(Vec3(*row[:3]), Vec3(*row[3:])) for row in dense.unit(6)]
    forces = [x - y for x, y in zip(push, needed, strict=True)]
    return Equations([list(inertia @ unit) for unit in units], forces)


def held_by(eq: Equations, W: Matrix, X: Matrix) -> Equations:
    """The object as it is felt with one robot more: columns W, and Λ [free, Wᵀ] by rows X."""
    columns = dense.transpose(W)  # six rows
    K = dense.plus(eq.K, dense.times(columns, [x[1:] for x in X]))
    free = [x[0] for x in X]
    return Equations(K, [y - dense.dot(w, free) for y, w in zip(eq.r, columns, strict=True)])


def balance(
    tree: Tree, sums: Sums, W: list[Force], body: RigidInertia, spin: Mat3, push: Vector
) -> tuple[Motion, list[Scalar]]:
    """The object's acceleration at its link's origin, and the forces along all directions."""
    inverse, eq = dense.mirrored(sums.inverse), alone(body, spin, push)
    solved: dict[int, list[Scalar]] = {}
    for rows in directions_of_robots(tree).values():
        block = [[inverse[i][j] for j in rows] for i in rows]
        scale = [sums.scale[i] for i in rows]
        L, inv_d = ldl.factor_independent(block, scale, reciprocal_if_regular)
        given = [[sums.free[i], *W[i]] for i in rows]
        X = ldl.backward(L, dense.scaled(ldl.forward(L, given), inv_d))
        eq = held_by(eq, [list(W[i]) for i in rows], X)
        solved |= dict(zip(rows, X, strict=True))
    K = dense.mirrored(eq.K)
    L, inv_d = ldl.factor(K, [K[k][k] for k in range(6)])
    y = ldl.backward(L, dense.scaled(ldl.forward(L, [[x] for x in eq.r]), inv_d))
    a = [x[0] for x in y]
    f = [-(solved[k][0] + dense.dot(solved[k][1:], a)) for k in range(len(W))]
    return Motion(Vec3(*a[:3]), Vec3(*a[3:])), f
