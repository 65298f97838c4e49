"""How the mass of a moving body flows: the body part of a Coriolis matrix.

    B(I, v) = ½ [v ×* I + (I v) ×̄* - I v ×],      B b = ∫ (ρ, 1) × (b_ang × v(ρ)) dm

[Echeandia and Wensing 2021]. Only the momentum p = ∫ v dm and K = ∫ v ρᵀ dm matter, and K is half
the rate of the second moment Σ (its symmetric part) and half the angular momentum (its skew part):
twelve numbers, which move between frames like an inertia and a wrench.
"""

from __future__ import annotations

from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.motion import Force, Motion
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.turn import Rotation, Turn
from linkwise.spatial.vec3 import Mat3, Sym3, Vec3, cross, mixed_outer


class Flux:
    """Half the rate of the second moment, half the angular momentum, and the momentum."""

    __slots__ = ("p", "rate", "spin")

    def __init__(self, rate: Sym3, spin: Vec3, p: Vec3) -> None:
        self.rate, self.spin, self.p = rate, spin, p

    @staticmethod
    def of(body: RigidInertia, v: Motion) -> Flux:
        """Flux of a body that moves with ``v``."""
        w, u, h, s = v.ang, v.lin, body.h * 0.5, Sym3(*(0.5 * x for x in body.second))
        rate = Sym3(
            2.0 * s.xz * w.y - 2.0 * s.xy * w.z + body.h.x * u.x,
            s.yz * w.y - s.xz * w.x + (s.xx - s.yy) * w.z + h.y * u.x + h.x * u.y,
            s.xy * w.x - s.yz * w.z + (s.zz - s.xx) * w.y + h.z * u.x + h.x * u.z,
            2.0 * s.xy * w.z - 2.0 * s.yz * w.x + body.h.y * u.y,
            s.xz * w.z - s.xy * w.y + (s.yy - s.zz) * w.x + h.z * u.y + h.y * u.z,
            2.0 * s.yz * w.x - 2.0 * s.xz * w.y + body.h.z * u.z,
        )
        spin = RigidInertia(0.0, h, s) @ v
        return Flux(rate, spin.ang, u * body.m + cross(w, body.h))

    @staticmethod
    def twice(body: RigidInertia, v: Motion) -> Flux:
        """Twice the flux of a body that moves with ``v``."""
        (w, u), s, h = (v.ang, v.lin), body.second, body.h
        w2, u2 = w * 2.0, u * 2.0
        rate = Sym3(
            s.xz * w2.y - s.xy * w2.z + h.x * u2.x,
            s.yz * w.y - s.xz * w.x + (s.xx - s.yy) * w.z + h.y * u.x + h.x * u.y,
            s.xy * w.x - s.yz * w.z + (s.zz - s.xx) * w.y + h.z * u.x + h.x * u.z,
            s.xy * w2.z - s.yz * w2.x + h.y * u2.y,
            s.xz * w.z - s.xy * w.y + (s.yy - s.zz) * w.x + h.z * u.y + h.y * u.z,
            s.yz * w2.x - s.xz * w2.y + h.z * u2.z,
        )
        return Flux(rate, (body @ v).ang, u2 * body.m + cross(w2, h))

    def changed(self, w: Vec3) -> Flux:
        """How the flux changes as all that flows is turned with ``w``."""
        return Flux(self.rate.changed(w), cross(w, self.spin), cross(w, self.p))

    @staticmethod
    def of_wrench(moment: Vec3, force: Vec3, at: Vec3) -> Flux:
        """Flux of a mass element at a point, its momentum a force, with a moment added to its spin.

        ``B b`` is then what a wrench changes by, at the origin, when it turns with ``b_ang``.
        """
        half = at * 0.5
        return Flux(mixed_outer(force, half), moment + cross(half, force), force)

    def __add__(self, o: Flux) -> Flux:
        return Flux(self.rate + o.rate, self.spin + o.spin, self.p + o.p)

    @property
    def plane_sum(self) -> Scalar:
        """Of the rate, xx + yy."""
        return self.rate.xx + self.rate.yy

    def with_sum(self, total: Scalar) -> Flux:
        """The same flux, whose xx + yy is known."""
        return Flux(self.rate.with_sum(total), self.spin, self.p)

    def turning(self) -> Mat3:
        """``tr(K) 1 - K``: the block of B that takes an angular motion to a moment."""
        s, (x, y, z) = self.rate.about(), self.spin
        return Mat3(
            Vec3(s.xx, s.xy + z, s.xz - y),
            Vec3(s.xy - z, s.yy, s.yz + x),
            Vec3(s.xz + y, s.yz - x, s.zz),
        )

    def __matmul__(self, b: Motion) -> Force:
        """``B b``."""
        return self.turning_with(b.ang)

    def turning_with(self, w: Vec3) -> Force:
        """``B b`` of any motion b that turns with w."""
        return Force(self.turning() @ w, cross(w, self.p))

    def transposed(self, b: Motion) -> Force:
        """``Bᵀ b``, a pure moment."""
        return Force(self.turning().T @ b.ang + cross(self.p, b.lin), Vec3.zero())

    def momentum(self) -> Force:
        """Of the body, angular and linear."""
        return Force(self.spin * 2.0, self.p)

    def turned(self, turn: Turn | Rotation) -> Flux:
        """The same flux in turned axes, about the same point."""
        return Flux(turn.sym_short(self.rate), turn.vec(self.spin), turn.vec(self.p))

    def seen_from(self, r: Vec3) -> Flux:
        """The same flux about a point from which the old origin lies at ``r``, same axes."""
        half = r * 0.5
        rate = self.rate + mixed_outer(self.p, half)
        return Flux(rate, self.spin + cross(half, self.p), self.p)

    @staticmethod
    def zero() -> Flux:
        """Nothing moves."""
        return Flux(Sym3.zero(), Vec3.zero(), Vec3.zero())
