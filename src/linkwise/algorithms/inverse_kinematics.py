"""Inverse kinematics: Levenberg-Marquardt steps on pose errors, within limits, from many starts.

    x = argmin |J x - e|² + μ |x|²,    μ = DAMPING |e|²,    q <- clamp(q ⊕ x)

e is the error of ``pose_errors.py``, places measured in shares of the arm's length, so that turns
and places weigh alike. Damping that falls with the squared error [Sugihara 2011, without its
constant] makes the last steps Newton's, which converge quadratically. A joint at its limit that the
gradient Jᵀe pushes further out is held for the step; any other may move, and is clamped.

A start is given up when, after PATIENCE steps, a step leaves more than SLOW of a squared error
that is above NEAR, or after LONGEST steps: near a singular goal, the last digits take long. The
next one is a point of one fixed sequence in the box of joint ranges,

    u_k = ½ + k α mod 1,    α_j = φ⁻ʲ,    φⁿ⁺¹ = φ + 1

[Roberts 2018], which fills the box evenly however far it is followed. All searches share it, so
that what a search finds depends on its goal and on its own first start alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.pose_errors import Goal
from linkwise.algorithms.reach_rows import Search
from linkwise.algorithms.reach_step import advanced, start
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, repeat, select

PATIENCE, SLOW, NEAR, LONGEST = 10, 0.95, 1e-4, 60
NEVER = 1e30  # a squared error above every other


def search(
    tree: Tree, how: Search, goals: Sequence[Goal], q0: Vector, tol: Scalar, tries: Scalar
) -> tuple[list[Scalar], Scalar]:
    """A configuration whose error is at most ``tol``, and a positive number where that was found.

    Of a search whose ``tries``, the number of starts, all failed: the best that it met.
    """
    at, n, d = how.numbers, len(how.numbers), len(how.dofs)

    def full(x: Vector) -> list[Scalar]:
        """A configuration; numbers that move no frame are those of q0."""
        q = list(q0)
        for k, value in zip(at, x, strict=True):
            q[k] = value
        return q

    def step(state: list[Scalar]) -> tuple[list[Scalar], Scalar]:
        x, best, u = state[:n], state[n : 2 * n], state[2 * n : 2 * n + d]
        least, last, age, failed = state[2 * n + d :]
        error, moved = advanced(tree, how, goals, full(x))
        far = select(error - NEAR, error - SLOW * last, -1.0)
        slow = select(age - (PATIENCE - 0.5), far, -1.0)
        over = select(age - (LONGEST - 0.5), 1.0, slow)
        next_u = [_wrapped(a + b) for a, b in zip(u, how.alpha, strict=True)]
        anew = start(tree, how, q0, next_u)
        better = least - error
        new = [
            *(select(over, anew[k], moved[k]) for k in at),
            *(select(better, a, b) for a, b in zip(x, best, strict=True)),
            *(select(over, a, b) for a, b in zip(next_u, u, strict=True)),
            select(better, error, least),
            select(over, NEVER, error),
            select(over, 0.0, age + 1.0),
            select(over, failed + 1.0, failed),
        ]
        return new, select(tol * tol - error, -1.0, tries - failed)

    begin = [q0[k] for k in at]
    state = [*begin, *begin, *([0.5] * d), NEVER, NEVER, 0.0, 0.0]
    end = repeat(step, state, (LONGEST + 1.0) * tries)
    found = tries - end[-1]
    return full([select(found, a, b) for a, b in zip(end[:n], end[n : 2 * n], strict=True)]), found


def _wrapped(u: Scalar) -> Scalar:
    return select(u - 1.0, u - 1.0, u)
