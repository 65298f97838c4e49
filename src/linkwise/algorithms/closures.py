"""Closed loops: how frame a moves against frame b, and what holds it.

Rows D of directions are fixed in the axes of b and taken at the origin of a. A loop with forces λ
along them pushes link a with Dᵀλ and link b with the opposite, both at the origin of a, so that

    M qdd + bias = tau + Jᵀ λ,      J qdd + J̇ qd = 0

where J qd is how a moves against b along D (closure_rates.py). What happens between two frames is
the same for any observer: poses are those seen from the last link that carries both.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.kinematics import axes_of
from linkwise.algorithms.poses import BASE_POSE, LinkPose, place
from linkwise.model.closures import Closure
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Force, Mat3, Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path, joint_states_beyond


class Seam(NamedTuple):
    """A closed loop at a configuration; poses as the last link that carries both ends sees them."""

    closure: Closure
    on_a: dict[int, LinkPose]  # of the links that carry a and not b
    on_b: dict[int, LinkPose]
    a: LinkPose
    b: LinkPose
    shared: frozenset[int]  # links that carry both

    @property
    def origin(self) -> Vec3:
        """Of frame a, on link a."""
        return Vec3(*self.closure.a.origin)

    @property
    def E(self) -> Mat3:
        """Axes of link a -> axes of link b."""
        columns = self.a.R.T
        return Mat3(*(columns @ row for row in self.b.R.T.rows))

    @property
    def s(self) -> Vec3:
        """Origin of frame a from the origin of link b, in axes of link b."""
        return self.b.R.T @ (self.a.p + self.a.R @ self.origin - self.b.p)

    @property
    def rows(self) -> list[Motion]:
        """The directions that are held, in axes of link b."""
        return [directed(self.closure.b, row) for row in self.closure.directions]

    def on_link_a(self) -> list[Force]:
        """Unit forces of the loop along its directions on link a, at its origin in its axes."""
        back = self.E.T
        turned = [(back @ row.ang, back @ row.lin) for row in self.rows]
        return [Force(n + cross(self.origin, f), f) for n, f in turned]

    def on_link_b(self) -> list[Force]:
        """Their reactions on link b, at its origin in its axes."""
        return [Force(-(row.ang + cross(self.s, row.lin)), -row.lin) for row in self.rows]

    def along(self, m: Motion) -> list[Scalar]:
        """A relative motion, in axes of link b, along the directions that are held."""
        return [row.ang.dot(m.ang) + row.lin.dot(m.lin) for row in self.rows]


def directed(frame: Frame, row: Vector) -> Motion:
    """A direction in the axes of a frame, in those of its link."""
    turn = axes_of(frame)
    return Motion(turn @ Vec3(*row[:3]), turn @ Vec3(*row[3:]))


def seams(tree: Tree, q: Vector) -> list[Seam]:
    """The closed loops at a configuration."""
    return [seam(tree, q, closure) for closure in tree.closures]


def seam(tree: Tree, q: Vector, closure: Closure) -> Seam:
    """One closed loop at a configuration."""
    shared = tree.shared(closure.a.link, closure.b.link)
    J, ends = joint_states_beyond(tree, q, shared), []
    for frame in (closure.a, closure.b):
        poses, last = along_path(tree, frame.link, place, BASE_POSE, J)
        ends.append(({i: pose for i, pose in poses.items() if i not in shared}, last))
    (on_a, a), (on_b, b) = ends
    return Seam(closure, on_a, on_b, a, b, shared)
