"""``linkwise demo``: one robot from its table to its speed, every function checked on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from linkwise.bench.selfcheck import Check, check_table, self_check
from linkwise.bench.speed import Contest, Settings, agreement_lines, footnotes, header, speed_table
from linkwise.bench.states import tip
from linkwise.cli.ops import operation_table
from linkwise.cli.options import load_robot, robot_options
from linkwise.engine.calls import Array
from linkwise.robot import Robot
from linkwise.text import aligned, heading, pairs, progress, vector

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "jacobian")


@click.command()
@click.argument("robot", default="iiwa14")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=0.25,
              show_default=True, help="Time spent on each row of the speed table.")  # fmt: skip
@robot_options
@click.pass_context
def demo(ctx: click.Context, /, robot: str, seconds: float, **loading: Any) -> None:
    """Show ROBOT (default iiwa14), a worked state, a self-check, operation counts and speed.

    The exit code is 1 if a check fails.
    """
    loaded = load_robot(robot, **loading)
    heading("Robot")
    click.echo(loaded)
    heading("A worked state")
    click.echo(worked_state(loaded))
    heading("Self-check")
    progress("compiling and checking every function")
    checks = self_check(loaded)
    click.echo(f"{check_table(checks)}\n\n{_verdict(checks)}")
    heading("Operation counts")
    click.echo(operation_table(loaded))
    heading("Speed")
    click.echo(_speed(loaded, seconds))
    if not all(check.ok for check in checks):
        ctx.exit(1)


def worked_state(robot: Robot) -> str:
    """One state with everything that follows from it."""
    k = np.arange(1.0, robot.nv + 1)
    q = robot.integrate(robot.neutral(), 0.5 * np.sin(k))
    if robot.nq == robot.nv:
        q = np.clip(q, *robot.position_limits)
    qd, frame = 0.5 * np.cos(k), tip(robot)
    hold = robot.gravity_torque(q)
    tau = 1.1 * hold
    qdd = robot.forward_dynamics(q, qd, tau)
    head = ("joint", "q", "qd", "gravity torque", "tau", "qdd")
    numbers = zip(qd, hold, tau, qdd, strict=True)
    rows = [
        (*named, *(f"{x:.4f}" for x in row))
        for named, row in zip(_degrees(robot, q), numbers, strict=True)
    ]
    pose, velocity = robot.forward_kinematics(q, frame), robot.jacobian(q, frame) @ qd
    facts = [
        ("kinetic energy", f"{robot.kinetic_energy(q, qd):9.4f} J"),
        ("potential energy", f"{robot.potential_energy(q):9.4f} J"),
        (f"position of {frame}", f"{vector(pose[:3, 3])} m"),
        ("rotation", vector(pose[0, :3])),
        ("", vector(pose[1, :3])),
        ("", vector(pose[2, :3])),
        ("angular velocity", f"{vector(velocity[:3])} rad/s"),
        ("linear velocity", f"{vector(velocity[3:])} m/s"),
    ]
    note = "SI units; tau is 1.1 times what holds the robot still, qdd what it causes."
    return f"{aligned(head, rows)}\n\n{note}\n\n{pairs(facts)}"


def _degrees(robot: Robot, q: Array) -> Iterator[tuple[str, str]]:
    """Name and value of each degree of freedom; a quaternion is no value of one."""
    for link in robot.tree.links:
        if link.follows is None:
            several, plain = link.joint.nv > 1, link.joint.nq == link.joint.nv
            for k in range(link.joint.nv):
                name = f"{link.joint_name}[{k}]" if several else link.joint_name
                yield name, f"{q[link.q_index + k]:.4f}" if plain else "-"


def _verdict(checks: list[Check]) -> str:
    failed = sum(not check.ok for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks FAILED"
    return f"all {len(checks)} checks passed; errors are relative to the largest entry"


def _speed(robot: Robot, seconds: float) -> str:
    settings = Settings(batch=4096, seconds=seconds, functions=FUNCTIONS)
    progress("comparing with the peers and timing")
    contest = Contest(robot, settings)
    rows = list(contest.rows())
    parts = (
        header(settings),
        "Results, checked before timing:\n" + pairs(agreement_lines(contest)),
        speed_table(rows, contest),
        footnotes(contest, rows),
    )
    return "\n\n".join(parts)
