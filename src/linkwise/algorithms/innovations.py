"""The innovations factors of the mass matrix, and forward dynamics by them.

    M = (1 + HΦL) D (1 + HΦL)ᵀ,      M⁻¹ = (1 - HΨL)ᵀ D⁻¹ (1 - HΨL)

[Rodriguez and Kreutz, Part I; numbers in brackets are its equations]. In link coordinates φᵀ is the
frame change of a motion and φ that of a force; ψ = φ (1 - G H). A joint of several columns is
eliminated column by column, so D is diagonal and its block is a product of rank-one steps.

    tip -> base   P, D, G   articulated inertia, its pivots and gains            [the Riccati sweep]
    tip -> base   z, ε, ν   forces filtered by ψ: ε = T - H z, ν = D⁻¹ ε
    base -> tip   λ, qdd    accelerations smoothed by ψᵀ: qdd = ν - Gᵀ λ

FD1 to FD4 differ in where the velocity and gravity terms enter:

    FD1   subtracted from the torques first (RNEA), then filtered and smoothed       [4 sweeps]
    FD2   as FD1, and the accelerations of the links come out as well                [4 sweeps]
    FD3   as link forces M ζ + b, with ζ = φᵀ a from an outward sweep                [3 sweeps]
    FD4   as a and b inside the sweeps: the articulated-body algorithm               [3 sweeps]

FD1 and FD2 lose digits on long chains, where the bias is much larger than what it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.algorithms.rnea import bias
from linkwise.algorithms.tied import tied
from linkwise.model.joints import Stance
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import ArticulatedInertia, Force, Motion, Scalar, reciprocal
from linkwise.sweep import base_to_tip, tip_to_base

Matrix = list[list[Scalar]]


class Gain(NamedTuple):
    """One eliminated column: pivot D, its inverse, and gain G = P Hᵀ D⁻¹."""

    d: Scalar
    inv_d: Scalar
    G: Force


class Filtered(NamedTuple):
    """A joint's innovations, scaled: ν = D⁻¹ ε."""

    J: Stance
    gains: list[Gain]
    nu: list[Scalar]


class Smoothed(NamedTuple):
    """Acceleration of a link, and of its joint."""

    alpha: Motion
    qdd: list[Scalar]


def riccati(
    link: Link, children: ArticulatedInertia, J: Stance
) -> tuple[list[Gain], ArticulatedInertia]:
    """P(k+1) = φ (P - G H P) φᵀ + M."""
    P = children + link.inertia.articulated()
    gains = []
    for column, rotor in zip(J.S, link.armature, strict=True):
        U = P @ column
        d = column.dot(U) + rotor
        inv_d = reciprocal(d)
        G = U * inv_d
        P = P.less(U, G)
        gains.append(Gain(d, inv_d, G))
    return gains, J.X.articulated_back(P)


def innovate(
    _link: Link,
    children: Force,
    J: Stance,
    gains: list[Gain],
    force: Force,
    T: Sequence[Scalar],
) -> tuple[Filtered, Force]:
    """z(k+1) = ψ z + L T + force; ε = T - H z."""
    z = children + force
    nu = []
    for column, gain, t in zip(J.S, gains, T, strict=True):
        epsilon = t - column.dot(z)
        z = z + gain.G * epsilon
        nu.append(epsilon * gain.inv_d)
    return Filtered(J, gains, nu), J.X.force_back(z)


def smooth(_link: Link, parent: Smoothed, f: Filtered) -> Smoothed:
    """λ(k) = ψᵀ λ(k+1) + Hᵀ ν; qdd = ν - Gᵀ λ."""
    a = f.J.X.motion(parent.alpha)
    qdd: list[Scalar] = []
    for column, gain, nu in zip(reversed(f.J.S), reversed(f.gains), reversed(f.nu), strict=True):
        rate = nu - a.dot(gain.G)
        a = a + column * rate
        qdd.insert(0, rate)
    return Smoothed(a, qdd)


def stances(tree: Tree, q: Sequence[Sequence[Scalar]]) -> list[Stance]:
    """Every joint at its configuration."""
    return [link.stance(own) for link, own in zip(tree.links, q, strict=True)]


