"""Orders of execution, each beside the same order made plainly.

The orders of `schedule.py` keep heaps and counts up to date while nodes are placed. Here every
choice looks at all the nodes again: slow, and short enough to be compared with the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.trace import schedule as module
from linkwise.trace.expr import At, Expr, Graph
from linkwise.trace.program import Block, Case, For, Program, Repeat
from linkwise.trace.schedule import (
    AT_ONCE,
    FREE,
    MOST_ALIVE,
    REGISTERS,
    SMALL,
    UNITS,
    _branchwise,
    _frugal,
    _Spread,
    alive,
    alone,
    by_pairs,
    cycles,
    latency,
    lean,
    peak_live,
    schedule,
    spilled,
    together,
)
from linkwise.trace.tracer import Task, trace

Nodes = tuple[Expr, ...]
SEEDS = range(4)


@cache
def scattered(seed: int, size: int = 50) -> Nodes:
    """Random operations on random values, new ones preferred; some are used by nothing."""
    rng, graph = np.random.default_rng(seed), Graph()
    nodes = [graph.input("x", k) for k in range(3)] + [graph.const(2.5)]
    ops = {"add": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1, "sin": 1, "cos": 1, "neg": 1}
    while len(nodes) < size:
        op = str(rng.choice(list(ops)))
        reach = len(nodes) if rng.random() < 0.3 else min(len(nodes), 12)
        args = [nodes[-1 - int(k)] for k in rng.integers(reach, size=ops[op])]
        node = graph.node(op, *args)
        nodes += [node] if node not in nodes else []
    return tuple(nodes)


@cache
def wide(seed: int) -> Nodes:
    """Twice as many values as there are registers, used in several orders afterwards."""
    rng, graph = np.random.default_rng(seed), Graph()
    x = [graph.input("x", k) for k in range(2)]
    values = [graph.node("mul", x[0], graph.const(float(k))) for k in range(2, 2 * REGISTERS + 2)]
    sums = values[:1]
    for k in (*rng.permutation(len(values)), *rng.permutation(len(values))):
        sums.append(graph.node("fma", sums[-1], x[1], values[k]))
    return (*x, *values, *sums[1:])


def own_args(node: Expr, nodes: Sequence[Expr]) -> list[Expr]:
    """Its arguments among the nodes, each once."""
    return [a for a in dict.fromkeys(node.args) if a in nodes]


def users(node: Expr, nodes: Sequence[Expr]) -> list[Expr]:
    return [n for n in nodes if node in n.args]


def values(some: Sequence[Expr]) -> list[Expr]:
    """Those that take a register."""
    return [n for n in some if n.op not in FREE]


# -- measures -------------------------------------------------------------------------------------


def plainly_alive(nodes: Nodes) -> int:
    """Values made by now that are used now or later, at worst."""
    at = {node: k for k, node in enumerate(nodes)}
    lives = [(at[n], max(at[u] for u in users(n, nodes))) for n in values(nodes) if users(n, nodes)]
    return max((sum(a <= k <= b for a, b in lives) for k in range(len(nodes))), default=0)


def plainly_spilled(nodes: Nodes) -> int:
    """Whenever there are too many values in registers, the one needed last of all is stored."""
    held: list[Expr] = []
    stored: set[Expr] = set()
    for k, node in enumerate(nodes):
        if node.op in FREE:
            continue
        rest = nodes[k + 1 :]
        held = [v for v in {*held, *values(node.args), node} if users(v, rest)]
        while len(held) > REGISTERS:
            last = max(held, key=lambda v: (rest.index(users(v, rest)[0]), -v.id))
            held.remove(last)
            stored.add(last)
    return len(stored)


@pytest.mark.parametrize("seed", SEEDS)
def test_measures_of_an_order(seed: int) -> None:
    for nodes in (scattered(seed), wide(seed)):
        for order in (nodes, _frugal(nodes)):
            assert peak_live(order) == plainly_alive(order)
            assert spilled(order) == plainly_spilled(order)
    part = scattered(seed)[15:]  # arguments may come from elsewhere
    assert peak_live(part) == plainly_alive(part)
    assert peak_live(()) == spilled(()) == 0


def test_a_sine_waits_for_its_angle() -> None:
    """It takes no time of its own: backends compute sines of inputs at a block's start."""
    graph = Graph()
    x = graph.input("x", 0)
    product = graph.node("mul", x, x)
    sine = graph.node("sin", product)
    assert cycles((x, product, sine)) == 3
    assert cycles((x, product, sine, graph.node("neg", sine))) == 6


