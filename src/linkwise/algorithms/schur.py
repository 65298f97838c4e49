"""Forward dynamics from the forces between bodies: Schur complements.

    F = H tau + W f                                                                [24, 29]
    A f = -Wᵀ g(H tau)                                                                 [35]
    qdd = Hᵀ g(F)                                                                  [32, 37]

[Fijany, Djouani, Fried and Pontnau, corrected; numbers in brackets are its equations]. F is the
wrench across each joint (pushes.py), A that of ``interbody.py``, and g(F) how links accelerate
across their joints under wrenches F (gaps.py).

    "schur"             A by block LDLᵀ from the tips inward                           [O(n)]
    "schur-bcr"         A by block cyclic reduction                  [O(log n) rounds of blocks]
    "schur-published"   as the paper: the bias is subtracted from tau first, then as "schur"

The published form loses digits on long chains, where the bias is much larger than what it leaves.
All forms lose digits as I⁻¹ is larger than M⁻¹: docs/papers/schur.md.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.blocks import Block
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.gaps import gaps
from linkwise.algorithms.interbody import System, solved, system
from linkwise.algorithms.orders import Order, every_other, one_by_one
from linkwise.algorithms.pushes import JointWrenches, driven, held
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.algorithms.rnea import unbiased
from linkwise.algorithms.tied import with_ties
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Motion, Scalar, Vector
from linkwise.sweep import base_to_tip, each_link


def biased(_link: Link, velocity: Velocity, ext: Force) -> Force:
    """``b``: the force that a link's velocity needs, less what acts on it from outside."""
    return velocity.p - ext


def withstood(_link: Link, p: JointWrenches, gap: Motion) -> Block:
    """``-Wᵀ g``: the acceleration apart of a joint's two links, which its wrenches must undo."""
    return [[-gap.dot(f)] for f in p.hold]


def joint_rates(_link: Link, p: JointWrenches, gap: Motion, x: Vector) -> list[Scalar]:
    """``Hᵀ g`` [37], or the rotor's own unknown."""
    return [-x[p.geared[k]] if k in p.geared else gap.dot(f) for k, f in enumerate(p.drive)]


def accelerations(
    s: System, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> tuple[list[Scalar], list[Force]]:
    """``qdd``, and the wrench across each joint.

    ``g`` is affine in F, so the gaps that the motors alone would open, ``g(H tau)``, are all that A
    has to close: ``Wᵀ g(H tau + W f) = Wᵀ g(H tau) + A f = 0``. Evaluating g again at the whole F
    gives qdd, where the paper adds up its linear parts.
    """
    tree, joints = s.tree, s.joints
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    velocities = base_to_tip(tree, turn, STILL, q_, qd_)
    ext = external_forces(tree, q, external)
    loads = each_link(tree, biased, velocities, ext)
    motors = each_link(tree, driven, joints, each_link(tree, drive, tau_, qd_))
    open_gaps = each_link(tree, withstood, joints, gaps(s, velocities, loads, motors))
    x = solved(s, open_gaps)
    F = each_link(tree, held, joints, motors, x)
    rates = each_link(tree, joint_rates, joints, gaps(s, velocities, loads, F), x)
    return tree.gather(rates), F


def _forward(order: Order) -> Callable[..., list[Scalar]]:
    def alone(tree: Tree, q: Vector, *rest: Vector) -> list[Scalar]:
        return accelerations(system(tree, q, order), q, *rest)[0]

    return with_ties(alone)


forward_dynamics = _forward(one_by_one)
forward_dynamics_bcr = _forward(every_other)


def forward_dynamics_published(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
) -> list[Scalar]:
    """The paper's form, for study: ``M⁻¹ (tau - bias)`` [21]."""
    left = unbiased(tree, q, qd, tau, external)
    return forward_dynamics(tree.without_gravity(), q, [0.0] * tree.nv, left)
