"""Run an algorithm with traced scalars: a task and a tree in, a program out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from linkwise.algorithms import Algorithm, closure_errors, functions_of
from linkwise.algorithms.kinematics import axes_of
from linkwise.algorithms.poses import link_pose
from linkwise.model.parameters import Parameter, put_all
from linkwise.model.regroup import regroup
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Vec3
from linkwise.trace.assemble import assemble
from linkwise.trace.diff import Mode, jacobian
from linkwise.trace.expr import Expr, Graph, reachable
from linkwise.trace.program import (
    ACCELERATION,
    CONFIGURATION,
    FLAGS,
    NUMBERS,
    PARAMETER,
    TORQUE,
    VELOCITY,
    WRENCH,
    Output,
    Port,
    Program,
    Signature,
    Slot,
)
from linkwise.trace.status import status_of

# status: open loops, contacts that pull
CONTACT_FUNCTIONS = ("forward_dynamics", "constraint_forces")
# status: open contacts of grasps
GRASP_FUNCTIONS = ("forward_dynamics", "contact_forces", "object_acceleration", "motion")
# the kinds of arguments in the table of algorithms, by their names
INPUT_KINDS = (
    dict.fromkeys(("q", "q0", "q1"), CONFIGURATION)
    | dict.fromkeys(("qd", "v"), VELOCITY)
    | dict.fromkeys(("qdd", "qdd0"), ACCELERATION)
    | dict.fromkeys(("tau", "rhs"), TORQUE)
    | {"wrench": WRENCH}
)
PULL_ROUNDING = 1e-6  # of a contact's force: a pull below is rounding


@dataclass(frozen=True)
class Task:
    """What to compute: an algorithm, with the frame, wrenches and damping it is asked for."""

    algorithm: Algorithm
    frame: Frame | None = None
    axes: str = "base"
    external: tuple[Frame, ...] = ()
    status: bool = False  # also say, per state, what was wrong with it
    damped: bool = False  # takes one more argument: six numbers beside the diagonal of an inverse
    parameters: tuple[Parameter, ...] = ()  # constants of the robot that are arguments of this task
    rolled: bool = False  # walks are loops over the links (roll.py), not written out link by link

    def ports(self, tree: Tree) -> tuple[Port, ...]:
        """Inputs of the program: arguments, wrenches by frame, damping, the robot's constants that
        are asked for, and when to stop.
        """
        algorithm = self.algorithm
        arguments = [
            Port(name, size, kind=INPUT_KINDS.get(name, NUMBERS))
            for name, size in algorithm.input_sizes(tree)
        ]
        wrenches = [Port(f"f_ext[{k}]", 6, kind=WRENCH) for k in range(len(self.external))]
        damping = [Port("damping", 6)] if self.damped else []
        stop = [Port("tol", 1), Port("limit", 1)] if algorithm.iterates else []
        constants = [Port(each.name, each.size(tree), kind=PARAMETER) for each in self.parameters]
        return (*arguments, *wrenches, *damping, *constants, *stop)

    def slots(self, tree: Tree) -> tuple[Slot, ...]:
        """Outputs of the program: the result, how an iteration went, the status."""
        result = Slot("result", self.algorithm.output_shape(tree))
        went = [Slot("iterations"), Slot("residual")] if self.algorithm.iterates else []
        return (result, *went, *([Slot("status", kind=FLAGS)] if self.status else []))

    def signature(self, tree: Tree) -> Signature:
        """The arrays of this task's kernels, known without tracing."""
        return Signature(self.ports(tree), self.slots(tree))

    def tree(self, tree: Tree, given: Mapping[str, Sequence[Any]]) -> Tree:
        """The tree as this task's algorithm uses it, with the constants that are given."""
        own = [(each, given[each.name]) for each in self.parameters if each.name in given]
        tree = put_all(tree, own)
        return regroup(tree) if self.algorithm.regrouped else tree

    @property
    def of_columns(self) -> Task | None:
        """The task of one column of the matrix, where loops compute it column by column."""
        by_columns = self.rolled and self.algorithm.columns
        return replace(self, algorithm=self.algorithm.of_columns) if by_columns else None

    @property
    def in_pieces(self) -> bool:
        """Whether the chain is cut into pieces that are computed side by side (stages.py)."""
        return self.rolled and self.algorithm.scans

    @property
    def name(self) -> str:
        """For people: ``forward_dynamics[crba]``."""
        return f"{self.algorithm.function}[{self.algorithm.method}]"


