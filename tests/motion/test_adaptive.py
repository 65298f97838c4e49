"""Adaptive solvers of SciPy: the precise answer, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arms import iiwa14

import linkwise as lw
from linkwise.motion.setup import SOLVERS

TIGHT: Any = {"integrator": "DOP853", "rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _scipy() -> None:
    pytest.importorskip("scipy")


@pytest.mark.parametrize("name", ["iiwa14", "puma560"])
def test_the_energy_of_ten_seconds(name: str) -> None:
    """At rtol 1e-12 at most 1e-9 of the greatest kinetic energy, wrists at 280 rad/s included."""
    robot = lw.load(name)
    q = robot.neutral() + 0.3 * np.cos(np.arange(robot.nq))
    energy = lw.simulate(robot, q, duration=10.0, every=10, **TIGHT).energy
    assert np.abs(energy.total - energy.total[0]).max() <= 1e-9 * energy.kinetic.max()


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_agrees_with_small_steps_of_rk4(name: str, puma: lw.Robot) -> None:
    q = puma.random_q(seed=0)
    law = lw.control.pd(puma, 20.0, 2.0) + lw.control.gravity_compensation(puma)
    push = {"link6": [0.0, 0.1, 0.0, 1.0, 0.0, 2.0]}
    exact = lw.simulate(puma, q, None, law, 0.1, 1e-4, "rk4", 100, False, push)
    loose = 1e-4 if name in ("RK23", "BDF") else 1e-7
    found = lw.simulate(puma, q, None, law, 0.1, 1e-4, name, 100, False, push,
                        rtol=loose / 100, atol=loose / 100)  # fmt: skip
    assert found.ok and found.q.shape == exact.q.shape
    assert np.abs(found.q - exact.q).max() <= loose


def test_turning_joints_stay_on_the_manifold(kinds: lw.Robot) -> None:
    rng = np.random.default_rng(0)
    q, qd = kinds.random_q(rng, size=2), rng.normal(size=(2, kinds.nv))
    found = lw.simulate(kinds, q, qd, duration=0.1, every=10, **TIGHT)
    exact = lw.simulate(kinds, q, qd, duration=0.1, dt=1e-4, every=100)
    assert np.abs(kinds.difference(exact.q, found.q)).max() <= 1e-9
    assert np.abs(np.linalg.norm(found.q[..., :4], axis=-1) - 1.0).max() <= 1e-14


def test_held_torques_begin_anew_at_every_step(puma: lw.Robot) -> None:
    """A digital controller, compiled or of Python: RK4 with many steps in each of its own."""
    q, law = puma.random_q(seed=0), lw.control.pd(puma, 50.0, 5.0)
    compiled = lw.simulate(puma, q, None, law, 0.05, 1e-2, **TIGHT)
    python = lw.simulate(puma, q, None, lambda t, q, qd: law(t, q, qd), 0.05, 1e-2, **TIGHT)
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-13)
    np.testing.assert_allclose(compiled.tau[:-1], python.tau[:-1], atol=1e-9)
    held = [q, np.zeros(6)]
    for k in range(5):
        tau = lw.control.constant(puma, compiled.tau[k])
        fine = lw.simulate(puma, *held, tau, 1e-2, 1e-5, every=None)
        held = [fine.q[-1], fine.qd[-1]]
        np.testing.assert_allclose(compiled.q[k + 1], held[0], atol=1e-11)
    path = lw.control.constant(puma, lw.control.PerStep(compiled.tau[:-1]))
    played = lw.simulate(puma, q, None, path, 0.05, 1e-2, **TIGHT)
    np.testing.assert_allclose(played.q, compiled.q, atol=1e-12)


def test_a_function_asked_whenever_the_solver_likes(puma: lw.Robot) -> None:
    q = puma.random_q(seed=0)
    found = lw.simulate(puma, q, None, lambda t, q, qd: -2.0 * qd, 0.1, hold=False, **TIGHT)
    exact = lw.simulate(puma, q, None, lw.control.pd(puma, 0.0, 2.0), 0.1, 1e-4, every=10,
                        hold=False)  # fmt: skip
    np.testing.assert_allclose(found.q, exact.q, atol=1e-11)


def test_events_and_stops(new_pendulum: Callable[..., lw.Robot]) -> None:
    robot = new_pendulum().with_joint("hinge", limits=(-3.0, 1.2))
    exact = lw.simulate(robot, [0.3], duration=1.0, dt=1e-5, limits="event", every=None).events
    found = lw.simulate(robot, [[0.3], [0.2], [2.0]], duration=1.0, limits="event", **TIGHT)
    assert exact is not None and found.events is not None
    assert found.events.t[0] == pytest.approx(exact.t, abs=1e-11)
    assert found.events.q[0, 0] == pytest.approx(1.2, abs=1e-12)
    assert found.status.tolist() == [32, 32, 32] and found.events.t[2] == 0.0
    assert found.failed_at[0] == int(exact.t / 1e-3) + 1  # the solver stops at the event
    assert np.isnan(found.q[0, found.failed_at[0] :]).all()
    assert np.isfinite(found.q[0, : found.failed_at[0]]).all()
    stopped = lw.simulate(robot, [0.3], duration=2.0, limits="stop", integrator="Radau")
    rk4 = lw.simulate(robot, [0.3], duration=2.0, limits="stop", dt=1e-4, every=10)
    np.testing.assert_allclose(stopped.q, rk4.q, atol=1e-3)


def test_rows_that_fail_are_alone(puma: lw.Robot) -> None:
    q, qd = puma.random_q(seed=0, size=3), np.ones((3, 6))
    q[1, 2], qd[2, 3] = np.nan, 1e200
    with pytest.warns(RuntimeWarning, match="2 of 3 rows failed, the first at step 1"):
        found = lw.simulate(puma, q, qd, duration=0.1, integrator="RK45")
    alone = lw.simulate(puma, q[0], qd[0], duration=0.1, integrator="RK45")
    np.testing.assert_array_equal(found.q[0], alone.q)
    expected = [0, lw.Status.NOT_FINITE, lw.Status.OVERFLOW]
    assert found.status.tolist() == expected and found.failed_at.tolist() == [-1, 1, 1]


def test_a_motion_that_diverges_ends() -> None:
    """Held damping too large for the sampling time: joints turn ever faster, and steps shrink."""
    robot = iiwa14()
    law = lw.control.pd(robot, 400.0, 40.0)
    message = (
        r"NOT_CONVERGED; expected a motion that does not diverge, or held torques whose damping "
        r"times dt is below the joint's inertia, or larger rtol and atol, or a solver of stiff"
    )
    with pytest.warns(RuntimeWarning, match=message):
        found = lw.simulate(robot, robot.random_q(seed=0), None, law, 1.0, integrator="RK45")
    assert found.status == lw.Status.NOT_CONVERGED and 0 < found.failed_at < 20
    assert np.isfinite(found.q[: found.failed_at]).all() and np.isnan(found.q[-1]).all()


def test_float32_states_are_solved_in_float64(puma: lw.Robot) -> None:
    q = puma.random_q(seed=0).astype(np.float32)
    found = lw.simulate(puma, q, duration=0.1, **TIGHT)
    exact = lw.simulate(puma, q.astype(float), duration=0.1, **TIGHT)
    assert found.q.dtype == np.float32
    np.testing.assert_array_equal(found.q, exact.q.astype(np.float32))


def test_what_is_refused(puma: lw.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    q = puma.neutral()
    with pytest.raises(ValueError, match="rtol is 1e-06, and integrator 'rk4' takes steps of dt"):
        lw.simulate(puma, q, rtol=1e-6)
    with pytest.raises(ValueError, match="atol is -1; expected a positive number"):
        lw.simulate(puma, q, integrator="RK45", atol=-1)
    with pytest.raises(ValueError, match="takes each row at times of its own, and a function of"):
        lw.simulate(puma, [q, q], None, lambda t, q, qd: qd, hold=False, integrator="RK45")
    for name in [m for m in sys.modules if m.split(".")[0] == "scipy"] + ["scipy.integrate"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"'DOP853' needs SciPy: pip install 'linkwise\[ode\]'"):
        lw.simulate(puma, q, integrator="DOP853")


def test_torques_of_a_function_that_is_asked_at_any_time(puma: lw.Robot) -> None:
    q = puma.neutral()
    found = lw.simulate(puma, q, None, lambda t, q, qd: t - qd, 0.02, 1e-3, "DOP853", 4, False)
    expected = found.t[:, None] - found.qd
    np.testing.assert_allclose(found.tau, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("every", [1, 7, None])
def test_an_interrupt_ends_at_a_step_that_all_rows_reached(
    puma: lw.Robot, every: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where some rows are ahead of others, each with a solver of its own."""
    from linkwise.motion.adaptive import Adaptive

    own, calls = Adaptive._advance, [0]

    def advance(self: Adaptive, row: int, steps: int) -> None:
        calls[0] += 1
        if calls[0] == 3 * 10 + 2:
            raise KeyboardInterrupt
        own(self, row, steps)

    q = puma.random_q(seed=1, size=3)
    whole = lw.simulate(puma, q, None, None, 0.1, 1e-3, "DOP853")
    monkeypatch.setattr(Adaptive, "_advance", advance)
    with pytest.warns(UserWarning, match="simulate: interrupted"):
        found = lw.simulate(puma, q, None, None, 0.1, 1e-3, "DOP853", every)
    assert found.steps[-1] == 10
    np.testing.assert_array_equal(found.q, whole.q[:, found.steps])
