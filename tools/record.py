"""A record of what every function gives, counts, and costs; and what changed since: the referee of
changes that should change nothing.

    python tools/record.py record                 all rows, into build/record.json
    python tools/record.py record ROWS=iiwa14     rows whose names contain a text, anew
    python tools/record.py compare ROWS=aba       compute these rows again and compare

A row is "robot | function[method] | option". It has numbers of the result at fixed random states
and their digest, the operation count, scratch numbers of a state, seconds to trace and to compile,
and nanoseconds of a state. The record is not tracked; rows that are there are kept (`record` goes
on where it was interrupted) unless ROWS names them. `compare` prints what changed, worst first, and
exits with 1 if results or counts did, or if rows are gone: a result has changed if it is off by
more than rounding times the condition of the mass matrix; if only bits differ, that is printed and
is no failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ["LINKWISE_CACHE"] = "off"  # compile times are of compilations

import numpy as np
from pages import example

import linkwise as lw
from linkwise.algorithms import Algorithm, functions_of
from linkwise.bench.states import frame_for
from linkwise.engine.tasks import Key

RECORD = Path(__file__).resolve().parents[1] / "build" / "record.json"
STATES, BATCH, KEPT = 4, 256, 64
MOST_OPERATIONS = 12_000  # larger programs are counted, and neither compiled nor run
MOST_CUBIC = 8  # degrees of freedom of robots whose results with nv³ entries are taken
CORE = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "motion")
NOISE = 1.3  # times between two runs on one machine that mean nothing
LATER = 1.5  # compile times, likewise
SAVED_EVERY = 20
Row = dict[str, Any]


# -- robots ---------------------------------------------------------------------------------------


def _file(path: str, **options: Any) -> Callable[[], lw.Robot]:
    return lambda: example(path, strict=False, mimic="free", **options)


def _held(n: int) -> lw.Robot:
    """An arm whose hand is held at a point."""
    arm = lw.load("iiwa14")
    loop = lw.Loop(arm.frame_names[-1], None, [0, 0, 0, 1, 1, 1])
    return arm.close_loops(loop, at=arm.random_q(seed=n))


def _grasp() -> lw.Grasp:
    arm, there = lw.load("puma560"), np.eye(4)
    there[:3, 3] = (0.9, 0.2, 0.1)
    box = lw.RigidBody(2.0, (0.0, 0.1, 0.3), (0.06, 0.05, 0.04))
    contacts = [lw.Contact(0, arm.frame_names[-1]), lw.Contact(1, arm.frame_names[-1], "point")]
    return lw.Grasp([arm, arm], box, contacts, [np.eye(4), there])


ROBOTS: dict[str, Callable[[], lw.Robot]] = {
    "puma560": lambda: lw.load("puma560"),
    "iiwa14": lambda: lw.load("iiwa14"),
    "iiwa14 floating": lambda: lw.load("iiwa14", strict=False, base="free"),
    "iiwa14 parametric": lambda: lw.load("iiwa14").parametric("inertia", "gravity"),
    "iiwa14 rolled": lambda: lw.load("iiwa14").with_codegen("rolled"),
    "iiwa14 closed": lambda: _held(1),
    "iiwa14 closed parametric": lambda: _held(1).parametric("inertia", "gravity"),
    "two puma560": _grasp,
    "ur5": _file("ur_description/urdf/ur5_robot.urdf"),
    "panda": _file("panda_description/urdf/panda.urdf"),
    "allegro": _file("allegro_hand_description/urdf/allegro_right_hand.urdf"),
    "anymal": _file("anymal_b_simple_description/robots/anymal.urdf", base="free"),
    "solo12": _file("solo_description/robots/solo12.urdf", base="free"),
    "talos": _file("talos_data/robots/talos_reduced.urdf", base="free"),
    "chain of 3": lambda: lw.chain(3),
    "chain of 12": lambda: lw.chain(12),
    "chain of 45": lambda: lw.chain(45),
    "chain of 100": lambda: lw.chain(100),
    "chain of 1000": lambda: lw.chain(1000),
}


class Name(NamedTuple):
    """What a row is of."""

    robot: str
    function: str
    method: str
    option: str

    def __str__(self) -> str:
        return f"{self.robot} | {self.function}[{self.method}] | {self.option}"


@cache
def robot_of(name: str) -> lw.Robot:
    """A robot of the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.LinkwiseWarning)
        return ROBOTS[name]()


