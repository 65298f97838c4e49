"""Libraries of arrays that are not NumPy's: how each makes, views, fills and moves its arrays.

A `Library` is CuPy, PyTorch, JAX, or anything else that says where its memory on a GPU is (DLPack
or ``__cuda_array_interface__``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.backends.base import DeviceKernel, DeviceMemory, Rows, View, contiguous
from linkwise.backends.choice import gpu, seen
from linkwise.engine.arrays import Array, Outputs
from linkwise.errors import BackendUnavailable

if TYPE_CHECKING:
    from linkwise.engine.devices import DeviceBatch

CUDA = 2  # DLPack's number for memory of NVIDIA GPUs

Pointers = list[int]
Layout = tuple[Any, ...]  # all about the arrays of a call but where their numbers are


def stretched(view: View, shape: tuple[int, ...]) -> View:
    """The view broadcast to a shape: strides of 0 along axes that it does not have."""
    missing = len(shape) - len(view.shape)
    own = zip((1,) * missing + view.shape, (0,) * missing + view.strides, strict=True)
    return view._replace(shape=shape, strides=tuple(0 if n == 1 else s for n, s in own))


def as_rows(view: View) -> View | None:
    """The view (states, size) of an array (..., size); None where rows are not evenly apart."""
    *lead, size = view.shape
    *steps, inner = view.strides
    axes = [(n, s) for n, s in zip(lead, steps, strict=True) if n != 1]
    even = all(s == n * t for (_, s), (n, t) in pairwise(axes))
    if 0 in lead or not even or (inner != 1 and size > 1):
        return None
    return view._replace(shape=(prod(lead), size), strides=(axes[-1][1] if axes else size, 1))


class Library:
    """What a call needs of the library that made its arguments."""

    name: str
    xp: Any  # its functions: broadcast_to, full
    follows = True  # its arrays are filled on its own stream, so that it never needs to wait
    writable = True  # its arrays can be filled
    keeps_graphs = True  # memory that a captured graph uses is not given to anybody else

    def place(self, array: Any) -> str:
        """``cpu``, or ``cuda:0`` and so on."""
        raise NotImplementedError

    def view(self, array: Any, stream: int) -> View:
        """Where the numbers are; work that is put on the stream finds them complete."""
        raise NotImplementedError

    def look(self, values: Sequence[Any]) -> tuple[Layout, Pointers] | None:
        """Layout and pointers of arrays, for a plan; None where a general call must check each."""
        return None

    def maker(
        self, shape: tuple[int, ...], dtype: str, device: int, values: Sequence[Any]
    ) -> Callable[[Sequence[Any]], Any]:
        """Makes new arrays, given values that look as these do: the library's quickest way."""
        return lambda values: self.empty(shape, dtype, device)

    def compiled(
        self, kernel: DeviceKernel, batch: DeviceBatch, outputs: Outputs
    ) -> Compiled | None:
        """What runs calls with the arrays of a batch, where a library has a way of its own."""
        return None

    def pointer(self, array: Any) -> int:
        """Where the numbers of an array are."""
        return self.view(array, -1).pointer

    def stream(self, device: int) -> int:
        """The stream to work on."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """A new array without gaps."""
        raise NotImplementedError

    def constant(self, numbers: Array, device: int) -> Any:
        """Numbers of the host as an array on the device."""
        raise NotImplementedError

    def full(self, shape: tuple[int, ...], number: float, dtype: str, device: int) -> Any:
        """An array of one number; made on the device where the library can."""
        return self.constant(np.full(shape, number, dtype), device)

    def rows(
        self, array: Any, view: View, shape: tuple[int, ...], dtype: str, stream: int
    ) -> tuple[Any, View]:
        """The array (states, size), its leading axes broadcast to ``shape``; rows without gaps.

        A view of the same numbers where there can be one.
        """
        size = array.shape[-1]
        whole = self.xp.broadcast_to(self.typed(array, dtype), (*shape, size))
        rows = whole.reshape(prod(shape), size)
        view = self.view(rows, stream)
        if view.strides[1] != 1 and size > 1:
            rows = self.dense(rows)
            view = self.view(rows, stream)
        return rows, view

    def dense(self, array: Any) -> Any:
        """A copy without gaps."""
        return self.xp.ascontiguousarray(array)

    def typed(self, array: Any, dtype: str) -> Any:
        """The array with numbers of another type, or itself."""
        return array.astype(dtype, copy=False)

    def column(self, array: Any) -> Any:
        """The array with one more axis, of one number."""
        return array[..., None]

    def copied(self, array: Any) -> Any:
        """The same numbers in memory of their own."""
        return 1 * array

    def filled(
        self, kernel: DeviceKernel | None, batch: DeviceBatch, outputs: Outputs, into: Any = None
    ) -> list[Any]:
        """Start a kernel, where there is one, that fills new arrays, or ``into`` and more."""
        device = batch.where.device
        made = [] if into is None else [into]
        for shape, dtype in outputs[len(made) :]:
            made.append(self.empty((*batch.shape, *shape), dtype, device))
        if kernel is not None:
            written = [
                Rows(self.pointer(x), batch.states, prod(shape), dtype, prod(shape))
                for x, (shape, dtype) in zip(made, outputs, strict=True)
            ]
            kernel.launch(batch.rows, written, batch.stream)
        return made

    def assign(self, out: Any, result: Any) -> None:
        """Write a result into an array of the user's."""
        out[...] = result

    def refusal(self, name: str, array: Any) -> str:
        """Why an argument is not taken; nothing where it is."""
        return ""

    def to_numpy(self, array: Any) -> Array:
        """An array on the CPU, as NumPy sees it."""
        return np.asarray(array)

    def from_numpy(self, array: Any) -> Any:
        """The other way round."""
        return self.xp.asarray(array)

    def fetched(self, array: Any) -> Array:
        """The numbers of an array, wherever it is, in the memory of the host."""
        return np.asarray(array)


