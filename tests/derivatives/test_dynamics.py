"""Derivatives of the dynamics: against complex steps and Pinocchio, and what calls return.

tests/papers/test_agreement_all.py has every kind of joint in 50 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from every_joint import every_joint

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.bench.pinocchio import pinocchio_model
from linkwise.trace.tracer import Task, evaluate

STEP = 1e-40
VALUE = {
    "inverse_dynamics_derivatives": ("inverse_dynamics", "rnea"),
    "forward_dynamics_derivatives": ("forward_dynamics", "crba"),
}
METHODS = [(function, method) for function in VALUE for method in FUNCTIONS[function]]
EPS = np.finfo(float).eps


def complex_step(robot: lw.Robot, function: str, values: list[Any], q_rate: Any) -> np.ndarray:
    """The three matrices and the value, with a wrench on the last frame."""
    base, method = VALUE[function]
    task = Task(FUNCTIONS[base][method], external=(robot.tree.frames[robot.frame_names[-1]],))

    def run(*state: Any) -> np.ndarray:
        rows = [list(np.asarray(x, complex)) for x in (*state, values[3])]
        return np.array(evaluate(task, robot.tree, *rows))

    q, qd, u = values[:3]
    unit = np.eye(robot.nv)
    turns = q_rate(robot, np.repeat(q[None], robot.nv, 0), unit)
    columns = [
        [run(q + 1j * STEP * d, qd, u).imag / STEP for d in turns],
        [run(q, qd + 1j * STEP * d, u).imag / STEP for d in unit],
        [run(q, qd, u + 1j * STEP * d).imag / STEP for d in unit],
    ]
    return np.concatenate([*(np.array(c).T for c in columns), [run(q, qd, u).real]])


@pytest.mark.parametrize(("function", "method"), METHODS)
def test_every_joint_kind_has_the_derivatives_of_a_complex_step(
    function: str, method: str, q_rate: Any
) -> None:
    robot, rng = every_joint(damping=0.2), np.random.default_rng(2)
    values = [robot.random_q(seed=3), *rng.normal(size=(2, robot.nv)), 5.0 * rng.normal(size=6)]
    task = Task(FUNCTIONS[function][method], external=(robot.tree.frames[robot.frame_names[-1]],))
    found = np.array(evaluate(task, robot.tree, *map(list, values)), float)
    expected = complex_step(robot, function, values, q_rate)
    condition = np.linalg.cond(robot.mass_matrix(values[0]))
    for part, right in zip(np.split(found[:-1], 3), np.split(expected[:-1], 3), strict=True):
        limit = 20 * EPS * (condition if function[0] == "f" else 1.0)
        assert np.abs(part - right).max() <= limit * np.abs(right).max()
    assert np.allclose(found[-1], expected[-1], rtol=1e-10)


@pytest.mark.full
@pytest.mark.parametrize("function", VALUE)
def test_real_robots_have_pinocchios_derivatives(real_robot: Any, function: str) -> None:
    """`tools/derivatives.py --agreement` has every robot of docs/agreement.md."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot, rng = real_robot.robot, np.random.default_rng(5)
    model = pinocchio_model(robot)
    data, q = model.createData(), robot.random_q(rng, size=3)
    qd, u = rng.normal(size=(2, 3, robot.nv))
    inverse = function[0] == "i"
    theirs = pin.computeRNEADerivatives if inverse else pin.computeABADerivatives
    names = ("tau", "dtau_dq", "dtau_dv") if inverse else ("ddq", "ddq_dq", "ddq_dv")
    found = getattr(robot, function)(q, qd, u, value=True)
    for k in range(3):
        theirs(model, data, q[k], qd[k], u[k])
        scale = 1.0 if inverse else np.linalg.cond(robot.mass_matrix(q[k]))
        close(found, k, [getattr(data, name) for name in names], 1e-13 * scale)


@pytest.mark.parametrize("function", VALUE)
def test_a_quaternion_may_have_any_length(function: str) -> None:
    robot, rng = every_joint(damping=0.2), np.random.default_rng(2)
    q, (qd, u) = robot.random_q(seed=3), rng.normal(size=(2, robot.nv))
    longer = q.copy()
    longer[:4] *= 3.0
    for method in FUNCTIONS[function]:
        task = Task(FUNCTIONS[function][method])
        a, b = (np.array(evaluate(task, robot.tree, *map(list, (x, qd, u)))) for x in (q, longer))
        assert np.abs(a - b).max() <= 1e-11 * np.abs(a).max()


