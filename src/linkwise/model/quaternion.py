"""Unit quaternions (w, x, y, z) as NumPy arrays, any leading axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SMALL = 1e-4  # below this angle, series of three terms are exact to rounding


def multiply(a: Array, b: Array) -> Array:
    """``a b``: first b, then a."""
    w1, x1, y1, z1 = np.moveaxis(a, -1, 0)
    w2, x2, y2, z2 = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=-1,
    )


def conjugate(q: Array) -> Array:
    """The opposite turn."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0], q.dtype))


def rotate(q: Array, v: Array) -> Array:
    """Turn vectors by unit quaternions."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * np.cross(u, v)
    return np.asarray(v + w * t + np.cross(u, t))


def rate(q: Array, w: Array) -> Array:
    """``½ q (0, w)``: how q changes at an angular velocity in turned axes."""
    still = np.zeros_like(w[..., :1])
    return np.asarray(0.5 * multiply(q, np.concatenate([still, w], axis=-1)))


def exponential(rotation: Array) -> Array:
    """The turn by a rotation vector."""
    angle = np.linalg.norm(rotation, axis=-1, keepdims=True)
    half = 0.5 * angle
    near = angle < SMALL
    safe = np.where(near, 1.0, angle)
    scale = np.where(near, 0.5 - angle**2 / 48.0, np.sin(half) / safe)
    return np.concatenate([np.cos(half), scale * rotation], axis=-1)


def logarithm(q: Array) -> Array:
    """The shortest rotation vector of a turn."""
    q = np.where(q[..., :1] < 0.0, -q, q)
    size = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    near = size < SMALL
    safe = np.where(near, 1.0, size)
    angle = 2.0 * np.arctan2(size, q[..., :1])
    w = np.where(near, q[..., :1], 1.0)  # near half a turn it may be zero
    scale = np.where(near, 2.0 / w * (1.0 - (size / w) ** 2 / 3.0), angle / safe)
    return np.asarray(scale * q[..., 1:])


def random(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Turns spread evenly over all turns."""
    q = rng.normal(size=(*shape, 4))
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def left_jacobian(rotation: Array, v: Array) -> Array:
    """``V v``, where a twist (rotation, v) held for unit time moves the origin by V v."""
    angle = np.linalg.norm(rotation, axis=-1, keepdims=True)
    near = angle < SMALL
    safe = np.where(near, 1.0, angle)
    a = np.where(near, 0.5 - angle**2 / 24.0, 2.0 * (np.sin(0.5 * safe) / safe) ** 2)
    b = np.where(near, 1.0 / 6.0 - angle**2 / 120.0, (angle - np.sin(angle)) / safe**3)
    once = np.cross(rotation, v)
    return np.asarray(v + a * once + b * np.cross(rotation, once))


def left_jacobian_inverse(rotation: Array, v: Array) -> Array:
    """``V⁻¹ v``."""
    angle = np.linalg.norm(rotation, axis=-1, keepdims=True)
    near = angle < SMALL
    safe = np.where(near, 1.0, angle)
    half = 0.5 * safe
    b = np.where(near, 1.0 / 12.0 + angle**2 / 720.0, (1.0 - half / np.tan(half)) / safe**2)
    once = np.cross(rotation, v)
    return np.asarray(v - 0.5 * once + b * np.cross(rotation, once))
