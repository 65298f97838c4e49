"""Trace a task on a rolled tree: a task and a tree in, a program of counted loops out.

Its size does not depend on the number of links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from linkwise.model.joints import Free, Spherical
from linkwise.model.tree import Tree
from linkwise.trace import elimination, walks  # noqa: F401 - what they register for rolled trees
from linkwise.trace.assemble import assemble
from linkwise.trace.beyond import Beyond, write_rows
from linkwise.trace.classes import Classes, classes_of
from linkwise.trace.expr import Expr, Graph, summed
from linkwise.trace.kept import divides
from linkwise.trace.pairs import Pairs, write_matrix
from linkwise.trace.program import FLAGS, Output, Port, Program, Slot
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolled_adjoints import copy_to, gradient
from linkwise.trace.rolled_tangents import Places, carry_tangents, counted, tangents_of
from linkwise.trace.rolledtree import (
    Blocks,
    Columns,
    Gathered,
    Input,
    PerLink,
    Place,
    RolledTree,
    Slots,
    Visit,
    copied,
)
from linkwise.trace.status import bad_pivots, bits, not_finite, not_unit
from linkwise.trace.tracer import Task, flatten, run
from linkwise.trace.vectors import write_columns


class Rates(NamedTuple):
    """At which rates a task's arguments change, and what is then wanted of its result."""

    ports: Sequence[Port]  # of tangents
    places: Places  # where tangents are in them, by the names of the ports that move
    configurations: Sequence[str]  # those of them whose tangents are rates of the joints
    size: int  # of the change
    # (results, how their numbers change) -> the change, where that is not one number for each
    finish: Callable[[list[Expr], list[Expr]], Sequence[Expr]] | None = None


class Weights(NamedTuple):
    """Weights of a task's results, whose sum is differentiated, and by what."""

    port: Port  # of the weights
    wrt: Sequence[str]  # ports, in the order of the gradients
    configurations: Sequence[str]  # those of them whose derivatives are by rates of the joints
    value: bool  # whether the result comes before the gradients
    # (results, weights) -> weights of the results' numbers, where those are not the same
    spread: Callable[[list[Expr], list[Expr]], Sequence[Expr | float]] | None = None
    rates: Rates | None = None  # the changes of the gradients at these come after them


def trace_rolled(task: Task, tree: Tree, more: Rates | Weights | None = None) -> Program:
    """The program of a task, every walk a loop; not yet guarded (see guard.py).

    It is traced twice: once to see what later walks read of what earlier ones know, and then with
    only that kept. With ``Rates`` the result is followed by how it changes
    (``rolled_tangents.py``), with ``Weights`` by gradients (``rolled_adjoints.py``), all as one
    vector.
    """
    classes, notes = classes_of(tree), dict[str, Any]()
    _, unread = _traced(task, tree, classes, frozenset(), notes, None)
    return _traced(task, tree, classes, unread, notes, more)[0]


def _traced(
    task: Task,
    tree: Tree,
    classes: Classes,
    unread: Slots,
    notes: dict[str, Any],
    more: Rates | Weights | None,
) -> tuple[Program, Slots]:
    """The program, and what it keeps in vain."""
    graph = Graph()
    rolled = RolledTree.of(tree, classes, graph, unread, notes)
    sizes = dict(task.algorithm.inputs)
    values: list[Any] = [
        Input(port.name)
        if isinstance(sizes.get(port.name), str)
        else [graph.input(port.name, k) for k in range(port.size)]
        for port in task.ports(tree)
    ]
    result = run(task, rolled, values)
    slot = task.slots(tree)[0]
    results: list[Expr] = []
    if isinstance(result, Pairs):
        broken = write_matrix(rolled, result, slot.name)
    elif isinstance(result, Beyond):
        broken = write_rows(rolled, result, slot.name)
    elif isinstance(result, Columns):
        broken = write_columns(rolled, result, slot.name)
    elif isinstance(result, Blocks):
        broken = _write_blocks(rolled, result, slot)
    elif isinstance(result, (Gathered, PerLink)):
        beside = result.beside if isinstance(result, Gathered) else ()
        broken = _write(rolled, result, slot.name, slot.size - len(beside))
        broken = broken + _write_beside(rolled, beside, slot)
    else:
        results = [graph.lift(x) for x in flatten(result)]
        broken = summed(graph, (not_finite(graph, x) for x in results))
    pivots = list(dict.fromkeys(pivot for pivot, _ in graph.pivots))
    ports = task.ports(tree)
    if isinstance(more, Rates):
        results = _with_changes(rolled, more, slot, results)
        ports, slot = (*ports, *more.ports), Slot(slot.name, (slot.size + more.size,))
    elif more is not None:
        ports, slot = _with_gradients(rolled, more, ports, slot, results)
        results = []
    status = [_status(rolled, ports, broken)] if task.status else []
    left = rolled.forget_unread([*results, *pivots, *status])
    regions, roots = assemble(graph, [*results, *pivots], status)
    end = len(results) + len(pivots)
    outputs = [Output(slot.name, slot.shape, tuple(roots[: len(results)]))]
    outputs += [Output("status", (), tuple(roots[end:]), FLAGS)] if status else []
    watched = tuple(roots[len(results) : end])
    return Program(task.name, ports, regions, tuple(outputs), watched, rolled.arrays()), left


def _with_changes(tree: RolledTree, rates: Rates, slot: Slot, results: list[Expr]) -> list[Expr]:
    """Results that no loop writes, and their changes; loops write the changes of the others."""
    if rates.finish is not None and not results:
        raise TypeError("loops write numbers; expected rates without anything to finish")
    changes = carry_tangents(tree, rates.places, rates.configurations, slot, results)
    return [*results, *(rates.finish(results, changes) if rates.finish else changes)]


