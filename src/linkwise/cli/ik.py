"""``linkwise ik``: joint angles that bring a frame to a pose."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import click
import numpy as np

from linkwise import se3
from linkwise.cli.options import (
    Words,
    complete_frame,
    json_option,
    load_moving,
    robot_argument,
    robot_options,
)
from linkwise.cli.output import answer, say
from linkwise.io.rpy import rpy_rotation
from linkwise.motion.trajectory import names_of
from linkwise.robot import Robot
from linkwise.text import duration, pairs

UNREACHED = 1  # exit code where a pose was not reached


@click.command()
@robot_argument()
@click.argument("frame", shell_complete=complete_frame)
@click.option("--xyz", type=float, nargs=3, help="Position of the frame, in metres.")
@click.option("--rpy", type=float, nargs=3,
              help="Roll, pitch and yaw, in radians; any orientation if not given.")  # fmt: skip
@click.option("--free-axis", type=Words(["x", "y", "z"]),
              help="An axis of the target that the frame may turn about freely.")  # fmt: skip
@click.option("--restarts", type=click.IntRange(0, 10_000), default=100, show_default=True,
              help="How often a search may start again elsewhere.")  # fmt: skip
@click.option("--tol", type=float, default=1e-6, show_default=True,
              help="Largest error, in radians and metres.")  # fmt: skip
@click.option("--limits/--no-limits", default=True, show_default=True,
              help="Keep the joints within their limits.")  # fmt: skip
@click.option("--poses", type=click.IntRange(1, 10_000_000), default=1000, show_default=True,
              help="Without --xyz and --rpy: number of random reachable poses.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random poses.")
@json_option
@robot_options
def ik(robot: str, frame: str, as_json: bool, poses: int, seed: int, **asked: Any) -> None:
    """Find the joint positions q that bring FRAME of ROBOT to a pose, and print them.

    Without a pose, solve many random poses and print how many were reached. If a pose cannot be
    reached, print the nearest q found; the exit code is then 1.
    """
    xyz, rpy, free_axis = (asked.pop(name) for name in ("xyz", "rpy", "free_axis"))
    options = {name: asked.pop(name) for name in ("restarts", "tol", "limits")}
    moving = load_moving(robot, **asked)
    if xyz is None and rpy is None:
        facts = _many(moving, frame, poses, seed, options)
    else:
        facts = _one(moving, frame, *_target(xyz, rpy, free_axis), options)
    facts = {"robot": moving.name, "frame": frame, **facts}
    answer(as_json, lambda: facts, lambda: say(pairs(_lines(moving, facts))))
    if facts.get("solved") is False:
        raise click.exceptions.Exit(UNREACHED)


def _target(xyz: Any, rpy: Any, free_axis: str | None) -> tuple[Any, list[bool]]:
    """The pose, and the directions of it that count."""
    turns = [rpy is not None and axis != free_axis for axis in "xyz"]
    target = np.eye(4)
    target[:3, :3] = rpy_rotation(*(rpy or (0.0, 0.0, 0.0)))
    target[:3, 3] = xyz or (0.0, 0.0, 0.0)
    return target, turns + [xyz is not None] * 3


def _one(robot: Robot, frame: str, target: Any, directions: list[bool], options: Any) -> Any:
    q, status = robot.inverse_kinematics(target, frame, None, directions, status=True, **options)
    there = robot.forward_kinematics(q, frame)
    parts = (("error_rad", se3.error(there, target)[:3]), ("error_m", (there - target)[:3, 3]))
    counts = all(directions[:3]), all(directions[3:])
    errors = {k: float(np.linalg.norm(x)) for (k, x), y in zip(parts, counts, strict=True) if y}
    return {"solved": not int(status), "q": q.tolist(), **errors}


def _many(robot: Robot, frame: str, poses: int, seed: int, options: Any) -> Any:
    target = robot.forward_kinematics(robot.random_q(seed=seed, size=poses), frame)
    robot.inverse_kinematics(target[:1], frame, status=True, **options)  # compiles
    began = perf_counter()
    _, status = robot.inverse_kinematics(target, frame, status=True, **options)
    took = perf_counter() - began
    share = float((status == 0).mean())
    return {"poses": poses, "share_solved": share, "seconds_a_pose": took / poses}


def _lines(robot: Robot, facts: Any) -> list[tuple[str, str]]:
    lines = [("robot", f"{facts['robot']}, frame {facts['frame']}")]
    if "poses" in facts:
        lines.append(("solved", f"{100 * facts['share_solved']:.2f} % of {facts['poses']:,} poses"))
        lines.append(("time", f"{duration(1e9 * facts['seconds_a_pose'])} a pose"))
        return lines
    lines.append(("reached", "yes" if facts["solved"] else "no; the nearest found"))
    units = {"error_rad": "rad", "error_m": "m"}
    lines += [("error", f"{facts[k]:.2g} {unit}") for k, unit in units.items() if k in facts]
    return lines + [(k, f"{x:.12g}") for k, x in zip(names_of(robot, "q"), facts["q"], strict=True)]
