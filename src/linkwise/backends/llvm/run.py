"""Run compiled kernels: batches over threads, and single states straight from Python."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.llvm.compile import BATCH_TYPE, Loaded
from linkwise.backends.llvm.entry import ARRAY_DATA
from linkwise.backends.llvm.module import BATCH, CALL, lanes_for
from linkwise.backends.llvm.target import Target
from linkwise.trace.program import BYTE, Signature

# nanoseconds of work below which another thread is not worth waking
WORTH_A_THREAD = 100_000


class BatchKernel:
    """A loaded kernel over contiguous rows."""

    def __init__(self, code: bytes, target: Target, signature: Signature, dtype: str) -> None:
        self._loaded = Loaded(code, target, BATCH, {})
        self._function = BATCH_TYPE(self._loaded.address)
        self.signature, self.width = signature, lanes_for(target, dtype, BATCH).width
        number = np.dtype(dtype)
        self._inputs = [(port.name, number, port.size) for port in signature.inputs]
        self._outputs = [
            (slot.name, np.dtype(np.uint8) if slot.kind == BYTE else number, slot.size)
            for slot in signature.outputs
        ]
        arrays = (*self._inputs, *self._outputs)
        self._ports = ctypes.c_void_p * len(arrays)
        # rough nanoseconds per state, to decide about threads
        self._cost = 3.0 * sum(size for _, _, size in arrays)

    def __call__(
        self,
        inputs: Sequence[NDArray[Any]],
        outputs: Sequence[NDArray[Any]],
        threads: int | None = None,
    ) -> None:
        """Fill the outputs (states, size) from the inputs (states, size), all contiguous.

        ``threads`` is the most that may be used; None leaves it to the work and the machine.
        """
        states = self._check(inputs, outputs)
        ports = self._ports(*map(data_address, inputs), *map(data_address, outputs))
        held = (ports, *inputs, *outputs)
        worth = int(states * self._cost / WORTH_A_THREAD)
        if worth <= 1 or threads == 1:
            self._part(held, 0, states)
            return
        first, *others = self._split(states, min(worth, threads or available_cores()))
        futures = [_pool().submit(self._part, held, *part) for part in others]
        try:
            self._part(held, *first)
        finally:  # an interrupted call leaves no thread writing behind its back
            if futures:
                wait(futures)
        for future in futures:
            future.result()

    def _check(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> int:
        """The number of states; raises unless every array is what the code will read or write."""
        given = (len(inputs), len(outputs))
        if given != (len(self._inputs), len(self._outputs)):
            raise ValueError(
                f"a kernel was given {given[0]} inputs and {given[1]} outputs; expected "
                f"{len(self._inputs)} and {len(self._outputs)}"
            )
        states: int = inputs[0].shape[0]
        for array, expected in zip(inputs, self._inputs, strict=True):
            _check_array(array, states, *expected)
        for array, expected in zip(outputs, self._outputs, strict=True):
            _check_array(array, states, *expected)
            if not array.flags.writeable:
                raise ValueError(f"output {expected[0]!r} of a kernel is read-only")
        return states

    def _part(self, held: tuple[Any, ...], begin: int, end: int) -> None:
        """One range; keeps the arrays alive while it runs, even if the caller was interrupted."""
        self._function(ctypes.addressof(held[0]), begin, end)

    def _split(self, states: int, threads: int) -> list[tuple[int, int]]:
        """Ranges of whole tiles, one per thread."""
        tiles = -(-states // self.width)
        edges = [min(states, tiles * k // threads * self.width) for k in range(threads + 1)]
        return list(itertools.pairwise(edges))


def _check_array(
    array: NDArray[Any], states: int, name: str, dtype: np.dtype[Any], size: int
) -> None:
    """Raise unless an array is ``states`` contiguous rows of ``size`` elements."""
    flags = array.flags
    if array.dtype != dtype or not (flags.c_contiguous and flags.aligned):
        raise TypeError(
            f"array {name!r} of a kernel has dtype {array.dtype}, contiguous: "
            f"{flags.c_contiguous}, aligned: {flags.aligned}; expected {dtype}, True, True"
        )
    if array.shape[:1] != (states,) or array.size != states * size:
        raise ValueError(
            f"array {name!r} of a kernel has shape {array.shape}; expected {states} rows of {size}"
        )


def data_address(array: NDArray[Any]) -> int:
    """Where an array's numbers are."""
    if fast_calls_possible():  # NumPy's own accessors take as long as the rest of a call
        return ctypes.c_void_p.from_address(id(array) + ARRAY_DATA).value or 0
    return int(array.__array_interface__["data"][0])


