"""Solving with the innovations factors of the mass matrix, which are never formed.

    M = F D Fᵀ,   F = 1 + HΦL,      M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹,   F⁻¹ = 1 - HΨL

[Rodriguez and Kreutz, Part I; numbers in brackets are its equations]. In link coordinates φᵀ is the
frame change of a motion and φ that of a force; ψ = φ (1 - G H). Pivots D and gains G are those of
``riccati.py``; F is unit triangular.

    tip -> base   ε = F⁻¹ x      z(k+1) = ψ z + L x,   ε = x - H z                [(4.19), (4.20)]
    base -> tip   y = F⁻ᵀ ν      λ(k) = ψᵀ λ(k+1) + Hᵀ ν,   y = ν - Lᵀ λ(k+1)     [(4.21), (4.22)]

F and Fᵀ: ``innovations_factors.py``; the factors as matrices: ``innovations_matrices.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.external import External
from linkwise.algorithms.riccati import Gain, riccati
from linkwise.algorithms.tied import refuse_followers, tied
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import ArticulatedInertia, Force, Motion, Scalar, Vector
from linkwise.sweep import at_links, base_to_tip, each_link, joint_states, tip_to_base

AT_BASE = Acceleration(Motion.zero(), [])


def from_last(J: JointState, gains: list[Gain], x: Vector) -> Iterator[tuple[Motion, Gain, Scalar]]:
    """Columns with their gains and numbers, the last column first."""
    return zip(reversed(J.S), reversed(gains), reversed(x), strict=True)


def innovate(
    _link: Link, children: Force, J: JointState, gains: list[Gain], force: Force, x: Vector
) -> tuple[list[Scalar], Force]:
    """F⁻¹, and forces on the links beside x: z(k+1) = ψ z + L x + force; ε = x - H z."""
    z = children + force
    epsilons: list[Scalar] = []
    for column, gain, own in from_last(J, gains, x):
        epsilons.insert(0, own - column.dot(z))
        z = z + gain.G * epsilons[0]
    return epsilons, J.X.force_back(z)


def weigh(_link: Link, epsilons: list[Scalar], gains: list[Gain]) -> list[Scalar]:
    """``D⁻¹ ε``."""
    return [e * gain.inv_d for e, gain in zip(epsilons, gains, strict=True)]


def smooth(
    _link: Link, parent: Acceleration, J: JointState, gains: list[Gain], nu: Vector
) -> Acceleration:
    """F⁻ᵀ: λ(k) = ψᵀ λ(k+1) + Hᵀ ν; y = ν - Lᵀ λ(k+1)."""
    a = J.X.motion(parent.a)
    rates: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, nu, strict=True):
        rates.append(own - a.dot(gain.G))
        a = a + column * rates[-1]
    return Acceleration(a, rates)


class Factored(NamedTuple):
    """A tree with the joints placed and the Riccati sweep done."""

    tree: Tree
    J: list[JointState]
    gains: list[list[Gain]]

    def filtered(self, x: Vector, forces: Sequence[Force] = ()) -> list[list[Scalar]]:
        """``F⁻¹ x`` by link, or ε of torques x and forces on the links together."""
        forces = forces or at_links(self.tree, Force.zero(), ())
        own = self.tree.per_link_v(x)
        return tip_to_base(self.tree, innovate, Force.zero(), self.J, self.gains, forces, own)[0]

    def smoothed(self, nu: Sequence[Vector]) -> list[Acceleration]:
        """``F⁻ᵀ ν`` and λ: what ν, by link, gives the joints and the links."""
        return base_to_tip(self.tree, smooth, AT_BASE, self.J, self.gains, nu)

    def solved(self, x: Vector, forces: Sequence[Force] = ()) -> list[Acceleration]:
        """``F⁻ᵀ D⁻¹ ε``: accelerations under torques x and forces on the links."""
        return self.smoothed(each_link(self.tree, weigh, self.filtered(x, forces), self.gains))


def factored(tree: Tree, J: list[JointState]) -> Factored:
    """The factors at a configuration, not yet applied to anything."""
    refuse_followers(tree)
    return Factored(tree, J, tip_to_base(tree, riccati, ArticulatedInertia.zero(), J)[0])


def _solve(tree: Tree, q: Vector, _qd: Vector, rhs: Vector, _external: External) -> list[Scalar]:
    return joint_accelerations(tree, factored(tree, joint_states(tree, q)).solved(rhs))


def solve_mass(tree: Tree, q: Vector, rhs: Vector) -> list[Scalar]:
    """``M⁻¹ rhs`` without forming M."""
    return tied(tree, _solve, q, [0.0] * tree.nv, rhs, ())