def test_derivatives_of_an_arm_are_pinocchios() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot = lw.load("puma560")
    model = pinocchio_model(robot)
    data, rng = model.createData(), np.random.default_rng(5)
    q, qd, u = rng.uniform(-2, 2, (3, 9, 6))
    ours = robot.inverse_dynamics_derivatives(q, qd, u, value=True)
    there = robot.forward_dynamics_derivatives(q, qd, u, value=True)
    for k in range(9):
        pin.computeRNEADerivatives(model, data, q[k], qd[k], u[k])
        expected = [data.tau, data.dtau_dq, data.dtau_dv]
        close(ours, k, [x.copy() for x in expected], 1e-12)
        pin.computeABADerivatives(model, data, q[k], qd[k], u[k])
        close(there, k, [data.ddq, data.ddq_dq, data.ddq_dv], 1e-11)


def close(found: Any, k: int, expected: Any, limit: float) -> None:
    for part, right in zip(found, expected, strict=False):
        assert np.abs(part[k] - right).max() <= limit * np.abs(right).max()


def test_what_calls_return() -> None:
    robot, rng = lw.load("puma560"), np.random.default_rng(5)
    q, qd, u = rng.uniform(-2, 2, (3, 5, 6))
    by_q, by_qd, M = robot.inverse_dynamics_derivatives(q, qd, u)
    assert np.abs(M - robot.mass_matrix(q)).max() <= 1e-13 * np.abs(M).max()
    out = np.empty((5, 19, 6))
    (tau, *rest), bits = robot.inverse_dynamics_derivatives(
        q, qd, u, value=True, status=True, out=out
    )
    assert not bits.any() and all(np.shares_memory(x, out) for x in (tau, *rest))
    assert (rest[0] == by_q).all() and (rest[1] == by_qd).all()
    assert np.abs(tau - robot.inverse_dynamics(q, qd, u)).max() <= 1e-12 * np.abs(tau).max()
    one = robot.inverse_dynamics_derivatives(q[2], qd[2], u[2])
    assert all((a == b[2]).all() for a, b in zip(one, (by_q, by_qd, M), strict=True))
    qdd, *_, inverse = robot.forward_dynamics_derivatives(q, qd, u, value=True)
    assert np.abs(inverse @ M - np.eye(6)).max() < 1e-11
    assert np.abs(qdd - robot.forward_dynamics(q, qd, u, method="crba")).max() <= 1e-11


def test_mistakes_are_named() -> None:
    robot, q = lw.load("puma560"), np.zeros(6)
    with pytest.raises(ValueError, match="method 'analytic': inverse_dynamics_derivatives expects"):
        robot.inverse_dynamics_derivatives(q, q, q, method="analytic")
    with pytest.raises(ValueError, match=r"^forward_dynamics_derivatives: qd has shape \(5,\)"):
        robot.forward_dynamics_derivatives(q, q[:5], q)


def test_constants_are_arguments_here_too():
    robot = lw.load("puma560")
    state = np.full(6, 0.3)
    light = robot.with_gravity((0.0, 0.0, -1.62))
    by_q, _, _ = robot.parametric("gravity").inverse_dynamics_derivatives(
        state, state, state, gravity=(0.0, 0.0, -1.62)
    )
    expected, _, _ = light.inverse_dynamics_derivatives(state, state, state)
    np.testing.assert_allclose(by_q, expected, rtol=1e-12, atol=1e-12)


def test_one_state_after_another_never_writes_to_what_somebody_still_has() -> None:
    """The compiled entry uses arrays of an earlier call again, where nobody has a part of them."""
    robot, rng = lw.load("puma560"), np.random.default_rng(5)
    q, qd, u = rng.uniform(-2, 2, (3, 8, 6))
    states = [[x.copy() for x in state] for state in zip(q, qd, u, strict=True)]
    expected = robot.inverse_dynamics_derivatives(q, qd, u)
    robot.inverse_dynamics_derivatives(*states[0])
    kept = [robot.inverse_dynamics_derivatives(*state) for state in states]
    parts = [robot.inverse_dynamics_derivatives(*state)[k % 3] for k, state in enumerate(states)]
    wholes = [robot.inverse_dynamics_derivatives(*state)[0].base for state in states]
    for k, (three, part, whole) in enumerate(zip(kept, parts, wholes, strict=True)):
        assert all((a == b[k]).all() for a, b in zip(three, expected, strict=True))
        assert (part == expected[k % 3][k]).all() and (whole[:6] == expected[0][k]).all()


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
def test_a_matrix_that_its_owner_changed_comes_back_as_it_should_be() -> None:
    robot, state = lw.load("puma560"), [np.full(6, 0.3)] * 3
    expected = [x.copy() for x in robot.inverse_dynamics_derivatives(*state)]
    call = type(robot).inverse_dynamics_derivatives
    for change in (
        lambda x: setattr(x, "shape", (36,)),
        lambda x: setattr(x.flags, "writeable", False),
        lambda x: x.fill(9.0),
    ):
        change(call(robot, *state)[1])
        found = call(robot, *state)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))
        assert all(x.flags.writeable for x in found)
