"""``linkwise convert``: a robot of any format as a URDF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise.cli.options import NewFile, json_option, load_robot, robot_argument, robot_options
from linkwise.cli.output import answer, say
from linkwise.load import bundled, load


@click.command()
@robot_argument()
@click.option("-o", "--output", type=NewFile(), required=True,
              help="The URDF file to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
@json_option
@robot_options
def convert(robot: str, output: str, force: bool, as_json: bool, **loading: Any) -> None:
    """Write ROBOT as a URDF: from MJCF, a bundled robot, or a URDF with options applied.

    The file is read back to check that it is the same robot. A URDF can hold neither gravity,
    which is left out with a warning, nor closed loops, which are refused (--loops open leaves
    them out).
    """
    if Path(output).exists() and not force:
        raise FileExistsError(f"{output} exists; expected a new name, or --force")
    loaded = load_robot(robot, **loading)
    loaded.save(output)
    known = bundled(robot)
    strict = loading["strict"] and (known is None or known.strict)
    again = load(output, strict=strict, gravity=[float(x) for x in loaded.gravity])
    same = again.joint_names == loaded.joint_names
    facts = {"written": output, "joints": again.nv, "links": len(again.link_names)}
    answer(as_json, lambda: {**facts, "same_order": same}, lambda: _show(facts, same))


def _show(facts: dict[str, Any], same: bool) -> None:
    say(f"{facts['written']}: {facts['joints']} degrees of freedom, {facts['links']} moving links")
    if not same:
        say("joints are in another order in the file: robot.reorder restores it")
