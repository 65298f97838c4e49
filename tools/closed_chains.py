"""Closed loops: operations, times beside Pinocchio, drift over time; for docs/closed_chains.md.

Pinocchio is given the same robot link by link and computes `constraintDynamics`, one state a call,
in a loop of Python; ours is one call over many states on the same core. Both are compared before
they are timed. The clock is processor time, the ways in turns; ratios are the ones to quote. The
four-bar swings over a million steps of RK4 at 1 ms.

    python tools/closed_chains.py [--seconds 2] [--steps 1000000] [--page]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from pages import DOCS, example, markdown

import linkwise as lw
from linkwise.bench.timing import one_core

PAGE = DOCS / "closed_chains.md"
POINT, PLANAR = (0, 0, 0, 1, 1, 1), (0, 0, 0, 1, 1, 0)
STATES = 4096
WAYS = ("ltl", "pv", "pv-r")
COUNTED = ["robot", "joints", "held", "Ω: `ltl`", "`pv`", "`pv-r`", "`efp`",
           "forward dynamics: `ltl`", "`pv`", "`pv-r`"]  # fmt: skip
TIMED = ["robot", "difference", "ns a state: `ltl`", "`pv`", "`pv-r`", "Pinocchio", "times"]
DRIFTED = ["drift", "greatest error, m", "m/s", "of the energy", "ns a step"]


@dataclass(frozen=True)
class Case:
    """A robot with closed loops, and the frames that Pinocchio holds."""

    robot: lw.Robot
    frames: tuple[tuple[str, str | None], ...]  # (a, b) of each loop, None for the world


def four_bar(directions: Any = PLANAR) -> lw.Robot:
    """A planar four-bar whose crank goes all the way round."""
    b = lw.Builder("four_bar", gravity=(0.0, -9.81, 0.0))
    b.link("ground")
    for name, length, mass in (("crank", 0.2, 0.5), ("coupler", 0.6, 1.0), ("rocker", 0.5, 0.8)):
        slender = mass * length**2 / 12
        b.link(name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-4, slender, slender))
    b.joint("a", "continuous", parent="ground", child="crank")
    b.joint("b", "continuous", parent="crank", child="coupler", xyz=(0.2, 0, 0))
    b.joint("d", "continuous", parent="ground", child="rocker", xyz=(0.6, 0, 0))
    b.frame("coupler_end", "coupler", xyz=(0.6, 0, 0))
    b.frame("rocker_end", "rocker", xyz=(0.5, 0, 0))
    return b.build().close_loops(lw.Loop("coupler_end", "rocker_end", directions))


def hand(arm: int, fingers: int) -> lw.Robot:
    """An arm with fingers of three joints, whose tips are held as points."""
    b, last, axes = lw.Builder(f"arm of {arm}, {fingers} fingers"), "ground", ((0, 0, 1), (0, 1, 0))
    b.link("ground")

    def add(name: str, parent: str, k: int, mass: float, xyz: tuple[float, ...]) -> str:
        b.link(name, mass=mass, com=(0.01, 0.02, 0.03), inertia=(mass / 90, mass / 80, mass / 200))
        b.joint(f"j{name}", "revolute", parent=parent, child=name, axis=axes[k % 2], xyz=xyz)
        return name

    for k in range(arm):
        last = add(f"arm{k}", last, k, 2.0, (0.02, 0.01, 0.3))
    for f in range(fingers):
        tip = last
        for k in range(3):
            tip = add(f"finger{f}_{k}", tip, k + 1, 0.1, (0.03 * f, 0.02, 0.05))
        b.frame(f"tip{f}", tip, xyz=(0.01, 0.0, 0.05))
    return b.build().close_loops([lw.Loop(f"tip{f}", None, POINT) for f in range(fingers)])


def standing(path: str, feet: Sequence[str]) -> Case:
    """A quadruped with four feet on the ground, each held as a point."""
    robot = example(path, base="free", strict=False)
    closed = robot.close_loops([lw.Loop(foot, None, POINT) for foot in feet])
    return Case(closed, tuple((foot, None) for foot in feet))


def arm_held() -> Case:
    """An arm whose last link is held as a point."""
    closed = lw.load("iiwa14").close_loops(lw.Loop("link7", None, POINT))
    return Case(closed, (("link7", None),))


def _feet(*legs: str) -> list[str]:
    return [f"{leg}_FOOT" for leg in legs]


SOLO, ANYMAL = (
    "solo_description/robots/solo12.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
)
CASES: dict[str, Callable[[], Case]] = {  # the robots that are timed
    "four-bar": lambda: Case(four_bar(POINT), (("coupler_end", "rocker_end"),)),
    "iiwa14, tip held": arm_held,
    "solo12, four feet": lambda: standing(SOLO, _feet("FL", "FR", "HL", "HR")),
    "ANYmal B, four feet": lambda: standing(ANYMAL, _feet("LF", "RF", "LH", "RH")),
}


def counted_rows() -> list[list[str]]:
    """Operations of Ω and of forward dynamics by each method."""
    robots = {name: make().robot for name, make in CASES.items()}
    robots["four-bar"] = four_bar()
    robots |= {robot.name: robot for robot in (hand(7, 3), hand(7, 5), hand(14, 3), hand(14, 5))}
    rows = []
    for name, robot in robots.items():
        ways = [("delassus", way) for way in (*WAYS, "efp")] + [
            ("forward_dynamics", w) for w in WAYS
        ]
        counts = [robot.operation_count(function, way).total for function, way in ways]
        held = str(robot.tree.n_constraints)
        rows.append([name, str(robot.nv), held, *(f"{count:,}" for count in counts)])
    return rows


class Peer:
    """A closed robot in Pinocchio, whose states are ours in another order."""

    def __init__(self, case: Case) -> None:
        import pinocchio as pin

        self.pin, robot = pin, case.robot.open
        self.model, self.free = self._model(robot)
        self.data = self.model.createData()
        self.contacts = pin.StdVec_RigidConstraintModel()
        self.held = pin.StdVec_RigidConstraintData()
        for a, b in case.frames:
            ends = [self._end(robot, name) for name in (a, b) if name is not None]
            axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED if b is None else pin.ReferenceFrame.LOCAL
            kind = pin.ContactType.CONTACT_3D
            flat = [x for end in ends for x in end]
            contact = pin.RigidConstraintModel(kind, self.model, *flat, axes)
            self.contacts.append(contact)
            self.held.append(contact.createData())
        redundant = case.robot.name == "four_bar"
        self.settings = pin.ProximalSettings(
            1e-14, 1e-9 if redundant else 0.0, 20 if redundant else 1
        )
        pin.initConstraintDynamics(self.model, self.data, self.contacts, self.held)

    def _model(self, robot: lw.Robot) -> tuple[Any, bool]:
        """The robot joint by joint, in the order and the frames of our tree."""
        pin, tree = self.pin, robot.tree
        model = pin.Model()
        model.gravity = pin.Motion(robot.gravity, np.zeros(3))
        for link in tree.links:
            kind = {"free": pin.JointModelFreeFlyer}.get(link.kind, pin.JointModelRZ)
            R = np.array([list(link.placement.rotate_back(e)) for e in _units()]).T
            place = pin.SE3(R, np.array(list(link.placement.r)))
            joint = model.addJoint(link.parent + 1, kind(), place, link.joint_name)
            body = link.inertia
            centre = np.array(list(body.h)) / body.m if body.m else np.zeros(3)
            about = np.array([list(row) for row in body.rotational().full().rows])
            steiner = body.m * (centre @ centre * np.eye(3) - np.outer(centre, centre))
            model.appendBodyToJoint(
                joint, pin.Inertia(body.m, centre, about - steiner), pin.SE3.Identity()
            )
        model.armature = np.array([x for link in tree.links for x in link.armature])
        return model, tree.links[0].kind == "free"

    def _end(self, robot: lw.Robot, name: str) -> tuple[int, Any]:
        at = robot.tree.frames[name]
        return at.link + 1, self.pin.SE3(np.array(at.rotation), np.array(at.origin))

    def states(self, q: Any, qd: Any, tau: Any) -> list[tuple[Any, ...]]:
        """Our states as Pinocchio has them: a free joint the other way round."""
        if not self.free:
            return list(zip(q, qd, tau, strict=True))
        q = np.concatenate([q[:, 4:7], q[:, 1:4], q[:, :1], q[:, 7:]], axis=1)
        swapped = [np.concatenate([x[:, 3:6], x[:, :3], x[:, 6:]], axis=1) for x in (qd, tau)]
        return list(zip(q, *swapped, strict=True))

    def accelerations(self, states: list[tuple[Any, ...]]) -> Any:
        """Joint accelerations, in our order."""
        call, more = self.pin.constraintDynamics, (self.contacts, self.held, self.settings)
        found = np.array([call(self.model, self.data, *state, *more).copy() for state in states])
        if not self.free:
            return found
        return np.concatenate([found[:, 3:6], found[:, :3], found[:, 6:]], axis=1)


def _units() -> list[Any]:
    from linkwise.spatial import Vec3

    return [Vec3(*row) for row in np.eye(3)]


def states_of(case: Case, count: int) -> tuple[Any, Any, Any]:
    """States that respect the loops where frames are held to each other; others are free to move
    with the ground that they stand on.
    """
    robot, rng = case.robot, np.random.default_rng(0)
    q, (qd, tau) = robot.random_q(rng, size=count), rng.uniform(-1, 1, (2, count, robot.nv))
    if case.frames[0][1] is not None:
        around = rng.uniform(-0.3, 0.3, (count, robot.nv)) + np.array([0.5, 0.6, 1.8])
        q, qd = robot.project(around, qd)
        good = np.isfinite(q).all(axis=1)
        q, qd, tau = q[good], qd[good], tau[good]
    return q, qd, tau


def least(ways: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Least processor time of each way, measured in turns."""
    found: dict[str, float] = {}
    began = process_time()
    while process_time() - began < seconds:
        for name, way in ways.items():
            start = process_time()
            way()
            found[name] = min(found.get(name, np.inf), process_time() - start)
    return found


