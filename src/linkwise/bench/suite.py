"""``linkwise bench --suite``: the reference table, on robots of the example-robot-data package."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import Any

from linkwise.backends.llvm.target import host
from linkwise.backends.process import available_cores
from linkwise.bench.contest import OURS, WIDTH, Report, Settings, Times, race, row_facts
from linkwise.bench.limit import Peak, measure_peak
from linkwise.bench.speed import BATCH, CALL, Speed, batch_style
from linkwise.bench.startup import first_calls, import_time
from linkwise.bench.states import random_states
from linkwise.bench.timing import one_core
from linkwise.errors import RobotFileWarning
from linkwise.load import load
from linkwise.robot import Robot
from linkwise.text import aligned, duration, ratio

ROBOTS = Path("cmeel.prefix/share/example-robot-data/robots")
XARM7 = ROBOTS / "xarm_description/urdf/xarm7.urdf"
TALOS = ROBOTS / "talos_data/robots/talos_reduced.urdf"
LARGE = 200_000  # states for the comparison of threads
THREADS_TURNS = 8  # times longer, to meet a moment when both cores are free
FD = "forward_dynamics"
FUNCTIONS = {"FD": FD, "ID": "inverse_dynamics", "mass matrix": "mass_matrix"}
PEER = "pinocchio"


@dataclass(frozen=True)
class Goal:
    """A ratio to reach at least, or with ``time`` nanoseconds to take at most."""

    required: float
    aim: float | None = None
    time: bool = False

    def shown(self, goal: float | None) -> str:
        """Write one of the two numbers for a table."""
        if goal is None:
            return "-"
        return f"≤ {duration(goal)}" if self.time else f"≥ {goal:g}×"

    def met(self, times: Times) -> str:
        """Which of the two numbers is reached; "-" where there is nothing to compare with."""
        found = times.ours if self.time else times.ratio(times.rival)
        if found is None:
            return "-"
        for name, goal in (("aim", self.aim), ("required", self.required)):
            if goal is not None and (found <= goal if self.time else found >= goal):
                return name
        return "no"


def _within(seconds: float) -> Goal:
    return Goal(1e9 * seconds, time=True)


# what the project holds itself to
GOALS = {
    "xarm7 FD, batch": Goal(22, 30),
    "xarm7 ID, batch": Goal(18, 25),
    "xarm7 mass matrix, batch": Goal(20, 40),
    "talos_reduced FD, batch": Goal(16, 22),
    "xarm7 FD, one state per call": Goal(6, 9),
    "xarm7 ID, one state per call": Goal(6, 10),
    "xarm7 FD, float32 batch": Goal(1.7),
    "xarm7 FD, 200,000 states, 2 threads": Goal(1.8),
    "xarm7 FD, first batch, compiling": _within(0.5),
    "xarm7 FD, first batch, cached": _within(0.02),
    "xarm7 FD, first state, compiling": _within(0.5),
    "xarm7 FD, first state, cached": _within(0.02),
    "talos_reduced FD, first batch, compiling": _within(3.0),
    "talos_reduced FD, first batch, cached": _within(0.02),
    "import linkwise, beyond NumPy": _within(0.2),
}


@dataclass(frozen=True)
class Line:
    """One line of the table: nanoseconds, per state or altogether."""

    what: str
    times: Times
    goal: Goal
    limit: float | None = None  # share of the processor's limit that is reached


class Suite:
    """The reference table."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.missing = settings, ""  # why Pinocchio is missing, where it is
        self.xarm7, self.talos = find_robot(XARM7), find_robot(TALOS)

    @cached_property
    def peak(self) -> Peak:
        """The processor's limit."""
        with one_core():
            return measure_peak()

    def head(self) -> str:
        """What is measured, on what."""
        return self.settings.head()

    def rows(self, report: Report) -> Iterator[Line]:
        """Measure every line."""
        for what, times, *limit in self._measured(report):
            yield Line(what, times, GOALS[what], *limit)

    def _measured(self, report: Report) -> Iterator[tuple[Any, ...]]:
        """The name of each line, its times, and of batches the share of the limit."""
        report("xarm7: comparing results with the peers")
        arm = Speed(_load(self.xarm7), self.settings, tuple(FUNCTIONS.values()), [PEER])
        self.missing = arm.contest.missing.get(PEER, "")
        for name, function in FUNCTIONS.items():
            report(f"xarm7: timing {function}")
            yield f"xarm7 {name}, batch", *self._batch(arm, function)
        report("talos_reduced: compiling, comparing and timing forward dynamics")
        humanoid = Speed(_load(self.talos), self.settings, [FD], [PEER])
        yield "talos_reduced FD, batch", *self._batch(humanoid, FD)
        for name in ("FD", "ID"):
            row = arm.row(FUNCTIONS[name], arm.auto(FUNCTIONS[name]), CALL)
            yield f"xarm7 {name}, one state per call", row.times
        report("xarm7: number types and threads")
        narrow = self._against_ours(arm, "ours, float64", self.settings, {"dtype": "float32"})
        yield "xarm7 FD, float32 batch", narrow
        large = replace(self.settings, batch=LARGE, seconds=THREADS_TURNS * self.settings.seconds)
        label = "ours, 1 thread" + ("" if available_cores() > 1 else " (one core here)")
        two = self._against_ours(arm, label, large, {"threads": 2})
        yield f"xarm7 FD, {LARGE:,} states, 2 threads", two
        report("fresh processes, cold and warm cache")
        for robot, path, states, what in (
            ("xarm7", self.xarm7, 1000, "batch"),
            ("xarm7", self.xarm7, 1, "state"),
            ("talos_reduced", self.talos, 1000, "batch"),
        ):
            cold, warm = first_calls(str(path), states)
            yield f"{robot} FD, first {what}, compiling", Times(cold)
            yield f"{robot} FD, first {what}, cached", Times(warm)
        yield "import linkwise, beyond NumPy", Times(import_time())

    def _batch(self, speed: Speed, function: str) -> tuple[Times, float]:
        times = speed.row(function, speed.auto(function), BATCH).times
        bound = self.peak.bound(speed.robot.operation_count(function), host().lanes(8))
        return times, bound / times.ours

    def _against_ours(
        self, arm: Speed, label: str, usual: Settings, change: dict[str, Any]
    ) -> Times:
        """Forward dynamics of a batch with a setting changed, against the same without."""
        states = random_states(arm.robot, usual.batch)
        changed, plain = (
            replace(arm.contest.ours(FD, batch_style(settings, FD), states), label=label)
            for settings in (replace(usual, **change), usual)
        )
        return race(changed, {OURS: plain}, usual.seconds, pinned="threads" not in change)

    def text(self, lines: Sequence[Line]) -> str:
        """The table, what its columns mean, and the rate that the processor was measured at."""
        rates = f"{self.peak.multiplies:.2f} multiply-adds, {self.peak.mixed:.2f} with additions"
        note = (
            "FD, ID: forward and inverse dynamics. Times are per state or per call, the least of "
            "many, measured in turns with the peer. Of limit: the time that the operations need at "
            f"the rate this core was measured to reach ({host().lanes(8)}-lane float64 "
            f"instructions per ns: {rates} beside them), over the time taken. Two threads need two "
            "idle cores: see the load above."
        )
        note += f" {PEER}: {self.missing}." if self.missing else ""
        return f"{suite_table(lines)}\n\n{fill(note, WIDTH)}"

    def facts(self, lines: Sequence[Line]) -> dict[str, Any]:
        """Everything, for JSON."""
        return self.settings.facts() | {
            "peak_instructions_per_ns": asdict(self.peak),
            "unit": "nanoseconds",
            "rows": [row_facts(x) | {"met": x.goal.met(x.times)} for x in lines],
        }


