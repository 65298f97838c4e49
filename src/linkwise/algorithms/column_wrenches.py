"""What the motion of each joint's columns asks of the subtree beyond them, as wrenches.

    base -> tip   v, Ṡ      velocity of each link; its joint's columns as they turn with it
    tip -> base   I^c, B^c  inertia and flux (spatial/flux.py) of the subtree
    each link     F         I^c Ṡ + B^c S, I^c S and B^cᵀ S

Coriolis matrices are made of these three wrenches per column; ``coriolis.py`` derives them.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import JointState, Subspace
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, Motion, RigidInertia, Vector
from linkwise.sweep import NO_JOINT, base_to_tip, each_link, tip_to_base


class Moving(NamedTuple):
    """Velocity of a link; its joint, and how the joint's columns change."""

    J: JointState
    v: Motion
    dS: Subspace


class Subtree(NamedTuple):
    """Inertia and flux of a subtree; sums over children."""

    I: RigidInertia
    B: Flux


class Wrenches(NamedTuple):
    """Wrenches of one column of a joint, on their way to the base."""

    rate: Force  # I^c Ṡ + B^c S
    momentum: Force  # I^c S
    turned: Force  # B^cᵀ S


STILL = Moving(NO_JOINT, Motion.zero(), ())
NOTHING = Subtree(RigidInertia.zero(), Flux.zero())


def move(link: Link, parent: Moving, q: Vector, qd: Vector) -> Moving:
    """Velocity of a link from its parent's."""
    J = link.joint_state(q)
    v = J.X.motion(parent.v) + J.motion(qd)
    own = zip(J.S, link.joint.column_rates(q, qd), strict=True)
    return Moving(J, v, tuple(v.cross(column) + rate for column, rate in own))


def compose(link: Link, children: Subtree, m: Moving) -> tuple[Subtree, Subtree]:
    """Inertia and flux of the link's subtree, here and in the parent's frame."""
    I, B = children.I + link.inertia, children.B + Flux.of(link.inertia, m.v)
    return Subtree(I, B), Subtree(m.J.X.body_back(I), m.J.X.body_back(B))


def wrenches(_link: Link, m: Moving, subtree: Subtree) -> list[Wrenches]:
    """The wrenches of each column of a joint, in link axes."""
    (I, B), own = subtree, zip(m.J.S, m.dS, strict=True)
    return [Wrenches(I @ dS + B @ S, I @ S, B.transposed(S)) for S, dS in own]


def moving_wrenches(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Moving], list[list[Wrenches]]]:
    """How links move, and the wrenches of each one's columns; link axes."""
    moving = base_to_tip(tree, move, STILL, tree.per_link_q(q), tree.per_link_v(qd))
    subtrees, _ = tip_to_base(tree, compose, NOTHING, moving)
    return moving, each_link(tree, wrenches, moving, subtrees)