def names(pattern: str = "") -> Iterator[Name]:
    """All rows whose names contain a text."""
    first = pattern.split(" | ")[0]
    named = [robot for robot in ROBOTS if first in robot]  # robots are not loaded in vain
    for robot in named or ROBOTS:
        yield from (x for x in _rows_of(robot) if pattern in str(x))


def _rows_of(name: str) -> Iterator[Name]:
    robot = robot_of(name)
    for function, methods in functions_of(robot.tree).items():
        for method, algorithm in methods.items():
            if not algorithm.exists_for(robot.tree) or _huge(robot, algorithm):
                continue
            core = function in CORE
            options = ["plain", "status", *(["float32", "vjp"] if core else [])]
            if core and algorithm.takes_external:
                options.append("f_ext")
            yield from (Name(name, function, method, option) for option in options)


def _huge(robot: lw.Robot, algorithm: Algorithm) -> bool:
    """Results or programs that are known to take minutes."""
    shape = algorithm.output_shape(robot.tree)
    many = np.prod(shape, dtype=float) > 64 * MOST_CUBIC**3 // 8
    frame = frame_of(robot, algorithm)
    at = None if frame is None else robot.tree.frames[frame]
    rolls = robot.tree.n_links <= 44 or algorithm.can_roll(robot.tree) or algorithm.scans
    return many or not rolls or not algorithm.exists_for(robot.tree, at)


def frame_of(robot: lw.Robot, algorithm: Algorithm) -> str | None:
    """The tip, for functions of a frame."""
    return frame_for(robot, algorithm)


# -- one row --------------------------------------------------------------------------------------


def values_of(robot: lw.Robot, algorithm: Algorithm, count: int, dtype: str) -> list[np.ndarray]:
    """Fixed random states."""
    rng, found = np.random.default_rng(11), []
    for name, size in algorithm.input_sizes(robot.tree):
        if name in ("q", "q0", "q1"):
            x = robot.random_q(rng, size=count)
        elif name in ("weights", "dt"):
            x = rng.uniform(0.5, 1.5, (count, size))
        else:
            x = 0 * rng.uniform(-1, 1, (count, size)) if name == "qdd0" else rng.uniform(
                -1, 1, (count, size)
            )  # fmt: skip
        found.append(x.astype(dtype))
    return found


def caller(robot: lw.Robot, name: Name, algorithm: Algorithm) -> Callable[..., Any]:
    """What a row times."""
    frame = frame_of(robot, algorithm)
    options: dict[str, Any] = {"threads": 1}
    if name.option == "status":
        options["status"] = True
    if name.option == "vjp":
        shape = algorithm.output_shape(robot.tree)
        weights = np.random.default_rng(12).uniform(-1, 1, shape)
        call = robot.vjp
        return lambda *x: call(
            name.function, x, weights, wrt="q", method=name.method, frame=frame, threads=1
        )
    if name.option == "f_ext":
        wrench = {robot.frame_names[-1]: np.arange(1.0, 7.0)}
        call = robot._calls.run
        if algorithm.iterates:
            return lambda *x: robot.forward_dynamics(*x[:3], method=name.method, f_ext=wrench)
        return lambda *x: call(name.function, x, {"threads": 1}, method=name.method, f_ext=wrench)
    return lambda *x: robot.compute(name.function, *x, method=name.method, frame=frame, **options)


def flat(found: Any) -> np.ndarray:
    """All numbers of a result."""
    if isinstance(found, tuple):
        return np.concatenate([flat(x) for x in found])
    return np.asarray(found, float).ravel()


