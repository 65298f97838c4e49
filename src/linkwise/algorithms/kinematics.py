"""Kinematics of a frame: pose, Jacobian, and acceleration at constant joint rates.

One sweep from the base to the frame's link carries its axes and origin in base axes:

    R = R_parent Eᵀ,   p = p_parent + R_parent r

A column of the Jacobian is the joint's motion, turned to base axes and moved to the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.rates import NO_JOINT, at_rest, move
from linkwise.model.joints import Stance
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, Motion, Scalar, Vec3, cross
from linkwise.sweep import along_path

Matrix = list[list[Scalar]]


class Pose(NamedTuple):
    """Axes (link -> base) and origin of a link, in base axes."""

    R: Mat3
    p: Vec3
    J: Stance = NO_JOINT


BASE_POSE = Pose(Mat3.identity(), Vec3.zero())


def place(link: Link, parent: Pose, q: Sequence[Scalar]) -> Pose:
    """Pose of a link from its parent's."""
    J = link.stance(q)
    R = Mat3(*(J.X.rotate(row) for row in parent.R.rows))
    return Pose(R, parent.p + parent.R @ J.X.r, J)


def _at_frame(pose: Pose, frame: Frame) -> Pose:
    turn = Mat3(*(Vec3(*row) for row in frame.rotation)).T
    R = Mat3(*(turn @ row for row in pose.R.rows))
    return Pose(R, pose.p + pose.R @ Vec3(*frame.origin))


def _poses(tree: Tree, q: Sequence[Scalar], frame: Frame) -> tuple[list[tuple[int, Pose]], Pose]:
    states = along_path(tree, frame.link, place, BASE_POSE, tree.per_link_q(q))
    last = states[-1][1] if states else BASE_POSE
    return states, _at_frame(last, frame)


def forward_kinematics(tree: Tree, q: Sequence[Scalar], *, frame: Frame) -> Matrix:
    """Homogeneous 4x4 matrix that takes frame coordinates to base coordinates."""
    _, (R, p, _) = _poses(tree, q, frame)
    rows = [[*row, x] for row, x in zip(R.rows, p, strict=True)]
    return [*rows, [0.0, 0.0, 0.0, 1.0]]


def jacobian_columns(
    tree: Tree, q: Sequence[Scalar], frame: Frame, axes: str
) -> dict[int, list[Scalar]]:
    """The Jacobian's nonzero columns, by degree of freedom."""
    states, tip = _poses(tree, q, frame)
    columns: dict[int, Motion] = {}
    for i, pose in states:
        for (k, factor), column in zip(tree.links[i].dofs, pose.J.S, strict=True):
            ang = pose.R @ column.ang
            lin = pose.R @ column.lin + cross(ang, tip.p - pose.p)
            here = Motion(ang, lin) * factor
            columns[k] = columns[k] + here if k in columns else here
    return {k: list(_seen_in(axes, tip, column)) for k, column in columns.items()}


def jacobian(tree: Tree, q: Sequence[Scalar], *, frame: Frame, axes: str = "base") -> Matrix:
    """Rows (angular, linear) of the frame's velocity at its origin, per joint rate."""
    columns = jacobian_columns(tree, q, frame, axes)
    zero = [0.0] * 6
    return [[columns.get(j, zero)[row] for j in range(tree.nv)] for row in range(6)]


def jacobian_dot_qd(
    tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar], *, frame: Frame, axes: str = "base"
) -> list[Scalar]:
    """The frame's acceleration (angular, linear) when the joint rates do not change.

    In body axes it is the rate of change of the body-axes velocity, so ``w x v`` is taken off.
    """
    q_, qd_, none = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v([0.0] * tree.nv)
    base = at_rest(Vec3.zero())
    states = along_path(tree, frame.link, move, base, q_, qd_, none)
    m = states[-1][1] if states else base
    here = Motion(m.dw, m.a + m.U @ Vec3(*frame.origin))
    poses, tip = _poses(tree, q, frame)
    R = poses[-1][1].R if poses else BASE_POSE.R
    acceleration = Motion(R @ here.ang, R @ here.lin)
    if axes == "body":
        velocity = _velocity(tree, qd, jacobian_columns(tree, q, frame, "base"))
        drift = Motion(Vec3.zero(), cross(velocity.ang, velocity.lin))
        acceleration = acceleration - drift
    return list(_seen_in(axes, tip, acceleration))


def _velocity(tree: Tree, qd: Sequence[Scalar], columns: dict[int, list[Scalar]]) -> Motion:
    total = Motion.zero()
    for j, c in columns.items():
        total = total + Motion(Vec3(*c[:3]), Vec3(*c[3:])) * qd[j]
    return total


def _seen_in(axes: str, tip: Pose, m: Motion) -> Motion:
    if axes == "body":
        return Motion(tip.R.T @ m.ang, tip.R.T @ m.lin)
    return m
