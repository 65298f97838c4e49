"""Kinetic and potential energy.

T = ½ Σ_i vᵢᵀ I_i v_i,      V = -g · Σ_i m_i c_i
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.model.joints import Stance
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Motion, RigidInertia, Scalar, Vec3
from linkwise.sweep import base_to_tip, tip_to_base


def glide(_link: Link, parent: Motion, J: Stance, qd: Sequence[Scalar]) -> Motion:
    """Velocity of a link from its parent's."""
    return J.X.motion(parent) + J.motion(qd)


def kinetic_energy(tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Scalar:
    """Kinetic energy of links and rotors."""
    J = [link.stance(qi) for link, qi in zip(tree.links, tree.per_link_q(q), strict=True)]
    rates = tree.per_link_v(qd)
    velocities = base_to_tip(tree, glide, Motion.zero(), J, rates)
    twice: Scalar = 0.0
    for link, v, rate in zip(tree.links, velocities, rates, strict=True):
        twice = twice + v.dot(link.inertia @ v)
        for rotor, r in zip(link.armature, rate, strict=True):
            twice = twice + rotor * (r * r)
    return 0.5 * twice


def gather(link: Link, children: RigidInertia, J: Stance) -> tuple[None, RigidInertia]:
    """Mass and first moment of the subtree, in the parent's frame."""
    return None, J.X.inertia_back(children + link.inertia)


def potential_energy(tree: Tree, q: Sequence[Scalar]) -> Scalar:
    """Potential energy of the moving links; zero when their centre of mass is at the origin."""
    J = [link.stance(qi) for link, qi in zip(tree.links, tree.per_link_q(q), strict=True)]
    _, whole = tip_to_base(tree, gather, RigidInertia.zero(), J)
    return -Vec3(*tree.gravity).dot(whole.h)
