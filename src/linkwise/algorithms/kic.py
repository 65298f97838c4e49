"""Kinematic influence coefficients, and the inertial power array made of them.

    u̇ = G qd,   ü = G qdd + qdᵀ H qd  [1, 3],      tau = I* qdd + qdᵀ P* qd + gravity  [8]

[Kang, corrected; numbers in brackets are its equations]. H_jk is the change of column k of G
as joint j moves; base axes, and S × along the nearer of the two joints:

    H_jk = (S_j × S_k, S_j × g_k)   if j moves k,    else  (0, S_k × g_j)

    per-link    P1 = Σ m g_i · H_jk,   P2 = Σ S_i · 𝕀 H^r_jk,   P3 = Σ (S_i × S_j) · 𝕀 S_k      [10]
    augmented   the same at the centre of mass of the subtree of the outermost joint k [15, 18],
                once for i, j no further out [25-27]; other orders are these or minus these [P3-P10]

The two arrays differ; what they make of a motion does not: both give C qd = qdᵀ P* qd, and made
symmetric in j, k they are Christoffel's symbols (christoffel.py). Spherical and free joints have
rates that are no derivatives of coordinates, so that P* has no second derivatives to be made of.
By links, H is then the change of G along each rate (which is not symmetric). By augmented bodies,
the joint is taken for an instant as a chain of one-degree joints, and brackets are added. Either
way qdᵀ P* qd is C qd, which is all that is left of the classical meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.chains import Chain, at_point, chains, extend, root_poses
from linkwise.algorithms.christoffel import with_brackets
from linkwise.algorithms.crba import compose
from linkwise.algorithms.kinematics import LinkPose, link_poses
from linkwise.model.projection import Index, Tensor
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import (
    Matrix,
    Motion,
    RigidInertia,
    Rotation,
    Scalar,
    Sym3,
    Vec3,
    Vector,
    cross,
)
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import along_path, each_link, tip_to_base

Parts = tuple[Scalar, Scalar, Scalar]  # of P1, P2, P3


class CentralBody(NamedTuple):
    """A body at its centre of mass, in the axes of its root."""

    m: Scalar
    c: Vec3
    I: Sym3


def at_centre(body: RigidInertia, pose: LinkPose) -> CentralBody:
    """Mass, centre and rotational inertia about it; a body without mass is taken at its origin."""
    c = body.centre()
    central = RigidInertia(0.0, Vec3.zero(), body.second - sym_outer(c, body.h))
    I = Rotation(pose.R).sym_short(central.rotational())
    return CentralBody(body.m, pose.p + pose.R @ c, I)


def numbered(chain: Chain, terms: Iterable[tuple[Index, Scalar]]) -> Iterator[tuple[Index, Scalar]]:
    """Terms by position in a chain -> by number of the columns."""
    for at, x in terms:
        yield tuple(chain[i].number for i in at), x


def change(chain: Chain, g: Sequence[Motion], j: int, k: int) -> Motion:
    """``H_jk``, the second-order coefficients of a point."""
    if chain[j].moves <= k:
        return Motion(cross(g[j].ang, g[k].ang), cross(g[j].ang, g[k].lin))
    return Motion(Vec3.zero(), cross(g[k].ang, g[j].lin))


def kinematic_hessian(tree: Tree, q: Vector, *, frame: Frame) -> Tensor:
    """``H`` of a frame: angular and linear rows, by degrees of freedom j and k; G is `jacobian`."""
    poses, last = link_poses(tree, q, frame.link)
    _, chain = along_path(tree, frame.link, extend, (), poses, tree.column_numbers)
    g, n = at_point(chain, last.p + last.R @ Vec3(*frame.origin)), range(len(chain))
    terms = (((j, k), change(chain, g, j, k)) for j in n for k in n)
    H = tree.projection.matrix(numbered(chain, terms), Motion.zero())
    numbers = [[list(m) for m in row] for row in H]
    return [[[m[row] for m in across] for across in numbers] for row in range(6)]


# -- link by link -------------------------------------------------------------------------------


def per_link_parts(tree: Tree, q: Vector) -> list[Tensor]:
    """P1, P2 and P3 as sums over links: for small robots, and to check by."""
    poses = root_poses(tree, q)
    bodies = each_link(tree, lambda link, pose: at_centre(link.inertia, pose), poses)
    pairs = list(zip(bodies, chains(tree, poses), strict=True))
    return _parts(tree, [(chain, list(link_terms(body, chain))) for body, chain in pairs])


def link_terms(body: CentralBody, chain: Chain) -> Iterator[tuple[tuple[int, int, int], Parts]]:
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


def augmented_parts(tree: Tree, q: Vector) -> list[Tensor]:
    """P1, P2 and P3 by augmented bodies, every joint a chain of one-degree joints."""
    bodies = augmented_bodies(tree, q)
    return _parts(tree, [(chain, list(completed(*independent(b, chain)))) for b, chain in bodies])


def augmented_bodies(tree: Tree, q: Vector) -> list[tuple[CentralBody, Chain]]:
    """What each column moves, as one body, and the chain that ends with the column."""
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


def per_link(tree: Tree, q: Vector) -> Tensor:
    """``P*`` as a sum over links."""
    n = range(tree.nv)
    P1, P2, P3 = per_link_parts(tree, q)
    return [[[P1[i][j][k] + P2[i][j][k] + P3[i][j][k] for k in n] for j in n] for i in n]


def augmented(tree: Tree, q: Vector) -> Tensor:
    """``P*`` by augmented bodies."""
    terms = (
        entry
        for body, chain in augmented_bodies(tree, q)
        for entry in numbered(chain, together(*independent(body, chain)))
    )
    return with_brackets(tree, q, tree.gather_tensor(terms))


def _parts(tree: Tree, terms: Sequence[tuple[Chain, list[tuple[Index, Parts]]]]) -> list[Tensor]:
    """P1, P2 and P3 from terms by chain."""

    def part(p: int) -> Iterator[tuple[Index, Scalar]]:
        for chain, own in terms:
            yield from numbered(chain, ((at, x[p]) for at, x in own))

    return [tree.gather_tensor(part(p)) for p in range(3)]
