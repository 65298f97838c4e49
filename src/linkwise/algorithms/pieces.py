"""Pieces of a chain, for forward dynamics by a scan: how a piece joins what is at its two ends.

    y = Aᵀ u + η - J f          u  acceleration of the link before the piece
    f' = A f + C u + b          y  acceleration of the last link of the piece
                                f  wrench that the last link gives to the links after it
                                f' wrench that the link before the piece gives to it

C is the piece's articulated inertia with nothing after it, J the mobility of its last link while
the link before it is held. Derivation of one link more at the inner end, where ``aba.py`` has
IA = C + I and p = b + p_link: the joint accelerates by ``D⁻¹ (tau - Sᵀ(IA (X u + c) + p + A f))``,
so a wrench f at the far end moves it by ``-D⁻¹ wᵀ f`` with ``w = Aᵀ S``, and the far end follows
the joint by w:

    J + w D⁻¹ wᵀ,   η + w D⁻¹ (tau - Sᵀ p),   A - K wᵀ     then     η + Aᵀ c,   Xᵀ A

Two pieces are joined alike: the mobility of the inner one is that of six joints between the two
(``springs.py``), its Aᵀ stands for X and its η for c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.aba import NOTHING, Handle, Subtree, articulate, eliminate, release
from linkwise.algorithms.rates import Velocity
from linkwise.algorithms.springs import NO_FORCE, UNITS, back, springs, through
from linkwise.model.tree import Link
from linkwise.spatial import ArticulatedInertia, Force, Motion, Vector


class Piece(NamedTuple):
    """What joins the two ends of some links in a row."""

    A: tuple[Force, ...]  # what each unit wrench at the outer end is at the inner end
    near: Subtree  # C, b
    J: ArticulatedInertia  # a symmetric matrix too, but from wrenches to motions
    eta: Motion


class Ends(NamedTuple):
    """What a piece is given: the links after it, and the acceleration of the link before it."""

    tip: Subtree
    base: Motion


NO_LINK = Piece(UNITS, NOTHING, ArticulatedInertia.zero(), Motion.zero())


def grow(link: Link, piece: Piece, m: Velocity, ext: Force, tau: Vector) -> Piece:
    """The piece with one link more at its inner end."""
    handles, near = articulate(link, piece.near, m, ext, tau)
    A, J, eta = _followed(piece, m.J.S, handles)
    return Piece(tuple(map(m.J.X.force_back, A)), near, J, eta + back(A, m.c))


def join(inner: Piece, outer: Piece) -> Piece:
    """Two pieces as one."""
    axes, rotors = springs(inner.J)
    handles, felt = eliminate(outer.near, axes, rotors, NO_FORCE)
    A, J, eta = _followed(outer, axes, handles)
    near = _felt(inner, felt)
    return Piece(tuple(through(inner.A, f) for f in A), near, J, eta + back(A, inner.eta))


def share(inner: Piece, outer: Piece, given: Ends) -> tuple[Ends, Ends]:
    """What each of two pieces is given, from what both are given together."""
    after = _felt(outer, eliminate(given.tip, *springs(outer.J), NO_FORCE)[1])
    axes, rotors = springs(inner.J)
    handles, _ = eliminate(after, axes, rotors, NO_FORCE)
    y, _ = release(back(inner.A, given.base) + inner.eta, axes, handles)
    return Ends(after, given.base), Ends(given.tip, y)


def _followed(
    piece: Piece, columns: Sequence[Motion], handles: Sequence[Handle]
) -> tuple[tuple[Force, ...], ArticulatedInertia, Motion]:
    """A, J and η when the columns of a joint at the inner end are free to move.

    What the columns add to J is summed before it is added. J grows along a chain, and is rounded
    once for each join of two pieces: once for each of six columns, it would lose two bits more.
    """
    A, more, eta = piece.A, ArticulatedInertia.zero(), piece.eta
    for column, handle in zip(columns, handles, strict=True):
        w, K = back(A, column), handle.U * handle.inv_d
        more, eta = more.minus_outer(w, w * -handle.inv_d), eta + w * (handle.u * handle.inv_d)
        A = tuple(f - K * x for f, x in zip(A, w, strict=True))
    return A, piece.J + more, eta


def _felt(piece: Piece, after: Subtree) -> Subtree:
    """A piece with what follows its springs, as they are felt at its inner end."""
    (C, b), (IA, p) = piece.near, after
    for unit, force in zip(UNITS, piece.A, strict=True):
        C = C.minus_outer(through(piece.A, IA @ Motion(unit.ang, unit.lin)), force * -1.0)
    return Subtree(C, b + through(piece.A, p + IA @ piece.eta))
