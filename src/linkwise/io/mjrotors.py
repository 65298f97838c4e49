"""Armature and damping that MuJoCo's actuators and tendons add to joints.

An actuator adds ``armature gear²`` to every degree of freedom of its joint, or to the armature
``a`` of its tendon. A fixed tendon of length ``cᵀ q`` adds ``a c cᵀ`` to the mass matrix, which is
a rotor on one joint where ``c`` has one entry, joints that follow counted with their driver.
Anything else couples joints, or depends on the configuration, and is refused. Versions of MuJoCo
without such armature have no fields for it, and refuse a file that gives some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.codes import Code
from linkwise.io.mjequality import Locate, Reading
from linkwise.io.mjtendons import Tie, length_of
from linkwise.model.frames import Array

ON_JOINT, ON_TENDON = (0, 1), 3  # mjTRN_JOINT, mjTRN_JOINTINPARENT; mjTRN_TENDON


def more_armature(m: Any, ties: dict[int, Tie], locate: Locate, reading: Reading) -> Array:
    """What actuators and tendons add to each joint's armature."""
    joints, tendons = geared(m, "actuator_armature")
    tendons += getattr(m, "tendon_armature", 0.0)
    for i in np.flatnonzero(tendons):
        moved = tendon_joints(m, int(i), ties if reading.follow else {})
        if moved is not None and len(moved) <= 1:
            for joint, coefficient in moved.items():
                joints[joint] += tendons[i] * (coefficient * coefficient)
        else:
            why = "changes the mass matrix with the configuration"
            if moved is not None:
                why = f"couples {len(moved)} joints in the mass matrix"
            where = locate("tendon", int(i))
            where.report(Code.COUPLED_ROTOR, armature=float(tendons[i]), why=why)
    return joints


def geared(m: Any, field: str) -> tuple[Array, Array]:
    """What actuators add to each joint and to each tendon: a field of theirs times gear²."""
    joints, tendons = np.zeros(m.njnt), np.zeros(m.ntendon)
    squares = m.actuator_gear[:, 0] * m.actuator_gear[:, 0]
    for i in np.flatnonzero(getattr(m, field, np.zeros(0))):
        kind, target = int(m.actuator_trntype[i]), int(m.actuator_trnid[i, 0])
        if kind in ON_JOINT:
            joints[target] += getattr(m, field)[i] * squares[i]
        elif kind == ON_TENDON:
            tendons[target] += getattr(m, field)[i] * squares[i]
    return joints, tendons


def tendon_joints(m: Any, tendon: int, ties: dict[int, Tie]) -> dict[int, float] | None:
    """Coefficients of the independent joints in a tendon's length; None where it is not linear."""
    length = length_of(m, tendon, ties)
    return None if length is None else length.coefficients
