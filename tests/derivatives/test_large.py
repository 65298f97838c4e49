"""Derivatives of large robots, by loops over the links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.algorithms.configurations import rate
from linkwise.backends.base import USUAL
from linkwise.backends.reference import interpret
from linkwise.differentiation.equations import equations_of
from linkwise.differentiation.plan import CURVATURE, HVP, JVP, VJP, Asked, Plan
from linkwise.engine.tasks import Key
from linkwise.errors import ProgramTooLarge
from linkwise.trace.diff import NotDifferentiable
from linkwise.trace.guard import guard
from linkwise.trace.roll import trace_rolled
from linkwise.trace.verify import verify

EPS = np.finfo(float).eps
Step = Callable[[Plan, dict[str, Any]], np.ndarray]
Small = Callable[[str], lw.Robot]


def close(found: Any, expected: Any, limit: float) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= limit * np.abs(expected).max()


def product(robot: lw.Robot, key: Key, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Value, and change or gradients of a function, by loops, and by the equations written out."""
    wrt = tuple(name for name, _ in FUNCTIONS[key.function][key.method].inputs)
    wrt = (*wrt, "f_ext") if key.external else wrt
    by_loops, written = (
        Plan(x._calls.tasks, Asked(key, wrt, kind, value=True))
        for x in (robot.with_codegen("rolled"), robot.with_codegen("unrolled"))
    )
    assert by_loops.task.rolled and not written.task.rolled
    rng = np.random.default_rng(3)
    values = {port.name: rng.normal(size=port.size) for port in (*written.ports, *written.more)}
    if "q" in values:
        values["q"] = robot.random_q(seed=1)
    rows = {name: x[None] for name, x in values.items()}
    programs = (verify(guard(equations_of(p, False).trace(USUAL))) for p in (by_loops, written))
    return tuple(interpret(program, rows)["result"][0] for program in programs)  # type: ignore[return-value]


ROLLED = [
    (function, method)
    for function, methods in FUNCTIONS.items()
    for method, x in methods.items()
    if x.rolls is not None and not x.scans and x.output != ("nq",) and function != "link_poses"
]
ROBOTS = ("flying", "ball", "plane", "arm")
PAIRS = [(robot, *x) for k, x in enumerate(ROLLED) for robot in (ROBOTS[k % 4],)]
OTHERS = [(robot, *x) for robot in ROBOTS for x in ROLLED if (robot, *x) not in PAIRS]


SECOND = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinetic_energy", "jacobian")
CASES = [
    pytest.param(*x, kind, marks=() if kind != HVP or x[1] in SECOND else pytest.mark.full)
    for x in PAIRS
    for kind in (JVP, VJP, HVP)
]
CASES += [
    pytest.param(*x, kind, marks=pytest.mark.full) for x in OTHERS for kind in (JVP, VJP, HVP)
]


@pytest.mark.parametrize(("name", "function", "method", "kind"), CASES)
def test_loops_carry_tangents_and_adjoints(
    name: str, function: str, method: str, kind: str, small: Small
) -> None:
    """Every function that is loops over the links, on every kind of joint."""
    robot, algorithm = small(name), FUNCTIONS[function][method]
    frame = robot.frame_names[-1] if algorithm.takes_frame else None
    at = robot.tree.frames[frame] if frame else None
    if algorithm.why_not(robot.tree, at) or not algorithm.can_roll(robot.tree):
        pytest.skip("the robot has no such function, or none that is loops")
    if kind != JVP and algorithm.in_place(robot.tree):
        pytest.skip("its loops have no way back")
    external = (robot.frame_names[-1],) if algorithm.takes_external else ()
    found, expected = product(robot, Key(function, method, frame, external=external), kind)
    close(found, expected, 1e4 * EPS)


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("kind", ["random", "mixed"])
def test_products_of_a_long_chain_are_complex_steps(kind: str, function: str) -> None:
    robot, rng = lw.chain(130, kind=kind), np.random.default_rng(1)
    task = robot._calls.tasks.task(Key(function))
    assert task.rolled
    q, v = robot.random_q(seed=2), rng.normal(size=robot.nv)
    qd, x = rng.normal(size=(2, robot.nv))
    value, change = robot.jvp(function, (q, qd, x), (v, x, qd))
    inputs = [np.asarray(y, complex)[None] for y in (q, qd, x)]
    h = 1e-40
    along = (np.array(rate(robot.tree, list(q), list(v)), float), x, qd)
    for own, step in zip(inputs, along, strict=True):
        own += 1j * h * step
    names = [port.name for port in task.ports(robot.tree)]
    found = interpret(trace_rolled(task, robot.tree), dict(zip(names, inputs, strict=True)))
    close(value, found["result"][0].real, 1e7 * EPS)
    close(change, found["result"][0].imag / h, 1e7 * EPS)


