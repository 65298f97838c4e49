"""Mass matrix: the composite-rigid-body algorithm, and what follows from it.

    M_ij = S_iᵀ F_j,   F_j = I^c_j S_j carried from link j inward to link i

[RBDA Table 6.2], in link coordinates:

    tip -> base   I^c   inertia of the subtree, as if its joints were locked
    each pair     F     momentum per unit joint rate, carried to every ancestor and projected there

Forward dynamics subtracts the bias and solves with the sparse factors of ``ltl.py``.
"""

from __future__ import annotations

from linkwise.algorithms import ltl
from linkwise.algorithms.dense import transpose
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, RigidInertia, Scalar, Vector
from linkwise.sweep import each_link, each_pair, joint_states, tip_to_base


def compose(link: Link, children: RigidInertia, J: JointState) -> tuple[RigidInertia, RigidInertia]:
    """Composite inertia of the link's subtree, here and in the parent's frame."""
    composite = children + link.inertia
    return composite, J.X.body_back(composite)


def momenta(_link: Link, J: JointState, composite: RigidInertia) -> list[Force]:
    """``I^c S``: momentum of the subtree per unit rate of each column."""
    return [composite @ column for column in J.S]


def carry(_link: Link, F: list[Force], J: JointState) -> list[Force]:
    """The same momenta, one link further in."""
    return [J.X.force_back(f) for f in F]


def meet(_link: Link, F: list[Force], J: JointState) -> Matrix:
    """``S_iᵀ F_j``, link i the one that is met: a column per momentum."""
    return transpose([J.project(f) for f in F])


def crba(tree: Tree, q: Vector) -> Matrix:
    """Mass matrix; entries between branches are exactly zero."""
    J = joint_states(tree, q)
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), J)
    F = each_link(tree, momenta, J, composites)
    return tree.with_rotors(tree.gather_symmetric(each_pair(tree, carry, meet, F, J)))


def forward_dynamics(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
) -> list[Scalar]:
    """``qdd = M⁻¹ (tau - bias)``."""
    factors = ltl.factor(crba(tree, q), tree.dof_parent)
    return ltl.solve(factors, unbiased(tree, q, qd, tau, external))


def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``M⁻¹`` from the factors of M."""
    return ltl.inverse(ltl.factor(crba(tree, q), tree.dof_parent))
