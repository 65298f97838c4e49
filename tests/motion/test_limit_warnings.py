"""Limits that a motion exceeds: the warning, and controllers that keep within them."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LimitWarning

DT, STEPS = 1e-3, 60
OPTIONS: dict[str, Any] = {"duration": STEPS * DT, "dt": DT}


def arm() -> lw.Robot:
    b = lw.Builder("arm")
    b.link("base")
    b.link("upper", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.link("lower", mass=0.5, com=(0.2, 0, 0), inertia=(0.05, 0.05, 0.05))
    b.joint("a", "revolute", parent="base", child="upper", axis=(0, 1, 0), limits=(-0.2, 0.2),
            velocity=1.0, effort=6.0)  # fmt: skip
    b.joint("b", "continuous", parent="upper", child="lower", axis=(0, 1, 0), xyz=(0.5, 0, 0))
    return b.build()


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    return arm()


def message(*args: Any, **options: Any) -> str:
    """The one LimitWarning of a simulation; empty if there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.simulate(*args, **options)
    assert len(caught) <= 1 and all(x.category is LimitWarning for x in caught)
    return str(caught[0].message) if caught else ""


def test_what_is_exceeded_is_named_once(robot: lw.Robot) -> None:
    q = [[0.0, 0.0], [0.5, 0.0], [0.3, 0.0]]
    text = message(robot, q, duration=0.01)
    assert "in 2 of 3 rows, the first is row 1: position of 'a' 0.50" in text
    assert "0.3 beyond its limit 0.2" in text
    assert "velocity of" not in text and "effort of" not in text
    for name in ("limits='stop'", "'event'", "limits='ignore'"):
        assert name in text
    assert "lw.control.saturated" not in text  # no effort is exceeded
    fall = message(robot, [0.0, 0.0], duration=0.5)
    assert "rows" not in fall and "velocity of 'a'" in fall and "limit 1 " in fall
    assert (
        message(robot, [0.0, 0.0], [-1.2, 0.0], duration=0.01).count("0.2 beyond its limit -1") == 1
    )


def test_efforts_of_every_kind_of_controller(robot: lw.Robot) -> None:
    law = lw.control.pd(robot, 100.0, 0.0, [0.1, 0.0])
    q = np.zeros((2, 2))
    for controller in (law, lambda t, q, qd: law(t, q, qd), lw.control.constant(robot, [10.0, 0])):
        assert "effort of 'a' 10, 4 beyond its limit 6" in message(
            robot, q, controller=controller, **OPTIONS
        )
    assert message(robot, q, controller=lw.control.saturated(law), duration=0.01) == ""


def test_the_advice_is_about_what_is_exceeded(robot: lw.Robot) -> None:
    fast = message(robot, [0.0, 0.0], [1.5, 0.0], duration=0.01)
    assert "expected a slower motion for velocities, or limits='ignore'" in fast
    assert "limits='stop'" not in fast and "saturated" not in fast
    strong = lw.control.constant(robot, [10.0, 0.0])
    assert "expected lw.control.saturated(controller) for efforts, or limits='ignore'" in message(
        robot, [0.0, 0.0], controller=strong, duration=0.01
    )


