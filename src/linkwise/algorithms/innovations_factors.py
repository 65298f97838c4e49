"""The innovations factors themselves: applied to a vector in one sweep, or formed as matrices.

    tip -> base   y = F x        z(k+1) = φ z + L x,   y = x + H z
    base -> tip   y = Fᵀ x       λ(k) = φᵀ λ(k+1) + Hᵀ x,   y = x + Lᵀ λ(k+1)

[Rodriguez and Kreutz, Part I]; the inverses are the filter and the smoother of ``innovations.py``.
A column of F or F⁻¹ is the factor applied to a unit vector: most of that sweep, and of the product
M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹, is zeros, which a trace folds away.
"""

from __future__ import annotations

from linkwise.algorithms.aba import Acceleration, joint_accelerations
from linkwise.algorithms.dense import dot, square, transpose, unit
from linkwise.algorithms.external import External
from linkwise.algorithms.innovations import AT_BASE, Factored, factored, from_last
from linkwise.algorithms.riccati import Gain
from linkwise.algorithms.tied import inverse_with_ties
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, Scalar, Vector
from linkwise.sweep import base_to_tip, each_link, joint_states, tip_to_base


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


def _at(tree: Tree, q: Vector) -> Factored:
    return factored(tree, joint_states(tree, q))


def _times(f: Factored, x: Vector) -> list[Scalar]:
    own = f.tree.per_link_v(x)
    return f.tree.gather(tip_to_base(f.tree, apply, Force.zero(), f.J, f.gains, own)[0])


def apply_factor(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F x``."""
    return _times(_at(tree, q), x)


def apply_factor_inverse(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻¹ x``."""
    return tree.gather(_at(tree, q).filtered(x))


def apply_factor_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``Fᵀ x``."""
    f, own = _at(tree, q), tree.per_link_v(x)
    return joint_accelerations(tree, base_to_tip(tree, apply_transpose, AT_BASE, f.J, f.gains, own))


def apply_factor_inverse_transpose(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``F⁻ᵀ x``."""
    return joint_accelerations(tree, _at(tree, q).smoothed(tree.per_link_v(x)))


def factor(tree: Tree, q: Vector) -> Matrix:
    """``F = 1 + HΦL``."""
    f = _at(tree, q)
    return transpose([_times(f, column) for column in unit(tree.nv)])


def _inverse(f: Factored) -> Matrix:
    return transpose([f.tree.gather(f.filtered(column)) for column in unit(f.tree.nv)])


def factor_inverse(tree: Tree, q: Vector) -> Matrix:
    """``F⁻¹ = 1 - HΨL``."""
    return _inverse(_at(tree, q))


def pivots(tree: Tree, q: Vector) -> list[Scalar]:
    """The diagonal of D."""
    return tree.gather(each_link(tree, _pivots, _at(tree, q).gains))


def _pivots(_link: Link, gains: list[Gain]) -> list[Scalar]:
    return [gain.d for gain in gains]


def _mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``F⁻ᵀ D⁻¹ F⁻¹`` of a tree whose joints all move on their own; sums run tip to base."""
    f = _at(tree, q)
    inv_d = tree.gather([[gain.inv_d for gain in gains] for gains in f.gains])
    return square(_inverse(f)[::-1], inv_d[::-1])


def _solve(tree: Tree, q: Vector, _qd: Vector, rhs: Vector, _external: External) -> list[Scalar]:
    return [dot(row, rhs) for row in _mass_matrix_inverse(tree, q)]


def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``M⁻¹`` from the factors; ties between joints are taken off after."""
    solve = inverse_with_ties(_solve) if tree.coupled else _mass_matrix_inverse
    return solve(tree, q)
