"""Columns of the joints between base and link, in common axes.

A chain lists every column from the base out to a link, its motion taken at a common origin. One
column moves another that is further out, itself, and its fellows where its joint's rates are no
derivatives of coordinates (spherical and free joints).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from linkwise.algorithms.crba import compose
from linkwise.algorithms.poses import LinkPose, root_poses
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Motion, RigidInertia, Vec3, Vector, cross
from linkwise.sweep import PerLink, base_to_tip, each_link, tip_to_base


class Column(NamedTuple):
    """One column of a joint: its motion, its number, and the first of the chain that it moves."""

    S: Motion
    number: int
    moves: int


Chain = tuple[Column, ...]
Measure = TypeVar("Measure")


def extend(link: Link, inner: Chain, pose: LinkPose, numbers: Sequence[int]) -> Chain:
    """The chain of a link from its parent's."""
    own: list[Column] = []
    for number, S in zip(numbers, pose.S, strict=True):
        moves = len(inner) + (0 if link.joint.quasi else len(own))
        own.append(Column(S, number, moves))
    return (*inner, *own)


def chains(tree: Tree, poses: PerLink) -> list[Chain]:
    """The chain of every link."""
    return base_to_tip(tree, extend, (), poses, tree.column_numbers)


def by_outermost(
    tree: Tree, q: Vector, measure: Callable[[RigidInertia, LinkPose, Motion], Measure]
) -> list[tuple[Chain, Measure]]:
    """For each column: the chain that ends with it, and a measure of the body that it moves.

    That is the composite body of its link, in link axes; the link's pose and the column are given
    beside it.
    """

    def columns(_link: Link, pose: LinkPose, body: RigidInertia, chain: Chain) -> list[Any]:
        own = enumerate(pose.J.S, len(chain) - len(pose.J.S) + 1)
        return [(chain[:end], measure(body, pose, S)) for end, S in own]

    poses = root_poses(tree, q)
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), [pose.J for pose in poses])
    found = each_link(tree, columns, poses, composites, chains(tree, poses))
    return [one for own in found for one in own]


def at_point(chain: Chain, p: Vec3) -> list[Motion]:
    """Angular and linear motion, at a point, of each column: first-order coefficients."""
    return [Motion(c.S.ang, c.S.lin + cross(c.S.ang, p)) for c in chain]
