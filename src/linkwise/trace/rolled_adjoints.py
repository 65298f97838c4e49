"""Gradients through counted loops: in reverse, one loop back for each loop.

The gradient of a weighted sum of results, by all numbers of the arguments at once. After the loops
of a function (roll.py) each of them is taken again, the last one first, from its last step to its
first, and carries adjoints: how much the sum changes with each value that was carried.

    forward step      a number is read, values are carried on, a number is written or added
    the step back     the adjoint of what was written is read, adjoints are carried back, and the
                      adjoint of what was read is added where adjoints of that array are

A step back computes its forward step anew, from what the loop had carried there (kept step by step)
and from the same reads: arrays of a walk are written before they are read, and not again. What is
the same for all steps, an input or what an earlier loop ended with, has its adjoints summed up.
Within a step, each operation has the rule of ``diff.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms.configurations import tangent
from linkwise.trace.diff import NotDifferentiable, vjp
from linkwise.trace.expr import At, Counted, Done, Expr, Order, Write, reachable
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolled_tangents import Moving, counted
from linkwise.trace.rolledtree import Input, Place, RolledTree, Visit

# stands for rates of the joints; what is computed is linear in them, so that no read of it is left
RATES = "rates"
CONSTANT = ("read", "carry")  # operations that have no adjoint, unless derivatives are by them


class Adjoints:
    """Adjoints in a graph of loops over the links of a tree, while the loops go back."""

    def __init__(self, tree: RolledTree, moving: Iterable[str], output: str, weights: str) -> None:
        """``moving``: inputs by which there are derivatives; ``weights``: the input that has those
        of the numbers that loops write to ``output``.
        """
        self.tree, self.graph, self.output, self.weights = tree, tree.graph, output, weights
        self.loops = [counted(each) for each in tree.graph.loops]
        self.moving = Moving(tree.graph, moving)
        self._of: dict[Expr, Expr] = {}  # adjoints of inputs, and of what loops have ended with
        self._rooms: dict[str, str] = {}  # where adjoints of arrays are

    def room(self, array: str, size: int) -> str:
        """Where the adjoints of an array are; zero, at first."""
        if array not in self._rooms:
            self._rooms[array] = self.tree.cleared(size)
        return self._rooms[array]

    def of(self, port: str, size: int) -> str:
        """Where the adjoints of an input are, those of numbers that no loop reads too."""
        room = self.room(port, size)
        own = [
            (x.value[1], to) for x, to in self._of.items() if x.op == "input" and x.value[0] == port
        ]

        def body(step: Step) -> list[Expr]:
            for k, x in own:
                step.write(room, x, k, add=True)
            return []

        if own:
            self.tree.once(body)
        return room

    def pull(self, values: Sequence[Expr], weights: Sequence[Expr | float]) -> None:
        """Add what the weighted sum of values, outside loops, changes with each that they need."""
        leaves = self._outside(values)
        for leaf, x in zip(leaves, vjp(values, leaves, weights, known=CONSTANT), strict=True):
            self._add(leaf, x)

    def _add(self, leaf: Expr, adjoint: Expr) -> None:
        self._of[leaf] = self._of.get(leaf, self.graph.zero) + adjoint

    def _outside(self, roots: Sequence[Expr], own: Iterable[Expr] = ()) -> list[Expr]:
        """Inputs and carried values that change, of those that nodes depend on."""
        carried = self.moving.carries - {x.id for x in own}
        return [
            node for node in reachable(roots)
            if (node.op == "carry" and node.id in carried)
            or (node.op == "input" and node.value[0] in self.moving.arrays)
        ]  # fmt: skip

    def go_back(self, sizes: Mapping[str, int]) -> None:
        """Take all loops back; ``sizes`` of inputs."""
        for array, size in self.tree.scratch.items():
            self._refuse_rewritten(array, size)
        arrays = {**self.tree.scratch, **sizes}
        for array in sorted(self.moving.arrays & arrays.keys()):
            self.room(array, arrays[array])
        for number in reversed(range(len(self.loops))):
            self._back(number)

    def _refuse_rewritten(self, array: str, size: int) -> None:
        """Raise NotDifferentiable where something is written to what was read before."""
        read_by = [k for k, x in enumerate(self.loops) if _reads(x.roots(), array)]
        for k, each in enumerate(self.loops):
            writes = [w for case in each.cases for w in case.writes if w.array == array]
            late = bool(writes) and any(j < k for j in read_by)
            if late or (k in read_by and self._rewrites(each, array, size)):
                raise NotDifferentiable(
                    "a loop writes to what was read before; expected a forward pass, such as jvp"
                )

    def _rewrites(self, each: Counted, array: str, size: int) -> bool:
        """Whether a step of a loop writes to an element that it, or a step before, has read."""
        last = np.full(size, -1)
        for case, steps in self._steps(each):
            for at in (w.at for w in case.writes if w.array == array):
                np.maximum.at(last, self._elements(at, steps), steps)
        return any(
            (last[self._elements(at, steps)] >= steps).any()
            for case, steps in self._steps(each)
            for at in _reads(case.roots(), array)
        )

    def _steps(self, each: Counted) -> Iterator[tuple[Done, NDArray[np.int64]]]:
        """The cases of a loop, and at which steps each is taken."""
        steps = np.arange(each.steps)
        which = None if each.which is None else self._elements(each.which, steps)
        for k, case in enumerate(each.cases):
            yield case, steps if which is None else steps[which == k]

    def _elements(self, at: At, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The elements that steps touch."""
        first, by = at.order
        items = first + by * steps  # type: ignore[operator]
        return at.start + at.stride * (self.tree.lists[at.places][items] if at.places else items)

    def _back(self, number: int) -> None:
        """One loop again, from its last step to its first."""
        each, graph = self.loops[number], self.graph
        if not isinstance(each.steps, int) or each.limit is not None:
            raise NotDifferentiable("a loop whose number of steps is not known has no way back")
        changing = self.moving.nodes(each.roots())
        own = [k for k, x in enumerate(each.carries) if x.id in self.moving.carries]
        if not own and not any(w.value.id in changing for c in each.cases for w in c.writes):
            return
        step_back = self._keep(number, each)
        inside = [root for case in each.cases for root in case.roots()]
        outside = self._outside(inside, each.carries)
        new = len(graph.loops)
        carried = [graph.node("carry", value=(new, k)) for k in range(len(own) + len(outside))]
        back, sums = carried[: len(own)], carried[len(own) :]

        def moved(case: Done) -> list[Write]:
            return [w for w in case.writes if w.value.id in changing]

        def done(case: Done) -> Done:
            values = [*(case.nexts[k] for k in own), *(w.value for w in moved(case))]
            weights = [*back, *(self._adjoint(w) for w in moved(case))]
            reads = [n for n in reachable(values) if n.op == "read" and n.value[0] in self._rooms]
            leaves = [*(each.carries[k] for k in own), *outside, *reads]
            found = vjp(values, leaves, weights, known=CONSTANT)
            nexts, rest = found[: len(own)], found[len(own) :]
            nexts += [s + x for s, x in zip(sums, rest, strict=False)]
            adds = [
                Write(self._rooms[node.value[0]], node.value[1], x, add=True)
                for node, x in zip(reads, rest[len(sums) :], strict=True)
                if x is not graph.zero
            ]
            return step_back(Done(nexts, adds))

        starts = [self._of.get(each.carries[k], graph.zero) for k in own]
        starts += [graph.zero] * len(sums)
        cases = [done(case) for case in each.cases]
        which = None if each.which is None else _backward(each.which, each.steps)
        graph.loops.append(Counted(each.steps, carried, starts, cases, which))
        self.pull([each.starts[k] for k in own], back)
        for leaf, total in zip(outside, sums, strict=True):
            self._add(leaf, total)

    def _adjoint(self, write: Write) -> Expr:
        """The adjoint of a number that a step writes."""
        if write.every != 1:
            raise NotDifferentiable("what is written at some steps only has no derivative rule")
        of_output = write.array == self.output
        array = self.weights if of_output else self._rooms[write.array]
        return self.graph.node("read", value=(array, write.at))

    def _keep(self, number: int, each: Counted) -> Callable[[Done], Done]:
        """Let a loop keep what it carries, step by step; returns how a step back is made of one
        that is written down in terms of the forward step.
        """
        width, graph, steps = len(each.carries), self.graph, each.steps
        assert isinstance(steps, int)
        tape = self.tree.room(steps * width, width)
        writes = [Write(tape, At(k, width), x) for k, x in enumerate(each.carries)]
        cases = [case._replace(writes=[*case.writes, *writes]) for case in each.cases]
        graph.loops[number] = each._replace(cases=cases)
        places = {x.id: (tape, _backward(At(k, width), steps)) for k, x in enumerate(each.carries)}

        def recomputed(roots: Sequence[Expr]) -> list[Expr]:
            new: dict[int, Expr] = {}
            for node in reachable(roots):
                op, value = node.op, node.value
                if node.id in places:
                    op, value = "read", places[node.id]
                elif op == "read":
                    value = (value[0], _backward(value[1], steps))
                new[node.id] = graph.node(op, *(new[a.id] for a in node.args), value=value)
            return [new[x.id] for x in roots]

        def step_back(done: Done) -> Done:
            renamed = done.renamed(iter(recomputed(done.roots())))
            back = [w._replace(at=_backward(w.at, steps)) for w in renamed.writes]
            return Done(renamed.nexts, back)

        return step_back


