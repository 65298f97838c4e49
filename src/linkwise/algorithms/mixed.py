"""Mass matrix and Coriolis matrix with sums in link axes and entries in one fixed frame.

    M_ij = S_i · F_j,      C_ij and C_ji from the wrenches of column_wrenches.py

Composite bodies are summed as in ``crba.py`` and ``column_wrenches.py``, in link axes, where a
momentum is a column of the composite inertia and costs nothing. Each wrench is then turned to the
fixed frame of ``poses.py`` once, instead of being carried to every ancestor, and entries are formed
there.
"""

from __future__ import annotations

from linkwise.algorithms import coriolis, crba
from linkwise.algorithms.column_wrenches import Moving, Wrenches, moving_wrenches
from linkwise.algorithms.coriolis import Meeting
from linkwise.algorithms.gdahj import project
from linkwise.algorithms.poses import LinkPose, root_poses, stay
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, RigidInertia, Vector
from linkwise.sweep import each_link, each_pair, joint_states, tip_to_base


def mass_matrix(tree: Tree, q: Vector) -> Matrix:
    """``M``; entries between branches are exactly zero."""
    J, at = joint_states(tree, q), root_poses(tree, q)
    bodies, _ = tip_to_base(tree, crba.compose, RigidInertia.zero(), J)
    momenta = each_link(tree, crba.momenta, J, bodies)
    fixed = [pose.fixed_wrenches(own) for pose, own in zip(at, momenta, strict=True)]
    return project(tree, [pose.S for pose in at], fixed)


def to_fixed_point(_link: Link, columns: list[Wrenches], m: Moving, at: LinkPose) -> Meeting:
    """A joint's wrenches, its columns and their rates, at the fixed point."""
    turned = [Wrenches(*at.fixed_wrenches(own)) for own in columns]
    return turned, Moving(JointState(m.J.X, tuple(at.S)), m.v, tuple(at.fixed(m.dS)))


def coriolis_matrix(tree: Tree, q: Vector, qd: Vector) -> Matrix:
    """``C``; entries between branches are exactly zero."""
    moving, own = moving_wrenches(tree, q, qd)
    fixed = each_link(tree, to_fixed_point, own, moving, root_poses(tree, q))
    pairs = each_pair(tree, stay, coriolis.meet, *zip(*fixed, strict=True))
    # a joint with itself is cheaper in link axes
    met = (((j, i), (own[i], moving[i]) if i == j else far) for (j, i), far in pairs)
    return coriolis.assembled(tree, qd, met)
