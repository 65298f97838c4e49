"""Rodriguez and Kreutz: the factors of M and M⁻¹, and forward dynamics by them."""

from __future__ import annotations

import pickle
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import aba, operator_dynamics
from linkwise.study.generic import generic_chain

METHODS = ["fd1", "fd2", "fd3", "fd4"]


IIWA = pytest.param("iiwa14", marks=pytest.mark.full)


@pytest.fixture(scope="module", params=["puma560", IIWA, "tree"])
def robot(request: pytest.FixtureRequest, random_robot: Any) -> lw.Robot:
    if request.param == "tree":
        return lw.Robot(random_robot(np.random.default_rng(5), 6))
    return lw.load(request.param)


def test_factors_of_the_mass_matrix(robot: lw.Robot, rng: np.random.Generator) -> None:
    q = rng.normal(size=(4, robot.nq))
    M, f = robot.mass_matrix(q), robot.innovations(q)
    rebuilt = f.factor @ (f.D[..., None] * np.swapaxes(f.factor, -1, -2))
    assert np.abs(rebuilt - M).max() <= 1e-13 * np.abs(M).max()
    assert (f.D > 0).all()
    assert f.D.shape == (4, robot.nv)
    assert (np.tril(f.factor) == np.eye(robot.nv)).all()  # unit triangular
    F, D = f
    assert (F == f.factor).all()
    assert (D == f.D).all()
    assert repr(f) == f"<Innovations M = F D Fᵀ: {(4, robot.nv)}>"


def test_factors_of_the_inverse(robot: lw.Robot, rng: np.random.Generator) -> None:
    q = rng.normal(size=(4, robot.nq))
    direct, inverse = robot.innovations(q), robot.innovations(q, inverse=True)
    # (1 - HΨL)(1 + HΦL) = 1, and the pivots are each other's inverses
    product = inverse.factor @ direct.factor
    assert np.abs(product - np.eye(robot.nv)).max() <= 1e-13 * np.abs(direct.factor).max() ** 2
    np.testing.assert_allclose(inverse.D * direct.D, 1.0, rtol=1e-15)
    rebuilt = np.swapaxes(inverse.factor, -1, -2) @ (inverse.D[..., None] * inverse.factor)
    for method in ("innovations", "crba", "aba"):
        M_inv = robot.mass_matrix_inverse(q, method=method)
        assert np.abs(rebuilt - M_inv).max() <= 1e-12 * np.abs(M_inv).max()


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
def test_a_factor_is_applied_without_being_formed(
    robot: lw.Robot, inverse: bool, transpose: bool, rng: np.random.Generator
) -> None:
    q, x = rng.normal(size=(4, 1, robot.nq)), rng.normal(size=(4, 3, robot.nv))
    f = robot.innovations(q, inverse=inverse)
    F = np.swapaxes(f.factor, -1, -2) if transpose else f.factor
    expected = np.einsum("...ij,...j->...i", F, x)
    assert f.apply(x, transpose=transpose).shape == (4, 3, robot.nv)
    bound = 1e-13 * np.abs(robot.innovations(q).factor).max() ** 2
    assert np.abs(f.apply(x, transpose=transpose) - expected).max() <= bound


def test_applying_a_factor_costs_the_same_for_every_further_joint() -> None:
    for name in ("apply_factor", "apply_factor_inverse_transpose", "solve_mass"):
        chains = [lw.Robot(generic_chain(n)) for n in (8, 12, 16)]
        few, more, most = (robot.operation_count(name).total for robot in chains)
        assert most - more == pytest.approx(more - few, rel=0.05)  # O(n), not O(n²): rel 0.5


@pytest.mark.parametrize(
    ("base", "joints"), [("fixed", 7), ("free", 3), pytest.param("free", 9, marks=pytest.mark.full)]
)
def test_factors_of_every_joint_kind(
    base: str,
    joints: int,
    random_robot: Any,
    random_states: Any,
    all_kinds: Any,
    rng: np.random.Generator,
) -> None:
    robot = lw.Robot(random_robot(rng, joints, kinds=all_kinds, base=base))
    q, _, x = random_states(robot, rng, 5)
    M, f, g = robot.mass_matrix(q), robot.innovations(q), robot.innovations(q, inverse=True)
    rebuilt = f.factor @ (f.D[..., None] * np.swapaxes(f.factor, -1, -2))
    assert np.abs(rebuilt - M).max() <= 1e-13 * np.abs(M).max()
    M_inv = robot.mass_matrix_inverse(q, method="innovations")
    bound = 1e-15 * np.linalg.cond(M).max() * np.abs(M_inv).max()
    assert np.abs(M_inv - np.linalg.inv(M)).max() <= bound
    solved = g.apply(g.D * g.apply(x), transpose=True)
    assert np.abs(solved - robot.solve_mass(q, x)).max() <= bound * np.abs(x).max()


def _with_followers(random_robot: Any) -> lw.Robot:
    return lw.Robot(random_robot(np.random.default_rng(3), 8, mimic=True))


def test_the_inverse_of_a_robot_with_followers(
    random_robot: Any, random_states: Any, rng: np.random.Generator
) -> None:
    robot = _with_followers(random_robot)
    q, _, _ = random_states(robot, rng, 5)
    M = robot.mass_matrix(q)
    M_inv = robot.mass_matrix_inverse(q, method="innovations")
    bound = 1e-14 * np.linalg.cond(M).max() * np.abs(M_inv).max()
    assert np.abs(M_inv - np.linalg.inv(M)).max() <= bound


def test_followers_have_no_factors(random_robot: Any) -> None:
    robot = _with_followers(random_robot)
    with pytest.raises(ValueError, match=r"innovations: joint .* follows .*solve_mass"):
        robot.innovations(robot.neutral())


