"""The innovations factors themselves, applied to a vector in one sweep.

    tip -> base   y = F x        z(k+1) = φ z + L x,   y = x + H z
    base -> tip   y = Fᵀ x       λ(k) = φᵀ λ(k+1) + Hᵀ x,   y = x + Lᵀ λ(k+1)

[Rodriguez and Kreutz, Part I]; the inverses are the filter and the smoother of ``innovations.py``.
The factors as matrices: ``innovations_matrices.py``.
"""

from __future__ import annotations

from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.innovations import AT_BASE, Factored, factored, from_last
from linkwise.algorithms.riccati import Gain
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import base_to_tip, joint_states, tip_to_base


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
    _link: Link, parent: Acceleration, J: JointState, gains: list[Gain], x: Vector
) -> Acceleration:
    """Fᵀ: λ(k) = φᵀ λ(k+1) + Hᵀ x; y = x + Lᵀ λ(k+1)."""
    a = J.X.motion(parent.a)
    y: list[Scalar] = []
    for column, gain, own in zip(J.S, gains, x, strict=True):
        y.append(own + a.dot(gain.G))
        a = a + column * own
    return Acceleration(a, y)


def placed(tree: Tree, q: Vector) -> Factored:
    """The factors at a configuration."""
    return factored(tree, joint_states(tree, q))


def times(f: Factored, x: Vector) -> list[Scalar]:
    """``F x``."""
    own = f.tree.per_link_v(x)
    return f.tree.gather(tip_to_base(f.tree, apply, Force.zero(), f.J, f.gains, own)[0])


def apply_factor(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F x``."""
    return times(placed(tree, q), x)


def apply_factor_inverse(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻¹ x``."""
    return tree.gather(placed(tree, q).filtered(x))


def apply_factor_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``Fᵀ x``."""
    f, own = placed(tree, q), tree.per_link_v(x)
    return joint_accelerations(tree, base_to_tip(tree, apply_transpose, AT_BASE, f.J, f.gains, own))


def apply_factor_inverse_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻ᵀ x``."""
    return joint_accelerations(tree, placed(tree, q).smoothed(tree.per_link_v(x)))
