"""Inverse dynamics: the recursive Newton-Euler algorithm.

    tau = M(q) qdd + C(q, qd) qd + g(q) + friction(qd) - Jᵀ f_ext

Two sweeps [Luh, Walker and Paul 1980], link coordinates:

    base -> tip   w, dw, a   turning rates and the origin's acceleration (rates.py)
    tip -> base   f, tau     wrenches summed over the subtree, projected on the joint
"""

from __future__ import annotations

from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import base_to_tip, tip_to_base


def load(
    link: Link, children: Force, m: Rates, ext: Force, qd: Vector, qdd: Vector
) -> tuple[list[Scalar], Force]:
    """Joint torque of a link, and the wrench it hands to its parent."""
    f = link.inertia.force(m.a, m.U) + children - ext
    terms = zip(m.J.project(f), link.armature, qdd, link.resistance(qd), strict=True)
    tau = [t + rotor * acc + lost for t, rotor, acc, lost in terms]
    return tau, m.J.X.force_back(f)


def rnea(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> list[Scalar]:
    """Joint torques for a motion."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, qdd_)
    ext = external_forces(tree, q, external)
    taus, _ = tip_to_base(tree, load, Force.zero(), motions, ext, qd_, qdd_)
    return tree.gather(taus)


def bias(tree: Tree, q: Vector, qd: Vector, *, external: External = ()) -> list[Scalar]:
    """``C qd + g`` and friction: the torques of a motion without acceleration."""
    return rnea(tree, q, qd, [0.0] * tree.nv, external=external)


def unbiased(tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> list[Scalar]:
    """``tau - bias``: the torques that are left to accelerate the joints."""
    load = bias(tree, q, qd, external=external)
    return [t - b for t, b in zip(tau, load, strict=True)]


def gravity_torque(tree: Tree, q: Vector, *, external: External = ()) -> list[Scalar]:
    """``g``: the torques of rest."""
    return bias(tree, q, [0.0] * tree.nv, external=external)
