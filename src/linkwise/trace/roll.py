"""Trace a task on a rolled tree: a task and a tree in, a program of counted loops out.

Its size does not depend on the number of links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.model.tree import Tree
from linkwise.trace.assemble import assemble
from linkwise.trace.classes import classes_of
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import Output, Program
from linkwise.trace.rolled import Step, loop
from linkwise.trace.tracer import Task, flatten, run
from linkwise.trace.walks import Gathered, Input, RolledTree, Visit


def trace_rolled(task: Task, tree: Tree) -> Program:
    """The program of a task, every walk a loop; not yet guarded (see guard.py)."""
    graph = Graph()
    rolled = RolledTree.of(tree, classes_of(tree), graph)
    values: list[Any] = []
    for port in task.ports(tree):
        by_link = port.name in dict(task.algorithm.inputs)
        values.append(
            Input(port.name) if by_link else [graph.input(port.name, k) for k in range(port.size)]
        )
    result = run(task, rolled, values)
    slots = task.slots(tree)
    written: Sequence[Expr] = ()
    if isinstance(result, Gathered):
        _write(rolled, result, slots[0].name)
    else:
        written = [graph.lift(x) for x in flatten(result)]
    pivots = list(dict.fromkeys(pivot for pivot, _ in graph.pivots))
    regions, roots = assemble(graph, [*written, *pivots])
    outputs = (Output(slots[0].name, slots[0].shape, tuple(roots[: len(written)])),)
    rest = tuple(roots[len(written) :])
    return Program(task.name, task.ports(tree), regions, outputs, rest, rolled.arrays())


def _write(tree: RolledTree, vector: Gathered, name: str) -> None:
    """A loop that writes a vector, each number at its degree of freedom.

    Where joints follow others, their forces are added up first.
    """
    start, stride, places = tree.dofs
    into = tree.cleared(tree.nv) if tree.coupled else name

    def body(visit: Visit, _: list[Expr]) -> list[Expr]:
        follows = visit.link.follows
        for k, value in enumerate(vector.per_link.at(visit)):
            own = value * follows.multiplier if follows else value
            visit.step.write(into, own, start + k, stride, places, add=tree.coupled)
        return []

    tree.walk(tree.all, [], body)
    if tree.coupled:
        loop(tree.graph, tree.nv, [], lambda step, _: copied(step, into, name))


def copied(step: Step, source: str, target: str) -> list[Expr]:
    """One element from an array to another."""
    step.write(target, step.read(source, 0, 1), 0, 1)
    return []
