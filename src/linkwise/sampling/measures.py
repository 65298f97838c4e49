"""The numbers that a study is about: a function of each state, or the end of each motion."""

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


def measured(spec: Spec, robot: Robot, state: Mapping[str, Array]) -> Array:
    """The numbers (count, m) of some states; rows without an answer are NaN."""
    constants = parameters(robot, state)
    if spec.measure == ROLLOUT:
        return _ends(spec, robot, state, constants)
    values = [state[name] for name in arguments(spec, robot)]
    call = getattr(robot, "forward_kinematics" if spec.measure == WORKSPACE else spec.measure)
    options: dict[str, Any] = {"threads": 1, **constants}
    if spec.measure == WORKSPACE or _takes_frame(spec, robot):
        options["frame"] = frame_of(spec, robot)
    found = call(*values, **options)
    if spec.measure == WORKSPACE:
        found = found[..., :3, 3]
    return np.asarray(found).reshape(len(values[0]), -1)


def labels(spec: Spec, robot: Robot, count: int) -> list[str]:
    """A name for each number that is measured."""
    if spec.measure == WORKSPACE:
        return ["x", "y", "z"]
    if count == robot.nv:
        return names_of(robot, "v")
    return [str(k) for k in range(count)]


def _takes_frame(spec: Spec, robot: Robot) -> bool:
    return next(iter(functions_of(robot.tree)[spec.measure].values())).takes_frame


def parameters(robot: Robot, state: Mapping[str, Array]) -> dict[str, Array]:
    """The robot's parameters, from what is drawn of a state."""
    found: dict[str, Array] = {}
    if "payload mass" in state:
        found["payload"] = point_masses(state["payload mass"], state["payload com"])
    if "inertia" in state:
        own = robot.inertial_parameters.astype(state["inertia"].dtype)
        found["inertia"] = state["inertia"][:, :, None] * own
    if "gravity" in state:
        found["gravity"] = state["gravity"] + robot.gravity.astype(state["gravity"].dtype)
    if "rotor" in state:
        found["rotor"] = state["rotor"]
    if "viscous" in state or "coulomb" in state:
        found["friction"] = _friction(robot, state)
    return found


def point_masses(mass: Array, com: Array) -> Array:
    """Masses (count, 1) at places (count, 3): mass, first and second moments (count, 10)."""
    found = np.empty((len(mass), 10), mass.dtype)
    m, (x, y, z) = mass[:, 0], com.T
    hx, hy, hz = m * x, m * y, m * z
    xx, yy, zz = hx * x, hy * y, hz * z
    each = (m, hx, hy, hz, yy + zz, -hx * y, xx + zz, -hx * z, -hy * z, xx + yy)
    for k, column in enumerate(each):
        found[:, k] = column
    return found


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
                       dt=how["dt"], every=None, threads=1, parameters=constants)  # fmt: skip
    return np.asarray(robot.parametric().difference(run.q[:, -1], target))


def _law(name: str, robot: Robot, kp: Array, kd: Array, target: Array) -> control.Law:
    kp, kd = (np.repeat(x, robot.nv, axis=1) for x in (kp, kd))
    if name == "computed_torque":
        return control.computed_torque(robot, kp, kd, target)
    if name == "none":
        return control.zero(robot)
    law = control.pd(robot, kp, kd, target)
    return law + control.gravity_compensation(robot) if name == "pd+gravity" else law
