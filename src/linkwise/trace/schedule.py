"""Order of execution. Results do not depend on it; the time they take does.

Orders that are made of the nodes, arguments always before users:

    created    as the equations were written down
    frugal     from the last to the first, for few values alive
    branchwise one result after another, and before each node its arguments, those first that need
               most registers: a branch of the tree is finished before the next is begun. From the
               last result on, the tips of a tree come first, and composites are there when needed.
               Results of several matrices may be ordered by pairs of joints: entries of one pair
               share most of their arguments
    spread     from the first to the last, as a processor with two arithmetic units would start
               them, the longest way to a result first; while too many values are alive, the one
               that leaves fewest of them. Ties go by one of the orders above
    lean       spread, with every value one too many: always the node that leaves fewest alive

Which is best depends on the equations. With many states side by side, registers are what is short:
`together` takes the order that spills fewest values. One state alone waits for results, because
there is no other to work on meanwhile: `alone` takes the spread order of fewest estimated cycles.
Of a large tree, branch after branch from the last one on spills least; a long program of one state
takes that too, for it waits for its instructions, and a spilled value is one more.
A GPU has registers for all values or slows down: `lean` takes the order of fewest values alive,
where that fits; results that leave in groups are alive until their group is complete.
Constants and inputs count nowhere: they are read from memory where they are used.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from linkwise.trace.expr import Expr
from linkwise.trace.program import Block, For, Program, Region, blocks

Order = Callable[[tuple[Expr, ...]], tuple[Expr, ...]]

END = "end"  # of a group of results: no operation of a program
FREE = frozenset(("const", "input", "carry"))
AT_ONCE = FREE | {"read", "sin", "cos"}  # not waited for: backends compute sines at a block's start
LATENCY = {"fma": 4, "fms": 4, "fnma": 4, "div": 13, "sqrt": 15}  # cycles; any other takes three
UNITS = 2  # operations that start in one cycle
REGISTERS = 30  # of 32, with AVX-512
SMALL = 5000  # nodes up to which spread goes by frugal, too; beyond, lean by branches
WORTH_PAIRS = 12_000  # nodes up to which results are tried pair by pair: it takes time, too
LONG = 3000  # nodes from which one state alone waits less for results than for its instructions
MOST_ALIVE = 64  # measured: fewer leave too little to do, more are spilled


def together(program: Program) -> Program:
    """The same program in an order for many states."""
    return _reordered(program, partial(schedule, results=by_pairs(program)))


def by_pairs(program: Program) -> list[Expr]:
    """Results of outputs that are taller than wide, taken for square matrices over the joints one
    below another: by the outer one of an entry's two joints, then the inner one. May be empty.
    """
    found: list[Expr] = []
    for shape, values in ((output.shape, output.values) for output in program.outputs):
        if len(shape) == 2 and values and shape[0] > shape[1]:
            places = [(k // shape[1] % shape[1], k % shape[1]) for k in range(len(values))]
            order = sorted(range(len(values)), key=lambda k: (max(places[k]), min(places[k])))
            found += [values[k] for k in order]
    return found


def alone(program: Program) -> Program:
    """The same program in an order for one state."""
    return _reordered(program, _for_one)


def lean(program: Program, most: int, groups: Sequence[tuple[Expr, ...]] = ()) -> Program:
    """The same program in an order of few values alive, sines and cosines where they are used.

    Where more than ``most`` are alive in any order, it is that for many states, unless results
    leave in ``groups``: then few alive is best in any case.
    """
    return _reordered(program, partial(_lean, most=most, groups=groups))


def _reordered(program: Program, order: Order) -> Program:
    def block(region: Block) -> Block:
        return Block(order(region.nodes))

    def reordered(region: Region) -> Region:
        if isinstance(region, Block):
            return block(region)
        if isinstance(region, For):
            cases = (replace(case, body=block(case.body)) for case in region.cases)
            return replace(region, cases=tuple(cases))
        return replace(region, body=block(region.body))

    return replace(program, regions=tuple(map(reordered, program.regions)))


def schedule(nodes: tuple[Expr, ...], results: Sequence[Expr] = ()) -> tuple[Expr, ...]:
    """Nodes in an order for many states; given in the order of their creation.

    ``results``: those of a program in an order that may suit it.
    """
    frugal = _frugal(nodes)
    orders = [frugal, _spread(nodes)]
    if len(nodes) <= SMALL:
        orders.append(_spread(frugal))
    else:
        orders.append(_leanest(_branchwise(nodes, last_first=True)))
    if results and len(nodes) <= WORTH_PAIRS:
        orders.append(_leanest(_branchwise(nodes, results)))
    return min(orders, key=spilled)


def _for_one(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if len(nodes) > LONG:
        return _leanest(_branchwise(nodes, last_first=True))
    return min(_spread(nodes), _spread(_frugal(nodes)), key=cycles)


def _lean(
    nodes: tuple[Expr, ...], most: int, groups: Sequence[tuple[Expr, ...]]
) -> tuple[Expr, ...]:
    wide = schedule(nodes)
    ends = _ends(nodes, groups)
    orders = [] if ends else [wide]
    for end in (ends, ends[::-1]) if ends else [()]:
        full = nodes + end
        begun = (_frugal(full), _branchwise(full))
        orders += [] if not ends else list(begun)
        orders += map(_leanest, begun)
    best = min(orders, key=peak_live)
    if not ends and peak_live(best) > most:
        return wide
    return tuple(node for node in best if node.op != END)


def _ends(nodes: tuple[Expr, ...], groups: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """A node for each group, which uses those of its values that are made here."""
    made = {node.id for node in nodes}
    here = [tuple(v for v in dict.fromkeys(group) if v.id in made) for group in groups]
    ids = range(-1, -1 - len(here), -1)
    return tuple(Expr(v[0].graph, k, END, v, None) for k, v in zip(ids, here, strict=True) if v)


def _spread(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(_Spread(nodes, MOST_ALIVE, AT_ONCE).order())


def _leanest(nodes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(_Spread(nodes, 0, FREE | {"read"}).order())


def _branchwise(
    nodes: tuple[Expr, ...], results: Sequence[Expr] = (), *, last_first: bool = False
) -> tuple[Expr, ...]:
    """One result after another, those given first; the last one first leaves least of a tree alive,
    where the results of outer links were written down after those of inner ones.
    """
    need: dict[int, int] = {}  # registers to compute a node, were all its arguments its own
    for n in nodes:
        own = sorted((need[a.id] for a in dict.fromkeys(n.args) if a.id in need), reverse=True)
        need[n.id] = max((k + most for k, most in enumerate(own)), default=1)
    used = {a.id for n in nodes for a in n.args}
    placed: dict[int, Expr] = {}
    first = [n for n in results if n.id in need]
    for root in (*first, *(n for n in nodes[:: -1 if last_first else 1] if n.id not in used)):
        waiting = [(root, False)]
        while waiting:
            node, ready = waiting.pop()
            if node.id in placed:
                continue
            if ready:
                placed[node.id] = node
                continue
            waiting.append((node, True))
            rest = [a for a in dict.fromkeys(node.args) if a.id in need and a.id not in placed]
            waiting += [(a, False) for a in sorted(rest, key=lambda a: need[a.id])]
    return tuple(placed.values())


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
    args, values = _arguments(nodes)
    users_left = list(map(len, _users(args)))
    live = [False] * len(nodes)

    def cost(k: int) -> int:
        fresh = 0
        for arg in values[k]:
            if not live[arg]:
                fresh += 1
        return fresh - live[k]

    heap = [(cost(k), 0, -k) for k in range(len(nodes)) if users_left[k] == 0]
    heapq.heapify(heap)
    placed: list[Expr] = []
    while heap:
        expected, age, tie = heapq.heappop(heap)
        k = -tie
        now = cost(k)
        if now != expected:
            heapq.heappush(heap, (now, age, tie))
            continue
        placed.append(nodes[k])
        live[k] = False
        for arg in values[k]:
            live[arg] = True
        for arg in args[k]:
            users_left[arg] -= 1
            if users_left[arg] == 0:
                heapq.heappush(heap, (cost(arg), -len(placed), -arg))
    return tuple(reversed(placed))


def _arguments(nodes: tuple[Expr, ...]) -> tuple[list[list[int]], list[list[int]]]:
    """Places of each node's arguments among the nodes; and of those that take a register."""
    place = {node.id: k for k, node in enumerate(nodes)}
    args = [[place[a.id] for a in dict.fromkeys(n.args) if a.id in place] for n in nodes]
    free = [node.op in FREE for node in nodes]
    return args, [[arg for arg in some if not free[arg]] for some in args]


