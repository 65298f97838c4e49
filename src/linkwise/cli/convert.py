"""``linkwise convert``: a robot of any format as a URDF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise.cli.options import load_robot, robot_options
from linkwise.cli.output import say, say_json
from linkwise.load import load


@click.command()
@click.argument("robot")
@click.option("-o", "--output", type=click.Path(dir_okay=False), required=True,
              help="The URDF file to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    strict = bool(loading.get("strict", True))
    again = load(output, strict=strict, gravity=[float(x) for x in loaded.gravity])
    same = again.joint_names == loaded.joint_names
    if as_json:
        facts = {"written": output, "joints": again.nv, "links": len(again.link_names)}
        say_json({**facts, "same_order": same})
        return
    say(f"{output}: {again.nv} degrees of freedom, {len(again.link_names)} moving links")
    if not same:
        say("joints are in another order in the file: robot.reorder restores it")
