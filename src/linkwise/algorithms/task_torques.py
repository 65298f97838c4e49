"""Torques that make rows of a frame's motion accelerate as wanted: operational-space control.

    Γ = Jᵀ (Λ (u + J M⁻¹ b - J̇ q̇) + w) + (1 - Jᵀ Λ J M⁻¹) τ,      Λ = (J M⁻¹ Jᵀ)⁻¹

[Khatib 1987], with b = C q̇ + g. J has any rows of the frame's Jacobian; u is their acceleration, w
a force that acts in them besides, and τ acts where it moves none of them. For ``M q̈ = Γ - b`` gives
``J q̈ + J̇ q̇ = u + J M⁻¹ Jᵀ w``: the projector's part drops out, since ``J M⁻¹ (1 - Jᵀ Λ J M⁻¹)``
is zero. Collected by τ, as it is computed here, the law needs one solve with Λ:

    Γ = τ + Jᵀ F,      F = Λ (u - J̇ q̇ + J M⁻¹ (b - τ)) + w

M is factored once, and neither M⁻¹ nor Λ is formed: with ``M = Lᵀ D L`` and ``Y = J L⁻¹``,
``J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ`` and ``J M⁻¹ x = Y D⁻¹ L⁻ᵀ x``. Torques that are given as the accelerations a
they are for, τ = M a + b, need no solve: ``J M⁻¹ (b - τ) = - J a``.

Passive joints have no motor. The law is then that of ``reaction.py``: J_g takes the place of Jᵀ and
M_r that of M, but for J M⁻¹ (b - τ), which is the acceleration of the whole robot.

Near a pose where rows of J depend on each other, J M⁻¹ Jᵀ has a small pivot, and F grows beyond all
bounds. With damping d, ``Λ = (J M⁻¹ Jᵀ + α diag(d))⁻¹``, where α is zero as long as every pivot
exceeds the d of its row, and 1 where one vanishes:

    α = (1 - s)²,      s = the least (pivot / d), at most 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from linkwise.algorithms import ldl, ltl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot, square
from linkwise.algorithms.reaction import reactions
from linkwise.algorithms.rnea import bias, rnea
from linkwise.model.regroup import regroup
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector, quotient, reciprocal, rounding, select

ROUNDING = 64.0  # rounding units beside its scale below which a pivot is zero
VANISHED = 1e-6  # of the damping: of a smaller pivot, α is 1 whatever later pivots are


class Rows(NamedTuple):
    """Rows of a frame's motion: J by its nonzero columns, and J̇ q̇."""

    columns: Mapping[int, list[Scalar]]
    drift: list[Scalar]


class Beside(NamedTuple):
    """What else the joints are to do: torques, or the accelerations that they are for."""

    torques: Vector | None = None
    accelerations: Vector | None = None


NOTHING = Beside()


class Found(NamedTuple):
    """Torques, the force F on the rows, and the part α of the damping that was needed."""

    torques: list[Scalar]
    force: list[Scalar]
    damping: Scalar


class Mobility(NamedTuple):
    """How the rows yield to the joints' torques."""

    inverse: Matrix  # J M⁻¹ Jᵀ, or J_g M_r⁻¹ J_gᵀ
    scale: list[Scalar]  # beside which its pivots are compared with rounding
    pulls: Matrix  # Jᵀ or J_gᵀ: a row per degree of freedom
    moved: Callable[[Vector], list[Scalar]]  # x -> J M⁻¹ x