def timed_rows(seconds: float) -> list[list[str]]:
    """Ours in batches beside Pinocchio, on one core."""
    rows = []
    for name, make in CASES.items():
        case = make()
        robot, (q, qd, tau) = case.robot, states_of(case, STATES)
        peer, few = Peer(case), 200
        theirs = peer.states(q[:few], qd[:few], tau[:few])
        want = peer.accelerations(theirs)
        off, out = 0.0, np.empty_like(qd)
        for way in WAYS:
            robot.forward_dynamics(q, qd, tau, method=way, out=out, threads=1)
            size = np.abs(want).max(axis=1, keepdims=True)
            off = max(off, float((np.abs(out[:few] - want) / size).max()))

        def ours(way: str, robot: lw.Robot = robot, x: Any = (q, qd, tau), out: Any = out) -> Any:
            return lambda: robot.forward_dynamics(*x, method=way, out=out, threads=1)

        ways = {way: ours(way) for way in WAYS}
        ways["Pinocchio"] = lambda peer=peer, theirs=theirs: _only_run(peer, theirs)
        time = least(ways, seconds)
        per = {way: 1e9 * time[way] / len(q) for way in WAYS}
        pinocchio = 1e9 * time["Pinocchio"] / few
        shown = [f"{per[way]:,.0f}" for way in WAYS]
        times = pinocchio / per[robot.method_for("forward_dynamics")]
        rows.append([name, f"{off:.0e}", *shown, f"{pinocchio:,.0f}", f"{times:.0f}"])
    return rows


