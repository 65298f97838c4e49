"""The array edge: what users pass becomes contiguous rows, once, with errors that help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.llvm.run import available_cores

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
    run: Callable[[tuple[Array, ...], Array], None],
) -> Array:
    """Run into ``out`` where it can be written directly, else into a fresh array and copy."""
    states = batch.rows[0].shape[0]
    target = None if out is None else _check_out(out, shape, batch.dtype)
    direct = target is not None and target.flags.c_contiguous and target.flags.aligned
    if direct and target is not None and any(np.may_share_memory(target, a) for a in batch.rows):
        direct = False
    result = target if direct and target is not None else np.empty(shape, batch.dtype)
    if states:
        run(batch.rows, result.reshape(states, -1))
    if target is None:
        return result if shape else result[()]
    if not direct:
        target[...] = result
    return target


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


def thread_count(threads: int | None) -> int:
    """How many threads a call may use."""
    if threads is None:
        return available_cores()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads is {threads!r}; expected a positive integer or None")
    return threads


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