# -- orders ---------------------------------------------------------------------------------------


def plainly_frugal(nodes: Nodes) -> Nodes:
    """Costs of candidates are looked up when they become one, and again when it is their turn."""
    placed: list[Expr] = []

    def cost(node: Expr) -> int:
        live = {a for n in placed for a in values(own_args(n, nodes))} - set(placed)
        return len(set(values(own_args(node, nodes))) - live) - (node in live)

    candidates = [(cost(n), 0, -k) for k, n in enumerate(nodes) if not users(n, nodes)]
    while candidates:
        expected, age, tie = min(candidates)
        candidates.remove((expected, age, tie))
        node = nodes[-tie]
        if cost(node) != expected:
            candidates.append((cost(node), age, tie))
            continue
        placed.append(node)
        for arg in own_args(node, nodes):
            if set(users(arg, nodes)) <= set(placed):
                candidates.append((cost(arg), -len(placed), -nodes.index(arg)))
    return tuple(reversed(placed))


def plainly_branchwise(nodes: Nodes) -> Nodes:
    """Results in order; before each node its arguments, those first that need most registers."""
    need: dict[Expr, int] = {}
    for node in nodes:
        own = sorted((need[a] for a in own_args(node, nodes)), reverse=True)
        need[node] = max([k + most for k, most in enumerate(own)] or [1])
    placed: list[Expr] = []

    def place(node: Expr) -> None:
        # of equals the last first, as a stack gives them back
        for arg in reversed(sorted(own_args(node, nodes), key=need.__getitem__)):
            if arg not in placed:
                place(arg)
        placed.append(node)

    for root in (n for n in nodes if not users(n, nodes)):
        place(root)
    return tuple(placed)


class PlainlySpread:
    """Cycle after cycle, the best of all nodes that could be started."""

    def __init__(self, nodes: Nodes, most_alive: int, at_once: frozenset[str]) -> None:
        self.nodes, self.most_alive, self.at_once = nodes, most_alive, at_once
        self.place = {node: k for k, node in enumerate(nodes)}
        self.height: dict[Expr, int] = {}  # cycles from its start to the last result
        for node in reversed(nodes):
            above = max((self.height[u] for u in users(node, nodes)), default=0)
            self.height[node] = latency(node) + above
        self.order: list[Expr] = []
        self.known: dict[Expr, int] = {}  # the cycle in which a result is there
        self.offered: list[Expr] = []

    def run(self) -> list[Expr]:
        arriving = [n for n in self.nodes if not own_args(n, self.nodes)]
        cycle = started = 0
        while len(self.order) < len(self.nodes):
            if arriving:
                node = arriving.pop(0)
                if node.op in self.at_once:
                    arriving += self.start(node, cycle)
                else:
                    self.offered.append(node)
            elif ready := self.candidates(cycle):
                self.offered.remove(ready[0])
                arriving += self.start(ready[0], cycle)
                started += 1
                if started == UNITS:
                    cycle, started = cycle + 1, 0
            else:
                cycle, started = min(map(self.known_at, self.offered)), 0
        return self.order

    def candidates(self, cycle: int) -> list[Expr]:
        """Nodes that may be started now, the best first."""
        order = set(self.order)
        alive = [n for n in values(self.order) if set(users(n, self.nodes)) - order]
        if len(alive) >= self.most_alive:
            return sorted(self.offered, key=lambda n: (self.more_alive(n), self.place[n]))
        now = [n for n in self.offered if self.known_at(n) <= cycle]
        return sorted(now, key=lambda n: (-self.height[n], self.place[n]))

    def more_alive(self, node: Expr) -> int:
        placed, own = {*self.order, node}, values(own_args(node, self.nodes))
        ended = [a for a in own if set(users(a, self.nodes)) <= placed]
        return bool(users(node, self.nodes)) - len(ended)

    def known_at(self, node: Expr) -> int:
        return max((self.known[a] for a in own_args(node, self.nodes)), default=0)

    def start(self, node: Expr, cycle: int) -> list[Expr]:
        """Place a node; returns the users that have all their arguments now."""
        self.known[node] = max(cycle, self.known_at(node)) + latency(node)
        self.order.append(node)
        placed = set(self.order)
        return [u for u in users(node, self.nodes) if set(own_args(u, self.nodes)) <= placed]


