"""Compiled kernels against the interpreter and against exact numbers, and what they may touch."""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import math
import mmap
import operator
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from rotations import random_rotation

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends import reference
from linkwise.backends.base import BATCH, ONE
from linkwise.backends.cstyle.render import render_c
from linkwise.backends.elementary import LIMIT_FUSED, LIMIT_PLAIN
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.copies import edge, holes
from linkwise.backends.llvm.layout import layout
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import Target, host
from linkwise.backends.llvm.types import NUMBERS, Lanes
from linkwise.engine.tasks import Key
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.robot import Robot
from linkwise.spatial.matrices import lengths
from linkwise.spatial.scalar import sincos
from linkwise.study.generic import generic_chain
from linkwise.trace.assemble import needed
from linkwise.trace.expr import Expr, Graph, reachable
from linkwise.trace.fuse import fuse
from linkwise.trace.guard import guard
from linkwise.trace.program import FLAGS, Block, Carry, Output, Port, Program, Repeat
from linkwise.trace.schedule import FREE, schedule, together
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import verify

DTYPES = ("float64", "float32")
TOLERANCE = {"float64": 1e-13, "float32": 1e-5}  # relative to a state's largest number
ALL = [a for methods in FUNCTIONS.values() for a in methods.values() if not a.iterates]
USUAL = [  # as much of every kind of operation as all of them
    FUNCTIONS[function][method]
    for function, method in (
        ("forward_dynamics", "crba"), ("forward_dynamics", "aba"), ("mass_matrix_inverse", "schur"),
        ("jacobian", "sweep"), ("coriolis_matrix", "composite"),
    )
]  # fmt: skip
LANES = {dtype: Llvm().lanes(dtype, BATCH).width for dtype in DTYPES}
WIDTHS = [w for w in (16, 32, 64) if w <= host().register_bytes]
TARGETS = [
    replace(host(), register_bytes=width, fused=fused)
    for width in WIDTHS
    for fused in ((True, False) if host().fused else (False,))
]

each_target = pytest.mark.parametrize(
    "target", TARGETS, ids=lambda t: f"{8 * t.register_bytes}bit-{'fma' if t.fused else 'plain'}"
)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_algorithm = pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# -- programs by hand ---------------------------------------------------------------------------


def row(*values: Expr) -> Output:
    """The only output of a program made by hand."""
    return Output("result", (len(values),), values)


def program_of(results: list[Expr], *ports: Port, name: str = "by hand") -> Program:
    """One block that computes the results."""
    return verify(Program(name, ports, (Block(needed(results)),), (row(*results),)))


def compiled(program: Program, target: Target, dtype: str) -> LlvmKernel:
    return Llvm(target).compile(guard(together(program)), dtype, BATCH)


def run_kernel(kernel: LlvmKernel, *inputs: np.ndarray) -> np.ndarray:
    """The result as rows, of a kernel that has no other output."""
    (slot,) = kernel.signature.outputs
    out = np.full((len(inputs[0]), slot.size), 7.0, inputs[0].dtype)
    kernel([np.ascontiguousarray(a) for a in inputs], [out], 1)
    return out


def interpret(program: Program, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The result as rows, by the reference interpreter."""
    found = reference.interpret(guard(program), inputs)["result"]
    return found.reshape(len(found), -1)


def assert_close(
    result: np.ndarray, expected: np.ndarray, tolerance: float, condition: Any = 1.0
) -> None:
    """Agree relative to a state's largest entry, or to 1 where that cancels to less."""
    largest = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1.0)
    error = np.abs(result - expected) / (largest * np.reshape(condition, (-1, 1)))
    assert error.max() <= tolerance, f"off by {error.max():.3g} of the largest entry"


# -- every function against the interpreter -----------------------------------------------------


def tree_robot(seed: int, joints: int) -> lw.Robot:
    """A small tree of random links; rotors keep its mass matrix well conditioned."""
    rng = np.random.default_rng(seed)
    links, moving = [LinkDescription("base")], []
    for i in range(joints):
        turn, axis = random_rotation(rng), rng.normal(size=3)
        axis /= lengths(axis)
        pose = Pose(tuple(map(tuple, turn.tolist())), tuple(rng.uniform(-0.5, 0.5, 3).tolist()))  # type: ignore[arg-type]
        tensor = (0.2, 0.01, -0.02, 0.3, 0.03, 0.25)
        links.append(
            LinkDescription(f"l{i}", BodyInertia(rng.uniform(0.5, 2), (0.1, 0.0, -0.1), tensor))
        )
        parent = max(-1, i - 1 - int(rng.integers(2))) if seed else i - 1
        moving.append(
            JointDescription(
                f"j{i}",
                "prismatic" if rng.random() < 0.3 else "revolute",
                "base" if parent < 0 else f"l{parent}",
                f"l{i}",
                pose,
                tuple(axis.tolist()),
                armature=0.5,
            )
        )
    gravity = (0.3, -0.2, -9.81)
    return Robot(RobotDescription("tree", tuple(links), tuple(moving), gravity, base="base"))


@cache
def trees() -> list[lw.Robot]:
    return [tree_robot(seed, joints) for seed, joints in ((0, 7), (1, 1), (2, 4), (3, 9))]


def task_of(algorithm: Algorithm, robot: lw.Robot, axes: str = "base") -> Task | None:
    """The algorithm on the robot's last frame; None where that makes no sense."""
    if algorithm.function == "generalized_jacobian" and not algorithm.exists_for(robot.tree):
        return None
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    if frame and algorithm.needs_of_frame and algorithm.needs_of_frame(robot.tree, frame):
        return None
    if algorithm.function == "position_inertia" and robot.nv < 6:
        return None  # small arms may move in a plane only
    return Task(algorithm, frame, axes)


@cache
def flight() -> lw.Robot:
    """A tool that turns on a flying base: the smallest robot that has every function."""
    builder = lw.Builder("flight")
    for name, kind, parent in (("hull", "free", "base"), ("tool", "revolute", "hull")):
        builder.link(name, mass=1.5, com=(0.1, 0.0, -0.1), inertia=(0.2, 0.3, 0.25))
        builder.joint(name, kind, parent=parent, child=name, axis=(0.6, 0, 0.8), xyz=(0, 0.2, 0.3))
    return builder.build()


def sizes(algorithm: Algorithm, size: str) -> list[lw.Robot]:
    """A tree of four joints, or all trees; what asks for six degrees of freedom gets them."""
    small = trees()[2] if task_of(algorithm, trees()[2]) else flight()
    able = any(task_of(algorithm, robot) for robot in trees())
    return trees() if size == "all" and able else [small]


def kernels() -> Iterator[Any]:
    """All in a full run; else each method on a small robot in one number type, by turns: the other
    one than in tests/papers/test_agreement_all.py.
    """
    places = [a for methods in FUNCTIONS.values() for a in methods.values()]
    for algorithm, dtype, size in itertools.product(ALL, DTYPES, ("small", "all")):
        short = size == "small" and dtype == DTYPES[1 - places.index(algorithm) % 2]
        label = f"{algorithm.function}-{algorithm.method}-{dtype}-{size}"
        marks = () if short else (pytest.mark.full,)
        yield pytest.param(algorithm, dtype, size, marks=marks, id=label)


