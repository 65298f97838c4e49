"""Rodriguez and Kreutz: the factors of M and M⁻¹, and forward dynamics by them."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import aba, crba, innovations

METHODS = ["fd1", "fd3", "fd4"]


@pytest.fixture(params=["puma560", "iiwa14", "tree"])
def robot(request: pytest.FixtureRequest, random_robot: Any) -> lw.Robot:
    if request.param == "tree":
        return lw.Robot(random_robot(np.random.default_rng(5), 12))
    return lw.load(request.param)


def test_factors_of_the_mass_matrix(robot: lw.Robot, rng: np.random.Generator) -> None:
    q, n = rng.normal(size=robot.nq).tolist(), robot.nv
    rows = np.array(innovations.innovations(robot.tree, q))
    L, D = rows[:n], rows[n]
    M = np.array(crba.crba(robot.tree, q))
    assert np.abs(L @ np.diag(D) @ L.T - M).max() <= 1e-13 * np.abs(M).max()
    assert (D > 0).all()


def test_factors_of_the_inverse(robot: lw.Robot, rng: np.random.Generator) -> None:
    q, n = rng.normal(size=robot.nq).tolist(), robot.nv
    direct = np.array(innovations.innovations(robot.tree, q))
    inverse = np.array(innovations.innovations(robot.tree, q, inverse=True))
    # (1 - HΨL)(1 + HΦL) = 1, and the pivots are each other's inverses
    product = inverse[:n] @ direct[:n]
    assert np.abs(product - np.eye(n)).max() <= 1e-13 * np.abs(direct[:n]).max() ** 2
    np.testing.assert_allclose(inverse[n] * direct[n], 1.0, rtol=1e-15)


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
    mpmath.mp.dps = 50
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
    assert error(innovations.fd3) < 1e-11
    assert error(innovations.fd1) > 10 * error(aba.aba)
