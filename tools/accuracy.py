"""Errors of every method against 50 digits, as tables: docs/accuracy.md.

    python tools/accuracy.py                        all functions, write the page
    python tools/accuracy.py forward_dynamics       these functions only, print their tables

Chains of n slender links (0.3 m, 1 kg, axial inertia a twentieth of the transverse one) under
gravity, at random states with random torques, and three arms. An error is the largest difference
over the largest entry of the exact result, state by state. The exact result is the same function in
50 digits on the same rounded numbers; that its equations are right is what
tests/papers/test_agreement_all.py shows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import mpmath as mp
import numpy as np
from pages import DOCS, bundled, example

import linkwise.spatial.precise  # noqa: F401  teaches the algebra mpmath's numbers
from linkwise.algorithms import FUNCTIONS, Algorithm, configurations
from linkwise.algorithms.mobility import completed, why_not
from linkwise.model.joints import Revolute
from linkwise.model.tree import Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import Force, RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.trace.tracer import flatten

PAGE = DOCS / "accuracy.md"
DIGITS = 50
STATES = 5
SIZES = (7, 14, 30, 60, 100)
XARM7 = "xarm_description/urdf/xarm7.urdf"
ARMS = ("iiwa14", "puma560", "xarm7")
DTYPES = ("float64", "float32")
PARTS = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")  # called, give a tuple
ELSEWHERE = ("generalized_jacobian", "diagonal_solve")  # of flying bases; a part of another one
MEASURED = [f for f in FUNCTIONS if f not in (*configurations.FUNCTIONS, *ELSEWHERE)]
COMPILED = 50_000  # operations of a program; longer ones are run as equations, by NumPy
# functions whose result has n³ entries: longest chain
CUBIC = {"christoffel": 14, "inertial_power": 14, "kinematic_hessian": 30}
SQUARE = {"coriolis_matrix": 60, **dict.fromkeys(PARTS, 30)}
DENSE = {("mass_matrix_inverse", "schur"): 30}  # methods that take n³ operations for n² entries
# the method whose 50 digits are taken for exact; else the method's own, where results differ
EXACT = {
    "forward_dynamics": "aba",
    "mass_matrix": "crba",
    "mass_matrix_inverse": "crba",
    "operational_inertia": "crba",
    "operational_inertia_inverse": "crba",
    "tip_acceleration": "fd3",
    "coriolis_matrix": "composite",
    **dict.fromkeys(PARTS, "composite"),
}
Array = np.ndarray


# -- robots ---------------------------------------------------------------------------------------


def chain(n: int) -> Robot:
    """Slender links, each joint across the last and turned on a little."""
    body = RigidInertia(1.0, Vec3(0.15, 0.0, 0.0), Sym3(0.03, 0.0, 0.0, 2e-4, 0.0, 2e-4))
    place = Transform(Vec3(0.3, 0.0, 0.0), (Turn("x", 0.6, 0.8),))
    joint = Revolute()
    links = [Link(f"l{i}", f"j{i}", i - 1, joint, place, body, (0.0,), i, i) for i in range(n)]
    tip = Frame(n - 1, (0.3, 0.0, 0.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    return Robot.from_tree(Tree(tuple(links), frames={"tip": tip}), f"n = {n}")


@cache
def robot_of(name: str) -> Robot:
    """A chain, or an arm."""
    if name.startswith("n = "):
        return chain(int(name[4:]))
    return example(XARM7, strict=False) if name == "xarm7" else bundled(name)


@cache
def states_of(name: str) -> dict[str, Array]:
    """Numbers that float32 holds, so that every kernel and 50 digits are given the same states."""
    robot, rng = robot_of(name), np.random.default_rng(1)
    scale = 1.0 if name.startswith("n") else 2.0
    values = rng.uniform(-scale, scale, (7, STATES, robot.nv))
    values[6] = 0.0
    names = ("q", "qd", "qdd", "tau", "rhs", "x", "qdd0")
    return {k: v.astype(np.float32).astype(float) for k, v in zip(names, values, strict=True)}


def frame_of(name: str, algorithm: Algorithm) -> str | None:
    """The tip, for what is about a frame."""
    return robot_of(name).frame_names[-1] if algorithm.takes_frame else None


# -- running --------------------------------------------------------------------------------------


@cache
def exact(name: str, function: str, method: str) -> Array:
    """Every state in 50 digits, rounded at the end."""
    algorithm, states = FUNCTIONS[function][method], states_of(name)
    out = []
    with mp.workdps(DIGITS):
        for row in zip(*(states[k] for k, _ in algorithm.inputs), strict=True):
            scalars = [[mp.mpf(float(x)) for x in value] for value in row]
            frame = frame_of(name, algorithm)
            found = robot_of(name).evaluate(function, *scalars, method=method, frame=frame)
            out.append(np.array(found, dtype=object).astype(float))
    return np.array(out)


def compiled(name: str, algorithm: Algorithm, dtype: str) -> Array:
    """All states by the method's kernel."""
    options = {"method": algorithm.method} if len(FUNCTIONS[algorithm.function]) > 1 else {}
    if algorithm.takes_frame:
        options["frame"] = str(frame_of(name, algorithm))
    names = [k for k, _ in algorithm.inputs if k != "qdd0"]
    values = [states_of(name)[k].astype(dtype) for k in names]
    robot, function = robot_of(name), algorithm.function
    named = None if function in PARTS else getattr(robot, function, None)
    call = named or partial(robot.compute, function)
    return np.asarray(call(*values, **options))


