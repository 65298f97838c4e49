"""How the centroidal momentum matrix changes in a motion.

    Ȧ_i = (k̇_i - c x ṗ_i - ċ x p_i, ṗ_i)

(k_i, p_i) is the momentum of the subtree beyond joint i per unit rate of that joint, I^c S, about
the base's origin. Seen from there, its rate is I^c Ṡ + İ^c S with İ^c = B^c + B^cᵀ: the wrenches of
``column_wrenches.py``, where the skew parts of B and Bᵀ cancel. Moved to the centre of mass it is
k_i - c x p_i, and c moves.

    base -> tip   v, Ṡ      velocity of each link; its joint's columns as they turn with it
    tip -> base   I^c, B^c  inertia and flux of the subtree; at the base m c and m ċ
    each link     Ȧ         the three terms above, in base axes
"""

from __future__ import annotations

from functools import partial

from linkwise.algorithms.centroidal import about, centre
from linkwise.algorithms.column_wrenches import (
    NOTHING,
    STILL,
    Moving,
    Wrenches,
    compose,
    move,
    wrenches,
)
from linkwise.algorithms.poses import BASE_POSE, LinkPose, place
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, Vec3, Vector, cross, reciprocal
from linkwise.sweep import base_to_tip, each_link, every_link, tip_to_base


def _joint(_link: Link, m: Moving) -> JointState:
    return m.J


def _columns(c: Vec3, speed: Vec3, _link: Link, pose: LinkPose, own: list[Wrenches]) -> list[Force]:
    """The rates of a joint's columns of A."""
    found = []
    for w in own:
        rate, lin = about(c, pose, w.rate + w.turned), pose.R @ w.momentum.lin
        found.append(Force(rate.ang - cross(speed, lin), rate.lin))
    return found


def centroidal_momentum_matrix_rate(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``Ȧ``: how the centroidal momentum matrix changes in a motion."""
    moving = base_to_tip(tree, move, STILL, tree.per_link_q(q), tree.per_link_v(qd))
    subtrees, (body, flux) = tip_to_base(tree, compose, NOTHING, moving)
    poses = base_to_tip(tree, place, BASE_POSE, each_link(tree, _joint, moving))
    speed = flux.momentum().lin * reciprocal(body.m)
    own = each_link(tree, wrenches, moving, subtrees)
    found = every_link(tree, partial(_columns, centre(body), speed), poses, own)
    return tree.as_matrix(tree.gather_columns(found, list), 6)
