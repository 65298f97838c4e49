"""A planar four-bar: closed form, motion over time, redundant directions, dead points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion.laws import law_torques

Make = Callable[..., lw.Robot]
START, SPIN = (0.5, 0.6, 1.8), (2.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def closed(four_bar: Make) -> lw.Robot:
    return four_bar()


@pytest.fixture(scope="module")
def state(closed: lw.Robot) -> tuple[np.ndarray, np.ndarray]:
    q, qd = closed.project(START, SPIN)
    return q, qd


def angles(crank: float) -> tuple[float, float]:
    """Coupler and rocker (absolute) of the four-bar by trigonometry, for an angle of the crank."""
    pin = 0.2 * np.array([np.cos(crank), np.sin(crank)])
    to_pivot = np.array([0.6, 0.0]) - pin
    far = np.hypot(*to_pivot)
    at_pin = np.arccos((0.6**2 + far**2 - 0.5**2) / (2 * 0.6 * far))
    coupler = np.arctan2(to_pivot[1], to_pivot[0]) + at_pin
    end = pin + 0.6 * np.array([np.cos(coupler), np.sin(coupler)])
    return coupler, np.arctan2(end[1], end[0] - 0.6)


def test_projection_finds_the_four_bar_of_trigonometry(closed: lw.Robot, state: Any) -> None:
    (a, b, d), qd = state
    coupler, rocker = angles(a)
    assert np.allclose([a + b, d], [coupler, rocker], atol=1e-14)
    h = 1e-5
    ahead, behind = np.array(angles(a + h)), np.array(angles(a - h))
    slopes = (ahead - behind) / (2 * h)
    assert np.allclose([qd[0] + qd[1], qd[2]], slopes * qd[0], atol=1e-9)


def test_one_equation_of_motion(closed: lw.Robot, state: Any) -> None:
    """Of one degree of freedom x, the crank: m ẍ + ½ m' ẋ² + V' = tau_a, m = ∂q/∂xᵀ M ∂q/∂x."""
    (a, _, _), qd = state

    def at(x: float) -> np.ndarray:
        coupler, rocker = angles(x)
        return np.array([x, coupler - x, rocker])

    def slope(x: float, h: float = 1e-4) -> np.ndarray:
        eight = at(x - 2 * h) - 8 * at(x - h) + 8 * at(x + h) - at(x + 2 * h)
        return eight / (12 * h)

    def mass(x: float) -> float:
        return float(slope(x) @ closed.mass_matrix(at(x)) @ slope(x))

    h, tau = 1e-4, 0.3
    force = (closed.potential_energy(at(a + h)) - closed.potential_energy(at(a - h))) / (2 * h)
    change = (mass(a + h) - mass(a - h)) / (2 * h)
    want = (tau - force - 0.5 * change * qd[0] ** 2) / mass(a)
    found = closed.forward_dynamics(at(a), slope(a) * qd[0], [tau, 0, 0])
    assert found[0] == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "directions"),
    [
        ("ltl", (1, 1, 0, 1, 1, 1)),
        ("pv", (1, 1, 0, 1, 1, 1)),
        pytest.param("pv-r", (1, 1, 0, 1, 1, 1), marks=pytest.mark.full),
        pytest.param("ltl", (0, 0, 0, 1, 1, 1), marks=pytest.mark.full),
        pytest.param("pv", (0, 0, 0, 1, 1, 1), marks=pytest.mark.full),
    ],
)
def test_redundant_directions_are_flagged_and_change_nothing(
    method: str, directions: Any, four_bar: Make, closed: lw.Robot, state: Any
) -> None:
    """No joint can leave the plane: what holds the bars in it is redundant."""
    more, (q, qd), tau = four_bar(directions), state, (0.1, 0.2, -0.3)
    qdd, bits = more.forward_dynamics(q, qd, tau, method=method, status=True)
    assert lw.Status(int(bits)) == lw.Status.REDUNDANT
    want, fine = closed.forward_dynamics(q, qd, tau, method=method, status=True)
    assert np.allclose(qdd, want, rtol=1e-13) and fine == 0
    forces, bits = more.constraint_forces(q, qd, tau, method=method, status=True)
    assert bits == lw.Status.REDUNDANT
    assert np.allclose(forces, closed.constraint_forces(q, qd, tau, method=method), rtol=1e-12)


@pytest.mark.parametrize("method", ["ltl", pytest.param("pv", marks=pytest.mark.full), "pv-r"])
def test_a_loop_that_is_closed_twice_shares_its_force(
    method: str, four_bar_open: Make, closed: lw.Robot, state: Any
) -> None:
    loop, (q, qd), tau = lw.Loop("coupler_end", "rocker_end", (0, 0, 0, 1, 1, 0)), state, (1, 0, 0)
    twice = four_bar_open().close_loops([loop, loop])
    qdd, bits = twice.forward_dynamics(q, qd, tau, method=method, status=True)
    assert bits == lw.Status.REDUNDANT
    assert np.allclose(qdd, closed.forward_dynamics(q, qd, tau), rtol=1e-12)
    forces = twice.constraint_forces(q, qd, tau, method=method)
    once = closed.constraint_forces(q, qd, tau)[0]
    assert np.allclose(forces, [once / 2, once / 2], rtol=1e-11)


def test_a_dead_point_is_flagged(four_bar_open: Make) -> None:
    """All bars of a parallelogram on one line: two motions begin there."""
    robot = four_bar_open(0.2, 0.6, 0.2, 0.6)
    closed = robot.close_loops(lw.Loop("coupler_end", "rocker_end", (0, 0, 0, 1, 1, 0)))
    flat, raised = np.zeros(3), np.array([0.7, -0.7, 0.7])
    assert np.abs(closed.residual(np.stack([flat, raised])).position).max() < 1e-15
    qdd, bits = closed.forward_dynamics(
        np.stack([flat, raised]), np.zeros(3), np.ones(3), status=True
    )
    assert [lw.Status(int(x)) for x in bits] == [lw.Status.REDUNDANT, lw.Status.OK]
    assert np.isfinite(qdd).all()


def test_energy_and_closure_over_time(closed: lw.Robot, state: Any) -> None:
    q, qd = state
    traj = lw.simulate(closed, q, qd, duration=2.0, dt=1e-3)
    off = closed.residual(traj.q, traj.qd)
    assert np.abs(off.position).max() < 1e-12 and np.abs(off.velocity).max() < 1e-9
    total = traj.energy.kinetic + traj.energy.potential
    assert np.ptp(total) < 1e-8 * traj.energy.kinetic.max()  # 16 times less at half the step


@pytest.mark.full
def test_a_million_steps_stay_closed(closed: lw.Robot, state: Any) -> None:
    q, qd = state
    traj = lw.simulate(closed, q, qd, duration=1000.0, dt=1e-3, every=997)
    off = closed.residual(traj.q, traj.qd)
    assert np.abs(off.position).max() < 1e-9 and np.abs(off.velocity).max() < 1e-9


def test_ways_to_handle_drift(closed: lw.Robot, state: Any) -> None:
    """Projection leaves rounding; Baumgarte's way leaves some of what nothing would leave."""
    q, qd = state
    worst = {}
    for drift in ("project", 0.02, None):
        traj = lw.simulate(closed, q, qd, duration=2.0, dt=2e-3, drift=drift)
        worst[drift] = np.abs(closed.residual(traj.q, traj.qd).position).max()
    assert worst["project"] < 1e-14 < 1e-12 < worst[0.02] < 0.5 * worst[None]


