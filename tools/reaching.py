"""Inverse kinematics on four arms, and beside roboticstoolbox: docs/reaching.md, or a terminal.

Poses are those of random configurations within limits, so that each can be reached. An error is the
norm of the SE(3) logarithm, in rad and m, by SciPy's rotations and not by ours. The clock is
processor time of one core, the ways in turns; ratios are the ones to quote. The comparison with
roboticstoolbox's compiled ``ik_LM`` needs that package (pip install roboticstoolbox-python), its
tolerance being on half the squared error: 5e-13 is 1e-6.

    python tools/reaching.py [--poses 10000] [--seconds 10] [--page]
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
from pages import DOCS, example, markdown

import linkwise as lw
from linkwise.backends.base import BATCH
from linkwise.backends.choice import cpu
from linkwise.bench.timing import one_core
from linkwise.engine.reaching import Asked, _reach
from linkwise.trace.program import Repeat

PAGE = DOCS / "reaching.md"
TOL = 1e-6
ARMS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "Panda": ("panda_description/urdf/panda.urdf", "panda_link8"),
    "iiwa14": ("", "link7"),
    "xArm7": ("xarm_description/urdf/xarm7.urdf", "link7"),
}
SOLVED = ["arm", "poses", "solved", "at the first start", "greatest error", "µs a pose",
          "if lanes waited", "µs a call of one"]  # fmt: skip
PEER = ["on Panda, one core", "µs a pose", "solved", "times"]
GOALS = {"a batch": 30.0, "one pose a call": 5.0}


def load(name: str) -> tuple[lw.Robot, str]:
    """An arm and the frame at its end."""
    path, frame = ARMS[name]
    return (example(path) if path else lw.load(name)), frame


def distances(robot: lw.Robot, frame: str, q: Any, target: Any) -> Any:
    """The error of each configuration; infinite where there is none, or one beyond limits."""
    from scipy.spatial.transform import Rotation

    lower, upper = robot.position_limits
    good = np.isfinite(q).all(axis=1) & ((q >= lower) & (q <= upper)).all(axis=1)
    between = np.linalg.solve(robot.forward_kinematics(q[good], frame), target[good])
    r, p = Rotation.from_matrix(between[:, :3, :3]).as_rotvec(), between[:, :3, 3]
    theta = np.linalg.norm(r, axis=1)
    half = np.maximum(theta, 1e-3) / 2
    bend = np.where(theta > 1e-3, (1 - half / np.tan(half)) / (4 * half**2), 1 / 12)
    once = np.cross(r, p)
    v = p - once / 2 + bend[:, None] * np.cross(r, once)
    error = np.full(len(q), np.inf)
    error[good] = np.sqrt((r**2).sum(axis=1) + (v**2).sum(axis=1))
    return error


def best(ways: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least processor time of each way, measured in turns."""
    found, end = dict.fromkeys(ways, np.inf), process_time() + seconds
    while True:
        for name, way in ways.items():
            start = process_time()
            way()
            found[name] = min(found[name], process_time() - start)
        if process_time() >= end:
            return found


def waiting(robot: lw.Robot, frame: str, target: Any) -> Callable[[], Any]:
    """The same search where a lane that is done waits for its neighbours."""
    reach = _reach(robot._calls, frame, Asked("pose", True, 100, TOL), False)
    program = reach.plan.program()
    regions = [replace(r, uneven=False) if isinstance(r, Repeat) else r for r in program.regions]
    machine: Any = cpu()
    ready = machine.ordered(replace(program, regions=tuple(regions)), "float64", BATCH)
    kernel, n = machine.compile(ready, "float64", BATCH), len(target)
    first = np.broadcast_to(reach.plan.first, (n, robot.nq))
    numbers = [np.broadcast_to([x], (n, 1)) for x in (TOL, 101.0)]
    out = [np.empty((n, robot.nq)), np.empty((n, 1), np.uint16)]
    return lambda: kernel([target.reshape(n, 16), first, *numbers], out, 1)


