"""Coriolis matrix and Christoffel symbols, by composite bodies.

    C = Σ_l J_lᵀ (I_l J̇_l + B_l J_l),      C_ij = Σ_k Γ_ijk qd_k

B_l is the flux of body l (spatial/flux.py) [Echeandia and Wensing 2021, algorithm 1]:

    base -> tip   v, Ṡ      velocity of each link; its joint's columns as they turn with it
    tip -> base   I^c, B^c  inertia and flux of the subtree
    each link     F         I^c Ṡ + B^c S, I^c S and B^cᵀ S, carried to every ancestor, or
                            (``mixed``) turned once to a frame where all ancestors' columns are

C qd is the velocity part of the bias and Ṁ - 2C is skew, for every kind of joint. Where rates are
derivatives of q, C is Christoffel's and Γ_ijk = Γ_ikj. A spherical or free joint has rates about
its link's axes instead, which do not commute: C is then still the one without torsion, and
Γ_ijk - Γ_ikj is row i of M times the bracket of motions k and j (rotors, which have no bracket,
aside).

Γ is a position-only matter: with j and i no further out than k it is S_iᵀ B(I^c_k, S_k) S_j, which
is Kang's augmented-body P* (kic.py) made symmetric, its three terms in one; the rest follows from
Γ_kij = -Γ_ijk for j no further out than i, and from brackets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.algorithms.chains import Chain, Column, Tensor, add, chains, no_tensor, root_poses
from linkwise.algorithms.crba import Matrix, compose, crba
from linkwise.algorithms.gdahj import Place, in_fixed_frame, places
from linkwise.algorithms.kinematics import Pose
from linkwise.algorithms.rates import NO_JOINT
from linkwise.model.joints import Stance
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, Motion, RigidInertia, Rotation, Scalar, cross
from linkwise.sweep import base_to_tip, tip_to_base, to_base


class Moving(NamedTuple):
    """Velocity of a link; its joint, and how the joint's columns change."""

    J: Stance
    v: Motion
    dS: list[Motion]


class Subtree(NamedTuple):
    """Inertia and flux of a subtree; sums over children."""

    I: RigidInertia
    B: Flux

    def __add__(self, o: Subtree) -> Subtree:  # type: ignore[override]
        return Subtree(self.I + o.I, self.B + o.B)


class Carried(NamedTuple):
    """Wrenches of one column, on their way to the base."""

    rate: Force  # I^c Ṡ + B^c S
    momentum: Force  # I^c S
    turned: Force  # B^cᵀ S


