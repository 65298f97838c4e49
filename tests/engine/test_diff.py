"""Derivatives of programs: every function against complex steps, every rule against 50 digits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, get_args

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.reference import interpret
from linkwise.spatial import atan2, select, sign, sincos, sqrt
from linkwise.trace.assemble import needed
from linkwise.trace.diff import Mode, NotDifferentiable, jacobian, jvp, vjp
from linkwise.trace.expr import ARITY, Expr, Graph, reachable
from linkwise.trace.program import Block, Output, Port, Program, count_operations
from linkwise.trace.tracer import Task, trace, trace_jacobian
from linkwise.trace.verify import verify

ALL = [a for methods in FUNCTIONS.values() for a in methods.values() if not a.iterates]
STEP = 1e-40


@cache
def robots() -> dict[str, lw.Robot]:
    """An arm, a tree of several kinds of joints with a follower, and its first two links."""
    b, rng = lw.Builder("tree"), np.random.default_rng(7)
    joints = [  # kind, parent, what it follows
        ("revolute", "base", None),
        ("spherical", "revolute0", None),
        ("prismatic", "revolute0", None),
        ("helical", "spherical1", "prismatic2"),
    ]
    for i, (kind, parent, follows) in enumerate(joints):
        if i == 2:
            pair = b.build()
        b = b.link(f"{kind}{i}", mass=1.0 + i, com=rng.uniform(0.1, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        b = b.joint(f"{kind}{i}", kind, parent=parent, child=f"{kind}{i}", axis=(0.0, 0.6, 0.8),
                    pitch=0.1 if kind == "helical" else 0.0, xyz=rng.uniform(0.1, 0.4, 3),
                    rpy=rng.uniform(0.2, 1.2, 3), friction=0.3 if kind == "revolute" else 0.0,
                    mimic=(follows, 0.5, 0.0) if follows else None)  # fmt: skip
    return {"puma560": lw.load("puma560"), "tree": b.build(), "pair": pair}


def complex_step(program: Program, inputs: dict[str, np.ndarray], by: str) -> np.ndarray:
    """The derivative of the result by one input, in one state: one complex row per element."""
    size = inputs[by].size
    rows = {name: np.repeat(x[None].astype(complex), size, 0) for name, x in inputs.items()}
    rows[by] += 1j * STEP * np.eye(size)
    return np.moveaxis(interpret(program, rows)["result"].imag / STEP, 0, -1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("modes", ["one", pytest.param("all", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", [pytest.param("puma560", marks=pytest.mark.full), "tree"])
@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")
def test_every_function_has_the_derivatives_of_a_complex_step(
    algorithm: Algorithm, name: str, modes: str
) -> None:
    """Modes by turns, from method to method, or all of them.

    Schur complements, whose programs are the longest, have two links unless all are asked for.
    """
    robot = robots()["pair" if "schur" in algorithm.method and modes == "one" else name]
    if not algorithm.exists_for(robot.tree):
        pytest.skip("the method is not for this robot")
    if algorithm.function == "operational_inertia" and name == "tree":
        pytest.skip("its last frame cannot move in six directions")
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    task = Task(algorithm, frame)
    program = trace(task, robot.tree)
    if name == "puma560" and (len(program.results) > 16 or "schur" in algorithm.method):
        pytest.skip("slow to differentiate; the tree is smaller")
    names = [port.name for port in program.inputs]
    rng = np.random.default_rng(1)
    inputs = {p.name: rng.uniform(0.2, 1.0, p.size) for p in program.inputs}
    inputs["q"] = robot.random_q(seed=2)
    ways: tuple[Mode, ...] = ("forward", "reverse") if len(program.results) < 10 else ("forward",)
    if modes == "one":
        ways = (ways[ALL.index(algorithm) % len(ways)],)
    for mode in ways:
        made = verify(trace_jacobian(task, robot.tree, names, mode))
        found = interpret(made, {k: v[None] for k, v in inputs.items()})
        for by in names:
            expected = complex_step(program, inputs, by)
            derivative = found[f"d_{by}"][0]
            assert derivative.shape == expected.shape
            # rounding, magnified as the inverses are that the method takes
            scale = max(1.0, np.abs(expected).max())
            bound = (
                1e-9 if "inertia" in algorithm.function or "schur" in algorithm.method else 1e-11
            )
            assert np.abs(derivative - expected).max() <= bound * scale, (mode, by)


# -- rules ----------------------------------------------------------------------------------------


def everything(x: Any, y: Any) -> list[Any]:
    """Every operation of scalars, smooth and not."""
    s, c = sincos(x * y)
    return [
        x + y * 3.0, x - y, -x * y, x / y, 2.0 / (x * x + 1.0), s * y, c - x, sqrt(x * x + 2.0),
        atan2(y, x), sign(x) * y * y, select(x - y, s * x, c / y), select(y, x * x, 5.0),
        atan2(s, c + 2.0) * sqrt(y * y + x * x),
    ]  # fmt: skip


def by_central_differences(point: tuple[float, float]) -> np.ndarray:
    """In 60 digits, the error of a difference is below 1e-30."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -18
        columns = []
        for k in range(2):
            ends = []
            for side in (h, -h):
                at = [mpmath.mpf(v) for v in point]
                at[k] += side
                ends.append(everything(*at))
            columns.append([float((a - b) / (2 * h)) for a, b in zip(*ends, strict=True)])
    return np.array(columns).T


