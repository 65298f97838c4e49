"""What a contest measured, and on what, as plain data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from linkwise.bench.calls import CallContest, CallRow
from linkwise.bench.limit import Peak
from linkwise.bench.speed import Contest, Row, Settings, command_line
from linkwise.bench.suite import Line
from linkwise.bench.timing import machine, versions
from linkwise.robot import Robot


def contest_facts(contest: Contest, rows: Sequence[Row]) -> dict[str, Any]:
    """Functions beside the peers' functions."""

    def entry(row: Row) -> dict[str, Any]:
        ratios = {name: row.ratio(name) for name in row.peers}
        return asdict(row) | {"ratios": ratios}

    return _setting(contest.settings, contest.robot, contest.frame) | {
        "unit": "nanoseconds per state",
        "agreement": contest.agreement,
        "missing": contest.missing,
        "rows": [entry(row) for row in rows],
    }


def calls_facts(
    contest: CallContest, settings: Settings, empty: CallRow, rows: Sequence[CallRow]
) -> dict[str, Any]:
    """Ways of calling beside the peers' calls."""
    return _setting(settings, contest.robot, contest.frame) | {
        "unit": "nanoseconds per call",
        "empty": asdict(empty),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }


def suite_facts(settings: Settings, peak: Peak, lines: Sequence[Line]) -> dict[str, Any]:
    """The reference table."""
    return _machine(settings) | {
        "peak_instructions_per_ns": asdict(peak),
        "unit": "nanoseconds",
        "rows": [asdict(x) | {"ratio": x.ratio, "met": x.verdict()} for x in lines],
    }


def _setting(settings: Settings, robot: Robot, frame: str) -> dict[str, Any]:
    """What was measured, on what."""
    return _machine(settings) | {
        "robot": {"name": robot.name, "nv": robot.nv, "frame": frame, "digest": robot.tree.digest}
    }


def _machine(settings: Settings) -> dict[str, Any]:
    return {
        "command": command_line(),
        "machine": machine(),
        "versions": versions(),
        "settings": asdict(settings),
    }
