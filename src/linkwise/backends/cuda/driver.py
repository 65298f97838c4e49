"""The driver of NVIDIA GPUs and its compiler, through ``cuda-core``: the only importer of it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from struct import Struct
from typing import Any, NamedTuple, Protocol

from linkwise.backends.base import Array
from linkwise.errors import BackendUnavailable

KERNEL = "linkwise"  # the name of the kernel in every source
LEGACY = 1  # the default stream by a name that every interface knows
IMPLICIT = 906  # the answer of the default stream while another one records
NOT_CURRENT = 201  # the answer where a thread has no device yet
NO_MEMORY = 2  # the answer where memory has run out
NO_DRIVER = "no GPU can be used; expected an NVIDIA GPU and its driver (nvidia-smi shows both)"


class Facts(NamedTuple):
    """What a compiled kernel needs of a multiprocessor."""

    threads: int  # of a block
    registers: int  # of a thread
    spilled: int  # bytes of a thread that did not fit in its registers


Start = Callable[[int, Sequence[int]], None]  # on a stream, with pointers


class Function(Protocol):
    """A kernel that is loaded on a device."""

    facts: Facts

    def prepare(self, blocks: int, arguments: Sequence[int | None]) -> Start:
        """Starts it on a stream, given pointers for those arguments that are None here.

        Arguments are pointers and whole numbers of 64 bits.
        """

    @property
    def addresses(self) -> tuple[int, int, int, int, int]:
        """The kernel, cuLaunchKernel, cuCtxSetCurrent, the device's context, and the answer of a
        thread that has no device.
        """


class Memory(Protocol):
    """Memory on a device, for as long as this object lives."""

    pointer: int

    def send(self, numbers: Array) -> None:
        """Copy an array without gaps from the host."""

    def fetch(self, numbers: Array) -> None:
        """Copy to an array without gaps on the host, once all work on our stream is done."""


class Driver(Protocol):
    """One device."""

    identity: str  # what compiled code depends on: kind of device, version of the compiler
    multiprocessors: int
    memory_bytes: int

    @property
    def stream(self) -> int:
        """The stream of arrays of our own."""

    def wait(self) -> None:
        """Until everything on our stream is done."""

    def capturing(self, stream: int) -> bool:
        """Whether work on a stream is recorded for a graph instead of done."""

    def compile(self, text: str, macros: Mapping[str, int]) -> bytes:
        """Source code -> machine code."""

    def load(self, code: bytes) -> Function:
        """Machine code -> a kernel on the device."""

    def lend(self, size: int) -> Memory:
        """So many bytes on the device, for work on our stream."""

    def take(self, size: int, stream: int) -> int:
        """The address of so many bytes, for work on a stream of anybody's from now on."""

    def give(self, pointer: int, stream: int) -> None:
        """Give memory back that was taken, once the work on the stream so far is done."""


@cache
def driver(device: int) -> Driver:
    """The driver of a device, by its number."""
    return CudaDriver(device)


