"""``linkwise bench --suite``: the reference table, on robots of the example-robot-data package."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

from linkwise.backends.llvm.run import available_cores
from linkwise.backends.llvm.target import host
from linkwise.bench.limit import Peak, measure_peak
from linkwise.bench.speed import BATCH, CALL, WIDTH, Contest, Row, Settings
from linkwise.bench.startup import first_calls, import_time
from linkwise.bench.states import random_states
from linkwise.bench.timing import measure, one_core
from linkwise.errors import RobotFileWarning
from linkwise.load import load
from linkwise.robot import Robot
from linkwise.text import aligned, duration, progress, ratio

ROBOTS = Path("cmeel.prefix/share/example-robot-data/robots")
XARM7 = ROBOTS / "xarm_description/urdf/xarm7.urdf"
TALOS = ROBOTS / "talos_data/robots/talos_reduced.urdf"
LARGE = 200_000  # states for the comparison of threads
THREADS_TURNS = 8  # times longer, to meet a moment when both cores are free
PIN = "pinocchio"


@dataclass(frozen=True)
class Goal:
    """At least a ratio, or at most a time in nanoseconds."""

    ratio: float | None = None
    ns: float | None = None

    def __str__(self) -> str:
        """Write the goal for a table."""
        if self.ratio is not None:
            return f"≥ {self.ratio:g}×"
        return "-" if self.ns is None else f"≤ {duration(self.ns)}"

    def met(self, line: Line) -> bool:
        """Whether a measurement meets the goal."""
        fast = self.ns is None or line.ours <= self.ns
        return fast and (self.ratio is None or (line.ratio or 0.0) >= self.ratio)


NO_GOAL = Goal()


@dataclass(frozen=True)
class Line:
    """One line of the table; times in nanoseconds."""

    what: str
    ours: float
    peer: float | None = None
    against: str = "-"
    required: Goal = NO_GOAL
    aim: Goal = NO_GOAL
    limit: float | None = None  # share of the processor's limit that is reached

    @property
    def ratio(self) -> float | None:
        """How many times faster."""
        return self.peer / self.ours if self.peer else None

    def verdict(self) -> str:
        """Which goal is met; nothing is said where there is nothing to compare with."""
        measurable = self.required.ratio is None or self.peer is not None
        if self.required == NO_GOAL == self.aim or not measurable:
            return "-"
        if self.aim != NO_GOAL and self.aim.met(self):
            return "aim"
        return "required" if self.required.met(self) else "no"


# what the project holds itself to: (required, aim)
GOALS = {
    "xarm7 FD, batch": (Goal(ratio=22), Goal(ratio=30)),
    "xarm7 ID, batch": (Goal(ratio=18), Goal(ratio=25)),
    "xarm7 mass matrix, batch": (Goal(ratio=20), Goal(ratio=40)),
    "talos_reduced FD, batch": (Goal(ratio=16), Goal(ratio=22)),
    "xarm7 FD, one state per call": (Goal(ratio=6), Goal(ratio=9)),
    "xarm7 ID, one state per call": (Goal(ratio=6), Goal(ratio=10)),
}
FLOAT32, TWO_THREADS = Goal(ratio=1.7), Goal(ratio=1.8)
COMPILED, COMPILED_LARGE, CACHED, IMPORTED = (Goal(ns=x) for x in (0.5e9, 3e9, 20e6, 0.2e9))


def run_suite(settings: Settings) -> tuple[Peak, list[Line]]:
    """Measure the processor's limit and every line."""
    xarm7, talos = find_robot(XARM7), find_robot(TALOS)
    progress("measuring the processor's limit")
    with one_core():
        peak = measure_peak()
    return peak, list(_lines(xarm7, talos, settings, peak))


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


def _lines(xarm7: Path, talos: Path, settings: Settings, peak: Peak) -> Iterator[Line]:
    progress("xarm7: comparing results with the peers")
    contest = Contest(_load(xarm7), settings)
    yield from _batch_lines(contest, peak)
    progress("talos_reduced: compiling, comparing and timing forward dynamics")
    large = Contest(_load(talos), replace(settings, functions=("forward_dynamics",)))
    yield _batch_line("talos_reduced FD", large, "forward_dynamics", peak)
    yield from _call_lines(contest)
    progress("xarm7: number types and threads")
    yield _float32_line(contest)
    yield _threads_line(contest)
    progress("fresh processes, cold and warm cache")
    yield from _startup_lines(str(xarm7), str(talos))


