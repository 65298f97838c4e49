"""``linkwise bench ROBOT --calls``: every way of calling, beside Pinocchio's for the same states.

What a user has is rarely one contiguous float64 state: it is a list, a column of a matrix, a slice
of a log, a handful of states. The table shows what each of these costs per call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter_ns
from typing import Any

import numpy as np

from linkwise import control, se3
from linkwise.bench.contest import (
    ONE_STATE,
    OURS,
    Contest,
    Report,
    Settings,
    Style,
    Times,
    one_state,
    race,
    row_facts,
)
from linkwise.bench.peer import Peer
from linkwise.bench.pinocchio import PUSHED
from linkwise.bench.states import States, tip
from linkwise.bench.timing import Way
from linkwise.builder import Builder
from linkwise.engine.calls import Array
from linkwise.motion.simulate import simulate
from linkwise.robot import Robot
from linkwise.text import aligned, nanoseconds, ratio

DYNAMICS = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
OF_A_FRAME = ("jacobian", "forward_kinematics")
PEER = "pinocchio"
LARGE, SOME = 4096, 16  # states of a batch that is worth one, and of one that is hardly
REPEATS = 3  # of a first call, on as many robots
STYLES = (
    ONE_STATE,
    replace(ONE_STATE, name="out=", extra="out=out"),
    replace(ONE_STATE, name="keywords", keywords=True),
    replace(ONE_STATE, name="a list", layout=lambda x: x[0].tolist()),
    replace(ONE_STATE, name="a strided view", layout=lambda x: np.repeat(x[0], 2)[::2]),
    replace(ONE_STATE, name="a column", layout=lambda x: np.repeat(x, 4, axis=0).T.copy()[:, 0]),
    replace(ONE_STATE, name="float32", layout=lambda x: x[0].astype(np.float32)),
    replace(ONE_STATE, name="status=True", extra="status=True"),
    replace(ONE_STATE, name="f_ext", extra="f_ext=f_ext"),
    Style("batch of 1", 1, np.copy),
    Style("batch of 3", 3, np.copy),
    Style("batch of 4", 4, np.copy),
    Style("batch of 16", SOME, np.copy),
    Style("16, out=", SOME, np.copy, "out=out"),
    Style("16, float32", SOME, lambda x: x.astype(np.float32)),
    Style("16, every second row", SOME, lambda x: np.repeat(x, 2, axis=0)[::2]),
    Style("16, Fortran order", SOME, np.asfortranarray),
    Style("16, broadcast q", SOME, np.copy, first=one_state),
    Style("16 as (2, 2, 4)", SOME, lambda x: x.reshape(2, 2, len(x) // 4, -1)),
    Style("16, threads=1", SOME, np.copy, "threads=1"),
    Style("16, threads=2", SOME, np.copy, "threads=2"),
    Style("16, status=True", SOME, np.copy, "status=True"),
    Style("16, f_ext", SOME, np.copy, "f_ext=f_ext"),
    Style("batch of 4096", LARGE, np.copy),
    Style("4096, out=", LARGE, np.copy, "out=out"),
    Style("4096, threads=2", LARGE, np.copy, "out=out, threads=2", threads=2),
)
OF_FRAMES = tuple(style for style in STYLES if style.name in (
    "one state", "out=", "a list", "a strided view", "batch of 4", "batch of 16", "4096, out=",
))  # fmt: skip
PLAIN = "4096, out="  # its time per state is what the states of a batch cost
NOTES = """\
ns per call, the least of many, measured in turns; ratio = pinocchio / linkwise.
beyond: what a batch takes beyond its states, each counted at its share of a batch of 4096.
Pinocchio is given contiguous states, one call for each; its batch call, where it has one, for 4096.
first call: without the disk cache, after a batch of 16 was compiled; beside it, that batch's."""


@dataclass(frozen=True)
class CallRow:
    """One style of one function: nanoseconds per call."""

    function: str
    style: str
    states: int
    batch: bool
    times: Times
    beyond: float | None = None  # nanoseconds that a batch call takes beyond its states