@pytest.mark.parametrize(("algorithm", "dtype", "size"), list(kernels()))
def test_every_kernel_agrees_with_the_interpreter(
    algorithm: Algorithm, dtype: str, size: str
) -> None:
    tried = 0
    for robot, axes in itertools.product(sizes(algorithm, size), ("base", "body")):
        task = task_of(algorithm, robot, axes)
        if task is None or (axes == "body" and not algorithm.takes_axes):
            continue
        tried += 1
        program = verify(trace(task, robot.tree))
        rng = np.random.default_rng(robot.nv)
        inputs = [
            rng.uniform(-2, 2, (3 * LANES[dtype] + 1, p.size)).astype(dtype) for p in program.inputs
        ]
        result = run_kernel(compiled(program, host(), dtype), *inputs)
        # float32 inputs are exact in float64, so only the kernel's own arithmetic differs
        wide = {p.name: a.astype(float) for p, a in zip(program.inputs, inputs, strict=True)}
        expected = interpret(program, wide)
        assert_close(result, expected, TOLERANCE[dtype], _condition(algorithm, expected))
    assert tried


def _condition(algorithm: Algorithm, result: np.ndarray) -> Any:
    """How much a solve may magnify rounding, state by state."""
    # Schur complements invert the inertia of each link, too
    return (100.0 if algorithm.method.startswith("schur") else 1.0) * _solved(algorithm, result)


def _solved(algorithm: Algorithm, result: np.ndarray) -> Any:
    if algorithm.function in ("operational_inertia", "position_inertia"):
        rows = 6 if algorithm.function == "operational_inertia" else 3
        return np.linalg.cond(result.reshape(-1, rows, rows))
    # by a pseudo-inverse of the Jacobian, whose condition is some tens at these states
    return 10.0 if algorithm.function == "manipulability_gradient" else 1.0


def wrench_cases() -> Iterator[Any]:
    """All in a full run; else every other method in float64 with two wrenches, and the others in
    float32 with one.
    """
    for case in itertools.product((1, 2), DTYPES, (0, 1)):
        short = case in ((2, "float64", 0), (1, "float32", 1))
        yield pytest.param(*case, marks=() if short else pytest.mark.full)


@pytest.mark.parametrize(("external", "dtype", "first"), list(wrench_cases()))
def test_kernels_with_external_wrenches_agree_with_the_interpreter(
    external: int, dtype: str, first: int
) -> None:
    robot = trees()[2]
    for algorithm in [a for a in ALL if a.takes_external][first::2]:
        frames = tuple(robot.tree.frames[f"l{k}"] for k in (3, 1)[:external])
        task = task_of(algorithm, robot)
        if task is None:
            continue
        program = verify(trace(replace(task, external=frames), robot.tree))
        rng = np.random.default_rng(external)
        inputs = [
            rng.uniform(-2, 2, (LANES[dtype] + 3, p.size)).astype(dtype) for p in program.inputs
        ]
        result = run_kernel(compiled(program, host(), dtype), *inputs)
        wide = {p.name: a.astype(float) for p, a in zip(program.inputs, inputs, strict=True)}
        expected = interpret(program, wide)
        assert_close(result, expected, TOLERANCE[dtype], _condition(algorithm, expected))


ARITHMETIC: dict[str, Callable[..., Expr]] = {
    "sums": lambda a, b, c: a + b + c,
    "differences": lambda a, b, c: a - b - c,
    "products": lambda a, b, c: a * b * c,
    "quotients": lambda a, b, c: a / (b * b + 1.0) / (c * c + 2.0),
    "negatives": lambda a, b, c: -(a * b) - c,
    "multiply-adds": lambda a, b, c: (a * b + c) * (a * c - b) + (b - a * c),
    "sines": lambda a, b, c: sincos(a)[0] * sincos(b)[1] + sincos(c)[0],
    "constants": lambda a, b, c: 3.25 * a - 1e-3 * b + (c + 0.1),
}


@each_target
@each_dtype
@pytest.mark.parametrize("name", ARITHMETIC)
def test_every_operation_on_every_target(target: Target, dtype: str, name: str) -> None:
    """Small programs: what an algorithm is made of, in the first, middle and last lanes."""
    graph = Graph()
    a, b, c = (graph.input("x", k) for k in range(3))
    program = program_of(fuse(graph, [ARITHMETIC[name](a, b, c)]), Port("x", 3))
    x = np.random.default_rng(6).uniform(-2, 2, (2 * LANES[dtype] + 3, 3)).astype(dtype)
    result = run_kernel(compiled(program, target, dtype), x)
    assert_close(result, interpret(program, {"x": x.astype(float)}), TOLERANCE[dtype])


@cache
def on_target(
    algorithm: Algorithm, target: Target, dtype: str, tree: int = 2
) -> tuple[Program, LlvmKernel]:
    """A program of one of the trees, and its kernel for a target."""
    robot = trees()[tree]
    program = trace(task_of(algorithm, robot) or Task(algorithm), robot.tree)
    return program, compiled(program, target, dtype)


@pytest.mark.parametrize("methods", ["usual", pytest.param("all", marks=pytest.mark.full)])
@each_target
@each_dtype
def test_every_target_agrees_with_the_interpreter(target: Target, dtype: str, methods: str) -> None:
    """Every other of the usual methods on a target, and on the next one the others; or all."""
    turn = TARGETS.index(target) + DTYPES.index(dtype)
    for algorithm in ALL if methods == "all" else USUAL[turn % 2 :: 2]:
        if task_of(algorithm, trees()[2]) is None:
            continue
        program, kernel = on_target(algorithm, target, dtype)
        rng = np.random.default_rng(3)
        inputs = [rng.uniform(-2, 2, (11, p.size)).astype(dtype) for p in program.inputs]
        result = run_kernel(kernel, *inputs)
        wide = {p.name: a.astype(float) for p, a in zip(program.inputs, inputs, strict=True)}
        expected = interpret(program, wide)
        assert_close(result, expected, TOLERANCE[dtype], _condition(algorithm, expected))


@pytest.mark.parametrize("methods", ["usual", pytest.param("all", marks=pytest.mark.full)])
@each_dtype
def test_lane_width_does_not_change_a_bit(dtype: str, methods: str) -> None:
    tree = 0 if methods == "all" else 2
    targets = [replace(host(), register_bytes=width) for width in WIDTHS]
    for algorithm in ALL if methods == "all" else USUAL:
        pairs = [on_target(algorithm, target, dtype, tree) for target in targets]
        rng = np.random.default_rng(4)
        inputs = [rng.uniform(-2, 2, (19, p.size)).astype(dtype) for p in pairs[0][0].inputs]
        results = [run_kernel(kernel, *inputs) for _, kernel in pairs]
        assert all(same_bits(r, results[0]) for r in results), algorithm.function


# -- memory -------------------------------------------------------------------------------------

MEMORY_TASKS = (
    "forward_dynamics", "mass_matrix", "kinetic_energy", "jacobian", "forward_kinematics",
)  # fmt: skip


def memory_kernels(dtype: str) -> Iterator[tuple[str, LlvmKernel]]:
    robot = lw.load("iiwa14")  # seven joints: no row is a whole number of registers
    for function in MEMORY_TASKS:
        task = task_of(next(iter(FUNCTIONS[function].values())), robot)
        assert task is not None
        kernels = robot._calls.kernels
        yield function, kernels.kernel(kernels.equations(task), dtype, BATCH)


