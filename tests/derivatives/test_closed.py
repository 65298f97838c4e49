"""Derivatives of closed robots, by the equations that they solve: against 50 digits, complex steps
and Pinocchio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import functions_of
from linkwise.backends.base import USUAL
from linkwise.backends.reference import interpret
from linkwise.bench.pinocchio import pinocchio_model
from linkwise.differentiation.equations import equations_of
from linkwise.differentiation.plan import HVP, JVP, VJP, Asked, Plan
from linkwise.engine.tasks import Key
from linkwise.trace.tracer import evaluate, flatten

EPS = np.finfo(float).eps
PLACES = [False, False, False, True, True, True]
Step = Callable[[Plan, dict[str, Any]], np.ndarray]
Small = Callable[[str], lw.Robot]


@cache
def held_arm(kind: str) -> lw.Robot:
    """An arm whose tip is held: at a point, at two (which is one direction too much), or by a curve
    that couples two of its joints.
    """
    arm = lw.load("puma560")
    point = lw.Loop("link6", directions=PLACES)
    if kind == "point":
        return arm.close_loops([point])
    if kind == "coupled":
        return arm.close_loops([lw.Coupling("joint2", "joint3", (0.1, 0.5, 0.3))])
    place = np.eye(4)
    place[:3, 3] = 0.05, 0.1, 0.2
    return arm.with_frame("beside", "link6", place).close_loops(
        [point, lw.Loop("beside", directions=PLACES)]
    )


def state(robot: lw.Robot, still: bool = False) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    qd = np.zeros(robot.nv) if still else rng.normal(size=robot.nv)
    return rng.uniform(-1, 1, robot.nq), qd, rng.normal(size=robot.nv)


def differences(robot: lw.Robot, function: str, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """(numbers of the result, numbers of all arguments), in 50 digits; of joints with angles."""
    task = Plan(robot._calls.tasks, Asked(Key(function))).task
    with mpmath.workdps(50):
        h = mpmath.mpf(10) ** -17
        exact = [[mpmath.mpf(float(x)) for x in value] for value in values]

        def at(k: int, j: int, step: Any) -> list[Any]:
            moved = [list(x) for x in exact]
            moved[k][j] += step
            return list(flatten(evaluate(task, robot.tree, *moved)))

        columns = [
            [(x - y) / (2 * h) for x, y in zip(at(k, j, h), at(k, j, -h), strict=True)]
            for k, value in enumerate(exact)
            for j in range(len(value))
        ]
        return np.array(columns, float).T


def by_program(robot: lw.Robot, asked: Asked, values: dict[str, np.ndarray]) -> np.ndarray:
    plan = Plan(robot._calls.tasks, asked)
    program = equations_of(plan, False).trace(USUAL)
    return interpret(program, {k: x[None] for k, x in values.items()})["result"][0]


def whole(robot: lw.Robot, function: str, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """The same as `differences`, by `Robot.derivative`."""
    plan = Plan(robot._calls.tasks, Asked(Key(function)))
    named = dict(zip(plan.inputs, values, strict=True))
    parts = np.split(by_program(robot, plan.asked, named), len(values))
    return np.concatenate([x.reshape(plan.result.size, -1) for x in parts], 1)


def close(found: Any, expected: Any, rounding: float = 1e5) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= rounding * EPS * np.abs(expected).max()


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("point", "forward_dynamics"),
        ("point", "inverse_dynamics"),
        ("point", "constraint_forces"),
        ("coupled", "forward_dynamics"),
        ("coupled", "inverse_dynamics"),
    ],
)
def test_derivatives_are_differences_in_50_digits(kind: str, function: str) -> None:
    robot = held_arm(kind)
    values = state(robot)
    close(whole(robot, function, values), differences(robot, function, values))


@pytest.mark.parametrize("function", ["forward_dynamics", "constraint_forces"])
def test_smallest_forces_of_redundant_loops_change_as_differences_do(function: str) -> None:
    """Two points of one link: their distance is held twice, wherever the arm is, and the smallest
    forces have no part that stretches the link, whose direction changes.
    """
    robot = held_arm("twice")
    values = state(robot, still=True)
    _, bits = getattr(robot, function)(*values, status=True)
    assert lw.Status(bits) == lw.Status.REDUNDANT | lw.Status.LOOP_OPEN
    close(whole(robot, function, values), differences(robot, function, values))


def products(robot: lw.Robot, function: str, rng: Any) -> Iterator[tuple[Any, Any]]:
    """Both products with vectors, and what they are to be."""
    plan = Plan(robot._calls.tasks, Asked(Key(function)))
    values = state(robot, still=True)
    named = dict(zip(plan.inputs, values, strict=True))
    J = whole(robot, function, values)
    v, w = rng.normal(size=J.shape[1]), rng.normal(size=J.shape[0])
    rates = {f"tangents[{name!r}]": v[span.start : span.stop]
             for name, span in zip(plan.wrt, plan.spans, strict=True)}  # fmt: skip
    asked = plan.asked._replace(wrt=plan.wrt)
    yield by_program(robot, asked._replace(kind=JVP), named | rates), J @ v
    yield by_program(robot, asked._replace(kind=VJP), named | {"cotangent": w}), w @ J


@pytest.mark.parametrize("function", ["forward_dynamics", "constraint_forces"])
@pytest.mark.parametrize("kind", ["point", "twice"])
def test_products_are_those_with_the_matrices(kind: str, function: str) -> None:
    for found, expected in products(held_arm(kind), function, np.random.default_rng(1)):
        close(found, expected)


def test_reverse_costs_a_few_calls() -> None:
    robot = held_arm("point")
    for function in ("forward_dynamics", "constraint_forces"):
        plan = Plan(robot._calls.tasks, Asked(Key(function), kind=VJP))
        nodes = sum(1 for _ in equations_of(plan, False).trace(USUAL).nodes())
        kernels = robot._calls.kernels
        own = sum(1 for _ in kernels.program(kernels.equations(plan.task)).nodes())
        assert nodes < 3.5 * own


def test_second_derivatives_are_differences_of_first() -> None:
    """Of the gradient, along one direction of all arguments."""
    robot, rng = held_arm("point"), np.random.default_rng(4)
    plan = Plan(robot._calls.tasks, Asked(Key("forward_dynamics"), ("q", "qd", "tau"), HVP))
    values, v = np.stack(state(robot)), rng.normal(size=(3, 6))
    weights, h = rng.normal(size=6), 1e-6

    def gradient(x: np.ndarray) -> np.ndarray:
        named = dict(zip(plan.inputs, x, strict=True)) | {"cotangent": weights}
        return by_program(robot, plan.asked._replace(kind=VJP), named)

    named = dict(zip(plan.inputs, values, strict=True)) | {"cotangent": weights}
    rates = {f"tangents[{name!r}]": x for name, x in zip(plan.wrt, v, strict=True)}
    found = by_program(robot, plan.asked, named | rates)
    expected = (gradient(values + h * v) - gradient(values - h * v)) / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_three_matrices_of_a_closed_robot() -> None:
    robot = held_arm("point")
    q, qd, tau = state(robot)
    for function in ("forward_dynamics", "inverse_dynamics"):
        value, *parts = getattr(robot, f"{function}_derivatives")(q, qd, tau, value=True)
        close(value, getattr(robot, function)(q, qd, tau))
        for part, own in zip(parts, robot.derivative(function, mode="forward")(q, qd, tau),
                             strict=True):  # fmt: skip
            close(part, own, 1e6)
    with pytest.raises(ValueError, match="method 'composite': is for robots without closed loops"):
        robot.forward_dynamics_derivatives(q, qd, tau, method="composite")


@pytest.mark.parametrize("name", ["flying", "ball", "plane"])
@pytest.mark.parametrize("function", ["forward_dynamics", "constraint_forces", "inverse_dynamics"])
def test_every_joint_in_a_loop(name: str, function: str, small: Small, complex_step: Step) -> None:
    robot = small(name)
    tip = robot.frame_names[-1]
    # a floating base has no motor: all six directions have to hold it
    welded = name == "flying" and function == "inverse_dynamics"
    directions = [True] * 6 if welded else [False] * 3 + [True, False, True]
    closed = robot.close_loops([lw.Loop(tip, directions=directions)])
    algorithm = next(iter(functions_of(closed.tree)[function].values()))
    key = Key(function, algorithm.method, external=(tip,))
    wrt = (*(name for name, _ in algorithm.inputs), "f_ext")
    plan = Plan(closed._calls.tasks, Asked(key, wrt))
    rng = np.random.default_rng(2)
    values = {port.name: rng.normal(size=port.size) for port in plan.ports}
    values["q"] = closed.random_q(seed=1)
    found = by_program(closed, plan.asked, values)
    rows = plan.result.size
    cuts = np.cumsum([rows * len(span) for span in plan.spans])[:-1]
    J = np.concatenate([x.reshape(rows, -1) for x in np.split(found, cuts)], 1)
    close(J, complex_step(plan, values))


def test_derivatives_of_constants_of_a_closed_robot() -> None:
    robot = held_arm("point").parametric("gravity")
    q, qd, tau = state(robot)
    by = robot.derivative("forward_dynamics", "gravity")(q, qd, tau)
    pulls = [robot.forward_dynamics(q, qd, tau, gravity=g) for g in 2 * np.eye(3)]
    none = robot.forward_dynamics(q, qd, tau, gravity=np.zeros(3))
    close(by, (np.array(pulls) - none).T / 2)


def grasp() -> lw.Grasp:
    arm, away = lw.load("puma560"), np.eye(4)
    away[0, 3] = 1.0
    held = lw.RigidBody(2.0, com=(0.0, 0.0, 0.1), inertia=(0.06, 0.06, 0.01))
    points = [lw.Contact(0, "link6", "rigid"), lw.Contact(1, "link6", "point")]
    return lw.Grasp([arm, arm], bases=[np.eye(4), away], object=held, contacts=points)


def test_products_of_a_grasp(complex_step: Step) -> None:
    robot, rng = grasp(), np.random.default_rng(6)
    asked = Asked(Key("motion"), ("q", "qd", "tau"))
    plan = Plan(robot._calls.tasks, asked)
    values = {port.name: rng.normal(size=port.size) for port in plan.ports}
    J = complex_step(plan, values)
    w = rng.normal(size=len(J))
    close(by_program(robot, asked._replace(kind=VJP), values | {"cotangent": w}), w @ J)
    v = rng.normal(size=J.shape[1])
    rates = {f"tangents[{name!r}]": x for name, x in zip(plan.wrt, np.split(v, 3), strict=True)}
    close(by_program(robot, asked._replace(kind=JVP), values | rates), J @ v)


def test_places_of_contacts_are_asked_for() -> None:
    for function in ("residual", "project"):
        with pytest.raises(ValueError, match=f"derivative of {function}: contact 1.* no place on"):
            grasp().derivative(function)


def test_derivatives_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot = held_arm("point")
    q, qd, tau = state(robot)
    model = pinocchio_model(robot.open)
    data = model.createData()
    last = model.njoints - 1
    contact = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D, model, last, pin.SE3.Identity(), pin.LOCAL
    )
    pin.forwardKinematics(model, data, q)
    theirs = data.oMi[last].translation
    at = robot.forward_kinematics(q, "link6")[:3, 3]
    contact.joint1_placement.translation = data.oMi[last].rotation.T @ (at - theirs)
    both = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    both[0].append(contact)
    both[1].append(contact.createData())
    pin.initConstraintDynamics(model, data, *both)
    settings = pin.ProximalSettings(1e-14, 1e-14, 20)
    qdd = pin.constraintDynamics(model, data, q, qd, tau, *both, settings)
    pin.computeConstraintDynamicsDerivatives(model, data, *both, settings)
    value, *parts = robot.forward_dynamics_derivatives(q, qd, tau, value=True)
    close(value, qdd)
    for part, own in zip(parts, (data.ddq_dq, data.ddq_dv, data.ddq_dtau), strict=True):
        close(part, own, 1e6)
