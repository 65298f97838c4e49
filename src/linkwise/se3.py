"""Rigid motions: poses (..., 4, 4) and twists (..., 6), which are (angular, linear).

>>> import linkwise as lw
>>> pose = lw.se3.exp([0.0, 0.0, 1.0, 0.5, 0.0, 0.0])  # one radian about z, moving along an arc
>>> lw.se3.log(pose).round(12).tolist()
[0.0, 0.0, 1.0, 0.5, 0.0, 0.0]

Angles in radians, lengths in metres. Right to rounding at every angle up to half a turn, the
smallest and half a turn itself included, where the axis may have either sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.engine import arrays, devices
from linkwise.spatial import Mat3, Motion, Vec3
from linkwise.spatial.se3 import exponential, logarithm

__all__ = ["error", "exp", "log"]

Array = NDArray[Any]
RIGID = {"float64": 1e-6, "float32": 1e-4}  # how far axes may be from unit length and right angles
POSE, TWIST = (4, 4), (6,)


def exp(twist: ArrayLike) -> Any:
    """The pose (..., 4, 4) that a twist (..., 6), held for one second, leads to from the identity.

    ``twist`` is (angular, linear) in rad/s and m/s.
    """
    return _called("exp", _exp, (("twist", TWIST),), (twist,))


def log(pose: ArrayLike) -> Any:
    """The twist (..., 6) that leads from the identity to a pose (..., 4, 4) in one second.

    (Angular, linear) in rad/s and m/s, by at most half a turn; the inverse of `exp`.
    """
    return _called("log", _log, (("pose", POSE),), (pose,))


def error(pose: ArrayLike, target: ArrayLike) -> Any:
    """The twist (..., 6) that leads from poses to targets (..., 4, 4) in one second.

    ``log(pose⁻¹ target)``, in the pose's own axes: ``pose @ exp(error(pose, target))`` is the
    target. `Robot.inverse_kinematics` brings its norm below ``tol``.
    """
    return _called("error", _error, (("pose", POSE), ("target", POSE)), (pose, target))


def _exp(twist: Array) -> Array:
    x = twist.T
    R, p = exponential(Motion(Vec3(*x[:3]), Vec3(*x[3:])))
    out = np.zeros((len(twist), 4, 4), twist.dtype)
    for i, (row, place) in enumerate(zip(R.rows, p, strict=True)):
        out[:, i, 3] = place
        for j, number in enumerate(row):
            out[:, i, j] = number
    out[:, 3, 3] = 1.0
    return out


def _log(pose: Array) -> Array:
    _check_rigid("log", "pose", pose)
    return _logarithm(pose[:, :3, :3], pose[:, :3, 3])


def _error(pose: Array, target: Array) -> Array:
    _check_rigid("error", "pose", pose)
    _check_rigid("error", "target", target)
    back = np.swapaxes(pose[:, :3, :3], 1, 2)
    between = target[:, :3, 3] - pose[:, :3, 3]
    return _logarithm(back @ target[:, :3, :3], (back @ between[:, :, None])[:, :, 0])


def _logarithm(R: Array, p: Array) -> Array:
    rows = (Vec3(*(R[:, i, j] for j in range(3))) for i in range(3))
    found = logarithm(Mat3(*rows), Vec3(*p.T))
    return np.stack([*found.ang, *found.lin], axis=-1)


def _check_rigid(function: str, name: str, pose: Array) -> None:
    """Raise ValueError for numbers that are no rigid motion; NaN is none of our business."""
    R = pose[:, :3, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        square = R @ np.swapaxes(R, 1, 2) - np.eye(3)
        off = np.maximum(np.abs(square).max(axis=(1, 2)), np.abs(pose[:, 3] - np.eye(4)[3]).max(1))
        bent = (off > RIGID[pose.dtype.name]) | (np.linalg.det(R) < 0)
    if bent.any():
        k = int(np.argmax(bent))
        raise ValueError(
            f"se3.{function}: {name} {k} of {len(pose)} is no rigid motion; expected a "
            f"right-handed rotation (rows of unit length at right angles, to "
            f"{RIGID[pose.dtype.name]:g}), a place, and a last row 0 0 0 1"
        )


def _called(
    function: str,
    compute: Callable[..., Array],
    ports: Sequence[tuple[str, tuple[int, ...]]],
    values: tuple[Any, ...],
) -> Any:
    """Run a function of rows on arrays of any leading shape; those on a GPU are refused."""
    title = f"se3.{function}"
    if devices.elsewhere(values):
        at = devices.where(title, [name for name, _ in ports], values)
        if at.place != "cpu":
            raise TypeError(f"{title}: {ports[0][0]} is on {at.place}; expected arrays on the CPU")
        return devices.on_host(
            at.library, values, None, lambda host, _: _rows(title, compute, ports, host)
        )
    return _rows(title, compute, ports, values)


def _rows(
    title: str,
    compute: Callable[..., Array],
    ports: Sequence[tuple[str, tuple[int, ...]]],
    values: Sequence[Any],
) -> Any:
    flat = [_flat(title, name, shape, x) for (name, shape), x in zip(ports, values, strict=True)]
    sizes = [(name, int(np.prod(shape))) for name, shape in ports]
    if all(shape == POSE for _, shape in ports):  # told by the shapes that the user knows
        try:
            np.broadcast_shapes(*(x.shape[:-1] for x in flat))
        except ValueError:
            shapes = [np.shape(x) for x in values]
            raise arrays.unlike(title, [name for name, _ in ports], shapes, 2) from None
    batch = arrays.prepare(title, sizes, flat)
    rows = [x.reshape(-1, *shape) for x, (_, shape) in zip(batch.rows, ports, strict=True)]
    with np.errstate(all="ignore"):
        found = compute(*rows)
    return found.reshape(*batch.shape, *found.shape[1:]).astype(batch.dtype, copy=False)


def _flat(title: str, name: str, shape: tuple[int, ...], value: Any) -> Any:
    """An argument with its own axes made one."""
    if len(shape) == 1:
        return value
    arrays.refuse_mask(title, name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise TypeError(f"{title}: {name} cannot be read as an array ({error})") from None
    if array.shape[-2:] != shape:
        raise ValueError(f"{title}: {name} has shape {array.shape}; expected (..., 4, 4)")
    return array.reshape(*array.shape[:-2], 16)
