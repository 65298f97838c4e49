"""The inverse of the mass matrix by Schur complements, and how links respond to loads.

    M⁻¹ = C - Bᵀ A⁻¹ B,   B = Wᵀ Pᵀ I⁻¹ P H,   C = Hᵀ Pᵀ I⁻¹ P H                         [39]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A and its factors are
those of ``interbody.py``. Operational inertias have the same form: ``schur_operational.py``.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from linkwise.algorithms import blocks, dense
from linkwise.algorithms.interbody import powers, system
from linkwise.algorithms.orders import one_by_one
from linkwise.algorithms.pushes import pushed
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Matrix, Vector


@singledispatch
def response(s: Any, loads: dict[int, list[Force]]) -> Matrix:
    """``D - Eᵀ A⁻¹ E``: power of each load along the motion that each causes.

    ``loads[k]`` are the wrenches on link k of all loads, one each; ``s`` is a `System`, or that of
    loops over the links.
    """
    size = len(next(iter(loads.values())))
    D, E = dense.zero(size, size), s.nothing(size)
    for k, forces in loads.items():
        inverse = s.mobilities[k]
        motions = [inverse @ f for f in forces] if inverse else []
        D = dense.plus(D, powers(forces, motions))
        for j, own in s.pushes[k]:
            E[j] = dense.plus(E[j], powers(own, motions))
    return dense.minus(dense.mirrored(D), blocks.form(s.factors, E, size))


def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``C - Bᵀ A⁻¹ B`` [39]: a unit torque pushes the links on both sides of its joint."""
    s = system(tree, q, one_by_one)
    columns = [pushed(s.tree, s.joints, {c: 1.0}) for c in tree.projection.owners]
    touched = {k for column in columns for k in column}
    loads = {k: [column.get(k, Force.zero()) for column in columns] for k in sorted(touched)}
    return response(s, loads)