def test_rows_that_fail_have_one_warning(robot: lw.Robot) -> None:
    stiff = lw.control.pd(robot, 0.0, [[1e4, 0.0], [0.0, 0.0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.simulate(robot, [0.0, 0.0], [[0.1, 0.0], [0.1, 0.0]], controller=stiff, duration=0.5)
    text = {x.category.__name__: str(x.message) for x in caught}
    assert "1 of 2 rows failed" in text["SimulationWarning"]
    assert "in 1 of 2 rows, the first is row 1" in text["LimitWarning"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.simulate(robot, [0.0, 0.0], [0.1, 0.0], controller=lw.control.pd(robot, 0.0, 1e4))
    assert [x.category for x in caught] == [lw.SimulationWarning]


@pytest.mark.parametrize("limits", ["ignore", "stop", "event", lw.control.SoftStop(1e4)])
def test_options_of_limits(robot: lw.Robot, limits: Any) -> None:
    assert message(robot, [0.199, 0.0], [0.3, 0.0], duration=0.01, limits=limits) == ""
    text = message(robot, [0.0, 0.0], [1.5, 0.0], duration=0.01, limits=limits)
    assert ("velocity of 'a' 1." in text) == (limits != "ignore")


def test_robots_without_limits_and_within_them(robot: lw.Robot) -> None:
    assert message(lw.chain(2), [1.0, 2.0], [50.0, 0.0], duration=0.01) == ""
    assert message(robot, [0.2, 0.0], [-0.5, 0.0], duration=0.001) == ""  # from the limit itself
    with pytest.raises(ValueError, match="limits is 'hard'; expected 'stop', 'event', 'ignore'"):
        lw.simulate(robot, [0.0, 0.0], limits="hard")


# -- controllers that keep within limits ----------------------------------------------------------


def spring(_t: float, q: Any, qd: Any) -> Any:
    return 60.0 * (np.array([0.3, -0.4]) - q) - 1.0 * qd


def stepwise(robot: lw.Robot, q: Any, change: Any) -> tuple[np.ndarray, np.ndarray]:
    """Semi-implicit Euler in plain NumPy, torques changed by a function of their history."""
    v, asked, states, torques = np.zeros_like(q), [], [q], []
    for k in range(STEPS):
        asked.append(spring(k * DT, q, v))
        torques.append(change(k, asked, torques))
        v = v + DT * robot.forward_dynamics(q, v, torques[-1])
        q = q + DT * v
        states.append(q)
    return np.stack(states, -2), np.stack(torques, -2)


LIMIT, RATE, LATE = np.array([5.0, 3.0]), np.array([400.0, 100.0]), 7


def test_controllers_within_limits_with_a_rate_and_a_delay(robot: lw.Robot) -> None:
    pd = lw.control.pd(robot, 60.0, 1.0, [0.3, -0.4])
    control, q = lw.control, np.array([[0.0, 0.0], [0.1, 0.3]])
    cases = {
        "saturated": (
            lambda c: control.saturated(c, LIMIT),
            lambda k, u, tau: np.clip(u[-1], -LIMIT, LIMIT),
        ),
        "rate limited": (
            lambda c: control.rate_limited(c, RATE),
            lambda k, u, tau: (
                np.clip(u[-1], tau[-1] - RATE * DT, tau[-1] + RATE * DT) if tau else u[-1]
            ),
        ),
        "delayed": (
            lambda c: control.delayed(c, LATE * DT),
            lambda k, u, tau: u[max(k - LATE, 0)],
        ),
        "all": (
            lambda c: control.saturated(
                control.rate_limited(control.delayed(c, LATE * DT), RATE), LIMIT
            ),
            None,
        ),
    }
    chain: list[Any] = []

    def all_three(k: int, u: Any, tau: Any) -> Any:
        late = u[max(k - LATE, 0)]
        chain.append(np.clip(late, chain[-1] - RATE * DT, chain[-1] + RATE * DT) if k else late)
        return np.clip(chain[-1], -LIMIT, LIMIT)

    for wrap, change in cases.values():
        chain.clear()
        expected, torques = stepwise(robot, q, change or all_three)
        for controller in (pd, spring):
            found = lw.simulate(robot, q, controller=wrap(controller), integrator="euler",
                                limits="ignore", **OPTIONS)  # fmt: skip
            assert np.allclose(found.q, expected, rtol=1e-10, atol=1e-12)
            assert np.allclose(found.tau[:, :-1], torques, rtol=1e-9, atol=1e-9)
            again = lw.simulate(robot, q[0], controller=wrap(controller), integrator="euler",
                                limits="ignore", **OPTIONS)  # fmt: skip
            assert np.allclose(again.q, found.q[0], rtol=1e-12, atol=1e-13)


def test_a_memory_begins_with_each_simulation(robot: lw.Robot) -> None:
    controller = lw.control.rate_limited(lw.control.pd(robot, 60.0, 1.0, [0.1, -0.4]), 10.0)
    first, second = (lw.simulate(robot, [0.0, 0.0], controller=controller, duration=0.02,
                                 limits="ignore") for _ in range(2))  # fmt: skip
    assert np.array_equal(first.q, second.q)


def test_saturation_is_compiled_and_in_laws(robot: lw.Robot) -> None:
    law = lw.control.saturated(lw.control.pd(robot, 60.0, 1.0, [0.3, -0.4]))
    assert isinstance(law, lw.control.Law)  # joint b has no limit
    assert law(0.0, [0.0, 0.0], [0.0, 0.0]).tolist() == [6.0, -24.0]
    assert law(0.0, np.zeros(2, np.float32), np.zeros(2, np.float32)).dtype == np.float32
    loops = arm().with_codegen("rolled")
    same = lw.control.saturated(lw.control.pd(loops, 60.0, 1.0, [0.3, -0.4]))
    assert same(0.0, [0.0, 0.0], [0.0, 0.0]).tolist() == [6.0, -24.0]
    nothing = lw.control.saturated(lw.control.zero(robot))
    assert nothing(0.0, [0.0, 0.0], [0.0, 0.0]).tolist() == [0.0, 0.0]


def test_messages(robot: lw.Robot) -> None:
    control, pd = lw.control, lw.control.pd(robot, 1.0, 1.0)
    with pytest.raises(TypeError, match=r"saturated: limit is None.* expected limit=robot"):
        control.saturated(spring)
    assert control.saturated(spring, robot)(0.0, np.zeros(2), np.zeros(2)).tolist() == [6.0, -24.0]
    with pytest.raises(TypeError, match=r"delayed: controller is a int; expected a law"):
        control.delayed(3, 0.1)
    with pytest.raises(ValueError, match=r"delayed: delay is -1; expected seconds"):
        control.delayed(pd, -1)
    with pytest.raises(ValueError, match=r"rate_limited: rate is 0; expected positive"):
        control.rate_limited(pd, 0)
    with pytest.raises(ValueError, match=r"delay 0.0015 is 1.5 steps of dt 0.001; .* delay=0.002"):
        lw.simulate(robot, [0.0, 0.0], controller=control.delayed(pd, 0.0015))
    with pytest.raises(ValueError, match=r"hold=False, and the controller is rate-limited: .*"):
        lw.simulate(robot, [0.0, 0.0], controller=control.rate_limited(pd, 5.0), hold=False)
    with pytest.raises(TypeError, match=r"a delayed controller has a memory"):
        control.delayed(pd, 0.1)(0.0, [0.0, 0.0], [0.0, 0.0])
    for limit in ([1, 2, 3], []):
        with pytest.raises(ValueError, match=r"saturated: limit has shape .* expected a number or"):
            control.saturated(pd, limit)
        with pytest.raises(ValueError, match=r"rate_limited: rate has shape .* expected a number"):
            control.rate_limited(control.delayed(pd, 0.1), limit)
        with pytest.raises(ValueError, match=r"limit has shape .* returned torques of shape"):
            control.saturated(spring, limit)(0.0, np.zeros(2), np.zeros(2))
        with pytest.raises(ValueError, match=r"rate has shape .* returned torques of shape"):
            lw.simulate(robot, [0.0, 0.0], controller=control.rate_limited(spring, limit))
    with pytest.raises(ValueError, match=r"saturated: limit is \[\[1, 2\], \[3\]\]; expected torq"):
        control.saturated(pd, [[1, 2], [3]])
    with pytest.raises(ValueError, match=r"saturated: the controller returned NoneType; expected"):
        control.saturated(lambda t, q, qd: None, 5.0)(0.0, np.zeros(2), np.zeros(2))
    for delay in (10**400, 1e300, np.inf):
        with pytest.raises(ValueError, match=r"delayed: delay is .*; expected seconds, 0 to 1e"):
            control.delayed(pd, delay)


def test_a_delay_takes_memory_for_the_steps_that_were_taken(robot: lw.Robot) -> None:
    late = lw.control.delayed(spring, 1e9)  # 10¹² steps
    found = lw.simulate(robot, [0.1, 0.3], controller=late, duration=0.01, limits="ignore")
    assert (found.tau == found.tau[0]).all() and np.isfinite(found.q).all()


def test_what_remembers_asks_of_its_law_what_simulate_asks_of_a_law(robot: lw.Robot) -> None:
    three = lw.control.constant(robot, lw.control.PerStep(np.ones((3, 2))))
    for wrap in (
        lambda law: lw.control.delayed(law, 0.001),
        lambda law: lw.control.saturated(lw.control.rate_limited(law, 5.0), 1.0),
    ):
        with pytest.raises(ValueError, match=r"numbers for 3 steps; expected at least 10"):
            lw.simulate(robot, [0.0, 0.0], controller=wrap(three), duration=0.01)
        other = lw.control.zero(lw.chain(3))
        with pytest.raises(ValueError, match=r"made for robot .* joint 0 is 'a' and 'joint1'"):
            lw.simulate(robot, [0.0, 0.0], controller=wrap(other), duration=0.01)
        with pytest.raises(TypeError, match=r"expected a function of three arguments"):
            lw.simulate(robot, [0.0, 0.0], controller=lw.control.delayed(lambda t, q: q, 0.0))


def test_controllers_and_their_trajectories_can_be_pickled(robot: lw.Robot) -> None:
    control, pd = lw.control, lw.control.pd(robot, 60.0, 1.0)
    for controller in (
        control.rate_limited(pd, 50.0),
        control.saturated(control.delayed(spring, 0.002), 3.0),
        control.delayed(control.saturated(spring, 3.0), 0.002),
        control.saturated(spring, 3.0),
    ):
        runs = [
            lw.simulate(robot, [0.1, 0.3], controller=x, duration=0.01, limits="ignore")
            for x in (controller, pickle.loads(pickle.dumps(controller)))
        ]
        assert np.array_equal(*(run.q for run in runs))
        assert np.array_equal(pickle.loads(pickle.dumps(runs[0])).tau, runs[0].tau)


def test_what_wraps_a_controller_reaches_the_innermost_function() -> None:
    """So that a function is given the arrays of another library, and returns them."""
    control, calls = lw.control, []

    def wrap(controller: Any) -> Any:
        calls.append(controller)
        return lambda t, q, qd: 2.0 * controller(t, q, qd)

    zero, limited = np.zeros(2), control.saturated(control.saturated(spring, 40.0), 39.0)
    assert np.allclose(limited.around(wrap)(0.0, zero, zero), [36.0, -39.0])
    late = control.delayed(limited, 0.0).around(wrap).begun(1e-3)
    assert np.allclose(late(0.0, zero, zero), [36.0, -39.0]) and calls == [spring, spring]