def ids(nodes: Sequence[Expr]) -> list[int]:
    return [node.id for node in nodes]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_frugal_order(seed: int) -> None:
    for nodes in (scattered(seed), wide(seed), scattered(seed)[20:], ()):
        assert ids(_frugal(nodes)) == ids(plainly_frugal(nodes))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_branchwise_order(seed: int) -> None:
    for nodes in (scattered(seed), wide(seed), scattered(seed)[20:], ()):
        assert ids(_branchwise(nodes)) == ids(plainly_branchwise(nodes))


@pytest.mark.parametrize("most_alive", [0, 4, 9, MOST_ALIVE])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_spread_order(seed: int, most_alive: int) -> None:
    for nodes in (scattered(seed), _frugal(scattered(seed)), scattered(seed)[20:], ()):
        for at_once in (AT_ONCE, FREE | {"read"}):
            found = _Spread(nodes, most_alive, at_once).order()
            assert ids(tuple(found)) == ids(PlainlySpread(nodes, most_alive, at_once).run())


# -- which order is taken -------------------------------------------------------------------------


@cache
def tangled(seed: int) -> Nodes:
    """Sums and products of any two values before them."""
    rng, graph = np.random.default_rng(seed), Graph()
    nodes = [graph.input("x", k) for k in range(3)]
    while len(nodes) < 150:
        args = [nodes[k] for k in rng.integers(len(nodes), size=2)]
        node = graph.node("mul" if rng.random() < 0.5 else "add", *args)
        nodes += [node] if node not in nodes else []
    return tuple(nodes)


@cache
def reading(seed: int) -> Nodes:
    """The body of a counted loop: sums and products of what it reads."""
    rng, graph = np.random.default_rng(seed), Graph()
    nodes = [graph.node("read", value=("x", At(k, 1))) for k in range(12)]
    while len(nodes) < 40:
        args = [nodes[-1 - k] for k in rng.integers(len(nodes), size=2)]
        node = graph.node("mul" if rng.random() < 0.5 else "add", *args)
        nodes += [node] if node not in nodes else []
    return tuple(nodes)


def robot(function: str, method: str) -> Nodes:
    return tuple(trace(Task(FUNCTIONS[function][method]), lw.load("puma560").tree).nodes())


def spread(nodes: Nodes) -> Nodes:
    return tuple(_Spread(nodes, MOST_ALIVE, AT_ONCE).order())


def slim(nodes: Nodes) -> Nodes:
    return tuple(_Spread(nodes, 0, FREE | {"read"}).order())


def counted(*bodies: Block) -> For:
    """A loop of several cases that carries and writes nothing."""
    return For(3, (), tuple(Case(body, (), ()) for body in bodies))


def reordered(way: Callable[[Program], Program], nodes: Nodes) -> list[int]:
    return ids(tuple(way(Program("p", (), (Block(nodes),), ())).nodes()))


FOR_MANY: dict[str, tuple[Callable[[], Nodes], int]] = {
    "frugal": (lambda: tangled(0), 0),
    "spread": (lambda: scattered(4, 300), 1),
    "spread from frugal": (lambda: scattered(11, 300), 2),
}


