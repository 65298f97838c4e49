"""The CUDA backend without a GPU: sources compiled as C++ for the host, threads as fibers.

A driver of that sort stands in for NVIDIA's, and a library of arrays whose memory is the host's for
CuPy. What remains for a machine with a GPU: tests/gpu.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bits import FUSED
from bits import assert_same as same

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import Rows, View, contiguous
from linkwise.backends.cstyle.render import DIALECTS
from linkwise.backends.cuda import backend as backend_module
from linkwise.backends.cuda import driver as driver_module
from linkwise.backends.cuda.backend import Cuda
from linkwise.backends.cuda.driver import NOT_CURRENT, CudaFunction, Facts
from linkwise.backends.cuda.render import render_cuda
from linkwise.backends.llvm.backend import Llvm
from linkwise.engine import compiled, device_scans, devices, iterative, libraries, scans
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.scans import ScanKernel
from linkwise.engine.tasks import Key
from linkwise.study.generic import generic_chain
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.guard import guard
from linkwise.trace.program import NUMBER, Port, Program, Slot
from linkwise.trace.roll import trace_rolled
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolled import program as rolled_program
from linkwise.trace.tracer import Task

COMPILER = shutil.which("c++")
# a thread as a fiber: each lane of a warp runs until it meets __syncwarp, then the next one does;
# and each warp of a block until it meets __syncthreads
HOST = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __launch_bounds__(...)
#define WARP 32
template <class T> static T __ldg(const T* p) { return *p; }
static struct { unsigned x; } blockIdx, threadIdx, blockDim, gridDim;
enum { RUNS, WAITS, ENDED };
static struct { ucontext_t place; int is; char stack[1 << 20]; } lanes[32 * WARP];
static ucontext_t scheduler;
static void leave(int waits)
{
    const unsigned thread = threadIdx.x;
    lanes[thread].is = waits;
    swapcontext(&lanes[thread].place, &scheduler);
    threadIdx.x = thread;
}
static void __syncwarp() { leave(RUNS); }
static void __syncthreads() { leave(WAITS); }
"""
LAUNCH = r"""
static const long long* arguments;
template <class... A, size_t... I>
static void call(void (*f)(A...), std::index_sequence<I...>) { f((A)arguments[I]...); }
template <class... A>
static void run(void (*f)(A...)) { call(f, std::index_sequence_for<A...>{}); }
static void lane_main()
{
    run(linkwise);
    lanes[threadIdx.x].is = ENDED;
}
static int run_warp(unsigned first)
{
    int is = RUNS;
    while (is == RUNS) {
        for (unsigned k = first; k < first + WARP; ++k) {
            threadIdx.x = k;
            swapcontext(&scheduler, &lanes[k].place);
            if (k > first && lanes[k].is != is) {
                fprintf(stderr, "lanes of a warp meet different ends\n");
                abort();
            }
            is = lanes[k].is;
        }
    }
    return is;
}
static void run_block(unsigned threads)
{
    for (unsigned k = 0; k < threads; ++k) {
        auto& lane = lanes[k];
        getcontext(&lane.place);
        lane.is = RUNS;
        lane.place.uc_stack.ss_sp = lane.stack;
        lane.place.uc_stack.ss_size = sizeof lane.stack;
        lane.place.uc_link = &scheduler;
        makecontext(&lane.place, lane_main, 0);
    }
    for (bool waits = true; waits;) {
        waits = false;
        for (unsigned first = 0; first < threads; first += WARP)
            if (lanes[first].is != ENDED) waits |= run_warp(first) == WAITS;
    }
}
extern "C" unsigned threads() { return THREADS; }
extern "C" void launch(unsigned blocks, unsigned threads, const long long* given)
{
    blockDim.x = threads;
    gridDim.x = blocks;
    arguments = given;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        run_block(threads);
}
"""


class HostFunction:
    def __init__(self, library: Path, facts: Facts | None) -> None:
        own = ctypes.CDLL(str(library))
        self.facts, self._launch = facts or Facts(own.threads(), 64, 0), own.launch
        self.launches: list[tuple[int, int]] = []

    def prepare(
        self, blocks: int, arguments: Sequence[int | None]
    ) -> Callable[[int, Sequence[int]], None]:
        def start(stream: int, pointers: Sequence[int]) -> None:
            left = iter(pointers)
            whole = [next(left) if x is None else x for x in arguments]
            assert next(left, None) is None, "a pointer that nobody takes"
            self.launches.append((blocks, stream))
            self._launch(blocks, self.facts.threads, (ctypes.c_longlong * len(whole))(*whole))

        return start


@cache
def host_code(text: str, defined: tuple[str, ...]) -> bytes:
    """A kernel's source, compiled for the host; once for all tests of a process."""
    assert COMPILER is not None
    fused = ["-mfma"] if platform.machine() in ("x86_64", "AMD64") else []
    flags = ["-std=c++17", "-O0", "-ffp-contract=off", *fused, "-shared", "-fPIC", *defined]
    with TemporaryDirectory() as folder:
        source, library = Path(folder) / "k.cpp", Path(folder) / "k.so"
        source.write_text(HOST + text + LAUNCH)
        subprocess.run([COMPILER, *flags, "-o", library, source], check=True)
        return library.read_bytes()


class HostMemory:
    def __init__(self, size: int) -> None:
        self._bytes = np.zeros(size, np.uint8)
        self.pointer = self._bytes.ctypes.data

    def send(self, numbers: np.ndarray) -> None:
        ctypes.memmove(self.pointer, numbers.ctypes.data, numbers.nbytes)

    def fetch(self, numbers: np.ndarray) -> None:
        ctypes.memmove(numbers.ctypes.data, self.pointer, numbers.nbytes)


class HostDriver:
    """Compiles for the host; ``facts`` says what a compiler for GPUs would have needed."""

    identity = "host"
    stream = 5
    multiprocessors = 2
    memory_bytes = 1 << 40

    def __init__(self, folder: Path, facts: Callable[[Mapping[str, int]], Facts] | None = None):
        self._folder, self._facts = folder, facts
        self.compiled: list[dict[str, int]] = []
        self.functions: list[HostFunction] = []
        self.captured: set[int] = set()  # streams that record a graph
        self.waits = 0
        self.taken: dict[int, np.ndarray] = {}  # memory of kernels that run, by address
        self.sizes: list[int] = []  # of all that was ever taken
        self.most = 1 << 40  # bytes that can be taken

    def take(self, size: int, stream: int) -> int:
        self.sizes.append(size)
        if size > self.most:
            raise MemoryError(f"the GPU has no room for {size} bytes")
        room = np.full(size, 0xFF, np.uint8)  # numbers that nobody has written are NaN
        self.taken[room.ctypes.data] = room
        return room.ctypes.data

    def give(self, pointer: int, stream: int) -> None:
        room = self.taken.pop(pointer)
        room[:] = 0xFF

    def wait(self) -> None:
        self.waits += 1

    def capturing(self, stream: int) -> bool:
        return stream in self.captured

    def compile(self, text: str, macros: Mapping[str, int]) -> bytes:
        self.compiled.append(dict(macros))
        image = host_code(text, tuple(f"-D{name}={value}" for name, value in macros.items()))
        return f"{macros!r}\n".encode() + image

    def lend(self, size: int) -> HostMemory:
        return HostMemory(size)

    def load(self, code: bytes) -> HostFunction:
        macros, image = code.split(b"\n", 1)
        library = self._folder / f"{len(list(self._folder.glob('*.so')))}.so"
        library.write_bytes(image)
        facts = None if self._facts is None else self._facts(eval(macros))
        self.functions.append(HostFunction(library, facts))
        return self.functions[-1]


class Drivers(dict[int, HostDriver]):
    """Drivers of devices of this process, made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.backends: dict[int, Cuda] = {}

    def backend(self, device: int) -> Cuda:
        if device not in self:
            (self._folder / str(device)).mkdir()
            self[device] = HostDriver(self._folder / str(device))
            self.backends[device] = Cuda(device, self[device])
        return self.backends[device]


@pytest.fixture
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drivers:
    """Every GPU is this process; arrays are those of the package ``fakegpu``."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    made = Drivers(tmp_path)
    for module in (compiled, devices, libraries):
        monkeypatch.setattr(module, "gpu", made.backend)
    package = ModuleType("fakegpu")
    package.ndarray = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fakegpu", package)
    take(monkeypatch, FakeLibrary)
    return made


