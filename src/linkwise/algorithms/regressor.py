"""The regressor: torques are linear in the bodies' inertial parameters.

    tau = Y(q, qd, qdd) π + rotors and friction

π has ten numbers of each body: m, h = m c, and the inertia I about the origin of its joint's frame,
in the axes that the file gives that frame (model/parameters.py).

    base -> tip   w, dw, a   motion of each link (rates.py)
    base -> tip   s          the columns of all joints inboard, each carried to the link
    each link     y          sᵀ A for each of them: the torque per unit of the ten parameters

A body whose origin accelerates by a needs the force ``f = m a + U h`` and the moment
``n = h x a + I dw + w x I w``, U as in rates.py. A joint inboard feels ``s·(n, f)``, with s the
motion of the body per unit of its rate: s = (ω, v) takes ``v·a`` of m, ``Uᵀ v + a x ω`` of h, and
``ωᵀ D`` of I, whose six columns D are ``I dw + w x I w`` for one entry of I alone. So two vectors
go outward for each joint, where ten wrenches would go inward for each body [Atkeson, An and
Hollerbach 1986].
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.joints import JointState
from linkwise.model.parameters import place_of
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, Matrix, Motion, Scalar, Vec3, Vector, cross, rate_matrix
from linkwise.sweep import base_to_tip, each_link, joint_states

Columns = dict[int, Motion]  # by number, of the joints inboard of a link


def carry(_link: Link, inboard: Columns, J: JointState, own: range) -> Columns:
    """The columns of a link's joint, and of all joints inboard, at the link."""
    return {c: J.X.motion(s) for c, s in inboard.items()} | dict(zip(own, J.S, strict=True))


def parts(w: Vec3, dw: Vec3) -> list[Vec3]:
    """``I dw + w x I w`` of a unit Ixx, Ixy, Iyy, Ixz, Iyz, Izz: six columns D."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return [
        Vec3(dw.x, xz, -xy),
        Vec3(dw.y - xz, dw.x + yz, xx - yy),
        Vec3(-yz, dw.y, xy),
        Vec3(dw.z + xy, zz - xx, dw.x - yz),
        Vec3(yy - zz, dw.z - xy, dw.y + xz),
        Vec3(yz, -xz, dw.z),
    ]


def rows(_link: Link, columns: Columns, m: Rates, frame: Frame) -> dict[int, list[Scalar]]:
    """Ten numbers of each column: what its joint feels per unit of the link's parameters."""
    X = place_of(frame)  # the link's own frame -> the file's
    w, dw, a = X.rotate(m.w), X.rotate(m.dw), X.rotate(m.a + m.U @ X.r)
    U: Mat3 = rate_matrix(w, dw).T
    D = parts(w, dw)

    def row(s: Motion) -> list[Scalar]:
        return [s.lin.dot(a), *(U @ s.lin + cross(a, s.ang)), *(s.ang.dot(x) for x in D)]

    return {c: row(X.motion(s)) for c, s in columns.items()}


def regressor(tree: Tree, q: Vector, qd: Vector, qdd: Vector) -> Matrix:
    """``Y``: a row per degree of freedom, ten columns per body."""
    return regressor_in(tree, tree.joint_frames, q, qd, qdd)


def regressor_in(tree: Tree, frames: Sequence[Frame], q: Vector, qd: Vector, qdd: Vector) -> Matrix:
    """The regressor of bodies whose ten numbers are in given frames, one of each link."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, qdd_)
    joints = joint_states(tree, q)
    columns = base_to_tip(tree, carry, {}, joints, tree.column_numbers)
    found = each_link(tree, rows, columns, motions, frames)
    by_body = [tree.projection.gathered(((c,), _Row(y)) for c, y in own.items()) for own in found]
    none = _Row([0.0] * 10)
    return [[x for sums in by_body for x in sums.get((i,), none)] for i in range(tree.nv)]


class _Row(list[Scalar]):
    """Numbers that are added and multiplied one by one, as followers' rows are."""

    def __add__(self, o: list[Scalar]) -> _Row:
        return _Row(a + b for a, b in zip(self, o, strict=True))

    def __mul__(self, k: Scalar) -> _Row:
        return _Row(a * k for a in self)
