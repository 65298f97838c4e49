"""Functions whose results solve equations that are simpler than the way to them.

Of each: the solution as it was found, unknowns in its place, the equations, and how systems with
their matrix are solved (``trace/implicit.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from linkwise.algorithms import functions_of, ltl
from linkwise.algorithms.closed_balance import Balance, balance, loop_balance
from linkwise.algorithms.closed_dynamics import base_wrenches
from linkwise.algorithms.closed_ltl import constrained
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Measure, forces
from linkwise.algorithms.crba import crba
from linkwise.algorithms.dense import dot
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_dynamics import outcome
from linkwise.algorithms.grasp_least import needed, smallest
from linkwise.algorithms.grasp_measure import measured, slope_by_acceleration
from linkwise.algorithms.rnea import rnea
from linkwise.algorithms.yielding import combined
from linkwise.differentiation.plan import CURVATURE, HVP, Plan
from linkwise.model.tree import Tree
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.implicit import Implicit, unknowns
from linkwise.trace.tracer import flatten

# those that depend on the smallest forces of closed loops
LEAST = ("constraint_forces", "contact_forces", "motion")
CLOSED = ("forward_dynamics", "object_acceleration", *LEAST)


class Solved(NamedTuple):
    """Results of unknowns, the equations of these, and what takes their place."""

    results: list[Expr]
    implicit: Implicit
    known: dict[Expr, Expr]


def solved(plan: Plan, graph: Graph, own: Sequence[list[Expr]], found: list[Expr]) -> Solved | None:
    """A plan's function by its equations, with what an iteration found; None where its program is
    differentiated.
    """
    function, mode = plan.task.algorithm.function, plan.asked.mode
    if plan.iteration:
        return _iterated(plan, graph, own, found)
    if mode != "auto" or function not in CLOSED or not plan.tree.is_closed:
        return None
    if function in LEAST and plan.asked.kind in (HVP, CURVATURE):
        return None  # the null space of the loops' rows changes to second order too
    return _closed(plan, graph, own)


def _iterated(plan: Plan, graph: Graph, own: Sequence[list[Expr]], found: list[Expr]) -> Solved:
    """Forward dynamics: ``M qdd + bias - tau = 0``, whose matrix is M."""
    s = _state(plan, own)
    needed = rnea(s.tree, s.q, s.qd, found, external=s.external)
    residual = [graph.lift(a - t) for a, t in zip(needed, s.tau, strict=True)]
    factors = ltl.factor(crba(s.tree, s.q), s.tree.dof_parent)

    def solve(b: list[Expr]) -> list[Any]:
        return ltl.solve(factors, b)

    return Solved(found, Implicit(found, residual, solve, solve), {})


class _State(NamedTuple):
    """A robot under torques."""

    tree: Tree
    q: Sequence[Expr]
    qd: Sequence[Expr]
    tau: Sequence[Expr]
    external: External

    def residual(self, qdd: Sequence[Expr], held: Sequence[Expr]) -> list[Any]:
        """What accelerations and forces of the loops bring to zero."""
        needed = rnea(self.tree, self.q, self.qd, qdd, external=self.external)
        pulled, apart = loop_balance(self.tree, self.q, self.qd, qdd, held)
        moved = zip(needed, self.tau, pulled, strict=True)
        return [*(a - t + f for a, t, f in moved), *apart]

    def measure(self, qdd: Sequence[Expr]) -> tuple[Measure | None, Any]:
        """What is small of the forces of an object's contacts, and its change with qdd."""
        if self.tree.held is None:
            return None, []
        closed = seams(self.tree, self.q)
        wrench = needed(self.tree, self.q, self.qd, qdd, self.external)
        slopes = slope_by_acceleration(self.tree, self.q, closed)
        return measured(self.tree, closed, wrench), slopes

    def slope(self, qdd: Sequence[Expr], held: Sequence[Expr]) -> list[Any]:
        """What is zero along the null space of the smallest forces."""
        known, _ = self.measure(qdd)
        return list(held) if known is None else known.slope(held)


