"""Where the links are: axes and origins, and motions and wrenches seen from one fixed point.

    base -> tip   R = R_parent Eᵀ,   l = R_parent r,   p = p_parent + l

Seen from one point in one set of axes, a wrench is the same at every link, and power is an inner
product: nothing is carried from link to link. Dynamics takes the first link of each branch for that
point and those axes (`root_poses`), so that no offset between base and robot costs digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, Motion, Vec3, Vector, cross
from linkwise.sweep import NO_JOINT, along_path, base_to_tip, joint_states, joint_states_from_roots


class LinkPose(NamedTuple):
    """Axes (link -> fixed) and origin of a link in the fixed frame; its joint, in link axes."""

    R: Mat3
    p: Vec3
    J: JointState = NO_JOINT
    l: Vec3 = Vec3.zero()  # from the parent's origin

    def turned(self, motions: Iterable[Motion]) -> list[Motion]:
        """Motions in link axes -> in the fixed axes, still at the link's origin."""
        return [Motion(self.R @ m.ang, self.R @ m.lin) for m in motions]

    def fixed(self, motions: Iterable[Motion]) -> list[Motion]:
        """Motions in link axes at the link's origin -> in the fixed axes at the fixed point."""
        return [Motion(m.ang, m.lin + cross(self.p, m.ang)) for m in self.turned(motions)]

    @property
    def S(self) -> list[Motion]:
        """The joint's columns in the fixed axes at the fixed point."""
        return self.fixed(self.J.S)

    def fixed_wrenches(self, wrenches: Iterable[Force]) -> list[Force]:
        """Wrenches in link axes at the link's origin -> in the fixed axes at the fixed point."""
        turned = [Force(self.R @ f.ang, self.R @ f.lin) for f in wrenches]
        return [Force(f.ang + cross(self.p, f.lin), f.lin) for f in turned]


BASE_POSE = LinkPose(Mat3.identity(), Vec3.zero())


def place(_link: Link, parent: LinkPose, J: JointState) -> LinkPose:
    """Pose of a link from its parent's."""
    R, l = Mat3(*(J.X.rotate(row) for row in parent.R.rows)), parent.R @ J.X.r
    return LinkPose(R, parent.p + l, J, l)


def link_poses(tree: Tree, q: Vector, link: int) -> tuple[dict[int, LinkPose], LinkPose]:
    """Poses of the links from the base out to one, and that one's; seen from the base."""
    return along_path(tree, link, place, BASE_POSE, joint_states(tree, q))


def link_pose(tree: Tree, q: Vector, link: int) -> LinkPose:
    """Pose of one link, seen from the base."""
    return link_poses(tree, q, link)[1]


def root_poses(tree: Tree, q: Vector) -> list[LinkPose]:
    """Pose of every link, seen from the first link of its branch."""
    return base_to_tip(tree, place, BASE_POSE, joint_states_from_roots(tree, q))


def stay(_link: Link, wrenches: Any, _pose: Any) -> Any:
    """In place of carrying: a wrench at the fixed point is the same at every link."""
    return wrenches
