"""Derivatives of the Lagrangian: the momentum, and the force at given rates.

    ∂L/∂qd = M qd,      ∂L/∂q = ∂T/∂q - g(q),      ∂T/∂q_k = h · ∂v/∂q_k

Two sweeps: base -> tip v, the velocity of each link; tip -> base h, the momentum of its subtree.
Moving joint coordinate k turns and shifts the link's axes by its column S_k, so that the velocity
handed on by the parent is seen from other axes, and the columns may change themselves:

    v = X v_parent + S qd,      ∂v/∂q_k = (v - S qd) x S_k + (∂S/∂q_k) qd

For a joint that turns in all directions this is the change at fixed rates in the link's own axes.
Of a momentum, ``pushed`` and ``pulled`` are what moving along a chart makes of it: the transposes
of dexp and dexp⁻¹, as series of the bracket, good to rounding for turns of up to 0.2 rad per step.
"""

from __future__ import annotations

from functools import partial

from linkwise.algorithms.external import External
from linkwise.algorithms.rates import glide
from linkwise.algorithms.rnea import gravity_torque
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Motion, Scalar, Vector
from linkwise.sweep import base_to_tip, each_link, joint_states, tip_to_base

# dexp = Σ ad^k / (k + 1)!,   dexp⁻¹ = Σ B_k ad^k / k!  with Bernoulli's numbers
DEXP = (1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880)
DEXP_INVERSE = (1.0, -1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240, 0.0, -1 / 1209600)


def changes(
    link: Link, children: Force, v: Motion, J: JointState, q: Vector, qd: Vector
) -> tuple[tuple[list[Scalar], list[Scalar]], Force]:
    """Of each column the momentum and ``h · ∂v/∂q_k``; the subtree's momentum for the parent."""
    h = children + link.inertia @ v
    rotors = zip(J.project(h), link.armature, qd, strict=True)
    momenta = [own + rotor * rate for own, rotor, rate in rotors]
    carried, forces = v - J.motion(qd), []
    for k, column in enumerate(J.S):
        along = [float(j == k) for j in range(len(J.S))]
        change = JointState(J.X, link.joint.column_rates(q, along)).motion(qd)
        forces.append((carried.cross(column) + change).dot(h))
    return (momenta, forces), J.X.force_back(h)


def lagrangian(
    tree: Tree, q: Vector, qd: Vector, *, external: External = ()
) -> tuple[list[Scalar], list[Scalar]]:
    """``∂L/∂qd``, the momentum, and ``∂L/∂q``, with external wrenches and the joints' resistance
    among the forces.
    """
    J, q_, rates = joint_states(tree, q), tree.per_link_q(q), tree.per_link_v(qd)
    velocities = base_to_tip(tree, glide, Motion.zero(), J, rates)
    found, _ = tip_to_base(tree, changes, Force.zero(), velocities, J, q_, rates)
    momentum, forces = (tree.gather([own[k] for own in found]) for k in (0, 1))
    lost = tree.gather(each_link(tree, _resistance, rates))
    held = gravity_torque(tree, q, external=external)
    return momentum, [a - b - c for a, b, c in zip(forces, held, lost, strict=True)]


def _resistance(link: Link, qd: Vector) -> list[Scalar]:
    return link.resistance(qd)


def pushed(tree: Tree, u: Vector, p: Vector) -> list[Scalar]:
    """``dexp_uᵀ p``."""
    return _series(tree, DEXP, u, p)


def pulled(tree: Tree, u: Vector, p: Vector) -> list[Scalar]:
    """``dexp_u⁻ᵀ p``."""
    return _series(tree, DEXP_INVERSE, u, p)


def _series(tree: Tree, numbers: tuple[float, ...], u: Vector, p: Vector) -> list[Scalar]:
    body = partial(_sum, numbers)
    return tree.own_numbers(each_link(tree, body, tree.per_link_v(u), tree.per_link_v(p)))


def _sum(numbers: tuple[float, ...], link: Link, u: Vector, p: Vector) -> list[Scalar]:
    total, term = list(p), list(p)
    for c in numbers[1:]:
        term = link.joint.cobracket(u, term)
        total = [a + c * b for a, b in zip(total, term, strict=True)]
    return total
