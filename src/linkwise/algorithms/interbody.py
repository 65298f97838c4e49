"""What the wrenches across joints do to one another: the matrix A of Schur complements.

    A = Wᵀ Pᵀ I⁻¹ P W                                                                   [39]
    A_ii = W_iᵀ (I_i⁻¹ + P̂ᵀ I_parent⁻¹ P̂) W_i,   A_ij = -W_iᵀ I_i⁻¹ P̂ W_j           [52, 53]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A joint pushes its link
with ``W x`` and its parent with the opposite (pushes.py), so A couples joints that share a link,
and is a sum over links. The base has no term. A chain's A is block tridiagonal, with blocks of
6 - k for a joint of k columns; siblings of a tree couple as well; a free joint has no block.

A rotor adds its inertia to the diagonal. A joint that follows another adds a block of one, the
torque of their tie. Every link needs an inertia that has an inverse (mobility.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

from linkwise.algorithms import blocks, dense
from linkwise.algorithms.blocks import Block
from linkwise.algorithms.mobility import Mobility, mobility_of
from linkwise.algorithms.orders import Order
from linkwise.algorithms.pushes import JointWrenches, pushed, wrenches
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Motion, Vector
from linkwise.sweep import each_link, tip_to_base

Pushes = tuple[tuple[int, tuple[Force, ...]], ...]  # (joint, wrenches it can put on one link)


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


def couple(_link: Link, children: Pushes, i: int, p: JointWrenches) -> tuple[Pushes, Pushes]:
    """Who pushes a link: its own joint, and its children's joints the other way."""
    back = tuple(p.J.X.force_back(f) * -1.0 for f in p.hold)
    return (((i, p.hold),) if p.hold else ()) + children, ((i, back),) if p.hold else ()


def powers(forces: Sequence[Force], motions: Sequence[Motion]) -> Block:
    """Power of each force along each motion."""
    return [[m.dot(f) for m in motions] for f in forces]


def rotor_terms(_link: Link, i: int, p: JointWrenches) -> blocks.Terms:
    """A joint's diagonal block before any link adds to it: its rotors, else zeros."""
    return [((i, i), dense.scaled(dense.unit(len(p.hold)), p.rotors))] if p.hold else []


def link_terms(_link: Link, here: Pushes, inverse: Mobility | None) -> blocks.Terms:
    """Terms of one link in A: joints that push it accelerate one another through I⁻¹."""
    if inverse is None:
        return []
    terms: blocks.Terms = []
    for j, forces in here:
        motions = [inverse @ f for f in forces]
        terms += [((i, j), powers(others, motions)) for i, others in here if i >= j]
    return terms


@singledispatch
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
    rotors = each_link(loose, rotor_terms, numbers, joints)
    A = blocks.summed([*rotors, *each_link(loose, link_terms, pushes, own)])
    return System(loose, joints, own, pushes, A, blocks.factor(A, order(A)))


@singledispatch
def solved(s: Any, b: Sequence[Block]) -> list[Vector]:
    """``A⁻¹ b`` of one column, by link; ``s`` is a `System`, or that of loops over the links."""
    x = blocks.solve(s.factors, {i: block for i, block in enumerate(b) if block})
    return [[row[0] for row in x.get(i, [])] for i in range(len(b))]
