"""Times of forward and inverse dynamics of one long chain, per link: docs/long_chains.md.

python tools/long_chains.py            chains of 100 to 1,000,000 links
python tools/long_chains.py 1e3 1e5    chains of those lengths
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable

os.environ["LINKWISE_CACHE"] = "off"  # the first call compiles

import numpy as np

import linkwise as lw

STATES = 256
LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000)


def main(lengths: tuple[int, ...]) -> None:
    """Print a table."""
    print("| links | built in, s | first call, s | inverse dynamics | forward dynamics | peak MB |")
    print("|--:|--:|--:|--:|--:|--:|")
    for n in lengths:
        print(f"| {' | '.join(measured(n))} |", flush=True)


def measured(n: int) -> tuple[str, ...]:
    """The row of one chain."""
    start = time.perf_counter()
    robot = lw.chain(n, "random")
    built = time.perf_counter() - start
    rng = np.random.default_rng(0)
    q, qd, tau = 0.3 * rng.normal(size=n), 0.1 * rng.normal(size=n), 0.01 * rng.normal(size=n)
    first, fd = timed(lambda: robot.forward_dynamics(q, qd, tau), n)
    _, inverse = timed(lambda: robot.inverse_dynamics(q, qd, tau), n)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return f"{n:,}", f"{built:.2f}", f"{first:.2f}", f"{inverse:.0f}", f"{fd:.0f}", f"{peak:,}"


def compare() -> None:
    """First calls and batches, written out and by loops."""
    print("| links | function | first call, s | by loops | ns per link of a state | by loops |")
    print("|--:|---|--:|--:|--:|--:|")
    for n in (8, 16, 32, 64, 128):
        robot, rng = lw.chain(n, "random"), np.random.default_rng(0)
        x = rng.normal(size=(3, STATES, n))
        for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            inputs = x[:1] if function == "mass_matrix" else x
            written, loops = (
                _batch(robot.with_loops(kind), function, inputs) for kind in (False, True)
            )
            times = (written[0], loops[0]), (written[1] / n, loops[1] / n)
            first, each = (" | ".join(f"{t:.2g}" for t in pair) for pair in times)
            print(f"| {n} | {function} | {first} | {each} |", flush=True)


def _batch(robot: lw.Robot, function: str, inputs: np.ndarray) -> tuple[float, float]:
    """Seconds of the first call, and nanoseconds per state of later ones."""
    call = getattr(robot, function)
    first, per = timed(lambda: call(*inputs, threads=1), STATES)
    return first, per


def timed(call: Callable[[], object], n: int) -> tuple[float, float]:
    """Seconds of the first call, and nanoseconds of the best of later ones, divided by n."""
    start = time.perf_counter()
    call()
    first, best = time.perf_counter() - start, float("inf")
    for _ in range(max(3, min(200, 2_000_000 // n))):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return first, best / n * 1e9


if __name__ == "__main__":
    if sys.argv[1:] == ["compare"]:
        compare()
    else:
        main(tuple(int(float(x)) for x in sys.argv[1:]) or LENGTHS)
