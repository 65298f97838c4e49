"""Accelerations of links and of their joints: the state of outward sweeps that solve for qdd."""

from __future__ import annotations

from typing import NamedTuple

from linkwise.model.tree import Link, Tree
from linkwise.spatial import Motion, Scalar
from linkwise.sweep import each_link


class Acceleration(NamedTuple):
    """Acceleration of a link, and of its joint."""

    a: Motion
    qdd: list[Scalar]


def of_joint(_link: Link, state: Acceleration) -> list[Scalar]:
    """The joint's part of a link's acceleration."""
    return state.qdd


def joint_accelerations(tree: Tree, states: list[Acceleration]) -> list[Scalar]:
    """The joints' accelerations, by degree of freedom."""
    return tree.gather(each_link(tree, of_joint, states))
