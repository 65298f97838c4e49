"""Roll, pitch and yaw: how robot files write rotations."""

from __future__ import annotations

from linkwise.model.description import Rotation, Triple
from linkwise.spatial.elementary import atan2, length, sincos

_SNAP = 2.0**-52


def rpy_rotation(roll: float, pitch: float, yaw: float) -> Rotation:
    """Rotation by roll, pitch, yaw about the fixed x, y, z axes: ``Rz(yaw) Ry(pitch) Rx(roll)``.

    Entries within rounding of 0 and 1 are made exact: 1.5707963267948966 means a right angle.
    """
    (sr, cr), (sp, cp), (sy, cy) = (map(_snap, sincos(x)) for x in (roll, pitch, yaw))
    return (
        (_snap(cy * cp), _snap(cy * sp * sr - sy * cr), _snap(cy * sp * cr + sy * sr)),
        (_snap(sy * cp), _snap(sy * sp * sr + cy * cr), _snap(sy * sp * cr - cy * sr)),
        (_snap(-sp), _snap(cp * sr), _snap(cp * cr)),
    )


def rotation_rpy(rotation: Rotation) -> Triple:
    """Roll, pitch and yaw of a rotation; the shortest decimals that give it back exactly, if any.

    Pitch and roll are read off after the yaw is undone, so that at a pitch of a right angle, where
    the yaw is anything, they still fit it.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, _, _) = rotation
    yaw = atan2(yx, xx) if length((yx, xx)) > _SNAP else 0.0
    s, c = sincos(yaw)
    pitch = atan2(-zx, c * xx + s * yx)
    roll = atan2(s * xz - c * yz, c * yy - s * xy)
    for digits in range(1, 17):
        a, b, d = (float(f"{angle:.{digits}g}") + 0.0 for angle in (roll, pitch, yaw))
        if rpy_rotation(a, b, d) == rotation:
            return a, b, d
    return roll, pitch, yaw


def _snap(entry: float) -> float:
    nearest = float(round(entry))
    return nearest + 0.0 if abs(entry - nearest) <= _SNAP else entry