def test_tip_acceleration_with_followers(
    random_robot: Any, random_states: Any, rng: np.random.Generator
) -> None:
    robot = _with_followers(random_robot)
    q, qd, tau = random_states(robot, rng, 5)
    for method in ("fd2", "fd3"):
        _check_tip(robot, q, qd, tau, method, "base", {})


@pytest.mark.parametrize("axes", ["base", "body", "moving"])
@pytest.mark.parametrize("method", ["fd2", "fd3"])
def test_tip_acceleration(
    robot: lw.Robot, method: str, axes: str, rng: np.random.Generator
) -> None:
    q, qd, tau = rng.normal(size=(3, 20, robot.nv))
    _check_tip(robot, q, qd, tau, method, axes, {robot.frame_names[-2]: rng.normal(size=6)})


def _check_tip(
    robot: lw.Robot,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    method: str,
    axes: str,
    push: dict[str, np.ndarray],
) -> None:
    """α(0) is J θ̈ + J̇ θ̇."""
    frame = robot.frame_names[-1]
    qdd = robot.forward_dynamics(q, qd, tau, f_ext=push)
    J = robot.jacobian(q, frame, axes=axes.replace("moving", "body"))
    expected = np.einsum("...ij,...j->...i", J, qdd)
    expected += robot.jacobian_dot_qd(q, qd, frame, axes=axes)
    actual = robot.tip_acceleration(q, qd, tau, frame, method=method, axes=axes, f_ext=push)
    cond = np.linalg.cond(robot.mass_matrix(q)).max()
    assert np.abs(actual - expected).max() <= 1e-15 * cond * np.abs(qdd).max()


@pytest.mark.parametrize("method", METHODS)
def test_operator_methods_agree_with_articulated_bodies(
    robot: lw.Robot, method: str, rng: np.random.Generator, assert_close: Any
) -> None:
    q, qd, tau = rng.normal(size=(3, 50, robot.nv))
    f_ext = {robot.frame_names[-1]: rng.normal(size=6)}
    expected = robot.forward_dynamics(q, qd, tau, method="aba", f_ext=f_ext)
    actual = robot.forward_dynamics(q, qd, tau, method=method, f_ext=f_ext)
    cond = np.linalg.cond(robot.mass_matrix(q))
    size = np.abs(np.linalg.solve(robot.mass_matrix(q), robot.bias(q, qd)[..., None])).max((1, 2))
    assert_close(actual, expected, cond=cond, scale=np.abs(expected).max(axis=1) + size)


def test_applying_the_inverse(robot: lw.Robot, rng: np.random.Generator, assert_close: Any) -> None:
    """Several right-hand sides are one more leading axis."""
    q, rhs = rng.normal(size=(20, 1, robot.nq)), rng.normal(size=(20, 3, robot.nv))
    x = robot.solve_mass(q, rhs)
    M = robot.mass_matrix(q)
    assert_close(np.einsum("...ij,...j->...i", M, x), rhs, cond=np.linalg.cond(M))


def test_bias_inside_keeps_digits_on_a_long_chain() -> None:
    """FD1 subtracts the bias first and loses digits that FD3 and FD4 keep."""
    rows = [lw.DHRow(a=0.3, alpha=0.3 * (-1) ** i, mass=1.0, com=(-0.15, 0.0, 0.0),
                     inertia=(1e-3, 8e-3, 8e-3)) for i in range(60)]  # fmt: skip
    robot = lw.from_dh(rows)
    q = (0.1 * np.sin(np.arange(60.0))).tolist()
    zero = [0.0] * 60
    with mpmath.workdps(50):
        exact = aba.aba(
            robot.tree.with_constants_like(mpmath.mpf(1)),
            [mpmath.mpf(x) for x in q],
            [mpmath.mpf(0)] * 60,
            [mpmath.mpf(0)] * 60,
        )
    truth = np.array([float(x) for x in exact])

    def error(driver: Any) -> float:
        found = np.array(driver(robot.tree, q, zero, zero))
        return float(np.abs(found - truth).max() / np.abs(truth).max())

    assert error(aba.aba) < 1e-13
    assert error(operator_dynamics.fd3) < 1e-11
    assert error(operator_dynamics.fd1) > 10 * error(aba.aba)


def test_factors_pickle() -> None:
    robot = lw.load("puma560")
    factors = robot.innovations(robot.random_q(seed=1, size=3))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(factors, protocol))
        for found, wanted in zip(again, factors, strict=True):
            assert np.array_equal(found, wanted)
        assert np.array_equal(again.apply(np.ones(6)), factors.apply(np.ones(6)))


def test_factors_take_status_and_device_and_refuse_out() -> None:
    robot, q = lw.chain(3), np.array([[0.1, 0.2, 0.3], [0.1, np.inf, 0.3]])
    factors, status = robot.innovations(q, status=True, device=None)
    assert status.tolist() == [lw.Status.OK, lw.Status.NOT_FINITE]
    np.testing.assert_array_equal(factors.D, robot.innovations(q).D)
    with pytest.raises(TypeError, match=r"innovations: out is a ndarray; .*robot\.compute"):
        robot.innovations(q, out=np.empty((2, 3, 3)))  # type: ignore[call-overload]


@pytest.mark.parametrize("device", ["nowhere", "cuda:77"])
def test_a_device_reaches_kic_and_factors(device: str) -> None:
    robot, q = lw.chain(3), np.zeros(3)
    with pytest.raises((ValueError, RuntimeError, ImportError)) as plain:
        robot.jacobian(q, "tip", device=device)
    for call in (robot.innovations, lambda q, **how: robot.kic(q, "tip", **how)):
        with pytest.raises(plain.type):
            call(q, device=device)
