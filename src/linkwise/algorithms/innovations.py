"""The innovations factors of the mass matrix.

    M = F D Fᵀ,   F = 1 + HΦL,      M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹,   F⁻¹ = 1 - HΨL

[Rodriguez and Kreutz, Part I; numbers in brackets are its equations]. In link coordinates φᵀ is the
frame change of a motion and φ that of a force; ψ = φ (1 - G H). A joint of several columns is
eliminated column by column, the last one first, as if each were a joint of its own: D is diagonal
and F unit triangular.

    tip -> base   P, D, G   articulated inertia, its pivots and gains           [(4.4)-(4.6)]

F⁻¹ and its transpose are applied to a vector in one sweep each, never formed:

    tip -> base   ε = F⁻¹ x      z(k+1) = ψ z + L x,   ε = x - H z              [(4.19), (4.20)]
    base -> tip   y = F⁻ᵀ ν      λ(k) = ψᵀ λ(k+1) + Hᵀ ν,   y = ν - Lᵀ λ(k+1)   [(4.21), (4.22)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.external import External
from linkwise.algorithms.tied import refuse_followers, tied
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import ArticulatedInertia, Force, Motion, Scalar, Vector, reciprocal
from linkwise.sweep import at_links, base_to_tip, each_link, joint_states, tip_to_base


class Gain(NamedTuple):
    """One eliminated column: pivot D, its inverse, and gain G = P Hᵀ D⁻¹."""

    d: Scalar
    inv_d: Scalar
    G: Force


class Smoothed(NamedTuple):
    """A step of an outward sweep: the link's acceleration, and the results at its joint."""

    alpha: Motion
    out: list[Scalar]


NOTHING = Smoothed(Motion.zero(), [])


def riccati(
    link: Link, children: ArticulatedInertia, J: JointState
) -> tuple[list[Gain], ArticulatedInertia]:
    """P(k+1) = φ (P - G H P) φᵀ + M."""
    P = children + link.inertia.articulated()
    gains: list[Gain] = []
    for column, rotor in zip(reversed(J.S), reversed(link.armature), strict=True):
        U = P @ column
        d = column.dot(U) + rotor
        inv_d = reciprocal(d)
        G = U * inv_d
        P = P.minus_outer(U, G)
        gains.insert(0, Gain(d, inv_d, G))
    return gains, J.X.articulated_back(P)


def innovate(
    _link: Link, children: Force, J: JointState, gains: list[Gain], force: Force, T: Vector
) -> tuple[list[Scalar], Force]:
    """F⁻¹, and link forces filtered with the torques: z(k+1) = ψ z + L T + force; ε = T - H z."""
    z = children + force
    epsilons: list[Scalar] = []
    for column, gain, t in from_last(J, gains, T):
        epsilons.insert(0, t - column.dot(z))
        z = z + gain.G * epsilons[0]
    return epsilons, J.X.force_back(z)


def smooth(_link: Link, parent: Smoothed, J: JointState, gains: list[Gain], nu: Vector) -> Smoothed:
    """F⁻ᵀ: λ(k) = ψᵀ λ(k+1) + Hᵀ ν; y = ν - Lᵀ λ(k+1)."""
    a = J.X.motion(parent.alpha)
    rates: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, nu, strict=True):
        rates.append(own - a.dot(gain.G))
        a = a + column * rates[-1]
    return Smoothed(a, rates)


def from_last(J: JointState, gains: list[Gain], x: Vector) -> Iterator[tuple[Motion, Gain, Scalar]]:
    """Columns with their gains and numbers, the last column first."""
    return zip(reversed(J.S), reversed(gains), reversed(x), strict=True)


class Factored(NamedTuple):
    """A tree with the joints placed and the Riccati sweep done."""

    tree: Tree
    J: list[JointState]
    gains: list[list[Gain]]

    def filtered(self, T: Vector, forces: Sequence[Force] = ()) -> list[list[Scalar]]:
        """``F⁻¹ T`` by link, or ε of torques and link forces together."""
        forces = forces or at_links(self.tree, Force.zero(), ())
        own = self.tree.per_link_v(T)
        return tip_to_base(self.tree, innovate, Force.zero(), self.J, self.gains, forces, own)[0]

    def smoothed(self, nu: Sequence[Vector]) -> list[Smoothed]:
        """``F⁻ᵀ ν`` by link, and the links' accelerations λ."""
        return base_to_tip(self.tree, smooth, NOTHING, self.J, self.gains, nu)

    def solved(self, T: Vector, forces: Sequence[Force] = ()) -> list[Smoothed]:
        """``F⁻ᵀ D⁻¹ ε``: each joint's and link's acceleration under torques and link forces."""
        return self.smoothed(each_link(self.tree, weigh, self.filtered(T, forces), self.gains))


def joint_rates(tree: Tree, states: list[Smoothed]) -> list[Scalar]:
    """The results at the joints, in order."""
    return tree.gather([state.out for state in states])


def weigh(_link: Link, epsilons: list[Scalar], gains: list[Gain]) -> list[Scalar]:
    """``D⁻¹ ε``."""
    return [e * gain.inv_d for e, gain in zip(epsilons, gains, strict=True)]


def gains_of(tree: Tree, J: list[JointState]) -> list[list[Gain]]:
    """The Riccati sweep."""
    gains, _ = tip_to_base(tree, riccati, ArticulatedInertia.zero(), J)
    return gains


def factored(tree: Tree, q: Vector) -> Factored:
    """The factors at a configuration, not yet applied to anything."""
    refuse_followers(tree)
    J = joint_states(tree, q)
    return Factored(tree, J, gains_of(tree, J))


def pivots(tree: Tree, q: Vector) -> list[Scalar]:
    """The diagonal of D."""
    return tree.gather([[gain.d for gain in gains] for gains in factored(tree, q).gains])


def _solve(tree: Tree, q: Vector, _qd: Vector, rhs: Vector, _external: External) -> list[Scalar]:
    return joint_rates(tree, factored(tree, q).solved(rhs))


def solve_mass(tree: Tree, q: Vector, rhs: Vector) -> list[Scalar]:
    """``M⁻¹ rhs`` without forming M."""
    return tied(tree, _solve, q, [0.0] * tree.nv, rhs, ())
