"""How links move, and how the columns of their joints are moved: an outward sweep for derivatives.

    Ψ̇ = v⁻ x S,      Ψ̈ = a⁻ x S + v⁻ x Ψ̇,      Ṡ

v⁻ and a⁻ are the motion of all that a column S does not move, Ṡ is the rate of the column. The
columns of a joint move one after another, each moves the next; those of a spherical or free joint
are fixed to its link, each moves all of them.

Each link has an observer of its own, who moves steadily as the parent's body moves at the link's
origin now: to him v⁻ of the first column only turns, and the link moves by what its joint slides.

At a place ρ, all that moves with v and turns with w accelerates by a + Uρ, and what is above is, of
a column S = (s, t),

    Ψ̇ = (w x s, w x t + v x s),      Ψ̈ = (U s, U t + a x s + 2 v x (w x s))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linkwise.algorithms.joint_steps import Body, Step
from linkwise.model.joints import JointState
from linkwise.model.tree import Link
from linkwise.spatial import Motion, Transform, Vec3, Vector, cross
from linkwise.sweep import NO_JOINT


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
    steps: list[Step] = []
    columns: list[Column] = []
    for own in [slice(None)] if quasi else [slice(k, k + 1) for k in range(len(J.S))]:
        some = JointState(X, J.S[own])
        v, more = some.motion(qd[own]), some.motion(qdd[own])
        a = Motion(more.ang, more.lin + cross(v.ang, v.lin))
        steps.append(Step(at, some.S, v, a, quasi))
        here = at.turned(turn)
        at = here.with_joint(v, a)
        # an only column is not moved by its own joint: the link's motion serves, which is there
        columns += moved(at if len(J.S) == 1 else here, steps[-1])
    return Moving(J, X, turn, at, tuple(steps), tuple(columns), p.v + cross(p.w, X.r))


def moved(body: Body, step: Step) -> Iterator[Column]:
    """The columns of a step, and how a body moves them."""
    w, v, U = body.w, body.v, body.U
    for s, t in ((S.ang, S.lin) for S in step.S):
        psi = Motion(cross(w, s), cross(w, t) + cross(v, s))
        psi2 = Motion(U @ s, U @ t + cross(body.a, s) + cross(v * 2.0, psi.ang))
        S = Motion(s, t)
        yield Column(S, psi, psi2, psi * 2.0 + step.fixed(S))
