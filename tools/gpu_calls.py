"""What a call with 4,096 states on a GPU takes until its result is there, by library and by graph.

    python tools/gpu_calls.py > benchmarks/results/calls_h200.txt

Kernel: device time of one among fifty in a graph. Least and median: of 100 calls, each waited for;
the best of many rounds over all rows, because processors change their clocks. Queued: of 100 calls
one after another without waiting.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # before JAX is imported

import numpy as np

import linkwise as lw
from linkwise.text import aligned

STATES, SECONDS, CALLS = 4096, 45.0, 100
FUNCTIONS = {"forward_dynamics": 3, "inverse_dynamics": 3, "mass_matrix": 1}  # and arguments


class Job(NamedTuple):
    """Something to be timed: a call, and what waits for its result."""

    title: tuple[str, ...]
    kernel: float  # microseconds of device time
    call: Callable[[], Any]
    wait: Callable[[], Any]


def captured(cupy: Any, call: Callable[[], Any], count: int) -> tuple[Any, Any]:
    """A graph of so many calls, and the stream on which it was captured."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        call()
        stream.begin_capture()
        for _ in range(count):
            call()
        graph = stream.end_capture()
    return graph, stream


def kernel_time(cupy: Any, call: Callable[[], Any], count: int = 50) -> float:
    """Device time of one call, in microseconds."""
    graph, stream = captured(cupy, call, count)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    found = []
    with stream:
        for _ in range(30):
            start.record()
            graph.launch()
            end.record()
            end.synchronize()
            found.append(cupy.cuda.get_elapsed_time(start, end) * 1e3 / count)
    return min(found)


def jobs(robot: lw.Robot, dtype: str) -> Iterator[Job]:
    """Every function by every library that is installed; CuPy is needed."""
    import cupy

    wait = cupy.cuda.runtime.deviceSynchronize
    rng = np.random.default_rng(0)
    host = [rng.normal(size=(STATES, robot.nv)).astype(dtype) for _ in range(3)]
    for name, count in FUNCTIONS.items():
        function, given = getattr(robot, name), [cupy.asarray(x) for x in host[:count]]
        out = function(*given)

        def into(function: Any = function, given: Any = given, out: Any = out) -> Any:
            return function(*given, out=out)

        def plain(function: Any = function, given: Any = given) -> Any:
            return function(*given)

        kernel, title = kernel_time(cupy, into), (name, dtype)
        yield Job((*title, "CuPy"), kernel, plain, wait)
        yield Job((*title, "CuPy, out="), kernel, into, wait)
        graph, stream = captured(cupy, into, 1)
        replay = _bound(graph.launch, stream)
        yield Job((*title, "CuPy, graph"), kernel, replay, stream.synchronize)
        yield from torch_jobs(title, kernel, function, host[:count], wait)
        if name == "forward_dynamics":
            yield from jax_jobs(title, kernel, function, host[:count])


def torch_jobs(
    title: tuple[str, ...], kernel: float, function: Any, host: list[Any], wait: Any
) -> Iterator[Job]:
    """The same with tensors."""
    import torch

    given = [torch.from_numpy(x).cuda() for x in host]
    out = function(*given)
    yield Job((*title, "PyTorch"), kernel, _bound(function, *given), wait)
    yield Job((*title, "PyTorch, out="), kernel, _bound(function, *given, out=out), wait)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(*given, out=out)
    yield Job((*title, "PyTorch, graph"), kernel, graph.replay, wait)


def jax_jobs(
    title: tuple[str, ...], kernel: float, function: Any, host: list[Any]
) -> Iterator[Job]:
    """The same with arrays of JAX, and inside ``jax.jit``; beside them, a sum of two arrays."""
    import jax

    jax.config.update("jax_enable_x64", True)
    given = [jax.numpy.asarray(x) for x in host]
    added = jax.jit(lambda x, y, _: x + y)
    calls = {"JAX": function, "JAX, jit": jax.jit(function), "JAX, x + y": added}
    for name, call in calls.items():
        last: list[Any] = []

        def run(call: Any = call, last: list[Any] = last) -> None:
            last[:] = [call(*given)]

        def ready(last: list[Any] = last) -> None:
            for array in last:
                array.block_until_ready()

        yield Job((*title, name), kernel, run, ready)


def _bound(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: function(*arguments, **options)


def timed(job: Job) -> tuple[float, float, float]:
    """Least and median of calls that are waited for, and a call of many that are not."""
    found = []
    for _ in range(CALLS):
        job.wait()
        start = time.perf_counter()
        job.call()
        job.wait()
        found.append(time.perf_counter() - start)
    start = time.perf_counter()
    for _ in range(CALLS):
        job.call()
    queued = (time.perf_counter() - start) / CALLS
    job.wait()
    found.sort()
    return found[0] * 1e6, found[CALLS // 2] * 1e6, queued * 1e6


def main() -> None:
    """Measure and print the table."""
    import cupy

    robot = lw.load("iiwa14")
    empty = cupy.RawKernel('extern "C" __global__ void empty(long long n) {}', "empty")
    wait = cupy.cuda.runtime.deviceSynchronize
    all_jobs = [Job(("an empty kernel", "", "CuPy"), 0.0, _bound(empty, (32,), (128,), (1,)), wait)]
    for dtype in ("float32", "float64"):
        all_jobs += jobs(robot, dtype)
    best = [(float("inf"),) * 3 for _ in all_jobs]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for k, job in enumerate(all_jobs):
            best[k] = tuple(map(min, best[k], timed(job)))  # type: ignore[assignment]
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}, {platform.platform()}; {robot.name}, {STATES} states, microseconds\n")
    head = ("function", "<dtype", "<by", "kernel", "least", "median", "beyond", "queued")
    lines = [
        (*job.title, f"{job.kernel:.2f}", f"{least:.2f}", f"{median:.2f}",
         f"{least - job.kernel:.2f}", f"{queued:.2f}")
        for job, (least, median, queued) in zip(all_jobs, best, strict=True)
    ]  # fmt: skip
    print(aligned(head, lines))


if __name__ == "__main__":
    main()
