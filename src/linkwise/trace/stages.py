"""Trace a task on pieces of a chain: programs whose rows are pieces, not states.

An algorithm that scans (`sweep.scan`) is traced once for each scan and once for its result. Up to a
scan, its walks are loops over the links of one piece, and what earlier scans have found is an input
of the piece; at the scan, the piece's map is the result. Beside sines and cosines (`turns.py`),
nothing else passes from stage to stage: what a later stage needs it computes anew, and what it does
not need is left out of it.

Links' numbers are an input too, so that the code is the same for every piece. The number of links
in a piece is given with the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from linkwise import sweep
from linkwise.model.joints import Free, Spherical
from linkwise.model.tree import BASE, Tree
from linkwise.spatial import select
from linkwise.spatial.records import leaves, mapped
from linkwise.sweep import Law
from linkwise.trace import turns
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import Expr, Graph, reachable, summed
from linkwise.trace.guard import guard
from linkwise.trace.kept import filled, traced, unknown
from linkwise.trace.piecetree import NUMBERS, Both, Layout, PieceTree, place_of
from linkwise.trace.program import FLAGS, Array, Output, Port, Program
from linkwise.trace.rolled import merge, program
from linkwise.trace.rolledtree import LINKS, Gathered, Input, Lazy, Place, Slots, Visit
from linkwise.trace.status import bad_pivots, bits, not_finite, not_unit
from linkwise.trace.tracer import Task, flatten, run


class Joints(NamedTuple):
    """The programs of a scan, beside that of the pieces themselves; rows are pairs of pieces."""

    join: Program  # inner, outer -> piece
    share: Program | None  # inner, outer, given -> given of both; None: only the total is wanted
    given: list[float]  # of the whole chain
    totals: bool  # the total is wanted too


class Stage(NamedTuple):
    """One program: of pieces, up to a scan or to their part of the result; or of the whole chain,
    from totals to the result.
    """

    program: Program
    joints: Joints | None = None
    of_chain: bool = False

    @property
    def found(self) -> tuple[int, int]:
        """Numbers that each piece is given by its scan, and numbers of the total."""
        assert self.joints is not None
        size = self.program.outputs[0].slot.size
        return len(self.joints.given), size if self.joints.totals else 0


class _Scanned(Exception):
    """The algorithm has come to the scan that this stage is for."""

    def __init__(self, law: Law, piece: Any, given: Any, totals: bool) -> None:
        self.law, self.piece, self.given, self.totals = law, piece, given, totals


@sweep.scan.register
def _(tree: PieceTree, law: Law, given: Any, *per_link: Any) -> Any:
    return _found(tree, law, given, False, per_link)[0]


@sweep.total.register
def _(tree: PieceTree, law: Law, *per_link: Any) -> Any:
    return _found(tree, law, None, True, per_link)[1]


@sweep.scan_and_total.register
def _(tree: PieceTree, law: Law, given: Any, *per_link: Any) -> Any:
    return _found(tree, law, given, True, per_link)


def _found(
    tree: PieceTree, law: Law, given: Any, totals: bool, per_link: Sequence[Any]
) -> tuple[Any, Any]:
    """What a scan has found, if it is done by now; else this stage ends here."""
    number, tree.met = tree.met, tree.met + 1
    if number < tree.stage:
        ports = (f"given {number}", given), (f"total {number}", law.nothing)
        shares, total = (_of_port(tree.graph, name, like) for name, like in ports)
        return shares, total
    raise _Scanned(law, _grown(tree, law, per_link), given, totals)


@sweep.outward.register
def _(tree: PieceTree, body: sweep.Body, start: Any, given: Any, *per_link: Any) -> Any:
    return sweep.base_to_tip(tree, body, start(*given), *per_link)


@sweep.inward.register
def _(tree: PieceTree, body: sweep.Body, start: Any, given: Any, *per_link: Any) -> Any:
    return sweep.tip_to_base(tree, body, start(*given), *per_link)[0]


@sweep.at_links.register
def _(tree: PieceTree, empty: Any, given: Any) -> Any:
    """Of each link given, an input says which step of a piece it is; -1 in other pieces."""
    pairs = [(i, leaves(x)) for i, x in given if i != BASE]

    def own(visit: Visit) -> Any:
        total, numbered = leaves(empty), Place(NUMBERS, 0, 1)
        for i, numbers in pairs:
            off = visit.read(numbered) - tree.graph.input(place_of(i), 0)
            here = 0.25 - off * off
            total = [t + select(here, x, 0.0) for t, x in zip(total, numbers, strict=True)]
        rest = iter(total)
        return mapped(lambda _: next(rest), empty)

    return Lazy(own)


def _grown(tree: PieceTree, law: Law, per_link: Sequence[Any]) -> Any:
    """The whole piece, link by link.

    The piece is NaN if an input that this stage is the first to read is not finite, or a pivot not
    positive, as in guard.py; what is joined with it then is NaN too.
    """
    graph = tree.graph
    template = mapped(lambda _: unknown(graph), law.nothing)

    def grown(visit: Visit, numbers: list[Expr]) -> list[Expr]:
        piece = filled(template, numbers)
        new = law.grow(visit.link, piece, *(x.at(visit) for x in per_link))
        return [graph.lift(x) for x in leaves(new)]

    def checked(visit: Visit, state: list[Expr]) -> list[Expr]:
        *numbers, total = state
        for name in new:
            for x in tree.read_of(name, visit):
                total = graph.node("fma", x, graph.zero, total)
        return [*grown(visit, numbers), total]

    way, start = (tree.all.backward() if law.inward else tree.all), leaves(law.nothing)
    traced(tree, way, lambda visit: grown(visit, [unknown(graph, k) for k in range(len(start))]))
    read = {n.value[0] for n in graph.nodes if n.op == "read"}
    new = [name for name in tree.inputs if name in read - tree.seen]
    if not new:
        return filled(template, tree.walk(way, start, grown))
    *numbers, total = tree.walk(way, [*start, 0.0], checked)
    for x in () if tree.stage else tree.common:
        total = graph.node("fma", x, graph.zero, total)
    for pivot in dict.fromkeys(pivot for pivot, _ in graph.pivots):
        total = graph.lift(select(pivot, total, graph.const(float("nan"))))
    return filled(template, [x + total for x in numbers])


def _of_port(graph: Graph, port: str, like: Any) -> Any:
    """A record of the numbers of an input."""
    place = iter(range(len(leaves(like))))
    return mapped(lambda _: graph.input(port, next(place)), like)


class Joined:
    """The programs that join pieces and share what they are given, made once for each scan."""

    def __init__(self) -> None:
        self._made: dict[int, Joints] = {}

    def of(self, number: int, scanned: _Scanned) -> Joints:
        """Those of a scan by its number; the same for all pieces of a chain."""
        if number not in self._made:
            self._made[number] = _joints(scanned)
        return self._made[number]


def trace_stages(task: Task, tree: Tree, layout: Layout, joined: Joined) -> list[Stage]:
    """The programs of a task on pieces of a chain."""
    stages: list[Stage] = []
    while not stages or stages[-1].joints:
        before = _Before.of(stages, layout)
        _, unread = _traced(task, tree, layout, before, frozenset(), joined)
        stages += _traced(task, tree, layout, before, unread, joined)[0]
    return _with_turns(stages, layout)


class _Before(NamedTuple):
    """What earlier stages leave: numbers that each piece was given by their scans and numbers of
    the totals, angles whose sines and cosines are there, and the arrays that were read.
    """

    found: list[tuple[int, int]]
    left: frozenset[turns.Element]
    seen: frozenset[str]

    @staticmethod
    def of(stages: Sequence[Stage], layout: Layout) -> _Before:
        """What these stages leave."""
        turned = stages and not layout.anew
        left: frozenset[turns.Element] = turns.left_by(stages[0].program) if turned else frozenset()
        nodes = (node for stage in stages for node in stage.program.nodes())
        seen = frozenset(node.value[0] for node in nodes if node.op == "read")
        return _Before([stage.found for stage in stages], left, seen)


def _with_turns(stages: list[Stage], layout: Layout) -> list[Stage]:
    """The stages, of which the first writes sines and cosines if later ones read them."""
    readers = [k for k, stage in enumerate(stages) if turns.reading(stage.program)]
    if not readers:
        return stages
    size, made = layout.length * layout.widest("nq"), list(stages)
    made[0] = stages[0]._replace(program=turns.leaving(stages[0].program, size))
    for k in readers:
        own = stages[k].program
        more = replace(own, inputs=(*own.inputs, turns.port(size)))
        made[k] = stages[k]._replace(program=more)
    return made


def _traced(
    task: Task,
    tree: Tree,
    layout: Layout,
    before: _Before,
    unread: Slots,
    joined: Joined,
) -> tuple[list[Stage], Slots]:
    """The next stage, or the last two."""
    graph, found = Graph(), before.found
    turns.found_in(graph, before.left)
    own = PieceTree.cut(tree, layout, graph, len(found), unread, before.seen)
    sizes = dict(task.algorithm.inputs)
    own.inputs = {n: own.slots(size) for n, size in sizes.items() if isinstance(size, str)}
    values: list[Any] = [
        Input(port.name) if port.name in own.inputs
        else [graph.input(port.name, k) for k in range(port.size)]
        for port in task.ports(tree)
    ]  # fmt: skip
    own.common = [x for value in values if isinstance(value, list) for x in value]
    ports = _Ports.of(task, tree, own, found)
    try:
        result = run(task, own, values)
    except _Scanned as scanned:
        numbers = [graph.lift(x) for x in leaves(scanned.piece)]
        unread = own.forget_unread(numbers)
        name = f"{task.name}, up to scan {len(found) + 1}"
        made = _program(graph, name, ports.of_pieces, numbers, own.arrays())
        return [Stage(made, joined.of(len(found), scanned))], unread
    rows, chain = result if isinstance(result, Both) else (result, None)
    if not isinstance(rows, Gathered):
        alone = [_of_inputs(task, own, ports)] if task.status and own.anew else []
        return [*alone, _of_chain(task, graph, ports, list(flatten(rows)))], frozenset()
    stage, unread = _of_pieces(task, own, ports, rows)
    return [stage, *([_of_chain(task, graph, ports, chain)] if chain is not None else [])], unread


class _Ports(NamedTuple):
    """Inputs of programs of pieces, and of a program of the whole chain."""

    of_pieces: list[Port]
    of_chain: list[Port]

    @staticmethod
    def of(task: Task, tree: Tree, own: PieceTree, found: Sequence[tuple[int, int]]) -> _Ports:
        """Those after scans that found so many numbers."""
        layout = own.layout
        ports = [
            Port(name, layout.length * width, close=width) for name, width in own.inputs.items()
        ]
        if layout.columns:
            ports.append(Port(LINKS, layout.length * layout.columns, tiled=True))
        ports += [Port(place_of(i), 1) for i in dict.fromkeys(f.link for f in task.external)]
        ports += [Port(f"given {k}", size) for k, (size, _) in enumerate(found) if size]
        totals = [Port(f"total {k}", size) for k, (_, size) in enumerate(found) if size]
        beside = [port for port in task.ports(tree) if port.name not in own.inputs]
        return _Ports([*ports, *beside], [*totals, *beside])


def _of_pieces(task: Task, own: PieceTree, ports: _Ports, rows: Gathered) -> tuple[Stage, Slots]:
    """The pieces' part of a result over the joints."""
    told = _told(task, own.graph, _write(own, rows), own)
    left = own.forget_unread(told)
    merge(own.graph)
    own.forget_unread(told)
    outputs = [Output("result", (own.layout.length * own.slots("nv"),), ())]
    name = f"{task.name}, of the pieces"
    return Stage(_program(own.graph, name, ports.of_pieces, [], own.arrays(), outputs, told)), left


