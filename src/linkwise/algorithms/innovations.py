"""The innovations factors of the mass matrix.

    M = F D Fᵀ,   F = 1 + HΦL,      M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹,   F⁻¹ = 1 - HΨL

[Rodriguez and Kreutz, Part I; numbers in brackets are its equations]. In link coordinates φᵀ is the
frame change of a motion and φ that of a force; ψ = φ (1 - G H). A joint of several columns is
eliminated column by column, the last one first, as if each were a joint of its own: D is diagonal
and F unit triangular.

    tip -> base   P, D, G   articulated inertia, its pivots and gains           [(4.4)-(4.6)]

F and its kin are applied to a vector in one sweep each, never formed:

    tip -> base   y = F x        z(k+1) = φ z + L x,   y = x + H z
    tip -> base   ε = F⁻¹ x      z(k+1) = ψ z + L x,   ε = x - H z              [(4.19), (4.20)]
    base -> tip   y = Fᵀ x       λ(k) = φᵀ λ(k+1) + Hᵀ x,   y = x + Lᵀ λ(k+1)
    base -> tip   y = F⁻ᵀ ν      λ(k) = ψᵀ λ(k+1) + Hᵀ ν,   y = ν - Lᵀ λ(k+1)   [(4.21), (4.22)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms import ltl
from linkwise.algorithms.external import External
from linkwise.algorithms.tied import refuse_followers, tied
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


class Smoothed(NamedTuple):
    """What joint rates give a link: its acceleration, and what came out at its joint."""

    alpha: Motion
    out: list[Scalar]


NOTHING = Smoothed(Motion.zero(), [])


def riccati(
    link: Link, children: ArticulatedInertia, J: Stance
) -> tuple[list[Gain], ArticulatedInertia]:
    """P(k+1) = φ (P - G H P) φᵀ + M."""
    P = children + link.inertia.articulated()
    gains: list[Gain] = []
    for column, rotor in zip(reversed(J.S), reversed(link.armature), strict=True):
        U = P @ column
        d = column.dot(U) + rotor
        inv_d = reciprocal(d)
        G = U * inv_d
        P = P.less(U, G)
        gains.insert(0, Gain(d, inv_d, G))
    return gains, J.X.articulated_back(P)


def spread(
    _link: Link, children: Force, J: Stance, gains: list[Gain], x: Sequence[Scalar]
) -> tuple[list[Scalar], Force]:
    """F: z(k+1) = φ z + L x; y = x + H z."""
    z = children
    y: list[Scalar] = []
    for column, gain, own in _from_last(J, gains, x):
        y.insert(0, own + column.dot(z))
        z = z + gain.G * own
    return y, J.X.force_back(z)


def innovate(
    _link: Link,
    children: Force,
    J: Stance,
    gains: list[Gain],
    force: Force,
    T: Sequence[Scalar],
) -> tuple[list[Scalar], Force]:
    """F⁻¹, and link forces filtered with the torques: z(k+1) = ψ z + L T + force; ε = T - H z."""
    z = children + force
    epsilons: list[Scalar] = []
    for column, gain, t in _from_last(J, gains, T):
        epsilons.insert(0, t - column.dot(z))
        z = z + gain.G * epsilons[0]
    return epsilons, J.X.force_back(z)


def gather(
    _link: Link, parent: Smoothed, J: Stance, gains: list[Gain], x: Sequence[Scalar]
) -> Smoothed:
    """Fᵀ: λ(k) = φᵀ λ(k+1) + Hᵀ x; y = x + Lᵀ λ(k+1)."""
    a = J.X.motion(parent.alpha)
    y: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, x, strict=True):
        y.append(own + a.dot(gain.G))
        a = a + column * own
    return Smoothed(a, y)


def smooth(
    _link: Link, parent: Smoothed, J: Stance, gains: list[Gain], nu: Sequence[Scalar]
) -> Smoothed:
    """F⁻ᵀ: λ(k) = ψᵀ λ(k+1) + Hᵀ ν; y = ν - Lᵀ λ(k+1)."""
    a = J.X.motion(parent.alpha)
    rates: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, nu, strict=True):
        rates.append(own - a.dot(gain.G))
        a = a + column * rates[-1]
    return Smoothed(a, rates)


def _from_last(
    J: Stance, gains: list[Gain], x: Sequence[Scalar]
) -> Iterator[tuple[Motion, Gain, Scalar]]:
    return zip(reversed(J.S), reversed(gains), reversed(x), strict=True)


class Factored(NamedTuple):
    """A tree with the joints placed and the Riccati sweep done."""

    tree: Tree
    J: list[Stance]
    gains: list[list[Gain]]

    def inward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """``F x``."""
        own = self.tree.per_link_v(x)
        ys, _ = tip_to_base(self.tree, spread, Force.zero(), self.J, self.gains, own)
        return _joined(ys)

    def filtered(self, T: Sequence[Scalar], forces: Sequence[Force] = ()) -> list[list[Scalar]]:
        """``F⁻¹ T`` by link, or ε of torques and link forces together."""
        forces = forces or [Force.zero()] * len(self.J)
        own = self.tree.per_link_v(T)
        return tip_to_base(self.tree, innovate, Force.zero(), self.J, self.gains, forces, own)[0]

    def outward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """``Fᵀ x``."""
        own = self.tree.per_link_v(x)
        return _joined(s.out for s in base_to_tip(self.tree, gather, NOTHING, *self[1:], own))

    def smoothed(self, nu: Sequence[Sequence[Scalar]]) -> list[Smoothed]:
        """``F⁻ᵀ ν`` by link, and the links' accelerations λ."""
        return base_to_tip(self.tree, smooth, NOTHING, self.J, self.gains, nu)

    def solved(self, T: Sequence[Scalar], forces: Sequence[Force] = ()) -> list[Smoothed]:
        """``F⁻ᵀ D⁻¹ ε``: each joint's and link's acceleration under torques and link forces."""
        pairs = zip(self.filtered(T, forces), self.gains, strict=True)
        nu = [[e * g.inv_d for e, g in zip(own, gains, strict=True)] for own, gains in pairs]
        return self.smoothed(nu)


