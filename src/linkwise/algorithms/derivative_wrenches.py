"""How forces change as each column of the joints moves what is beyond it: wrenches of columns.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.external import External, external_fluxes, external_forces
from linkwise.algorithms.moved_columns import Moving, Step
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, Motion, RigidInertia, Vec3, Vector, cross, rate_matrix
from linkwise.sweep import tip_to_base


class Subtree(NamedTuple):
    """Inertia, twice the flux, turning loads and force of a subtree; sums over children."""

    I: RigidInertia
    B2: Flux
    E: Flux
    F: Force


class Wrenches(NamedTuple):
    """Wrenches of one column, on their way to the base; b and e are moments."""

    A: Force
    P: Force
    Q: Force
    b: Vec3
    e: Vec3


class Sent(NamedTuple):
    """Wrenches of the columns of a joint; fresh ones are in the axes of its steps."""

    columns: list[Wrenches]
    fresh: bool


NOTHING = Subtree(RigidInertia.zero(), Flux.zero(), Flux.zero(), Force.zero())


def compose(
    link: Link, children: Subtree, m: Moving, ext: Force, turning: Flux
) -> tuple[list[Subtree], Subtree]:
    """Sums over a link's subtree, before each step of its joint, and as the parent's body sees them."""
    X, turn = m.parts
    I, E = turn.body_back(children.I + link.inertia), turn.body_back(children.E + turning)
    B2, F = turn.body_back(children.B2), turn.force_back(children.F - ext)
    found = []
    for step in reversed(m.steps):
        F = F + I.force(step.a.lin, rate_matrix(step.v.ang, step.a.ang)) + B2 @ step.v
        B2 = B2 + Flux.twice(I, step.v)
        found.append(Subtree(I, B2, E, F))
    inward = Subtree(X.body_back(I), X.body_back(B2), X.body_back(E), X.force_back(F))
    return found[::-1], inward


def subtrees(tree: Tree, q: Vector, moving: list[Moving], external: External) -> list[list[Subtree]]:
    """The sums over each link's subtree."""
    loads = external_forces(tree, q, external), external_fluxes(tree, q, external)
    return tip_to_base(tree, compose, NOTHING, moving, *loads)[0]


def wrenches(_link: Link, m: Moving, bodies: list[Subtree]) -> Sent:
    """The wrenches of each column of a joint, in the axes of its steps."""
    own = zip(m.steps, bodies, strict=True)
    return Sent([wrench(S, step, body) for step, body in own for S in step.S], True)


def wrench(S: Motion, step: Step, subtree: Subtree) -> Wrenches:
    """The wrenches of one column."""
    (I, B2, E, F), before = subtree, step.before
    A, w2 = I @ S, before.w * 2.0
    P = I.changed(S).force(before.a, before.U) + B2.changed(S) @ Motion(before.w, before.w)
    Q = B2 @ S + Force(cross(I.second @ w2, S.ang) + cross(I.h, cross(w2, S.lin)), cross(w2, A.lin))
    if step.quasi:
        Q = Q + I @ step.v.cross(S)
    b = B2.transposed(S).ang + I.second @ cross(w2, S.ang) + cross(cross(w2, I.h), S.lin)
    b = b + cross(before.v * 2.0, A.lin)
    return Wrenches(A, P + E @ S + S.cross_force(F), Q, b, E.transposed(S).ang)


def felt(step: Step, body: Subtree) -> Force:
    """All that a step's motors and those before them have to push."""
    before = step.before
    return body.F + body.I.force(before.a, before.U) + body.B2 @ Motion(before.w, before.w)


def carry(_link: Link, sent: Sent, m: Moving) -> Sent:
    """The same wrenches, one link further in, as the parent's observer sees them."""
    X, twice = m.parts[0] if sent.fresh else m.J.X, m.u * 2.0
    found = []
    for own in sent.columns:
        A, P, Q = (X.force_back(f) for f in own[:3])
        b = X.rotate_back(own.b) + cross(twice, A.lin)
        found.append(Wrenches(A, P, Q, b, X.rotate_back(own.e)))
    return Sent(found, False)
