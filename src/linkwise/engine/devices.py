"""Calls with arrays that are not NumPy's: where those are, and how a kernel gets them.

Arguments of a call come from one library (`libraries.py`) and one device. The result is made by
that library on that device, and filled on its current stream; nothing waits, and nothing
passes through the host.

A call whose arguments differ from an earlier one's only in where they are goes by a `Plan`: read
the pointers, make the result, start the kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from linkwise.backends.base import DeviceKernel, Kernel, Rows, View, contiguous
from linkwise.backends.choice import gpu
from linkwise.engine import arrays
from linkwise.engine.arrays import Array, Outputs, broadcast, read
from linkwise.engine.libraries import (
    NUMPY,
    Layout,
    Library,
    Pointers,
    device_of,
    library_of,
    library_of_class,
)

FLOATS = ("float32", "float64")


def overlap(one: View, other: View) -> bool:
    """Whether the two may share a number."""
    (start, end), (other_start, other_end) = _extent(one), _extent(other)
    return start < other_end and other_start < end


def _extent(view: View) -> tuple[int, int]:
    """The first byte, and the one behind the last; strides may be negative."""
    if 0 in view.shape:
        return view.pointer, view.pointer
    size = np.dtype(view.dtype).itemsize
    reach = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    low, high = (sum(pick(0, r) for r in reach) for pick in (min, max))
    return view.pointer + low * size, view.pointer + (high + 1) * size


def number(device: Any) -> int | None:
    """The GPU that a device names, ``cuda`` the first one; None for ``cpu``."""
    if isinstance(device, str) and device == "cpu":
        return None
    kind, _, which = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or not (which or "0").isdecimal():
        raise ValueError(f"device {device!r}: expected 'cpu', 'cuda' or, for another GPU, 'cuda:1'")
    return int(which or "0")


def elsewhere(values: Sequence[Any]) -> bool:
    """Whether an argument is an array of another library than NumPy."""
    return any(type(x) is not np.ndarray and library_of(x) is not None for x in values)


def on_host(library: Library, values: Sequence[Any], out: Any, run: Callable[..., Any]) -> Any:
    """``run(values, out)`` with arrays of another library on the CPU: NumPy sees their memory."""
    host = [library.to_numpy(x) if library_of(x) else x for x in values]
    wide = np.result_type(*(x for x in host if isinstance(x, np.ndarray)))
    if wide.name in FLOATS:  # lists and numbers widen no float32
        host = [x if isinstance(x, np.ndarray) else np.asarray(x, wide) for x in host]
    if out is None:
        return _shared(library, run(tuple(host), None))
    if library_of(out) is not library or library.place(out) != "cpu":
        raise TypeError(f"out is {_described(out)}; expected an array of {library.name} on cpu")
    _accept("out", out, library)
    found = run(tuple(host), library.to_numpy(out))
    return (out, _shared(library, found[1])) if isinstance(found, tuple) else out


def _shared(library: Library, found: Any) -> Any:
    """Results of NumPy as arrays of a library, the same memory."""
    if not isinstance(found, tuple):
        return library.from_numpy(found)
    parts = [_shared(library, x) for x in found]
    return found._make(parts) if hasattr(found, "_make") else tuple(parts)


class Where(NamedTuple):
    """The library of all arrays of a call, and the device they are on."""

    library: Library
    place: str

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return device_of(self.place)


def where(function: str, names: Sequence[str], values: Sequence[Any]) -> Where:
    """Where the arguments are; raises unless that is one library and device.

    Lists and numbers are nowhere: they go where the arrays are.
    """
    found: Where | None = None
    first = ""
    for name, value in zip(names, values, strict=True):
        library = library_of(value)
        if library is None and not isinstance(value, np.ndarray):
            continue
        own = Where(library or NUMPY, library.place(value) if library else "cpu")
        if found is None:
            found, first = own, name
        elif own != found:
            raise TypeError(
                f"{function}: {name} is an array of {own.library.name} on {own.place}, {first} one "
                f"of {found.library.name} on {found.place}; expected one library and one device"
            )
        _accept(name, value, own.library, f"{function}: ")
    assert found is not None  # somebody has looked
    if found.place != "cpu" and not found.place.startswith("cuda"):
        raise TypeError(f"{function}: {first} is on {found.place}; expected cpu or cuda")
    return found


def _accept(name: str, array: Any, library: Library, where: str = "") -> None:
    refused = library.refusal(name, array)
    if refused:
        raise TypeError(f"{where}{name} {refused}")


@dataclass(frozen=True)
class DeviceBatch:
    """Arguments on one device, as rows of one dtype; see `arrays.Batch`."""

    function: str
    where: Where
    stream: int
    arrays: tuple[Any, ...]  # as their library has them
    views: tuple[View, ...]  # (states, size)
    shape: tuple[int, ...]
    dtype: str

    @property
    def states(self) -> int:
        """Rows of every input."""
        return prod(self.shape)

    @property
    def rows(self) -> list[Rows]:
        """The inputs as a kernel takes them."""
        return [Rows(v.pointer, v.shape[0], v.shape[1], v.dtype, v.strides[0]) for v in self.views]

    def with_constants(self, *numbers: float) -> DeviceBatch:
        """The batch with inputs of one number each, the same in every state."""
        library, device = self.where.library, self.where.device
        more = [library.full((1, 1), x, self.dtype, device) for x in numbers]
        same = [
            library.view(x, self.stream)._replace(shape=(self.states, 1), strides=(0, 1))
            for x in more
        ]
        return replace(self, arrays=(*self.arrays, *more), views=(*self.views, *same))

    def plus(self, *results: Any) -> DeviceBatch:
        """The batch with results (..., size) of an earlier kernel as inputs."""
        views = []
        for x in results:
            view = self.where.library.view(x, self.stream)
            size = view.shape[-1]
            views.append(view._replace(shape=(self.states, size), strides=(size, 1)))
        return replace(self, arrays=(*self.arrays, *results), views=(*self.views, *views))

    def without(self, *inputs: int) -> DeviceBatch:
        """The batch without some of its inputs, counted from the first, or the last for -1."""
        own = [tuple(arrays.left(each, inputs)) for each in (self.arrays, self.views)]
        return replace(self, arrays=own[0], views=own[1])

    def run(
        self, kernel: Kernel | None, outputs: Outputs, out: Any = None, threads: Any = None
    ) -> list[Any]:
        """Start a kernel that fills arrays (..., shape), the first one ``out`` where it is given.

        None instead of a kernel: there is no state. A device has no threads to choose.
        """
        library = self.where.library
        kernel = cast("DeviceKernel | None", kernel)  # as backends of devices load them
        if out is None:
            return library.filled(kernel, self, outputs)
        straight = self.written_straight(out, outputs)
        if not straight:
            refuse_room(self.function, "a result beside out", self.where)
        found = library.filled(kernel, self, outputs, out if straight else None)
        return self._delivered(out, found)

    def spread(self, numbers: Sequence[Array], outputs: Outputs, out: Any = None) -> list[Any]:
        """Arrays (..., shape) with the same numbers in every state."""
        library, device = self.where.library, self.where.device
        found = [
            library.constant(np.array(np.broadcast_to(x, (*self.shape, *shape)), dtype), device)
            for x, (shape, dtype) in zip(numbers, outputs, strict=True)
        ]
        if out is None:
            return found
        self.check_out(out, outputs)
        return self._delivered(out, found)

    def _delivered(self, out: Any, found: list[Any]) -> list[Any]:
        """The results with the first one in ``out``."""
        library = self.where.library
        if found[0] is not out:
            library.assign(out, found[0])
        if not library.follows:  # the library may work on another stream than ours
            gpu(self.where.device).memory.wait()
        return [out, *found[1:]]

    def check_out(self, out: Any, outputs: Outputs) -> View:
        """Raise unless the first output can be written to ``out``."""
        library, place = self.where
        if library_of(out) is not library or library.place(out) != place:
            raise TypeError(
                f"out is {_described(out)}; expected an array of {library.name} on {place}"
            )
        if not library.writable:
            raise TypeError(
                f"out is an array of {library.name}, which cannot be written; expected no out"
            )
        _accept("out", out, library)
        view, shape = library.view(out, self.stream), (*self.shape, *outputs[0][0])
        if view.shape != shape:
            raise ValueError(f"out has shape {view.shape}; expected {shape}")
        if view.dtype != self.dtype:
            raise TypeError(
                f"out has dtype {view.dtype}; expected {self.dtype}, as the inputs have"
            )
        return view

    def written_straight(self, out: Any, outputs: Outputs) -> bool:
        """Whether a kernel may write to ``out``: it has no gaps and overlaps no input."""
        view = self.check_out(out, outputs)
        apart = not any(overlap(view, other) for other in self.views)
        return apart and view.strides == contiguous(view.shape)


def _described(out: Any) -> str:
    library = library_of(out)
    if library is None:
        return f"a {type(out).__name__}"
    return f"an array of {library.name} on {library.place(out)}"


def prepare(
    function: str, ports: Sequence[tuple[str, int]], values: Sequence[Any], at: Where
) -> DeviceBatch:
    """Check and broadcast the arguments of a call."""
    library, stream = at.library, at.library.stream(at.device)
    given = [x if library_of(x) else None for x in values]
    views = [None if x is None else library.view(x, stream) for x in given]
    dtype = _common_dtype(function, ports, views)
    found: list[View] = []
    for k, (name, size) in enumerate(ports):
        view = views[k]
        if view is None:
            given[k] = _constant(function, name, read(function, name, size, values[k]), dtype, at)
            view = library.view(given[k], stream)
        if not view.shape or view.shape[-1] != size:
            raise ValueError(f"{function}: {name} has shape {view.shape}; expected (..., {size})")
        found.append(view)
    shape = broadcast(function, ports, [view.shape for view in found])
    for k, view in enumerate(found):
        if (len(shape), view.shape[:-1], view.dtype) != (1, shape, dtype) or (
            view.strides[-1] != 1 and view.shape[-1] > 1
        ):
            given[k], found[k] = library.rows(given[k], view, shape, dtype, stream)
            if found[k].pointer != view.pointer:
                refuse_room(function, f"a copy of {ports[k][0]}", at)
    return DeviceBatch(function, at, stream, tuple(given), tuple(found), shape, dtype)


def _constant(function: str, name: str, numbers: Array, dtype: str, at: Where) -> Any:
    """A list or number on the device: made there where all numbers are the same, else copied."""
    typed = np.ascontiguousarray(numbers, dtype)
    bits = typed.view(f"u{typed.itemsize}")  # -0.0 is not 0.0
    if typed.size and (bits == bits.flat[0]).all():
        refuse_room(function, f"an array for {name}", at)
        return at.library.full(typed.shape, float(typed.flat[0]), dtype, at.device)
    if capturing(at):
        raise RuntimeError(
            f"{function}: {name} is not on the GPU, and copies from the host cannot be part of a "
            f"graph; expected an array of {at.library.name}"
        )
    return at.library.constant(typed, at.device)


def capturing(at: Where) -> bool:
    """Whether the library's current stream records a graph instead of doing the work."""
    return gpu(at.device).memory.capturing(at.library.stream(at.device))


