"""Robots and an integrator of its own that simulations are judged by."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import linkwise as lw

ENGINE = Path(__file__).resolve().parents[1] / "engine" / "test_cuda.py"


@pytest.fixture(scope="module")
def host() -> ModuleType:
    """The driver that stands in for NVIDIA's."""
    spec = importlib.util.spec_from_file_location("host_of_cuda", ENGINE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["host_of_cuda"] = module
    spec.loader.exec_module(module)
    if module.COMPILER is None:
        pytest.skip("no C++ compiler")
    return module


def every_kind() -> lw.Robot:
    """A tree with a joint of every kind, and one that follows another."""
    b, rng = lw.Builder("kinds"), np.random.default_rng(4)
    kinds = ("free", "revolute", "prismatic", "spherical", "universal", "planar", "revolute",
             "helical", "continuous")  # fmt: skip
    for i, kind in enumerate(kinds):
        parent = "base" if i == 0 else f"l{i - 1 - 2 * (i == 7)}"
        b = b.link(f"l{i}", mass=1.0 + 0.3 * i, com=rng.uniform(-0.3, 0.3, 3),
                   inertia=rng.uniform(0.15, 0.2, 3))  # fmt: skip
        more: dict[str, Any] = {} if kind in ("free", "spherical", "planar") else {
            "axis": rng.normal(size=3)}  # fmt: skip
        more = {"axis": [0, 0, 1]} if kind == "universal" else more
        more |= {"pitch": 0.2} if kind == "helical" else {}
        more |= {"mimic": ("j1", 0.7, 0.1)} if i == 6 else {}
        more |= {"armature": 0.05} if kind == "revolute" else {}
        b = b.joint(f"j{i}", kind, parent=parent, child=f"l{i}", xyz=rng.uniform(-0.4, 0.4, 3),
                    rpy=rng.uniform(0.2, 1.2, 3), **more)  # fmt: skip
    return b.build()


@pytest.fixture(scope="session")
def kinds() -> lw.Robot:
    return every_kind()


@pytest.fixture(scope="session")
def puma() -> lw.Robot:
    return lw.load("puma560")


def pendulum(damping: float = 0.0, friction: float = 0.0) -> lw.Robot:
    """A rod of 1 m and 1 kg on a hinge."""
    b = lw.Builder("pendulum").link(
        "rod", mass=1.0, com=[0.5, 0, 0], inertia=[1e-3, 1 / 12, 1 / 12]
    )
    b = b.joint("hinge", "revolute", parent="base", child="rod", axis=[0, 1, 0], limits=(-3.0, 3.0),
                damping=damping, friction=friction)  # fmt: skip
    return b.build(friction=bool(damping or friction))


@pytest.fixture(scope="session")
def new_pendulum() -> Callable[..., lw.Robot]:
    return pendulum


def numpy_rk4(
    robot: lw.Robot, q: Any, v: Any, h: float, steps: int, torque: Any = None
) -> tuple[Any, Any]:
    """The classical method on plain arrays, for joints whose numbers add."""
    torque = torque or (lambda _t, _q, v: np.zeros_like(v))

    def rates(t: float, y: Any) -> Any:
        q, v = y
        return np.array([v, robot.forward_dynamics(q, v, torque(t, q, v))])

    y, path = np.array([q, v]), [np.array([q, v])]
    for k in range(steps):
        t = k * h
        k1 = rates(t, y)
        k2 = rates(t + h / 2, y + h / 2 * k1)
        k3 = rates(t + h / 2, y + h / 2 * k2)
        k4 = rates(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    both = np.array(path)
    return both[:, 0], both[:, 1]


@pytest.fixture(scope="session")
def rk4() -> Callable[..., tuple[Any, Any]]:
    return numpy_rk4
