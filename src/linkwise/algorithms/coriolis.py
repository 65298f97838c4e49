"""Coriolis matrix, by composite bodies.

    C = Σ_l J_lᵀ (I_l J̇_l + B_l J_l),      C_ij = Σ_k Γ_ijk qd_k

B_l is the flux of body l (spatial/flux.py) [Echeandia and Wensing 2021, algorithm 1]:

    base -> tip   v, Ṡ      velocity of each link; its joint's columns as they turn with it
    tip -> base   I^c, B^c  inertia and flux of the subtree
    each pair     F         I^c Ṡ + B^c S, I^c S and B^cᵀ S, carried to every ancestor, or
                            (``mixed``) turned once to a frame where all ancestors' columns are

C qd is the velocity part of the bias and Ṁ - 2C is skew, for every kind of joint. Where rates are
derivatives of q, C is Christoffel's (christoffel.py). A spherical or free joint has rates about its
link's axes instead, which do not commute: C is then still the one without torsion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from linkwise.algorithms.dense import transpose, unit
from linkwise.algorithms.fixed_frame import Located, in_fixed_frame, located
from linkwise.model.joints import JointState
from linkwise.model.tree import Blocks, Link, Tree
from linkwise.spatial import Flux, Force, Matrix, Motion, RigidInertia, Vector, cross
from linkwise.sweep import NO_JOINT, base_to_tip, each_link, each_pair, tip_to_base


class Moving(NamedTuple):
    """Velocity of a link; its joint, and how the joint's columns change."""

    J: JointState
    v: Motion
    dS: Sequence[Motion]


class Subtree(NamedTuple):
    """Inertia and flux of a subtree; sums over children."""

    I: RigidInertia
    B: Flux


class ColumnWrenches(NamedTuple):
    """Wrenches of a joint's columns, one of each kind per column, on their way to the base."""

    rate: list[Force]  # I^c Ṡ + B^c S
    momentum: list[Force]  # I^c S
    turned: list[Force]  # B^cᵀ S


class Meeting(NamedTuple):
    """The wrenches of a joint's columns at an ancestor, and how that moves: two blocks of C."""

    columns: ColumnWrenches
    m: Moving

    def inner(self) -> Matrix:
        """``Sᵀ (I^c Ṡ + B^c S)``: rows of the ancestor, columns of the joint."""
        return transpose([self.m.J.project(f) for f in self.columns.rate])

    def outer(self) -> Matrix:
        """``(I^c S)ᵀ Ṡ + (B^cᵀ S)ᵀ S``: rows of the joint, columns of the ancestor."""
        both = list(zip(self.columns.momentum, self.columns.turned, strict=True))
        own = zip(self.m.J.S, self.m.dS, strict=True)
        return transpose([[dS.dot(p) + S.dot(b) for p, b in both] for S, dS in own])


STILL = Moving(NO_JOINT, Motion.zero(), [])
NOTHING = Subtree(RigidInertia.zero(), Flux.zero())


def move(link: Link, parent: Moving, q: Vector, qd: Vector) -> Moving:
    """Velocity of a link from its parent's."""
    J = link.joint_state(q)
    v = J.X.motion(parent.v) + J.motion(qd)
    own = zip(J.S, link.joint.column_rates(q, qd), strict=True)
    return Moving(J, v, [v.cross(column) + rate for column, rate in own])


def compose(link: Link, children: Subtree, m: Moving) -> tuple[Subtree, Subtree]:
    """Inertia and flux of the link's subtree, here and in the parent's frame."""
    I, B = children.I + link.inertia, children.B + Flux.of(link.inertia, m.v)
    return Subtree(I, B), Subtree(m.J.X.inertia_back(I), m.J.X.flux_back(B))


def wrenches(_link: Link, m: Moving, subtree: Subtree) -> ColumnWrenches:
    """The wrenches of each column of a joint, in link axes."""
    (I, B), S = subtree, m.J.S
    rates = [I @ dS + B @ column for column, dS in zip(S, m.dS, strict=True)]
    return ColumnWrenches(
        rates, [I @ column for column in S], [B.transposed(column) for column in S]
    )


def carry(_link: Link, columns: ColumnWrenches, m: Moving) -> ColumnWrenches:
    """The same wrenches, one link further in."""
    return ColumnWrenches(*([m.J.X.force_back(f) for f in forces] for forces in columns))


def stay(_link: Link, columns: ColumnWrenches, _m: Moving) -> ColumnWrenches:
    """In the fixed frame a wrench is the same at every link."""
    return columns


def meet(_link: Link, columns: ColumnWrenches, m: Moving) -> Meeting:
    """Wrenches of one joint at another, or at itself."""
    return Meeting(columns, m)


def moving_wrenches(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Moving], list[ColumnWrenches]]:
    """How links move, and the wrenches of each one's columns; link axes."""
    moving = base_to_tip(tree, move, STILL, tree.per_link_q(q), tree.per_link_v(qd))
    subtrees, _ = tip_to_base(tree, compose, NOTHING, moving)
    return moving, each_link(tree, wrenches, moving, subtrees)


def blocks_of(pairs: Iterable[tuple[tuple[int, int], Meeting]]) -> Blocks:
    """Blocks of C: one of a joint with itself, two of two joints."""
    for (j, i), meeting in pairs:
        yield (j, i), meeting.inner()
        if i != j:
            yield (i, j), meeting.outer()


def turned_rotors(link: Link, qd: Vector) -> Matrix:
    """Of a joint whose rotors' axes turn against those of its rates; zeros for all others."""
    return transpose([link.turned_rotors(qd, column) for column in unit(link.joint.nv)])


def assembled(tree: Tree, qd: Vector, blocks: Blocks) -> Matrix:
    """``C`` from the blocks of its links, and what rotors add."""
    rotors = each_link(tree, turned_rotors, tree.per_link_v(qd))
    return tree.gather_matrix(chain(blocks, (((i, i), own) for i, own in enumerate(rotors))))


def coriolis_matrix(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``C``; entries between branches are exactly zero."""
    moving, own = moving_wrenches(tree, q, qd)
    return assembled(tree, qd, blocks_of(each_pair(tree, carry, meet, own, moving)))


def mixed(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``C`` with composite bodies in link axes and entries in the fixed frame of gdahj.py."""
    moving, own = moving_wrenches(tree, q, qd)
    at = located(tree, q)
    fixed = each_link(tree, turn_wrenches, own, at)
    turned = each_link(tree, turn_columns, moving, at)
    diagonal = each_link(tree, meet, own, moving)  # a joint with itself: cheaper in link axes
    pairs = each_pair(tree, stay, meet, fixed, turned)
    chosen = (((j, i), diagonal[i] if i == j else other) for (j, i), other in pairs)
    return assembled(tree, qd, blocks_of(chosen))


def turn_wrenches(link: Link, columns: ColumnWrenches, at: Located) -> ColumnWrenches:
    """Wrenches at a link's origin, in its axes -> at the fixed point."""
    return ColumnWrenches(*(in_fixed_frame(link, forces, at) for forces in columns))


def turn_columns(_link: Link, m: Moving, at: Located) -> Moving:
    """A joint's columns and their rates at the fixed point."""
    turned = [Motion(at.R @ rate.ang, at.R @ rate.lin) for rate in m.dS]
    rates = [Motion(rate.ang, rate.lin + cross(at.p, rate.ang)) for rate in turned]
    return Moving(JointState(m.J.X, tuple(at.S)), m.v, rates)
