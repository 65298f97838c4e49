"""Square roots, choices and angles: one meaning on every scalar and every backend."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise  # registers mpmath numbers
from linkwise.backends.base import BATCH
from linkwise.backends.cstyle.render import render_c
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import Target, host
from linkwise.backends.reference import interpret
from linkwise.spatial import atan2, select, sqrt
from linkwise.trace.assemble import needed
from linkwise.trace.expr import Graph
from linkwise.trace.program import Block, Output, Port, Program, count_operations
from linkwise.trace.verify import verify

WIDTHS = [w for w in (16, 32, 64) if w <= host().register_bytes]
TARGETS = [replace(host(), register_bytes=w) for w in WIDTHS] + [replace(host(), fused=False)]
each_target = pytest.mark.parametrize(
    "target", TARGETS, ids=lambda t: f"{8 * t.register_bytes}bit-{'fma' if t.fused else 'plain'}"
)
each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def operations() -> Program:
    """``atan2(y, x)``, ``sqrt(x)`` and ``select(x, y, 2)`` of an input (y, x)."""
    graph = Graph()
    y, x = graph.input("p", 0), graph.input("p", 1)
    values = (atan2(y, x), sqrt(x), select(x, y, 2.0))
    ports = (Port("p", 2),)
    regions = (Block(needed(list(values))),)
    return verify(Program("operations", ports, regions, (Output("result", (3,), values),)))


@cache
def kernel(target: Target, dtype: str) -> LlvmKernel:
    return Llvm(target).compile(operations(), dtype, BATCH)


def compiled(points: np.ndarray, target: Target) -> np.ndarray:
    out = np.empty((len(points), 3), points.dtype)
    kernel(target, points.dtype.name)([np.ascontiguousarray(points)], [out], 1)
    return out


def points(dtype: str) -> np.ndarray:
    """Points all around, on octant borders, and as large and as small as numbers get."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    angle = np.concatenate([rng.uniform(-np.pi, np.pi, 3000), np.arange(-16, 17) * np.pi / 8])
    around = np.stack([np.sin(angle), np.cos(angle)], 1)
    borders = np.stack([rng.choice([-1, 1], 300) * rng.uniform(0.49, 0.51, 300), np.ones(300)], 1)
    most = float(info.max)
    ends = [0.0, 1.0, most, most / 3, float(info.tiny), 1e-30, 3.0]
    signs = [(s, r) for s in (1, -1) for r in (1, -1)]
    extreme = np.array([[s * a, r * b] for a in ends for b in ends for s, r in signs])
    sizes = np.exp(rng.uniform(-60, 60, (500, 2))) * rng.choice([-1, 1], (500, 2))
    return np.concatenate([around, borders, borders[:, ::-1], extreme, sizes]).astype(dtype)


@each_target
@each_dtype
def test_angles_are_right_to_two_units_in_the_last_place(target: Target, dtype: str) -> None:
    given = points(dtype)
    found = compiled(given, target)[:, 0]
    with mpmath.workprec(200):
        pairs = given.astype(float).tolist()
        exact = [mpmath.atan2(y, x) if (y or x) else mpmath.mpf(0) for y, x in pairs]
        expected = np.array([float(e) for e in exact])
        pairs = zip(found.astype(float).tolist(), exact, strict=True)
        off = np.array([float(abs(f - e)) for f, e in pairs])
    off[given[:, 0] == 0] = 0.0  # mpmath knows no sign of zero: see below
    ulp = np.spacing(np.abs(expected).astype(dtype)).astype(float)
    worst = np.argmax(off / ulp)
    most = 2.0 if target.fused else 3.0  # without multiply-adds, 3 pi/4 is rounded once more
    assert off[worst] <= most * ulp[worst], (given[worst], found[worst], off[worst] / ulp[worst])


@each_target
@each_dtype
def test_signs_of_zeros_count(target: Target, dtype: str) -> None:
    given = np.array([[0, 1], [-0.0, 1], [0, -1], [-0.0, -1], [0, -0.0], [1, 0], [-1, -0.0]], dtype)
    found = compiled(given, target)[:, 0]
    expected = np.arctan2(*given.T)
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@each_dtype
def test_bits_do_not_depend_on_the_width(dtype: str) -> None:
    given = points(dtype)
    first, *others = (compiled(given, replace(host(), register_bytes=w)) for w in WIDTHS)
    for other in others:
        np.testing.assert_array_equal(first, other)


@each_target
@each_dtype
def test_roots_and_choices_are_exact(target: Target, dtype: str) -> None:
    given = points(dtype)
    found = compiled(given, target)
    y, x = given.T
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found[:, 1], np.sqrt(x))
    np.testing.assert_array_equal(found[:, 2], np.where(x > 0, y, np.array(2, dtype)))


@each_dtype
def test_the_interpreter_agrees(dtype: str) -> None:
    given = points(dtype)
    expected = interpret(operations(), {"p": given})["result"]
    np.testing.assert_allclose(
        compiled(given, host()), expected, rtol=4 * np.finfo(dtype).eps, equal_nan=True
    )


