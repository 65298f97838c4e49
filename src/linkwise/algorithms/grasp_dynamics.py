"""Dynamics of arms that hold an object, and the forces of the contacts on it.

    M qdd + bias = tau + Jᵀ λ,     J qdd + J̇ qd = 0      arms and object, a tree with closed loops
    Σ f_i = M_c α_c + b_c                                  the object

By any of the ways to the closed loops of a tree (closed_dynamics.py): the dual form, which holds
for arms of any number of joints, singular ones too. The object has a joint of its own, or, where
one contact holds it in all directions, it is part of that arm's link; the force of that contact is
then what the object needs beyond the forces of all other contacts.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.closed_dynamics import Way, base_wrenches
from linkwise.algorithms.constrained import forces, least_forces
from linkwise.algorithms.crba import forward_dynamics
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_outcome import (
    Outcome,
    object_acceleration,
    on_link,
    on_object,
    place_of,
)
from linkwise.algorithms.poses import link_pose
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.forest import Held
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Matrix, Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path

Driver = Callable[..., list[Scalar]]


def carried(
    tree: Tree, q: Vector, held: Held, m: Rates, others: dict[int, Force], external: External
) -> Force:
    """The force of the contact that carries the object: what other contacts, and wrenches from
    outside on the object itself, leave of what it needs.
    """
    assert held.carrier is not None
    pose, needed = link_pose(tree, q, held.frame.link), on_link(held).force(m.a, m.U)
    at = place_of(tree, q, held.contacts[held.carrier].a)
    f = pose.R @ needed.lin
    total = Force(pose.R @ needed.ang + cross(pose.p - at, f), f)
    pushes = [(held.contacts[i].a, push) for i, push in others.items()]
    pushes += [(x, Force(Vec3(*f[:3]), Vec3(*f[3:]))) for x, f in external if x.of_object]
    for frame, push in pushes:
        arm = place_of(tree, q, frame) - at
        total = total - Force(push.ang + cross(arm, push.lin), push.lin)
    return total


def solved(way: Way, tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> Outcome:
    """Everything, with closed loops by one of the ways."""
    if not tree.closures:
        qdd = forward_dynamics(tree, q, qd, tau, external=external)
        return outcome(tree, q, qd, qdd, [], external)
    c = way(tree, q, qd, tau, external)
    on_arms = base_wrenches(tree, q, c.seams, least_forces(c))
    return outcome(tree, q, qd, c.released(forces(c)), on_arms, external)


def outcome(
    tree: Tree, q: Vector, qd: Vector, qdd: list[Scalar], on_arms: Matrix, external: External
) -> Outcome:
    """Everything, of joint accelerations and of the wrenches that contacts put on arms."""
    held, found = tree.held, on_object(on_arms)
    assert held is not None
    values = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    start = at_rest(tree.base_acceleration)
    _, m = along_path(tree, held.frame.link, move, start, *values)
    acceleration = object_acceleration(tree, q, held.frame, m.w, Motion(m.dw, m.a))
    if held.carrier is not None:
        numbers = [i for i in range(held.n_contacts) if i != held.carrier]
        own = carried(tree, q, held, m, dict(zip(numbers, found, strict=True)), external)
        found.insert(held.carrier, own)
    return Outcome(qdd, acceleration, found)


def dual(way: Way) -> Driver:
    """The dual form, by one of the ways to closed loops."""

    def driver(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
    ) -> list[Scalar]:
        return solved(way, tree, q, qd, tau, external).numbers()

    return driver
