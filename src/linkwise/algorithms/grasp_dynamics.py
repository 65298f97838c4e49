"""Dynamics of arms that hold an object, and the forces of the contacts on it.

    M qdd + bias = tau + Jᵀ λ,     J qdd + J̇ qd = 0      arms and object, a tree with closed loops
    Σ f_i = M_c α_c + b_c                                  the object

By any of the ways to the closed loops of a tree (closed_dynamics.py), which hold for arms of any
number of joints, singular ones too, or by the object's balance (grasp_recursive.py). The object has
a joint of its own, or, where one contact holds it in all directions, it is part of that arm's link;
the force of that contact is then what the object needs beyond the forces of all other contacts.
"""

from __future__ import annotations

from linkwise.algorithms.closed_dynamics import Way, base_wrenches
from linkwise.algorithms.closures import Seam
from linkwise.algorithms.constrained import forces
from linkwise.algorithms.crba import forward_dynamics
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_least import needed, smallest
from linkwise.algorithms.grasp_measure import carrier_place, moved_to
from linkwise.algorithms.grasp_outcome import Outcome, object_acceleration, object_rates, on_object
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Motion, Scalar, Vector


def carried(tree: Tree, q: Vector, total: Force, closed: list[Seam], along: Vector) -> Force:
    """The force of the contact that carries the object: what other contacts leave of the wrench
    that it needs.
    """
    assert tree.held is not None
    reactions = (f for seam in closed for f in seam.on_link_b())
    for f, x in zip(reactions, along, strict=True):
        total = total - f * x
    R, own = link_pose(tree, q, tree.held.frame.link).R, moved_to(carrier_place(tree), total)
    return Force(R @ own.ang, R @ own.lin)


def outcome(
    tree: Tree,
    q: Vector,
    qd: Vector,
    qdd: list[Scalar],
    closed: list[Seam],
    along: Vector,
    external: External,
) -> Outcome:
    """Everything, of joint accelerations and of forces along the directions of closed loops."""
    held, m = tree.held, object_rates(tree, q, qd, qdd)
    assert held is not None
    acceleration = object_acceleration(tree, q, held.frame, m.w, Motion(m.dw, m.a))
    found = on_object(base_wrenches(tree, q, closed, along))
    if held.carrier is not None:
        total = needed(tree, q, qd, qdd, external)
        found.insert(held.carrier, carried(tree, q, total, closed, along))
    return Outcome(qdd, acceleration, found)


def solved(way: Way, tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> Outcome:
    """Everything, with closed loops by one of the ways."""
    if not tree.closures:
        qdd = forward_dynamics(tree, q, qd, tau, external=external)
        return outcome(tree, q, qd, qdd, [], [], external)
    c = way(tree, q, qd, tau, external)
    qdd = c.released(forces(c))
    return outcome(tree, q, qd, qdd, c.seams, smallest(tree, q, qd, qdd, c, external), external)
