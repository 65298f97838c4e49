"""Arms without the object that they hold: what they do at its contacts, and under their forces.

tip -> base   handles   joints eliminated, as in aba.py
tip -> base   Ω, free   accelerations along what contacts hold, per unit force and without any
                        (pv.py, with forces on the arms' side only)
base -> tip   qdd       under given contact forces
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from linkwise.algorithms import dense
from linkwise.algorithms.aba import NOTHING, Handle, accelerate, articulate
from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.closures import Seam
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.passing import Bundle, Felt, pass_on
from linkwise.algorithms.pv import Sums, add, push
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.model.tree import BASE, Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector
from linkwise.sweep import at_links, base_to_tip, each_link, sum_links, tip_to_base


class Arms(NamedTuple):
    """The arms without the object, and what they do at its contacts."""

    moving: list[Velocity]
    handles: list[list[Handle]]
    felt: list[Felt]
    sums: Sums


def pushes(contacts: Sequence[Seam]) -> list[tuple[int, Bundle]]:
    """Unit forces of the contacts on the arms, by link."""
    found, first = [], 0
    for x in contacts:
        found.append((x.closure.a.link, Bundle(enumerate(x.on_link_a(), first))))
        first += x.closure.rank
    return found


def arms_of(
    arms: Tree,
    q: Vector,
    qd: Vector,
    tau: Vector,
    known: Vector,
    own: list[tuple[int, Bundle]],
    external: External,
) -> Arms:
    """The arms by themselves: two sweeps inward."""
    q_, qd_, tau_ = arms.per_link_q(q), arms.per_link_v(qd), arms.per_link_v(tau)
    moving = base_to_tip(arms, turn, STILL, q_, qd_)
    driven, ext = each_link(arms, drive, tau_, qd_), external_forces(arms, q, external)
    handles, _ = tip_to_base(arms, articulate, NOTHING, moving, ext, driven)
    at = at_links(arms, Bundle(), own)
    felt, at_base = tip_to_base(arms, pass_on, Bundle(), at, moving, handles)
    base = Motion(Vec3.zero(), arms.base_acceleration)
    fixed = sum((bundle for i, bundle in own if i == BASE), at_base)
    start = [x + base.dot(fixed[k]) for k, x in enumerate(known)]
    sums = Sums(dense.zero(len(known), len(known)), start, [0.0] * len(known))
    sums = sum_links(arms, add, sums, felt, handles, moving, inward=True)
    return Arms(moving, handles, felt, sums)


def corrected(arms: Tree, found: Arms, f: Vector) -> list[Scalar]:
    """Joint accelerations of the arms under the forces of their contacts."""
    pushed = each_link(arms, partial(push, f), found.handles, found.felt)
    base = Acceleration(Motion(Vec3.zero(), arms.base_acceleration), [])
    return joint_accelerations(arms, base_to_tip(arms, accelerate, base, found.moving, pushed))