NUMPY = Library()
NUMPY.name = "NumPy"  # in messages


class Cupy(Library):
    """CuPy, whose arrays are all on a GPU."""

    name = "CuPy"
    keeps_graphs = False

    def __init__(self) -> None:
        import cupy

        self.xp, self._kind = cupy, cupy.ndarray
        self._device, self._stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream

    def place(self, array: Any) -> str:
        return f"cuda:{array.device.id}"

    def view(self, array: Any, stream: int) -> View:
        """As it is: the stream is CuPy's own."""
        strides = tuple(s // array.itemsize for s in array.strides)
        return View(array.data.ptr, array.shape, strides, array.dtype.name)

    def look(self, values: Sequence[Any]) -> tuple[Layout, Pointers] | None:
        layout: list[Any] = []
        pointers = []
        for x in values:
            if type(x) is not self._kind:
                return None
            memory = x.data
            layout += (x.shape, x.strides, x.dtype, memory.device_id)
            pointers.append(memory.ptr)
        return tuple(layout), pointers

    def maker(
        self, shape: tuple[int, ...], dtype: str, device: int, values: Sequence[Any]
    ) -> Callable[[Sequence[Any]], Any]:
        """Without what ``cupy.empty`` does besides."""
        kind, current, type_ = self._kind, self._device, np.dtype(dtype)

        def make(values: Sequence[Any]) -> Any:
            return kind(shape, type_) if current() == device else self.empty(shape, dtype, device)

        return make

    def pointer(self, array: Any) -> int:
        return array.data.ptr  # type: ignore[no-any-return]

    def stream(self, device: int) -> int:
        return self._stream(device).ptr  # type: ignore[no-any-return]

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        with self.xp.cuda.Device(device):
            return self.xp.empty(shape, dtype)

    def constant(self, numbers: Array, device: int) -> Any:
        with self.xp.cuda.Device(device):
            return self.xp.asarray(numbers)

    def full(self, shape: tuple[int, ...], number: float, dtype: str, device: int) -> Any:
        with self.xp.cuda.Device(device):
            return self.xp.full(shape, number, dtype)

    def rows(
        self, array: Any, view: View, shape: tuple[int, ...], dtype: str, stream: int
    ) -> tuple[Any, View]:
        """On the device of the array, which may not be the current one."""
        with array.device:
            return super().rows(array, view, shape, dtype, stream)

    def assign(self, out: Any, result: Any) -> None:
        """On the device of the array, which may not be the current one."""
        with out.device:
            out[...] = result

    def fetched(self, array: Any) -> Array:
        with array.device:
            found: Array = self.xp.asnumpy(array)
        return found


class Torch(Library):
    """PyTorch."""

    name = "PyTorch"

    def __init__(self) -> None:
        import torch

        self.xp, self._kind = torch, torch.Tensor
        self._stream: Callable[[int], int] = getattr(
            torch._C,
            "_cuda_getCurrentRawStream",  # twenty times quicker than the next line
            lambda device: int(torch.cuda.current_stream(device).cuda_stream),
        )

    def place(self, array: Any) -> str:
        return str(array.device)

    def view(self, array: Any, stream: int) -> View:
        """As it is: the stream is PyTorch's own."""
        return View(array.data_ptr(), tuple(array.shape), array.stride(), _torch_dtype(array))

    def look(self, values: Sequence[Any]) -> tuple[Layout, Pointers] | None:
        """By PyTorch's own methods, which refuse tensors without memory."""
        layout: list[Any] = []
        pointers = []
        try:
            for x in values:
                if type(x) is not self._kind or x.requires_grad or x.is_neg():
                    return None
                layout += (x.shape, x.stride(), x.dtype, x.get_device())
                pointers.append(x.data_ptr())
        except RuntimeError:
            return None
        return tuple(layout), pointers

    def maker(
        self, shape: tuple[int, ...], dtype: str, device: int, values: Sequence[Any]
    ) -> Callable[[Sequence[Any]], Any]:
        """Like an argument, where one has the shape and type of the result."""
        type_, empty_like = getattr(self.xp, dtype), self.xp.empty_like
        for k, x in enumerate(values):
            if x.shape == shape and x.dtype == type_ and x.is_contiguous():
                return lambda values: empty_like(values[k])
        return lambda values: values[0].new_empty(shape, dtype=type_)

    def pointer(self, array: Any) -> int:
        return array.data_ptr()  # type: ignore[no-any-return]

    def stream(self, device: int) -> int:
        return self._stream(device)

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        return self.xp.empty(shape, dtype=getattr(self.xp, dtype), device=f"cuda:{device}")

    def constant(self, numbers: Array, device: int) -> Any:
        return self.xp.from_numpy(numbers).to(f"cuda:{device}")

    def full(self, shape: tuple[int, ...], number: float, dtype: str, device: int) -> Any:
        type_ = getattr(self.xp, dtype)
        return self.xp.full(shape, number, dtype=type_, device=f"cuda:{device}")

    def dense(self, array: Any) -> Any:
        return array.contiguous()

    def typed(self, array: Any, dtype: str) -> Any:
        """The same tensor, where it has the type."""
        return array.to(getattr(self.xp, dtype))

    def refusal(self, name: str, array: Any) -> str:
        """Not tensors that record what is done with them, or that have no numbers in rows."""
        if array.requires_grad:
            return (
                f"requires a gradient, which this call does not compute; expected {name}.detach(), "
                "or a function of lw.torch, which does, as lw.torch.function(robot, "
                "'forward_dynamics')"
            )
        if array.layout is not self.xp.strided:
            return f"is a sparse tensor ({array.layout}); expected {name}.to_dense()"
        if array.is_neg():
            return f"has its numbers negated when they are read; expected {name}.resolve_neg()"
        if array.dtype in (self.xp.bfloat16, self.xp.float16):
            return f"has dtype {_torch_dtype(array)}; expected float32 or float64"
        try:
            array.data_ptr()
        except RuntimeError:
            return (
                "has no memory, as inside torch.vmap and other transformations of functions; "
                "expected a plain tensor, with all states in one call, or a function of lw.torch"
            )
        return ""

    def from_numpy(self, array: Any) -> Any:
        """A tensor; a number becomes one without axes."""
        return self.xp.from_numpy(np.asarray(array))

    def fetched(self, array: Any) -> Array:
        found: Array = array.cpu().numpy()
        return found


def _torch_dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


class Jax(Library):
    """JAX, which runs others' work on its own stream in its own time: by a callback."""

    name = "JAX"
    writable = False

    def __init__(self) -> None:
        import jax

        self._jax, self.xp, self._kind = jax, jax.numpy, type(jax.numpy.zeros(0))
        self._traced = jax.core.Tracer  # what stands for an array inside jax.jit

    def place(self, array: Any) -> str:
        """Its device; inside ``jax.jit``, the one that JAX will use unless told."""
        if isinstance(array, self._traced):
            device = self._jax.devices()[0]
        else:
            device, *more = array.devices()
            if more:
                return "several devices"
        return "cpu" if device.platform == "cpu" else f"cuda:{device.local_hardware_id}"

    def refusal(self, name: str, array: Any) -> str:
        """On the CPU, not what JAX traces."""
        if not isinstance(array, self._traced) or self.place(array) != "cpu":
            return ""
        return (
            "is traced, as inside jax.jit, in which this call takes part on a GPU only; expected a "
            "call outside, or a function of lw.jax"
        )

    def view(self, array: Any, stream: int) -> View:
        """JAX tells where the numbers are only when it runs the callback."""
        return View(0, array.shape, contiguous(array.shape), array.dtype.name)

    def stream(self, device: int) -> int:
        """JAX tells it to the callback."""
        return 0

    def constant(self, numbers: Array, device: int) -> Any:
        """A constant of the computation, on whichever device that runs."""
        return self.xp.asarray(numbers)

    def typed(self, array: Any, dtype: str) -> Any:
        """As wide as JAX is allowed to be."""
        return array.astype(self._jax.dtypes.canonicalize_dtype(dtype))

    def from_numpy(self, array: Any) -> Any:
        """On the CPU, whatever JAX would choose."""
        return self._jax.device_put(np.asarray(array), self._jax.devices("cpu")[0])

    def look(self, values: Sequence[Any]) -> tuple[Layout, Pointers] | None:
        """All but the pointers, which JAX tells only to the callback."""
        if any(type(x) is not self._kind for x in values):
            return None
        return tuple([(x.shape, x.dtype, x.device) for x in values]), []

    def filled(
        self, kernel: DeviceKernel | None, batch: DeviceBatch, outputs: Outputs, into: Any = None
    ) -> list[Any]:
        """By a callback that JAX runs when the arguments are there, on its stream."""
        if kernel is None:
            return [self.xp.zeros((*batch.shape, *shape), dtype) for shape, dtype in outputs]
        return list(self._call(kernel, batch, outputs)(*batch.arrays))

    def compiled(
        self, kernel: DeviceKernel, batch: DeviceBatch, outputs: Outputs
    ) -> Compiled | None:
        """The function that JAX has compiled around the kernel."""
        return Compiled(self._call(kernel, batch, outputs))

    def _call(
        self, kernel: DeviceKernel, batch: DeviceBatch, outputs: Outputs
    ) -> Callable[..., Any]:
        shapes = tuple(((*batch.shape, *shape), dtype) for shape, dtype in outputs)
        rows = tuple(0 if prod(x.shape) == v.shape[1] else v.shape[1]
                     for x, v in zip(batch.arrays, batch.views, strict=True))  # fmt: skip
        by_identity: Any = kernel
        return self._jitted(by_identity, batch.states, rows, shapes)

    @lru_cache(maxsize=256)  # noqa: B019  a library lives as long as the process
    def _jitted(
        self,
        kernel: DeviceKernel,
        states: int,
        rows: tuple[int, ...],
        shapes: tuple[tuple[tuple[int, ...], str], ...],
    ) -> Callable[..., Any]:
        """The function that JAX compiles around a kernel; buffers have no gaps."""
        try:
            from jax.experimental.buffer_callback import buffer_callback
        except ImportError:
            raise BackendUnavailable(
                f"JAX {self._jax.__version__} has no buffer_callback, by which linkwise puts work "
                "on its stream: pip install -U jax"
            ) from None
        start = kernel.starter(states, rows)

        def fill(context: Any, out: Sequence[Any], *given: Any) -> None:
            start(*stream_and_pointers(context, (*given, *out)))

        made = tuple(self._jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes)
        return self._jax.jit(buffer_callback(fill, made))  # type: ignore[no-any-return]


def stream_and_pointers(context: Any, buffers: Sequence[Any]) -> tuple[int, Pointers]:
    """What JAX tells a callback."""
    return context.stream, [x.__cuda_array_interface__["data"][0] for x in buffers]


class Compiled(NamedTuple):
    """A function of a library's own that runs a call."""

    function: Callable[..., Any]

    def run(self, values: Sequence[Any], pointers: Pointers, out: Any) -> Any:
        """The result."""
        found = self.function(*values)
        return found[0] if len(found) == 1 else found


class Exchange(Library):
    """Whatever exchanges arrays by DLPack or ``__cuda_array_interface__``; memory of our own.

    Results offer ``__cuda_array_interface__``, which other libraries take without a copy.
    """

    name = "a library of arrays on a GPU"
    follows = False

    def place(self, array: Any) -> str:
        _, device = seen(array)
        return "cpu" if device is None else f"cuda:{device}"

    def view(self, array: Any, stream: int) -> View:
        """The library makes the stream wait for the array; our own are on it already."""
        own = getattr(array, "view", None)
        return own if isinstance(own, View) else seen(array, stream)[0]

    def stream(self, device: int) -> int:
        """The device's default one, which orders our work among that of most libraries."""
        return gpu(device).memory.stream

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        return gpu(device).memory.empty(shape, dtype)

    def constant(self, numbers: Array, device: int) -> Any:
        return gpu(device).memory.sent(numbers)

    def rows(
        self, array: Any, view: View, shape: tuple[int, ...], dtype: str, stream: int
    ) -> tuple[Any, View]:
        """The same numbers, or a copy by a kernel of our own."""
        whole = stretched(view, (*shape, view.shape[-1]))
        found = as_rows(whole) if view.dtype == dtype else None
        if found is not None:
            return array, found
        made = self._copy(array, whole, dtype)
        return made, made.view._replace(
            shape=(prod(shape), view.shape[-1]), strides=(view.shape[-1], 1)
        )

    def typed(self, array: Any, dtype: str) -> Any:
        return self._copy(array, self.view(array, -1), dtype)

    def column(self, array: Any) -> Any:
        memory = self._memory(array)
        view = self.view(array, memory.stream)
        return memory.borrowed(
            view._replace(shape=(*view.shape, 1), strides=(*view.strides, 1)), array
        )

    def copied(self, array: Any) -> Any:
        """A copy by a kernel of our own."""
        view = self.view(array, self._memory(array).stream)
        return self._copy(array, view, view.dtype)

    def assign(self, out: Any, result: Any) -> None:
        """A copy by a kernel of our own."""
        memory = self._memory(out)
        memory.copy(self.view(result, memory.stream), self.view(out, memory.stream))

    def fetched(self, array: Any) -> Array:
        copy, numbers = self.copied(array), np.empty(array.shape, self.view(array, -1).dtype)
        self._memory(array).fetch(copy, numbers)
        return numbers

    def _memory(self, array: Any) -> DeviceMemory:
        return gpu(device_of(self.place(array))).memory

    def _copy(self, array: Any, view: View, dtype: str) -> Any:
        memory = self._memory(array)
        made = memory.empty(view.shape, dtype)
        memory.copy(view, made.view)
        return made


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
    found = library_of_class(kind)
    if isinstance(found, Exchange) and hasattr(kind, "__dlpack_device__"):
        return found if value.__dlpack_device__()[0] == CUDA else None
    return found


@cache
def library_of_class(kind: Any) -> Library | None:
    """The library whose arrays are of a class, by name; `Exchange` for others that exchange."""
    if issubclass(kind, np.ndarray | np.generic | list | tuple | float | int):
        return None
    for name, (own, _) in KNOWN.items():
        package = sys.modules.get(name)
        if package is not None and issubclass(kind, _classes(package, own)):
            return _library(name)
    known = any(hasattr(kind, name) for name in ("__cuda_array_interface__", "__dlpack_device__"))
    return _library("") if known else None


def _classes(package: Any, own: str) -> tuple[Any, ...]:
    """The classes of a library's arrays; what JAX has inside ``jax.jit`` are no subclasses."""
    core = getattr(package, "core", None) if own == "Array" else None
    return (getattr(package, own), *([core.Tracer] if core else []))


def device_of(place: str) -> int:
    """The number of the GPU that a place names."""
    return int(place.rpartition(":")[2])
