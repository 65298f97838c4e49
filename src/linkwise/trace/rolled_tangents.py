"""Derivatives along a direction through counted loops: forward, as more of the same loops.

A graph of counted loops (roll.py) computes with what loops read, carry and write. Beside each
number goes its tangent: a loop that carries a value carries its tangent too, a step that writes a
number to scratch writes its tangent to other scratch at the same place, and where the number is
read, the tangent is read. Sums in scratch are sums of tangents there. Within a step, each operation
has the rule of ``diff.py``. So a Jacobian-vector product is as many loops over the links as the
function.

What does not change has no tangent: constants of links, places, and all that depends on them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from linkwise.algorithms.configurations import tangent
from linkwise.trace.diff import NotDifferentiable, tangent_of
from linkwise.trace.expr import Counted, Done, Expr, Graph, Write, reachable
from linkwise.trace.program import Slot
from linkwise.trace.rolledtree import Input, RolledTree, Visit

Places = Mapping[str, tuple[str, int]]  # an array and the first number there, by array
UNMOVED = ("sign", "flag", "finite")  # operations whose results never have a tangent


class Moving:
    """What changes in a graph of loops: arrays by name, and carried values by node."""

    def __init__(self, graph: Graph, arrays: Iterable[str]) -> None:
        self.arrays, self.carries = set(arrays), set[int]()
        loops = [counted(each) for each in graph.loops]
        while True:
            before = len(self.arrays), len(self.carries)
            for each in loops:
                self._look(each)
            if before == (len(self.arrays), len(self.carries)):
                return

    def nodes(self, roots: Sequence[Expr]) -> set[int]:
        """Nodes that change, of those that some depend on."""
        found: set[int] = set()
        for node in reachable(roots):
            if node.op in ("read", "input"):
                changes = node.value[0] in self.arrays
            elif node.op == "carry":
                changes = node.id in self.carries
            else:
                own = node.args[1:] if node.op == "select" else node.args
                changes = node.op not in UNMOVED and any(a.id in found for a in own)
            if changes:
                found.add(node.id)
        return found

    def _look(self, each: Counted) -> None:
        changing = self.nodes(each.roots())
        for k, carry in enumerate(each.carries):
            if {each.starts[k].id, *(case.nexts[k].id for case in each.cases)} & changing:
                self.carries.add(carry.id)
        writes = (write for case in each.cases for write in case.writes)
        self.arrays |= {write.array for write in writes if write.value.id in changing}


def counted(each: object) -> Counted:
    """A counted loop; NotDifferentiable for any other."""
    if not isinstance(each, Counted):
        raise NotDifferentiable("a loop that ends by a test is among counted loops")
    return each


class Tangents:
    """Tangents in a graph of loops over the links of a tree."""

    def __init__(self, tree: RolledTree, rates: Places, output: str, size: int) -> None:
        """``rates``: where tangents of inputs are read, by input; ``output``: the array of ``size``
        numbers that loops write results to, where changes then follow them.
        """
        self.tree, self.graph, self.output, self.size = tree, tree.graph, output, size
        self.moving = Moving(tree.graph, rates)
        rooms = sorted(self.moving.arrays & tree.scratch.keys())
        own = {x: (tree.room(tree.scratch[x], tree.widths[x]), 0) for x in rooms}
        self.places = {**rates, **own}
        self._known: dict[int, Expr] = {}

    def of(self, roots: Sequence[Expr]) -> list[Expr]:
        """Tangents of nodes."""
        for node in reachable(roots):
            if node.id not in self._known:
                self._known[node.id] = self._tangent(node)
        return [self._known[x.id] for x in roots]

    def _tangent(self, node: Expr) -> Expr:
        if node.op == "read":
            array, at = node.value
            if array not in self.places:
                return self.graph.zero
            place, first = self.places[array]
            return self.graph.node("read", value=(place, at._replace(start=at.start + first)))
        if node.op == "input":
            port, k = node.value
            place, first = self.places.get(port, ("", 0))
            return self.graph.input(place, first + k) if place else self.graph.zero
        if node.op == "carry":
            number, k = node.value
            moves = node.id in self.moving.carries
            return self.graph.node("carry", value=(number, f"d{k}")) if moves else self.graph.zero
        return tangent_of(self.graph, node, self._known)

    def carried(self, each: Counted) -> Counted:
        """A loop with tangents."""
        moving = [k for k, x in enumerate(each.carries) if x.id in self.moving.carries]
        return each._replace(
            carries=[*each.carries, *self.of([each.carries[k] for k in moving])],
            starts=[*each.starts, *self.of([each.starts[k] for k in moving])],
            cases=[self._done(case, moving) for case in each.cases],
        )

    def _done(self, case: Done, moving: Sequence[int]) -> Done:
        nexts = [*case.nexts, *self.of([case.nexts[k] for k in moving])]
        kept = self.moving.arrays & {self.output, *self.places}
        mine = [write for write in case.writes if write.array in kept]
        changes = self.of([write.value for write in mine])
        more = [self._write(write, x) for write, x in zip(mine, changes, strict=True)]
        return Done(nexts, [*case.writes, *more])

    def _write(self, write: Write, change: Expr) -> Write:
        if write.array == self.output:
            at = write.at._replace(start=write.at.start + self.size)
            return write._replace(at=at, value=change)
        return write._replace(array=self.places[write.array][0], value=change)


def carry_tangents(
    tree: RolledTree,
    rates: Places,
    configurations: Sequence[str],
    output: Slot,
    results: Sequence[Expr],
) -> list[Expr]:
    """Let the loops of a tree's graph compute tangents too; returns those of results that no loop
    writes. ``rates``: where tangents are, by the ports whose numbers change; those of
    configurations are rates of the joints.
    """
    return _carried(tree, rates, configurations, output).of(results)


def tangents_of(
    tree: RolledTree, rates: Places, configurations: Sequence[str], arrays: Mapping[str, int]
) -> list[str]:
    """The same for arrays in scratch, by their sizes: returns where their tangents are."""
    found = _carried(tree, rates, configurations, Slot("")).places
    return [found[name][0] if name in found else tree.cleared(n) for name, n in arrays.items()]


def _carried(
    tree: RolledTree, rates: Places, configurations: Sequence[str], output: Slot
) -> Tangents:
    places, turned = dict(rates), [name for name in rates if name in configurations]
    for name in turned:
        places[name] = (tree.room(tree.nq), 0)
    tangents = Tangents(tree, places, output.name, output.size)
    loops = tree.graph.loops
    loops[:] = [tangents.carried(counted(each)) for each in loops]
    for name in turned:
        _write_numbers(tree, name, rates[name][0], places[name][0])
        loops.insert(0, loops.pop())
    return tangents


def _write_numbers(tree: RolledTree, q: str, rates: str, into: str) -> None:
    """A loop that writes how the numbers of a configuration change at rates."""
    start, stride, places = tree.places_of_q
    per_link = tangent(tree, Input(q), Input(rates)).per_link  # type: ignore[attr-defined]

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        if visit.link.follows is None:
            for k, value in enumerate(per_link.at(visit)):
                visit.step.write(into, value, start + k, stride, places)
        return state

    tree.walk(tree.all, [], body)
