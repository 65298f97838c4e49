"""Forward dynamics: the articulated-body algorithm.

    qdd = D⁻¹ (u - Uᵀ a),   D = Sᵀ I^A S + rotors,   U = I^A S,   u = tau - Sᵀ p^A

Three sweeps [RBDA Table 7.1; Rodriguez and Kreutz, FD4], ordinary accelerations:

    base -> tip   w, c, p   turning rates, velocity-product acceleration and force (rates.py)
    tip -> base   I^A, p^A  articulated inertia and bias force
    base -> tip   a, qdd

Columns of a joint are eliminated one by one, and solved in the opposite order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.algorithms.tied import inverse_with_ties, with_ties
from linkwise.model.tree import Link, Tree
from linkwise.spatial import ArticulatedInertia, Force, Motion, Scalar, Vec3, Vector, reciprocal
from linkwise.sweep import base_to_tip, each_link, tip_to_base


class Subtree(NamedTuple):
    """Articulated inertia and bias force; sums over children."""

    IA: ArticulatedInertia
    pA: Force


class Handle(NamedTuple):
    """One eliminated column, kept for the outward sweep."""

    U: Force
    inv_d: Scalar
    u: Scalar


NOTHING = Subtree(ArticulatedInertia.zero(), Force.zero())


def eliminate(
    body: Subtree, columns: Sequence[Motion], rotors: Vector, forces: Vector
) -> tuple[list[Handle], Subtree]:
    """A body as it is felt through columns that are free to move."""
    (IA, p), handles = body, []
    for column, rotor, t in zip(columns, rotors, forces, strict=True):
        U = IA @ column
        inv_d = reciprocal(column.dot(U) + rotor)
        u = t - column.dot(p)
        K = U * inv_d
        IA, p = IA.minus_outer(U, K), p + K * u
        handles.append(Handle(U, inv_d, u))
    return handles, Subtree(IA, p)


def release(
    a: Motion, columns: Sequence[Motion], handles: list[Handle]
) -> tuple[Motion, list[Scalar]]:
    """The acceleration after the columns, and theirs, the last one first."""
    rates: list[Scalar] = []
    for column, handle in zip(reversed(columns), reversed(handles), strict=True):
        rate = (handle.u - a.dot(handle.U)) * handle.inv_d
        a = a + column * rate
        rates.insert(0, rate)
    return a, rates


def articulate(
    link: Link, children: Subtree, m: Velocity, ext: Force, tau: Vector
) -> tuple[list[Handle], Subtree]:
    """Eliminate the joint; what is left is the inertia and the force that the parent feels."""
    body = Subtree(children.IA + link.inertia.articulated(), children.pA + m.p - ext)
    handles, (IA, p) = eliminate(body, m.J.S, link.armature, tau)
    return handles, Subtree(m.J.X.body_back(IA), m.J.X.force_back(p + IA @ m.c))


def accelerate(
    _link: Link, parent: Acceleration, m: Velocity, handles: list[Handle]
) -> Acceleration:
    """Acceleration of a link and of its joint."""
    return Acceleration(*release(m.J.X.motion(parent.a) + m.c, m.J.S, handles))


def sweeps(tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> list[Scalar]:
    """Joint accelerations of a tree whose joints all move on their own."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    velocities = base_to_tip(tree, turn, STILL, q_, qd_)
    ext, driven = external_forces(tree, q, external), each_link(tree, drive, tau_, qd_)
    handles, _ = tip_to_base(tree, articulate, NOTHING, velocities, ext, driven)
    base = Acceleration(Motion(Vec3.zero(), tree.base_acceleration), [])
    return joint_accelerations(tree, base_to_tip(tree, accelerate, base, velocities, handles))


aba = with_ties(sweeps)
mass_matrix_inverse = inverse_with_ties(sweeps)
