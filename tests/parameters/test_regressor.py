"""Torques and energies as products with the inertial parameters; tests/physics has Pinocchio's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("seed", range(6))
def test_torques_and_energies_are_linear_in_the_parameters(
    random_robot: Any, evaluate: Any, rng: Any, seed: int
) -> None:
    """Every kind of joint, branches, followers, free bases; rotors are no bodies."""
    base = "free" if seed > 3 else "fixed"
    drawing = np.random.default_rng(seed)
    robot = lw.Robot(random_robot(drawing, 7, kinds=ALL_KINDS, mimic=seed % 2 == 1, base=base))
    q = robot.random_q(rng, size=5)
    qd, qdd = rng.normal(size=(2, 5, robot.nv))
    pi, bare = robot.inertial_parameters.ravel(), robot.tree.without_rotors()
    tau = evaluate(robot, "regressor", q, qd, qdd) @ pi
    still = lw.Robot.from_tree(bare)
    expected = evaluate(still, "inverse_dynamics", q, qd, qdd)
    assert np.abs(tau - expected).max() <= 1e3 * EPS * np.abs(expected).max()
    found = np.moveaxis(evaluate(robot, "energy_regressor", q, qd) @ pi, -1, 0)
    energies = [evaluate(still, "kinetic_energy", q, qd), evaluate(still, "potential_energy", q)]
    for own, energy in zip(found, energies, strict=True):
        assert np.abs(own - energy).max() <= 1e3 * EPS * np.abs(energies).max()


ALL_KINDS = (
    "revolute", "continuous", "prismatic", "fixed", "helical", "universal", "planar", "spherical",
    "free",
)  # fmt: skip


def test_entries_are_zero_between_branches_and_inboard() -> None:
    """A joint feels the bodies that it moves, and no others."""
    robot = lw.load("iiwa14")
    Y = robot.regressor(*np.random.default_rng(0).normal(size=(3, 7))).reshape(7, 7, 10)
    for joint in range(7):
        assert (Y[joint, :joint] == 0.0).all() and (Y[joint, joint:] != 0.0).any(axis=1).all()


def test_a_robot_without_inertia_has_one() -> None:
    text = """<robot name="r"><link name="b"/><link name="a"/><joint name="j" type="continuous">
      <parent link="b"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
    robot = lw.load(text)
    Y = robot.regressor([0.3], [0.5], [0.7])
    weight = 9.81 * np.array([0.0, -np.cos(0.3), 0.0, np.sin(0.3)])
    assert np.allclose(Y, [[*(weight * [1, 1, 1, -1]), 0, 0, 0.7, 0, 0, 0]])


def test_parameters_and_regressor_meet(rng: Any) -> None:
    """Gravity as an argument of the regressor; the regressor of the inertia that is an argument."""
    robot = lw.load("iiwa14").parametric("gravity", "inertia")
    q, qd, qdd = rng.normal(size=(3, 4, 7))
    heavy = robot.inertial_parameters * rng.uniform(0.5, 1.5, (7, 10))
    g = [1.0, 2.0, -3.0]
    tau = robot.regressor(q, qd, qdd, gravity=g) @ heavy.ravel() + robot.armature * qdd
    expected = robot.inverse_dynamics(q, qd, qdd, gravity=g, inertia=heavy)
    assert np.abs(tau - expected).max() <= 1e3 * EPS * np.abs(expected).max()
