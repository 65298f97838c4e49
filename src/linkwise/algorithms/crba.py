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
from linkwise.model.joints import Stance
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, RigidInertia, Scalar
from linkwise.sweep import tip_to_base, to_base

Matrix = list[list[Scalar]]


def compose(link: Link, children: RigidInertia, J: Stance) -> tuple[RigidInertia, RigidInertia]:
    """Composite inertia of the link's subtree, here and in the parent's frame."""
    composite = children + link.inertia
    return composite, J.X.inertia_back(composite)


def carry(_link: Link, forces: list[Force], J: Stance) -> list[Force]:
    """The wrenches of one joint's columns, one link further in."""
    return [J.X.force_back(f) for f in forces]


def crba(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """Mass matrix; entries between branches are exactly zero."""
    J = [link.stance(qi) for link, qi in zip(tree.links, tree.per_link_q(q), strict=True)]
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), J)
    M: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        forces = [composites[i] @ column for column in J[i].S]
        own = [J[i].project(f) for f in forces]
        for k, rotor in enumerate(link.armature):
            own[k][k] = own[k][k] + rotor
            own[k][:k] = [own[j][k] for j in range(k)]  # symmetric to the last bit
        _add(M, link, link, own)
        for j, carried in to_base(tree, i, carry, forces, J):
            block = [J[j].project(f) for f in carried]
            _add(M, tree.links[j], link, block)
            _add(M, link, tree.links[j], [list(row) for row in zip(*block, strict=True)])
    return M


def _add(M: Matrix, inner: Link, outer: Link, block: Matrix) -> None:
    """Add what two joints share to the degrees of freedom that move them; one row per outer."""
    for (column, b), entries in zip(outer.dofs, block, strict=True):
        for (row, a), x in zip(inner.dofs, entries, strict=True):
            M[row][column] = M[row][column] + (x if a * b == 1.0 else x * (a * b))


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