def _reads(roots: Sequence[Expr], array: str) -> list[At]:
    """Where nodes read an array."""
    return [n.value[1] for n in reachable(roots) if n.op == "read" and n.value[0] == array]


def _backward(at: At, steps: int) -> At:
    """The element that a step touches, when a loop goes back."""
    first, by = at.order
    if not isinstance(first, int):
        raise NotDifferentiable("a loop whose first step is not known has no way back")
    return at._replace(order=Order(first + by * (steps - 1), -by))


def gradient(
    tree: RolledTree,
    sizes: Mapping[str, int],
    configurations: Sequence[str],
    output: str,
    weights: str,
    results: tuple[Sequence[Expr], Sequence[Expr | float]],
) -> list[str]:
    """Add the loops of a gradient; returns the arrays that hold it, one for each input of
    ``sizes``: by numbers, or by rates of the joints where inputs are configurations. ``results``:
    numbers that no loop writes, and their weights.
    """
    found = Adjoints(tree, sizes, output, weights)
    found.pull(*results)
    found.go_back(sizes)
    rooms = {name: found.of(name, size) for name, size in sizes.items()}
    return [
        _by_rates(tree, name, room) if name in configurations else room
        for name, room in rooms.items()
    ]


def _by_rates(tree: RolledTree, q: str, slopes: str) -> str:
    """A loop that makes derivatives by rates of the joints from those by the numbers of q."""
    start, stride, places = tree.places_of_q
    first, by, dofs = tree.dofs
    room = tree.room(tree.nv)
    per_link: Any = tangent(tree, Input(q), Input(RATES)).per_link  # type: ignore[attr-defined]

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        if visit.link.follows is None:
            numbers = [tree.graph.lift(x) for x in per_link.at(visit)]
            own = [
                visit.read(Place(slopes, start + k, stride, places)) for k in range(len(numbers))
            ]
            rates = [
                visit.read(Place(RATES, first + k, by, dofs)) for k in range(visit.link.joint.nv)
            ]
            for k, x in enumerate(vjp(numbers, rates, own, known=CONSTANT)):
                visit.step.write(room, x, first + k, by, dofs)
        return state

    tree.walk(tree.all, [], body)
    return room


def copy_to(tree: RolledTree, source: str, size: int, output: str, first: int) -> None:
    """A loop that copies an array to its place in an output."""

    def body(step: Step, _: list[Expr]) -> list[Expr]:
        step.write(output, step.read(source, 0, 1), first, 1)
        return []

    if size:
        loop(tree.graph, size, [], body)