def evaluate(task: Task, tree: Tree, *values: Sequence[Any]) -> Any:
    """Run the task's driver on scalars of any kind; returns nested lists.

    Values are in the order of the task's ports; ``tol`` and ``limit`` may be left out.
    """
    like = next((x for numbers in values for x in numbers), 0.0)
    given = dict(zip((port.name for port in task.ports(tree)), values, strict=False))
    return run(task, task.tree(tree.with_constants_like(like), given), values)


def run(task: Task, tree: Tree, values: Sequence[Any]) -> Any:
    """Run the task's driver on a tree as it is; returns what the driver does."""
    arguments = len(task.algorithm.inputs)
    given = dict(zip((port.name for port in task.ports(tree)), values, strict=False))
    options: dict[str, Any] = {}
    if task.algorithm.takes_frame:
        options["frame"] = task.frame
    if task.algorithm.takes_axes:
        options["axes"] = task.axes
    if "limit" in given and task.algorithm.iterates:
        options |= {"tolerance": given["tol"][0], "limit": given["limit"][0]}
    if task.external:
        wrenches = values[arguments : arguments + len(task.external)]
        options["external"] = tuple(zip(task.external, wrenches, strict=True))
    if task.damped:
        options["damping"] = given["damping"]
    return task.algorithm.driver(tree, *values[:arguments], **options)


class Equations(NamedTuple):
    """A task as a graph: its inputs by port, and what its driver returns, in order."""

    graph: Graph
    inputs: list[list[Expr]]
    results: list[Expr]


def equations(task: Task, tree: Tree, most: int = 2**62) -> Equations:
    """Run the task's driver on traced scalars, the tree's constants folded in."""
    graph = Graph(most)
    inputs = [[graph.input(p.name, i) for i in range(p.size)] for p in task.ports(tree)]
    results = [graph.lift(x) for x in flatten(evaluate(task, tree, *inputs))]
    graph.pivots = used_pivots(graph, results)
    return Equations(graph, inputs, results)


def trace(task: Task, tree: Tree, most: int = 2**62) -> Program:
    """Trace the task on the tree, in at most so many nodes; not yet guarded (see guard.py)."""
    graph, values, results = equations(task, tree, most)
    if task.status:
        ports = task.ports(tree)
        given = dict(zip((port.name for port in ports), values, strict=True))
        bodies = [body for each in task.parameters for body in each.bodies(given[each.name])]
        residual = _loop_residual(task, tree, graph, given)
        pulling = _pulling(task, tree, graph, given, values)
        whole = (residual, pulling)
        results.append(status_of(graph, tree, ports, values, results, (), bodies, *whole))
    return program_of(task.name, task.ports(tree), graph, task.slots(tree), results)


def _loop_residual(
    task: Task, tree: Tree, graph: Graph, given: Mapping[str, Sequence[Any]]
) -> list[Expr]:
    """Errors of closed loops at the state, of positions and velocities; none of a grasp with a
    contact whose pose on the object is unknown.
    """
    functions = GRASP_FUNCTIONS if tree.held else CONTACT_FUNCTIONS
    unknown = tree.held is not None and not tree.held.placed
    if task.algorithm.function not in functions or not tree.is_closed or unknown:
        return []
    pivots = list(graph.pivots)
    found = closure_errors.residual(task.tree(tree, given), given["q"], given["qd"])
    graph.pivots = pivots  # the result does not depend on them
    return [graph.lift(x) for x in flatten(found)]


