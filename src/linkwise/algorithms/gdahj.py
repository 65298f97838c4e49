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

from typing import NamedTuple

from linkwise.algorithms import crba
from linkwise.algorithms.fixed_frame import Located, in_fixed_frame, located
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
    cross,
)
from linkwise.sweep import added, each_link, each_pair, joint_states, tip_to_base


class Moments(NamedTuple):
    """Mass, first moment about the fixed point, and the published b and D; sums over children."""

    m: Scalar
    c: Vec3
    b: Vec3
    D: Mat3


NOTHING = Moments(0.0, Vec3.zero(), Vec3.zero(), Mat3.zero())


def sum_moments(link: Link, children: Moments, at: Located) -> tuple[list[Force], Moments]:
    """``(d, y)`` for each of the joint's columns [eqs. 23, 24, 27, 28, 31]."""
    m_i, centre = link.inertia.m, link.inertia.centre()
    I_C = Rotation(at.R).sym_short(link.inertia.seen_from(-centre).rotational())
    p_Cii = at.R @ centre
    p_C, mp = at.p + p_Cii, p_Cii * m_i
    own = Moments(m_i, p_C * m_i, mp, I_C.full() + _minus_skews(mp, p_C))
    m, c, b, D = added(children, own)
    out = [
        Force(D.T @ s.ang + cross(c, s.lin), cross(b, s.ang) - s.lin * m) for s in at.own
    ]  # a revolute joint has no s.lin
    return out, Moments(m, c, b + at.l * m, D + _minus_skews(at.l, c))


def compose(link: Link, children: RigidInertia, at: Located) -> tuple[list[Force], RigidInertia]:
    """Momenta of the subtree about the fixed point, one per column of the joint."""
    body = link.inertia
    turned = RigidInertia(body.m, at.R @ body.h, Rotation(at.R).sym_short(body.second))
    total = children + turned.seen_from(at.p)
    I, h, m = total.rotational(), total.h, total.m
    out = [
        Force(I @ s.ang + cross(h, s.lin), s.lin * m - cross(h, s.ang)) for s in at.S
    ]  # total @ s, with the rotational inertia formed once
    return out, total


def stay(_link: Link, F: list[Force], _S: list[Motion]) -> list[Force]:
    """In the fixed frame a wrench is the same at every link."""
    return F


def meet(_link: Link, F: list[Force], S: list[Motion]) -> Matrix:
    """``S_j · F_i``: a row per wrench."""
    return [[s.dot(f) for s in S] for f in F]


def project(tree: Tree, S: list[list[Motion]], F: list[list[Force]]) -> Matrix:
    """``M_ij = S_j · F_i`` for each link i and each j between it and the base, rotors added."""
    pairs = each_pair(tree, stay, meet, F, S)
    blocks = (((i, j), block) for (j, i), block in pairs)
    return crba.with_rotors(tree, tree.gather_symmetric(blocks))


def gdahj(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix by Algorithm 1; entries between branches are exactly zero."""
    at = located(tree, q)
    F, _ = tip_to_base(tree, sum_moments, NOTHING, at)
    return project(tree, [[Motion(s.ang, -s.lin) for s in place.S] for place in at], F)


def gdahj_symmetric(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix by symmetric sums about the fixed point."""
    at = located(tree, q)
    F, _ = tip_to_base(tree, compose, RigidInertia.zero(), at)
    return project(tree, [place.S for place in at], F)


def mixed(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix with composite bodies in link axes and entries in the fixed frame."""
    J, at = joint_states(tree, q), located(tree, q)
    bodies, _ = tip_to_base(tree, crba.compose, RigidInertia.zero(), J)
    F = each_link(tree, crba.momenta, J, bodies)
    fixed = each_link(tree, in_fixed_frame, F, at)
    return project(tree, [place.S for place in at], fixed)


def _minus_skews(a: Vec3, b: Vec3) -> Mat3:
    """``-a~ b~ = (a·b) 1 - b aᵀ``."""
    xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
    return Mat3(
        Vec3(yy + zz, -(b.x * a.y), -(b.x * a.z)),
        Vec3(-(b.y * a.x), xx + zz, -(b.y * a.z)),
        Vec3(-(b.z * a.x), -(b.z * a.y), xx + yy),
    )