def _with_gradients(
    tree: RolledTree, asked: Weights, ports: Sequence[Port], slot: Slot, results: Sequence[Expr]
) -> tuple[tuple[Port, ...], Slot]:
    """Loops that write gradients, behind the results; returns all ports, and the larger output."""
    weights: list[Expr] = []
    if results:  # loops read the weights of what loops write
        weights = [tree.graph.input(asked.port.name, k) for k in range(asked.port.size)]
    own: Sequence[Expr | float] = weights
    if asked.spread is not None:
        own = asked.spread(list(results), weights)
    sizes = {port.name: port.size for port in ports if port.name in asked.wrt}
    arrays = gradient(tree, sizes, asked.configurations, slot.name, asked.port.name, (results, own))
    if asked.value:
        _write_beside(tree, results, slot)
    else:
        _leave_out(tree, slot.name)
    rates = {name: tree.nv if name in asked.configurations else n for name, n in sizes.items()}
    found = dict(zip(sizes, zip(arrays, rates.values(), strict=True), strict=True))
    parts, more = [found[name] for name in asked.wrt], [asked.port]
    if asked.rates is not None:
        changed = tangents_of(tree, asked.rates.places, asked.rates.configurations, dict(parts))
        parts += zip(changed, [n for _, n in parts], strict=True)
        more += asked.rates.ports
    at = slot.size if asked.value else 0
    for room, size in parts:
        copy_to(tree, room, size, slot.name, at)
        at += size
    return (*ports, *more), Slot(slot.name, (at,))


def _leave_out(tree: RolledTree, output: str) -> None:
    """Let no loop write to an output."""
    loops = tree.graph.loops
    for k, each in enumerate(map(counted, loops)):
        kept = ([w for w in case.writes if w.array != output] for case in each.cases)
        cases = [case._replace(writes=own) for case, own in zip(each.cases, kept, strict=True)]
        loops[k] = each._replace(cases=cases)


def _write(tree: RolledTree, result: Gathered | PerLink, name: str, size: int) -> Expr:
    """A loop that writes a vector, or a row per link; returns how many numbers are not finite.

    Where joints follow others, their forces are added up first.
    """
    if isinstance(result, PerLink):
        start, stride, places = 0, size // tree.n_links, ""
        per_link, added = result, False
    else:
        configuration = not result.added and size == tree.nq
        start, stride, places = tree.places_of_q if configuration else tree.dofs
        per_link, added = result.per_link, result.added and tree.coupled
    if not added and divides(tree, per_link):  # a state may turn out to have no answer on the way
        into, later = tree.room(size), True
    else:
        into, later = (tree.cleared(size), True) if added else (name, False)

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        follows, (broken,) = visit.link.follows, state
        if follows and not added and isinstance(result, Gathered):
            return state
        for k, value in enumerate(flatten(per_link.at(visit))):
            own = value * follows.multiplier if follows and added else value
            visit.step.write(into, own, start + k, stride, places, add=added)
            broken = broken + not_finite(tree.graph, own)
        return [broken]

    (broken,) = tree.walk(tree.all, [0.0], body)
    if later:
        loop(tree.graph, size, [], lambda step, _: copied(step, into, name))
    return broken


def _write_beside(tree: RolledTree, numbers: Sequence[Any], slot: Slot) -> Expr:
    """Write numbers at the end of an output; returns how many are not finite."""
    if not numbers:
        return tree.graph.zero
    own = [tree.graph.lift(x) for x in numbers]

    def body(step: Step) -> list[Expr]:
        for k, x in enumerate(own, slot.size - len(own)):
            step.write(slot.name, x, k)
        return []

    tree.once(body)
    return summed(tree.graph, (not_finite(tree.graph, x) for x in own))


def _write_blocks(tree: RolledTree, blocks: Blocks, slot: Slot) -> Expr:
    """A loop that writes blocks side by side; returns how many numbers are not finite."""
    row = slot.shape[1]

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        (broken,) = state
        for k, numbers in enumerate(blocks.per_link.at(visit)):
            for m, x in enumerate(numbers):
                own = tree.graph.lift(x)
                visit.step.write(slot.name, own, k * row + m, row // tree.n_links)
                broken = broken + not_finite(tree.graph, own)
        return [broken]

    return tree.walk(tree.all, [0.0], body)[0]


def _status(tree: RolledTree, inputs: Sequence[Port], broken: Expr) -> Expr:
    """The status of a state, by loops over what it depends on."""
    graph = tree.graph

    def count(step: Step, state: list[Expr], port: str) -> list[Expr]:
        return [state[0] + not_finite(graph, step.read(port, 0, 1))]

    ports = [port for port in inputs if port.size]
    given = [
        loop(graph, port.size, [0.0], lambda step, s, name=port.name: count(step, s, name))[0]  # type: ignore[misc]
        for port in ports
    ]
    configurations = [_not_unit(tree, port.name) for port in ports if port.configuration]
    turned = summed(graph, configurations) if configurations else None
    singular = summed(graph, bad_pivots(graph))
    return bits(graph, summed(graph, given), turned, singular, broken)


def _not_unit(tree: RolledTree, port: str) -> Expr:
    """How many quaternions of a configuration are not of unit length."""
    start, stride, places = tree.places_of_q

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        if not isinstance(visit.link.joint, (Spherical, Free)):
            return state
        own = [visit.read(Place(port, start + k, stride, places)) for k in range(4)]
        return [state[0] + not_unit(tree.graph, own)]

    return tree.walk(tree.all, [0.0], body)[0]