def measured(name: Name) -> Row:
    """A row, computed now."""
    robot = robot_of(name.robot)
    algorithm = functions_of(robot.tree)[name.function][name.method]
    row: Row = {}
    task = robot._calls.tasks.task(Key(name.function, name.method, frame_of(robot, algorithm)))
    if (algorithm.columns and task.rolled) or task.in_pieces:
        program = None
    else:
        start = time.process_time()
        program = robot._calls.kernels.program(robot._calls.kernels.equations(task))
        row["trace"] = time.process_time() - start
        row["scratch"] = sum(a.size for a in program.arrays if a.values is None)
    try:
        frame = frame_of(robot, algorithm)
        row["count"] = robot.operation_count(name.function, name.method, frame=frame).total
    except lw.NoProgram as error:
        row["count"] = str(error)
    unrolled = program is not None and not task.rolled
    if unrolled and isinstance(row["count"], int) and row["count"] > MOST_OPERATIONS:
        return row | {"left": "large"}
    dtype = "float32" if name.option == "float32" else "float64"
    call, given = caller(robot, name, algorithm), values_of(robot, algorithm, STATES, dtype)
    before, wall = time.process_time(), time.perf_counter()
    found = call(*given)
    row["compile"] = max(time.process_time() - before, time.perf_counter() - wall)
    numbers = flat(found)
    row["digest"] = hashlib.sha256(np.nan_to_num(numbers, nan=12345.0).tobytes()).hexdigest()[:16]
    row["size"] = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    row["numbers"] = _some(numbers)
    row["tolerance"] = _tolerance(robot, dtype) * max(1.0, len(numbers) / KEPT)
    row["ns"] = _time(call, values_of(robot, algorithm, _batch(robot), dtype)) / _batch(robot)
    return row


def _some(numbers: np.ndarray) -> list[float | None]:
    """Few enough to store: of a long result, weighted sums in which every number has a part.

    None for what is not finite.
    """
    if len(numbers) > KEPT:
        weights = np.random.default_rng(13).uniform(0.5, 1.0, len(numbers))
        starts = np.linspace(0, len(numbers), KEPT, endpoint=False).astype(int)
        numbers = np.add.reduceat(numbers * weights, starts)
    return [float(x) if np.isfinite(x) else None for x in numbers]


@cache
def _condition(name: str, robot: lw.Robot) -> float:
    if robot.nv > 50:
        return 1e6
    M = robot.mass_matrix(robot.random_q(seed=1, size=STATES))
    return float(np.linalg.cond(M).max())


def _tolerance(robot: lw.Robot, dtype: str) -> float:
    return 100.0 * float(np.finfo(dtype).eps) * _condition(robot.name, robot)


def _batch(robot: lw.Robot) -> int:
    return max(4, BATCH * 7 // max(robot.nv, 7))


def _time(call: Callable[..., Any], given: Sequence[np.ndarray]) -> float:
    """Nanoseconds of a call: the least of some, within 20 ms."""
    best, end = np.inf, time.perf_counter() + 0.02
    while True:
        start = time.perf_counter_ns()
        call(*given)
        best = min(best, time.perf_counter_ns() - start)
        if time.perf_counter() > end:
            return float(best)


# -- records --------------------------------------------------------------------------------------


def kept(path: Path) -> dict[str, Row]:
    """The rows of a record, by name."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, rows: dict[str, Row]) -> None:
    """At once, so that an interrupt leaves a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(rows, indent=0) + "\n")
    draft.replace(path)


def told(name: Name) -> Row:
    """A row, or why there is none."""
    try:
        return measured(name)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def progress(done: int, total: int, name: Any, start: float) -> None:
    """Show how far it is, on one line of the terminal."""
    text = f"\r{done}/{total} {time.perf_counter() - start:5.0f} s  {name!s:.70}"
    print(f"{text:<100}", end="", file=sys.stderr, flush=True)


