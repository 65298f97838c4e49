"""What an unrolled kernel costs to make as the robot grows: docs/compile_time.md.

    python tools/compile_curve.py           measure, write the table
    python tools/compile_curve.py 7 16 32   these sizes only, print the rows

Chains and trees of n joints: nodes of the program, time to trace it, time LLVM takes, and time per
state of the result. Times are processor time of one thread, least of a few runs, so that other
work on the machine counts little. A series ends where a kernel took longer than PATIENCE.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pages import DOCS, example, markdown

import linkwise as lw
from linkwise.backends.base import BATCH
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.target import host
from linkwise.engine.tasks import Key
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.trace.guard import guard
from linkwise.trace.program import Block
from linkwise.trace.schedule import together
from linkwise.trace.tracer import trace

TABLE = DOCS / "compile_time.md"
SIZES = (7, 16, 32, 48, 64, 96, 128)
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
PATIENCE = 12.0  # seconds of one kernel after which a series ends
STATES = 256
REAL = (
    "talos_data/robots/talos_full_v2.urdf",
    "tiago_description/robots/tiago_dual.urdf",
)


# -- robots -------------------------------------------------------------------------------------


def dh_chain(n: int) -> lw.Robot:
    """Quarter turns and one offset per joint, as industrial arms have."""
    rows = [
        {
            "alpha": (np.pi / 2, -np.pi / 2, 0.0)[i % 3],
            "a": 0.3 * (i % 3 == 2),
            "d": 0.2 * (i % 3 != 2),
            "mass": 1.0,
            "com": (0.05, 0.0, 0.1),
            "inertia": (0.02, 0.02, 0.01),
        }
        for i in range(n)
    ]
    return lw.from_dh(rows, "modified", name="DH chain")


def generic(n: int, branches: int) -> lw.Robot:
    """Revolute joints at any angle with any inertia, in branches of equal length."""
    rng = np.random.default_rng(n)
    links, joints = [LinkDescription("base")], []
    for i in range(n):
        parent = "base" if i == 0 else f"l{i - branches if i > branches else 0}"
        axis = rng.normal(size=3)
        links.append(LinkDescription(f"l{i}", _body(rng)))
        joints.append(
            JointDescription(
                f"j{i}",
                "revolute",
                parent,
                f"l{i}",
                Pose(_tuples(_rotation(rng)), tuple(map(float, rng.uniform(-0.3, 0.3, 3)))),
                tuple(map(float, axis / np.linalg.norm(axis))),
            )
        )
    return lw.Robot(RobotDescription("generic", tuple(links), tuple(joints), base="base"))


def _rotation(rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return np.asarray(Q * np.sign(np.linalg.det(Q)))


def _tuples(R: np.ndarray) -> Any:
    return tuple(tuple(map(float, row)) for row in R)


def _body(rng: np.random.Generator) -> BodyInertia:
    R = _rotation(rng)
    tensor = R @ np.diag(rng.uniform(0.1, 0.15, 3)) @ R.T
    upper = tuple(float(tensor[i, j]) for i, j in zip(*np.triu_indices(3), strict=True))
    return BodyInertia(1.0, tuple(map(float, rng.uniform(-0.1, 0.1, 3))), upper)


SERIES: dict[str, Callable[[int], lw.Robot]] = {
    "DH chain": dh_chain,
    "generic chain": lambda n: generic(n, 1),
    "generic tree": lambda n: generic(n, 5),
}


# -- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """One row: what one kernel costs to make and to run."""

    robot: str
    n: int
    function: str
    method: str
    nodes: int
    trace: float  # seconds
    compile: float  # seconds
    state: float  # nanoseconds

    def cells(self) -> list[str]:
        """For the table."""
        times = [f"{self.trace:.2f}", f"{self.compile:.2f}", f"{self.state:,.0f}"]
        return [self.robot, str(self.n), self.function, self.method, f"{self.nodes:,}", *times]


def measure(robot: lw.Robot, name: str, function: str) -> Cost:
    """Make a kernel without the cache, and run it."""
    robot = robot.with_codegen("unrolled")
    task = robot._calls.tasks.task(Key(function))
    begin = time.process_time()
    program = guard(together(trace(task, robot.tree)))
    traced = time.process_time()
    kernel = Llvm().compile(program, "float64", BATCH)
    compiled = time.process_time()
    nodes = sum(len(region.nodes) for region in program.regions if isinstance(region, Block))
    return Cost(
        name,
        robot.nv,
        function,
        task.algorithm.method,
        nodes,
        traced - begin,
        compiled - traced,
        _state_time(robot, kernel, task),
    )


def _state_time(robot: lw.Robot, kernel: Any, task: Any) -> float:
    rng = np.random.default_rng(0)
    inputs = [
        robot.random_q(rng, size=STATES)
        if size == robot.nq and name == "q"
        else rng.normal(size=(STATES, size))
        for name, size in task.algorithm.input_sizes(robot.tree)
    ]
    out = np.empty((STATES, int(np.prod(task.algorithm.output_shape(robot.tree)))))
    rows = [np.ascontiguousarray(x) for x in inputs]
    kernel(rows, [out], 1)
    best = np.inf
    for _ in range(7):
        begin = time.process_time()
        for _ in range(4):
            kernel(rows, [out], 1)
        best = min(best, (time.process_time() - begin) / (4 * STATES))
    return best * 1e9


def curve(sizes: Sequence[int]) -> Iterator[Cost]:
    """All series, then the real robots."""
    for function in FUNCTIONS:
        for name, make in SERIES.items():
            for n in sizes:
                cost = measure(make(n), name, function)
                yield cost
                if cost.trace + cost.compile > PATIENCE:
                    break
    for path in REAL:
        robot = example(path, mimic="free")
        for function in FUNCTIONS:
            yield measure(robot, robot.name, function)


# -- the table ----------------------------------------------------------------------------------

HEAD = ["robot", "n", "function", "method", "nodes", "trace s", "compile s", "ns/state"]


def growth(costs: Sequence[Cost], function: str) -> str:
    """How the time to make a kernel grows, from the smallest to the largest generic chain."""
    chain = [c for c in costs if c.function == function and c.robot == "generic chain"]
    first, last = chain[0], chain[-1]
    power = np.log((last.trace + last.compile) / (first.trace + first.compile))
    power /= np.log(last.n / first.n)
    return (
        f"`{function}`: {first.trace + first.compile:.2g} s at n = {first.n}, "
        f"{last.trace + last.compile:.2g} s at n = {last.n}, as n^{power:.1f}"
    )


def page(costs: Sequence[Cost]) -> str:
    """docs/compile_time.md."""
    lines = "\n".join(f"- {growth(costs, function)}" for function in FUNCTIONS)
    recursions = [c for c in costs if c.function != "mass_matrix"]
    per_node = np.median([1e6 * (c.trace + c.compile) / c.nodes for c in recursions])
    return f"""# What an unrolled kernel costs to make