def _only_run(peer: Peer, states: list[tuple[Any, ...]]) -> None:
    call, more = peer.pin.constraintDynamics, (peer.contacts, peer.held, peer.settings)
    model, data = peer.model, peer.data
    for q, qd, tau in states:
        call(model, data, q, qd, tau, *more)


def drifted_rows(steps: int) -> list[list[str]]:
    """The four-bar over time: what is left of its closure."""
    robot = four_bar()
    q, qd = robot.project((0.5, 0.6, 1.8), (2.0, 0.0, 0.0))
    rows = []
    for drift, name in (("project", "projected"), (0.02, "Baumgarte, T = 0.02 s"), (None, "none")):
        lw.simulate(robot, q, qd, duration=0.1, dt=1e-3, every=997, drift=drift)
        began = process_time()
        traj = lw.simulate(robot, q, qd, duration=1e-3 * steps, dt=1e-3, every=997, drift=drift)
        took = 1e9 * (process_time() - began) / steps
        off = robot.residual(traj.q, traj.qd)
        energy = traj.energy
        lost = np.abs(energy.total - energy.total[0]).max() / energy.kinetic.max()
        errors = (np.abs(off.position).max(), np.abs(off.velocity).max(), lost)
        rows.append([name, *(f"{x:.0e}" for x in errors), f"{took:,.0f}"])
    return rows


def written(page: str, mark: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The page with another table after a mark."""
    table = markdown(head, rows)
    found, count = re.subn(rf"(<!-- {mark} -->\n)(?:\|.*\n)*", lambda m: f"{m[1]}{table}\n", page)
    assert count == 1, f"{mark}: no such mark on the page"
    return found


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing each robot")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of the four-bar")
    parser.add_argument("--page", action="store_true", help=f"write the tables of {PAGE.name}")
    given = parser.parse_args()
    with one_core():
        tables = {
            "counted": (COUNTED, counted_rows()),
            "timed": (TIMED, timed_rows(given.seconds)),
            "drifted": (DRIFTED, drifted_rows(given.steps)),
        }
    page = PAGE.read_text() if given.page else ""
    for mark, (head, rows) in tables.items():
        print(markdown(head, rows) + "\n")
        page = written(page, mark, head, rows) if given.page else page
    if given.page:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
