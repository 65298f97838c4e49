"""Coriolis matrix, by composite bodies.

    C = Σ_l J_lᵀ (I_l J̇_l + B_l J_l),      C_ij = Σ_k Γ_ijk qd_k

B_l is the flux of body l (spatial/flux.py) [Echeandia and Wensing 2021, algorithm 1]:

    base -> tip   v, Ṡ      velocity of each link; its joint's columns as they turn with it
    tip -> base   I^c, B^c  inertia and flux of the subtree
    each pair     F         I^c Ṡ + B^c S, I^c S and B^cᵀ S, carried to every ancestor

Derivation of a pair's two blocks: column i of J_l is S_i where joint i moves link l, else zero, so
C_ij sums ``S_iᵀ (I_l Ṡ_j + B_l S_j)`` over the links that both i and j move: all that the outer one
moves. With j the outer one that is ``S_iᵀ (I^c_j Ṡ_j + B^c_j S_j)``; with i the outer one,
``(I^c_i S_i)ᵀ Ṡ_j + (B^c_iᵀ S_i)ᵀ S_j``: three wrenches per column serve both.

C qd is the velocity part of the bias and Ṁ - 2C is skew, for every kind of joint. Where rates are
derivatives of q, C is Christoffel's (christoffel.py). A spherical or free joint has rates about its
link's axes instead, which do not commute: C is then still the one without torsion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linkwise.algorithms.dense import transpose
from linkwise.algorithms.rotors import rotor_blocks
from linkwise.model.joints import JointState, Subspace
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, Matrix, Motion, RigidInertia, Vector
from linkwise.sweep import NO_JOINT, base_to_tip, each_link, each_pair, tip_to_base


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


Meeting = tuple[list[Wrenches], Moving]  # wrenches of a joint's columns, and the ancestor they meet

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


def carry(_link: Link, columns: list[Wrenches], m: Moving) -> list[Wrenches]:
    """The same wrenches, one link further in."""
    return [Wrenches(*map(m.J.X.force_back, own)) for own in columns]


def meet(_link: Link, columns: list[Wrenches], m: Moving) -> Meeting:
    """Wrenches of one joint at another, or at itself."""
    return columns, m


def inner(columns: list[Wrenches], m: Moving) -> Matrix:
    """``Sᵀ (I^c Ṡ + B^c S)``: rows of the ancestor m, columns of the joint."""
    return transpose([m.J.project(own.rate) for own in columns])


def outer(columns: list[Wrenches], m: Moving) -> Matrix:
    """``(I^c S)ᵀ Ṡ + (B^cᵀ S)ᵀ S``: rows of the joint, columns of the ancestor m."""
    here = list(zip(m.J.S, m.dS, strict=True))
    return [[dS.dot(own.momentum) + S.dot(own.turned) for S, dS in here] for own in columns]


def assembled(tree: Tree, qd: Vector, met: Iterable[tuple[tuple[int, int], Meeting]]) -> Matrix:
    """``C`` from one block of each joint with itself, two of each two joints, and rotors."""
    return tree.gather_pairs(met, inner, outer, rotor_blocks(tree, qd))


def moving_wrenches(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Moving], list[list[Wrenches]]]:
    """How links move, and the wrenches of each one's columns; link axes."""
    moving = base_to_tip(tree, move, STILL, tree.per_link_q(q), tree.per_link_v(qd))
    subtrees, _ = tip_to_base(tree, compose, NOTHING, moving)
    return moving, each_link(tree, wrenches, moving, subtrees)


def coriolis_matrix(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``C``; entries between branches are exactly zero."""
    moving, own = moving_wrenches(tree, q, qd)
    return assembled(tree, qd, each_pair(tree, carry, meet, own, moving))
