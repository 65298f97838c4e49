"""Damaged kernel caches, killed compilers, and many threads: the numbers stay right."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

import linkwise as lw
from faults.card import Line, shown
from linkwise.engine.cache import HEADER, KernelCache, _tell_once
from linkwise.engine.folder import PrivateFolder
from linkwise.errors import CacheWarning

LINK = {"a": 1.0, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}
OTHER = {**LINK, "mass": 2.5}
Q = np.random.default_rng(3).uniform(-3, 3, (11, 1))


def mass(link: dict[str, object] = LINK) -> bytes:
    """What a new robot computes: nothing is remembered but on disk."""
    return bytes(lw.from_dh([link]).mass_matrix(Q).tobytes())


@contextmanager
def cache_in(folder: str) -> Iterator[None]:
    """Use this folder as kernel cache, or none (``off``)."""
    with mock.patch.dict(os.environ, LINKWISE_CACHE=folder):
        yield


def _flip(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def _over(data: bytes, at: int, block: bytes) -> bytes:
    return (data[:at] + block + data[at + len(block) :])[: len(data)]


DAMAGE: list[Callable[[bytes, bytes, random.Random], bytes]] = [
    lambda data, _, rng: _flip(data, rng.randrange(8 * len(data))),
    lambda data, _, rng: _flip(data, rng.randrange(8 * HEADER.size)),
    lambda data, _, rng: data[: rng.randrange(len(data))],
    lambda data, _, rng: data + rng.randbytes(rng.randrange(1, 5000)),
    lambda data, _, rng: _over(data, rng.randrange(len(data)), rng.randbytes(64)),
    lambda data, _, rng: _over(data, rng.randrange(len(data)), bytes(512)),
    lambda data, _, rng: rng.randbytes(len(data)),
    lambda data, _, rng: b"",
    lambda data, other, _: other,
    lambda data, other, _: data[: HEADER.size] + other[HEADER.size :],
    lambda data, other, _: other[: HEADER.size] + data[HEADER.size :],
]
FAILING = [(module, name, number) for module, name in
           ((os, "open"), (os, "fsync"), (os, "replace"), (Path, "mkdir"), (PrivateFolder, "open"))
           for number in (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EIO)]  # fmt: skip


def cache_faults(cases: int, scratch: Path) -> Line:
    """Damaged entries, and folders that cannot be read or written."""
    line = Line("cache faults", "all detected, no wrong number", refused=0)
    folder, rng = scratch / "kernels", random.Random(5)
    with cache_in("off"):
        right = mass()
    with cache_in(str(folder)):
        mass(LINK)
        (path,) = _entries(folder)
        mass(OTHER)
        (other,) = _entries(folder) - {path}
        good, swap = path.read_bytes(), other.read_bytes()
        for k in shown("cache", range(cases), cases):
            if k % 8 == 7:
                _failing_call(line, k // 8, path, right)
                path.write_bytes(good)
                continue
            bad = good
            while bad == good:  # zeros over zeros damage nothing
                bad = DAMAGE[k % len(DAMAGE)](good, swap, rng)
            path.write_bytes(bad)
            noticed = _numbers_in_spite_of(line, f"damage {k % len(DAMAGE)}", right)
            line.count("refused", noticed and path.read_bytes() == good)
    line.met = not line.wrong and line.refused == line.cases
    return line


def _numbers_in_spite_of(line: Line, name: str, right: bytes) -> bool:
    """Compute with a fault in place: the numbers must be right; returns whether a warning came."""
    line.cases += 1
    _tell_once.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            wrong = "" if mass() == right else "wrong numbers"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
    if wrong:
        line.wrong += 1
        line.fail(f"{name}: {wrong}")
    noticed = any(issubclass(w.category, CacheWarning) for w in told)
    if not noticed and "read" not in name:
        line.fail(f"{name}: no warning")
    return noticed


def _failing_call(line: Line, k: int, path: Path, right: bytes) -> None:
    """A system call fails: a warning where the entry cannot be written, a miss where not read."""
    module, name, number = FAILING[k % len(FAILING)]
    reading = module is PrivateFolder
    if not reading:
        path.unlink(missing_ok=True)
    failure = mock.Mock(side_effect=OSError(number, os.strerror(number)))
    with mock.patch.object(module, name, failure):
        label = f"{'read' if reading else name} fails with {errno.errorcode[number]}"
        noticed = _numbers_in_spite_of(line, label, right)
    line.count("refused", failure.called and (noticed or reading))


def _entries(folder: Path) -> set[Path]:
    return {folder / entry.name for entry in KernelCache(folder).entries()}


# -- kill -9 --------------------------------------------------------------------------------------

WORKER = """
import itertools, sys
import numpy as np
import linkwise as lw
link = {link!r}
q = np.zeros((11, 1))
print("ready", flush=True)
for k in itertools.count():
    lw.from_dh([link], gravity=(0.0, 0.0, -float(k))).mass_matrix(q)
    lw.from_dh([link] * 2, gravity=(0.0, 0.0, -float(k))).bias(q[:, [0, 0]], q[:, [0, 0]])
