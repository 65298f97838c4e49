"""Contacts that can only push: states in which they pull are flagged, and warned of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ContactWarning

UP = [0, 0, 0, 1, 1, 1]


def standing(unilateral: Any = (0, 0, 2.0), **options: Any) -> lw.Robot:
    """A body on two points of the ground, with a mass that an arm holds beyond them."""
    b = lw.Builder("standing")
    b.link("body", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.link("arm", mass=3.0, com=(0.5, 0, 0), inertia=(0.05, 0.05, 0.05))
    b.joint("shoulder", "continuous", parent="body", child="arm", axis=(0, 1, 0))
    b.frame("front", "body", xyz=(0.2, 0.0, -0.3))
    b.frame("left", "body", xyz=(-0.2, 0.2, -0.3))
    b.frame("right", "body", xyz=(-0.2, -0.2, -0.3))
    robot = b.build(base="free")
    feet = [
        lw.Loop(name, None, rows, unilateral=unilateral)
        for name, rows in (("front", [0, 0, 0, 1, 1, 1]), ("left", [0, 0, 0, 0, 1, 1]),
                           ("right", [0, 0, 0, 0, 0, 1]))
    ]  # fmt: skip
    return robot.close_loops(feet, at=robot.neutral(), **options)


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    return standing()


def said(function: Any, *args: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args, **options)
    assert all(x.category is ContactWarning for x in caught)
    return [str(x.message) for x in caught]


def states(robot: lw.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arm points up, forward, and forward while it is pushed down."""
    q = np.tile(robot.neutral(), (3, 1))
    q[0, -1] = -np.pi / 2
    tau = np.zeros((3, 7))
    tau[:, -1] = -3.0 * 9.81 * 0.5 * np.array([0.0, 1.0, -0.5])
    return q, np.zeros((3, 7)), tau


@pytest.mark.parametrize("method", ["ltl", "pv"])
def test_the_status_is_that_of_the_forces(robot: lw.Robot, method: str) -> None:
    q, qd, tau = states(robot)
    forces, also = robot.constraint_forces(q, qd, tau, status=True, method=method)
    pulls = (forces[..., 5] < -1e-6).any(-1)
    assert pulls.any() and not pulls.all()
    expected = np.where(pulls, int(lw.Status.PULLING), 0)
    qdd, status = robot.forward_dynamics(q, qd, tau, status=True, method=method)
    assert np.array_equal(status, expected) and np.array_equal(also, expected)
    both_ways = standing(None)
    assert np.array_equal(both_ways.forward_dynamics(q, qd, tau, method=method), qdd)
    assert not both_ways.forward_dynamics(q, qd, tau, status=True, method=method)[1].any()


def test_the_normal_is_in_the_axes_of_the_other_frame() -> None:
    q, qd, tau = (x[1] for x in states(standing()))
    _, pushed = standing((0, 0, -1.0)).forward_dynamics(q, qd, tau, status=True)
    _, usual = standing((0, 0, 1.0)).forward_dynamics(q, qd, tau, status=True)
    assert pushed == usual == lw.Status.PULLING  # one foot pulls and one pushes, either way
    with pytest.raises(ValueError, match=r"unilateral is \(0, 0, 0\); expected a direction"):
        standing((0, 0, 0))
    for wrong in (True, (0, 1)):
        with pytest.raises(ValueError, match=r"a direction \(3 numbers\), such as \(0, 0, 1\)"):
            standing(wrong)


def test_calls_and_simulations_warn_once(robot: lw.Robot) -> None:
    q, qd, tau = states(robot)
    pulls = robot.constraint_forces(q, qd, tau, status=True)[1] > 0
    first = int(pulls.argmax())
    for function in (robot.forward_dynamics, robot.constraint_forces):
        for _ in range(2):  # the second call finds all compiled
            (text,) = said(function, q, qd, tau)
            assert f"in {int(pulls.sum())} of 3 states, the first is {first}" in text
            assert said(function, q, qd, tau, status=True) == []
            assert said(function, q[~pulls], qd[~pulls], tau[~pulls]) == []
        (text,) = said(function, q[first], qd[first], tau[first])
        assert "pulls; the result" in text
    law = lw.control.constant(robot, tau[first])
    (text,) = said(lw.simulate, robot, q[first], controller=law, duration=0.002)
    assert text.startswith("simulate: a contact that can only push pulls")
    assert said(lw.simulate, standing(None), q[first], controller=law, duration=0.002) == []
