"""The array edge: what users pass becomes rows of one number type, once, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.base import Kernel
from linkwise.engine import pool

Array = NDArray[Any]
FLOATS = (np.dtype("float32"), np.dtype("float64"))
MOST_AXES = 32  # leading ones, which NumPy can broadcast


# what a call returns: the shape of each result for one state, and its dtype
Outputs = Sequence[tuple[tuple[int, ...], str]]


@dataclass(frozen=True)
class Batch:
    """Inputs as rows (states, size) of one dtype, strided, and the leading shape they came in."""

    rows: tuple[Array, ...]
    shape: tuple[int, ...]
    dtype: str

    @property
    def states(self) -> int:
        """Rows of every input."""
        return int(self.rows[0].shape[0])

    def with_constants(self, *numbers: float) -> Batch:
        """The batch with inputs of one number each, the same in every state."""
        more = (np.broadcast_to(np.asarray(x, self.dtype), (self.states, 1)) for x in numbers)
        return Batch((*self.rows, *more), self.shape, self.dtype)

    def without(self, *inputs: int) -> Batch:
        """The batch without some of its inputs, counted from the first, or the last for -1."""
        return Batch(tuple(left(self.rows, inputs)), self.shape, self.dtype)

    def run(
        self, kernel: Kernel | None, outputs: Outputs, out: Any = None, threads: int | None = None
    ) -> list[Any]:
        """Fill arrays (..., shape) by a kernel, the first one ``out`` where that is given.

        None instead of a kernel: there is no state.
        """
        made = self._new(outputs, out)
        if kernel is not None:
            kernel(self.rows, [x.reshape(self.states, -1) for x in made], threads)
        return [deliver(out, made[0]), *(deliver(None, x) for x in made[1:])]

    def spread(self, numbers: Sequence[Array], outputs: Outputs, out: Any = None) -> list[Any]:
        """Arrays (..., shape) with the same numbers in every state."""
        made = self._new(outputs, out)
        for array, same in zip(made, numbers, strict=True):
            array[...] = same
        return [deliver(out, made[0]), *(deliver(None, x) for x in made[1:])]

    def _new(self, outputs: Outputs, out: Any) -> list[Array]:
        (first, _), *rest = outputs
        more = [pool.empty((*self.shape, *shape), dtype) for shape, dtype in rest]
        return [target(out, (*self.shape, *first), self), *more]


def left(items: Sequence[Any], away: Sequence[int]) -> list[Any]:
    """The items but those at some places, counted from the first, or the last for -1."""
    gone = {k % len(items) for k in away}
    return [item for k, item in enumerate(items) if k not in gone]


def prepare(function: str, ports: Sequence[tuple[str, int]], values: Sequence[Any]) -> Batch:
    """Check and broadcast the arguments of a call."""
    given = [
        read(function, name, size, value) for (name, size), value in zip(ports, values, strict=True)
    ]
    dtype = np.result_type(*given)
    shape = broadcast(function, ports, [a.shape for a in given])
    return Batch(tuple(_rows(a, shape, dtype) for a in given), shape, dtype.name)


def broadcast(
    function: str, ports: Sequence[tuple[str, int]], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The leading shape of a call."""
    try:
        return np.broadcast_shapes(*(shape[:-1] for shape in shapes))
    except ValueError:
        raise unlike(function, [name for name, _ in ports], shapes, 1) from None


def unlike(
    function: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]], own: int
) -> ValueError:
    """The error for leading axes that do not broadcast, or to more states than an array can have;
    ``own`` axes of each shape are not among them.
    """
    pairs = zip(names, shapes, strict=True)
    # one number goes with any shape; tolerances and counts, which the caller may not know, are such
    given = ", ".join(f"{name} {shape}" for name, shape in pairs if shape != (1,))
    reverse = zip_longest(*(shape[-own - 1 :: -1] for shape in shapes), fillvalue=1)
    if all(len(set(axis) - {1}) <= 1 for axis in reverse):
        return ValueError(
            f"{function}: leading axes broadcast to more states than an array can have: {given}; "
            "expected fewer states"
        )
    last = "the last axis" if own == 1 else f"the last {own} axes"
    return ValueError(
        f"{function}: leading axes do not broadcast: {given}; expected shapes that NumPy "
        f"could add, apart from {last}"
    )


