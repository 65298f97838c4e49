"""KUKA LBR iiwa 14 R820: modified DH; `SOURCE` says whose numbers, `NOTES` what they lack.

Limits are KUKA's data sheet (axis data), here in degrees as there. A rotor inertia is gear ratio²
times that of the motor and its wave generator.
"""

from __future__ import annotations

from dataclasses import replace
from math import pi, radians

from linkwise.io.dh import DHRow
from linkwise.model.description import BodyInertia

SOURCE = (
    "Y. R. Stürz, L. M. Affolter and R. S. Smith, Parameter identification of the KUKA LBR iiwa "
    "robot including constraints on physical feasibility, IFAC 2017; limits: KUKA, LBR iiwa "
    "technical data; rotors and base: the iiwa models of Drake (RobotLocomotion/models, "
    "iiwa_description)"
)
NOTES = (
    "the published inertias of links 4 and 7 break the triangle inequality; they are taken as "
    "published, and the mass matrix is positive definite",
    "rotor inertias are estimates: motors and gears of the similar DLR LWR III (RoboDrive ILM, "
    "Harmonic Drive CSG); with_joint sets others",
    "the base link is that of the common URDF, a round estimate; it counts with a floating base "
    "alone",
)
BASE = BodyInertia(5.0, (-0.1, 0.0, 0.07), (0.05, 0.0, 0.0, 0.06, 0.0, 0.03))
# range (both ways, degrees), speed (degrees/s), torque (N m); gear, inertia of its motor (kg m²)
AXES = (
    (170, 85, 320, 160, 1.321e-4),
    (120, 85, 320, 160, 1.321e-4),
    (170, 100, 176, 160, 1.321e-4),
    (120, 75, 176, 160, 1.321e-4),
    (170, 130, 110, 100, 1.321e-4),
    (120, 135, 40, 160, 4.54e-5),
    (175, 135, 40, 160, 4.54e-5),
)
BODIES = (
    DHRow(alpha=0.0, d=0.36, mass=3.9781, com=(-0.00351, 0.00016, -0.03139),
          inertia=(0.00455, 0.0, 0.0, 0.00454, 0.00001, 0.00029)),
    DHRow(alpha=-pi / 2, d=0.0, mass=4.50275, com=(-0.00767, 0.16669, -0.00355),
          inertia=(0.00032, 0.0, 0.0, 0.0001, 0.0, 0.00042)),
    DHRow(alpha=pi / 2, d=0.42, mass=2.4552, com=(-0.00225, -0.03492, -0.02652),
          inertia=(0.00223, -0.00005, 0.00007, 0.00219, 0.00007, 0.00073)),
    DHRow(alpha=pi / 2, d=0.0, mass=2.61155, com=(0.0002, -0.05268, 0.03818),
          inertia=(0.03844, 0.00088, -0.00112, 0.01144, -0.00111, 0.04988)),
    DHRow(alpha=-pi / 2, d=0.4, mass=3.41, com=(0.0005, -0.00237, -0.21134),
          inertia=(0.00277, -0.00001, 0.00001, 0.00284, 0.0, 0.00012)),
    DHRow(alpha=-pi / 2, d=0.0, mass=3.38795, com=(0.00049, 0.02019, -0.0275),
          inertia=(0.0005, -0.00005, -0.00003, 0.00281, -0.00004, 0.00232)),
    DHRow(alpha=pi / 2, d=0.126, mass=0.35432, com=(-0.03466, -0.02324, 0.07138),
          inertia=(0.00795, 0.00022, -0.00029, 0.01089, -0.00029, 0.00294)),
)  # fmt: skip
ROWS = tuple(
    replace(
        row, lower=-radians(reach), upper=radians(reach), velocity=radians(speed),
        effort=float(torque), gear=float(gear), motor_inertia=rotor,
    )
    for row, (reach, speed, torque, gear, rotor) in zip(BODIES, AXES, strict=True)
)  # fmt: skip
