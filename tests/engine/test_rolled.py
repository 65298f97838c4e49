"""Counted loops: walks over links and rollouts from the very bodies that are unrolled elsewhere."""

from __future__ import annotations

import _thread
import ctypes
import dataclasses
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.algorithms.aba import aba
from linkwise.algorithms.orders import every_other, one_by_one
from linkwise.backends.base import BATCH, ONE
from linkwise.backends.cstyle.render import render_c, word
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.target import host
from linkwise.backends.reference import interpret
from linkwise.engine import build, columns, kernels
from linkwise.engine.auto import in_loops
from linkwise.errors import ProgramTooLarge
from linkwise.spatial import RigidInertia
from linkwise.study.generic import generic_chain
from linkwise.sweep import along_path, base_to_tip
from linkwise.trace import elimination, rolled
from linkwise.trace.classes import MOST, classes_of
from linkwise.trace.expr import At, Expr, Graph, Order, Write
from linkwise.trace.guard import guard
from linkwise.trace.program import Array, Block, For, Port, Program, Slot
from linkwise.trace.roll import trace_rolled
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolledtree import Input, RolledTree
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import IllegalProgram, verify

# -- walks over links ----------------------------------------------------------------------------

ROLLED = [(f, m) for f, methods in FUNCTIONS.items() for m, x in methods.items()
          if x.rolls and not x.scans]  # fmt: skip


