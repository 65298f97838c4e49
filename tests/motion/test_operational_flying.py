"""A frame is moved although something has no motor: flying bases, passive joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import OperationalSpace, PerStep

TIP = "l6"


@pytest.fixture(scope="module")
def flyer(random_robot: Any) -> lw.Robot:
    """An arm of seven joints on a free body, weightless."""
    made = random_robot(np.random.default_rng(8), 7, kinds=("revolute",), chain=True, base="free")
    return lw.Robot(made).with_gravity([0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def law(flyer: lw.Robot) -> OperationalSpace:
    return OperationalSpace(flyer, TIP, posture=lw.control.computed_torque(flyer, 0.0, 5.0))


def floating(robot: lw.Robot, q: Any, rates: Any) -> Any:
    """Rates of all joints at which the robot has no momentum, from those of the motors."""
    A = robot.centroidal_momentum_matrix(q)
    base = -np.linalg.solve(A[..., :6], (A[..., 6:] @ rates[..., None]))[..., 0]
    return np.concatenate([base, rates], -1)


@pytest.mark.parametrize("axes", ["base", pytest.param("body", marks=pytest.mark.full)])
def test_the_generalised_jacobian_moves_without_momentum(flyer: lw.Robot, axes: str) -> None:
    """Its velocity is the frame's while the base reacts; in either axes, in one state or many."""
    rng = np.random.default_rng(0)
    q, rates = flyer.random_q(rng, size=20), rng.normal(size=(20, 7))
    qd = floating(flyer, q, rates)
    assert np.abs(flyer.centroidal_momentum(q, qd)).max() < 1e-12
    found, J = (x(q, TIP, axes=axes) for x in (flyer.generalized_jacobian, flyer.jacobian))
    assert found.shape == (20, 6, 7)
    moved = np.einsum("...ij,...j->...i", J, qd)
    size = np.abs(moved).max()
    np.testing.assert_allclose(np.einsum("...ij,...j->...i", found, rates), moved, 0, 1e-12 * size)
    M = flyer.mass_matrix(q)
    dense = J[..., 6:] - J[..., :6] @ np.linalg.solve(M[..., :6, :6], M[..., :6, 6:])
    np.testing.assert_allclose(found, dense, rtol=0, atol=1e-12 * np.abs(dense).max())
    np.testing.assert_array_equal(flyer.generalized_jacobian(q[3], TIP, axes=axes), found[3])


def test_robots_without_a_flying_base_have_none() -> None:
    arm = lw.load("iiwa14")
    with pytest.raises(ValueError, match=r"no flying base to react; expected one free joint that"):
        arm.generalized_jacobian(arm.neutral(), "link7")


def test_the_frame_follows_and_the_base_gets_no_torque(
    flyer: lw.Robot, law: OperationalSpace
) -> None:
    rng = np.random.default_rng(1)
    q, qd = flyer.random_q(rng, size=30), rng.normal(size=(30, flyer.nv))
    target, given = flyer.forward_kinematics(q, TIP), rng.normal(size=(2, 30, 6))
    tau = law(q, qd, target, *given)
    np.testing.assert_array_equal(tau[:, :6], 0.0)
    velocity = np.einsum("...ij,...j->...i", flyer.jacobian(q, TIP), qd)
    u = given[1] + 20.0 * (given[0] - velocity)
    found = flyer.tip_acceleration(q, qd, tau, TIP)
    J = flyer.generalized_jacobian(q, TIP)
    cond = np.linalg.cond(J) ** 2 * np.linalg.cond(flyer.mass_matrix(q))
    assert (np.abs(found - u).max(-1) <= 50 * 2.2e-16 * cond * np.abs(u).max(-1)).all()
    assert (np.abs(found - u).max(-1) <= 1e-6 * np.abs(u).max(-1)).all()


@pytest.mark.full
def test_a_flying_arm_reaches_out_and_its_momentum_stays_zero(
    flyer: lw.Robot, law: OperationalSpace
) -> None:
    """From rest, 1 s to a pose near by: the base turns by reaction, the tip arrives."""
    some = flyer.random_q(np.random.default_rng(3), size=200)  # the one farthest from singular
    least = np.linalg.svd(flyer.generalized_jacobian(some, TIP), compute_uv=False)[:, -1]
    q = some[least.argmax()]
    start = flyer.forward_kinematics(q, TIP)
    path = np.repeat(start[None], 1500, 0)
    path[:, :3, 3] += np.minimum(np.arange(1500) / 1000.0, 1.0)[:, None] * [0.05, -0.03, 0.04]
    run = lw.simulate(flyer, q, controller=law.law(PerStep(path)), duration=1.5, dt=1e-3, every=100)
    assert run.ok
    tip = flyer.forward_kinematics(run.q[-1], TIP)
    np.testing.assert_allclose(tip, path[-1], rtol=0, atol=5e-4)
    h = flyer.centroidal_momentum(run.q, run.qd)
    assert np.abs(h).max() < 1e-12
    moved = flyer.difference(run.q[0], run.q[-1])
    assert np.abs(moved[:3]).max() > 0.05  # the base did move


def test_a_joint_without_a_motor_gets_no_torque() -> None:
    """Of an arm whose elbow is passive, the other six move the tip as wanted."""
    arm = lw.load("iiwa14")
    law = OperationalSpace(arm, "link7", passive=[arm.joint_names[3]])
    rng = np.random.default_rng(4)
    q, qd = arm.random_q(rng, size=10), rng.normal(size=(10, 7))
    target = arm.forward_kinematics(q, "link7")
    tau, report = law(q, qd, target, report=True)
    np.testing.assert_array_equal(tau[:, 3], 0.0)
    velocity = np.einsum("...ij,...j->...i", arm.jacobian(q, "link7"), qd)
    found = arm.tip_acceleration(q, qd, tau, "link7")
    np.testing.assert_allclose(found, -20.0 * velocity, rtol=1e-6, atol=1e-6)
    assert (report.damping == 0.0).all()


def test_nothing_moves_what_flies_apart() -> None:
    """No motor reaches a body beyond a free joint that nothing holds: NaN, and flagged."""
    b = lw.Builder("apart").link("arm", mass=1.0, com=[0.3, 0, 0], inertia=[0.1, 0.1, 0.1])
    b = b.link("stone", mass=2.0, com=[0.1, 0.2, 0], inertia=[0.2, 0.1, 0.2])
    b = b.joint("hinge", "revolute", parent="base", child="arm", axis=[0, 0, 1])
    robot = b.joint("gap", "free", parent="arm", child="stone").build()
    law = OperationalSpace(robot, "stone", rows=np.eye(6)[[3]])
    q, rng = robot.random_q(seed=5), np.random.default_rng(5)
    qd = rng.normal(size=robot.nv)
    tau, bits = law(q, qd, np.eye(4), status=True)
    assert np.isnan(tau).all() and bits == lw.Status.SINGULAR
