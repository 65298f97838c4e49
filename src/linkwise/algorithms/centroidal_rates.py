"""Momentum about the centre of mass, and how it changes when the joint rates do not.

    h = A qd,      ḣ = A qdd + Ȧ qd,      c̈ = J qdd + J̇ qd,      m J̇ qd = linear part of Ȧ qd

About the base's origin, which does not move, the rate of the momentum is the sum of what moves each
link: a wrench (n, f), by the sweeps of ``rnea.py`` without gravity. The momentum (k, p) moves to c
with k - c x p, and so does its rate: the term ċ x p is zero, for p = m ċ.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.centroidal import centre
from linkwise.algorithms.rates import Rates, at_rest, glide, move
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Motion, RigidInertia, Scalar, Vec3, Vector, cross, reciprocal
from linkwise.sweep import base_to_tip, each_link, joint_states, tip_to_base


class Subtree(NamedTuple):
    """Inertia and momentum, or the wrench that moves it; sums over children."""

    I: RigidInertia
    f: Force


EMPTY = Subtree(RigidInertia.zero(), Force.zero())


def collect(link: Link, children: Subtree, J: JointState, f: Force) -> tuple[None, Subtree]:
    """A link's own body and wrench and its children's, in the parent's frame."""
    body = J.X.body_back(children.I + link.inertia)
    return None, Subtree(body, J.X.force_back(children.f + f))


def _momentum(link: Link, v: Motion) -> Force:
    return link.inertia @ v


def _needed(link: Link, m: Rates) -> Force:
    return link.inertia.force(m.a, m.U)


def _at_centre(whole: Subtree) -> list[Scalar]:
    """A wrench at the base's origin, about the centre of mass."""
    return [*(whole.f.ang - cross(centre(whole.I), whole.f.lin)), *whole.f.lin]


def centroidal_momentum(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """``h``: angular momentum about the centre of mass, and linear momentum; base axes."""
    J = joint_states(tree, q)
    velocities = base_to_tip(tree, glide, Motion.zero(), J, tree.per_link_v(qd))
    momenta = each_link(tree, _momentum, velocities)
    return _at_centre(tip_to_base(tree, collect, EMPTY, J, momenta)[1])


def _rate(tree: Tree, q: Vector, qd: Vector) -> Subtree:
    """All links, and the wrench at the base's origin that moves them at constant joint rates."""
    q_, qd_, none = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v([0.0] * tree.nv)
    motions = base_to_tip(tree, move, at_rest(Vec3.zero()), q_, qd_, none)
    needed = each_link(tree, _needed, motions)
    whole: Subtree = tip_to_base(tree, collect, EMPTY, joint_states(tree, q), needed)[1]
    return whole


def centroidal_bias(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """``Ȧ qd``: rate of the momentum about the centre of mass when the joint rates are constant."""
    return _at_centre(_rate(tree, q, qd))


def com_bias(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """``J̇ qd``: acceleration of the centre of mass when the joint rates are constant."""
    whole = _rate(tree, q, qd)
    return [*(whole.f.lin * reciprocal(whole.I.m))]
