"""Wrenches across the joints, and what they are on the links.

    F = H tau + W x,      P F = F - Σ F_children                                    [24, 29]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. ``F`` is the wrench
across a joint, split into what its motors give (H) and what it withstands (W). The joint pushes its
link with F and the parent with the opposite.

A column with a rotor, ``tau = Hᵀ F + r qdd``, joins W as ``H r`` with unknown ``-qdd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import at_links, each_link, tip_to_base

Row = dict[int, float]  # torques by column


class JointWrenches(NamedTuple):
    """The wrenches that a joint can bear: F = drive tau + hold x."""

    J: JointState
    drive: tuple[Force, ...]
    hold: tuple[Force, ...]
    rotors: tuple[Scalar, ...]  # r, one per wrench of hold; zero but for rotors
    geared: dict[int, int]  # column -> its rotor's place in hold


def wrenches(link: Link, q: Vector) -> JointWrenches:
    """The joint at a configuration; a column with a rotor is an unknown of its own."""
    drive, hold = link.joint.directions(q)
    rotors = tuple(link.armature[k] for k in link.geared)
    more = tuple(drive[k] * rotor for k, rotor in zip(link.geared, rotors, strict=True))
    places = {k: len(hold) + at for at, k in enumerate(link.geared)}
    all_rotors = (0.0,) * len(hold) + rotors
    return JointWrenches(link.joint_state(q), drive, hold + more, all_rotors, places)


def combined(directions: Sequence[Force], amounts: Vector) -> Force:
    """Directions times amounts, added up."""
    total = Force.zero()
    for f, x in zip(directions, amounts, strict=True):
        total = total + f * x
    return total


def driven(_link: Link, p: JointWrenches, torques: Vector) -> Force:
    """``H tau``: the wrench of a joint's motors."""
    return combined(p.drive, torques)


def held(_link: Link, p: JointWrenches, F: Force, x: Vector) -> Force:
    """``H tau + W x``, from ``H tau``."""
    return F + combined(p.hold, x)


def net(
    _link: Link, children: Force, p: JointWrenches, F: Force, load: Force
) -> tuple[Force, Force]:
    """``P F - load``, the wrench left to accelerate a link; and its joint's, at the parent."""
    return F - children - load, p.J.X.force_back(F)


def touch(_link: Link, children: bool, numbers: range, row: Row) -> tuple[bool, bool]:
    """Whether torques put a wrench on a link: at its own joint, or at a child's."""
    acts = any(c in row for c in numbers)
    return acts or children, acts


def pushed(tree: Tree, joints: list[JointWrenches], row: Row) -> dict[int, Force]:
    """Wrenches that torques put on the links at both sides of their joints, by link."""
    torques = tree.per_link_v([row.get(c, 0.0) for c in range(tree.nv)])
    F = each_link(tree, driven, joints, torques)
    left, _ = tip_to_base(tree, net, Force.zero(), joints, F, at_links(tree, Force.zero(), ()))
    touched, _ = tip_to_base(tree, touch, False, tree.column_numbers, [row] * len(F))
    return {k: f for k, f in enumerate(left) if touched[k]}
