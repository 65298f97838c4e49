"""Configurations with quaternions that are far from unit length warn once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import StateWarning


def said(function: Any, *args: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StateWarning)
        function(*args, **options)
    assert all(x.category is StateWarning for x in caught)
    return [str(x.message) for x in caught]


@pytest.fixture
def robot() -> lw.Robot:
    return lw.load("puma560", base="free")


def test_the_first_call_of_a_function_names_row_and_norm(robot: lw.Robot) -> None:
    q = robot.random_q(seed=0, size=(2, 3))
    assert said(robot.gravity_torque, q) == []
    q[1, 2, :4] *= 0.3
    (text,) = said(robot.with_gravity((0, 0, -1)).gravity_torque, q)
    assert "q[1, 2, 0:4] has the norm 0.3 (1 of 6 rows" in text and "(w, x, y, z)" in text
    assert "robot.from_pinocchio_q" in text
    (text,) = said(robot.bias, q[1, 2], np.zeros(12))
    assert "q[0:4] has the norm 0.3 and" in text


def test_pinocchio_order_and_what_does_not_warn(robot: lw.Robot) -> None:
    q = robot.neutral()
    q[4:7] = 0.7, -0.5, 0.2
    pinocchio = np.r_[q[4:7], q[1:4], q[0], q[7:]]
    assert len(said(robot.gravity_torque, pinocchio)) == 1
    off = q * np.r_[[1.005] * 4, [1.0] * 9]
    assert said(robot.bias, off, np.zeros(12)) == []
    bad = q.copy()
    bad[:4] *= 2.0
    assert said(robot.normalize, bad) == []
    assert said(robot.mass_matrix, bad, status=True) == []  # the status says it
    bad[0] = np.nan
    assert said(robot.center_of_mass, bad) == []
    assert said(lw.chain(3).bias, [2.0, 3.0, 4.0], [0.0] * 3) == []


def test_simulations_look_at_every_row(robot: lw.Robot) -> None:
    robot = robot.with_payload("base", 5.0, inertia=(1, 1, 1))
    q = np.tile(robot.neutral(), (4, 1))
    q[2:, 0] = 1.1
    for _ in range(2):  # the second finds all compiled
        (text,) = said(lw.simulate, robot, q, duration=0.002, limits="ignore")
        assert "simulate: the quaternion q0[2, 0:4] has the norm 1.1 (2 of 4 rows" in text


def test_a_quaternion_of_zeros_is_not_said_to_be_normalised(robot: lw.Robot) -> None:
    pinocchio = np.r_[np.zeros(6), 1.0, np.zeros(6)]  # its neutral configuration
    (text,) = said(robot.gravity_torque, pinocchio)
    assert "q[0:4] has the norm 0 and cannot be normalised" in text
    for _ in range(2):
        (text,) = said(lw.control.pd, robot, 1.0, 1.0, target=pinocchio)
        assert "pd: the quaternion target[0:4] has the norm 0" in text
