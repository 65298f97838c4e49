"""A joint as steps: columns that move together, and the body before them, which they do not move.

The columns of most joints move one after another, a step each. Those of a spherical or free joint
are fixed to the link that they move, and are one step together.

A column along z is the same before and after a turn about z. Where a joint's way ends with such a
turn, its step is told in the axes before that turn: what the step asks for needs no turn back.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import Subspace
from linkwise.spatial import Mat3, Motion, Transform, Vec3, cross, rate_matrix


class Body(NamedTuple):
    """How a body moves, at a link's origin: turning, and the origin's velocity and acceleration."""

    w: Vec3
    dw: Vec3
    v: Vec3
    a: Vec3

    @property
    def U(self) -> Mat3:
        """A point ρ of it accelerates by ``a + Uρ``."""
        return rate_matrix(self.w, self.dw)

    def turned(self, X: Transform) -> Body:
        """The same in turned axes."""
        return Body(*(X.rotate(x) for x in self))

    def with_joint(self, v: Motion, a: Motion) -> Body:
        """How a body moves that moves with v and a, ordinary, against this one."""
        w, dw = self.w + v.ang, self.dw + a.ang + cross(self.w, v.ang)
        return Body(w, dw, self.v + v.lin, self.a + a.lin + cross(self.w * 2.0, v.lin))


class Step(NamedTuple):
    """Columns that move together: what they do not move, and the motion by them, ordinary."""

    before: Body
    S: Subspace
    v: Motion
    a: Motion
    quasi: bool

    def fixed(self, S: Motion) -> Motion:
        """How much more a column changes that is fixed to what it moves: ``v x S``."""
        return self.v.cross(S) if self.quasi else Motion.zero()
