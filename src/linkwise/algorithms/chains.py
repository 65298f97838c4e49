"""Columns of the joints between base and link, in common axes.

A chain lists every column from the base out to a link, its motion taken at a common origin. One
column moves another that is further out, itself, and its fellows where its joint's rates are no
derivatives of coordinates (spherical and free joints).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.poses import LinkPose
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Motion, Vec3, cross
from linkwise.sweep import PerLink, base_to_tip


class Column(NamedTuple):
    """One column of a joint: its motion, its number, and the first of the chain that it moves."""

    S: Motion
    number: int
    moves: int


Chain = tuple[Column, ...]


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


def at_point(chain: Chain, p: Vec3) -> list[Motion]:
    """Angular and linear motion, at a point, of each column: first-order coefficients."""
    return [Motion(c.S.ang, c.S.lin + cross(c.S.ang, p)) for c in chain]
