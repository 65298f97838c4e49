"""Operational-space control of robots with closed loops.

    Γ = τ + Kᵀ F,    F = Λ (u - a) + w,    Λ = (K_c M⁻¹ Kᵀ)⁻¹

as in ``task_torques.py``, with K the rows of the frame's motion and a their acceleration under τ:
``closed_rows.py`` has both a and Λ⁻¹ with the loops closed, and they are linear in torques as those
of an open robot are. Where joints have no motor, N has the columns of K_c M⁻¹ of the others; of all
torques of motors that do it, those are taken whose sum of squares, each over its own diagonal entry
of M, is the least:

    Γ = τ + D Nᵀ (N D Nᵀ)⁻¹ (u - a + Λ⁻¹ w)          D the diagonal of M

Where loops hold a row, or motors cannot move it, a pivot says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import dense, ldl, ltl
from linkwise.algorithms.closed_rows import HeldRows, held_rows
from linkwise.algorithms.crba import crba
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import bias, rnea
from linkwise.algorithms.softening import damped, plain
from linkwise.algorithms.task_torques import NOTHING, Beside, Found, Rows
from linkwise.algorithms.yielding import diagonal
from linkwise.model.regroup import regroup
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector


def closed_task_torques(
    tree: Tree,
    q: Vector,
    v: Vector,
    rows: Rows,
    u: Vector,
    w: Vector,
    beside: Beside = NOTHING,
    damping: Vector = (),
    passive: Sequence[int] = (),
    external: External = (),
) -> Found:
    """The law: accelerations u and forces w have a number per row."""
    grouped = regroup(tree)
    M, b = crba(grouped, q), bias(grouped, q, v, external=external)
    tau = _posture(grouped, q, v, beside, passive, external)
    found = held_rows(tree, M, q, v, rows, [t - x for t, x in zip(tau, b, strict=True)])
    wanted = [x - y for x, y in zip(u, found.acceleration, strict=True)]
    if passive:
        return _by_motors(found, diagonal(M), tau, wanted, w, damping, passive)
    factors, part = damped(found.inverse, damping) if damping else plain(found.inverse, found.scale)
    force = [x + y for x, y in zip(ldl.solve(factors, wanted), w, strict=True)]
    pulls = {j: dense.dot(column, force) for j, column in rows.columns.items()}
    return Found([t + pulls.get(j, 0.0) for j, t in enumerate(tau)], force, part)


def _by_motors(
    found: HeldRows,
    weights: Vector,
    tau: list[Scalar],
    wanted: list[Scalar],
    w: Vector,
    damping: Vector,
    passive: Sequence[int],
) -> Found:
    """The least torques of the joints that have a motor."""
    N = [ltl.solve(found.factors, row) for row in found.left]
    N = [[0.0 if j in passive else x for j, x in enumerate(row)] for row in N]
    able: Matrix = dense.square(dense.transpose(N), weights)
    factors, part = damped(able, damping) if damping else plain(able, found.scale)
    asked = [x + dense.dot(row, w) for x, row in zip(wanted, found.inverse, strict=True)]
    force = ldl.solve(factors, asked)
    own = [dense.dot(x, force) * d for x, d in zip(zip(*N, strict=True), weights, strict=True)]
    return Found([t + x for t, x in zip(tau, own, strict=True)], force, part)


def _posture(
    tree: Tree,
    q: Vector,
    v: Vector,
    beside: Beside,
    passive: Sequence[int],
    external: External,
) -> list[Scalar]:
    """The torques τ, none where there is no motor."""
    tau = [0.0] * tree.nv if beside.torques is None else list(beside.torques)
    if beside.accelerations is not None:
        tau = rnea(tree, q, v, beside.accelerations, external=external)
    return [0.0 if j in passive else x for j, x in enumerate(tau)]
