"""Wrenches of closed loops that are cut on their way to the base.

Where more than six come together on a link, unit wrenches go on in their place [Sathya, Decré and
Swevers 2023, PV-OSIMr]: no joint costs more however many directions are held beyond it, and Ω takes
O(n + m²) operations. What unit wrenches e_c felt is then told of those that they stand for,

    K_k = Σ_c K_kc e_c      so      Ω_kx += Σ_c K_kc Ω_cx,   Ω_kl += Σ_cd K_kc Ω_cd K_ld
                                    free_k += Σ_c K_kc free_c,   λ_c = Σ_k K_kc λ_k

from the base outward, forces from the tips inward: what is cut may stand for what was cut before.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.aba import Handle
from linkwise.algorithms.grip import Grip
from linkwise.algorithms.passing import Bundle, Felt, pass_on
from linkwise.algorithms.rates import Velocity
from linkwise.model.tree import Link
from linkwise.spatial import Mat3, Matrix, Scalar, Vec3, Vector, total

UNITS = Grip(Mat3.identity(), Vec3.zero()).pushes()
Cuts = list[tuple[int, Bundle]]  # the first number of unit wrenches, and what they stand for


def pass_or_cut(
    cuts: Cuts,
    link: Link,
    children: Bundle,
    own: Bundle,
    m: Velocity,
    handles: list[Handle],
    first: int,
) -> tuple[Felt, Bundle]:
    """Eliminate the joint from all wrenches, or from units numbered from ``first`` on."""
    arrived = children + own
    if len(arrived) > len(UNITS):
        cuts.append((first, arrived))
        arrived = Bundle(enumerate(UNITS, first))
    return pass_on(link, Bundle(), arrived, m, handles)


class Sums(NamedTuple):
    """Sums over the joints, by the number of a wrench."""

    inverse: dict[tuple[int, int], Scalar]  # Ω, its lower half
    free: dict[int, Scalar]
    scale: dict[int, Scalar]  # what Ω could be at most, on its diagonal

    def add(self, k: int, j: int, x: Scalar) -> None:
        """Add to an entry of Ω, which is there once for both halves."""
        at = (k, j) if k >= j else (j, k)
        self.inverse[at] = self.inverse.get(at, 0.0) + x

    def entry(self, k: int, j: int) -> Scalar:
        """An entry of Ω."""
        return self.inverse.get((k, j) if k >= j else (j, k), 0.0)

    def matrix(self, rows: int) -> Matrix:
        """Ω of the directions."""
        return [[self.entry(k, j) for j in range(rows)] for k in range(rows)]


def expand(sums: Sums, cuts: Cuts) -> None:
    """Tell the sums of unit wrenches of those that they stand for."""
    for first, arrived in reversed(cuts):
        units = range(first, first + 6)
        known = {x for at in sums.inverse for x in at if set(at) & set(units)}
        beside = sorted(known - set(units))  # may be cut here too: wrenches of their other ends
        for k, K in arrived.items():
            parts = list(zip(units, K, strict=True))
            for x in beside:
                once = total(own * sums.entry(c, x) for c, own in parts)
                sums.add(k, x, once * 2.0 if x == k else once)
            felt = [total(own * sums.entry(c, d) for c, own in parts) for d in units]
            for j, other in arrived.items():
                if j <= k:
                    sums.add(k, j, total(a * b for a, b in zip(felt, other, strict=True)))
            free, scale = sums.free, sums.scale
            free[k] = free.get(k, 0.0) + total(own * free[c] for c, own in parts)
            (moment, force), at_units = arrived.sizes[k], [scale[c] for c in units]
            turning, sliding = moment * total(at_units[:3]), force * total(at_units[3:])
            scale[k] = scale.get(k, 0.0) + turning + sliding


def all_forces(forces: Vector, cuts: Cuts) -> dict[int, Scalar]:
    """Forces along directions, and along the unit wrenches that stand for some."""
    found = dict(enumerate(forces))
    for first, arrived in cuts:
        for c in range(6):
            own = (list(K)[c] * found[k] for k, K in arrived.items())
            found[first + c] = total(own)
    return found
