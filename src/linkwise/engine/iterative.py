"""Forward dynamics by iteration: run, look at the residual, solve the rest another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import FUNCTIONS
from linkwise.engine.arrays import Batch
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


def check_options(tol: float | None, max_iterations: int | None) -> None:
    """Refuse what no iteration can use."""
    if tol is not None and not 0.0 < tol < 1.0:
        raise ValueError(f"tol is {tol!r}; expected a number between 0 and 1")
    if max_iterations is not None and max_iterations < 1:
        raise ValueError(f"max_iterations is {max_iterations!r}; expected a positive integer")


def solve(
    kernels: Kernels,
    task: Task,
    batch: Batch,
    tol: float | None,
    max_iterations: int | None,
    threads: int | None,
) -> tuple[Array, Iterations]:
    """Accelerations as rows; states that did not converge are solved by articulated bodies."""
    tolerance = tol or TOLERANCE[batch.dtype]
    n = kernels.tree.nv
    states = batch.rows[0].shape[0]
    qdd = np.empty((states, n), batch.dtype)
    steps, left = (np.empty((states, 1), batch.dtype) for _ in range(2))
    if states:
        stop = [
            np.full((states, 1), x, batch.dtype) for x in (tolerance, max_iterations or 4 * n + 20)
        ]
        kernels.batch(task, batch.dtype)([*batch.rows, *stop], [qdd, steps, left], threads)
    with np.errstate(invalid="ignore"):
        residual = np.sqrt(left[:, 0])
        failed = ~(residual <= STALLED * tolerance)
    broken = ~np.all([np.isfinite(a).all(axis=-1) for a in batch.rows], axis=0)
    again = np.flatnonzero(failed & ~broken)
    if again.size:
        qdd[again] = _directly(kernels, task, batch.rows, again, batch.dtype, threads)
    bits = np.where(broken, Status.NOT_FINITE, np.where(failed, Status.NOT_CONVERGED, Status.OK))
    count = np.where(broken, 0, steps[:, 0]).astype(np.int64)
    return qdd, Iterations(bits.astype(np.uint8), count, residual)


def _directly(
    kernels: Kernels,
    task: Task,
    rows: Sequence[Array],
    which: Array,
    dtype: str,
    threads: int | None,
) -> Array:
    """The same states by articulated bodies, which has no iteration to fail."""
    direct = replace(task, algorithm=DIRECT)
    arguments = [*rows[:3], *rows[4:]]  # all but the start of the iteration
    chosen = [np.ascontiguousarray(a[which]) for a in arguments]
    out = np.empty((which.size, kernels.tree.nv), dtype)
    kernels.batch(direct, dtype)(chosen, [out], threads)
    return out
