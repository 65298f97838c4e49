"""``linkwise info``: what was loaded."""

from __future__ import annotations

from typing import Any

import click

from linkwise.bench.operations import operation_facts, operation_table
from linkwise.cli.options import load_robot, robot_options
from linkwise.cli.output import say, say_json
from linkwise.robot import Robot
from linkwise.text import pairs


@click.command()
@click.argument("robot")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@robot_options
def info(robot: str, as_json: bool, **loading: Any) -> None:
    """Show what was loaded from ROBOT: joints, frames, and what each function costs."""
    loaded = load_robot(robot, **loading)
    if as_json:
        say_json(_facts(loaded))
        return
    say(loaded)
    say()
    say(pairs(_lines(loaded)))
    say()
    say(operation_table(loaded, only_chosen=True))
    say(f"Every method: linkwise ops {robot}")


def _lines(robot: Robot) -> list[tuple[str, str]]:
    massless = [link.name for link in robot.tree.links if link.mass == 0.0]
    without = [("links without mass", ", ".join(massless))] if massless else []
    frames = ", ".join(robot.frame_names)
    return [("frames", frames), *without, ("digest", robot.tree.digest)]


def _facts(robot: Robot) -> dict[str, Any]:
    return {
        "name": robot.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": [float(x) for x in robot.gravity],
        "digest": robot.tree.digest,
        "frames": list(robot.frame_names),
        "joints": [
            {"name": k.joint_name, "type": k.kind, "parent": k.parent, "link": k.name,
             "axis": list(k.axis), "mass": k.mass, "rotor": max(k.armature)}
            for k in robot.tree.links
        ],
        "operations": operation_facts(robot),
    }  # fmt: skip
