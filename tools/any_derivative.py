"""What derivatives of any function cost: operations, exact, and processor time on one core.

python tools/any_derivative.py [--states 512]    tables for docs/derivatives.md
python tools/any_derivative.py --closed          operations of robots with closed loops
python tools/any_derivative.py --large           times of long chains, by loops over the links
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from pages import example, markdown

import linkwise as lw
from linkwise.backends.base import USUAL
from linkwise.bench.timing import one_core
from linkwise.differentiation.equations import equations_of
from linkwise.differentiation.plan import JACOBIAN, JVP, VJP, Asked, Plan
from linkwise.engine.tasks import Key
from linkwise.trace.program import count_operations

ROBOTS = {
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "talos_reduced": "talos_data/robots/talos_reduced.urdf",
}
FUNCTIONS = [
    "forward_kinematics", "jacobian", "mass_matrix", "kinetic_energy", "coriolis_matrix",
    "centroidal_momentum_matrix", "operational_inertia", "gravity_torque", "forward_dynamics",
]  # fmt: skip
RUNS = 15


def of_modes(robot: lw.Robot) -> list[list[str]]:
    """Operations of the value and of all first derivatives, by each mode."""
    rows, tip = [], robot.frame_names[-1]
    for name in FUNCTIONS:
        framed = name in ("forward_kinematics", "jacobian", "operational_inertia")
        frame = tip if framed else None
        ways = [robot.derivative(name, frame=frame, mode=x) for x in ("forward", "reverse", "auto")]
        value = robot.operation_count(name, frame=frame).total
        by = ", ".join(ways[0].wrt)
        rows.append(
            [name, by, *(f"{x:,}" for x in (value, *(w.operation_count.total for w in ways)))]
        )
    return rows


def least(run: Callable[[], Any]) -> float:
    """The least processor time of several runs."""
    run()
    times = []
    for _ in range(RUNS):
        began = process_time()
        run()
        times.append(process_time() - began)
    return min(times)


def of_orders(name: str, robot: lw.Robot, states: int) -> list[list[str]]:
    """∂τ, the curvature λᵀ∂²τ and all of ∂²τ: operations, µs of a state, and the first call."""
    q, rng = robot.random_q(seed=0, size=states), np.random.default_rng(0)
    qd, qdd, weights = rng.normal(size=(3, states, robot.nv))
    curvature = robot.derivative("inverse_dynamics", order=2, weighted=True)
    tensor, n = robot.derivative("inverse_dynamics", order=2), robot.nv
    several = min(states, 20_000_000 // (9 * n**3))  # tensors that fit into 160 MB
    few = slice(several)
    first = robot.operation_count("inverse_dynamics_derivatives").total
    small, square = np.empty((states, 3 * n + 1, n)), np.empty((states, 9 * n * n))
    cube = np.empty((several, n, 9 * n * n))
    ways: list[tuple[str, int, int, Callable[[], Any]]] = [
        ("∂τ", first, states,
         lambda: robot.inverse_dynamics_derivatives(q, qd, qdd, threads=1, out=small)),
        ("λᵀ∂²τ", curvature.operation_count.total, states,
         lambda: curvature(q, qd, qdd, weights, threads=1, out=square)),
        ("∂²τ", tensor.operation_count.total, several,
         lambda: tensor(q[few], qd[few], qdd[few], threads=1, out=cube)),
    ]  # fmt: skip
    rows, times = [], []
    for title, operations, count, run in ways:
        began = process_time()
        run()
        made = process_time() - began
        times.append(1e6 * least(run) / count)
        rows.append(
            [name, title, f"{operations:,}", f"{operations / first:.1f}", f"{times[-1]:.2f}",
             f"{times[-1] / times[0]:.1f}", f"{made:.1f}"]
        )  # fmt: skip
    return rows


def closed_robots() -> list[tuple[str, lw.Robot, str]]:
    """An arm whose tip is held at a point, and two arms that hold an object."""
    arm, away = lw.load("puma560"), np.eye(4)
    away[0, 3] = 1.0
    held = arm.close_loops([lw.Loop("link6", directions=[0, 0, 0, 1, 1, 1])])
    body = lw.RigidBody(2.0, com=(0.0, 0.0, 0.1), inertia=(0.06, 0.06, 0.01))
    both = lw.Grasp([arm, arm], bases=[np.eye(4), away], object=body, contacts=["link6", "link6"])
    return [
        ("puma560, tip held", held, "forward_dynamics"),
        ("puma560, tip held", held, "constraint_forces"),
        ("two puma560, an object", both, "motion"),
    ]


def of_closed() -> list[list[str]]:
    """Operations by the equations that results solve, and by the way to them."""
    rows = []
    for title, robot, function in closed_robots():
        tasks, key = robot._calls.tasks, Key(function)
        value = count_operations(
            robot._calls.kernels.program(robot._calls.kernels.equations(tasks.task(key)))
        ).total
        counts = [
            count_operations(
                equations_of(Plan(tasks, Asked(key, None, kind, mode)), False).trace(USUAL)
            ).total
            for kind in (JACOBIAN, JVP, VJP)
            for mode in ("auto", "forward")
        ]
        rows.append([title, function, *(f"{x:,}" for x in (value, *counts))])
    return rows


MOST_OF_MATRICES = 1_000  # links


def of_large() -> list[list[str]]:
    """Milliseconds of one state of long chains, and seconds of the first call."""
    rows = []
    for n in (200, 1_000, 100_000):
        robot, rng = lw.chain(n, kind="random"), np.random.default_rng(0)
        q, qd, tau = 0.3 * rng.normal(size=(3, n))
        values = (q, qd, tau)
        ways: list[tuple[str, Callable[[], Any]]] = [
            ("forward_dynamics", lambda r=robot, x=values: r.forward_dynamics(*x)),
            ("its jvp", lambda r=robot, x=values: r.jvp("forward_dynamics", x, x)),
            ("its vjp", lambda r=robot, x=values: r.vjp("forward_dynamics", x, x[0])),
            ("its hvp", lambda r=robot, x=values: r.hvp("forward_dynamics", x, x[0], {"q": x[0]})),
            ("forward_dynamics_derivatives",
             lambda r=robot, x=values: r.forward_dynamics_derivatives(*x)),
        ]  # fmt: skip
        if n > MOST_OF_MATRICES:
            ways.pop()
        for title, run in ways:
            began = perf_counter()
            run()
            first, times = perf_counter() - began, []
            for _ in range(RUNS):
                began = perf_counter()
                run()
                times.append(perf_counter() - began)
            rows.append([f"{n:,}", title, f"{1e3 * min(times):.3f}", f"{first:.1f}"])
    return rows


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=512)
    parser.add_argument("--closed", action="store_true")
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    if asked.closed:
        both = [f"{x}{how}" for x in ("J", "jvp", "vjp") for how in ("", ", by the program")]
        print(markdown(["robot", "function", "value", *both], of_closed()))
        return
    if asked.large:
        print(markdown(["links", "function", "ms", "first call, s"], of_large()))
        return
    states = asked.states
    robots = {name: example(path, strict=False) for name, path in ROBOTS.items()}
    head = ["function", "by", "value", "forward", "reverse", "auto"]
    print(markdown(head, of_modes(robots["xarm7"])))
    head = ["robot", "result", "operations", "of ∂τ", "µs a state", "of ∂τ", "first call, s"]
    with one_core():
        rows = [row for name, robot in robots.items() for row in of_orders(name, robot, states)]
    print("\n" + markdown(head, rows))


if __name__ == "__main__":
    main()
