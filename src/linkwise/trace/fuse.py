"""Fused multiply-adds, chosen here and not by the compiler.

Every backend and every lane width then performs the same roundings, so a state's result does not
depend on where in a batch it was computed. A product is fused only where it is used once, and so
is a sign with the difference before it. What is computed beside the results, such as a status, does
not count as a use: the results have the same bits with it and without.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.trace.expr import Expr, Graph, reachable


def fuse(graph: Graph, results: list[Expr], beside: Sequence[Expr] = ()) -> list[Expr]:
    """The same results, and what is computed beside them, with products folded into sums."""
    roots = [*results, *beside]
    nodes = reachable(roots)
    uses = _use_counts(nodes, roots) | _use_counts(reachable(results), results)
    depth: dict[int, int] = {}
    new: dict[int, Expr] = {}
    for node in nodes:
        depth[node.id] = 1 + max((depth[a.id] for a in node.args), default=0)
        new[node.id] = _rewrite(graph, node, uses, depth, new)
    return [new[r.id] for r in roots]


def _use_counts(nodes: list[Expr], results: list[Expr]) -> dict[int, int]:
    uses = {node.id: 0 for node in nodes}
    for node in nodes:
        for arg in node.args:
            uses[arg.id] += 1
    for result in results:
        uses[result.id] += 1
    return uses


def _rewrite(
    graph: Graph, node: Expr, uses: dict[int, int], depth: dict[int, int], new: dict[int, Expr]
) -> Expr:
    if not node.args:
        return node
    if node.op == "neg" and node.args[0].op == "sub" and uses[node.args[0].id] == 1:
        left, right = node.args[0].args  # -(a - b) is b - a where a - b itself is not needed
        node = graph.node("sub", right, left)
    if node.op in ("add", "sub"):
        products = [a for a in node.args if a.op == "mul" and uses[a.id] == 1]
        if products:
            product = max(products, key=lambda a: (depth[a.id], a.id))
            return _fused(graph, node, product, new)
    args = tuple(new[a.id] for a in node.args)
    return node if args == node.args else graph.node(node.op, *args, value=node.value)


def _fused(graph: Graph, node: Expr, product: Expr, new: dict[int, Expr]) -> Expr:
    a, b = (new[x.id] for x in product.args)
    left, right = node.args
    other = new[(right if left is product else left).id]
    if node.op == "add":
        return graph.node("fma", a, b, other)
    return graph.node("fms" if left is product else "fnma", a, b, other)