def solved_rows(poses: int, seconds: float) -> list[list[str]]:
    """What is solved on each arm, and in what time."""
    rows = []
    for name in ARMS:
        robot, frame = load(name)
        target = robot.forward_kinematics(robot.random_q(seed=0, size=poses), frame)
        some = [np.ascontiguousarray(x) for x in target[:500]]
        q = robot.inverse_kinematics(target, frame, threads=1)
        first = robot.inverse_kinematics(target, frame, restarts=0, threads=1)
        error = distances(robot, frame, q, target)
        found = error <= TOL * (1 + 1e-9)  # SciPy's rounding
        robot.inverse_kinematics(some[0], frame)
        ways = {
            "batch": lambda r=robot, f=frame, t=target: r.inverse_kinematics(t, f, threads=1),
            "wait": waiting(robot, frame, target),
            "one": lambda r=robot, f=frame, t=some: [r.inverse_kinematics(x, f) for x in t],
        }
        time = best(ways, seconds)
        rows.append([
            name, f"{poses:,}", f"{100 * found.mean():.2f} %",
            f"{100 * np.isfinite(first).all(axis=1).mean():.1f} %",
            f"{error[found].max():.2g}", f"{1e6 * time['batch'] / poses:.2f}",
            f"{1e6 * time['wait'] / poses:.2f}", f"{1e6 * time['one'] / len(some):.1f}",
        ])  # fmt: skip
    return rows


def peer_rows(poses: int, seconds: float) -> list[list[str]]:
    """roboticstoolbox and we on the same poses of Panda; nothing where that is not installed."""
    try:
        import roboticstoolbox as rtb
    except ImportError:
        return []
    robot, frame = load("Panda")
    target = robot.forward_kinematics(robot.random_q(seed=1, size=poses), frame)
    chain = rtb.models.Panda().ets(end=frame)
    np.testing.assert_allclose(chain.qlim, robot.position_limits[:, :7])
    few = [np.ascontiguousarray(x) for x in target[: min(poses, 500)]]
    kept: list[Any] = []

    def peer() -> None:
        kept[:] = [chain.ik_LM(x, tol=5e-13) for x in few]

    robot.inverse_kinematics(target, frame, threads=1)
    robot.inverse_kinematics(few[0], frame)
    ways: dict[str, Callable[[], Any]] = {
        "roboticstoolbox `ik_LM`, one pose a call": peer,
        "one pose a call": lambda: [robot.inverse_kinematics(x, frame) for x in few],
        "a batch": lambda: robot.inverse_kinematics(target, frame, threads=1),
    }
    time = best(ways, seconds)
    q = np.zeros((len(few), robot.nq))
    q[:, :7] = [x.q for x in kept]
    theirs = distances(robot, frame, q, target[: len(few)]) <= TOL * (1 + 1e-6)
    ours = distances(robot, frame, robot.inverse_kinematics(target, frame), target) <= TOL * 1.001
    counts = {name: len(few) for name in ways} | {"a batch": poses}
    shares = dict.fromkeys(ways, ours.mean()) | {next(iter(ways)): theirs.mean()}
    per = {name: time[name] / counts[name] / shares[name] for name in ways}  # per solved pose
    reference = per[next(iter(ways))]
    return [
        [name, f"{1e6 * per[name]:.2f}", f"{100 * shares[name]:.2f} %",
         "1" if name not in GOALS else f"{reference / per[name]:.0f}"]
        for name in ways
    ]  # fmt: skip


def written(page: str, mark: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The page with another table after a mark; without rows, as it was."""
    if not rows:
        return page
    table = markdown(head, rows)
    pattern = rf"(<!-- {mark} -->\n)(?:\|.*\n)*"
    found, count = re.subn(pattern, lambda m: f"{m[1]}{table}\n", page)
    assert count == 1, f"{mark}: no such mark on the page"
    return found


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--page", action="store_true", help="write the tables of docs/reaching.md")
    given = parser.parse_args()
    one_core()
    warnings.simplefilter("ignore", lw.ConvergenceWarning)  # the table counts such rows
    solved = solved_rows(given.poses, given.seconds)
    peers = peer_rows(given.poses, 3 * given.seconds)
    print(markdown(SOLVED, solved))
    print("\n" + (markdown(PEER, peers) if peers else "roboticstoolbox is not installed"))
    if given.page:
        page = written(PAGE.read_text(), "solved", SOLVED, solved)
        PAGE.write_text(written(page, "peer", PEER, peers))


if __name__ == "__main__":
    main()
