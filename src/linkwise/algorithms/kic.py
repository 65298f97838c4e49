"""Kinematic influence coefficients: how a point moves, to first and second order.

    u̇ = G qd,   ü = G qdd + qdᵀ H qd                                                     [1, 3]

[Kang, corrected; numbers in brackets are its equations]. H_jk is the change of column k of G
as joint j moves; base axes, and S × along the nearer of the two joints:

    H_jk = (S_j × S_k, S_j × g_k)   if j moves k,    else  (0, S_k × g_j)

Spherical and free joints have rates that are no derivatives of coordinates: H is then the change of
G along each rate, which is not symmetric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from linkwise.algorithms.chains import Chain, at_point, extend
from linkwise.algorithms.poses import link_poses
from linkwise.model.projection import Index, Tensor
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path


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
