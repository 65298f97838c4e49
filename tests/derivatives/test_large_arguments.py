"""Derivatives of large robots take the same arguments, and give the same shapes, as others do."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

LARGE = lw.chain(101, "random", seed=1)
SMALL = lw.chain(6, "random", seed=1)


def states(robot: lw.Robot) -> list[np.ndarray]:
    return list(0.3 * np.random.default_rng(0).normal(size=(3, robot.nv)))


@pytest.mark.parametrize("robot", [LARGE, SMALL], ids=["large", "small"])
def test_weights_of_many_rows_give_a_value_for_each(robot: lw.Robot) -> None:
    weights = np.random.default_rng(1).normal(size=(5, robot.nv))
    value, gradients = robot.vjp("inverse_dynamics", tuple(states(robot)), weights)
    assert value.shape == (5, robot.nv) and all(g.shape == (5, robot.nv) for g in gradients)
    assert (value == value[0]).all()


@pytest.mark.parametrize("robot", [LARGE, SMALL], ids=["large", "small"])
def test_an_out_that_does_not_fit_is_refused(robot: lw.Robot) -> None:
    n, given = robot.nv, states(robot)
    rates = robot.derivative("inverse_dynamics", ("q", "qd"))
    many = [np.stack([x] * 6) for x in given]
    with pytest.raises(ValueError, match=r"out has shape \(3, 2, .*expected \(6, "):
        rates(*many, out=np.empty((3, 2, 2 * n * n)))
    with pytest.raises(TypeError, match="out has dtype float32; expected float64"):
        rates(*given, out=np.empty(2 * n * n, np.float32))
    with pytest.raises(TypeError, match="out has dtype float32; expected float64"):
        robot.inverse_dynamics_derivatives(*given, out=np.empty((3 * n + 1, n), np.float32))
    with pytest.raises(ValueError, match=r"out has shape \(4, .*expected \("):
        robot.inverse_dynamics_derivatives(*given, out=np.empty((4, 3 * n + 1, n)))
