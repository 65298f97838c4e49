"""The bundled robots in the first simulation that anybody writes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw


@pytest.mark.parametrize("name", ["iiwa14", "puma560"])
def test_the_first_pd_controller_is_stable_at_one_millisecond(name: str) -> None:
    """Held torques need kd dt < 2 M_ii: a light wrist without its rotor diverges."""
    robot = lw.load(name)
    law = lw.control.pd(robot, 100.0, 20.0)
    motion = lw.simulate(robot, [0.1] * robot.nq, controller=law, duration=4.0, every=100)
    assert motion.status == 0 and np.isfinite(motion.q).all()
    assert (np.abs(motion.qd) < robot.velocity_limits).all()
    assert np.abs(motion.qd[-1]).max() < 0.05  # at rest where gravity balances the gains
    np.testing.assert_allclose(-100.0 * motion.q[-1], robot.gravity_torque(motion.q[-1]), atol=1.0)


def test_without_rotors_it_is_not() -> None:
    """What the rotors are for: the same arm, and the same controller, without them."""
    robot = lw.load("iiwa14")
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, armature=0.0)
    law = lw.control.pd(robot, 100.0, 20.0, target=[0.0] * 7)
    with pytest.warns(lw.SimulationWarning):
        motion = lw.simulate(robot, [0.1] * 7, controller=law, duration=0.5)
    assert motion.status


def test_limits_of_the_iiwa_are_those_of_its_data_sheet() -> None:
    robot = lw.load("iiwa14")
    lower, upper = np.degrees(robot.position_limits)
    assert upper == pytest.approx([170, 120, 170, 120, 170, 120, 175]) == -lower
    assert np.degrees(robot.velocity_limits) == pytest.approx([85, 85, 100, 75, 130, 135, 135])
    assert robot.effort_limits.tolist() == [320, 320, 176, 176, 110, 40, 40]
    holds = np.abs(robot.gravity_torque(robot.random_q(seed=0, size=1000))).max(0)
    assert (holds < robot.effort_limits).all()  # it can carry itself


def test_a_bundled_robot_flies_with_the_mass_of_its_base() -> None:
    robot = lw.load("iiwa14", base="free")
    q = robot.random_q(seed=0)
    fall = robot.forward_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv))
    assert math.isclose(np.linalg.norm(fall[3:6]), 9.81, rel_tol=1e-12)  # all of it falls
    assert np.abs(np.delete(fall, [3, 4, 5])).max() < 1e-12