class Calls:
    """The ways of calling a robot's functions, timed beside Pinocchio's calls."""

    def __init__(self, robot: Robot, seconds: float) -> None:
        self.robot, self.settings = robot, Settings(LARGE, seconds)
        self.contest = Contest(robot, (*DYNAMICS, *OF_A_FRAME), LARGE, [PEER])

    def head(self) -> str:
        """What is measured, on what."""
        return self.settings.head(self.robot)

    def rows(self, report: Report) -> Iterator[CallRow]:
        """Measure everything, function by function."""
        functions = (*DYNAMICS, *OF_A_FRAME)
        for k, function in enumerate(functions):
            report(f"timing calls of {function}", k, len(functions))
            styles = OF_FRAMES if function in OF_A_FRAME else STYLES
            yield from beyond_states(
                [self.row(function, style) for style in styles if style.applies(function)]
            )
        report("timing calls of everything else", len(functions), len(functions))
        yield from other_calls(self.robot, self.contest.states.head(1), self.settings.seconds)
        yield from self._first_calls()

    def row(self, function: str, style: Style) -> CallRow:
        """Measure ours and the peer's in turns."""
        theirs = {peer.name: self._theirs(peer, function, style) for peer in self.contest.peers}
        whole = replace(self.contest.ours(function, style), states=1)  # the time of all states
        times = race(whole, theirs, self.settings.seconds, style.threads == 1)
        return CallRow(function, style.name, style.states, not style.single, times)

    def _theirs(self, peer: Peer, function: str, style: Style) -> Way | None:
        """The peer's call, or as many as there are states; its batch call for a large batch."""
        states = self.contest.states.head(style.states)
        if style.states == 1:
            return peer.single(function + (PUSHED if "f_ext" in style.extra else ""), states)
        large = style.states == LARGE
        way = peer.batch(function, states, style.threads) if large else peer.loop(function, states)
        return None if way is None else replace(way, states=1)

    @cached_property
    def empty(self) -> CallRow:
        """Forward dynamics of a robot of one joint: what a call costs without its mechanics."""
        return Calls(_pendulum(), self.settings.seconds).row("forward_dynamics", ONE_STATE)

    def _first_calls(self) -> Iterator[CallRow]:
        """First calls of another kind after a batch has been compiled, without the disk cache."""
        some = self.contest.states.head(SOME).arrays
        single, narrow = [x[0] for x in some], [x.astype("float32") for x in some]
        kinds: dict[str, Callable[[Robot], Any]] = {
            "one state": lambda robot: robot.forward_dynamics(*single),
            "float32": lambda robot: robot.forward_dynamics(*narrow),
            "status=True": lambda robot: robot.forward_dynamics(*some, status=True),
        }
        for name, call in kinds.items():
            first, after = self._first(some, call)
            times = Times(after, {OURS: first}, {OURS: "our batch before it"})
            yield CallRow("forward_dynamics", f"first call, {name}", 1, False, times)

    def _first(self, states: Sequence[Array], call: Callable[[Robot], Any]) -> tuple[float, float]:
        """Nanoseconds of a batch's first call, and of a first call of another kind after it."""
        from unittest.mock import patch  # takes long to import, and every command imports this

        times = []
        for k in range(REPEATS):
            robot = self.robot.with_gravity(self.robot.gravity * (1 + 1e-6 * (k + 1)))  # a new one
            with patch.dict(os.environ, LINKWISE_CACHE="off"):
                begin = perf_counter_ns()
                robot.forward_dynamics(*states)
                middle = perf_counter_ns()
                call(robot)
                end = perf_counter_ns()
            times.append((middle - begin, end - middle))
        first, after = zip(*times, strict=True)
        return float(min(first)), float(min(after))

    def text(self, rows: Sequence[CallRow]) -> str:
        """The table, what its numbers mean, and what a call costs without its mechanics."""
        times = self.empty.times
        others = [f", {times.via[peer]} {nanoseconds(x)} ns" for peer, x in times.peers.items()]
        empty = f"Empty call (a robot of one joint): linkwise {nanoseconds(times.ours)} ns"
        missing = [f"{name}: {why}" for name, why in self.contest.missing.items()]
        return "\n".join((calls_table(rows), "", NOTES, "".join((empty, *others, ".")), *missing))

    def facts(self, rows: Sequence[CallRow]) -> dict[str, Any]:
        """Everything, for JSON."""
        return self.settings.facts(self.robot) | {
            "unit": "nanoseconds per call",
            "empty": row_facts(self.empty),
            "rows": [row_facts(row) for row in rows],
        }


