"""Fixed tendons of a compiled MuJoCo model: lengths that are linear in the joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

WRAPPED_JOINT = 1  # mjWRAP_JOINT


@dataclass(frozen=True)
class Tie:
    """A joint tied to another: ``q = multiplier q_driver + offset``."""

    driver: int
    multiplier: float
    offset: float


class Length(NamedTuple):
    """The length of a fixed tendon: the sum of coefficients times joints, and a constant."""

    coefficients: dict[int, float]  # by joint; none is zero
    constant: float


def length_of(m: Any, tendon: int, ties: Mapping[int, Tie]) -> Length | None:
    """Return a tendon's length over the joints that move on their own; None if it is not fixed."""
    start = m.tendon_adr[tendon]
    wraps = range(start, start + m.tendon_num[tendon])
    if any(m.wrap_type[k] != WRAPPED_JOINT for k in wraps):
        return None
    total: dict[int, float] = {}
    constant = 0.0
    for k in wraps:
        joint, coefficient = int(m.wrap_objid[k]), float(m.wrap_prm[k])
        if joint in ties:
            tie = ties[joint]
            constant += coefficient * tie.offset
            joint, coefficient = tie.driver, coefficient * tie.multiplier
        total[joint] = total.get(joint, 0.0) + coefficient
    return Length({joint: c for joint, c in total.items() if c != 0.0}, constant)
