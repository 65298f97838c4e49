"""Kinematic influence coefficients, and the inertial power array made of them.

    u̇ = G qd,   ü = G qdd + qdᵀ H qd  [1, 3],      tau = I* qdd + qdᵀ P* qd + gravity  [8]

[Kang, corrected; numbers in brackets are its equations]. H_jk is the change of column k of G
as joint j moves; base axes, and S × along the nearer of the two joints:

    H_jk = (S_j × S_k, S_j × g_k)   if j moves k,    else  (0, S_k × g_j)

    linkwise    P1 = Σ m g_i · H_jk,   P2 = Σ S_i · 𝕀 H^r_jk,   P3 = Σ (S_i × S_j) · 𝕀 S_k      [10]
    augmented   the same at the centre of mass of the subtree of the outermost joint k [15, 18],
                once for i, j no further out [25-27]; other orders are these or minus these [P3-P10]

The two arrays differ; what they make of a motion does not: both give C qd = qdᵀ P* qd, and made
symmetric in j, k they are Christoffel's symbols (coriolis.py). Spherical and free joints have
rates that are no derivatives of coordinates, so that P* has no second derivatives to be made of.
By links, H is then the change of G along each rate (which is not symmetric). By augmented bodies,
the joint is taken for an instant as a chain of one-degree joints, and brackets are added. Either
way qdᵀ P* qd is C qd, which is all that is left of the classical meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.chains import (
    Chain,
    Tensor,
    add,
    at_point,
    chains,
    extend,
    no_tensor,
    root_poses,
)
from linkwise.algorithms.coriolis import add_brackets
from linkwise.algorithms.crba import Matrix, compose
from linkwise.algorithms.kinematics import BASE_POSE, Pose, place
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Motion, RigidInertia, Rotation, Scalar, Sym3, Vec3, cross
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import along_path, tip_to_base

Parts = tuple[Scalar, Scalar, Scalar]  # of P1, P2, P3


class Body(NamedTuple):
    """A body at its centre of mass, in the axes of its root."""

    m: Scalar
    c: Vec3
    I: Sym3


def at_centre(body: RigidInertia, pose: Pose) -> Body:
    """Mass, centre and rotational inertia about it; a body without mass is taken at its origin."""
    c = body.h * (1.0 / body.m if body.m else 0.0)
    central = RigidInertia(0.0, Vec3.zero(), body.second - sym_outer(c, body.h))
    return Body(body.m, pose.p + pose.R @ c, Rotation(pose.R).sym_short(central.rotational()))


def change(chain: Chain, g: Sequence[Motion], j: int, k: int) -> Motion:
    """``H_jk``, the second-order coefficients of a point."""
    if chain[j].moves <= k:
        return Motion(cross(g[j].ang, g[k].ang), cross(g[j].ang, g[k].lin))
    return Motion(Vec3.zero(), cross(g[k].ang, g[j].lin))


def kinematic_hessian(tree: Tree, q: Sequence[Scalar], *, frame: Frame) -> Tensor:
    """``H`` of a frame: angular and linear rows, by degrees of freedom j and k; G is `jacobian`."""
    H = no_tensor(6, tree.nv)
    poses = along_path(tree, frame.link, place, BASE_POSE, tree.per_link_q(q))
    chain: Chain = ()
    for i, pose in poses:
        chain = extend(tree.links[i], chain, pose)
    last = poses[-1][1] if poses else BASE_POSE
    g = at_point(chain, last.p + last.R @ Vec3(*frame.origin))
    for j, a in enumerate(chain):
        for k, b in enumerate(chain):
            for plane, x in zip(H, change(chain, g, j, k) * (a.factor * b.factor), strict=True):
                plane[a.dof][b.dof] = plane[a.dof][b.dof] + x
    return H


# -- link by link -------------------------------------------------------------------------------


def linkwise_parts(tree: Tree, q: Sequence[Scalar]) -> list[Tensor]:
    """P1, P2 and P3 as sums over links: for small robots, and to check by."""
    poses = root_poses(tree, q)
    parts = [no_tensor(tree.nv, tree.nv) for _ in range(3)]
    for link, pose, chain in zip(tree.links, poses, chains(tree, poses), strict=True):
        for (i, j, k), terms in link_terms(at_centre(link.inertia, pose), chain):
            for P, x in zip(parts, terms, strict=True):
                add(P, chain[i], chain[j], chain[k], x)
    return parts


def link_terms(body: Body, chain: Chain) -> Iterator[tuple[tuple[int, int, int], Parts]]:
    """What one body adds to P1, P2 and P3, for all columns that move it."""
    g, n = at_point(chain, body.c), range(len(chain))
    L = [body.I @ column.ang for column in g]
    p = [column.lin * body.m for column in g]
    for j in n:
        for k in n:
            H = change(chain, g, j, k)
            for i in n:
                P3 = cross(g[i].ang, g[j].ang).dot(L[k])
                yield (i, j, k), (p[i].dot(H.lin), L[i].dot(H.ang), P3)


# -- augmented bodies ---------------------------------------------------------------------------


def augmented_parts(tree: Tree, q: Sequence[Scalar]) -> list[Tensor]:
    """P1, P2 and P3 by augmented bodies, every joint a chain of one-degree joints."""
    parts = [no_tensor(tree.nv, tree.nv) for _ in range(3)]
    for body, chain in augmented_bodies(tree, q):
        for (i, j, k), terms in completed(*independent(body, chain)):
            for P, x in zip(parts, terms, strict=True):
                add(P, chain[i], chain[j], chain[k], x)
    return parts


def augmented_bodies(tree: Tree, q: Sequence[Scalar]) -> Iterator[tuple[Body, Chain]]:
    """What each column moves, as one body, and the chain that ends with the column."""
    poses = root_poses(tree, q)
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), [pose.J for pose in poses])
    for pose, body, chain in zip(poses, composites, chains(tree, poses), strict=True):
        augmented = at_centre(body, pose)
        for last in range(len(chain) - len(pose.J.S), len(chain)):
            yield augmented, chain[: last + 1]


def independent(body: Body, chain: Chain) -> list[Matrix]:
    """P1, P2, P3 of the chain's last column k, for i and j no further out [25-27].

    P1_kjk = 0, P3 is skew, and P2_kjk = P3_jkk.
    """
    *inner, last = at_point(chain, body.c)
    k = len(inner)
    L, p_k = body.I @ last.ang, last.lin * body.m
    p = [cross(g.ang, p_k) for g in (*inner, last)]
    dL = [body.I @ cross(g.ang, last.ang) for g in (*inner, last)]
    P1, P2 = ([[0.0] * (k + 1) for _ in range(k + 1)] for _ in range(2))
    P3: Matrix = [[0.0] * (k + 1) for _ in range(k + 1)]
    for i, g in enumerate(inner):
        P1[i] = [g.lin.dot(x) for x in p]
        P2[i] = [g.ang.dot(x) for x in dL]
        for j, h in enumerate((*inner[i + 1 :], last), i + 1):
            P3[i][j] = cross(g.ang, h.ang).dot(L)
            P3[j][i] = -P3[i][j]
        P2[k][i] = P3[i][k]
    return [P1, P2, P3]


def completed(P1: Matrix, P2: Matrix, P3: Matrix) -> Iterator[tuple[tuple[int, int, int], Parts]]:
    """Every order of indices whose outermost is m, from ``P[i][j] = P_ijm`` [P3-P10]."""
    m = len(P1) - 1
    for i in range(m + 1):
        for j in range(m + 1):
            yield (i, j, m), (P1[i][j], P2[i][j], P3[i][j])
    for k in range(m):
        for i in range(m + 1):
            yield (i, m, k), (P1[i][k], 0.0, P2[k][i])
        for j in range(m):
            P1_mjk = -P1[max(j, k)][min(j, k)]
            yield (m, j, k), (P1_mjk, P3[j][k] if j < k else 0.0, -P2[k][j])


def together(P1: Matrix, P2: Matrix, P3: Matrix) -> Iterator[tuple[tuple[int, int, int], Scalar]]:
    """What `completed` yields, terms added: two sums serve all orders of three columns."""
    m = len(P1) - 1
    for i in range(m):
        yield (i, m, m), P1[i][m] + P3[i][m]
        for j in range(m):
            x, y = P1[i][j] + P2[i][j] + P3[i][j], P1[i][j] + P2[j][i]
            yield (i, j, m), x
            yield (i, m, j), y
            if j < i:
                yield (m, j, i), -x
            if j <= i:
                yield (m, i, j), -y


# -- the array ----------------------------------------------------------------------------------


def linkwise(tree: Tree, q: Sequence[Scalar]) -> Tensor:
    """``P*`` as a sum over links."""
    return _sum(linkwise_parts(tree, q))


def augmented(tree: Tree, q: Sequence[Scalar]) -> Tensor:
    """``P*`` by augmented bodies."""
    P = no_tensor(tree.nv, tree.nv)
    for body, chain in augmented_bodies(tree, q):
        for (i, j, k), x in together(*independent(body, chain)):
            add(P, chain[i], chain[j], chain[k], x)
    add_brackets(tree, q, P)
    return P


def _sum(parts: list[Tensor]) -> Tensor:
    first, *rest = parts
    n = range(len(first))
    for P in rest:
        first = [[[x + y for x, y in zip(first[i][j], P[i][j], strict=True)] for j in n] for i in n]
    return first