def other_calls(robot: Robot, states: States, seconds: float) -> Iterator[CallRow]:
    """Calls of everything else that is compiled, one float64 state a call."""
    if robot.loops or robot.nq != robot.nv:
        return  # states of closed robots and quaternions would need a projection
    q, qd, tau = (x[0] for x in states.arrays)
    frame, rest = tip(robot), robot.neutral()
    pose = robot.forward_kinematics(q, frame)
    pd = control.pd(robot, 100.0, 20.0)
    heavier, weightless = robot.parametric("gravity"), control.gravity_compensation(robot)
    fixed = np.zeros(robot.nv)
    steps: dict[str, Any] = {"dt": 1e-3, "limits": "ignore", "every": None}

    def constant(_t: float, _q: Array, _qd: Array) -> Array:
        return fixed

    def hundred(controller: Any) -> Any:
        return simulate(robot, rest, None, controller, duration=0.1, **steps)

    calls: dict[tuple[str, str], Callable[[], Any]] = {
        ("vjp", "forward_dynamics"): lambda: robot.vjp("forward_dynamics", (q, qd, tau), tau),
        ("jvp", "forward_dynamics"): lambda: robot.jvp(
            "forward_dynamics", (q, qd, tau), (qd, qd, tau)
        ),
        ("integrate", ONE_STATE.name): lambda: robot.integrate(q, qd, 0.1),
        ("forward_kinematics", "two frames"): lambda: robot.forward_kinematics(
            q, [frame, robot.frame_names[-2]]
        ),
        ("parametric", "forward_dynamics"): lambda: heavier.forward_dynamics(
            q, qd, tau, gravity=robot.gravity
        ),
        ("pcg", "forward_dynamics"): lambda: robot.forward_dynamics(q, qd, tau, method="pcg"),
        ("control.pd", "called"): lambda: pd(0.0, q, qd),
        ("se3.log", ONE_STATE.name): lambda: se3.log(pose),
        ("se3.error", ONE_STATE.name): lambda: se3.error(pose, pose),
        ("random_q", "a seed"): lambda: robot.random_q(seed=0),
        ("simulate", "one step"): lambda: simulate(robot, rest, duration=1e-3, **steps),
        ("simulate", "100 steps, gravity"): lambda: hundred(weightless),
        ("simulate", "100 steps, Python"): lambda: hundred(constant),
    }
    for (function, style), call in calls.items():
        timed = Way(function, "call()", {"call": call})
        yield CallRow(function, style, 1, False, race(timed, {PEER: None}, seconds, True))


def beyond_states(rows: list[CallRow]) -> list[CallRow]:
    """Rows with what each float64 batch takes beyond its states at the large batch's rate."""
    per_state = next((row.times.ours / row.states for row in rows if row.style == PLAIN), None)
    if per_state is None:
        return rows
    return [
        replace(row, beyond=row.times.ours - row.states * per_state)
        if row.batch and row.states < LARGE and "float32" not in row.style
        else row
        for row in rows
    ]


def calls_table(rows: Sequence[CallRow]) -> str:
    """Rows as a table."""
    head = ("function", "call", "linkwise", "pinocchio", "ratio", "beyond", "<against")
    lines = []
    for row in rows:
        t = row.times
        numbers = [nanoseconds(x) for x in (t.ours, t.peers.get(t.rival))]
        rest = (ratio(t.ratio(t.rival)), nanoseconds(row.beyond), t.via.get(t.rival, "-"))
        lines.append((row.function, row.style, *numbers, *rest))
    return aligned(head, lines, 2)


def _pendulum() -> Robot:
    builder = Builder("pendulum").link("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    return builder.joint("pivot", "revolute", parent="base", child="rod", axis=(0, 1, 0)).build()