Made by `tools/compile_curve.py`: the first call with an empty cache. Later calls have the kernel in
memory, later processes load it from disk in a millisecond or so. Processor time of one thread on a
shared machine ({host().identity.split("|")[1]}): good to about a fifth.

For the recursions (inverse dynamics, FD3, ABA) tracing and LLVM together take about
{per_node:.0f} µs per node, and nodes grow with n: the curve is close to a line. The mass matrix has
n² entries to store. Up to 1,500 of them are stored by instructions in line, which costs LLVM more
than the arithmetic does (the step between n = 32 and 48); beyond, by a function that stores one
register full of columns, and what is left grows with its n² nodes. Beyond 64 links, 40 for
matrices, code is loops over the links unless told otherwise, and compiles in a fraction of a second
(`docs/long_chains.md`). Written out, for generic chains:

{lines}

{markdown(HEAD, [cost.cells() for cost in costs])}

Trees have five branches. A series ends with the first kernel that took longer than
{PATIENCE:.0f} s to make. So: a robot of 60 to 128 joints has its dynamics and its mass matrix in
seconds, once, and then from the cache. Times per state of large matrices are those of writing them:
at n = 64 a matrix has 32 kB, and {STATES} of them do not fit a cache.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the rows; write the table when all sizes were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, help="numbers of joints")
    sizes = parser.parse_args(arguments).sizes
    costs = []
    for cost in curve(sizes or SIZES):
        costs.append(cost)
        print("  ".join(cost.cells()), flush=True)
    if not sizes:
        TABLE.write_text(page(costs), encoding="utf-8")


if __name__ == "__main__":
    main()
