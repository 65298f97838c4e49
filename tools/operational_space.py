"""Operational-space control beside the same law composed of Pinocchio's calls.

One state per call, the torques of a law that moves all six directions of the last frame, with and
without a posture. The peer asks Pinocchio for poses, Jacobian, drift, mass matrix and bias, LAPACK
(through SciPy) for both solves, and NumPy for the rest; of two ways, the faster one counts. Both
run on one core, in turns; the clock is processor time of this process. Results agree to the last
column, relative to the largest torque.

    python tools/operational_space.py [--seconds 10] [--page]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from pages import DOCS, example, markdown
from scipy.linalg.lapack import dposv

import linkwise as lw
from linkwise.bench.pinocchio import pinocchio_peer
from linkwise.bench.timing import one_core

KP, KD = 100.0, 20.0  # of the frame
STIFF, SLOW = 25.0, 10.0  # of the posture
BATCH, CALLS = 10_000, 200
GOAL = 10.0
HEAD = ["robot", "posture", "Pinocchio, µs", "ours, µs", "times", "goal", "ours in batches, ns",
        "difference"]  # fmt: skip
ROBOTS = {
    "iiwa14": partial(lw.load, "iiwa14"),
    "xarm7": partial(example, "xarm_description/urdf/xarm7.urdf"),
}
BEGIN, END = "<!-- measured -->", "<!-- end -->"


class Composed:
    """The law by Pinocchio and NumPy, for one state at a time."""

    def __init__(self, robot: lw.Robot, frame: str, posture: Any) -> None:
        names = pinocchio_peer(robot, frame).names
        self.pin, self.model, self.data = names["pin"], names["model"], names["data"]
        self.frame, self.axes, self.posture = names["frame"], names["axes"], posture
        self.data = self.model.createData()
        self.still = np.zeros(self.model.nv)

    def moved(self, q: Any, qd: Any, target: Any, J: Any) -> Any:
        """``u - J̇ qd``, (linear, angular); velocities and poses are in the data."""
        pin, data = self.pin, self.data
        now = data.oMf[self.frame]
        error = np.concatenate(
            [target[:3, 3] - now.translation, pin.log3(target[:3, :3] @ now.rotation.T)]
        )
        drift = pin.getFrameClassicalAcceleration(self.model, data, self.frame, self.axes).vector
        return KP * error - KD * (J @ qd) - drift

    def by_parts(self, q: Any, qd: Any, target: Any) -> Any:
        """The calls that are needed and no others."""
        pin, model, data = self.pin, self.model, self.data
        pin.forwardKinematics(model, data, q, qd, self.still)
        pin.updateFramePlacement(model, data, self.frame)
        J = pin.computeFrameJacobian(model, data, q, self.frame, self.axes)
        u = self.moved(q, qd, target, J)
        pin.crba(model, data, q)
        return self.solved(q, qd, J, u)

    def at_once(self, q: Any, qd: Any, target: Any) -> Any:
        """One call for all terms of the dynamics."""
        pin, model, data = self.pin, self.model, self.data
        pin.forwardKinematics(model, data, q, qd, self.still)
        pin.computeAllTerms(model, data, q, qd)
        pin.updateFramePlacement(model, data, self.frame)
        J = pin.getFrameJacobian(model, data, self.frame, self.axes)
        pin.forwardKinematics(model, data, q, qd, self.still)
        return self.solved(q, qd, J, self.moved(q, qd, target, J), data.nle)

    def solved(self, q: Any, qd: Any, J: Any, u: Any, bias: Any = None) -> Any:
        """Torques, by LAPACK's factors of the upper half of M; M⁻¹ is not formed here either."""
        pin, model, data = self.pin, self.model, self.data
        Y = dposv(data.M, J.T)[1]
        if self.posture is None:
            b = pin.nonLinearEffects(model, data, q, qd) if bias is None else bias
            return J.T @ dposv(J @ Y, u + Y.T @ b)[1]
        a = STIFF * (self.posture - q) - SLOW * qd
        tau = pin.rnea(model, data, q, qd, a)
        return tau + J.T @ dposv(J @ Y, u - J @ a)[1]


def best(ways: dict[str, tuple[Callable[[], Any], int]], seconds: float) -> dict[str, float]:
    """Seconds of processor time per unit of work of each way, measured in turns."""
    found = dict.fromkeys(ways, np.inf)
    began = process_time()
    while process_time() - began < seconds:
        for name, (run, work) in ways.items():
            start = process_time()
            run()
            found[name] = min(found[name], (process_time() - start) / work)
    return found


def states(robot: lw.Robot, frame: str, size: int) -> tuple[Any, Any, Any]:
    """States away from singular poses, and targets."""
    rng = np.random.default_rng(0)
    q = robot.random_q(rng, size=4 * size)
    sound = np.linalg.cond(robot.operational_inertia_inverse(q, frame)) < 1e5
    goal = robot.forward_kinematics(robot.random_q(rng, size=size), frame)
    return q[sound][:size], rng.normal(size=(size, robot.nv)), goal


def _repeated(call: Callable[..., Any], *given: Any) -> tuple[Callable[[], Any], int]:
    def run() -> None:
        for _ in range(CALLS):
            call(*given)

    return run, CALLS


def row(name: str, robot: lw.Robot, held: bool, seconds: float) -> list[str]:
    """A line of the table."""
    frame = robot.frame_names[-1]
    posture = robot.neutral() if held else None
    law = lw.control.OperationalSpace(robot, frame, gains=(KP, KD), posture=posture)
    peer = Composed(robot, frame, posture)
    q, qd, goal = states(robot, frame, BATCH)
    ours, some = law(q, qd, goal), range(0, BATCH, BATCH // 50)
    off = [_difference(peer, ours[k], q[k], qd[k], goal[k]) for k in some]
    one = q[0].copy(), qd[0].copy(), goal[0].copy()
    law(*one)
    out = np.empty_like(ours)
    ways = {
        "ours": _repeated(law, *one),
        "parts": _repeated(peer.by_parts, *one),
        "at once": _repeated(peer.at_once, *one),
        "batch": (lambda: law(q, qd, goal, out=out, threads=1), BATCH),
    }
    found = best(ways, seconds)
    theirs = min(found["parts"], found["at once"])
    return [name, "held" if held else "none", f"{1e6 * theirs:.1f}", f"{1e6 * found['ours']:.2f}",
            f"{theirs / found['ours']:.0f}", f"{GOAL:.0f}", f"{1e9 * found['batch']:.0f}",
            f"{max(off):.0e}"]  # fmt: skip


def _difference(peer: Composed, ours: Any, *state: Any) -> float:
    found = [np.abs(way(*state) - ours).max() for way in (peer.by_parts, peer.at_once)]
    return float(max(found) / np.abs(ours).max())


def main() -> None:
    """Measure, and print the table or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each line")
    parser.add_argument("--page", action="store_true", help="write docs/operational_space.md")
    given = parser.parse_args()
    with one_core():
        robots = {name: make() for name, make in ROBOTS.items()}
        cases = [(name, held) for name in robots for held in (False, True)]
        lines = [row(name, robots[name], held, given.seconds) for name, held in cases]
    table = markdown(HEAD, lines)
    print(table)
    if given.page:
        page = DOCS / "operational_space.md"
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
