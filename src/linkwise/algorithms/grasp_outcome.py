"""What dynamics of grasps tell of the object and its contacts, in base axes.

The acceleration is that of the origin of the object's frame; forces are wrenches (moment, force) on
the object, at the origin of the frame of each contact's arm.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.poses import link_pose
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.model.forest import on_link
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import (
    Force,
    Matrix,
    Motion,
    RigidInertia,
    Scalar,
    Vec3,
    Vector,
    rate_matrix,
)
from linkwise.sweep import along_path


class Outcome(NamedTuple):
    """Joint accelerations, the object's acceleration, and the force of each contact on it."""

    qdd: list[Scalar]
    acceleration: list[Scalar]
    forces: list[Force]

    @property
    def wrenches(self) -> Matrix:
        """The force of each contact as six numbers."""
        return [list(f) for f in self.forces]

    def numbers(self) -> list[Scalar]:
        """One after another."""
        return [*self.qdd, *self.acceleration, *(x for f in self.wrenches for x in f)]


def object_body(tree: Tree) -> RigidInertia:
    """The object's body in the frame of the link that it moves with."""
    assert tree.held is not None
    alone = tree.held.carrier is None
    return tree.links[tree.held.frame.link].inertia if alone else on_link(tree.held)


def object_rates(tree: Tree, q: Vector, qd: Vector, qdd: Vector) -> Rates:
    """How the link moves that the object moves with."""
    assert tree.held is not None
    values = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    start = at_rest(tree.base_acceleration)
    last: Rates = along_path(tree, tree.held.frame.link, move, start, *values)[1]
    return last


def object_acceleration(tree: Tree, q: Vector, frame: Frame, w: Vec3, a: Motion) -> list[Scalar]:
    """From the motion of the link, in its axes at its origin, in which gravity is hidden."""
    R = link_pose(tree, q, frame.link).R
    here = a.lin + rate_matrix(w, a.ang) @ Vec3(*frame.origin)
    return [*(R @ a.ang), *(R @ here + Vec3(*tree.gravity))]


def place_of(tree: Tree, q: Vector, frame: Frame) -> Vec3:
    """The origin of a frame."""
    pose = link_pose(tree, q, frame.link)
    return pose.p + pose.R @ Vec3(*frame.origin)


def on_object(on_arms: Matrix) -> list[Force]:
    """Reactions to the wrenches that contacts put on arms."""
    return [Force(Vec3(*x[:3]), Vec3(*x[3:])) * -1.0 for x in on_arms]