def test_matrices_of_a_long_chain() -> None:
    robot, rng = lw.chain(110, kind="random"), np.random.default_rng(1)
    q, qd, tau, v = rng.uniform(-1, 1, (4, 2, 110))
    (qdd, by_q, by_qd, Minv), bits = robot.forward_dynamics_derivatives(
        q, qd, tau, value=True, status=True
    )
    assert bits.shape == (2,) and not bits.any()
    close(qdd, robot.forward_dynamics(q, qd, tau), 1e-12)
    close(Minv, robot.mass_matrix_inverse(q), 1e-9)
    _, change = robot.jvp("forward_dynamics", (q, qd, tau), (v, None, None))
    close(np.einsum("nij,nj->ni", by_q, v), change, 1e-11)
    out = np.empty((2, 331, 110))
    same = robot.forward_dynamics_derivatives(q, qd, tau, out=out)
    assert np.shares_memory(same[1], out) and (same[1] == by_qd).all() and (out[:, -1] == qdd).all()
    _, gradients = robot.vjp("forward_dynamics", (q, qd, tau), v)
    for gradient, part in zip(gradients, (by_q, by_qd, Minv), strict=True):
        close(gradient, np.einsum("ni,nij->nj", v, part), 1e-12)
    tau2, by_q, by_qd, M = robot.inverse_dynamics_derivatives(q, qd, qdd, value=True)
    close(tau2, tau, 1e-8)
    close(M, robot.mass_matrix(q), 1e-12)
    energy = robot.derivative("kinetic_energy", value=True)
    T, (_, momentum) = energy(q, qd)
    close(momentum, np.einsum("nij,nj->ni", M, qd), 1e-12)
    close(T, robot.kinetic_energy(q, qd), 1e-14)
    tip = robot.frame_names[-1]
    J = robot.derivative("forward_kinematics", "q", frame=tip)
    close(J(q), robot.jacobian(q, tip), 1e-12)
    out = np.empty((2, 6, 110))
    assert J(q, out=out) is out and (out == J(q)).all()
    assert energy.operation_count.total < 400 * 110 * 230


def test_products_of_a_long_chain_in_float32_and_without_an_answer() -> None:
    robot = lw.chain(110, kind="random")
    q = np.zeros((2, 110), np.float32)
    value, change = robot.jvp("bias", (q, q), (q + 1, None))
    assert value.dtype == change.dtype == np.float32
    bad = np.ones((2, 110))
    bad[1, 5] = np.nan
    (value, change), bits = robot.jvp("bias", (bad * 0 + 1, bad * 0 + 1), (bad, None), status=True)
    assert np.isfinite(change[0]).all() and np.isnan(change[1]).all()
    assert list(bits) == [0, lw.Status.NOT_FINITE]


