"""Tracing: what a task adds to its equations, judged without running the equations again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.reference import interpret
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import reciprocal, repeat
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.tracer import Task, evaluate, trace, used_pivots
from linkwise.trace.verify import verify


def test_wrenches_take_off_their_generalised_forces() -> None:
    """In the order of their frames: tau = bias - J1ᵀ f1 - J2ᵀ f2."""
    tree = lw.load("puma560").tree
    frames = tree.frames["link6"], tree.frames["link3"]
    rng = np.random.default_rng(3)
    values = {name: rng.uniform(-1, 1, (2, 6)) for name in ("q", "qd", "f_ext[0]", "f_ext[1]")}
    bias = FUNCTIONS["bias"]["rnea"]
    program = verify(trace(Task(bias, external=frames), tree))
    assert [(p.name, p.size) for p in program.inputs] == [(name, 6) for name in values]
    motion = {name: values[name] for name in ("q", "qd")}
    expected = interpret(trace(Task(bias), tree), motion)["result"]
    for k, frame in enumerate(frames):
        jacobian = trace(Task(FUNCTIONS["jacobian"]["sweep"], frame), tree)
        J = interpret(jacobian, {"q": values["q"]})["result"]
        expected = expected - np.einsum("bij,bi->bj", J, values[f"f_ext[{k}]"])
    np.testing.assert_allclose(interpret(program, values)["result"], expected, 1e-12, 1e-12)


@pytest.mark.parametrize("where", ["a result", "a start", "a step"])
def test_a_pivot_of_constants_that_is_never_positive_is_watched(where: str) -> None:
    """Also where only a loop needs it: what a loop carries has no arguments to look at."""
    graph = Graph()
    x = graph.input("x", 0)
    never = reciprocal(graph.const(-1.0))
    start = never if where == "a start" else x

    def step(state: list[Expr]) -> tuple[list[Expr], Expr]:
        return [state[0] * (never if where == "a step" else x)], x

    (end,) = repeat(step, [start], 3.0)
    result = end + never if where == "a result" else end
    ((pivot, scale),) = used_pivots(graph, [result])
    assert math.isnan(pivot.value) and scale is graph.zero


def test_only_pivots_that_the_result_depends_on_are_watched() -> None:
    def driver(tree: Tree, q: list[Any]) -> list[Any]:
        reciprocal(q[0] + 1.0)
        return [reciprocal(q[1] + 2.0) * q[2]]

    program = verify(trace(Task(Algorithm("f", "m", driver, (("q", 3),), (1,))), Tree(())))
    (pivot,) = program.pivots
    assert {a.value for a in pivot.args} == {("q", 1), 2.0}
    found = interpret(program, {"q": np.array([(-5.0, 2.0, 8.0)])})
    assert found["result"].tolist() == [[2.0]]


@pytest.mark.parametrize("method", ["ccg", "pcg"])
def test_when_to_stop_may_be_left_out(method: str) -> None:
    tree, what = lw.load("puma560").tree, Task(FUNCTIONS["forward_dynamics"][method])
    assert [(p.name, p.size) for p in what.ports(tree)[-2:]] == [("tol", 1), ("limit", 1)]
    rng = np.random.default_rng(2)
    q, qd, tau = rng.uniform(-1, 1, (3, 6)).tolist()
    qdd = evaluate(what, tree, q, qd, tau, [0.0] * 6)[:6]
    expected = evaluate(Task(FUNCTIONS["forward_dynamics"]["crba"]), tree, q, qd, tau)
    np.testing.assert_allclose(qdd, expected, 1e-6, 1e-6)


def test_the_axes_that_are_asked_for() -> None:
    """Body axes are base axes turned by the frame's rotation."""
    tree, q = lw.load("puma560").tree, np.random.default_rng(5).uniform(-2, 2, (3, 6))
    frame = tree.frames["link6"]

    def found(function: str, **options: Any) -> np.ndarray:
        (algorithm, *_) = FUNCTIONS[function].values()
        return interpret(trace(Task(algorithm, frame, **options), tree), {"q": q})["result"]

    R = found("forward_kinematics")[:, :3, :3]
    base, body = found("jacobian"), found("jacobian", axes="body")
    turned = np.concatenate([R.mT @ base[:, :3], R.mT @ base[:, 3:]], axis=1)
    np.testing.assert_allclose(body, turned, 1e-12, 1e-12)


def test_a_wrench_for_every_frame() -> None:
    tree = lw.load("puma560").tree
    frames = tree.frames["link6"], tree.frames["link3"]
    with pytest.raises(ValueError, match="zip"):
        evaluate(Task(FUNCTIONS["bias"]["rnea"], external=frames), tree, *[[0.0] * 6] * 3)


@pytest.mark.parametrize("status", [False, True])
def test_pivots_are_uses_and_a_status_is_none(status: bool) -> None:
    """A product that a pivot needs beside the result is not fused; one that a status needs is."""

    def driver(tree: Tree, q: list[Any]) -> list[Any]:
        shared, own = q[0] * q[1], q[1] * q[2]
        return [reciprocal(shared + q[2]), shared - q[1], own + q[0]]

    task = Task(Algorithm("f", "m", driver, (("q", 3),), (3,)), status=status)
    program = verify(trace(task, Tree(())))
    inverse, rest, fused = program.outputs[0].values
    (pivot,) = program.pivots
    assert inverse.args[1] is pivot and pivot.op == "add" and rest.op == "sub"
    assert rest.args[0] in pivot.args and rest.args[0].op == "mul" and fused.op == "fma"
    assert len(program.outputs) == 1 + status