def record(path: Path, pattern: str) -> int:
    """Rows that are missing, or those that are named."""
    rows, start = kept(path), time.perf_counter()
    wanted = [name for name in names(pattern) if pattern or str(name) not in rows]
    for k, name in enumerate(wanted):
        progress(k, len(wanted), name, start)
        rows[str(name)] = told(name)
        if k % SAVED_EVERY == 0:
            save(path, rows)
    save(path, rows)
    wrong = sum("error" in row for row in rows.values())
    print(f"\n{len(wanted)} rows recorded, {len(rows)} in {path}; {wrong} of them refused")
    return 0


def compare(path: Path, pattern: str) -> int:
    """The present state against the record."""
    rows, start = kept(path), time.perf_counter()
    if not rows:
        raise SystemExit(f"there is no record in {path}; `make record` makes one")
    now = list(names(pattern))
    wanted = [name for name in now if str(name) in rows]
    present = set(map(str, now))
    gone = [x for x in rows if pattern in x and x not in present]
    changes = [(1e9, x, "gone: there is no such row any more") for x in gone]
    for k, name in enumerate(wanted):
        progress(k, len(wanted), name, start)
        changes += [(x, str(name), text) for x, text in differences(rows[str(name)], told(name))]
    new = len(now) - len(wanted)
    print(f"\n{len(wanted)} rows compared with {path}; {new} new ones are not in it")
    return table(changes)


def differences(old: Row, new: Row) -> Iterator[tuple[float, str]]:
    """What changed: how bad (1,000 and more is a failure), and in words."""
    if old.get("error") != new.get("error"):
        yield 1e9, f"error: {old.get('error')} -> {new.get('error')}"
        return
    if old.get("count") != new.get("count"):
        yield 1e6, f"operations: {old.get('count')} -> {new.get('count')}"
    if "digest" in old and "digest" in new and old["digest"] != new["digest"]:
        yield _changed(old, new)
    if old.get("scratch") != new.get("scratch"):
        yield 500.0, f"scratch: {old.get('scratch')} -> {new.get('scratch')} numbers"
    for key, most, unit in (("compile", LATER, "s"), ("ns", NOISE, "ns a state")):
        if key in old and key in new:
            ratio = new[key] / max(old[key], 1e-9)
            slow = key == "ns" or max(old[key], new[key]) > 0.1
            if slow and not 1 / most <= ratio <= most:
                yield ratio, f"{key}: {old[key]:.3g} -> {new[key]:.3g} {unit} ({ratio:.2f})"


def _changed(old: Row, new: Row) -> tuple[float, str]:
    """A result of other bits: by how much."""
    a, b = (np.array([np.nan if x is None else x for x in row["numbers"]]) for row in (old, new))
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return 1e8, f"result: another shape, or not finite elsewhere ({a.size}, {b.size} numbers)"
    size = max(old["size"], 1e-300)
    off = float(np.abs(np.nan_to_num(a - b)).max(initial=0.0) / size)
    if off > old["tolerance"]:
        return 1e7 * (1 + off), f"result: off by {off:.2g} of the largest number"
    return 1.0, f"bits: off by {off:.2g}, within {old['tolerance']:.2g}"


def table(changes: list[tuple[float, str, str]]) -> int:
    """Worst first; 1 if results or counts changed."""
    failures = sum(x >= 1000.0 for x, *_ in changes)
    width = max((len(name) for _, name, _ in changes), default=0)
    for _, name, text in sorted(changes, reverse=True):
        print(f"{name:<{width}}  {text}")
    print(f"{failures} changed results, counts or errors; {len(changes) - failures} other changes")
    return int(failures > 0)


def main(arguments: Sequence[str], path: Path = RECORD) -> int:
    """Record or compare; the exit code."""
    if not arguments or arguments[0] not in ("record", "compare"):
        raise SystemExit(__doc__)
    pattern = next((x.removeprefix("ROWS=") for x in arguments[1:]), "")
    return (record if arguments[0] == "record" else compare)(path, pattern)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
