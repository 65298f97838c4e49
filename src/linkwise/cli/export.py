"""``linkwise export``: functions of a robot as C, with a self-test and a build file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise.cli.options import Words, json_option, load_moving, robot_argument, robot_options
from linkwise.cli.output import answer, say


@click.command()
@robot_argument()
@click.option("--functions", required=True, metavar="NAMES",
              help="Functions, separated by commas: forward_dynamics, forward_dynamics[aba] (a "
                   "method), jacobian@tool (a frame).")  # fmt: skip
@click.option("--dtype", type=Words(["float64", "float32"]), default="float64",
              show_default=True, help="Number type.")  # fmt: skip
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to.",
)
@click.option("--name", help="Prefix of all names in C; the robot's name unless given.")
@click.option("--axes", default="base", show_default=True,
              help="Axes of functions of frames: base or body.")  # fmt: skip
@click.option("--f-ext", multiple=True, metavar="FRAME",
              help="Let dynamics take a wrench on this frame; may be repeated.")  # fmt: skip
@click.option("--status", is_flag=True, help="Also write, per state, what was wrong with it.")
@click.option("--math", type=Words(["own", "libm"]), default="own", show_default=True,
              help="Whose sine and cosine: linkwise's, with the same bits on every machine that "
                   "has fused multiply-adds, or the C library's.")  # fmt: skip
@click.option("--shared", is_flag=True,
              help="Also compile a shared library, and write a Python module that calls it."
              )  # fmt: skip
@click.option("--casadi", is_flag=False, flag_value="1", type=Words(["0", "1", "2"]),
              help="Also write the functions as casadi.external and acados take them, with "
                   "derivatives up to this order; 1 unless said.")  # fmt: skip
@json_option
@robot_options
def export(robot: str, functions: str, output: Path, as_json: bool, **options: Any) -> None:
    """Write functions of ROBOT as C99 code that does not need linkwise."""
    own = {key: options.pop(key)
           for key in ("dtype", "name", "axes", "f_ext", "status", "math", "shared")}  # fmt: skip
    order = options.pop("casadi")
    own["casadi"] = None if order is None else int(order)
    names = [text.strip() for text in functions.split(",")]
    written = [str(path) for path in load_moving(robot, **options).export(output, names, **own)]
    answer(as_json, lambda: {"written": written}, lambda: say("\n".join(written)))