@pytest.fixture
def host(drivers: Drivers) -> HostDriver:
    """GPU 0."""
    drivers.backend(0)
    return drivers[0]


def take(monkeypatch: pytest.MonkeyPatch, library: type[libraries.Library]) -> None:
    """Let a library be that of the class `Fake`."""
    monkeypatch.setitem(libraries.KNOWN, "fakegpu", ("ndarray", library))
    libraries._library.cache_clear()
    libraries.library_of_class.cache_clear()


class Fake:
    """An array "on" device 0 or 1."""

    def __init__(self, numbers: np.ndarray, device: int = 0) -> None:
        self.numbers, self.device = numbers, device

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    def __setitem__(self, key: Any, other: Fake) -> None:
        self.numbers[key] = other.numbers


class FakeLibrary(libraries.Library):
    name = "FakeGPU"
    xp = np

    def place(self, array: Fake) -> str:
        return f"cuda:{array.device}"

    def view(self, array: Fake, stream: int) -> View:
        x = array.numbers
        strides = tuple(s // x.itemsize for s in x.strides)
        return View(x.ctypes.data, x.shape, strides, x.dtype.name)

    def stream(self, device: int) -> int:
        return 7

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Fake:
        return Fake(np.full(shape, 99, dtype), device)

    def constant(self, numbers: np.ndarray, device: int) -> Fake:
        return Fake(numbers, device)

    def rows(
        self, array: Fake, view: View, shape: tuple[int, ...], dtype: str, stream: int
    ) -> tuple[Fake, View]:
        size = array.shape[-1]
        whole = np.broadcast_to(array.numbers.astype(dtype, copy=False), (*shape, size))
        rows = whole.reshape(-1, size)
        made = Fake(rows if rows.strides[1] == rows.itemsize else rows.copy(), array.device)
        return made, self.view(made, stream)

    def typed(self, array: Fake, dtype: str) -> Fake:
        return Fake(array.numbers.astype(dtype), array.device)

    def copied(self, array: Fake) -> Fake:
        return Fake(array.numbers.copy(), array.device)


class Planning(FakeLibrary):
    """One that tells all about its arrays at once, and counts how often it is asked for rows."""

    looked: list[tuple[Any, ...]]

    def look(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], list[int]] | None:
        if any(type(x) is not Fake for x in values):
            return None
        layout = tuple((x.shape, x.numbers.strides, x.numbers.dtype.str, x.device) for x in values)
        return layout, [x.numbers.ctypes.data for x in values]


def planned(robot: lw.Robot) -> dict[str, int]:
    """How many layouts of each function have a plan."""
    found: Counter[str] = Counter()
    for call in (*robot._calls._table.values(), *robot._calls.functions.values()):
        if isinstance(call, CompiledFunction):
            found[call.title] += len(call.plans)
    return dict(+found)


def states(robot: lw.Robot, count: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q = robot.random_q(rng, size=count).astype(dtype)
    return [q, *(rng.normal(size=(count, robot.nv)).astype(dtype) for _ in range(2))]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_calls_give_the_bits_of_the_cpu(host: HostDriver, dtype: str) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 37, dtype)
    q[3, 2], q[5, 1], qd[7, 0] = 1e9, -3e20, np.nan  # large angles, a state without an answer
    on = [Fake(x) for x in (q, qd, tau)]
    for name, count in (("forward_dynamics", 3), ("inverse_dynamics", 3), ("mass_matrix", 1)):
        expected = getattr(robot, name)(*(q, qd, tau)[:count])
        found = getattr(robot, name)(*on[:count])
        assert isinstance(found, Fake)
        same(found.numbers, expected)
        found, bits = getattr(robot, name)(*on[:count], status=True)
        expected, flags = getattr(robot, name)(*(q, qd, tau)[:count], status=True)
        same(found.numbers, expected)
        assert (bits.numbers == flags).all()
    assert {stream for f in host.functions for _, stream in f.launches} == {7}


def test_long_rows_go_through_shared_memory(host: HostDriver) -> None:
    robot = wide_robot()
    q, qd, tau = states(robot, 71)
    found = robot.inverse_dynamics(Fake(q), Fake(qd), Fake(tau))
    same(found.numbers, robot.inverse_dynamics(q, qd, tau))
    text = robot.source("inverse_dynamics", "cuda")
    assert text.count("__syncwarp();") == 2, "before the rows are used, and before they leave"
    assert "* 17 + k % 16" in text, "16 numbers on 17 places"


@pytest.mark.parametrize("crowded", [False, True])
def test_bits_do_not_depend_on_where_rows_pass(tmp_path: Path, crowded: bool) -> None:
    """Long rows through shared memory, or read in place where registers do not hold all values."""
    robot = wide_robot()
    q, qd, tau = states(robot, 71)
    text = source_of(robot, "inverse_dynamics", "float64", crowded)
    assert ("__shared__" in text) != crowded
    same(
        launched(tmp_path, robot, "inverse_dynamics", text, [q, qd, tau], 16),
        robot.inverse_dynamics(q, qd, tau),
    )


def test_a_warp_that_does_not_wait_is_noticed(tmp_path: Path) -> None:
    """The stand-in for a warp tells a kernel without its waits from one with them."""
    robot = wide_robot()
    inputs = states(robot, 71)
    text = source_of(robot, "inverse_dynamics", "float64").replace("__syncwarp();", "")
    found = launched(tmp_path, robot, "inverse_dynamics", text, inputs, 16)
    assert not (found == robot.inverse_dynamics(*inputs)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 150])
def test_long_results_leave_in_groups(tmp_path: Path, dtype: str, count: int) -> None:
    """Results of 1,024 numbers, by tiles; in the last warp threads without a state help copying."""
    robot = wide_robot(32)
    q = states(robot, count, dtype)[0]
    text = source_of(robot, "mass_matrix", dtype)
    assert "struct Tile" in text
    found = launched(tmp_path, robot, "mass_matrix", text, [q], 1024)
    same(found.reshape(count, 32, 32), robot.mass_matrix(q, method="crba"))


