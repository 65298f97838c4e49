"""Poses along a chain by a scan: where the last link of a piece is, seen from the link before it.

(R, p) ↦ (R_inner R, p_inner + R_inner p)
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import tied
from linkwise.algorithms.poses import LinkPose
from linkwise.model.chains import first_branch, first_without_own_inertia
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, Vec3, Vector
from linkwise.sweep import Law, total


class Reach(NamedTuple):
    """Axes (last link -> link before the piece) and origin."""

    R: Mat3
    p: Vec3


def reach(link: Link, piece: Reach, q: Vector) -> Reach:
    """With one link more at the outer end."""
    X = link.joint_state(q).X
    return Reach(Mat3(*(X.rotate(row) for row in piece.R.rows)), piece.p + piece.R @ X.r)


def join(inner: Reach, outer: Reach) -> Reach:
    """Two pieces as one."""
    turn = outer.R.T
    return Reach(Mat3(*(turn @ row for row in inner.R.rows)), inner.p + inner.R @ outer.p)


HERE = Reach(Mat3.identity(), Vec3.zero())
REACHES = Law(reach, join, None, HERE)


def tip_pose(tree: Tree, q: Vector) -> LinkPose:
    """Pose of the last link of a chain, seen from the base."""
    return LinkPose(*total(tree, REACHES, tree.per_link_q(q)))


def branches(tree: Tree) -> str:
    """A reason where a robot is no chain of joints on their own."""
    name = first_branch(tree)
    if name:
        return f"link {name!r} does not follow the link before it, and a scan is for one chain"
    return tied.why_not(tree)


def hollow(tree: Tree) -> str:
    """A reason where the joint of some link moves no inertia of that link."""
    name = first_without_own_inertia(tree)
    if not name:
        return ""
    return (
        f"the joint of link {name!r} moves no inertia of that link alone, which every piece of a "
        "chain must have"
    )


def not_at_tip(tree: Tree, frame: Frame) -> str:
    """A reason where a frame is not at the tip."""
    if frame.link == tree.n_links - 1:
        return ""
    return "the frame is not on the last link, and a scan ends at the tip"
