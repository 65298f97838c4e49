"""Coordinate changes from a parent frame to a child frame."""

from __future__ import annotations

from functools import reduce
from typing import TypeVar

from linkwise.spatial.flux import Flux
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.motion import Force, Motion
from linkwise.spatial.turn import Rotation, Turn, Z
from linkwise.spatial.vec3 import Vec3, cross

Kind = TypeVar("Kind", RigidInertia, ArticulatedInertia, Flux)

Spun = TypeVar("Spun", RigidInertia, Flux)


class Transform:
    """Parent -> child: the child's origin ``r`` in parent axes, then turns of the axes."""

    __slots__ = ("r", "turns")

    def __init__(self, r: Vec3, turns: tuple[Turn | Rotation, ...] = ()) -> None:
        self.r, self.turns = r, turns

    def then(self, o: Transform) -> Transform:
        """This change of frame followed by another; turns about one axis are merged."""
        turns = list(self.turns)
        for turn in o.turns:
            last = turns[-1] if turns else None
            if isinstance(last, Turn) and isinstance(turn, Turn) and last.axis == turn.axis:
                turns[-1] = last.then(turn)
            else:
                turns.append(turn)
        return Transform(self.r + self.rotate_back(o.r), tuple(turns))

    def parted(self) -> tuple[Transform, Transform]:
        """This change of frame up to its last turn where that is about z, and that turn."""
        *first, last = self.turns or (None,)
        if isinstance(last, Turn) and last.axis == Z:
            return Transform(self.r, tuple(first)), Transform(Vec3.zero(), (last,))
        return self, Transform(Vec3.zero())

    def rotate(self, v: Vec3) -> Vec3:
        """A free vector, parent axes -> child axes."""
        return reduce(lambda u, turn: turn.vec(u), self.turns, v)

    def rotate_back(self, v: Vec3) -> Vec3:
        """A free vector, child axes -> parent axes."""
        return reduce(lambda u, turn: turn.back.vec(u), reversed(self.turns), v)

    def motion(self, m: Motion) -> Motion:
        """Motion at the parent's origin -> motion of the same body at the child's origin."""
        return Motion(self.rotate(m.ang), self.rotate(m.lin + cross(m.ang, self.r)))

    def force_back(self, f: Force) -> Force:
        """Wrench at the child's origin -> the same wrench at the parent's origin."""
        lin = self.rotate_back(f.lin)
        return Force(self.rotate_back(f.ang) + cross(self.r, lin), lin)

    def spun_back(self, body: Spun) -> Spun:
        """`body_back` for a turn about z: its moments xx and yy keep their sum, as one number."""
        return self.body_back(body).with_sum(body.plane_sum)

    def body_back(self, body: Kind) -> Kind:
        """An inertia or a flux in the child's frame -> the same in the parent's frame."""
        for turn in reversed(self.turns):
            body = body.turned(turn.back)
        return body.seen_from(self.r)
