"""Order of execution. Results do not depend on it; the time they take does.

Three orders are made of the nodes, arguments always before users:

    frugal              from the last to the first, for few values alive
    spread              from the first to the last, as a processor with two arithmetic units would
                        start them, the longest way to a result first; while too many values are
                        alive, the one that leaves fewest of them. Ties go by creation
    spread, from frugal the same, ties by the frugal order

Which is best depends on the equations. With many states side by side, registers are what is short:
`together` takes the order that spills fewest values. One state alone waits for results, because
there is no other to work on meanwhile: `alone` takes the spread order of fewest estimated cycles.
Constants and inputs count nowhere: they are read from memory where they are used.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from linkwise.trace.expr import Expr
from linkwise.trace.program import Block, Program, Region

Order = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]

FREE = ("const", "input", "carry")
AT_ONCE = (*FREE, "read", "sin", "cos")  # not waited for: backends compute sines at a block's start
LATENCY = {"fma": 4, "fms": 4, "fnma": 4, "div": 13, "sqrt": 15}  # cycles; any other takes three
UNITS = 2  # operations that start in one cycle
REGISTERS = 30  # of 32, with AVX-512
SMALL = 5000  # nodes up to which the third order is tried for many states, too
MOST_ALIVE = 64  # measured: fewer leave too little to do, more are spilled


def together(program: Program) -> Program:
    """The same program in an order for many states."""
    return _reordered(program, schedule)


def alone(program: Program) -> Program:
    """The same program in an order for one state."""
    return _reordered(program, _for_one)


def _reordered(program: Program, order: Order) -> Program:
    def block(region: Block) -> Block:
        return Block(order(region.nodes))

    def reordered(region: Region) -> Region:
        if isinstance(region, Block):
            return block(region)
        return replace(region, body=block(region.body))

    return replace(program, regions=tuple(map(reordered, program.regions)))


def schedule(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Nodes in an order for many states; given in the order of their creation."""
    frugal = _frugal(nodes)
    orders = [frugal, _spread(nodes)]
    if len(nodes) <= SMALL:
        orders.append(_spread(frugal))
    return min(orders, key=spilled)


