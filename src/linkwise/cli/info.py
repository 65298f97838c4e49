"""``linkwise info``: what was loaded."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click

from linkwise.bench.operations import operation_facts, operation_table
from linkwise.cli.options import load_robot, robot_options
from linkwise.cli.output import say, say_json
from linkwise.robot import Robot
from linkwise.summary import drawn
from linkwise.text import pairs

# whose operations are shown
FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "gravity_torque", "mass_matrix", "forward_kinematics",
    "jacobian",
)  # fmt: skip


@click.command()
@click.argument("robot")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@robot_options
def info(robot: str, as_json: bool, **loading: Any) -> None:
    """Show what was loaded from ROBOT: joints, limits, masses, tree, frames, operation counts."""
    loaded = load_robot(robot, **loading)
    if as_json:
        say_json(_facts(loaded))
        return
    say(loaded)
    say()
    say(drawn(loaded.tree))
    say()
    say(pairs(_lines(loaded)))
    say()
    say(operation_table(loaded, only_chosen=True, functions=FUNCTIONS))
    say(f"Every function and method: linkwise ops {robot}")


def _lines(robot: Robot) -> list[tuple[str, str]]:
    massless = [link.name for link in robot.tree.links if link.mass == 0.0]
    without = [("links without mass", ", ".join(massless))] if massless else []
    frames = ", ".join(robot.frame_names)
    return [("frames", frames), *without, ("digest", robot.tree.digest)]


def _finite(x: float) -> float | None:
    """A number that JSON has; None for no limit."""
    return x if isfinite(x) else None


def _facts(robot: Robot) -> dict[str, Any]:
    return {
        "name": robot.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "mass": robot.mass,
        "gravity": [float(x) for x in robot.gravity],
        "digest": robot.tree.digest,
        "frames": list(robot.frame_names),
        "joints": [
            {"name": k.joint_name, "type": k.kind, "parent": k.parent, "link": k.name,
             "axis": list(k.axis), "mass": k.mass, "rotor": max(k.armature),
             **{name: _finite(getattr(k.limits, name))
                for name in ("lower", "upper", "velocity", "effort")}}
            for k in robot.tree.links
        ],
        "operations": operation_facts(robot),
    }  # fmt: skip