def valued(nodes: Sequence[Expr], point: Sequence[float]) -> np.ndarray:
    regions = (Block(needed(list(nodes))),)
    outputs = (Output("result", (len(nodes),), tuple(nodes)),)
    program = verify(Program("values", (Port("x", len(point)),), regions, outputs))
    return interpret(program, {"x": np.array([point])})["result"][0]


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("point", [(0.7, 1.9), (-1.3, 0.4), (2.5, -0.8), (-0.6, -1.1)])
def test_every_rule_against_sixty_digits(mode: Mode, point: tuple[float, float]) -> None:
    graph = Graph()
    inputs = [graph.input("x", k) for k in range(2)]
    outputs = [graph.lift(v) for v in everything(*inputs)]
    assert {n.op for n in reachable(outputs)} >= {"select", "sqrt", "atan2", "sign", "div", "neg"}
    rows = jacobian(outputs, inputs, mode)
    found = valued([x for row in rows for x in row], point).reshape(-1, 2)
    np.testing.assert_allclose(found, by_central_differences(point), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("op", "expected"), [("fma", (5, 3, 1)), ("fms", (5, 3, -1)), ("fnma", (-5, -3, 1))]
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_multiply_adds_have_rules_too(op: str, expected: tuple[int, ...], mode: Mode) -> None:
    graph = Graph()
    inputs = [graph.input("x", k) for k in range(3)]
    (row,) = jacobian([graph.node(op, *inputs)], inputs, mode)
    assert valued(row, (3.0, 5.0, 7.0)).tolist() == list(expected)


def test_flags_have_no_slope() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    outputs = [graph.node(op, x) for op in ("flag", "finite", "sign")]
    for mode in ("forward", "reverse"):
        assert jacobian(outputs, [x], mode) == [[graph.zero]] * 3


def test_every_operation_has_a_rule_or_is_refused_by_name() -> None:
    graph = Graph()
    x = [graph.input("x", k) for k in range(3)]
    for op, arity in ARITY.items():
        value = {"input": ("x", 0), "carry": (0, 0)}.get(op, 1.0)
        node = graph.node(op, *x[:arity], value=None if arity else value)
        if op in ("carry", "read"):
            with pytest.raises(NotDifferentiable, match=r"loop carries .*straight-line equations"):
                jvp([node], x, [1.0, 0.0, 0.0])
            with pytest.raises(NotDifferentiable, match=r"reads .* does not iterate"):
                vjp([node], x, [1.0])
        else:
            assert len(vjp([node], x, [1.0])) == 3
    with pytest.raises(NotDifferentiable, match="no derivative rule for 'cosh'"):
        vjp([graph.node("cosh", x[0])], x, [1.0])


def test_an_iterating_method_is_refused() -> None:
    task = Task(FUNCTIONS["forward_dynamics"]["pcg"])
    with pytest.raises(NotDifferentiable, match="expected straight-line equations"):
        trace_jacobian(task, lw.load("puma560").tree, ("q",))


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(ValueError, match="mode 'sideways': expected 'forward', 'reverse' or"):
        jacobian([], [], "sideways")  # type: ignore[arg-type]


def test_directions_and_weights_are_combinations() -> None:
    graph = Graph()
    inputs = [graph.input("x", k) for k in range(2)]
    outputs = [graph.lift(v) for v in everything(*inputs)]
    rows = jacobian(outputs, inputs, "forward")
    rng, point = np.random.default_rng(4), (0.7, 1.9)
    J = valued([x for row in rows for x in row], point).reshape(-1, 2)
    d, w = rng.normal(size=2), rng.normal(size=len(outputs))
    np.testing.assert_allclose(valued(jvp(outputs, inputs, d.tolist()), point), J @ d, rtol=1e-13)
    np.testing.assert_allclose(valued(vjp(outputs, inputs, w.tolist()), point), w @ J, rtol=1e-13)


def test_an_input_that_nothing_depends_on_has_zeros() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    for mode in ("forward", "reverse"):
        assert jacobian([x * x], [y], mode) == [[graph.zero]]
        assert jacobian([x, y], [x, y], mode) == [[graph.one, graph.zero], [graph.zero, graph.one]]
    assert vjp([], [x], []) == [graph.zero] and jvp([], [], []) == []


RATIOS: dict[tuple[str, str], float] = {  # operations of d/d(q, qd) beside those of the function
    ("inverse_dynamics", "rnea"): 7.7,
    ("forward_dynamics", "aba"): 8.1,
}


@pytest.mark.parametrize(("function", "method"), RATIOS)
def test_derivatives_cost_no_more_than_they_did(function: str, method: str) -> None:
    tree, task = lw.load("iiwa14").tree, Task(FUNCTIONS[function][method])
    derived = count_operations(trace_jacobian(task, tree, ("q", "qd"))).total
    assert derived <= RATIOS[function, method] * count_operations(trace(task, tree)).total


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_inputs_may_depend_on_each_other(mode: Mode) -> None:
    """Derivatives by a value and by what it is made of are partial: the other one stays."""
    graph = Graph()
    x = graph.input("x", 0)
    square = x * x
    (row,) = jacobian([3.0 * square + x], [x, square], mode)
    assert valued(row, (5.0,)).tolist() == [1.0, 3.0]


def test_every_input_has_a_direction_and_every_output_a_weight() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    for numbers in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="zip"):
            jvp([x * y], [x, y], numbers)
        with pytest.raises(ValueError, match="zip"):
            vjp([x * y, x + y], [x, y], numbers)


def test_the_cheaper_mode_is_taken_unless_one_is_named() -> None:
    graph = Graph()
    x = [graph.input("x", k) for k in range(6)]
    wide = [x[0] * x[1] * x[2] * x[3] * x[4] * x[5]]
    tall = [sqrt(x[0] * x[0] + 1.0) * float(k) + x[0] * x[0] * x[k] for k in range(1, 6)]
    for outputs, inputs, cheaper in ((wide, x, "reverse"), (tall, x[:1], "forward")):
        rows = {mode: jacobian(outputs, inputs, mode) for mode in get_args(Mode)}
        cost = {m: len(reachable(x for row in r for x in row)) for m, r in rows.items()}
        assert cost["auto"] == cost[cheaper] < max(cost.values())
        assert jacobian(outputs, inputs) == rows["auto"] == rows[cheaper]