def _of_inputs(task: Task, own: PieceTree, ports: _Ports) -> Stage:
    """What pieces on a device tell of a result of the whole chain: how their inputs are."""
    own.graph.loops.clear()
    told = _told(task, own.graph, own.graph.zero, own)
    own.forget_unread(told)
    name = f"{task.name}, inputs of the pieces"
    return Stage(_program(own.graph, name, ports.of_pieces, [], own.arrays(), (), told))


def _of_chain(task: Task, graph: Graph, ports: _Ports, chain: Sequence[Any]) -> Stage:
    """A result of the whole chain, from totals."""
    numbers = [graph.lift(x) for x in chain]
    graph.loops.clear()  # of the pieces, as are the pivots that loops carry
    used = {node.id for node in reachable(numbers)}
    graph.pivots = [(pivot, scale) for pivot, scale in graph.pivots if pivot.id in used]
    told = _told(task, graph, summed(graph, (not_finite(graph, x) for x in numbers)))
    name = f"{task.name}, of the chain"
    made = _program(graph, name, ports.of_chain, numbers, (), (), told, watch=True)
    return Stage(guard(made), of_chain=True)


def _told(task: Task, graph: Graph, broken: Expr, piece: PieceTree | None = None) -> list[Expr]:
    """The status, where it is asked for. Inputs are looked at by pieces on a device, and elsewhere
    by the caller of the kernels.
    """
    if not task.status:
        return []
    bad, given, turned = summed(graph, bad_pivots(graph)), graph.zero, None
    if piece is not None and piece.anew:
        given, turned = _looked_at(piece)
    return [bits(graph, given, turned, bad, broken)]


