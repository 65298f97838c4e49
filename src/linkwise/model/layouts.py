"""Configurations and rates as Pinocchio and MuJoCo lay them out.

Joint by joint, ours on the left of each arrow (angles in rad, quaternions of unit length):

| joint | Pinocchio | MuJoCo |
|---|---|---|
| revolute, prismatic, helical, universal | the same | the same |
| continuous | angle -> cosine, sine | the same |
| spherical | (w, x, y, z) -> (x, y, z, w) | the same |
| planar | (x, y, angle) -> (x, y, cosine, sine); rates -> along the link's axes | |
| free | (w, x, y, z, position) -> (position, x, y, z, w) | -> (position, w, x, y, z) |
| | rates (angular, linear) -> (linear, angular) | -> (linear in base axes, angular) |

The rates of a joint there are ``T`` times ours, and every ``T`` is orthogonal: torques, and
columns of Jacobians, change as rates do. Accelerations there are ``T`` times ours and, where ``T``
turns with the joint, its change times our rates. A joint that follows another has no numbers of
its own here; there it has, the rate ``k`` times its driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.tree import Link, Tree

Array = NDArray[Any]
Change = Callable[[Array], Array]
Turn = Callable[[Array, Array, bool], Array]  # (rates, the joint's q here, there -> here)

W_LAST, W_FIRST = [1, 2, 3, 0], [3, 0, 1, 2]


@dataclass(frozen=True)
class Joint:
    """How a library writes the joints of one kind."""

    nq: int
    to_q: Change
    from_q: Change
    turn: Turn | None = None  # rates; none: the same
    # the change of T in a motion times our rates, (rates, the joint's q here) -> (...); where it
    # is not zero, rates cannot be changed without the configuration either
    drift: Callable[[Array, Array], Array] | None = None


def _picked(there: Sequence[int], here: Sequence[int], *turn: Any) -> Joint:
    """A joint whose numbers are ours in another order."""
    return Joint(len(there), lambda q: q[..., there], lambda q: q[..., here], *turn)


def _to_circle(q: Array) -> Array:
    return np.concatenate([q[..., :-1], np.cos(q[..., -1:]), np.sin(q[..., -1:])], -1)


def _from_circle(q: Array) -> Array:
    return np.concatenate([q[..., :-2], np.arctan2(q[..., -1:], q[..., -2:-1])], -1)


def _swapped(v: Array, _q: Array, _back: bool) -> Array:
    return np.concatenate([v[..., 3:], v[..., :3]], -1)


def _turned_plane(v: Array, q: Array, back: bool) -> Array:
    """Velocity along the joint's axes -> along the link's, which have turned by the angle."""
    c, s = np.cos(q[..., 2]), np.sin(q[..., 2]) * (-1 if back else 1)
    x, y, turning = v[..., 0], v[..., 1], v[..., 2]
    return np.stack(np.broadcast_arrays(c * x + s * y, c * y - s * x, turning), -1)


def _plane_drift(v: Array, q: Array) -> Array:
    """``w (v_y, -v_x)`` along the link's axes: velocities turn back as these turn."""
    x, y, turning = np.moveaxis(_turned_plane(v, q, False), -1, 0)
    return np.stack([turning * y, -turning * x, 0 * turning], -1)


def _linear_in_base(v: Array, q: Array, back: bool) -> Array:
    """(Angular, linear) in body axes -> (linear in base axes, angular in body axes), or back."""
    linear, angular = (v[..., :3], v[..., 3:]) if back else (v[..., 3:], v[..., :3])
    turned = _rotated(q[..., :4], linear, back)
    pair = (angular, turned) if back else (turned, angular)
    return np.concatenate(np.broadcast_arrays(*pair), -1)


def _base_drift(v: Array, q: Array) -> Array:
    """``R (w x v)``: how the velocity in base axes changes while that in body axes does not."""
    turned = _rotated(q[..., :4], np.cross(v[..., :3], v[..., 3:]), False)
    return np.concatenate([turned, 0 * turned], -1)


def _rotated(quaternion: Array, x: Array, back: bool) -> Array:
    """A vector turned by a unit quaternion (w, x, y, z), or by its inverse."""
    w, axis = quaternion[..., :1], quaternion[..., 1:] * (-1 if back else 1)
    across = 2 * np.cross(axis, x)
    return np.asarray(x + w * across + np.cross(axis, across))


