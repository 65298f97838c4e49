"""The inertial power array by augmented bodies [Kang, corrected; numbers in brackets are its
equations].

P1, P2 and P3 of three joints depend on what the outermost of them moves, as one body at its centre
of mass [15, 18]. They are formed once for i, j no further out than k [25-27]; other orders of the
three indices are these or minus these [P3-P10]. The array is that of
``inertial_power.py``, the coefficients are those of ``kic.py``.
A joint of several columns is taken for an instant as a chain of one-degree joints; for spherical
and free joints brackets are added.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algorithms.chains import Chain, at_point, by_outermost
from linkwise.algorithms.christoffel import with_brackets
from linkwise.algorithms.inertial_power import CentralBody, at_centre
from linkwise.algorithms.kic import numbered
from linkwise.algorithms.poses import LinkPose
from linkwise.model.projection import Tensor
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Motion, RigidInertia, Scalar, Vector, cross


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


def together(P1: Matrix, P2: Matrix, P3: Matrix) -> Iterator[tuple[tuple[int, int, int], Scalar]]:
    """P1 + P2 + P3 for every order of indices whose outermost is m, from ``P[i][j] = P_ijm``.

    By [P3-P10] other orders are these or minus these, so that two sums serve all six.
    """
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


def augmented_body(body: RigidInertia, pose: LinkPose, _S: Motion) -> CentralBody:
    """All that a column moves, as one body at its centre of mass."""
    return at_centre(body, pose)


def augmented(tree: Tree, q: Vector) -> Tensor:
    """``P*`` by augmented bodies."""
    terms = (
        entry
        for chain, body in by_outermost(tree, q, augmented_body)
        for entry in numbered(chain, together(*independent(body, chain)))
    )
    return with_brackets(tree, q, tree.gather_tensor(terms))
