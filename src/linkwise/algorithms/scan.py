"""Dynamics of a chain in a number of steps that grows with the logarithm of its length.

Each recursion along the chain maps what is at one end of a piece to what is at the other, and maps
can be joined in any grouping. So the chain is cut into pieces, every piece finds its own map, maps
are joined in a balanced tree (`scan`), and every piece then runs the usual recursion from what it
was given. The maps are those of the spatial operators [Rodriguez and Kreutz]: the filter is a
Möbius map of the articulated inertia, the smoother an affine map of the acceleration, and a piece
carries both.

    poses              ``reaches.py``       turning rates      ``spins.py``
    forward dynamics   ``pieces.py``        inverse dynamics   ``loads.py``, ``scan_inverse.py``
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import pieces
from linkwise.algorithms.aba import NOTHING, accelerate, articulate
from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.external import External, drive
from linkwise.algorithms.kinematics import at_frame, homogeneous
from linkwise.algorithms.pieces import Ends, Piece
from linkwise.algorithms.rates import Velocity
from linkwise.algorithms.reaches import tip_pose
from linkwise.algorithms.spins import Spin, pushes, spins, velocities
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Force, Matrix, Motion, Scalar, Vec3, Vector
from linkwise.sweep import Law, each_link, inward, outward, scan_and_total

ARTICULATED = Law(pieces.grow, pieces.join, pieces.share, pieces.NO_LINK, inward=True)


class Driven(NamedTuple):
    """What moves the links of a chain: velocity products, wrenches from outside, and the motors'
    torques; and how its last link turns.
    """

    links: tuple[list[Velocity], list[Force], list[list[Scalar]]]
    tip: Spin


def driven(tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> Driven:
    """What moves a chain, from scans of its turning rates."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    (turned, tip), own = spins(tree, q_, qd_), each_link(tree, drive, tau_, qd_)
    v, ext = velocities(tree, turned, q_, qd_), pushes(tree, turned, q_, qd_, external)
    return Driven((v, ext, own), tip)


def at_base(tree: Tree) -> Motion:
    """The acceleration of the base, which gravity is taken for."""
    return Motion(Vec3.zero(), tree.base_acceleration)


class Solved(NamedTuple):
    """Joint accelerations; the whole chain as one piece, and how its last link turns."""

    qdd: list[Scalar]
    chain: Piece
    tip: Spin


def solved(tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External) -> Solved:
    """Forward dynamics, and what the scans leave of the whole chain."""
    moved, tip = driven(tree, q, qd, tau, external)
    ends, chain = scan_and_total(tree, ARTICULATED, Ends(NOTHING, at_base(tree)), *moved)
    handles = inward(tree, articulate, lambda ends: ends.tip, (ends,), *moved)
    states = outward(tree, accelerate, before, (ends,), moved[0], handles)
    return Solved(joint_accelerations(tree, states), chain, tip)


def forward_dynamics(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, *, external: External = ()
) -> list[Scalar]:
    """Joint accelerations."""
    return solved(tree, q, qd, tau, external).qdd


def before(ends: Ends) -> Acceleration:
    """The link before a piece."""
    return Acceleration(ends.base, [])


def forward_kinematics(tree: Tree, q: Vector, *, frame: Frame) -> Matrix:
    """Homogeneous 4x4 matrix that takes coordinates of a frame at the tip to base coordinates."""
    return homogeneous(at_frame(tip_pose(tree, q), frame))
