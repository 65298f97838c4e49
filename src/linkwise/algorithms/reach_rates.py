"""How a configuration follows a target of inverse kinematics.

    J dq = D t,    least |dq|:     dq = Jᵀ (J Jᵀ)⁻¹ D t

with t the twist of the target, D the rows of a motion that count (``pose_errors.py``) and J those
of the frame. Joints at their limits are held. Derivation: a solution has the error zero, and a
motion changes it by rows D; a target that moves by t and a frame that moves by ``J dq`` leave it
zero if both move alike along these rows. Of several such dq, a search that starts from the solution
takes the smallest: its steps are least squares whose damping falls with the squared error.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import ldl
from linkwise.algorithms.dense import dot, square, unit
from linkwise.algorithms.kinematics import at_frame, jacobian_columns
from linkwise.algorithms.pose_errors import Error, Goal, pose_error
from linkwise.algorithms.poses import link_pose
from linkwise.algorithms.reach_rows import Search
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Motion, Scalar, Vec3, Vector, select


class Follower(NamedTuple):
    """A solution of inverse kinematics, and how it changes."""

    how: Search
    nv: int
    error: Error
    columns: Matrix  # of J, one for each degree of freedom that moves the frame; held ones are zero
    factors: tuple[Matrix, list[Scalar]]  # of J Jᵀ

    def along(self, twist: Vector) -> list[Scalar]:
        """Joint rates (nv) while the target moves by a twist."""
        y = ldl.solve(self.factors, self._rows(twist))
        found: list[Scalar] = [0.0] * self.nv
        for dof, column in zip(self.how.dofs, self.columns, strict=True):
            found[dof] = dot(column, y)
        return found

    def gradient(self, weights: Vector) -> list[Scalar]:
        """The derivative, by a twist of the target, of a weighted sum of joint rates."""
        own = [weights[dof] for dof in self.how.dofs]
        pulled = [dot(row, own) for row in zip(*self.columns, strict=True)]
        y = ldl.solve(self.factors, pulled)
        return [dot(self._rows(e), y) for e in unit(6)]

    def _rows(self, twist: Vector) -> list[Scalar]:
        return self.error.of(Motion(Vec3(*twist[:3]), Vec3(*twist[3:])), self.how.weight)


def follower(tree: Tree, how: Search, goal: Goal, q: Vector) -> Follower:
    """How a solution q of one frame's goal changes."""
    pose = at_frame(link_pose(tree, q, goal.frame.link), goal.frame)
    error = pose_error(goal, pose, how.directions)
    moved = jacobian_columns(tree, q, goal.frame, "base")
    motions = ((dof, moved[dof]) for dof in how.dofs)
    columns = []
    for dof, x in motions:
        rows = error.of(Motion(Vec3(*x[:3]), Vec3(*x[3:])), how.weight)
        free = _free(how, dof, q)
        columns.append([row * free for row in rows])
    S = square(columns, [1.0] * len(columns))
    factors = ldl.factor(S, [row[k] for k, row in enumerate(S)])
    return Follower(how, tree.nv, error, columns, factors)


def _free(how: Search, dof: int, q: Vector) -> Scalar:
    """0 for a joint at one of its limits, else 1."""
    if dof not in how.limits:
        return 1.0
    k, lower, upper = how.limits[dof]
    below: Scalar = 1.0 if upper is None else select(upper - q[k], 1.0, 0.0)
    return below if lower is None else select(q[k] - lower, below, 0.0)
