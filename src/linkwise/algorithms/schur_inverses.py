"""Inverses by Schur complements: of the mass matrix, and operational inertias.

    M⁻¹ = C - Bᵀ A⁻¹ B,   B = Wᵀ Pᵀ I⁻¹ P H,   C = Hᵀ Pᵀ I⁻¹ P H                         [39]
    Λ⁻¹ = D - Eᵀ A⁻¹ E       D the mobility of the frame's link on its own            [43-46]
    Λ = G - Rᵀ S⁻¹ R         -S is A without the frame's link, G that link's inertia at the frame,
                             R the wrenches of its joints there; no 6x6 is inverted   [48-51]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A and its
factors are those of ``interbody.py``; ``response`` is the common form of the first two. Where the
frame cannot move in six directions, -S is singular, and a pivot says so.
"""

from __future__ import annotations

from linkwise.algorithms import blocks, dense
from linkwise.algorithms.external import External
from linkwise.algorithms.grip import Grip, grip
from linkwise.algorithms.interbody import System, powers, system
from linkwise.algorithms.operational import inverted
from linkwise.algorithms.orders import one_by_one
from linkwise.algorithms.pushes import pushed
from linkwise.algorithms.schur import accelerations
from linkwise.algorithms.tied import refuse_followers
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Force, Matrix, Scalar, Vector


def response(s: System, loads: dict[int, list[Force]]) -> Matrix:
    """``D - Eᵀ A⁻¹ E``: power of each load along the motion that each causes.

    ``loads[k]`` are the wrenches on link k of all loads, one each.
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


def _mobility(s: System, frame: Frame, at: Grip) -> Matrix:
    """``D - Eᵀ A⁻¹ E`` [46]."""
    return dense.zero(6, 6) if frame.link == BASE else response(s, {frame.link: at.pushes()})


def operational_inertia_inverse(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``J M⁻¹ Jᵀ``."""
    return _mobility(system(tree, q, one_by_one), frame, grip(tree, q, frame, axes))


operational_inertia = inverted(operational_inertia_inverse)


def direct_operational_inertia(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``G + Rᵀ (-S)⁻¹ R`` [51]."""
    s = system(tree, q, one_by_one, without=frame.link)
    at, body = grip(tree, q, frame, axes), tree.links[frame.link].inertia
    G = dense.transpose([list(at.felt(body @ m)) for m in at.motions()])
    R = s.nothing(6) | {j: [list(at.felt(f)) for f in own] for j, own in s.pushes[frame.link]}
    return dense.plus(dense.mirrored(G), blocks.form(s.factors, R, 6))


def dynamics_and_inverse(
    tree: Tree,
    q: Vector,
    qd: Vector,
    tau: Vector,
    *,
    frame: Frame,
    axes: str = "base",
    external: External = (),
) -> list[Scalar]:
    """``qdd``, then ``Λ⁻¹`` by rows: seven right-hand sides of one factorization of A [54, 56]."""
    refuse_followers(tree)
    s = system(tree, q, one_by_one)
    qdd, _ = accelerations(s, q, qd, tau, external)
    inverse = _mobility(s, frame, grip(tree, q, frame, axes))
    return [*qdd, *(x for row in inverse for x in row)]
