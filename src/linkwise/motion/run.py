"""A simulation from its first step to its last, or to an interrupt."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from linkwise.errors import LimitWarning, SimulationWarning, warn
from linkwise.motion.adaptive import Adaptive
from linkwise.motion.exceeded import exceeded, warn_of_contacts
from linkwise.motion.fused import Fused
from linkwise.motion.progress import Progress
from linkwise.motion.record import Record
from linkwise.motion.setup import Setup
from linkwise.motion.stepped import Stepped
from linkwise.motion.trajectory import Trajectory
from linkwise.robot import Robot
from linkwise.trace.status import Status


class Mover(Protocol):
    """What advances a record."""

    def room(self) -> int:
        """Steps that can be taken at once."""

    def advance(self, steps: int) -> None:
        """Take some steps."""


def run(setup: Setup, threads: int | None) -> Trajectory:
    """All steps, or as many as there are before an interrupt."""
    record, interrupted = Record(setup), False
    kind = Adaptive if setup.adaptive else Stepped if setup.stepped else Fused
    mover: Mover = kind(record, threads)
    try:
        with Progress("simulating", setup.steps) as progress:
            while record.step < setup.steps:
                mover.advance(progress.worth(mover.room()))
                progress.at(record.step)
    except KeyboardInterrupt:
        interrupted = True
        time = record.step * setup.dt
        warn(SimulationWarning, f"simulate: interrupted; the trajectory ends at {time:.6g} s")
    found = record.trajectory(interrupted)
    failures = told(setup, found)
    if failures is not None:
        warn(SimulationWarning, failures)
    beyond = exceeded(setup, found)
    if beyond is not None:
        warn(LimitWarning, beyond)
    warn_of_contacts(setup, found)
    return found


def told(setup: Setup, found: Trajectory) -> str | None:
    """How many rows failed, the first of them, and what would help; events are no failures."""
    status, at = np.atleast_1d(found.status).ravel(), np.atleast_1d(found.failed_at).ravel()
    failed = np.flatnonzero((at >= 0) & (status & int(Status.LIMIT) == 0))
    if not len(failed):
        return None
    first = failed[at[failed].argmin()]
    why = Status(int(status[first]))
    return (
        f"simulate: {len(failed):,} of {len(at):,} rows failed, the first at step {at[first]:,}: "
        f"{why.name}; expected {_remedy(setup, why)}"
    )


def _remedy(setup: Setup, why: Status) -> str:
    """What a simulation without this failure would need."""
    if Status.NOT_FINITE in why:
        return "finite states, torques and wrenches"
    found = ["a motion that does not diverge" if setup.adaptive else "a smaller dt"]
    if Status.SINGULAR in why and Status.NOT_CONVERGED not in why:
        found.append("links with inertia about every joint, to which a joint's armature adds")
    asked = setup.controller is not None or setup.law.depends_on_state
    if asked and (setup.hold or not setup.adaptive):
        torques = "held torques" if setup.hold else "torques"
        found.append(f"{torques} whose damping times dt is below the joint's inertia")
    explicit = not (setup.adaptive or setup.stepped or setup.integrator == "implicit")
    if explicit and (setup.limits.stop or _resists(setup.robot)):
        found.append("integrator='implicit' for stiff damping and stops")
    if setup.adaptive and Status.NOT_CONVERGED in why:
        found.append("larger rtol and atol, or a solver of stiff motions ('Radau', 'BDF', 'LSODA')")
    return ", or ".join(found)


def _resists(robot: Robot) -> bool:
    """Whether damping or friction of a joint acts."""
    return any(link.damping or link.friction for link in robot.tree.links)
