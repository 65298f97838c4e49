"""Small robots with every kind of joint, and derivatives of their functions by complex steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.configurations import rate
from linkwise.backends.reference import interpret
from linkwise.differentiation.plan import Plan
from linkwise.trace.tracer import trace

STEP = 1e-40
KINDS = {
    "flying": ("free", "revolute", "follower"),
    "ball": ("spherical", "prismatic", "revolute", "helical", "revolute"),
    "plane": ("planar", "universal", "helical", "revolute", "prismatic"),
    "arm": ("revolute", "prismatic", "revolute", "helical", "revolute", "revolute", "revolute"),
}


@cache
def small_robot(name: str) -> lw.Robot:
    """A chain of joints with rotors and viscous friction."""
    b, rng, parent = lw.Builder(name), np.random.default_rng(7), "base"
    for i, kind in enumerate(KINDS[name]):
        follows = kind == "follower"
        b = b.link(f"link{i}", mass=1.0 + i, com=rng.uniform(0.1, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        b = b.joint(f"joint{i}", "revolute" if follows else kind, parent=parent, child=f"link{i}",
                    axis=(0.0, 0.6, 0.8), second_axis=(1.0, 0.0, 0.0),
                    pitch=0.1 if kind == "helical" else 0.0,
                    xyz=rng.uniform(0.1, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3),
                    damping=0.2 if kind == "revolute" else 0.0,
                    mimic=(f"joint{i - 1}", 0.5, 0.0) if follows else None)  # fmt: skip
        parent = f"link{i}"
    return b.build(friction=True)


@pytest.fixture(scope="session")
def small() -> Callable[[str], lw.Robot]:
    return small_robot


def columns(plan: Plan, values: dict[str, Any]) -> list[tuple[str, np.ndarray]]:
    """How the numbers of each argument change at each of its rates: (port, row) pairs."""
    found = []
    for k in plan.chosen:
        port = plan.ports[k]
        unit = np.eye(plan.space(k).size)
        if port.name.startswith("q") and port.size == plan.tree.nq:
            x = list(values[port.name])
            unit = np.array([rate(plan.tree, x, list(e)) for e in unit], float)
        found += [(port.name, row) for row in unit]
    return found


def complex_step(plan: Plan, values: dict[str, Any]) -> np.ndarray:
    """The Jacobian (rates of the result, rates): the function's program in complex numbers."""
    steps = columns(plan, values)
    inputs = {
        port.name: np.tile(np.asarray(values[port.name], complex), (len(steps), 1))
        for port in plan.ports
    }
    for k, (name, row) in enumerate(steps):
        inputs[name][k] += 1j * STEP * row
    found = interpret(trace(plan.task, plan.tree), inputs)["result"]
    numbers = found.reshape(len(steps), -1)
    return in_tangent_space(plan, numbers.real[0], numbers.imag / STEP).T


def in_tangent_space(plan: Plan, y: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Changes (..., numbers) of poses as twists, of configurations as rates by least squares."""
    if plan.task.algorithm.function in ("forward_kinematics", "link_poses"):
        T, dT = y.reshape(-1, 4, 4), changes.reshape(len(changes), -1, 4, 4)
        W = dT[..., :3, :3] @ T[:, :3, :3].swapaxes(1, 2)
        turn = np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], -1)
        return np.concatenate([turn, dT[..., :3, 3]], -1).reshape(len(changes), -1)
    if plan.task.algorithm.output == ("nq",):
        basis = np.array([rate(plan.tree, list(y), list(e)) for e in np.eye(plan.tree.nv)], float)
        return np.linalg.lstsq(basis.T, changes.T, rcond=None)[0].T
    return changes


@pytest.fixture(scope="session", name="complex_step")
def _complex_step() -> Callable[..., np.ndarray]:
    return complex_step
