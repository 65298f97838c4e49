"""Mass matrix: the composite-rigid-body algorithm, and what follows from it.

    M_ij = S_iᵀ F_j,   F_j = I^c_j S_j carried from link j inward to link i

[RBDA Table 6.2], in link coordinates:

    tip -> base   I^c   inertia of the subtree, as if its joints were locked
    each link     F     momentum per unit joint rate, carried to every ancestor

Forward dynamics subtracts the bias and solves with the sparse factors of ``ltl.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import ltl
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import bias
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, RigidInertia, Scalar, Transform
from linkwise.sweep import tip_to_base, to_base

Matrix = list[list[Scalar]]


def compose(link: Link, children: RigidInertia, X: Transform) -> tuple[RigidInertia, RigidInertia]:
    """Composite inertia of the link's subtree, here and in the parent's frame."""
    composite = children + link.inertia
    return composite, X.inertia_back(composite)


def carry(_link: Link, forces: list[Force], X: Transform) -> list[Force]:
    """The wrenches of one joint's columns, one link further in."""
    return [X.force_back(f) for f in forces]


def crba(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix; entries between branches are exactly zero."""
    X = [link.transform(qi) for link, qi in zip(tree.links, tree.per_link_q(q), strict=True)]
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), X)
    M: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        forces = [composites[i] @ column for column in link.joint.columns]
        _fill(M, link, link, forces)
        for k, rotor in enumerate(link.armature):
            M[link.v_index + k][link.v_index + k] += rotor
        for j, carried in to_base(tree, i, carry, forces, X):
            _fill(M, tree.links[j], link, carried)
    return M


def _fill(M: Matrix, inner: Link, outer: Link, forces: list[Force]) -> None:
    for b, f in enumerate(forces):
        for a, entry in enumerate(inner.project(f)):
            row, column = inner.v_index + a, outer.v_index + b
            M[row][column] = M[column][row] = entry


def forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """``qdd = M⁻¹ (tau - bias)``."""
    factors = ltl.factor(crba(tree, q), tree.dof_parent)
    load = bias(tree, q, qd, external=external)
    return ltl.solve(factors, [t - b for t, b in zip(tau, load, strict=True)])


def mass_matrix_inverse(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """``M⁻¹`` from the factors of M."""
    return ltl.inverse(ltl.factor(crba(tree, q), tree.dof_parent))
