"""Closed loops by one more sweep of the articulated-body algorithm.

    tip -> base   ε = Sᵀ K,   K <- X* (K - U D⁻¹ ε)                for each direction of a loop
    sums          Ω = Σ ε D⁻¹ εᵀ,    free = Σ (ε D⁻¹ u + Kᵀ c) + Kᵀ a_base
    base -> tip   a, qdd  as in aba.py, with u + ε λ in place of u

[Popov, Vereshchagin and Zenkevich 1978; the recursion for Ω: Sathya, Bruyninckx, Decré and
Pipeleers 2022, PV-OSIM]; derived in passing.py. A force λ adds K λ to the forces on the link, and
so ε λ to u. Directions of loops that do not pass a joint cost nothing there.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from linkwise.algorithms.aba import NOTHING, Handle, accelerate, articulate
from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.closure_rates import products
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Constrained
from linkwise.algorithms.dense import dot, mirrored, zero
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.passing import Bundle, Felt, pass_on, wrenches
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vec3, Vector
from linkwise.sweep import at_links, base_to_tip, each_link, sum_links, tip_to_base


class Sums(NamedTuple):
    """Sums over the joints, by direction."""

    inverse: Matrix  # Ω, its lower half
    free: list[Scalar]
    scale: list[Scalar]


def add(_link: Link, sums: Sums, felt: Felt, handles: list[Handle], m: Velocity) -> Sums:
    """A joint's part of Ω, of the free acceleration, and of what Ω could be at most."""
    for k, own in felt.epsilons.items():
        weighed = [e * h.inv_d for e, h in zip(own, handles, strict=True)]
        for j, other in felt.epsilons.items():
            if j <= k:
                sums.inverse[k][j] = sums.inverse[k][j] + dot(weighed, other)
        driven = dot(weighed, [h.u for h in handles])
        sums.free[k] = sums.free[k] + driven + m.c.dot(felt.rest[k])
        sums.scale[k] = sums.scale[k] + felt.size[k]
    return sums


def push(
    forces: Vector | dict[int, Scalar], _link: Link, handles: list[Handle], felt: Felt
) -> list[Handle]:
    """The joint's columns with the forces of the loops among what drives them."""
    for k, own in felt.epsilons.items():
        pairs = zip(handles, own, strict=True)
        handles = [h._replace(u=h.u + e * forces[k]) for h, e in pairs]
    return handles


def constrained(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> Constrained:
    """Closed loops at a state, of a tree whose joints all move on their own."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    moving = base_to_tip(tree, turn, STILL, q_, qd_)
    ext, driven = external_forces(tree, q, external), each_link(tree, drive, tau_, qd_)
    handles, _ = tip_to_base(tree, articulate, NOTHING, moving, ext, driven)
    closed = seams(tree, q)
    pushes = wrenches(closed)
    own = at_links(tree, Bundle(), pushes)
    felt, at_base = tip_to_base(tree, pass_on, Bundle(), own, moving, handles)
    base = Motion(Vec3.zero(), tree.base_acceleration)
    held = sum((bundle for i, bundle in pushes if i == BASE), at_base)
    known = products(tree, q, qd, closed, moving)
    start = [x + base.dot(held[k]) for k, x in enumerate(known)]
    sums = Sums(zero(len(known), len(known)), start, [0.0] * len(known))
    sums = sum_links(tree, add, sums, felt, handles, moving, inward=True)

    def released(forces: Vector) -> list[Scalar]:
        pushed = each_link(tree, partial(push, forces), handles, felt)
        states = base_to_tip(tree, accelerate, Acceleration(base, []), moving, pushed)
        return joint_accelerations(tree, states)

    return Constrained(closed, mirrored(sums.inverse), sums.scale, sums.free, released)
