"""Motion and force vectors: (angular, linear), taken at a frame's origin, in that frame's axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vec3 import Vec3, cross


class _Spatial:
    """An angular and a linear part."""

    __slots__ = ("ang", "lin")

    def __init__(self, ang: Vec3, lin: Vec3) -> None:
        self.ang, self.lin = ang, lin

    def __iter__(self) -> Iterator[Scalar]:
        yield from self.ang
        yield from self.lin

    def __add__(self, o: Self) -> Self:
        return type(self)(self.ang + o.ang, self.lin + o.lin)

    def __sub__(self, o: Self) -> Self:
        return type(self)(self.ang - o.ang, self.lin - o.lin)

    def __mul__(self, k: Scalar) -> Self:
        return type(self)(self.ang * k, self.lin * k)

    @classmethod
    def zero(cls) -> Self:
        """No motion, no force."""
        return cls(Vec3.zero(), Vec3.zero())


class Motion(_Spatial):
    """A velocity or acceleration: angular part, and linear part at the origin."""

    __slots__ = ()

    def dot(self, f: Force) -> Scalar:
        """Power of a force along this motion."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)

    def cross(self, o: Motion) -> Motion:
        """``self × o``: how ``o``, fixed to a body that moves with ``self``, changes."""
        lin = cross(self.ang, o.lin) + cross(self.lin, o.ang)
        return Motion(cross(self.ang, o.ang), lin)


class Force(_Spatial):
    """A wrench: moment about the origin, and force."""

    __slots__ = ()
