"""``linkwise info``: what was loaded."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import click

from linkwise.algorithms import FUNCTIONS
from linkwise.choose import choose_method
from linkwise.cli.options import exists, load_robot, robot_options, tip
from linkwise.cli.text import aligned, pairs
from linkwise.robot import Robot
from linkwise.trace.program import OperationCount


@dataclass(frozen=True)
class Counted:
    """One way to compute one function, and what it costs."""

    function: str
    method: str
    chosen: bool
    count: OperationCount


@click.command()
@click.argument("robot")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@robot_options
def info(robot: str, as_json: bool, **loading: Any) -> None:
    """Show what was loaded from ROBOT: joints, frames, methods and operation counts."""
    loaded = load_robot(robot, **loading)
    if as_json:
        click.echo(json.dumps(_facts(loaded), indent=2))
        return
    click.echo(loaded)
    click.echo()
    click.echo(pairs([("frames", ", ".join(loaded.frame_names)), ("digest", loaded.tree.digest)]))
    click.echo()
    click.echo(operation_table(loaded))


def operation_table(robot: Robot) -> str:
    """Every function and method with its exact operation counts."""
    head = ("function", "method", "auto", "mul", "add", "div", "sincos", "fused", "total")
    rows = [
        (
            c.function, c.method, "*" if c.chosen else "",
            *(f"{n:,}" for n in (c.count.multiplications, c.count.additions, c.count.divisions,
                                 c.count.sincos, c.count.fused, c.count.total)),
        )
        for c in count_all(robot)
    ]  # fmt: skip
    note = (
        f"Operations of one evaluation; fused pairs run as one instruction; * is what auto picks.\n"
        f"Functions of a frame: {tip(robot)}."
    )
    return f"{aligned(head, rows, 3)}\n\n{note}"


def count_all(robot: Robot) -> list[Counted]:
    """Count every function and method of the robot that exists for it."""
    counted = []
    for function, methods in FUNCTIONS.items():
        if not exists(robot, function, tip(robot)):
            continue
        for method, algorithm in methods.items():
            if not algorithm.exists_for(robot.tree):
                continue
            frame = tip(robot) if algorithm.takes_frame else None
            chosen = choose_method(function, robot.tree) == method
            count = robot.operation_count(function, method, frame=frame)
            counted.append(Counted(function, method, chosen, count))
    return counted


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
        "operations": [
            {"function": c.function, "method": c.method, "chosen": c.chosen, **asdict(c.count)}
            for c in count_all(robot)
        ],
    }  # fmt: skip