PINOCCHIO = {
    "continuous": Joint(2, _to_circle, _from_circle),
    "planar": Joint(4, _to_circle, _from_circle, _turned_plane, _plane_drift),
    "spherical": _picked(W_LAST, W_FIRST),
    "free": _picked([4, 5, 6, 1, 2, 3, 0], [6, 3, 4, 5, 0, 1, 2], _swapped),
}
MUJOCO = {
    "free": _picked([4, 5, 6, 0, 1, 2, 3], [3, 4, 5, 6, 0, 1, 2], _linear_in_base, _base_drift),
}
LIBRARIES: dict[str, tuple[str, Mapping[str, Joint]]] = {
    "pinocchio": ("Pinocchio", PINOCCHIO), "mujoco": ("MuJoCo", MUJOCO),
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A joint of the robot, and where its numbers begin there."""

    link: Link
    joint: Joint
    q: int
    v: int

    @property
    def ours_q(self) -> slice:
        """Its numbers in a configuration here."""
        return slice(self.link.q_index, self.link.q_index + self.link.joint.nq)

    @property
    def ours_v(self) -> slice:
        """Its numbers among rates here."""
        return slice(self.link.v_index, self.link.v_index + self.link.joint.nv)

    @property
    def theirs_q(self) -> slice:
        """Its numbers in a configuration there."""
        return slice(self.q, self.q + self.joint.nq)

    @property
    def theirs_v(self) -> slice:
        """Its numbers among rates there."""
        return slice(self.v, self.v + self.link.joint.nv)


class Layout:
    """One library's layout of a robot."""

    def __init__(self, tree: Tree, library: str, order: Sequence[str]) -> None:
        self.name, kinds = LIBRARIES[library]
        self.tree = tree
        links = {link.joint_name: link for link in tree.links}
        self.places = list[Place]()
        self.nq = self.nv = 0
        for joint in order:
            link = links[joint]
            self.places.append(Place(link, _joint(kinds, link), self.nq, self.nv))
            self.nq, self.nv = self.nq + self.places[-1].joint.nq, self.nv + link.joint.nv

    @cached_property
    def reads_q(self) -> str:
        """A joint whose rates cannot be changed without the configuration, if there is one."""
        return next((x.link.joint_name for x in self.places if x.joint.drift), "")

    @cached_property
    def follower(self) -> str:
        """A joint that follows another here, if there is one."""
        return next((x.link.joint_name for x in self.places if x.link.follows), "")

    def to_q(self, q: Array) -> Array:
        """Our configuration as theirs."""
        out = np.empty((*q.shape[:-1], self.nq), q.dtype)
        for at in self.places:
            own = q[..., at.ours_q]
            if at.link.follows:
                own = at.link.follows.multiplier * own + at.link.follows.offset
            out[..., at.theirs_q] = at.joint.to_q(own)
        return out

    def from_q(self, q: Array) -> Array:
        """Their configuration as ours; joints that follow others are not read."""
        out = np.empty((*q.shape[:-1], self.tree.nq), q.dtype)
        for at in self.places:
            if at.link.follows is None:
                out[..., at.ours_q] = at.joint.from_q(q[..., at.theirs_q])
        return out

    def to_v(self, v: Array, q: Array | None) -> Array:
        """Our rates as theirs; with rotations here and there, so are columns and torques."""
        out = np.empty((*_batch(v, q), self.nv), v.dtype)
        for at in self.places:
            own = v[..., at.ours_v]
            if at.link.follows:
                own = at.link.follows.multiplier * own
            out[..., at.theirs_v] = _turned(at, own, q, back=False)
        return out

    def from_v(self, v: Array, q: Array | None) -> Array:
        """Their rates as ours; joints that follow others are not read."""
        out = np.empty((*_batch(v, q), self.tree.nv), v.dtype)
        for at in self.places:
            if at.link.follows is None:
                out[..., at.ours_v] = _turned(at, v[..., at.theirs_v], q, back=True)
        return out

    def to_a(self, a: Array, v: Array | None, q: Array | None) -> Array:
        """Our accelerations as theirs; ``v`` are our rates."""
        return np.asarray(self.to_v(a, q) + self._drift(v, q))

    def from_a(self, a: Array, v: Array | None, q: Array | None) -> Array:
        """Their accelerations as ours; ``v`` are our rates."""
        return self.from_v(a - self._drift(v, q), q)

    def _drift(self, v: Array | None, q: Array | None) -> Any:
        if v is None or q is None:  # asked for before, where it is not zero
            return 0.0
        out = np.zeros((*_batch(v, q), self.nv), v.dtype)
        for at in self.places:
            if at.joint.drift:
                out[..., at.theirs_v] = at.joint.drift(v[..., at.ours_v], q[..., at.ours_q])
        return out

    def to_forces(self, tau: Array, q: Array | None) -> Array:
        """Our torques as theirs; joints that follow others get none, their drivers all."""
        out = self.to_v(tau, q)
        for at in self.places:
            if at.link.follows:
                out[..., at.theirs_v] = 0.0
        return out

    def from_forces(self, tau: Array, q: Array | None) -> Array:
        """Their torques, or columns per joint, as ours: those of followers go to their drivers."""
        out = self.from_v(tau, q)
        for at in self.places:
            if at.link.follows:
                out[..., at.ours_v] += at.link.follows.multiplier * tau[..., at.theirs_v]
        return out


def _joint(kinds: Mapping[str, Joint], link: Link) -> Joint:
    """How a library writes a joint; a follower is one that its driver turns."""
    same = _picked(range(link.joint.nq), range(link.joint.nq))
    return kinds.get(link.kind, same)


def _batch(v: Array, q: Array | None) -> tuple[int, ...]:
    return v.shape[:-1] if q is None else np.broadcast_shapes(v.shape[:-1], q.shape[:-1])


def _turned(at: Place, own: Array, q: Array | None, *, back: bool) -> Array:
    if at.joint.turn is None:
        return own
    if at.joint.drift is None:
        return at.joint.turn(own, own, back)
    assert q is not None  # asked for before
    return at.joint.turn(own, q[..., at.ours_q], back)
