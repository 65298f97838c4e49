"""Drift of closed loops in simulations: Baumgarte's stabilisation with everything it meets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw

Make = Callable[..., lw.Robot]
T, DT, STEPS = 0.01, 2e-3, 15
OPTIONS: dict[str, Any] = {"duration": STEPS * DT, "dt": DT, "drift": T}
PUSH = {"coupler_end": [0.0, 0.0, 0.1, 0.3, -0.2, 0.0]}


@pytest.fixture(scope="module")
def state(four_bar: Make) -> tuple[np.ndarray, np.ndarray]:
    """A state whose loop is open by 3e-7 m and opens at 4e-7 m/s: errors that show in q."""
    q, qd = four_bar().project((0.5, 0.6, 1.8), (2.0, 0.0, 0.0))
    return q + np.array([0.0, 4e-7, 0.0]), qd + np.array([0.0, 0.0, 8e-7])


def torque(_t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return 3.0 * (np.array([0.5, 0.6, 1.8]) - q) - 0.2 * qd


def reference(robot: lw.Robot, q: np.ndarray, qd: np.ndarray, controller: Any) -> np.ndarray:
    """The last configuration by RK4 of the dense equations, J from differences of the residual:
    M q̈ = τ - b + Jᵀ λ,  J q̈ = -J̇ q̇ - 2/T J q̇ - e/T².
    """
    free, h = robot.open, 1e-4

    def rows(at: np.ndarray) -> np.ndarray:
        eye = h * np.eye(3)
        ahead, behind = (robot.residual(at + s * eye).position for s in (1, -1))
        return np.asarray(ahead - behind).T / (2 * h)

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        at, v = y[:3], y[3:]
        J, dJ = rows(at), (rows(at + h * v) - rows(at - h * v)) / (2 * h)
        M = free.mass_matrix(at)
        push = free.inverse_dynamics(at, v, np.zeros(3), f_ext=PUSH)  # bias less the push
        right = np.r_[
            controller(t, at, v) - push,
            -dJ @ v - 2 / T * J @ v - robot.residual(at).position / T**2,
        ]
        K = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
        return np.r_[v, np.linalg.solve(K, right)[:3]]

    y = np.r_[q, qd]
    for k in range(STEPS):
        t = k * DT
        a = rate(t, y)
        b = rate(t + DT / 2, y + DT / 2 * a)
        c = rate(t + DT / 2, y + DT / 2 * b)
        d = rate(t + DT, y + DT * c)
        y = y + DT / 6 * (a + 2 * b + 2 * c + d)
    return y[:3]


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
def test_controllers_of_python_at_every_stage(four_bar: Make, state: Any, codegen: str) -> None:
    robot = four_bar().with_codegen(codegen)
    found = lw.simulate(robot, *state, torque, hold=False, f_ext=PUSH, **OPTIONS).q[-1]
    without = lw.simulate(robot, *state, torque, hold=False, f_ext=PUSH,
                          **OPTIONS | {"drift": None}).q[-1]  # fmt: skip
    expected = reference(robot, *state, torque)
    assert np.abs(found - expected).max() < 1e-9
    assert np.abs(without - expected).max() > 1e-8


def test_batches_of_controllers_of_python(four_bar: Make, state: Any) -> None:
    robot, (q, qd) = four_bar(), state
    both = lw.simulate(robot, [q, q], [qd, qd], torque, hold=False, f_ext=PUSH, **OPTIONS)
    alone = lw.simulate(robot, q, qd, torque, hold=False, f_ext=PUSH, **OPTIONS)
    assert np.array_equal(both.q, [alone.q, alone.q])


@pytest.mark.parametrize("drift", [T, "project", None])
def test_parameters(four_bar: Make, state: Any, drift: Any) -> None:
    body = [1.5, 0.3, 0.0, 0.0, 0.01, 0.0, 0.09, 0.0, 0.0, 0.09]
    loaded, heavy = (
        four_bar().parametric("inertia"),
        four_bar().with_payload(
            "coupler", 1.5, com=(0.2, 0.0, 0.0), inertia=np.diag([0.01, 0.03, 0.03])
        ),
    )
    bodies = np.array(four_bar().inertial_parameters, float)
    bodies[1] += body
    options = OPTIONS | {"drift": drift}
    found = lw.simulate(loaded, *state, parameters={"inertia": bodies}, **options)
    expected = lw.simulate(heavy, *state, **options)
    assert np.allclose(found.q, expected.q, rtol=1e-12, atol=1e-13)
    nominal = lw.simulate(four_bar(), *state, **options)
    assert np.abs(nominal.q[-1] - expected.q[-1]).max() > 1e-5


def test_a_state_that_violates_the_loops_is_flagged(four_bar: Make) -> None:
    robot = four_bar()
    q, qd = robot.project((0.5, 0.6, 1.8), (2.0, 0.0, 0.0))
    off, fast = 1e-3 * np.eye(3)[1], 1e-3 * np.eye(3)[2]
    states = np.array([q, q + off, q, q + 0.01 * off, q]), np.array([qd, qd, qd + fast, qd, qd])
    states[0][4, 0] = np.nan
    _, status = robot.forward_dynamics(*states, np.zeros(3), status=True)
    assert status.tolist() == [0, lw.Status.LOOP_OPEN, lw.Status.LOOP_OPEN, 0, lw.Status.NOT_FINITE]
    open_ = np.abs(np.concatenate(robot.residual(*states), -1)).max(-1) > 1e-4
    assert np.array_equal(status[:4] > 0, open_[:4])
    plain = robot.forward_dynamics(*states, np.zeros(3))
    marked, _ = robot.forward_dynamics(*states, np.zeros(3), status=True)
    assert np.array_equal(plain, marked, equal_nan=True)
    _, one = robot.forward_dynamics(states[0][1], qd, np.zeros(3), status=True)
    assert one == lw.Status.LOOP_OPEN
    moved = robot.parametric("placement").forward_dynamics(
        q, qd, np.zeros(3), placement=[[0] * 6, [0, 0, 0, 0.01, 0, 0], [0] * 6], status=True
    )
    assert moved[1] == lw.Status.LOOP_OPEN


@pytest.mark.parametrize("integrator", ["RK45", "DOP853", "Radau"])
def test_solvers_of_scipy_close_loops_after_each_step(
    four_bar: Make, state: Any, integrator: str
) -> None:
    """Rough tolerances open them; every state that is kept is projected."""
    (q, qd), closed = state, four_bar()
    run: Any = {"duration": 0.5, "dt": 0.05, "integrator": integrator, "rtol": 1e-4, "atol": 1e-4}
    projected, free = (lw.simulate(closed, q, qd, drift=d, **run) for d in ("project", None))
    position, velocity = closed.residual(projected.q[1:], projected.qd[1:])
    assert np.abs(position).max() < 1e-9 and np.abs(velocity).max() < 1e-9
    assert np.abs(closed.residual(free.q, free.qd).position).max() > 1e-7
    exact = lw.simulate(closed, q, qd, duration=0.5, dt=5e-4).final.q
    np.testing.assert_allclose(projected.final.q, exact, atol=5e-3)


def test_steps_longer_than_what_is_kept_are_read_before_the_projection(four_bar: Make) -> None:
    """The solver's step is many times dt: states within it are its dense output, to its errors."""
    closed = four_bar()
    q, qd = closed.project((0.5, 0.6, 1.8), (2.0, 0.0, 0.0))
    run: Any = {"duration": 0.2, "dt": 1e-4, "integrator": "DOP853"}
    exact = lw.simulate(closed, q, qd, **run, rtol=1e-12, atol=1e-12, drift=None)
    found = lw.simulate(closed, q, qd, **run)
    np.testing.assert_allclose(found.q, exact.q, atol=2e-8)


@pytest.mark.parametrize("integrator", ["BDF", "LSODA"])
def test_solvers_with_a_memory_refuse_projection(
    four_bar: Make, state: Any, integrator: str
) -> None:
    closed = four_bar()
    with pytest.raises(ValueError, match=f"drift is 'project', and integrator '{integrator}' goes"):
        lw.simulate(closed, *state, integrator=integrator)
    lw.simulate(closed, *state, integrator=integrator, drift=0.05, duration=0.01)
