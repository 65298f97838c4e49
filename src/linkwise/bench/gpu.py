"""``linkwise bench ROBOT --device cuda``: device time and call time of functions on a GPU.

Device time is that of many calls put on the stream one after another, so that the GPU never waits
for Python; call time is what one call of a smaller batch takes in Python and on the GPU together.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from linkwise.bench.contest import Report, command_line, shown_versions
from linkwise.bench.peers import agreeing_peers
from linkwise.bench.states import random_states, tip
from linkwise.bench.xla import XLA_PEERS
from linkwise.engine.tasks import Key
from linkwise.errors import BackendUnavailable
from linkwise.robot import Robot
from linkwise.text import aligned, duration, pairs

PACKAGES = {"cuda-core": "cuda-core", "cupy-cuda13x": "cupy-cuda13x"}
MEASURED = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
MANY, FEW = 1 << 22, 4096  # states of a batch for device time, and for call time
OF_PEERS = 1 << 18  # states of a batch of a peer: more is not faster for them, and takes memory
TURNS, REPEATS = 5, 10
LANES = {"float32": 128, "float64": 64}  # operations that a multiprocessor starts in a cycle
NOTES = """\
device: time on the GPU of one call among many, least of five turns; memory: bytes of arguments and
results, beside a copy on this GPU; arithmetic: operations and multiply-adds, beside what all
multiprocessors start at their highest clock (sines and cosines not counted); call: from a call with
4,096 states to its end; queued: a call of many that are put on the stream one after another. Peers
are given the same robot link by link, are timed if their results agree, on 262,144 states."""
TOLD = {
    "mjx": "mujoco.mjx, without contacts and constraints, by jax.vmap and jax.jit",
    "jax": "RNEA and CRBA of the textbook in jax.numpy, on matrices, by jax.vmap and jax.jit",
}


@dataclass(frozen=True)
class Row:
    """One function in one number type."""

    function: str
    method: str
    dtype: str
    device_ns: float  # of one state
    call_ns: float  # of one call with `FEW` states, finished
    queued_ns: float  # of the same call, with many put on the stream one after another
    bytes: int  # of one state
    operations: int  # of one state, a multiply-add counted once
    peers: dict[str, float] = field(default_factory=dict)  # nanoseconds of one state elsewhere


class Clock:
    """The first GPU: what it is, and the time that calls take on it."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            raise BackendUnavailable(
                "linkwise bench --device cuda makes its arrays with CuPy, which is not installed: "
                "pip install cupy-cuda13x"
            ) from None
        self.cupy: Any = cupy
        facts = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = facts["name"].decode()
        clock = 1e3 * float(cupy.cuda.Device(0).attributes["ClockRate"])
        self.starts = facts["multiProcessorCount"] * clock  # of an operation, by one lane

    def copy_rate(self) -> float:
        """Bytes read and written in a second by a copy of 2 GiB."""
        source = self.cupy.ones(1 << 28)
        target = self.cupy.empty_like(source)
        seconds = self.device_seconds(lambda: self.cupy.copyto(target, source))
        return 2 * int(source.nbytes) / seconds

    def device_seconds(self, call: Callable[[], Any]) -> float:
        """Seconds of one call among many, so that the GPU never waits for Python."""
        cuda = self.cupy.cuda
        call()
        turns = []
        for _ in range(TURNS):
            start, end = cuda.Event(), cuda.Event()
            start.record()
            for _ in range(REPEATS):
                call()
            end.record()
            end.synchronize()
            turns.append(float(cuda.get_elapsed_time(start, end)) / REPEATS)
        return min(turns) * 1e-3

    def call_seconds(self, call: Callable[[], Any]) -> float:
        """Seconds from a call to its end, in Python and on the GPU."""
        device, turns = self.cupy.cuda.Device(0), []
        for _ in range(20 * TURNS):
            device.synchronize()
            start = time.perf_counter()
            call()
            device.synchronize()
            turns.append(time.perf_counter() - start)
        return min(turns)