def test_groups_leave_one_after_another() -> None:
    """The order of the program leaves few results waiting for their group to be complete."""
    robot = wide_robot(32)
    lines = source_of(robot, "mass_matrix", "float64").splitlines()
    leaving = [k for k, line in enumerate(lines) if ".leave(" in line and "void" not in line]
    made = [k for k, line in enumerate(lines) if line.startswith("    const double v")]
    assert len(leaving) == 32
    assert leaving[15] < made[-len(made) // 4], "half of them before the last quarter is computed"


def test_rows_of_a_tile_that_are_not_whole_groups(tmp_path: Path) -> None:
    """15 x 15 numbers: seven groups of 32, and one number."""
    robot = wide_robot(15)
    q = states(robot, 40)[0]
    text = source_of(robot, "mass_matrix", "float64")
    assert "result.leave(224, 1);" in text
    found = launched(tmp_path, robot, "mass_matrix", text, [q], 225)
    same(found.reshape(40, 15, 15), robot.mass_matrix(q, method="crba"))


NO_MACROS: Mapping[str, int] = {}
# methods whose bits are compared: auto may take another one on a GPU
USUAL = {"inverse_dynamics": "rnea", "gravity_torque": "rnea", "mass_matrix": "crba"}


def source_of(robot: lw.Robot, function: str, dtype: str, crowded: bool | None = None) -> str:
    if crowded is None:
        return robot.source(function, "cuda", USUAL[function], dtype=dtype)
    calls = robot._calls
    order = partial(Cuda(0).ordered, dtype=dtype, form="batch")
    task = calls.tasks.task(Key(function, USUAL[function]), dtype)
    program = calls.kernels.ready(calls.kernels.equations(task), order)
    return render_cuda(program, dtype, crowded)


def launched(
    folder: Path,
    robot: lw.Robot,
    function: str,
    text: str,
    inputs: list[np.ndarray],
    size: int,
    macros: Mapping[str, int] = NO_MACROS,
) -> np.ndarray:
    """The result of a kernel's source for these inputs, behind which nothing is written."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    driver = HostDriver(folder)
    count, dtype = len(inputs[0]), inputs[0].dtype.name
    signature = robot._calls.tasks.task(Key(function), dtype).signature(robot.tree)
    turns = "TURNS" in macros
    code = bytes([turns]) + driver.compile(text, macros)
    kernel = Cuda(0, driver).load(code, signature, dtype, "batch")
    out = np.full((count + 1, size), 99, dtype)
    rows = [Rows(x.ctypes.data, count, x.shape[1], dtype, x.shape[1]) for x in (*inputs, out)]
    kernel.launch(rows[:-1], rows[-1:], 0)
    assert (out[count] == 99).all()
    return out[:count]


def wide_robot(joints: int = 16) -> lw.Robot:
    b = lw.Builder("wide")
    for i in range(joints):
        b = b.link(f"l{i}", mass=1.0 + i, com=(0.1, 0.0, 0.2), inertia=(0.1, 0.1, 0.1))
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 4}" if i > 3 else "base", child=f"l{i}",
                    axis=((0, 0, 1), (0, 1, 0), (1, 0, 0))[i % 3], xyz=(0.1, 0.2, 0.3))  # fmt: skip
    return b.build()


@pytest.mark.parametrize(
    ("first", "crowded", "kept"),
    [
        (Facts(128, 100, 0), Facts(128, 100, 0), [{}]),
        (Facts(128, 200, 0), Facts(128, 128, 100), [{}, {"BLOCKS": 3}]),
        (Facts(128, 200, 0), Facts(128, 128, 400), [{}, {"BLOCKS": 3}]),
        (Facts(128, 255, 900), Facts(128, 128, 0), [{}]),
    ],
)
def test_a_kernel_is_told_to_make_room(
    tmp_path: Path, first: Facts, crowded: Facts, kept: list[dict[str, int]]
) -> None:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    driver = HostDriver(tmp_path, lambda macros: crowded if "BLOCKS" in macros else first)
    backend = Cuda(0, driver)
    code = backend.build(lw.load("puma560").source("gravity_torque", "cuda"))
    assert driver.compiled == kept
    told = len(kept) == 2 and crowded.spilled <= 128
    assert code.startswith(b"\0" + repr(kept[-1] if told else {}).encode())


@pytest.mark.parametrize("spilled", [0, 16])
def test_light_kernels_take_turns(tmp_path: Path, spilled: int) -> None:
    """In as many blocks as without turns, unless registers are spilled for it."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    told = {"TURNS": 1, "BLOCKS": 65_536 // (72 * 128)}
    driver = HostDriver(tmp_path, lambda macros: Facts(128, 72, spilled if macros == told else 0))
    text = lw.load("puma560").source("gravity_torque", "cuda", dtype="float32")
    code = Cuda(0, driver).build(text)
    assert driver.compiled == [{}, told, *([{"TURNS": 1}] if spilled else [])]
    assert code.startswith(b"\1" + repr(driver.compiled[-1]).encode())


def test_turns_reach_every_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "BUSY", 1)
    robot = lw.load("puma560")
    q = states(robot, 5 * 128 + 37, "float32")[0]
    text = source_of(robot, "gravity_torque", "float32")
    turns = {"TURNS": 1}
    found = launched(tmp_path, robot, "gravity_torque", text, [q], 6, turns)  # six blocks in two
    same(found, robot.gravity_torque(q))


def test_leading_axes_broadcast_and_rows_may_have_gaps(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 12)
    grid = q.reshape(3, 4, 6)
    found = robot.forward_dynamics(Fake(grid), Fake(qd[:4]), Fake(tau[0]))
    same(found.numbers, robot.forward_dynamics(grid, qd[:4], tau[0]))
    wide = np.zeros((12, 8))
    wide[:, :6] = q
    same(robot.bias(Fake(wide[:, :6]), Fake(qd)).numbers, robot.bias(q, qd))
    assert robot.mass_matrix(Fake(q[:0])).numbers.shape == (0, 6, 6)
    same(robot.mass_matrix(Fake(q[0])).numbers, robot.mass_matrix(q[0]))
    narrow = Fake(qd.astype("float32"))
    same(robot.bias(Fake(q), narrow).numbers, robot.bias(q, qd.astype("float32")))