@each_dtype
def test_nothing_is_written_outside_the_output(dtype: str) -> None:
    edge = 64
    pattern = np.frombuffer(b"\xa5" * 8 * edge, dtype)[:edge]
    for function, kernel in memory_kernels(dtype):
        for count in range(1, 2 * LANES[dtype] + 2):
            rng = np.random.default_rng(count)
            signature = kernel.signature
            sizes = [x.size for x in (*signature.inputs, *signature.outputs)]
            pools = [np.concatenate([pattern, np.zeros(count * n, dtype), pattern]) for n in sizes]
            inner = [p[edge:-edge].reshape(count, n) for p, n in zip(pools, sizes, strict=True)]
            for a in inner[:-1]:
                a[...] = rng.uniform(-2, 2, a.shape)
            before = [a.copy() for a in inner[:-1]]
            inner[-1][...] = np.nan
            kernel(inner[:-1], inner[-1:], 1)
            for pool in pools:
                assert same_bits(pool[:edge], pattern) and same_bits(pool[-edge:], pattern), count
            assert all(same_bits(a, b) for a, b in zip(inner[:-1], before, strict=True))
            assert np.isfinite(inner[-1]).all(), f"{function}: {count} states, some not written"


@each_dtype
def test_a_range_of_rows_writes_only_its_rows(dtype: str) -> None:
    lanes = LANES[dtype]
    for _, kernel in memory_kernels(dtype):
        rng = np.random.default_rng(1)
        count = 3 * lanes + 2
        inputs = [
            rng.uniform(-2, 2, (count, p.size)).astype(dtype) for p in kernel.signature.inputs
        ]
        whole = run_kernel(kernel, *inputs)
        out = np.empty_like(whole)
        pointers = [a.ctypes.data for a in (*inputs, out)]
        ports = (ctypes.c_void_p * len(pointers))(*pointers)
        steps = (ctypes.c_int64 * (2 * len(inputs)))(*(s for a in inputs for s in a.strides))
        for begin, end in ((0, 0), (0, 1), (1, 2), (1, lanes + 1), (lanes, count), (count, count)):
            out[...] = 7.0
            kernel._batch(ctypes.addressof(ports), ctypes.addressof(steps), begin, end)
            assert same_bits(out[begin:end], whole[begin:end])
            assert (out[:begin] == 7.0).all() and (out[end:] == 7.0).all()


class GuardedPages:
    """Room between two pages that may not be touched; arrays are put against either of them."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self.room = -(-size // page) * page
        self.map = mmap.mmap(-1, self.room + 2 * page)
        self.bytes = np.frombuffer(self.map, np.uint8)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        start = self.bytes.ctypes.data
        for at in (start, start + page + self.room):
            if protect(at, page, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self.inner = self.bytes[page : page + self.room]

    def array(self, shape: tuple[int, ...], dtype: str, at_end: bool) -> np.ndarray:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        part = self.inner[self.room - size :] if at_end else self.inner[:size]
        return part.view(dtype).reshape(shape)


def in_child(work: Callable[[], None]) -> str:
    """How a forked child that runs ``work`` ends: an empty string if well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return "" if os.WEXITSTATUS(status) == 0 else "failed"


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="protects pages as Linux does")
fork_warning = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork.*:DeprecationWarning"
)


@on_linux
@fork_warning
def test_guarded_pages_do_guard() -> None:
    def read_too_far() -> None:
        faulthandler.disable()  # this crash is meant to be
        pages = GuardedPages(100)
        array = pages.array((4,), "float64", at_end=True)
        ctypes.c_double.from_address(array.ctypes.data + array.nbytes).value  # noqa: B018

    assert in_child(read_too_far) in ("killed by signal 11", "killed by signal 7")


@on_linux
@fork_warning
@pytest.mark.parametrize("at_end", [True, False], ids=["page after", "page before"])
@each_dtype
def test_nothing_is_read_or_written_out_of_bounds(dtype: str, at_end: bool) -> None:
    kernels = dict(memory_kernels(dtype))
    most = 2 * LANES[dtype] + 1

    def work() -> None:
        for kernel in kernels.values():
            signature = kernel.signature
            sizes = [x.size for x in (*signature.inputs, *signature.outputs)]
            pages = [GuardedPages(most * n * 8) for n in sizes]
            for count in range(1, most + 1):
                arrays = [
                    p.array((count, n), dtype, at_end) for p, n in zip(pages, sizes, strict=True)
                ]
                for a in arrays[:-1]:
                    a[...] = np.linspace(-2, 2, a.size).reshape(a.shape)
                expected = run_kernel(kernel, *(a.copy() for a in arrays[:-1]))
                kernel(arrays[:-1], arrays[-1:], 1)
                assert same_bits(arrays[-1], expected)

    assert in_child(work) == ""


@on_linux
@fork_warning
@pytest.mark.skipif(layout() is None, reason="no compiled single-state calls")
@pytest.mark.parametrize("at_end", [True, False], ids=["page after", "page before"])
def test_single_calls_stay_in_bounds(at_end: bool) -> None:
    robot = lw.load("iiwa14")
    rng = np.random.default_rng(0)
    q, qd, tau = rng.uniform(-2, 2, (3, 7))
    expected = robot.forward_dynamics(q, qd, tau)
    matrix = robot.mass_matrix(q)

    def work() -> None:
        pages = [GuardedPages(49 * 8) for _ in range(5)]
        inputs = [p.array((7,), "float64", at_end) for p in pages[:3]]
        for a, b in zip(inputs, (q, qd, tau), strict=True):
            a[...] = b
        out = pages[3].array((7,), "float64", at_end)
        assert same_bits(robot.forward_dynamics(*inputs), expected)
        assert robot.forward_dynamics(*inputs, out=out) is out
        assert same_bits(out, expected)
        square = pages[4].array((7, 7), "float64", at_end)
        assert robot.mass_matrix(inputs[0], out=square) is square
        assert same_bits(square, matrix)

    assert in_child(work) == ""


# -- sine and cosine ----------------------------------------------------------------------------

# The last operation rounds a number of size up to 1 once (eps/4), the reduced angle carries an
# error of up to eps/4 (eps/2 after the long reduction, which rounds twice), and the polynomials add
# a little. Measured: 1.7e-16 within the limit and 1.94e-16 beyond it for float64, and 9.2e-8 for
# float32.
SINCOS_ERROR = {"float64": 2.2e-16, "float32": 1.1e-7}


def sincos_program(angles: int = 1) -> Program:
    graph = Graph()
    xs = [graph.input("x", i) for i in range(angles)]
    results = [graph.node(op, x) for x in xs for op in ("sin", "cos")]
    return program_of(results, Port("x", angles), name="sincos")


@cache
def sincos_kernel(target: Target, dtype: str) -> LlvmKernel:
    return compiled(sincos_program(), target, dtype)


