"""Solving with the mobility of rows, also where they all but depend on each other.

Near a pose where rows of J depend on each other, J M⁻¹ Jᵀ has a small pivot, and Λ, its inverse,
grows beyond all bounds. Without damping a pivot that is zero to rounding has no inverse, and the
state no answer. With damping d, ``Λ = (J M⁻¹ Jᵀ + α diag(d))⁻¹``: α is zero as long as every pivot
exceeds the d of its row, and 1 where one vanishes:

    α = (1 - s)²,      s = the least (pivot / d), at most 1
"""

from __future__ import annotations

from linkwise.algorithms import ldl
from linkwise.algorithms.yielding import ROUNDING, diagonal
from linkwise.spatial import Matrix, Scalar, Vector, quotient, reciprocal, rounding, select

VANISHED = 1e-6  # of the damping: of a smaller pivot, α is 1 whatever later pivots are


def plain(inverse: Matrix, scale: Vector) -> tuple[tuple[Matrix, list[Scalar]], Scalar]:
    """Factors of J M⁻¹ Jᵀ; a pivot that is zero to rounding beside its scale counts as zero."""
    return ldl.factor(inverse, list(scale), _certain), 0.0


def _certain(pivot: Scalar, scale: Scalar) -> Scalar:
    sure = pivot - ROUNDING * rounding(pivot) * scale
    return reciprocal(select(sure, pivot, 0.0), scale)


def damped(inverse: Matrix, damping: Vector) -> tuple[tuple[Matrix, list[Scalar]], Scalar]:
    """Factors of J M⁻¹ Jᵀ with the part α of the damping that its pivots ask for; α."""
    least: list[Scalar] = [1.0]

    def watched(pivot: Scalar, d: Scalar) -> Scalar:
        ratio = quotient(pivot, d)
        least.append(select(least[-1] - ratio, ratio, least[-1]))
        return 1.0 / select(ratio - VANISHED, pivot, d)

    ldl.factor(inverse, damping, watched)
    s = select(least[-1], least[-1], 0.0)
    part = (1.0 - s) * (1.0 - s)
    soft = [row[:] for row in inverse]
    for k, d in enumerate(damping):
        soft[k][k] = soft[k][k] + part * d
    return ldl.factor(soft, diagonal(soft)), part