def refuse_loading(function: str, at: Where) -> None:
    """Raise while a graph is captured: kernels cannot be loaded then."""
    if capturing(at):
        raise RuntimeError(
            f"{function}: its kernel is not loaded, which cannot be done while a graph is "
            "captured; call it once before, with arrays of these shapes and dtypes"
        )


def refuse_room(function: str, what: str, at: Where) -> None:
    """Raise where memory that a graph needs would be given to others after it is captured."""
    if not at.library.keeps_graphs and capturing(at):
        raise RuntimeError(
            f"{function}: needs room for {what}, which {at.library.name} does not keep for a "
            "graph; expected arguments of one dtype whose rows are evenly apart, no lists, no "
            "iterations, and an out without gaps that overlaps no argument"
        )


def _common_dtype(
    function: str, ports: Sequence[tuple[str, int]], views: Sequence[View | None]
) -> str:
    wide = "float32"
    for (name, _), view in zip(ports, views, strict=True):
        if view is not None and view.dtype not in FLOATS:
            raise TypeError(
                f"{function}: {name} has dtype {view.dtype}; expected float32 or float64"
            )
        if view is not None and view.dtype == "float64":
            wide = "float64"
    return wide


class Plan:
    """Calls of one layout of arguments: only pointers differ from one to the next."""

    __slots__ = ("_bytes", "_device", "_extents", "_library", "_make", "_more", "_odd", "_start")

    def __init__(
        self, batch: DeviceBatch, kernel: DeviceKernel, outputs: Outputs, values: Sequence[Any]
    ) -> None:
        self._library, self._device = batch.where.library, batch.where.device
        self._start = kernel.starter(batch.states, [view.strides[0] for view in batch.views])
        made = [((*batch.shape, *shape), dtype) for shape, dtype in outputs]
        makers = [self._library.maker(*new, self._device, values) for new in made]
        self._make, self._more = makers[0], makers[1:]
        self._extents = [_extent(view)[1] - view.pointer for view in batch.views]
        size = np.dtype(batch.dtype).itemsize
        self._bytes = prod(made[0][0]) * size  # of the result
        self._odd = size - 1  # bits that no pointer to a whole number has

    def run(self, values: Sequence[Any], pointers: Pointers, out: Any) -> Any:
        """Start the kernel; the result, which it will fill. None: look at the arrays with care.

        Pointers are those of the values, and of ``out`` where it is given: it overlaps no value.
        """
        library, found = self._library, out
        for pointer in pointers:
            if pointer & self._odd:
                return None
        if out is None:
            found = self._make(values)
            pointers.append(library.pointer(found))
        else:
            to = pointers[-1]
            end = to + self._bytes
            for pointer, extent in zip(pointers, self._extents, strict=False):
                if pointer < end and to < pointer + extent:
                    return None
        if not self._more:
            self._start(library.stream(self._device), pointers)
            return found
        more = [make(values) for make in self._more]
        pointers += [library.pointer(x) for x in more]
        self._start(library.stream(self._device), pointers)
        return (found, *more)


