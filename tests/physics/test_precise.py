"""Every driver at 50 digits against compiled kernels (float64, float32) and plain floats.

What is left between them is rounding, times the condition number where a system is solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.trace.tracer import evaluate

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
import linkwise.spatial.precise  # noqa: E402  (teaches the algebra mpmath's numbers)

STATES = 4
DIGITS = 50
DRIVERS = [(f, m) for f, all_ in FUNCTIONS.items() for m in all_ if not all_[m].iterates]


@pytest.fixture(scope="module", params=["iiwa14", "puma560", "tree"])
def robot(request: pytest.FixtureRequest, random_robot: Any) -> lw.Robot:
    if request.param == "tree":
        return lw.Robot(random_robot(np.random.default_rng(5), 14))
    return lw.load(request.param)


@pytest.fixture
def states(robot: lw.Robot, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Numbers that float32 holds exactly, so that both kernels are given the same state."""
    values = rng.uniform(-2, 2, (5, STATES, robot.nv)).astype(np.float32).astype(np.float64)
    return dict(zip(("q", "qd", "qdd", "tau", "rhs"), values, strict=True))


def options(robot: lw.Robot, function: str, method: str) -> dict[str, Any]:
    """Keyword arguments of a driver: its method where there is a choice, the tip as its frame."""
    if function == "operational_inertia" and robot.name == "tree":
        pytest.skip("the tree's tips cannot move in six directions")
    frame = FUNCTIONS[function][method].takes_frame
    chosen = {"method": method} if len(FUNCTIONS[function]) > 1 else {}
    return chosen | ({"frame": robot.frame_names[-1]} if frame else {})


def rounded(result: Any) -> np.ndarray:
    return np.array(result, dtype=object).astype(float)


def precise(
    robot: lw.Robot, function: str, method: str, states: dict[str, np.ndarray]
) -> np.ndarray:
    """The exact result of every state, rounded to float64 at the end."""
    task = robot._calls.task(function, method, options(robot, function, method).get("frame"))
    results = []
    with mpmath.workdps(DIGITS):
        for row in rows(function, method, states):
            scalars = [[mpmath.mpf(float(x)) for x in value] for value in row]
            results.append(rounded(evaluate(task, robot.tree, *scalars)))
    return np.array(results)


def rows(function: str, method: str, states: dict[str, np.ndarray]) -> Any:
    """Arguments of a driver, state by state."""
    return zip(*(states[name] for name, _ in FUNCTIONS[function][method].inputs), strict=True)


def tolerance(
    robot: lw.Robot, function: str, exact: np.ndarray, states: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Condition numbers of the systems solved, and the size of what is added up."""
    size = np.abs(exact).reshape(STATES, -1).max(axis=1)
    cond = np.linalg.cond(robot.mass_matrix(states["q"]))
    if function == "operational_inertia":
        return {"cond": cond + np.linalg.cond(exact), "scale": size}
    solving = ("forward_dynamics", "mass_matrix_inverse", "operational_inertia_inverse")
    solves = function in solving
    extra = (states["qd"] ** 2).sum(axis=1) if function == "jacobian_dot_qd" else 0.0
    return {"cond": cond if solves else 1.0, "scale": size + extra}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("function", "method"), DRIVERS)
def test_compiled_is_right_to_rounding(
    robot: lw.Robot, function: str, method: str, dtype: Any, states: Any, assert_close: Any
) -> None:
    arguments = [states[name].astype(dtype) for name, _ in FUNCTIONS[function][method].inputs]
    actual = getattr(robot, function)(*arguments, **options(robot, function, method))
    assert actual.dtype == dtype
    exact = precise(robot, function, method, states)
    assert_close(actual, exact, dtype=dtype, **tolerance(robot, function, exact, states))


@pytest.mark.parametrize(("function", "method"), DRIVERS)
def test_plain_floats_are_right_to_rounding(
    robot: lw.Robot, function: str, method: str, states: Any, assert_close: Any
) -> None:
    chosen = options(robot, function, method)
    actual = [
        rounded(robot.evaluate(function, *(value.tolist() for value in row), **chosen))
        for row in rows(function, method, states)
    ]
    exact = precise(robot, function, method, states)
    assert_close(actual, exact, **tolerance(robot, function, exact, states))


@pytest.mark.parametrize("method", ["crba", "aba"])
def test_fifty_digits_are_fifty_digits(robot: lw.Robot, method: str, states: Any) -> None:
    """Forward dynamics undoes inverse dynamics, to all digits but those the solve costs."""
    with mpmath.workdps(DIGITS):
        q, qd, qdd = ([mpmath.mpf(float(x)) for x in states[k][0]] for k in ("q", "qd", "qdd"))
        tau = evaluate(robot._calls.task("inverse_dynamics"), robot.tree, q, qd, qdd)
        back = evaluate(robot._calls.task("forward_dynamics", method), robot.tree, q, qd, tau)
        assert max(abs(a - b) for a, b in zip(back, qdd, strict=True)) < mpmath.mpf(10) ** (
            8 - DIGITS
        )


def test_evaluate_has_as_many_digits_as_asked_for(states: Any, robot: lw.Robot) -> None:
    with mpmath.workdps(DIGITS):
        q, qd, qdd = ([mpmath.mpf(float(x)) for x in states[k][0]] for k in ("q", "qd", "qdd"))
        tau = robot.evaluate("inverse_dynamics", q, qd, qdd)
        back = robot.evaluate("forward_dynamics", q, qd, tau, method="crba")
        assert max(abs(a - b) for a, b in zip(back, qdd, strict=True)) < 1e-40
