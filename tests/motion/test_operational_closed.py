"""Operational-space control of robots with closed loops: the frame does what it is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import OperationalSpace

EPS = np.finfo(float).eps
IN_PLANE = [0, 0, 0, 1, 1, 0]


def five_bar(passive: tuple[str, ...]) -> tuple[lw.Robot, Any]:
    """Two arms of two links in a plane that share a pin: two degrees of freedom."""
    b = lw.Builder("five_bar", gravity=(0.0, -9.81, 0.0))
    for side, x in (("left", -0.3), ("right", 0.3)):
        b.link(f"{side}1", mass=1.0, com=(0.2, 0, 0), inertia=(0.001, 0.02, 0.02))
        b.link(f"{side}2", mass=0.7, com=(0.25, 0, 0), inertia=(0.001, 0.02, 0.02))
        b.joint(f"{side}_a", "revolute", parent="base", child=f"{side}1", xyz=(x, 0, 0),
                axis=(0, 0, 1))  # fmt: skip
        b.joint(f"{side}_b", "revolute", parent=f"{side}1", child=f"{side}2", xyz=(0.4, 0, 0),
                axis=(0, 0, 1))  # fmt: skip
        b.frame(f"{side}_pin", f"{side}2", xyz=(0.5, 0, 0))
    pin = lw.Loop("left_pin", "right_pin", directions=IN_PLANE)
    robot = b.build().close_loops([pin], passive=passive)
    return robot, robot.project(np.array([2.0, -1.0, 1.2, 1.0]))


def off(robot: lw.Robot, law: OperationalSpace, q: Any, qd: Any, frame: str, rows: Any,
        **given: Any) -> float:  # fmt: skip
    """How far the rows' acceleration is from the wanted one, beside the latter."""
    asked = np.random.default_rng(1).normal(size=6)
    target = robot.forward_kinematics(q, frame)
    target[:3, 3] += [0.02, -0.01, 0.0]
    tau, report, bits = law(q, qd, target, None, asked, report=True, status=True, **given)
    assert bits == 0
    qdd = robot.forward_dynamics(q, qd, tau, **given)
    J = robot.jacobian(q, frame)
    u = asked + 100.0 * report.error - 20.0 * J @ qd
    found = J @ qdd + robot.jacobian_dot_qd(q, qd, frame)
    return float(np.abs(found - u)[rows].max() / np.abs(u[rows]).max())


@pytest.mark.parametrize("passive", [(), ("left_b", "right_b")])
def test_a_pin_of_a_linkage_accelerates_as_wanted(passive: tuple[str, ...]) -> None:
    """v̇ = u to rounding, by motors at all joints or at the base alone, under a known push."""
    robot, q = five_bar(passive)
    q, qd = robot.project(q, np.array([0.5, -0.3, 0.2, 0.4]))
    law = OperationalSpace(robot, "left_pin", rows=IN_PLANE)
    push = {"right2": [0.0, 0.0, 0.3, 2.0, -5.0, 0.0]}
    for given in ({}, {"f_ext": push}):
        assert off(robot, law, q, qd, "left_pin", [3, 4], **given) < 1e3 * EPS
    tau = law(q, qd, robot.forward_kinematics(q, "left_pin"))
    assert not passive or (tau[1] == 0.0 and tau[3] == 0.0)


def test_motors_share_by_their_inertia() -> None:
    """Two motors and one row: torques of least Σ Γ²/M_jj, each in proportion to M_jj N_j, where N
    is how the row responds to them.
    """
    robot, q = five_bar(("left_b", "right_b"))
    q, qd = robot.project(q, np.array([0.5, -0.3, 0.2, 0.4]))
    tau = OperationalSpace(robot, "left_pin", rows=np.eye(6)[[3]])(
        q, qd, robot.forward_kinematics(q, "left_pin"), None, [0, 0, 0, 5.0, 0, 0]
    )
    moved = robot.forward_dynamics(q, qd, np.vstack([np.zeros(4), np.eye(4)]))
    N = (robot.jacobian(q, "left_pin") @ (moved[1:] - moved[0]).T)[3]
    share = tau[[0, 2]] / (np.diag(robot.mass_matrix(q)) * N)[[0, 2]]
    assert abs(share[0] - share[1]) < 1e-11 * abs(share[0])
    assert tau[1] == 0.0 and tau[3] == 0.0 and np.abs(N[[0, 2]]).min() > 1e-3


def test_an_arm_that_is_held_moves_as_it_can() -> None:
    """In rows that the loop leaves free, beside a posture; the row it holds is singular."""
    arm = lw.load("iiwa14")
    q = 0.3 + 0.5 * arm.random_q(np.random.default_rng(0))
    pose = arm.forward_kinematics(q, "link7")
    held = arm.close_loops([lw.Loop("link7", directions=[0, 0, 0, 0, 0, 1], pose=pose)])
    q, qd = held.project(q, np.random.default_rng(1).normal(size=7))
    law = OperationalSpace(held, "link7", rows=[1, 1, 1, 1, 1, 0], posture=arm.neutral())
    cond = np.linalg.cond(arm.operational_inertia_inverse(q, "link7"))
    assert off(held, law, q, qd, "link7", [0, 1, 2, 3, 4]) < 100 * EPS * cond
    push = {"link3": [3.0, -1.0, 2.0, 20.0, 5.0, -10.0]}  # of which the posture knows too
    qdd = held.forward_dynamics(q, qd, law(q, qd, pose))
    pushed = held.forward_dynamics(q, qd, law(q, qd, pose, f_ext=push), f_ext=push)
    assert np.abs(pushed - qdd).max() < 1e3 * EPS * cond * np.abs(qdd).max()
    tau, bits = OperationalSpace(held, "link7")(q, qd, pose, status=True)
    assert bits == lw.Status.SINGULAR and np.isnan(tau).all()


def test_a_linkage_goes_where_it_is_sent() -> None:
    """In a simulation, by its two motors."""
    robot, q = five_bar(("left_b", "right_b"))
    target = robot.forward_kinematics(q, "left_pin")
    target[0, 3] += 0.05
    law = OperationalSpace(robot, "left_pin", rows=IN_PLANE).law(target)
    run = lw.simulate(robot, q, controller=law, duration=1.2, dt=2e-3)
    there = robot.forward_kinematics(run.q[-1], "right_pin")[:3, 3]
    np.testing.assert_allclose(there, target[:3, 3], atol=1e-5)
