"""Pieces of a chain, for inverse dynamics by a scan: joints move as they are told.

    y = X u + η,   f' = Xᵀ f + C u + b       C composite inertia, X the change of frame

in the letters of ``pieces.py``; no joint gives way, so J is zero and A is Xᵀ.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.rates import Rates, Velocity
from linkwise.algorithms.spins import Spin
from linkwise.model.tree import Link
from linkwise.spatial import (
    Force,
    Mat3,
    Motion,
    RigidInertia,
    Rotation,
    Transform,
    Vec3,
    Vector,
    rate_matrix,
)
from linkwise.sweep import NO_JOINT, Law


class Load(NamedTuple):
    """What joins the two ends of some links in a row."""

    X: Transform
    body: RigidInertia
    b: Force
    eta: Motion

    def before(self, u: Motion, f: Force) -> Force:
        """The wrench at the inner end, from what is at both ends."""
        return self.X.force_back(f) + self.body @ u + self.b


class Given(NamedTuple):
    """What a piece is given: the acceleration before it, and the wrench after it."""

    u: Motion
    f: Force


def carry(link: Link, piece: Load, m: Velocity, ext: Force, qdd: Vector) -> Load:
    """The piece with one link more at its inner end."""
    X, own = m.J.X, m.c + m.J.motion(qdd)
    body = link.inertia + piece.body
    b = X.force_back(m.p - ext + piece.b + body @ own)
    return Load(_then(X, piece.X), X.body_back(body), b, piece.eta + piece.X.motion(own))


def join(inner: Load, outer: Load) -> Load:
    """Two pieces as one."""
    b = inner.b + inner.X.force_back(outer.b + outer.body @ inner.eta)
    body = inner.body + inner.X.body_back(outer.body)
    return Load(_then(inner.X, outer.X), body, b, outer.eta + outer.X.motion(inner.eta))


def share(inner: Load, outer: Load, given: Given) -> tuple[Given, Given]:
    """What each of two pieces is given, from what both are given together."""
    y = inner.X.motion(given.u) + inner.eta
    return Given(given.u, outer.before(y, given.f)), Given(y, given.f)


def moving(before: Spin, given: Given) -> Rates:
    """The link before a piece, for the walk through the piece."""
    w, dw = before.w, given.u.ang
    return Rates(NO_JOINT, w, dw, given.u.lin, rate_matrix(w, dw))


def _then(X: Transform, o: Transform) -> Transform:
    """Two changes of frame as one, its turn as one matrix."""
    E = Mat3(*(X.rotate_back(o.rotate_back(u)) for u in AXES))
    return Transform(X.r + X.rotate_back(o.r), (Rotation(E),))


AXES = Mat3.identity().rows
NO_LOAD = Load(
    Transform(Vec3.zero(), (Rotation(Mat3.identity()),)), RigidInertia.zero(), Force.zero(),
    Motion.zero(),
)  # fmt: skip
LOADS = Law(carry, join, share, NO_LOAD, inward=True)