class Planned(Protocol):
    """How calls of one layout run: a `Plan`, or what their library has instead."""

    def run(self, values: Sequence[Any], pointers: Pointers, out: Any) -> Any:
        """The result, or None."""


Plans = dict[Layout, Planned]
MOST_PLANS = 64  # of one kind of call


def keep_plan(
    plans: Plans,
    batch: arrays.Batch | DeviceBatch,
    kernel: Kernel | None,
    outputs: Outputs,
    values: Sequence[Any],
    out: Any,
) -> None:
    """Remember how a call on a device ran, for further calls of its layout.

    Not where arrays had to be made for this one, or ``out`` could not be written as it comes.
    """
    if not isinstance(batch, DeviceBatch) or kernel is None:
        return
    library = batch.where.library
    seen = library.look(values if out is None else (*values, out))
    if seen is None:
        return
    layout, pointers = seen
    for pointer, view in zip(pointers, batch.views, strict=False):
        if pointer != view.pointer or (out is not None and min(view.strides) < 0):
            return
    if not pointers and any(x is not y for x, y in zip(values, batch.arrays, strict=True)):
        return
    if out is not None and not batch.written_straight(out, outputs):
        return
    if len(plans) >= MOST_PLANS:
        plans.clear()
    there = cast(DeviceKernel, kernel)  # as backends of devices load them
    plans[layout] = library.compiled(there, batch, outputs) or Plan(batch, there, outputs, values)


