"""Wrenches across the joints: all six components, where inverse dynamics keeps the torques.

    F_i = I_i a_i + b_i - f_ext_i + Σ F_children

By the sweeps of ``rnea.py``, on bodies as they are: regrouped ones have other wrenches. ``F_i`` is
what the parent's side puts on the link through joint i, as (moment, force) in the joint's own frame
(its child link's in the file): that frame's axes, about its origin. A joint that the file does not
name has its link's frame, or else the frame that the algorithms use.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Force, Mat3, Scalar, Vec3, cross
from linkwise.sweep import base_to_tip, tip_to_base


def carry(_link: Link, children: Force, m: Rates, own: Force) -> tuple[Force, Force]:
    """The wrench of a link's joint, here and at the parent."""
    F = own + children
    return F, m.J.X.force_back(F)


def link_frame_wrenches(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    external: External = (),
) -> list[Force]:
    """The wrench across each joint, at its link's origin in the axes that algorithms use."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, qdd_)
    ext = external_forces(tree, q_, external)
    needed = [
        link.inertia.force(m.a, m.U) - e
        for link, m, e in zip(tree.links, motions, ext, strict=True)
    ]
    wrenches, _ = tip_to_base(tree, carry, Force.zero(), motions, needed)
    return wrenches


def joint_wrenches(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    *,
    external: External = (),
) -> list[list[Scalar]]:
    """The wrench across each joint, one row (moment, force) per link."""
    found = link_frame_wrenches(tree, q, qd, qdd, external)
    return [list(_seen_in(_frame(tree, i), F)) for i, F in enumerate(found)]


def _frame(tree: Tree, i: int) -> Frame | None:
    """The joint's frame; a name may stand for something on another link."""
    link = tree.links[i]
    named = (tree.frames.get(name) for name in (link.joint_name, link.name))
    return next((frame for frame in named if frame and frame.link == i), None)


def _seen_in(frame: Frame | None, F: Force) -> Force:
    """A wrench at the link's origin, about a frame's origin and in its axes."""
    if frame is None:
        return F
    turn = Mat3(*(Vec3(*row) for row in frame.rotation)).T
    return Force(turn @ (F.ang - cross(Vec3(*frame.origin), F.lin)), turn @ F.lin)