def _users(args: list[list[int]]) -> list[list[int]]:
    """Places of each node's users."""
    users: list[list[int]] = [[] for _ in args]
    for k, some in enumerate(args):
        for arg in some:
            users[arg].append(k)
    return users


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


def alive(program: Program) -> int:
    """Most values alive at once in any block of a program."""
    found = (block for region in program.regions for block in blocks(region))
    return max((peak_live(block.nodes) for block in found), default=0)


class _Spread:
    """The nodes of one block, being placed from the first to the last; each is its place here."""

    def __init__(self, nodes: tuple[Expr, ...], most_alive: int, at_once: frozenset[str]) -> None:
        self.nodes, self.most_alive, self.at_once = nodes, most_alive, at_once
        self.args, self.values = _arguments(nodes)
        self.users = _users(self.args)
        self.latency = list(map(latency, nodes))
        self.height = [0] * len(nodes)  # cycles from a node's start to the last result
        for k in reversed(range(len(nodes))):
            above = max([self.height[user] for user in self.users[k]], default=0)
            self.height[k] = self.latency[k] + above
        self.missing = list(map(len, self.args))  # arguments not yet placed
        self.wanted = list(map(len, self.users))  # users not yet placed
        self.known_at = [0] * len(nodes)  # the cycle in which all arguments are known
        self.placed = [False] * len(nodes)
        self.alive = 0
        # nodes whose arguments are placed: known by now, known later, and by what they leave alive
        self.ready: list[tuple[int, int]] = []
        self.later: list[tuple[int, int]] = []
        self.lean: list[tuple[int, int]] = []

    def order(self) -> Iterator[Expr]:
        """Every node once, after its arguments."""
        nodes = self.nodes
        waiting = deque(k for k in range(len(nodes)) if not self.args[k])
        cycle = started = count = 0
        while count < len(nodes):
            while waiting:
                k = waiting.popleft()
                if nodes[k].op in self.at_once:
                    waiting += self._put(k, cycle)
                    count += 1
                    yield nodes[k]
                else:
                    self._offer(k)
            choice = self._next(cycle)
            if choice is None:
                cycle, started = max(cycle + 1, self._soonest(cycle)), 0
                continue
            waiting += self._put(choice, cycle)
            count += 1
            yield nodes[choice]
            started += 1
            if started == UNITS:
                cycle, started = cycle + 1, 0

    def _offer(self, k: int) -> None:
        heapq.heappush(self.later, (self.known_at[k], k))
        heapq.heappush(self.lean, (self._change(k), k))

    def _next(self, cycle: int) -> int | None:
        """The node to start in this cycle, if there is one."""
        later = self.later
        while later and later[0][0] <= cycle:
            k = heapq.heappop(later)[1]
            heapq.heappush(self.ready, (-self.height[k], k))
        heap = self.lean if self.alive >= self.most_alive else self.ready
        while heap:
            key, k = heapq.heappop(heap)
            stale = heap is self.lean and key != self._change(k)
            if not self.placed[k] and not stale:
                return k
        return None

    def _soonest(self, cycle: int) -> int:
        while self.later and self.placed[self.later[0][1]]:
            heapq.heappop(self.later)
        return self.later[0][0] if self.later else cycle

    def _change(self, k: int) -> int:
        """How many more values are alive after a node than before."""
        change = int(self.wanted[k] > 0)
        for arg in self.values[k]:
            if self.wanted[arg] == 1:
                change -= 1
        return change

    def _put(self, k: int, cycle: int) -> list[int]:
        """Place a node; returns the users that have all their arguments now."""
        self.placed[k] = True
        self.alive += self._change(k) if self.nodes[k].op not in FREE else 0
        known = max(cycle, self.known_at[k]) + self.latency[k]
        for arg in self.args[k]:
            self.wanted[arg] -= 1
            if self.wanted[arg] == 1:
                self._last_user(arg)
        complete = []
        for user in self.users[k]:
            self.known_at[user] = max(self.known_at[user], known)
            self.missing[user] -= 1
            if not self.missing[user]:
                complete.append(user)
        return complete

    def _last_user(self, value: int) -> None:
        """The only user left of a value now ends its life: it leaves fewer alive than it did."""
        for user in self.users[value]:
            if not self.placed[user] and not self.missing[user]:
                heapq.heappush(self.lean, (self._change(user), user))


def latency(node: Expr) -> int:
    """Cycles from the start of an operation to its result."""
    return 0 if node.op in AT_ONCE else LATENCY.get(node.op, 3)