@pytest.mark.parametrize("integrator", ["euler", pytest.param("DOP853", marks=pytest.mark.full)])
def test_other_integrators(integrator: str, closed: lw.Robot, state: Any) -> None:
    q, qd = state
    options = {"rtol": 1e-11, "atol": 1e-11} if integrator == "DOP853" else {}
    dt = 1e-2 if integrator == "DOP853" else 1e-5
    traj = lw.simulate(closed, q, qd, duration=0.2, dt=dt, integrator=integrator, **options)
    best = lw.simulate(closed, q, qd, duration=0.2, dt=1e-3)
    off = closed.residual(traj.q[-1], traj.qd[-1])
    assert np.abs(off.position).max() < 1e-9
    assert np.abs(traj.q[-1] - best.q[-1]).max() < (1e-8 if integrator == "DOP853" else 1e-4)


def test_steps_in_python_are_projected_too(closed: lw.Robot, state: Any) -> None:
    q, qd = state
    control = lw.simulate(
        closed, q, qd, lambda t, q, qd: -0.1 * qd, duration=0.05, dt=1e-3, hold=False
    )
    assert np.abs(closed.residual(control.q, control.qd).position).max() < 1e-14
    assert control.energy.kinetic[-1] > 0


def test_batches_threads_float32_and_out(closed: lw.Robot, state: Any) -> None:
    q, qd = (np.repeat(x[None], 37, axis=0) for x in state)
    tau = np.random.default_rng(0).normal(size=(37, 3))
    alone = np.stack([closed.forward_dynamics(*row) for row in zip(q, qd, tau, strict=True)])
    out = np.empty_like(tau)
    assert closed.forward_dynamics(q, qd, tau, out=out, threads=2) is out
    assert (out == alone).all()
    short = closed.forward_dynamics(*(x.astype(np.float32) for x in (q, qd, tau)))
    assert short.dtype == np.float32 and np.allclose(short, out, rtol=1e-3)
    q[3, 1] = np.nan
    found, bits = closed.forward_dynamics(q, qd, tau, status=True)
    assert np.isnan(found[3]).all() and bits[3] == lw.Status.NOT_FINITE
    rest = np.arange(37) != 3
    assert (found[rest] == out[rest]).all() and not bits[rest].any()


