"""The inertial power array by augmented bodies [Kang, corrected; numbers in brackets are its
equations].

P1, P2 and P3 of three joints depend on what the outermost of them moves, as one body at its centre
of mass [15, 18]. They are formed once for i, j no further out than k [25-27]; other orders of the
three indices are these or minus these [P3-P10]. Coefficients and the array are those of ``kic.py``.
A joint of several columns is taken for an instant as a chain of one-degree joints; for spherical
and free joints brackets are added.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algorithms.chains import Chain, at_point, chains
from linkwise.algorithms.christoffel import with_brackets
from linkwise.algorithms.crba import compose
from linkwise.algorithms.kic import CentralBody, Parts, at_centre, numbered, parts_of
from linkwise.algorithms.poses import LinkPose, root_poses
from linkwise.model.projection import Tensor
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, RigidInertia, Scalar, Vector, cross
from linkwise.sweep import each_link, tip_to_base


def augmented_parts(tree: Tree, q: Vector) -> list[Tensor]:
    """P1, P2 and P3 by augmented bodies, every joint a chain of one-degree joints."""
    bodies = augmented_bodies(tree, q)
    return parts_of(tree, [(chain, list(completed(*independent(b, chain)))) for b, chain in bodies])


def augmented_bodies(tree: Tree, q: Vector) -> list[tuple[CentralBody, Chain]]:
    """For each column: all links that it moves, as one body, and the chain that ends with it."""
    poses = root_poses(tree, q)
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), [pose.J for pose in poses])
    found = each_link(tree, link_bodies, poses, composites, chains(tree, poses))
    return [pair for own in found for pair in own]


def link_bodies(
    _link: Link, pose: LinkPose, body: RigidInertia, chain: Chain
) -> list[tuple[CentralBody, Chain]]:
    """The augmented bodies of one joint's columns."""
    augmented = at_centre(body, pose)
    first = len(chain) - len(pose.J.S)
    return [(augmented, chain[: last + 1]) for last in range(first, len(chain))]


def independent(body: CentralBody, chain: Chain) -> list[Matrix]:
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
    """P1 + P2 + P3 of `completed`: two sums serve all orders of three columns."""
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


def augmented(tree: Tree, q: Vector) -> Tensor:
    """``P*`` by augmented bodies."""
    terms = (
        entry
        for body, chain in augmented_bodies(tree, q)
        for entry in numbered(chain, together(*independent(body, chain)))
    )
    return with_brackets(tree, q, tree.gather_tensor(terms))
