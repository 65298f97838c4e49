"""What a search of inverse kinematics brings to zero: rows of errors, and how joints change them.

    e = (errors of each frame from its goal, errors of closed loops),    J = -∂e/∂q

Closed loops are rows like those of frames: a search closes them while it reaches. Errors are those
of ``pose_errors.py`` and ``closure_errors.py``; places, and all rows of loops, have a weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from linkwise.algorithms.closure_errors import errors
from linkwise.algorithms.closure_rates import velocities
from linkwise.algorithms.closures import seams
from linkwise.algorithms.dense import dot
from linkwise.algorithms.kinematics import at_frame, jacobian_columns
from linkwise.algorithms.pose_errors import Goal, pose_error
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vec3, Vector
from linkwise.spatial.elementary import golden_steps

Limit = tuple[int, float | None, float | None]  # a place in q, the least and the greatest number


@dataclass(frozen=True)
class Search:
    """What all searches of one kind have in common."""

    directions: tuple[bool, ...]  # of six, (angular, linear)
    dofs: tuple[int, ...]  # degrees of freedom that move a frame
    numbers: tuple[int, ...]  # of q, that belong to them
    home: Mapping[int, float]  # the joints at rest: values of these numbers
    ranges: Mapping[int, tuple[float, float]]  # where starts are taken from, by degree of freedom
    limits: Mapping[int, Limit]  # by degree of freedom, where there is one
    idle: tuple[Limit, ...]  # of joints that move no frame: they stay at q0, clamped once
    weight: float  # of a place beside a turn, 1/m

    @property
    def alpha(self) -> list[float]:
        """The steps of the sequence of starts."""
        return list(map(float, golden_steps(len(self.dofs))))


class Rows(NamedTuple):
    """The squared error without weights, the rows, and a column for each degree of freedom."""

    square: Scalar
    e: list[Scalar]
    columns: Matrix


def goal_rows(tree: Tree, how: Search, goal: Goal, q: Vector) -> Rows:
    """A frame and its goal."""
    pose = at_frame(link_pose(tree, q, goal.frame.link), goal.frame)
    error = pose_error(goal, pose, how.directions)
    moved, none = jacobian_columns(tree, q, goal.frame, "base"), [0.0] * 6
    motions = (moved.get(dof, none) for dof in how.dofs)
    columns = [error.of(Motion(Vec3(*x[:3]), Vec3(*x[3:])), how.weight) for x in motions]
    return Rows(error.bound(), error.rows(how.weight), columns)


def loop_rows(tree: Tree, how: Search, q: Vector) -> Rows:
    """The closed loops."""
    closed = seams(tree, q)
    off = errors(tree, q, closed)
    columns = []
    for dof in how.dofs:
        rates = [float(k == dof) for k in range(tree.nv)]
        columns.append([x * how.weight for x in velocities(tree, q, rates, closed)])
    return Rows(dot(off, off), [x * -how.weight for x in off], columns)


def all_rows(tree: Tree, how: Search, goals: Sequence[Goal], q: Vector) -> Rows:
    """Every goal, then the closed loops."""
    parts = [goal_rows(tree, how, goal, q) for goal in goals]
    parts += [loop_rows(tree, how, q)] if tree.is_closed else []
    square: Scalar = 0.0
    for part in parts:
        square = square + part.square
    joined = (
        [x for column in some for x in column]
        for some in zip(*(part.columns for part in parts), strict=True)
    )
    return Rows(square, [x for part in parts for x in part.e], list(joined))