def widened(values: Sequence[Any]) -> list[Array] | None:
    """Lists, and arrays of several number types, as float64 arrays for the compiled entry.

    None where they are float64 or float32 arrays already, and where `prepare` must judge.
    """
    try:
        given = [np.asarray(x) if type(x) in (list, tuple) else x for x in values]
    except (ValueError, TypeError):
        return None
    if any(type(x) is not np.ndarray for x in given):
        return None
    types, pairs = {x.dtype for x in given}, zip(given, values, strict=True)
    if types <= {FLOATS[0]} or all(x is y and x.dtype == FLOATS[1] for x, y in pairs):
        return None
    if any(t not in FLOATS and t.kind not in "iu" for t in types):
        return None
    return [x.astype(np.float64, copy=False) for x in given]


def read(function: str, name: str, size: int, value: ArrayLike) -> Array:
    """One argument as a float32 or float64 array with the right last axis."""
    refuse_mask(function, name, value)
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
    if array.ndim > MOST_AXES + 1:
        raise ValueError(
            f"{function}: {name} has {array.ndim - 1} leading axes; expected at most {MOST_AXES}, "
            "which NumPy can broadcast (reshape it first)"
        )
    return array


def refuse_mask(function: str, name: str, value: Any) -> None:
    """Raise TypeError for a masked array in which numbers are masked."""
    if type(value) is np.ndarray:
        return
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise TypeError(
            f"{function}: {name} is a masked array, and the numbers behind its mask would be used; "
            f"expected a plain array (fill it first: {name}.filled(number))"
        )


def _rows(array: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """An argument as rows: a view where leading axes make one axis of rows, else a copy.

    The row of a single state is contiguous, if need be by a copy.
    """
    size = array.shape[-1]
    if not shape and array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(1, size)  # as below, but quicker
    states = int(np.prod(shape, dtype=np.int64))
    typed = array.astype(dtype, copy=False)
    rows = np.broadcast_to(typed, (*shape, size)).reshape(states, size)
    usable = rows.flags.aligned and (bool(shape) or rows.flags.c_contiguous)
    return rows if usable else rows.copy()


def target(out: Any, shape: tuple[int, ...], batch: Batch) -> Array:
    """Where to write a result: ``out`` where that can be written as it comes, else a new array."""
    if out is None:
        return pool.empty(shape, batch.dtype)
    check_out(out, shape, batch.dtype)
    straight = type(out) is np.ndarray and out.flags.c_contiguous and out.flags.aligned
    if straight and not any(np.may_share_memory(out, a) for a in batch.rows):
        return out  # type: ignore[no-any-return]
    return pool.empty(shape, batch.dtype)


def deliver(out: Array | None, result: Array) -> Any:
    """A finished result, in ``out`` where one was given; a number where it has no axes."""
    if out is None:
        return result if result.shape else result[()]
    if out is not result:
        out[...] = result
    return out


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise unless ``out`` is an array that can hold a result."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected a NumPy array of shape {shape}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; expected {shape}")
    if out.dtype != np.dtype(dtype):
        raise TypeError(f"out has dtype {out.dtype}; expected {dtype}, as the inputs have")
    if not out.flags.writeable:
        raise ValueError("out is read-only; expected a writeable array")


def wrenches(f_ext: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The frames of external wrenches, by name, and the wrenches: one kernel for every order."""
    if f_ext is None:
        return (), ()
    if type(f_ext) is not dict and not isinstance(f_ext, Mapping):
        raise TypeError(
            f"f_ext is a {type(f_ext).__name__}; expected a mapping {{frame: (..., 6) wrench}}"
        )
    frames = tuple(f_ext)
    if len(frames) > 1 and all(type(name) is str for name in frames):
        frames = tuple(sorted(frames))
        return frames, tuple([f_ext[name] for name in frames])
    return frames, tuple(f_ext.values())


def damping(value: ArrayLike | None, q: Any) -> Array | None:
    """Damping of six directions (..., 6), no wider than ``q`` if it is a plain number."""
    if value is None:
        return None
    refuse_mask("operational_inertia", "damping", value)
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


def check_threads(threads: Any) -> None:
    """Raise ValueError unless threads is None or a positive integer."""
    check_count("threads", threads)


def check_count(what: str, n: Any) -> None:
    """Raise ValueError unless n is None or a positive integer."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f"{what} is {n!r}; expected a positive integer or None")
