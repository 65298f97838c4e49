"""Coriolis matrix, by composite bodies.

    C = Σ_l J_lᵀ (I_l J̇_l + B_l J_l),      C_ij = Σ_k Γ_ijk qd_k

B_l is the flux of body l (spatial/flux.py) [Echeandia and Wensing 2021, algorithm 1]. After the
two sweeps of ``column_wrenches.py``:

    each pair     F         I^c Ṡ + B^c S, I^c S and B^cᵀ S, carried to every ancestor

Derivation of a pair's two blocks: column i of J_l is S_i where joint i moves link l, else zero, so
C_ij sums ``S_iᵀ (I_l Ṡ_j + B_l S_j)`` over the links that both i and j move: all that the outer one
moves. With j the outer one that is ``S_iᵀ (I^c_j Ṡ_j + B^c_j S_j)``; with i the outer one,
``(I^c_i S_i)ᵀ Ṡ_j + (B^c_iᵀ S_i)ᵀ S_j``: three wrenches per column serve both.

C qd is the velocity part of the bias and Ṁ - 2C is skew, for every kind of joint. Where rates are
derivatives of q, C is Christoffel's (christoffel.py). A spherical or free joint has rates about its
link's axes instead, which do not commute: C is then still the one without torsion.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.algorithms.column_wrenches import Moving, Wrenches, moving_wrenches
from linkwise.algorithms.dense import transpose
from linkwise.algorithms.rotors import rotor_blocks
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, Vector
from linkwise.sweep import each_pair

Meeting = tuple[list[Wrenches], Moving]  # wrenches of a joint's columns, and the ancestor they meet


def carry(_link: Link, columns: list[Wrenches], m: Moving) -> list[Wrenches]:
    """The same wrenches, one link further in."""
    return [Wrenches(*map(m.J.X.force_back, own)) for own in columns]


def meet(_link: Link, columns: list[Wrenches], m: Moving) -> Meeting:
    """Wrenches of one joint at another, or at itself."""
    return columns, m


def inner(columns: list[Wrenches], m: Moving) -> Matrix:
    """``Sᵀ (I^c Ṡ + B^c S)``: rows of the ancestor m, columns of the joint."""
    return transpose([m.J.project(own.rate) for own in columns])


def outer(columns: list[Wrenches], m: Moving) -> Matrix:
    """``(I^c S)ᵀ Ṡ + (B^cᵀ S)ᵀ S``: rows of the joint, columns of the ancestor m."""
    here = list(zip(m.J.S, m.dS, strict=True))
    return [[dS.dot(own.momentum) + S.dot(own.turned) for S, dS in here] for own in columns]


def assembled(tree: Tree, qd: Vector, met: Iterable[tuple[tuple[int, int], Meeting]]) -> Matrix:
    """``C`` from one block of each joint with itself, two of each two joints, and rotors."""
    return tree.gather_pairs(met, inner, outer, rotor_blocks(tree, qd))


def coriolis_matrix(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``C``; entries between branches are exactly zero."""
    moving, own = moving_wrenches(tree, q, qd)
    return assembled(tree, qd, each_pair(tree, carry, meet, own, moving))