def test_an_inelastic_impulse(closed: lw.Robot, state: Any) -> None:
    """The loop is closed at once while the bars move freely: energy only falls."""
    q, rng = state[0], np.random.default_rng(1)
    before = rng.normal(size=(5, 3))
    after, impulse = closed.impulse(q, before)
    assert impulse.shape == (5, 1, 6)
    assert np.abs(closed.residual(q, after).velocity).max() < 1e-14
    lost = closed.kinetic_energy(q, before) - closed.kinetic_energy(q, after)
    change = after - before
    assert np.allclose(lost, closed.kinetic_energy(q, change), rtol=1e-12) and (lost > 0).all()
    push = closed.open.jacobian(q, "coupler_end") - closed.open.jacobian(q, "rocker_end")
    assert np.allclose(np.einsum("ij,sj->si", closed.mass_matrix(q), change), impulse[:, 0] @ push)


def test_inverse_dynamics_has_the_least_torques(closed: lw.Robot, state: Any) -> None:
    q, qd = state
    qdd = closed.forward_dynamics(q, qd, (0.3, 0.0, 0.0))
    tau = closed.inverse_dynamics(q, qd, qdd)
    assert np.allclose(closed.forward_dynamics(q, qd, tau), qdd, rtol=1e-12)
    J = np.stack([closed.residual(q, unit).velocity for unit in np.eye(3)], axis=-1)
    assert np.abs(J @ tau).max() < 1e-14  # no part that the loop would take
    assert np.linalg.norm(tau) < 0.3


def test_joints_without_a_motor_get_no_torque(four_bar: Make, state: Any) -> None:
    (q, qd), crank = state, four_bar(passive=["b", "d"])
    qdd = crank.forward_dynamics(q, qd, (0.3, 0.0, 0.0))
    assert np.allclose(crank.inverse_dynamics(q, qd, qdd), [0.3, 0, 0], atol=1e-13)
    none, bits = four_bar(passive=["a", "b", "d"]).inverse_dynamics(q, qd, qdd, status=True)
    assert np.isnan(none).all() and bits == lw.Status.SINGULAR


