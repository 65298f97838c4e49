"""How links accelerate across their joints, under given wrenches at the joints.

    g(F) = Pᵀ I⁻¹ (P F - b) - a                                                        [27, 32]

[Fijany, Djouani, Fried and Pontnau, corrected; numbers in brackets are its equations]. F is the
wrench across each joint (pushes.py); the paper's g has neither bias b nor velocity products a. Two
sweeps:

    tip -> base   P F - b   the wrench that is left to accelerate each link
    base -> tip   Pᵀ V̇ - a  its acceleration I⁻¹ (P F - b) beside its parent's, across the joint
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.interbody import System
from linkwise.algorithms.mobility import Mobility
from linkwise.algorithms.pushes import JointWrenches, net
from linkwise.algorithms.rates import Velocity
from linkwise.model.tree import Link
from linkwise.spatial import Force, Motion, Vec3
from linkwise.sweep import base_to_tip, each_link, tip_to_base


class Apart(NamedTuple):
    """Acceleration of a link, and how it differs across its joint."""

    a: Motion
    gap: Motion


def part(
    _link: Link, parent: Apart, p: JointWrenches, own: Mobility, f: Force, m: Velocity
) -> Apart:
    """``Pᵀ V̇ - a``: acceleration across a joint, velocity products taken off [27]."""
    a = own @ f
    return Apart(a, a - p.J.X.motion(parent.a) - m.c)


def across(_link: Link, state: Apart) -> Motion:
    """The part of a link's state that is asked for."""
    return state.gap


def gaps(s: System, velocities: list[Velocity], loads: list[Force], F: list[Force]) -> list[Motion]:
    """``g(F)``: accelerations across the joints under wrenches F."""
    left, _ = tip_to_base(s.tree, net, Force.zero(), s.joints, F, loads)
    base = Apart(Motion(Vec3.zero(), s.tree.base_acceleration), Motion.zero())
    states = base_to_tip(s.tree, part, base, s.joints, s.mobilities, left, velocities)
    return each_link(s.tree, across, states)
