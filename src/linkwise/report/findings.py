"""What a report is made of, computed: checks, peers, counts, speed, and a swing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from linkwise.bench.contest import Report, Settings, unheard
from linkwise.bench.operations import Counted, count_all
from linkwise.bench.selfcheck import Check, self_check
from linkwise.bench.speed import Row, Speed
from linkwise.errors import Problem
from linkwise.model.joints import Free
from linkwise.motion.simulate import simulate
from linkwise.robot import Robot
from linkwise.view.arguments import home

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "jacobian")
SECONDS, STEP = 2.0, 1e-3  # of the swing
OFFSET = 0.4  # rad or m away from rest, where the swing begins
RATE = 1.0  # rad/s or m/s of the joints, where it begins on a free base
Found = TypeVar("Found")


@dataclass
class Findings:
    """A robot and what is found about it, each part when it is first asked for.

    A command that has computed a part already gives it.
    """

    robot: Robot
    source: str = ""  # the file, or the name of a bundled robot
    problems: list[Problem] | None = None  # of a file
    seconds: float = 0.25  # for each row of the table of speeds; 0: no such table
    report: Report = unheard  # told what is computed next

    @cached_property
    def checks(self) -> list[Check]:
        """Every function against an independent evaluation."""
        return self_check(self.robot, self.report)

    @cached_property
    def counts(self) -> list[Counted]:
        """Operations of every function, by the method that is chosen."""
        return count_all(self.robot, only_chosen=True)

    @cached_property
    def speed(self) -> tuple[Speed, list[Row]]:
        """Functions timed beside the peers."""
        self.report("comparing with the peers")
        speed = Speed(self.robot.open, Settings(seconds=self.seconds), FUNCTIONS)
        return speed, list(speed.rows(self.report))

    @cached_property
    def swing(self) -> Any:
        """The robot let go away from rest, without motors; one that flies, without gravity.

        A robot on a free base would only fall: it begins with its joints moving instead.
        """
        self.report("simulating a swing")
        q, qd, robot = begin(self.robot), np.zeros(self.robot.nv), self.robot
        if self.flies:
            robot = robot.with_gravity((0.0, 0.0, 0.0))
            for link in robot.tree.links:
                if link.follows is None and link.joint.nv == 1:
                    qd[link.v_index] = RATE
            qd = robot.project(q, qd)[1] if robot.loops else qd
        return simulate(robot, q, qd, duration=SECONDS, dt=STEP, every=10, limits="ignore")

    @property
    def flies(self) -> bool:
        """Whether some link moves freely."""
        return any(isinstance(link.joint, Free) for link in self.robot.tree.links)


def begin(robot: Robot) -> Any:
    """A configuration some way from rest, within limits; closed loops are closed."""
    q = home(robot)
    low, high = robot.position_limits
    for link in robot.tree.links:
        if link.follows is None and link.joint.nq == 1:
            k = link.q_index
            q[k] = np.clip(q[k] + OFFSET, low[k], high[k])
    return np.asarray(robot.project(q), float) if robot.loops else q


def attempt(make: Callable[[], Found]) -> Found | str:
    """What is made, or why it cannot be for this robot or on this machine."""
    try:
        return make()
    except (ValueError, RuntimeError, ImportError) as error:
        return " ".join(str(error).split())
