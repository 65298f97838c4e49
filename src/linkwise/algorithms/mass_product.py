"""The mass matrix times a vector, by two sweeps in one fixed frame.

    base -> tip   a   motion under the joint rates p
    tip -> base   f   sum of F_i p_i over the subtree;   (M p)_j = S_j · f_j + F_j · a_parent

[Fijany and Scheid]. Axes are turned to those of the root once, and so is the momentum F_i of each
subtree per unit rate of its joint; a product then only shifts and adds. M_ij is ``S_j · F_i`` for i
further out than j, and M is symmetric: joint j feels the rates of joints further out through f,
and those of joints further in through its own F_j and the motion of its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import compose
from linkwise.algorithms.poses import LinkPose, root_poses
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, Motion, RigidInertia, Scalar, Transform, Vector
from linkwise.sweep import base_to_tip, each_link, joint_states, tip_to_base

Numbers = list[Scalar]


class Fixed(NamedTuple):
    """A link in its root's axes, all at its origin."""

    X: Transform  # a shift, from its parent
    S: tuple[Motion, ...]
    F: tuple[Force, ...]  # momentum of the subtree per unit rate of the joint
    block: Matrix  # Sᵀ F and rotors: a diagonal block of M


class Ride(NamedTuple):
    """Motion of a link, and the part of it that its parent gives."""

    a_in: Motion
    a: Motion


def own_block(link: Link, J: JointState, momenta: Sequence[Force]) -> Matrix:
    """``Sᵀ F`` and rotors: a joint's diagonal block of M."""
    block = [J.project(f) for f in momenta]
    for k, rotor in enumerate(link.armature):
        block[k][k] = block[k][k] + rotor
    return block


def project(link: Link, J: JointState, body: RigidInertia, at: LinkPose) -> Fixed:
    """Turn a link's motions, and the momenta of its subtree, to the root's axes."""
    momenta = [body @ column for column in J.S]
    block = own_block(link, J, momenta)
    F = tuple(Force(at.R @ f.ang, at.R @ f.lin) for f in momenta)
    return Fixed(Transform(at.l), tuple(at.turned(J.S)), F, block)


def fixed_links(tree: Tree, q: Vector) -> list[Fixed]:
    """Every link in its root's axes."""
    J = joint_states(tree, q)
    bodies, _ = tip_to_base(tree, compose, RigidInertia.zero(), J)
    return each_link(tree, project, J, bodies, root_poses(tree, q))


def ride(_link: Link, parent: Ride, f: Fixed, rates: Vector) -> Ride:
    """Motion of a link under joint rates."""
    a_in = f.X.motion(parent.a)
    a = a_in
    for column, rate in zip(f.S, rates, strict=True):
        a = a + column * rate
    return Ride(a_in, a)


def weigh(link: Link, children: Force, f: Fixed, m: Ride, rates: Vector) -> tuple[Numbers, Force]:
    """Momentum of the subtree under its own joints' rates, felt by the joint and by the parent."""
    total = children
    for momentum, rate in zip(f.F, rates, strict=True):
        total = total + momentum * rate
    own = zip(f.S, f.F, link.armature, rates, strict=True)
    felt = [s.dot(total) + m.a_in.dot(F) + rotor * rate for s, F, rotor, rate in own]
    return felt, f.X.force_back(total)


def times_mass(tree: Tree, links: list[Fixed], p: Vector) -> Numbers:
    """``M p``."""
    rates = tree.per_link_v(p)
    motions = base_to_tip(tree, ride, Ride(Motion.zero(), Motion.zero()), links, rates)
    felt, _ = tip_to_base(tree, weigh, Force.zero(), links, motions, rates)
    return tree.gather(felt)


def diagonal_scaling(tree: Tree, links: list[Fixed]) -> Callable[[Vector], Numbers]:
    """The preconditioner: solve with the diagonal blocks of M."""
    D = tree.gather_matrix(((i, i), f.block) for i, f in enumerate(links))
    factors = ltl.factor(D, tree.previous_of_joint)
    return lambda r: ltl.solve(factors, r)
