"""Loops over links and code written out agree to rounding, on every robot of the test suite.

Every method that can be loops, on every robot: the bundled ones, and all URDFs of
example-robot-data. A usual run takes each method on one robot, in turn; `make full` all on all.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.reference import interpret
from linkwise.trace.guard import guard
from linkwise.trace.roll import trace_rolled
from linkwise.trace.tracer import Task, trace

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import agreement

BUNDLED = ("puma560", "iiwa14")
LOOPS = (a for methods in FUNCTIONS.values() for a in methods.values() if a.rolls)
ROLLED = [a for a in LOOPS if not a.scans]  # scans: tests/engine/test_scan.py
STATES, ROUNDINGS = 3, 1000
SAMPLE = (*BUNDLED, "talos_reduced.urdf", "anymal.urdf", "tiago.urdf", "ur5_robot.urdf")


SOLVES = {
    "forward_dynamics", "solve_mass", "diagonal_solve", "operational_inertia", "tip_acceleration",
    "operational_inertia_inverse", "dynamics_and_inverse", "pivots", "apply_factor",
    "apply_factor_inverse", "apply_factor_transpose", "apply_factor_inverse_transpose",
}  # fmt: skip


def all_robots() -> list[str]:
    try:
        return [*BUNDLED, *agreement.all_robots()]
    except (FileNotFoundError, SystemExit):
        return [*BUNDLED]


@cache
def robot_of(name: str) -> lw.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        if name in BUNDLED:
            return lw.load(name)
        return lw.load(agreement.robots_folder() / name, strict=False)


def values_of(robot: lw.Robot, task: Task) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    given = {p.name: rng.normal(size=(STATES, p.size)) for p in task.ports(robot.tree)}
    at = {name: robot.random_q(seed=k, size=STATES) for k, name in enumerate(("q", "q0", "q1"))}
    return given | {name: x for name, x in at.items() if name in given}


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).reshape(len(x), -1).max(axis=1)


@cache
def sizes_of(name: str) -> dict[str, np.ndarray]:
    """Of every state: ‖M‖, ‖M⁻¹‖, and the largest wrench across a joint in a motion."""
    robot = robot_of(name)
    M = interpret(trace(Task(FUNCTIONS["mass_matrix"]["crba"]), robot.tree),
                  {"q": robot.random_q(seed=0, size=STATES)})["result"]  # fmt: skip
    M = M.reshape(STATES, robot.nv, robot.nv)
    task = Task(FUNCTIONS["joint_wrenches"]["rnea"])
    wrenches = interpret(trace(task, robot.tree), values_of(robot, task))["result"]
    with np.errstate(divide="ignore", invalid="ignore"):
        singular = np.linalg.svd(M, compute_uv=False)
        return {"M": singular[:, 0], "inverse": 1.0 / singular[:, -1], "wrench": largest(wrenches)}


def bound(name: str, a: Algorithm, expected: np.ndarray, mobility: Any) -> np.ndarray:
    """What errors are measured by: sizes of what is added up, times the condition of what is
    solved; of Schur complements, the mobility of the lightest link on its own.
    """
    size, of = largest(expected), sizes_of(name)
    if not a.needs:
        return size + 1.0
    solved = of["M"] * of["inverse"] * (size + of["inverse"] * of["wrench"])
    if a.method.startswith("schur"):
        solved = solved + mobility(robot_of(name).tree) * (1.0 + of["wrench"])
    if a.function == "operational_inertia":
        return solved * (1.0 + size**2)
    return solved if a.function in SOLVES else size + of["wrench"]


def compare(name: str, a: Algorithm, mobility: Any) -> bool:
    """Whether there was something to compare; raises where the two differ."""
    robot = robot_of(name)
    tree = robot.tree
    frame = tree.frames[robot.frame_names[-1]] if a.takes_frame else None
    if not robot.nv or a.why_not(tree, frame) or not a.can_roll(tree):
        return False
    task = Task(a, frame, status=True)
    given = values_of(robot, task)
    expected = interpret(guard(trace(task, tree)), given)
    found = interpret(guard(trace_rolled(task, tree)), given)
    assert found["status"].tolist() == expected["status"].tolist()
    healthy = expected["status"].ravel() == 0
    error = largest(found["result"] - expected["result"])[healthy]
    limit = ROUNDINGS * np.finfo(float).eps * bound(name, a, expected["result"], mobility)[healthy]
    assert (error <= limit).all(), f"{name}: off by {error}, allowed {limit}"
    return True


@pytest.mark.parametrize("k", range(len(ROLLED)))
def test_each_method_on_one_robot(k: int, mobility: Callable[..., float]) -> None:
    names = [n for short in SAMPLE for n in all_robots() if n.endswith(short)]
    turn = k % len(names)
    assert any(compare(name, ROLLED[k], mobility) for name in (*names[turn:], *names[:turn]))


@pytest.mark.full
@pytest.mark.parametrize("name", all_robots())
def test_every_method_on_every_robot(name: str, mobility: Callable[..., float]) -> None:
    try:
        robot_of(name)
    except lw.RobotFileError:
        pytest.skip("not a robot that loads")
    assert any([compare(name, a, mobility) for a in ROLLED]) or not robot_of(name).nv
