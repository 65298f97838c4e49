"""A search of inverse kinematics as one program.

    inputs    targets of all frames, 16 numbers each; the first start; tolerance; number of starts
    outputs   a configuration, and bits of `Status`

The whole search of a state is one loop of the program. One state takes four steps, another one
thousands, so the loop is marked uneven: on a processor, a lane that is done takes the next state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

from linkwise.algorithms.configurations import normalize
from linkwise.algorithms.inverse_kinematics import search
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.algorithms.pose_errors import Goal
from linkwise.algorithms.reach_rows import Limit, Search
from linkwise.algorithms.reach_step import within
from linkwise.engine.arrays import Array, Outputs
from linkwise.engine.equations import Equations
from linkwise.model import configuration
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Mat3, Vec3, select
from linkwise.spatial.matrices import added, lengths
from linkwise.spatial.quaternion import Quaternion
from linkwise.spatial.se3 import matrix_of
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import Expr, Graph, summed
from linkwise.trace.program import (
    CONFIGURATION,
    FLAGS,
    FLAGS_DTYPE,
    POSE,
    Output,
    Port,
    Program,
    Repeat,
    Slot,
)
from linkwise.trace.status import Status, not_finite, not_rigid, not_units

NAME = "inverse_kinematics"
RIGID = 1e-6  # how far a target's axes may be from unit length and right angles
WEIGHT = 4.0  # a turn of one radian weighs like a place this share of the arm's length away


@dataclass(frozen=True)
class Plan:
    """One kind of search of one robot."""

    tree: Tree
    frames: tuple[Frame, ...]
    directions: tuple[bool, ...]
    limits: bool
    strict: bool  # NaN where nothing was found, instead of the best that was met

    @cached_property
    def search(self) -> Search:
        """What the algorithm needs to know of the robot."""
        tree, rest = self.tree, configuration.neutral(self.tree).tolist()
        ends = [end for closure in tree.closures for end in (closure.a, closure.b)]
        moving = {
            dof
            for end in (*self.frames, *ends)
            for dof in jacobian_columns(tree, rest, end, "base")
        }
        moving |= {dof for curve in tree.curves for dof in curve.dofs}
        ranges: dict[int, tuple[float, float]] = {}
        limits: dict[int, Limit] = {}
        idle: list[Limit] = []
        home: dict[int, float] = {}
        allowed = configuration.allowed(tree)
        for link, q, v in configuration.own_joints(tree):
            lower, upper = allowed[q.start]
            if lower > upper:  # followers exclude all: `new_plan` has warned
                lower, upper = link.limits.lower, link.limits.upper
            least, most = _finite(lower), _finite(upper)
            limited = self.limits and not link.joint.quasi and (least, most) != (None, None)
            own: list[Limit] = [(k, least, most) for k in range(q.start, q.stop) if limited]
            if v.start not in moving:
                idle += own
                continue
            home |= {k: float(rest[k]) for k in range(q.start, q.stop)}
            low, high = configuration.spread(link, self.limits, (lower, upper))
            for k, dof in enumerate(range(v.start, v.stop)):
                ranges[dof] = (float(low[k]), float(high[k]))
            limits |= dict(zip(range(v.start, v.stop), own, strict=False))
        dofs, numbers = tuple(ranges), tuple(home)
        weight = WEIGHT / self.length
        return Search(self.directions, dofs, numbers, home, ranges, limits, tuple(idle), weight)

    @cached_property
    def turning(self) -> bool:
        """Whether some direction of turning counts."""
        return any(self.directions[:3])

    @cached_property
    def length(self) -> float:
        """Metres along the links to the frame that is furthest out; 1 where that is nothing."""
        reach = 0.0
        for frame in self.frames:
            steps = [self.tree.links[i].placement.r for i in self.tree.path(frame.link)]
            steps.append(Vec3(*frame.origin))
            reach = max(reach, float(added(lengths([list(r) for r in steps]))))
        return reach or 1.0

    @cached_property
    def first(self) -> Array:
        """The first start where none is given: the middle of each range."""
        q = configuration.neutral(self.tree)
        for dof, (k, _, _) in self.search.limits.items():
            low, high = self.search.ranges[dof]
            q[k] = 0.5 * (low + high)
        return q

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs of the program."""
        target = Port("target", 16 * len(self.frames), kind=POSE)
        start = Port("q0", self.tree.nq, kind=CONFIGURATION)
        return (target, start, Port("tol", 1), Port("tries", 1))

    @property
    def outputs(self) -> Outputs:
        """What a call returns."""
        return [((self.tree.nq,), "float64"), ((), FLAGS_DTYPE)]

    @cached_property
    def equations(self) -> Equations:
        """The compiled search."""
        slots = (Slot("result", (self.tree.nq,)), Slot("status", (), FLAGS))
        frames = tuple((frame.link, frame.origin, frame.rotation) for frame in self.frames)
        key = (frames, self.strict, repr(self.search))
        return Equations(
            NAME, key, self.ports, slots, lambda _effort: self.program(), guarded=False
        )

    def program(self) -> Program:
        """The search of one state."""
        graph, tree, how = Graph(), self.tree, self.search
        target, q0, (tol,), (tries,) = (
            [graph.input(port.name, k) for k in range(port.size)] for port in self.ports
        )
        poses = [target[k : k + 16] for k in range(0, len(target), 16)]
        start = within((*how.limits.values(), *how.idle), normalize(tree, q0))
        lost = _any(graph, (not_finite(graph, x) for x in (*target, *q0, tol, tries)))
        empty = (1.0 - lost) * _any(graph, (not_finite(graph, x) for x in start))
        bent = (1.0 - lost) * _any(graph, (not_rigid(graph, x, RIGID) for x in poses))
        wrong = graph.node("flag", lost + empty + bent)
        goals = [goal_of(f, x) for f, x in zip(self.frames, poses, strict=True)]
        q, found = search(tree, how, goals, start, tol, select(wrong, graph.zero, tries))
        found = graph.node("flag", graph.lift(found))
        nan = graph.const(float("nan"))
        q = [select(found if self.strict else 1.0 - wrong, graph.lift(x), nan) for x in q]
        bits = summed(graph, (float(bit) * x for bit, x in (
            (Status.NOT_FINITE, lost),
            (Status.NOT_UNIT, (1.0 - lost) * _any(graph, not_units(graph, tree, q0))),
            (Status.NOT_CONVERGED, (1.0 - wrong) * (1.0 - found)),
            (Status.OVERFLOW, empty),
            (Status.NOT_RIGID, bent),
        )))  # fmt: skip
        regions, roots = assemble(graph, q, [bits])
        regions = tuple(replace(r, uneven=True) if isinstance(r, Repeat) else r for r in regions)
        outputs = (
            Output("result", (tree.nq,), tuple(roots[:-1])),
            Output("status", (), (roots[-1],), FLAGS),
        )
        return Program(NAME, self.ports, regions, outputs)


def _any(graph: Graph, counts: Iterable[Expr]) -> Expr:
    """1 where any of some numbers that are not negative is not zero, else 0."""
    total = summed(graph, counts)
    return total if total is graph.zero else graph.node("flag", total)


def _finite(limit: float) -> float | None:
    return float(limit) if isfinite(limit) else None


def goal_of(frame: Frame, x: Sequence[Expr]) -> Goal:
    """A target; its axes are made exactly those of a rotation."""
    R = Mat3(*(Vec3(*x[4 * k : 4 * k + 3]) for k in range(3)))
    return Goal(frame, matrix_of(Quaternion.of_matrix(R)), Vec3(*x[3:12:4]))