def gains_of(tree: Tree, J: list[Stance]) -> list[list[Gain]]:
    """The Riccati sweep."""
    gains, _ = tip_to_base(tree, riccati, ArticulatedInertia.zero(), J)
    return gains


def apply_inverse(
    tree: Tree, J: list[Stance], forces: Sequence[Force], T: Sequence[Scalar]
) -> list[Smoothed]:
    """Filter and smooth: each link's acceleration under torques T and link forces."""
    filtered, _ = tip_to_base(
        tree, innovate, Force.zero(), J, gains_of(tree, J), forces, tree.per_link_v(T)
    )
    return base_to_tip(tree, smooth, Smoothed(Motion.zero(), []), filtered)


def _joint_rates(states: list[Smoothed]) -> list[Scalar]:
    return [rate for state in states for rate in state.qdd]


def solve_mass(tree: Tree, q: Sequence[Scalar], rhs: Sequence[Scalar]) -> list[Scalar]:
    """``M⁻¹ rhs`` without forming M."""
    if tree.coupled:
        return tied(tree.without_gravity(), _fd1, q, [0.0] * tree.nv, rhs, ())
    J = stances(tree, tree.per_link_q(q))
    return _joint_rates(apply_inverse(tree, J, [Force.zero()] * len(J), rhs))


def _fd1(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External = (),
) -> list[Scalar]:
    load = bias(tree, q, qd, external=external)
    left = [t - b for t, b in zip(tau, load, strict=True)]
    J = stances(tree, tree.per_link_q(q))
    return _joint_rates(apply_inverse(tree, J, [Force.zero()] * len(J), left))


def _bias_forces(
    tree: Tree, q: list[Sequence[Scalar]], qd: list[Sequence[Scalar]], external: External
) -> tuple[list[Stance], list[Force]]:
    """``M ζ + b`` of each link: what its motion needs when no joint accelerates."""
    still = tree.per_link_v([0.0] * tree.nv)
    motions: list[Rates] = base_to_tip(tree, move, at_rest(tree.base_acceleration), q, qd, still)
    ext = external_forces(tree, q, external)
    forces = [
        link.inertia.force(m.a, m.U) - f
        for link, m, f in zip(tree.links, motions, ext, strict=True)
    ]
    return [m.J for m in motions], forces


def _fd3(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External = (),
) -> list[Scalar]:
    q_, qd_ = tree.per_link_q(q), tree.per_link_v(qd)
    J, forces = _bias_forces(tree, q_, qd_, external)
    lost = tree.gather([k.resistance(v) for k, v in zip(tree.links, qd_, strict=True)])
    drive = [t - x for t, x in zip(tau, lost, strict=True)]
    return _joint_rates(apply_inverse(tree, J, forces, drive))


def fd1(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Subtract the bias, filter, smooth."""
    return tied(tree, _fd1, q, qd, tau, external)


def fd3(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Filter torques and link forces together, smooth."""
    return tied(tree, _fd3, q, qd, tau, external)


def _further(
    link: Link,
    z: Force,
    J: Stance,
    gains: list[Gain],
    after: int,
    out: Matrix,
    column: int,
    inverse: bool,
) -> Force:
    """Project a carried force on a joint's columns beyond ``after``; ψ takes them out of it."""
    for k in range(after, len(J.S)):
        entry = J.S[k].dot(z)
        out[link.v_index + k][column] = -entry if inverse else entry
        if inverse:
            z = z - gains[k].G * entry
    return z


def innovations(tree: Tree, q: Sequence[Scalar], *, inverse: bool = False) -> Matrix:
    """``1 + HΦL`` (or ``1 - HΨL``), and below it D (or D⁻¹) as one more row."""
    J = stances(tree, tree.per_link_q(q))
    gains = gains_of(tree, J)
    n = tree.nv
    out: Matrix = [[float(i == j) for j in range(n)] for i in range(n + 1)]
    for i, link in enumerate(tree.links):
        for k, gain in enumerate(gains[i]):
            column = link.v_index + k
            out[n][column] = gain.inv_d if inverse else gain.d
            z = _further(link, gain.G, J[i], gains[i], k + 1, out, column, inverse)
            at = i
            while tree.links[at].parent != BASE:
                z, at = J[at].X.force_back(z), tree.links[at].parent
                z = _further(tree.links[at], z, J[at], gains[at], 0, out, column, inverse)
    return out
