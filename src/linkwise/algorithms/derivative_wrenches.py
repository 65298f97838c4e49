"""How forces change as each column of the joints moves what is beyond it: wrenches of columns.

    tip -> base   I, 2B, E, F    inertia, twice the flux, turning loads and force of the subtree
    each link     A, P, Q, b, e  the wrenches of each column

    A = I S,    P = I Ψ̈ + 2 B Ψ̇ + E S + S x* F,    Q = I (Ṡ + Ψ̇) + 2 B S,    b = 2 Bᵀ S,    e = Eᵀ S

with the columns of ``moved_columns.py``; ``torque_derivatives.py`` derives these five. Forces, and
so A, P and Q, are the same to all observers. To one who is left behind at the velocity u all mass
moves faster by u, and b is ``b + 2 u x A_lin``.

E is for external wrenches, moments n and forces f at points p, which keep their directions while S
turns the link by w. Against wrenches that turn along, that adds ``w x n`` and, at p, ``w x f``.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.external import External, external_fluxes, external_forces
from linkwise.algorithms.moved_columns import Moving
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, RigidInertia, Vec3, Vector, cross
from linkwise.sweep import tip_to_base


class Subtree(NamedTuple):
    """Inertia, twice the flux, turning loads and force of a subtree; sums over children."""

    I: RigidInertia
    B2: Flux
    E: Flux
    F: Force


class Wrenches(NamedTuple):
    """Wrenches of one column, on their way to the base; b and e are moments."""

    A: Force
    P: Force
    Q: Force
    b: Vec3
    e: Vec3


NOTHING = Subtree(RigidInertia.zero(), Flux.zero(), Flux.zero(), Force.zero())


def compose(
    link: Link, children: Subtree, m: Moving, ext: Force, turning: Flux
) -> tuple[Subtree, Subtree]:
    """Sums over a link's subtree, here and as the parent's observer sees them."""
    X, own = m.J.X, link.inertia
    I, B2 = children.I + own, children.B2 + Flux.of(own + own, m.v)
    E, F = children.E + turning, own.force(m.a.lin, m.U) + children.F - ext
    inward = X.body_back(I)
    flux = X.body_back(B2).boosted(inward, m.u * 2.0)
    return Subtree(I, B2, E, F), Subtree(inward, flux, X.body_back(E), X.force_back(F))


def subtrees(tree: Tree, q: Vector, moving: list[Moving], external: External) -> list[Subtree]:
    """The sums over each link's subtree."""
    loads = external_forces(tree, q, external), external_fluxes(tree, q, external)
    return tip_to_base(tree, compose, NOTHING, moving, *loads)[0]


def wrenches(_link: Link, m: Moving, subtree: Subtree) -> list[Wrenches]:
    """The wrenches of each column of a joint, in link axes."""
    I, B2, E, F = subtree
    found = []
    for S, psi, psi2, both in m.columns:
        P = I @ psi2 + B2 @ psi + E @ S + S.cross_force(F)
        Q = I @ both + B2 @ S
        found.append(Wrenches(I @ S, P, Q, B2.transposed(S).ang, E.transposed(S).ang))
    return found


def carry(_link: Link, columns: list[Wrenches], m: Moving) -> list[Wrenches]:
    """The same wrenches, one link further in, as the parent's observer sees them."""
    X, twice = m.J.X, m.u * 2.0
    found = []
    for own in columns:
        A, P, Q = (X.force_back(f) for f in own[:3])
        b = X.rotate_back(own.b) + cross(twice, A.lin)
        found.append(Wrenches(A, P, Q, b, X.rotate_back(own.e)))
    return found