def repeated(plans: Plans, values: Sequence[Any], out: Any) -> Any:
    """Run a call as an earlier one of its layout ran; None where there was none."""
    kind: Any = type(values[0])
    library = library_of_class(kind)
    seen = None if library is None else library.look(values if out is None else (*values, out))
    if seen is None:
        return None
    plan = plans.get(seen[0])
    return None if plan is None else plan.run(values, seen[1], out)


def times(q: Any, v: Any, dt: Any) -> Any:
    """``dt`` as an argument (..., 1) of a kernel; as in NumPy, a plain number widens no float32."""
    if type(dt) is float and type(q) is type(v) is np.ndarray:
        narrow = q.dtype == np.float32 == v.dtype
        return np.array([dt], np.float32 if narrow else np.float64)
    library = library_of(dt)
    if library is not None:
        return library.column(dt)
    if elsewhere((q, v)) and not isinstance(dt, np.ndarray):
        return np.asarray(dt)[..., None].tolist()
    if type(dt) is int and abs(dt) > sys.float_info.max:
        raise ValueError(f"integrate: dt is {dt}; expected seconds, numbers or arrays (...)")
    if type(dt) not in (int, float):
        arrays.refuse_mask("integrate", "dt", dt)
        return np.asarray(dt)[..., None]
    narrow = all(getattr(x, "dtype", None) == np.float32 for x in (q, v))
    return np.array([dt], np.float32 if narrow else np.float64)


def damping(value: Any, q: Any) -> Any:
    """Damping of six directions (..., 6).

    Whether an array on a GPU is negative is not asked, because the answer would have to be waited
    for.
    """
    library = library_of(value)
    if library is None:
        found = arrays.damping(value, q)
        return found.tolist() if found is not None and library_of(q) is not None else found
    if library.place(value) == "cpu" and not library.refusal("damping", value):
        arrays.damping(library.to_numpy(value), q)  # raises for what is negative
    return value if len(value.shape) else library.xp.broadcast_to(value, (6,))


def zeros(nv: int, like: Sequence[Any]) -> Any:
    """A vector of zeros, no wider than the arrays it goes with."""
    return [0.0] * nv if elsewhere(like) else np.zeros(nv, np.float32)