def _state(plan: Plan, own: Sequence[list[Expr]]) -> _State:
    """The arguments of a plan, and its tree as equations that are linear in inertias see it."""
    task, (q, qd, tau) = plan.task, own[:3]
    dynamics = next(iter(functions_of(plan.tree)["forward_dynamics"].values()))
    regrouped = replace(task, algorithm=dynamics)  # crba, and ltl of closed robots
    given = dict(zip((port.name for port in plan.ports), own, strict=False))
    tree = regrouped.tree(plan.tree.with_constants_like(q[0]), given)
    return _State(tree, q, qd, tau, tuple(zip(task.external, own[3:], strict=False)))


def _closed(plan: Plan, graph: Graph, own: Sequence[list[Expr]]) -> Solved:
    s, least = _state(plan, own), plan.task.algorithm.function in LEAST
    c, K, n = constrained(*s), balance(s.tree, s.q), s.tree.nv
    taken = forces(c)
    found = c.released(taken)
    found += smallest(s.tree, s.q, s.qd, found, c, s.external) if least else taken
    x = unknowns(graph, len(found) + (n if least else 0))
    qdd, held, fixed = x[:n], x[n : len(found)], x[len(found) :]
    residual, solves = s.residual(qdd, held), _Free(K)
    if least:
        slope, solves = s.slope(qdd, held), _Least(K, *s.measure(qdd))
        found += K.preimage(s.slope(found[:n], found[n:]))
        residual += [a - b for a, b in zip(slope, combined(K.J, fixed, K.rows), strict=True)]
    implicit = Implicit(
        x[: n + K.rows],
        [graph.lift(r) for r in residual],
        solves.solve,
        solves.solve_transposed,
    )
    results = [graph.lift(y) for y in flatten(_results(plan, s, qdd, held))]
    return Solved(results, implicit, dict(zip(x, map(graph.lift, found), strict=True)))


def _results(plan: Plan, s: _State, qdd: list[Expr], held: list[Expr]) -> Any:
    """What the function returns, of accelerations and forces of the loops."""
    function, closed = plan.task.algorithm.function, seams(s.tree, s.q)
    if function == "forward_dynamics":
        return qdd
    if function == "constraint_forces":
        return base_wrenches(s.tree, s.q, closed, held)
    found = outcome(s.tree, s.q, s.qd, qdd, closed, held, s.external)
    parts = {"object_acceleration": found.acceleration, "contact_forces": found.wrenches}
    return parts.get(function) or found.numbers()


class _Free:
    """Systems with K."""

    def __init__(self, K: Balance) -> None:
        self.K, self.n = K, len(K.mass.inv_d)

    def solve(self, b: list[Expr]) -> list[Any]:
        a, held = self.K.solve(b[: self.n], b[self.n :])
        return [*a, *held]

    def solve_transposed(self, w: list[Expr]) -> list[Any]:
        a, held = self.K.solve_transposed(w[: self.n], w[self.n :])
        return [*a, *held]


class _Least(_Free):
    """Systems with K, of which the smallest forces are taken (``closed_balance.py``).

    With T = Z (Zᵀ Q Z)⁻¹ Zᵀ, and C the change of the slope with qdd: ``a, l`` of K, then
    ``l + T (b - Q l - C a)``.
    """

    def __init__(self, K: Balance, measure: Measure | None, C: Any) -> None:
        super().__init__(K)
        self.Q, self.C = measure and measure.Q, C

    def _spread(self, x: Sequence[Any]) -> list[Any]:
        return self.K.omega.along_null_space(x, self.Q)

    def _weighed(self, x: Sequence[Any]) -> Sequence[Any]:
        return x if self.Q is None else [dot(row, x) for row in self.Q]

    def solve(self, b: list[Expr]) -> list[Any]:
        end = self.n + self.K.rows
        a, held = self.K.solve(b[: self.n], b[self.n : end])
        left = [y - x for x, y in zip(self._weighed(held), b[end:], strict=True)]
        if self.C:
            left = [x - dot(row, a) for x, row in zip(left, self.C, strict=True)]
        return [*a, *(x + y for x, y in zip(held, self._spread(left), strict=True))]

    def solve_transposed(self, w: list[Expr]) -> list[Any]:
        driven, own = w[: self.n], w[self.n :]
        along = self._spread(own)
        across = [x - y for x, y in zip(own, self._weighed(along), strict=True)]
        for row, t in zip(self.C, along, strict=False):
            driven = [x - c * t for x, c in zip(driven, row, strict=True)]
        a, held = self.K.solve_transposed(driven, across)
        return [*a, *held, *along]
