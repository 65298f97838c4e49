"""The centre of mass, its Jacobian, and the centroidal momentum matrix.

    c = Σ m_i c_i / m,      m ċ = J qd,      h = (∫(r - c) x v dm, ∫v dm) = A qd

[Orin, Goswami and Lee 2013]. Two sweeps, and every link on its own:

    tip -> base   I^c    inertia of the subtree; at the base its first moment m c
    base -> tip   R, p   axes and origin of each link, seen from the base
    each link     A, J   momentum I^c S of the subtree per unit joint rate, in base axes about c;
                         its linear part is m J

Column i of A is the momentum that the robot has when joint i alone moves: everything beyond the
joint then moves as one body, and nothing else does. Rotors of motors have no part in it.
"""

from __future__ import annotations

from functools import partial

from linkwise.algorithms.crba import compose, momenta
from linkwise.algorithms.poses import BASE_POSE, LinkPose, place
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, RigidInertia, Scalar, Vec3, Vector, cross, reciprocal
from linkwise.sweep import base_to_tip, every_link, joint_states, tip_to_base


def about(c: Vec3, pose: LinkPose, f: Force) -> Force:
    """A wrench or momentum at a link's origin in its axes -> about c, in base axes."""
    lin = pose.R @ f.lin
    return Force(pose.R @ f.ang + cross(pose.p - c, lin), lin)


def centre(whole: RigidInertia) -> Vec3:
    """The centre of mass of all links together."""
    c: Vec3 = whole.h * reciprocal(whole.m)
    return c


def center_of_mass(tree: Tree, q: Vector) -> list[Scalar]:
    """The centre of mass of the moving links, in base axes."""
    _, whole = tip_to_base(tree, compose, RigidInertia.zero(), joint_states(tree, q))
    return [*centre(whole)]


def _columns(c: Vec3, link: Link, pose: LinkPose, body: RigidInertia) -> list[Force]:
    """The momentum of each of a joint's columns, in base axes about c."""
    return [about(c, pose, f) for f in momenta(link, pose.J, body)]


def centroidal_momentum_matrix(tree: Tree, q: Vector) -> Matrix:
    """``A``: rows (angular, linear) of the momentum about the centre of mass, per joint rate."""
    J = joint_states(tree, q)
    bodies, whole = tip_to_base(tree, compose, RigidInertia.zero(), J)
    poses = base_to_tip(tree, place, BASE_POSE, J)
    found = every_link(tree, partial(_columns, centre(whole)), poses, bodies)
    return tree.as_matrix(tree.gather_columns(found, list), 6)


def _pushed(share: Scalar, link: Link, pose: LinkPose, body: RigidInertia) -> list[Vec3]:
    """How each of a joint's columns moves the centre of mass."""
    return [pose.R @ (f.lin * share) for f in momenta(link, pose.J, body)]


def com_jacobian(tree: Tree, q: Vector) -> Matrix:
    """``J``: velocity of the centre of mass per joint rate."""
    J = joint_states(tree, q)
    bodies, whole = tip_to_base(tree, compose, RigidInertia.zero(), J)
    poses = base_to_tip(tree, place, BASE_POSE, J)
    found = every_link(tree, partial(_pushed, reciprocal(whole.m)), poses, bodies)
    return tree.as_matrix(tree.gather_columns(found, list), 3)
