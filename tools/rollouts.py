"""Simulations beside MuJoCo's ``rollout``: docs/rollouts.md, or a table on the terminal.

The same robots, without contacts, RK4 with steps of 1 ms from the same states, on one core, in
turns. The clock is processor time of this process, so that other work on the machine weighs less;
ratios of a quiet machine are the ones to quote. MuJoCo keeps every state: ``every=1`` does so too,
``every=None`` keeps the last one.

    python tools/rollouts.py [--states 10000] [--seconds 20] [--page]
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from pages import markdown

import linkwise as lw
from linkwise.bench.mujoco import mujoco_model
from linkwise.bench.suite import XARM7, find_robot
from linkwise.bench.timing import one_core

PAGE = Path(__file__).resolve().parents[1] / "docs" / "rollouts.md"
DT = 1e-3
ROBOTS = ("iiwa14", "xarm7")
GOALS = {"iiwa14": 50.0, "xarm7": 35.0}
HEAD = ["robot", "MuJoCo, µs a step", "ours, ns a step", "what is kept", "number type", "times",
        "goal"]  # fmt: skip


def load(name: str) -> lw.Robot:
    """A bundled robot, or one of example-robot-data."""
    if name == "iiwa14":
        return lw.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        return lw.load(find_robot(XARM7))


def mujoco_rollout(robot: lw.Robot, q: Any, steps: int) -> Callable[[], Any]:
    """MuJoCo's own rollout by RK4, on this thread."""
    import mujoco
    from mujoco import rollout

    model = mujoco_model(robot)
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, DT
    start = np.hstack([np.zeros((len(q), 1)), q, np.zeros_like(q)])
    data, pool = [mujoco.MjData(model)], rollout.Rollout(nthread=0)
    return lambda: pool.rollout([model] * len(q), data, start, nstep=steps)[0]


def best(ways: dict[str, tuple[Callable[[], Any], int]], seconds: float) -> dict[str, float]:
    """Seconds of processor time per state and step of each way, measured in turns."""
    found = dict.fromkeys(ways, np.inf)
    began = process_time()
    while process_time() - began < seconds:
        for name, (run, work) in ways.items():
            start = process_time()
            run()
            found[name] = min(found[name], (process_time() - start) / work)
    return found


def rows(states: int, seconds: float, steps: int = 50) -> list[list[str]]:
    """The table."""
    table = []
    for name in ROBOTS:
        robot = load(name)
        q = robot.random_q(seed=0, size=states)
        few = q[: max(states // 20, 1)]
        ways = {"mujoco": (mujoco_rollout(robot, few, steps), len(few) * steps)}
        kinds = [(dtype, every) for dtype in ("float64", "float32") for every in (None, 1)]
        for dtype, every in kinds:
            ways[f"{dtype} {every}"] = (_ours(robot, q.astype(dtype), steps, every), states * steps)
        for run, _ in ways.values():
            run()  # compiles
        found = best(ways, seconds)
        for dtype, every in kinds:
            ours, theirs = found[f"{dtype} {every}"], found["mujoco"]
            kept = "the end" if every is None else "every state"
            goal = f"{GOALS[name]:.0f}" if dtype == "float64" and every is None else ""
            table.append([name, f"{1e6 * theirs:.2f}", f"{1e9 * ours:.0f}", kept, dtype,
                          f"{theirs / ours:.1f}", goal])  # fmt: skip
    return table


def _ours(robot: lw.Robot, q: Any, steps: int, every: int | None) -> Callable[[], Any]:
    return lambda: lw.simulate(robot, q, duration=steps * DT, dt=DT, every=every, threads=1)


def main() -> None:
    """Measure, and print the table or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each robot")
    parser.add_argument("--page", action="store_true", help="write docs/rollouts.md")
    given = parser.parse_args()
    with one_core():
        table = markdown(HEAD, rows(given.states, given.seconds))
    print(table)
    if given.page:
        text = __doc__.split("\n\n")[1].replace("\n", " ")
        head = f"# Simulations beside MuJoCo\n\nMade by `make rollouts`.\n\n{text}\n"
        busy = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        made = f"{given.states:,} states side by side; load of the machine meanwhile: {busy}."
        PAGE.write_text(f"{head}\n{made}\n\n{table}\n")


if __name__ == "__main__":
    main()
