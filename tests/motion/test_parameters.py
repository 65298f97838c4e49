"""Simulations whose robot has parameters: the motion of the robot that has them, under a law that
does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

BODY = [2.0, 0.2, 0.0, 0.1, 0.005, 0.0, 0.025, -0.01, 0.0, 0.02]  # 2 kg at (0.1, 0, 0.05)


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("puma560", strict=False)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "implicit", "midpoint"])
def test_the_motion_is_that_of_the_robot_with_a_payload(arm: lw.Robot, integrator: str) -> None:
    loaded = arm.parametric("payload", "inertia", payload="link6")  # a payload, then inertias
    law = lw.control.computed_torque(arm, 100.0, 20.0)
    q = np.linspace(-0.5, 0.5, 12).reshape(2, 6)
    bodies = np.array([np.zeros(10), BODY])
    options: dict[str, Any] = {"duration": 0.1, "dt": 2e-3, "integrator": integrator}
    found = lw.simulate(loaded, q, controller=law, parameters={"payload": bodies}, **options)
    heavy = arm.with_payload("link6", 2.0, (0.1, 0.0, 0.05))
    for row, robot in enumerate((arm, heavy)):
        run = lw.simulate(robot, q[row], controller=lambda t, q, qd: law(t, q, qd), **options)
        assert np.allclose(run.q, found.q[row], rtol=1e-12, atol=1e-13)
        assert np.allclose(run.energy.total, found.energy.total[row], rtol=1e-11)
        assert np.allclose(run.tau[:-1], found.tau[row, :-1], rtol=1e-9, atol=1e-9)
        assert np.allclose(found.at(row).energy.total, found.energy.total[row])
    assert not np.allclose(found.q[1, -1], lw.simulate(arm, q[1], controller=law, **options).q[-1])


@pytest.mark.parametrize("integrator", ["rk4", "midpoint"])
def test_friction_gravity_and_rotors(arm: lw.Robot, integrator: str) -> None:
    names = ("friction", "gravity", "rotor")
    given = {"friction": np.tile([3.0, 0.5], (6, 1)), "gravity": [0.0, 1.0, -3.0],
             "rotor": np.full(6, 0.7)}  # fmt: skip
    options: dict[str, Any] = {"duration": 0.05, "dt": 1e-3, "integrator": integrator}
    q, qd = np.full(6, 0.3), np.linspace(0.2, 1.0, 6)
    found = lw.simulate(arm.parametric(*names), q, qd, parameters=given, **options)
    edited = arm.with_gravity(given["gravity"])
    for name in arm.joint_names:
        edited = edited.with_joint(name, armature=0.7, damping=3.0, friction=0.5)
    run = lw.simulate(edited.with_friction(), q, qd, **options)
    assert np.allclose(run.q, found.q, rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match=r"friction was a parameter .* robot.with_friction"):
        _ = found.balance


def test_a_trajectory_keeps_its_parameters(arm: lw.Robot, tmp_path: Path) -> None:
    loaded = arm.parametric("payload")
    run = lw.simulate(loaded, np.zeros(6), duration=0.01, parameters={"payload": BODY})
    run.save(tmp_path / "run.npz")
    again = lw.Trajectory.load(tmp_path / "run.npz", robot=loaded)
    assert np.array_equal(again.parameters["payload"], BODY)
    assert np.array_equal(again.energy.total, run.energy.total)


def test_messages(arm: lw.Robot) -> None:
    q, loaded = np.zeros((2, 6)), arm.parametric("payload", "friction")
    given: dict[str, Any] = {"payload": np.zeros(10)}
    with pytest.raises(
        ValueError, match=r"has 'payload', and robot 'puma560' takes none; expected"
    ):
        lw.simulate(arm, q, parameters=given)
    with pytest.raises(ValueError, match=r"has 'mass', and robot 'puma560' takes .*payload"):
        lw.simulate(loaded, q, parameters={"mass": 1.0})
    with pytest.raises(TypeError, match=r"parameters is a list; expected a mapping"):
        lw.simulate(loaded, q, parameters=[1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"payload has shape \(9,\); expected \(\.\.\., 10\)"):
        lw.simulate(loaded, q, parameters={"payload": np.zeros(9)})
    with pytest.raises(ValueError, match=r"friction has shape \(6,\); expected \(\.\.\., 6, 2\)"):
        lw.simulate(loaded, q, parameters={"friction": np.zeros(6)})
    with pytest.raises(ValueError, match=r"'implicit' takes friction from the robot"):
        lw.simulate(loaded, q, parameters=given, integrator="implicit")
