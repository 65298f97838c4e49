"""How far a frame is from where it should be, and how it moves: what laws of its motion look at.

    errors   (log(R_target Rᵀ), p_target - p): the turn and the way that lead to the target
    rates    J v, the frame's velocity, and J̇ q̇, its acceleration at constant joint rates

All of them (angular, linear), in base axes or in the frame's own.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.kinematics import at_frame, jacobian_columns, jacobian_dot_qd
from linkwise.algorithms.poses import LinkPose, link_pose
from linkwise.algorithms.yielding import combined
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Mat3, Scalar, Vec3, Vector
from linkwise.spatial.se3 import rotation_vector


class Tracked(NamedTuple):
    """A frame in motion; ``turn`` takes base axes to those that all else is in."""

    pose: LinkPose
    turn: Mat3
    columns: dict[int, list[Scalar]]
    velocity: list[Scalar]
    drift: list[Scalar]

    def seen(self, x: Vector) -> list[Scalar]:
        """Six numbers in base axes, in the axes of the others."""
        return [*(self.turn @ Vec3(*x[:3])), *(self.turn @ Vec3(*x[3:]))]

    def in_base(self, x: Vector) -> list[Scalar]:
        """The other way."""
        back = self.turn.T
        return [*(back @ Vec3(*x[:3])), *(back @ Vec3(*x[3:]))]


def tracked(tree: Tree, q: Vector, v: Vector, frame: Frame, axes: str) -> Tracked:
    """Where a frame is and how it moves, in base or body axes."""
    pose = at_frame(link_pose(tree, q, frame.link), frame)
    turn = Mat3.identity() if axes == "base" else pose.R.T
    columns = jacobian_columns(tree, q, frame, axes)
    drift = jacobian_dot_qd(tree, q, v, frame=frame, axes=axes)
    return Tracked(pose, turn, columns, combined(columns, v, 6), drift)


def pose_error(pose: LinkPose, target: Vector) -> list[Scalar]:
    """The turn and the way from a pose to the 4x4 matrix of another, by rows; in base axes."""
    R = [Vec3(*target[4 * k : 4 * k + 3]) for k in range(3)]
    between = Mat3(*(pose.R @ row for row in R))  # R_target Rᵀ: rows times rows
    way = Vec3(*(target[4 * k + 3] for k in range(3))) - pose.p
    return [*rotation_vector(between), *way]
