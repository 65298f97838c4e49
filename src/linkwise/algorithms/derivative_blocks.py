"""Derivatives of inverse dynamics between two joints, one nearer to the base than the other.

    each pair     rows of the inner joint: P, Q and A of the outer one, projected on its columns;
                  rows of the outer joint: its A, b and e along the columns of the inner one

The wrenches are those of ``derivative_wrenches.py``; ``torque_derivatives.py`` has the equations.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.dense import plus, transpose, unit
from linkwise.algorithms.derivative_wrenches import Sent, Wrenches
from linkwise.algorithms.moved_columns import Column, Moving
from linkwise.model.tree import Link
from linkwise.spatial import Matrix, Scalar, Vector


class Rates(NamedTuple):
    """∂τ/∂q, ∂τ/∂q̇ and M: of all joints, or between the columns of two of them."""

    q: Matrix
    qd: Matrix
    M: Matrix


def meet(_link: Link, sent: Sent, m: Moving) -> tuple[Rates, Rates]:
    """Rows of the ancestor m, columns of the joint; and rows of the joint, columns of m."""
    columns = sent.columns
    A = [[c.S.dot(own.A) for own in columns] for c in m.columns]
    P = [[c.S.dot(own.P) for own in columns] for c in m.columns]
    Q = [[c.S.dot(own.Q) for own in columns] for c in m.columns]
    by_q = [[_by_q(own, c) for c in m.columns] for own in columns]
    by_qd = [[c.both.dot(own.A) + c.S.ang.dot(own.b) for c in m.columns] for own in columns]
    return Rates(P, Q, A), Rates(by_q, by_qd, transpose(A))


def _by_q(own: Wrenches, c: Column) -> Scalar:
    return c.psi2.dot(own.A) + c.psi.ang.dot(own.b) + c.S.ang.dot(own.e)


def meet_itself(link: Link, sent: Sent, m: Moving, qd: Vector) -> Rates:
    """The block of a joint with itself: its columns move those after them, or each other."""
    (P, Q, A), (by_q, _, _) = meet(link, sent, m)
    n = range(len(A))
    moves = [[c != r and (link.joint.quasi or c < r) for c in n] for r in n]
    by_q = [[by_q[r][c] if moves[r][c] else P[r][c] for c in n] for r in n]
    return Rates(by_q, plus(Q, _resistance(link, qd)), A)


def _resistance(link: Link, qd: Vector) -> Matrix:
    """How what takes torque from the motors (`Link.resistance`) changes with the rates."""
    columns = []
    for e in unit(len(qd)):
        rows = zip(link.turned_rotors(qd, e), link.turned_rotors(e, qd), e, strict=True)
        columns.append([x + y + link.damping * one for x, y, one in rows])
    return transpose(columns)
