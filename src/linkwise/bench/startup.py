"""Times that need a fresh process: importing, compiling, loading from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import linkwise

FIRST_CALL = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import linkwise as lw
robot = lw.load(sys.argv[1])
shape = (robot.nv,) if sys.argv[2] == "1" else (int(sys.argv[2]), robot.nv)
x = np.zeros(shape)
start = time.perf_counter()
robot.forward_dynamics(x, x, x)
print(time.perf_counter() - start)
"""

IMPORT = """
import time
import numpy
start = time.perf_counter()
import linkwise
print(time.perf_counter() - start)
"""


def first_calls(path: str, states: int, repeats: int = 4) -> tuple[float, float]:
    """Nanoseconds of a process's first forward dynamics: with an empty cache, and a full one."""
    cold = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(_run(FIRST_CALL, folder, path, str(states)))
            warm = [_run(FIRST_CALL, folder, path, str(states)) for _ in range(repeats)]
    return min(cold), min(warm)


def import_time(repeats: int = 7) -> float:
    """Nanoseconds that ``import linkwise`` takes once NumPy is there."""
    return min(_run(IMPORT, "off") for _ in range(repeats))


def _run(script: str, cache: str, *arguments: str) -> float:
    """Run a script in a fresh process; returns what it printed, in nanoseconds."""
    home = str(Path(linkwise.__file__).parents[1])
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"LINKWISE_CACHE": cache, "PYTHONPATH": path}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"a process started to be timed failed: {last}")
    return float(done.stdout) * 1e9
