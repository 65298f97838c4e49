"""Constants of a robot as inputs of a kernel: one program for every payload and every gravity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH
from linkwise.backends.reference import interpret
from linkwise.engine.kernels import Kernels, _content
from linkwise.model.parameters import Parameter, inertial_parameters
from linkwise.model.tree import Tree
from linkwise.trace.program import count_operations
from linkwise.trace.tracer import Task, evaluate, trace

INERTIA, GRAVITY = Parameter("inertia"), Parameter("gravity")
BOTH = (INERTIA, GRAVITY)
STATES = 12
# every driver that uses the bodies in a way of its own
METHODS = [
    ("inverse_dynamics", "rnea"), ("gravity_torque", "rnea"), ("forward_dynamics", "crba"),
    ("forward_dynamics", "aba"), ("forward_dynamics", "fd3"), ("forward_dynamics", "schur"),
    ("mass_matrix", "crba"), ("mass_matrix", "gdahj"), ("mass_matrix_inverse", "innovations"),
    ("coriolis_matrix", "composite"), ("christoffel", "composite"), ("inertial_power", "augmented"),
    ("inertial_power", "per-link"), ("kinetic_energy", "sweep"), ("potential_energy", "sweep"),
    ("operational_inertia", "recursive"), ("joint_wrenches", "rnea"),
]  # fmt: skip


def inertia_numbers(tree: Tree) -> list[float]:
    """Ten numbers per body, one after another."""
    return inertial_parameters(tree).ravel().tolist()


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("puma560")


@pytest.fixture(scope="module")
def loaded(arm: lw.Robot) -> list[lw.Robot]:
    """The arm with nothing, with a payload, and with a heavier one under another gravity."""
    last = arm.tree.links[-1].name
    light = arm.with_payload(last, 1.5, (0.1, 0.0, 0.2), (0.02, 0.03, 0.01))
    heavy = arm.with_payload(last, 4.0, (-0.1, 0.2, 0.1), (0.2, 0.3, 0.25))
    return [arm, light, heavy.with_gravity((1.0, -2.0, -3.7))]


def kernel_of(robot: lw.Robot, task: Task, dtype: str) -> Any:
    kernels = Kernels(robot.tree, robot.name)
    return kernels.kernel(kernels.equations(task), dtype, BATCH)


def inputs(robot: lw.Robot, task: Task, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        name: robot.random_q(rng, size=STATES) if name == "q" else rng.normal(size=(STATES, size))
        for name, size in task.algorithm.input_sizes(robot.tree)
    }


def constants(robot: lw.Robot) -> dict[str, np.ndarray]:
    numbers = {"inertia": inertia_numbers(robot.tree), "gravity": list(robot.tree.gravity)}
    return {name: np.tile(x, (STATES, 1)) for name, x in numbers.items()}


def task_of(robot: lw.Robot, function: str, method: str, **options: Any) -> Task:
    algorithm = FUNCTIONS[function][method]
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    return Task(algorithm, frame, parameters=BOTH, **options)


@pytest.mark.parametrize(("function", "method"), METHODS)
def test_one_program_is_every_robot(
    arm: lw.Robot, loaded: list[lw.Robot], function: str, method: str, rng: Any
) -> None:
    """To rounding, times the condition of what is solved."""
    task = task_of(arm, function, method)
    program, values = trace(task, arm.tree), inputs(arm, task, rng)
    for robot in loaded:
        found = interpret(program, values | constants(robot))["result"]
        frame = robot.frame_names[-1] if task.frame else None
        expected = np.array(
            [
                robot.evaluate(function, *(x[k].tolist() for x in values.values()),
                               method=method, frame=frame)
                for k in range(STATES)
            ]
        )  # fmt: skip
        solved = "forward" in function or "inverse" in function or "operational" in function
        cond = np.linalg.cond(robot.mass_matrix(values["q"])).max() if solved else 1e2
        scale = np.abs(expected).max() + np.abs(robot.joint_wrenches(
            values["q"], *np.zeros((2, STATES, robot.nv)))).max() * (method == "schur")  # fmt: skip
        assert np.abs(found - expected).max() < 1e-15 * cond * scale * (100 if solved else 1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_kernel_serves_two_payloads(
    arm: lw.Robot, loaded: list[lw.Robot], dtype: str, rng: Any
) -> None:
    task = task_of(arm, "inverse_dynamics", "rnea")
    values = inputs(arm, task, rng)
    kernel = kernel_of(arm, task, dtype)
    for robot in loaded:
        rows = [x.astype(dtype) for x in (values | constants(robot)).values()]
        found = np.empty((STATES, arm.nv), dtype)
        kernel(rows, [found])
        expected = robot.inverse_dynamics(*(x.astype(dtype) for x in values.values()))
        assert np.abs(found - expected).max() < 100 * np.finfo(dtype).eps * np.abs(expected).max()


def test_every_state_has_its_own_payload(arm: lw.Robot, loaded: list[lw.Robot], rng: Any) -> None:
    task = task_of(arm, "forward_dynamics", "aba")
    values, kernel = inputs(arm, task, rng), kernel_of(arm, task, "float64")
    mixed = {k: x.copy() for k, x in constants(loaded[0]).items()}
    for name, x in constants(loaded[2]).items():
        mixed[name][::2] = x[::2]
    found = np.empty((STATES, arm.nv))
    kernel([*values.values(), *mixed.values()], [found])
    for k, robot in enumerate([loaded[2], loaded[0]] * (STATES // 2)):
        expected = robot.forward_dynamics(*(x[k] for x in values.values()), method="aba")
        assert np.abs(found[k] - expected).max() < 1e-10 * np.abs(expected).max()


def test_links_without_mass_and_followers(random_robot: Any, rng: Any) -> None:
    """A mass of zero is a number like others; followers are gathered as ever."""
    robot = lw.Robot(random_robot(np.random.default_rng(4), 6, mimic=True))
    tree = robot.tree
    for function, method in [("inverse_dynamics", "rnea"), ("mass_matrix", "gdahj"),
                             ("inertial_power", "per-link")]:  # fmt: skip
        algorithm = FUNCTIONS[function][method]
        task = Task(algorithm, parameters=(INERTIA,))
        values = [x[0].tolist() for x in inputs(robot, task, rng).values()]
        numbers = inertia_numbers(tree)
        numbers[10:20] = [0.0] * 10
        ports = zip(task.ports(tree), [*values, numbers], strict=True)
        given = {port.name: np.array([x]) for port, x in ports}
        found = interpret(trace(task, tree), given)["result"][0]
        expected = evaluate(Task(algorithm), INERTIA.put(tree, numbers), *values)
        assert np.abs(found - np.array(expected)).max() < 1e-12 * np.abs(expected).max()


def test_a_mass_below_zero_is_told(arm: lw.Robot, rng: Any) -> None:
    task = task_of(arm, "forward_dynamics", "schur", status=True)
    values = inputs(arm, task, rng) | constants(arm)
    values["inertia"][3, -10] = -1.0
    found, status = np.empty((STATES, arm.nv)), np.empty((STATES, 1), np.uint16)
    kernel_of(arm, task, "float64")(list(values.values()), [found, status])
    wrong = lw.Status.SINGULAR | lw.Status.NOT_RIGID
    # the published first link of this arm has inertia about one axis only, which no body has
    expected = [wrong if k == 3 else lw.Status.NOT_RIGID for k in range(STATES)]
    assert status.ravel().tolist() == expected
    assert np.isnan(found).all(axis=1).tolist() == [k == 3 for k in range(STATES)]


def test_kernels_with_and_without_parameters_are_kept_apart(arm: lw.Robot) -> None:
    algorithm = FUNCTIONS["mass_matrix"]["crba"]
    tasks = [Task(algorithm, parameters=p) for p in ((), (INERTIA,), (GRAVITY,), BOTH)]
    assert len({repr(_content(task)) for task in tasks}) == 4
    ports = [[port.name for port in task.ports(arm.tree)] for task in tasks]
    assert ports == [["q"], ["q", "inertia"], ["q", "gravity"], ["q", "inertia", "gravity"]]


def test_a_parameter_costs_little() -> None:
    """A seven-joint arm: RNEA a fifth more, forward dynamics an eighth, regrouping included."""
    tree = lw.load("iiwa14").tree
    for function, method, most in [("inverse_dynamics", "rnea", 1.22),
                                   ("forward_dynamics", "aba", 1.13),
                                   ("mass_matrix", "crba", 1.35)]:  # fmt: skip
        algorithm = FUNCTIONS[function][method]
        plain, asked = (
            count_operations(trace(Task(algorithm, parameters=p), tree)).total for p in ((), BOTH)
        )
        assert plain < asked <= most * plain


def test_numbers_of_a_tree_come_back(arm: lw.Robot) -> None:
    numbers = inertia_numbers(arm.tree)
    again = INERTIA.put(arm.tree, numbers)
    assert np.abs(np.array(inertia_numbers(again)) - numbers).max() < 1e-15 * max(numbers)
    assert GRAVITY.put(arm.tree, arm.tree.gravity).digest == arm.tree.digest