class CudaDriver:
    """A device of this machine."""

    def __init__(self, device: int) -> None:
        core, low = libraries()
        self._device = core.Device(device)
        with current(device):
            major, minor = self._device.compute_capability
            self.multiprocessors = int(self._device.properties.multiprocessor_count)
            _, _, self.memory_bytes = map(int, low.cuMemGetInfo())
        self._arch = f"sm_{major}{minor}"
        self.identity = f"{self._arch} nvrtc {_compiler_version()}"

    def compile(self, text: str, macros: Mapping[str, int]) -> bytes:
        """Source code -> machine code that rounds as the CPU's does."""
        return compiled(text, self._arch, macros)

    def load(self, code: bytes) -> CudaFunction:
        """Machine code -> a kernel on this device."""
        with current(self._device.device_id):
            return CudaFunction(code, self._device.device_id)

    @cached_property
    def _stream(self) -> Any:
        with current(self._device.device_id):
            return self._device.default_stream

    @property
    def stream(self) -> int:
        """CUDA's default stream, on which most libraries work unless told otherwise."""
        return int(self._stream.handle) or LEGACY

    def wait(self) -> None:
        """Until everything on our stream is done."""
        self._stream.sync()

    def capturing(self, stream: int) -> bool:
        """Whether work on a stream is recorded for a graph instead of done."""
        state = ctypes.c_int()
        with current(self._device.device_id):
            refused = _shared_library().capturing(stream, ctypes.byref(state))
        return refused == IMPLICIT or bool(state.value)

    def lend(self, size: int) -> CudaMemory:
        """From the device's own pool."""
        return CudaMemory(size, self._device, self._stream)

    @cached_property
    def _pool(self) -> ctypes.c_void_p:
        """Memory for kernels while they run. It waits for the next one: getting a gigabyte from the
        driver takes a millisecond, and the driver takes it back where other memory runs out.
        """
        _, low = libraries()
        wanted = low.CUmemPoolProps()
        wanted.allocType = low.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = low.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = self._device.device_id
        with current(self._device.device_id):
            code, pool = low.cuMemPoolCreate(wanted)
            if not code:
                kept = low.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
                (code,) = low.cuMemPoolSetAttribute(pool, kept, low.cuuint64_t(2**64 - 1))
        if code:
            raise RuntimeError(f"the GPU made no pool of memory: {code.name}")
        return ctypes.c_void_p(int(pool))

    def take(self, size: int, stream: int) -> int:
        """Memory in the order of a stream: part of the graph, where it records one."""
        found, functions = ctypes.c_void_p(), _shared_library()
        arguments = ctypes.byref(found), ctypes.c_size_t(size), self._pool, ctypes.c_void_p(stream)
        code = self._called(functions.take, *arguments)
        if code == NO_MEMORY:
            raise MemoryError(f"the GPU has no room for {size} bytes")
        if code:
            raise RuntimeError(f"the GPU refused {size} bytes of memory: CUDA error {code}")
        return found.value or 0

    def give(self, pointer: int, stream: int) -> None:
        """Give it back in the order of the stream."""
        code = self._called(
            _shared_library().give, ctypes.c_void_p(pointer), ctypes.c_void_p(stream)
        )
        if code:
            raise RuntimeError(f"the GPU did not take memory back: CUDA error {code}")

    def _called(self, function: Callable[..., int], *arguments: Any) -> int:
        """The answer of a function of the driver that needs a current device."""
        code = function(*arguments)
        if code == NOT_CURRENT:
            with current(self._device.device_id):
                code = function(*arguments)
        return code


class CudaMemory:
    """Memory of a device of this machine, used on our stream."""

    def __init__(self, size: int, device: Any, stream: Any) -> None:
        self._device, self._stream = device.device_id, stream
        try:
            with current(self._device):
                self._buffer = device.memory_resource.allocate(max(size, 1), stream=stream)
        except Exception as error:  # its own exception is no public name
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise MemoryError(f"the GPU has no room for {size} bytes") from None
        self.pointer = int(self._buffer.handle)

    def send(self, numbers: Array) -> None:
        """Copy from the host, which may be overwritten at once."""
        self._copy("cuMemcpyHtoDAsync", self.pointer, numbers.ctypes.data, numbers.nbytes)

    def fetch(self, numbers: Array) -> None:
        """Copy to the host; waits for our stream."""
        self._copy("cuMemcpyDtoHAsync", numbers.ctypes.data, self.pointer, numbers.nbytes)
        self._stream.sync()

    def _copy(self, function: str, *arguments: int) -> None:
        _, low = libraries()
        with current(self._device):
            (code,) = getattr(low, function)(*arguments, int(self._stream.handle))
        if code:
            raise RuntimeError(f"the GPU failed at a copy: {code.name}")


class _Config(ctypes.Structure):
    """``CUlaunchConfig`` of the driver."""

    _fields_ = (
        ("blocks", ctypes.c_uint), ("blocks_y", ctypes.c_uint), ("blocks_z", ctypes.c_uint),
        ("threads", ctypes.c_uint), ("threads_y", ctypes.c_uint), ("threads_z", ctypes.c_uint),
        ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )  # fmt: skip


