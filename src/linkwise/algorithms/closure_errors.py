"""How far closed loops are from closed.

    e = D (turn, distance) of frame a from frame b, in axes of b;   J qd

Distances are those of the origins. Where all three directions of turning are held, the turn is
2 tan(θ/2) about its axis, the angle θ itself to third order; where two are, n x R n, with n the
axis that is left to turn about. One direction of turning that is held alone is no function of the
pose (rolling is like that): only its rate has an error.
"""

from __future__ import annotations

from linkwise.algorithms.closure_rates import velocities
from linkwise.algorithms.closures import Seam, seams
from linkwise.algorithms.curves import curve_errors
from linkwise.algorithms.kinematics import axes_of
from linkwise.model.tree import Tree
from linkwise.spatial import Mat3, Matrix, Scalar, Vec3, Vector, cross, quotient


def errors(tree: Tree, q: Vector, closed: list[Seam]) -> list[Scalar]:
    """The error of each direction that is held, and of each curve."""
    return [x for seam in closed for x in _errors(seam)] + curve_errors(tree, q)


def _errors(seam: Seam) -> list[Scalar]:
    b = seam.closure.b
    back = axes_of(b).T
    distance = back @ (seam.s - Vec3(*b.origin))
    turn = _turn(seam, back)
    rows = ((Vec3(*row[:3]), Vec3(*row[3:])) for row in seam.closure.directions)
    return [ang.dot(turn) + lin.dot(distance) for ang, lin in rows]


def _turn(seam: Seam, back: Mat3) -> Vec3:
    """How frame a is turned against frame b, in axes of b."""
    if seam.closure.turning < 2:
        return Vec3.zero()
    x, y, z = (back @ (seam.E @ column) for column in axes_of(seam.closure.a).T.rows)
    if seam.closure.turning == 2:
        n = Vec3(*seam.closure.hinge)
        return cross(n, x * n.x + y * n.y + z * n.z)
    skew = Vec3(y.z - z.y, z.x - x.z, x.y - y.x)
    twice: Vec3 = skew * quotient(2.0, 1.0 + x.x + y.y + z.z)
    return twice


def residual(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """Errors of the pose, and of the velocity."""
    closed = seams(tree, q)
    return [errors(tree, q, closed), velocities(tree, q, qd, closed)]
