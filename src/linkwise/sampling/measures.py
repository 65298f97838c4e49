"""The numbers that a study is about: a function of each state, or the end of each motion.

Large arrays are made once for all pieces: workers of Dask give memory back to the system at once
(``MALLOC_TRIM_THRESHOLD_``), and to get it again takes as long as the kernel itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise import control
from linkwise.algorithms import functions_of
from linkwise.motion.simulate import simulate
from linkwise.motion.trajectory import names_of
from linkwise.robot import Robot
from linkwise.sampling.spec import ROLLOUT, WORKSPACE, Spec, arguments, frame_of

Array = NDArray[Any]
TILE = 2048  # states whose payloads are made at once, in small arrays


class Measure:
    """What a study measures, with arrays that are used again for every piece."""

    def __init__(self, spec: Spec, robot: Robot) -> None:
        self.spec, self.robot = spec, robot
        self._room: dict[str, Array] = {}
        self._names = tuple(arguments(spec, robot))
        place = spec.measure == WORKSPACE
        self._call = None
        if spec.measure != ROLLOUT:
            self._call = getattr(robot, "forward_kinematics" if place else spec.measure)
        framed = place or (self._call is not None and _takes_frame(spec, robot))
        self._options: dict[str, Any] = {"frame": frame_of(spec, robot)} if framed else {}

    def __call__(self, state: Mapping[str, Array]) -> Array:
        """The numbers (count, m) of some states; rows without an answer are NaN.

        The array is overwritten by the next call.
        """
        constants = self.parameters(state)
        if self._call is None:
            return _ends(self.spec, self.robot, state, constants)
        found = self.computed(state, constants)
        if self.spec.measure == WORKSPACE:
            found = found[..., :3, 3]
        return np.asarray(found).reshape(len(state["q"]), -1)

    def computed(self, state: Mapping[str, Array], constants: Mapping[str, Array]) -> Array:
        """What the robot's function returns."""
        assert self._call is not None
        values, n = [state[name] for name in self._names], len(state["q"])
        own = self._room.get("result")
        options: dict[str, Any] = {"threads": 1, **self._options, **constants}
        if own is not None and n <= len(own):
            return np.asarray(self._call(*values, out=own[:n], **options))
        self._room["result"] = np.asarray(self._call(*values, **options))
        return self._room["result"]

    def parameters(self, state: Mapping[str, Array]) -> dict[str, Array]:
        """The robot's parameters, from what is drawn of a state."""
        found: dict[str, Array] = {}
        if "payload mass" in state:
            mass, com = state["payload mass"], state["payload com"]
            room = self._rows("payload", len(mass), 10, mass.dtype)
            found["payload"] = point_masses(mass, com, room)
        if "inertia" in state:
            factors, own = state["inertia"], self.robot.inertial_parameters
            room = self._rows("inertia", len(factors), own.size, factors.dtype)
            found["inertia"] = room.reshape(-1, *own.shape)
            np.multiply(factors[:, :, None], own.astype(room.dtype), out=found["inertia"])
        if "gravity" in state:
            own = self.robot.gravity.astype(state["gravity"].dtype)
            found["gravity"] = state["gravity"] + own
        if "rotor" in state:
            found["rotor"] = state["rotor"]
        if "viscous" in state or "coulomb" in state:
            found["friction"] = _friction(self.robot, state)
        return found

    def _rows(self, name: str, count: int, size: int, dtype: Any) -> Array:
        own = self._room.get(name)
        if own is None or len(own) < count:
            own = self._room[name] = np.empty((count, size), dtype)
        return own[:count]


def labels(spec: Spec, robot: Robot, count: int) -> list[str]:
    """A name for each number that is measured."""
    if spec.measure == WORKSPACE:
        return ["x", "y", "z"]
    if count == robot.nv:
        return names_of(robot, "v")
    return [str(k) for k in range(count)]


def _takes_frame(spec: Spec, robot: Robot) -> bool:
    return next(iter(functions_of(robot.tree)[spec.measure].values())).takes_frame


def point_masses(mass: Array, com: Array, out: Array) -> Array:
    """Masses (count, 1) at places (count, 3): mass, first and second moments (count, 10)."""
    for a in range(0, len(mass), TILE):
        found, m, c = out[a : a + TILE].T, mass[a : a + TILE, 0], com[a : a + TILE].T
        h = m * c
        xx, yy, zz = h * c
        found[0], found[1:4] = m, h
        found[4], found[6], found[9] = yy + zz, xx + zz, xx + yy
        np.negative(h[0] * c[1], out=found[5])
        np.negative(h[0] * c[2], out=found[7])
        np.negative(h[1] * c[2], out=found[8])
    return out


def _friction(robot: Robot, state: Mapping[str, Array]) -> Array:
    """Viscous and Coulomb friction (count, nv, 2); what is not drawn is the robot's own."""
    given = [state.get("viscous"), state.get("coulomb")]
    usual = [np.asarray(robot.damping), np.asarray(robot.friction)]
    like = next(x for x in given if x is not None)
    both = [np.broadcast_to(u, like.shape) if x is None else x
            for x, u in zip(given, usual, strict=True)]  # fmt: skip
    return np.stack(both, -1).astype(like.dtype)


def _ends(
    spec: Spec, robot: Robot, state: Mapping[str, Array], constants: Mapping[str, Array]
) -> Array:
    """How far from the target (count, nv) joints end under a law that knows no parameters."""
    how, q, target = spec.rollout, state["q"], state["target"]
    law = _law(how["law"], robot, state["kp"], state["kd"], target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # motions that fail are counted
        run = simulate(robot, q, state["qd"], controller=law, duration=how["duration"],
                       dt=how["dt"], every=None, threads=1, parameters=constants,
                       limits="ignore")  # fmt: skip
    return np.asarray(robot.parametric().difference(run.final.q, target))


def _law(name: str, robot: Robot, kp: Array, kd: Array, target: Array) -> control.Law:
    kp, kd = (np.repeat(x, robot.nv, axis=1) for x in (kp, kd))
    if name == "computed_torque":
        return control.computed_torque(robot, kp, kd, target)
    if name == "none":
        return control.zero(robot)
    law = control.pd(robot, kp, kd, target)
    return law + control.gravity_compensation(robot) if name == "pd+gravity" else law