def angles() -> Program:
    """``atan2``, sine and cosine of an input (y, x), and a multiply-add of each kind."""
    graph = Graph()
    y, x = graph.input("p", 0), graph.input("p", 1)
    ops = [graph.node(op, y, x, y) for op in ("fma", "fms", "fnma")]
    values = (atan2(y, x), graph.node("sin", x), graph.node("cos", x), *ops)
    output = Output("result", (len(values),), values)
    return verify(Program("angles", (Port("p", 2),), (Block(needed(list(values))),), (output,)))


needs_c = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler"
)
needs_fused = pytest.mark.skipif(
    not host().fused, reason="this processor rounds products before it adds"
)


def c_library(folder: Path, *sources: str) -> ctypes.CDLL:
    (folder / "k.c").write_text("".join(sources))
    flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Werror", "-pedantic"]
    command = ["cc", "-std=c99", *flags, "-o", "k.so", "k.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return ctypes.CDLL(str(folder / "k.so"))


def run_c(library: ctypes.CDLL, name: str, *inputs: np.ndarray, size: int) -> np.ndarray:
    out = np.empty((len(inputs[0]), size))
    for rows in zip(*inputs, out, strict=True):
        library[name](*(ctypes.c_void_p(row.ctypes.data) for row in rows))
    return out


@needs_c
@needs_fused
def test_c_gives_the_same_bits(tmp_path: Path) -> None:
    """Sines and angles too, of numbers of any size: they are the same operations."""
    library = c_library(tmp_path, *(render_c(p, "nobody") for p in (operations(), angles())))
    rng = np.random.default_rng(8)
    sizes = np.exp(rng.uniform(-700, 709, (3000, 2))) * rng.choice([-1, 1], (3000, 2))
    odd = np.array([[np.nan, 1.0], [1.0, np.inf], [-np.inf, np.nan], [-0.0, -np.inf]])
    given = np.concatenate([points("float64"), rng.uniform(-1e10, 1e10, (3000, 2)), sizes, odd])
    for program in (operations(), angles()):
        count = program.outputs[0].slot.size
        expected = np.empty((len(given), count))
        Llvm(host()).compile(program, "float64", BATCH)([given], [expected], 1)
        out = run_c(library, program.name, given, size=count)
        same = (out.view("u8") == expected.view("u8")) | (np.isnan(out) & np.isnan(expected))
        assert same.all(), given[~same.all(axis=1)][:5]


@needs_c
@needs_fused
def test_c_of_a_robot_gives_the_same_bits(tmp_path: Path) -> None:
    robot = lw.load("puma560")
    rng = np.random.default_rng(9)
    calls = {
        "inverse_dynamics": ("rnea", 3),
        "forward_dynamics": ("aba", 3),
        "mass_matrix": ("crba", 1),
    }
    sources = [robot.source(f, backend="c", method=method) for f, (method, _) in calls.items()]
    library = c_library(tmp_path, *sources)
    for function, (method, inputs) in calls.items():
        given = [rng.normal(size=(20, 6)) * 3 for _ in range(inputs)]
        expected = robot.compute(function, *given, method=method).reshape(20, -1)
        found = run_c(library, f"{function}_{method}", *given, size=expected.shape[1])
        np.testing.assert_array_equal(found.view("u8"), expected.view("u8"))


@pytest.mark.parametrize(("y", "x"), [(1.5, -2.0), (-0.25, 3.0), (0.0, -1.0), (-3.0, 0.5)])
def test_every_scalar_agrees(y: float, x: float) -> None:
    kinds = [float, np.float64, mpmath.mpf, np.array, complex_of]
    for kind in kinds:
        a, b = kind(y), kind(x)
        assert abs(complex(atan2(a, b)) - math.atan2(y, x)) < 1e-15
        assert complex(select(b, a, kind(7.0))) == (y if x > 0 else 7.0)
        assert abs(complex(sqrt(a * a)) - abs(y)) < 1e-15
    assert abs(atan2(mpmath.mpf(y), x) - math.atan2(y, x)) < 1e-15, "mixed with a float"
    assert math.isnan(sqrt(-1.0)) and mpmath.isnan(sqrt(mpmath.mpf(-1))) and sqrt(4) == 2.0


def complex_of(x: float) -> np.complex128:
    return np.complex128(x)


def test_a_complex_step_gives_the_derivative_of_an_angle() -> None:
    y, x, h = 0.7, -1.3, 1e-30
    r2 = x * x + y * y
    assert abs(atan2(np.complex128(y + 1j * h), x).imag / h - x / r2) < 1e-15
    assert abs(atan2(y, np.complex128(x + 1j * h)).imag / h + y / r2) < 1e-15


def test_an_unknown_scalar_is_named() -> None:
    with pytest.raises(TypeError, match="sqrt: no rule for str"):
        sqrt("x")


def test_known_values_are_folded() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    assert sqrt(graph.const(9.0)) is graph.const(3.0)
    assert atan2(graph.const(1.0), 0.0) is graph.const(math.pi / 2)
    assert select(graph.const(1.0), x, 2.0) is x
    assert select(graph.const(0.0), x, 2.0) is graph.const(2.0)
    assert select(x, x, x) is x
    assert atan2(x, 1.0).op == atan2(1.0, x).op == "atan2"


def test_operations_are_counted() -> None:
    count = count_operations(operations())
    assert (count.square_roots, count.arctangents, count.total) == (1, 1, 1)
    assert "1 square roots" in str(count) and "1 arctangents" in str(count)
