"""How a frame responds to torques: what laws of its motion are given of a robot of any length."""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.poses import LinkPose
from linkwise.spatial import Mat3, Matrix, Scalar, Vec3, Vector

SIZE = 60  # numbers of a response


class Response(NamedTuple):
    """A frame: where it is, how it moves and accelerates, Λ⁻¹ by rows; all in base axes."""

    pose: LinkPose
    velocity: list[Scalar]
    acceleration: list[Scalar]
    mobility: Matrix

    def numbers(self) -> list[Scalar]:
        """As one list."""
        turn = [x for row in self.pose.R.rows for x in row]
        rows = [x for row in self.mobility for x in row]
        return [*turn, *self.pose.p, *self.velocity, *self.acceleration, *rows]

    @staticmethod
    def of(numbers: Vector) -> Response:
        """From that list."""
        R, p, velocity, acceleration = (
            numbers[a:b] for a, b in ((0, 9), (9, 12), (12, 18), (18, 24))
        )
        pose = LinkPose(Mat3(*(Vec3(*R[3 * k : 3 * k + 3]) for k in range(3))), Vec3(*p))
        rows = [list(numbers[24 + 6 * k : 30 + 6 * k]) for k in range(6)]
        return Response(pose, list(velocity), list(acceleration), rows)
