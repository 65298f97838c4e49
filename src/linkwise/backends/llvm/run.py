"""Run compiled kernels: many states in slices, on one or more threads."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from time import perf_counter_ns

import numpy as np

from linkwise.backends.base import ONE, Array
from linkwise.backends.llvm.compile import Loaded
from linkwise.backends.llvm.copies import STREAMED
from linkwise.backends.llvm.layout import data_address
from linkwise.backends.llvm.memory import MOST_STACK
from linkwise.backends.llvm.sites import lacked
from linkwise.backends.process import available_cores, interruptible
from linkwise.trace.program import FLAGS, FLAGS_DTYPE, Signature

WORTH_A_THREAD = 100_000  # nanoseconds of work below which another thread is not worth waking
SLICE = 20_000_000  # nanoseconds of work between two looks at whether the user interrupted
PATIENCE = 300_000_000  # nanoseconds of a tile of states beyond which an interrupt may not wait
WRITTEN = 1 << 22  # bytes between two such looks: new memory may take long to come
MEASURED = 16  # tiles from which the time of a slice says what a state costs

_ONE_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_BATCH_TYPE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)


class LlvmKernel:
    """A loaded kernel."""

    def __init__(
        self, loaded: Loaded, signature: Signature, dtype: str, form: str, width: int
    ) -> None:
        self.signature, self.dtype, self.form, self.width = signature, dtype, form, width
        self._loaded, self.address = loaded, loaded.address[form]
        self._given = self._give_tables() if "tables" in loaded.address else None
        self._one, self._batch = _ONE_TYPE(self.address), _BATCH_TYPE(self.address)
        streams = loaded.address.get("stream", self.address)
        self._stream = _BATCH_TYPE(streams) if streams != self.address else None
        number = np.dtype(dtype)
        self._inputs = [(port.name, number, port.size) for port in signature.inputs]
        self._tiled = {port.name for port in signature.inputs if port.tiled}
        self._tiled |= {slot.name for slot in signature.outputs if slot.tiled}
        self._outputs = [
            (slot.name, np.dtype(FLAGS_DTYPE) if slot.kind == FLAGS else number, slot.size)
            for slot in signature.outputs
        ]
        # bytes of a state; results of no numbers count as one
        self._written = max(1, sum(dtype.itemsize * size for _, dtype, size in self._outputs))
        # nanoseconds per state: a guess from the numbers read and written, measured by long runs;
        # a large result is a matrix, whose entries share most of their work
        self.cost = 3.0 * sum(size for _, _, size in self._inputs)
        self.cost += 0.5 * sum(size for _, _, size in self._outputs)
        self.cost += 5.0 * signature.scratch
        self._measured = False  # a guess may be far off, where a state may take thousands of steps

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill the outputs (states, size) from the inputs (states, size).

        ``threads`` is the most that may be used; None leaves it to the work and the machine.
        """
        states = self._check(inputs, outputs)
        if self.cost * self.width <= PATIENCE:
            self._run(states, inputs, outputs, threads, threading.Event())
            return
        # a state takes long: an interrupt is answered within it, and its results are thrown away
        own, stop = [np.empty_like(x) for x in outputs], threading.Event()
        try:
            interruptible(lambda: self._run(states, inputs, own, threads, stop))
        except BaseException:
            stop.set()
            raise
        for into, found in zip(outputs, own, strict=True):
            into[...] = found

    def _run(
        self,
        states: int,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        threads: int | None,
        stop: threading.Event,
    ) -> None:
        """Fill the outputs, unless told to stop."""
        ports = (ctypes.c_void_p * (len(inputs) + len(outputs)))(
            *map(data_address, (*inputs, *outputs))
        )
        steps = (ctypes.c_int64 * (2 * len(inputs)))(*(s for a in inputs for s in a.strides))
        lacked = self._lacked_memory()
        if self.form == ONE:
            start = perf_counter_ns() if self.cost > SLICE else 0
            self._one(ctypes.addressof(ports))
            self.cost = perf_counter_ns() - start if start else self.cost
            self._check_memory(lacked)
            return
        held = (ports, steps, *inputs, *outputs)
        worth = int(states * self.cost / WORTH_A_THREAD)
        count = 1 if threads == 1 else min(worth, threads or available_cores())
        slices = self._slices(states, max(count, 1))
        batch = self._way(states)
        _run_slices(slices, count, lambda b, e: self._part(batch, held, b, e), stop)
        self._check_memory(lacked)

    def bound(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A call with these very arrays, which are checked now, on one thread."""
        states = self._check(inputs, outputs)
        ports = (ctypes.c_void_p * (len(inputs) + len(outputs)))(
            *map(data_address, (*inputs, *outputs))
        )
        steps = (ctypes.c_int64 * (2 * len(inputs)))(*(s for a in inputs for s in a.strides))
        held = (ports, steps, *inputs, *outputs)
        if self.form == ONE:
            at = ctypes.addressof(ports)

            def run_one(one: Callable[..., None] = self._one, _alive: object = held) -> None:
                one(at)

            return run_one
        addresses, way = (ctypes.addressof(ports), ctypes.addressof(steps)), self._way(states)

        def run(batch: Callable[..., None] = way, _held: object = held) -> None:
            batch(*addresses, 0, states)

        return run

    def _give_tables(self) -> list[Array]:
        """Tell the code where its tables are, where memory comes from, and where to count how often
        there was none; returns the tables.
        """
        tables = [
            np.ascontiguousarray(t.values, np.int64 if t.lists_places else self.dtype)
            for t in self.signature.tables
        ]
        memory = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
        taken = [ctypes.cast(function, ctypes.c_void_p).value for function in memory]
        counter = ctypes.addressof(lacked)
        addresses = (*taken, counter, *(table.ctypes.data for table in tables))
        at = (ctypes.c_void_p * len(addresses)).from_address(self._loaded.address["tables"])
        at[:] = [ctypes.c_void_p(address) for address in addresses]
        return tables

    @property
    def needs_memory(self) -> bool:
        """Whether a call may find that there is not enough memory, and has to be asked about it."""
        if not self.signature.rolled:
            return self._given is not None
        rows = sum(size for _, _, size in (*self._inputs, *self._outputs))
        numbers = self.signature.scratch + (rows if self.form != ONE else 0)
        return numbers * self.width * np.dtype(self.dtype).itemsize > MOST_STACK

    def _lacked_memory(self) -> int:
        """How often code got no memory so far, in any thread."""
        return 0 if self._given is None else lacked.value

    def _check_memory(self, before: int) -> None:
        """Raise where the code got no memory since ``before``, for what it keeps per link.

        Of calls that run at the same time, one that had memory may raise too.
        """
        if self._lacked_memory() != before:
            raise MemoryError("out of memory: could not allocate the scratch buffer of a kernel")

    @property
    def streamed(self) -> float:
        """How many states have results that are written past the caches, where rows are long."""
        return math.inf if self._stream is None else STREAMED / self._written

    def _way(self, states: int) -> Callable[..., None]:
        """The loop over so many states: large results are written past the caches."""
        return self._batch if states < self.streamed or not self._stream else self._stream

    def _part(
        self, batch: Callable[..., None], held: tuple[object, ...], begin: int, end: int
    ) -> None:
        """One slice; holds the arrays while it runs, even if the caller was interrupted."""
        start = perf_counter_ns()
        addresses = (ctypes.addressof(x) for x in held[:2])  # type: ignore[arg-type]
        batch(*addresses, begin, end)
        time, states = perf_counter_ns() - start, end - begin
        if states >= MEASURED * self.width or max(time, self.cost * states) > SLICE / 2:
            self.cost, self._measured = time / states, True

    def _slices(self, states: int, threads: int) -> Iterator[tuple[int, int]]:
        """Ranges of whole tiles, each short enough to wait for, at least one per thread.

        The first is short: a busy machine can make a state much slower than it was in the last run,
        and before the first run nobody knows.
        Later ones follow the time of those before them, and are long enough to be measured. Of
        states that take long, as those of a million links, one tile is enough.
        """
        begin, time = 0, SLICE / 10 if self._measured else 0.0
        most = WRITTEN // self._written
        while begin < states:
            least = MEASURED if MEASURED * self.width * self.cost <= SLICE else 1  # tiles
            length = max(min(int(time / self.cost), most), least * self.width)
            length = -(-min(length, -(-states // threads)) // self.width) * self.width
            yield begin, min(begin + length, states)
            begin, time = begin + length, SLICE

    def _check(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
        """The number of states; raises unless every array is what the code will read or write."""
        given = (len(inputs), len(outputs))
        if given != (len(self._inputs), len(self._outputs)):
            raise ValueError(
                f"a kernel was given {given[0]} inputs and {given[1]} outputs; expected "
                f"{len(self._inputs)} and {len(self._outputs)}"
            )
        states: int = outputs[0].shape[0]
        if self.form == ONE and states != 1:
            raise ValueError(f"a kernel for one state was given {states}")
        whole = -(-states // self.width) * self.width  # states, where tiles are whole
        for array, (name, dtype, size) in zip(inputs, self._inputs, strict=True):
            tiled = name in self._tiled
            rows = whole if tiled else states
            straight = array.flags.c_contiguous or (self.form != ONE and not tiled)
            _check_array(array, (rows, size), name, dtype, straight)
        for array, (name, dtype, size) in zip(outputs, self._outputs, strict=True):
            usable = array.flags.c_contiguous and array.flags.writeable
            rows = whole if name in self._tiled else states
            _check_array(array, (rows, size), name, dtype, usable)
        return states


def _check_array(
    array: Array, shape: tuple[int, int], name: str, dtype: np.dtype, usable: bool
) -> None:
    if array.dtype != dtype or array.shape != shape or not (usable and array.flags.aligned):
        flags = array.flags
        raise ValueError(
            f"array {name!r} of a kernel is {array.dtype} of shape {array.shape} (contiguous: "
            f"{flags.c_contiguous}, aligned: {flags.aligned}, writeable: {flags.writeable}); "
            f"expected {dtype} of shape {shape}, aligned; outputs contiguous and writeable"
        )


def _run_slices(
    slices: Iterator[tuple[int, int]],
    threads: int,
    part: Callable[[int, int], None],
    stop: threading.Event,
) -> None:
    """Run every slice, several at a time; an interrupt, or being told to stop, ends the run after
    those under way.
    """
    if threads <= 1:
        for begin, end in slices:
            if stop.is_set():
                return
            part(begin, end)
        return
    lock = threading.Lock()

    def work() -> None:
        while not stop.is_set():
            with lock:
                mine = next(slices, None)
            if mine is None:
                return
            part(*mine)

    futures = _started(work, threads - 1)
    try:
        work()
    except BaseException:
        stop.set()
        raise
    finally:  # no thread goes on writing behind the caller's back
        wait(futures)
    for future in futures:
        future.result()


def _started(work: Callable[[], None], count: int) -> list[Future[None]]:
    """Let other threads work too; while the interpreter exits there are none to be had."""
    try:
        return [_pool().submit(work) for _ in range(count)]
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        return []


_pools: dict[int, Executor] = {}
_pool_lock = threading.Lock()


def _pool() -> Executor:
    """Threads of this process; a forked child makes its own."""
    with _pool_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            from concurrent.futures.thread import ThreadPoolExecutor  # fails during exit

            _pools.clear()
            pool = _pools[os.getpid()] = ThreadPoolExecutor(available_cores(), "linkwise")
        return pool


def _after_fork() -> None:
    global _pool_lock
    _pool_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
