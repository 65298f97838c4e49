"""The driver of NVIDIA GPUs and its compiler, through ``cuda-core``: the only importer of it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from linkwise.backends.base import Array
from linkwise.errors import BackendUnavailable

KERNEL = "linkwise"  # the name of the kernel in every source
NO_DRIVER = "no GPU can be used; expected an NVIDIA GPU and its driver (nvidia-smi shows both)"


class Facts(NamedTuple):
    """What a compiled kernel needs of a multiprocessor."""

    threads: int  # of a block
    registers: int  # of a thread
    spilled: int  # bytes of a thread that did not fit in its registers


class Function(Protocol):
    """A kernel that is loaded on a device."""

    facts: Facts

    def launch(self, blocks: int, stream: int, arguments: Sequence[int]) -> None:
        """Start it on a stream; arguments are pointers and whole numbers of 64 bits."""


class Memory(Protocol):
    """Memory on a device, for as long as this object lives."""

    pointer: int

    def send(self, numbers: Array) -> None:
        """Copy an array without gaps from the host."""

    def fetch(self, numbers: Array) -> None:
        """Copy to an array without gaps on the host, once all work on the device is done."""


class Driver(Protocol):
    """One device."""

    identity: str  # what compiled code depends on: kind of device, version of the compiler

    def compile(self, text: str, macros: Mapping[str, int]) -> bytes:
        """Source code -> machine code."""

    def load(self, code: bytes) -> Function:
        """Machine code -> a kernel on the device."""

    def lend(self, size: int) -> Memory:
        """So many bytes on the device."""


@cache
def driver(device: int) -> Driver:
    """The driver of a device, by its number."""
    return CudaDriver(device)


class CudaDriver:
    """A device of this machine."""

    def __init__(self, device: int) -> None:
        core, _ = libraries()
        self._device = core.Device(device)
        with current(device):
            major, minor = self._device.compute_capability
        self._arch = f"sm_{major}{minor}"
        self.identity = f"{self._arch} nvrtc {_compiler_version()}"

    def compile(self, text: str, macros: Mapping[str, int]) -> bytes:
        """Source code -> machine code that rounds as the CPU's does."""
        return compiled(text, self._arch, macros)

    def load(self, code: bytes) -> CudaFunction:
        """Machine code -> a kernel on this device."""
        with current(self._device.device_id):
            return CudaFunction(code, self._device.device_id)

    def lend(self, size: int) -> CudaMemory:
        """From the device's own pool."""
        return CudaMemory(size, self._device)


class CudaMemory:
    """Memory of a device of this machine, used on its default stream."""

    def __init__(self, size: int, device: Any) -> None:
        self._device, (_, self._low) = device.device_id, libraries()
        with current(self._device):
            stream = device.default_stream
            self._buffer = device.memory_resource.allocate(max(size, 1), stream=stream)
            stream.sync()
        self.pointer = int(self._buffer.handle)

    def send(self, numbers: Array) -> None:
        """Copy from the host."""
        with current(self._device):
            _done(self._low.cuMemcpyHtoD(self.pointer, numbers.ctypes.data, numbers.nbytes))

    def fetch(self, numbers: Array) -> None:
        """Copy to the host; waits for the default stream."""
        with current(self._device):
            _done(self._low.cuMemcpyDtoH(numbers.ctypes.data, self.pointer, numbers.nbytes))


def _done(answer: tuple[Any, ...]) -> None:
    (code,) = answer
    if code:
        raise RuntimeError(f"the GPU failed at a copy: {code.name}")


class CudaFunction:
    """A kernel on a device of this machine."""

    def __init__(self, code: bytes, device: int) -> None:
        core, low = libraries()
        self._device = device
        self._kernel = core.ObjectCode.from_cubin(code).get_kernel(KERNEL)
        self._handle = int(self._kernel.handle)
        self._context = int(low.cuCtxGetCurrent()[1])
        self._driver = _shared_library()
        needs = self._kernel.attributes
        self.facts = Facts(needs.max_threads_per_block, needs.num_regs, needs.local_size_bytes)

    def launch(self, blocks: int, stream: int, arguments: Sequence[int]) -> None:
        """Start it; the stream belongs to its library, which keeps it alive."""
        now = ctypes.c_void_p()
        self._driver.cuCtxGetCurrent(ctypes.byref(now))
        if now.value != self._context:
            with current(self._device):
                return self._start(blocks, stream, arguments)
        return self._start(blocks, stream, arguments)

    def _start(self, blocks: int, stream: int, arguments: Sequence[int]) -> None:
        """By a plain call: what ``cuda-core`` does besides takes longer than many kernels."""
        count, threads = len(arguments), self.facts.threads
        values = (ctypes.c_longlong * count)(*arguments)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * count)(*range(first, first + 8 * count, 8))
        shape = (blocks, 1, 1, threads, 1, 1, 0)
        code = self._driver.cuLaunchKernel(self._handle, *shape, stream, places, None)
        if code:
            raise RuntimeError(f"the GPU refused a kernel of {blocks} blocks: CUDA error {code}")


def compiled(text: str, arch: str, macros: Mapping[str, int]) -> bytes:
    """Source code -> machine code; needs no device."""
    core = _import()
    options = core.ProgramOptions(
        arch=arch,
        std="c++17",
        fma=False,
        ftz=False,
        prec_div=True,
        prec_sqrt=True,
        device_as_default_execution_space=True,
        define_macro=[(name, str(value)) for name, value in macros.items()] or None,
    )
    return bytes(core.Program(text, "c++", options).compile("cubin").code)


class current:
    """A device as the current one of this thread, and afterwards the one that was."""

    __slots__ = ("_before", "_device")

    def __init__(self, device: int) -> None:
        self._device = device

    def __enter__(self) -> None:
        core, low = libraries()
        _, self._before = low.cuCtxGetCurrent()
        core.Device(self._device).set_current()

    def __exit__(self, *_: object) -> None:
        _, low = libraries()
        if int(self._before):
            low.cuCtxSetCurrent(self._before)


def _import() -> Any:
    try:
        import cuda.core as core
    except ImportError as error:
        raise BackendUnavailable(
            f"arrays on a GPU need cuda-core ({error}): pip install 'linkwise[cuda]'"
        ) from None
    return core


@cache
def libraries() -> tuple[Any, Any]:
    """``cuda.core`` and the driver below it, started."""
    core = _import()
    from cuda.bindings import driver as low

    try:
        (code,) = low.cuInit(0)
    except Exception as error:  # the library is not there; its own exception is no public name
        raise BackendUnavailable(f"{NO_DRIVER} ({error})") from None
    if code:
        raise BackendUnavailable(f"{NO_DRIVER} ({code.name})")
    return core, low


@cache
def _shared_library() -> Any:
    """The driver's functions that every call needs."""
    library = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    library.cuLaunchKernel.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
    library.cuCtxGetCurrent.argtypes = [pointer]
    return library


def _compiler_version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"
