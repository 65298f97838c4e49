"""The equations of derivatives, traced.

Where an algorithm computes first derivatives (`analytic`), that is taken; else the graph of the
function is differentiated (``trace/tangents.py``). Second derivatives are those of a weighted sum
of the results: its gradient in reverse, differentiated forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from linkwise.algorithms import FUNCTIONS, functions_of
from linkwise.backends.base import USUAL
from linkwise.differentiation.following import follow
from linkwise.differentiation.implicit import solved
from linkwise.differentiation.plan import GRADIENT, HVP, JACOBIAN, JVP, VJP, Plan
from linkwise.engine.build import TRACING, free_memory
from linkwise.engine.equations import Equations, flags, straight_line
from linkwise.errors import ProgramTooLarge, quote
from linkwise.model.tree import Tree
from linkwise.spatial import select, sqrt
from linkwise.trace.expr import Expr, Graph, TooManyNodes, summed
from linkwise.trace.implicit import put_in
from linkwise.trace.program import Program, Slot
from linkwise.trace.roll import Rates, Weights, trace_rolled
from linkwise.trace.status import not_finite, status_of
from linkwise.trace.tangents import Argument, Rows, Traced
from linkwise.trace.tracer import Task, evaluate, flatten

# functions whose derivatives by their arguments are computed by an algorithm; of those that take
# fewer than its three arguments, the others are zero
COMPOSITE = {
    "inverse_dynamics": "inverse_dynamics_derivatives",
    "bias": "inverse_dynamics_derivatives",
    "gravity_torque": "inverse_dynamics_derivatives",
    "forward_dynamics": "forward_dynamics_derivatives",
}
LOADS = ("bias", "gravity_torque")
ANALYTIC = ("composite", "implicit")  # first methods that take fewer operations than the graph's


def equations_of(plan: Plan, status: bool) -> Equations:
    """A plan as a function of states; its result has all parts, one after another."""
    task, ports = plan.task, (*plan.ports, *plan.solution, *plan.more)
    content = (task.name, task.frame, task.axes, task.external, task.damped, task.parameters)
    key = (*content, plan.iteration, plan.wrt, *plan.asked[2:], status)

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        given = dict(zip((port.name for port in plan.ports), inputs, strict=False))
        bodies = [body for each in task.parameters for body in each.bodies(given[each.name])]
        return status_of(graph, plan.tree, ports, inputs, results, bodies=bodies)

    def trace(graph: Graph, inputs: list[list[Expr]]) -> Sequence[Expr]:
        return traced(plan, graph, inputs)

    outputs = (Slot("result", (plan.size,)), *flags(status))
    if task.rolled:
        return Equations(
            plan.title, (*key, "rolled"), ports, outputs, lambda _: rolled(plan, status),
            rolled=True,
        )  # fmt: skip
    return straight_line(plan.title, key, ports, outputs, trace, bits if status else None)


def rolled(plan: Plan, status: bool) -> Program:
    """A product with a vector as loops over the links."""
    turned = [plan.ports[k].name for k in plan.chosen if not plan.space(k).flat]
    task = replace(plan.task, status=status)
    asked = _rates(plan, turned) if plan.asked.kind == JVP else _weights(plan, turned)
    return replace(trace_rolled(task, plan.tree, asked), name=plan.title)


def _weights(plan: Plan, turned: list[str]) -> Weights:
    """Weights of the result, and the arguments by which the gradient is wanted."""
    wrt = [plan.ports[k].name for k in plan.chosen]
    spread = None if plan.result.flat else plan.result.weights
    rates = _rates(plan, turned) if plan.asked.kind == HVP else None
    return Weights(plan.more[0], wrt, turned, plan.asked.value, spread, rates)


def _rates(plan: Plan, turned: list[str]) -> Rates:
    """Rates of the arguments, and what is wanted of the result."""
    ports = plan.more[-len(plan.wrt) :]
    into = dict(zip(plan.wrt, ports, strict=True))
    places: dict[str, tuple[str, int]] = {}
    for k in plan.chosen:  # wrenches on all frames are one argument
        first = sum(plan.ports[j].size for j in plan.chosen[: plan.chosen.index(k)]
                    if plan.owners[j] == plan.owners[k])  # fmt: skip
        places[plan.ports[k].name] = (into[plan.owners[k]].name, first)
    finish = None if plan.result.flat else plan.result.rates
    return Rates(ports, places, turned, plan.result.size, finish)


def traced(plan: Plan, graph: Graph, inputs: list[list[Expr]]) -> list[Expr]:
    """All parts of a plan, one after another; refused where they could not be compiled."""
    graph.most = free_memory() // (TRACING + USUAL.bytes)
    try:
        if plan.size > graph.most:
            raise TooManyNodes
        return _parts(plan, graph, inputs)
    except TooManyNodes:
        raise ProgramTooLarge(
            f"{plan.title} of {quote(plan.robot)}: more than {graph.most:,} operations, which "
            "cannot be compiled in the free memory; expected a smaller robot (robot.lock, "
            "robot.sub_chain), or products with vectors, which take a few times the operations "
            "of the function itself: robot.jvp, robot.vjp, robot.hvp"
        ) from None


def _parts(plan: Plan, graph: Graph, inputs: list[list[Expr]]) -> list[Expr]:
    """By the equations that results solve, where those are known, else by the way to them."""
    own, more = inputs[: len(plan.ports)], inputs[len(plan.ports) :]
    found = [x for _ in plan.solution for x in more.pop(0)]
    if plan.reach is not None:
        return follow(plan, graph, own[0], found, more)
    results = found or [graph.lift(x) for x in flatten(evaluate(plan.task, plan.tree, *own))]
    by = solved(plan, graph, own, found)
    arguments = [Argument(own[k], plan.space(k)) for k in plan.chosen]
    if by is None:
        f = Traced(results, plan.result, arguments)
        return _where_found(graph, results, _differentiated(plan, f, results, own, more))
    f = Traced(by.results, plan.result, arguments, by.implicit)
    return put_in(graph, _differentiated(plan, f, results, own, more), by.known)


def _where_found(graph: Graph, results: list[Expr], parts: list[Expr]) -> list[Expr]:
    """Parts, NaN where an iteration has not found all results."""
    if not graph.loops:
        return parts
    lost = summed(graph, (not_finite(graph, x) for x in results))
    wrong = sqrt(select(lost, -1.0, 0.0))  # NaN there
    return [x + wrong for x in parts]


def _differentiated(
    plan: Plan, f: Traced, results: list[Expr], own: list[list[Expr]], more: list[list[Expr]]
) -> list[Expr]:
    """All parts of a plan: the value as it was found, derivatives of what is given as traced."""
    kind = plan.asked.kind
    lower = results if plan.asked.value else []
    if kind == JACOBIAN:
        rows = _jacobian(plan, f, own)
        return [*lower, *(row[b] for span in plan.spans for row in rows for b in span)]
    if kind == JVP:
        return [*lower, *f.along(_of_ports(f, more))]
    gradient = f.gradient(more[0])
    if kind in (GRADIENT, VJP):
        return [*lower, *gradient]
    lower = [*lower, *(gradient if plan.asked.value else [])]
    if kind == HVP:
        return [*lower, *f.changes(gradient, _of_ports(f, more[1:]))]
    (H,) = f.second([gradient])
    blocks = [(rows, columns) for rows in plan.spans for columns in plan.spans]
    return [*lower, *(H[a][b] for rows, columns in blocks for a in rows for b in columns)]


def _of_ports(f: Traced, tangents: list[list[Expr]]) -> list[list[Expr]]:
    """Rates of each port from those of each argument."""
    rest = iter([x for each in tangents for x in each])
    return [[next(rest) for _ in range(each.space.size)] for each in f.arguments]


def _jacobian(plan: Plan, f: Traced, own: list[list[Expr]]) -> Rows:
    """First derivatives: those that an algorithm computes, the others by the graph."""
    graph = f.results[0].graph
    mode, names = plan.asked.mode, [plan.owners[k] for k in plan.chosen]
    known = analytic(plan.task, plan.tree, own, names) if mode == "auto" else {}
    pairs = list(zip(f.arguments, names, strict=True))
    others = f._replace(arguments=[x for x, name in pairs if name not in known])
    made = others.jacobian(mode) if others.arguments else [[] for _ in range(f.space.size)]
    rows: Rows = []
    for i, row in enumerate(made):
        rest = iter(row)
        rows.append([])
        for x, name in pairs:
            mine = known[name][i] if name in known else [next(rest) for _ in range(x.space.size)]
            rows[-1] += [graph.lift(entry) for entry in mine]
    return rows


def analytic(
    task: Task, tree: Tree, inputs: Sequence[Sequence[Any]], names: Sequence[str]
) -> dict[str, Rows]:
    """Those derivatives by arguments that an algorithm computes."""
    function, n = task.algorithm.function, tree.nv
    if function == "forward_kinematics":
        jacobian = replace(task, algorithm=FUNCTIONS["jacobian"]["sweep"])
        return {"q": evaluate(jacobian, tree, *inputs)}
    if function not in COMPOSITE:
        return {}
    methods = functions_of(tree)[COMPOSITE[function]]
    if function in LOADS:  # which closed loops do not change
        methods = FUNCTIONS[COMPOSITE[function]]
    elif next(iter(methods)) not in ANALYTIC:
        return {}
    taken = [argument for argument, _ in task.algorithm.inputs]
    places = {argument: k for k, argument in enumerate(taken) if argument in names}
    if not places:
        return {}
    still = [[0.0] * n for _ in range(3 - len(taken))]
    values = [*inputs[: len(taken)], *still, *inputs[len(taken) :]]
    own = replace(task, algorithm=next(iter(methods.values())))
    rows = evaluate(own, tree, *values)
    return {argument: rows[k * n : (k + 1) * n] for argument, k in places.items()}
