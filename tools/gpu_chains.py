"""Times of many chains at once on a GPU, a thread for each: docs/gpu.md.

python tools/gpu_chains.py            chains of 100 to 10,000 links, 1 to 65,536 of them
python tools/gpu_chains.py compare    chains of few links: written out, and by loops
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any

import cupy
import numpy as np

import linkwise as lw

LENGTHS = (100, 1_000, 10_000)
CHAINS = (1, 32, 1_024, 4_096, 16_384, 65_536)
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
FEW = {"inverse_dynamics": (8, 16, 32, 48, 64), "forward_dynamics": (8, 16, 32, 48, 64),
       "mass_matrix": (8, 16, 24, 32)}  # fmt: skip
STATES = 65_536
PROCESSES = 16


def main() -> None:
    """Print a table."""
    print("| links | chains | function | ms, float64 | ns per link | G links/s | float32 |")
    print("|--:|--:|---|--:|--:|--:|--:|")
    for n in LENGTHS:
        robot = lw.chain(n, "random")
        for count in CHAINS:
            for function in FUNCTIONS:
                wide, narrow = (timed(robot, function, count, t) for t in ("float64", "float32"))
                rates = [n * count / x / 1e6 for x in (wide, narrow)]
                row = (f"{n:,}", f"{count:,}", function.replace("_", " "), f"{wide:.3g}",
                       f"{1 / rates[0]:.3g}", f"{rates[0]:.3g}", f"{rates[1]:.3g}")  # fmt: skip
                print(f"| {' | '.join(row)} |", flush=True)


def timed(robot: lw.Robot, function: str, count: int, dtype: str) -> float:
    """Milliseconds of a call, on the GPU's clock."""
    inputs = states(robot, function, count, dtype)
    out = getattr(robot, function)(*inputs)
    return on_its_clock(lambda: getattr(robot, function)(*inputs, out=out))


def states(robot: lw.Robot, function: str, count: int, dtype: str) -> list[Any]:
    """Angles, rates and torques of wavy chains that move a little."""
    draw = cupy.random.default_rng(1)
    scales = (0.3,) if function == "mass_matrix" else (0.3, 0.1, 0.01)
    return [scale * draw.standard_normal((count, robot.nv), dtype) for scale in scales]


def on_its_clock(call: Callable[[], Any], least: int = 5) -> float:
    """The median time of a call in milliseconds."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    found: list[float] = []
    call()
    while len(found) < least or (sum(found) < 50.0 and len(found) < 50):
        start.record()
        call()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(start, end))
    return median(found)


def compare() -> None:
    """First calls and batches, written out and by loops."""
    kinds = [(n, f, t) for f, few in FEW.items() for n in few for t in ("float64", "float32")]
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        jobs = {(kind, loops): pool.submit(first_call, *kind, loops)
                for kind in sorted(kinds, reverse=True) for loops in (False, True)}  # fmt: skip
        firsts = {key: job.result() for key, job in jobs.items()}
    print("| links | function | type | first call, s | by loops | ns per link | by loops |")
    print("|--:|---|---|--:|--:|--:|--:|")
    for kind in kinds:
        n, function, dtype = kind
        first, each = [], []
        for loops in (False, True):
            robot = lw.chain(n, "random").with_codegen("rolled" if loops else "unrolled")
            first.append(f"{firsts[kind, loops]:.2g}")
            each.append(f"{timed(robot, function, STATES, dtype) * 1e6 / n / STATES:.3g}")
        print(f"| {' | '.join((str(n), function, dtype, *first, *each))} |", flush=True)


def first_call(n: int, function: str, dtype: str, loops: bool) -> float:
    """Seconds until a kernel is there, traced and compiled; it stays in the disk cache."""
    robot = lw.chain(n, "random").with_codegen("rolled" if loops else "unrolled")
    inputs = [cupy.asarray(np.zeros((1, n), dtype))] * (1 if function == "mass_matrix" else 3)
    start = time.perf_counter()
    getattr(robot, function)(*inputs)
    return time.perf_counter() - start


if __name__ == "__main__":
    compare() if sys.argv[1:] == ["compare"] else main()
