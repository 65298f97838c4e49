"""Arrays that are not NumPy's: where they are, and how their library makes, views and moves them.

A `Library` is CuPy, PyTorch, JAX, or anything else that says where its memory on a GPU is (DLPack
or ``__cuda_array_interface__``). Arguments of a call come from one library and one device. The
result is made by that library on that device, and filled on the library's current stream; nothing
waits, and nothing passes through the host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from linkwise.backends.base import Rows
from linkwise.backends.choice import gpu_memory
from linkwise.engine import arrays
from linkwise.engine.arrays import Array, broadcast, read

FLOATS = ("float32", "float64")
CUDA = 2  # DLPack's number for memory of NVIDIA GPUs


class View(NamedTuple):
    """An array on a device: strides in numbers, not bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def rows(self) -> Rows:
        """A view (states, size) as a kernel takes it."""
        states, size = self.shape
        return Rows(self.pointer, states, size, self.dtype, self.strides[0])

    def overlaps(self, other: View) -> bool:
        """Whether the two may share a number."""
        (start, end), (other_start, other_end) = self._extent, other._extent
        return start < other_end and other_start < end

    @property
    def _extent(self) -> tuple[int, int]:
        """The first byte, and the one behind the last; strides may be negative."""
        if 0 in self.shape:
            return self.pointer, self.pointer
        size = np.dtype(self.dtype).itemsize
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = (sum(pick(0, r) for r in reach) for pick in (min, max))
        return self.pointer + low * size, self.pointer + (high + 1) * size


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


