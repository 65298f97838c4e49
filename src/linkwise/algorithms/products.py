"""The mass matrix times a vector, and a solve with its diagonal, once each.

    M x = inverse dynamics of rest, without gravity
    D y = x,   D the diagonal blocks of M: Sᵀ I^c S and rotors, I^c composite inertias

Conjugate gradients of large robots are made of these two (``engine/iterative.py``). An iteration
that is compiled as a whole forms the momenta of all joints once instead (``mass_product.py``).
"""

from __future__ import annotations

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import compose
from linkwise.algorithms.mass_product import own_block
from linkwise.algorithms.rnea import rnea
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import RigidInertia, Scalar, Vector
from linkwise.sweep import each_link, joint_states, tip_to_base


def mass_product(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``M x``."""
    return rnea(tree.without_gravity(), q, [0.0] * tree.nv, x)


def solve_block(link: Link, J: JointState, body: RigidInertia, x: Vector) -> list[Scalar]:
    """Solve with a joint's own block of M: that of a chain of as many joints as it has columns."""
    block = own_block(link, J, [body @ column for column in J.S])
    return ltl.solve(ltl.factor(block, range(-1, len(block) - 1)), x)


def diagonal_solve(tree: Tree, q: Vector, x: Vector) -> list[Scalar]:
    """``D⁻¹ x`` of a robot in which no joint follows another."""
    J = joint_states(tree, q)
    bodies, _ = tip_to_base(tree, compose, RigidInertia.zero(), J)
    return tree.gather(each_link(tree, solve_block, J, bodies, tree.per_link_v(x)))
