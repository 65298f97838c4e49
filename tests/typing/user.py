"""What a user may write who checks types strictly; mypy and pyright read it, nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import linkwise as lw

Array = NDArray[Any]


def arrays(robot: lw.Robot) -> None:
    q, qd = robot.neutral(), np.zeros(robot.nv)
    assert_type(q, Array)
    assert_type(robot.random_q(seed=0, size=10), Array)
    assert_type(robot.gravity_torque(q), Array)
    assert_type(robot.inverse_dynamics(q, qd, qd, method="rnea"), Array)
    assert_type(robot.forward_dynamics(q, qd, qd, f_ext={"link6": [0, 0, 0, 0, 0, 1]}), Array)
    assert_type(robot.mass_matrix(q, threads=2), Array)
    assert_type(robot.bias(q, qd), Array)
    assert_type(robot.jacobian(q, "link6", axes="body"), Array)
    assert_type(robot.forward_kinematics(q, ["link3", "link6"]), Array)
    assert_type(robot.inverse_kinematics(np.eye(4), "link6"), Array)
    assert_type(robot.operational_inertia(q, "link6", damping=1e-3), Array)
    assert_type(robot.integrate(q, qd, 1e-3), Array)
    assert_type(robot.difference(q, q), Array)
    assert_type(robot.coriolis_matrix(q, qd), Array)
    print(robot.jacobian(q, "link6").T @ np.ones(6), robot.coriolis_matrix(q, qd).shape)


def pairs(robot: lw.Robot) -> None:
    q, qd = robot.neutral(), np.zeros(robot.nv)
    tau, bits = robot.gravity_torque(q, status=True)
    assert_type(tau, Array)
    assert_type(bits, Array)
    qdd, _ = robot.forward_dynamics(q, qd, tau, status=True)
    assert_type(qdd, Array)
    energy, told = robot.kinetic_energy(q, qd, status=True)
    assert_type(energy, Array)
    assert_type(told, Array)
    reached, _ = robot.inverse_kinematics(np.eye(4), "link6", status=True)
    assert_type(reached, Array)
    twist, _ = robot.frame_velocity(q, qd, "link6", axes="body", status=True)
    assert_type(twist, Array)
    pose, _ = robot.forward_kinematics(q, "link6", status=True)
    print(pose.shape, lw.Status(int(bits)))


def derivatives(robot: lw.Robot) -> None:
    q, qd = robot.neutral(), np.zeros(robot.nv)
    by_q, by_qd, M = robot.inverse_dynamics_derivatives(q, qd, qd)
    assert_type(by_q, Array)
    qdd, *_, Minv = robot.forward_dynamics_derivatives(q, qd, qd, value=True)
    assert_type(qdd, Array)
    (_, _, _), bits = robot.forward_dynamics_derivatives(q, qd, qd, method="forward", status=True)
    assert_type(bits, Array)
    print(by_qd @ M, Minv)


def robots() -> None:
    arm = lw.load("puma560", gravity=(0.0, 0.0, -1.62), base="fixed")
    assert_type(arm, lw.Robot)
    assert_type(arm.with_payload("link6", 2.0), lw.Robot)
    assert_type(arm.joint_names, tuple[str, ...])
    assert_type(arm.joint("joint1").q_slice, slice)
    built = lw.Builder("pendulum").link("rod", mass=1.0)
    built.joint("pivot", "revolute", parent="base", child="rod", axis=(0.0, 1.0, 0.0))
    assert_type(built.build(), lw.Robot)
    assert_type(lw.chain(100), lw.Robot)


def motions(robot: lw.Robot) -> None:
    law = lw.control.pd(robot, 100.0, 20.0, robot.neutral())
    motion = lw.simulate(robot, robot.neutral(), controller=law, duration=0.1)
    assert_type(motion, lw.Trajectory)
    print(motion.q[-1], motion.t)


def mistakes(robot: lw.Robot) -> None:
    q = robot.neutral()
    robot.gravity_torque(q, treads=2)  # type: ignore[call-overload]  # pyright: ignore
    robot.mass_matrix(q, method=3)  # type: ignore[call-overload]  # pyright: ignore
    robot.coriolis_matrix(q, q, out=None, ststus=True)  # type: ignore[call-overload]  # pyright: ignore
    lw.load("puma560", gravty=(0, 0, 0))  # type: ignore[call-arg]  # pyright: ignore
    print(robot.gravity_torque(q).no_such_attribute)  # type: ignore[attr-defined]  # pyright: ignore
