"""A state near by in which closed loops are closed, by Newton's method.

    q <- q ⊕ -M⁻¹ Jᵀ Ω⁻¹ e,      then qd <- qd - M⁻¹ Jᵀ Ω⁻¹ J qd

with the errors e of closure_errors.py. Joints move as an impulse would move them: of all changes
that close the loops to first order, that of least kinetic energy.

Baumgarte's way instead adds to the accelerations, which then let errors decay with a time constant
T but never removes them: J qdd + J̇ qd = -2/T J qd - 1/T² e.
"""

from __future__ import annotations

from linkwise.algorithms.closed_dynamics import Way, at_rest
from linkwise.algorithms.closed_ltl import constrained
from linkwise.algorithms.closure_errors import errors
from linkwise.algorithms.closure_rates import velocities
from linkwise.algorithms.closures import seams
from linkwise.algorithms.configurations import integrate
from linkwise.algorithms.constrained import factor, forces
from linkwise.algorithms.dense import dot
from linkwise.algorithms.external import External
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, flagged, repeat, rounding, select, sqrt

MOST_STEPS = 30.0
CLOSED, STUCK = 2.0**8, 2.0**13  # rounding units of 1 rad and 1 m: where to stop, and to give up


def corrected(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """One step of Newton for q, and qd without what the loops do not allow, by the same factors."""
    c = at_rest(constrained, tree, q)
    factors = factor(c)
    step = c.released([-x for x in factors.solve(errors(tree, q, c.seams))])
    change = c.released([-x for x in factors.solve(velocities(tree, q, qd, c.seams))])
    return integrate(tree, q, step, [1.0]), [x + y for x, y in zip(qd, change, strict=True)]


def stabilized(
    way: Way, tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External, T: float
) -> list[Scalar]:
    """Joint accelerations under which errors of the loops decay."""
    c = way(tree, q, qd, tau, external)
    moving = velocities(tree, q, qd, c.seams)
    rows = zip(c.free, moving, errors(tree, q, c.seams), strict=True)
    pulled = [a + v * (2.0 / T) + x * (1.0 / (T * T)) for a, v, x in rows]
    return c.released(forces(c._replace(free=pulled)))


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
    off = errors(tree, q, seams(tree, q))
    square = dot(off, off)
    return square - (most * rounding(square)) * (most * rounding(square))
