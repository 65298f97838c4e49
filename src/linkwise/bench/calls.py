"""Every way of calling a function, beside Pinocchio's call for the same states.

What a user has is rarely one contiguous float64 state: it is a list, a column of a matrix, a slice
of a log, a handful of states. The table shows what each of these costs per call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

import numpy as np

from linkwise.algorithms import FUNCTIONS
from linkwise.bench.peers import OF_A_FRAME, Pinocchio, agreeing_peers
from linkwise.bench.speed import ARGUMENTS
from linkwise.bench.states import random_states, tip
from linkwise.bench.timing import Way, measure, one_core
from linkwise.builder import Builder
from linkwise.engine.calls import Array
from linkwise.robot import Robot
from linkwise.text import aligned, nanoseconds, ratio

DYNAMICS = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
LARGE, SOME = 4096, 16  # states of a batch that is worth one, and of one that is hardly
REPEATS = 3  # of a first call, on as many robots


@dataclass(frozen=True)
class Style:
    """One way to call a function: how the states lie in memory, and which options are given."""

    name: str
    states: int  # of one call
    layout: Callable[[Array], Any]  # (states, n) -> one argument
    extra: str = ""  # further arguments, as written
    keywords: bool = False  # arguments by name
    single: bool = False  # no batch axis
    threads: int = 1  # of the peer
    first: Callable[[Array], Any] | None = None  # layout of the first argument, if another

    def applies(self, function: str) -> bool:
        """Whether the function has such a call: M and kinematics take no f_ext, nor broadcast."""
        several = len(_argument_names(function)) > 1
        if "f_ext" in self.extra and not _takes_wrenches(function):
            return False
        return several or self.first is None


def _one(x: Array) -> Array:
    state: Array = x[0]
    return state.copy()


def _twice(x: Array) -> Array:
    """Every second row of an array twice as long."""
    doubled: Array = np.repeat(x, 2, axis=0)
    return doubled[::2]


def _boxed(x: Array) -> Array:
    return x.reshape(2, 2, len(x) // 4, -1)


STYLES = (
    Style("one state", 1, _one, single=True),
    Style("out=", 1, _one, "out=out", single=True),
    Style("keywords", 1, _one, keywords=True, single=True),
    Style("a list", 1, lambda x: x[0].tolist(), single=True),
    Style("a strided view", 1, lambda x: np.repeat(x[0], 2)[::2], single=True),
    Style("a column", 1, lambda x: np.repeat(x, 4, axis=0).T.copy()[:, 0], single=True),
    Style("float32", 1, lambda x: x[0].astype(np.float32), single=True),
    Style("status=True", 1, _one, "status=True", single=True),
    Style("f_ext", 1, _one, "f_ext=f_ext", single=True),
    Style("batch of 1", 1, np.copy),
    Style("batch of 3", 3, np.copy),
    Style("batch of 4", 4, np.copy),
    Style("batch of 16", SOME, np.copy),
    Style("16, out=", SOME, np.copy, "out=out"),
    Style("16, float32", SOME, lambda x: x.astype(np.float32)),
    Style("16, every second row", SOME, _twice),
    Style("16, Fortran order", SOME, np.asfortranarray),
    Style("16, broadcast q", SOME, np.copy, first=_one),
    Style("16 as (2, 2, 4)", SOME, _boxed),
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


@dataclass(frozen=True)
class CallRow:
    """One style of one function: nanoseconds per call, ours and Pinocchio's for the same states."""

    function: str
    style: str
    states: int
    batch: bool
    ours: float
    peer: float | None = None
    against: str = "-"
    beyond: float | None = None  # nanoseconds that a batch call takes beyond its states

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        return self.peer / self.ours if self.peer else None


