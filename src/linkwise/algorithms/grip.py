"""A frame on its link: motions and wrenches of the link seen at the frame, and the other way."""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense
from linkwise.algorithms.kinematics import axes_of
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Force, Mat3, Motion, Vec3, Vector, cross

UNITS = tuple(Vec3(*row) for row in dense.unit(3))


class Grip(NamedTuple):
    """A frame on its link: axes (asked for -> link's) and origin."""

    axes: Mat3
    origin: Vec3

    def pushes(self) -> list[Force]:
        """Unit moments and forces at the frame, as wrenches on the link."""
        turned = [self.axes @ u for u in UNITS]
        moments = [Force(u, Vec3.zero()) for u in turned]
        return moments + [Force(cross(self.origin, u), u) for u in turned]

    def motions(self) -> list[Motion]:
        """Unit motions of the frame, as motions of the link."""
        turned = [self.axes @ u for u in UNITS]
        turns = [Motion(u, cross(self.origin, u)) for u in turned]
        return turns + [Motion(Vec3.zero(), u) for u in turned]

    def seen(self, m: Motion) -> Motion:
        """A motion of the link, at the frame."""
        turn = self.axes.T
        return Motion(turn @ m.ang, turn @ (m.lin + cross(m.ang, self.origin)))

    def felt(self, f: Force) -> Force:
        """A wrench on the link, at the frame."""
        turn = self.axes.T
        return Force(turn @ (f.ang - cross(self.origin, f.lin)), turn @ f.lin)


def grip(tree: Tree, q: Vector, frame: Frame, axes: str) -> Grip:
    """The frame's place on its link, in base or body axes."""
    turn = link_pose(tree, q, frame.link).R.T if axes == "base" else axes_of(frame)
    return Grip(turn, Vec3(*frame.origin))