class Gpu:
    """A robot's functions on the first GPU."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.clock = robot, Clock()
        self.copied = self.clock.copy_rate()
        self.peers, self.missing, self.agreement = agreeing_peers(
            robot, tip(robot), MEASURED, XLA_PEERS
        )

    def head(self) -> str:
        """What is measured on what."""
        facts = self._machine()
        return pairs([(name, str(value)) for name, value in facts.items()]) + "\n"

    def _machine(self) -> dict[str, Any]:
        return {
            "device": f"{self.clock.name}, copies {self.copied / 1e12:.2f} TB/s",
            "system": platform.platform(),
            "versions": shown_versions(PACKAGES),
            "command": command_line(),
            "robot": f"{self.robot.name}, {self.robot.nv} joints",
        }

    def rows(self, report: Report) -> Iterator[Row]:
        """Measure one function after another, in both number types."""
        planned = [(function, dtype) for function in MEASURED for dtype in LANES]
        for k, (function, dtype) in enumerate(planned):
            report(f"{function}, {dtype}: compiling and timing", k, len(planned))
            yield self._row(function, dtype)

    def _row(self, function: str, dtype: str) -> Row:
        task = self.robot._calls.tasks.task(Key(function), dtype, "cuda")
        given = random_states(self.robot, FEW).given(task.algorithm)
        few = [self.clock.cupy.asarray(x.astype(dtype)) for x in given]
        method = getattr(self.robot, function)
        count = self.robot.operation_count(function, task.algorithm.method)
        out = int(np.prod(task.algorithm.output_shape(self.robot.tree)))
        numbers = sum(x.shape[1] for x in few) + out
        long = self._many_seconds(method, few) / MANY
        short = self.clock.device_seconds(lambda: method(*few))
        call = self.clock.call_seconds(lambda: method(*few))
        return Row(
            function, task.algorithm.method, dtype, long * 1e9, call * 1e9, short * 1e9,
            numbers * np.dtype(dtype).itemsize, count.total - count.fused,
            self._of_peers(function, dtype),
        )  # fmt: skip

    def _of_peers(self, function: str, dtype: str) -> dict[str, float]:
        """Nanoseconds of a state, of the peers that have this function."""
        states = random_states(self.robot, OF_PEERS)
        found = {peer.name: peer.seconds(function, states, dtype) for peer in self.peers}
        return {name: t / OF_PEERS * 1e9 for name, t in found.items() if t is not None}

    def _many_seconds(self, method: Callable[..., Any], few: Sequence[Any]) -> float:
        many = [self.clock.cupy.tile(x, (MANY // FEW, 1)) for x in few]
        found = self.clock.device_seconds(lambda: method(*many))
        del many[:]
        self.clock.cupy.get_default_memory_pool().free_all_blocks()
        return found

    def text(self, rows: Sequence[Row]) -> str:
        """The table, and what its numbers mean."""
        head = ("function", "<method", "<dtype", "device", "G states/s", "TB/s", "memory",
                "arithmetic", "call of 4,096", "queued",
                *(peer.name for peer in self.peers))  # fmt: skip
        peak = {dtype: self.clock.starts * lanes for dtype, lanes in LANES.items()}
        lines = [
            (
                row.function, row.method, row.dtype, f"{row.device_ns:.3f} ns",
                f"{1 / row.device_ns:.2f}", f"{row.bytes / row.device_ns / 1e3:.2f}",
                f"{row.bytes / row.device_ns * 1e9 / self.copied:.0%}",
                f"{row.operations / row.device_ns * 1e9 / peak[row.dtype]:.0%}",
                duration(row.call_ns), duration(row.queued_ns),
                *(_beside(row, peer.name) for peer in self.peers),
            )
            for row in rows
        ]  # fmt: skip
        told = [f"{name}: {why}" for name, why in self.missing.items()]
        told += [f"{peer.name}: {TOLD[peer.name]}" for peer in self.peers]
        return "\n".join((f"{aligned(head, lines)}\n\n{NOTES}", *told))

    def facts(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Everything, for JSON."""
        compared = {"missing": self.missing, "agreement": self.agreement}
        peaks = {dtype: self.clock.starts * lanes for dtype, lanes in LANES.items()}
        known = {**self._machine(), "copied": self.copied, "starts": peaks, **compared}
        return {**known, "rows": [asdict(row) for row in rows]}


def _beside(row: Row, peer: str) -> str:
    """The time of a peer, and how many times ours it is."""
    ns = row.peers.get(peer)
    return "" if ns is None else f"{duration(ns)} ({ns / row.device_ns:,.0f}x)"
