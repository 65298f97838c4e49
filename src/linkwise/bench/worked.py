"""One state of a robot with everything that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from linkwise.bench.states import tip
from linkwise.engine.calls import Array
from linkwise.robot import Robot
from linkwise.text import aligned, pairs, vector


def worked_facts(robot: Robot) -> dict[str, Any]:
    """A state, torques somewhat above those that hold it still, and what follows; SI units."""
    k = np.arange(1.0, robot.nv + 1)
    q = robot.integrate(robot.neutral(), 0.5 * np.sin(k))
    if robot.nq == robot.nv:
        q = np.clip(q, *robot.position_limits)
    qd, frame = 0.5 * np.cos(k), tip(robot)
    hold = robot.gravity_torque(q)
    return {
        "q": q,
        "qd": qd,
        "gravity_torque": hold,
        "tau": 1.1 * hold,
        "qdd": robot.forward_dynamics(q, qd, 1.1 * hold),
        "kinetic_energy": float(robot.kinetic_energy(q, qd)),
        "potential_energy": float(robot.potential_energy(q)),
        "frame": frame,
        "pose": robot.forward_kinematics(q, frame),
        "velocity": robot.jacobian(q, frame) @ qd,
    }


def worked_state(robot: Robot) -> str:
    """The state and what follows, as tables."""
    facts = worked_facts(robot)
    head = ("joint", "q", "qd", "gravity torque", "tau", "qdd")
    numbers = zip(*(facts[x] for x in ("qd", "gravity_torque", "tau", "qdd")), strict=True)
    rows = [
        (*named, *(f"{x:.4f}" for x in row))
        for named, row in zip(_degrees(robot, facts["q"]), numbers, strict=True)
    ]
    pose, velocity = facts["pose"], facts["velocity"]
    lines = [
        ("kinetic energy", f"{facts['kinetic_energy']:9.4f} J"),
        ("potential energy", f"{facts['potential_energy']:9.4f} J"),
        (f"position of {facts['frame']}", f"{vector(pose[:3, 3])} m"),
        ("rotation", vector(pose[0, :3])),
        ("", vector(pose[1, :3])),
        ("", vector(pose[2, :3])),
        ("angular velocity", f"{vector(velocity[:3])} rad/s"),
        ("linear velocity", f"{vector(velocity[3:])} m/s"),
    ]
    note = "SI units; tau is 1.1 times the torque that holds the robot still, qdd its effect."
    return f"{aligned(head, rows)}\n\n{note}\n\n{pairs(lines)}"


def _degrees(robot: Robot, q: Array) -> Iterator[tuple[str, str]]:
    """Name and position of each degree of freedom; those of a quaternion have no position."""
    for link in robot.tree.links:
        if link.follows is None:
            several, plain = link.joint.nv > 1, link.joint.nq == link.joint.nv
            for k in range(link.joint.nv):
                name = f"{link.joint_name}[{k}]" if several else link.joint_name
                yield name, f"{q[link.q_index + k]:.4f}" if plain else "-"