def _pulling(
    task: Task,
    tree: Tree,
    graph: Graph,
    given: Mapping[str, Sequence[Any]],
    values: Sequence[Any],
) -> list[Expr]:
    """Of each contact that can only push: 1 where it pulls by more than rounding."""
    if task.algorithm.function not in CONTACT_FUNCTIONS or not tree.unilateral or tree.held:
        return []
    pivots, known = list(graph.pivots), functions_of(tree)["constraint_forces"]
    forces = replace(task, algorithm=known[task.algorithm.method])
    whole = forces.tree(tree, given)
    wrenches = run(forces, whole, values)
    graph.pivots = pivots  # the result does not depend on more of them
    found = []
    for closure, wrench in zip(tree.closures, wrenches, strict=True):
        if closure.normal is not None:
            at = link_pose(whole, given["q"], closure.b.link).R
            normal = at @ (axes_of(closure.b) @ Vec3(*closure.normal))
            force = Vec3(*wrench[3:])
            along, size = graph.lift(normal.dot(force)), graph.lift(force.dot(force))
            much = graph.node("flag", along * along - PULL_ROUNDING**2 * size)
            found.append(graph.node("flag", -along) * much)
    return found


def trace_jacobian(task: Task, tree: Tree, wrt: Sequence[str], mode: Mode = "auto") -> Program:
    """A program of the derivatives of a task's result by the inputs named, in raw coordinates.

    Its outputs are ``d_q``, ``d_qd`` ...: (shape of the result, length of the input) each.
    """
    graph, inputs, results = equations(task, tree)
    ports = task.ports(tree)
    chosen = [port for port in ports if port.name in wrt]
    by = [x for port, own in zip(ports, inputs, strict=True) if port in chosen for x in own]
    rows = jacobian(results, by, mode)
    shape = task.algorithm.output_shape(tree)
    slots, values, start = [], [], 0
    for port in chosen:
        slots.append(Slot(f"d_{port.name}", (*shape, port.size)))
        values += [x for row in rows for x in row[start : start + port.size]]
        start += port.size
    name = f"{task.name}, derivatives by {', '.join(wrt)}"
    return program_of(name, ports, graph, slots, values)


def program_of(
    name: str, ports: tuple[Port, ...], graph: Graph, slots: Sequence[Slot], values: list[Expr]
) -> Program:
    """The program that writes the values into the slots, bytes last, and keeps its pivots."""
    pivots = list(dict.fromkeys(pivot for pivot, _ in graph.pivots))
    count = sum(slot.size for slot in slots if slot.kind != FLAGS)
    regions, roots = assemble(graph, [*values[:count], *pivots], values[count:])
    numbers, rest = roots[:count], roots[count:]
    outputs = cut(slots, [*numbers, *rest[len(pivots) :]])
    return Program(name, ports, regions, outputs, pivots=tuple(rest[: len(pivots)]))


def cut(slots: Sequence[Slot], values: Sequence[Expr]) -> tuple[Output, ...]:
    """Outputs from all their values, one after another."""
    rest = iter(values)
    return tuple(
        Output(slot.name, slot.shape, tuple(islice(rest, slot.size)), slot.kind) for slot in slots
    )


def used_pivots(graph: Graph, results: list[Expr]) -> list[tuple[Expr, Expr]]:
    """The pivots that the results depend on, with their scales; other divisions are ignored.

    A pivot of constants alone that is not positive was folded to NaN; no other constant is NaN.
    """
    inside = [x for loop in graph.loops for x in loop.roots()]
    nodes = reachable([*results, *inside])
    never = [(n, graph.zero) for n in nodes if n.op == "const" and math.isnan(n.value)]
    used = {node.id for node in reachable(results)}
    return [(pivot, scale) for pivot, scale in graph.pivots if pivot.id in used] + never


def flatten(nested: Any) -> Iterable[Expr | float]:
    """Scalars of nested lists, in order."""
    if isinstance(nested, list):
        for item in nested:
            yield from flatten(item)
    else:
        yield nested
