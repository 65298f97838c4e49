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
from linkwise.algorithms.constrained import forces, least_forces
from linkwise.algorithms.crba import crba
from linkwise.algorithms.external import External
from linkwise.algorithms.grasp_dynamics import outcome
from linkwise.algorithms.rnea import rnea
from linkwise.algorithms.yielding import combined
from linkwise.differentiation.plan import CURVATURE, HVP, Plan
from linkwise.model.tree import Tree
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.implicit import Implicit, unknowns
from linkwise.trace.tracer import flatten

LEAST = ("constraint_forces", "grasp_dynamics")  # depend on the smallest forces of closed loops
CLOSED = ("forward_dynamics", *LEAST)


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
    found = [*c.released(taken), *(least_forces(c) if least else taken)]
    x = unknowns(graph, len(found) + (n if least else 0))
    qdd, held, fixed = x[:n], x[n : len(found)], x[len(found) :]
    residual, solves = s.residual(qdd, held), _Free(K)
    if least:
        found += K.preimage(found[n:])
        residual += [-r for r in combined(K.J, fixed, K.rows)]
        solves = _Least(K)
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
    if plan.task.algorithm.function == "forward_dynamics":
        return qdd
    wrenches = base_wrenches(s.tree, s.q, seams(s.tree, s.q), held)
    if plan.task.algorithm.function == "constraint_forces":
        return wrenches
    return outcome(s.tree, s.q, s.qd, qdd, wrenches, s.external).numbers()


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
    """Systems with K, of which the smallest forces are taken (``closed_balance.py``)."""

    def solve(self, b: list[Expr]) -> list[Any]:
        least, end = self.K.omega.least, self.n + self.K.rows
        a, held = self.K.solve(b[: self.n], b[self.n : end])
        along = zip(least(held), b[end:], least(b[end:]), strict=True)
        return [*a, *(x + y - z for x, y, z in along)]

    def solve_transposed(self, w: list[Expr]) -> list[Any]:
        own = w[self.n :]
        across = self.K.omega.least(own)
        a, held = self.K.solve_transposed(w[: self.n], across)
        return [*a, *held, *(x - y for x, y in zip(own, across, strict=True))]
