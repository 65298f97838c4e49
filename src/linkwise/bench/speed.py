"""Measure a robot's functions beside its peers: rows of numbers, and the table of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import product
from textwrap import fill
from typing import Any

import numpy as np

from linkwise.algorithms import FUNCTIONS
from linkwise.bench.peers import PEERS, Peer, agreeing_peers
from linkwise.bench.states import States, random_states, tip
from linkwise.bench.timing import Way, machine, measure, one_core, versions
from linkwise.engine.auto import choose_method
from linkwise.robot import Robot
from linkwise.text import aligned, nanoseconds, pairs, ratio

BATCH, CALL = "batch", "call"
LOOP = "loop over "  # how a peer without a batch call is run
WIDTH = 96  # columns of text below a table
MEASURED = (
    "forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse", "bias",
    "gravity_torque", "jacobian",
)  # fmt: skip
ARGUMENTS = {"tau": "tau", "qdd": "tau"}  # accelerations are taken from the torques' array


USUAL = ("crba", "aba")
SEVERAL = tuple(f for f, ways in FUNCTIONS.items() if len(ways) > 1)


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    batch: int = 4096
    seconds: float = 0.3  # per row
    threads: int = 1
    dtype: str = "float64"
    functions: tuple[str, ...] = MEASURED
    methods: bool = False  # every method of a function, not only the usual ones


@dataclass(frozen=True)
class Row:
    """One function, one mode: nanoseconds per state, ours and the peers'."""

    function: str
    method: str
    chosen: bool
    mode: str
    ours: float
    operations: int = 0  # of one state; of an iteration, for as many steps as the median takes
    peers: dict[str, float] = field(default_factory=dict)
    via: dict[str, str] = field(default_factory=dict)

    def ratio(self, peer: str) -> float | None:
        """How many times faster than a peer."""
        return self.peers[peer] / self.ours if peer in self.peers else None


class Contest:
    """A robot, the peers that hold the same robot, and states to run them on."""

    def __init__(self, robot: Robot, settings: Settings) -> None:
        self.robot, self.settings, self.frame = robot, settings, tip(robot)
        self.peers, self.missing, self.agreement = agreeing_peers(
            robot, self.frame, settings.functions
        )
        self.states = random_states(robot, settings.batch)

    def auto(self, function: str) -> str:
        """The method that the robot picks."""
        frame = self.robot.tree.frames[self.frame]
        return choose_method(function, self.robot.tree, self.settings.dtype, frame)

    def with_settings(self, **changes: Any) -> Contest:
        """The same contest under other settings."""
        other = copy(self)
        other.settings = replace(self.settings, **changes)
        return other

    def rows(self, report: Callable[[str], None] = lambda text: None) -> Iterator[Row]:
        """Measure everything, one row at a time."""
        for function in self.settings.functions:
            auto = self.auto(function)
            others = [
                m
                for m, algorithm in FUNCTIONS[function].items()
                if (self.settings.methods or m in USUAL) and algorithm.exists_for(self.robot.tree)
            ]
            for method in [auto, *(m for m in others if m != auto)]:
                report(f"timing {function} ({method})")
                yield self.row(function, method, BATCH)
            yield self.row(function, auto, CALL)

    def row(self, function: str, method: str, mode: str) -> Row:
        """Measure ours and the peers' in turns."""
        ours = self.our_batch(function, method) if mode == BATCH else self.our_call(function)
        ways = {peer.name: self._peer_way(peer, function, mode) for peer in self.peers}
        with one_core(mode == CALL or self.settings.threads == 1):
            times = measure([ours, *ways.values()], self.settings.seconds)
        mine = times[0]
        assert mine is not None
        found = {
            name: (time, way.label)
            for (name, way), time in zip(ways.items(), times[1:], strict=True)
            if way is not None and time is not None
        }
        chosen = method == self.auto(function)
        numbers = {name: time for name, (time, _) in found.items()}
        labels = {name: label for name, (_, label) in found.items()}
        return Row(
            function, method, chosen, mode, mine, self.operations(function, method), numbers, labels
        )

    def operations(self, function: str, method: str) -> int:
        """Operations of one state by a method."""
        algorithm = FUNCTIONS[function][method]
        frame = self.frame if algorithm.takes_frame else None
        count = self.robot.operation_count(function, method, frame=frame)
        if algorithm.iterates:
            q, qd, tau = self.states.q, self.states.qd, self.states.tau
            _, info = self.robot.forward_dynamics(q, qd, tau, method=method, status=True)
            count = count.iterated(int(np.median(info.iterations)))
        return count.total

    def _peer_way(self, peer: Peer, function: str, mode: str) -> Way | None:
        if mode == CALL:
            return peer.single(function, self.states)
        return peer.batch(function, self.states, self.settings.threads)

    def our_batch(self, function: str, method: str = "auto", states: States | None = None) -> Way:
        """Our call over all states, into an array that is there already."""
        states = (states or self.states).astype(self.settings.dtype)
        algorithm = FUNCTIONS[function].get(method) or next(iter(FUNCTIONS[function].values()))
        shape = (len(states), *algorithm.output_shape(self.robot.tree))
        extra = ", method=method" if len(FUNCTIONS[function]) > 1 else ""
        call = f"robot.{function}({self._arguments(function)}, out=out, threads=threads{extra})"
        names = self._names(states) | {
            "out": np.empty(shape, self.settings.dtype),
            "threads": self.settings.threads,
            "method": method,
        }
        return Way("batch", call, names, len(states))

    def our_call(self, function: str) -> Way:
        """Our call for one state, as a user writes it; single states are float64."""
        q, qd, tau = (x[0].copy() for x in (self.states.q, self.states.qd, self.states.tau))
        call = f"robot.{function}({self._arguments(function)})"
        return Way("call", call, self._names(States(q, qd, tau)))

    def _names(self, states: States) -> dict[str, Any]:
        return {
            "robot": self.robot, "q": states.q, "qd": states.qd, "tau": states.tau,
            "frame": self.frame,
        }  # fmt: skip

    def _arguments(self, function: str) -> str:
        algorithm = next(iter(FUNCTIONS[function].values()))
        names = [ARGUMENTS.get(name, name) for name, _ in algorithm.inputs]
        return ", ".join((*names, "frame") if algorithm.takes_frame else names)


