"""Forward dynamics from the forces between bodies: Schur complements.

    F = H tau + W f                                                                [24, 29]
    A f = -Wᵀ g(H tau)                                                                 [35]
    qdd = Hᵀ g(F)                                                                  [32, 37]

[Fijany, Djouani, Fried and Pontnau, corrected; numbers in brackets are its equations]. ``F`` is the
wrench across each joint, split into what its motors give (H) and what it withstands (W); A is that
of ``interbody.py``. ``g(F) = Pᵀ I⁻¹ (P F - b) - a`` is how links accelerate across their joints
under wrenches F; the paper's has neither bias b nor velocity products a. Two sweeps:

    tip -> base   P F - b   the wrench that is left to accelerate each link
    base -> tip   Pᵀ V̇ - a  its acceleration I⁻¹ (P F - b) beside its parent's, across the joint

    "schur"             A by block LDLᵀ from the tips inward                           [O(n)]
    "schur-bcr"         A by block cyclic reduction                  [O(log n) rounds of blocks]
    "schur-published"   as the paper: the bias is subtracted from tau first, then as "schur"

The published form loses digits on long chains, where the bias is much larger than what it leaves.

    M⁻¹ = C - Bᵀ A⁻¹ B,   B = Wᵀ Pᵀ I⁻¹ P H,   C = Hᵀ Pᵀ I⁻¹ P H                       [39]

Digits are lost as I⁻¹ is larger than M⁻¹: docs/papers/schur.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms import blocks
from linkwise.algorithms.aba import Velocity, turn
from linkwise.algorithms.blocks import Block
from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.interbody import Order, Port, System, net, pushed, response, spread, system
from linkwise.algorithms.rates import NO_JOINT
from linkwise.algorithms.rnea import bias
from linkwise.algorithms.tied import independent, tied
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, Motion, Scalar, Vec3
from linkwise.sweep import base_to_tip, tip_to_base


class Apart(NamedTuple):
    """Acceleration of a link, and how it differs across its joint."""

    a: Motion
    gap: Motion


def part(_link: Link, parent: Apart, p: Port, a: Motion, c: Motion) -> Apart:
    """``Pᵀ V̇ - a``: acceleration across a joint, velocity products taken off [27]."""
    return Apart(a, a - p.J.X.motion(parent.a) - c)


def gaps(s: System, velocities: list[Velocity], loads: list[Force], F: list[Force]) -> list[Motion]:
    """``g(F)``: accelerations across the joints under wrenches F."""
    left, _ = tip_to_base(s.tree, net, Force.zero(), s.ports, F, loads)
    a = [own @ f for own, f in zip(s.mobilities, left, strict=True) if own]
    base = Apart(Motion(Vec3.zero(), s.tree.base_acceleration), Motion.zero())
    states = base_to_tip(s.tree, part, base, s.ports, a, [v.c for v in velocities])
    return [state.gap for state in states]


def accelerations(
    s: System,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External = (),
) -> tuple[list[Scalar], list[Force]]:
    """``qdd``, and the wrench across each joint."""
    tree, ports = s.tree, s.ports
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    still = Velocity(NO_JOINT, Vec3.zero(), Mat3.zero(), Motion.zero(), Force.zero())
    velocities = base_to_tip(tree, turn, still, q_, qd_)
    ext = external_forces(tree, q_, external)
    loads = [v.p - e for v, e in zip(velocities, ext, strict=True)]
    lost = [link.resistance(rates) for link, rates in zip(tree.links, qd_, strict=True)]
    driven = [
        spread(p.drive, [t - x for t, x in zip(*own, strict=True)])
        for p, *own in zip(ports, tau_, lost, strict=True)
    ]
    first = gaps(s, velocities, loads, driven)
    b = {i: [[-g.dot(f)] for f in ports[i].hold] for i, g in enumerate(first) if ports[i].hold}
    solved = blocks.solve(s.factors, b)
    x = [[row[0] for row in solved.get(i, [])] for i in range(len(ports))]
    F = [f + spread(p.hold, own) for f, p, own in zip(driven, ports, x, strict=True)]
    rates = zip(ports, gaps(s, velocities, loads, F), x, strict=True)
    return [qdd for p, g, own in rates for qdd in joint_rates(p, g, own)], F


def joint_rates(p: Port, gap: Motion, x: Sequence[Scalar]) -> list[Scalar]:
    """``Hᵀ g`` [37], or the rotor's own unknown."""
    return [-x[p.geared[k]] if k in p.geared else gap.dot(f) for k, f in enumerate(p.drive)]


def _forward(
    tree: Tree,
    order: Order,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External,
) -> list[Scalar]:
    def alone(tree: Tree, q: Sequence[Scalar], *rest: Sequence[Scalar]) -> list[Scalar]:
        s = system(tree, q, order)
        return accelerations(s, q, *rest)[0]

    return tied(tree, alone, q, qd, tau, external)


def forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Joint accelerations, A by block LDLᵀ."""
    return _forward(tree, blocks.one_by_one, q, qd, tau, external)


def forward_dynamics_bcr(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Joint accelerations, A by block cyclic reduction."""
    return _forward(tree, blocks.every_other, q, qd, tau, external)


def forward_dynamics_published(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """The paper's form, for study: ``M⁻¹ (tau - bias)`` [21]."""
    load = bias(tree, q, qd, external=external)
    left = [t - b for t, b in zip(tau, load, strict=True)]
    return forward_dynamics(tree.without_gravity(), q, [0.0] * tree.nv, left)


def mass_matrix_inverse(tree: Tree, q: Sequence[Scalar]) -> Block:
    """``C - Bᵀ A⁻¹ B`` [39]."""
    s = system(tree, q, blocks.one_by_one)
    columns = [pushed(s.tree, s.ports, {i: 1.0}) for i in independent(tree, s.tree)]
    touched = {k for column in columns for k in column}
    loads = {k: [column.get(k, Force.zero()) for column in columns] for k in sorted(touched)}
    return response(s, loads)
