"""What is to be found: numbers of bodies, rotors and friction, and the equations they are in.

    tau = Y(q, qd, qdd) π + rotor qdd + viscous qd + dry sign(qd)

Torques of what is known go to the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.identification.base import (
    enough,
    independent,
    labels,
    random_states,
    refuse_loops,
)
from linkwise.model.parameters import TEN
from linkwise.model.values import unknown
from linkwise.robot import Robot

Array = NDArray[np.float64]
LARGEST = 1e12  # of a measurement: of larger ones, squares of sums lose all others, or overflow
NAMED = 6  # names in a message
LOSSES = ("rotor", "viscous", "dry")  # names of what a joint adds


class Motion(NamedTuple):
    """States, one per row."""

    q: Array
    qd: Array
    qdd: Array


class Unknowns:
    """Unknown numbers of a robot: ten of each body asked for, then those of joints."""

    def __init__(
        self, robot: Robot, bodies: Sequence[str] | None, rotor: bool, friction: bool
    ) -> None:
        refuse_loops("identify", robot)
        self.robot, self.bodies = robot, _asked(robot, bodies)
        # joints of one degree of freedom that follow no other
        own = [x for x in robot.tree.links if x.follows is None and x.joint.nv == 1]
        self.joints = tuple(x.joint_name for x in own)
        self.dofs = [x.v_index for x in own]
        self.kinds = [k for k, use in enumerate((rotor, friction, friction)) if use]
        self._usual = (robot.armature, robot.damping, robot.friction)
        self._columns = np.array([TEN * i + k for i in self.bodies for k in range(TEN)], int)
        if not self.bodies and not self.kinds:
            raise ValueError("identify: bodies names none, and neither rotor nor friction is asked "
                             "for; expected something unknown")  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """Of each number."""
        bodies = labels([self.robot.body_names[i] for i in self.bodies])
        more = [f"{LOSSES[k]}[{joint}]" for k in self.kinds for joint in self.joints]
        return (*bodies, *more)

    @property
    def columns_of_joints(self) -> tuple[str, ...]:
        """Name of each degree of freedom (nv)."""
        return tuple(
            link.joint_name if link.joint.nv == 1 else f"{link.joint_name}[{k}]"
            for link in self.robot.tree.links if link.follows is None
            for k in range(link.joint.nv)
        )  # fmt: skip

    @property
    def start(self) -> Array:
        """What the robot has."""
        ten = self.robot.inertial_parameters[self.bodies].ravel()
        return np.concatenate([ten, *(self._usual[k][self.dofs] for k in self.kinds)])

    def matrix(self, motion: Motion) -> Array:
        """``A`` (states, nv, k): torques per unit of each number."""
        parts = [self.robot.regressor(*motion)[..., self._columns]]
        eye = np.eye(self.robot.nv)[:, self.dofs]
        parts += [self._rates(motion)[k][..., None] * eye for k in self.kinds]
        return np.concatenate(parts, axis=-1)

    def known(self, motion: Motion, A: Array) -> Array:
        """Torques (states, nv) of what is not asked for: all torques, less those of the robot's own
        values of what is.

        Joints that follow others, or have several degrees of freedom, keep rotors and friction that
        they have; friction counts where the robot has it, or will have it as it is asked for.
        """
        friction = 1 in self.kinds and not self.robot._policy.friction
        robot = self.robot.with_friction() if friction else self.robot
        return np.asarray(robot.inverse_dynamics(*motion) - A @ self.start)

    def combinations(self, seed: int = 0) -> list[int]:
        """Columns that stand for what torques depend on, at random states."""
        rng = np.random.default_rng(seed)
        motion = Motion(*random_states(self.robot, enough(self.robot), rng))
        return independent(self.matrix(motion).reshape(-1, len(self.names)))

    def of_bodies(self, x: Array, rest: Array) -> Array:
        """Numbers (n, 10) of all bodies, those that are not asked for as in ``rest``."""
        ten = rest.copy()
        ten[self.bodies] = x[: len(self._columns)].reshape(-1, TEN)
        return ten

    def of_joints(self, x: Array, kind: int) -> Array:
        """Rotor inertias (0), viscous (1) or dry friction (2) of each degree of freedom (nv)."""
        value = np.array(self._usual[kind], float)
        if kind in self.kinds:
            parts = x[len(self._columns) :].reshape(len(self.kinds), -1)
            value[self.dofs] = parts[self.kinds.index(kind)]
        return value

    @staticmethod
    def _rates(motion: Motion) -> tuple[Array, Array, Array]:
        return motion.qdd, motion.qd, np.sign(motion.qd)


def _asked(robot: Robot, bodies: Sequence[str] | None) -> list[int]:
    names = robot.body_names
    if isinstance(bodies, str):
        raise TypeError(f"identify: bodies is the text {bodies!r}; expected a list: [{bodies!r}]")
    if bodies is not None and not isinstance(bodies, Iterable):
        raise TypeError(
            f"identify: bodies is {bodies!r}; expected names of bodies, as bodies=[{names[-1]!r}]"
        )
    bodies = None if bodies is None else tuple(bodies)
    for name in bodies or ():
        if not isinstance(name, str) or name not in names:
            raise unknown("body", name, robot.name, names)
    return [i for i, name in enumerate(names) if bodies is None or name in bodies]


def measured(robot: Robot, *values: ArrayLike | None) -> tuple[Motion, Array]:
    """States and torques, one per row each."""
    sizes = (robot.nq, robot.nv, robot.nv, robot.nv)
    rows = [
        _rows(name, value, size)
        for name, size, value in zip(("q", "qd", "qdd", "tau"), sizes, values, strict=True)
    ]
    if len({len(x) for x in rows}) > 1:
        counts = ", ".join(str(len(x)) for x in rows)
        raise ValueError(f"identify: q, qd, qdd, tau have {counts} states; expected as many each")
    if not len(rows[0]):
        raise ValueError("identify: q, qd, qdd, tau have no states; expected many")
    return Motion(*rows[:3]), rows[3]


def _rows(name: str, value: ArrayLike | None, size: int) -> Array:
    """One argument as rows of numbers."""
    x = numbers(name, value, f"(..., {size})")
    if x.ndim < 2 or x.shape[-1] != size:
        raise ValueError(
            f"identify: {name} has shape {x.shape}; expected (..., {size}), many states"
        )
    return x.reshape(-1, size)


def few(names: Sequence[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def numbers(name: str, value: ArrayLike | None, shape: str) -> Array:
    """One argument as finite real numbers."""
    if value is None:
        raise TypeError(f"identify: {name} is missing; expected q, qd, qdd and tau, or a log: "
                        "identify(robot, q, tau=tau, t=t, bandwidth=10)")  # fmt: skip
    try:
        x = np.asarray(value)
        if np.iscomplexobj(x):
            raise TypeError("it is complex")
        x = x.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"identify: {name} cannot be read as numbers ({error}); expected {shape}"
        ) from None
    if not np.isfinite(x).all():
        raise ValueError(f"identify: {name} has numbers that are not finite; expected none")
    largest = float(np.abs(x).max(initial=0.0))
    if largest > LARGEST:
        raise ValueError(
            f"identify: {name} has numbers as large as {largest:.3g}; expected at most {LARGEST:g}"
        )
    return np.asarray(x)
