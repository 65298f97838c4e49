"""What a law of the tip's motion asks of a chain: ``frame_response.py`` by scans.

Of the chain as one piece (``pieces.py``), ``Aᵀ u + η`` is the acceleration of the last link, with u
that of the base, and J its mobility: the way up the tree is all that is needed. Pose and velocity
of the tip are those of a piece too,

    R, p    axes and origin of the last link, seen from the link before the piece
    v, w    its velocity in the same axes, while the link before is at rest
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import reaches
from linkwise.algorithms.external import External
from linkwise.algorithms.kinematics import at_frame
from linkwise.algorithms.poses import LinkPose
from linkwise.algorithms.reaches import HERE, Reach
from linkwise.algorithms.response import Response
from linkwise.algorithms.scan import ARTICULATED, at_base, driven
from linkwise.algorithms.scan_operational import mobility
from linkwise.algorithms.springs import back
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector, cross
from linkwise.sweep import Law, total


class Flight(NamedTuple):
    """Where the last link of a piece is and how it moves, seen from the link before the piece."""

    reach: Reach
    velocity: Motion


def fly(link: Link, piece: Flight, q: Vector, qd: Vector) -> Flight:
    """With one link more at the outer end."""
    J = link.joint_state(q)
    (R, _), v = piece.reach, piece.velocity
    reach, own = reaches.reach(link, piece.reach, q), J.motion(qd)
    turned = Motion(reach.R @ own.ang, reach.R @ own.lin)
    return Flight(reach, Motion(v.ang, v.lin + cross(v.ang, R @ J.X.r)) + turned)


def join(inner: Flight, outer: Flight) -> Flight:
    """Two pieces as one."""
    R, v, own = inner.reach.R, inner.velocity, outer.velocity
    carried = Motion(v.ang, v.lin + cross(v.ang, R @ outer.reach.p))
    moved = carried + Motion(R @ own.ang, R @ own.lin)
    return Flight(reaches.join(inner.reach, outer.reach), moved)


FLIGHTS = Law(fly, join, None, Flight(HERE, Motion.zero()))


def response(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, frame: Frame, external: External = ()
) -> list[Scalar]:
    """The `Response` of a frame at the tip."""
    moved, tip = driven(tree, q, qd, tau, external)
    chain = total(tree, ARTICULATED, *moved)
    (R, p), velocity = total(tree, FLIGHTS, tree.per_link_q(q), tree.per_link_v(qd))
    origin = Vec3(*frame.origin)
    y = back(chain.A, at_base(tree)) + chain.eta
    # y is of the link's origin, in link axes; at the frame, what turning adds comes on top
    turning = cross(tip.w, cross(tip.w, origin))
    lin = R @ (y.lin + cross(y.ang, origin) + turning) - tree.base_acceleration
    arm = R @ origin
    at = [*velocity.ang, *(velocity.lin + cross(velocity.ang, arm))]
    pose, inverse = at_frame(LinkPose(R, p), frame), mobility(chain, R, frame, "base")
    return Response(pose, at, [*(R @ y.ang), *lin], inverse).numbers()
