"""Forward dynamics by iteration: run, look at the residual, solve the rest another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH, Backend
from linkwise.engine.arrays import Batch, check_count
from linkwise.engine.devices import DeviceBatch
from linkwise.engine.kernels import Kernels
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


def solve(
    kernels: Kernels, task: Task, batch: Batch, out: Array, tolerance: float, threads: int | None
) -> Iterations:
    """Fill ``out``; states that did not converge are solved by articulated bodies."""
    qdd = out.reshape(batch.states, kernels.tree.nv)
    steps, left = (np.zeros((batch.states, 1), batch.dtype) for _ in range(2))
    if batch.states and kernels.tree.nv:
        kernel = kernels.kernel(task, batch.dtype, BATCH)
        kernel(batch.rows, [qdd, steps, left], threads)
    with np.errstate(invalid="ignore"):
        residual = np.sqrt(left[:, 0])
        failed = ~(residual <= STALLED * tolerance)
    broken = ~np.all([np.isfinite(a).all(axis=-1) for a in batch.rows], axis=0)
    again = np.flatnonzero(failed & ~broken)
    if again.size:
        qdd[again] = _directly(kernels, task, batch, again, threads)
    bits = np.where(broken, Status.NOT_FINITE, np.where(failed, Status.NOT_CONVERGED, Status.OK))
    count = np.where(broken, 0, steps[:, 0]).astype(np.int64)
    return Iterations(bits.astype(np.uint8), count, residual)


def solve_elsewhere(
    kernels: Kernels, task: Task, batch: DeviceBatch, tolerance: float, backend: Backend
) -> tuple[Any, Iterations]:
    """The same on a device: what did not converge is not known here, so all states are solved
    by articulated bodies too, and each takes one of the two results.
    """
    xp, size = batch.where.library.xp, kernels.tree.nv
    outputs = [batch.empty(n, batch.dtype) for n in (size, 1, 1)]
    direct = batch.empty(size, batch.dtype)
    if batch.states and size:
        batch.launch(kernels.kernel(task, batch.dtype, BATCH, backend), outputs)
        safe = replace(task, algorithm=DIRECT)
        rest = batch.without(3, -2, -1)  # no start, no tolerance, no limit
        rest.launch(kernels.kernel(safe, batch.dtype, BATCH, backend), [direct])
    n = batch.states
    qdd, steps, left, other = (
        batch.where.library.finished(x, (n, k), batch.where.device)
        for x, k in zip((*outputs, direct), (size, 1, 1, size), strict=True)
    )
    residual = xp.sqrt(left[:, 0])
    whole = xp.isfinite(batch.arrays[0]).all(-1)
    for array in batch.arrays[1:-2]:
        whole = whole & xp.isfinite(array).all(-1)
    failed = ~(residual <= STALLED * tolerance) & whole
    qdd = xp.where(failed[:, None], other, qdd)
    bits = failed * int(Status.NOT_CONVERGED) + ~whole * int(Status.NOT_FINITE)
    steps = xp.where(whole, steps[:, 0], xp.zeros_like(residual))
    typed = batch.where.library.typed
    return qdd, Iterations(typed(bits, "uint8"), typed(steps, "int64"), residual)


def _directly(
    kernels: Kernels, task: Task, batch: Batch, which: Array, threads: int | None
) -> Array:
    """The same states by articulated bodies, which has no iteration to fail."""
    direct = replace(task, algorithm=DIRECT)
    arguments = (*batch.rows[:3], *batch.rows[4:-2])  # no start, no tolerance, no limit
    out = np.empty((which.size, kernels.tree.nv), batch.dtype)
    kernel = kernels.kernel(direct, batch.dtype, BATCH)
    kernel([a[which] for a in arguments], [out], threads)
    return out
