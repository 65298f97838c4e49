"""Turns of axes from a parent frame to a child frame.

A turn about a coordinate axis (`Turn`) costs four multiplications of a vector where a 3x3 product
(`Rotation`) costs nine, and a quarter turn costs nothing once constants are folded. So a general
turn is kept as a few such turns where it can be, and never multiplied out.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vec3 import Mat3, Sym3, Vec3

X, Z = "x", "z"


def _both_sides(turn: Callable[[Vec3], Vec3], m: Mat3) -> Mat3:
    """``E m Eᵀ``, E given by what it makes of a vector."""
    half = Mat3(*(turn(row) for row in m.rows)).T
    return Mat3(*(turn(row) for row in half.rows)).T


class Turn:
    """The child frame is the parent frame turned about ``axis`` by an angle of cosine c, sine s."""

    __slots__ = ("axis", "c", "s")

    def __init__(self, axis: str, c: Scalar, s: Scalar) -> None:
        self.axis, self.c, self.s = axis, c, s

    @property
    def back(self) -> Turn:
        """The opposite turn."""
        return Turn(self.axis, self.c, -self.s)

    def then(self, o: Turn) -> Turn:
        """This turn followed by another about the same axis."""
        return Turn(self.axis, self.c * o.c - self.s * o.s, self.s * o.c + self.c * o.s)

    def vec(self, v: Vec3) -> Vec3:
        """Parent coordinates -> child coordinates."""
        c, s = self.c, self.s
        if self.axis == Z:
            return Vec3(c * v.x + s * v.y, c * v.y - s * v.x, v.z)
        return Vec3(v.x, c * v.y + s * v.z, c * v.z - s * v.y)

    def mat(self, m: Mat3) -> Mat3:
        """``E m Eᵀ`` for a general matrix."""
        return _both_sides(self.vec, m)

    def sym(self, m: Sym3) -> Sym3:
        """``E m Eᵀ``, every entry a sum of products: small entries keep their digits."""
        return self._turned(m, self._plane)

    def sym_short(self, m: Sym3) -> Sym3:
        """``E m Eᵀ`` in six multiply-adds for its 2x2 part; error relative to the largest entry."""
        return self._turned(m, self._plane_short)

    def _turned(self, m: Sym3, plane: Callable[..., tuple[Scalar, Scalar, Scalar]]) -> Sym3:
        """``E m Eᵀ``, by a rule for the 2x2 part in the plane of the turn."""
        if self.axis == Z:
            xx, xy, yy = plane(m.xx, m.xy, m.yy)
            v = self.vec(Vec3(m.xz, m.yz, 0.0))
            return Sym3(xx, xy, v.x, yy, v.y, m.zz)
        yy, yz, zz = plane(m.yy, m.yz, m.zz)
        v = self.vec(Vec3(0.0, m.xy, m.xz))
        return Sym3(m.xx, v.y, v.z, yy, yz, zz)

    def _plane(self, a: Scalar, b: Scalar, d: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        cc, ss, cs = self.c * self.c, self.s * self.s, self.c * self.s
        cross_term = 2.0 * cs * b
        return (
            cc * a + ss * d + cross_term,
            (cc - ss) * b - cs * (a - d),
            ss * a + cc * d - cross_term,
        )

    def _plane_short(self, a: Scalar, b: Scalar, d: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        w = self.s * (a - d) - (2.0 * self.c) * b
        sw = self.s * w
        return a - sw, -(self.c * w) - b, d + sw


class Rotation:
    """A general turn of axes: the matrix ``E`` takes parent coordinates to child coordinates."""

    __slots__ = ("E",)

    def __init__(self, E: Mat3) -> None:
        self.E = E

    @staticmethod
    def of_quaternion(w: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Rotation:
        """The child's axes turned by a quaternion of any length but zero."""
        k = 2.0 / (w * w + x * x + y * y + z * z)
        kx, ky, kz = k * x, k * y, k * z
        xx, yy, zz = kx * x, ky * y, kz * z
        xy, xz, yz = kx * y, kx * z, ky * z
        wx, wy, wz = kx * w, ky * w, kz * w
        return Rotation(
            Mat3(
                Vec3(1.0 - (yy + zz), xy + wz, xz - wy),
                Vec3(xy - wz, 1.0 - (xx + zz), yz + wx),
                Vec3(xz + wy, yz - wx, 1.0 - (xx + yy)),
            )
        )

    @property
    def back(self) -> Rotation:
        """The opposite turn."""
        return Rotation(self.E.T)

    def vec(self, v: Vec3) -> Vec3:
        """Parent coordinates -> child coordinates."""
        return self.E @ v

    def mat(self, m: Mat3) -> Mat3:
        """``E m Eᵀ`` for a general matrix."""
        return _both_sides(self.vec, m)

    def sym(self, m: Sym3) -> Sym3:
        """``E m Eᵀ`` for a symmetric matrix."""
        x, y, z = self.E.rows
        mx, my, mz = m @ x, m @ y, m @ z
        return Sym3(x.dot(mx), x.dot(my), x.dot(mz), y.dot(my), y.dot(mz), z.dot(mz))

    def sym_short(self, m: Sym3) -> Sym3:
        """``E m Eᵀ``, two rows of it: a turn keeps the trace. Error relative to largest entry."""
        x, y, z = self.E.rows
        mx, my = m @ x, m @ y
        xx, yy = x.dot(mx), y.dot(my)
        return Sym3(xx, y.dot(mx), z.dot(mx), yy, z.dot(my), m.trace() - xx - yy)
