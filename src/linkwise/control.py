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
from linkwise.motion.operational import Report
from linkwise.motion.operational_space import OperationalSpace, impedance

__all__ = [
    "Law",
    "OperationalSpace",
    "PerStep",
    "Report",
    "SoftStop",
    "computed_torque",
    "constant",
    "gravity_compensation",
    "impedance",
    "pd",
    "zero",
]
