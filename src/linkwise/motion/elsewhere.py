"""Simulations from arrays of CuPy, PyTorch, JAX and others, and back into them.

The steps are taken where the arrays are. Their numbers pass through the memory of the host before
the first step and after the last, and every few hundred steps on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.engine import devices
from linkwise.motion.actuators import Remembering, Saturated
from linkwise.motion.laws import Law
from linkwise.motion.setup import Array
from linkwise.motion.trajectory import Balance, Energy, Trajectory


@dataclass(frozen=True)
class Guest:
    """The library that the arrays of a call are of, and where they are."""

    where: devices.Where

    def fetched(self, x: Any) -> Any:
        """An argument in arrays of NumPy."""
        return self.where.library.fetched(x) if devices.elsewhere([x]) else x

    def sent(self, x: Array) -> Any:
        """Numbers as an array of the library, where its others are."""
        whole = np.ascontiguousarray(x)
        if self.where.place == "cpu":
            return self.where.library.from_numpy(whole)
        return self.where.library.constant(whole, self.where.device)

    def device(self, asked: Any) -> Any:
        """Where the steps are taken: where the arrays are; raises if another place is asked for."""
        place = self.where.place
        if asked is None:
            return place
        number = devices.number(asked)
        if place != ("cpu" if number is None else f"cuda:{number}"):
            raise ValueError(
                f"simulate: device {asked!r}, and the arrays are of {self.where.library.name} on "
                f"{place}; expected device=None, or arrays of NumPy"
            )
        return asked

    def asked(self, controller: Any) -> Any:
        """A controller of Python that is given the library's arrays, and may return them."""
        if isinstance(controller, Remembering | Saturated):
            return controller.around(self.asked)
        if controller is None or isinstance(controller, Law) or not callable(controller):
            return controller
        return lambda t, q, qd: self.fetched(controller(t, self.sent(q), self.sent(qd)))

    def trajectory(self, found: Trajectory) -> Trajectory:
        """A trajectory with its motion in arrays of the library."""
        own = {field.name: getattr(found, field.name) for field in fields(found)}
        own |= {"q": self.sent(found.q), "qd": self.sent(found.qd)}
        return Elsewhere(**own, host=found, guest=self)


def guest_of(q0: Any, qd0: Any, f_ext: Any) -> Guest | None:
    """Whose the arrays of a call are; None for those of NumPy, lists and numbers."""
    named = {"q0": q0, "qd0": qd0}
    if isinstance(f_ext, Mapping):
        named |= {f"f_ext[{name!r}]": x for name, x in f_ext.items()}
    given = {name: x for name, x in named.items() if x is not None}
    if not devices.elsewhere(list(given.values())):
        return None
    return Guest(devices.where("simulate", list(given), list(given.values())))


@dataclass(frozen=True, eq=False, repr=False)
class Elsewhere(Trajectory):
    """A trajectory whose motion is in arrays of another library; `host` has those of NumPy."""

    host: Any = None
    guest: Any = None

    @cached_property
    def tau(self) -> Any:
        """Torques (..., T, nv) of the controller in each state."""
        return self.guest.sent(self.host.tau)

    @cached_property
    def energy(self) -> Energy:
        """Kinetic, potential and total energy (..., T)."""
        return Energy(*map(self.guest.sent, self.host.energy))

    @cached_property
    def balance(self) -> Balance:
        """Where the energy went (..., T), by the power of everything that acts on the robot."""
        return Balance(*map(self.guest.sent, self.host.balance))

    def path(self, frame: str) -> Any:
        """Where the origin of a frame was (..., T, 3), in metres."""
        return self.guest.sent(self.host.path(frame))

    def at(self, *row: int) -> Trajectory:
        """One row of a batch as a trajectory."""
        return self.guest.trajectory(self.host.at(*row))  # type: ignore[no-any-return]

    def numpy(self) -> Trajectory:
        """The same trajectory in arrays of NumPy."""
        return self.host  # type: ignore[no-any-return]
