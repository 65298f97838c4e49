"""Rows of a frame's motion on a robot with closed loops: how they accelerate, and yield to torques.

    M q̈ + b = Γ + Aᵀ λ,   A q̈ + Ȧ q̇ = 0            loops take what they hold

Without λ: with ``Ω = A M⁻¹ Aᵀ`` and ``K_c = K - (K M⁻¹ Aᵀ) Ω⁻¹ A``, the rows K less what loops
undo,

    K q̈ + K̇ q̇ = K_c M⁻¹ (Γ - b) + K̇ q̇ - (K M⁻¹ Aᵀ) Ω⁻¹ Ȧ q̇

Ω, K M⁻¹ Aᵀ and K M⁻¹ Kᵀ are from one factorization of M, with the rows of A and K side by side.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense, ldl, ltl
from linkwise.algorithms.closed_ltl import jacobian_columns
from linkwise.algorithms.closure_rates import drifts
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.task_torques import Rows
from linkwise.algorithms.yielding import reached
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector


class HeldRows(NamedTuple):
    """Rows of a frame's motion, with loops closed."""

    factors: ltl.Factors  # of M
    acceleration: list[Scalar]  # under the torques that are given
    inverse: Matrix  # K_c M⁻¹ Kᵀ, how they yield
    scale: list[Scalar]  # beside which its pivots are compared with rounding
    left: Matrix  # K_c, a column per degree of freedom


def held_rows(tree: Tree, M: Matrix, q: Vector, v: Vector, rows: Rows, driven: Vector) -> HeldRows:
    """Rows at a state, under torques less bias."""
    closed, held = seams(tree, q), tree.n_constraints
    factors = ltl.factor(M, tree.dof_parent)
    A, most = jacobian_columns(tree, q, closed)
    none, nothing = [0.0] * held, [0.0] * len(rows.drift)
    columns = [[*A.get(j, none), *rows.columns.get(j, nothing)] for j in range(tree.nv)]
    size = held + len(nothing)
    both = {j: [*column, x] for j, (column, x) in enumerate(zip(columns, driven, strict=True))}
    Y = reached(factors, both, size + 1)
    gram = dense.square(list(Y.values()), [factors.inv_d[j] for j in Y])
    bounds = dense.scaled(list(most.values()), [factors.inv_d[j] for j in most])
    scale = [dense.dot(column, [1.0] * len(most)) for column in zip(*bounds, strict=True)]
    omega = Factors(*ldl.factor_independent([row[:held] for row in gram[:held]], scale))
    own = [(row[:held], row[held:size], row[size]) for row in gram[held:size]]
    undone = [omega.solve(met) for met, _, _ in own]  # Ω⁻¹ A M⁻¹ Kᵀ, by rows of K
    apart = [gram[k][size] + x for k, x in enumerate(drifts(tree, q, v, closed))]
    inverse = [[x - dense.dot(met, z) for x, z in zip(row, undone, strict=True)]
               for met, row, _ in own]  # fmt: skip
    moved = [
        x + d - dense.dot(z, apart) for (_, _, x), d, z in zip(own, rows.drift, undone, strict=True)
    ]
    left = [[x[held + k] - dense.dot(x[:held], z) for x in columns] for k, z in enumerate(undone)]
    return HeldRows(factors, moved, inverse, [row[k] for k, (_, row, _) in enumerate(own)], left)