def test_lists_go_where_the_arrays_are(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, _ = states(robot, 5, "float32")
    found = robot.forward_dynamics(Fake(q), Fake(qd), [0.5] * 6)
    same(found.numbers, robot.forward_dynamics(q, qd, np.full(6, 0.5, "float32")))
    same(robot.integrate(Fake(q), Fake(qd), 0.5).numbers, robot.integrate(q, qd, 0.5))
    signed = [0.0, -0.0, 0.0, -0.0, 0.0, -0.0]
    found = robot.integrate(signed, Fake(qd * 0.0), 0.5)
    same(found.numbers, robot.integrate(np.array(signed, "float32"), qd * 0.0, 0.5))


def test_out_is_written(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 9)
    out = Fake(np.zeros((9, 6)))
    assert robot.forward_dynamics(*map(Fake, (q, qd, tau)), out=out) is out
    expected = robot.forward_dynamics(q, qd, tau)
    same(out.numbers, expected)
    own = Fake(qd.copy())
    assert robot.forward_dynamics(Fake(q), own, Fake(tau), out=own) is own
    same(own.numbers, expected)
    gaps = np.zeros((9, 12))
    robot.forward_dynamics(*map(Fake, (q, qd, tau)), out=Fake(gaps[:, ::2]))
    same(np.ascontiguousarray(gaps[:, ::2]), expected)


def test_the_second_call_of_a_layout_only_reads_pointers(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch, Planning)
    robot = lw.load("puma560")
    for seed in (1, 2, 3):
        q = robot.random_q(seed=seed, size=6)
        same(robot.gravity_torque(Fake(q)).numbers, robot.gravity_torque(q))
        if seed == 1:
            monkeypatch.setattr(devices, "prepare", None)
    assert planned(robot) == {"gravity_torque": 1}
    found, bits = robot.compute("gravity_torque", Fake(q)), None
    same(found.numbers, robot.gravity_torque(q))
    assert bits is None


@pytest.mark.parametrize("status", [False, True])
@pytest.mark.parametrize("into", [False, True])
def test_plans_of_every_kind_of_call(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch, status: bool, into: bool
) -> None:
    """Grids, rows that all states share, wrenches, a status, an ``out``: pointers are enough."""
    take(monkeypatch, Planning)
    robot = lw.load("puma560")
    for turn in range(3):
        q, qd, tau = states(robot, 12)
        q, push = q.reshape(3, 4, 6) + turn, np.full(6, float(turn))
        options: dict[str, Any] = {"status": status}
        if into:
            options["out"] = Fake(np.zeros((3, 4, 6)))
        found = robot.forward_dynamics(
            Fake(q), Fake(qd[0]), Fake(tau.reshape(3, 4, 6)), f_ext={"link6": Fake(push)}, **options
        )
        expected = robot.forward_dynamics(q, qd[0], tau.reshape(3, 4, 6), f_ext={"link6": push})
        same((found[0] if status else found).numbers, expected)
        if into:
            assert (found[0] if status else found) is options["out"]
        if status:
            assert found[1].numbers.shape == (3, 4) and not found[1].numbers.any()
        monkeypatch.setattr(devices, "prepare", None)
    assert planned(robot) == {"forward_dynamics": 1}


def test_a_plan_leaves_what_is_unusual_to_others(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch, Planning)
    robot = lw.load("puma560")
    q = robot.random_q(seed=0, size=6)
    out = Fake(np.zeros((6, 6)))
    robot.gravity_torque(Fake(q), out=out)
    robot.gravity_torque(Fake(q))
    assert planned(robot) == {"gravity_torque": 2}
    both = Fake(q.copy())
    assert robot.gravity_torque(both, out=both) is both, "an out that overlaps"
    same(both.numbers, robot.gravity_torque(q))
    room = np.zeros(6 * 6 * 8 + 4, np.uint8)
    askew = room[4:].view(np.float64).reshape(6, 6)
    assert not askew.flags.aligned
    with pytest.raises(ValueError, match="not at a whole float64"):
        robot.gravity_torque(Fake(askew))
    with pytest.raises(ValueError, match="leading axes do not broadcast"):
        robot.bias(Fake(q), Fake(q[:5]))
    with pytest.raises(TypeError, match="cuda:1"):
        robot.gravity_torque(Fake(q), out=Fake(out.numbers, device=1))
    strided = np.zeros((6, 12))
    robot.gravity_torque(Fake(q), out=Fake(strided[:, ::2]))
    same(np.ascontiguousarray(strided[:, ::2]), robot.gravity_torque(q))
    assert planned(robot) == {"gravity_torque": 2}


def test_plans_are_forgotten_before_they_are_too_many(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch, Planning)
    monkeypatch.setattr(devices, "MOST_PLANS", 4)
    robot = lw.load("puma560")
    for count in range(1, 11):
        q = robot.random_q(seed=0, size=count)
        same(robot.gravity_torque(Fake(q)).numbers, robot.gravity_torque(q))
    assert planned(robot) == {"gravity_torque": 2}


def test_arrays_on_a_gpu_need_no_compiler_for_the_processor(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with a GPU and without llvmlite."""
    take(monkeypatch, Planning)
    q = lw.load("puma560").random_q(seed=0, size=6)
    expected = lw.load("puma560").gravity_torque(q)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    for name in [m for m in sys.modules if m.startswith("linkwise.backends.llvm")]:
        monkeypatch.setitem(sys.modules, name, None)
    same(lw.load("puma560").gravity_torque(Fake(q)).numbers, expected)


def test_two_devices_have_kernels_of_their_own(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch, Planning)
    robot = lw.load("puma560")
    q = robot.random_q(seed=0, size=6)
    for _ in range(2):
        for device in (0, 1):
            found = robot.gravity_torque(Fake(q, device))
            assert found.device == device
            same(found.numbers, robot.gravity_torque(q))
    assert [sum(map(len, (f.launches for f in drivers[d].functions))) for d in (0, 1)] == [2, 2]
    same(robot.gravity_torque(q, device="cuda:1"), robot.gravity_torque(q))
    assert [stream for f in drivers[1].functions for _, stream in f.launches] == [7, 7, 5]


class Driver:
    """The functions of NVIDIA's driver that a launch calls, and ``current``, which it may need.

    A context is the number of its device; 9 stands for none.
    """

    def __init__(self, current: int) -> None:
        self.device = current
        self.launched: list[tuple[int, int, int, int, list[int]]] = []

    def current(self, place: Any) -> int:
        place._obj.value = self.device
        return 0

    def launch(self, config: Any, handle: Any, places: Any, _: None) -> int:
        if self.device == 9:
            return NOT_CURRENT
        c, at = config._obj, places._obj
        values = [ctypes.c_longlong.from_address(x).value for x in at]
        self.launched.append((self.device, c.blocks, c.threads, c.stream, values))
        return 0

    def switched(self, device: int) -> Any:
        @contextmanager
        def there() -> Iterator[None]:
            before, self.device = self.device, device
            yield
            self.device = before

        return there()


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("current", [1, 0, 9])
def test_a_kernel_is_started_on_its_device(
    monkeypatch: pytest.MonkeyPatch, alone: bool, current: int
) -> None:
    """Device 1's, whichever is current, and that stays so; rooms for arguments are used again."""
    if alone and current == 0:
        pytest.skip("no other device to be current")
    fake = Driver(current)
    monkeypatch.setattr(driver_module, "current", fake.switched)
    function = CudaFunction.__new__(CudaFunction)
    for name, value in {"_device": 1, "_handle": None, "_context": 1, "_alone": alone,
                        "_driver": fake, "facts": Facts(64, 32, 0)}.items():  # fmt: skip
        setattr(function, name, value)
    start = function.prepare(3, [170, None, 6, None, 0, None])
    start(70, [1 << 40, 2 << 40, 3 << 40])
    start(80, [4 << 40, 5 << 40, 6 << 40])
    start(0, [7 << 40, 8 << 40, 9 << 40])
    wanted = [
        [170, (3 * k + 1) << 40, 6, (3 * k + 2) << 40, 0, (3 * k + 3) << 40] for k in range(3)
    ]
    streams = (70, 80, None)
    assert fake.launched == [(1, 3, 64, s, x) for s, x in zip(streams, wanted, strict=True)]
    assert fake.device == current


def test_a_kernel_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Driver(1)
    monkeypatch.setattr(fake, "launch", lambda *_: 701)
    function = CudaFunction.__new__(CudaFunction)
    for name, value in {"_device": 1, "_handle": None, "_context": 1, "_alone": True,
                        "_driver": fake, "facts": Facts(64, 32, 0)}.items():  # fmt: skip
        setattr(function, name, value)
    with pytest.raises(RuntimeError, match="refused a kernel of 3 blocks: CUDA error 701"):
        function.prepare(3, [1, None])(0, [8])


def test_graphs_record_calls_that_were_made_before(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is loaded, compiled or copied from the host while a stream records a graph."""
    robot = lw.load("puma560")
    q, qd, tau = map(Fake, states(robot, 6))
    out = Fake(np.zeros((6, 6)))
    host.captured.add(7)
    with pytest.raises(RuntimeError, match=r"forward_dynamics: its kernel is not loaded.*once be"):
        robot.forward_dynamics(q, qd, tau, out=out)
    assert not host.compiled
    host.captured.clear()
    expected = robot.forward_dynamics(q, qd, tau).numbers
    host.captured.add(7)
    robot.forward_dynamics(q, qd, tau, out=out)
    same(out.numbers, expected)
    with pytest.raises(RuntimeError, match="tau is not on the GPU, and copies from the host"):
        robot.forward_dynamics(q, qd, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    robot.forward_dynamics(q, qd, [0.0] * 6)  # made there
    monkeypatch.setattr(FakeLibrary, "keeps_graphs", False)
    robot.forward_dynamics(q, qd, tau, out=out)
    needs = "forward_dynamics: needs room for {}, which FakeGPU does not keep for a graph"
    with pytest.raises(RuntimeError, match=needs.format("an array for tau")):
        robot.forward_dynamics(q, qd, [0.0] * 6)
    with pytest.raises(RuntimeError, match=needs.format("a result beside out")):
        robot.forward_dynamics(q, qd, tau, out=qd)
    grid = Fake(tau.numbers[::2].reshape(3, 1, 6))
    with pytest.raises(RuntimeError, match=needs.format("a copy of q")):
        robot.forward_dynamics(q, qd, grid)
    with pytest.raises(RuntimeError, match=needs.format("an array for tol")):
        robot.forward_dynamics(q, qd, tau, qdd0=tau, method="pcg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            lambda q: (Fake(q), q, Fake(q)),
            "forward_dynamics: qd is an array of NumPy on cpu, q one of FakeGPU on cuda:0; "
            "expected one library and one device",
        ),
        (
            lambda q: (Fake(q), Fake(q), Fake(q, device=1)),
            "forward_dynamics: tau is an array of FakeGPU on cuda:1, q one of FakeGPU on cuda:0",
        ),
        (
            lambda q: (Fake(q), Fake(q[:, :5]), Fake(q)),
            r"forward_dynamics: qd has shape \(4, 5\); expected \(..., 6\)",
        ),
        (
            lambda q: (Fake(q), Fake(q.astype(int)), Fake(q)),
            "forward_dynamics: qd has dtype int64; expected float32 or float64",
        ),
        (
            lambda q: (Fake(q), Fake(q[:3]), Fake(q)),
            "forward_dynamics: leading axes do not broadcast",
        ),
    ],
)
def test_arguments_that_do_not_fit(
    host: HostDriver, arguments: Callable[[np.ndarray], tuple[Any, ...]], message: str
) -> None:
    robot = lw.load("puma560")
    with pytest.raises((TypeError, ValueError), match=message):
        robot.forward_dynamics(*arguments(np.zeros((4, 6))))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((4, 6)), "out is a ndarray; expected an array of FakeGPU on cuda:0"),
        (Fake(np.zeros((4, 7))), r"out has shape \(4, 7\); expected \(4, 6\)"),
        (Fake(np.zeros((4, 6), "float32")), "out has dtype float32; expected float64"),
    ],
)
def test_an_out_that_does_not_fit(host: HostDriver, out: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        lw.load("puma560").gravity_torque(Fake(np.zeros((4, 6))), out=out)


def test_without_a_driver_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    driver = Cuda(0)
    with pytest.raises(lw.BackendUnavailable, match=r"pip install 'linkwise\[cuda\]'"):
        driver.identity  # noqa: B018


def test_arrays_of_numpy_are_moved_when_asked(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 12)
    same(robot.forward_dynamics(q, qd, tau, device="cuda"), robot.forward_dynamics(q, qd, tau))
    assert len(host.functions) > 0, "a kernel of the GPU"
    grid = q.reshape(3, 4, 6)
    found = robot.forward_dynamics(grid, qd[0], [0.0] * 6, device="cuda:0")
    same(found, robot.forward_dynamics(grid, qd[0], [0.0] * 6))
    out = np.zeros((12, 6, 6), "float32")
    narrow = q.astype("float32")
    found, bits = robot.mass_matrix(narrow, out=out, status=True, device="cuda")
    assert found is out and not bits.any()
    same(out, robot.mass_matrix(narrow))
    launched = len(host.functions)
    same(robot.gravity_torque(q, device="cpu"), robot.gravity_torque(q))
    assert len(host.functions) == launched


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", 0, "mps"])
def test_devices_that_do_not_exist(device: Any) -> None:
    robot = lw.load("puma560")
    message = f"device {device!r}: expected 'cpu', 'cuda' or, for another GPU, 'cuda:1'"
    with pytest.raises(ValueError, match=re.escape(message)):
        robot.gravity_torque(np.zeros(6), device=device)
    with pytest.raises(ValueError, match=re.escape(message)):
        robot.method_for("forward_dynamics", device)


def test_arrays_elsewhere_are_not_moved(host: HostDriver) -> None:
    robot = lw.load("puma560")
    with pytest.raises(TypeError, match="gravity_torque: device= is for arrays of NumPy"):
        robot.gravity_torque(Fake(np.zeros((4, 6))), device="cuda")
    with pytest.raises(TypeError, match="forward_dynamics: device= is for arrays of NumPy"):
        robot.forward_dynamics(*[Fake(np.zeros((4, 6)))] * 3, method="pcg", device="cuda")


def test_auto_has_numbers_of_its_own_for_a_gpu(host: HostDriver) -> None:
    robot = lw.Robot(generic_chain(3))
    here, there = (robot.method_for("coriolis_matrix", device) for device in ("cpu", "cuda"))
    assert (here, there) == ("composite", "mixed")
    q, qd, _ = states(robot, 3)
    expected = robot.coriolis_matrix(q, qd, method=there)
    same(robot.coriolis_matrix(Fake(q), Fake(qd)).numbers, expected)
    same(robot.coriolis_matrix(q, qd, device="cuda"), expected)
    assert not (expected == robot.coriolis_matrix(q, qd)).all(), "the CPU's method rounds otherwise"
    assert robot.source("coriolis_matrix", "cuda") == robot.source("coriolis_matrix", "cuda", there)


def test_the_method_that_auto_takes_is_named() -> None:
    robot = lw.load("puma560")
    for device in ("cpu", "cuda"):
        assert robot.method_for("forward_dynamics", device) == "crba"
        assert robot.method_for("inverse_dynamics", device) == "rnea"
    with pytest.raises(ValueError, match="function 'fly'"):
        robot.method_for("fly")


def test_overlap_of_arrays_that_run_backward() -> None:
    base, overlap = 1000 * 8, devices.overlap
    forward = View(base + 8 * 6, (5, 6), (6, 1), "float64")
    backward = View(base + 8 * 24, (5, 6), (-6, 1), "float64")  # rows 4 to 0
    assert overlap(forward, backward) and overlap(backward, forward)
    assert not overlap(backward, View(base + 8 * 30, (5, 6), (6, 1), "float64"))
    assert not overlap(forward, View(base, (0, 6), (6, 1), "float64"))


def test_an_out_that_overlaps_backward_rows(host: HostDriver) -> None:
    robot = lw.load("puma560")
    base = robot.random_q(seed=0, size=6)
    q, out = base[:5][::-1], base[1:6]
    expected = robot.gravity_torque(q.copy())
    robot.gravity_torque(Fake(q), out=Fake(out))
    same(out, expected)


def test_shared_memory_is_not_exceeded() -> None:
    """48 places of float64 for 128 threads are all that a block may have."""
    b = lw.Builder("boundary")
    b = b.link("hull", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = b.joint("base", "free", parent="base", child="hull")
    for i in range(17):
        parent = f"l{i - 1}" if i else "hull"
        b = b.link(f"l{i}", mass=1.0, inertia=(0.1, 0.1, 0.1)).joint(
            f"j{i}", "revolute", parent=parent, child=f"l{i}", axis=(0, 0, 1), xyz=(0.1, 0, 0)
        )
    text = b.build().source("kinetic_energy", "cuda")
    ((threads, places),) = re.findall(r"#define THREADS (\d+)(?s:.*)room\[THREADS \* (\d+)\]", text)
    assert 8 * int(threads) * int(places) <= 48 * 1024 < 8 * 2 * int(threads) * int(places)


def test_threads_are_checked_in_every_call(host: HostDriver) -> None:
    robot = lw.load("puma560")
    for _ in range(2):
        with pytest.raises(ValueError, match="threads is 'x'; expected a positive integer"):
            robot.gravity_torque(Fake(np.zeros((4, 6))), threads="x")


def test_numbers_that_do_not_begin_at_one() -> None:
    with pytest.raises(ValueError, match="q: begins at 0x3e9, not at a whole float64"):
        backend_module._check("q", Rows(1001, 4, 6, "float64", 6), 4, 6, "float64")
    with pytest.raises(ValueError, match=r"q: rows \(3, 6\) of float64; expected \(4, 6\)"):
        backend_module._check("q", Rows(1000, 3, 6, "float64", 6), 4, 6, "float64")


def test_steps_of_time_beside_arrays_elsewhere(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, _ = states(robot, 5)
    expected = robot.integrate(q, qd, 0.25)
    for dt in (0.25, np.float64(0.25), [0.25] * 5):
        same(robot.integrate(Fake(q), Fake(qd), dt).numbers, expected)


def agree(
    found: tuple[Any, iterative.Iterations], expected: tuple[Any, iterative.Iterations]
) -> None:
    same(found[0].numbers, expected[0], 1e6)
    for own, other in zip(found[1], expected[1], strict=True):
        assert own.numbers.dtype == other.dtype
        if FUSED:  # else an iteration may end a step earlier, or later
            np.testing.assert_array_equal(own.numbers, other)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_iterations_elsewhere(host: HostDriver, dtype: str) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 8, dtype)
    q[2, 1] = np.nan
    for options in ({}, {"max_iterations": 2}, {"tol": 1e-3, "f_ext": {"link6": [1.0] * 6}}):
        found = robot.forward_dynamics(
            *map(Fake, (q, qd, tau)), method="pcg", status=True, **options
        )
        pushed = {"f_ext": {"link6": np.ones(6, dtype)}} if "f_ext" in options else {}
        expected = robot.forward_dynamics(
            q, qd, tau, method="pcg", status=True, **{**options, **pushed}
        )
        agree(found, expected)
        assert expected[1].status[2] == lw.Status.NOT_FINITE
        if "max_iterations" in options:
            assert (np.delete(expected[1].status, 2) == lw.Status.NOT_CONVERGED).all()
    grid, out = q.reshape(2, 4, 6), Fake(np.zeros((2, 4, 6), dtype))
    found = robot.forward_dynamics(
        Fake(grid), Fake(qd[:4]), Fake(tau[0]), method="ccg", status=True, out=out
    )
    assert found[0] is out
    agree(found, robot.forward_dynamics(grid, qd[:4], tau[0], method="ccg", status=True))


def test_iterations_of_no_state_and_of_no_joint(host: HostDriver) -> None:
    robot = lw.load("puma560")
    none = np.zeros((0, 6))
    found = robot.forward_dynamics(*[Fake(none)] * 3, method="pcg", status=True)
    agree(found, robot.forward_dynamics(none, none, none, method="pcg", status=True))


def test_arrays_of_numpy_are_moved_for_iterations(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 8)
    for options in ({}, {"max_iterations": 2}):
        found = robot.forward_dynamics(q, qd, tau, method="pcg", device="cuda", **options)
        same(found, robot.forward_dynamics(q, qd, tau, method="pcg", **options))
    assert host.functions


class Foreign:
    """An array of no library that linkwise knows: only the array interface."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.numbers.__array_interface__, "version": 3}


def seen(array: Any, stream: int = -1) -> tuple[View, int | None]:
    """What ``cuda-core`` tells of an array, for memory of the host."""
    there = array.__cuda_array_interface__
    dtype = np.dtype(there["typestr"])
    strides = there["strides"]
    own = tuple(s // dtype.itemsize for s in strides) if strides else None
    shape = there["shape"]
    return View(there["data"][0], shape, own or contiguous(shape), dtype.name), 0


def numbers(block: Any) -> np.ndarray:
    """A result of our own as NumPy's array."""
    there = block.__cuda_array_interface__
    assert there["stream"] == 5 and there["version"] == 3
    plain = ModuleType("plain")
    plain.__array_interface__ = {**there, "version": 3}  # type: ignore[attr-defined]
    return np.array(plain)


@pytest.fixture
def exchange(host: HostDriver, monkeypatch: pytest.MonkeyPatch) -> HostDriver:
    monkeypatch.setattr(libraries, "seen", seen)
    return host


def test_arrays_of_unknown_libraries(exchange: HostDriver) -> None:
    """In any shape, number type and layout, broadcast, beside lists, into an ``out``."""
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 12)
    grid, wide = q.reshape(3, 1, 4, 6), qd.reshape(3, 4, 6)[:, None]
    found = robot.forward_dynamics(Foreign(grid), Foreign(qd[:4]), [0.5] * 6)
    same(numbers(found), robot.forward_dynamics(grid, qd[:4], [0.5] * 6))
    narrow = tau.astype("float32")
    for other in (narrow, tau[::-1], tau[0], np.asfortranarray(tau)):
        found, bits = robot.inverse_dynamics(Foreign(q), Foreign(qd), Foreign(other), status=True)
        same(numbers(found), robot.inverse_dynamics(q, qd, other))
        assert not numbers(bits).any()
    found = robot.forward_dynamics(Foreign(grid), Foreign(wide), Foreign(tau[0]))
    same(numbers(found), robot.forward_dynamics(grid, wide, tau[0]))
    out = np.zeros((6, 12))
    assert robot.gravity_torque(Foreign(q), out=(there := Foreign(out.T))) is there
    same(np.ascontiguousarray(out.T), robot.gravity_torque(q))
    assert exchange.waits == 1, "nobody else knows our stream"
    same(numbers(robot.mass_matrix(Foreign(q[0]))), robot.mass_matrix(q[0]))
    assert numbers(robot.mass_matrix(Foreign(q[:0]))).shape == (0, 6, 6)
    dt = np.linspace(0.0, 1.0, 12)
    same(numbers(robot.integrate(Foreign(q), Foreign(qd), Foreign(dt))), robot.integrate(q, qd, dt))
    factors = robot.innovations(Foreign(q))
    same(numbers(factors.factor), robot.innovations(q).factor)
    assert {stream for f in exchange.functions for _, stream in f.launches} == {5}


def test_iterations_of_unknown_libraries(exchange: HostDriver) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 12)
    q[5, 0] = np.inf
    grid = q.reshape(3, 4, 6)
    for method in ("ccg", "pcg"):
        found, info = robot.forward_dynamics(
            Foreign(grid), Foreign(qd[:4]), Foreign(tau[0]), method=method, status=True
        )
        expected, own = robot.forward_dynamics(grid, qd[:4], tau[0], method=method, status=True)
        same(numbers(found), expected, 1e6)
        for a, b in zip(info, own, strict=True) if FUSED else ():
            np.testing.assert_array_equal(numbers(a), b)
            assert numbers(a).dtype == b.dtype


class OnHost(FakeLibrary):
    """A library whose arrays are on the CPU, as PyTorch's may be."""

    name = "Elsewhere"

    def place(self, array: Fake) -> str:
        return "cpu"

    def to_numpy(self, array: Fake) -> np.ndarray:
        return array.numbers

    def from_numpy(self, array: Any) -> Fake:
        return Fake(np.asarray(array))


def test_arrays_of_another_library_on_the_cpu(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch, OnHost)
    robot = lw.load("puma560")
    q, qd, _ = states(robot, 4, "float32")
    found = robot.integrate(Fake(q), Fake(qd), 0.5)
    same(found.numbers, robot.integrate(q, qd, 0.5))
    out = Fake(np.zeros((4, 6), "float32"))
    assert robot.gravity_torque(Fake(q), out=out) is out
    same(out.numbers, robot.gravity_torque(q))
    with pytest.raises(TypeError, match="out is a list; expected an array of Elsewhere on cpu"):
        robot.gravity_torque(Fake(q), out=[[0.0] * 6] * 4)
    result, bits = robot.gravity_torque(Fake(q), status=True)
    assert isinstance(result, Fake) and not bits.numbers.any()


def test_constants_beyond_a_number_type() -> None:
    assert DIALECTS["float32"].literal(1e39) == "INFINITY"
    assert DIALECTS["float64"].literal(-0.0) == "(-0.0)"
    assert DIALECTS["float32"].literal(0.1) == "0.10000000149011612f"


def test_iterations_of_arrays_on_the_cpu(host: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, OnHost)
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 4, "float32")
    push = np.ones((4, 6), "float32")
    found, info = robot.forward_dynamics(
        *map(Fake, (q, qd, tau)), method="pcg", f_ext={"link6": Fake(push)}, status=True
    )
    expected, own = robot.forward_dynamics(
        q, qd, tau, method="pcg", f_ext={"link6": push}, status=True
    )
    same(found.numbers, expected, 1e6)
    for a, b in zip(info, own, strict=True) if FUSED else ():
        np.testing.assert_array_equal(a.numbers, b)


def test_factors_keep_the_configuration_they_were_made_at(host: HostDriver) -> None:
    robot = lw.load("puma560")
    q = robot.random_q(seed=0, size=3)
    expected = robot.innovations(q).factor
    moving = Fake(q.copy())
    factors = robot.innovations(moving)
    moving.numbers += 1.0
    same(factors.factor.numbers, expected)


def test_arrays_of_jax(host: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where JAX is installed: callbacks with the memory of its CPU arrays, as if on a GPU."""
    jax = pytest.importorskip("jax")

    class OnDevice(libraries.Jax):
        def place(self, array: Any) -> str:
            return "cuda:0"

    def told(context: Any, buffers: Sequence[Any]) -> tuple[int, list[int]]:
        return 7, [np.asarray(x).ctypes.data for x in buffers]

    monkeypatch.setitem(libraries.KNOWN, "jax", ("Array", OnDevice))
    monkeypatch.setattr(libraries, "stream_and_pointers", told)
    libraries._library.cache_clear()
    libraries.library_of_class.cache_clear()
    robot, there = lw.load("puma560"), jax.numpy.asarray
    with jax.enable_x64(True):
        q, qd, tau = states(robot, 12)
        expected = robot.forward_dynamics(q, qd, tau)
        for _ in range(3):
            found, bits = robot.forward_dynamics(*map(there, (q, qd, tau)), status=True)
            same(np.asarray(found), expected)
            assert bits.shape == (12,) and not np.asarray(bits).any()
        traced = jax.jit(robot.forward_dynamics)(*map(there, (q, qd, tau)))
        same(np.asarray(traced), expected)
        narrow = qd.astype("float32")
        for _ in range(2):  # no plan: an array had to be made
            same(np.asarray(robot.bias(there(q), there(narrow))), robot.bias(q, narrow))
        grid = q.reshape(3, 4, 6)
        for method in ("auto", "pcg"):
            found = robot.forward_dynamics(there(grid), there(qd[:4]), [0.5] * 6, method=method)
            half = np.full(6, 0.5)
            same(np.asarray(found), robot.forward_dynamics(grid, qd[:4], half, method=method))
        assert robot.mass_matrix(there(q[:0])).shape == (0, 6, 6)
        with pytest.raises(TypeError, match="out is an array of JAX, which cannot be written"):
            robot.gravity_torque(there(q), out=there(q))
        assert planned(robot) == {"forward_dynamics": 1}


def test_tensors(host: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyTorch is installed: its CPU tensors, as if on a GPU, by plans and without."""
    torch = pytest.importorskip("torch")

    class OnDevice(libraries.Torch):
        def place(self, array: Any) -> str:
            return "cuda:0"

        def stream(self, device: int) -> int:
            return 7

        def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
            return torch.empty(shape, dtype=getattr(torch, dtype))

        def constant(self, numbers: np.ndarray, device: int) -> Any:
            return torch.from_numpy(numbers)

        def full(self, shape: tuple[int, ...], number: float, dtype: str, device: int) -> Any:
            return torch.full(shape, number, dtype=getattr(torch, dtype))

    monkeypatch.setitem(libraries.KNOWN, "torch", ("Tensor", OnDevice))
    libraries._library.cache_clear()
    libraries.library_of_class.cache_clear()
    robot, there = lw.load("puma560"), torch.from_numpy
    q, qd, tau = states(robot, 12)
    expected = robot.forward_dynamics(q, qd, tau)
    for _ in range(3):
        on = [there(x) for x in (q, qd, tau)]
        found, bits = robot.forward_dynamics(*on, status=True)
        same(found.numpy(), expected)
        assert bits.dtype == torch.uint16 and bits.shape == (12,) and not bits.any()
        out = torch.empty_like(on[0])
        assert robot.forward_dynamics(*on, out=out) is out
        same(out.numpy(), expected)
        same(robot.forward_dynamics(*on).numpy(), expected)
        same(robot.mass_matrix(on[0]).numpy(), robot.mass_matrix(q))
        columns = there(np.asfortranarray(q))  # dense, but no rows: a result like it would be wrong
        same(robot.gravity_torque(columns).numpy(), robot.gravity_torque(q))
        shared = robot.forward_dynamics(on[0], on[1][0], on[2], method="pcg")
        same(shared.numpy(), robot.forward_dynamics(q, qd[0], tau, method="pcg"))
        for wrong, message in (
            (on[0].bfloat16(), "q has dtype bfloat16; expected float32 or float64"),
            (on[0].to_sparse(), r"q is a sparse tensor.*q\.to_dense\(\)"),
            (torch._neg_view(on[0]), r"negated.*expected q\.resolve_neg\(\)"),
            (on[0].clone().requires_grad_(), r"expected q\.detach\(\)"),
            (on[0][0, 0], r"q has shape \(\); expected \(\.\.\., 6\)"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                robot.mass_matrix(wrong)
        with pytest.raises(TypeError, match="q has no memory, as inside"):
            torch.vmap(robot.mass_matrix)(on[0][None])
    assert planned(robot) == {"forward_dynamics": 3, "mass_matrix": 1}


def test_long_results_of_crowded_kernels_leave_in_groups(tmp_path: Path) -> None:
    """Where registers do not hold all values, a result of 169 numbers goes by a tile."""
    robot = lw.Robot(generic_chain(13))
    q = states(robot, 37)[0]
    text = robot.source("mass_matrix_inverse", "cuda", "crba")
    assert "struct Tile" in text and "own_q[] = {q[" in text, "and inputs are read in place"
    found = launched(tmp_path, robot, "mass_matrix_inverse", text, [q], 169)
    same(found.reshape(37, 13, 13), robot.mass_matrix_inverse(q, method="crba"))


def test_results_have_room_before_inputs() -> None:
    """Of two inputs of 13 numbers and a result of 169, 192 places hold one input and the result."""
    text = lw.Robot(generic_chain(13)).source("coriolis_matrix", "cuda", "composite")
    assert "own_q = warp + 0 * WARP + own * 13;" in text and "own_qd[] = {qd[" in text
    assert "own_result = warp + 13 * WARP + lane * 169;" in text


# -- loops over the links --------------------------------------------------------------------------

LOOPING: dict[str, Callable[[], lw.Robot]] = {
    "chain": lambda: lw.chain(9, "random"),
    "mixed": lambda: lw.chain(12, "random", joints=("revolute", "spherical", "prismatic")),
    "tree": wide_robot,
    "arm": lambda: lw.load("puma560"),
}
ROLLED = [(f, m) for f, methods in FUNCTIONS.items() for m, x in methods.items()
          if x.rolls and not x.scans]  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[] if x == "mixed" else pytest.mark.full) for x in LOOPING]
)
@pytest.mark.parametrize(("function", "method"), ROLLED)
def test_loops_give_the_bits_of_the_cpu(
    tmp_path: Path, name: str, function: str, method: str
) -> None:
    """Every method that can be loops, in both number types, a state without an answer among 71."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    robot = LOOPING[name]()
    algorithm, tree = FUNCTIONS[function][method], robot.tree
    if algorithm.why_not(tree) or not algorithm.can_roll(tree):
        pytest.skip("not for this robot")
    frame = tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    forced = (tree.frames[robot.frame_names[-2]],) if algorithm.takes_external else ()
    task = Task(algorithm, frame, "base", forced, status=True, rolled=True)
    driver = HostDriver(tmp_path)
    there, here, rng = Cuda(0, driver), Llvm(), np.random.default_rng(5)
    program = guard(trace_rolled(task, tree))
    for dtype in ("float64", "float32"):
        given = {p.name: rng.normal(size=(71, p.size)).astype(dtype) for p in program.inputs}
        for k, port in enumerate(given.keys() & {"q", "q0", "q1"}):
            given[port] = robot.random_q(seed=k, size=71).astype(dtype)
        next(iter(given.values()))[5, 0] = np.nan
        inputs = list(given.values())
        results = []
        for backend in (there, here):
            ordered = backend.ordered(trace_rolled(task, tree), dtype, "batch")
            text = backend.render(guard(ordered), dtype, "batch")
            code = backend.build(text)
            kernel = backend.load(code, program.signature, dtype, "batch")
            outputs = [np.full((71, o.size), 9, dtype if o.kind == NUMBER else np.uint16)
                       for o in program.signature.outputs]  # fmt: skip
            kernel(inputs, outputs)
            results.append(outputs)
        assert np.isnan(results[0][0][5]).all()
        if (name, function) != ("tree", "operational_inertia"):  # four joints move its frame
            assert not np.isnan(results[0][0][6]).any()
        same(results[0][0], results[1][0])
        assert (results[0][1] == results[1][1]).all()
    assert not driver.taken, "all memory was given back"


def test_large_robots_are_loops_on_a_gpu(host: HostDriver) -> None:
    robot = lw.chain(90)
    arrays = states(robot, 40)
    for _ in range(2):
        found = robot.forward_dynamics(*map(Fake, arrays))
        same(found.numbers, robot.forward_dynamics(*arrays))
    assert "loops over the links" in robot.source("forward_dynamics", "cuda")
    assert "loops over the links" not in lw.chain(9).source("forward_dynamics", "cuda")
    small = lw.chain(9)
    found = small.with_codegen("rolled").inverse_dynamics(*(Fake(x[:, :9]) for x in arrays))
    expected = small.with_codegen("rolled").inverse_dynamics(*(x[:, :9] for x in arrays))
    same(found.numbers, expected)
    same(robot.inverse_dynamics(*arrays, device="cuda"), robot.inverse_dynamics(*arrays))
    assert not host.taken, "what was taken for a kernel was given back"


@pytest.mark.parametrize(
    ("links", "dtype"),
    [(1, "float64"), (700, "float64")]
    + [
        pytest.param(n, t, marks=pytest.mark.full)
        for n in (7, 1100)
        for t in ("float32", "float64")
    ],
)
def test_pieces_of_chains_on_a_gpu(host: HostDriver, links: int, dtype: str) -> None:
    """Scans agree with those of the CPU to rounding, whatever is left when a chain is cut."""
    robot = lw.chain(links, "random", seed=2).with_codegen("rolled")
    rng = np.random.default_rng(1)
    q, qd, x = (rng.normal(size=(2, links)).astype(dtype) for _ in range(3))
    push = {"tip": rng.normal(size=6).astype(dtype)}
    calls = [
        ("forward_dynamics", (q, qd, x), {}),
        ("forward_dynamics", (q, qd, x), {"f_ext": push}),
        ("inverse_dynamics", (q, qd, x), {}),
        ("forward_kinematics", (q,), {"frame": "tip"}),
        ("operational_inertia_inverse", (q,), {"frame": "tip"}),
    ]
    for function, values, options in calls:
        call = getattr(robot, function)
        expected = call(*values, **options, method="scan")
        there = {k: {n: Fake(f) for n, f in v.items()} if k == "f_ext" else v
                 for k, v in options.items()}  # fmt: skip
        found = call(*map(Fake, values), **there, method="scan").numbers
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < 40 * np.finfo(dtype).eps * links**0.5, function
    x[1, -1] = np.inf
    found = robot.inverse_dynamics(*map(Fake, (q, qd, x)), method="scan").numbers
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()
    assert not host.taken, "all memory was given back"


def floating(links: int) -> lw.Robot:
    """A chain of revolute joints whose base is free."""
    builder, parent = lw.Builder("floating"), "base"
    for k in range(links):
        body = {"mass": 1.0, "com": (0.05, 0.01, 0.0), "inertia": (0.01, 0.02, 0.02)}
        axis = {"axis": (0.0, 1.0, 0.0)} if k else {}
        kind = "revolute" if k else "free"
        builder = builder.link(f"l{k}", **body).joint(
            f"j{k}", kind, parent=parent, child=f"l{k}", xyz=(0.1, 0.0, 0.01), **axis
        )
        parent = f"l{k}"
    return builder.build()


SEVERAL_AXES = {
    "ball": lambda: lw.chain(57, "random", joints=("spherical",)),
    "mixed": lambda: lw.chain(131, "random", joints=("revolute", "spherical", "prismatic")),
    "floating": lambda: floating(61),
}


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_pieces_of_joints_of_several_axes(host: HostDriver, name: str, dtype: str) -> None:
    """Links have as many numbers as their joints do; a status says what is wrong with a state."""
    robot = SEVERAL_AXES[name]().with_codegen("rolled")
    q, qd, tau = states(robot, 4, dtype)
    qd, tau = qd / 10, tau / 10
    q[1] = 1.01 * robot.neutral()  # quaternions of another length, and zeros
    qd[2, 5] = np.nan
    tau[3, -1] = np.finfo(dtype).max
    expected, told = robot.forward_dynamics(q, qd, tau, method="scan", status=True)
    found, there = robot.forward_dynamics(*map(Fake, (q, qd, tau)), method="scan", status=True)
    np.testing.assert_array_equal(there.numbers, told)
    assert list(told[:3]) == [0, lw.Status.NOT_UNIT, lw.Status.NOT_FINITE]
    np.testing.assert_array_equal(np.isnan(found.numbers), np.isnan(expected))
    exact = robot.forward_dynamics(*(x[:2].astype(float) for x in (q, qd, tau)), method="aba")
    size = np.abs(exact).max()
    error = np.abs(found.numbers[:2] - exact).max() / size
    bound = 40 * np.finfo(dtype).eps * robot.nv**0.5
    assert error < 10 * np.abs(expected[:2] - exact).max() / size + bound
    assert not host.taken, "all memory was given back"


@pytest.mark.full
def test_the_status_of_a_result_of_the_whole_chain(host: HostDriver) -> None:
    robot = lw.chain(31, "random").with_codegen("rolled")
    q = states(robot, 2)[0]
    q[1, 7] = np.inf
    given = {"frame": "tip", "method": "scan", "status": True}
    expected, told = robot.operational_inertia_inverse(q, **given)
    found, there = robot.operational_inertia_inverse(Fake(q), **given)
    assert list(there.numbers) == list(told) == [0, lw.Status.NOT_FINITE]
    np.testing.assert_allclose(found.numbers[0], expected[0], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_text_of_kernels_of_pieces(dtype: str) -> None:
    """Pieces of two lengths are rows of one kernel; and whatever a loop sends itself ahead has
    landed when the loop is done, because what comes next has the same place.
    """
    task = replace(Task(FUNCTIONS["forward_dynamics"]["scan"]), rolled=True)
    tree = lw.chain(1003, "random").tree
    length_of = partial(device_scans.piece_length, dtype=dtype)
    (own,) = scans.traced(task, tree, length_of, 32, dtype, on_device=True)
    assert own.longer and own.pieces * own.length + own.longer == 1003
    backend, loops = Cuda(0), 0
    for program in own.programs:
        assert list(program.lists["steps"]) == [own.length, own.length + 1]
        assert list(program.lists["longer"]) == [own.longer]
        text = backend.render(program, dtype, "batch")
        assert "of_steps + (row < longer)" in text and "of_last + (row < longer)" in text
        lines = text.splitlines()
        for k, line in enumerate(lines):
            if line.strip() == "ARRIVED;":
                end = lines.index("    }", k)
                assert lines[end + 1] == "    COPIED;", f"after line {end} of {program.name}"
                loops += 1
    assert loops == 6


def test_loops_take_states_in_turns_where_room_is_short(
    host: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for as many blocks of 32 states as run at once, in at most half of the memory."""
    robot = lw.chain(70)
    arrays = states(robot, 330)
    expected = robot.inverse_dynamics(*arrays)

    def blocks(layout: int) -> list[int]:
        """Blocks that were asked for, with rows so far apart that no plan is known."""
        host.sizes.clear()
        wide = [np.zeros((330, 70 + layout)) for _ in arrays]
        for room, x in zip(wide, arrays, strict=True):
            room[:, :70] = x
        found = robot.inverse_dynamics(*(Fake(x[:, :70]) for x in wide))
        same(found.numbers, expected)
        return [size // one for size in host.sizes]

    robot.inverse_dynamics(*(Fake(x[:32]) for x in arrays))
    (one,) = host.sizes
    assert (
        one
        == robot._calls.function(Key("inverse_dynamics")).kernel("float64").signature.scratch
        * 32
        * 8
    )
    assert blocks(1) == [11]
    monkeypatch.setattr(host, "multiprocessors", 1)
    monkeypatch.setattr(backend_module, "MOST_BLOCKS", 3)
    assert blocks(2) == [3]
    monkeypatch.setattr(host, "memory_bytes", 4 * one)
    assert blocks(3) == [2]
    host.most = one
    assert blocks(4) == [2, 1]
    host.most = one - 1
    with pytest.raises(MemoryError, match=f"the GPU has no room for {one} bytes"):
        blocks(5)
    assert not host.taken


def test_tables_are_sent_once(host: HostDriver) -> None:
    """Kernels of one robot share the table of its links, which goes when they do."""
    robot = lw.chain(70, "random")
    arrays = states(robot, 3)
    backend, tables = compiled.gpu(0), {}
    for dtype, count in (("float64", 1), ("float32", 2)):
        for name in ("inverse_dynamics", "forward_dynamics"):
            getattr(robot, name)(*(Fake(x.astype(dtype)) for x in arrays))
        tables = dict(backend._tables)
        assert len(tables) == count
    del tables, robot
    gc.collect()
    assert not len(backend._tables)


def test_a_loop_that_keeps_nothing(tmp_path: Path) -> None:
    """Sums of a row, written as they come: neither tables nor room."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")

    def body(step: Step, state: list[Expr]) -> list[Expr]:
        total = state[0] + step.read("x", 0, 1)
        step.write("sums", total, 0, 1)
        return [total]

    graph, driver = Graph(), HostDriver(tmp_path)
    loop(graph, 5, [0.0], body)
    program = rolled_program(graph, "sums", [Port("x", 5)], [], [Slot("sums", (5,))])
    backend = Cuda(0, driver)
    code = backend.build(backend.render(program, "float64", "batch"))
    kernel = backend.load(code, program.signature, "float64", "batch")
    x, sums = np.random.default_rng(0).normal(size=(40, 5)), np.zeros((40, 5))
    kernel([x], [sums])
    np.testing.assert_array_equal(sums, np.cumsum(x, axis=1))
    assert not driver.sizes


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("joints", [("revolute",), ("revolute", "spherical")])
def test_pieces_of_a_chain_are_rows(tmp_path: Path, joints: tuple[str, ...], dtype: str) -> None:
    """A scan's kernels: tables that differ from row to row, loops whose length is in a table."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    robot = lw.chain(700, "random", joints=joints)
    task = replace(Task(FUNCTIONS["forward_dynamics"]["scan"]), rolled=True)
    given = [x.astype(dtype) for x in states(robot, 2)]
    results = []
    for backend in (Cuda(0, HostDriver(tmp_path)), Llvm()):

        def load(program: Program, backend: Any = backend) -> Any:
            ready = backend.ordered(program, dtype, "batch")
            code = backend.build(backend.render(ready, dtype, "batch"))
            kernel = backend.load(code, ready.signature, dtype, "batch")
            return kernel if backend.name == "llvm" else Bound(kernel)

        out = np.zeros((2, robot.nv), dtype)
        ScanKernel(task, robot.tree, dtype, load, backend.tile(dtype))(given, [out])
        results.append(out)
    same(*results)


class Bound:
    """A kernel that can be told its arrays before it is called."""

    def __init__(self, kernel: Any) -> None:
        self._kernel, self.signature = kernel, kernel.signature

    def __call__(self, *arguments: Any) -> None:
        self._kernel(*arguments)

    def bound(self, inputs: Any, outputs: Any) -> Callable[[], None]:
        return lambda: self._kernel(inputs, outputs)
