"""Turning rates along a chain by a scan.

w ↦ Rᵀ w + w0      from the link before a piece to the last link of the piece
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from linkwise.algorithms.external import External
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, Vec3, Vector, cross
from linkwise.sweep import Law, at_links, each_link, outward, scan_and_total


class Spin(NamedTuple):
    """Turning rates along a piece: axes of its last link in those before it, and its own rate."""

    R: Mat3
    w: Vec3

    def after(self, w: Vec3) -> Vec3:
        """The rate of the last link, from that of the link before the piece."""
        return self.R.T @ w + self.w


def spin(link: Link, piece: Spin, q: Vector, qd: Vector) -> Spin:
    """With one link more at the outer end."""
    J = link.joint_state(q)
    R = Mat3(*(J.X.rotate(row) for row in piece.R.rows))
    return Spin(R, J.X.rotate(piece.w) + J.motion(qd).ang)


def join_spins(inner: Spin, outer: Spin) -> Spin:
    """Two pieces as one."""
    R = Mat3(*(outer.R.T @ row for row in inner.R.rows))
    return Spin(R, outer.after(inner.w))


def share_spin(inner: Spin, _outer: Spin, before: Spin) -> tuple[Spin, Spin]:
    """The rates of the links before both, and their axes in those of the base."""
    return before, join_spins(before, inner)


AT_REST = Spin(Mat3.identity(), Vec3.zero())
SPINS = Law(spin, join_spins, share_spin, AT_REST)


def turning(before: Spin) -> Velocity:
    """A link that turns, as the parent of the first link of a piece."""
    return STILL._replace(w=before.w)


def spins(tree: Tree, q_: list[Vector], qd_: list[Vector]) -> tuple[Any, Spin]:
    """How the link before each piece turns; and the last link of the chain."""
    return scan_and_total(tree, SPINS, AT_REST, q_, qd_)


def velocities(tree: Tree, before: Any, q_: list[Vector], qd_: list[Vector]) -> list[Velocity]:
    """Velocity products of every link, from how the link before each piece turns."""
    return outward(tree, turn, turning, (before,), q_, qd_)


def pushes(
    tree: Tree, before: Any, q_: list[Vector], qd_: list[Vector], external: External
) -> list[Force]:
    """The wrench on each link from outside, at the link's origin in link axes."""
    total = at_links(tree, Force.zero(), ())
    if external:
        turned = outward(tree, spin, lambda before: before, (before,), q_, qd_)
        for frame, wrench in external:
            given = Force(Vec3(*wrench[:3]), Vec3(*wrench[3:]))
            own = at_links(tree, Force.zero(), [(frame.link, given)])
            total = each_link(tree, partial(push, Vec3(*frame.origin)), total, turned, own)
    return total


def push(origin: Vec3, _link: Link, total: Force, turned: Spin, given: Force) -> Force:
    """One wrench more on a link, given in base axes at a point of the link."""
    axes = turned.R.T
    force = axes @ given.lin
    return total + Force(axes @ given.ang + cross(origin, force), force)
