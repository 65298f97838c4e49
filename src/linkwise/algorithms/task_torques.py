"""Torques that make rows of a frame's motion accelerate as wanted: operational-space control.

    Γ = Jᵀ (Λ (u + J M⁻¹ b - J̇ q̇) + w) + (1 - Jᵀ Λ J M⁻¹) τ,      Λ = (J M⁻¹ Jᵀ)⁻¹

[Khatib 1987], with b = C q̇ + g. J has any rows of the frame's Jacobian; u is their acceleration, w
a force that acts in them besides, and τ acts where it moves none of them. For ``M q̈ = Γ - b`` gives
``J q̈ + J̇ q̇ = u + J M⁻¹ Jᵀ w``: the projector's part drops out, since ``J M⁻¹ (1 - Jᵀ Λ J M⁻¹)``
is zero. Collected by τ, as it is computed here, the law needs one solve with Λ:

    Γ = τ + Jᵀ F,      F = Λ (u - J̇ q̇ + J M⁻¹ (b - τ)) + w

M is factored once, and neither M⁻¹ nor Λ is formed (``yielding.py``); ``softening.py`` has damping
near singular poses. Torques that are given as the accelerations a they are for, τ = M a + b, need
no solve: ``J M⁻¹ (b - τ) = - J a``.

Passive joints have no motor. The law is then that of ``reaction.py``: J_g takes the place of J and
M_r that of M, but for J M⁻¹ (b - τ), which is the acceleration of the whole robot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from linkwise.algorithms import ldl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import bias, rnea
from linkwise.algorithms.softening import damped, plain
from linkwise.algorithms.yielding import combined, mobility, mobility_beside
from linkwise.model.regroup import regroup
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector


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
    external: External = (),
) -> Found:
    """The law: accelerations u and forces w have a number per row; wrenches from outside that are
    known are a part of b.
    """
    grouped = regroup(tree)
    M = crba(grouped, q)
    J, size = rows.columns, len(u)
    moves = mobility_beside(tree, M, J, size, passive) if passive else mobility(tree, M, J, size)
    if beside.accelerations is not None and not passive:
        tau = rnea(grouped, q, v, beside.accelerations, external=external)
        pushed = [-x for x in combined(J, beside.accelerations, len(u))]
    else:
        tau = [0.0] * tree.nv if beside.torques is None else list(beside.torques)
        if beside.accelerations is not None:
            tau = rnea(grouped, q, v, beside.accelerations, external=external)
        tau = [0.0 if j in passive else x for j, x in enumerate(tau)]
        b = bias(grouped, q, v, external=external)
        pushed = moves.moved([x - t for x, t in zip(b, tau, strict=True)])
    wanted = [a - c + p for a, c, p in zip(u, rows.drift, pushed, strict=True)]
    known = moves.inverse, moves.scale
    factors, part = damped(moves.inverse, damping) if damping else plain(*known)
    force = [x + y for x, y in zip(ldl.solve(factors, wanted), w, strict=True)]
    pulled = [dot(row, force) for row in moves.pulls]
    return Found([t + p for t, p in zip(tau, pulled, strict=True)], force, part)