def _looked_at(piece: PieceTree) -> tuple[Expr, Expr]:
    """How many inputs of a piece are not finite, and how many quaternions not of unit length."""
    graph = piece.graph

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        lost, off = state
        for x in piece.read_all(visit):
            lost = lost + not_finite(graph, x)
        if isinstance(visit.link.joint, (Free, Spherical)):
            off = off + not_unit(graph, piece.read_of("q", visit)[:4])
        return [lost, off]

    lost, off = piece.walk(piece.all, [0.0, 0.0], body)
    return summed(graph, [lost, *(not_finite(graph, x) for x in piece.common)]), off


def _program(
    graph: Graph,
    name: str,
    ports: Sequence[Port],
    numbers: list[Expr],
    arrays: tuple[Array, ...],
    written: Sequence[Output] = (),
    status: Sequence[Expr] = (),
    *,
    watch: bool = False,
) -> Program:
    """A program that writes numbers, or what its loops write, and a status."""
    pivots = [pivot for pivot, _ in graph.pivots if watch]
    regions, roots = assemble(graph, [*numbers, *dict.fromkeys(pivots)], status)
    count, end = len(numbers), len(numbers) + len(set(pivots))
    outputs = list(written)
    outputs += [Output("result", (count,), tuple(roots[:count]))] if count else []
    outputs += [Output("status", (), tuple(roots[end:]), FLAGS)] if status else []
    return Program(name, tuple(ports), regions, tuple(outputs), tuple(roots[count:end]), arrays)


