"""Simulations on a GPU: steps a second, with states in registers, and whether bits are the CPU's.

A million states, 256 steps each, between two events of the device; then the same through
`lw.simulate` with arrays of NumPy. Needs CuPy. The goals are those of an H200.

    PYTHONPATH=src python tools/gpu_rollouts.py [--robot iiwa14] [--states 1048576]
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
from pages import markdown

import linkwise as lw
from linkwise.backends.base import BATCH, Rows
from linkwise.backends.choice import gpu
from linkwise.engine.tasks import Key
from linkwise.motion.integrators import INTEGRATORS
from linkwise.motion.rollout import HEALTH, UNSAMPLED, Rollout

DT, STEPS, TURNS = 1e-3, 256, 3
GOALS = {("rk4", "float32"): 6.0, ("rk4", "float64"): 3.0, ("euler", "float32"): 25.0}  # iiwa14
HEAD = ["method", "number type", "G steps a second", "through simulate", "goal (iiwa14)"]


def same_bits(robot: lw.Robot, name: str) -> bool:
    """Whether a GPU takes the steps of the processor."""
    q = robot.random_q(seed=0, size=300)
    run: Any = {"duration": 50 * DT, "dt": DT, "integrator": name, "every": 5}
    here, there = lw.simulate(robot, q, **run), lw.simulate(robot, q, device="cuda", **run)
    return bool(np.array_equal(here.q, there.q) and np.array_equal(here.qd, there.qd))


def steps_a_second(robot: lw.Robot, name: str, dtype: str, states: int) -> float:
    """Of the kernel alone, its arrays on the device."""
    import cupy

    backend = gpu(0)
    task = robot._calls.tasks.task(Key("forward_dynamics"), dtype, "cuda")
    equations = Rollout(task, name, every=UNSAMPLED).equations(robot.tree)
    made: Any = robot._calls.compiled(equations).kernel(dtype, BATCH, backend)
    q = cupy.asarray(robot.random_q(seed=0, size=states).astype(dtype))
    given = [q, cupy.zeros((states, robot.nv), dtype)]
    same = [cupy.full((1, 1), x, dtype) for x in (DT, STEPS)]
    found = [cupy.empty((states, n), dtype) for n in (robot.nq + robot.nv, HEALTH)]
    rows = [Rows(x.data.ptr, states, x.shape[1], dtype, x.shape[1]) for x in (*given, *found)]
    rows[2:2] = [Rows(x.data.ptr, states, 1, dtype, 0) for x in same]
    stream, best = cupy.cuda.Stream(), np.inf
    cupy.cuda.Device().synchronize()
    for _ in range(TURNS):
        began, ended = cupy.cuda.Event(), cupy.cuda.Event()
        began.record(stream)
        made.launch(rows[:4], rows[4:], stream.ptr)
        ended.record(stream)
        ended.synchronize()
        best = min(best, 1e-3 * cupy.cuda.get_elapsed_time(began, ended))
    return states * STEPS / best


def through_simulate(robot: lw.Robot, name: str, dtype: str, states: int) -> float:
    """The same with arrays of NumPy, sent and fetched."""
    q, best = robot.random_q(seed=0, size=states).astype(dtype), np.inf
    for _ in range(2):
        began = perf_counter()
        lw.simulate(robot, q, duration=4 * STEPS * DT, dt=DT, integrator=name, every=None,
                    device="cuda")  # fmt: skip
        best = min(best, perf_counter() - began)
    return states * 4 * STEPS / best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="iiwa14")
    parser.add_argument("--states", type=int, default=1 << 20)
    given = parser.parse_args()
    robot = lw.load(given.robot)
    for name in INTEGRATORS:
        print(f"{name}: the bits of the processor: {same_bits(robot, name)}")
    table = []
    for name in ("rk4", "euler"):
        for dtype in ("float32", "float64"):
            alone = steps_a_second(robot, name, dtype, given.states)
            called = through_simulate(robot, name, dtype, given.states)
            goal = GOALS.get((name, dtype))
            table.append([name, dtype, f"{1e-9 * alone:.2f}", f"{1e-9 * called:.2f}",
                          "" if goal is None else f"{goal:g}"])  # fmt: skip
    print(markdown(HEAD, table))


if __name__ == "__main__":
    main()