def branching(n: int) -> lw.Robot:
    """Revolute joints, every third one on the link before last."""
    b, rng = lw.Builder("tree"), np.random.default_rng(n)
    for i in range(n):
        parent = f"l{i - 1 - (i % 3 == 2)}" if i else "base"
        b = b.link(f"l{i}", mass=1.0 + 0.1 * i, com=rng.uniform(-0.3, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        b = b.joint(f"j{i}", "revolute", parent=parent, child=f"l{i}", axis=rng.normal(size=3),
                    xyz=rng.uniform(-0.4, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3), friction=0.2,
                    damping=0.1)  # fmt: skip
    return b.build()


KINDS = ("free", "revolute", "prismatic", "spherical", "universal", "planar", "revolute", "helical",
         "continuous", "revolute", "spherical")  # fmt: skip


def every_kind(tied: bool = False) -> lw.Robot:
    """Every kind of joint on a tree with two branches; with a joint that follows another."""
    b, rng = lw.Builder("kinds"), np.random.default_rng(4)
    for i, kind in enumerate(KINDS):
        parent = "base" if i == 0 else f"l{i - 1 - 2 * (i == 7)}"
        b = b.link(f"l{i}", mass=1.0 + 0.3 * i, com=rng.uniform(-0.3, 0.3, 3),
                   inertia=rng.uniform(0.15, 0.2, 3))  # fmt: skip
        more: dict[str, Any] = {} if kind in ("free", "spherical", "planar") else {
            "axis": rng.normal(size=3)}  # fmt: skip
        if kind == "universal":
            more = {"axis": [0, 0, 1]}
        more |= {"pitch": 0.2} if kind == "helical" else {}
        more |= {"mimic": ("j1", 0.7, 0.1)} if tied and i == 6 else {}
        more |= {"armature": 0.05} if kind == "revolute" else {}
        b = b.joint(f"j{i}", kind, parent=parent, child=f"l{i}", xyz=rng.uniform(-0.4, 0.4, 3),
                    rpy=rng.uniform(0.2, 1.2, 3), **more)  # fmt: skip
    return b.build()


def hand(n: int, followers: dict[int, tuple[str, float, float]]) -> lw.Robot:
    """A tree with a ball, in which joints follow others: on their own branch or another."""
    b, rng = lw.Builder("hand"), np.random.default_rng(6)
    for i in range(n):
        parent = "base" if i == 0 else f"l{i - 1 - 3 * (i % 5 == 4)}"
        b = b.link(f"l{i}", mass=1.0 + 0.1 * i, com=rng.uniform(-0.3, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        more: dict[str, Any] = {} if i == 6 else {"axis": rng.normal(size=3)}
        more |= {"mimic": followers[i]} if i in followers else {}
        kind = "spherical" if i == 6 else "prismatic" if i == 8 else "revolute"
        b = b.joint(f"j{i}", kind, parent=parent, child=f"l{i}", xyz=rng.uniform(-0.4, 0.4, 3),
                    rpy=rng.uniform(0.2, 1.2, 3), armature=0.02 * i, **more)  # fmt: skip
    return b.build()


ROBOTS = {
    "hand": lambda: hand(12, {2: ("j1", -0.5, 0.1), 7: ("j1", 2.0, 0.0), 8: ("j10", 0.3, 0.0)}),
    "chain": lambda: lw.Robot(generic_chain(9)),
    "tree": lambda: branching(11),
    "kinds": every_kind,
    "tied": lambda: every_kind(tied=True),
    "uniform": lambda: lw.chain(6),
    "geared": lambda: lw.chain(6, joints=("revolute", "universal"), armature=0.1, damping=0.2),
    "table": lambda: lw.chain(7, "random", joints=("revolute", "spherical", "prismatic")),
}


MORE = ("tied", "uniform")  # `make full`: "hand" and "table" are much like these


@pytest.fixture(
    scope="module",
    params=[pytest.param(x, marks=[pytest.mark.full] if x in MORE else []) for x in ROBOTS],
)
def robot(request: pytest.FixtureRequest) -> lw.Robot:
    return ROBOTS[request.param]()


def arguments(robot: lw.Robot, program: Program, count: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    given = {port.name: rng.normal(size=(count, port.size)) for port in program.inputs}
    at = {name: robot.random_q(seed=k, size=count) for k, name in enumerate(("q", "q0", "q1"))}
    return given | {name: x for name, x in at.items() if name in given}


@pytest.mark.parametrize(("function", "method"), ROLLED)
def test_loops_give_what_links_written_out_do(robot: lw.Robot, function: str, method: str) -> None:
    """Every method that can be loops, on chains and trees of every joint kind, to rounding."""
    algorithm, tree = FUNCTIONS[function][method], robot.tree
    if algorithm.why_not(tree) or not algorithm.can_roll(tree):
        assert tree.coupled or "schur" in method  # all else can be loops
        pytest.skip(algorithm.why_not(tree) or algorithm.rolls(tree))
    frame = tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    forced = (tree.frames[robot.frame_names[-2]],) if algorithm.takes_external else ()
    task = Task(algorithm, frame, "base", forced, status=True)
    written_out, loops = trace(task, tree), verify(trace_rolled(task, tree))
    given = arguments(robot, written_out)
    given[written_out.inputs[0].name][3, 0] = np.nan
    expected = interpret(guard(written_out), given)
    found = interpret(verify(guard(loops)), given)
    assert found["status"].tolist() == expected["status"].tolist()
    healthy = np.arange(5) != 3
    assert np.isnan(found["result"][3]).all()
    size = np.abs(expected["result"][healthy]).max()
    error = np.abs(found["result"][healthy] - expected["result"][healthy]).max()
    # solves lose the condition of what they solve, in whatever order sums are taken
    allowed = 1e-11 if algorithm.needs else 1e-13
    if function == "operational_inertia":  # an inverse of 6 by 6, of poses that may be singular
        allowed = max(
            allowed, 1e-13 * np.linalg.cond(expected["result"][healthy].reshape(-1, 6, 6)).max()
        )
    assert error <= allowed * size


FOUR = ("revolute", "prismatic", "spherical", "universal")


def test_many_followers_are_written_out_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops take eight: each takes a solve of its own. Methods without solves take any number."""
    many = hand(20, {k: ("j1", 0.1 * k, 0.0) for k in range(9, 18)}).with_codegen("rolled")
    q, x = many.random_q(seed=0), np.ones(many.nv)
    rolled_ = {
        m for m in ("aba", "fd3", "ccg") if FUNCTIONS["forward_dynamics"][m].can_roll(many.tree)
    }
    assert rolled_ == {"ccg"} and FUNCTIONS["mass_matrix"]["crba"].can_roll(many.tree)
    found, expected = (
        many.forward_dynamics(q, x, x),
        many.with_codegen("unrolled").forward_dynamics(q, x, x),
    )
    assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
    monkeypatch.setattr(build, "free_memory", lambda: 10**7)
    with pytest.raises(ProgramTooLarge, match=(
        r"aba.* it cannot be loops: 9 joints follow others, and loops over 20 links take at most 8"
        r"\); expected a smaller robot"
    )):  # fmt: skip
        lw.Robot(many.description).forward_dynamics(q, x, x, method="aba")


@pytest.mark.parametrize("frame", ["base", "link1", "link2", "link3", "tip"])
@pytest.mark.parametrize(("function", "method"), [
    ("operational_inertia_inverse", "schur-bcr"), ("dynamics_and_inverse", "schur"),
    ("operational_inertia_inverse", "recursive"), ("jacobian", "sweep"),
    ("jacobian_dot_qd", "sweep"), ("tip_acceleration", "fd3"), ("manipulability", "orthogonal"),
])  # fmt: skip
def test_a_path_may_have_fewer_classes_than_the_robot(
    function: str, method: str, frame: str
) -> None:
    robot = lw.chain(9, "random", joints=FOUR)
    task = Task(FUNCTIONS[function][method], robot.tree.frames[frame])
    written_out, loops = trace(task, robot.tree), verify(trace_rolled(task, robot.tree))
    given = arguments(robot, written_out)
    expected, found = (interpret(program, given)["result"] for program in (written_out, loops))
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("function", ["mass_matrix", "inverse_dynamics"])
def test_results_that_overflow_have_a_status(function: str) -> None:
    robot = lw.chain(5, joints=("prismatic", "revolute"))
    task = Task(next(iter(FUNCTIONS[function].values())), status=True)
    programs = (guard(trace(task, robot.tree)), guard(trace_rolled(task, robot.tree)))
    given = {port.name: np.full((1, port.size), 1e200) for port in programs[0].inputs}
    for program in programs:
        assert interpret(program, given)["status"] == lw.Status.OVERFLOW


def test_states_without_an_operational_inertia_have_the_same_status() -> None:
    """Two joints, then others about parallel axes: a pivot is zero to rounding, of either sign."""
    b, rng = lw.Builder("parallel"), np.random.default_rng(2)
    for i in range(8):
        b = b.link(f"l{i}", mass=1.0, com=rng.uniform(-0.3, 0.3, 3), inertia=[0.1, 0.1, 0.1])
        axis = [1, 2, 3] if i > 1 else rng.normal(size=3)
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    axis=axis, xyz=rng.uniform(-0.4, 0.4, 3))  # fmt: skip
    robot = b.build()
    tree, method = robot.tree, FUNCTIONS["operational_inertia"]["recursive"]
    task = Task(method, tree.frames["l7"], status=True)
    for program in (guard(trace(task, tree)), guard(trace_rolled(task, tree))):
        status = interpret(program, {"q": robot.random_q(seed=0, size=200)})["status"]
        assert np.mean(status == lw.Status.SINGULAR) > 0.95  # not all: rounding has no bound


def test_what_a_path_knows_is_read_at_its_own_links() -> None:
    """The last state of a path may be an input itself, and only the path has such states."""
    tree = lw.chain(6, joints=("revolute", "spherical")).tree
    graph = Graph()
    some = RolledTree.of(tree, classes_of(tree), graph)
    q = some.per_link_q(Input("q"))
    states, last = along_path(some, 3, lambda link, parent, q: q[0], 0.0, q)
    ports = [Port("q", tree.nq)]
    program = verify(rolled.program(graph, "last", ports, some.arrays(), (), [last]))
    given = np.arange(float(tree.nq))[None]
    assert interpret(program, {"q": given})["result"] == tree.q_indices[3]
    with pytest.raises(TypeError, match="read by a walk over other links"):
        base_to_tip(some, lambda link, parent, own: own, 0.0, states)


def test_loops_are_not_inside_each_other() -> None:
    graph = Graph()

    def body(step: Step, state: list[Expr]) -> list[Expr]:
        return loop(graph, 2, state, lambda step, inner: [inner[0] + 1.0])

    with pytest.raises(TypeError, match="begins inside the body of another"):
        loop(graph, 3, [graph.input("x", 0)], body)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [w for w in (16, 32, 64) if w <= host().register_bytes])
@pytest.mark.parametrize("name", ["kinds", "tree"])
def test_loops_compiled(name: str, dtype: str, width: int) -> None:
    robot = ROBOTS[name]()
    task = Task(FUNCTIONS["forward_dynamics"]["aba"], status=True)
    program = guard(trace_rolled(task, robot.tree))
    target = dataclasses.replace(host(), register_bytes=width)
    kernel = Llvm(target).compile(program, dtype, BATCH)
    given = arguments(robot, program, 2 * kernel.width + 3)
    given["qd"][1, -1] = np.nan
    rows = [x.astype(dtype) for x in given.values()]
    expected = interpret(program, dict(zip(given, (x.astype(float) for x in rows), strict=True)))
    qdd, status = np.empty((len(rows[0]), robot.nv), dtype), np.empty((len(rows[0]), 1), np.uint16)
    kernel(rows, [qdd, status], 1)
    assert status.ravel().tolist() == expected["status"].tolist()
    good = np.arange(len(qdd)) != 1
    scale = np.abs(expected["result"][good]).max()
    assert np.abs(qdd[good] - expected["result"][good]).max() <= 1e5 * np.finfo(dtype).eps * scale
    assert np.isnan(qdd[1]).all()


def test_a_state_alone_and_in_a_batch_has_the_same_bits() -> None:
    robot = every_kind().with_codegen("rolled")
    q, rng = robot.random_q(seed=0, size=19), np.random.default_rng(1)
    qd, tau = rng.normal(size=(2, 19, robot.nv))
    together = robot.forward_dynamics(q, qd, tau)
    for k in (0, 7, 18):
        assert (robot.forward_dynamics(q[k], qd[k], tau[k]) == together[k]).all()
    assert (robot.forward_dynamics(q, qd, tau, threads=3) == together).all()


# -- matrices over the joints of large robots ------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["kinds", "tree", "table", "uniform"])
def test_matrices_column_by_column(name: str, dtype: str) -> None:
    """M⁻¹ and its factors by loops: what code written out gives, and M⁻¹ symmetric to the bit."""
    robot = ROBOTS[name]()
    rolled_, plain = robot.with_codegen("rolled"), robot.with_codegen("unrolled")
    q = robot.random_q(seed=0, size=(2, 3)).astype(dtype)
    found, status = rolled_.mass_matrix_inverse(q, status=True)
    assert status.shape == (2, 3) and not status.any() and found.dtype == dtype
    assert (found == found.swapaxes(-1, -2)).all()
    expected = plain.mass_matrix_inverse(q.astype(float), method="innovations")
    condition = np.linalg.cond(plain.mass_matrix(q.astype(float))).max()
    scale = np.abs(expected).max() * np.finfo(dtype).eps
    assert np.abs(found - expected).max() <= 20 * condition * scale
    into = np.empty_like(found)
    assert rolled_.mass_matrix_inverse(q, out=into, threads=2) is into and (into == found).all()
    assert (rolled_.mass_matrix_inverse(q[1, 2]) == found[1, 2]).all()
    for inverse in (False, True):
        (F, D), (G, E) = (x.innovations(q, inverse=inverse) for x in (rolled_, plain))
        assert np.abs(F - G).max() <= 1e3 * np.finfo(dtype).eps * np.abs(G).max()
        np.testing.assert_allclose(D, E, rtol=1e3 * np.finfo(dtype).eps)


def test_a_matrix_column_by_column_has_a_status() -> None:
    robot = lw.chain(5).with_codegen("rolled")
    q = np.zeros((3, 5))
    q[1, 2] = np.nan
    rows, status = robot.mass_matrix_inverse(q, status=True)
    assert status.tolist() == [0, lw.Status.NOT_FINITE, 0]
    assert np.isnan(rows[1]).all() and np.isfinite(rows[[0, 2]]).all()
    assert robot.mass_matrix_inverse(np.zeros((0, 5))).shape == (0, 5, 5)
    column = robot.operation_count("solve_mass").total
    assert robot.operation_count("mass_matrix_inverse").total == 5 * column
    assert "solve_mass" in robot.source("mass_matrix_inverse")


@pytest.mark.parametrize(("name", "dtype"), [
    ("kinds", "float64"), ("hand", "float64"), ("geared", "float64"), ("table", "float32"),
])  # fmt: skip
def test_symbols_matrix_by_matrix(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Christoffel's symbols by loops, C of unit rates: what the equations of Γ give, for spherical
    and free joints, followers and rotors too; however many are computed at once.
    """
    robot = ROBOTS[name]()
    rolled_, q = robot.with_codegen("rolled"), robot.random_q(seed=0, size=(2, 2)).astype(dtype)
    found, status = rolled_.christoffel(q, status=True)
    assert found.shape == (2, 2, *3 * (robot.nv,)) and found.dtype == dtype and not status.any()
    for k in np.ndindex(2, 2):
        expected = np.array(robot.evaluate("christoffel", q[k].astype(float)))
        assert (
            np.abs(found[k] - expected).max() <= 40 * np.finfo(dtype).eps * np.abs(expected).max()
        )
    monkeypatch.setattr(columns, "MOST_NUMBERS", 3 * robot.nv**2)
    monkeypatch.setattr(columns, "FEWEST", 1)
    into = np.empty_like(found)
    assert rolled_.christoffel(q, out=into, threads=2) is into and (into == found).all()
    assert (rolled_.christoffel(q[1, 0]) == found[1, 0]).all()


def test_symbols_of_large_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """No code grows with the robot; states without an answer are told, and what does not fit."""
    robot = lw.chain(60, "random")
    q, qd = robot.random_q(seed=0, size=3), np.random.default_rng(0).normal(size=60)
    q[1, 2] = np.nan
    found, status = robot.christoffel(q, status=True)
    assert status.tolist() == [0, lw.Status.NOT_FINITE, 0] and np.isnan(found[1]).all()
    C = robot.coriolis_matrix(q[2], qd)
    assert np.abs(found[2] @ qd - C).max() <= 1e-13 * np.abs(C).max()
    assert "coriolis_matrix" in robot.source("christoffel")
    monkeypatch.setattr(build, "free_memory", lambda: 2**30)
    with pytest.raises(ProgramTooLarge, match=r"600 by 600 by 600 takes about 1\.6 GiB"):
        lw.chain(600).christoffel(np.zeros(600))


@pytest.mark.parametrize(("name", "dtype"), [
    ("kinds", "float64"), ("hand", "float64"), ("tree", "float32"), ("table", "float64"),
])  # fmt: skip
def test_regressors_by_loops(name: str, dtype: str) -> None:
    """Compiled: what the equations give, zeros included; rows of followers are added up."""
    robot, rng = ROBOTS[name](), np.random.default_rng(2)
    q = robot.random_q(seed=0, size=5).astype(dtype)
    qd, qdd = rng.normal(size=(2, 5, robot.nv)).astype(dtype)
    found = robot.with_codegen("rolled").regressor(q, qd, qdd)
    for k in range(5):
        given = (x[k].astype(float) for x in (q, qd, qdd))
        expected = np.array(robot.evaluate("regressor", *given))
        assert (
            np.abs(found[k] - expected).max() <= 200 * np.finfo(dtype).eps * np.abs(expected).max()
        )
        assert ((found[k] == 0.0) | (expected != 0.0)).all()


def test_the_regressor_of_a_large_robot() -> None:
    """Y π is inverse dynamics, of a tree in which joints follow others, in the file's frames; and
    changes along a direction as the torques do.
    """
    robot = hand(60, {k: (f"j{k - 1}", 0.1, 0.0) for k in range(20, 50, 3)})
    rng = np.random.default_rng(2)
    q, x = robot.random_q(seed=0), rng.normal(size=(3, robot.nv))
    pi, bare = robot.inertial_parameters.ravel(), lw.Robot.from_tree(robot.tree.without_rotors())
    expected = bare.inverse_dynamics(q, *x[:2])
    found = robot.regressor(q, *x[:2])
    assert np.abs(found @ pi - expected).max() <= 1e-12 * np.abs(expected).max()
    _, change = bare.jvp("inverse_dynamics", (q, *x[:2]), {"q": x[2]})
    _, rate = robot.jvp("regressor", (q, *x[:2]), {"q": x[2]})
    assert np.abs(rate @ pi - change).max() <= 1e-12 * np.abs(change).max()


def test_the_energies_regressor_of_a_large_robot() -> None:
    robot, rng = branching(60), np.random.default_rng(2)
    q, qd = robot.random_q(seed=0, size=3), rng.normal(size=(3, robot.nv))
    found = robot.energy_regressor(q, qd) @ robot.inertial_parameters.ravel()
    assert found.shape == (3, 2) and in_loops("energy_regressor", robot.tree)
    expected = np.stack([robot.kinetic_energy(q, qd), robot.potential_energy(q)], -1)
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("bend", [1.0, 1e-3, 1e-7, 0.0])
def test_manipulability_by_loops_keeps_its_digits(bend: float) -> None:
    """Near a pose in which a chain can hardly move in some direction: the error is a few roundings
    of what J's other directions make of it.
    """
    robot = lw.chain(60, joints=("revolute",))
    q = bend * robot.random_q(seed=0)
    J = robot.jacobian(q, "tip")
    found, lengths = robot.manipulability(q, "tip"), np.linalg.svd(J, compute_uv=False)
    assert abs(found - lengths.prod()) <= 1e-14 * lengths[:-1].prod() * lengths[0]
    many = robot.manipulability(np.stack([q, q + 0.1]), "tip")
    assert many[0] == found and many[1] != found


@pytest.mark.parametrize("method", ["ccg", "pcg"])
@pytest.mark.parametrize("name", ["kinds", "tree", "table", "tied"])
def test_conjugate_gradients_with_products_by_loops(name: str, method: str) -> None:
    """The same iteration on arrays: the same answer to its tolerance, the same status."""
    robot, rng = ROBOTS[name](), np.random.default_rng(5)
    q = robot.random_q(seed=1, size=4)
    qd, tau = rng.normal(size=(2, 4, robot.nv))
    qd[2, 1] = np.nan
    pull = {robot.frame_names[-2]: rng.normal(size=6)}
    options: Any = {"f_ext": pull, "status": True, "method": method, "tol": 1e-12}
    loops, plain = (robot.with_codegen(x) for x in ("rolled", "unrolled"))
    found, went = loops.forward_dynamics(q, qd, tau, **options)
    expected, usual = plain.forward_dynamics(q, qd, tau, **options)
    assert went.status.tolist() == usual.status.tolist() == [0, 0, lw.Status.NOT_FINITE, 0]
    good = [0, 1, 3]
    condition = np.linalg.cond(plain.mass_matrix(q[good])).max()
    error = np.abs(found[good] - expected[good]).max() / np.abs(expected[good]).max()
    assert error <= 1e-11 * condition and np.isnan(found[2]).all()
    assert (np.abs(went.iterations - usual.iterations)[good] <= 0.3 * usual.iterations[good]).all()
    short = loops.forward_dynamics(q[0], qd[0], tau[0], **(options | {"max_iterations": 2}))[1]
    assert short.status == lw.Status.NOT_CONVERGED and short.iterations == 2
    if loops.tree.coupled and method == "pcg":
        return  # its scaling is of joints on their own, so that it is written out
    with pytest.raises(ValueError, match=r"run on arrays and have no program; expected one of .*"):
        loops.operation_count("forward_dynamics", method)


@pytest.mark.parametrize("codegen", ["rolled", "unrolled"])
def test_the_product_with_the_mass_matrix(robot: lw.Robot, codegen: str) -> None:
    one = robot.with_codegen(codegen)
    q, x = robot.random_q(seed=2, size=3), np.random.default_rng(2).normal(size=(3, robot.nv))
    expected = np.einsum("kij,kj->ki", robot.with_codegen("unrolled").mass_matrix(q), x)
    assert np.abs(one.mass_product(q, x) - expected).max() <= 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 64, 101])
@pytest.mark.parametrize("order", [one_by_one, every_other])
def test_blocks_are_eliminated_in_the_order_of_code_written_out(n: int, order: Any) -> None:
    """And each beside the blocks that are its neighbours by then."""
    A: Any = {(i, j): [[1.0]] for i in range(n) for j in (i - 1, i) if j >= 0}
    blocks, inner, outer = elimination.steps(n, order)
    assert blocks.tolist() == order(A)
    left = list(range(n))
    for k, before, after in zip(blocks, inner, outer, strict=True):
        at = left.index(k)
        assert before == (left[at - 1] if at else n)
        assert after == (left[at + 1] if at + 1 < len(left) else n)
        left.remove(k)


@pytest.mark.parametrize("n", [100, 20_000])
def test_schur_complements_of_long_chains(n: int) -> None:
    """Bias inside: as good as articulated bodies; seven right-hand sides of one factorization."""
    robot, rng = lw.chain(n, "random"), np.random.default_rng(1)
    q, qd, tau = 0.2 * rng.normal(size=n), 0.1 * rng.normal(size=n), 1e-3 * rng.normal(size=n)
    qdd = robot.forward_dynamics(q, qd, tau)
    inverse = robot.operational_inertia_inverse(q, "tip")
    assert robot.method_for("operational_inertia_inverse", frame="tip") == "recursive"
    for method in ("schur", "schur-bcr"):
        found, frame = robot.operational_dynamics(q, qd, tau, "tip", method=method)
        assert np.abs(found - qdd).max() <= 1e-11 * np.abs(qdd).max()
        assert np.abs(frame - inverse).max() <= 1e-11 * np.abs(inverse).max()
        assert (robot.forward_dynamics(q, qd, tau, method=method) == found).all()
        inertia = robot.operational_inertia(q, "tip", method=method)
        expected = np.linalg.inv(inverse)
        condition = np.linalg.cond(inverse)
        assert np.abs(inertia - expected).max() <= 1e-11 * condition * np.abs(expected).max()


def test_schur_complements_that_are_no_loops_say_why() -> None:
    method = FUNCTIONS["forward_dynamics"]["schur-bcr"]
    tree = branching(7).tree
    assert method.rolls is not None
    assert (
        method.rolls(tree) == "links branch or joints follow others, and its loops are for chains"
    )
    mixed = lw.Robot(generic_chain(4)).tree
    first, *rest = mixed.links
    mixed = mixed.with_links([dataclasses.replace(first, armature=(0.1,)), *rest])
    assert method.rolls(mixed) == "some joints of a kind have rotors and others have none"
    assert "the first link lacks inertia" in method.rolls(lw.load("puma560").tree)


TOO_LARGE = {
    "mass_matrix": lambda r, q, x: r.mass_matrix(q),
    "mass_matrix, written out": lambda r, q, x: r.mass_matrix(q, method="gdahj"),
    "mass_matrix_inverse": lambda r, q, x: r.mass_matrix_inverse(q),
    "mass_matrix_inverse, written out": lambda r, q, x: r.mass_matrix_inverse(q, method="aba"),
    "coriolis_matrix": lambda r, q, x: r.coriolis_matrix(q, x),
    "christoffel": lambda r, q, x: r.christoffel(q),
    "inertial_power": lambda r, q, x: r.inertial_power(q),
    "kinematic_hessian": lambda r, q, x: r.kinematic_hessian(q, "tip"),
    "factor": lambda r, q, x: r.innovations(q).factor,
    "factor_inverse": lambda r, q, x: r.innovations(q, inverse=True).factor,
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_matrices_that_do_not_fit_are_refused_with_an_estimate(name: str) -> None:
    """At a hundred thousand links, and at once."""
    robot = lw.chain(100_000)
    function = name.partition(",")[0]
    size = "6 by 100,000" if "hessian" in name else "100,000"
    found = rf"^{function}\[.*\] of .chain100000.: a result of {size} by 100,000.* takes about "
    with pytest.raises(ProgramTooLarge, match=found + r"[\d,.]+ GiB .* robot.solve_mass"):
        TOO_LARGE[name](robot, robot.neutral(), np.zeros(robot.nv))


def test_code_does_not_grow_with_the_number_of_links() -> None:
    def instructions(n: int) -> int:
        program = guard(trace_rolled(Task(FUNCTIONS["forward_dynamics"]["aba"]), lw.chain(n).tree))
        return Llvm().render(program, "float64", BATCH).count(" = ")

    assert instructions(6_000) == instructions(60_000)


def test_operations_of_all_steps_are_counted() -> None:
    def total(n: int) -> int:
        return lw.chain(n).with_codegen("rolled").operation_count("inverse_dynamics").total

    assert total(7) - total(6) == total(6) - total(5) > 80, "as many for each link"


def test_rare_patterns_use_the_general_body_of_their_joint() -> None:
    """A hundred links of a hundred patterns are at most eight classes."""
    tree = lw.Robot(generic_chain(20)).tree
    links = [
        dataclasses.replace(link, damping=float(i % 2), friction=float(i % 3 == 0),
                            armature=(float(i % 5 == 0),), rotor_turn=float(i % 7 == 0))
        for i, link in enumerate(tree.links)
    ]  # fmt: skip
    odd = tree.with_links(links)
    found = classes_of(odd)
    assert len({(x.damping, x.friction, x.armature, x.rotor_turn) for x in links}) > MOST
    assert len(found.classes) <= MOST
    task = Task(FUNCTIONS["inverse_dynamics"]["rnea"])
    given = arguments(lw.Robot.from_tree(odd), trace(task, odd))
    expected = interpret(trace(task, odd), given)["result"]
    found_torques = interpret(trace_rolled(task, odd), given)["result"]
    assert np.abs(found_torques - expected).max() <= 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "forward_dynamics"])
def test_there_are_never_more_than_eight_classes(function: str) -> None:
    """Every joint kind, and followers of every kind that can follow: ten kinds of code."""
    b, rng = lw.Builder("all"), np.random.default_rng(8)
    kinds = [*KINDS, *("revolute", "prismatic", "helical", "revolute", "continuous") * 2]
    follow = {len(KINDS) + k: ("j1", 0.5 + k, 0.1) for k in (0, 1, 2, 4)}
    for i, kind in enumerate(kinds):
        axis = [0, 0, 1] if kind == "universal" else rng.normal(size=3)
        more: dict[str, Any] = {} if kind in ("free", "spherical", "planar") else {"axis": axis}
        more |= {"pitch": 0.2 + 0.1 * i} if kind == "helical" else {}
        more |= {"mimic": follow[i]} if i in follow else {}
        b = b.link(f"l{i}", mass=1.0 + i, com=rng.uniform(-0.3, 0.3, 3), inertia=[0.2, 0.21, 0.22])
        b = b.joint(f"j{i}", kind, parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    xyz=rng.uniform(-0.4, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3),
                    armature=0.1 * (i % 2) * (kind == "revolute"), **more)  # fmt: skip
    robot = b.build()
    tree = robot.tree
    assert len({(type(x.joint), x.follows is None) for x in tree.links}) == 10 > MOST
    assert len(classes_of(tree).classes) <= MOST
    task = Task(next(a for a in FUNCTIONS[function].values() if a.can_roll(tree)))
    written_out, loops = trace(task, tree), verify(trace_rolled(task, tree))
    given = arguments(robot, written_out)
    expected, found = (interpret(program, given)["result"] for program in (written_out, loops))
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


def test_singular_states_are_theirs_alone() -> None:
    """A chain whose last link has no inertia about its joint has no answer; the others have."""
    tree = lw.Robot(generic_chain(5)).tree
    *links, last = tree.links
    bare = dataclasses.replace(last, inertia=RigidInertia.zero(), armature=(0.0,))
    robot = lw.Robot.from_tree(tree.with_links([*links, bare])).with_codegen("rolled")
    rows, status = robot.forward_dynamics(*np.ones((3, 4, 5)), method="aba", status=True)
    assert np.isnan(rows).all() and (status == lw.Status.SINGULAR).all()


def test_loops_are_built_as_all_code_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """With progress, and so that an interrupt is answered."""
    seen: list[str] = []

    def built(*of: Any) -> bytes:
        seen.append(of[1].name)
        return build.built(*of)

    monkeypatch.setattr(kernels, "built", built)
    monkeypatch.setattr(kernels, "default_cache", lambda: None)
    robot = lw.chain(5).with_codegen("rolled")
    assert robot.gravity_torque(robot.neutral()).shape == (5,)
    assert seen == ["gravity_torque[rnea]"]


# -- steps of one state: a rollout ----------------------------------------------------------------

DT, EVERY = 1e-3, 4


def rollout(robot: lw.Robot, steps: int) -> Program:
    """Semi-implicit Euler: torques are read per step, and every fourth state is written."""
    graph, n, tree = Graph(), robot.nv, robot.tree

    def euler(step: Step, state: list[Expr]) -> list[Expr]:
        q, qd = state[:n], state[n:]
        tau = [step.read("tau", k, n) for k in range(n)]
        qd = [v + DT * a for v, a in zip(qd, aba(tree, q, qd, tau), strict=True)]
        q = [x + DT * v for x, v in zip(q, qd, strict=True)]
        for k, value in enumerate((*q, *qd)):
            step.write("states", value, k, 2 * n, every=EVERY)
        return [*q, *qd]

    start = [graph.input(name, k) for name in ("q", "qd") for k in range(n)]
    end = loop(graph, steps, start, euler)
    ports = [Port("q", n), Port("qd", n), Port("tau", steps * n)]
    written = [Slot("states", (steps // EVERY, 2 * n))]
    return rolled.program(graph, "rollout", ports, (), written, end)


def simulated(robot: lw.Robot, given: dict[str, np.ndarray], steps: int) -> np.ndarray:
    q, qd, rows = given["q"], given["qd"], []
    for k in range(steps):
        tau = given["tau"][:, k * robot.nv : (k + 1) * robot.nv]
        qd = qd + DT * robot.forward_dynamics(q, qd, tau, method="aba")
        q = q + DT * qd
        rows.append(np.concatenate([q, qd], 1))
    return np.stack(rows, 1)


def test_a_rollout_is_a_loop_around_forward_dynamics() -> None:
    robot, steps = lw.load("puma560"), 22
    program = verify(guard(verify(rollout(robot, steps))))
    rng = np.random.default_rng(5)
    kernel = Llvm().compile(program, "float64", BATCH)
    given = {p.name: rng.normal(size=(kernel.width + 3, p.size)) for p in program.inputs}
    expected = simulated(robot, given, steps)
    written, last = np.empty((len(expected), steps // EVERY * 12)), np.empty((len(expected), 12))
    kernel(list(given.values()), [written, last], 1)
    found = interpret(program, given)
    for states_, end in ((written, last), (found["states"], found["result"])):
        kept = states_.reshape(len(expected), -1, 12)
        np.testing.assert_allclose(kept, expected[:, EVERY - 1 :: EVERY], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(end, expected[:, -1], rtol=1e-12, atol=1e-12)


# -- C --------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler")
def test_counted_loops_in_c(tmp_path: Path) -> None:
    robot = every_kind()
    task = Task(FUNCTIONS["inverse_dynamics"]["rnea"])
    walk, roll = guard(trace_rolled(task, robot.tree)), guard(rollout(branching(1), 9))
    (tmp_path / "k.c").write_text(render_c(walk, "nobody") + render_c(roll, "nobody"))
    command = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", "k.so", "k.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    rng = np.random.default_rng(6)
    for program in (walk, roll):
        given = {p.name: rng.normal(size=(1, p.size)) for p in program.inputs}
        expected = interpret(program, given)
        out = {o.name: np.empty(o.slot.size) for o in program.outputs}
        arrays = [*(x[0].copy() for x in given.values()), *out.values()]
        library[word(program.name)](*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        for name, value in out.items():
            np.testing.assert_allclose(value, expected[name].ravel(), rtol=1e-12, atol=1e-12)


# -- rules ----------------------------------------------------------------------------------------


def doubling(steps: int = 5) -> Program:
    """``x 2^k`` kept in scratch and written every second step."""
    graph = Graph()

    def body(step: Step, state: list[Expr]) -> list[Expr]:
        (x,) = state
        step.write("room", x, 0, 1)
        step.write("out", x * step.read("table", 0, 1), 0, 1, every=2)
        return [x + x]

    (end,) = loop(graph, steps, [graph.input("x", 0)], body)
    arrays = (Array("room", 5), Array("table", 5, np.arange(1.0, 6.0)))
    return rolled.program(graph, "twice", [Port("x", 1)], arrays, [Slot("out", (2,))], [end])


def changed(count: int = 5, **changes: object) -> Program:
    """The loop with other steps, or with another case."""
    program = doubling()
    place = next(k for k, r in enumerate(program.regions) if isinstance(r, For))
    regions, loop = list(program.regions), the_loop()
    cases = (dataclasses.replace(loop.cases[0], **changes),)  # type: ignore[arg-type]
    regions[place] = dataclasses.replace(loop, count=count, cases=cases)
    return dataclasses.replace(program, regions=tuple(regions))


def the_loop() -> For:
    return next(r for r in doubling().regions if isinstance(r, For))


def listed(values: list[int], at: At, **changes: object) -> Program:
    """The loop with a list of places, by which it writes."""
    program = changed(writes=write(at=at), **changes)
    lists = Array("list", len(values), np.array(values))
    return dataclasses.replace(program, arrays=(*program.arrays, lists))


def cases(which: list[int]) -> Program:
    """The loop with two cases."""
    program, loop = doubling(), the_loop()
    two = dataclasses.replace(loop, cases=loop.cases * 2, which=At(0, 1, "list") if which else None)
    lists = (Array("list", 5, np.array(which)),) if which else ()
    regions = tuple(two if isinstance(r, For) else r for r in program.regions)
    return dataclasses.replace(program, regions=regions, arrays=(*program.arrays, *lists))


def test_a_loop_by_hand() -> None:
    found = interpret(verify(doubling()), {"x": np.array([[3.0]])})
    assert found["out"].tolist() == [[3.0 * 2 * 2, 3.0 * 8 * 4]] and found["result"] == [[96.0]]


def test_every_loop_carries_values_of_its_own() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    (doubled,) = loop(graph, 3, [x], lambda step, state: [state[0] + state[0]])
    (raised,) = loop(graph, 2, [x], lambda step, state: [state[0] + 1.0])
    program = rolled.program(graph, "two", [Port("x", 1)], [], [], [doubled, raised])
    found = interpret(verify(program), {"x": np.array([[5.0]])})["result"]
    assert found.tolist() == [[40.0, 7.0]]


def test_writes_of_a_step_are_seen_by_the_next() -> None:
    graph = Graph()

    def start(step: Step, _: list[Expr]) -> list[Expr]:
        step.write("room", graph.input("x", 0))
        return []

    def add(step: Step, _: list[Expr]) -> list[Expr]:
        step.write("room", step.read("room"), add=True)  # doubles
        step.write("out", step.read("room"), 0, 1)
        return []

    loop(graph, 1, [], start)
    loop(graph, 4, [], add)
    program = rolled.program(graph, "w", [Port("x", 1)], [Array("room", 1)], [Slot("out", (4,))])
    expected = [[1.0, 2.0, 4.0, 8.0]]
    assert interpret(verify(program), {"x": np.array([[1.0]])})["out"].tolist() == expected
    kernel, out = Llvm().compile(program, "float64", BATCH), np.empty((1, 4))
    kernel([np.array([[1.0]])], [out], 1)
    assert out.tolist() == expected


def write(**changes: object) -> tuple[Write, ...]:
    first, *rest = the_loop().writes
    return (first._replace(**changes), *rest)  # type: ignore[arg-type]


SHORT = (Array("room", 5), Array("table", 5, np.ones(1)))
ILLEGAL = {
    "no steps": (lambda: changed(count=0), "has 0 steps; expected at least one"),
    "too many steps": (lambda: changed(count=6), "read outside of 'table'"),
    "an element too far": (lambda: changed(writes=write(at=At(1, 1))), "written outside of 'room'"),
    "before the first": (lambda: changed(writes=write(at=At(3, -1))), "written outside of 'room'"),
    "a list too short": (lambda: listed([1, 2], At(0, 1, "list")), "written outside of"),
    "a list of places too far": (lambda: listed([0, 1, 2, 3, 5], At(0, 1, "list")), "written outs"),
    "no such list": (lambda: changed(writes=write(at=At(0, 1, "other"))), "written outside of"),
    "beyond a list": (lambda: listed([0] * 5, At(0, 1, "list", Order(1, 1))), "written outside of"),
    "a case that is not there": (lambda: cases([0, 1, 2, 1, 0]), "a case that is not there"),
    "nothing says which case": (lambda: cases([]), "nothing says which case"),
    "a case that carries less": (lambda: changed(nexts=()), "carries on another number of values"),
    "one name twice": (lambda: dataclasses.replace(doubling(), arrays=(*SHORT, SHORT[0])),
                       "two arrays are named 'room'"),
    "to a table": (lambda: changed(writes=write(array="table")), "no loop may write to 'table'"),
    "to an input": (lambda: changed(writes=write(array="x")), "no loop may write to 'x'"),
    "adding to an output": (lambda: changed(writes=write(array="out", add=True)), "may write to"),
    "never": (lambda: changed(writes=write(every=0)), "written every 0 steps"),
    "a start unknown": (lambda: dataclasses.replace(doubling(), regions=doubling().regions[1:]),
                        "start of a carried value is not known"),
    "an output nobody writes": (lambda: changed(writes=the_loop().writes[:1]),
                                "output 'out' has no values and no loop writes it"),
    "a body cut short": (lambda: changed(body=Block(())), "needed by a loop, never computed"),
    "a table cut short": (lambda: dataclasses.replace(doubling(), arrays=SHORT),
                          "table 'table' has 1 values; expected 5"),
    "a read outside": (lambda: dataclasses.replace(doubling(), regions=(the_loop().cases[0].body,)),
                       "belongs to"),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_every_rule_of_a_counted_loop_is_named(name: str) -> None:
    make, message = ILLEGAL[name]
    with pytest.raises(IllegalProgram, match=message):
        verify(make())


def test_much_scratch_comes_from_the_heap() -> None:
    program = dataclasses.replace(doubling(), arrays=(*doubling().arrays, Array("much", 10**6)))
    text = Llvm().render(program, "float64", BATCH)
    assert "call ptr %malloc" in text and "call void %free" in text
    kernel, x = Llvm().compile(program, "float64", BATCH), np.arange(1.0, 12.0)[:, None]
    out, end = np.empty((11, 2)), np.empty((11, 1))
    kernel([x], [out, end], 1)
    assert (end == 32.0 * x).all() and (out == x * [4.0, 32.0]).all()


@pytest.mark.parametrize("form", [BATCH, ONE])
def test_an_interrupt_is_answered_within_a_state_that_takes_long(form: str) -> None:
    """What is still computed goes to no array of the caller's."""
    kernel = Llvm().compile(doubling(), "float64", form)
    called: list[tuple[Any, ...]] = []

    def slow(*arguments: Any) -> None:
        called.append(arguments)
        time.sleep(3.0)

    states = 1 if form == ONE else 3 * kernel.width
    x, outputs = np.ones((states, 1)), [np.full((states, 2), 7.0), np.full((states, 1), 7.0)]
    kernel.cost = 1e9  # nanoseconds a state, measured or foreseen
    kernel([x], outputs, 1)
    assert (outputs[1] == 32.0).all() and (outputs[0] == [4.0, 32.0]).all()
    kernel.cost, outputs[0][...] = 1e9, 7.0
    kernel._one = kernel._batch = slow  # type: ignore[assignment]
    threading.Timer(0.3, _thread.interrupt_main).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        kernel([x], outputs, 1)
    assert time.monotonic() - start < 1.3 and len(called) == 1
    assert (outputs[0] == 7.0).all()


def test_no_memory_is_an_error() -> None:
    """Where memory cannot be had, nothing is computed and the call says so."""
    program = dataclasses.replace(doubling(), arrays=(*doubling().arrays, Array("much", 2**44)))
    kernel = Llvm().compile(program, "float64", BATCH)

    def refused(_: int) -> bool:
        with pytest.raises(MemoryError, match="could not allocate the scratch buffer"):
            kernel([np.ones((3, 1))], [np.empty((3, 2)), np.empty((3, 1))], 1)
        return True

    with ThreadPoolExecutor(4) as pool:  # each of several calls at the same time
        assert all(pool.map(refused, range(40)))


def test_cases_by_hand() -> None:
    """Odd steps double, even ones add one."""
    graph = Graph()
    bodies = (lambda step, s: [s[0] + 1.0], lambda step, s: [s[0] + s[0]])
    which = At(0, 1, "parity", Order(4, -1))  # steps take items 4, 3, 2, 1, 0
    (end,) = loop(graph, 5, [graph.input("x", 0)], *bodies, which=which)
    arrays = [Array("parity", 5, np.array([0, 1, 0, 1, 1]))]
    program = verify(rolled.program(graph, "cases", [Port("x", 1)], arrays, (), [end]))
    expected = [[((3.0 * 2) * 2 + 1) * 2 + 1]]
    assert interpret(program, {"x": np.array([[3.0]])})["result"].tolist() == expected
    kernel, out = Llvm().compile(program, "float64", BATCH), np.empty((1, 1))
    kernel([np.array([[3.0]])], [out], 1)
    assert out.tolist() == expected


def test_cases_carry_an_input_on() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    bodies = (lambda step, s: [x, s[0]], lambda step, s: [x, y])
    end = loop(graph, 3, [0.0, 0.0], *bodies, which=At(0, 1, "parity"))
    arrays = [Array("parity", 3, np.array([0, 1, 0]))]
    program = verify(rolled.program(graph, "inputs", [Port("x", 2)], arrays, (), [*end, x]))
    kernel, out = Llvm().compile(program, "float64", BATCH), np.empty((1, 3))
    kernel([np.array([[3.0, 5.0]])], [out], 1)
    assert out.tolist() == [[3.0, 3.0, 3.0]]
