"""One step of inverse kinematics, and where a search starts anew; see ``inverse_kinematics.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwise.algorithms.configurations import integrate
from linkwise.algorithms.damped import damped_step
from linkwise.algorithms.dense import dot
from linkwise.algorithms.pose_errors import Goal
from linkwise.algorithms.reach_rows import Limit, Search, all_rows
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, select

DAMPING = 0.03


def advanced(
    tree: Tree, how: Search, goals: Sequence[Goal], q: Vector
) -> tuple[Scalar, list[Scalar]]:
    """The squared error at q, and the configuration after one step from there."""
    square, e, columns = all_rows(tree, how, goals, q)
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
    """The configuration, the joints that move a frame within their limits."""
    return within(how.limits.values(), q)


def within(limits: Iterable[Limit], q: list[Scalar]) -> list[Scalar]:
    """The configuration, clamped to limits."""
    for k, lower, upper in limits:
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
