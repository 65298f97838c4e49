"""Mass matrix in one fixed frame: GDAHJ as published, and its symmetric variant.

    M_ij = k_j · d_i + t_j · y_i,      j on the way from link i to the base

[Safeea 2018, eq. 31 and Algorithm 1]. Everything is seen from one point, so an entry is two inner
products: nothing is carried from link to link as in CRBA. The first link of each branch gives that
point and the axes, so no offset between base and robot costs digits.

    base -> tip   R, p, l   axes and origin of each link, and its way from its parent
    tip -> base   b, D      as published: first moment and (not symmetric) moment matrix of the
                            subtree; d = Dᵀ k, y = b x k, t = k x p
                  I         symmetric: inertia of the subtree, ten numbers; (d, -y) = I (k, -t)

The symmetric sums are cheaper, add up in any order, and use regrouped links; ``mixed.py`` is
cheaper still. With motions ``(k, -t)`` at the fixed point in place of axes, sliders, joints of
several columns, rotors, followers and trees are the same equations.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.poses import LinkPose, root_poses, stay
from linkwise.model.tree import Link, Tree
from linkwise.spatial import (
    Force,
    Mat3,
    Matrix,
    Motion,
    RigidInertia,
    Rotation,
    Scalar,
    Vec3,
    Vector,
)
from linkwise.spatial.vec3 import cross, minus_skews
from linkwise.sweep import added, each_pair, tip_to_base


class Moments(NamedTuple):
    """Mass, first moment about the fixed point, and the published b and D; sums over children."""

    m: Scalar
    c: Vec3
    b: Vec3
    D: Mat3


NOTHING = Moments(0.0, Vec3.zero(), Vec3.zero(), Mat3.zero())


def sum_moments(link: Link, children: Moments, at: LinkPose) -> tuple[list[Force], Moments]:
    """``(d, y)`` for each of the joint's columns [eqs. 23, 24, 27, 28, 31]."""
    m_i, centre = link.inertia.m, link.inertia.centre()
    I_C = Rotation(at.R).sym_short(link.inertia.seen_from(-centre).rotational())
    p_Cii = at.R @ centre
    p_C, mp = at.p + p_Cii, p_Cii * m_i
    own = Moments(m_i, p_C * m_i, mp, I_C.full() + minus_skews(mp, p_C))
    m, c, b, D = added(children, own)
    out = [
        Force(D.T @ s.ang + cross(c, s.lin), cross(b, s.ang) - s.lin * m) for s in at.turned(at.J.S)
    ]  # a revolute joint has no s.lin
    return out, Moments(m, c, b + at.l * m, D + minus_skews(at.l, c))


def compose(link: Link, children: RigidInertia, at: LinkPose) -> tuple[list[Force], RigidInertia]:
    """Momenta of the subtree about the fixed point, one per column of the joint."""
    total = children + link.inertia.turned(Rotation(at.R)).seen_from(at.p)
    return [total @ s for s in at.S], total


def meet(_link: Link, F: list[Force], S: list[Motion]) -> Matrix:
    """``S_j · F_i``: a row per wrench."""
    return [[s.dot(f) for s in S] for f in F]


def project(tree: Tree, S: list[list[Motion]], F: list[list[Force]]) -> Matrix:
    """``M_ij = S_j · F_i`` for each link i and each j between it and the base, rotors added."""
    pairs = each_pair(tree, stay, meet, F, S)
    blocks = (((i, j), block) for (j, i), block in pairs)
    return tree.with_rotors(tree.gather_symmetric(blocks))


def gdahj(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix by Algorithm 1; entries between branches are exactly zero."""
    at = root_poses(tree, q)
    F, _ = tip_to_base(tree, sum_moments, NOTHING, at)
    return project(tree, [[Motion(s.ang, -s.lin) for s in pose.S] for pose in at], F)


def gdahj_symmetric(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix by symmetric sums about the fixed point."""
    at = root_poses(tree, q)
    F, _ = tip_to_base(tree, compose, RigidInertia.zero(), at)
    return project(tree, [pose.S for pose in at], F)
