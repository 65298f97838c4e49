"""Forward dynamics by iteration: run, look at the residual, solve the rest another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import FUNCTIONS, first_method
from linkwise.algorithms.conjugate_gradient import iterate
from linkwise.backends.base import BATCH, DeviceBackend, DeviceKernel, Kernel
from linkwise.engine import arrays
from linkwise.engine.arrays import Batch, check_count
from linkwise.engine.devices import DeviceBatch, refuse_room
from linkwise.engine.kernels import cached
from linkwise.trace.expr import Graph, reachable
from linkwise.trace.program import FLAGS, FLAGS_DTYPE, Block, Output, Port, Program
from linkwise.trace.status import Status
from linkwise.trace.tracer import Task

Array = NDArray[Any]
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
STALLED = 10.0  # times the tolerance: a true residual above it was not converged
DIRECT = FUNCTIONS["forward_dynamics"]["aba"]


class Iterations(NamedTuple):
    """How an iteration went, per state."""

    status: Array  # bits of `Status`
    iterations: Array
    residual: Array  # true residual beside the right-hand side, before any other way was taken


class Stop(NamedTuple):
    """When an iteration shall stop, as the user said it; None leaves it to the number type."""

    tol: float | None
    max_iterations: int | None

    def numbers(self, dtype: str, nv: int) -> tuple[float, int]:
        """The tolerance and the most steps; raises for numbers that no iteration can use."""
        tol, most = self
        if tol is not None and not (isinstance(tol, float | np.floating) and 0.0 < tol < 1.0):
            raise ValueError(f"tol is {tol!r}; expected a number between 0 and 1")
        check_count("max_iterations", most)
        return tol or TOLERANCE[dtype], most or 4 * nv + 20


ANY = Stop(None, None)


Loaded = Callable[[Task], Kernel]  # the kernel of a task


def solve(
    kernel: Loaded, task: Task, batch: Batch, stop: Stop, nv: int, out: Any, threads: int | None
) -> tuple[Any, Iterations]:
    """Iterate; states that did not converge are solved by articulated bodies."""
    tolerance, limit = stop.numbers(batch.dtype, nv)
    full = batch.with_constants(tolerance, limit)
    result = arrays.target(out, (*batch.shape, nv), batch)
    dtype = batch.dtype
    broken = ~np.all([np.isfinite(a).all(axis=-1) for a in full.rows], axis=0)
    numbers = ((nv,), dtype), ((1,), dtype), ((1,), dtype)
    if batch.states and nv and task.rolled:
        x, steps, left = _by_products(kernel, task, batch, tolerance, limit, threads)
        result.reshape(batch.states, nv)[...] = np.where(broken[:, None], np.nan, x)
    elif batch.states and nv:
        _, steps, left = full.run(kernel(task), numbers, result, threads)
    else:
        steps = left = np.zeros((*batch.shape, 1), dtype)
    with np.errstate(invalid="ignore"):
        residual = np.sqrt(left.reshape(-1))
        failed = ~(residual <= STALLED * np.dtype(dtype).type(tolerance))
    again = np.flatnonzero(failed & ~broken)
    if again.size:
        few = Batch(tuple(a[again] for a in full.rows), again.shape, dtype)
        (qdd,) = _without_iterating(few, kernel, task, nv, threads)
        result.reshape(batch.states, nv)[again] = qdd
    bits = np.where(broken, Status.NOT_FINITE, np.where(failed, Status.NOT_CONVERGED, Status.OK))
    count = np.where(broken, 0, steps.reshape(-1)).astype(np.int64)
    found = (bits.astype(np.uint16), count, residual)
    return arrays.deliver(out, result), Iterations(*(x.reshape(batch.shape) for x in found))


def _by_products(
    kernel: Loaded, task: Task, batch: Batch, tolerance: float, limit: int, threads: int | None
) -> list[Array]:
    """The iteration of a large robot on arrays (states, joints); products are compiled loops.

    Returns x, iterations and squared residuals, as a kernel of the whole iteration does.
    """
    (q, qd, tau, start), wrenches = batch.rows[:4], batch.rows[4:]

    def run(function: str, *rows: Array, external: bool = False) -> Array:
        own = replace(task, algorithm=first_method(function), status=False)
        own = own if external else replace(own, external=())
        outputs = [((tau.shape[1],), batch.dtype)]
        return Batch(rows, (batch.states,), batch.dtype).run(kernel(own), outputs, None, threads)[0]  # type: ignore[no-any-return]

    def dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
        return np.sum(a[0] * b[0], axis=-1, keepdims=True)  # type: ignore[no-any-return]

    times, *scale = (partial(_of_one, run, name, q) for name in task.algorithm.products)
    with np.errstate(all="ignore"):  # states without an answer become NaN
        b = [tau - run("bias", q, qd, *wrenches, external=True)]
        square = np.dtype(batch.dtype).type(tolerance)
        return iterate(times, scale[0] if scale else None, b, [start.copy()], square, limit, dot)


def _of_one(run: Callable[..., Array], function: str, q: Array, x: Sequence[Array]) -> list[Array]:
    """A function of (q, x) of vectors that are one array each."""
    return [run(function, q, x[0])]


def solve_there(
    kernel: Loaded,
    task: Task,
    batch: DeviceBatch,
    stop: Stop,
    nv: int,
    out: Any,
    backend: DeviceBackend,
) -> tuple[Any, Iterations]:
    """The same on a device: what did not converge is not known here, so all states are solved
    by articulated bodies too, and each takes one of the two results.
    """
    full, dtype = batch.with_constants(*stop.numbers(batch.dtype, nv)), batch.dtype
    results = ((nv,), dtype), ((), FLAGS_DTYPE), ((), dtype), ((), dtype)
    if not nv:
        found = batch.spread([np.zeros(n) for n in (0, (), (), ())], results, out)
    elif not batch.states:
        found = batch.run(None, results, out)
    else:
        refuse_room(batch.function, "its iterations", batch.where)
        numbers = ((nv,), dtype), ((1,), dtype), ((1,), dtype)
        qdd, steps, left = full.run(kernel(task), numbers)
        (direct,) = _without_iterating(full, kernel, task, nv)
        known = full.plus(qdd, steps, left, direct)
        sizes = tuple(view.shape[1] for view in full.views)
        machine: Any = backend  # by identity
        found = known.run(_settling(machine, sizes, nv, dtype), results, out)
    qdd, bits, steps, residual = found
    return qdd, Iterations(bits, batch.where.library.typed(steps, "int64"), residual)


def _without_iterating(
    batch: Batch | DeviceBatch, kernel: Loaded, task: Task, nv: int, threads: int | None = None
) -> list[Any]:
    """The same states by articulated bodies, which has no iteration to fail."""
    rest = batch.without(3, -2, -1)  # no start, no tolerance, no limit
    return rest.run(kernel(replace(task, algorithm=DIRECT)), [((nv,), batch.dtype)], None, threads)


@cache
def _settling(backend: DeviceBackend, sizes: tuple[int, ...], nv: int, dtype: str) -> DeviceKernel:
    program = settled(sizes, nv)
    text = backend.render(program, dtype, BATCH)
    code = cached(backend, (text, dtype), lambda: backend.build(text))
    return backend.load(code, program.signature, dtype, BATCH)


def settled(sizes: Sequence[int], nv: int) -> Program:
    """Which of two results a state takes, and how its iteration went: `solve`, as a program.

    Inputs are those of the iteration, by their sizes, tolerance and limit last, and what the
    iteration and articulated bodies made of them.
    """
    graph = Graph()
    given = [Port(f"x{k}", size) for k, size in enumerate(sizes)]
    made = [Port("iterated", nv), Port("taken", 1), Port("left", 1), Port("direct", nv)]
    x = {port.name: [graph.input(port.name, k) for k in range(port.size)] for port in given + made}
    lost = graph.zero
    for number in (number for port in given for number in x[port.name]):
        lost = lost + (1.0 - graph.node("finite", number))
    broken = graph.node("flag", lost)
    residual = graph.node("sqrt", x["left"][0])
    (tolerance,) = x[given[-2].name]
    large = graph.node("flag", residual - STALLED * tolerance)
    failed = (1.0 - broken) * (1.0 - (1.0 - large) * graph.node("finite", residual))
    pairs = zip(x["direct"], x["iterated"], strict=True)
    qdd = tuple(graph.node("select", failed, other, own) for other, own in pairs)
    bits = float(Status.NOT_CONVERGED) * failed + float(Status.NOT_FINITE) * broken
    steps = graph.node("select", broken, graph.zero, x["taken"][0])
    outputs = (
        Output("result", (nv,), qdd),
        Output("status", (), (bits,), FLAGS),
        Output("steps", (), (steps,)),
        Output("residual", (), (residual,)),
    )
    roots = [value for output in outputs for value in output.values]
    block = Block(tuple(reachable(roots)))
    return Program("iterations", (*given, *made), (block,), outputs)