def right_angles(multiples: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers nearest to k pi/2, and their neighbours."""
    with mpmath.workprec(400):
        near = np.array([float(int(k) * mpmath.pi / 2) for k in multiples]).astype(dtype)
    up, down = (np.nextafter(near, np.array(x, dtype)) for x in (np.inf, -np.inf))
    return np.concatenate([near, up, down, -near])


def around(limit: float, dtype: str) -> np.ndarray:
    steps = np.arange(-40, 41) * np.finfo(dtype).eps
    near = (limit * (1.0 + steps)).astype(dtype)
    return np.concatenate([near, -near])


@cache
def angles(dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    info = np.finfo(dtype)
    bits = info.bits
    limits = (LIMIT_FUSED[bits], LIMIT_PLAIN[bits])
    largest = float(info.max)
    exact_powers = 2.0 ** np.arange(-30, np.log2(largest) // 1)
    huge = [1e22, 1e300, 6381956970095103.0 * 2.0**797, largest] if bits == 64 else [1e22, largest]
    sets = {
        "usual": rng.uniform(-10, 10, 4000),
        "one turn": np.linspace(-np.pi, np.pi, 1001),
        "octants": np.pi / 4 * rng.integers(1, 60, 500) * (1 + 1e-4 * rng.normal(size=500)),
        "thousands": rng.uniform(-1e4, 1e4, 1000),
        "up to the limits": np.concatenate([x * rng.uniform(-1, 1, 800) for x in limits]),
        "large": np.exp(rng.uniform(np.log(1e3), np.log(largest), 1500)),
        "powers": np.concatenate([exact_powers, -exact_powers]),
        "huge": np.array([*huge, *(-x for x in huge)]),
        "tiny": np.concatenate([10.0 ** rng.uniform(-30, -1, 300), [info.tiny, info.eps]]),
        "subnormal": float(info.smallest_subnormal) * np.array([1, 2, 3, 1000, -1, -77]),
        "zero": np.array([0.0, -0.0]),
    }
    return {k: v.astype(dtype) for k, v in sets.items()} | {
        "at the limits": np.concatenate([around(x, dtype) for x in limits]),
        "right angles": right_angles(rng.integers(1, 2**19 if bits == 64 else 2**9, 300), dtype),
        "large right angles": right_angles(
            rng.integers(1, 2**45 if bits == 64 else 2**30, 200), dtype
        ),
    }


@cache
def exact(dtype: str, name: str) -> np.ndarray:
    """Sine and cosine (n, 2, 2): each the sum of two doubles."""
    rows = []
    with mpmath.workprec(200):
        for x in angles(dtype)[name].astype(float).tolist():
            for y in (mpmath.sin(x), mpmath.cos(x)):
                rows.append((float(y), float(y - float(y))))
    return np.array(rows).reshape(-1, 2, 2)


@each_target
@each_dtype
@pytest.mark.parametrize("name", angles("float64"))
def test_sincos_is_right_to_rounding(target: Target, dtype: str, name: str) -> None:
    x = angles(dtype)[name]
    result = run_kernel(sincos_kernel(target, dtype), x[:, None]).astype(float)
    expected = exact(dtype, name)
    error = np.abs((result - expected[:, :, 0]) - expected[:, :, 1])
    worst = np.unravel_index(np.argmax(error), error.shape)
    assert error.max() <= SINCOS_ERROR[dtype], f"{('sin', 'cos')[worst[1]]} of {x[worst[0]]!r}"


@each_target
@each_dtype
def test_sines_of_small_angles_keep_their_digits(target: Target, dtype: str) -> None:
    for name in ("tiny", "subnormal", "zero"):
        x = angles(dtype)[name]
        sine = run_kernel(sincos_kernel(target, dtype), x[:, None])[:, 0].astype(float)
        expected = exact(dtype, name)[:, 0, 0]
        np.testing.assert_array_less(
            np.abs(sine - expected), 2 * np.finfo(dtype).eps * np.abs(expected) + 1e-320
        )


@each_target
@each_dtype
def test_sincos_of_what_is_no_angle(target: Target, dtype: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -np.nan], dtype)[:, None]
    assert np.isnan(run_kernel(sincos_kernel(target, dtype), x)).all()


@each_target
@each_dtype
def test_a_large_angle_does_not_touch_its_neighbours(target: Target, dtype: str) -> None:
    kernel = sincos_kernel(target, dtype)
    lanes = kernel.width
    rng = np.random.default_rng(6)
    small = rng.uniform(-10, 10, (2 * lanes, 1)).astype(dtype)
    expected = run_kernel(kernel, small)
    strange = [1e6, 1e9, 1e22, float(np.finfo(dtype).max), np.inf, -np.inf, np.nan]
    for value, lane in itertools.product(strange, range(2 * lanes)):
        x = small.copy()
        x[lane] = value
        result = run_kernel(kernel, x)
        others = np.arange(2 * lanes) != lane
        assert same_bits(result[others], expected[others]), (value, lane)
        alone = run_kernel(kernel, np.full((lanes, 1), value, dtype))
        assert same_bits(result[lane], alone[0]), "the same in every lane"


@pytest.mark.skipif(layout() is None, reason="no compiled single-state calls")
@pytest.mark.parametrize("fused", sorted({False, host().fused}))
def test_one_state_has_the_sincos_of_a_batch(fused: bool) -> None:
    """For one state, angles go side by side: any number of them, and any of them large."""
    target = replace(host(), fused=fused)
    rng = np.random.default_rng(8)

    for count in (1, 2, target.lanes(8) - 1, target.lanes(8), 2 * target.lanes(8) + 1):
        program = sincos_program(count)
        kernel = Llvm(target).compile(guard(program), "float64", ONE)
        rows = rng.uniform(-10, 10, (count + 2, count))
        rows[np.arange(count), np.arange(count)] = rng.choice([1e12, np.inf, np.nan, -1e300], count)
        batch = run_kernel(compiled(program, target, "float64"), rows)
        for row, expected in zip(rows, batch, strict=True):
            result = np.empty(expected.shape)
            kernel([row[None]], [result[None]])
            np.testing.assert_array_equal(result, expected)
            finite = np.isfinite(expected)
            assert same_bits(result[finite], expected[finite])


# -- loops --------------------------------------------------------------------------------------


def body_of(results: list[Expr], known: list[Expr]) -> Block:
    """The nodes a loop's body computes: not its carried values, nor what came before."""
    made = {n.id for n in known}
    return Block(tuple(n for n in needed(results) if n.op != "carry" and n.id not in made))


def square_root(limit: int) -> Program:
    """Newton's iteration from 1, until a step is small; then a last block uses the result."""
    graph = Graph()
    a = graph.input("a", 0)
    x = graph.node("carry", value="x")
    following = 0.5 * (x + a / x)
    step = x - following
    active = step * step - 1e-24 * (x * x)
    most = graph.const(limit)
    before = Block(needed([graph.one, a, most]))
    loop = Repeat(
        most,
        (Carry(x, graph.one, following),),
        body_of([following, active], list(before.nodes)),
        active,
    )
    rest = x * x - a
    after = body_of([rest], list(before.nodes))
    return verify(Program("root", (Port("a", 1),), (before, loop, after), (row(x, rest),)))


@each_target
@each_dtype
def test_a_loop_stops_state_by_state(target: Target, dtype: str) -> None:
    program = square_root(60)
    kernel = compiled(program, target, dtype)
    rng = np.random.default_rng(5)
    wide = 3 * kernel.width + 1
    a = np.exp(rng.uniform(-20, 20, (wide, 1))).astype(dtype)  # two steps, or thirty
    a[::4] = 1.0  # none
    result = run_kernel(kernel, a)
    # a state stops where its next step would be below 1e-12 of it
    tolerance = max(2e-12, 4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(result[:, :1], np.sqrt(a), rtol=tolerance)
    np.testing.assert_allclose(result[:, 0], interpret(program, {"a": a})[:, 0], rtol=tolerance)
    for k in range(wide):  # a state's neighbours neither keep it going nor stop it
        alone = run_kernel(kernel, np.repeat(a[k : k + 1], kernel.width, axis=0))
        assert same_bits(alone[0], result[k])


@each_target
@each_dtype
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_loop_ends_at_its_limit(target: Target, dtype: str, limit: int) -> None:
    program = square_root(limit)
    kernel = compiled(program, target, dtype)
    a = np.array([1.0, 1e6, 4.0, 1e9, 0.25, 1.0, 2.0, 1e-6, 3.0], dtype)[:, None]
    result = run_kernel(kernel, a)
    x = np.ones_like(a)
    for _ in range(limit):
        following = (x + a / x) / 2
        x = np.where((x - following) ** 2 - np.array(1e-24, dtype) * x * x > 0, following, x)
    np.testing.assert_allclose(result[:, :1], x, rtol=8 * np.finfo(dtype).eps)
    np.testing.assert_allclose(
        result[:, 0], interpret(program, {"a": a})[:, 0], rtol=8 * np.finfo(dtype).eps
    )


@each_target
@pytest.mark.parametrize("limit", [1, 3])
def test_a_node_of_a_loop_body_is_computed_anew_after_the_loop(target: Target, limit: int) -> None:
    """``x * x`` is in the body and, for the final x, after it."""
    program = square_root(limit)
    a = np.array([1.0, 1e6, 4.0, 1e9, 0.25])[:, None]
    result = run_kernel(compiled(program, target, "float64"), a)
    np.testing.assert_allclose(result[:, 1], result[:, 0] ** 2 - a[:, 0], rtol=1e-12)


@each_target
def test_a_loop_in_which_no_state_is_active(target: Target) -> None:
    kernel = compiled(square_root(60), target, "float64")
    result = run_kernel(kernel, np.full((kernel.width + 1, 1), 1.0))  # already there
    assert (result[:, 0] == 1.0).all(), "a state that never ran keeps its start"
    result = run_kernel(kernel, np.full((kernel.width + 1, 1), np.nan))  # never comparable
    assert np.isnan(result).all(), "an input that is no number makes its row none"


def fibonacci() -> Program:
    """Two carried values that are each other's next, and a count: all step at once."""
    graph = Graph()
    n = graph.input("n", 0)
    a, b, k = (graph.node("carry", value=name) for name in "abk")
    active = n - k
    following = [b, a + b, k + 1.0]
    most = graph.const(50.0)
    before = Block(needed([graph.zero, graph.one, n, most]))
    carries = tuple(
        Carry(c, s, f)
        for c, s, f in zip((a, b, k), (graph.zero, graph.one, graph.zero), following, strict=True)
    )
    loop = Repeat(most, carries, body_of([*following, active], list(before.nodes)), active)
    return verify(Program("fibonacci", (Port("n", 1),), (before, loop), (row(a, b, k),)))


@each_target
@each_dtype
def test_carried_values_step_together(target: Target, dtype: str) -> None:
    program = fibonacci()
    kernel = compiled(program, target, dtype)
    n = (np.arange(2 * kernel.width + 3) * 7 % 23).astype(dtype)[:, None]
    result = run_kernel(kernel, n)
    numbers = [0, 1]
    while len(numbers) < 30:
        numbers.append(numbers[-2] + numbers[-1])
    expected = [[numbers[int(k)], numbers[int(k) + 1], k] for k in n[:, 0]]
    np.testing.assert_array_equal(result, np.array(expected, dtype))
    np.testing.assert_array_equal(interpret(program, {"n": n}), result)


def fixed_point_of_cosine() -> Program:
    """``x = cos(w x)``: a sine inside a loop, of an angle that only some states make large."""
    graph = Graph()
    w = graph.input("w", 0)
    x = graph.node("carry", value="x")
    following = graph.node("cos", w * x)
    step = x - following
    active = step * step - 1e-20
    most = graph.const(100.0)
    before = Block(needed([graph.one, most]))
    body = body_of([following, active], list(before.nodes))
    loop = Repeat(most, (Carry(x, graph.one, following),), body, active)
    return verify(Program("cosine", (Port("w", 1),), (before, loop), (row(x),)))


@each_target
def test_sines_inside_a_loop(target: Target) -> None:
    program = fixed_point_of_cosine()
    kernel = compiled(program, target, "float64")
    w = np.linspace(0.0, 1.0, 2 * kernel.width + 1)[:, None]
    result = run_kernel(kernel, w)
    np.testing.assert_allclose(result, np.cos(w * result), atol=2e-10)
    np.testing.assert_allclose(result, interpret(program, {"w": w}), atol=1e-9)
    w[1] = 1e12  # wanders for ever, alone
    others = np.arange(len(w)) != 1
    assert same_bits(run_kernel(kernel, w)[others], result[others])


# -- C ------------------------------------------------------------------------------------------

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_c = pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="no C compiler (cc, gcc or clang) here"
)


def c_library(folder: Path, *sources: str) -> ctypes.CDLL:
    (folder / "kernel.c").write_text("\n".join(sources))
    assert COMPILER is not None
    command = [
        COMPILER,
        "-O1",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        "-o",
        "kernel.so",
        "kernel.c",
        "-lm",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernel.so"))


def run_c(library: ctypes.CDLL, name: str, *inputs: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros((len(inputs[0]), size))
    function = library[name]
    for k in range(len(out)):
        rows = [np.ascontiguousarray(a[k], float) for a in inputs]
        function(
            *(ctypes.c_void_p(r.ctypes.data) for r in rows), ctypes.c_void_p(out[k].ctypes.data)
        )
    return out


@needs_c
@pytest.mark.parametrize("methods", ["one", pytest.param("all", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "name", ["flight", *(pytest.param(x, marks=pytest.mark.full) for x in ("puma560", "iiwa14"))]
)
def test_generated_c_computes_the_same(name: str, methods: str, tmp_path: Path) -> None:
    """One method of every function, or all."""
    robot = flight() if name == "flight" else lw.load(name)
    frame = robot.frame_names[-1]
    first = {a.function: a for a in reversed(ALL)}.values()
    wanted = ALL if methods == "all" else first
    chosen = [(a, frame if a.takes_frame else None) for a in wanted]
    sources = [robot.source(a.function, backend="c", method=a.method, frame=f) for a, f in chosen]
    library = c_library(tmp_path, *sources)
    rng = np.random.default_rng(9)
    for algorithm, at in chosen:
        task = robot._calls.tasks.task(Key(algorithm.function, algorithm.method, at))
        program = robot._calls.kernels.program(robot._calls.kernels.equations(task))
        inputs = [rng.uniform(-2, 2, (5, p.size)) for p in program.inputs]
        symbol = f"{algorithm.function}_{algorithm.method}".replace("-", "_")
        result = run_c(library, symbol, *inputs, size=len(program.results))
        expected = interpret(
            program, {p.name: a for p, a in zip(program.inputs, inputs, strict=True)}
        )
        assert_close(result, expected, TOLERANCE["float64"], _condition(algorithm, expected))


@needs_c
def test_loops_in_c(tmp_path: Path) -> None:
    programs = [square_root(60), fibonacci(), fixed_point_of_cosine()]
    library = c_library(tmp_path, *(render_c(guard(p), "nobody") for p in programs))
    for program, values in zip(
        programs, ([1.0, 2.0, 1e6, 1e-6], [0.0, 1.0, 17.0], [0.0, 0.5, 1.0]), strict=True
    ):
        inputs = np.array(values)[:, None]
        result = run_c(library, program.name, inputs, size=len(program.results))
        expected = interpret(program, {program.inputs[0].name: inputs})
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-9)


@needs_c
def test_negative_constants_in_c(tmp_path: Path) -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    # each product is used once, so that it is fused with the constant
    raw = [x * y - (-2.5), (-2.5) - x * x, y * y + (-2.5), x - (-2.5), -2.5 * y - (-1.5)]
    program = program_of(fuse(graph, raw), Port("x", 2), name="signs")
    library = c_library(tmp_path, render_c(guard(program), "nobody"))
    inputs = np.array([[1.5, -2.0], [0.25, 3.0]])
    result = run_c(library, "signs", inputs, size=len(raw))
    np.testing.assert_allclose(result, interpret(program, {"x": inputs}), rtol=1e-15)


@needs_c
def test_every_backend_refuses_the_same_states(tmp_path: Path) -> None:
    """Inputs that are not finite, and pivots that are not positive; a sum may overflow."""
    graph = Graph()
    halves = [0.5 * graph.input("x", k) for k in range(2)]
    pivots = (graph.input("x", 0) + 3.0, graph.input("x", 1) + 4.0)
    block = Block(needed([*halves, *pivots]))
    program = Program("halves", (Port("x", 2),), (block,), (row(*halves),), pivots)
    library = c_library(tmp_path, render_c(guard(verify(program)), "nobody"))
    inputs = np.array([[1e308, 1e308], [1.0, np.inf], [np.nan, 1.0], [1.0, 2.0], [-3.0, 1.0],
                       [1.0, -5.0], [-2.9, -3.9]])  # fmt: skip
    result = run_c(library, "halves", inputs, size=2)
    np.testing.assert_array_equal(result, interpret(program, {"x": inputs}))
    kernel = compiled(program, host(), "float64")
    np.testing.assert_array_equal(run_kernel(kernel, inputs), result)
    finite = np.isfinite(result).all(axis=1)
    assert finite.tolist() == [True, False, False, True, False, False, True]
    np.testing.assert_array_equal(result[finite], 0.5 * inputs[finite])


# -- outputs and the arrays they are written to --------------------------------------------------


def two_outputs() -> Program:
    """A pair of numbers, and status flags: the lowest and the highest one."""
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    values = [x * y, x - y, graph.node("flag", x) + 32768.0 * graph.node("finite", y)]
    outputs = (row(*values[:2]), Output("code", (), (values[2],), FLAGS))
    return verify(Program("two", (Port("x", 2),), (Block(needed(values)),), outputs))


@each_target
@each_dtype
def test_each_output_has_an_array_of_its_own(target: Target, dtype: str) -> None:
    program = two_outputs()
    kernel = compiled(program, target, dtype)
    x = np.random.default_rng(3).normal(size=(2 * kernel.width + 3, 2)).astype(dtype)
    x[1, 1] = np.nan
    expected = reference.interpret(guard(program), {"x": x})
    out, code = np.full((len(x), 2), 7.0, dtype), np.full(len(x), 77, np.uint16)
    kernel([x], [out, code[:, None]], 1)
    np.testing.assert_array_equal(out, expected["result"])
    assert same_bits(code, expected["code"])
    assert code[1] == (x[1, 0] > 0) and np.isnan(out[1]).all(), "flags are never NaN"
    assert set(code.tolist()) > {32768, 32769}


@needs_c
def test_outputs_in_c(tmp_path: Path) -> None:
    program = two_outputs()
    library = c_library(tmp_path, render_c(guard(program), "nobody"))
    x = np.array([[1.5, -2.0], [-1.0, np.inf], [-3.0, 0.25]])
    expected = reference.interpret(guard(program), {"x": x})
    for k in range(3):
        out, code = np.zeros(2), np.zeros(1, np.uint16)
        library["two"](*(ctypes.c_void_p(a.ctypes.data) for a in (x[k].copy(), out, code)))
        np.testing.assert_array_equal(out, expected["result"][k])
        assert code[0] == expected["code"][k]


WRONG_ARRAYS: dict[str, tuple[Callable[..., Any], str]] = {
    "an output is missing": (lambda x, r, c: ([x], [r]), "1 outputs; expected 1 and 2"),
    "an input too many": (lambda x, r, c: ([x, x], [r, c]), "2 inputs and 2 outputs; expected"),
    "rows too short": (lambda x, r, c: ([x], [r[:, :1].copy(), c]), r"'result' .* shape \(5, 2\)"),
    "rows too few": (lambda x, r, c: ([x], [r[:4], c]), r"'x' .*\(5, 2\).* shape \(4, 2\)"),
    "an input too short": (lambda x, r, c: ([x[:, :1].copy()], [r, c]), r"'x' .*.*\(5, 2\)"),
    "another dtype": (lambda x, r, c: ([x], [r.astype("f4"), c]), "is float32.* expected float64"),
    "numbers for flags": (lambda x, r, c: ([x], [r, c.astype(float)]), "float64.*expected uint16"),
    "strides": (lambda x, r, c: ([x], [np.zeros((5, 4))[:, ::2], c]), "contiguous: False"),
    "read-only": (lambda x, r, c: ([x], [read_only(r), c]), "'result' .* writeable: False"),
}  # fmt: skip


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_a_kernel_checks_the_arrays_it_is_handed(name: str) -> None:
    kernel = compiled(two_outputs(), host(), "float64")
    change, message = WRONG_ARRAYS[name]
    inputs, outputs = change(np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 1), np.uint16))
    with pytest.raises((TypeError, ValueError), match=message):
        kernel(inputs, outputs, 1)


# -- the graph ----------------------------------------------------------------------------------


@pytest.fixture
def graph() -> Graph:
    return Graph()


def test_work_that_is_known_is_folded_away(graph: Graph) -> None:
    a, b = graph.input("x", 0), graph.input("x", 1)
    zero, one = graph.zero, graph.one
    assert a * 0.0 is zero and 0.0 * a is zero and a * -0.0 is zero
    assert a * 1.0 is a and 1.0 * a is a
    assert a + 0.0 is a and 0.0 + a is a and a - 0.0 is a
    assert a - a is zero and a / a is one and 0.0 / a is zero and a / 1.0 is a
    assert a - (a - b) is b and (a - b) + b is a and b + (a - b) is a
    assert (a + b) - a is b and (a + b) - b is a
    assert a * (1.0 / a) is one and (1.0 / a) * a is one
    assert a * (b * (1.0 / a)) is b and ((1.0 / a) * b) * a is b


def test_constants_are_computed(graph: Graph) -> None:
    two, three = graph.const(2.0), graph.const(3.0)
    nodes = [two + three, two - three, two * three, two / three, -two]
    assert [(n.op, n.value) for n in nodes] == [("const", x) for x in (5.0, -1.0, 6.0, 2 / 3, -2.0)]
    a = graph.input("x", 0)
    assert 2.0 * (3.0 * a) is 6.0 * a, "factors are gathered"
    assert (a / 4.0).op == "mul", "a division by a constant is a product"
    assert graph.const(-0.0) is graph.zero and math.copysign(1.0, graph.zero.value) == 1.0


def test_signs_are_pulled_outward(graph: Graph) -> None:
    a, b = graph.input("x", 0), graph.input("x", 1)
    assert graph.neg(graph.neg(a)) is a
    assert (-a) * b is -(a * b) and a * (-b) is -(a * b) and (-a) * (-b) is a * b
    assert a + (-b) is a - b and (-a) + b is b - a and a - (-b) is a + b
    assert -(a - b) is b - a
    assert a * -1.0 is -a and -2.0 * a is -(2.0 * a)
    assert (-a) - b is -(a + b)
    assert a / (-b) is -(a / b)


def test_equal_expressions_are_one_node(graph: Graph) -> None:
    a, b = graph.input("x", 0), graph.input("x", 1)
    assert a + b is b + a and a * b is b * a
    assert a - b is not b - a and a / b is not b / a
    assert graph.input("x", 0) is a and graph.input("y", 0) is not a
    assert graph.const(2) is graph.const(2.0)
    before = len(graph.nodes)
    assert (b * a + 3.0) is (3.0 + a * b)
    assert len(graph.nodes) == before + 2, "a constant and a sum; the product was there"


OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, lambda a, _: -a,
)  # fmt: skip


def test_folding_does_not_change_values() -> None:
    """Every rule at random: a folded graph and plain floats agree."""
    rng = np.random.default_rng(12)
    for seed in range(200):
        graph, values = Graph(), rng.uniform(0.5, 2.0, 3) * rng.choice([-1.0, 1.0], 3)
        pairs: list[tuple[Expr, float]] = [(graph.input("x", i), v) for i, v in enumerate(values)]
        pairs += [(graph.const(c), c) for c in (0.0, 1.0, -1.0, 2.0, -3.0)]
        for _ in range(25):
            (x, u), (y, v) = (pairs[rng.integers(len(pairs))] for _ in range(2))
            op = OPERATORS[rng.integers(len(OPERATORS))]
            if (op is operator.truediv and abs(v) < 1e-2) or max(abs(u), abs(v)) > 1e4:
                continue
            pairs.append((op(x, y), op(u, v)))
        nodes = [n for n, _ in pairs]
        result = interpret(program_of(nodes, Port("x", 3)), {"x": values[None]})[0]
        expected = np.array([v for _, v in pairs])
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-7, err_msg=str(seed))


