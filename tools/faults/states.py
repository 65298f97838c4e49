"""States that are not finite among states that are: only their own rows may notice."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

import linkwise as lw
from faults.card import Line, shown
from linkwise.algorithms import FUNCTIONS

BAD = (np.nan, np.inf, -np.inf)
INVERTED = ("operational_inertia", "position_inertia")  # which some healthy states do not have


def calls(robot: lw.Robot) -> list[tuple[str, dict[str, Any], list[int]]]:
    """Every function and method: its name, its options, the lengths of its arguments."""
    found = []
    frame = robot.frame_names[-1]
    for function, methods in FUNCTIONS.items():
        for method, algorithm in methods.items():
            if algorithm.iterates or not algorithm.exists_for(robot.tree):
                continue  # iterations report in their own way
            if function == "position_inertia" and robot.nv < 6:
                continue  # small robots may move in a plane only
            if "dt" in dict(algorithm.inputs):
                continue  # a time has no axis of its own
            options: dict[str, Any] = {"frame": frame} if algorithm.takes_frame else {}
            named = getattr(lw.Robot, function, lw.Robot.compute)  # parts of others have no name
            if "method" in inspect.signature(named).parameters:
                options["method"] = method
            sizes = [size for _, size in algorithm.input_sizes(robot.tree)]
            found.append((function, options, sizes))
    return found


def isolation(robots: dict[str, lw.Robot], states: int, share: float = 0.05) -> Line:
    """Every function, dtype and number of threads."""
    line = Line(f"NaN and Inf among {states:,} states, calls",
                "neighbours bit-identical, the flagged set exact", refused=0)  # fmt: skip
    rng = np.random.default_rng(7)
    jobs = [
        (name, robot, call, dtype)
        for name, robot in robots.items()
        for call in calls(robot)
        for dtype in ("float64", "float32")
    ]
    for name, robot, (function, options, sizes), dtype in shown("states", jobs, len(jobs)):
        good = [
            robot.random_q(rng, size=states),
            *(rng.normal(size=(states, n)) for n in sizes[1:]),
        ]
        good = [values.astype(dtype) for values in good]
        rows = np.sort(rng.choice(states, max(1, int(share * states)), replace=False))
        bad = [values.copy() for values in good]
        for row in rows:
            values = bad[rng.integers(len(bad))]
            values[row, rng.integers(values.shape[1])] = rng.choice(BAD)
        line.cases += 1
        problem = _differs(robot, function, options, good, bad, rows)
        if problem:
            line.wrong += 1
            line.fail(f"{name}.{function} {options} {dtype}: {problem}")
        else:
            line.count("refused")
    line.met = not line.wrong
    return line


def _differs(
    robot: lw.Robot,
    function: str,
    options: dict[str, Any],
    good: list[Any],
    bad: list[Any],
    rows: Any,
) -> str:
    """What is wrong about a batch with bad rows; nothing, if all is well."""
    call = getattr(robot, function, None)
    if call is None or function.endswith("_derivatives"):  # results in parts
        call = partial(robot.compute, function)
    clean, calm = call(*good, **options, status=True)
    plain = call(*bad, **options)
    result, status = call(*bad, **options, status=True)
    others = np.setdiff1d(np.arange(len(status)), rows)
    flagged = np.flatnonzero(status & lw.Status.NOT_FINITE)
    checks = {
        "flagged set": np.array_equal(flagged, rows),
        "a healthy state is flagged": not calm.any() or function in INVERTED,
        "a bad row has numbers": bool(np.isnan(result[rows]).all() and np.isnan(plain[rows]).all()),
        "neighbours": result[others].tobytes() == clean[others].tobytes(),
        "neighbours' status": status[others].tobytes() == calm[others].tobytes(),
        "without status": _same(plain, result),
        "one thread": _same(call(*bad, **options, threads=1), plain),
    }
    return ", ".join(name for name, passed in checks.items() if not passed)


def _same(a: Any, b: Any) -> bool:
    """The same bits, any NaN being as good as another."""
    return bool(np.array_equal(a, b, equal_nan=True))
