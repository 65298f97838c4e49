"""Inertias of rigid bodies (10 numbers) and articulated bodies (21 numbers).

A rigid body is its mass ``m = ∫dm``, first moment ``h = ∫ρ dm`` and second moment
``Σ = ∫ρρᵀ dm`` about its frame's origin: the pseudo-inertia matrix [[Σ, h], [hᵀ, m]]. The
rotational inertia is ``tr(Σ) 1 - Σ``. Second moments move between frames more cheaply than
rotational inertias, and a body is physical exactly when its pseudo-inertia is positive definite.
"""

from __future__ import annotations

from linkwise.spatial.motion import Force, Motion
from linkwise.spatial.scalar import Scalar, reciprocal_or_zero
from linkwise.spatial.turn import Rotation, Turn
from linkwise.spatial.vec3 import Mat3, Sym3, Vec3, cross, mixed_outer, outer, sym_outer


class RigidInertia:
    """Mass, first moment and second moment about the frame's origin."""

    __slots__ = ("h", "m", "second")

    def __init__(self, m: Scalar, h: Vec3, second: Sym3) -> None:
        self.m, self.h, self.second = m, h, second

    def __add__(self, o: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m + o.m, self.h + o.h, self.second + o.second)

    def __sub__(self, o: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m - o.m, self.h - o.h, self.second - o.second)

    def __matmul__(self, v: Motion) -> Force:
        """Momentum of the body moving with ``v``."""
        spin = self.rotational() @ v.ang
        return Force(spin + cross(self.h, v.lin), v.lin * self.m - cross(self.h, v.ang))

    def rotational(self) -> Sym3:
        """Rotational inertia about the origin, ``tr(Σ) 1 - Σ``."""
        return self.second.about()

    def centre(self) -> Vec3:
        """Centre of mass; the origin where there is no mass."""
        h: Vec3 = self.h * reciprocal_or_zero(self.m)
        return h

    def force(self, a: Vec3, U: Mat3) -> Force:
        """Wrench that moves the body: origin accelerated by ``a``, rates of turning in ``U``.

        A point ρ of the body accelerates by ``a + Uρ``, so ``f = ∫(a + Uρ) dm = m a + U h`` and
        ``n = ∫ρ x (a + Uρ) dm = h x a + ∫ρ x Uρ dm``. Component z of the last integral is
        ``∫(ρ_x (Uρ)_y - ρ_y (Uρ)_x) dm = (UΣ)_yx - (UΣ)_xy``: each component of ``n`` below is a
        difference of two entries of ``UΣ``, two terms with the same entry of Σ taken together.
        """
        s, (x, y, z) = self.second, U.rows
        n = Vec3(
            z.x * s.xy - y.x * s.xz + z.y * s.yy - y.z * s.zz + (z.z - y.y) * s.yz,
            x.y * s.yz - z.y * s.xy + x.z * s.zz - z.x * s.xx + (x.x - z.z) * s.xz,
            y.z * s.xz - x.z * s.yz + y.x * s.xx - x.y * s.yy + (y.y - x.x) * s.xy,
        )
        return Force(n + cross(self.h, a), a * self.m + U @ self.h)

    @property
    def plane_sum(self) -> Scalar:
        """Of the second moment, xx + yy: the rotational inertia about z."""
        return self.second.xx + self.second.yy

    def with_sum(self, total: Scalar) -> RigidInertia:
        """The same body, whose rotational inertia about z is known."""
        return RigidInertia(self.m, self.h, self.second.with_sum(total))

    def changed(self, w: Vec3) -> RigidInertia:
        """How mass, first and second moment change as the body turns with ``w``."""
        return RigidInertia(0.0, cross(w, self.h), self.second.changed(w))

    def turned(self, turn: Turn | Rotation) -> RigidInertia:
        """The same body in turned axes, about the same point."""
        return RigidInertia(self.m, turn.vec(self.h), turn.sym_short(self.second))

    def seen_from(self, r: Vec3) -> RigidInertia:
        """The same body about a point from which the old origin lies at ``r``, same axes."""
        h = self.h + r * self.m
        moved = mixed_outer(self.h, r) + sym_outer(r, r * self.m)
        return RigidInertia(self.m, h, self.second + moved)

    def articulated(self) -> ArticulatedInertia:
        """As an articulated inertia: the same body, in 21 numbers."""
        h = self.h
        coupling = Mat3(Vec3(0.0, -h.z, h.y), Vec3(h.z, 0.0, -h.x), Vec3(-h.y, h.x, 0.0))
        return ArticulatedInertia(self.rotational(), coupling, Sym3.diagonal(self.m))

    @staticmethod
    def zero() -> RigidInertia:
        """No body."""
        return RigidInertia(0.0, Vec3.zero(), Sym3.zero())


class ArticulatedInertia:
    """Symmetric 6x6 matrix in blocks: n = I ω + H v, f = Hᵀ ω + M v."""

    __slots__ = ("coupling", "inertia", "mass")

    def __init__(self, inertia: Sym3, coupling: Mat3, mass: Sym3) -> None:
        self.inertia, self.coupling, self.mass = inertia, coupling, mass

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.inertia + o.inertia, self.coupling + o.coupling, self.mass + o.mass
        )

    def __matmul__(self, v: Motion) -> Force:
        return Force(
            self.inertia @ v.ang + self.coupling @ v.lin,
            self.coupling.T @ v.ang + self.mass @ v.lin,
        )

    def minus_outer(self, U: Force | Motion, K: Force | Motion) -> ArticulatedInertia:
        """``I - U Kᵀ``, where ``K`` is a multiple of ``U``."""
        return ArticulatedInertia(
            self.inertia - sym_outer(U.ang, K.ang),
            self.coupling - outer(U.ang, K.lin),
            self.mass - sym_outer(U.lin, K.lin),
        )

    def turned(self, turn: Turn | Rotation) -> ArticulatedInertia:
        """The same body in turned axes, about the same point."""
        inertia, coupling = turn.sym(self.inertia), turn.mat(self.coupling)
        return ArticulatedInertia(inertia, coupling, turn.sym(self.mass))

    def seen_from(self, r: Vec3) -> ArticulatedInertia:
        """The same body about a point from which the old origin lies at ``r``, same axes.

        ``H' = H + r~ M``, ``I' = I + r~ Hᵀ - H' r~`` (symmetric, so six entries are formed).
        """
        M, H, inertia = self.mass, self.coupling, self.inertia
        columns = (Vec3(M.xx, M.xy, M.xz), Vec3(M.xy, M.yy, M.yz), Vec3(M.xz, M.yz, M.zz))
        H2 = H + Mat3(*(cross(r, column) for column in columns)).T
        left = [cross(r, row) for row in H.rows]  # columns of r~ Hᵀ
        right = [cross(r, row) for row in H2.rows]  # rows of -H' r~
        inertia2 = Sym3(
            inertia.xx + left[0].x + right[0].x,
            inertia.xy + left[1].x + right[0].y,
            inertia.xz + left[2].x + right[0].z,
            inertia.yy + left[1].y + right[1].y,
            inertia.yz + left[2].y + right[1].z,
            inertia.zz + left[2].z + right[2].z,
        )
        return ArticulatedInertia(inertia2, H2, M)

    @staticmethod
    def zero() -> ArticulatedInertia:
        """No body."""
        return ArticulatedInertia(Sym3.zero(), Mat3.zero(), Sym3.zero())
