"""Derivatives of solutions of inverse kinematics by targets (``algorithms/reach_rates.py``)."""

from __future__ import annotations

from linkwise.algorithms.dense import transpose, unit
from linkwise.algorithms.reach_rates import follower
from linkwise.differentiation.plan import JACOBIAN, JVP, Plan
from linkwise.engine.reach_plan import goal_of
from linkwise.trace.expr import Expr, Graph


def follow(
    plan: Plan, graph: Graph, target: list[Expr], q: list[Expr], more: list[list[Expr]]
) -> list[Expr]:
    """All parts of a plan, of a configuration that brings a frame to its target."""
    reach = plan.reach
    assert reach is not None
    found = follower(plan.tree, reach.search, goal_of(reach.frames[0], target), q)
    if plan.asked.kind == JACOBIAN:
        own = [x for row in transpose([found.along(e) for e in unit(6)]) for x in row]
    elif plan.asked.kind == JVP:
        own = found.along(more[0])
    else:
        own = found.gradient(more[0])
    return [*(q if plan.asked.value else []), *(graph.lift(x) for x in own)]
