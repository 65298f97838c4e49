"""Numbers that other libraries hold in memory, checked: rotations, bodies, and joints' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.codes import Code
from linkwise.errors import Where
from linkwise.model.description import BodyInertia, tensor_of
from linkwise.model.values import Array, as_triple
from linkwise.spatial.elementary import length, sincos

HUGE = 1e100  # numbers from here on overflow once they are multiplied


def quaternion_matrix(quat: Any) -> Array:
    """The rotation matrix of a quaternion (w, x, y, z) of any length but zero."""
    numbers = np.asarray(quat, dtype=float)
    w, x, y, z = (numbers / length(numbers)).tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def turn_matrix(axis: Any, angle: float) -> Array:
    """The rotation matrix of a turn about a unit axis."""
    s, c = sincos(0.5 * angle)
    return quaternion_matrix([c, *(s * np.asarray(axis, dtype=float))])


def body_inertia(mass: float, com: Any, tensor: Array) -> BodyInertia | None:
    """A body's inertia about its centre of mass in link axes; None where there is nothing."""
    if mass == 0.0 and not np.any(tensor):
        return None
    return BodyInertia(float(mass), as_triple(com), tensor_of(tensor))


def check_finite(where: Where, *named: tuple[str, Any]) -> None:
    """Refuse numbers that are not finite, or whose products would not be, by name."""
    for name, values in named:
        if not (np.abs(np.asarray(values, dtype=float)) < HUGE).all():
            raise where.error(f"{name} is {np.asarray(values).tolist()}; expected finite numbers")


def check_unit(where: Where, *named: tuple[str, Any]) -> None:
    """Refuse axes and quaternions whose length is not one, by name."""
    for name, values in named:
        if not abs(length(values) - 1.0) < 1e-6:
            found = np.asarray(values).tolist()
            raise where.error(f"{name} is {found}; expected a vector of length one")


def not_negative(where: Where, what: str, values: Any) -> Array:
    """Numbers of a joint's degrees of freedom; a negative one is refused."""
    found = np.asarray(values, dtype=float)
    check_finite(where, (what, found))
    if found.min() < 0.0:
        raise where.error(f"{what} is {found.min():g}; expected zero or more")
    return found


def shared_damping(where: Where, values: Any) -> float:
    """The damping of all degrees of freedom of a joint; a negative one is told."""
    check_finite(where, ("damping", values))
    damping = _shared(where, "damping", np.asarray(values, dtype=float))
    if damping < 0.0:
        where.report(Code.NEGATIVE_DAMPING, value=damping)
    return damping


def shared_number(where: Where, what: str, values: Any) -> float:
    """The number, zero or more, that all degrees of freedom of a joint have."""
    return _shared(where, what, not_negative(where, what, values))


def _shared(where: Where, what: str, found: Array) -> float:
    if not (found == found[0]).all():
        raise where.error(f"{what} {found.tolist()} differs between its axes; expected one number")
    return float(found[0])


def rotor_inertia(values: Array, kind: str) -> float | tuple[float, ...]:
    """Armature of a joint, one number where all are alike; of a free one, angular before linear."""
    own = np.roll(values, 3) if kind == "free" else values
    return float(own[0]) if (own == own[0]).all() else tuple(own.tolist())
