"""Christoffel's symbols, by composite bodies.

    Γ_ijk = ½ (∂_k M_ij + ∂_j M_ik - ∂_i M_jk),      C_ij = Σ_k Γ_ijk qd_k

M_ij does not change with a joint that is no further out than i or j. So, with k the outermost:

    Γ_ijk = Γ_ikj = S_iᵀ B(I^c_k, S_k) S_j      flux of what k moves at unit rate (spatial/flux.py)
    Γ_kij = -Γ_ijk                              for j no further out than i, where ∂_j M_ik = 0
    Γ_kjk = ½ ∂_j M_kk = 0

B(I^c_k, S_k) is Kang's augmented-body P* (augmented.py) made symmetric, its three terms in one.

Spherical and free joints have rates that are no derivatives of coordinates. Γ_ijk - Γ_ikj is then
row i of M times the bracket of motions k and j (rotors, which have no bracket, aside).
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algorithms.chains import Chain, Column, by_outermost
from linkwise.algorithms.crba import crba
from linkwise.algorithms.poses import LinkPose
from linkwise.algorithms.rotors import rotor_symbols
from linkwise.model.projection import Index, Tensor
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Motion, RigidInertia, Rotation, Scalar, Vector
from linkwise.sweep import each_link

Bracket = tuple[int, int, int, Scalar]  # j, k, l, c: [motion k, motion j] has c of motion l


def christoffel(tree: Tree, q: Vector) -> Tensor:
    """``Γ``; symmetric in its last two indices where no joint is spherical or free."""
    symbols = [entry for chain, B in fluxes(tree, q) for entry in symbols_of(chain, B)]
    return with_brackets(tree, q, tree.gather_tensor([*symbols, *rotor_symbols(tree)]))


def fluxes(tree: Tree, q: Vector) -> list[tuple[Chain, Flux]]:
    """For each column: the chain that ends with it, and the flux of all that it moves."""
    return by_outermost(tree, q, root_flux)


def root_flux(body: RigidInertia, pose: LinkPose, S: Motion) -> Flux:
    """Flux of a body at unit rate along S, about the origin of its root and in the root's axes."""
    return Flux.of(body, S).turned(Rotation(pose.R)).seen_from(pose.p)


def symbols_of(chain: Chain, B: Flux) -> Iterator[tuple[Index, Scalar]]:
    """All symbols whose outermost column is the chain's last, k; each order once."""
    *inner, k = chain
    for a, i in enumerate(inner):
        moment = B.transposed(i.S).ang  # all of it: B feels only how a column turns
        for b, j in enumerate(chain):
            x = moment.dot(j.S.ang)
            orders = [(i, j, k)] + [(i, k, j)] * (b < len(inner))
            yield from ((_numbers(*order), x) for order in orders)
            opposite = [(k, i, j), (k, j, i)][: (b <= a) + (b < a)]
            yield from ((_numbers(*order), -x) for order in opposite)


def _numbers(*columns: Column) -> Index:
    return tuple(column.number for column in columns)


def with_brackets(tree: Tree, q: Vector, G: Tensor) -> Tensor:
    """Add ``M_il c^l_kj``, k after j, for spherical and free joints."""
    brackets = [bracket for own in each_link(tree, brackets_of) for bracket in own]
    M = crba(tree.without_rotors(), q) if brackets else []
    for j, k, l, c in brackets:
        for plane, row in zip(G, M, strict=True):
            plane[j][k] = plane[j][k] + c * row[l]
    return G


def brackets_of(link: Link) -> list[Bracket]:
    """Brackets of the columns of a spherical or free joint; none for other joints.

    Turning and sliding along the columns one after another, each moving the next, gives the joint
    coordinates near its configuration. The bracket of two columns is a signed column, or zero.
    """
    S = link.joint.columns(()) if link.joint.quasi else ()
    at = link.v_index
    return [
        (at + j, at + k, at + l, c)
        for j, inner in enumerate(S)
        for k, outer in enumerate(S[j + 1 :], j + 1)
        for l, c in zip(range(len(S)), outer.cross(inner), strict=False)
    ]
