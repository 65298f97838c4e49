"""``linkwise bench ROBOT``: functions and methods beside the peers, batches and single states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from textwrap import fill
from typing import Any

import numpy as np

from linkwise.algorithms import FUNCTIONS
from linkwise.bench.contest import (
    ONE_STATE,
    WIDTH,
    Contest,
    Report,
    Settings,
    Style,
    Times,
    race,
    row_facts,
)
from linkwise.bench.peer import LOOP
from linkwise.bench.peers import PEERS
from linkwise.bench.states import frame_for
from linkwise.engine.auto import choose_method
from linkwise.robot import Robot
from linkwise.text import aligned, nanoseconds, pairs, ratio

BATCH, CALL = "batch", "call"
MEASURED = (
    "forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse", "bias",
    "gravity_torque", "jacobian",
)  # fmt: skip
USUAL = ("crba", "aba")
SEVERAL = tuple(f for f, ways in FUNCTIONS.items() if len(ways) > 1)
NOTES = """\
ns per state, least of many, measured in turns; ratio = peer / linkwise; * is what auto picks.
operations: multiplications, additions, divisions; by conjugate gradients, of the median state.
batch: one call over all states into a given array; call: one float64 state per Python call."""
MUJOCO_NOTE = """\
MuJoCo has no batch call for dynamics alone: a rollout adds an Euler step. Contacts, limits and
sensors are off; a state is copied into its data before each call."""


@dataclass(frozen=True)
class Row:
    """One function, method and mode: nanoseconds per state."""

    function: str
    method: str
    chosen: bool
    mode: str
    operations: int  # of one state; of an iteration, for as many steps as the median takes
    times: Times


class Speed:
    """A robot's functions, timed beside the peers."""

    def __init__(
        self,
        robot: Robot,
        settings: Settings,
        functions: Sequence[str] = MEASURED,
        peers: Sequence[str] = tuple(PEERS),
    ) -> None:
        self.robot, self.settings, self.functions = robot, settings, functions
        self.contest = Contest(robot, functions, settings.batch, peers)

    def head(self) -> str:
        """What is measured on what, and how far each peer's results are from ours."""
        lines = []
        for name, errors in self.contest.agreement.items():
            worst = max(errors, key=lambda function: errors[function])
            text = f"differs by at most {errors[worst]:.1e} ({worst}) over {len(errors)} functions"
            lines.append((name, text))
        lines += self.contest.missing.items()
        return f"{self.settings.head(self.robot)}\n{pairs(lines)}"

    def auto(self, function: str) -> str:
        """The method that the robot picks."""
        frame = self.robot.tree.frames[self.contest.frame]
        return choose_method(function, self.robot.tree, self.settings.dtype, frame)

    def rows(self, report: Report) -> Iterator[Row]:
        """Measure everything, one row at a time."""
        planned = [way for function in self.functions for way in self._ways(function)]
        for k, (function, method, mode) in enumerate(planned):
            report(f"timing {function} ({method})", k, len(planned))
            yield self.row(function, method, mode)

    def _ways(self, function: str) -> Iterator[tuple[str, str, str]]:
        """The rows of a function: batches by several methods, single states by auto's."""
        auto = self.auto(function)
        others = [
            m
            for m, algorithm in FUNCTIONS[function].items()
            if (self.settings.methods or m in USUAL) and algorithm.exists_for(self.robot.tree)
        ]
        for method in [auto, *(m for m in others if m != auto)]:
            yield function, method, BATCH
        yield function, auto, CALL

    def row(self, function: str, method: str, mode: str) -> Row:
        """Measure ours and the peers' in turns; a state alone is float64, by auto's method."""
        contest, threads = self.contest, self.settings.threads
        if mode == CALL:
            style = ONE_STATE
            theirs = {p.name: p.single(function, contest.states) for p in contest.peers}
        else:
            style = batch_style(self.settings, function, method)
            theirs = {p.name: p.batch(function, contest.states, threads) for p in contest.peers}
        pinned = mode == CALL or threads == 1
        times = race(contest.ours(function, style), theirs, self.settings.seconds, pinned)
        chosen = method == self.auto(function)
        return Row(function, method, chosen, mode, self.operations(function, method), times)

    def operations(self, function: str, method: str) -> int:
        """Operations of one state by a method."""
        algorithm = FUNCTIONS[function][method]
        frame = frame_for(self.robot, algorithm)
        count = self.robot.operation_count(function, method, frame=frame)
        if algorithm.iterates:
            states = self.contest.states.arrays
            _, info = self.robot.forward_dynamics(*states, method=method, status=True)
            count = count.iterated(int(np.median(info.iterations)))
        return count.total

    def text(self, rows: Sequence[Row]) -> str:
        """The table, what its numbers mean, what each peer ran, and who is missing."""
        notes = [NOTES, *_compared(rows)]
        if "mujoco" not in self.contest.missing:
            notes.append(MUJOCO_NOTE)
        if self.settings.dtype != "float64":
            notes.append("Peers compute in float64.")
        notes += [f"{name}: {why}" for name, why in self.contest.missing.items()]
        return "\n".join(("", self._table(rows), "", *notes))

    def _table(self, rows: Sequence[Row]) -> str:
        present = [name for name in PEERS if name not in self.contest.missing]
        head = ["function", "method", "mode", "operations", "linkwise"]
        head += [word for name in present for word in (name, "ratio")]
        lines = []
        for row in rows:
            line = [row.function, row.method + (" *" if row.chosen else ""), row.mode]
            line += [f"{row.operations:,}", nanoseconds(row.times.ours)]
            for name in present:
                line += [nanoseconds(row.times.peers.get(name)), ratio(row.times.ratio(name))]
            lines.append(line)
        return aligned(head, lines, 3)

    def facts(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Everything, for JSON."""
        return self.settings.facts(self.robot) | {
            "unit": "nanoseconds per state",
            "agreement": self.contest.agreement,
            "missing": self.contest.missing,
            "rows": [row_facts(row) for row in rows],
        }


def batch_style(settings: Settings, function: str, method: str = "auto") -> Style:
    """One call over all states, into an array that is there already."""
    options = f"out=out, threads={settings.threads}"
    if len(FUNCTIONS[function]) > 1:
        options += f", method={method!r}"
    return Style(BATCH, settings.batch, partial(np.array, dtype=settings.dtype), options)


def _compared(rows: Sequence[Row]) -> Iterator[str]:
    """For each peer and mode, what was called."""
    for name, mode in product(PEERS, (BATCH, CALL)):
        found = [row.times.via[name] for row in rows if row.mode == mode and name in row.times.via]
        loops = [how.removeprefix(LOOP) for how in found if how.startswith(LOOP)]
        direct = [how for how in found if not how.startswith(LOOP)]
        if loops:
            direct.append(f"a Python loop over {' or '.join(dict.fromkeys(loops))}")
        if direct:
            text = f"{name} {mode}: {', '.join(dict.fromkeys(direct))}."
            yield fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
