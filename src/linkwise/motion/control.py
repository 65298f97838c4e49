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

__all__ = [
    "Law",
    "PerStep",
    "computed_torque",
    "constant",
    "gravity_compensation",
    "pd",
    "zero",
]
