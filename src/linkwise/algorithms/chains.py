"""Columns of the joints between base and link, in common axes, and arrays over three of them.

A chain lists every column from the base out to a link, its motion taken at a common origin. One
column moves another that is further out, itself, and its fellows where its joint's rates are no
derivatives of coordinates (spherical and free joints).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.kinematics import BASE_POSE, Pose
from linkwise.algorithms.rates import NO_JOINT
from linkwise.model.joints import Stance
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Mat3, Motion, Scalar, Vec3, cross
from linkwise.sweep import base_to_tip

Tensor = list[list[list[Scalar]]]


class Column(NamedTuple):
    """One column of a joint: its motion, what drives it, and the first column that it moves."""

    S: Motion
    dof: int
    factor: float
    moves: int


Chain = tuple[Column, ...]


def extend(link: Link, inner: Chain, pose: Pose) -> Chain:
    """The chain of a link from its parent's."""
    own: list[Column] = []
    for (dof, factor), column in zip(link.dofs, pose.J.S, strict=True):
        ang = pose.R @ column.ang
        S = Motion(ang, pose.R @ column.lin + cross(pose.p, ang))
        moves = len(inner) + (0 if link.joint.quasi else len(own))
        own.append(Column(S, dof, factor, moves))
    return (*inner, *own)


def settle(_link: Link, parent: Pose, J: Stance) -> Pose:
    """Pose of a link from its parent's, its joint given."""
    R = Mat3(*(J.X.rotate(row) for row in parent.R.rows))
    return Pose(R, parent.p + parent.R @ J.X.r, J)


def root_poses(tree: Tree, q: Sequence[Scalar]) -> list[Pose]:
    """Pose of every link in the frame of the link that its branch leaves the base by.

    What is made of scalar products is the same in any axes, and these take no work to reach.
    """
    J = [link.stance(qi) for link, qi in zip(tree.links, tree.per_link_q(q), strict=True)]
    from_root = [
        Stance(NO_JOINT.X, own.S) if link.parent == BASE else own
        for link, own in zip(tree.links, J, strict=True)
    ]
    return base_to_tip(tree, settle, BASE_POSE, from_root)


def chains(tree: Tree, poses: Sequence[Pose]) -> list[Chain]:
    """The chain of every link."""
    return base_to_tip(tree, extend, (), poses)


def at_point(chain: Chain, p: Vec3) -> list[Motion]:
    """Angular and linear motion, at a point, of each column: first-order coefficients."""
    return [Motion(c.S.ang, c.S.lin + cross(c.S.ang, p)) for c in chain]


def no_tensor(rows: int, columns: int) -> Tensor:
    """Zeros."""
    return [[[0.0] * columns for _ in range(columns)] for _ in range(rows)]


def add(T: Tensor, i: Column, j: Column, k: Column, x: Scalar) -> None:
    """Add what three columns share to the degrees of freedom that move them."""
    factor = i.factor * j.factor * k.factor
    row = T[i.dof][j.dof]
    row[k.dof] = row[k.dof] + (x if factor == 1.0 else x * factor)
