"""The torques of a wrench at a frame, ``Jᵀ F``, without J.

The wrench goes from the frame's link to the base, and every joint on its way feels it. By a scan,
of a frame at the tip of a chain, each piece is told where the tip is, seen from its own last link:
the wrench is then known where the piece ends, without the rounding of positions far from the base.
F is (moment, force) at the frame, in the frame's own axes.
"""

from __future__ import annotations

from linkwise.algorithms.grip import Grip
from linkwise.algorithms.kinematics import axes_of
from linkwise.algorithms.reaches import HERE, Reach, join
from linkwise.model.joints import JointState
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Force, Mat3, Scalar, Vec3, Vector, cross
from linkwise.sweep import Law, at_links, inward, joint_states, scan, tip_to_base


def on_link(frame: Frame, wrench: Vector) -> Force:
    """A wrench at a frame in its own axes, as one on its link."""
    total = Force.zero()
    for push, x in zip(Grip(axes_of(frame), Vec3(*frame.origin)).pushes(), wrench, strict=True):
        total = total + push * x
    return total


def press(_link: Link, children: Force, J: JointState, own: Force) -> tuple[list[Scalar], Force]:
    """The torques of a wrench that comes from the links further out, and goes on to the base."""
    f = children + own
    return J.project(f), J.X.force_back(f)


def wrench_torques(tree: Tree, q: Vector, wrench: Vector, *, frame: Frame) -> list[Scalar]:
    """``Jᵀ F``, from the frame inward."""
    own = at_links(tree, Force.zero(), [(frame.link, on_link(frame, wrench))])
    return tree.gather(tip_to_base(tree, press, Force.zero(), joint_states(tree, q), own)[0])


def seen_from_before(link: Link, tip: Reach, q: Vector) -> Reach:
    """The tip, seen from one link further in."""
    X = link.joint_state(q).X
    columns = Mat3(*(X.rotate_back(column) for column in tip.R.T.rows))
    return Reach(columns.T, X.r + X.rotate_back(tip.p))


def share(_inner: Reach, outer: Reach, tip: Reach) -> tuple[Reach, Reach]:
    """The tip as the last link of each piece sees it."""
    return join(outer, tip), tip


TO_TIP = Law(seen_from_before, join, share, HERE, inward=True)


def by_scan(tree: Tree, q: Vector, wrench: Vector, *, frame: Frame) -> list[Scalar]:
    """``Jᵀ F`` of a frame at the tip of a chain."""
    own, none = on_link(frame, wrench), at_links(tree, Force.zero(), ())
    tips = scan(tree, TO_TIP, HERE, tree.per_link_q(q))

    def after(tip: Reach) -> Force:
        """The wrench, where a piece ends."""
        force = tip.R @ own.lin
        return Force(tip.R @ own.ang + cross(tip.p, force), force)

    return tree.gather(inward(tree, press, after, (tips,), joint_states(tree, q), none))
