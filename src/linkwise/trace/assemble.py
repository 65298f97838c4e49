"""A traced graph -> regions: what comes before each loop, the loop, and what comes after.

A node that depends on a loop's carried values, or on what a step reads, belongs to the loop's body,
or after it, or to both: then it is computed anew after the loop, from the values the loop ended
with. Whatever does not change from step to step is computed before the loop.

Nodes of a block are in the order of their creation; `schedule.py` has better ones for machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.trace.expr import Counted, Done, Expr, Graph, Loop, reachable
from linkwise.trace.fuse import fuse
from linkwise.trace.program import Block, Carry, Case, For, Region, Repeat


def assemble(
    graph: Graph, results: Sequence[Expr], beside: Sequence[Expr] = ()
) -> tuple[tuple[Region, ...], list[Expr]]:
    """Regions that compute the results and what is wanted beside them; both, as named there."""
    wanted = _live(graph.loops, [*results, *beside])
    roots = [*results, *(root for loop in wanted for root in loop.roots())]
    fused = iter(fuse(graph, roots, beside))
    results = [next(fused) for _ in results]
    loops = [loop.renamed(fused) for loop in wanted]
    results += fused
    regions: list[Region] = []
    known: frozenset[int] = frozenset()
    for k, loop in enumerate(loops):
        stepped = {carry.id for later in loops[k:] for carry in later.carries}
        changing = _dependent(stepped, loop.roots())
        before = [n for n in reachable(loop.roots(), known) if n.id not in changing]
        block = needed(before, known)
        regions.append(Block(block))
        known |= {n.id for n in block}
        regions.append(_region(loop, known))
    regions.append(Block(needed(results, known)))
    return tuple(regions), results


def _live(loops: Sequence[Loop | Counted], roots: Sequence[Expr]) -> list[Loop | Counted]:
    """The loops without carried values that nobody uses; a loop that does nothing is none."""
    found: list[Loop | Counted] = []
    used = list(roots)
    for loop in reversed(loops):
        if isinstance(loop, Counted):
            loop = _used(loop, {node.id for node in reachable(used)})
            if not (loop.carries or any(case.writes for case in loop.cases)):
                continue
        found.insert(0, loop)
        used += loop.roots()
    return found


def _used(loop: Counted, after: set[int]) -> Counted:
    """The loop with the carried values that are used after it, or by its own steps."""
    wanted = [write.value for case in loop.cases for write in case.writes]
    seen = after | {node.id for node in reachable(wanted)}
    live: set[int] = set()
    while True:
        new = [k for k, carry in enumerate(loop.carries) if carry.id in seen and k not in live]
        if not new:
            break
        live |= set(new)
        seen |= {n.id for n in reachable([case.nexts[k] for case in loop.cases for k in new])}
    kept = sorted(live)
    cases = [case._replace(nexts=[case.nexts[k] for k in kept]) for case in loop.cases]
    carries, starts = ([some[k] for k in kept] for some in (loop.carries, loop.starts))
    return loop._replace(carries=carries, starts=starts, cases=cases)


def needed(results: Sequence[Expr], known: frozenset[int] = frozenset()) -> tuple[Expr, ...]:
    """Nodes that the results need beyond those already known, arguments before users."""
    return tuple(n for n in reachable(results, known) if n.op != "carry")


def _region(loop: Loop | Counted, known: frozenset[int]) -> Region:
    nexts = loop.cases[0].nexts if isinstance(loop, Counted) else loop.nexts
    carries = tuple(map(Carry, loop.carries, loop.starts, nexts))
    if isinstance(loop, Counted):
        cases = tuple(_case(case, known) for case in loop.cases)
        return For(loop.steps, carries, cases, loop.which, loop.limit)
    return Repeat(
        loop.limit, carries, Block(needed([*loop.nexts, loop.active], known)), loop.active
    )


def _case(case: Done, known: frozenset[int]) -> Case:
    body = Block(needed(case.roots(), known))
    return Case(body, tuple(case.nexts), tuple(case.writes))


def _dependent(stepped: set[int], roots: Sequence[Expr]) -> set[int]:
    """Ids of nodes that change from step to step."""
    found = set(stepped)
    for node in reachable(roots):
        if node.op == "read" or any(a.id in found for a in node.args):
            found.add(node.id)
    return found
