"""What is beyond each column of the joints, as bodies in motion: an inward sweep for derivatives.

    tip -> base   I, 2B, E, F    inertia, twice the flux, turning loads and force of the subtree

B and F are relative to an observer who rides on the body before a step of the joint. Beyond the
last step he rides on the link itself, whose flux and force are then zero. Going inward over a step,
which moves by v and a relative to the body before it, they become

    B⁻ = B + B(I, v),      F⁻ = F + 2 B v + I a + v x* I v

The observer himself turns by w, and accelerates by a + Uρ at a place ρ. So in all, the force is
``F + 2 B w + ∫ (ρ, 1) x (a + Uρ) dm``, as inertial forces are in a turning frame.

E is for external wrenches, moments n and forces f at points p, which keep their directions while S
turns the link by w. Against wrenches that turn along, that adds ``w x n`` and, at p, ``w x f``.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.external import External, external_fluxes, external_forces
from linkwise.algorithms.joint_steps import Step
from linkwise.algorithms.moved_columns import Moving, base, move
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Flux, Force, RigidInertia, Scalar, Vec3, Vector, rate_matrix
from linkwise.sweep import base_to_tip, each_link, tip_to_base


class Subtree(NamedTuple):
    """Inertia, twice the flux, turning loads and force of a subtree; sums over children."""

    I: RigidInertia
    B2: Flux
    E: Flux
    F: Force


NOTHING = Subtree(RigidInertia.zero(), Flux.zero(), Flux.zero(), Force.zero())


def compose(
    link: Link, children: Subtree, m: Moving, ext: Force, turning: Flux
) -> tuple[list[Subtree], Subtree]:
    """Sums over a link's subtree, as seen before each step of its joint; and by its parent."""
    back, inward = m.turn, m.X
    I, E = back.spun_back(children.I + link.inertia), back.body_back(children.E + turning)
    B2, F = back.spun_back(children.B2), back.force_back(children.F - ext)
    found: list[Subtree] = []
    for step in reversed(m.steps):
        F = F + inertial(I, step) + B2.turning_with(step.v.ang)
        more = Flux.twice(I, step.v)
        # xx + yy stays one number, to which a turn about z adds nothing
        B2 = (B2 + more).with_sum(B2.plane_sum + more.plane_sum)
        found.insert(0, Subtree(I, B2, E, F))
    flux, loads = inward.body_back(B2), inward.body_back(E)
    return found, Subtree(inward.body_back(I), flux, loads, inward.force_back(F))


def inertial(I: RigidInertia, step: Step) -> Force:
    """``I a + v x* I v`` of a step; by one column, ``I a`` is a multiple of its momentum."""
    v, a = step.v, step.a
    if step.quasi:
        return I.force(a.lin, rate_matrix(v.ang, a.ang))
    return I @ a + I.force(Vec3.zero(), rate_matrix(v.ang, Vec3.zero()))


def held(m: Moving, bodies: list[Subtree]) -> Force:
    """All that holds the subtree of a link, when the body before its joint moves as it does."""
    (I, B2, _, F), rider = bodies[0], m.steps[0].before
    return F + I.force(rider.a, rider.U) + B2.turning_with(rider.w)


class State(NamedTuple):
    """How links move, and what is beyond each step of their joints."""

    moving: list[Moving]
    bodies: list[list[Subtree]]


def state_of(tree: Tree, q: Vector, qd: Vector, qdd: Vector, external: External) -> State:
    """The robot at a motion."""
    own = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    moving = base_to_tip(tree, move, base(tree.base_acceleration), *own)
    loads = external_forces(tree, q, external), external_fluxes(tree, q, external)
    return State(moving, tip_to_base(tree, compose, NOTHING, moving, *loads)[0])


def torque(link: Link, m: Moving, bodies: list[Subtree], qd: Vector, qdd: Vector) -> list[Scalar]:
    """Joint torque of a link."""
    felt = m.J.project(held(m, bodies))
    own = zip(felt, link.armature, qdd, link.resistance(qd), strict=True)
    return [t + rotor * acc + lost for t, rotor, acc, lost in own]


def torques(tree: Tree, state: State, qd: Vector, qdd: Vector) -> list[Scalar]:
    """Joint torques of all links; rotors and friction are those of the rates that are given."""
    own = tree.per_link_v(qd), tree.per_link_v(qdd)
    return tree.gather(each_link(tree, torque, *state, *own))
