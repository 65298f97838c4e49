"""Joints without a motor: what a robot says of them, and controllers that give them no torque."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw


def flying() -> lw.Robot:
    """Two links on a floating body, whose elbow is passive."""
    b = lw.Builder("flying")
    b.link("body", mass=5.0, com=(0.02, -0.01, 0.03), inertia=(0.3, 0.2, 0.25))
    b.link("upper", mass=1.0, com=(0.2, 0.0, 0.1), inertia=(0.02, 0.03, 0.04))
    b.link("lower", mass=0.7, com=(0.1, 0.05, 0.0), inertia=(0.01, 0.02, 0.015))
    b.link("hand", mass=0.3, com=(0.0, 0.05, 0.02), inertia=(0.005, 0.004, 0.006))
    b.joint("shoulder", "continuous", parent="body", child="upper", xyz=(0.3, 0, 0))
    b.joint("elbow", "continuous", parent="upper", child="lower", axis=(0, 1, 0), xyz=(0.4, 0, 0))
    b.joint("wrist", "continuous", parent="lower", child="hand", axis=(1, 0, 0), xyz=(0.3, 0, 0))
    return b.build(base="free")


def linearised(robot: lw.Robot, q: Any, v: Any, wanted: Any) -> np.ndarray:
    """Torques of motors that give their joints the wanted accelerations, by dense equations in the
    unknowns (accelerations of passive joints, torques of motors).
    """
    motors, n = robot.actuated, robot.nv
    M, h = robot.mass_matrix(q), robot.bias(q, v)
    K = np.where(motors, -np.eye(n), M)  # columns of the unknowns
    x = np.linalg.solve(K, -h - M[:, motors] @ wanted[motors])
    return np.where(motors, x, 0.0)


@pytest.fixture(scope="module")
def state() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q = np.r_[[0.5, 0.5, -0.5, 0.5], rng.normal(size=6)]
    return q, rng.normal(size=9)


def test_a_floating_base_has_no_motor() -> None:
    robot = flying()
    assert robot.actuated.tolist() == [False] * 6 + [True] * 3
    assert (
        robot.with_actuated(True).actuated.all() and not robot.with_actuated(False).actuated.any()
    )
    some = robot.with_actuated(["shoulder", "wrist"])
    assert some.actuated.tolist() == [False] * 6 + [True, False, True]
    heavy = some.with_payload("hand", 1.0).with_gravity((0, 0, -1)).with_codegen("rolled")
    assert np.array_equal(heavy.actuated, some.actuated)
    assert np.array_equal(some.rename({"elbow": "e"}).actuated, some.actuated)
    assert np.array_equal(some.parametric("gravity").actuated, some.actuated)
    assert robot.with_actuated(["wrist"]) != some
    assert robot.with_actuated(["shoulder", "elbow", "wrist"]) == robot
    assert lw.chain(3).actuated.all()
    arm = lw.load("puma560", base="free", actuated=True)
    assert arm.actuated.all()
    assert lw.load("puma560", actuated="joint2").actuated.tolist() == [False, True] + [False] * 4


def test_messages() -> None:
    with pytest.raises(ValueError, match=r"joint 'elbo': robot 'flying' has no such joint"):
        flying().with_actuated(["elbo"])
    with pytest.raises(ValueError, match=r"with_actuated: joints is 3; expected names of joints"):
        flying().with_actuated(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
@pytest.mark.parametrize("motors", [None, ["shoulder", "wrist"]])
def test_computed_torque_linearises_the_joints_with_motors(
    state: Any, motors: Any, codegen: str
) -> None:
    robot, (q, v) = flying().with_codegen(codegen), state
    robot = robot if motors is None else robot.with_actuated(motors)
    target = robot.random_q(seed=1)
    a = np.linspace(-1, 1, 9)
    law = lw.control.computed_torque(robot, 30.0, 4.0, target, 0.3, a)
    wanted = a + 30.0 * robot.difference(q, target) + 4.0 * (0.3 - v)
    tau = law(0.0, q, v)
    expected = linearised(robot, q, v, wanted)
    assert np.allclose(tau, expected, rtol=1e-9, atol=1e-9)
    assert (tau[~robot.actuated] == 0.0).all()
    found = robot.forward_dynamics(q, v, tau)
    assert np.allclose(found[robot.actuated], wanted[robot.actuated], rtol=1e-8)
    both = law(0.0, np.array([q, q]), np.array([v, 0 * v]))
    assert np.allclose(both[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
def test_other_controllers_give_passive_joints_no_torque(state: Any, codegen: str) -> None:
    robot, (q, v) = flying().with_codegen(codegen).with_actuated(["shoulder", "wrist"]), state
    motors = robot.actuated
    g = lw.control.gravity_compensation(robot)(0.0, q, v)
    assert np.allclose(g, np.where(motors, robot.gravity_torque(q), 0.0), atol=1e-12)
    pd = lw.control.pd(robot, 5.0, 2.0)(0.0, q, v)
    expected = 5.0 * robot.difference(q, robot.neutral()) - 2.0 * v
    assert np.allclose(pd, np.where(motors, expected, 0.0), atol=1e-12)
    weight = robot.gravity_torque(q)[:6]  # of the whole robot, still returned
    assert abs(np.linalg.norm(weight[3:]) - 9.81 * robot.mass) < 1e-9
    whole = robot.with_actuated(True)
    assert np.allclose(lw.control.gravity_compensation(whole)(0.0, q, v), robot.gravity_torque(q))


def test_the_compiled_simulation_is_that_of_the_called_controller(state: Any) -> None:
    robot, (q, v) = flying(), state
    law = lw.control.computed_torque(robot, 30.0, 4.0)
    options: dict[str, Any] = {"duration": 0.05, "dt": 1e-3}
    compiled = lw.simulate(robot, q, v, law, **options)
    called = lw.simulate(robot, q, v, lambda t, q, qd: law(t, q, qd), **options)
    assert np.allclose(compiled.q, called.q, rtol=1e-11, atol=1e-12)
    assert (compiled.tau[:, :6] == 0.0).all()


def planar(passive: tuple[str, ...], base: str = "free") -> lw.Robot:
    """A four-bar on a floating body."""
    b = lw.Builder("floating four-bar")
    b.link("ground", mass=3.0, com=(0.1, 0.05, 0.0), inertia=(0.2, 0.3, 0.25))
    for name, length, mass in (("crank", 0.2, 0.5), ("coupler", 0.6, 1.0), ("rocker", 0.5, 0.8)):
        slender = mass * length**2 / 12
        b.link(name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-3, slender, slender))
    b.joint("a", "continuous", parent="ground", child="crank")
    b.joint("b", "continuous", parent="crank", child="coupler", xyz=(0.2, 0, 0))
    b.joint("d", "continuous", parent="ground", child="rocker", xyz=(0.6, 0, 0))
    b.frame("end", "coupler", xyz=(0.6, 0, 0))
    b.frame("pin", "rocker", xyz=(0.5, 0, 0))
    return b.build(base=base).close_loops(
        lw.Loop("end", "pin", [0, 0, 0, 1, 1, 0]), passive=passive
    )


def test_a_floating_linkage() -> None:
    """The base reacts, motors do what the loop lets them, and joints b and d get no torque."""
    robot = planar(("b", "d"))
    assert robot.actuated.tolist() == [False] * 6 + [True, False, False]
    assert np.array_equal(robot.open.actuated, robot.actuated)
    start = np.r_[robot.neutral()[:7], 0.5, 0.6, 1.8]
    q, v = robot.project(start, np.r_[0.3, -0.2, 0.4, 0.1, 0.2, -0.1, 2.0, 0.0, 0.0])
    torques = np.r_[np.zeros(6), 1.3, 0.0, 0.0]
    qdd = robot.forward_dynamics(q, v, torques)  # a motion that loop and motor allow
    assert np.allclose(robot.inverse_dynamics(q, v, qdd), torques, atol=1e-10)
    law = lw.control.computed_torque(robot, 0.0, 0.0, acceleration=qdd)
    assert np.allclose(law(0.0, q, v), torques, atol=1e-10)
    wrong_base = np.r_[np.full(6, 7.0), qdd[6:]]  # accelerations of the base are not asked for
    law = lw.control.computed_torque(robot, 0.0, 0.0, acceleration=wrong_base)
    assert np.allclose(law(0.0, q, v), torques, atol=1e-10)
    run = lw.simulate(robot, q, v, law, duration=0.002)
    assert run.ok
