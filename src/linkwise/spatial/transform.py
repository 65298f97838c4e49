"""Coordinate changes from a parent frame to a child frame.

A rotation is kept as a few plane rotations (`Turn`) and never multiplied out: turning a vector
about a coordinate axis costs four multiplications where a 3x3 product costs nine, and a quarter
turn costs nothing once constants are folded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from linkwise.spatial.flux import Flux
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.motion import Force, Motion
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vec3 import Mat3, Sym3, Vec3, cross

X, Z = "x", "z"


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
        half = Mat3(*(self.vec(row) for row in m.rows)).T
        return Mat3(*(self.vec(row) for row in half.rows)).T

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
        half = Mat3(*(self.E @ row for row in m.rows)).T
        return Mat3(*(self.E @ row for row in half.rows)).T

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


class Transform:
    """Parent -> child: the child's origin ``r`` in parent axes, then turns of the axes."""

    __slots__ = ("r", "turns")

    def __init__(self, r: Vec3, turns: tuple[Turn | Rotation, ...] = ()) -> None:
        self.r, self.turns = r, turns

    def then(self, o: Transform) -> Transform:
        """This change of frame followed by another; turns about one axis are merged."""
        turns = list(self.turns)
        for turn in o.turns:
            last = turns[-1] if turns else None
            if isinstance(last, Turn) and isinstance(turn, Turn) and last.axis == turn.axis:
                turns[-1] = last.then(turn)
            else:
                turns.append(turn)
        return Transform(self.r + self.rotate_back(o.r), tuple(turns))

    def rotate(self, v: Vec3) -> Vec3:
        """A free vector, parent axes -> child axes."""
        return reduce(lambda u, turn: turn.vec(u), self.turns, v)

    def rotate_back(self, v: Vec3) -> Vec3:
        """A free vector, child axes -> parent axes."""
        return reduce(lambda u, turn: turn.back.vec(u), reversed(self.turns), v)

    def motion(self, m: Motion) -> Motion:
        """Motion at the parent's origin -> motion of the same body at the child's origin."""
        return Motion(self.rotate(m.ang), self.rotate(m.lin + cross(m.ang, self.r)))

    def force_back(self, f: Force) -> Force:
        """Wrench at the child's origin -> the same wrench at the parent's origin."""
        lin = self.rotate_back(f.lin)
        return Force(self.rotate_back(f.ang) + cross(self.r, lin), lin)

    def inertia_back(self, body: RigidInertia) -> RigidInertia:
        """Rigid inertia in the child's frame -> in the parent's frame."""
        h, second = body.h, body.second
        for turn in reversed(self.turns):
            h, second = turn.back.vec(h), turn.back.sym_short(second)
        return RigidInertia(body.m, h, second).seen_from(self.r)

    def articulated_back(self, body: ArticulatedInertia) -> ArticulatedInertia:
        """Articulated inertia in the child's frame -> in the parent's frame."""
        inertia, coupling, mass = body.inertia, body.coupling, body.mass
        for turn in reversed(self.turns):
            back = turn.back
            inertia, coupling, mass = back.sym(inertia), back.mat(coupling), back.sym(mass)
        return ArticulatedInertia(inertia, coupling, mass).seen_from(self.r)

    def flux_back(self, flux: Flux) -> Flux:
        """Flux in the child's frame -> in the parent's frame."""
        rate, spin, p = flux.rate, flux.spin, flux.p
        for turn in reversed(self.turns):
            back = turn.back
            rate, spin, p = back.sym_short(rate), back.vec(spin), back.vec(p)
        return Flux(rate, spin, p).seen_from(self.r)
