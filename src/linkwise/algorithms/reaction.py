"""What joints with motors make a frame do, where other joints, a flying base say, have none.

    J_g = J_m - J_b M_bb⁻¹ M_bm

is the generalised Jacobian [Umetani and Yoshida 1989]. With m the joints that have motors and b the
passive ones, the passive rows of ``M v = p`` with p = 0 give ``v_b = - M_bb⁻¹ M_bm v_m``, so that
the frame moves with ``J_b v_b + J_m v_m = J_g v_m`` while the passive joints have no momentum.

    J M⁻¹ [0; tau] = J_g M_r⁻¹ tau,      M_r = M_mm - M_mb M_bb⁻¹ M_bm

is how torques accelerate the frame. M_r is never formed: M_r⁻¹ is the motors' part of M⁻¹, so that
the sparse factors of M serve J_g M_r⁻¹ J_gᵀ as they do J M⁻¹ Jᵀ, with J_g in place of J and zeros
for the passive joints. What any x does to the frame splits likewise,

    J M⁻¹ x = (M_bb⁻¹ J_bᵀ)ᵀ x_b + J_g M_r⁻¹ (x_m - M_mb M_bb⁻¹ x_b)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from linkwise.algorithms import ldl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot, transpose
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.model.joints import Free
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Matrix, Scalar, Vector

BASE_DOFS = tuple(range(6))  # of a flying base


def no_flying_base(tree: Tree) -> str:
    """A reason where the robot is not one tree on a free joint."""
    first = tree.links[0] if tree.n_links else None
    roots = int((tree.parent_numbers == BASE).sum())
    if first is not None and isinstance(first.joint, Free) and roots == 1:
        return ""
    return (
        "the robot has no flying base to react; expected one free joint that carries all links "
        '(lw.load(..., base="free"))'
    )


class Reaction(NamedTuple):
    """Passive joints, and what they do when the others move."""

    M: Matrix
    passive: Sequence[int]
    factors: tuple[Matrix, list[Scalar]]  # of M_bb

    def met(self, x: Sequence[Scalar]) -> list[Scalar]:
        """``M_bb⁻¹ x_b`` of numbers of all degrees of freedom."""
        return ldl.solve(self.factors, [x[i] for i in self.passive])

    def left(self, j: int, own: Scalar, met: Vector) -> Scalar:
        """``x_j - M_jb M_bb⁻¹ x_b``."""
        return own - dot([self.M[i][j] for i in self.passive], met)

    def columns(self, J: Mapping[int, Vector], size: int) -> dict[int, list[Scalar]]:
        """``J_g`` by the columns of the joints with motors, J by its own of ``size`` numbers."""
        rows = [[J[j][k] if j in J else 0.0 for j in range(len(self.M))] for k in range(size)]
        pairs = [(row, self.met(row)) for row in rows]
        motors = (j for j in range(len(self.M)) if j not in self.passive)
        return {j: [self.left(j, row[j], met) for row, met in pairs] for j in motors}


def reaction(M: Matrix, passive: Sequence[int]) -> Reaction:
    """How joints without motors react, from the mass matrix."""
    own = [[M[i][j] for j in passive] for i in passive]
    return Reaction(M, passive, ldl.factor(own, [row[k] for k, row in enumerate(own)]))


def generalized_jacobian(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``J_g`` of a frame of a robot with a flying base: a column per joint with a motor."""
    columns = jacobian_columns(tree, q, frame, axes)
    found = reaction(crba(tree, q), BASE_DOFS).columns(columns, 6)
    return transpose(list(found.values())) if found else [[] for _ in range(6)]
