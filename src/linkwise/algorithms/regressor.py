"""The regressor: torques are linear in the bodies' inertial parameters.

    tau = Y(q, qd, qdd) π + rotors and friction

π has ten numbers of each body: m, h = m c, and the inertia I about the origin of its joint's frame,
in the axes that the file gives that frame (model/parameters.py).

    base -> tip   w, dw, a   motion of each link (rates.py)
    each beyond   s          the columns of each joint, carried to every link that it moves
                  y          sᵀ A there: the torque per unit of the link's ten parameters

A body whose origin accelerates by a needs the force ``f = m a + U h`` and the moment
``n = h x a + I dw + w x I w``, U as in rates.py. A joint inboard feels ``s·(n, f)``, with s the
motion of the body per unit of its rate: s = (ω, v) takes ``v·a`` of m, ``Uᵀ v + a x ω`` of h, and
``ωᵀ D`` of I, whose six columns D are ``I dw + w x I w`` for one entry of I alone. So two vectors
go outward for each joint, where ten wrenches would go inward for each body [Atkeson, An and
Hollerbach 1986].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.parameters import TEN, place_of
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, Matrix, Motion, Scalar, Vec3, Vector, cross, rate_matrix
from linkwise.spatial.transform import Transform
from linkwise.sweep import base_to_tip, each_beyond, each_link


class Felt(NamedTuple):
    """What the ten numbers of a body are multiplied by, in the frame that they are in."""

    X: Transform  # the link's own frame -> the file's
    a: Vec3
    U: Mat3  # transposed
    D: list[Vec3]


def felt(_link: Link, m: Rates, frame: Frame) -> Felt:
    """How a link moves, as its ten numbers feel it."""
    X = place_of(frame)
    w, dw, a = X.rotate(m.w), X.rotate(m.dw), X.rotate(m.a + m.U @ X.r)
    return Felt(X, a, rate_matrix(w, dw).T, parts(w, dw))


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


def own(_link: Link, m: Rates) -> list[Motion]:
    """The columns of a link's joint."""
    return list(m.J.S)


def carry(_link: Link, columns: list[Motion], m: Rates, _body: Felt) -> list[Motion]:
    """Columns of a joint inboard, one link further out."""
    return [m.J.X.motion(s) for s in columns]


def rows(_link: Link, columns: list[Motion], _m: Rates, body: Felt) -> list[list[Scalar]]:
    """Ten numbers of each column: what its joint feels per unit of the link's parameters."""
    _, a, U, D = body

    def row(s: Motion) -> list[Scalar]:
        return [s.lin.dot(a), *(U @ s.lin + cross(a, s.ang)), *(s.ang.dot(x) for x in D)]

    return [row(body.X.motion(s)) for s in columns]


def branches(tree: Tree) -> str:
    """Why loops over pairs of links cannot be taken back; empty where they can."""
    return "" if tree.serial else "loops keep the columns at a link for one joint after another"


def regressor(tree: Tree, q: Vector, qd: Vector, qdd: Vector) -> Matrix:
    """``Y``: a row per degree of freedom, ten columns per body."""
    return regressor_in(tree, tree.joint_frames, q, qd, qdd)


def regressor_in(tree: Tree, frames: Sequence[Frame], q: Vector, qd: Vector, qdd: Vector) -> Matrix:
    """The regressor of bodies whose ten numbers are in given frames, one of each link."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, qdd_)
    bodies = each_link(tree, felt, motions, frames)
    met = each_beyond(tree, carry, rows, each_link(tree, own, motions), motions, bodies)
    return tree.gather_rows(met, TEN)