def find_robot(place: Path) -> Path:
    """A robot of the installed example-robot-data package."""
    path = Path(sysconfig.get_paths()["purelib"]) / place
    if not path.exists():
        raise ValueError(
            f"{place.name} not found: the suite uses robots of the example-robot-data package "
            "(pip install 'linkwise[bench]')"
        )
    return path


def _load(path: Path) -> Robot:
    with warnings.catch_warnings():  # what these files leave to be ignored is known
        warnings.simplefilter("ignore", RobotFileWarning)
        return load(path, mimic="free")  # as Pinocchio reads it


def suite_table(lines: Sequence[Line]) -> str:
    """The lines as a table."""
    head = (
        "what", "linkwise", "peer", "<against", "ratio", "required", "aim", "<met", "of limit",
    )  # fmt: skip
    rows = []
    for line in lines:
        t, goal = line.times, line.goal
        peer = duration(t.peers[t.rival]) if t.peers else "-"
        against = [peer, t.via.get(t.rival, "-"), ratio(t.ratio(t.rival))]
        goals = [goal.shown(goal.required), goal.shown(goal.aim), goal.met(t)]
        limit = f"{line.limit:.0%}" if line.limit else "-"
        rows.append((line.what, duration(t.ours), *against, *goals, limit))
    return aligned(head, rows)
