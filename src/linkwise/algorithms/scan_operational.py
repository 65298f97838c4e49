"""Operational space of the tip of a chain, by scans.

Of the whole chain as one piece (``pieces.py``), the mobility of its last link is the tip's Λ⁻¹:
``J M⁻¹ Jᵀ`` with neither J nor M formed. Forward dynamics leaves it behind: a right-hand side of
torques and six of unit wrenches, on one factorization.
"""

from __future__ import annotations

from linkwise.algorithms.external import External
from linkwise.algorithms.grip import Grip
from linkwise.algorithms.kinematics import axes_of
from linkwise.algorithms.operational import inverted
from linkwise.algorithms.pieces import Piece
from linkwise.algorithms.rates import STILL, turn
from linkwise.algorithms.reaches import tip_pose
from linkwise.algorithms.scan import ARTICULATED, solved
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Force, Mat3, Matrix, Motion, Scalar, Vec3, Vector
from linkwise.sweep import at_links, each_link, total


def operational_inertia_inverse(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``J M⁻¹ Jᵀ`` of a frame at the tip."""
    q_, still = tree.per_link_q(q), tree.per_link_v([0.0] * tree.nv)
    at_rest = each_link(tree, lambda link, q, qd: turn(link, STILL, q, qd), q_, still)
    chain = total(tree, ARTICULATED, at_rest, at_links(tree, Force.zero(), ()), still)
    turned = tip_pose(tree, q).R if axes == "base" else Mat3.identity()
    return mobility(chain, turned, frame, axes)


def mobility(chain: Piece, turned: Mat3, frame: Frame, axes: str) -> Matrix:
    """How a frame of the last link yields to wrenches, in base axes or its own."""
    grip = Grip(turned.T if axes == "base" else axes_of(frame), Vec3(*frame.origin))
    moved = [chain.J @ Motion(push.ang, push.lin) for push in grip.pushes()]
    return [list(grip.seen(Motion(m.ang, m.lin))) for m in moved]


operational_inertia = inverted(operational_inertia_inverse)


def dynamics_and_inverse(
    tree: Tree,
    q: Vector,
    qd: Vector,
    tau: Vector,
    *,
    frame: Frame,
    axes: str = "base",
    external: External = (),
) -> list[Scalar]:
    """``qdd``, then ``Λ⁻¹`` by rows."""
    found = solved(tree, q, qd, tau, external)
    inverse = mobility(found.chain, found.tip.R, frame, axes)
    return tree.beside(found.qdd, [x for row in inverse for x in row])
