"""The innovations factors of the mass matrix, and its inverse from them, as matrices.

    M = F D Fᵀ,      M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹

[Rodriguez and Kreutz, Part I]. A column of F or F⁻¹ is the factor applied to a unit vector: most of
that sweep, and of the product M⁻¹, is zeros, which a trace folds away.
"""

from __future__ import annotations

from linkwise.algorithms.dense import dot, square, transpose, unit
from linkwise.algorithms.external import External
from linkwise.algorithms.innovations import Factored
from linkwise.algorithms.innovations_factors import placed, times
from linkwise.algorithms.riccati import Gain
from linkwise.algorithms.tied import inverse_with_ties
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, Scalar, Vector
from linkwise.sweep import each_link


def factor(tree: Tree, q: Vector) -> Matrix:
    """``F = 1 + HΦL``."""
    f = placed(tree, q)
    return transpose([times(f, column) for column in unit(tree.nv)])


def _inverse(f: Factored) -> Matrix:
    return transpose([f.tree.gather(f.filtered(column)) for column in unit(f.tree.nv)])


def factor_inverse(tree: Tree, q: Vector) -> Matrix:
    """``F⁻¹ = 1 - HΨL``."""
    return _inverse(placed(tree, q))


def pivots(tree: Tree, q: Vector) -> list[Scalar]:
    """The diagonal of D."""
    return tree.gather(each_link(tree, _pivots, placed(tree, q).gains))


def _pivots(_link: Link, gains: list[Gain]) -> list[Scalar]:
    return [gain.d for gain in gains]


def _mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``F⁻ᵀ D⁻¹ F⁻¹`` of a tree whose joints all move on their own; sums run tip to base."""
    f = placed(tree, q)
    inv_d = tree.gather([[gain.inv_d for gain in gains] for gains in f.gains])
    return square(_inverse(f)[::-1], inv_d[::-1])


def _solve(tree: Tree, q: Vector, _qd: Vector, rhs: Vector, _external: External) -> list[Scalar]:
    return [dot(row, rhs) for row in _mass_matrix_inverse(tree, q)]


def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``M⁻¹`` from the factors; ties between joints are taken off after."""
    solve = inverse_with_ties(_solve) if tree.coupled else _mass_matrix_inverse
    return solve(tree, q)
