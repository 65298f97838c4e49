"""Derivatives of what solves equations, whichever way it was found: implicit differentiation.

    r(x, a) = 0       dx = -K⁻¹ ∂r/∂a da,      K = ∂r/∂x
    y = y(x, a)       dy = ∂y/∂x dx + ∂y/∂a da

and in reverse, for weights w of y: ``μ = K⁻ᵀ (∂y/∂x)ᵀ w``, then ``(∂y/∂a)ᵀ w - (∂r/∂a)ᵀ μ``. The
equations r are traced with unknowns in place of x, which nothing is known of but that; so steps of
iterations and choices of pivots on the way to x are never differentiated. K⁻¹ is given by those who
know the structure of K. Where x is least among several solutions, it is the inverse that keeps so.

Derivatives are nodes of the unknowns too, and second ones are found in the same way. At the end
`put_in` has the solution take the place of the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from linkwise.trace import diff
from linkwise.trace.expr import Expr, Graph, reachable

Values = Sequence[Expr | float]
Solve = Callable[[list[Expr]], Values]


class Implicit(NamedTuple):
    """Equations, and the unknowns that solve them."""

    unknowns: list[Expr]  # inputs of the graph that stand for the solution
    residual: list[Expr]  # of the unknowns and of the arguments
    solve: Solve  # b -> K⁻¹ b
    solve_transposed: Solve  # w -> K⁻ᵀ w

    def moved(self, inputs: Sequence[Expr], directions: Values) -> list[Expr]:
        """How the solution changes while arguments change."""
        still = [0.0] * len(self.unknowns)
        off = diff.jvp(self.residual, [*self.unknowns, *inputs], [*still, *directions])
        return [-off[0].graph.lift(x) for x in self.solve(off)]

    def changes(self, values: list[Expr], inputs: Sequence[Expr], directions: Values) -> list[Expr]:
        """How numbers change while arguments do, and the solution with them."""
        moved = self.moved(inputs, directions)
        return diff.jvp(values, [*self.unknowns, *inputs], [*moved, *directions])

    def gradient(self, values: list[Expr], inputs: Sequence[Expr], weights: Values) -> list[Expr]:
        """The derivative of a weighted sum of numbers by each argument: in reverse."""
        by = diff.vjp(values, [*self.unknowns, *inputs], weights)
        n = len(self.unknowns)
        less = diff.vjp(self.residual, inputs, self.solve_transposed(by[:n]))
        return [a - b for a, b in zip(by[n:], less, strict=True)]


def unknowns(graph: Graph, count: int) -> list[Expr]:
    """Inputs of a graph that stand for a solution until it takes their place."""
    return [graph.input("unknown", k) for k in range(count)]


def put_in(graph: Graph, results: Iterable[Expr], known: dict[Expr, Expr]) -> list[Expr]:
    """Results with other nodes in place of some inputs, and the graph's pivots and flags too."""
    roots = list(results)
    beside = [x for pair in graph.pivots for x in pair] + [x for x, _ in graph.flags]
    new: dict[int, Expr] = {x.id: y for x, y in known.items()}
    for node in reachable([*roots, *beside]):
        if node.id not in new:
            args = [new[a.id] for a in node.args]
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            new[node.id] = node if same else _made(graph, node, args)
    graph.pivots = [(new[a.id], new[b.id]) for a, b in graph.pivots]
    graph.flags = [(new[x.id], bit) for x, bit in graph.flags]
    return [new[x.id] for x in roots]


def _made(graph: Graph, node: Expr, args: list[Expr]) -> Expr:
    """The node of the same operation on others."""
    if node.op in ("add", "sub", "mul", "div", "neg"):
        made: Expr = getattr(graph, node.op)(*args)
        return made
    return graph.node(node.op, *args, value=node.value)
