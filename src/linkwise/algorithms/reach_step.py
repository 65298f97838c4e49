"""One step of inverse kinematics, and where a search starts anew; see ``inverse_kinematics.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwise.algorithms.configurations import integrate
from linkwise.algorithms.damped import damped_step
from linkwise.algorithms.dense import dot
from linkwise.algorithms.kinematics import at_frame, jacobian_columns
from linkwise.algorithms.pose_errors import Goal, pose_error
from linkwise.algorithms.poses import link_pose
from linkwise.model.tree import Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector, select

DAMPING = 0.03

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
    weight: float  # of a place beside a turn, 1/m

    @property
    def alpha(self) -> list[float]:
        """The steps of the sequence of starts."""
        n, phi = len(self.dofs), 2.0
        for _ in range(64):
            phi = (1.0 + phi) ** (1.0 / (n + 1))
        return [phi ** -(j + 1.0) % 1.0 for j in range(n)]


def advanced(
    tree: Tree, how: Search, goals: Sequence[Goal], q: Vector
) -> tuple[Scalar, list[Scalar]]:
    """The squared error at q, and the configuration after one step from there."""
    square: Scalar = 0.0
    e: list[Scalar] = []
    columns: list[list[Scalar]] = [[] for _ in how.dofs]
    for goal in goals:
        error = pose_error(goal, at_frame(link_pose(tree, q, goal.frame.link), goal.frame),
                           how.directions)  # fmt: skip
        square = square + error.bound()
        e += error.rows(how.weight)
        moved = jacobian_columns(tree, q, goal.frame, "base")
        for column, dof in zip(columns, how.dofs, strict=True):
            x = moved.get(dof, [0.0] * 6)
            column += error.of(Motion(Vec3(*x[:3]), Vec3(*x[3:])), how.weight)
    free = [_free(how, dof, q, dot(c, e)) for dof, c in zip(how.dofs, columns, strict=True)]
    step = damped_step(columns, free, e, DAMPING * dot(e, e))
    v: list[Scalar] = [0.0] * tree.nv
    for dof, x in zip(how.dofs, step, strict=True):
        v[dof] = x
    return square, clamped(how, integrate(tree, q, v, [1.0]))


def _free(how: Search, dof: int, q: Vector, push: Scalar) -> Scalar:
    """0 for a joint at the limit that it is pushed against, else 1."""
    if dof not in how.limits:
        return 1.0
    k, lower, upper = how.limits[dof]
    up = 1.0 if upper is None else select(upper - q[k], 1.0, 0.0)
    down = 1.0 if lower is None else select(q[k] - lower, 1.0, 0.0)
    return select(push, up, down)


def clamped(how: Search, q: list[Scalar]) -> list[Scalar]:
    """The configuration, its joints within their limits."""
    for k, lower, upper in how.limits.values():
        x = q[k] if upper is None else select(q[k] - upper, upper, q[k])
        q[k] = x if lower is None else select(lower - x, lower, x)
    return q


def start(tree: Tree, how: Search, q0: Vector, u: Vector) -> list[Scalar]:
    """The configuration at a point u of the unit cube: joints that move no frame as in q0."""
    q, v = list(q0), [0.0] * tree.nv
    for k, x in how.home.items():
        q[k] = x
    for dof, x in zip(how.dofs, u, strict=True):
        low, high = how.ranges[dof]
        v[dof] = low + (high - low) * x
    return clamped(how, integrate(tree, q, v, [1.0]))
