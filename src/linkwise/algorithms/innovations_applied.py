"""The innovations factors applied to a vector, in one sweep each and never formed.

    tip -> base   y = F x        z(k+1) = φ z + L x,   y = x + H z
    base -> tip   y = Fᵀ x       λ(k) = φᵀ λ(k+1) + Hᵀ x,   y = x + Lᵀ λ(k+1)

[Rodriguez and Kreutz, Part I]; the inverses are the filter and the smoother of ``innovations.py``.
"""

from __future__ import annotations

from linkwise.algorithms.innovations import (
    NOTHING,
    Gain,
    Smoothed,
    factored,
    from_last,
    joint_rates,
)
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import base_to_tip, tip_to_base


def apply(
    _link: Link, children: Force, J: JointState, gains: list[Gain], x: Vector
) -> tuple[list[Scalar], Force]:
    """F: z(k+1) = φ z + L x; y = x + H z."""
    z = children
    y: list[Scalar] = []
    for column, gain, own in from_last(J, gains, x):
        y.insert(0, own + column.dot(z))
        z = z + gain.G * own
    return y, J.X.force_back(z)


def apply_transpose(
    _link: Link, parent: Smoothed, J: JointState, gains: list[Gain], x: Vector
) -> Smoothed:
    """Fᵀ: λ(k) = φᵀ λ(k+1) + Hᵀ x; y = x + Lᵀ λ(k+1)."""
    a = J.X.motion(parent.alpha)
    y: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, x, strict=True):
        y.append(own + a.dot(gain.G))
        a = a + column * own
    return Smoothed(a, y)


def apply_factor(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F x``."""
    f = factored(tree, q)
    ys, _ = tip_to_base(tree, apply, Force.zero(), f.J, f.gains, tree.per_link_v(x))
    return tree.gather(ys)


def apply_factor_inverse(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻¹ x``."""
    return tree.gather(factored(tree, q).filtered(x))


def apply_factor_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``Fᵀ x``."""
    f = factored(tree, q)
    states = base_to_tip(tree, apply_transpose, NOTHING, f.J, f.gains, tree.per_link_v(x))
    return joint_rates(tree, states)


def apply_factor_inverse_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻ᵀ x``."""
    return joint_rates(tree, factored(tree, q).smoothed(tree.per_link_v(x)))