def move(link: Link, parent: Moving, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Moving:
    """Velocity of a link from its parent's."""
    J = link.stance(q)
    v = J.X.motion(parent.v) + J.motion(qd)
    own = zip(J.S, link.joint.column_rates(q, qd), strict=True)
    return Moving(J, v, [v.cross(column) + rate for column, rate in own])


def gather(link: Link, children: Subtree, m: Moving) -> tuple[Subtree, Subtree]:
    """Inertia and flux of the link's subtree, here and in the parent's frame."""
    I, B = children.I + link.inertia, children.B + Flux.of(link.inertia, m.v)
    return Subtree(I, B), Subtree(m.J.X.inertia_back(I), m.J.X.flux_back(B))


def carry(_link: Link, columns: list[Carried], m: Moving) -> list[Carried]:
    """The wrenches of one joint's columns, one link further in."""
    return [Carried(*(m.J.X.force_back(f) for f in column)) for column in columns]


def coriolis_matrix(tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Matrix:
    """``C``; entries between branches are exactly zero."""
    C: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    moving, own = momenta(tree, q, qd)
    for i, (outer, m, columns) in enumerate(zip(tree.links, moving, own, strict=True)):
        _add(C, outer, outer, [m.J.project(column.rate) for column in columns])
        for j, carried in to_base(tree, i, carry, columns, moving):
            inner, n = tree.links[j], moving[j]
            _add(C, inner, outer, [n.J.project(column.rate) for column in carried])
            pairs = zip(n.J.S, n.dS, strict=True)
            _add(C, outer, inner, [[_row(c, S, dS) for c in carried] for S, dS in pairs])
    return with_rotors(C, tree, qd)


def momenta(
    tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar]
) -> tuple[list[Moving], list[list[Carried]]]:
    """How links move, and the wrenches of each one's columns; link axes."""
    still = Moving(NO_JOINT, Motion.zero(), [])
    moving = base_to_tip(tree, move, still, tree.per_link_q(q), tree.per_link_v(qd))
    nothing = Subtree(RigidInertia.zero(), Flux.zero())
    subtrees, _ = tip_to_base(tree, gather, nothing, moving)
    columns = [
        [Carried(I @ dS + B @ S, I @ S, B.transposed(S)) for S, dS in zip(m.J.S, m.dS, strict=True)]
        for m, (I, B) in zip(moving, subtrees, strict=True)
    ]
    return moving, columns


def mixed(tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Matrix:
    """``C`` with composite bodies in link axes and entries in the fixed frame of gdahj.py."""
    C: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    moving, own = momenta(tree, q, qd)
    at = places(tree, q)
    rates = [[turned_out(dS, x) for dS in m.dS] for m, x in zip(moving, at, strict=True)]
    for i, (outer, m, columns) in enumerate(zip(tree.links, moving, own, strict=True)):
        _add(C, outer, outer, [m.J.project(column.rate) for column in columns])
        fixed = [Carried(*(in_fixed_frame(f, at[i]) for f in column)) for column in columns]
        for j in tree.path(i)[:-1]:
            inner, S_j = tree.links[j], at[j].S
            _add(C, inner, outer, [[S.dot(c.rate) for S in S_j] for c in fixed])
            pairs = zip(S_j, rates[j], strict=True)
            _add(C, outer, inner, [[_row(c, S, dS) for c in fixed] for S, dS in pairs])
    return with_rotors(C, tree, qd)


def with_rotors(C: Matrix, tree: Tree, qd: Sequence[Scalar]) -> Matrix:
    """Add rotors whose axes turn against those of the rates (`Link.turned_rotors`)."""
    for link, rates in zip(tree.links, tree.per_link_v(qd), strict=True):
        if link.rotor_turn:
            _add(C, link, link, [link.turned_rotors(rates, e) for e in _units(link.joint.nv)])
    return C


def _units(n: int) -> list[list[Scalar]]:
    return [[float(i == k) for i in range(n)] for k in range(n)]


def turned_out(m: Motion, at: Place) -> Motion:
    """A motion at a link's origin, in its axes -> at the fixed point."""
    ang = at.R @ m.ang
    return Motion(ang, at.R @ m.lin + cross(at.p, ang))


def _row(column: Carried, S: Motion, dS: Motion) -> Scalar:
    return dS.dot(column.momentum) + S.dot(column.turned)


def _add(C: Matrix, rows: Link, columns: Link, block: Matrix) -> None:
    """Add what two joints share to the degrees of freedom that move them; ``block`` by columns."""
    for (column, b), entries in zip(columns.dofs, block, strict=True):
        for (row, a), x in zip(rows.dofs, entries, strict=True):
            C[row][column] = C[row][column] + (x if a * b == 1.0 else x * (a * b))


def christoffel(tree: Tree, q: Sequence[Scalar]) -> Tensor:
    """``Γ``; symmetric in its last two indices where no joint is spherical or free."""
    G = no_tensor(tree.nv, tree.nv)
    for (*inner, k), B in fluxes(tree, q):
        spread(G, inner, k, B)
    add_brackets(tree, q, G)
    for link in tree.links:
        if link.rotor_turn:
            add_rotors(link, G)
    return G


def add_rotors(link: Link, G: Tensor) -> None:
    """Add rotors whose axes turn against those of the rates (`Link.turned_rotors`)."""
    own, units = [column for column, _ in link.dofs], _units(link.joint.nv)
    for k, rates in zip(own, units, strict=True):
        for j, moved in zip(own, units, strict=True):
            for i, x in zip(own, link.turned_rotors(rates, moved), strict=True):
                G[i][j][k] = G[i][j][k] + x


def fluxes(tree: Tree, q: Sequence[Scalar]) -> Iterator[tuple[Chain, Flux]]:
    """Of what each column moves, at unit rate, in root axes; and the chain that ends with it."""
    poses = root_poses(tree, q)
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), [pose.J for pose in poses])
    for pose, body, chain in zip(poses, composites, chains(tree, poses), strict=True):
        for k, S in enumerate(pose.J.S, len(chain) - len(pose.J.S)):
            yield chain[: k + 1], in_root_axes(Flux.of(body, S), pose)


def in_root_axes(B: Flux, pose: Pose) -> Flux:
    """A link's flux at the origin of its root, in the root's axes."""
    R = pose.R
    return Flux(Rotation(R).sym_short(B.rate), R @ B.spin, R @ B.p).seen_from(pose.p)


def spread(G: Tensor, inner: Sequence[Column], k: Column, B: Flux) -> None:
    """Add all symbols whose outermost column is k; Γ_kjk is zero, for M_kk is not felt by j."""
    for a, i in enumerate(inner):
        moment = B.transposed(i.S).ang  # all of it: B feels only how a column turns
        for b, j in enumerate((*inner, k)):
            x = moment.dot(j.S.ang)
            orders = [(i, j, k)] + [(i, k, j)] * (b < len(inner))
            for order in orders:
                add(G, *order, x)
            for order in [(k, i, j), (k, j, i)][: (b <= a) + (b < a)]:
                add(G, *order, -x)


def add_brackets(tree: Tree, q: Sequence[Scalar], G: Tensor) -> None:
    """Add ``M_il c^l_kj``, k after j, for joints whose rates are those of no ordered turns.

    Columns one after another, as if each moved the next, are coordinates of a spherical or free
    joint about where it is; ``c`` is the bracket of two columns, a signed column or nothing.
    """
    quasi = [link for link in tree.links if link.joint.quasi]
    M = crba(tree.without_rotors(), q) if quasi else []
    for link in quasi:
        own = range(link.v_index, link.v_index + link.joint.nv)
        S = link.joint.columns(())
        for j, inner in zip(own, S, strict=True):
            for k, outer in zip(own[j - own[0] + 1 :], S[j - own[0] + 1 :], strict=True):
                for column, c in zip(own, outer.cross(inner), strict=False):
                    for plane, row in zip(G, M, strict=True):
                        plane[j][k] = plane[j][k] + c * row[column]
