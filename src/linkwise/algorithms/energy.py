"""Kinetic and potential energy.

T = ½ Σ_i vᵢᵀ I_i v_i,      V = -g · Σ_i m_i c_i
"""

from __future__ import annotations

from linkwise.algorithms.crba import compose
from linkwise.algorithms.rates import glide
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Motion, RigidInertia, Scalar, Vec3, Vector
from linkwise.sweep import base_to_tip, joint_states, sum_links, tip_to_base


def add_twice_energy(link: Link, total: Scalar, v: Motion, qd: Vector) -> Scalar:
    """``vᵀ I v`` of a link, and ``rotor qd²`` of each column's rotor."""
    total = total + v.dot(link.inertia @ v)
    for rotor, rate in zip(link.armature, qd, strict=True):
        total = total + rotor * (rate * rate)
    return total


def kinetic_energy(tree: Tree, q: Vector, qd: Vector) -> Scalar:
    """Kinetic energy of links and rotors."""
    rates = tree.per_link_v(qd)
    velocities = base_to_tip(tree, glide, Motion.zero(), joint_states(tree, q), rates)
    return 0.5 * sum_links(tree, add_twice_energy, 0.0, velocities, rates)


def potential_energy(tree: Tree, q: Vector) -> Scalar:
    """Potential energy of the moving links; zero when their centre of mass is at the origin."""
    _, whole = tip_to_base(tree, compose, RigidInertia.zero(), joint_states(tree, q))
    return -Vec3(*tree.gravity).dot(whole.h)
