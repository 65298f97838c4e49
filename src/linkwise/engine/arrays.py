"""The array edge: what users pass becomes contiguous rows, once, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.llvm.run import BatchKernel

Array = NDArray[Any]
FLOATS = (np.dtype("float32"), np.dtype("float64"))


@dataclass(frozen=True)
class Batch:
    """Inputs as contiguous rows of one dtype, and the leading shape they came in."""

    rows: tuple[Array, ...]
    shape: tuple[int, ...]
    dtype: str


def prepare(function: str, ports: Sequence[tuple[str, int]], values: Sequence[Any]) -> Batch:
    """Check and broadcast the arguments of a call."""
    ready = _ready(ports, values)
    if ready is not None:
        return ready
    given = [
        _read(function, name, size, value)
        for (name, size), value in zip(ports, values, strict=True)
    ]
    dtype = np.result_type(*given)
    try:
        shape = np.broadcast_shapes(*(a.shape[:-1] for a in given))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape}" for (name, _), a in zip(ports, given, strict=True))
        raise ValueError(
            f"{function}: leading axes do not broadcast: {shapes}; expected shapes that NumPy "
            "could add, apart from the last axis"
        ) from None
    rows = tuple(_rows(a, shape, dtype) for a in given)
    return Batch(rows, shape, dtype.name)


def _ready(ports: Sequence[tuple[str, int]], values: Sequence[Any]) -> Batch | None:
    """The arguments of most calls need nothing done: contiguous, of one dtype and one shape."""
    first = values[0]
    if type(first) is not np.ndarray or first.dtype not in FLOATS:
        return None
    dtype, shape = first.dtype, first.shape[:-1]
    for (_, size), a in zip(ports, values, strict=True):
        if (
            type(a) is not np.ndarray
            or a.dtype is not dtype
            or a.shape != (*shape, size)
            or not a.flags.c_contiguous
            or not a.flags.aligned
        ):
            return None
    rows = tuple(a.reshape(-1, a.shape[-1]) for a in values) if len(shape) != 1 else tuple(values)
    return Batch(rows, shape, dtype.name)


def _read(function: str, name: str, size: int, value: ArrayLike) -> Array:
    """One argument as a float32 or float64 array with the right last axis."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"{function}: {name} cannot be read as an array ({error}); expected numbers of shape "
            f"(..., {size})"
        ) from None
    if array.dtype.kind in "iu" or (array.size == 0 and not isinstance(value, np.ndarray)):
        array = array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.newbyteorder("=") not in FLOATS:
        raise TypeError(
            f"{function}: {name} has dtype {array.dtype}; expected float32, float64 or integers"
        )
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(f"{function}: {name} has shape {array.shape}; expected (..., {size})")
    return array


def _rows(array: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    size = array.shape[-1]
    wide = np.broadcast_to(array, (*shape, size))
    rows = np.ascontiguousarray(wide, dtype=dtype).reshape(-1, size)
    return rows if rows.flags.aligned else rows.copy()


def fill(
    out: Array | None,
    shape: tuple[int, ...],
    batch: Batch,
    kernel: BatchKernel,
    threads: int | None,
) -> Array:
    """Run into ``out`` where it can be written directly, else into a fresh array and copy."""
    if out is None:
        result = np.empty(shape, batch.dtype)
        _run(kernel, batch, result, threads)
        return result if shape else result[()]
    target = _check_out(out, shape, batch.dtype)
    if (
        target.flags.c_contiguous
        and target.flags.aligned
        and not any(np.may_share_memory(target, a) for a in batch.rows)
    ):
        _run(kernel, batch, target, threads)
    else:
        result = np.empty(shape, batch.dtype)
        _run(kernel, batch, result, threads)
        target[...] = result
    return target


def _run(kernel: BatchKernel, batch: Batch, result: Array, threads: int | None) -> None:
    states = batch.rows[0].shape[0]
    if states:
        kernel(batch.rows, [result.reshape(states, -1)], threads)


def deliver(out: Array | None, result: Array, dtype: str) -> Array:
    """A finished result, in ``out`` where one was given."""
    if out is None:
        return result if result.shape else result[()]
    target = _check_out(out, result.shape, dtype)
    target[...] = result
    return target


def _check_out(out: Any, shape: tuple[int, ...], dtype: str) -> Array:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected a NumPy array of shape {shape}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; expected {shape}")
    if out.dtype != np.dtype(dtype):
        raise TypeError(f"out has dtype {out.dtype}; expected {dtype}, as the inputs have")
    if not out.flags.writeable:
        raise ValueError("out is read-only; expected a writeable array")
    return out


def wrenches(f_ext: Mapping[str, ArrayLike] | None) -> dict[str, ArrayLike]:
    """External wrenches by frame, in the order given."""
    if f_ext is None:
        return {}
    if not isinstance(f_ext, Mapping):
        raise TypeError(
            f"f_ext is a {type(f_ext).__name__}; expected a mapping {{frame: (..., 6) wrench}}"
        )
    return dict(f_ext)


def damping(value: ArrayLike | None, q: Any) -> Array | None:
    """Damping of six directions (..., 6), no wider than ``q`` if it is a plain number."""
    if value is None:
        return None
    try:
        array = np.asarray(value)
        negative = bool((array < 0).any())
    except (ValueError, TypeError):
        array, negative = np.empty(0, object), False
    if array.dtype.kind not in "iuf" or negative or (array.ndim and array.shape[-1] != 6):
        raise ValueError(
            f"operational_inertia: damping is {value!r}; expected a number that is not negative, "
            "or six of them (..., 6), one for each direction"
        )
    if array.ndim:
        return array
    own = q.dtype if isinstance(q, np.ndarray) and q.dtype in FLOATS else FLOATS[1]
    return np.full(6, value, np.result_type(own, value)) if value else None


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that is none."""
    if threads is None:
        return
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ValueError(f"threads is {threads!r}; expected a positive integer or None")


def plain_state(values: Sequence[Any]) -> bool:
    """Whether the arguments are one state exactly as the compiled call wants it."""
    return all(
        type(v) is np.ndarray
        and v.ndim == 1
        and v.dtype is FLOATS[1]
        and v.flags.c_contiguous
        and v.flags.aligned
        for v in values
    )
