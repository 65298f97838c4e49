"""Derivatives of inverse dynamics between two joints, one nearer to the base than the other.

    each pair     rows of the inner joint: P, Q and A of the outer one, projected on its columns;
                  rows of the outer joint: its A, b and e along the columns of the inner one

The wrenches are those of ``derivative_wrenches.py``; ``torque_derivatives.py`` has the equations.
A joint meets itself as if all its columns were moved by others. Where column c moves column r, the
torque along r misses that the column turns with the force F: by ``(S_c x S_r)·F``.
"""

from __future__ import annotations

from linkwise.algorithms.dense import transpose, unit
from linkwise.algorithms.derivative_bodies import Subtree, held
from linkwise.algorithms.derivative_wrenches import Sent, Wrenches
from linkwise.algorithms.moved_columns import Moving
from linkwise.model.tree import Link
from linkwise.spatial import Force, Matrix, Vector

Meeting = tuple[list[Wrenches], Moving]  # wrenches of a joint's columns, and the ancestor they meet


def meet(_link: Link, sent: Sent[Wrenches], m: Moving) -> Meeting:
    """Wrenches of one joint at another, or at itself."""
    return sent.columns, m


def meet_force(_link: Link, sent: Sent[Force], m: Moving) -> tuple[list[Force], Moving]:
    """P of one joint at another, or at itself."""
    return sent.columns, m


def inertia(columns: list[Wrenches], m: Moving) -> Matrix:
    """M: rows of the ancestor m, columns of the joint."""
    return transpose([m.J.project(own.A) for own in columns])


def inner_rates(columns: list[Wrenches], m: Moving) -> Matrix:
    """∂τ/∂q̇: rows of the ancestor m, columns of the joint."""
    return transpose([m.J.project(own.Q) for own in columns])


def outer_rates(columns: list[Wrenches], m: Moving) -> Matrix:
    """∂τ/∂q̇: rows of the joint, columns of the ancestor m."""
    return [[c.both.dot(own.A) + c.S.ang.dot(own.b) for c in m.columns] for own in columns]


def inner_turns(forces: list[Force], _columns: list[Wrenches], m: Moving) -> Matrix:
    """∂τ/∂q: rows of the ancestor m, columns of the joint."""
    return transpose([m.J.project(P) for P in forces])


def outer_turns(_forces: list[Force], columns: list[Wrenches], m: Moving) -> Matrix:
    """∂τ/∂q: rows of the joint, columns of the ancestor m."""
    rows = ((own.A, own.b, own.e, c) for own in columns for c in m.columns)
    found = [c.psi2.dot(A) + c.psi.ang.dot(b) + c.S.ang.dot(e) for A, b, e, c in rows]
    n = len(m.columns)
    return [found[k * n : k * n + n] for k in range(len(columns))]


def own_turns(link: Link, m: Moving, bodies: list[Subtree]) -> Matrix:
    """∂τ/∂q: what a joint that meets itself misses."""
    S, F, n = m.J.S, held(m, bodies), range(len(m.J.S))
    moves = [[c != r and (link.joint.quasi or c < r) for c in n] for r in n]
    return [[S[c].cross(S[r]).dot(F) if moves[r][c] else 0.0 for c in n] for r in n]


def resistance(link: Link, qd: Vector) -> Matrix:
    """How what takes torque from the motors (`Link.resistance`) changes with the rates."""
    columns, (viscous, _) = [], link.losses
    for e in unit(len(qd)):
        turned = zip(link.turned_rotors(qd, e), link.turned_rotors(e, qd), strict=True)
        rows = zip(turned, viscous, e, strict=True)
        columns.append([x + y + damping * one for (x, y), damping, one in rows])
    return transpose(columns)