"""


def kills(count: int, scratch: Path) -> Line:
    """``kill -9`` at random moments of cold compiles; the next run finds whole entries only."""
    line = Line("kill -9 during cold compiles", "the next run is right, no half entry", refused=0)
    folder, rng = scratch / "killed", random.Random(9)
    with cache_in("off"):
        right = mass()
    for k in shown("kills", range(count), count):
        with cache_in(str(folder)):
            command = [sys.executable, "-c", WORKER.format(link=LINK)]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment())
            assert worker.stdout is not None
            worker.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.15))
            worker.kill()
            worker.communicate()
            line.cases += 1
            before = line.wrong
            with warnings.catch_warnings():
                warnings.simplefilter("error", CacheWarning)
                try:
                    whole = [KernelCache(folder).get(p.stem) for p in folder.glob("*.kernel")]
                    line.wrong += None in whole or mass() != right
                except Exception as error:
                    line.wrong += 1
                    line.fail(f"kill {k}: {type(error).__name__}: {error}")
            line.count("refused", line.wrong == before)
    line.met = not line.wrong
    return line


def _environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(Path(lw.__file__).parents[1])}


# -- threads --------------------------------------------------------------------------------------


def threads(count: int, calls: int, storm: int) -> Line:
    """Many threads on one robot; then many at once on a robot that nobody has compiled."""
    what = f"{count} threads x {calls:,} calls, {storm}-thread storm"
    line = Line(what, "no mismatch, no deadlock")
    robot = lw.load("puma560")
    rng = np.random.default_rng(2)
    states = [tuple(rng.normal(size=6) for _ in range(3)) for _ in range(16)]
    right = [robot.inverse_dynamics(*state).tobytes() for state in states]

    def work(first: int) -> int:
        call, n = robot.inverse_dynamics, len(states)
        return sum(
            call(*states[k % n]).tobytes() != right[k % n] for k in range(first, first + calls)
        )

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, k) for k in range(count)]
        line.wrong += sum(future.result(timeout=600) for future in futures)
    line.cases = count * calls
    with cache_in("off"):
        line.wrong += _storm(storm)
        line.cases += storm
    line.met = not line.wrong
    return line


def _storm(count: int) -> int:
    """All threads want functions of a new robot at the same moment; returns mismatches."""
    robot, start = lw.from_dh([LINK] * 3), threading.Barrier(count)
    q = np.full((5, 3), 0.3)

    def work(k: int) -> bytes:
        start.wait()
        result = robot.bias(q, q) if k % 2 else robot.mass_matrix(q)
        return bytes(result.tobytes())

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, k) for k in range(count)]
        results = [future.result(timeout=600) for future in futures]
    return sum(results[k] != results[k % 2] for k in range(count))
