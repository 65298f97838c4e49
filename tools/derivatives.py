"""Derivatives of the dynamics beside Pinocchio's: docs/derivatives.md, or a terminal.

Operation counts are exact. The clock runs on one core, the ways in turns; ratios are
the ones to quote. Pinocchio has no batch of derivatives: one Python call for each state, of which
an empty call (one that computes nothing) is the cost of Python. It writes all states to the same
three matrices, which stay in the cache; ours are new arrays of all states. A first call is one in
a fresh process with an empty cache, in processor time, its compiler's included.

    python tools/derivatives.py [--states 64 512] [--seconds 3] [--page]
    python tools/derivatives.py --agreement [WORD ...]    every URDF of example-robot-data whose
                                                          path has the words, without a compiler
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from pages import DOCS, example, markdown, robots_folder

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.bench.pinocchio import pinocchio_model
from linkwise.bench.startup import first_call_of
from linkwise.bench.timing import one_core
from linkwise.trace.tracer import Task, evaluate
from parameters import best, load, written

PAGE = DOCS / "derivatives.md"
ROBOTS = ("xarm7", "talos_reduced")
THEIRS = {
    "inverse_dynamics_derivatives": (pin.computeRNEADerivatives, "∂ID"),
    "forward_dynamics_derivatives": (pin.computeABADerivatives, "∂FD"),
}
RESULTS = {  # where Pinocchio puts them
    "inverse_dynamics_derivatives": ("dtau_dq", "dtau_dv", "tau"),
    "forward_dynamics_derivatives": ("ddq_dq", "ddq_dv", "ddq"),
}
CALLS = 64  # calls of one state between two looks at the clock
LIMIT = 1e-10  # relative, in forward dynamics times the condition of M
Table = tuple[list[str], list[list[str]]]


def counted() -> Table:
    """Operations of every method."""
    rows = []
    for name in ROBOTS:
        robot = load(name)
        for function, (_, title) in THEIRS.items():
            methods = FUNCTIONS[function]
            counts = (robot.operation_count(function, method).total for method in methods)
            rows.append([name, title, *(f"{count:,}" for count in counts)])
    return ["robot", "function", *FUNCTIONS["inverse_dynamics_derivatives"]], rows


def states_of(robot: lw.Robot, states: int) -> list[np.ndarray]:
    """Random configurations, rates, and accelerations or torques."""
    rng = np.random.default_rng(0)
    return [robot.random_q(rng, size=states), *rng.normal(size=(2, states, robot.nv))]


def ways_of(robot: lw.Robot, function: str, states: int) -> dict[str, Callable[[], Any]]:
    """A batch by us and one state after another, by Pinocchio, and empty calls."""
    model, theirs = pinocchio_model(robot), THEIRS[function][0]
    data, nothing, batch = model.createData(), pin.Model(), states_of(robot, states)
    rows = [tuple(x.copy() for x in row) for row in zip(*batch, strict=True)][:CALLS]
    for values in (batch, rows[0]):  # compiled before the clock runs
        getattr(robot, function)(*values, threads=1)
    ours = getattr(robot, function)
    return {
        "batch": lambda: ours(*batch, threads=1),
        "one": lambda: each(ours, rows),
        "theirs": lambda: each(partial(theirs, model, data), rows),
        "nothing": lambda: each(pin.neutral, [(nothing,)] * len(rows)),
    }


def each(call: Callable[..., Any], rows: Sequence[Sequence[Any]]) -> None:
    """One call after another; each result is dropped before the next but one."""
    found = None
    for row in rows:
        found = call(*row)
    assert found is not None


def raced(batches: Sequence[int], seconds: float) -> Table:
    """Times of one state, in microseconds."""
    rows = []
    for name in ROBOTS:
        robot = load(name)
        for function, (_, title) in THEIRS.items():
            for states in batches:
                found = best(ways_of(robot, function, states), seconds)
                per = {k: 1e6 * t / min(states, CALLS) for k, t in found.items()}
                per["batch"] = 1e6 * found["batch"] / states
                ratios = (f"{per['theirs'] / per[k]:.1f}" for k in ("batch", "one"))
                times = (f"{per[k]:.2f}" for k in ("batch", "one", "theirs", "nothing"))
                rows.append([name, title, str(states), *times, *ratios])
                print(" ".join(rows[-1]), flush=True)
    head = ["robot", "function", "states", "batch, µs", "one a call, µs", "Pinocchio, µs",
            "an empty call, µs", "times, batch", "times, one a call"]  # fmt: skip
    return head, rows


def first_calls() -> Table:
    """Seconds of a process's first call of each function, for one state and for a batch."""
    rows = []
    for name in ROBOTS:
        path = "xarm_description/urdf/xarm7.urdf" if name == "xarm7" else (
            "talos_data/robots/talos_reduced.urdf"
        )  # fmt: skip
        for function, (_, title) in THEIRS.items():
            times = [first_call_of(str(robots_folder() / path), function, n) for n in (1, 64)]
            rows.append([name, title, *(f"{t:.1f}" for t in times)])
            print("first call, one and 64 states:", " ".join(rows[-1]), flush=True)
    return ["robot", "function", "one state, s", "a batch, s"], rows