def test_what_loops_do_not_write_is_written_out() -> None:
    """Rates of a configuration are not numbers one by one."""
    robot = lw.chain(60, kind="random").with_codegen("rolled")
    assert not Plan(robot._calls.tasks, Asked(Key("integrate"), None, JVP)).task.rolled
    assert not Plan(robot._calls.tasks, Asked(Key("bias"), None, CURVATURE)).task.rolled
    by_blocks = Key("forward_dynamics", "schur")
    assert Plan(robot._calls.tasks, Asked(by_blocks, None, JVP)).task.rolled
    assert not Plan(robot._calls.tasks, Asked(by_blocks, None, VJP)).task.rolled


def test_columns_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = lw.chain(110, kind="random")
    monkeypatch.setattr("linkwise.differentiation.columns.free_memory", lambda: 1_000_000)
    with pytest.raises(ProgramTooLarge, match=r"220 columns of 3 state\(s\) .* robot\.jvp"):
        robot.derivative("bias")(np.zeros((3, 110)), np.zeros(110))


@pytest.mark.parametrize("kind", ["random", "mixed"])
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_gradients_and_products_of_a_long_chain_are_transposed(kind: str, function: str) -> None:
    """``wᵀ (J v) = (Jᵀ w)ᵀ v``, and the same of second derivatives, with a wrench on the way."""
    robot, rng = lw.chain(150, kind=kind), np.random.default_rng(2)
    q, w = robot.random_q(seed=3), rng.normal(size=robot.nv)
    rates = rng.normal(size=(5, robot.nv))
    frame, force, push = robot.frame_names[77], rng.normal(size=6), rng.normal(size=6)
    inputs, moved = (q, *rates[:2]), {"q": rates[2], "qd": rates[3], "f_ext": {frame: push}}
    known = {"f_ext": {frame: force}}
    value, change = robot.jvp(function, inputs, moved, **known)
    wrt = ("q", "qd", "f_ext")
    same, gradients = robot.vjp(function, inputs, w, wrt=wrt, **known)
    close(same, value, 1e-13)
    pairs = [(g.ravel(), v) for g, v in zip(gradients, (*rates[2:4], push), strict=True)]
    scale = sum(np.abs(g) @ np.abs(v) for g, v in pairs)
    assert abs(w @ change - sum(g @ v for g, v in pairs)) <= 1e-12 * scale
    again, changes = robot.hvp(function, inputs, w, moved, **known)
    for a, b in zip(again, gradients, strict=True):
        close(a, b, 1e-12)
    h = 1e-6
    ends = []
    for t in (h, -h):
        there = (robot.integrate(q, rates[2], t), rates[0] + t * rates[3], rates[1])
        pushed = {"f_ext": {frame: force + t * push}}
        ends.append(robot.vjp(function, there, w, wrt=wrt, **pushed)[1])
    for a, plus, minus in zip(changes, *ends, strict=True):
        close(a, (plus - minus) / (2 * h), 1e-6)


def test_gradients_of_a_batch_in_float32_and_without_an_answer() -> None:
    robot = lw.chain(120, kind="mixed")
    rng = np.random.default_rng(5)
    q, v = np.array([robot.random_q(seed=k) for k in range(5)]), rng.normal(size=(5, robot.nv))
    weights = rng.normal(size=(5, robot.nv))
    tau, (by_q, by_qd) = robot.vjp("bias", (q, v), weights)
    for k in range(5):
        alone = robot.vjp("bias", (q[k], v[k]), weights[k])
        assert (alone[0] == tau[k]).all() and (alone[1][0] == by_q[k]).all()
    narrow = robot.vjp("bias", (q.astype("f4"), v.astype("f4")), weights.astype("f4"))
    assert narrow[1][0].dtype == np.float32
    close(narrow[1][0], by_q, 300 * np.finfo(np.float32).eps)
    close(narrow[1][1], by_qd, 300 * np.finfo(np.float32).eps)
    weighted = robot.derivative("bias", weighted=True)(q, v, weights)
    assert (weighted[0] == by_q).all() and (weighted[1] == by_qd).all()
    v[3, 7] = np.inf
    (_, found), bits = robot.vjp("bias", (q, v), weights, status=True)
    assert list(bits) == [0, 0, 0, lw.Status.NOT_FINITE, 0]
    assert (
        np.isnan(found[0][3]).all() and (np.delete(found[0], 3, 0) == np.delete(by_q, 3, 0)).all()
    )


