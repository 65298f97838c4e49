"""The inertial power array P*, made of kinematic influence coefficients (kic.py).

    tau = I* qdd + qdᵀ P* qd + gravity                                                        [8]

    per-link    P1 = Σ m g_i · H_jk,   P2 = Σ S_i · 𝕀 H^r_jk,   P3 = Σ (S_i × S_j) · 𝕀 S_k      [10]
    augmented   the same at the centre of mass of the subtree of the outermost joint k [15, 18],
                once for i, j no further out [25-27]; other orders are these or minus these [P3-P10]

[Kang, corrected; numbers in brackets are its equations]. By links here, by augmented bodies in
``augmented.py``. The two arrays differ; what they make of a motion does not: both give
C qd = qdᵀ P* qd, and made symmetric in j, k they are Christoffel's symbols (christoffel.py).
Spherical and free joints have rates that are no derivatives of coordinates, so that P* has no
second derivatives to be made of. By links, H is then the change of G along each rate. By augmented
bodies, the joint is taken for an instant as a chain of one-degree joints, and brackets are added.
Either way qdᵀ P* qd is C qd; the rest of the classical meaning is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.chains import Chain, at_point, chains
from linkwise.algorithms.kic import change, numbered
from linkwise.algorithms.poses import LinkPose, root_poses
from linkwise.model.projection import Index, Tensor
from linkwise.model.tree import Tree
from linkwise.spatial import RigidInertia, Rotation, Scalar, Sym3, Vec3, Vector, cross
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import each_link

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


def per_link_parts(tree: Tree, q: Vector) -> list[Tensor]:
    """P1, P2 and P3 as sums over links: for small robots, and to check by."""
    poses = root_poses(tree, q)
    bodies = each_link(tree, lambda link, pose: at_centre(link.inertia, pose), poses)
    pairs = list(zip(bodies, chains(tree, poses), strict=True))
    return parts_of(tree, [(chain, list(link_terms(body, chain))) for body, chain in pairs])


def link_terms(body: CentralBody, chain: Chain) -> Iterator[tuple[tuple[int, int, int], Parts]]:
    """The terms of one body in P1, P2 and P3, for all columns that move it."""
    g, n = at_point(chain, body.c), range(len(chain))
    L = [body.I @ column.ang for column in g]
    p = [column.lin * body.m for column in g]
    for j in n:
        for k in n:
            H = change(chain, g, j, k)
            for i in n:
                P3 = cross(g[i].ang, g[j].ang).dot(L[k])
                yield (i, j, k), (p[i].dot(H.lin), L[i].dot(H.ang), P3)


def per_link(tree: Tree, q: Vector) -> Tensor:
    """``P*`` as a sum over links."""
    n = range(tree.nv)
    P1, P2, P3 = per_link_parts(tree, q)
    return [[[P1[i][j][k] + P2[i][j][k] + P3[i][j][k] for k in n] for j in n] for i in n]


def parts_of(tree: Tree, terms: Sequence[tuple[Chain, list[tuple[Index, Parts]]]]) -> list[Tensor]:
    """P1, P2 and P3 from terms by chain."""

    def part(p: int) -> Iterator[tuple[Index, Scalar]]:
        for chain, own in terms:
            yield from numbered(chain, ((at, x[p]) for at, x in own))

    return [tree.gather_tensor(part(p)) for p in range(3)]
