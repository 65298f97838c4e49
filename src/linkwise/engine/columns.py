"""Matrices over the joints of large robots, many columns at a time.

A column of M⁻¹ is ``solve_mass`` of a unit vector, one of F is ``apply_factor``. The kernel of that
function takes the columns of a state as it takes the states of a batch: side by side in the lanes
of the processor, and on its threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.base import BATCH, Backend, Kernel
from linkwise.engine import arrays
from linkwise.engine.build import progress, refuse_large_matrix
from linkwise.engine.devices import DeviceBatch
from linkwise.engine.kernels import Kernels
from linkwise.errors import quote
from linkwise.trace.tracer import Task

Array = NDArray[Any]
AT_ONCE = 256  # columns: their unit vectors are small beside the matrix, and they keep cores busy


def run(
    kernels: Kernels,
    task: Task,
    batch: arrays.Batch | DeviceBatch,
    backend: Backend,
    out: Any,
    threads: int | None,
) -> Any:
    """The matrix of each state; with a status, the pair of both."""
    product, nv = task.of_columns, kernels.tree.nv
    assert product is not None
    assert isinstance(batch, arrays.Batch)  # a GPU has no such tasks
    refuse_large_matrix(task, kernels.tree, kernels.name, batch.states)
    result = arrays.target(out, (*batch.shape, nv, nv), batch)
    status = np.zeros(batch.states, np.uint8)
    if batch.states:
        kernel = kernels.kernel(product, batch.dtype, BATCH, backend)
        with progress(f"computing {task.name} of {quote(kernels.name)}"):
            for k, into in enumerate(result.reshape(-1, nv, nv)):
                row = [x[k : k + 1] for x in batch.rows]
                status[k] = _one_state(kernel, row, into, task, threads)
    found = arrays.deliver(out, result)
    return (found, arrays.deliver(None, status.reshape(batch.shape))) if task.status else found


def _one_state(
    kernel: Kernel, row: list[Array], into: Array, task: Task, threads: int | None
) -> int:
    """Fill the matrix of one state; returns its status."""
    nv = len(into)
    bits = 0
    for start in range(0, nv, AT_ONCE):
        count = min(AT_ONCE, nv - start)
        units = np.eye(count, nv, start, dtype=into.dtype)
        given = [*(np.broadcast_to(x, (count, x.shape[1])) for x in row), units]
        columns, status = np.empty_like(units), np.zeros((count, 1), np.uint8)
        kernel(given, [columns, status] if task.status else [columns], threads)
        bits |= int(np.bitwise_or.reduce(status, axis=None))
        into[:, start : start + count] = columns.T
        if task.algorithm.symmetric:  # to the bit: entries beyond the diagonal are copied
            into[start : start + count, :start] = into[:start, start : start + count].T
            own = into[start : start + count, start : start + count]
            own[...] = np.triu(own) + np.triu(own, 1).T
    return bits
