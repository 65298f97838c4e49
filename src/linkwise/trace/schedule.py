"""Order of execution, for few values alive at once.

Nodes are placed from the last to the first. Of the nodes whose users are all placed, the next is
the one that adds fewest live values going backward (its arguments not yet alive, less itself);
among equals, the one whose user was placed most recently, which keeps chains of work together.
Constants and inputs are not counted: they are read from memory where they are used.
"""

from __future__ import annotations

import heapq

from linkwise.trace.expr import Expr, reachable

FREE = ("const", "input", "carry")


def schedule(results: list[Expr], known: frozenset[int] = frozenset()) -> tuple[Expr, ...]:
    """Nodes the results need beyond those already known, in order of execution."""
    nodes = [n for n in reachable(results, known) if n.op != "carry"]
    here = {n.id for n in nodes}
    args = {n.id: [a for a in dict.fromkeys(n.args) if a.id in here] for n in nodes}
    users_left = dict.fromkeys(here, 0)
    for arg in (a for some in args.values() for a in some):
        users_left[arg.id] += 1
    live: set[int] = set()

    def cost(node: Expr) -> int:
        fresh = sum(a.op not in FREE and a.id not in live for a in args[node.id])
        return fresh - (node.id in live)

    heap = [(cost(n), 0, -n.id, n) for n in nodes if users_left[n.id] == 0]
    heapq.heapify(heap)
    placed: list[Expr] = []
    while heap:
        expected, age, tie, node = heapq.heappop(heap)
        now = cost(node)
        if now != expected:
            heapq.heappush(heap, (now, age, tie, node))
            continue
        placed.append(node)
        live.discard(node.id)
        live.update(a.id for a in args[node.id] if a.op not in FREE)
        for arg in args[node.id]:
            users_left[arg.id] -= 1
            if users_left[arg.id] == 0:
                heapq.heappush(heap, (cost(arg), -len(placed), -arg.id, arg))
    return tuple(reversed(placed))


def peak_live(nodes: tuple[Expr, ...], results: list[Expr]) -> int:
    """Most values alive at once: a measure of register pressure."""
    last = {a.id: i for i, node in enumerate(nodes) for a in node.args}
    ends: dict[int, int] = {}
    for at in last.values():
        ends[at] = ends.get(at, 0) + 1
    alive = peak = 0
    counted = {n.id for n in nodes if n.op not in FREE}
    ending = [[] for _ in nodes]  # type: list[list[int]]
    for id_, at in last.items():
        if id_ in counted:
            ending[at].append(id_)
    for i, node in enumerate(nodes):
        alive += node.id in counted and node.id in last
        peak = max(peak, alive)
        alive -= len(ending[i])
    return peak
