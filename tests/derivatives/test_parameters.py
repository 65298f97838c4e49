"""Derivatives of robots whose constants are arguments: every kind of constant, open and closed
robots, every method, against complex steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import functions_of
from linkwise.differentiation.plan import Asked, Plan
from linkwise.engine.tasks import Key

EPS = np.finfo(float).eps
KINDS = ("inertia", "gravity", "payload", "rotor", "friction", "placement")
VALUES = {
    "inverse_dynamics_derivatives": ("inverse_dynamics", "qdd"),
    "forward_dynamics_derivatives": ("forward_dynamics", "tau"),
}
Step = Callable[[Plan, dict[str, Any]], np.ndarray]


def some(*usual: tuple[str, str]) -> list[Any]:
    """Every robot and kind; those that are not named are for full runs."""
    return [
        pytest.param(name, kind, marks=[] if (name, kind) in usual else pytest.mark.full)
        for name in ("slide", "ball", "closed")
        for kind in KINDS
    ]


@cache
def chain(name: str) -> lw.Robot:
    """A robot of three joints, one of them prismatic or spherical, or one whose tip is held."""
    kinds = ("prismatic", "revolute", "spherical" if name == "ball" else "revolute")
    b, rng, parent = lw.Builder(name), np.random.default_rng(7), "base"
    for i, kind in enumerate(kinds):
        b = b.link(f"link{i}", mass=1.0 + i, com=rng.uniform(0.1, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        b = b.joint(f"joint{i}", kind, parent=parent, child=f"link{i}", axis=(0.0, 0.6, 0.8),
                    xyz=rng.uniform(0.1, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3), damping=0.2,
                    armature=0.0 if kind == "spherical" else 0.1)  # fmt: skip
        parent = f"link{i}"
    robot = b.build(friction=True)
    if name != "closed":
        return robot
    return robot.close_loops([lw.Loop("link2", directions=[False] * 3 + [True, False, False])])


def parametric(name: str, kind: str) -> lw.Robot:
    robot = chain(name)
    return robot.parametric(payload="link2") if kind == "payload" else robot.parametric(kind)


def constants(robot: lw.Robot) -> dict[str, np.ndarray]:
    """Values of the constants that are not the robot's own."""
    rng, (each,) = np.random.default_rng(11), robot._calls.tasks.parameters
    own = each.value(robot.tree)
    if each.name == "payload":
        return {"payload": np.array([1.5, 0.1, 0.2, -0.1, 0.3, 0.01, 0.3, 0.02, 0.01, 0.3])}
    if each.name == "inertia":
        return {"inertia": own * rng.uniform(1.0, 1.2, (len(own), 1))}
    return {each.name: own + rng.uniform(0.05, 0.3, own.shape)}


def state(robot: lw.Robot, third: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "q": robot.random_q(seed=4),
        "qd": rng.normal(size=robot.nv),
        third: rng.normal(size=robot.nv),
    }


def close(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 2e4 * EPS * max(np.abs(expected).max(), 1e-3)


def reference(robot: lw.Robot, function: str, wrt: tuple[str, ...], values: Any, step: Step) -> Any:
    """The Jacobian by all of some arguments, by complex steps."""
    plan = Plan(robot._calls.tasks, Asked(Key(function), wrt))
    return step(plan, {name: np.ravel(x) for name, x in values.items()})


@pytest.mark.parametrize("function", VALUES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["slide", "ball", "closed"])
def test_matrices_of_the_dynamics_take_constants(
    name: str, kind: str, function: str, complex_step: Step
) -> None:
    robot, (value, third) = parametric(name, kind), VALUES[function]
    values, given = state(robot, third), constants(robot)
    expected = reference(robot, value, ("q", "qd", third), values | given, complex_step)
    for method in functions_of(robot.tree)[function]:
        parts = getattr(robot, function)(*values.values(), method=method, value=True, **given)
        close(np.concatenate(parts[1:], axis=-1), expected)
        close(parts[0], getattr(robot, value)(*values.values(), **given))


@pytest.mark.parametrize("value", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize(
    ("name", "kind"),
    some(("ball", "inertia"), ("ball", "friction"), ("closed", "rotor"), ("closed", "gravity")),
)
def test_products_take_constants_and_their_rates(
    name: str, kind: str, value: str, complex_step: Step
) -> None:
    robot, third = parametric(name, kind), "qdd" if value == "inverse_dynamics" else "tau"
    values, given = state(robot, third), constants(robot)
    wrt, rng = ("q", "qd", third, kind), np.random.default_rng(9)
    expected = reference(robot, value, wrt, values | given, complex_step)
    sizes = {name: np.shape(x) for name, x in given.items()}
    rates = {x: rng.normal(size=sizes.get(x, robot.nv)) for x in wrt}
    along = np.concatenate([np.ravel(x) for x in rates.values()])
    inputs, weights = tuple(values.values()), rng.normal(size=robot.nv)
    close(robot.jvp(value, inputs, rates, **given)[1], expected @ along)
    _, gradients = robot.vjp(value, inputs, weights, wrt=wrt, **given)
    close(np.concatenate([np.ravel(x) for x in gradients]), weights @ expected)
    parts = robot.derivative(value, wrt)(*inputs, **given)
    close(np.concatenate([x.reshape(robot.nv, -1) for x in parts], 1), expected)


@pytest.mark.parametrize(
    ("name", "kind"),
    [x for x in some(("slide", "friction"), ("closed", "gravity")) if x.values[0] != "ball"],
)
def test_hessian_products_take_constants(name: str, kind: str) -> None:
    """Against differences of gradients."""
    robot = parametric(name, kind)
    values, given = state(robot, "tau"), constants(robot)
    rng, weights, h = np.random.default_rng(9), np.ones(robot.nv), 1e-6
    all_ = values | given
    rates = {x: rng.normal(size=np.shape(y)) for x, y in all_.items()}

    def gradient(t: float) -> np.ndarray:
        q, qd, tau, own = (x + t * rates[key] for key, x in all_.items())
        _, parts = robot.vjp(
            "forward_dynamics", (q, qd, tau), weights, wrt=tuple(all_), **{kind: own}
        )
        return np.concatenate([np.ravel(x) for x in parts])

    _, changes = robot.hvp("forward_dynamics", tuple(values.values()), weights, rates, **given)
    found = np.concatenate([np.ravel(x) for x in changes])
    expected = (gradient(h) - gradient(-h)) / (2 * h)
    assert np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()
