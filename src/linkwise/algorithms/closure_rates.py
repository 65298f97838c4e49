"""How frame a of a closed loop moves against frame b.

In the axes of link b, with E from axes of link a to those of link b, o the origin of frame a on
link a, and s the same point seen from the origin of link b:

    w_rel = E w_a - w_b                     v_rel = E (v_a + w_a x o) - (v_b + w_b x s)
    α_rel = E dw_a - dw_b - w_b x E w_a     a_rel = E (a_a + U_a o) - (a_b + U_b s) - 2 w_b x v_rel

The first line is the velocity of a as an observer on b sees it, at the origin of a. The second is
how its numbers change: in axes that turn with w_b, ``d/dt x = ẋ - w_b x x``, and the velocity of
the point s of link b that a is at changes by ``w_b x v_rel`` because that point moves along b.

Links that carry both frames are taken to be at rest, which no observer notices; but the terms of
`products`, which are added to accelerations that some sweep has found, are those of all links.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.closures import Seam
from linkwise.algorithms.curves import curve_drifts, curve_velocities
from linkwise.algorithms.rates import STILL, Velocity, at_rest, glide, move
from linkwise.model.tree import BASE, Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import along_path, joint_states, of_link

Rows = list[Scalar]  # a number per direction that is held


def _rates(tree: Tree, qd: Vector, seam: Seam) -> list[Vector]:
    """Joint rates by link, zero on links that carry both frames."""
    own = enumerate(tree.per_link_v(qd))
    return [[0.0] * len(rates) if i in seam.shared else rates for i, rates in own]


def relative_velocity(tree: Tree, q: Vector, qd: Vector, seam: Seam) -> Motion:
    """``(w_rel, v_rel)``."""
    J, rates = joint_states(tree, q), _rates(tree, qd, seam)
    ends = (seam.closure.a.link, seam.closure.b.link)
    a, b = (along_path(tree, end, glide, Motion.zero(), J, rates)[1] for end in ends)
    at_a = seam.E @ (a.lin + cross(a.ang, seam.origin))
    return Motion(seam.E @ a.ang - b.ang, at_a - (b.lin + cross(b.ang, seam.s)))


def velocities(tree: Tree, q: Vector, qd: Vector, seams: Sequence[Seam]) -> Rows:
    """``J qd``."""
    held = [x for seam in seams for x in seam.along(relative_velocity(tree, q, qd, seam))]
    return held + curve_velocities(tree, q, qd)


def drifts(tree: Tree, q: Vector, qd: Vector, seams: Sequence[Seam]) -> Rows:
    """``J̇ qd``: relative accelerations at constant joint rates."""
    held = [x for seam in seams for x in seam.along(_drift(tree, q, qd, seam))]
    return held + curve_drifts(tree, q, qd)


def _drift(tree: Tree, q: Vector, qd: Vector, seam: Seam) -> Motion:
    rates, none = _rates(tree, qd, seam), tree.per_link_v([0.0] * tree.nv)
    start, q_ = at_rest(Vec3.zero()), tree.per_link_q(q)
    ends = (seam.closure.a.link, seam.closure.b.link)
    a, b = (along_path(tree, end, move, start, q_, rates, none)[1] for end in ends)
    v_rel = relative_velocity(tree, q, qd, seam).lin
    angular = seam.E @ a.dw - b.dw - cross(b.w, seam.E @ a.w)
    linear = seam.E @ (a.a + a.U @ seam.origin) - (b.a + b.U @ seam.s)
    return Motion(angular, linear - cross(b.w, v_rel) * 2.0)


def products(
    tree: Tree, q: Vector, qd: Vector, seams: Sequence[Seam], moving: Sequence[Velocity]
) -> Rows:
    """What accelerations of link origins lack of relative accelerations: products of rates."""
    return [x for seam in seams for x in seam.along(_product(tree, q, qd, seam, moving))]


def _product(tree: Tree, q: Vector, qd: Vector, seam: Seam, moving: Sequence[Velocity]) -> Motion:
    ends = (seam.closure.a.link, seam.closure.b.link)
    a, b = (STILL if end == BASE else of_link(tree, end, moving) for end in ends)
    v_rel = relative_velocity(tree, q, qd, seam).lin
    linear = seam.E @ (a.W @ seam.origin) - b.W @ seam.s
    return Motion(-cross(b.w, seam.E @ a.w), linear - cross(b.w, v_rel) * 2.0)