def by_numpy(name: str, algorithm: Algorithm, dtype: str) -> Array:
    """The same equations on NumPy arrays: other fused multiply-adds, else the same roundings."""
    robot = robot_of(name)
    columns = [list(states_of(name)[k].astype(dtype).T) for k, _ in algorithm.inputs]
    nested = robot.evaluate(
        algorithm.function, *columns, method=algorithm.method, frame=frame_of(name, algorithm)
    )
    one = np.ones(STATES, dtype)
    rows = np.stack([x * one for x in flatten(nested)], axis=-1)
    assert rows.dtype == dtype
    return rows.reshape(STATES, *algorithm.output_shape(robot.tree))


def runner(name: str, algorithm: Algorithm) -> Callable[..., Array]:
    """Compiled, where that is a matter of seconds."""
    if algorithm.iterates:
        return compiled
    frame = frame_of(name, algorithm)
    count = robot_of(name).operation_count(algorithm.function, algorithm.method, frame=frame)
    entries = np.prod(algorithm.output_shape(robot_of(name).tree))
    return compiled if count.total + 10 * entries <= COMPILED else by_numpy


@dataclass(frozen=True)
class Cell:
    """Errors of one method on one robot."""

    errors: Array  # of each state

    def __str__(self) -> str:
        middle, worst = np.median(self.errors), np.max(self.errors)
        if not np.isfinite(worst):
            return f"{middle:.0e} (fails)"
        return f"{middle:.0e} ({worst:.0e})"


def measure(name: str, algorithm: Algorithm, dtype: str) -> Cell | None:
    """None where the method is not for the robot, or the robot too long for it."""
    robot, f = robot_of(name), algorithm.function
    longest = DENSE.get((f, algorithm.method), CUBIC.get(f, SQUARE.get(f, max(SIZES))))
    if not algorithm.exists_for(robot.tree) or robot.nv > longest:
        return None
    reference = EXACT.get(f, algorithm.method)
    truth = exact(name, f, reference)
    with np.errstate(all="ignore"):
        found = runner(name, algorithm)(name, algorithm, dtype)
        error = np.abs(found.astype(float) - truth).reshape(STATES, -1).max(axis=1)
        return Cell(error / np.abs(truth).reshape(STATES, -1).max(axis=1))


# -- the page -------------------------------------------------------------------------------------


def names() -> list[str]:
    """Robots, in the order of the columns."""
    return [*(f"n = {n}" for n in SIZES), *ARMS]