@pytest.mark.parametrize("name", FOR_MANY)
def test_many_states_take_the_order_that_spills_fewest(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, best = FOR_MANY[name]
    nodes = make()
    orders = [_frugal(nodes), spread(nodes), spread(_frugal(nodes))]
    spills = list(map(spilled, orders))
    assert spills.index(min(spills)) == best and spills.count(min(spills)) == 1
    monkeypatch.setattr(module, "SMALL", len(nodes))
    assert reordered(together, nodes) == ids(schedule(nodes)) == ids(orders[best])
    monkeypatch.setattr(module, "SMALL", len(nodes) - 1)
    by_branches = slim(_branchwise(nodes, last_first=True))
    of_large = min((*orders[:2], by_branches), key=spilled)
    assert ids(schedule(nodes)) == ids(of_large), "many nodes: by branches, from the last result on"


def test_a_long_program_of_one_state_goes_by_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = tangled(9)
    monkeypatch.setattr(module, "LONG", len(nodes) - 1)
    assert reordered(alone, nodes) == ids(slim(_branchwise(nodes, last_first=True)))


def test_branches_from_the_last_on_leave_least_of_a_tree_alive() -> None:
    program = trace(Task(FUNCTIONS["coriolis_matrix"]["composite"]), forked().tree)
    nodes = tuple(program.nodes())
    first, last = _branchwise(nodes), _branchwise(nodes, last_first=True)
    assert sorted(ids(first)) == sorted(ids(last)) == sorted(ids(nodes))
    assert 2 * peak_live(last) < peak_live(first)


def test_results_pair_of_joints_by_pair_spill_least_of_several_matrices() -> None:
    program = trace(Task(FUNCTIONS["inverse_dynamics_derivatives"]["composite"]), forked().tree)
    nodes, pairs = tuple(program.nodes()), by_pairs(program)
    assert sorted(x.id for x in pairs) == sorted(x.id for x in program.results)
    assert 3 * spilled(schedule(nodes, pairs)) < 2 * spilled(schedule(nodes))
    assert ids(tuple(together(program).nodes())) == ids(schedule(nodes, pairs))
    vector = trace(Task(FUNCTIONS["inverse_dynamics"]["rnea"]), forked().tree)
    assert by_pairs(vector) == []


def forked() -> lw.Robot:
    """Six arms of four joints on one base."""
    b = lw.Builder("forked")
    for arm in range(6):
        parent = "base"
        for k in range(4):
            name = f"{arm}{k}"
            b = b.link(name, mass=1.0, com=(0.1, 0.0, 0.2), inertia=(0.1, 0.1, 0.1))
            b = b.joint(name, "revolute", parent=parent, child=name, axis=(0.0, k % 2, 1 - k % 2),
                        xyz=(0.1, 0.1 * arm, 0.3))  # fmt: skip
            parent = name
    return b.build()


@pytest.mark.parametrize(("seed", "best"), [(10, 0), (9, 1)])
def test_one_state_takes_the_order_of_fewest_cycles(seed: int, best: int) -> None:
    nodes = tangled(seed)
    orders = [spread(nodes), spread(_frugal(nodes))]
    assert cycles(orders[best]) < cycles(orders[1 - best])
    assert reordered(alone, nodes) == ids(orders[best])


LEAN: dict[str, tuple[Callable[[], Nodes], int]] = {
    "that for many states": (lambda: robot("forward_dynamics", "aba"), 0),
    "lean from frugal": (lambda: scattered(4), 1),
    "lean from branchwise": (lambda: scattered(10, 300), 2),
    "lean from frugal, reads at once": (lambda: reading(7), 1),
}


@pytest.mark.parametrize("name", LEAN)
def test_a_gpu_takes_the_order_of_fewest_values_alive(name: str) -> None:
    make, best = LEAN[name]
    nodes = make()
    orders = [schedule(nodes), slim(_frugal(nodes)), slim(_branchwise(nodes))]
    most = list(map(peak_live, orders))
    assert most.index(min(most)) == best
    for limit in (min(most), max(most)):
        assert reordered(partial(lean, most=limit), nodes) == ids(orders[best])
    short = reordered(partial(lean, most=min(most) - 1), nodes)
    assert short == ids(orders[0]), "it does not fit: the order for many states"


def alive_in_groups(order: Nodes, groups: Sequence[Nodes]) -> int:
    """Values alive at worst, where those of a group are alive until the last of it is made."""
    at = {node: k for k, node in enumerate(order)}
    last = {n: max([at[u] for u in users(n, order)], default=-1) for n in values(order)}
    for group in groups:
        complete = max(at[v] for v in group)
        last |= {v: max(last[v], complete) for v in group}
    lives = [(at[n], end) for n, end in last.items() if end >= 0]
    return max(sum(a <= k <= b for a, b in lives) for k in range(len(order)))


@pytest.mark.parametrize(
    ("seed", "size", "count"), [(0, 120, 6), (1, 120, 6), (24, 40, 3), (59, 40, 3), (27, 80, 3)]
)
def test_results_that_leave_in_groups(seed: int, size: int, count: int) -> None:
    """The best of all orders, with a node at the end of each group: first to last, or backward."""
    nodes = scattered(seed, size)
    results = values(nodes)[-24:]
    groups = [(*results[k::count], results[k]) for k in range(1, count)] + [(results[0],)]
    ends = [Expr(nodes[0].graph, -1 - k, "end", group, None) for k, group in enumerate(groups)]
    tried: list[Nodes] = []
    for some in (ends, ends[::-1]):
        begun = [_frugal((*nodes, *some)), _branchwise((*nodes, *some))]
        tried += [*begun, *map(slim, begun)]
    best = min(tried, key=peak_live)
    found = tuple(lean(Program("p", (), (Block(nodes),), ()), 0, groups).nodes())
    assert ids(found) == [node.id for node in best if node.id >= 0]
    assert sorted(ids(found)) == sorted(ids(nodes))
    assert alive_in_groups(found, groups) <= peak_live(best)


def test_groups_of_another_block_end_nothing() -> None:
    nodes = reading(7)
    program = Program("p", (), (Block(nodes),), ())
    elsewhere = [(tangled(0)[-1],)]
    with_none = lean(program, 99)
    assert lean(program, 99, elsewhere) == with_none


def test_a_program_is_as_wide_as_its_widest_region() -> None:
    narrow, wider = Block(tangled(0)[:9]), Block(tangled(0))
    assert peak_live(narrow.nodes) < peak_live(wider.nodes)
    for regions in ((narrow, wider), (counted(narrow, wider), narrow)):
        assert alive(Program("p", (), regions, ())) == peak_live(wider.nodes)
    assert alive(Program("p", (), (), ())) == 0


@pytest.mark.parametrize("way", [together, alone, partial(lean, most=99)])
def test_bodies_of_loops_are_ordered_too(way: Callable[[Program], Program]) -> None:
    nodes = tangled(0)
    plain = Program("p", (), (Block(nodes),), ())
    loop = counted(Block(nodes), Block(nodes[:3]))
    found = way(replace(plain, regions=(loop, Block(nodes[:3]))))
    body = found.regions[0]
    assert isinstance(body, For)
    ordered = [case.body for case in body.cases]
    assert ordered == [way(plain).regions[0], Block(nodes[:3])] != [c.body for c in loop.cases]
    assert [replace(c, body=o.body) for c, o in zip(body.cases, loop.cases, strict=True)] == list(
        loop.cases
    )
    assert found.regions[1] == Block(nodes[:3])


def test_constants_that_were_measured() -> None:
    """Other numbers compute the same, more slowly: whoever changes them has measured again."""
    assert (UNITS, REGISTERS, SMALL, MOST_ALIVE) == (2, 30, 5000, 64)
    assert FREE == {"const", "input", "carry"} and AT_ONCE == FREE | {"read", "sin", "cos"}


def test_a_loop_that_ends_by_a_test_is_ordered_too() -> None:
    nodes = tangled(0)
    plain = Program("p", (), (Block(nodes),), ())
    loop = Repeat(nodes[0], (), Block(nodes), nodes[1])
    (found,) = together(replace(plain, regions=(loop,))).regions
    assert found == replace(loop, body=together(plain).regions[0]) != loop