def task_torques(
    tree: Tree,
    q: Vector,
    v: Vector,
    rows: Rows,
    u: Vector,
    w: Vector,
    beside: Beside = NOTHING,
    damping: Vector = (),
    passive: Sequence[int] = (),
) -> Found:
    """The law: accelerations u and forces w have a number per row."""
    grouped = regroup(tree)
    M = crba(grouped, q)
    mobility = _with_passive(M, rows.columns, passive) if passive else _mobility(tree, M, rows)
    if beside.accelerations is not None and not passive:
        tau = rnea(grouped, q, v, beside.accelerations)
        pushed = [-x for x in combined(rows.columns, beside.accelerations, len(u))]
    else:
        tau = [0.0] * tree.nv if beside.torques is None else list(beside.torques)
        tau = [0.0 if j in passive else x for j, x in enumerate(tau)]
        b = bias(grouped, q, v)
        pushed = mobility.moved([x - t for x, t in zip(b, tau, strict=True)])
    wanted = [a - c + p for a, c, p in zip(u, rows.drift, pushed, strict=True)]
    factors, part = _damped(mobility.inverse, damping) if damping else _plain(mobility)
    force = [x + y for x, y in zip(ldl.solve(factors, wanted), w, strict=True)]
    pulled = [dot(row, force) for row in mobility.pulls]
    return Found([t + p for t, p in zip(tau, pulled, strict=True)], force, part)


def combined(columns: Mapping[int, Vector], x: Vector, size: int) -> list[Scalar]:
    """``J x``."""
    total: list[Scalar] = [0.0] * size
    for j, column in columns.items():
        total = [a + b * x[j] for a, b in zip(total, column, strict=True)]
    return total


def _mobility(tree: Tree, M: Matrix, rows: Rows) -> Mobility:
    size, factors = len(rows.drift), ltl.factor(M, tree.dof_parent)
    Y = ltl.reached(factors, rows.columns, size)
    inverse = square(list(Y.values()), [factors.inv_d[j] for j in Y])
    pulls = [rows.columns.get(j, [0.0] * size) for j in range(tree.nv)]

    def moved(x: Vector) -> list[Scalar]:
        weighed = [a * d for a, d in zip(ltl.inward(factors, x), factors.inv_d, strict=True)]
        return combined(Y, weighed, size)

    return Mobility(inverse, _diagonal(inverse), pulls, moved)


def _with_passive(
    M: Matrix, columns: Mapping[int, list[Scalar]], passive: Sequence[int]
) -> Mobility:
    size = len(next(iter(columns.values())))
    order = [*passive, *(j for j in range(len(M)) if j not in passive)]
    ordered = [[M[i][j] for j in order] for i in order]
    L, inv_d = ldl.factor(ordered, [row[k] for k, row in enumerate(ordered)])
    Y = ldl.forward(L, [columns.get(j, [0.0] * size) for j in order])
    inverse = square(Y[len(passive) :], inv_d[len(passive) :])
    # Y_m is what reactions leave of J: rounding of what they take is squared here
    tiny = ROUNDING * rounding(inv_d[0])
    whole = zip(_diagonal(square(Y, inv_d)), _diagonal(inverse), strict=True)
    scale = [own + tiny * full for full, own in whole]

    def moved(x: Vector) -> list[Scalar]:
        half = ldl.forward(L, [[x[j]] for j in order])
        weighed = [row[0] * d for row, d in zip(half, inv_d, strict=True)]
        return combined(dict(enumerate(Y)), weighed, size)

    return Mobility(inverse, scale, reactions(M, passive, columns), moved)


def _plain(mobility: Mobility) -> tuple[tuple[Matrix, list[Scalar]], Scalar]:
    """Factors of J M⁻¹ Jᵀ; a pivot that is zero to rounding counts as zero."""
    return ldl.factor(mobility.inverse, mobility.scale, _certain), 0.0


def _certain(pivot: Scalar, scale: Scalar) -> Scalar:
    sure = pivot - ROUNDING * rounding(pivot) * scale
    return reciprocal(select(sure, pivot, 0.0), scale)


def _damped(inverse: Matrix, damping: Vector) -> tuple[tuple[Matrix, list[Scalar]], Scalar]:
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
    return ldl.factor(soft, _diagonal(soft)), part


def _diagonal(A: Matrix) -> list[Scalar]:
    return [row[k] for k, row in enumerate(A)]
