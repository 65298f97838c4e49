"""Limits of joints: soft stops that push back, events that end a motion."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    """iiwa14 with limits of two radians."""
    robot = lw.load("iiwa14")
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, limits=(-2.0, 2.0))
    return robot


def cart(**fields: Any) -> lw.Robot:
    """Two sliders without gravity: constant rates until something stops them."""
    b = lw.Builder("cart").link("x", mass=2.0).link("y", mass=1.0)
    b = b.joint("jx", "prismatic", parent="base", child="x", axis=[1, 0, 0], limits=(-0.5, 1.0))
    b = b.joint("jy", "prismatic", parent="x", child="y", axis=[0, 1, 0], limits=(-2.0, 0.25))
    return b.build(strict=False).with_gravity([0.0, 0.0, 0.0])


def test_the_time_of_an_event_is_exact() -> None:
    """Constant rates: the first slider is at its limit after 1.0/0.7 s, whatever the step."""
    robot = cart()
    qd = np.array([[0.7, 0.0], [-0.31, 0.01], [0.1, 0.02], [0.3, 0.3]])
    expected = [1.0 / 0.7, 0.5 / 0.31, np.nan, 0.25 / 0.3]
    for dt, every in ((1e-3, 1), (0.02, 7), (1e-3, None)):
        found = lw.simulate(
            robot, np.zeros(2), qd, duration=2.0, dt=dt, every=every, limits="event"
        )
        assert found.events is not None
        np.testing.assert_allclose(found.events.t, expected, rtol=1e-12)
        assert found.events.dof.tolist() == [0, 0, -1, 1]
        assert found.status.tolist() == [32, 32, 0, 32] and lw.Status.LIMIT == 32
        steps = [int(np.floor(t / dt)) + 1 if t == t else -1 for t in expected]
        assert found.failed_at.tolist() == steps
        np.testing.assert_allclose(found.events.q[0], [1.0, 0.0], atol=1e-12)
        np.testing.assert_allclose(found.events.q[3], [0.25, 0.25], atol=1e-12)
        for row, last in enumerate(steps):
            seen = found.steps < last if last >= 0 else found.steps >= 0
            assert np.isfinite(found.q[row, seen]).all() and np.isnan(found.q[row, ~seen]).all()


@pytest.mark.parametrize("name", ["rk4", "euler", "implicit", "midpoint"])
def test_events_of_a_falling_rod(name: str, new_pendulum: Callable[..., lw.Robot]) -> None:
    """Gravity takes it to a limit; the time converges to that of RK4 with tiny steps."""
    robot = new_pendulum().with_joint("hinge", limits=(-3.0, 1.2))
    law = lw.control.pd(robot, 1.0, 0.1)
    run: Any = {"controller": law, "duration": 1.0, "limits": "event", "hold": False}
    exact = lw.simulate(robot, [0.3], dt=1e-5, every=None, **run).events
    found = lw.simulate(robot, [0.3], dt=1e-3, integrator=name, **run)
    assert found.events is not None and exact is not None
    tolerance = {"rk4": 1e-11, "midpoint": 1e-5}.get(name, 2e-3)
    assert found.events.t == pytest.approx(exact.t, abs=tolerance)
    assert found.events.q[0] == pytest.approx(1.2, abs=1e-9)
    assert found.failed_at == int(found.events.t / 1e-3) + 1
    assert found.q[: found.failed_at].max() <= 1.2 and np.isnan(found.q[found.failed_at :]).all()


def test_events_under_held_torques_per_step_and_in_python(arm: lw.Robot) -> None:
    tau = np.random.default_rng(0).normal(size=(800, 7))
    tau[:, 0] += 100.0
    law = lw.control.constant(arm, lw.control.PerStep(tau))
    q = arm.neutral()
    compiled = lw.simulate(arm, q, None, law, 0.8, limits="event")
    python = lw.simulate(arm, q, None, lambda t, *_: tau[round(t * 1e3)], 0.8, limits="event")
    assert compiled.events is not None and python.events is not None
    assert compiled.status == python.status == lw.Status.LIMIT
    assert python.events.t == pytest.approx(compiled.events.t, abs=1e-12)
    np.testing.assert_array_equal(compiled.q, python.q)


def test_a_row_that_begins_beyond_a_limit_has_ended() -> None:
    found = lw.simulate(cart(), [[0.0, 0.0], [2.0, 0.0]], duration=0.1, limits="event")
    assert found.status.tolist() == [0, lw.Status.LIMIT] and found.failed_at.tolist() == [-1, 1]
    assert found.events is not None and found.events.t[1] == 0.0 and found.events.dof[1] == 0


def test_a_soft_stop_is_a_spring_and_a_damper() -> None:
    """Without damping the cart comes back as fast as it went, after half a period of the spring."""
    robot = cart().lock({"jy": 0.0})
    stop = lw.control.SoftStop(stiffness=2000.0, damping=0.0)
    found = lw.simulate(robot, [0.9], [0.5], duration=0.5, dt=1e-4, limits=stop)
    w = np.sqrt(2000.0 / 3.0)
    assert found.qd[-1, 0] == pytest.approx(-0.5, rel=1e-6)
    assert found.q.max() == pytest.approx(1.0 + 0.5 / w, rel=1e-6)
    outside = found.t[found.q[:, 0] > 1.0]
    assert outside[-1] - outside[0] == pytest.approx(np.pi / w, abs=3e-4)


def test_the_work_of_stops_is_in_the_balance(tmp_path: Any) -> None:
    robot, stop = cart(), lw.control.SoftStop(stiffness=2000.0, damping=30.0)
    found = lw.simulate(robot, [0.9, 0.0], [0.5, 0.1], duration=0.5, dt=1e-4, limits=stop)
    assert found.balance.by_stops[-1] < -0.1
    work = np.abs(found.balance.by_stops).max()  # its damper takes hold within a step
    assert np.abs(found.balance.residual).max() <= 2e-3 * work
    found.save(tmp_path / "a.npz")
    read = lw.Trajectory.load(tmp_path / "a.npz", robot)
    np.testing.assert_array_equal(read.balance.by_stops, found.balance.by_stops)


def test_the_balance_at_stops_is_of_first_order() -> None:
    """A damper takes hold at once where a contact begins, in the middle of a step."""
    left = []
    for dt in (1e-3, 1e-3 / 32):
        balance = lw.simulate(cart(), np.zeros(2), [1.0, 0.3], None, 2.0, dt, limits="stop").balance
        left.append(np.abs(balance.residual).max() / np.abs(balance.by_stops).max())
    assert left[0] <= 0.2 and left[1] <= left[0] / 16, left


def test_usual_stops_hold_a_swinging_arm_within_its_limits(arm: lw.Robot) -> None:
    """It never goes farther beyond than a hard blow compresses the stop, and free it would."""
    start = 0.3 * np.cos(np.arange(7))
    for name in ("rk4", "implicit"):
        found = lw.simulate(arm, start, duration=3.0, dt=5e-4, integrator=name, limits="stop")
        assert found.ok and 2.0 < np.abs(found.q).max() < 2.5
    assert np.abs(lw.simulate(arm, start, duration=3.0, limits="ignore").q).max() > 3.0


def test_stops_too_stiff_for_explicit_steps(new_pendulum: Callable[..., lw.Robot]) -> None:
    """The implicit method rests a falling rod on a stop of 1e9 N m/rad with steps of 1 ms."""
    robot = new_pendulum().with_joint("hinge", limits=(-3.0, 0.5))
    stop = lw.control.SoftStop(stiffness=1e9, damping=1e3)
    found = lw.simulate(robot, [0.0], duration=2.0, limits=stop, integrator="implicit")
    torque = -float(robot.gravity_torque([0.5])[0])
    assert found.ok and found.q[-1, 0] - 0.5 == pytest.approx(torque / 1e9, rel=1e-3)
    with pytest.warns(RuntimeWarning, match="OVERFLOW; expected a smaller dt, or integrator='impl"):
        assert not lw.simulate(robot, [0.0], duration=2.0, limits=stop).ok


def test_wrong_limits_are_told(arm: lw.Robot, kinds: lw.Robot) -> None:
    q = arm.neutral()
    with pytest.raises(ValueError, match="limits is 'hard'; expected 'stop', 'event', 'ignore'"):
        lw.simulate(arm, q, limits="hard")
    with pytest.raises(ValueError, match="no joint of robot 'kinds' has limits; expected limits="):
        lw.simulate(kinds, kinds.neutral(), limits="stop")
    made = lw.chain(3)
    with pytest.raises(ValueError, match=r"no joint of robot 'chain3' has limits; expected limits="
                       "None, or a robot with limits that was loaded, or made by"):  # fmt: skip
        lw.simulate(made, made.neutral(), limits="stop")
    for wrong in (-1.0, [1.0, 2.0], "stiff", float("nan")):
        with pytest.raises(ValueError, match=r"SoftStop: stiffness is .*; expected a number that"):
            lw.simulate(arm, q, limits=lw.control.SoftStop(stiffness=wrong))


def test_events_are_saved(tmp_path: Any) -> None:
    found = lw.simulate(cart(), np.zeros(2), [[0.7, 0.0], [0.1, 0]], duration=2.0, limits="event")
    found.save(tmp_path / "a.npz")
    read = lw.Trajectory.load(tmp_path / "a.npz")
    assert read.events is not None and found.events is not None
    np.testing.assert_array_equal(read.events.t, found.events.t)
    one = read.at(0)
    assert one.events is not None and one.events.t == found.events.t[0]


@pytest.mark.parametrize("every", [1, 4, None])
def test_events_of_some_rows_of_a_batch(every: int | None) -> None:
    """Numbers per step and per row, at events in steps of their own: each as if it were alone."""
    robot, rng = cart(), np.random.default_rng(3)
    tau = rng.normal(size=(2, 3, 400, 2)) * [8.0, 2.0]
    push = {"y": rng.normal(size=(3, 6))}
    law = lw.control.constant(robot, lw.control.PerStep(tau))
    law = law + lw.control.pd(robot, rng.uniform(size=(3, 1)) * np.ones(2), 0.1)
    qd = np.array([0.9, 0.0])
    run: Any = {"duration": 0.4 * 4, "dt": 4e-3, "every": every, "limits": "event"}
    whole = lw.simulate(robot, np.zeros(2), qd, law, f_ext=push, **run)
    assert whole.events is not None and 2 <= np.isfinite(whole.events.t).sum()
    for a, b in np.ndindex(2, 3):
        numbers = [x.values for x in law.inputs]
        own = lw.control.constant(robot, lw.control.PerStep(tau[a, b]))
        own = own + lw.control.pd(robot, numbers[1][b], 0.1)
        alone = lw.simulate(robot, np.zeros(2), qd, own, f_ext={"y": push["y"][b]}, **run)
        assert alone.events is not None
        for x, y in zip(alone.events, whole.events, strict=True):
            np.testing.assert_array_equal(x, y[a, b])
        np.testing.assert_array_equal(alone.q, whole.q[a, b])


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
@pytest.mark.parametrize("integrator", ["rk4", "RK45"])
def test_a_batch_without_rows_has_no_events(arm: lw.Robot, codegen: str, integrator: str) -> None:
    if (codegen, integrator) == ("rolled", "RK45"):
        integrator = "euler"  # solvers of SciPy are for unrolled robots
    robot = arm.with_codegen(codegen)
    for controller in (None, lw.control.pd(robot, 1.0, 1.0), lambda _t, q, _qd: -q):
        found = lw.simulate(
            robot, np.zeros((3, 0, robot.nq)), controller=controller, duration=0.002,
            integrator=integrator, limits="event",
        )  # fmt: skip
        assert found.q.shape == (3, 0, 3, robot.nq) and found.events is not None
        assert found.events.q.shape == (3, 0, robot.nq)


def test_one_event_of_a_large_batch_takes_no_memory_for_the_others() -> None:
    robot, peaks = cart(), []
    q = np.zeros((50_000, 2))
    for fastest in (0.0, 3.0):
        qd = np.zeros_like(q)
        qd[17] = fastest
        tracemalloc.start()
        run: Any = {"duration": 0.2, "dt": 2e-3, "every": 50, "limits": "event", "threads": 1}
        found = lw.simulate(robot, q, qd, **run)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (found.status > 0).sum() == (fastest > 0)
    assert peaks[1] - peaks[0] < 0.1 * peaks[0], peaks


def gripper(driver: tuple[float, float], follower: tuple[float, float], m: float) -> lw.Robot:
    """A slider, and one that follows it by m q + 0.1, without gravity."""
    b = lw.Builder("gripper").link("x", mass=2.0).link("y", mass=1.0)
    b = b.joint("jx", "prismatic", parent="base", child="x", axis=[1, 0, 0], limits=driver)
    b = b.joint("jy", "prismatic", parent="base", child="y", axis=[0, 1, 0], limits=follower,
                mimic=("jx", m, 0.1))  # fmt: skip
    return b.build(strict=False).with_gravity([0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("driver", "m", "rate", "place"),
    [
        ((-5.0, 5.0), 2.0, 1.0, 0.2),  # 2 q + 0.1 = 0.5
        ((-5.0, 5.0), -2.0, 1.0, 0.2),  # -2 q + 0.1 = -0.3
        ((-5.0, 5.0), -2.0, -1.0, -0.2),
        ((-5.0, 0.15), 2.0, 1.0, 0.15),  # the driver's own limit is nearer
        ((-np.inf, np.inf), 2.0, -1.0, -0.2),  # the driver has none
    ],
)
def test_a_joint_that_follows_another_ends_the_motion_at_its_own_limits(
    driver: tuple[float, float], m: float, rate: float, place: float
) -> None:
    robot = gripper(driver, (-0.3, 0.5), m)
    found = lw.simulate(robot, [0.0], [rate], duration=1.0, limits="event")
    assert found.events is not None and found.events.dof == 0
    assert found.events.t == pytest.approx(abs(place / rate), rel=1e-12)
    assert found.events.q[0] == pytest.approx(place, rel=1e-12)
    stopped = lw.simulate(robot, [0.0], [rate], duration=1.0, dt=1e-4, limits="stop")
    assert abs(place) < np.abs(stopped.q).max() < abs(place) + 0.02
    assert np.abs(stopped.qd[-1]).max() < 1e-3 or stopped.qd[-1, 0] * rate < 0.0


def test_limits_that_a_joint_and_its_follower_cannot_both_keep() -> None:
    robot = gripper((0.5, 1.0), (-0.3, 0.5), 2.0)
    expected = "simulate: joint 'jy' follows 'jx', and no position is within the limits of both"
    with pytest.raises(ValueError, match=expected):
        lw.simulate(robot, [0.7], duration=0.1, limits="event")


@pytest.mark.parametrize("every", [4, None])
def test_an_interrupt_while_an_event_is_located(
    every: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory ends where all that belongs to a state was known."""
    from linkwise.motion.fused import Fused

    def interrupt(self: Fused, rows: Any) -> None:
        raise KeyboardInterrupt

    qd = [[0.7, 0.0], [0.1, 0.2]]
    run: Any = {"duration": 2.0, "every": every, "limits": "event"}
    monkeypatch.setattr(Fused, "_locate_rows", interrupt)
    with pytest.warns(UserWarning, match="simulate: interrupted"):
        found = lw.simulate(cart(), np.zeros(2), qd, **run)
    np.testing.assert_allclose(found.q[:, -1], found.t[-1] * np.array(qd), rtol=1e-9)
    assert 0 < found.t[-1] < 1.25
