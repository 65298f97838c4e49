"""Three-vectors, symmetric and general 3x3 matrices over any scalar."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.spatial.scalar import Scalar


class Vec3:
    """A vector of three scalars."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Scalar, y: Scalar, z: Scalar) -> None:
        self.x, self.y, self.z = x, y, z

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))

    def __repr__(self) -> str:
        return f"Vec3({self.x!r}, {self.y!r}, {self.z!r})"

    def __add__(self, o: Vec3) -> Vec3:
        return Vec3(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vec3) -> Vec3:
        return Vec3(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, k: Scalar) -> Vec3:
        return Vec3(self.x * k, self.y * k, self.z * k)

    def dot(self, o: Vec3) -> Scalar:
        """Inner product."""
        return self.x * o.x + self.y * o.y + self.z * o.z

    @staticmethod
    def zero() -> Vec3:
        """The zero vector."""
        return Vec3(0.0, 0.0, 0.0)


def cross(a: Vec3, b: Vec3) -> Vec3:
    """``a x b``."""
    return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


class Mat3:
    """A general 3x3 matrix, by rows."""

    __slots__ = ("rows",)

    def __init__(self, x: Vec3, y: Vec3, z: Vec3) -> None:
        self.rows = (x, y, z)

    def __matmul__(self, v: Vec3) -> Vec3:
        x, y, z = self.rows
        return Vec3(x.dot(v), y.dot(v), z.dot(v))

    def __add__(self, o: Mat3) -> Mat3:
        return Mat3(*(a + b for a, b in zip(self.rows, o.rows, strict=True)))

    def __sub__(self, o: Mat3) -> Mat3:
        return Mat3(*(a - b for a, b in zip(self.rows, o.rows, strict=True)))

    @property
    def T(self) -> Mat3:
        """The transpose."""
        x, y, z = self.rows
        return Mat3(Vec3(x.x, y.x, z.x), Vec3(x.y, y.y, z.y), Vec3(x.z, y.z, z.z))

    @staticmethod
    def identity() -> Mat3:
        """The unit matrix."""
        return Mat3(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))

    @staticmethod
    def zero() -> Mat3:
        """The zero matrix."""
        return Mat3(Vec3.zero(), Vec3.zero(), Vec3.zero())


class Sym3:
    """A symmetric 3x3 matrix: six scalars, so symmetry cannot be lost."""

    __slots__ = ("xx", "xy", "xz", "yy", "yz", "zz")

    def __init__(
        self, xx: Scalar, xy: Scalar, xz: Scalar, yy: Scalar, yz: Scalar, zz: Scalar
    ) -> None:
        self.xx, self.xy, self.xz, self.yy, self.yz, self.zz = xx, xy, xz, yy, yz, zz

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.xx, self.xy, self.xz, self.yy, self.yz, self.zz))

    def __repr__(self) -> str:
        return f"Sym3({', '.join(map(repr, self))})"

    def __add__(self, o: Sym3) -> Sym3:
        return Sym3(*(a + b for a, b in zip(self, o, strict=True)))

    def __sub__(self, o: Sym3) -> Sym3:
        return Sym3(*(a - b for a, b in zip(self, o, strict=True)))

    def __neg__(self) -> Sym3:
        return Sym3(*(-a for a in self))

    def __matmul__(self, v: Vec3) -> Vec3:
        return Vec3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def changed(self, w: Vec3) -> Sym3:
        """``w~ m - m w~``: how it changes as what it belongs to turns with w."""
        xy, xz, yz = self.xy, self.xz, self.yz
        return Sym3(
            2.0 * (xz * w.y - xy * w.z),
            yz * w.y - xz * w.x + (self.xx - self.yy) * w.z,
            xy * w.x - yz * w.z + (self.zz - self.xx) * w.y,
            2.0 * (xy * w.z - yz * w.x),
            xz * w.z - xy * w.y + (self.yy - self.zz) * w.x,
            2.0 * (yz * w.x - xz * w.y),
        )

    def with_sum(self, total: Scalar) -> Sym3:
        """The same, where ``xx + yy`` is known to be ``total``."""
        return Sym3(self.xx, self.xy, self.xz, total - self.xx, self.yz, self.zz)

    def trace(self) -> Scalar:
        """Sum of the diagonal."""
        return self.xx + self.yy + self.zz

    def full(self) -> Mat3:
        """The same matrix, all nine entries."""
        return Mat3(
            Vec3(self.xx, self.xy, self.xz),
            Vec3(self.xy, self.yy, self.yz),
            Vec3(self.xz, self.yz, self.zz),
        )

    def about(self) -> Sym3:
        """``tr(m) 1 - m``: of second moments along axes, those about them."""
        return Sym3(
            self.yy + self.zz, -self.xy, -self.xz, self.xx + self.zz, -self.yz, self.xx + self.yy
        )

    @staticmethod
    def zero() -> Sym3:
        """The zero matrix."""
        return Sym3(*(0.0,) * 6)

    @staticmethod
    def diagonal(k: Scalar) -> Sym3:
        """``k`` times the unit matrix."""
        return Sym3(k, 0.0, 0.0, k, 0.0, k)


def outer(a: Vec3, b: Vec3) -> Mat3:
    """``a bᵀ``."""
    return Mat3(b * a.x, b * a.y, b * a.z)


def sym_outer(a: Vec3, b: Vec3) -> Sym3:
    """``a bᵀ`` where it is known to be symmetric (``b`` a multiple of ``a``)."""
    return Sym3(a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.y, a.y * b.z, a.z * b.z)


def mixed_outer(a: Vec3, b: Vec3) -> Sym3:
    """``a bᵀ + b aᵀ``."""
    return Sym3(
        2.0 * (a.x * b.x),
        a.x * b.y + a.y * b.x,
        a.x * b.z + a.z * b.x,
        2.0 * (a.y * b.y),
        a.y * b.z + a.z * b.y,
        2.0 * (a.z * b.z),
    )


def rate_matrix(w: Vec3, dw: Vec3) -> Mat3:
    """``U = dw~ + w~ w~``: ``U r`` is the acceleration of a point ``r`` carried by the body."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    return Mat3(
        Vec3(-(yy + zz), w.x * w.y - dw.z, w.x * w.z + dw.y),
        Vec3(w.x * w.y + dw.z, -(xx + zz), w.y * w.z - dw.x),
        Vec3(w.x * w.z - dw.y, w.y * w.z + dw.x, -(xx + yy)),
    )


def minus_skews(a: Vec3, b: Vec3) -> Mat3:
    """``-a~ b~ = (a·b) 1 - b aᵀ``."""
    xx, yy, zz = a.x * b.x, a.y * b.y, a.z * b.z
    return Mat3(
        Vec3(yy + zz, -(b.x * a.y), -(b.x * a.z)),
        Vec3(-(b.y * a.x), xx + zz, -(b.y * a.z)),
        Vec3(-(b.z * a.x), -(b.z * a.y), xx + yy),
    )