def _batch_lines(contest: Contest, peak: Peak) -> Iterator[Line]:
    names = {"FD": "forward_dynamics", "ID": "inverse_dynamics", "mass matrix": "mass_matrix"}
    for name, function in names.items():
        progress(f"xarm7: timing {function}")
        yield _batch_line(f"xarm7 {name}", contest, function, peak)


def _batch_line(name: str, contest: Contest, function: str, peak: Peak) -> Line:
    row = contest.row(function, contest.auto(function), BATCH)
    bound = peak.bound(contest.robot.operation_count(function), host().lanes(8))
    line = _from_row(f"{name}, batch", row, contest)
    return replace(line, limit=bound / row.ours)


def _call_lines(contest: Contest) -> Iterator[Line]:
    for name, function in (("FD", "forward_dynamics"), ("ID", "inverse_dynamics")):
        row = contest.row(function, contest.auto(function), CALL)
        yield _from_row(f"xarm7 {name}, one state per call", row, contest)


def _from_row(what: str, row: Row, contest: Contest) -> Line:
    required, aim = GOALS[what]
    against = row.via.get(PIN) or f"{PIN}: {contest.missing.get(PIN, '-')}"
    return Line(what, row.ours, row.peers.get(PIN), against, required, aim)


def _float32_line(contest: Contest) -> Line:
    short = contest.with_settings(dtype="float32")
    ways = [contest.our_batch("forward_dynamics"), short.our_batch("forward_dynamics")]
    with one_core():
        wide, narrow = measure(ways, contest.settings.seconds)
    return Line("xarm7 FD, float32 batch", narrow or 0.0, wide, "ours, float64", FLOAT32)


def _threads_line(contest: Contest) -> Line:
    states = random_states(contest.robot, LARGE)
    both = contest.with_settings(threads=2)
    ways = [c.our_batch("forward_dynamics", states=states) for c in (contest, both)]
    one, two = measure(ways, THREADS_TURNS * contest.settings.seconds)
    cores = available_cores()
    note = "ours, 1 thread" if cores > 1 else "ours, 1 thread (one core here)"
    return Line(f"xarm7 FD, {LARGE:,} states, 2 threads", two or 0.0, one, note, TWO_THREADS)


def _startup_lines(xarm7: str, talos: str) -> Iterator[Line]:
    for states, what in ((1000, "batch"), (1, "state")):
        cold, warm = first_calls(xarm7, states)
        yield Line(f"xarm7 FD, first {what}, compiling", cold, required=COMPILED)
        yield Line(f"xarm7 FD, first {what}, cached", warm, required=CACHED)
    cold, warm = first_calls(talos, 1000)
    yield Line("talos_reduced FD, first batch, compiling", cold, required=COMPILED_LARGE)
    yield Line("talos_reduced FD, first batch, cached", warm, required=CACHED)
    yield Line("import linkwise, beyond NumPy", import_time(), required=IMPORTED)


def suite_table(lines: list[Line]) -> str:
    """The lines as a table."""
    head = (
        "what", "linkwise", "peer", "<against", "ratio", "required", "aim", "<met", "of limit",
    )  # fmt: skip
    rows = [
        (
            line.what,
            duration(line.ours),
            duration(line.peer) if line.peer else "-",
            line.against,
            ratio(line.ratio),
            str(line.required),
            str(line.aim),
            line.verdict(),
            f"{line.limit:.0%}" if line.limit else "-",
        )
        for line in lines
    ]
    return aligned(head, rows)


def suite_notes(peak: Peak) -> str:
    """What the columns mean, and the rate that the processor was measured to reach."""
    lanes = host().lanes(8)
    text = (
        "FD, ID: forward and inverse dynamics. Times are per state or per call, the least of many, "
        "measured in turns with the peer. Of limit: the time that the operations need at the rate "
        f"this core was measured to reach ({lanes}-lane float64 instructions per ns: "
        f"{peak.multiplies:.2f} multiply-adds, {peak.mixed:.2f} with additions beside them), over "
        "the time taken. Two threads need two idle cores: see the load above."
    )
    return fill(text, WIDTH)
