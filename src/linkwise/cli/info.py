"""``linkwise info``: what was loaded."""

from __future__ import annotations

from typing import Any

import click

from linkwise.bench.operations import operation_facts, operation_table
from linkwise.cli.facts import bundled_facts, robot_facts
from linkwise.cli.options import json_option, load_robot, robot_argument, robot_options
from linkwise.cli.output import answer, say
from linkwise.load import bundled
from linkwise.robot import Robot
from linkwise.summary import drawn
from linkwise.text import pairs

# whose operations are shown
FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "gravity_torque", "mass_matrix", "forward_kinematics",
    "jacobian",
)  # fmt: skip


@click.command()
@robot_argument()
@json_option
@robot_options
def info(robot: str, as_json: bool, **loading: Any) -> None:
    """Show what was loaded from ROBOT: joints, limits, masses, tree, frames, operation counts.

    Of a bundled robot also whose numbers they are, and what these lack.
    """
    loaded = load_robot(robot, **loading)
    answer(as_json, lambda: _facts(loaded, robot), lambda: _show(loaded, robot))


def _show(loaded: Robot, robot: str) -> None:
    say(loaded)
    say()
    say(drawn(loaded.tree))
    say()
    say(pairs(_lines(loaded, robot)))
    say()
    say(operation_table(loaded, only_chosen=True, functions=FUNCTIONS))
    say(f"Every function and method: linkwise ops {robot}")


def _lines(loaded: Robot, robot: str) -> list[tuple[str, str]]:
    massless = [link.name for link in loaded.tree.links if link.mass == 0.0]
    without = [("links without mass", ", ".join(massless))] if massless else []
    known = bundled(robot)
    told = [("source", known.source), *(("note", x) for x in known.notes)] if known else []
    frames = ", ".join(loaded.frame_names)
    return [*told, ("frames", frames), *without, ("digest", loaded.tree.digest)]


def _facts(loaded: Robot, robot: str) -> dict[str, Any]:
    operations = {"operations": operation_facts(loaded)}
    return robot_facts(loaded) | bundled_facts(robot) | operations
