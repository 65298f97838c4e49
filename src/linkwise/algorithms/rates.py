"""How links turn and accelerate: the outward sweep that dynamics and kinematics share.

    w = E w_parent + S qd,   dw = E dw_parent + S qdd + Ṡ qd + w_in x S qd,
    a = E (a_parent + U_parent r) + ...

Ordinary (not spatial) accelerations of link origins [Luh, Walker and Paul 1980], so that no linear
velocity is ever formed. ``U = dw~ + w~w~`` carries every term of a link's motion but ``a``
[Khalil and Dombre, ch. 9].
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link
from linkwise.spatial import Mat3, Motion, Vec3, Vector, cross, rate_matrix
from linkwise.sweep import NO_JOINT


class Rates(NamedTuple):
    """How a link moves: turning rates, and the acceleration of its origin."""

    J: JointState
    w: Vec3
    dw: Vec3
    a: Vec3
    U: Mat3


def at_rest(a: Vec3) -> Rates:
    """The base: not turning, its origin accelerated by ``a``."""
    return Rates(NO_JOINT, Vec3.zero(), Vec3.zero(), a, Mat3.zero())


def move(link: Link, parent: Rates, q: Vector, qd: Vector, qdd: Vector) -> Rates:
    """Rates of a link from its parent's and the joint's own motion."""
    J = link.joint_state(q)
    X, vJ = J.X, J.motion(qd)
    aJ = J.motion(qdd) + link.joint.drift(q, qd)
    w_in = X.rotate(parent.w)
    w = w_in + vJ.ang
    dw = X.rotate(parent.dw) + aJ.ang + cross(w_in, vJ.ang)
    # a slide vJ.lin fixed to the moving axes turns with them (w_in x) and grows along them (w x)
    a = X.rotate(parent.a + parent.U @ X.r) + aJ.lin + cross(w_in + w, vJ.lin)
    return Rates(J, w, dw, a, rate_matrix(w, dw))


def glide(_link: Link, parent: Motion, J: JointState, qd: Vector) -> Motion:
    """Velocity of a link from its parent's."""
    return J.X.motion(parent) + J.motion(qd)
