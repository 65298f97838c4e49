"""A GPU as a backend: CUDA C, machine code, kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from linkwise.backends.base import Array, DeviceMemory, Effort, Launch, Rows
from linkwise.backends.cuda.driver import Driver, Facts, Start, driver
from linkwise.backends.cuda.driver import Memory as Lent
from linkwise.backends.cuda.loops import LOOPS, place_type, render_loops
from linkwise.backends.cuda.memory import Memory
from linkwise.backends.cuda.render import TAKES_TURNS, groups, render_cuda
from linkwise.backends.cuda.trees import TREE, CudaTree, render_tree
from linkwise.trace.program import FLAGS_DTYPE, NUMBER, For, Program, Signature
from linkwise.trace.program import Array as Table
from linkwise.trace.schedule import alive, lean

REGISTERS = 65_536  # of a multiprocessor
ALIVE = {"float64": 160, "float32": 320}  # values that registers and a little memory hold
CROWD = 3  # blocks of 128 threads beside each other that hide each other's waiting
TURNS, BUSY = 4, 4096  # states of a thread that takes turns; blocks up to which it has one
CROWD_SPILLS = 128  # bytes a thread may lose to memory for their sake
# how a kernel is started: a thread per state, fewer that take turns, or with room for its loops
PLAIN, BY_TURNS, BY_ROOM = b"\0", b"\1", b"\2"
TILE = 32  # states of a warp
MOST_BLOCKS = 32  # of a multiprocessor
ROOM = 0.5  # of the device's memory that counted loops may take


class Cuda:
    """Kernels for one device."""

    name = "cuda"
    kind = "cuda"
    apart = False
    effort = Effort(300e-6, 3_000, 11_000)  # of NVRTC, for which a long block is hard
    front = None

    def __init__(self, device: int = 0, with_driver: Driver | None = None) -> None:
        self.device, self._driver = device, with_driver
        # tables on the device, by their contents: those of a robot's links serve many kernels
        self._tables: WeakValueDictionary[bytes, Lent] = WeakValueDictionary()

    @cached_property
    def driver(self) -> Driver:
        """The device's driver; raises `BackendUnavailable` where there is none."""
        return self._driver or driver(self.device)

    @cached_property
    def memory(self) -> DeviceMemory:
        """Arrays of our own on the device."""
        return Memory(self.driver)

    @property
    def identity(self) -> str:
        """Everything that built code depends on besides its program."""
        return self.driver.identity

    def tile(self, dtype: str) -> int:
        """As many as run in step."""
        return TILE

    def ordered(self, program: Program, dtype: str, form: str) -> Program:
        """In an order of few values alive, if registers then hold all; else early loads pay, or
        long results in groups.
        """
        short = _in_groups(program, dtype, False)
        if alive(short) > ALIVE[dtype] and groups(program, dtype, True):
            return _in_groups(program, dtype, True)
        return short

    def render(self, program: Program, dtype: str, form: str) -> str:
        """The program as CUDA C."""
        if any(isinstance(region, For) for region in program.regions):
            return render_loops(program, dtype)
        return render_cuda(program, dtype, alive(program) > ALIVE[dtype])

    def render_tree(self, program: Program, dtype: str) -> list[str]:
        """A tree of pairs, each by a program, as CUDA C."""
        return render_tree(program, dtype)

    def load_tree(self, codes: Sequence[bytes], program: Program, dtype: str) -> CudaTree:
        """Machine code -> the kernels of a tree."""
        functions = [self.driver.load(code[1:]) for code in codes]
        return CudaTree(functions, program, dtype, self.driver.multiprocessors)

    def build(self, text: str, *, apart: bool = False) -> bytes:
        """CUDA C -> machine code, compiled again where its registers suggest it; one byte before it
        says how it is started.

        Rules from measurements (docs/gpu.md). A kernel that leaves room for fewer than three blocks
        is told to make room, if hardly anything is spilled for it. A light kernel takes turns, and
        is told to leave room for as many blocks as without, if nothing is spilled for it.
        """
        code, facts = self._compiled(text, {})
        if TREE in text:
            return PLAIN + code
        if LOOPS in text:
            return BY_ROOM + code
        if TAKES_TURNS in text:
            turns = {"TURNS": 1}
            room = {"BLOCKS": REGISTERS // (facts.registers * facts.threads)}
            found, needs = self._compiled(text, {**turns, **room})
            return BY_TURNS + (self._compiled(text, turns)[0] if needs.spilled else found)
        blocks = CROWD * 128 // facts.threads
        if facts.registers * facts.threads * blocks > REGISTERS and not facts.spilled:
            crowded, needs = self._compiled(text, {"BLOCKS": blocks})
            if needs.spilled <= CROWD_SPILLS:
                return PLAIN + crowded
        return PLAIN + code

    def _compiled(self, text: str, macros: Mapping[str, int]) -> tuple[bytes, Facts]:
        code = self.driver.compile(text, macros)
        return code, self.driver.load(code).facts

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> CudaKernel:
        """Machine code -> a kernel."""
        tables = [self._sent(table, dtype) for table in signature.tables]
        return CudaKernel(self.driver, code, signature, dtype, tables)

    def _sent(self, table: Table, dtype: str) -> Lent:
        """A table of counted loops on the device, for as long as a kernel needs it."""
        assert table.values is not None
        kind = place_type(table) if table.lists_places else dtype
        numbers = np.ascontiguousarray(table.values, kind)
        key = hashlib.sha256(numbers.data).digest() + kind.encode()
        found = self._tables.get(key)
        if found is None:
            found = self.driver.lend(numbers.nbytes)
            found.send(numbers)
            self.driver.wait()  # kernels on other streams than ours may read it at once
            self._tables[key] = found
        return found


class CudaKernel:
    """A kernel on a device."""

    def __init__(
        self,
        driver: Driver,
        code: bytes,
        signature: Signature,
        dtype: str,
        tables: Sequence[Lent] = (),
    ) -> None:
        self._driver, self._function = driver, driver.load(code[1:])
        self._tables = tables
        self._way = code[:1]
        self.signature, self._dtype = signature, dtype
        self._threads = self._function.facts.threads

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill arrays on the host: there, computed, and back; a device has no threads to choose."""
        given = [self._sent(array) for array in inputs]
        rooms = [self._driver.lend(array.nbytes) for array in outputs]
        filled = [
            Rows(room.pointer, len(array), array.shape[1], array.dtype.name, array.shape[1])
            for room, array in zip(rooms, outputs, strict=True)
        ]
        self.launch([rows for rows, _ in given], filled, self._driver.stream)
        for room, array in zip(rooms, outputs, strict=True):
            room.fetch(array)

    def _sent(self, array: Array) -> tuple[Rows, Lent]:
        """An input on the device; of one that is the same in every state, a single row."""
        states, size = array.shape
        same = states > 1 and array.strides[0] == 0
        numbers = np.ascontiguousarray(array[:1] if same else array)
        memory = self._driver.lend(numbers.nbytes)
        memory.send(numbers)
        return Rows(memory.pointer, states, size, array.dtype.name, 0 if same else size), memory

    def launch(self, inputs: Sequence[Rows], outputs: Sequence[Rows], stream: int) -> None:
        """Start filling the outputs; returns before that is done."""
        states = outputs[0].states
        slots = self.signature.outputs
        dtypes = [self._dtype if slot.kind == NUMBER else FLAGS_DTYPE for slot in slots]
        tiles = -(-states // TILE) * TILE  # whole ones
        for rows, port in zip(inputs, self.signature.inputs, strict=True):
            _check(port.name, rows, tiles if port.tiled else states, port.size, self._dtype)
        for rows, slot, dtype in zip(outputs, slots, dtypes, strict=True):
            _check(slot.name, rows, tiles if slot.tiled else states, slot.size, dtype)
            if rows.row != slot.size and states > 1:
                raise ValueError(
                    f"{slot.name}: rows {rows.row} numbers apart; expected {slot.size}"
                )
        pointers = [rows.pointer for rows in (*inputs, *outputs)]
        self.starter(states, [rows.row for rows in inputs])(stream, pointers)

    def starter(self, states: int, rows: Sequence[int]) -> Callable[[int, Sequence[int]], None]:
        """Starts it for so many states and numbers from row to row of each input, on a stream and
        with pointers that were checked.
        """
        arguments: list[int | None] = [states]
        for row in rows:
            arguments += (None, row)
        arguments += [None] * len(self.signature.outputs)
        if self._way == BY_ROOM:
            return self._with_room(states, [*arguments, *(t.pointer for t in self._tables), None])
        return self._function.prepare(self._blocks(states), arguments)

    @property
    def compiled_launch(self) -> Launch:
        """How compiled code starts it."""
        if self._way == BY_ROOM:
            raise NotImplementedError("a kernel of counted loops is lent memory by Python")
        turns = TURNS if self._way == BY_TURNS else 1
        return Launch(self.signature, *self._function.addresses, self._threads, turns, BUSY)

    def _with_room(self, states: int, arguments: Sequence[int | None]) -> Start:
        """Starts a kernel of counted loops, and lends it room for what they keep of each link.

        As many blocks as run at once, or as there is room for, take all states. Loops that keep
        nothing need no room, and have a block for every 32 states: those that begin while others
        end keep a multiprocessor busier than those that all begin at once (docs/gpu.md).
        """
        driver, facts = self._driver, self._function.facts
        one = self.signature.scratch * facts.threads * np.dtype(self._dtype).itemsize  # block
        blocks = -(-states // facts.threads)
        if one:
            beside = min(MOST_BLOCKS, REGISTERS // (facts.registers * facts.threads))
            most = min(beside * driver.multiprocessors, int(ROOM * driver.memory_bytes) // one)
            blocks = max(min(blocks, most), 1)
        # blocks and their start, replaced at once: another thread may be about to start it
        ready = [(blocks, self._function.prepare(blocks, arguments))]

        def start(stream: int, pointers: Sequence[int]) -> None:
            count, launch = ready[0]
            room = 0
            while one and not room:
                try:
                    room = driver.take(count * one, stream)
                except MemoryError:
                    if count == 1:
                        raise
                    count //= 2
                    launch = self._function.prepare(count, arguments)
                    ready[0] = (count, launch)
            try:
                launch(stream, (*pointers, room))
            finally:
                if room:
                    driver.give(room, stream)

        return start

    def _blocks(self, states: int) -> int:
        """As many as have a thread for each state, or fewer where threads take turns."""
        blocks = -(-states // self._threads)
        return max(min(blocks, BUSY), -(-blocks // TURNS)) if self._way == BY_TURNS else blocks


def _in_groups(program: Program, dtype: str, crowded: bool) -> Program:
    """In an order that completes groups of results one after another, where they leave so."""
    leaving = groups(program, dtype, crowded).values()
    return lean(program, ALIVE[dtype], [group for output in leaving for group in output])


def _check(name: str, rows: Rows, states: int, size: int, dtype: str) -> None:
    """Raise unless an array has the form that the code relies on."""
    if rows.pointer % np.dtype(dtype).itemsize:
        raise ValueError(f"{name}: begins at {rows.pointer:#x}, not at a whole {dtype}")
    if (rows.states, rows.size, rows.dtype) != (states, size, dtype):
        raise ValueError(
            f"{name}: rows ({rows.states}, {rows.size}) of {rows.dtype}; expected "
            f"({states}, {size}) of {dtype}"
        )
