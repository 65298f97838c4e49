"""How links move, and how the columns of their joints are moved: an outward sweep for derivatives.

    Ψ̇ = v⁻ x S,      Ψ̈ = a⁻ x S + v⁻ x Ψ̇,      Ṡ

v⁻ and a⁻ are the motion of all that a column S does not move, Ṡ is the rate of the column. The
columns of a joint move one after another, each moves the next; those of a spherical or free joint
are fixed to its link, each moves all of them.

Each link has an observer of its own, who moves steadily as the parent's body moves at the link's
origin now: to him v⁻ of the first column only turns, and the link moves by what its joint slides.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link
from linkwise.spatial import Mat3, Motion, Vec3, Vector, cross, rate_matrix
from linkwise.sweep import NO_JOINT


class Column(NamedTuple):
    """A joint's column, and how it is moved."""

    S: Motion
    psi: Motion  # Ψ̇
    psi2: Motion  # Ψ̈
    both: Motion  # Ṡ + Ψ̇


class Moving(NamedTuple):
    """How a link moves, to its own observer; its joint and the joint's columns."""

    J: JointState
    v: Motion
    a: Motion  # turning, and ordinary, of the origin
    U: Mat3
    columns: tuple[Column, ...]
    u: Vec3  # how fast the parent's observer is left behind, in the parent's axes


def base(a: Vec3) -> Moving:
    """The base: at rest, its origin accelerated by ``a``."""
    still, pushed = Motion.zero(), Motion(Vec3.zero(), a)
    return Moving(NO_JOINT, still, pushed, Mat3.zero(), (), Vec3.zero())


def move(link: Link, parent: Moving, q: Vector, qd: Vector, qdd: Vector) -> Moving:
    """Rates of a link from its parent's, column by column.

    a is the spatial acceleration until all columns have moved. The ordinary one of the origin,
    which to the observer moves with ``v.lin``, is then more by ``w x v.lin``.
    """
    J, quasi = link.joint_state(q), link.joint.quasi
    X, u = J.X, parent.v.lin + cross(parent.v.ang, J.X.r)
    v = before = Motion(X.rotate(parent.v.ang), Vec3.zero())
    a = now = Motion(X.rotate(parent.a.ang), X.rotate(parent.a.lin + parent.U @ X.r))
    moved = []
    for S, rate, more in zip(J.S, qd, qdd, strict=True):
        psi = before.cross(S)
        moved.append((S, psi, now.cross(S) + before.cross(psi)))
        v, a = v + S * rate, a + S * more + psi * rate
        if not quasi:
            before, now = v, a
    columns = (Column(S, x, y, x + (v.cross(S) if quasi else x)) for S, x, y in moved)
    ordinary = Motion(a.ang, a.lin + cross(v.ang, v.lin))
    return Moving(J, v, ordinary, rate_matrix(v.ang, a.ang), tuple(columns), u)
