"""Internal forces of a grasp: the part of the contact forces that only squeezes the object.

    λ_int = λ - Gᵀ (G Gᵀ)⁻¹ G λ

λ are the contact forces along orthonormal rows of what each contact holds, in the object's axes,
and G takes them to the wrench on the object: what is taken off are the least forces with that
wrench, in N and N m alike. Where contacts cannot push the object in all directions, those that they
cannot are left out of G Gᵀ.
"""

from __future__ import annotations

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.grasp_outcome import place_of
from linkwise.algorithms.kinematics import at_frame
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Scalar, Vec3, Vector, cross


def internal_forces(tree: Tree, q: Vector, forces: Vector) -> list[list[Scalar]]:
    """Of forces on the object (contacts, 6), all numbers in a row, the part that squeezes."""
    held = tree.held
    assert held is not None
    at = at_frame(link_pose(tree, q, held.frame.link), held.frame)
    back, rows, columns, owners, along = at.R.T, [], [], [], []
    for i, (contact, directions) in enumerate(zip(held.contacts, held.orthonormal, strict=True)):
        s = back @ (place_of(tree, q, contact.a) - at.p)
        given = [back @ Vec3(*forces[6 * i + k : 6 * i + k + 3]) for k in (0, 3)]
        for row in directions:
            f = Force(Vec3(*row[:3]), Vec3(*row[3:]))
            rows.append(f)
            owners.append(i)
            along.append(f.ang.dot(given[0]) + f.lin.dot(given[1]))
            columns.append([*(f.ang + cross(s, f.lin)), *f.lin])
    ones = [1.0] * len(columns)
    square = dense.square(columns, ones)
    sizes = [square[k][k] for k in range(6)]
    factors = Factors(*ldl.factor_independent(square, sizes))
    total = [dense.dot(column, along) for column in zip(*columns, strict=True)]
    least = factors.solve(total)
    found = [[Vec3.zero(), Vec3.zero()] for _ in held.contacts]
    for i, f, x, column in zip(owners, rows, along, columns, strict=True):
        left = x - dense.dot(column, least)
        found[i] = [found[i][0] + f.ang * left, found[i][1] + f.lin * left]
    return [[*(at.R @ n), *(at.R @ f)] for n, f in found]
