"""Mass matrix in one fixed frame: GDAHJ as published, and its symmetric variant.

    M_ij = k_j · d_i + t_j · y_i,      j on the way from link i to the base

[Safeea 2018, eq. 31 and Algorithm 1]. Everything is seen from one point, so an entry is two inner
products: nothing is carried from link to link as in CRBA. The first link of each branch gives that
point and the axes, so no offset between base and robot costs digits.

    base -> tip   R, p, l   axes and origin of each link, and its way from its parent
    tip -> base   b, D      as published: first moment and (not symmetric) moment matrix of the
                            subtree; d = Dᵀ k, y = b x k, t = k x p
                  I         symmetric: inertia of the subtree, ten numbers; (d, -y) = I (k, -t)

The symmetric sums are cheaper, add up in any order, and use regrouped links. ``mixed`` is cheaper
still: it sums as CRBA does, in link axes, where a momentum is a column of the composite inertia and
costs nothing, turns each momentum to the fixed frame once, and forms entries there. With motions
``(k, -t)`` at the fixed point in place of axes, sliders, joints of several columns, rotors,
followers and trees are the same equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms import crba
from linkwise.algorithms.kinematics import BASE_POSE
from linkwise.algorithms.rates import NO_JOINT
from linkwise.model.joints import Stance
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Force, Mat3, Motion, RigidInertia, Rotation, Scalar, Sym3, Vec3, cross
from linkwise.sweep import base_to_tip, tip_to_base

Matrix = list[list[Scalar]]


class Place(NamedTuple):
    """A link in the fixed frame: axes, origin, way from the parent's origin, joint's columns."""

    R: Mat3
    p: Vec3
    l: Vec3
    own: list[Motion]  # columns at the link's origin
    S: list[Motion]  # columns at the fixed point


class Moments(NamedTuple):
    """Mass, first moment about the fixed point, and the published b and D; sums over children."""

    m: Scalar
    c: Vec3
    b: Vec3
    D: Mat3

    def __add__(self, o: Moments) -> Moments:  # type: ignore[override]
        return Moments(self.m + o.m, self.c + o.c, self.b + o.b, self.D + o.D)


FIXED = Place(BASE_POSE.R, BASE_POSE.p, Vec3.zero(), [], [])
NOTHING = Moments(0.0, Vec3.zero(), Vec3.zero(), Mat3.zero())


def locate(_link: Link, parent: Place, J: Stance) -> Place:
    """A link's place from its parent's."""
    R = Mat3(*(J.X.rotate(row) for row in parent.R.rows))
    l = parent.R @ J.X.r
    p = parent.p + l
    own = [Motion(R @ column.ang, R @ column.lin) for column in J.S]
    return Place(R, p, l, own, [Motion(s.ang, s.lin + cross(p, s.ang)) for s in own])


def places(tree: Tree, q: Sequence[Scalar]) -> list[Place]:
    """Every link, seen from the first link of its branch."""
    J = [link.stance(own) for link, own in zip(tree.links, tree.per_link_q(q), strict=True)]
    seen = [
        Stance(NO_JOINT.X, j.S) if link.parent == BASE else j
        for link, j in zip(tree.links, J, strict=True)
    ]
    return base_to_tip(tree, locate, FIXED, seen)


def gather(link: Link, children: Moments, at: Place) -> tuple[list[Force], Moments]:
    """``(d, y)`` for each of the joint's columns [eqs. 23, 24, 27, 28, 31]."""
    m_i, centre, I_C = _about_centre(link.inertia)
    p_Cii = at.R @ centre
    p_C, mp = at.p + p_Cii, p_Cii * m_i
    body = Moments(
        m_i, p_C * m_i, mp, _matrix(Rotation(at.R).sym_short(I_C)) + _minus_skews(mp, p_C)
    )
    m, c, b, D = children + body
    out = [
        Force(D.T @ s.ang + cross(c, s.lin), cross(b, s.ang) - s.lin * m) for s in at.own
    ]  # a revolute joint has no s.lin
    return out, Moments(m, c, b + at.l * m, D + _minus_skews(at.l, c))