def rows_of(function: str) -> Iterator[tuple[str, str, list[str]]]:
    """(method, dtype, cells) of a function."""
    for algorithm in FUNCTIONS[function].values():
        for dtype in DTYPES:
            start = time.perf_counter()
            cells = [measure(name, algorithm, dtype) for name in names()]
            took = time.perf_counter() - start
            print(
                f"{function} {algorithm.method} {dtype}: {took:.0f} s", file=sys.stderr, flush=True
            )
            yield algorithm.method, dtype, ["-" if cell is None else str(cell) for cell in cells]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def section(function: str) -> str:
    """The table of one function."""
    rows = [(f"`{m}`", dtype[5:], *cells) for m, dtype, cells in rows_of(function)]
    return f"### {function}\n\n" + table(["method", "bits", *names()], rows) + "\n"


def norm(A: Any) -> Array:
    """Largest singular value, matrix by matrix."""
    return np.asarray(np.linalg.norm(A, 2, axis=(-2, -1)))


def conditions() -> str:
    """What errors are measured by: condition numbers, and mobilities of links on their own."""
    rows = []
    for name in names():
        M, inverse = exact(name, "mass_matrix", "crba"), exact(name, "mass_matrix_inverse", "crba")
        flexible = norm(exact(name, "operational_inertia_inverse", "crba"))
        stiff = norm(exact(name, "operational_inertia", "crba"))
        alone = mobility(robot_of(name).tree)
        numbers = (
            norm(M) * norm(inverse),
            flexible * stiff,
            alone / norm(inverse),
            alone / flexible,
        )
        rows.append([name, *(f"{np.median(x):.0e}" for x in numbers)])
        print(f"conditions of {name}", file=sys.stderr, flush=True)
    heads = ["robot", "cond(M)", "cond(Λ)", "‖I⁻¹‖ / ‖M⁻¹‖", "‖I⁻¹‖ / ‖Λ⁻¹‖"]
    return table(heads, rows) + "\n"


def mobility(tree: Tree) -> float:
    """The largest of any link on its own, at its joint."""
    if why_not(tree):
        return float("nan")
    units = [Force(Vec3(*row[:3]), Vec3(*row[3:])) for row in np.eye(6).tolist()]
    alone = [[list(own @ unit) for unit in units] for own in map(completed, tree.links) if own]
    return float(max(np.linalg.norm(np.array(x), 2) for x in alone))


INTRODUCTION = """\
# How accurate each method is

Made by `python tools/accuracy.py` (`make accuracy`). Errors against 50 digits: largest difference
over largest entry, the median of {states} random states and in brackets the worst. `n` are chains
of slender links (0.3 m, 1 kg, axial inertia a twentieth of the transverse one) under gravity at
random torques; the arms are the bundled ones, PUMA with its rotors, and the xArm 7. Programs of
more than {compiled:,} operations are run as equations by NumPy, not compiled; methods that iterate
are always compiled. `-`: not measured.

"""


def page(functions: Sequence[str], takeaway: str) -> str:
    """The whole text."""
    head = INTRODUCTION.format(states=STATES, compiled=COMPILED)
    parts = [section(function) for function in functions]
    return (
        head
        + takeaway
        + "\n## Conditions\n\n"
        + conditions()
        + "\n## Errors\n\n"
        + "\n".join(parts)
    )


def kept(text: str) -> str:
    """What the page says by hand: between its introduction and its tables."""
    start, end = text.find("## What to take away"), text.find("## Conditions")
    return text[start:end].rstrip() + "\n" if 0 <= start < end else "## What to take away\n"


def main() -> None:
    """Measure, and write or print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("functions", nargs="*", choices=[*MEASURED, []], metavar="FUNCTION")
    chosen = parser.parse_args().functions
    if chosen:
        for function in chosen:
            print(section(function))
        return
    by_hand = kept(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else kept("")
    PAGE.write_text(page(MEASURED, by_hand), encoding="utf-8")


if __name__ == "__main__":
    main()
