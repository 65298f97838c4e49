"""Joint kinds: one record each, and the only place that knows one from another.

A joint has a configuration of its own size (``nq``), a motion subspace of one to six columns
(``nv``) constant in the link's frame, and a transform that depends on its configuration. The
joint frame is chosen so that the axis, where there is one, is z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.spatial import (
    Motion,
    RigidInertia,
    Scalar,
    Sym3,
    Transform,
    Turn,
    Vec3,
    sincos,
)

Subspace = tuple[Motion, ...]  # columns, in link axes at the link's origin


@dataclass(frozen=True)
class Joint:
    """What a joint kind is to the algorithms."""

    kind: str
    nq: int
    columns: Subspace
    transform: Callable[[Sequence[Scalar]], Transform]
    unaffected: Callable[[RigidInertia], RigidInertia]
    """The part of a link's inertia that does not notice the joint's motion (see regroup.py)."""

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return len(self.columns)


def _turn(q: Sequence[Scalar]) -> Transform:
    s, c = sincos(q[0])
    return Transform(Vec3.zero(), (Turn("z", c, s),))


def _slide(q: Sequence[Scalar]) -> Transform:
    return Transform(Vec3(0.0, 0.0, q[0]))


def _line_mass(body: RigidInertia) -> RigidInertia:
    """Mass spread along the axis stays where it is when the link turns about that axis."""
    second = Sym3(0.0, 0.0, 0.0, 0.0, 0.0, body.second.zz)
    return RigidInertia(body.m, Vec3(0.0, 0.0, body.h.z), second)


def _second_moment(body: RigidInertia) -> RigidInertia:
    """A link that only slides turns as its parent does."""
    return RigidInertia(0.0, Vec3.zero(), body.second)


_Z = Vec3(0.0, 0.0, 1.0)

REVOLUTE = Joint("revolute", 1, (Motion(_Z, Vec3.zero()),), _turn, _line_mass)
PRISMATIC = Joint("prismatic", 1, (Motion(Vec3.zero(), _Z),), _slide, _second_moment)

# kinds as files name them
JOINTS = {"revolute": REVOLUTE, "continuous": REVOLUTE, "prismatic": PRISMATIC}
