"""What joints with motors make a frame do, where other joints, a flying base say, have none.

    J_g = J_m - J_b M_bb⁻¹ M_bm

is the generalised Jacobian [Umetani and Yoshida 1989]. With m the joints that have motors and b the
passive ones, the passive rows of ``M v = p`` with p = 0 give ``v_b = - M_bb⁻¹ M_bm v_m``, so that
the frame moves with ``J_b v_b + J_m v_m = J_g v_m`` while the passive joints have no momentum.

    J M⁻¹ [0; tau] = J_g M_r⁻¹ tau,      M_r = M_mm - M_mb M_bb⁻¹ M_bm

is how torques accelerate the frame. One factorization has both: in ``M = L D Lᵀ`` with the passive
joints eliminated first, what is left for the others is M_r, so that with ``Y = J L⁻ᵀ``

    J_g M_r⁻¹ J_gᵀ = Y_m D_m⁻¹ Y_mᵀ,      J M⁻¹ x = Y D⁻¹ L⁻¹ x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def reactions(M: Matrix, passive: Sequence[int], columns: Mapping[int, Vector]) -> Matrix:
    """``J_gᵀ``: of each degree of freedom the frame's motion per unit rate, the passive joints
    free to react; zero for these themselves.
    """
    size = len(next(iter(columns.values())))
    nothing: list[Scalar] = [0.0] * size
    own = [[M[i][j] for j in passive] for i in passive]
    L, inv_d = ldl.factor(own, [row[k] for k, row in enumerate(own)])
    half = ldl.forward(L, [list(columns.get(i, nothing)) for i in passive])
    scaled = [[x * d for x in row] for row, d in zip(half, inv_d, strict=True)]
    A = transpose(ldl.backward(L, scaled))  # M_bb⁻¹ J_bᵀ, by columns

    def column(j: int) -> list[Scalar]:
        coupling = [M[i][j] for i in passive]
        moved = columns.get(j, nothing)
        return [x - dot(coupling, a) for x, a in zip(moved, A, strict=True)]

    return [nothing if j in passive else column(j) for j in range(len(M))]


def generalized_jacobian(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``J_g`` of a frame of a robot with a flying base: a column per joint with a motor."""
    columns = jacobian_columns(tree, q, frame, axes) or {0: [0.0] * 6}
    return transpose(reactions(crba(tree, q), BASE_DOFS, columns)[len(BASE_DOFS) :])
