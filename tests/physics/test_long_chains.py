"""Identities of long chains, by every method of forward dynamics that is loops over the links.

Chains of a thousand to a hundred thousand links in every run, a million on demand (`make full`).
Errors against many digits are in docs/chain_accuracy.md; here are the laws that need no judge.
"""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LENGTHS = [1_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.full)]
SHAPES = ("uniform", "random")
# methods that are one program by one of their names; no iterations, which take n steps and more
DRIVERS = {
    algorithm.driver: name
    for name, algorithm in reversed(FUNCTIONS["forward_dynamics"].items())
    if algorithm.can_roll(lw.chain(100).tree) and not algorithm.iterates
}
METHODS = sorted(DRIVERS.values())
# Schur complements start from the inverse of each link's own inertia: what a thin rod loses there,
# three to five digits, is lost whatever the length (docs/papers/schur.md, docs/chain_accuracy.md)
LOST = {"schur": 1e4, "schur-bcr": 1e4}
State = tuple[np.ndarray, np.ndarray, np.ndarray]


def state_of(n: int) -> State:
    """Angles and rates along a wave, small random torques."""
    k = np.arange(n)
    tau = 0.01 * np.random.default_rng(n).normal(size=n)
    return 0.3 * np.sin(0.2 * k), 0.5 * np.cos(0.2 * k), tau


def calm_state_of(n: int) -> State:
    """The same with rates that add up to about half a turn in a second, whatever the length."""
    q, _, tau = state_of(n)
    return q, 3.0 / np.sqrt(n) * np.random.default_rng(1).normal(size=n), tau


def nudged(values: Sequence[np.ndarray], size: float) -> list[np.ndarray]:
    """Every number up or down by a relative size."""
    rng = np.random.default_rng(5)
    return [x * (1.0 + size * (2.0 * rng.integers(0, 2, x.shape) - 1.0)) for x in values]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", METHODS)
def test_inverse_dynamics_of_forward_dynamics_are_the_torques(
    method: str, shape: str, n: int
) -> None:
    """To a hundred times what rounding of the state and of the accelerations makes of torques, or
    what the method loses.

    Not to rounding of the torques: inverse dynamics multiplies the rounding of accelerations by M,
    whose entries grow with the third power of the length.
    """
    robot, (q, qd, tau) = lw.chain(n, shape), state_of(n)
    qdd = robot.forward_dynamics(q, qd, tau, method=method)
    found = robot.inverse_dynamics(q, qd, qdd)
    other = robot.inverse_dynamics(*nudged((q, qd, qdd), 1e-7))
    unit = np.abs(other - found).max() * np.finfo(float).eps / 1e-7
    assert np.abs(found - tau).max() <= 100 * LOST.get(method, 1.0) * unit


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("method", METHODS)
def test_energy_changes_by_the_power_of_torques_and_dampers(method: str, n: int) -> None:
    """d/dt (kinetic + potential energy) = q̇ · (tau - d q̇), along the motion itself.

    To a part of the power that both exchange, and to the rounding of energies.
    """
    damping, step = 0.01, min(1e-6, 0.1 / n)
    robot, (q, qd, tau) = lw.chain(n, "random", damping=damping), calm_state_of(n)
    qdd = robot.forward_dynamics(q, qd, tau, method=method)
    after, before = (
        robot.kinetic_energy(q + s * qd + 0.5 * s * s * qdd, qd + s * qdd)
        + robot.potential_energy(q + s * qd + 0.5 * s * s * qdd)
        for s in (step, -step)
    )
    exchanged = abs(qd @ robot.gravity_torque(q))
    energy = robot.kinetic_energy(q, qd) + abs(robot.potential_energy(q))
    assert 5e-13 * energy / step <= 1e-2 * exchanged, "else rounding hides everything"
    power = qd @ (tau - damping * qd)
    assert abs((after - before) / (2.0 * step) - power) <= 1e-5 * exchanged + 5e-13 * energy / step


@pytest.mark.parametrize("method", METHODS)
def test_the_base_bears_the_change_of_momentum(method: str) -> None:
    """Force of the base = d²/dt² Σ m r - weight, with Σ m r from energies in other gravities."""
    n, step = 1_000, 1e-4
    robot, (q, qd, tau) = lw.chain(n), calm_state_of(n)
    qdd = robot.forward_dynamics(q, qd, tau, method=method)
    force = robot.joint_wrenches(q, qd, qdd)[0, 3:]
    base = robot.forward_kinematics(q, "link1")[:3, :3]  # the wrench is in the link's axes
    moments = []
    for s in (-step, 0.0, step):
        at = q + s * qd + 0.5 * s * s * qdd
        moments.append([robot.with_gravity(axis).potential_energy(at) for axis in -np.eye(3)])
    changed = np.array([1.0, -2.0, 1.0]) @ np.array(moments) / step**2
    expected = changed - robot.tree.mass * robot.gravity
    size = robot.tree.mass * 9.81
    assert np.abs(base @ force - expected).max() <= 1e-4 * size


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_methods_agree(n: int) -> None:
    """To some hundred times what rounding of the state makes of accelerations."""
    robot, state = lw.chain(n, "random"), state_of(n)
    first, *others = (robot.forward_dynamics(*state, method=method) for method in METHODS)
    moved = robot.forward_dynamics(*nudged(state, 1e-7), method=METHODS[0])
    unit = np.abs(moved - first).max() * np.finfo(float).eps / 1e-7
    unit = max(unit, 1e-16 * np.abs(first).max())
    for method, other in zip(METHODS[1:], others, strict=True):
        assert np.abs(other - first).max() <= 200 * LOST.get(method, 1.0) * unit, method


def test_a_tether_falls_and_cracks_without_losing_energy() -> None:
    """The example on a shorter tether: energy is kept to the error of its steps."""
    whip = runpy.run_path(str(EXAMPLES / "07_whip.py"))
    n = 1_000
    tether = lw.chain(n, length=whip["LENGTH"], mass=whip["MASS"], armature=whip["FLYWHEEL"])
    frames = list(whip["fall"](tether))
    assert len(frames) == whip["FRAMES"] and frames[-1].t >= whip["END"]
    assert max(abs(frame.error) for frame in frames if frame.t < 1.3) < 1e-3
    assert max(abs(frame.error) for frame in frames) < 1e-2
    speeds = [frame.speed for frame in frames]
    assert max(speeds) > 3.0 > 2.5 > speeds[-1], "the end is fastest as it cracks"
    depth = np.array([frame.z[-1] for frame in frames])
    assert depth.min() > -1.0 and np.argmin(depth) > len(frames) // 2
