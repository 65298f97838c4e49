"""Wrenches between bodies: which joints push which links, and what they do to one another.

    A = Wᵀ Pᵀ I⁻¹ P W                                                                   [39]
    A_ii = W_iᵀ (I_i⁻¹ + P̂ᵀ I_parent⁻¹ P̂) W_i,   A_ij = -W_iᵀ I_i⁻¹ P̂ W_j           [52, 53]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A joint pushes its link
with ``W x`` and its parent with the opposite, so A couples joints that share a link, and is a sum
over links. The base has no term. A chain's A is block tridiagonal, with blocks
of 6 - k for a joint of k columns; siblings of a tree couple as well; a free joint has no block.

A column with a rotor, ``tau = Hᵀ F + r qdd``, joins W as ``H r`` with unknown ``-qdd`` and ``r`` on
the diagonal. A joint that follows another adds a block of one, the torque of their tie.

Every link needs an inertia that has an inverse. A link on the base may lack what its joint never
moves (a turret of which only the moment about its axis is known): any such part will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import blocks, dense
from linkwise.algorithms.blocks import Block
from linkwise.algorithms.mobility import Mobility, mobility_of
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Motion, Scalar, Vector
from linkwise.sweep import at_links, each_link, sum_links, tip_to_base

Order = Callable[[blocks.Matrix], list[int]]
Pushes = tuple[tuple[int, tuple[Force, ...]], ...]  # (joint, wrenches it can put on one link)


class JointWrenches(NamedTuple):
    """Those that a joint can bear: F = drive tau + hold x."""

    J: JointState
    drive: tuple[Force, ...]
    hold: tuple[Force, ...]
    rotors: tuple[Scalar, ...]  # beside A's diagonal, one per hold; zero but for rotors
    geared: dict[int, int]  # column -> its rotor's place in hold


class System(NamedTuple):
    """The joints, the wrenches each can put on each link, and the factors of A."""

    tree: Tree
    joints: list[JointWrenches]
    mobilities: list[Mobility | None]
    pushes: list[Pushes]
    A: blocks.Matrix
    factors: blocks.Factors

    def nothing(self, size: int) -> blocks.Columns:
        """Right-hand sides of zeros."""
        return {i: dense.zero(len(B), size) for (i, j), B in self.A.items() if i == j}


def wrenches(link: Link, q: Vector) -> JointWrenches:
    """The joint at a configuration; a column with a rotor is an unknown of its own."""
    drive, hold = link.joint.directions(q)
    rotors = tuple(link.armature[k] for k in link.geared)
    more = tuple(drive[k] * rotor for k, rotor in zip(link.geared, rotors, strict=True))
    places = {k: len(hold) + at for at, k in enumerate(link.geared)}
    return JointWrenches(
        link.joint_state(q), drive, hold + more, (0.0,) * len(hold) + rotors, places
    )


def couple(_link: Link, children: Pushes, i: int, p: JointWrenches) -> tuple[Pushes, Pushes]:
    """Who pushes a link: its own joint, and its children's joints the other way."""
    back = tuple(p.J.X.force_back(f) * -1.0 for f in p.hold)
    return (((i, p.hold),) if p.hold else ()) + children, ((i, back),) if p.hold else ()


def powers(forces: Sequence[Force], motions: Sequence[Motion]) -> Block:
    """Power of each force along each motion."""
    return [[m.dot(f) for m in motions] for f in forces]


def add_rotors(_link: Link, A: blocks.Matrix, i: int, p: JointWrenches) -> blocks.Matrix:
    """Add a joint's diagonal block to A: its rotors, else zeros."""
    own = {(i, i): dense.scaled(dense.unit(len(p.hold)), p.rotors)} if p.hold else {}
    return A | own


def add_link(
    _link: Link, A: blocks.Matrix, here: Pushes, inverse: Mobility | None
) -> blocks.Matrix:
    """Add the terms of one link to A: joints that push it accelerate one another through I⁻¹."""
    total = dict(A)
    for j, forces in here if inverse else ():
        motions = [inverse @ f for f in forces] if inverse else []
        for i, others in here:
            if i >= j:
                block = powers(others, motions)
                total[i, j] = dense.plus(total[i, j], block) if (i, j) in total else block
    return total


def system(tree: Tree, q: Vector, order: Order, without: int | None = None) -> System:
    """A and its factors; ``without`` the inertia of one link, if asked for."""
    loose = tree.uncoupled()
    joints = each_link(loose, wrenches, tree.per_link_q(q))
    numbers = range(len(joints))
    pushes, _ = tip_to_base(loose, couple, (), numbers, joints)
    for t, row in enumerate(tree.projection.ties()):
        for k, force in pushed(loose, joints, row).items():
            pushes[k] = (*pushes[k], (-1 - t, (force,)))  # numbered to come last
    own = each_link(tree, lambda k, i: None if i == without else mobility_of(k), numbers)
    rotors = sum_links(loose, add_rotors, {}, numbers, joints)
    A = sum_links(loose, add_link, rotors, pushes, own)
    return System(loose, joints, own, pushes, A, blocks.factor(A, order(A)))


def net(
    _link: Link, children: Force, p: JointWrenches, F: Force, load: Force
) -> tuple[Force, Force]:
    """``P F - b``, the wrench left to accelerate a link; and that of its joint on the parent."""
    return F - children - load, p.J.X.force_back(F)


def combined(directions: Sequence[Force], amounts: Vector) -> Force:
    """Directions times amounts, added up."""
    total = Force.zero()
    for f, x in zip(directions, amounts, strict=True):
        total = total + f * x
    return total


def driven(_link: Link, p: JointWrenches, torques: Vector) -> Force:
    """``H tau``: the wrench of a joint's motors."""
    return combined(p.drive, torques)


def touch(_link: Link, children: bool, numbers: range, row: dict[int, float]) -> tuple[bool, bool]:
    """Whether torques (by column) put a wrench on a link: at its own joint, or at a child's."""
    acts = any(c in row for c in numbers)
    return acts or children, acts


def pushed(tree: Tree, joints: list[JointWrenches], row: dict[int, float]) -> dict[int, Force]:
    """Wrenches that torques (by column) put on the links on both sides of their joints."""
    torques = tree.per_link_v([row.get(c, 0.0) for c in range(tree.nv)])
    F = each_link(tree, driven, joints, torques)
    left, _ = tip_to_base(tree, net, Force.zero(), joints, F, at_links(tree, Force.zero(), ()))
    touched, _ = tip_to_base(tree, touch, False, tree.column_numbers, [row] * len(F))
    return {k: f for k, f in enumerate(left) if touched[k]}


def response(s: System, loads: dict[int, list[Force]]) -> Block:
    """``D - Eᵀ A⁻¹ E``: power of each load along the motion that each causes.

    ``loads[k]`` are the wrenches on link k of all loads, one each.
    """
    size = len(next(iter(loads.values())))
    D = dense.zero(size, size)
    E = s.nothing(size)
    for k, forces in loads.items():
        inverse = s.mobilities[k]
        motions = [inverse @ f for f in forces] if inverse else []
        D = dense.plus(D, powers(forces, motions))
        for j, own in s.pushes[k]:
            E[j] = dense.plus(E[j], powers(own, motions))
    return dense.minus(dense.mirrored(D), blocks.form(s.factors, E, size))
