"""Internal forces of a grasp: the part of the contact forces that only squeezes the object.

    λ_int = λ - Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹ G λ

λ are the contact forces along orthonormal rows of what each contact holds, in the object's axes,
and G takes them to the wrench on the object: what is taken off are the least forces with that
wrench, λᵀ Q λ the squares of the forces and of the moments over the length (grasp_least.py). Where
contacts cannot push the object in all directions, those that they cannot are left out.
"""

from __future__ import annotations

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.grasp_measure import product, squared_length
from linkwise.algorithms.grasp_outcome import place_of
from linkwise.algorithms.kinematics import at_frame, axes_of
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Matrix, Scalar, Vec3, Vector, cross


def internal_forces(tree: Tree, q: Vector, forces: Vector) -> list[list[Scalar]]:
    """Of forces on the object (contacts, 6), all numbers in a row, the part that squeezes."""
    held = tree.held
    assert held is not None
    at = at_frame(link_pose(tree, q, held.frame.link), held.frame)
    places = [at.R.T @ (place_of(tree, q, contact.a) - at.p) for contact in held.contacts]
    turn, origin = axes_of(held.frame), Vec3(*held.frame.origin)
    per = 1.0 / squared_length(tree, [origin + turn @ place for place in places])
    columns, lighter, along = [], [], []  # Gᵀ, Q⁻¹ Gᵀ and λ, by rows
    rows = [[Force(Vec3(*x[:3]), Vec3(*x[3:])) for x in own] for own in held.orthonormal]
    for i, (s, directions) in enumerate(zip(places, rows, strict=True)):
        given = [at.R.T @ Vec3(*forces[6 * i + k : 6 * i + k + 3]) for k in (0, 3)]
        pushed = [[*(f.ang + cross(s, f.lin)), *f.lin] for f in directions]
        Q = [[product(a, b, per) for b in directions] for a in directions]
        columns += pushed
        lighter += dense.times(ldl.inverse(Q), pushed)
        along += [f.ang.dot(given[0]) + f.lin.dot(given[1]) for f in directions]
    total = [dense.dot(column, along) for column in zip(*columns, strict=True)]
    least = _least(columns, lighter).solve(total)
    left = iter(x - dense.dot(row, least) for x, row in zip(along, lighter, strict=True))
    found = []
    for directions in rows:
        f = sum((f * next(left) for f in directions), Force.zero())
        found.append([*(at.R @ f.ang), *(at.R @ f.lin)])
    return found


def _least(columns: Matrix, lighter: Matrix) -> Factors:
    """Factors of ``G Q⁻¹ Gᵀ``, formed once per pair of mirrored entries."""
    n, G, H = range(6), dense.transpose(columns), dense.transpose(lighter)
    square = [[dense.dot(G[max(i, j)], H[min(i, j)]) for j in n] for i in n]
    return Factors(*ldl.factor_independent(square, [square[k][k] for k in n]))
