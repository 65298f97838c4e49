"""A simulation from its first step to its last, or to an interrupt."""

from __future__ import annotations

import warnings
from typing import Protocol

from linkwise.motion.adaptive import Adaptive
from linkwise.motion.fused import Fused
from linkwise.motion.progress import Progress
from linkwise.motion.record import Record
from linkwise.motion.setup import Setup
from linkwise.motion.stepped import Stepped
from linkwise.motion.trajectory import Trajectory


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
        warnings.warn(f"simulate: interrupted; the trajectory ends at {time:.6g} s", stacklevel=3)
    return record.trajectory(interrupted)
