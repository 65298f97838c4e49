"""Every link in one fixed frame: that of the first link of its branch.

    base -> tip   R, p, l   axes and origin of each link, and its way from its parent

Everything is seen from one point, so nothing is carried from link to link. The first link of each
branch gives that point and the axes, so no offset between base and robot costs digits.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.kinematics import BASE_POSE
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, Motion, Vec3, Vector, cross
from linkwise.sweep import base_to_tip, joint_states_from_roots


class Located(NamedTuple):
    """A link in the fixed frame: axes, origin, way from the parent's origin, joint's columns."""

    R: Mat3
    p: Vec3
    l: Vec3
    own: list[Motion]  # columns at the link's origin
    S: list[Motion]  # columns at the fixed point


FIXED = Located(BASE_POSE.R, BASE_POSE.p, Vec3.zero(), [], [])


def locate(_link: Link, parent: Located, J: JointState) -> Located:
    """A link's place from its parent's."""
    R = Mat3(*(J.X.rotate(row) for row in parent.R.rows))
    l = parent.R @ J.X.r
    p = parent.p + l
    own = [Motion(R @ column.ang, R @ column.lin) for column in J.S]
    return Located(R, p, l, own, [Motion(s.ang, s.lin + cross(p, s.ang)) for s in own])


def located(tree: Tree, q: Vector) -> list[Located]:
    """Every link, seen from the first link of its branch."""
    return base_to_tip(tree, locate, FIXED, joint_states_from_roots(tree, q))


def in_fixed_frame(_link: Link, wrenches: list[Force], at: Located) -> list[Force]:
    """Wrenches at a link's origin, in its axes -> at the fixed point."""
    turned = [Force(at.R @ f.ang, at.R @ f.lin) for f in wrenches]
    return [Force(f.ang + cross(at.p, f.lin), f.lin) for f in turned]