# -- agreement -------------------------------------------------------------------------------------


def errors(robot: lw.Robot, states: int = 4) -> Iterator[float]:
    """The largest error of each matrix and value over its largest entry, or that of the value, and
    where M is inverted over its condition; by the equations, which NumPy runs for all states.
    """
    values = states_of(robot, states)
    model, n, scale = pinocchio_model(robot), robot.nv, np.ones(states)
    data = model.createData()
    for function, names in RESULTS.items():
        task, theirs = Task(FUNCTIONS[function]["composite"]), THEIRS[function][0]
        rows = evaluate(task, robot.tree, *(list(x.T) for x in values))
        found = np.moveaxis([[np.broadcast_to(x, states) for x in row] for row in rows], -1, 0)
        for k, row in enumerate(zip(*values, strict=True)):
            theirs(model, data, *row)
            largest = np.abs(getattr(data, names[-1])).max()  # torque or acceleration
            for part, name in zip((slice(0, n), slice(n, 2 * n), 3 * n), names, strict=True):
                expected = np.asarray(getattr(data, name))
                size = max(np.abs(expected).max(), largest)  # a propeller has ∂τ/∂q = 0
                error = np.abs(found[k, part] - expected).max() / size
                yield float(error / scale[k])
        scale = np.linalg.cond(found[:, 2 * n : 3 * n])  # of M, for forward dynamics


def agreement(words: Sequence[str]) -> None:
    """Compare every robot whose path has a word; fail where an error is above the limit."""
    worst, compared = 0.0, 0
    for path in sorted(robots_folder().glob("**/*.urdf")):
        name = str(path.relative_to(robots_folder()))
        if words and not any(word in name for word in words):
            continue
        error = compare(Path(name))
        print(f"{name}: {error if isinstance(error, str) else f'{error:.1e}'}", flush=True)
        if not isinstance(error, str):
            worst, compared = max(worst, error), compared + 1
    print(f"{compared} robots, the largest error {worst:.1e}, allowed {LIMIT:.0e}")
    if worst > LIMIT:
        raise SystemExit(1)


def compare(path: Path) -> float | str:
    """The largest error of a robot, or why there is none."""
    try:
        robot = example(str(path), strict=False, mimic="free")
        return max(errors(robot)) if robot.nv else "no joints"
    except (lw.RobotFileError, ValueError, KeyError, RuntimeError) as error:
        return f"not compared ({str(error).splitlines()[0][:90]})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the page where asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--states", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--agreement", nargs="*", metavar="WORD")
    asked = parser.parse_args(arguments)
    if asked.agreement is not None:
        agreement(asked.agreement)
        return
    with one_core():
        tables = {
            "operations": counted(),
            "times": raced(asked.states, asked.seconds),
            "first calls": first_calls(),
        }
    for name, table in tables.items():
        print(f"\n{name}\n{markdown(*table)}")
        if asked.page:
            PAGE.write_text(written(PAGE.read_text(), name, markdown(*table)))


if __name__ == "__main__":
    main()
