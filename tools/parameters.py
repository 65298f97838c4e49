"""What parameters cost, and regressors beside Pinocchio's: docs/parameters.md, or a terminal.

Operation counts are exact. The clock runs on one core, the ways in turns; ratios are
the ones to quote. Pinocchio has no batch of regressors: one Python call for each state, of which an
empty call (one that computes nothing) is the cost of Python. It writes all states to one and the
same matrix, which stays in the cache; ours are an array of all states, given as ``out``. Writing as
many bytes and nothing else (memset) is the least time that such an array can take.

    python tools/parameters.py [--states 256 1024 4096] [--seconds 5] [--page]
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import re
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from pages import DOCS, bundled, example, markdown

import linkwise as lw
from linkwise.bench.pinocchio import pinocchio_model
from linkwise.bench.timing import one_core

PAGE = DOCS / "parameters.md"
GOAL = 15.0
CALLS = 4  # of one way in its turn: the first finds in the caches what another way has left
ROBOTS = {
    "iiwa14": "",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "talos_reduced": "talos_data/robots/talos_reduced.urdf",
}
METHODS = [
    ("inverse_dynamics", "rnea"), ("forward_dynamics", "aba"), ("forward_dynamics", "crba"),
    ("mass_matrix", "crba"),
]  # fmt: skip
SETS = ("inertia", "gravity", "payload", "rotor", "friction", "placement")


def load(name: str) -> lw.Robot:
    """A robot with a fixed base."""
    path = ROBOTS[name]
    return example(path, strict=False) if path else bundled(name)


def with_parameters(robot: lw.Robot, name: str) -> lw.Robot:
    """The robot with a parameter; a payload is on its last link."""
    return robot.parametric(payload=robot.joint_names[-1]) if name == "payload" else (
        robot.parametric(name)
    )  # fmt: skip


def counted() -> tuple[list[str], list[list[str]]]:
    """Operations of the usual functions, and by how much each parameter raises them."""
    rows = []
    for name in ("iiwa14", "xarm7"):
        robot = load(name)
        for function, method in METHODS:
            plain = robot.operation_count(function, method).total
            more = [with_parameters(robot, x).operation_count(function, method) for x in SETS]
            shares = [f"{100 * (x.total / plain - 1):+.0f} %" for x in more]
            rows.append([name, f"{function} ({method})", str(plain), *shares])
    return ["robot", "function", "operations", *SETS], rows


def best(ways: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of each way, measured in turns of a few calls."""
    found, end = dict.fromkeys(ways, np.inf), perf_counter() + seconds
    while True:
        for name, way in ((name, way) for name, way in ways.items() for _ in range(CALLS)):
            start = perf_counter()
            way()
            found[name] = min(found[name], perf_counter() - start)
        if perf_counter() >= end:
            return found


def ways_of(robot: lw.Robot, states: int) -> dict[str, Callable[[], Any]]:
    """A batch by us, and the same states by Pinocchio, one call each; and empty calls."""
    import pinocchio as pin

    rng = np.random.default_rng(0)
    q, (qd, qdd) = robot.random_q(rng, size=states), rng.normal(size=(2, states, robot.nv))
    Y = np.empty((states, robot.nv, 10 * len(robot.body_names)))
    model = pinocchio_model(robot)
    data, rows = model.createData(), list(zip(q, qd, qdd, strict=True))

    def theirs() -> None:
        for row in rows:
            pin.computeJointTorqueRegressor(model, data, *row)

    def nothing() -> None:
        for _ in rows:
            pin.neutral(one)

    def memset() -> None:
        ctypes.memset(Y.ctypes.data, 0, Y.nbytes)

    one = pin.Model()
    robot.regressor(q, qd, qdd, out=Y, threads=1)  # compiled before the clock runs
    return {
        "ours": lambda: robot.regressor(q, qd, qdd, out=Y, threads=1),
        "memset": memset,
        "theirs": theirs,
        "nothing": nothing,
    }


def raced(batches: Sequence[int], seconds: float) -> tuple[list[str], list[list[str]]]:
    """Regressors of both, for each state."""
    rows = []
    for name, states in itertools.product(ROBOTS, batches):
        robot = load(name)
        found = {k: 1e9 * t / states for k, t in best(ways_of(robot, states), seconds).items()}
        size = 8 * robot.nv * 10 * len(robot.body_names) * states / 1e6
        ratio, net = (
            t / found["ours"] for t in (found["theirs"], found["theirs"] - found["nothing"])
        )
        times = (f"{found[k]:.0f}" for k in ("ours", "memset", "theirs", "nothing"))
        rows.append([name, f"{states:,}", f"{size:.0f}", *times, f"{ratio:.1f}", f"{net:.1f}"])
    head = ["robot", "states", "result, MB", "ours, ns", "memset, ns", "Pinocchio, ns",
            "an empty call, ns", "times", "times, without the empty call"]  # fmt: skip
    return head, rows


def written(page: str, name: str, table: str) -> str:
    """The page with another table between its marks."""
    mark = f"<!-- {name} -->"
    return re.sub(f"{mark}.*?{mark}", lambda _: f"{mark}\n{table}\n{mark}", page, flags=re.S)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--states", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args(arguments)
    with one_core():
        tables = {
            "counts": markdown(*counted()),
            "race": markdown(*raced(asked.states, asked.seconds)),
        }
    for table in tables.values():
        print(table, end="\n\n")
    print(f"goal: {GOAL:.0f} times")
    if asked.page:
        text = PAGE.read_text()
        for name, table in tables.items():
            text = written(text, name, table)
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
