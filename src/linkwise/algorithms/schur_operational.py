"""Operational inertias by Schur complements.

    Λ⁻¹ = D - Eᵀ A⁻¹ E       D the mobility of the frame's link on its own            [43-46]
    Λ = G - Rᵀ S⁻¹ R         -S is A without the frame's link, G that link's inertia at the frame,
                             R the wrenches of its joints there; no 6x6 is inverted   [48-51]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A and its factors are
those of ``interbody.py``, in either order of elimination (``orders.py``). Neither J nor M⁻¹ is
formed: the six columns of E are right-hand sides of that factorization, and with the one of forward
dynamics they are seven. Where the frame cannot move in six directions, -S is singular, and a pivot
says so.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import blocks, dense
from linkwise.algorithms.external import External
from linkwise.algorithms.grip import Grip, grip
from linkwise.algorithms.interbody import System, system
from linkwise.algorithms.operational import inverted
from linkwise.algorithms.orders import Order, every_other, one_by_one
from linkwise.algorithms.schur import accelerations
from linkwise.algorithms.schur_inverses import response
from linkwise.algorithms.tied import refuse_followers
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Matrix, Scalar, Vector


def mobility(s: System, frame: Frame, at: Grip) -> Matrix:
    """``D - Eᵀ A⁻¹ E`` [46]."""
    return dense.zero(6, 6) if frame.link == BASE else response(s, {frame.link: at.pushes()})


def _inverse(order: Order) -> Callable[..., Matrix]:
    def inverse(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
        """``J M⁻¹ Jᵀ``."""
        return mobility(system(tree, q, order), frame, grip(tree, q, frame, axes))

    return inverse


operational_inertia_inverse, operational_inertia_inverse_bcr = map(
    _inverse, (one_by_one, every_other)
)
operational_inertia = inverted(operational_inertia_inverse)
operational_inertia_bcr = inverted(operational_inertia_inverse_bcr)


def direct_operational_inertia(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``G + Rᵀ (-S)⁻¹ R`` [51]."""
    s = system(tree, q, one_by_one, without=frame.link)
    at, body = grip(tree, q, frame, axes), tree.links[frame.link].inertia
    G = dense.transpose([list(at.felt(body @ m)) for m in at.motions()])
    R = s.nothing(6) | {j: [list(at.felt(f)) for f in own] for j, own in s.pushes[frame.link]}
    return dense.plus(dense.mirrored(G), blocks.form(s.factors, R, 6))


def _both(order: Order) -> Callable[..., list[Scalar]]:
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
        """``qdd``, then ``Λ⁻¹`` by rows: seven right-hand sides, one factorization [54, 56]."""
        refuse_followers(tree)
        s = system(tree, q, order)
        qdd, _ = accelerations(s, q, qd, tau, external)
        inverse = mobility(s, frame, grip(tree, q, frame, axes))
        return tree.beside(qdd, [x for row in inverse for x in row])

    return dynamics_and_inverse


dynamics_and_inverse, dynamics_and_inverse_bcr = map(_both, (one_by_one, every_other))
