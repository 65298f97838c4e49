"""Results of compiled kernels, to the bit: a golden table of digests of every method.

    python tests/engine/test_bits.py              writes the table (golden_bits.json) anew
    python tests/engine/test_bits.py FUNCTION...  writes the rows of some functions only

Bits may change only where an operation count or an error against 50 digits falls: name the rows in
the commit that writes the table. Multiply-adds are chosen by the tracer and sincos is in line, so
every processor with fused multiply-adds gives these bits.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.study.generic import generic_chain
from linkwise.trace.program import FLAGS_DTYPE

TABLE = Path(__file__).with_name("golden_bits.json")
COMMAND = "python tests/engine/test_bits.py"
DTYPES = ("float64", "float32")
SMALL = "general arm of 3, mixed"
TURNS = (  # robots of one method after another; the larger ones seldom
    SMALL, SMALL, SMALL, SMALL, "puma560", SMALL, SMALL, SMALL, "iiwa14", SMALL, SMALL, "tree",
    SMALL, SMALL, SMALL, SMALL, "general arm of 7, mixed",
)  # fmt: skip
STATES = 11  # whole tiles and a rest, for every width of register
_spec = importlib.util.spec_from_file_location("counts", Path(__file__).with_name("test_counts.py"))
assert _spec is not None and _spec.loader is not None
_counts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_counts)
ROBOTS = _counts.ROBOTS | {SMALL: lambda: lw.Robot(generic_chain(3, kind="mixed"))}


def digest(*parts: Any) -> str:
    """Of numbers and of where they are not numbers; all NaN are alike.

    Status flags count by value, in the smallest integers that hold them, not by their dtype.
    """
    found = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
        elif array.dtype == FLAGS_DTYPE:
            array = array.astype(np.min_scalar_type(array.max(initial=0)))
        found.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def states(robot: lw.Robot, algorithm: Algorithm, dtype: str) -> list[np.ndarray]:
    """Random states, the fourth with an input that is not a number."""
    rng = np.random.default_rng(8)
    own = {"weights": lambda size: rng.uniform(0.5, 2.0, (STATES, size))}
    values = [
        robot.random_q(seed=3, size=STATES)
        if name in ("q", "q0", "q1")
        else own.get(name, lambda size: rng.normal(size=(STATES, size)))(size)
        for name, size in algorithm.input_sizes(robot.tree)
    ]
    values[-1][3, 0] = np.nan
    return [value.astype(dtype) for value in values]


def results(
    robot: lw.Robot,
    algorithm: Algorithm,
    dtype: str,
    there: Callable[[np.ndarray], Any] = np.asarray,
    back: Callable[[Any], np.ndarray] = np.asarray,
) -> str:
    """The digest of what a method gives for the states, with and without a status.

    ``there`` and ``back`` move arrays to the device that computes, and what it gives from it.
    """
    values = [there(value) for value in states(robot, algorithm, dtype)]
    options = {"method": algorithm.method}
    if algorithm.iterates:
        q, qd, tau, qdd0 = values
        plain = robot.forward_dynamics(q, qd, tau, qdd0=qdd0, **options)
        _, info = robot.forward_dynamics(q, qd, tau, qdd0=qdd0, status=True, **options)
        return digest(*map(back, (plain, *info)))
    frame = robot.frame_names[-1] if algorithm.takes_frame else None
    plain = robot.compute(algorithm.function, *values, frame=frame, **options)
    with_status = robot.compute(algorithm.function, *values, frame=frame, status=True, **options)
    return digest(*map(back, (plain, *with_status)))


def algorithms(robot: lw.Robot) -> Iterator[Algorithm]:
    """All that the robot has; an operational inertia takes six degrees of freedom."""
    if robot.tree.is_closed:  # those that trees have not
        yield from _counts.methods_of(robot)
        return
    for function, methods in FUNCTIONS.items():
        if robot.nv >= 6 or function != "operational_inertia":
            yield from (a for a in methods.values() if a.exists_for(robot.tree))


def golden() -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = json.loads(TABLE.read_text())
    return table


def write(functions: Sequence[str] = ()) -> None:
    """All rows, or those of some functions; the others stay as they are."""
    old, table = golden(), {}
    for name, make in ROBOTS.items():
        robot = make()
        table[name] = {
            row: results(robot, a, dtype)
            if not functions or a.function in functions
            else old[name][row]
            for a in algorithms(robot)
            for dtype in DTYPES
            if (row := f"{a.function}[{a.method}] {dtype}")
        }
        print(f"{name}: {len(table[name])} rows", flush=True)
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


def check(name: str, dtype: str, wanted: Sequence[str]) -> None:
    """Hold methods of a robot, named as in the table, to their bits."""
    from linkwise.backends.llvm.target import host

    if not host().fused:
        pytest.skip("the table is of processors with fused multiply-adds")
    table, robot = golden()[name], ROBOTS[name]()
    known = {f"{a.function}[{a.method}] {dtype}": a for a in algorithms(robot)}
    changed = [row for row in wanted if results(robot, known[row], dtype) != table[row]]
    assert not changed, f"other bits than {TABLE.name}: {changed}; argued for? then: {COMMAND}"
    ours = {row for row in table if row.endswith(dtype)}
    assert ours == known.keys(), f"rows to add or to delete: {sorted(ours ^ known.keys())}"


def sample() -> dict[tuple[str, str], list[str]]:
    """Every third method on one robot in one number type, which go round from one to the next."""
    table = golden()
    trees = [table[name] for name in table if name in TURNS or name == "general arm of 7"]
    methods = list(dict.fromkeys(row.split()[0] for rows in trees for row in rows))[::3]
    found: dict[tuple[str, str], list[str]] = {}
    for k, method in enumerate(methods):
        turn, dtype = k % len(TURNS), DTYPES[k % 2]
        row = f"{method} {dtype}"
        name = next(name for name in (*TURNS[turn:], *TURNS) if row in table.get(name, ()))
        found.setdefault((name, dtype), []).append(row)
    return found


@pytest.mark.parametrize(("name", "dtype"), sample())
def test_bits_of_a_sample_do_not_change(name: str, dtype: str) -> None:
    check(name, dtype, sample()[name, dtype])


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROBOTS)
def test_bits_do_not_change(name: str, dtype: str) -> None:
    check(name, dtype, [row for row in golden()[name] if row.endswith(dtype)])


if __name__ == "__main__":
    write(sys.argv[1:])
