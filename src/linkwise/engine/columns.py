"""Arrays over the joints of large robots, many columns at a time.

A column of M⁻¹ is ``solve_mass`` of a unit vector, one of F is ``apply_factor``; of Christoffel's
symbols, ``Γ[..., k]`` is ``coriolis_matrix`` of one. The kernel of that function takes the columns
of a state as it takes the states of a batch: side by side in the lanes of the processor, and on its
threads.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.base import BATCH, Backend, Kernel
from linkwise.engine import arrays
from linkwise.engine.build import progress, refuse_large_matrix
from linkwise.engine.devices import DeviceBatch
from linkwise.errors import quote
from linkwise.trace.tracer import Task

if TYPE_CHECKING:
    from linkwise.engine.compiled import CompiledFunction

Array = NDArray[Any]
AT_ONCE = 1024  # columns, of one state or of several: enough to keep cores busy
MOST_NUMBERS = 2**21  # of the columns at once, where these are matrices
FEWEST = 16  # columns at once: lanes of a processor are not left empty


def run(
    task: Task,
    function: CompiledFunction,
    batch: arrays.Batch | DeviceBatch,
    backend: Backend,
    out: Any,
    threads: int | None,
) -> list[Any]:
    """The result of each state; with a status, that too."""
    kernels, product, shape = function.runtime.kernels, task.of_columns, function.outputs[0].shape
    assert product is not None
    assert isinstance(batch, arrays.Batch)  # a GPU has no such tasks
    refuse_large_matrix(task, kernels.tree, kernels.name, batch.states)
    result = arrays.target(out, (*batch.shape, *shape), batch)
    status = np.zeros(batch.states, np.uint16)
    if batch.states:
        kernel = kernels.kernel(kernels.equations(product), batch.dtype, BATCH, backend)
        of_states = result.reshape(-1, *shape)
        with progress(f"computing {task.name} of {quote(kernels.name)}"):
            for k in range(0, batch.states, states := max(_at_once(shape) // shape[-1], 1)):
                some = slice(k, k + states)
                rows = [x[some] for x in batch.rows]
                status[some] = _filled(kernel, rows, of_states[some], task, threads)
    results = [arrays.deliver(out, result)]
    return [*results, arrays.deliver(None, status.reshape(batch.shape))] if task.status else results


def _at_once(shape: tuple[int, ...]) -> int:
    """How many columns of results of a shape are computed at once."""
    return min(max(MOST_NUMBERS // prod(shape[:-1]), FEWEST), AT_ONCE)


def _filled(
    kernel: Kernel, rows: list[Array], into: Array, task: Task, threads: int | None
) -> Array:
    """Fill the results of some states, by their last axis; returns their status."""
    states, *of_column, nv = into.shape
    bits, at_once = np.zeros(states, np.uint16), min(_at_once(into.shape[1:]), nv)
    room = np.empty((states * at_once, prod(of_column)), into.dtype)
    for start in range(0, nv, at_once):
        count = min(at_once, nv - start)
        shape = (states, count)
        units = np.tile(np.eye(count, nv, start, dtype=into.dtype), (states, 1))
        given = [np.repeat(x, count, axis=0) if states > 1 else
                 np.broadcast_to(x, (count, x.shape[1])) for x in rows]  # fmt: skip
        columns, status = room[: len(units)], np.zeros((len(units), 1), np.uint16)
        kernel([*given, units], [columns, status] if task.status else [columns], threads)
        bits |= np.bitwise_or.reduce(status.reshape(shape), axis=1)
        into[..., start : start + count] = np.moveaxis(columns.reshape(*shape, *of_column), 1, -1)
        if task.algorithm.symmetric:  # to the bit: entries beyond the diagonal are copied
            some = slice(start, start + count)
            into[:, some, :start] = into[:, :start, some].swapaxes(1, 2)
            own = into[:, some, some]
            own[...] = np.triu(own) + np.triu(own, 1).swapaxes(1, 2)
    return bits
