"""How links move, and how the columns of their joints are moved: an outward sweep for derivatives.

    Ψ̇ = v⁻ x S,      Ψ̈ = a⁻ x S + v⁻ x Ψ̇,      Ṡ

v⁻ and a⁻ are the motion of all that a column S does not move, Ṡ is the rate of the column. The
columns of a joint move one after another, each moves the next; those of a spherical or free joint
are fixed to its link, each moves all of them.

Each link has an observer of its own, who moves steadily as the parent's body moves at the link's
origin now: to him v⁻ of the first column only turns, and the link moves by what its joint slides.

A column along z is the same before and after a turn about z. Where a joint's way ends with such a
turn, its `Step` is told in axes that do not yet turn: what it asks for needs no turn back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linkwise.model.joints import JointState, Subspace
from linkwise.model.tree import Link
from linkwise.spatial import Mat3, Motion, Transform, Vec3, Vector, cross, rate_matrix
from linkwise.sweep import NO_JOINT


class Body(NamedTuple):
    """How a body moves, at a link's origin: turning, and the origin's velocity and acceleration."""

    w: Vec3
    dw: Vec3
    v: Vec3
    a: Vec3

    @property
    def U(self) -> Mat3:
        """A point ρ of it accelerates by ``a + Uρ``."""
        return rate_matrix(self.w, self.dw)

    def turned(self, X: Transform) -> Body:
        """The same in turned axes."""
        return Body(*(X.rotate(x) for x in self))

    def with_joint(self, v: Motion, a: Motion) -> Body:
        """How a body moves that moves with v and a, ordinary, against this one."""
        w, dw = self.w + v.ang, self.dw + a.ang + cross(self.w, v.ang)
        return Body(w, dw, self.v + v.lin, self.a + a.lin + cross(self.w * 2.0, v.lin))


class Step(NamedTuple):
    """Columns that move together: what they do not move, and the motion by them, ordinary."""

    before: Body
    S: Subspace
    v: Motion
    a: Motion
    quasi: bool

    def fixed(self, S: Motion) -> Motion:
        """How much more a column changes that is fixed to what it moves: ``v x S``."""
        return self.v.cross(S) if self.quasi else Motion.zero()


class Column(NamedTuple):
    """A joint's column, and how it is moved; link axes."""

    S: Motion
    psi: Motion  # Ψ̇
    psi2: Motion  # Ψ̈
    both: Motion  # Ṡ + Ψ̇


class Moving(NamedTuple):
    """How a link moves, to its own observer; its joint, step by step, and the joint's columns."""

    J: JointState
    X: Transform  # from the parent to the axes of the steps
    turn: Transform  # from there to the link's
    body: Body
    steps: tuple[Step, ...]
    columns: tuple[Column, ...]
    u: Vec3  # how fast the parent's observer is left behind, in the parent's axes


def base(a: Vec3) -> Moving:
    """The base: at rest, its origin accelerated by ``a``."""
    still = Body(Vec3.zero(), Vec3.zero(), Vec3.zero(), a)
    return Moving(NO_JOINT, NO_JOINT.X, NO_JOINT.X, still, (), (), Vec3.zero())


def move(link: Link, parent: Moving, q: Vector, qd: Vector, qdd: Vector) -> Moving:
    """Rates of a link from its parent's, step by step."""
    J, quasi, p = link.joint_state(q), link.joint.quasi, parent.body
    X, turn = J.X.parted() if link.joint.turns_freely else (J.X, NO_JOINT.X)
    at = Body(p.w, p.dw, Vec3.zero(), p.a + p.U @ X.r).turned(X)
    steps, columns, alone = [], [], len(J.S) == 1  # S x S = 0: it does not move itself
    for own in [slice(None)] if quasi else [slice(k, k + 1) for k in range(len(J.S))]:
        some = JointState(X, J.S[own])
        v, more = some.motion(qd[own]), some.motion(qdd[own])
        a = Motion(more.ang, more.lin + cross(v.ang, v.lin))
        steps.append(Step(at, some.S, v, a, quasi))
        here = at.turned(turn)
        at = here.with_joint(v, a)
        columns += moved(at if alone else here, steps[-1])
    return Moving(J, X, turn, at, tuple(steps), tuple(columns), p.v + cross(p.w, X.r))


def moved(body: Body, step: Step) -> Iterator[Column]:
    """How the columns of a step are moved by a body: ``a + Uρ`` has all of ``a⁻ x S + v⁻ x Ψ̇``."""
    w, v, U = body.w, body.v, body.U
    for s, t in ((S.ang, S.lin) for S in step.S):
        psi = Motion(cross(w, s), cross(w, t) + cross(v, s))
        psi2 = Motion(U @ s, U @ t + cross(body.a, s) + cross(v * 2.0, psi.ang))
        S = Motion(s, t)
        yield Column(S, psi, psi2, psi * 2.0 + step.fixed(S))
