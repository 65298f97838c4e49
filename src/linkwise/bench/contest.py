"""A robot, its peers and states: our calls as users write them, timed in turns with the peers'."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from linkwise.bench.peers import PEERS, agreeing_peers
from linkwise.bench.states import States, any_method, random_states, tip
from linkwise.bench.timing import PACKAGES, Way, machine, measure, one_core, versions
from linkwise.engine.calls import Array
from linkwise.robot import Robot
from linkwise.text import pairs

OURS = "linkwise"
Measured = TypeVar("Measured")
WIDTH = 96  # columns of text below a table


class Report(Protocol):
    """Is told what is measured next, and how many of how many steps are done."""

    def __call__(self, message: str, done: int = 0, total: int = 0) -> None:
        """Take a message."""


def unheard(message: str, done: int = 0, total: int = 0) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    batch: int = 4096
    seconds: float = 0.3  # per row
    threads: int = 1
    dtype: str = "float64"
    methods: bool = False  # every method of a function, not only the usual ones

    def head(self, robot: Robot | None = None) -> str:
        """Machine, versions and settings."""
        facts = machine()
        lanes = facts["lanes"]
        load = f", load {facts['load']} before the run" if facts["load"] is not None else ""
        known = [
            ("machine", f"{facts['processor']}, {facts['cores']} cores{load}"),
            ("system", facts["system"]),
            ("code for", f"{facts['llvm_cpu']}, {lanes['float64']} float64 or "
                         f"{lanes['float32']} float32 lanes"),
            ("versions", shown_versions()),
            ("settings", f"{self.dtype}, batch {self.batch:,}, {self.threads} thread(s), "
                         f"{self.seconds:g} s per row"),
            ("command", command_line()),
        ]  # fmt: skip
        if robot is not None:
            joints = "1 joint" if robot.nv == 1 else f"{robot.nv} joints"
            known.append(("robot", f"{robot.name}, {joints}, frame {tip(robot)}"))
        return pairs(known) + "\n"

    def facts(self, robot: Robot | None = None) -> dict[str, Any]:
        """The same, for JSON."""
        known = {"command": command_line(), "machine": machine(), "versions": versions()}
        known["settings"] = asdict(self)
        if robot is not None:
            about = {"name": robot.name, "nv": robot.nv, "frame": tip(robot)}
            known["robot"] = about | {"digest": robot.tree.digest}
        return known


def shown_versions(packages: Mapping[str, str] = PACKAGES) -> str:
    """Versions of everything that takes part."""
    return ", ".join(f"{k} {v or 'not installed'}" for k, v in versions(packages).items())


def command_line() -> str:
    """The command, to run it again."""
    return shlex.join(["linkwise", *sys.argv[1:]])


@dataclass(frozen=True)
class Times:
    """Nanoseconds of our call and of each peer's, and which call each peer made.

    Where one of our calls is compared with another, that other one is the peer `OURS`.
    """

    ours: float
    peers: Mapping[str, float] = field(default_factory=dict)
    via: Mapping[str, str] = field(default_factory=dict)

    @property
    def rival(self) -> str:
        """The first peer, for tables with one peer."""
        return next(iter(self.peers), "")

    def ratio(self, peer: str) -> float | None:
        """How many times faster than a peer."""
        return self.peers[peer] / self.ours if peer in self.peers else None


def race(ours: Way, others: Mapping[str, Way | None], seconds: float, pinned: bool = True) -> Times:
    """Time our statement and the peers' in turns; a peer with None is left out."""
    present = {name: way for name, way in others.items() if way is not None}
    with one_core(pinned):
        times = measure({"": ours, **present}, seconds)
    mine = times.pop("")
    return Times(mine, times, {name: way.label for name, way in present.items()})


def row_facts(row: Any) -> dict[str, Any]:
    """A row with times, for JSON."""
    facts, times = asdict(row), row.times
    del facts["times"]
    return facts | asdict(times) | {"ratios": {name: times.ratio(name) for name in times.peers}}


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
        """Whether the function takes what the style needs: ``f_ext``, or several arguments."""
        algorithm = any_method(function)
        if "f_ext" in self.extra and not algorithm.takes_external:
            return False
        return self.first is None or len(algorithm.inputs) > 1

    def written(self, function: str) -> str:
        """The call; accelerations are taken from the array of the torques."""
        algorithm = any_method(function)
        arrays = {name: "tau" if name == "qdd" else name for name, _ in algorithm.inputs}
        if algorithm.takes_frame:
            arrays["frame"] = "frame"
        given = [f"{k}={array}" if self.keywords else array for k, array in arrays.items()]
        return f"robot.{function}({', '.join((*given, *filter(None, [self.extra])))})"


def one_state(x: Array) -> Array:
    """The layout of a state alone."""
    state: Array = x[0]
    return state.copy()


ONE_STATE = Style("one state", 1, one_state, single=True)


class Bench(Protocol[Measured]):
    """A table of ``linkwise bench``: what stands above it, its rows, and all of it as JSON."""

    def head(self) -> str:
        """What is measured, on what machine, printed before it is."""

    def rows(self, report: Report) -> Iterator[Measured]:
        """Measure one row after another, and tell what is next."""

    def text(self, rows: Sequence[Measured]) -> str:
        """The table, and notes on what its numbers mean."""

    def facts(self, rows: Sequence[Measured]) -> dict[str, Any]:
        """Everything, for JSON."""


class Contest:
    """A robot, the peers that compute the same robot, and states to run them on."""

    def __init__(
        self,
        robot: Robot,
        functions: Sequence[str],
        states: int,
        peers: Sequence[str] = tuple(PEERS),
    ) -> None:
        self.robot, self.frame = robot, tip(robot)
        makers = {name: PEERS[name] for name in peers}
        self.peers, self.missing, self.agreement = agreeing_peers(
            robot, self.frame, functions, makers
        )
        self.states = random_states(robot, states)

    def ours(self, function: str, style: Style, states: States | None = None) -> Way:
        """Our call, as a user writes it."""
        states = (states or self.states).head(style.states)
        q, qd, tau = (style.layout(x) for x in states.arrays)
        if style.first is not None:
            q = style.first(states.q)
        shape = () if style.single else (style.states,)
        result = (*shape, *any_method(function).output_shape(self.robot.tree))
        names = {
            "robot": self.robot, "q": q, "qd": qd, "tau": tau, "frame": self.frame,
            "out": np.empty(result, np.asarray(q).dtype),
            "f_ext": {self.frame: np.ones((*shape, 6))},
        }  # fmt: skip
        return Way(style.name, style.written(function), names, style.states)
