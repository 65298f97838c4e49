"""The nearest state in which closed loops are closed, by Newton's method.

    q <- q ⊕ -M⁻¹ Jᵀ Ω⁻¹ e,      then qd <- qd - M⁻¹ Jᵀ Ω⁻¹ J qd

with the errors e of closure_errors.py. Joints move as an impulse would move them: of all changes
that close the loops to first order, that of least kinetic energy.
"""

from __future__ import annotations

from linkwise.algorithms.closed_dynamics import at_rest
from linkwise.algorithms.closed_ltl import constrained
from linkwise.algorithms.closure_errors import errors
from linkwise.algorithms.closure_rates import velocities
from linkwise.algorithms.closures import seams
from linkwise.algorithms.configurations import integrate
from linkwise.algorithms.constrained import factor
from linkwise.algorithms.dense import dot
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, flagged, repeat, rounding, select, sqrt

MOST_STEPS = 30.0
CLOSED, STUCK = 2.0**8, 2.0**13  # rounding units of 1 rad and 1 m: where to stop, and to give up


def corrected(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """One step of Newton for q, and qd without what the loops do not allow, by the same factors."""
    c = at_rest(constrained, tree, q)
    factors = factor(c)
    step = c.released([-x for x in factors.solve(errors(c.seams))])
    change = c.released([-x for x in factors.solve(velocities(tree, q, qd, c.seams))])
    return integrate(tree, q, step, [1.0]), [x + y for x, y in zip(qd, change, strict=True)]


def project(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """The configuration and the rates; NaN, and flagged, where the loops do not close."""

    def step(now: list[Scalar]) -> tuple[list[Scalar], Scalar]:
        return corrected(tree, now, none)[0], _off(tree, now, CLOSED)

    none = [0.0] * tree.nv
    found, _ = corrected(tree, repeat(step, q, MOST_STEPS), none)
    _, rates = corrected(tree, found, qd)
    lost = _off(tree, found, STUCK)
    flagged(lost, "NOT_CONVERGED")
    wrong = sqrt(select(lost, -1.0, 0.0))  # NaN there
    return [x + wrong for x in (*found, *rates)]


def _off(tree: Tree, q: Vector, most: float) -> Scalar:
    """Positive where the errors are larger than some rounding units."""
    off = errors(seams(tree, q))
    square = dot(off, off)
    return square - (most * rounding(square)) * (most * rounding(square))
