"""The balance of an object between the arms that hold it.

    (M_c + Σ W Λ Wᵀ) a = push - b_c - Σ W Λ free,      f = -Λ (free + Wᵀ a)

``grasp_recursive.py`` has the symbols. Λ [free, Wᵀ] is solved for each robot by itself, from the
LDLᵀ factors of its Ω; what the object then feels of the robot is added to its own inertia.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.pv import Sums
from linkwise.model.tree import BASE, Tree
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


def coupled(tree: Tree) -> dict[int, list[int]]:
    """Numbers of the directions that contacts hold, those of each robot together, by its root."""
    assert tree.held is not None
    found: dict[int, list[int]] = {}
    first = 0
    for contact in tree.held.contacts:
        root = (tree.path(contact.a.link) or [BASE])[0]
        found.setdefault(root, []).extend(range(first, first + contact.rank))
        first += contact.rank
    return found


def too_few_joints(tree: Tree) -> str:
    """Why some robot can never move in all directions that its contacts hold; empty if each can."""
    assert tree.held is not None
    for root in coupled(tree):
        own = [x for x in tree.held.contacts if (tree.path(x.a.link) or [BASE])[0] == root]
        on_way = {i for x in own for i in tree.path(x.a.link)}
        held, able = sum(x.rank for x in own), sum(tree.links[i].joint.nv for i in on_way)
        names, verb = " and ".join(x.name for x in own), "hold" if len(own) > 1 else "holds"
        if held > able:
            return f"{names} {verb} {held} directions, and {able} degrees of freedom move them"
        if any(sum(x.rank for x in own if x.a.link == y.a.link) > 6 for y in own):
            return f"{names} hold more directions of one link than it can move in"
    return ""


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
    for rows in coupled(tree).values():
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
