"""What a law of a frame's motion asks of a robot of any length.

    a = J M⁻¹ (tau - b) + J̇ q̇      how the frame accelerates under the joints' torques alone
    Λ⁻¹ = J M⁻¹ Jᵀ                  how it yields to wrenches

With them, the torques that make the frame accelerate by u are ``tau + Jᵀ Λ (u - a)``: J and M⁻¹ are
never formed (``wrench_torques.py`` has Jᵀ F), and a takes the place of both the bias and J̇ q̇ of
``task_torques.py``. They are seven right-hand sides on one factorization [Fijany, Djouani, Fried
and Pontnau, VI], which is

    "recursive"              that of articulated inertias: FD3, and six wrenches filtered by its
                             factors (``operator_dynamics.py``, ``operational.py``)
    "schur", "schur-bcr"     that of the forces between bodies (``schur_operational.py``)
    "scan"                   a chain as one piece (``scan_response.py``)

Each driver returns the frame's `Response` (``response.py``) as one list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.external import External
from linkwise.algorithms.filtered_pushes import yielded
from linkwise.algorithms.grip import Grip, grip
from linkwise.algorithms.interbody import system
from linkwise.algorithms.kinematics import at_frame, jacobian_dot_qd
from linkwise.algorithms.operator_dynamics import filtered
from linkwise.algorithms.orders import Order, every_other, one_by_one
from linkwise.algorithms.poses import link_pose
from linkwise.algorithms.rates import at_rest, glide, move
from linkwise.algorithms.response import Response
from linkwise.algorithms.schur import accelerations
from linkwise.algorithms.schur_operational import mobility
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vec3, Vector
from linkwise.sweep import along_path, joint_states, of_link


def recursive(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, frame: Frame, external: External = ()
) -> list[Scalar]:
    """By articulated inertias; of trees without followers."""
    at, (factors, moved) = grip(tree, q, frame, "base"), filtered(tree, q, qd, tau, external)
    drift = jacobian_dot_qd(tree, q, qd, frame=frame)
    own = at.seen(of_link(tree, frame.link, moved).a)
    acceleration = [a + b for a, b in zip(own, drift, strict=True)]
    inverse = yielded(factors, frame.link, at.pushes())
    return _response(tree, q, qd, frame, at, acceleration, inverse)


def _by_schur(order: Order) -> Callable[..., list[Scalar]]:
    def driver(
        tree: Tree, q: Vector, qd: Vector, tau: Vector, *, frame: Frame, external: External = ()
    ) -> list[Scalar]:
        """By forces between bodies: the frame's acceleration is that of the joints'."""
        at, s = grip(tree, q, frame, "base"), system(tree, q, order)
        qdd, _ = accelerations(s, q, qd, tau, external)
        states = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
        _, m = along_path(tree, frame.link, move, at_rest(Vec3.zero()), *states)
        here = Motion(m.dw, m.a + m.U @ at.origin)
        turn = at.axes.T
        acceleration = [*(turn @ here.ang), *(turn @ here.lin)]
        return _response(tree, q, qd, frame, at, acceleration, mobility(s, frame, at))

    return driver


schur, schur_bcr = map(_by_schur, (one_by_one, every_other))


def _response(
    tree: Tree,
    q: Vector,
    qd: Vector,
    frame: Frame,
    at: Grip,
    acceleration: list[Scalar],
    inverse: Matrix,
) -> list[Scalar]:
    """A response, with the pose and the velocity that every way finds alike."""
    J, qd_ = joint_states(tree, q), tree.per_link_v(qd)
    _, velocity = along_path(tree, frame.link, glide, Motion.zero(), J, qd_)
    pose = at_frame(link_pose(tree, q, frame.link), frame)
    return Response(pose, list(at.seen(velocity)), acceleration, inverse).numbers()
