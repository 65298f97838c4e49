"""Facts that several commands print as JSON; docs/command_line.md lists their keys and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from linkwise.bench.selfcheck import Check
from linkwise.load import bundled
from linkwise.robot import Robot


def robot_facts(robot: Robot) -> dict[str, Any]:
    """A robot: sizes, mass, gravity, frames and joints."""
    return {
        "name": robot.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "mass": robot.mass,
        "gravity": robot.gravity,
        "digest": robot.tree.digest,
        "frames": robot.frame_names,
        "joints": [
            {"name": k.joint_name, "type": k.kind, "parent": k.parent, "link": k.name,
             "axis": k.axis, "mass": k.mass, "rotor": max(k.armature), **asdict(k.limits)}
            for k in robot.tree.links
        ],
    }  # fmt: skip


def bundled_facts(name: str) -> dict[str, Any]:
    """Whose numbers a bundled robot has, and notes on them; of a file, neither."""
    known = bundled(name)
    return {"source": known.source if known else None, "notes": known.notes if known else ()}


def check_facts(checks: Sequence[Check]) -> dict[str, Any]:
    """Checks of every function, and how many failed."""
    failed = sum(not check.ok for check in checks)
    return {"checks": [asdict(check) | {"ok": check.ok} for check in checks], "failed": failed}