_pools: dict[int, ThreadPoolExecutor] = {}
_pool_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """Threads of this process; a forked child makes its own."""
    with _pool_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            _pools.clear()
            pool = _pools[os.getpid()] = ThreadPoolExecutor(available_cores(), "linkwise")
        return pool


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _after_fork() -> None:
    global _pool_lock
    _pool_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


FASTCALL_KEYWORDS = 0x0080 | 0x0002
_kept: list[Any] = []  # definitions and code that Python function objects point into


def fast_function(
    code: bytes, target: Target, dtype: str, name: str, doc: str, general: Callable[..., Any]
) -> Callable[..., Any]:
    """A built-in function for one state; everything unusual is passed on to ``general``."""
    loaded = Loaded(code, target, CALL, _python_symbols(dtype))
    definition = _MethodDef(name.encode(), loaded.address, FASTCALL_KEYWORDS, doc.encode())
    _kept.append((loaded, definition))
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(definition), general, None)
    return function


# indices into NumPy's C function table, fixed by its ABI
NEW_FROM_DESCR, RETURN = 94, 76


@lru_cache(maxsize=2)
def _python_symbols(dtype: str) -> dict[str, int]:
    """Addresses that a call kernel imports."""
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    api = ctypes.pythonapi

    def address(function: Any) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    return {
        "ndarray": id(np.ndarray),
        "dtype": id(np.dtype(dtype)),
        "name_out": id(sys.intern("out")),
        "new_array": table[NEW_FROM_DESCR] or 0,
        "as_result": table[RETURN] or 0,
        "vectorcall": address(api.PyObject_Vectorcall),
        "incref": address(api.Py_IncRef),
    }


@lru_cache(maxsize=1)
def fast_calls_possible() -> bool:
    """Whether this interpreter lays its objects out as entry.py expects: looked at, not assumed."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "gettotalrefcount"):
        return False
    return _layout_as_expected()


def _layout_as_expected() -> bool:
    from linkwise.backends.llvm import entry

    probe = np.zeros((3, 5))
    start = id(probe)

    def at(offset: int, kind: Any) -> Any:
        return kind.from_address(start + offset).value

    shape = at(entry.ARRAY_SHAPE, ctypes.c_void_p)
    names = ("out",)
    tuple_at = id(names)
    return bool(
        at(entry.OBJECT_TYPE, ctypes.c_void_p) == id(np.ndarray)
        and at(entry.ARRAY_DATA, ctypes.c_void_p) == probe.__array_interface__["data"][0]
        and at(entry.ARRAY_NDIM, ctypes.c_int) == 2
        and list((ctypes.c_int64 * 2).from_address(shape)) == [3, 5]
        and at(entry.ARRAY_DTYPE, ctypes.c_void_p) == id(np.dtype("float64"))
        and at(entry.ARRAY_FLAGS, ctypes.c_int) & entry.WRITABLE == entry.WRITABLE
        and ctypes.c_int64.from_address(tuple_at + entry.TUPLE_SIZE).value == 1
        and ctypes.c_void_p.from_address(tuple_at + entry.TUPLE_ITEMS).value == id(names[0])
    )
