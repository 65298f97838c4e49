"""The energies' regressor: kinetic and potential energy are linear in the inertial parameters.

    T = ½ m v² + h·(v x w) + ½ wᵀ I w,      V = m z + h·e        e = -g, z = e·p

per body, with π, h and I as in regressor.py, v and p of the origin of the joint's frame:

    base -> tip   v, w   motion of each link
    base -> tip   e, z   what lifts a unit mass, in the link's axes, and how far its origin is up
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.rates import glide
from linkwise.model.joints import JointState
from linkwise.model.parameters import place_of
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import base_to_tip, each_link, joint_states


class Height(NamedTuple):
    """The direction against gravity, times its size, and the energy of a unit mass."""

    e: Vec3
    z: Scalar


def lift(_link: Link, parent: Height, J: JointState) -> Height:
    """The height of a link's origin, from its parent's."""
    return Height(J.X.rotate(parent.e), parent.z + parent.e.dot(J.X.r))


def energies(_link: Link, motion: Motion, at: Height, frame: Frame) -> list[list[Scalar]]:
    """Ten numbers of the kinetic and ten of the potential energy of a link."""
    X = place_of(frame)
    v, up = X.motion(motion), lift(_link, at, JointState(X, ()))
    w = v.ang
    half = Vec3(0.5 * w.x, 0.5 * w.y, 0.5 * w.z)
    turning = [half.x * w.x, w.x * w.y, half.y * w.y, w.x * w.z, w.y * w.z, half.z * w.z]
    kinetic = [0.5 * v.lin.dot(v.lin), *cross(v.lin, w), *turning]
    return [kinetic, [up.z, *up.e, *[0.0] * 6]]


def energy_regressor(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """Two rows, kinetic and potential energy, and ten columns per body."""
    J = joint_states(tree, q)
    velocities = base_to_tip(tree, glide, Motion.zero(), J, tree.per_link_v(qd))
    heights = base_to_tip(tree, lift, Height(tree.base_acceleration, 0.0), J)
    found = each_link(tree, energies, velocities, heights, tree.joint_frames)
    return tree.side_by_side(found)
