"""Operational-space inertia of a frame, and its inverse.

    Λ = (J M⁻¹ Jᵀ)⁻¹,    Λ⁻¹ = J M⁻¹ Jᵀ

    "crba"           Λ⁻¹ = Y D⁻¹ Yᵀ  with  Y = J L⁻¹  from  M = Lᵀ D L, then inverted
    "recursive"      Λ⁻¹ = Σ ε D⁻¹ εᵀ: six unit wrenches at the frame, filtered inward by ψ
                     [Rodriguez and Kreutz; the Ω recursion read from the tip], then inverted
    "schur", "schur-direct"   by the forces between bodies: ``schur_inverses.py``

Λ exists where J has six independent rows. Else Λ⁻¹ is singular, and a pivot says so; with damping
d, ``(Λ⁻¹ + diag(d))⁻¹`` exists all the same, by the methods that form Λ⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.filtered_pushes import yielded
from linkwise.algorithms.grip import grip
from linkwise.algorithms.innovations import factored
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.algorithms.yielding import form
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Matrix, Vector
from linkwise.sweep import joint_states

# a full 6x6 matrix is the mass matrix of a six-joint chain
CHAIN_OF_SIX = tuple(range(-1, 5))


def too_few_directions(tree: Tree, frame: Frame) -> str:
    """A reason where Λ never exists: fewer than six degrees of freedom move the frame."""
    moving = tree.dofs_inward(frame.link, 6)
    if len(moving) >= 6:
        return ""
    return (
        f"the frame is moved by {len(moving)} joint(s); expected at least 6, else J M⁻¹ Jᵀ has no "
        "inverse (operational_inertia_inverse exists, and damping= gives one)"
    )


def too_few_for_positions(tree: Tree, frame: Frame) -> str:
    """A reason where the inertia of a position never exists: fewer than three joints move it."""
    moving = tree.dofs_inward(frame.link, 3)
    if len(moving) >= 3:
        return ""
    return (
        f"the frame is moved by {len(moving)} joint(s); expected at least 3, else J M⁻¹ Jᵀ has no "
        "inverse (operational_inertia_inverse exists)"
    )


def operational_inertia_inverse(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``J M⁻¹ Jᵀ`` from factors of M."""
    columns = jacobian_columns(tree, q, frame, axes)
    return form(ltl.factor(crba(tree, q), tree.dof_parent), columns, 6)


def recursive_inverse(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``Σ ε D⁻¹ εᵀ`` over the joints between base and frame, from the frame inward."""
    factors = factored(tree, joint_states(tree, q))
    return yielded(factors, frame.link, grip(tree, q, frame, axes).pushes())


def inverted(inverse: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """``Λ = (Λ⁻¹ + diag(damping))⁻¹``, rows and columns (angular, linear), from a way to Λ⁻¹."""

    def inertia(
        tree: Tree, q: Vector, *, frame: Frame, axes: str = "base", damping: Vector = ()
    ) -> Matrix:
        found = inverse(tree, q, frame=frame, axes=axes)
        for k, d in enumerate(damping):
            found[k][k] = found[k][k] + d
        return ltl.inverse(ltl.factor(found, CHAIN_OF_SIX))

    return inertia


def of_position(inverse: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """``(J_v M⁻¹ J_vᵀ)⁻¹`` of the linear rows alone, from a way to Λ⁻¹."""

    def inertia(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
        found = [row[3:] for row in inverse(tree, q, frame=frame, axes=axes)[3:]]
        return ltl.inverse(ltl.factor(found, CHAIN_OF_SIX[:3]))

    return inertia


position_inertia = of_position(operational_inertia_inverse)
recursive_position_inertia = of_position(recursive_inverse)
operational_inertia = inverted(operational_inertia_inverse)
recursive_inertia = inverted(recursive_inverse)
