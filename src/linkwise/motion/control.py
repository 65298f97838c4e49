"""Laws of control that simulations compile into their kernels: ``lw.control``."""

from linkwise.motion.laws import (
    Law,
    PerStep,
    computed_torque,
    constant,
    gravity_compensation,
    pd,
    zero,
)
from linkwise.motion.limits import SoftStop

__all__ = [
    "Law",
    "PerStep",
    "SoftStop",
    "computed_torque",
    "constant",
    "gravity_compensation",
    "pd",
    "zero",
]
