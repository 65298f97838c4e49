"""A mobility as six springs: joints in a row that give way as it does.

    J = L D Lᵀ      columns of L are axes of the joints, 1/D their rotor inertias

J is symmetric and never negative. A direction in which it is zero beside rounding is rigid: its
rotor is infinite, its joint does not move, and nothing is divided by zero.
"""

from __future__ import annotations

from linkwise.algorithms.dense import unit
from linkwise.spatial import (
    ArticulatedInertia,
    Force,
    Motion,
    Scalar,
    Vec3,
    quotient,
    rounding,
    select,
)

RIGID = 64.0  # rounding units beside the diagonal of J below which a direction is rigid
UNITS = tuple(Force(Vec3(*row[:3]), Vec3(*row[3:])) for row in unit(6))
NO_FORCE = (0.0,) * 6
STIFF = float("inf")  # rotor of a rigid direction


def springs(J: ArticulatedInertia) -> tuple[list[Motion], list[Scalar]]:
    """Axes and rotors."""
    rows = [list(J @ Motion(f.ang, f.lin)) for f in UNITS]
    least = [rows[k][k] * (RIGID * rounding(rows[k][k])) for k in range(6)]
    axes, rotors = [], []
    for k in range(6):
        soft = rows[k][k] - least[k]
        inverse = quotient(1.0, select(soft, rows[k][k], 1.0))
        column = [select(soft, rows[i][k] * inverse, 0.0) for i in range(k + 1, 6)]
        for i in range(k + 1, 6):
            for j in range(k + 1, i + 1):
                rows[i][j] = rows[i][j] - rows[i][k] * column[j - k - 1]
        axis = [0.0] * k + [1.0, *column]
        axes.append(Motion(Vec3(*axis[:3]), Vec3(*axis[3:])))
        rotors.append(select(soft, inverse, STIFF))
    return axes, rotors


def through(A: tuple[Force, ...], f: Force) -> Force:
    """``A f``, where A has these columns."""
    total = Force.zero()
    for column, x in zip(A, f, strict=True):
        total = total + column * x
    return total


def back(A: tuple[Force, ...], m: Motion) -> Motion:
    """``Aᵀ m``."""
    x = [m.dot(f) for f in A]
    return Motion(Vec3(*x[:3]), Vec3(*x[3:]))