def tree_of(links: int) -> lw.Robot:
    """Every link has two after it."""
    builder, rng = lw.Builder("tree"), np.random.default_rng(0)
    for i in range(links):
        com, place, axis = rng.normal(size=(3, 3))
        builder.link(f"link{i}", mass=1.0, com=0.1 * com, inertia=(0.1, 0.1, 0.1))
        parent = f"link{(i - 1) // 2}" if i else "base"
        builder.joint(
            f"joint{i}", "revolute", parent=parent, child=f"link{i}", xyz=place, axis=axis
        )
    return builder.build()


@pytest.mark.parametrize(
    ("function", "method", "branched"),
    [("forward_dynamics", "schur", False), ("forward_dynamics", "schur-bcr", False),
     ("regressor", "auto", True)],
)  # fmt: skip
def test_loops_that_write_over_what_they_have_read_have_no_way_back(
    function: str, method: str, branched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of algorithms knows them, and a trace would notice one that it did not know."""
    robot = (tree_of(7) if branched else lw.chain(8, kind="random")).with_codegen("rolled")
    asked = Asked(Key(function, method), None, VJP)
    assert not Plan(robot._calls.tasks, asked).task.rolled
    values = 3 * (np.ones(robot.nv),)
    weights = np.ones(getattr(robot, function)(*values).shape)
    _, written = robot.vjp(function, values, weights, method=method)
    _, expected = robot.with_codegen("unrolled").vjp(function, values, weights)
    for a, b in zip(written, expected, strict=True):
        close(a, b, 1e-9)
    monkeypatch.setattr("linkwise.differentiation.plan._in_loops", lambda *_: True)
    with pytest.raises(NotDifferentiable, match="writes to what was read before"):
        equations_of(Plan(robot._calls.tasks, asked), False).trace(USUAL)


def test_second_derivatives_that_fit_nowhere_are_refused_at_once() -> None:
    robot = lw.chain(100_000)
    q, qd, w = np.zeros((3, 100_000))
    with pytest.raises(ProgramTooLarge, match=r"robot\.hvp"):
        robot.derivative("bias", weighted=True, order=2)(q, qd, w)


def test_derivatives_of_scans_are_refused_before_they_are_traced() -> None:
    robot = lw.chain(300)
    q, qd, tau, w = np.zeros((4, 300))
    with pytest.raises(ValueError, match=r"cuts a chain into pieces.*expected method='auto'"):
        robot.vjp("forward_dynamics", (q, qd, tau), w, method="scan")


def test_weights_that_are_missing_are_named() -> None:
    robot = lw.load("puma560")
    second = robot.derivative("forward_dynamics", order=2, weighted=True)
    with pytest.raises(
        TypeError, match=r"was given 3 array\(s\); expected q, qd, tau and, at last"
    ):
        second(*np.zeros((3, 6)))


@pytest.mark.parametrize("kind", [JVP, VJP])
def test_products_of_robots_that_are_not_rolled_may_be(kind: str) -> None:
    """Their programs are several times as large as those of the functions."""
    for links, rolled in ((20, False), (40, True)):
        robot = lw.chain(links)
        plan = Plan(robot._calls.tasks, Asked(Key("forward_dynamics"), None, kind))
        assert plan.task.rolled is rolled
        assert not robot._calls.tasks.task(Key("forward_dynamics")).rolled
        unrolled = robot.with_codegen("unrolled")
        assert not Plan(unrolled._calls.tasks, Asked(Key("bias"), None, kind)).task.rolled
