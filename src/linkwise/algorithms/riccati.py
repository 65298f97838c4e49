"""Pivots and gains of the joints: articulated inertias, as the covariance of a filter.

    P(k+1) = φ (P - G H P) φᵀ + M,      D = H P Hᵀ + rotors,      G = P Hᵀ D⁻¹

[Rodriguez and Kreutz, Part I, (4.4)-(4.6)], the articulated inertias of [RBDA Table 7.1] in one
sweep from the tips to the base. A joint of several columns is eliminated column by column, the last
one first, as if each were a joint of its own, so that D is diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link
from linkwise.spatial import ArticulatedInertia, Force, Scalar, reciprocal


class Gain(NamedTuple):
    """One eliminated column: pivot D, its inverse, and gain G = P Hᵀ D⁻¹."""

    d: Scalar
    inv_d: Scalar
    G: Force


def riccati(
    link: Link, children: ArticulatedInertia, J: JointState
) -> tuple[list[Gain], ArticulatedInertia]:
    """The gains of a joint, and what its parent feels of the link: ``φ (P - G H P) φᵀ``."""
    P = children + link.inertia.articulated()
    gains: list[Gain] = []
    for column, rotor in zip(reversed(J.S), reversed(link.armature), strict=True):
        U = P @ column
        d = column.dot(U) + rotor
        inv_d = reciprocal(d)
        gains.insert(0, Gain(d, inv_d, U * inv_d))
        P = P.minus_outer(U, gains[0].G)
    return gains, J.X.body_back(P)
