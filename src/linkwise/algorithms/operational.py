"""Operational-space inertia of a frame.

    Λ = (J M⁻¹ Jᵀ)⁻¹,    J M⁻¹ Jᵀ = Y D⁻¹ Yᵀ  with  Y = J L⁻¹  from  M = Lᵀ D L

The inverse inertia is formed symmetric, and inverted by the same sparse factors.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Scalar

Matrix = list[list[Scalar]]

# a full 6x6 matrix is the mass matrix of a six-joint chain
CHAIN_OF_SIX = tuple(range(-1, 5))


def operational_inertia_inverse(tree: Tree, q: Sequence[Scalar], frame: Frame, axes: str) -> Matrix:
    """``J M⁻¹ Jᵀ``."""
    columns = jacobian_columns(tree, q, frame, axes)
    L, inv_d, parent = ltl.factor(crba(tree, q), tree.dof_parent)
    Y = {j: list(column) for j, column in columns.items()}
    for k in reversed(range(tree.nv)):
        for i in ltl.ancestors(parent, k) if k in Y else ():
            known = Y.get(i, [0.0] * 6)
            Y[i] = [y - L[k][i] * z for y, z in zip(known, Y[k], strict=True)]
    out: Matrix = [[0.0] * 6 for _ in range(6)]
    for k, column in Y.items():
        scaled = [y * inv_d[k] for y in column]
        for a in range(6):
            for b in range(a + 1):
                out[a][b] = out[b][a] = out[a][b] + scaled[a] * column[b]
    return out


def operational_inertia(
    tree: Tree, q: Sequence[Scalar], *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``Λ``, rows and columns (angular, linear); exists where J has six independent rows."""
    inverse = operational_inertia_inverse(tree, q, frame, axes)
    return ltl.inverse(ltl.factor(inverse, CHAIN_OF_SIX))