def _joined(parts: Iterable[Sequence[Scalar]]) -> list[Scalar]:
    return [x for own in parts for x in own]


def joint_rates(states: list[Smoothed]) -> list[Scalar]:
    """What came out at the joints, in order."""
    return _joined(state.out for state in states)


def stances(tree: Tree, q: Sequence[Sequence[Scalar]]) -> list[Stance]:
    """Every joint at its configuration."""
    return [link.stance(own) for link, own in zip(tree.links, q, strict=True)]


def gains_of(tree: Tree, J: list[Stance]) -> list[list[Gain]]:
    """The Riccati sweep."""
    gains, _ = tip_to_base(tree, riccati, ArticulatedInertia.zero(), J)
    return gains


def factored(tree: Tree, q: Sequence[Scalar]) -> Factored:
    """The factors at a configuration, not yet applied to anything."""
    refuse_followers(tree)
    J = stances(tree, tree.per_link_q(q))
    return Factored(tree, J, gains_of(tree, J))


# -- factors ---------------------------------------------------------------------------------------


def pivots(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """The diagonal of D."""
    return _joined([gain.d for gain in gains] for gains in factored(tree, q).gains)


def factor(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """``F = 1 + HΦL``, a column per unit torque carried inward by φ."""
    return _columns(factored(tree, q), inverse=False)


def factor_inverse(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """``F⁻¹ = 1 - HΨL``, a column per unit torque carried inward by ψ."""
    return _columns(factored(tree, q), inverse=True)


def _columns(f: Factored, *, inverse: bool) -> Matrix:
    tree, n = f.tree, f.tree.nv
    out: Matrix = [[float(i == j) for j in range(n)] for i in range(n)]
    for i, link in enumerate(tree.links):
        for k, gain in enumerate(f.gains[i]):
            column, at = link.v_index + k, i
            z = _further(f, i, gain.G, k, out, column, inverse)
            while tree.links[at].parent != BASE:
                z, at = f.J[at].X.force_back(z), tree.links[at].parent
                z = _further(f, at, z, len(f.gains[at]), out, column, inverse)
    return out


def _further(
    f: Factored, i: int, z: Force, before: int, out: Matrix, column: int, inverse: bool
) -> Force:
    """Project a carried force on a joint's columns before one; ψ takes them out of it."""
    J, row = f.J[i], f.tree.links[i].v_index
    for k in reversed(range(before)):
        entry = J.S[k].dot(z)
        out[row + k][column] = -entry if inverse else entry
        if inverse:
            z = z - f.gains[i][k].G * entry
    return z


# -- applied to a vector ---------------------------------------------------------------------------


def apply_factor(tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> list[Scalar]:
    """``F x``."""
    return factored(tree, q).inward(x)


def apply_factor_inverse(tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> list[Scalar]:
    """``F⁻¹ x``."""
    return _joined(factored(tree, q).filtered(x))


def apply_factor_transpose(tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> list[Scalar]:
    """``Fᵀ x``."""
    return factored(tree, q).outward(x)


def apply_factor_inverse_transpose(
    tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]
) -> list[Scalar]:
    """``F⁻ᵀ x``."""
    return joint_rates(factored(tree, q).smoothed(tree.per_link_v(x)))


def _solve(
    tree: Tree,
    q: Sequence[Scalar],
    _qd: Sequence[Scalar],
    rhs: Sequence[Scalar],
    _external: External,
) -> list[Scalar]:
    return joint_rates(factored(tree, q).solved(rhs))


def solve_mass(tree: Tree, q: Sequence[Scalar], rhs: Sequence[Scalar]) -> list[Scalar]:
    """``M⁻¹ rhs`` without forming M."""
    return tied(tree, _solve, q, [0.0] * tree.nv, rhs, ())


# -- the inverse, formed ---------------------------------------------------------------------------


def _inverse(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """``M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹``: two columns of F⁻¹ meet only at their common ancestors."""
    f = factored(tree, q)
    W = _columns(f, inverse=True)
    inv_d = _joined([gain.inv_d for gain in gains] for gains in f.gains)
    n, parent = range(tree.nv), tree.dof_parent
    above = [[j, *ltl.ancestors(parent, j)] for j in n]
    scaled = [{m: W[m][j] * inv_d[m] for m in above[j]} for j in n]
    out: Matrix = [[0.0] * tree.nv for _ in n]
    for i in n:
        for j in range(i + 1):
            shared: Scalar = 0.0
            for m in above[j]:
                if m in scaled[i]:
                    shared = shared + W[m][j] * scaled[i][m]
            out[i][j] = out[j][i] = shared
    return out


def _times_inverse(
    tree: Tree,
    q: Sequence[Scalar],
    _qd: Sequence[Scalar],
    rhs: Sequence[Scalar],
    _external: External,
) -> list[Scalar]:
    out: list[Scalar] = []
    for row in _inverse(tree, q):
        total: Scalar = 0.0
        for a, b in zip(row, rhs, strict=True):
            total = total + a * b
        out.append(total)
    return out


def mass_matrix_inverse(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """``M⁻¹`` from the factors; ties between joints are taken off after."""
    if not tree.coupled:
        return _inverse(tree, q)
    n, still = range(tree.nv), [0.0] * tree.nv
    unit = [[float(i == j) for i in n] for j in n]
    columns = [tied(tree, _times_inverse, q, still, e, ()) for e in unit]
    return [[columns[min(i, j)][max(i, j)] for j in n] for i in n]