class Library:
    """What a call needs of the library that made its arguments."""

    name: str
    xp: Any  # its functions: where, sqrt, isfinite
    computes = True  # it has such functions
    writable = True  # its arrays can be filled

    def place(self, array: Any) -> str:
        """``cpu``, or ``cuda:0`` and so on."""
        raise NotImplementedError

    def view(self, array: Any, stream: int) -> View:
        """Where the numbers are; work that is put on the stream finds them complete."""
        raise NotImplementedError

    def layout(self, arrays: Sequence[Any]) -> tuple[Any, ...] | None:
        """All about arrays of this library but where their numbers are; None: look at each."""
        return None

    def pointer(self, array: Any) -> int:
        """Where the numbers of an array are."""
        raise NotImplementedError

    def stream(self, device: int) -> int:
        """The stream to work on."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """A new array without gaps."""
        raise NotImplementedError

    def constant(self, numbers: Array, device: int) -> Any:
        """A few numbers of the host as an array on the device."""
        raise NotImplementedError

    def rows(self, array: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """The array (states, size), its leading axes broadcast to ``shape``; rows without gaps."""
        raise NotImplementedError

    def typed(self, array: Any, dtype: str) -> Any:
        """The array with numbers of another type, or itself."""
        return array.astype(dtype)

    def finished(self, array: Any, shape: tuple[int, ...], device: int) -> Any:
        """A result as users get it."""
        return array.reshape(shape)

    def refusal(self, name: str, array: Any) -> str:
        """Why an argument is not taken; nothing where it is."""
        return ""

    def to_numpy(self, array: Any) -> Array:
        """An array on the CPU, as NumPy sees it."""
        return np.asarray(array)

    def from_numpy(self, array: Any) -> Any:
        """The other way round."""
        return self.xp.asarray(array)


class Numpy(Library):
    """NumPy, in messages."""

    name = "NumPy"


NUMPY = Numpy()


class Cupy(Library):
    """CuPy, whose arrays are all on a GPU."""

    name = "CuPy"

    def __init__(self) -> None:
        import cupy

        self.xp = cupy

    def place(self, array: Any) -> str:
        """Its device."""
        return f"cuda:{array.device.id}"

    def view(self, array: Any, stream: int) -> View:
        """As it is: the stream is CuPy's own."""
        strides = tuple(s // array.itemsize for s in array.strides)
        return View(array.data.ptr, array.shape, strides, array.dtype.name)

    def layout(self, arrays: Sequence[Any]) -> tuple[Any, ...] | None:
        """All but the pointers."""
        kind = self.xp.ndarray
        if any(type(x) is not kind for x in arrays):
            return None
        return tuple((x.shape, x.strides, x.dtype, x.device.id) for x in arrays)

    def pointer(self, array: Any) -> int:
        """On its device."""
        return int(array.data.ptr)

    def stream(self, device: int) -> int:
        """CuPy's current one."""
        return int(self.xp.cuda.get_current_stream(device).ptr)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """From CuPy's pool."""
        with self.xp.cuda.Device(device):
            return self.xp.empty(shape, dtype)

    def constant(self, numbers: Array, device: int) -> Any:
        """Copied."""
        with self.xp.cuda.Device(device):
            return self.xp.asarray(numbers)

    def rows(self, array: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """A view where there can be one."""
        size = array.shape[-1]
        whole = self.xp.broadcast_to(array.astype(dtype, copy=False), (*shape, size))
        rows = whole.reshape(prod(shape), size)
        return rows if rows.strides[1] == rows.itemsize else self.xp.ascontiguousarray(rows)


class Torch(Library):
    """PyTorch."""

    name = "PyTorch"

    def __init__(self) -> None:
        import torch

        self.xp = torch

    def place(self, array: Any) -> str:
        """Its device."""
        return str(array.device)

    def view(self, array: Any, stream: int) -> View:
        """As it is: the stream is PyTorch's own."""
        dtype = str(array.dtype).removeprefix("torch.")
        return View(array.data_ptr(), tuple(array.shape), array.stride(), dtype)

    def layout(self, arrays: Sequence[Any]) -> tuple[Any, ...] | None:
        """All but the pointers."""
        kind = self.xp.Tensor
        if any(type(x) is not kind or x.requires_grad for x in arrays):
            return None
        return tuple((x.shape, x.stride(), x.dtype, x.device) for x in arrays)

    def pointer(self, array: Any) -> int:
        """On its device."""
        return int(array.data_ptr())

    def stream(self, device: int) -> int:
        """PyTorch's current one."""
        return int(self.xp.cuda.current_stream(device).cuda_stream)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """From PyTorch's pool."""
        return self.xp.empty(shape, dtype=getattr(self.xp, dtype), device=f"cuda:{device}")

    def constant(self, numbers: Array, device: int) -> Any:
        """Copied."""
        return self.xp.from_numpy(numbers).to(f"cuda:{device}")

    def rows(self, array: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """A view where there can be one."""
        size = array.shape[-1]
        whole = self.typed(array, dtype).expand(*shape, size)
        rows = whole.reshape(prod(shape), size)
        return rows if rows.stride(1) == 1 else rows.contiguous()

    def typed(self, array: Any, dtype: str) -> Any:
        """The same tensor, where it has the type."""
        return array.to(getattr(self.xp, dtype))

    def refusal(self, name: str, array: Any) -> str:
        """Not tensors that record what is done with them."""
        if not array.requires_grad:
            return ""
        return f"requires a gradient, which linkwise does not compute; expected {name}.detach()"

    def from_numpy(self, array: Any) -> Any:
        """A tensor; a number becomes one without axes."""
        return self.xp.from_numpy(np.asarray(array))


class Exchange(Library):
    """Whatever exchanges arrays by DLPack or ``__cuda_array_interface__``; memory of our own.

    Results offer ``__cuda_array_interface__``, which other libraries take without a copy.
    """

    name = "a library of arrays on a GPU"
    computes = False

    def place(self, array: Any) -> str:
        """Its device."""
        seen = gpu_memory().seen(array)
        return f"cuda:{seen.device_id}" if seen.is_device_accessible else "cpu"

    def view(self, array: Any, stream: int) -> View:
        """The library makes the stream wait for the array."""
        seen = gpu_memory().seen(array, stream)
        shape = tuple(seen.shape)
        return View(int(seen.ptr), shape, seen.strides or contiguous(shape), str(seen.dtype))

    def stream(self, device: int) -> int:
        """One of our own."""
        return int(gpu_memory().stream(device))

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """On our stream."""
        return gpu_memory().Block(shape, dtype, device)

    def constant(self, numbers: Array, device: int) -> Any:
        """Only libraries that linkwise knows make arrays."""
        raise TypeError(self._unable("lists and numbers beside them"))

    def rows(self, array: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """Only libraries that linkwise knows change arrays."""
        raise TypeError(self._unable("other shapes than (states, numbers of a state)"))

    def _unable(self, what: str) -> str:
        return (
            f"{what}: expected arrays of CuPy, PyTorch or JAX; of others, only the numbers are "
            "known (cupy.asarray takes them without a copy)"
        )


class Jax(Exchange):
    """JAX, whose streams are its own."""

    name = "JAX"
    computes, writable = True, False

    def __init__(self) -> None:
        import jax

        self._jax, self.xp = jax, jax.numpy

    def place(self, array: Any) -> str:
        """Its device."""
        (device,) = array.devices()
        return "cpu" if device.platform == "cpu" else f"cuda:{device.id}"

    def constant(self, numbers: Array, device: int) -> Any:
        """Copied."""
        return self._jax.device_put(numbers, self._jax.devices("cuda")[device])

    def from_numpy(self, array: Any) -> Any:
        """On the CPU, whatever JAX would choose."""
        return self._jax.device_put(np.asarray(array), self._jax.devices("cpu")[0])

    def rows(self, array: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """A copy, unless nothing changes."""
        size = array.shape[-1]
        whole = self.xp.broadcast_to(array.astype(dtype), (*shape, size))
        return whole.reshape(prod(shape), size)

    def finished(self, array: Any, shape: tuple[int, ...], device: int) -> Any:
        """The block as JAX's array, once it is filled: JAX cannot be told to wait for that."""
        gpu_memory().wait(device)
        raw = self._jax.dlpack.from_dlpack(array.buffer).view("uint8")
        size = np.dtype(array.dtype).itemsize
        if size == 1:
            return raw.reshape(shape)
        return self._jax.lax.bitcast_convert_type(raw.reshape((*shape, size)), array.dtype)


# names of packages, and the class of their arrays
KNOWN: dict[str, tuple[str, Callable[[], Library]]] = {
    "cupy": ("ndarray", Cupy),
    "torch": ("Tensor", Torch),
    "jax": ("Array", Jax),
}


@cache
def _library(name: str) -> Library:
    return KNOWN[name][1]() if name in KNOWN else Exchange()


def library_of(value: Any) -> Library | None:
    """The library that made an array; None for NumPy's, and for lists and numbers."""
    kind: Any = type(value)
    found = _library_of_class(kind)
    if found is not None and not found.computes and hasattr(kind, "__dlpack_device__"):
        return found if value.__dlpack_device__()[0] == CUDA else None
    return found


@cache
def _library_of_class(kind: Any) -> Library | None:
    if issubclass(kind, np.ndarray | np.generic | list | tuple | float | int):
        return None
    for name, (own, _) in KNOWN.items():
        package = sys.modules.get(name)
        if package is not None and issubclass(kind, getattr(package, own)):
            return _library(name)
    known = any(hasattr(kind, name) for name in ("__cuda_array_interface__", "__dlpack_device__"))
    return _library("") if known else None


def number(device: Any) -> int | None:
    """The GPU that a device names, ``cuda`` the first one; None for ``cpu``."""
    if device == "cpu":
        return None
    kind, _, which = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or not (which or "0").isdecimal():
        raise ValueError(f"device {device!r}: expected 'cpu', 'cuda' or, for another GPU, 'cuda:1'")
    return int(which or "0")


def elsewhere(values: Sequence[Any]) -> bool:
    """Whether an argument is an array of another library than NumPy."""
    return any(type(x) is not np.ndarray and library_of(x) is not None for x in values)


def to_host(library: Library, values: Sequence[Any]) -> list[Any]:
    """Arrays of a library as NumPy sees them; lists and numbers beside them widen no float32."""
    host = [library.to_numpy(x) if library_of(x) else x for x in values]
    wide = np.result_type(*(x for x in host if isinstance(x, np.ndarray)))
    if wide.name not in FLOATS:
        return host
    return [x if isinstance(x, np.ndarray) else np.asarray(x, wide) for x in host]


def on_host(
    library: Library, values: Sequence[Any], out: Any, run: Callable[..., Any], threads: Any
) -> Any:
    """Run a call with arrays of another library on the CPU: NumPy sees their memory."""
    host = to_host(library, values)
    if out is None:
        found = run(tuple(host), None, threads)
    elif library_of(out) is not library:
        raise TypeError(f"out is a {type(out).__name__}; expected an array of {library.name}")
    else:
        found = run(tuple(host), library.to_numpy(out), threads)
    if isinstance(found, tuple):
        result, bits = found
        return (library.from_numpy(result) if out is None else out), library.from_numpy(bits)
    return library.from_numpy(found) if out is None else out


class Where(NamedTuple):
    """The library of all arrays of a call, and the device they are on."""

    library: Library
    place: str

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return int(self.place.rpartition(":")[2])


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
        refused = own.library.refusal(name, value)
        if refused:
            raise TypeError(f"{function}: {name} {refused}")
    assert found is not None  # somebody has looked
    if found.place != "cpu" and not found.place.startswith("cuda"):
        raise TypeError(f"{function}: {first} is on {found.place}; expected cpu or cuda")
    return found


@dataclass(frozen=True)
class DeviceBatch:
    """Arguments on one device, as rows of one dtype."""

    where: Where
    stream: int
    arrays: tuple[Any, ...]  # (states, size), each as its library has it
    views: tuple[View, ...]
    shape: tuple[int, ...]
    dtype: str

    @property
    def states(self) -> int:
        """Rows of every input."""
        return prod(self.shape)

    def empty(self, size: int, dtype: str) -> Any:
        """An array (states, size) for results."""
        return self.where.library.empty((self.states, size), dtype, self.where.device)

    def with_constants(self, *numbers: float) -> DeviceBatch:
        """The batch with inputs of one number each, the same in every state."""
        library, device = self.where.library, self.where.device
        more = [library.constant(np.array([[x]], self.dtype), device) for x in numbers]
        seen = [library.view(x, self.stream)._replace(shape=(self.states, 1)) for x in more]
        same = [view._replace(strides=(0, 1)) for view in seen]
        return replace(self, arrays=(*self.arrays, *more), views=(*self.views, *same))

    def without(self, *inputs: int) -> DeviceBatch:
        """The batch without some of its inputs, counted from the first, or the last for -1."""
        left = [k for k in range(len(self.views)) if k not in {i % len(self.views) for i in inputs}]
        own = tuple(self.arrays[k] for k in left), tuple(self.views[k] for k in left)
        return replace(self, arrays=own[0], views=own[1])

    def launch(self, kernel: Any, outputs: Sequence[Any]) -> None:
        """Start a kernel that fills the outputs (states, size)."""
        library = self.where.library
        written = [library.view(x, self.stream).rows for x in outputs]
        kernel.launch([view.rows for view in self.views], written, self.stream)

    def fill(self, out: Any, numbers: Array) -> None:
        """Write numbers of the host into a result."""
        library = self.where.library
        typed = numbers.astype(library.view(out, -1).dtype)
        out[...] = library.constant(typed, self.where.device)

    def delivered(self, out: Any, result: Any, shape: tuple[int, ...]) -> Any:
        """A result as users get it, in ``out`` where one was given."""
        whole = (*self.shape, *shape)
        if out is None:
            return self.where.library.finished(result, whole, self.where.device)
        if self.where.library.view(out, -1).pointer != self.where.library.view(result, -1).pointer:
            out[...] = result.reshape(whole)
        elif not self.where.library.computes:  # nobody else knows our stream
            gpu_memory().wait(self.where.device)
        return out


def times(q: Any, v: Any, dt: Any) -> Any:
    """``dt`` as an argument (..., 1) of a kernel; as in NumPy, a plain number widens no float32."""
    if library_of(dt) is not None:
        return dt[..., None]
    if elsewhere((q, v)) and not isinstance(dt, np.ndarray):
        return np.asarray(dt)[..., None].tolist()
    if type(dt) not in (int, float):
        arrays.refuse_mask("integrate", "dt", dt)
        return np.asarray(dt)[..., None]
    narrow = all(getattr(x, "dtype", None) == np.float32 for x in (q, v))
    return np.array([dt], np.float32 if narrow else np.float64)


def damping(value: Any, q: Any) -> Any:
    """Damping of six directions (..., 6); whether an array on a GPU is negative is not asked."""
    if library_of(value) is not None:
        return value
    found = arrays.damping(value, q)
    return found.tolist() if found is not None and library_of(q) is not None else found


def zeros(nv: int, like: Sequence[Any]) -> Any:
    """A vector of zeros, no wider than the arrays it goes with."""
    return [0.0] * nv if elsewhere(like) else np.zeros(nv, np.float32)


class Plan(NamedTuple):
    """A call of a known layout: only pointers differ from the last one."""

    where: Where
    kernel: Any
    states: int
    rows: tuple[int, ...]  # numbers from row to row, of each input
    results: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each output
    alignment: int  # bytes of a number

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Start the kernel; the results, which it will fill."""
        library, device = self.where.library, self.where.device
        made = [library.empty(shape, dtype, device) for shape, dtype in self.results]
        arguments = [self.states]
        for value, row in zip(values, self.rows, strict=True):
            pointer = library.pointer(value)
            if pointer % self.alignment:
                raise ValueError(f"an array begins at {pointer:#x}, not at a whole number")
            arguments += (pointer, row)
        arguments += [library.pointer(x) for x in made]
        self.kernel.start(self.states, arguments, library.stream(device))
        return made


def plan(values: Sequence[Any], batch: DeviceBatch, kernel: Any, *shapes: Any) -> Plan | None:
    """The plan of further calls of this layout; None where arrays had to be made for this one."""
    if any(x is not y for x, y in zip(values, batch.arrays, strict=True)):
        return None
    dtypes = (batch.dtype, "uint8")
    results = tuple((tuple(s), d) for s, d in zip(shapes, dtypes, strict=False))
    steps, size = tuple(v.strides[0] for v in batch.views), np.dtype(batch.dtype).itemsize
    return Plan(batch.where, kernel, batch.states, steps, results, size)


def prepare(
    function: str, ports: Sequence[tuple[str, int]], values: Sequence[Any], at: Where
) -> DeviceBatch:
    """Check and broadcast the arguments of a call."""
    library, stream = at.library, at.library.stream(at.device)
    given = [x if library_of(x) else None for x in values]
    views = [None if x is None else library.view(x, stream) for x in given]
    own = [view for view in views if view is not None]
    dtype = _common_dtype(function, ports, views)
    for k, (name, size) in enumerate(ports):
        view = views[k]
        if view is None:
            numbers = read(function, name, size, values[k]).astype(dtype)
            given[k] = library.constant(numbers, at.device)
            view = views[k] = library.view(given[k], stream)
        if not view.shape or view.shape[-1] != size:
            raise ValueError(f"{function}: {name} has shape {view.shape}; expected (..., {size})")
    shape = broadcast(function, ports, [view.shape for view in views if view is not None])
    plain = (prod(shape),)
    for k, view in enumerate(views):
        if view is not None and not _is_rows(view, plain if len(shape) == 1 else None, dtype):
            given[k] = library.rows(given[k], shape, dtype)
            views[k] = library.view(given[k], stream)
    assert own
    return DeviceBatch(
        at, stream, tuple(given), tuple(v for v in views if v is not None), shape, dtype
    )


def _is_rows(view: View, plain: tuple[int, ...] | None, dtype: str) -> bool:
    """Whether a kernel can take an array as it is."""
    if plain is None or view.shape[:-1] != plain or view.dtype != dtype:
        return False
    return view.strides[1] == 1 or view.shape[1] == 1


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


def check_out(out: Any, shape: tuple[int, ...], batch: DeviceBatch) -> View:
    """Raise unless a result of this shape can be written to ``out``."""
    library, place = batch.where
    if library_of(out) is not library or library.place(out) != place:
        raise TypeError(
            f"out is a {type(out).__name__}; expected an array of {library.name} on {place}"
        )
    if not library.writable:
        raise TypeError(
            f"out is an array of {library.name}, which cannot be written; expected no out"
        )
    view = library.view(out, batch.stream)
    if view.shape != tuple(shape):
        raise ValueError(f"out has shape {view.shape}; expected {tuple(shape)}")
    if view.dtype != batch.dtype:
        raise TypeError(f"out has dtype {view.dtype}; expected {batch.dtype}, as the inputs have")
    return view


def target(out: Any, shape: tuple[int, ...], batch: DeviceBatch) -> Any:
    """Where to write a result: ``out`` where that can be written as it comes, else a new array."""
    at, size = batch.where, prod(shape[len(batch.shape) :])
    fresh = (batch.states, size)
    if out is None:
        return at.library.empty(fresh, batch.dtype, at.device)
    view = check_out(out, shape, batch)
    apart = not any(view.overlaps(other) for other in batch.views)
    if apart and view.strides == contiguous(shape):
        return out.reshape(fresh)
    return at.library.empty(fresh, batch.dtype, at.device)
