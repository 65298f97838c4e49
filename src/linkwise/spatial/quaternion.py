"""Unit quaternions (w, x, y, z) over any scalar, and turns by rotation vectors.

A turn by the vector ``r`` of length θ has ``w = cos(θ/2)``, ``v = r sin(θ/2)/θ``. Where there is no
turn, such quotients are 0/0 and a series takes their place. Away from there nothing is lost: a sine
over its angle is good to rounding, and rounding of ``1 - sin θ/θ`` is no more than rounding of the
motion it belongs to. Below NEAR two terms are good for 50 digits: one series for all numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linkwise.spatial.scalar import Scalar, Vector, atan2, reciprocal, select, sincos, sqrt
from linkwise.spatial.vec3 import Mat3, Vec3, cross

NEAR = 1e-30  # squares of angles below which two terms of a series are used
SHORT = 2.0**-440  # beside it, a length whose square loses digits to underflow is zero


class Quaternion(NamedTuple):
    """Cosine of half the angle; sine of half the angle along the axis."""

    w: Scalar
    v: Vec3

    @staticmethod
    def of(numbers: Vector) -> Quaternion:
        """From (w, x, y, z)."""
        return Quaternion(numbers[0], Vec3(*numbers[1:4]))

    @staticmethod
    def of_matrix(R: Mat3) -> Quaternion:
        """The unit quaternion of a rotation matrix."""
        q = Quaternion.multiple_of_matrix(R)
        return q.scaled(1.0 / sqrt(q.w * q.w + q.v.dot(q.v)))

    @staticmethod
    def multiple_of_matrix(R: Mat3) -> Quaternion:
        """A quaternion of a rotation matrix, of a length from 2 to 4.

        The numbers of R are linear in those of ``4 q qᵀ``; every row of that matrix is a multiple
        of q. The row with the largest diagonal entry is taken: the four of them add up to 4, so
        that it is at least 1, and half a turn loses no digits.
        """
        (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.rows
        x, y, z = zy - yz, xz - zx, yx - xy
        rows = [
            [1.0 + xx + yy + zz, x, y, z],
            [x, 1.0 + xx - yy - zz, xy + yx, zx + xz],
            [y, xy + yx, 1.0 - xx + yy - zz, yz + zy],
            [z, zx + xz, yz + zy, 1.0 - xx - yy + zz],
        ]
        best, largest = rows[0], rows[0][0]
        for k in range(1, 4):
            more = rows[k][k] - largest
            best = [select(more, a, b) for a, b in zip(rows[k], best, strict=True)]
            largest = select(more, rows[k][k], largest)
        return Quaternion.of(best)

    def numbers(self) -> Iterator[Scalar]:
        """w, x, y, z."""
        yield self.w
        yield from self.v

    def __matmul__(self, o: Quaternion) -> Quaternion:
        """``self o``: first o, then self."""
        v = o.v * self.w + self.v * o.w + cross(self.v, o.v)
        return Quaternion(self.w * o.w - self.v.dot(o.v), v)

    def scaled(self, k: Scalar) -> Quaternion:
        """Every number times k."""
        return Quaternion(self.w * k, self.v * k)

    def unit(self) -> Quaternion:
        """The same turn at unit length; NaN where there is no length."""
        return self.scaled(reciprocal(sqrt(self.w * self.w + self.v.dot(self.v)), SHORT))

    @property
    def back(self) -> Quaternion:
        """The opposite turn."""
        return Quaternion(self.w, -self.v)

    def turn(self, x: Vec3) -> Vec3:
        """A vector, turned by a quaternion of unit length."""
        t: Vec3 = cross(self.v, x) * 2.0
        along: Vec3 = t * self.w
        return x + along + cross(self.v, t)


def quotient(square: Scalar, x: Scalar, y: Scalar, limit: float, slope: float) -> Scalar:
    """``x / y``; where both vanish with a small square, ``limit + slope square``."""
    away = square - NEAR
    return select(away, x / select(away, y, 1.0), limit + slope * square)


def exponential(r: Vec3) -> Quaternion:
    """The turn by a rotation vector."""
    half, c = half_sine(r)
    return Quaternion(c, r * half)


def half_sine(r: Vec3) -> tuple[Scalar, Scalar]:
    """``sin(θ/2)/θ`` and ``cos(θ/2)`` of a rotation vector."""
    square = r.dot(r)
    angle = sqrt(square)
    s, c = sincos(angle * 0.5)
    return quotient(square, s, angle, 0.5, -1.0 / 48.0), c


def logarithm(q: Quaternion) -> Vec3:
    """The shortest rotation vector of a unit quaternion."""
    half, _, flip = half_angle(q)
    r: Vec3 = q.v * (half * (2.0 * flip))
    return r


def half_angle(q: Quaternion) -> tuple[Scalar, Scalar, Scalar]:
    """``(θ/2) / sin(θ/2)`` and ``cos(θ/2)``, the short way round, and the sign that does that."""
    flip = select(-q.w, -1.0, 1.0)
    square, w = q.v.dot(q.v), q.w * flip
    sine = sqrt(square)
    return quotient(square, atan2(sine, w), sine, 1.0, 1.0 / 6.0), w, flip


def moved_by(r: Vec3, v: Vec3) -> Vec3:
    """``V v``: how far a twist (r, v) held for unit time moves the origin.

    ``V = 1 + (1 - cos θ)/θ² r~ + (1 - sin θ/θ)/θ² r~r~``; with ``h = sin(θ/2)/θ``, the first
    quotient is ``2 h²`` and ``sin θ/θ = 2 h cos(θ/2)``.
    """
    square, (h, c) = r.dot(r), half_sine(r)
    b = quotient(square, 1.0 - 2.0 * (h * c), square, 1.0 / 6.0, -1.0 / 120.0)
    once = cross(r, v)
    moved: Vec3 = v + once * (2.0 * (h * h)) + cross(r, once) * b
    return moved


def moved_from(turn: Quaternion, step: Vec3) -> Vec3:
    """``V⁻¹ step``, V that of the logarithm ``r`` of a turn.

    ``V⁻¹ = 1 - ½ r~ + (1 - θ/2 cot θ/2)/θ² r~r~``.
    """
    r, (half, w, _) = logarithm(turn), half_angle(turn)
    square = r.dot(r)
    b = quotient(square, 1.0 - half * w, square, 1.0 / 12.0, 1.0 / 720.0)
    once = cross(r, step)
    v: Vec3 = step - once * 0.5 + cross(r, once) * b
    return v
