"""Laws of control that simulations compile into their kernels: ``lw.control``."""

from linkwise.motion.actuators import Remembering, delayed, rate_limited, saturated
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
    "Remembering",
    "Report",
    "SoftStop",
    "computed_torque",
    "constant",
    "delayed",
    "gravity_compensation",
    "impedance",
    "pd",
    "rate_limited",
    "saturated",
    "zero",
]
