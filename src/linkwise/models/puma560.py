"""Unimation PUMA 560: standard DH; `SOURCE` says whose numbers, `NOTES` what they lack.

d1 is 26.45 inches. Rotor inertia on the mass matrix is gear² times motor inertia. Link 3's
published moments are 0.0125 + 0.066 < 0.086.
"""

from __future__ import annotations

from dataclasses import replace
from math import pi, radians

from linkwise.io.dh import DHRow

SOURCE = (
    "B. Armstrong, O. Khatib and J. Burdick, The explicit dynamic model and inertial parameters of "
    "the PUMA 560 arm, ICRA 1986 (bodies, table 7: torques); P. Corke and B. Armstrong-Hélouvry, A "
    "search for consensus among model parameters reported for the PUMA 560 robot, ICRA 1994 "
    "(bodies, rotors); P. Corke, Visual control of robots, 1996, table 2.21 (speeds); L.-C. T. "
    "Wang and C. C. Chen, A combined optimization method for solving the inverse kinematics "
    "problem, IEEE Trans. Robotics and Automation 7(4), 1991 (ranges)"
)
NOTES = (
    "of link 1 only Iyy is published, for its mass does not move; the rotor of joint 1 lets it "
    "load all the same",
    "the published inertia of link 3 breaks the triangle inequality; it is taken as published",
    "largest speeds are those at which the voltage of the motors saturates, not rated ones",
)
# range (degrees), speed (rad/s), torque (N m)
AXES = (
    (-160, 160, 1.92, 97.6),
    (-45, 225, 1.51, 186.4),
    (-225, 45, 2.40, 89.4),
    (-110, 170, 5.34, 24.2),
    (-100, 100, 5.09, 20.1),
    (-266, 266, 5.74, 21.3),
)
BODIES = (
    DHRow(d=0.67183, a=0.0, alpha=pi / 2, mass=0.0, com=(0.0, 0.0, 0.0),
          inertia=(0.0, 0.35, 0.0), motor_inertia=200e-6, gear=-62.6111),
    DHRow(d=0.0, a=0.4318, alpha=0.0, mass=17.4, com=(-0.3638, 0.006, 0.2275),
          inertia=(0.13, 0.524, 0.539), motor_inertia=200e-6, gear=107.815),
    DHRow(d=0.15005, a=0.0203, alpha=-pi / 2, mass=4.8, com=(-0.0203, -0.0141, 0.070),
          inertia=(0.066, 0.086, 0.0125), motor_inertia=200e-6, gear=-53.7063),
    DHRow(d=0.4318, a=0.0, alpha=pi / 2, mass=0.82, com=(0.0, 0.019, 0.0),
          inertia=(1.8e-3, 1.3e-3, 1.8e-3), motor_inertia=33e-6, gear=76.0364),
    DHRow(d=0.0, a=0.0, alpha=-pi / 2, mass=0.34, com=(0.0, 0.0, 0.0),
          inertia=(0.3e-3, 0.4e-3, 0.3e-3), motor_inertia=33e-6, gear=71.923),
    DHRow(d=0.0, a=0.0, alpha=0.0, mass=0.09, com=(0.0, 0.0, 0.032),
          inertia=(0.15e-3, 0.15e-3, 0.04e-3), motor_inertia=33e-6, gear=76.686),
)  # fmt: skip
ROWS = tuple(
    replace(row, lower=radians(lower), upper=radians(upper), velocity=speed, effort=torque)
    for row, (lower, upper, speed, torque) in zip(BODIES, AXES, strict=True)
)
