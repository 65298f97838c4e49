"""A traced graph -> regions: what comes before each loop, the loop, and what comes after.

A node that depends on a loop's carried values belongs to the loop's body, or after it, or to both:
then it is computed anew after the loop, from the values the loop ended with.
"""

from __future__ import annotations

from linkwise.trace.expr import Expr, Graph, reachable
from linkwise.trace.fuse import fuse
from linkwise.trace.program import Block, Carry, Region, Repeat
from linkwise.trace.schedule import schedule


def assemble(graph: Graph, results: list[Expr]) -> tuple[tuple[Region, ...], list[Expr]]:
    """Regions that compute the results, and the results as they are named there."""
    roots = list(results)
    for loop in graph.loops:
        roots += [*loop.starts, *loop.nexts, loop.active, loop.limit]
    fused = iter(fuse(graph, roots))
    results = [next(fused) for _ in results]
    loops = [
        (
            [next(fused) for _ in loop.starts],
            [next(fused) for _ in loop.nexts],
            next(fused),
            next(fused),
        )
        for loop in graph.loops
    ]
    regions: list[Region] = []
    known: frozenset[int] = frozenset()
    for k, (loop, (starts, nexts, active, limit)) in enumerate(
        zip(graph.loops, loops, strict=True)
    ):
        carried = _dependent(
            {c.id for later in graph.loops[k:] for c in later.carries}, nexts, active
        )
        needed = reachable([*starts, *nexts, active, limit], known)
        before = [n for n in needed if n.id not in carried]
        block = schedule(before, known)
        regions.append(Block(block))
        known |= {n.id for n in block}
        inside = known | {c.id for c in loop.carries}
        body = schedule([*nexts, active], inside)
        carries = tuple(map(Carry, loop.carries, starts, nexts))
        regions.append(Repeat(limit, carries, Block(body), active))
        known = inside
    regions.append(Block(schedule(results, known)))
    return tuple(regions), results


def _dependent(carries: set[int], nexts: list[Expr], active: Expr) -> set[int]:
    """Ids of nodes that depend on carried values."""
    found = set(carries)
    for node in reachable([*nexts, active]):
        if any(a.id in found for a in node.args):
            found.add(node.id)
    return found
