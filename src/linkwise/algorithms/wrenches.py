"""Wrenches across the joints: all six components, where inverse dynamics keeps the torques.

    F_i = I_i a_i + b_i - f_ext_i + Σ F_children

By the sweeps of ``rnea.py``, on the bodies of the file: regrouped bodies have other wrenches. F_i
is the wrench that the parent puts on the link through joint i: moment and force in the axes of the
joint's own frame (in a file, that of its child link), the moment about the frame's origin. A joint
that the file does not name uses its link's frame, or else the frame that the algorithms use.
"""

from __future__ import annotations

from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Force, Mat3, Scalar, Vec3, Vector, cross
from linkwise.sweep import base_to_tip, each_link, tip_to_base


def needed(link: Link, m: Rates, ext: Force) -> Force:
    """The wrench that a link's own motion needs, less the external one."""
    return link.inertia.force(m.a, m.U) - ext


def transmit(_link: Link, children: Force, m: Rates, own: Force) -> tuple[Force, Force]:
    """The wrench of a link's joint, here and at the parent."""
    F = own + children
    return F, m.J.X.force_back(F)


def link_frame_wrenches(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, external: External = ()
) -> list[Force]:
    """The wrench across each joint, at its link's origin in the axes that algorithms use."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, qdd_)
    own = each_link(tree, needed, motions, external_forces(tree, q, external))
    wrenches, _ = tip_to_base(tree, transmit, Force.zero(), motions, own)
    return wrenches


def joint_wrenches(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> list[list[Scalar]]:
    """The wrench across each joint, one row (moment, force) per link."""
    found = link_frame_wrenches(tree, q, qd, qdd, external)
    return each_link(tree, _seen_in, tree.joint_frames, found)


def _seen_in(_link: Link, frame: Frame, F: Force) -> list[Scalar]:
    """A wrench at the link's origin, about a frame's origin and in its axes."""
    turn = Mat3(*(Vec3(*row) for row in frame.rotation)).T
    return [*(turn @ (F.ang - cross(Vec3(*frame.origin), F.lin))), *(turn @ F.lin)]
