"""Fijany and Scheid: conjugate gradients, matrix-free, each state on its own."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import mass_product as cg
from linkwise.engine.tasks import Key
from linkwise.trace.program import Repeat
from linkwise.trace.tracer import trace
from linkwise.trace.verify import verify

METHODS = ["ccg", "pcg"]


@pytest.fixture(params=["puma560", "iiwa14", "tree"])
def robot(request: pytest.FixtureRequest, random_robot: Any) -> lw.Robot:
    if request.param == "tree":
        return lw.Robot(random_robot(np.random.default_rng(5), 12))
    return lw.load(request.param)


def test_the_sweeps_multiply_by_the_mass_matrix(robot: lw.Robot, rng: np.random.Generator) -> None:
    q, p = (rng.normal(size=robot.nv).tolist() for _ in range(2))
    found = cg.times_mass(robot.tree, cg.fixed_links(robot.tree, q), p)
    expected = robot.mass_matrix(q) @ p
    assert np.abs(np.array(found) - expected).max() <= 1e-13 * np.abs(expected).max()


def test_diagonal_scaling_is_the_diagonal(robot: lw.Robot, rng: np.random.Generator) -> None:
    q, r = (rng.normal(size=robot.nv).tolist() for _ in range(2))
    scale = cg.diagonal_scaling(robot.tree, cg.fixed_links(robot.tree, q))
    expected = np.array(r) / np.diag(robot.mass_matrix(q))
    np.testing.assert_allclose(scale(r), expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_iteration_solves_forward_dynamics(
    robot: lw.Robot, method: str, rng: np.random.Generator
) -> None:
    q, qd, tau = rng.normal(size=(3, 40, robot.nv))
    expected = robot.forward_dynamics(q, qd, tau, method="aba")
    found, info = robot.forward_dynamics(q, qd, tau, method=method, tol=1e-11, status=True)
    cond = np.linalg.cond(robot.mass_matrix(q)).max()
    assert np.abs(found - expected).max() <= 1e-10 * cond * np.abs(expected).max()
    converged = info.status == lw.Status.OK
    assert (info.residual[converged] <= 1e-10).all()
    assert (info.iterations > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_state_that_does_not_converge_is_flagged_and_solved(
    method: str, rng: np.random.Generator
) -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = rng.normal(size=(3, 20, 7))
    found, info = robot.forward_dynamics(q, qd, tau, method=method, max_iterations=2, status=True)
    assert (info.status == lw.Status.NOT_CONVERGED).all() and (info.iterations == 2).all()
    assert np.array_equal(found, robot.forward_dynamics(q, qd, tau, method="aba"))


def test_states_stop_on_their_own(rng: np.random.Generator) -> None:
    """A state's result does not depend on how long its neighbours go on."""
    robot = lw.load("puma560")
    q, qd, tau = rng.normal(size=(3, 33, 6))
    start = rng.normal(size=(33, 6))
    start[::2] = robot.forward_dynamics(q, qd, tau)[::2]  # already there
    whole, info = robot.forward_dynamics(q, qd, tau, method="pcg", qdd0=start, status=True)
    assert (info.iterations[::2] == 0).all() and (info.iterations[1::2] > 0).all()
    for k in range(33):
        alone = robot.forward_dynamics(q[k], qd[k], tau[k], method="pcg", qdd0=start[k])
        assert np.array_equal(alone, whole[k])


def test_the_kernel_holds_one_loop(rng: np.random.Generator) -> None:
    robot = lw.load("iiwa14")
    program = verify(trace(robot._calls.tasks.task(Key("forward_dynamics", "pcg")), robot.tree))
    loops = [region for region in program.regions if isinstance(region, Repeat)]
    assert len(loops) == 1
    assert len(loops[0].body.nodes) < 400, "an iteration is a body, not n copies"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compute_returns_accelerations_and_nothing_behind_them(
    method: str, dtype: str, rng: np.random.Generator
) -> None:
    """Iterations and residual have arrays of their own: nothing is written past a row."""
    robot = lw.load("iiwa14")
    q, qd, tau, start = rng.normal(size=(4, 13, 7)).astype(dtype)
    room = np.full((15, 7), 7.0, dtype)
    found = robot.compute("forward_dynamics", q, qd, tau, start, method=method, out=room[1:-1])
    expected = robot.forward_dynamics(q, qd, tau, qdd0=start, method=method)
    assert found.shape == (13, 7) and np.array_equal(found, expected)
    assert (room[[0, -1]] == 7.0).all()
    _, info = robot.compute("forward_dynamics", q, qd, tau, start, method=method, status=True)
    assert info.status.dtype == np.uint16 and info.iterations.shape == (13,)


def test_a_new_tolerance_compiles_nothing(rng: np.random.Generator) -> None:
    robot = lw.load("puma560")
    q, qd, tau = rng.normal(size=(3, 9, 6))
    robot.forward_dynamics(q, qd, tau, method="pcg", status=True)
    made = len(robot._calls.kernels._kernels)
    steps = []
    for tol in (1e-2, 1e-5, 1e-12):
        _, info = robot.forward_dynamics(q, qd, tau, method="pcg", tol=tol, status=True)
        steps.append(info.iterations.sum())
    assert steps == sorted(set(steps)) and len(robot._calls.kernels._kernels) == made


