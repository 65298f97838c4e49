"""The smallest contact forces of a grasp, whatever the order of its contacts.

    least  Σ |n_i|²/ℓ² + |f_i|²     over all contacts i, wrenches (n, f) at their frames' origins

``Held.length`` is ℓ; unless given, ℓ² is the mean square of the distances from the contacts to the
object's centre of mass. Along the directions of closed loops the forces are λ, which may change in
the null space of Ω only (constrained.py); the sum is a function of them (grasp_measure.py).
"""

from __future__ import annotations

from linkwise.algorithms.constrained import Constrained, factor, forces, least_forces
from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.grasp_measure import measured
from linkwise.algorithms.grasp_outcome import object_body, object_rates
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import of_link


def smallest(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, c: Constrained, external: External = ()
) -> list[Scalar]:
    """``λ`` of the smallest contact forces, or of a robot without an object the smallest λ."""
    if tree.held is None:
        return least_forces(c)
    return factor(c).least(forces(c), measured(tree, c.seams, needed(tree, q, qd, qdd, external)))


def needed(tree: Tree, q: Vector, qd: Vector, qdd: Vector, external: External) -> Force:
    """The wrench at its link's origin that contacts put on an object which moves so."""
    assert tree.held is not None
    m = object_rates(tree, q, qd, qdd)
    on_it = external_forces(tree, q, [x for x in external if x[0].of_object])
    given: Force = of_link(tree, tree.held.frame.link, on_it)
    return object_body(tree).force(m.a, m.U) - given