def _write(tree: PieceTree, result: Gathered) -> Expr:
    """Write a vector; returns how many of its numbers are not finite."""
    graph, width = tree.graph, tree.slots("nv")

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        (broken,) = state
        for k, value in enumerate(result.per_link.at(visit)):
            visit.step.write("result", value, k, width)
            broken = broken + not_finite(graph, graph.lift(value))
        return [broken]

    return tree.walk(tree.all, [0.0], body)[0]


def _joints(scanned: _Scanned) -> Joints:
    """The programs that join pieces and share what they are given."""
    law, piece, given, totals = scanned.law, scanned.piece, scanned.given, scanned.totals
    pair = (Port("inner", len(leaves(piece))), Port("outer", len(leaves(piece))))

    def pairs(name: str, ports: tuple[Port, ...], compute: Callable[..., Any]) -> Program:
        graph = Graph()
        inner, outer = (_of_port(graph, port.name, piece) for port in pair)
        more = [_of_port(graph, "given", given)] if len(ports) > 2 else []
        values = [graph.lift(x) for x in leaves(compute(inner, outer, *more))]
        return program(graph, name, ports, (), (), values)

    join = pairs("join of pieces", pair, law.join)
    if given is None or law.share is None:
        return Joints(join, None, [], totals)
    numbers = [float(x) for x in leaves(given)]
    ports = (*pair, Port("given", len(numbers)))
    return Joints(join, pairs("shares of pieces", ports, law.share), numbers, totals)
