"""Limits of joints: soft stops that push back, or events that end a motion.

A soft stop is a spring and a damper that act beyond a limit, by x > 0, and never pull:

    tau = -max(0, k x + d v)

Taken implicitly over a step h, as the integrator for stiff systems does, x becomes x + h v', the
stop resists the new rates v' by d + h k, and it acts where x is positive before the step, or would
be after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.robot import Robot
from linkwise.spatial import Scalar, Vector, select

Array = NDArray[Any]
NO_STEP = 0.0  # of an explicit method
STOP_RATE = 100.0  # rad/s: how fast the usual stops bring a joint back
PLACES = ("lower", "upper")
NUMBERS = ("stiffness", "damping")


@dataclass(frozen=True)
class SoftStop:
    """Springs and dampers at the limits of joints, one number or one per degree of freedom (nv).

    Unless given, they suit each joint: critically damped at 100 rad/s, with the inertia that the
    joint has at the neutral configuration.
    """

    stiffness: ArrayLike | None = None
    damping: ArrayLike | None = None


class Limited(NamedTuple):
    """A degree of freedom with limits: where it is in q and in v."""

    q: int
    v: int


class Limits(NamedTuple):
    """What happens at the limits of a robot's joints, and its numbers by name."""

    joints: tuple[Limited, ...]
    event: bool
    stop: bool
    numbers: dict[str, Array]
    ignore: bool = False  # nothing is said of limits that are exceeded

    def beyond(self, q: Array) -> Array:
        """How far each joint is beyond its nearer limit (rows, joints); negative inside."""
        own = q[:, [joint.q for joint in self.joints]]
        far: Array = np.maximum(own - self.numbers["upper"], self.numbers["lower"] - own)
        return far

    def time_beyond(self, q: Array, qd: Array, which: Array) -> Array:
        """Seconds (rows) since a joint of each row met its limit, were its rate constant."""
        rows = np.arange(len(q))
        at = np.array([joint.q for joint in self.joints])[which]
        rate = qd[rows, np.array([joint.v for joint in self.joints])[which]]
        high = q[rows, at] - self.numbers["upper"][which]
        low = q[rows, at] - self.numbers["lower"][which]
        off = np.where(np.abs(high) < np.abs(low), high, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            time: Array = np.nan_to_num(off / rate, nan=0.0, posinf=0.0, neginf=0.0)
        return time

    def first_met(self, q: Array, qd: Array) -> Array:
        """The joint of each row that met its limit first."""
        rate = np.abs(qd[:, [joint.v for joint in self.joints]])
        past = np.maximum(self.beyond(q), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            first: Array = np.nan_to_num(past / rate).argmax(-1)
        return first


NO_LIMITS = Limits((), False, False, {})
IGNORED = NO_LIMITS._replace(ignore=True)


def read_limits(robot: Robot, limits: Any) -> Limits:
    """The argument ``limits`` of a simulation."""
    if limits is None:
        return NO_LIMITS
    if isinstance(limits, str) and limits == "ignore":
        return IGNORED
    stop = SoftStop() if isinstance(limits, str) and limits == "stop" else limits
    if not isinstance(stop, SoftStop) and not (isinstance(limits, str) and limits == "event"):
        raise ValueError(
            f"simulate: limits is {limits!r}; expected 'stop', 'event', 'ignore', a SoftStop, or "
            "None for a warning if limits are exceeded"
        )
    own = [link for link in robot.tree.links if link.follows is None and link.joint.nv == 1]
    lower, upper = _places(robot)
    found = [x for x in own if np.isfinite(lower[x.q_index]) or np.isfinite(upper[x.q_index])]
    if not found:
        made = "robot.with_joint(name, limits=(lower, upper))"
        if not robot._description.links:  # made from a tree, which cannot be edited
            made = "a robot with limits that was loaded, or made by linkwise.Builder"
        raise ValueError(
            f"simulate: limits is {limits!r}, and no joint of robot {robot.name!r} has limits; "
            f"expected limits=None, or {made}"
        )
    joints = tuple(Limited(link.q_index, link.v_index) for link in found)
    places = [joint.q for joint in joints]
    numbers = {"lower": lower[places], "upper": upper[places]}
    if isinstance(stop, SoftStop):
        numbers |= _stop_numbers(robot, stop, [joint.v for joint in joints])
        return Limits(joints, False, True, numbers)
    return Limits(joints, True, False, numbers)


def limited_positions(robot: Robot) -> tuple[Array, Array]:
    """Lower and upper limits of q, those of followers too if they can be met."""
    lower, upper = robot.position_limits
    with suppress(ValueError):
        return _places(robot) if robot.tree.coupled else (lower, upper)
    return lower, upper


def _places(robot: Robot) -> tuple[Array, Array]:
    """Lower and upper limits of q, those of joints that follow another included.

    A follower ``m q + b`` meets its limits where its driver is at ``(limit - b) / m``.
    """
    lower, upper = robot.position_limits.copy()
    for link in robot.tree.links:
        if link.follows is None or link.follows.multiplier == 0.0:
            continue
        m, b, k = link.follows.multiplier, link.follows.offset, link.q_index
        own = np.array([np.ravel(x)[0] for x in (link.limits.lower, link.limits.upper)])
        low, high = sorted((own - b) / m)
        lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
        if lower[k] > upper[k]:
            driver = robot.tree.links[link.follows.link].joint_name
            raise ValueError(
                f"simulate: joint {link.joint_name!r} follows {driver!r}, and no position is "
                "within the limits of both; expected limits that overlap, or limits=None"
            )
    return lower, upper


def _stop_numbers(robot: Robot, stop: SoftStop, at: list[int]) -> dict[str, Array]:
    """Stiffness and damping of each limited degree of freedom."""
    inertia = 1.0 / np.diag(robot.mass_matrix_inverse(robot.neutral()))[at]
    k = _numbers(robot, "stiffness", stop.stiffness, at)
    k = inertia * STOP_RATE**2 if k is None else k
    d = _numbers(robot, "damping", stop.damping, at)
    d = 2.0 * np.sqrt(k * inertia) if d is None else d
    return {"stiffness": k, "damping": d}


def _numbers(robot: Robot, name: str, value: Any, at: list[int]) -> Array | None:
    if value is None:
        return None
    try:
        array = np.broadcast_to(np.asarray(value, np.float64), (robot.nv,))
        if not (np.isfinite(array).all() and (array >= 0).all()):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"SoftStop: {name} is {value!r}; expected a number that is not negative, or one for "
            f"each of {robot.nv} degrees of freedom"
        ) from None
    return array[at]


def stop_forces(
    joints: Sequence[Limited], given: Sequence[Vector], q: Vector, v: Vector, h: Scalar = NO_STEP
) -> tuple[list[Scalar], list[Scalar]]:
    """Torques of all stops by degree of freedom, and what they resist per unit of the new rates."""
    lower, upper, stiffness, damping = given
    torques: list[Scalar] = [0.0] * len(v)
    slopes: list[Scalar] = [0.0] * len(v)
    for at, low, high, k, d in zip(joints, lower, upper, stiffness, damping, strict=True):
        rate, slope = v[at.v], d + h * k
        for beyond, outward in ((q[at.q] - high, rate), (low - q[at.q], -rate)):
            push = k * beyond + slope * outward
            if h is NO_STEP:
                touched = select(beyond, select(push, 1.0, 0.0), 0.0)
            else:
                touched = select(beyond, 1.0, select(beyond + h * outward, 1.0, 0.0))
            push = select(touched, push, 0.0)
            torques[at.v] = torques[at.v] + (-push if outward is rate else push)
            slopes[at.v] = slopes[at.v] + touched * slope
    return torques, slopes


def outside(joints: Sequence[Limited], lower: Vector, upper: Vector, q: Vector) -> Scalar:
    """Positive where a joint is beyond a limit: by how much the farthest is."""
    most: Scalar = -1.0
    for at, low, high in zip(joints, lower, upper, strict=True):
        for beyond in (q[at.q] - high, low - q[at.q]):
            most = select(beyond, beyond, most)
    return most