class CallContest:
    """A robot, Pinocchio's model of it where that can be had, and states."""

    def __init__(self, robot: Robot, seconds: float) -> None:
        self.robot, self.seconds, self.frame = robot, seconds, tip(robot)
        self.states = random_states(robot, LARGE)
        functions = (*DYNAMICS, *OF_A_FRAME)
        found = agreeing_peers(robot, self.frame, functions, [Pinocchio.name])
        self.peer = next((peer for peer in found.peers if isinstance(peer, Pinocchio)), None)
        self.missing = found.missing.get(Pinocchio.name, "")

    def rows(self, report: Callable[[str], None] = lambda text: None) -> Iterator[CallRow]:
        """Measure everything, function by function."""
        for function in (*DYNAMICS, *OF_A_FRAME):
            report(f"timing calls of {function}")
            styles = OF_FRAMES if function in OF_A_FRAME else STYLES
            yield from beyond_states(
                [self.row(function, style) for style in styles if style.applies(function)]
            )

    def row(self, function: str, style: Style) -> CallRow:
        """Measure ours and the peer's in turns."""
        ways = [self.ours(function, style), self.theirs(function, style)]
        with one_core(style.threads == 1):
            ours, peer = measure(ways, self.seconds)
        assert ours is not None
        against = ways[1].label if ways[1] is not None else "-"
        return CallRow(function, style.name, style.states, not style.single, ours, peer, against)

    def ours(self, function: str, style: Style) -> Way:
        """Our call, as a user writes it."""
        states = self.states.head(style.states)
        rows = {"q": states.q, "qd": states.qd, "tau": states.tau}
        names = {name: style.layout(x) for name, x in rows.items()}
        if style.first is not None:
            names["q"] = style.first(rows["q"])
        shape = () if style.single else (style.states,)
        wrench = np.ones((*shape, 6))
        out = np.empty((*shape, *_any_method(function).output_shape(self.robot.tree)))
        names |= {"robot": self.robot, "frame": self.frame, "out": out}
        names["f_ext"] = {self.frame: wrench}
        return Way(style.name, _statement(function, style), names)

    def theirs(self, function: str, style: Style) -> Way | None:
        """Pinocchio's call, or as many as there are states; its batch call for a large batch."""
        if self.peer is None:
            return None
        states = self.states.head(style.states)
        if style.states == 1:
            pushed = "f_ext" in style.extra
            return (self.peer.pushed if pushed else self.peer.single)(function, states)
        if style.states == LARGE:
            way = self.peer.batch(function, states, style.threads)
        else:
            way = self.peer.loop(function, states)
        return None if way is None else replace(way, states=1)  # time of all states

    def empty(self) -> CallRow:
        """Forward dynamics of a robot of one joint: what a call costs without its mechanics."""
        return CallContest(_pendulum(), self.seconds).row("forward_dynamics", STYLES[0])

    def first_calls(self) -> Iterator[CallRow]:
        """First calls of another kind after a batch has been compiled, without the disk cache."""
        one, some = self.states.head(1), self.states.head(SOME)
        single, narrow = [x[0] for x in one.arrays], some.astype("float32").arrays
        kinds: dict[str, Callable[[Robot], Any]] = {
            "one state": lambda robot: robot.forward_dynamics(*single),
            "float32": lambda robot: robot.forward_dynamics(*narrow),
            "status=True": lambda robot: robot.forward_dynamics(*some.arrays, status=True),
        }
        for name, call in kinds.items():
            first, after = self._first(call)
            style = f"first call, {name}"
            yield CallRow("forward_dynamics", style, 1, False, after, first, "our batch before it")

    def _first(self, call: Callable[[Robot], Any]) -> tuple[float, float]:
        """Nanoseconds of a batch's first call, and of a first call of another kind after it."""
        states = self.states.head(SOME).arrays
        times = []
        for k in range(REPEATS):
            robot = self.robot.with_gravity(self.robot.gravity * (1 + 1e-6 * (k + 1)))  # a new one
            with _cache_off():
                begin = perf_counter_ns()
                robot.forward_dynamics(*states)
                middle = perf_counter_ns()
                call(robot)
                end = perf_counter_ns()
            times.append((middle - begin, end - middle))
        first, after = zip(*times, strict=True)
        return float(min(first)), float(min(after))


def beyond_states(rows: list[CallRow]) -> list[CallRow]:
    """Rows with what each float64 batch takes beyond its states at the large batch's rate."""
    per_state = next((row.ours / row.states for row in rows if row.style == PLAIN), None)
    if per_state is None:
        return rows
    return [
        replace(row, beyond=row.ours - row.states * per_state)
        if row.batch and row.states < LARGE and "float32" not in row.style
        else row
        for row in rows
    ]


def calls_table(rows: list[CallRow]) -> str:
    """Rows as a table."""
    head = ("function", "call", "linkwise", "pinocchio", "ratio", "beyond", "<against")
    lines = [
        (
            row.function,
            row.style,
            nanoseconds(row.ours),
            nanoseconds(row.peer),
            ratio(row.ratio),
            nanoseconds(row.beyond),
            row.against,
        )
        for row in rows
    ]
    return aligned(head, lines, 2)


NOTES = """\
ns per call, the least of many, measured in turns; ratio = pinocchio / linkwise.
beyond: what a batch takes beyond its states, each counted at its share of a batch of 4096.
Pinocchio is given contiguous states, one call for each; its batch call, where it has one, for 4096.
first call: without the disk cache, after a batch of 16 was compiled; beside it, that batch's."""


def calls_notes(contest: CallContest, empty: CallRow) -> str:
    """What the numbers mean, and what a call costs without its mechanics."""
    text = f"Empty call (a robot of one joint): linkwise {nanoseconds(empty.ours)} ns"
    if empty.peer is not None:
        text += f", {empty.against} {nanoseconds(empty.peer)} ns"
    missing = [f"pinocchio: {contest.missing}"] if contest.missing else []
    return "\n".join((NOTES, f"{text}.", *missing))


def _pendulum() -> Robot:
    builder = Builder("pendulum").link("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    return builder.joint("pivot", "revolute", parent="base", child="rod", axis=(0, 1, 0)).build()


def _any_method(function: str) -> Any:
    return next(iter(FUNCTIONS[function].values()))


def _takes_wrenches(function: str) -> bool:
    return bool(_any_method(function).takes_external)


def _argument_names(function: str) -> list[tuple[str, str]]:
    """Arguments of a function, each with the name of the array that it is given."""
    return [(name, ARGUMENTS.get(name, name)) for name, _ in _any_method(function).inputs]


def _statement(function: str, style: Style) -> str:
    names = _argument_names(function)
    if function in OF_A_FRAME:
        names = [*names, ("frame", "frame")]
    written = [f"{name}={array}" if style.keywords else array for name, array in names]
    return f"robot.{function}({', '.join([*written, *filter(None, [style.extra])])})"


@contextmanager
def _cache_off() -> Iterator[None]:
    before = os.environ.get("LINKWISE_CACHE")
    os.environ["LINKWISE_CACHE"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LINKWISE_CACHE"]
        else:
            os.environ["LINKWISE_CACHE"] = before
