"""``linkwise view``: a robot in the browser, or as a page."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from linkwise.cli.options import (
    NewFile,
    complete_frame,
    load_robot,
    robot_argument,
    robot_options,
)
from linkwise.cli.output import say
from linkwise.text import file_size


@click.command()
@robot_argument()
@click.option("--save", type=NewFile(), metavar="FILE",
              help="Write one self-contained HTML file instead of opening a viewer.")  # fmt: skip
@click.option("--q", "numbers", metavar="NUMBERS",
              help="Initial configuration: numbers separated by commas.")  # fmt: skip
@click.option("--frame", shell_complete=complete_frame,
              help="The frame whose pose is shown; the tip unless given.")  # fmt: skip
@click.option("--swing", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Simulate the robot falling for this long, and play the motion.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True,
              help="Port on 127.0.0.1; the next free one if it is taken.")  # fmt: skip
@click.option("--browser/--no-browser", default=True, show_default=True,
              help="Open the browser, or only print the address.")  # fmt: skip
@robot_options
def view(
    robot: str,
    save: str | None,
    numbers: str | None,
    frame: str | None,
    swing: float | None,
    port: int,
    browser: bool,
    **loading: Any,
) -> None:
    """Show ROBOT in the browser, with a slider for each joint; Ctrl-C ends it.

    Needs viser (pip install 'linkwise[view]'); --save does not.
    """
    loaded = load_robot(robot, **loading)
    q = None if numbers is None else _configuration(numbers, loaded.nq)
    traj = None if swing is None else _swing(loaded, q, swing)
    if save is not None:
        at = {"q": q} if traj is None else {}
        path = loaded.save_html(save, traj, frame=frame, **at)
        say(f"{path}: {file_size(path.stat().st_size)}, opens in any browser")
    elif traj is not None:
        loaded.animate(traj, frame=frame, port=port, open_browser=browser, block=True)
    else:
        loaded.show(q, frame=frame, port=port, open_browser=browser, block=True)


def _configuration(text: str, nq: int) -> Any:
    try:
        q = np.array([float(x) for x in text.replace(",", " ").split()])
    except ValueError as error:
        raise click.BadParameter(f"{error}; expected numbers", param_hint="--q") from None
    if len(q) != nq or not np.isfinite(q).all():
        raise click.BadParameter(f"{len(q)} numbers; expected {nq}, finite", param_hint="--q")
    return q


def _swing(robot: Any, q: Any, seconds: float) -> Any:
    from linkwise.motion.simulate import simulate
    from linkwise.view.arguments import home

    start = home(robot) if q is None else q
    dt = 1e-3
    every = max(1, round(seconds / dt / 600))
    rest = np.zeros(robot.nv)
    return simulate(robot, start, rest, duration=seconds, dt=dt, every=every, limits="ignore")