class _Room:
    """Memory for the arguments of a launch: pointers first, then what does not change."""

    __slots__ = ("config", "config_at", "pack", "places", "places_at", "stream", "values")

    def __init__(self, blocks: int, threads: int, arguments: Sequence[int | None]) -> None:
        known = [x for x in arguments if x is not None]
        free = len(arguments) - len(known)
        self.values = (ctypes.c_longlong * len(arguments))(*[0] * free, *known)
        self.pack = Struct(f"{free}q").pack_into
        pointers, numbers = iter(range(free)), iter(range(free, len(arguments)))
        order = [next(pointers if x is None else numbers) for x in arguments]
        first = ctypes.addressof(self.values)
        self.places = (ctypes.c_void_p * len(order))(*(first + 8 * k for k in order))
        self.places_at = ctypes.byref(self.places)
        self.config = _Config(blocks, 1, 1, threads, 1, 1, 0, None, None, 0)
        self.config_at, self.stream = ctypes.byref(self.config), 0


class CudaFunction:
    """A kernel on a device of this machine."""

    def __init__(self, code: bytes, device: int) -> None:
        core, low = libraries()
        self._device = device
        self._kernel = core.ObjectCode.from_cubin(code).get_kernel(KERNEL)
        self._handle = ctypes.c_void_p(int(self._kernel.handle))
        self._context = int(low.cuCtxGetCurrent()[1])
        self._alone = int(low.cuDeviceGetCount()[1]) == 1
        self._driver = _shared_library()
        needs = self._kernel.attributes
        self.facts = Facts(needs.max_threads_per_block, needs.num_regs, needs.local_size_bytes)

    def prepare(self, blocks: int, arguments: Sequence[int | None]) -> Start:
        """Starts it; the stream belongs to its library, which keeps it alive.

        By a plain call of the driver, with arguments laid out once: what ``cuda-core`` does
        besides takes longer than many kernels. Python's lock is released meanwhile, because the
        driver waits where too much is under way, perhaps for a thread of Python.
        """
        launch, handle, threads = self._driver.launch, self._handle, self.facts.threads
        rooms: list[_Room] = []  # that no thread uses now

        def start(stream: int, pointers: Sequence[int]) -> None:
            try:
                room = rooms.pop()
            except IndexError:
                room = _Room(blocks, threads, arguments)
            room.pack(room.values, 0, *pointers)
            if stream != room.stream:
                room.config.stream = room.stream = stream
            code = NOT_CURRENT
            if self._alone or self._is_current():
                code = launch(room.config_at, handle, room.places_at, None)
            if code == NOT_CURRENT:
                with current(self._device):
                    code = launch(room.config_at, handle, room.places_at, None)
            rooms.append(room)
            if code:
                raise RuntimeError(
                    f"the GPU refused a kernel of {blocks} blocks: CUDA error {code}"
                )

        return start

    @property
    def addresses(self) -> tuple[int, int, int, int, int]:
        """What compiled code needs to start it, as `Launch` has it."""
        functions = (self._driver.launch_plain, self._driver.set_current)
        launch, enter = (ctypes.cast(x, ctypes.c_void_p).value or 0 for x in functions)
        return self._handle.value or 0, launch, enter, self._context, NOT_CURRENT

    def _is_current(self) -> bool:
        """Whether this thread works on the kernel's device."""
        now = ctypes.c_void_p()
        self._driver.current(ctypes.byref(now))
        return now.value == self._context


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


class _Functions:
    """The driver's functions that every call needs, without a check of their arguments' types."""

    def __init__(self, name: str) -> None:
        library = ctypes.CDLL(name)
        self.launch, self.current = library.cuLaunchKernelEx, library.cuCtxGetCurrent
        self.launch_plain, self.set_current = library.cuLaunchKernel, library.cuCtxSetCurrent
        self.capturing = library.cuStreamIsCapturing
        self.capturing.argtypes = [ctypes.c_void_p] * 2
        self.take, self.give = library.cuMemAllocFromPoolAsync, library.cuMemFreeAsync


@cache
def _shared_library() -> _Functions:
    return _Functions("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")


def _compiler_version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"