def test_a_broken_state_is_flagged_and_alone(rng: np.random.Generator) -> None:
    robot = lw.load("puma560")
    q, qd, tau = rng.normal(size=(3, 9, 6))
    good = robot.forward_dynamics(q, qd, tau, method="pcg")
    tau[4, 2] = np.nan
    found, info = robot.forward_dynamics(q, qd, tau, method="pcg", status=True)
    assert np.isnan(found[4]).all() and info.status[4] == lw.Status.NOT_FINITE
    rest = np.arange(9) != 4
    assert np.array_equal(found[rest], good[rest]) and (info.status[rest] == 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "pcg", "tol": 2.0}, "tol is 2.0; expected a number between 0 and 1"),
        ({"method": "pcg", "tol": "a"}, "tol is 'a'; expected a number between 0 and 1"),
        ({"method": "ccg", "max_iterations": 0}, "max_iterations is 0; expected a positive"),
        ({"method": "ccg", "max_iterations": 1.5}, "max_iterations is 1.5; expected a positive"),
        ({"method": "aba", "tol": 1e-3}, "are for 'ccg', 'pcg'; not 'aba'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    robot = lw.load("puma560")
    with pytest.raises(ValueError, match=message):
        robot.forward_dynamics([0.0] * 6, [0.0] * 6, [0.0] * 6, **options)


@pytest.mark.parametrize("method", METHODS)
def test_float32_and_leading_axes(method: str, rng: np.random.Generator) -> None:
    robot = lw.load("puma560")
    q, qd, tau = rng.normal(size=(3, 2, 3, 6)).astype(np.float32)
    found = robot.forward_dynamics(q, qd, tau, method=method)
    assert found.dtype == np.float32 and found.shape == (2, 3, 6)
    exact = robot.forward_dynamics(*(x.astype(float) for x in (q, qd, tau)))
    assert np.abs(found - exact).max() <= 2e-2 * np.abs(exact).max()


@pytest.mark.parametrize("method", ["ccg", "pcg"])
def test_one_joint_and_no_load_end_without_an_error(method: str) -> None:
    """One step is exact, and nothing is left to divide by; floats, mpmath and kernels alike."""
    robot = lw.from_dh([{"a": 0.5, "mass": 2.0, "com": (0.2, 0.0, 0.0)}])
    values = ([0.3], [0.0], [5.0], [0.0])
    found = robot.evaluate("forward_dynamics", *values, method=method)
    assert found[0] == pytest.approx(robot.forward_dynamics(*values[:3])[0], rel=1e-14)
    precise = [[mpmath.mpf(x) for x in row] for row in values]
    assert float(robot.evaluate("forward_dynamics", *precise, method=method)[0]) == found[0]
    held = robot.gravity_torque([0.3])
    qdd, _ = robot.forward_dynamics([0.3], [0.0], held, method=method, status=True)
    assert abs(qdd[0]) < 1e-14


@pytest.mark.parametrize("method", ["ccg", "pcg"])
def test_a_robot_without_joints_has_nothing_to_iterate(method: str) -> None:
    block = (
        lw.Builder("block")
        .link("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .joint("fixed", "fixed", parent="base", child="block")
    )
    nothing = np.zeros((3, 0))
    found, info = block.build().forward_dynamics(
        nothing, nothing, nothing, method=method, status=True
    )
    assert found.shape == (3, 0) and not info.status.any() and not info.iterations.any()


def test_no_states_give_no_results() -> None:
    robot, none = lw.load("puma560"), np.zeros((0, 6))
    assert robot.forward_dynamics(none, none, none, method="pcg").shape == (0, 6)


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", ["pcg", "ccg"])
def test_edges_of_an_iteration_are_the_same_in_both_forms(method: str, codegen: str) -> None:
    """No states; a state that is not finite, whose number may not matter; a hopeless tolerance."""
    arm = lw.load("iiwa14").with_codegen(codegen)
    q = np.full((2, 7), 0.2)
    none, info = arm.forward_dynamics(q[:0], q[0], q[0], method=method, status=True)
    assert none.shape == (0, 7) and [x.shape for x in info] == [(0,)] * 3
    assert [x.dtype for x in info] == [np.uint16, np.int64, np.float64]
    broken = q.copy()
    broken[1, 0] = np.nan  # about the vertical: no torque depends on it
    _, info = arm.forward_dynamics(broken, q, q, method=method, status=True)
    assert info.status.tolist() == [0, lw.Status.NOT_FINITE]
    assert np.isfinite(info.residual).tolist() == [True, False]
    narrow = q.astype(np.float32)
    _, info = arm.forward_dynamics(narrow, narrow, narrow, method=method, tol=1e-60, status=True)
    assert (info.status == lw.Status.NOT_CONVERGED).all()
    with pytest.raises(ValueError, match=r"q \(2, 7\), qd \(3, 7\), tau \(7,\), qdd0 \(7,\); exp"):
        arm.forward_dynamics(q, np.zeros((3, 7)), q[0], method=method)
