"""How links turn and accelerate: the outward sweeps that dynamics and kinematics share.

    w_in = E w_parent,   w = w_in + S qd,   dw = E dw_parent + S qdd + Ṡ qd + w_in x S qd
    a = E (a_parent + U_parent r) + S qdd + Ṡ qd + (w_in + w) x s

Ordinary (not spatial) accelerations of link origins [Luh, Walker and Paul 1980], so that no linear
velocity is ever formed. ``U = dw~ + w~w~`` carries every term of a link's motion but ``a``
[Khalil and Dombre, ch. 9].

Derivation of a: r leads from the parent's origin to the link's, and s is the linear part of S qd.
Then v = v_parent + w_in x r + s and dr/dt = w_in x r + s. The numbers of s are in axes that turn
with w: ds/dt = ṡ + w x s, where ṡ is the linear part of S qdd + Ṡ qd. Together, a = dv/dt =
a_parent + dw_parent x r + w_in x (w_in x r + s) + ṡ + w x s; its terms in r are U_parent r.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link
from linkwise.spatial import Force, Mat3, Motion, Vec3, Vector, cross, rate_matrix
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


def joint_of(_link: Link, m: Rates) -> JointState:
    """The joint of a link that moves."""
    return m.J


def move(link: Link, parent: Rates, q: Vector, qd: Vector, qdd: Vector) -> Rates:
    """Rates of a link from its parent's and the joint's own motion."""
    J = link.joint_state(q)
    X, vJ = J.X, J.motion(qd)
    aJ = J.motion(qdd) + link.joint.drift(q, qd)
    w_in = X.rotate(parent.w)
    w = w_in + vJ.ang
    dw = X.rotate(parent.dw) + aJ.ang + cross(w_in, vJ.ang)
    a = X.rotate(parent.a + parent.U @ X.r) + aJ.lin + cross(w_in + w, vJ.lin)
    return Rates(J, w, dw, a, rate_matrix(w, dw))


class Velocity(NamedTuple):
    """Turning rate of a link, and its velocity products: acceleration ``c``, force ``p``."""

    J: JointState
    w: Vec3
    c: Motion
    p: Force

    @property
    def W(self) -> Mat3:
        """``w~w~``, which follows from w: no walk has to pass it on."""
        return rate_matrix(self.w, Vec3.zero())


STILL = Velocity(NO_JOINT, Vec3.zero(), Motion.zero(), Force.zero())


def turn(link: Link, parent: Velocity, q: Vector, qd: Vector) -> Velocity:
    """Velocity products of a link, for algorithms that solve for its acceleration.

    Of dw and a above, X applied to the parent's acceleration gives ``E dw_parent`` and
    ``E (a_parent + dw_parent x r)``, and S qdd is still to be found. What is left is c, which for
    ordinary accelerations takes the place of the book's ``v x S qd``. p is the force on the link
    when it turns with w and neither dw nor a is added.
    """
    J = link.joint_state(q)
    X, vJ = J.X, J.motion(qd)
    w_in = X.rotate(parent.w)
    w = w_in + vJ.ang
    c = Motion(cross(w_in, vJ.ang), X.rotate(parent.W @ X.r) + cross(w_in + w, vJ.lin))
    W = rate_matrix(w, Vec3.zero())
    return Velocity(J, w, c + link.joint.drift(q, qd), link.inertia.force(Vec3.zero(), W))


def glide(_link: Link, parent: Motion, J: JointState, qd: Vector) -> Motion:
    """Velocity of a link from its parent's."""
    return J.X.motion(parent) + J.motion(qd)
