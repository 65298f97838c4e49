"""Loops that states leave unevenly: a lane that is done takes the next row, and no bit changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkwise.backends.base import BATCH
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.refill import uneven
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import Target, host
from linkwise.backends.reference import interpret
from linkwise.spatial import repeat, sincos, sqrt
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import FLAGS, Output, Port, Program, Repeat
from linkwise.trace.schedule import together
from linkwise.trace.verify import verify

WIDTHS = [w for w in (16, 32, 64) if w <= host().register_bytes]
TARGETS = [
    replace(host(), register_bytes=width, fused=fused)
    for width in WIDTHS
    for fused in ((True, False) if host().fused and width == WIDTHS[-1] else (host().fused,))
]
each_target = pytest.mark.parametrize(
    "target", TARGETS, ids=lambda t: f"{8 * t.register_bytes}bit-{'fma' if t.fused else 'plain'}"
)


def collatz_like(marked: bool, copies: int = 1) -> Program:
    """Steps of Newton's square root and a turning angle, ``n`` of them: blocks before, in and after
    the loop use inputs, what was made before, carried values, and sines. Two outputs.
    """
    graph = Graph()
    a, n = graph.input("a", 0), graph.input("n", 0)
    scale = sqrt(a * a + 2.0)

    def step(state: list[Expr]) -> tuple[list[Expr], Expr]:
        x, angle, count = state
        s, c = sincos(angle + a)
        return [0.5 * (x + scale / x), angle + s * c + 0.01 * scale, count + 1.0], n - count

    x, angle, count = repeat(step, [graph.one, a, graph.zero], 40.0)
    s, c = sincos(angle)
    values = [x + s, scale * c, count, graph.input("more", 2) * count] * copies
    regions, roots = assemble(graph, values, [graph.node("flag", count - 3.0)])
    regions = tuple(replace(r, uneven=marked) if isinstance(r, Repeat) else r for r in regions)
    outputs = (
        Output("result", (4 * copies,), tuple(roots[:-1])),
        Output("status", (), (roots[-1],), FLAGS),
    )  # fmt: skip
    ports = (Port("a", 1), Port("more", 3), Port("n", 1))
    return verify(Program("collatz", ports, regions, outputs))


def run(kernel: LlvmKernel, *inputs: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rows, size = len(inputs[0]), kernel.signature.outputs[0].size
    out = np.full((rows, size), 7.0, inputs[0].dtype), np.full((rows, 1), 77, np.uint16)
    kernel(inputs, out, threads)
    return out


def states(rows: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    a = rng.uniform(-3, 3, (rows, 1))
    n = np.floor(30 * rng.uniform(0, 1, (rows, 1)) ** 4)  # mostly few steps, some many
    n[: rows // 3] -= 1.0  # and none
    return [x.astype(dtype) for x in (a, rng.normal(size=(rows, 3)), n)]


@each_target
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_have_the_bits_that_waiting_lanes_give_them(target: Target, dtype: str) -> None:
    plain, refilled = (
        Llvm(target).compile(together(collatz_like(marked)), dtype, BATCH)
        for marked in (False, True)
    )
    for rows in (0, 1, 2, plain.width - 1, plain.width, plain.width + 1, 5 * plain.width + 3, 500):
        if rows:
            given = states(rows, dtype)
            for one, other in zip(run(plain, *given), run(refilled, *given), strict=True):
                assert one.tobytes() == other.tobytes(), rows


def test_long_rows_leave_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many numbers are put together from columns where all of a tile leave at once."""
    given = states(100, "float64")
    expected = run(Llvm().compile(together(collatz_like(True, 15)), "float64", BATCH), *given)
    monkeypatch.setattr("linkwise.backends.llvm.columns.MANY", 3)
    for marked in (True, False):
        program = together(collatz_like(marked, 15))
        assert ("@rows" in Llvm().render(program, "float64", BATCH)) != marked
        found = run(Llvm().compile(program, "float64", BATCH), *given)
        assert all(x.tobytes() == y.tobytes() for x, y in zip(expected, found, strict=True))


def test_rows_are_what_the_interpreter_says() -> None:
    program, given = collatz_like(True), states(100, "float64")
    kernel = Llvm().compile(together(program), "float64", BATCH)
    names = (port.name for port in program.inputs)
    found = interpret(program, dict(zip(names, given, strict=True)))
    result, status = run(kernel, *given)
    np.testing.assert_allclose(result, found["result"], rtol=1e-12)
    np.testing.assert_array_equal(status[:, 0], np.ravel(found["status"]))
    np.testing.assert_array_equal(result[:, 2], np.maximum(given[2][:, 0], 0.0).clip(0, 40))


def test_inputs_of_any_layout_and_threads() -> None:
    kernel = Llvm().compile(together(collatz_like(True)), "float64", BATCH)
    a, more, n = states(4000, "float64")
    expected = run(kernel, a, more, n)
    strided = np.asfortranarray(more)
    same = np.broadcast_to(n[:1], n.shape)
    for one, other in zip(expected, run(kernel, a, strided, n, threads=3), strict=True):
        assert one.tobytes() == other.tobytes()
    one, other = run(kernel, a, more, same), run(kernel, a, more, same.copy())
    assert one[0].tobytes() == other[0].tobytes()


def test_a_row_that_never_ends_by_itself_stops_at_the_limit_and_nobody_waits() -> None:
    kernel = Llvm().compile(together(collatz_like(True)), "float64", BATCH)
    a, more, n = states(60, "float64")
    expected, _ = run(kernel, a, more, n)
    n[17], a[23] = 1e9, np.nan
    found, _ = run(kernel, a, more, n)
    others = ~np.isin(np.arange(60), (17, 23))
    assert found[others].tobytes() == expected[others].tobytes()
    assert found[17, 2] == 40.0 and np.isnan(found[23, 0])


def test_only_a_single_loop_that_says_so_is_refilled() -> None:
    assert uneven(collatz_like(True)) and not uneven(collatz_like(False))
