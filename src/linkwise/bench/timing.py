"""Time statements against each other: in turns, on one core, the minimum of many."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from timeit import Timer
from typing import Any

import linkwise
from linkwise.backends.llvm.target import host

SAMPLE = 2e-4  # seconds that one sample of a fast statement is stretched to
BURST = 4e-3  # seconds of samples in one turn, so that caches warm up after somebody else's
ROUNDS = 4  # at least so many turns of each statement
PACKAGES = {"numpy": "numpy", "llvmlite": "llvmlite", "pinocchio": "pin", "mujoco": "mujoco"}


@dataclass(frozen=True)
class Way:
    """A statement to time: how it is described, its names, and the states it works through."""

    label: str
    statement: str
    names: Mapping[str, Any]
    states: int = 1


def measure(ways: Mapping[str, Way], seconds: float) -> dict[str, float]:
    """Nanoseconds per state of each statement, measured in turns for ``seconds`` altogether."""
    clocks = {name: _Stopwatch(way, seconds) for name, way in ways.items()}
    start, rounds = perf_counter(), 0
    while rounds < ROUNDS or perf_counter() - start < seconds:
        for clock in clocks.values():
            clock.turn()
        rounds += 1
    return {name: clock.best for name, clock in clocks.items()}


class _Stopwatch:
    """Times one statement, and remembers its best."""

    def __init__(self, way: Way, seconds: float) -> None:
        self._timer = Timer(way.statement, globals=dict(way.names))
        self._timer.timeit(1)  # compiles
        once = max(min(self._timer.repeat(3, 1)), 1e-9)
        burst = min(BURST, seconds / ROUNDS)
        self._calls = max(1, int(min(SAMPLE, burst) / once))
        self._samples = max(1, int(burst / (self._calls * once)))
        self._scale = 1e9 / (self._calls * way.states)
        self.best = once / way.states * 1e9

    def turn(self) -> None:
        """Take a few samples."""
        least = min(self._timer.repeat(self._samples, self._calls))
        self.best = min(self.best, least * self._scale)


@contextmanager
def one_core(wanted: bool = True) -> Iterator[bool]:
    """Keep this process on one core for a while, where the system lets us; says whether it did."""
    if not wanted or not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    try:
        _restrict({max(before)})
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        _restrict(before)


def _restrict(cores: set[int]) -> None:
    """Set the cores of every thread: those started meanwhile would else stay on theirs."""
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        threads = []
    for thread in threads:
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(thread, cores)
    os.sched_setaffinity(0, cores)


def processor() -> str:
    """The processor's name, as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    target = host()
    return {
        "processor": processor(),
        "llvm_cpu": target.cpu,
        "lanes": {"float64": target.lanes(8), "float32": target.lanes(4)},
        "fused_multiply_add": target.fused,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()}",
    }


def versions(packages: Mapping[str, str] = PACKAGES) -> dict[str, str | None]:
    """Versions of everything that takes part; None where it is not installed."""
    found: dict[str, str | None] = dict.fromkeys(packages)
    for name, package in packages.items():
        with suppress(PackageNotFoundError):
            found[name] = version(package)
    return {"linkwise": linkwise.__version__, "python": platform.python_version(), **found}