def compose(link: Link, children: RigidInertia, at: Place) -> tuple[list[Force], RigidInertia]:
    """Momenta of the subtree about the fixed point, one per column of the joint."""
    body = link.inertia
    turned = RigidInertia(body.m, at.R @ body.h, Rotation(at.R).sym_short(body.second))
    total = children + turned.seen_from(at.p)
    I, h, m = total.rotational(), total.h, total.m
    out = [
        Force(I @ s.ang + cross(h, s.lin), s.lin * m - cross(h, s.ang)) for s in at.S
    ]  # total @ s, with the rotational inertia formed once
    return out, total


def project(tree: Tree, S: list[list[Motion]], F: list[list[Force]]) -> Matrix:
    """``M_ij = S_j · F_i`` for each link i and each j between it and the base, rotors added."""
    M: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    columns = [
        [(dof, factor, s) for (dof, factor), s in zip(link.dofs, own, strict=True)]
        for link, own in zip(tree.links, S, strict=True)
    ]
    for i, link in enumerate(tree.links):
        inward = [column for j in tree.path(i)[:-1] for column in columns[j]]
        for (k, b, s), f, rotor in zip(columns[i], F[i], link.armature, strict=True):
            M[k][k] = M[k][k] + _times(s.dot(f) + rotor, b * b)
            for j, a, s_j in inward:
                x = _times(s_j.dot(f), a * b)
                M[j][k] = M[j][k] + x
                M[k][j] = M[k][j] + x
            inward.append((k, b, s))
    return M


def gdahj(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix by Algorithm 1; entries between branches are exactly zero."""
    at = places(tree, q)
    F, _ = tip_to_base(tree, gather, NOTHING, at)
    return project(tree, [[Motion(s.ang, -s.lin) for s in place.S] for place in at], F)


def gdahj_symmetric(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix by symmetric sums about the fixed point."""
    at = places(tree, q)
    F, _ = tip_to_base(tree, compose, RigidInertia.zero(), at)
    return project(tree, [place.S for place in at], F)


def mixed(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix with composite bodies in link axes and entries in the fixed frame."""
    J = [link.stance(own) for link, own in zip(tree.links, tree.per_link_q(q), strict=True)]
    composites, _ = tip_to_base(tree, crba.compose, RigidInertia.zero(), J)
    at = places(tree, q)
    F = [
        [in_fixed_frame(composite @ column, place) for column in j.S]
        for j, composite, place in zip(J, composites, at, strict=True)
    ]
    return project(tree, [place.S for place in at], F)


def in_fixed_frame(f: Force, at: Place) -> Force:
    """A wrench at a link's origin, in its axes -> at the fixed point."""
    lin = at.R @ f.lin
    return Force(at.R @ f.ang + cross(at.p, lin), lin)


def _times(x: Scalar, factor: float) -> Scalar:
    return x if factor == 1.0 else x * factor


def _about_centre(body: RigidInertia) -> tuple[Scalar, Vec3, Sym3]:
    """Mass, centre of mass and rotational inertia about it; of no mass, about the origin."""
    centre = body.h * (1.0 / body.m) if body.m != 0.0 else body.h
    return body.m, centre, body.seen_from(-centre).rotational()


def _matrix(s: Sym3) -> Mat3:
    return Mat3(Vec3(s.xx, s.xy, s.xz), Vec3(s.xy, s.yy, s.yz), Vec3(s.xz, s.yz, s.zz))


def _minus_skews(a: Vec3, b: Vec3) -> Mat3:
    """``-a~ b~ = (a·b) 1 - b aᵀ``."""
    xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
    return Mat3(
        Vec3(yy + zz, -(b.x * a.y), -(b.x * a.z)),
        Vec3(-(b.y * a.x), xx + zz, -(b.y * a.z)),
        Vec3(-(b.z * a.x), -(b.z * a.y), xx + yy),
    )
