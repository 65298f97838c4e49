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

FIRST_OF = """
import resource, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import linkwise as lw
def spent():
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
robot, states = lw.load(sys.argv[1], strict=False), int(sys.argv[3])
x = np.zeros((robot.nv,) if states == 1 else (states, robot.nv))
start = spent()
getattr(robot, sys.argv[2])(x, x, x)
print(spent() - start)
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


def first_call_of(path: str, function: str, states: int) -> float:
    """Seconds of processor time, its compiler's too, that a process's first call takes with an
    empty cache: a function of q, qd and a third argument.
    """
    with tempfile.TemporaryDirectory() as folder:
        return 1e-9 * _run(FIRST_OF, folder, path, function, str(states))


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
