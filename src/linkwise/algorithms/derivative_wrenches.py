"""How forces change as each column of the joints moves what is beyond it: wrenches of columns.

    A = I S,    P = I Ψ̈ + 2 B Ψ̇ + E S + S x* F,    Q = I (Ṡ + Ψ̇) + 2 B S,    b = 2 Bᵀ S,    e = Eᵀ S

with the columns of ``moved_columns.py``; ``torque_derivatives.py`` derives these five, for B and F
as one at rest sees them. From those of ``derivative_bodies.py``, seen by one who rides on the body
before the column S = (s, t), which turns with w, where S moves a place ρ by ``s x ρ + t``:

    P = s x F + (2 B)' w + ∫' (ρ, 1) x (a + Uρ) dm + E S      what turning makes of F, B and body,
        + (t x f + h x U t, m U t)                            what sliding adds, f all of the force
    Q = 2 B S + (2 Σw x s + 2 h x (w x t), 2 w x A_lin)       Coriolis forces
    b = 2 Bᵀ S + 2 Σ(w x s) + 2 (w x h) x t

m, h and Σ are the moments of the body. The last two have ``∫ (ρ, 1) x 2 w x (s x ρ + t) dm`` and
``∫ 2 (w x ρ) x (s x ρ + t) dm``, where ``(w x ρ) x (s x ρ)`` is ``ρ (ρ·(w x s))``. Columns that are
fixed to what they move change by v x S more, v the motion by them all, and Q by I (v x S).

Forces, and so A, P and Q, are the same to all observers. To one who is left behind at the velocity
u all mass moves faster by u, and b is ``b + 2 u x A_lin``.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from linkwise.algorithms.derivative_bodies import Subtree, held
from linkwise.algorithms.joint_steps import Step
from linkwise.algorithms.moved_columns import Moving
from linkwise.model.tree import Link
from linkwise.spatial import Force, Motion, Transform, Vec3, cross

Kind = TypeVar("Kind")


class Wrenches(NamedTuple):
    """Wrenches of one column that ask for rates only; b and e are moments."""

    A: Force
    Q: Force
    b: Vec3
    e: Vec3


class Sent(NamedTuple, Generic[Kind]):
    """What a joint's columns send to the base; fresh, it is in the axes of the joint's steps."""

    columns: list[Kind]
    fresh: bool = True

    def way(self, m: Moving) -> Transform:
        """From the parent of the link m to where this is."""
        return m.X if self.fresh else m.J.X


def rate_wrenches(_link: Link, m: Moving, bodies: list[Subtree]) -> Sent[Wrenches]:
    """A, Q, b and e of each column of a joint."""
    steps = zip(m.steps, bodies, strict=True)
    return Sent([rate_wrench(S, step, body) for step, body in steps for S in step.S])


def rate_wrench(S: Motion, step: Step, subtree: Subtree) -> Wrenches:
    """A, Q, b and e of one column."""
    (I, B2, E, _), (s, t), w2 = subtree, (S.ang, S.lin), step.before.w * 2.0
    A, turned = I @ S, cross(w2, s)
    coriolis = cross(I.second @ w2, s) + cross(I.h, cross(w2, t))
    Q = B2 @ S + Force(coriolis, cross(w2, A.lin)) + I @ step.fixed(S)
    b = B2.transposed(S).ang + I.second @ turned + cross(cross(w2, I.h), t)
    return Wrenches(A, Q, b + cross(step.before.v * 2.0, A.lin), E.transposed(S).ang)


def turned_forces(_link: Link, m: Moving, bodies: list[Subtree]) -> Sent[Force]:
    """P of each column of a joint."""
    steps, f = zip(m.steps, bodies, strict=True), held(m, bodies).lin
    return Sent([turned_force(S, step, body, f) for step, body in steps for S in step.S])


def turned_force(S: Motion, step: Step, subtree: Subtree, f: Vec3) -> Force:
    """P of one column."""
    (I, B2, E, F), rider, (s, t) = subtree, step.before, (S.ang, S.lin)
    body = I.changed(s).force(rider.a, rider.U) + B2.changed(s).turning_with(rider.w)
    more = rider.U @ t
    slid = Force(cross(t, f) + cross(I.h, more), more * I.m)
    return body + slid + E @ S + Force(cross(s, F.ang), cross(s, F.lin))


def carry(_link: Link, sent: Sent[Wrenches], m: Moving) -> Sent[Wrenches]:
    """The same wrenches, one link further in, as the parent's observer sees them."""
    X, twice, found = sent.way(m), m.u * 2.0, []
    for A, Q, b, e in sent.columns:
        inward = X.force_back(A)
        seen = X.rotate_back(b) + cross(twice, inward.lin)
        found.append(Wrenches(inward, X.force_back(Q), seen, X.rotate_back(e)))
    return Sent(found, fresh=False)


def carry_force(_link: Link, sent: Sent[Force], m: Moving) -> Sent[Force]:
    """The same forces, one link further in."""
    return Sent([sent.way(m).force_back(f) for f in sent.columns], fresh=False)
