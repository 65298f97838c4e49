"""Kinematics of a frame: pose, Jacobian, and acceleration at constant joint rates.

The frame's link is placed by the sweep of ``poses.py``. A column of the Jacobian is the joint's
motion, turned to base axes and moved to the frame.

An acceleration is that of the frame's origin, and of its turning, in base or in body axes. How fast
the numbers of the body-axes velocity change is another quantity (``axes="moving"``): in axes that
turn with w, ``d/dt (Rᵀv) = Rᵀ(v̇ - w x v)``.
"""

from __future__ import annotations

from functools import partial

from linkwise.algorithms.poses import LinkPose, link_pose, link_poses
from linkwise.algorithms.rates import at_rest, glide, move
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, Matrix, Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path, joint_states, on_path

MOVING = "moving"  # body axes; rates of change of the numbers seen in them


def axes_of(frame: Frame) -> Mat3:
    """Frame axes -> link axes."""
    return Mat3(*(Vec3(*row) for row in frame.rotation))


def at_frame(pose: LinkPose, frame: Frame) -> LinkPose:
    """The pose of a frame from its link's."""
    turn = axes_of(frame).T
    R = Mat3(*(turn @ row for row in pose.R.rows))
    return LinkPose(R, pose.p + pose.R @ Vec3(*frame.origin))


def homogeneous(pose: LinkPose) -> Matrix:
    """A pose as a 4x4 matrix."""
    rows = [[*row, x] for row, x in zip(pose.R.rows, pose.p, strict=True)]
    return [*rows, [0.0, 0.0, 0.0, 1.0]]


def forward_kinematics(tree: Tree, q: Vector, *, frame: Frame) -> Matrix:
    """Homogeneous 4x4 matrix that takes frame coordinates to base coordinates."""
    return homogeneous(at_frame(link_pose(tree, q, frame.link), frame))


def jacobian_columns(tree: Tree, q: Vector, frame: Frame, axes: str) -> dict[int, list[Scalar]]:
    """The Jacobian's nonzero columns, by degree of freedom."""
    poses, last = link_poses(tree, q, frame.link)
    tip = at_frame(last, frame)
    turn = Mat3.identity() if axes == "base" else tip.R.T
    motions = on_path(tree, frame.link, partial(_at_tip, tip), poses)
    return tree.gather_columns(motions, lambda m: [*(turn @ m.ang), *(turn @ m.lin)])


def _at_tip(tip: LinkPose, _link: Link, pose: LinkPose) -> list[Motion]:
    """A joint's columns as motions of the frame, in base axes."""
    turned = pose.turned(pose.J.S)
    return [Motion(m.ang, m.lin + cross(m.ang, tip.p - pose.p)) for m in turned]


def jacobian(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """Rows (angular, linear) of the frame's velocity at its origin, per joint rate."""
    return tree.as_matrix(jacobian_columns(tree, q, frame, axes), 6)


def jacobian_dot_qd(
    tree: Tree, q: Vector, qd: Vector, *, frame: Frame, axes: str = "base"
) -> list[Scalar]:
    """The frame's acceleration (angular, linear) when the joint rates do not change."""
    return acceleration(tree, q, qd, [0.0] * tree.nv, frame, axes)


def acceleration(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, frame: Frame, axes: str
) -> list[Scalar]:
    """The frame's acceleration (angular, linear)."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    origin = Vec3(*frame.origin)
    _, m = along_path(tree, frame.link, move, at_rest(Vec3.zero()), q_, qd_, qdd_)
    here = Motion(m.dw, m.a + m.U @ origin)
    if axes == MOVING:
        J = joint_states(tree, q)
        _, v = along_path(tree, frame.link, glide, Motion.zero(), J, qd_)
        here = here - Motion(Vec3.zero(), cross(v.ang, v.lin + cross(v.ang, origin)))
    turn = link_pose(tree, q, frame.link).R if axes == "base" else axes_of(frame).T
    return [*(turn @ here.ang), *(turn @ here.lin)]