def _for_one(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return min(_spread(nodes), _spread(_frugal(nodes)), key=cycles)


def _spread(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(_Spread(nodes).order())


def spilled(nodes: tuple[Expr, ...]) -> int:
    """Values that leave the registers before their last use, those used last of all first."""
    uses: dict[int, list[int]] = {}  # the latest first
    for k in reversed(range(len(nodes))):
        for arg in set(nodes[k].args):
            uses.setdefault(arg.id, []).append(k)
    held: dict[int, int] = {}  # value in a register -> its next use
    heap: list[tuple[int, int]] = []
    stored: set[int] = set()
    for node in (n for n in nodes if n.op not in FREE):
        for value in {node, *node.args}:
            if value.op in FREE:
                continue
            own = uses.get(value.id, [])
            if value is not node:
                own.pop()
            held.pop(value.id, None)
            if own:
                held[value.id] = own[-1]
                heapq.heappush(heap, (-own[-1], value.id))
        while len(held) > REGISTERS:
            use, id_ = heapq.heappop(heap)
            if held.get(id_) == -use:
                del held[id_]
                stored.add(id_)
    return len(stored)


def cycles(nodes: tuple[Expr, ...]) -> int:
    """An estimate: the time of a processor that starts operations in order."""
    known: dict[int, int] = {}
    cycle = started = 0
    for node in nodes:
        wait = max((known.get(a.id, 0) for a in node.args), default=0)
        if node.op in AT_ONCE:
            known[node.id] = wait
            continue
        if wait > cycle:
            cycle, started = wait, 0
        known[node.id] = cycle + latency(node)
        started += 1
        if started == UNITS:
            cycle, started = cycle + 1, 0
    return max(known.values(), default=0)


def _frugal(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Placed from the last to the first, for few values alive.

    Of the nodes whose users are all placed, the next is the one that adds fewest live values going
    backward (its arguments not yet alive, less itself); among equals, the one whose user was placed
    most recently, which keeps chains of work together.
    """
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


def peak_live(nodes: tuple[Expr, ...]) -> int:
    """Most values alive at once: a measure of register pressure."""
    last = {a.id: i for i, node in enumerate(nodes) for a in node.args}
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


class _Spread:
    """The nodes of one block, being placed from the first to the last."""

    def __init__(self, nodes: tuple[Expr, ...]) -> None:
        here = {n.id for n in nodes}
        self.nodes, self.place = nodes, {n.id: k for k, n in enumerate(nodes)}
        self.args = {n.id: [a for a in dict.fromkeys(n.args) if a.id in here] for n in nodes}
        self.users: dict[int, list[Expr]] = {n.id: [] for n in nodes}
        for n in nodes:
            for a in self.args[n.id]:
                self.users[a.id].append(n)
        self.height: dict[int, int] = {}  # cycles from a node's start to the last result
        for n in reversed(nodes):
            above = max((self.height[u.id] for u in self.users[n.id]), default=0)
            self.height[n.id] = latency(n) + above
        self.missing = {n.id: len(self.args[n.id]) for n in nodes}  # arguments not yet placed
        self.wanted = {n.id: len(self.users[n.id]) for n in nodes}  # users not yet placed
        self.known_at = dict.fromkeys(here, 0)  # the cycle in which all arguments are known
        self.placed: set[int] = set()
        self.alive = 0
        # nodes whose arguments are placed: known by now, known later, and by what they leave alive
        self.ready: list[tuple[int, int, Expr]] = []
        self.later: list[tuple[int, int, Expr]] = []
        self.lean: list[tuple[int, int, Expr]] = []

    def order(self) -> Iterator[Expr]:
        """Every node once, after its arguments."""
        waiting = deque(n for n in self.nodes if not self.args[n.id])
        cycle = started = 0
        while len(self.placed) < len(self.nodes):
            while waiting:
                node = waiting.popleft()
                if node.op in AT_ONCE:
                    waiting += self._put(node, cycle)
                    yield node
                else:
                    self._offer(node)
            choice = self._next(cycle)
            if choice is None:
                cycle, started = max(cycle + 1, self._soonest(cycle)), 0
                continue
            waiting += self._put(choice, cycle)
            yield choice
            started += 1
            if started == UNITS:
                cycle, started = cycle + 1, 0

    def _offer(self, node: Expr) -> None:
        place = self.place[node.id]
        heapq.heappush(self.later, (self.known_at[node.id], place, node))
        heapq.heappush(self.lean, (self._change(node), place, node))

    def _next(self, cycle: int) -> Expr | None:
        """The node to start in this cycle, if there is one."""
        while self.later and self.later[0][0] <= cycle:
            _, place, node = heapq.heappop(self.later)
            heapq.heappush(self.ready, (-self.height[node.id], place, node))
        heap = self.lean if self.alive >= MOST_ALIVE else self.ready
        while heap:
            key, _, node = heapq.heappop(heap)
            stale = heap is self.lean and key != self._change(node)
            if node.id not in self.placed and not stale:
                return node
        return None

    def _soonest(self, cycle: int) -> int:
        while self.later and self.later[0][2].id in self.placed:
            heapq.heappop(self.later)
        return self.later[0][0] if self.later else cycle

    def _change(self, node: Expr) -> int:
        """How many more values are alive after a node than before."""
        ends = sum(a.op not in FREE and self.wanted[a.id] == 1 for a in self.args[node.id])
        return (self.wanted[node.id] > 0) - ends

    def _put(self, node: Expr, cycle: int) -> list[Expr]:
        """Place a node; returns the users that have all their arguments now."""
        self.placed.add(node.id)
        self.alive += self._change(node) if node.op not in FREE else 0
        known = max(cycle, self.known_at[node.id]) + latency(node)
        for arg in self.args[node.id]:
            self.wanted[arg.id] -= 1
            if self.wanted[arg.id] == 1:
                self._last_user(arg)
        for user in self.users[node.id]:
            self.known_at[user.id] = max(self.known_at[user.id], known)
            self.missing[user.id] -= 1
        return [user for user in self.users[node.id] if not self.missing[user.id]]

    def _last_user(self, value: Expr) -> None:
        """The only user left of a value now ends its life: it leaves fewer alive than it did."""
        for user in self.users[value.id]:
            if user.id not in self.placed and not self.missing[user.id]:
                heapq.heappush(self.lean, (self._change(user), self.place[user.id], user))


def latency(node: Expr) -> int:
    """Cycles from the start of an operation to its result."""
    return 0 if node.op in AT_ONCE else LATENCY.get(node.op, 3)