# -- fusing and scheduling ----------------------------------------------------------------------


def random_graph(seed: int, size: int = 60) -> tuple[Graph, list[Expr]]:
    rng = np.random.default_rng(seed)
    graph = Graph()
    nodes = [graph.input("x", i) for i in range(4)]
    for _ in range(size):
        a, b = (nodes[int(rng.integers(max(0, len(nodes) - 12), len(nodes)))] for _ in range(2))
        choice = rng.random()
        if choice < 0.4:
            nodes.append(a * b * 0.7)
        elif choice < 0.65:
            nodes.append(a + b)
        elif choice < 0.9:
            nodes.append(a - b)
        else:
            nodes.append(graph.node("sin", a))
    picked = rng.choice(len(nodes), 6)
    return graph, [nodes[int(k)] for k in picked]


def count(program: Program, *ops: str) -> int:
    return sum(n.op in ops for n in program.nodes())


SEEDS = [pytest.param(k, marks=() if k < 16 else pytest.mark.full) for k in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_fusing_changes_nothing_but_rounding(seed: int) -> None:
    graph, results = random_graph(seed)
    plain = program_of(results, Port("x", 4))
    fused = program_of(fuse(graph, results), Port("x", 4))
    x = np.random.default_rng(seed).uniform(-1, 1, (20, 4))
    # the interpreter rounds a fused product too: the very same operations
    np.testing.assert_array_equal(interpret(fused, {"x": x}), interpret(plain, {"x": x}))
    compiled_ones = [run_kernel(compiled(p, host(), "float64"), x) for p in (plain, fused)]
    scale = max(1.0, np.abs(compiled_ones[0]).max())
    np.testing.assert_allclose(*compiled_ones, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("seed", range(40))
def test_fusing_never_computes_a_product_twice(seed: int) -> None:
    graph, results = random_graph(seed)
    plain = program_of(results, Port("x", 4))
    fused = program_of(fuse(graph, results), Port("x", 4))
    both = count(fused, "fma", "fms", "fnma")
    assert count(fused, "mul") + both == count(plain, "mul")
    assert count(fused, "add", "sub") + both == count(plain, "add", "sub")
    assert count(fused, "sin", "div") == count(plain, "sin", "div")
    assert count(fused, "neg") <= count(plain, "neg")  # a sign goes with its difference


def test_a_product_is_fused_only_where_it_is_used_once(graph: Graph) -> None:
    a, b, c = (graph.input("x", i) for i in range(3))
    product = a * b
    (once,) = fuse(graph, [product + c])
    assert once.op == "fma" and once.args == (a, b, c)
    assert fuse(graph, [product - c])[0].op == "fms"
    assert fuse(graph, [a * c - b * c])[0].op in ("fms", "fnma"), "one of the two is enough"
    assert fuse(graph, [c - product])[0].op == "fnma"
    assert [r.op for r in fuse(graph, [product + c, product - c])] == ["add", "sub"]
    assert [r.op for r in fuse(graph, [product + c, product])] == ["add", "mul"]
    assert fuse(graph, [product + product])[0].op == "add"


@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_is_every_needed_node_once_in_order(seed: int) -> None:
    graph, results = random_graph(seed, 150)
    for wanted in (results, fuse(graph, results), results + results, [graph.one], []):
        order = schedule(needed(wanted))
        ids = [n.id for n in order]
        assert len(set(ids)) == len(ids)
        assert set(ids) == {n.id for n in reachable(wanted)}
        place = {id_: k for k, id_ in enumerate(ids)}
        assert all(place[a.id] < place[n.id] for n in order for a in n.args)


@each_algorithm
def test_traced_programs_contain_only_what_they_need(algorithm: Algorithm) -> None:
    (robot,) = sizes(algorithm, "small")
    task = task_of(algorithm, robot)
    assert task is not None
    program = verify(trace(task, robot.tree))
    assert {n.id for n in program.nodes()} == {n.id for n in reachable(list(program.results))}
    for node in program.nodes():
        values = [a.value for a in node.args if a.op == "const"]
        leaf = node.op in FREE or node.op == "eps"
        assert leaf or len(values) < len(node.args), "an operation on constants"
        if node.op == "mul":
            assert not {0.0, 1.0, -1.0} & set(values), "a product with 0 or 1"
        if node.op in ("add", "sub"):
            assert 0.0 not in values, "a sum with 0"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_results_are_put_together_from_columns_with_the_same_bits(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = lw.Robot(generic_chain(9))
    q = np.random.default_rng(4).normal(size=(21, 9)).astype(dtype)
    expected = chain.mass_matrix(q)
    monkeypatch.setattr("linkwise.backends.llvm.columns.MANY", 20)
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    again = lw.Robot(generic_chain(9))
    assert "@rows" in again.source("mass_matrix", backend="llvm", dtype=dtype)
    assert "@rows" not in again.source("gravity_torque", backend="llvm", dtype=dtype)
    assert (again.mass_matrix(q) == expected).all()
    assert (again.mass_matrix(q[3]) == expected[3]).all()


def long_rows(size: int, zeros: Sequence[tuple[int, int]]) -> Program:
    """Results of which some are equal, and ranges of them zero."""
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    values = [x * float(k % 401 + 1) + y for k in range(size)]
    for begin, end in zeros:
        values[begin:end] = [graph.zero] * (end - begin)
    return program_of(values, Port("x", 2))


FEW_ZEROS = [(40, 43), (64, 96), (700, 741)]
MOSTLY_ZEROS = [(0, 300), (333, 900), (910, 1530), (1570, 1600)]


ROWS = [(1600, FEW_ZEROS), (1600, MOSTLY_ZEROS), (1603, FEW_ZEROS), (1603, MOSTLY_ZEROS)]
REGISTERS = [host().register_bytes, 16, 32]  # bytes


@pytest.mark.parametrize(
    ("size", "zeros", "register", "dtype"),
    [
        (*rows, register, DTYPES[(j + k) % 2])
        for j, rows in enumerate(ROWS)
        for k, register in enumerate(REGISTERS)
    ],
)
def test_long_rows_are_the_same_wherever_they_begin(
    size: int, zeros: list, register: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry is written with its bits, in any place of the memory, and nothing beside it."""
    program = long_rows(size, zeros)
    kernel = compiled(program, replace(host(), register_bytes=register), dtype)
    rng, checked = np.random.default_rng(5), guard(program)
    counts = (1, kernel.width - 1, kernel.width, 2 * kernel.width + 3)
    for streamed, count in itertools.product((False, True), counts):
        monkeypatch.setattr("linkwise.backends.llvm.run.STREAMED", 0 if streamed else 1 << 60)
        given = rng.normal(size=(count, 2)).astype(dtype)
        given[count // 2] = np.inf
        expected = interpret(checked, {"x": given})
        room = np.full(size * count + 40, 7.0, dtype)
        for shift in (0, 1, 2, 7, 8, 15, 16):
            into = room[shift : shift + size * count].reshape(count, size)
            kernel([given], [into], 1)
            assert (room[:shift] == 7.0).all() and (room[shift + into.size :] == 7.0).all()
            assert np.isnan(into[count // 2]).all()
            assert same_bits(np.nan_to_num(into), np.nan_to_num(expected))
            room[:] = 7.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_in_the_long_row_of_one_state_are_written_by_a_loop(dtype: str) -> None:
    program = guard(long_rows(1603, MOSTLY_ZEROS))
    backend = Llvm(host())
    assert "@repeat0(" in backend.render(program, dtype, ONE)
    kernel = backend.compile(program, dtype, ONE)
    for given in ([[0.3, -0.7]], [[np.inf, 1.0]]):
        x = np.array(given, dtype)
        expected = interpret(program, {"x": x})
        assert same_bits(np.nan_to_num(run_kernel(kernel, x)), np.nan_to_num(expected))
        assert np.isnan(expected).all() == np.isinf(x).any()


def test_rows_too_long_for_the_stack_are_on_the_heap() -> None:
    """A tile of them would be twice what a thread has; the kernel asks for memory instead."""
    size = (1 << 24) // 8 // host().lanes(8) + 5
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    values = [x + y if k % 3000 else x * y for k in range(size)]
    kernel = compiled(program_of(values, Port("x", 2)), host(), "float64")
    assert kernel.needs_memory
    given = np.random.default_rng(5).normal(size=(kernel.width + 1, 2))
    found = run_kernel(kernel, given)
    expected = np.where(np.arange(size) % 3000, given.sum(1)[:, None], given.prod(1)[:, None])
    assert same_bits(found, expected)


# -- rows that compete for the cache ------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "more"),
    [("float64", 0), ("float64", 1), ("float32", 0),
     pytest.param("float32", 1, marks=pytest.mark.full)],
)  # fmt: skip
def test_rows_a_page_apart_are_written_like_others(dtype: str, more: int) -> None:
    """Outputs of a multiple of 4096 bytes go through scratch: same bits, nothing beside them."""
    size = 4096 // np.dtype(dtype).itemsize + more
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    program = program_of([x * float(k + 1) + y for k in range(size)], Port("x", 2))
    kernel = compiled(program, host(), dtype)
    rng = np.random.default_rng(5)
    for count in (1, kernel.width - 1, kernel.width, 2 * kernel.width + 3):
        given = rng.normal(size=(count, 2)).astype(dtype)
        room = np.full((count + 2, size), 7.0, dtype)
        kernel([given], [room[1:-1]], 1)
        assert (room[0] == 7.0).all() and (room[-1] == 7.0).all()
        alone = [run_kernel(kernel, row[None])[0] for row in given]
        assert same_bits(room[1:-1], np.stack(alone))
        assert_close(room[1:-1], interpret(guard(program), {"x": given}), 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("streamed", [False, True])
def test_rows_of_zeros_and_streamed_rows_are_like_others(
    dtype: str, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes are filled, whole lines are written past the cache: the same bits, nothing beside them.

    Zeros are NaN like other results in a state that has no answer.
    """
    monkeypatch.setattr("linkwise.backends.llvm.run.STREAMED", 0 if streamed else 1 << 60)
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    places = {0, 5, 300, 301, 455, 456, 777, 1200, 1202}
    for size, computed in ((1203, places), (280, range(280)))[: 1 + (dtype == "float64")]:
        values = [x * float(k + 1) + y if k in computed else graph.zero for k in range(size)]
        program = program_of(values, Port("x", 2))
        kernel = compiled(program, host(), dtype)
        rng = np.random.default_rng(5)
        for count in (1, kernel.width - 1, kernel.width, 2 * kernel.width + 3):
            given = rng.normal(size=(count, 2)).astype(dtype)
            given[count // 2] = np.inf
            expected = interpret(guard(program), {"x": given})
            room = np.full(size * count + 40, 7.0, dtype)
            for shift in (1, 2, 3, 7, 8, 9, 15, 16):
                into = room[shift : shift + size * count].reshape(count, size)
                kernel([given], [into], 1)
                assert (room[:shift] == 7.0).all()
                assert (room[shift + into.size :] == 7.0).all()
                assert np.isnan(into[count // 2]).all()
                assert (np.isnan(into) == np.isnan(expected)).all()
                assert_close(np.nan_to_num(into), np.nan_to_num(expected), 1e-6)
                room[:] = 7.0


def test_a_row_that_is_mostly_zeros_has_holes() -> None:
    """Their ends are written: a line of the cache may reach over them."""
    graph, lanes = Graph(), Lanes(NUMBERS["float64"], 8)
    some = [graph.input("x", k) for k in range(56)]
    values = some[:16] + [graph.zero] * 203 + some[16:]
    assert holes(values, lanes) == ((16, 216),) and edge(lanes) == 8
    assert holes(values[:200], lanes) == ()  # a row too short
    assert holes([graph.input("x", k) for k in range(400)], lanes) == ()
