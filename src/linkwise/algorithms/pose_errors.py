"""How far a frame is from where it shall be, in chosen directions, and how its rates change that.

    turn    log(R* Rᵀ)     the rotation vector from the frame's axes to the goal's, in base axes
    place   p* - p

Directions are those of the goal's own axes. Where all three of a turn or of a place are chosen,
base axes have the same length and need no turning. With two directions of a turn, the third axis a
of the frame shall point where the goal's does, and the error is the shortest turn that does it: the
angle about that axis is free. One direction alone is a component of the logarithm e. At rates w of
the frame

    d/dt e = -(1 + ½ e~ + b e~e~) w,    b = (1 - θ/2 cot θ/2)/θ²,    θ = |e|

of which its row is the transpose. For a whole turn, e itself does not notice the matrix, and near
the goal the matrix is 1, which is taken instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms.dense import dot
from linkwise.algorithms.poses import LinkPose
from linkwise.model.tree import Frame
from linkwise.spatial import Mat3, Motion, Scalar, Vec3, cross
from linkwise.spatial.se3 import bend, rotation_vector, shortest_turn

Rows = Callable[[Vec3], list[Scalar]]


class Goal(NamedTuple):
    """Where a frame shall be: axes and origin, in base axes."""

    frame: Frame
    R: Mat3
    p: Vec3


class Error(NamedTuple):
    """An error by rows: values, and what each row is of a motion of the frame, in base axes."""

    turn: list[Scalar]
    place: list[Scalar]
    turn_rows: Rows
    place_rows: Rows

    def of(self, motion: Motion, weight: float) -> list[Scalar]:
        """How fast a motion takes the error away, row by row, places times a weight."""
        return [*self.turn_rows(motion.ang), *(x * weight for x in self.place_rows(motion.lin))]

    def rows(self, weight: float) -> list[Scalar]:
        """The values, places times a weight."""
        return [*self.turn, *(x * weight for x in self.place)]

    def bound(self) -> Scalar:
        """No less than the square of the SE(3) logarithm's norm, and equal to first order.

        That has ``V⁻¹ t`` for a place t (``spatial/se3.py``). V⁻¹ is at most ``(θ/2) / sin(θ/2)``
        long, whose square is below ``1 + θ²/6`` for every angle up to half a turn.
        """
        turn, place = dot(self.turn, self.turn), dot(self.place, self.place)
        return turn + place * (1.0 + turn * (1.0 / 6.0))


def pose_error(goal: Goal, pose: LinkPose, directions: Sequence[bool]) -> Error:
    """The error of a frame in the chosen of six directions, (angular, linear)."""
    turn, turn_rows = _turn(goal, pose, directions[:3])
    place, place_rows = _chosen(goal.R.T, goal.p - pose.p, directions[3:])
    return Error(turn, place, turn_rows, place_rows)


def _turn(goal: Goal, pose: LinkPose, directions: Sequence[bool]) -> tuple[list[Scalar], Rows]:
    axes = goal.R.T
    if sum(directions) == 2:
        free = directions.index(False)
        a, b = pose.R.T.rows[free], axes.rows[free]
        return _chosen(axes, shortest_turn(a, b, axes.rows[free - 1]), directions)
    if not any(directions):
        return [], lambda w: []
    e = rotation_vector(Mat3(*(pose.R @ row for row in goal.R.rows)))
    if all(directions):
        return _chosen(axes, e, directions)
    row = axes.rows[directions.index(True)]
    once = cross(e, row)
    slope = row - once * 0.5 + cross(e, once) * bend(e)
    return [row.dot(e)], lambda w: [slope.dot(w)]


def _chosen(axes: Mat3, e: Vec3, directions: Sequence[bool]) -> tuple[list[Scalar], Rows]:
    """A vector's components along some of three axes, and the same of any other vector."""
    if all(directions):
        return list(e), list
    rows = [row for row, chosen in zip(axes.rows, directions, strict=True) if chosen]
    return [row.dot(e) for row in rows], lambda v: [row.dot(v) for row in rows]
