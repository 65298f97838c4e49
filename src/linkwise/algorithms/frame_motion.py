"""How frames move: velocity and acceleration of one, poses of all links and of several frames."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.kinematics import acceleration, at_frame, axes_of, homogeneous
from linkwise.algorithms.poses import BASE_POSE, LinkPose, link_pose, place
from linkwise.algorithms.rates import glide
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import Mat3, Matrix, Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path, base_to_tip, each_link, joint_states


def frame_velocity(
    tree: Tree, q: Vector, qd: Vector, *, frame: Frame, axes: str = "base"
) -> list[Scalar]:
    """Turning rate of a frame and velocity of its origin."""
    J, qd_ = joint_states(tree, q), tree.per_link_v(qd)
    _, v = along_path(tree, frame.link, glide, Motion.zero(), J, qd_)
    turn = link_pose(tree, q, frame.link).R if axes == "base" else axes_of(frame).T
    return [*(turn @ v.ang), *(turn @ (v.lin + cross(v.ang, Vec3(*frame.origin))))]


def frame_acceleration(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, frame: Frame, axes: str = "base"
) -> list[Scalar]:
    """How the turning rate changes, and acceleration of the origin."""
    return acceleration(tree, q, qd, qdd, frame, axes)


def link_poses(tree: Tree, q: Vector) -> list[Matrix]:
    """Poses of all links: of the frames of their joints."""
    poses = base_to_tip(tree, place, BASE_POSE, joint_states(tree, q))
    return each_link(tree, _seen, poses, tree.joint_frames)


def _seen(_link: Link, pose: LinkPose, frame: Frame) -> Matrix:
    return homogeneous(at_frame(pose, frame))


def frame_poses(
    tree: Tree, q: Vector, frames: Sequence[Frame], relative_to: Frame | None
) -> list[Matrix]:
    """Poses of some frames in base axes, or in those of another frame."""
    poses = base_to_tip(tree, place, BASE_POSE, joint_states(tree, q))

    def pose(frame: Frame) -> LinkPose:
        return at_frame(BASE_POSE if frame.link == BASE else poses[frame.link], frame)

    if relative_to is None:
        return [homogeneous(pose(frame)) for frame in frames]
    origin = pose(relative_to)
    return [homogeneous(_from(origin, pose(frame))) for frame in frames]


def _from(origin: LinkPose, pose: LinkPose) -> LinkPose:
    """A pose as seen from another."""
    turn = origin.R.T
    columns = Mat3(*(turn @ column for column in pose.R.T.rows))
    return LinkPose(columns.T, turn @ (pose.p - origin.p))