def speed_table(rows: list[Row], contest: Contest) -> str:
    """Rows as a table."""
    present = [name for name in PEERS if name not in contest.missing]
    head = ["function", "method", "mode", "operations", "linkwise"]
    for name in present:
        head += [name, "ratio"]
    lines = []
    for row in rows:
        line = [row.function, row.method + (" *" if row.chosen else ""), row.mode]
        line += [f"{row.operations:,}", nanoseconds(row.ours)]
        for name in present:
            line += [nanoseconds(row.peers.get(name)), ratio(row.ratio(name))]
        lines.append(line)
    return aligned(head, lines, 3)


NOTES = """\
ns per state, least of many, measured in turns; ratio = peer / linkwise; * is what auto picks.
operations: multiplications, additions, divisions; by conjugate gradients, of the median state.
batch: one call over all states into a given array; call: one float64 state per Python call."""
MUJOCO_NOTE = """\
MuJoCo has no batch call for dynamics alone: a rollout adds an Euler step. Contacts, limits and
sensors are off; a state is copied into its data before each call."""


def footnotes(contest: Contest, rows: list[Row]) -> str:
    """What the numbers mean, what each peer ran, and who is missing."""
    notes = [NOTES, *_compared(rows)]
    if "mujoco" not in contest.missing:
        notes.append(MUJOCO_NOTE)
    if contest.settings.dtype != "float64":
        notes.append("Peers compute in float64.")
    notes += [f"{name}: {why}" for name, why in contest.missing.items()]
    return "\n".join(notes)


def _compared(rows: list[Row]) -> Iterator[str]:
    """For each peer and mode, what was called."""
    for name, mode in product(PEERS, (BATCH, CALL)):
        found = [row.via[name] for row in rows if row.mode == mode and name in row.via]
        loops = [how.removeprefix(LOOP) for how in found if how.startswith(LOOP)]
        direct = [how for how in found if not how.startswith(LOOP)]
        if loops:
            direct.append(f"a Python loop over {' or '.join(dict.fromkeys(loops))}")
        if direct:
            text = f"{name} {mode}: {', '.join(dict.fromkeys(direct))}."
            yield fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def agreement_lines(contest: Contest) -> list[tuple[str, str]]:
    """Largest relative difference from each peer, checked before timing."""
    lines = []
    for name, errors in contest.agreement.items():
        worst = max(errors, key=lambda function: errors[function])
        text = f"differs by at most {errors[worst]:.1e} ({worst}) over {len(errors)} functions"
        lines.append((name, text))
    return lines + list(contest.missing.items())


def header(settings: Settings) -> str:
    """Machine, versions and settings."""
    facts = machine()
    lanes = facts["lanes"]
    found = ", ".join(f"{name} {v or 'not installed'}" for name, v in versions().items())
    load = f", load {facts['load']} before the run" if facts["load"] is not None else ""
    return pairs(
        [
            ("machine", f"{facts['processor']}, {facts['cores']} cores{load}"),
            ("system", facts["system"]),
            ("code for", f"{facts['llvm_cpu']}, {lanes['float64']} float64 or "
                         f"{lanes['float32']} float32 lanes"),
            ("versions", found),
            ("settings", f"{settings.dtype}, batch {settings.batch:,}, {settings.threads} "
                         f"thread(s), {settings.seconds:g} s per row"),
            ("command", command_line()),
        ]
    )  # fmt: skip


def command_line() -> str:
    """The command, to run it again."""
    return shlex.join(["linkwise", *sys.argv[1:]])