def test_laws_of_control_know_the_loop(four_bar: Any) -> None:
    """Motors at the crank alone: torques at the other joints would be those of the open tree."""
    robot, still = four_bar(passive=["b", "d"]), [0.0, 0.0, 0.0]
    q = robot.evaluate("project", [0.5, 0.6, 1.8], still)[:3]

    def torques(law: lw.Law) -> list[float]:
        numbers = [x.values.tolist() for x in law.inputs]
        return law_torques(law.forms, robot.tree, numbers, q, still)

    assert torques(lw.control.pd(robot, 5.0, 1.0, np.add(q, 1.0)))[1:] == [0.0, 0.0]
    tau = torques(lw.control.gravity_compensation(robot))
    assert tau[1:] == [0.0, 0.0] and abs(tau[0] - robot.evaluate("gravity_torque", q)[0]) > 0.1
    assert np.abs(robot.evaluate("forward_dynamics", q, still, tau)).max() < 1e-9
    goal = np.add(q, [0.3, -0.2, 0.1])  # open
    tau = torques(lw.control.computed_torque(robot, 100.0, 20.0, goal))
    assert tau[1:] == [0.0, 0.0]
    # as an impulse leaves of rates what the loop allows
    nearest = robot.evaluate("impulse", q, (100.0 * (goal - q)).tolist())[:3]
    found = robot.evaluate("forward_dynamics", q, still, tau)
    np.testing.assert_allclose(found, nearest, rtol=1e-9)


@pytest.mark.full
def test_laws_of_control_move_a_closed_robot(four_bar: Any) -> None:
    robot = four_bar(passive=["b", "d"])
    q = robot.project([0.5, 0.6, 1.8])
    held = lw.simulate(robot, q, controller=lw.control.gravity_compensation(robot), duration=0.2)
    assert np.abs(held.q - q).max() < 1e-9
    goal = robot.project(np.add(q, [0.3, 0.0, 0.0]))
    law = lw.control.computed_torque(robot, 100.0, 20.0, goal)
    reached = lw.simulate(robot, q, controller=law, duration=2.0, every=None)
    np.testing.assert_allclose(reached.q[-1], goal, atol=1e-6)


def test_the_loops_of_a_robot_are_shown(four_bar: Any) -> None:
    assert str(four_bar()).splitlines()[-1] == "closed: loop 0: 'coupler_end' to 'rocker_end'"


@pytest.mark.full
@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_laws_of_the_open_robot_move_the_closed_one(four_bar: Any, integrator: str) -> None:
    """As a function of Python would, which knows nothing of the loop."""
    robot = four_bar()
    q, open_ = robot.project([0.5, 0.6, 1.8]), robot.open
    law = lw.control.pd(open_, 5.0, 0.5, q + 0.1) + lw.control.gravity_compensation(open_)
    options: Any = {"duration": 0.05, "integrator": integrator}
    found = lw.simulate(robot, q, controller=law, **options)
    asked = lw.simulate(robot, q, controller=lambda t, q, qd: law(t, q, qd), **options)
    np.testing.assert_allclose(found.q, asked.q, atol=1e-9)
    closed = lw.control.pd(robot, 5.0, 0.5, q + 0.1) + lw.control.gravity_compensation(robot)
    other = lw.simulate(robot, q, controller=closed, **options)
    np.testing.assert_allclose(other.tau[0] - found.tau[0], closed(0, q, 0 * q) - law(0, q, 0 * q))
    with pytest.raises(
        ValueError, match=r"simulated, or, where it has closed loops, for robot.open"
    ):
        lw.simulate(robot, q, controller=lw.control.zero(lw.load("puma560")), duration=0.1)


def test_laws_by_calls_of_linkages(four_bar: Make) -> None:
    closed = four_bar(passive=["b", "d"])
    q, qd = closed.project((0.5, 0.6, 1.8), (2.0, 0.0, 0.0))
    loops = closed.with_codegen("rolled")
    for make in (
        lw.control.gravity_compensation,
        lambda r: lw.control.pd(r, 3.0, 1.0),
        lambda r: lw.control.computed_torque(r, 3.0, 1.0),
    ):
        expected = make(closed)(0.0, q, qd)
        assert np.allclose(make(loops)(0.0, q, qd), expected, atol=1e-12)
        assert expected[1] == expected[2] == 0.0
