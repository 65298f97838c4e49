"""``linkwise source``: the code generated for one function of one robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from linkwise.algorithms import FUNCTIONS
from linkwise.cli.options import (
    NewFile,
    Words,
    complete_frame,
    load_robot,
    robot_argument,
    robot_options,
)
from linkwise.errors import printable
from linkwise.robot import Robot


def _complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Functions, for a shell."""
    return [name for name in FUNCTIONS if name.startswith(begun)]


@click.command(epilog=f"FUNCTION is one of: {', '.join(FUNCTIONS)}.")
@robot_argument()
@click.argument("function", shell_complete=_complete)
@click.option(
    "--backend",
    type=Words(["c", "llvm", "asm", "cuda"]),
    default="c",
    show_default=True,
    help="C for reading, the LLVM IR or CUDA C that is compiled, or assembly.",
)
@click.option("--method", default="auto", show_default=True, help="Method, such as crba or aba.")
@click.option(
    "--frame", shell_complete=complete_frame, help="Name of the frame, for functions that take one."
)
@click.option("--dtype", type=Words(["float64", "float32"]), default="float64",
              show_default=True, help="Number type.")  # fmt: skip
@click.option("-o", "--output", type=NewFile(),
              help="Write to this file instead of the terminal.")  # fmt: skip
@robot_options
def source(
    robot: str,
    function: str,
    backend: str,
    method: str,
    frame: str | None,
    dtype: str,
    output: str | None,
    **loading: Any,
) -> None:
    """Print the code generated for FUNCTION of ROBOT."""
    loaded = load_robot(robot, **loading)
    _check_frame(loaded, function, frame)
    text = loaded.source(function, backend, method, frame=frame, dtype=dtype)
    if output is None:
        click.echo(text)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _check_frame(robot: Robot, function: str, frame: str | None) -> None:
    methods = FUNCTIONS.get(function, {})
    if frame is None and any(algorithm.takes_frame for algorithm in methods.values()):
        names = ", ".join(map(printable, robot.frame_names))
        raise click.UsageError(f"{function} needs --frame, one of: {names}")
