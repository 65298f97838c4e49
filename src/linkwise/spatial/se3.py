"""Rigid motions over any scalar: their logarithms and exponentials, (angular, linear).

    exp (r, v) = [ exp r~   V v ]        V = 1 + (1 - cos θ)/θ² r~ + (1 - sin θ/θ)/θ² r~r~,  θ = |r|
                 [   0       1  ]

The logarithm of a rotation goes by its quaternion, which is formed from its largest number. Near no
turn the sine of half the angle keeps its digits, near half a turn the axis does, and the angle is
the atan2 of both: right to rounding everywhere.
"""

from __future__ import annotations

from linkwise.spatial import quaternion
from linkwise.spatial.motion import Motion
from linkwise.spatial.quaternion import Quaternion, quotient
from linkwise.spatial.scalar import Scalar, atan2, select, sincos, sqrt
from linkwise.spatial.turn import Rotation
from linkwise.spatial.vec3 import Mat3, Vec3, cross

OPPOSITE = 1e-12  # below it, 1 + cos of the angle between two vectors that are taken for opposite


def rotation_vector(R: Mat3) -> Vec3:
    """The logarithm of a rotation: its axis times its angle, at most half a turn.

    The angle of a quaternion does not depend on its length. Without a turn that is 4, and the
    vector, twice the unit quaternion's v, is half of what is there.
    """
    q = Quaternion.multiple_of_matrix(R)
    flip = select(-q.w, -1.0, 1.0)
    square = q.v.dot(q.v)
    sine = sqrt(square)
    half = quotient(square, atan2(sine, q.w * flip), sine, 0.25, 0.0)
    r: Vec3 = q.v * (half * (2.0 * flip))
    return r


def logarithm(R: Mat3, p: Vec3) -> Motion:
    """The twist that leads from the identity to a rigid motion in unit time."""
    turn = Quaternion.of_matrix(R)
    return Motion(quaternion.logarithm(turn), quaternion.moved_from(turn, p))


def exponential(x: Motion) -> tuple[Mat3, Vec3]:
    """The rotation and the place that a twist leads to in unit time."""
    turn = quaternion.exponential(x.ang)
    return matrix_of(turn), quaternion.moved_by(x.ang, x.lin)


def matrix_of(turn: Quaternion) -> Mat3:
    """The rotation of a quaternion of any length but zero."""
    return Rotation.of_quaternion(*turn.numbers()).E.T


def shortest_turn(a: Vec3, b: Vec3, across: Vec3) -> Vec3:
    """The shortest rotation vector that takes one unit vector to another; of opposite ones, that
    about a third.
    """
    s, c = cross(a, b), a.dot(b)
    square = s.dot(s)
    sine = sqrt(square)
    k = quotient(square, atan2(sine, c), sine, 1.0, 0.0)
    opposite, half_turn = OPPOSITE - 1.0 - c, 3.141592653589793
    pairs = zip(across, s, strict=True)
    return Vec3(*(select(opposite, x * half_turn, y * k) for x, y in pairs))


def bend(r: Vec3) -> Scalar:
    """``(1 - θ/2 cot θ/2)/θ²`` of a rotation vector of length θ."""
    square = r.dot(r)
    half = sqrt(square) * 0.5
    s, c = sincos(half)
    near = 1.0 - c * quotient(square, half, s, 1.0, 0.0)
    return quotient(square, near, square, 1.0 / 12.0, 0.0)
