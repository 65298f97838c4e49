"""``linkwise info``: what was loaded."""

from __future__ import annotations

import json
from typing import Any

import click

from linkwise.cli.ops import operation_table, operations
from linkwise.cli.options import load_robot, robot_options
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
        click.echo(json.dumps(_facts(loaded), indent=2))
        return
    click.echo(loaded)
    click.echo()
    click.echo(pairs([("frames", ", ".join(loaded.frame_names)), ("digest", loaded.tree.digest)]))
    click.echo()
    click.echo(operation_table(loaded, only_chosen=True))
    click.echo(f"Every method: linkwise ops {robot}")


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
        "operations": operations(robot),
    }  # fmt: skip
