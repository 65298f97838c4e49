"""``linkwise sim``: a robot moves, in numbers and pictures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import isfinite
from time import perf_counter
from typing import Any

import click
import numpy as np

from linkwise import control
from linkwise.bench.states import tip
from linkwise.cli.options import (
    NewFile,
    Words,
    json_option,
    load_moving,
    robot_argument,
    robot_options,
)
from linkwise.cli.output import answer, say
from linkwise.errors import printable
from linkwise.motion.integrators import INTEGRATORS
from linkwise.motion.limits import limited_positions
from linkwise.motion.setup import SOLVERS
from linkwise.motion.simulate import simulate
from linkwise.motion.trajectory import Trajectory, names_of
from linkwise.robot import Robot
from linkwise.text import duration as shown_time
from linkwise.text import pairs
from linkwise.trace.status import Status

BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 64  # of a curve on a terminal
RATE = 10.0  # 1/s: how fast errors decay under the laws pd and hold
MOST_AT_ONCE = 0.2  # of an error that one step of held torques may take away
LAWS = ("none", "gravity", "pd", "hold")


@click.command()
@robot_argument()
@click.option("--duration", type=click.FloatRange(min=0, min_open=True), default=5.0,
              show_default=True, help="Seconds to simulate.")  # fmt: skip
@click.option("--dt", type=click.FloatRange(min=0, min_open=True), default=1e-3, show_default=True,
              help="Length of a step, in seconds.")  # fmt: skip
@click.option("--integrator", type=Words([*INTEGRATORS, *SOLVERS]), default="rk4",
              show_default=True, help="Method; names in capitals are solvers of SciPy."
              )  # fmt: skip
@click.option("--law", type=Words(LAWS), default="none", show_default=True,
              help="Torques: none; gravity compensation; pd, by computed torque to the neutral "
                   "configuration; hold, the same to the start.")  # fmt: skip
@click.option("--start", type=Words(["neutral", "random"]), default="random",
              show_default=True, help="Initial configuration.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random start.")
@click.option("--limits", type=Words(["ignore", "stop", "event"]), default=None,
              help="At joint limits: nothing, soft stops, or the end of the motion. Unless given, "
                   "a warning says which limits are exceeded.")  # fmt: skip
@click.option("--plot", type=NewFile(), help="Save a picture (needs matplotlib).")
@click.option("--save", type=NewFile(), help="Save the trajectory (.npz).")
@json_option
@robot_options
def sim(
    robot: str,
    duration: float,
    dt: float,
    integrator: str,
    law: str,
    start: str,
    seed: int,
    limits: str | None,
    plot: str | None,
    save: str | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Simulate ROBOT: print the range of each joint, the energy balance, and curves of both."""
    if not (isfinite(duration) and isfinite(dt)):
        raise click.UsageError(
            f"--duration {duration:g}, --dt {dt:g}: expected finite numbers of seconds"
        )
    moving = load_moving(robot, **loading)
    q = moving.neutral() if start == "neutral" else moving.random_q(seed=seed)
    q = moving.project(q) if moving.loops else q
    began = perf_counter()
    with warnings.catch_warnings():  # a failure is told with the results
        warnings.simplefilter("ignore", RuntimeWarning)
        traj = simulate(
            moving, q, None, _law(moving, law, q, dt), duration, dt, integrator,
            every=max(1, round(duration / dt) // 2000),
            limits=limits,
        )  # fmt: skip
    took = perf_counter() - began
    if plot is not None:
        traj.plot(frame=tip(moving)).savefig(plot, dpi=120)
    if save is not None:
        traj.save(save)
    saved = {"picture": plot, "trajectory": save}
    answer(as_json, lambda: _facts(traj, took), lambda: _show(traj, took, saved))


def _show(traj: Trajectory, took: float, saved: Mapping[str, str | None]) -> None:
    say(pairs(_lines(traj, took)))
    say()
    say(_curves(traj))
    for what, path in saved.items():
        if path is not None:
            say(f"{what} saved to {path}")


def _law(robot: Robot, name: str, start: Any, dt: float) -> control.Law | None:
    """Torques by name. Gains are multiplied by the mass matrix (computed torque), so that every
    error decays critically damped at one rate, in any configuration, however light a link is.
    """
    if name == "none":
        return None
    if name == "gravity":
        return control.gravity_compensation(robot)
    rate = min(RATE, MOST_AT_ONCE / dt)
    target = robot.neutral() if name == "pd" else start
    return control.computed_torque(robot, rate**2, 2.0 * rate, target)


def _drift(traj: Trajectory) -> float:
    """The error of the balance of energy, relative to the greatest kinetic energy."""
    return float(np.nanmax(np.abs(traj.balance.residual)) / max(_kinetic(traj), 1e-300))


def _of_stops(traj: Trajectory) -> str:
    """Why energy is unaccounted for where soft stops act: their dampers jump between states."""
    if traj.limits is None or not traj.limits.stop or not np.any(traj.balance.by_stops):
        return ""
    return "; mostly the estimated work of soft stops: a smaller --dt lowers it"


def _kinetic(traj: Trajectory) -> float:
    return float(np.nanmax(traj.energy.kinetic))


def _lines(traj: Trajectory, took: float) -> list[tuple[str, str]]:
    steps, status = int(traj.steps[-1]), Status(int(traj.status))
    found = [
        ("robot", f"{traj.name}, {traj.qd.shape[-1]} degrees of freedom"),
        ("simulated", f"{traj.t[-1]:g} s by {traj.integrator}, {steps:,} steps of {traj.dt:g} s"),
        ("took", f"{shown_time(1e9 * took)}, compiling included"),
        ("greatest kinetic energy", f"{_kinetic(traj):.4g} J"),
        ("energy unaccounted for", f"{_drift(traj):.1e} of it{_of_stops(traj)}"),
        ("fastest joint", f"{np.nanmax(np.abs(traj.qd)):.4g} per second"),
    ]
    if status:
        found.append(("status", f"{status.name}; no state from step {int(traj.failed_at):,} on"))
    if traj.events is not None and traj.events.dof >= 0 and traj.robot is not None:
        joint = names_of(traj.robot, "v")[int(traj.events.dof)]
        found.append(("ended", f"joint {joint} met its limit at {float(traj.events.t):.6g} s"))
    return found


def _facts(traj: Trajectory, took: float) -> dict[str, Any]:
    last = np.flatnonzero(np.isfinite(traj.qd).all(-1))[-1]
    return {
        "robot": traj.name,
        "integrator": traj.integrator,
        "dt": traj.dt,
        "steps": int(traj.steps[-1]),
        "seconds": took,
        "status": int(traj.status),
        "failed_at": int(traj.failed_at),
        "greatest_kinetic_energy": _kinetic(traj),
        "energy_error": _drift(traj),
        "t": float(traj.t[last]),
        "q": traj.q[last].tolist(),
        "qd": traj.qd[last].tolist(),
    }


def _curves(traj: Trajectory) -> str:
    """A line of bars for every joint, and for the kinetic energy, from its least to its most."""
    robot = traj.robot
    assert robot is not None
    limits = [_limits(*x) for x in zip(*limited_positions(robot), traj.q.T, strict=True)]
    names = [f"q {printable(name)}" for name in names_of(robot, "q")]
    rows = list(zip(names, traj.q.T, limits, strict=True))
    rows.append(("kinetic energy, J", traj.energy.kinetic, ""))
    width = max(len(name) for name, _, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {_bars(x)}{end}" for name, x, end in rows)


def _limits(low: float, high: float, q: Any) -> str:
    """The limits of a joint, and whether the motion exceeds them."""
    if not (isfinite(low) or isfinite(high)):
        return ""
    beyond = np.nanmin(q) < low or np.nanmax(q) > high
    return f"  limits {low:.3g} to {high:.3g}{', exceeded' if beyond else ''}"


def _bars(x: Any) -> str:
    at = np.linspace(0, len(x) - 1, min(COLUMNS, len(x))).round().astype(int)
    some = x[at]
    low, high = np.nanmin(some), np.nanmax(some)
    size = (high - low) or 1.0
    places = [None if np.isnan(v) else int((v - low) / size * (len(BARS) - 1) + 0.5) for v in some]
    curve = "".join(" " if k is None else BARS[k] for k in places)
    return f"{low:9.3g} {curve} {high:<9.3g}".rstrip()
