"""A simulation as one program: a counted loop around one step, its state carried in registers.

    inputs    q, qd, dt, how many steps to take, numbers of the law, external wrenches, parameters
    outputs   every k-th state, the last state, how many steps were healthy, and what failed

The steps of the loop are the phases of an integrator (integrators.py), which share one copy of the
equations of motion. A law that is held over a step is a phase of its own before them. The loop has
room for a limited number of steps: a long simulation is several runs, each from where the last one
ended. A state that fails, or reaches a limit of its joints, is counted no further; its neighbours
do not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from linkwise.engine.equations import Equations
from linkwise.model.parameters import Parameter
from linkwise.model.tree import Tree
from linkwise.motion.integrators import INTEGRATORS, PROJECT, Phase, State
from linkwise.motion.laws import Form, ports_of
from linkwise.motion.limits import NUMBERS, PLACES, Limited, outside
from linkwise.motion.system import TracedSystem
from linkwise.motion.vectors import Numbers
from linkwise.spatial import Scalar, Vector, select
from linkwise.trace.assemble import assemble
from linkwise.trace.expr import At, Expr, Graph
from linkwise.trace.program import Array, Output, Port, Program, Slot
from linkwise.trace.rolled import Body as LoopBody
from linkwise.trace.rolled import Step, loop
from linkwise.trace.status import Status
from linkwise.trace.tracer import Task

MOST_SAMPLED = 700  # numbers that one run writes of a state
PAGE = 512  # numbers: rows about so far apart, or a multiple, compete for the same lines of a cache
MOST_STEPS = 256  # steps of one run
UNSAMPLED = MOST_STEPS + 1  # steps between states that are written, so many that none is

PHASE, STEP, CASE = "at_phase", "at_step", "at_case"  # lists of places, by step of the loop
HEALTH = 3  # healthy steps, what failed, and how far an iteration was from its end
CONTROL = Phase(-1)  # the law is asked, and its answer held


@dataclass(frozen=True)
class Rollout:
    """What a simulation's program depends on, besides the robot."""

    dynamics: Task  # forward dynamics, with the frames of external wrenches
    integrator: str
    forms: tuple[Form, ...] = ()  # of the law
    per_step: tuple[bool, ...] = ()  # which of its numbers are given for each step
    hold: bool = False  # the law is asked once per step
    every: int = 1  # steps between states that are written
    limited: tuple[Limited, ...] = ()  # joints with limits that matter
    stop: bool = False  # soft stops are at these limits; else they end the motion
    # of closed loops: PROJECT after each step, a time constant of Baumgarte's, or nothing
    drift: str | float | None = None
    # the robot's model in the law, if another one: without payload or closed loops, say
    law_tree: Tree | None = field(default=None, compare=False)
    parameters: tuple[Parameter, ...] = ()  # of the robot, that are inputs; the law has none

    def samples(self, tree: Tree) -> int:
        """States that one run can write; 0: only its last one is of interest."""
        size = max(tree.nq + tree.nv, 1)
        most = min(MOST_SAMPLED // size, MOST_STEPS // self.every)
        apart = (n for n in range(most, most // 2, -1) if PAGE // 8 <= n * size % PAGE)
        return next(apart, most)

    def steps(self, tree: Tree) -> int:
        """Steps that one run has room for."""
        return self.samples(tree) * self.every or MOST_STEPS

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of one step."""
        method = INTEGRATORS[self.integrator]
        own = method.phases
        if self.drift == PROJECT:
            own = (*own, Phase(len(method.bodies)))
        return (CONTROL, *own) if self.hold else own

    def ports(self, tree: Tree) -> tuple[Port, ...]:
        """Inputs: the state, the step, how many of them, numbers of the law, wrenches."""
        pairs = zip(ports_of(self.forms, tree), self.per_step, strict=True)
        room = self.steps(tree)
        law = [replace(p, size=room * p.size) if steps else p for p, steps in pairs]
        wrenches = [Port(f"f_ext[{k}]", 6) for k in range(len(self.dynamics.external))]
        limits = [Port(name, len(self.limited)) for name in self.limit_names]
        constants = [Port(f"parameter {x.name}", x.size(tree)) for x in self.parameters]
        return (Port("q", tree.nq), Port("qd", tree.nv), Port("dt", 1), Port("steps", 1),
                *law, *wrenches, *limits, *constants)  # fmt: skip

    @property
    def limit_names(self) -> tuple[str, ...]:
        """Inputs for the limits of joints."""
        if not self.limited:
            return ()
        return (*PLACES, *NUMBERS) if self.stop else PLACES

    def slots(self, tree: Tree) -> tuple[Slot, ...]:
        """Outputs: states on the way, the last one, steps that went well, what went wrong."""
        samples = self.samples(tree)
        written = [Slot("samples", (samples, tree.nq + tree.nv))] if samples else []
        return (*written, Slot("end", (tree.nq + tree.nv,)), Slot("health", (HEALTH,)))

    def arrays(self, tree: Tree) -> tuple[Array, ...]:
        """Tables: numbers of the phases, and which phase and step the loop is at."""
        phases, room = self.phases, self.steps(tree)
        count = len(phases) * room
        if len(phases) == 1:
            return ()
        at = np.arange(count)
        lists = {PHASE: at % len(phases), STEP: at // len(phases)}
        if self.cases > 1:
            cases = np.array([phase.body + self.hold for phase in phases])
            lists[CASE] = cases[at % len(phases)]
        width = max(len(phase.numbers) for phase in phases)
        table = np.zeros((len(phases), width + 1))
        for row, phase in zip(table, phases, strict=True):
            row[: len(phase.numbers)] = phase.numbers
        table[-1, -1] = 1.0  # whether the phase is the last of its step
        places = (Array(name, count, np.asarray(x, np.int64)) for name, x in lists.items())
        return (*places, Array("numbers", table.size, table.ravel()))

    @property
    def cases(self) -> int:
        """Bodies of the loop."""
        return len(INTEGRATORS[self.integrator].bodies) + (self.drift == PROJECT) + self.hold

    @property
    def content(self) -> tuple[Any, ...]:
        """All that its equations of motion depend on, besides the robot."""
        law = tuple(form.key for form in self.forms)
        task = (self.dynamics.algorithm.method, self.dynamics.external)
        model = self.law_tree and self.law_tree.digest
        return (law, *task, self.limited, self.stop, self.drift, model, self.parameters)

    def equations(self, tree: Tree) -> Equations:
        """The compiled loop."""
        key = (self.integrator, self.per_step, self.hold, self.every, *self.content)
        return Equations(
            "simulate", key, self.ports(tree), self.slots(tree),
            lambda _effort: trace_rollout(self, tree), self.arrays(tree), guarded=False,
        )  # fmt: skip


def trace_rollout(plan: Rollout, tree: Tree) -> Program:
    """The program of a simulation."""
    writer = _Writer(plan, tree)
    graph = writer.graph
    states = writer.run()
    slack = states[sum(writer.sizes) - 1] if writer.integrator.iterates else 0.0
    health = [graph.lift(x) for x in (*states[-2:], slack)]
    end = [*states[: tree.nq + tree.nv], *health]
    regions, roots = assemble(graph, end)
    *written, last, healthy = plan.slots(tree)
    outputs = [Output(slot.name, slot.shape, ()) for slot in written]
    outputs.append(Output(last.name, last.shape, tuple(roots[: last.size])))
    outputs.append(Output(healthy.name, healthy.shape, tuple(roots[last.size :])))
    name = f"simulation[{plan.integrator}]"
    return Program(name, plan.ports(tree), regions, tuple(outputs), arrays=plan.arrays(tree))


class _Writer:
    """The loop of a rollout, being traced."""

    def __init__(self, plan: Rollout, tree: Tree) -> None:
        self.plan, self.tree, self.graph = plan, tree, Graph()
        self.integrator = INTEGRATORS[plan.integrator]
        self.inputs = {
            port.name: Numbers(self.graph.input(port.name, k) for k in range(port.size))
            for port in plan.ports(tree)
            if port.name not in self._by_step
        }
        start = self.integrator.begin(self.inputs["q"], self.inputs["qd"])
        self.sizes = [len(vector) for vector in start]
        self.start = [x for vector in start for x in vector]

    @property
    def _by_step(self) -> dict[str, int]:
        """Numbers of the law that each step has its own of, with their lengths."""
        pairs = zip(ports_of(self.plan.forms, self.tree), self.plan.per_step, strict=True)
        return {port.name: port.size for port, steps in pairs if steps}

    def run(self) -> list[Expr]:
        """Trace the loop; returns what it carries at its end."""
        plan, room = self.plan, self.plan.steps(self.tree)
        count = len(plan.phases) * room
        limit = self.inputs["steps"][0] * float(len(plan.phases))
        held = [0.0] * (self.tree.nv if plan.hold else 0)
        start = [*self.start, *held, 0.0, 0.0]  # healthy steps, and what failed
        own = len(self.integrator.bodies) + (plan.drift == PROJECT)
        bodies: list[LoopBody] = [partial(self.body, k) for k in range(own)]
        if plan.hold:
            bodies.insert(0, self.control)
        which = At(0, 1, CASE) if len(bodies) > 1 else None
        return loop(self.graph, count, start, *bodies, which=which, limit=limit)

    def system(self, step: Step) -> TracedSystem:
        """The equations of motion at a step."""
        by_step, places = self._by_step, STEP if len(self.plan.phases) > 1 else ""
        law = [
            Numbers(step.read(port.name, k, port.size, places) for k in range(port.size))
            if port.name in by_step
            else self.inputs[port.name]
            for port in ports_of(self.plan.forms, self.tree)
        ]
        wrenches = [self.inputs[f"f_ext[{k}]"] for k in range(len(self.plan.dynamics.external))]
        limits = [self.inputs[name] for name in self.plan.limit_names]
        constants = [self.inputs[f"parameter {x.name}"] for x in self.plan.parameters]
        return TracedSystem(self.plan, self.tree, law, wrenches, limits, constants)

    def split(self, carried: Sequence[Expr]) -> tuple[State, list[Expr], list[Expr]]:
        """The integrator's state, torques that are held, and the health."""
        ends = list(accumulate(self.sizes, initial=0))
        vectors = pairwise(ends)
        state = tuple(Numbers(carried[a:b]) for a, b in vectors)
        return state, list(carried[ends[-1] : -2]), list(carried[-2:])

    def control(self, step: Step, carried: list[Expr]) -> list[Scalar]:
        """The phase that asks the law."""
        graph, before = self.graph, self.graph.pivots
        state, _, (count, fault) = self.split(carried)
        graph.pivots = []
        held = self.system(step).torques(state[0], state[1])
        pivots, graph.pivots = [pivot for pivot, _ in graph.pivots], before
        if pivots:
            wrong = select(self.positive(pivots), 0.0, float(Status.SINGULAR))
            fault = select(fault, fault, wrong)
        return [*(x for vector in state for x in vector), *held, count, fault]

    def body(self, which: int, step: Step, carried: list[Expr]) -> list[Scalar]:
        """A phase of the integrator, and what became of the state."""
        graph, before = self.graph, self.graph.pivots
        state, held, health = self.split(carried)
        system = self.system(step)
        system.held = Numbers(held) if self.plan.hold else None
        numbers, last = self.numbers(step)
        graph.pivots = []
        new = self.phase(which, system, state, numbers)
        sound, graph.pivots = self.positive([pivot for pivot, _ in graph.pivots]), before
        if self.plan.limited and not self.plan.stop:
            new = self.frozen(state, new, health[1])
        counted = self.judge(new, health, sound, last)
        if self.plan.samples(self.tree) and which == self.plan.phases[-1].body:
            self.write(step, new)
        return [*(x for vector in new for x in vector), *held, *counted]

    def phase(
        self, which: int, system: TracedSystem, state: State, numbers: tuple[Scalar, ...]
    ) -> State:
        """The state after a phase of the integrator, or after the projection."""
        if which == len(self.integrator.bodies):
            return self.integrator.begin(*system.projected(*map(Numbers, state[:2])))
        return self.integrator.bodies[which](system, state, self.inputs["dt"][0], numbers)

    def numbers(self, step: Step) -> tuple[tuple[Scalar, ...], Scalar]:
        """The numbers of a phase, and whether it is the last of its step."""
        phases = self.plan.phases
        if len(phases) == 1:
            return phases[0].numbers, 1.0
        width = max(len(phase.numbers) for phase in phases)
        row = [step.read("numbers", k, width + 1, PHASE) for k in range(width + 1)]
        return tuple(row[:-1]), row[-1]

    def positive(self, pivots: Sequence[Expr]) -> Scalar:
        """Positive where every pivot is."""
        sound: Scalar = self.graph.one
        for pivot in dict.fromkeys(pivots):
            sound = select(pivot, sound, self.graph.const(-1.0))
        return sound

    def judge(
        self, new: State, health: list[Expr], sound: Scalar, last: Scalar
    ) -> tuple[Scalar, Scalar]:
        """Healthy steps so far, and the first thing that went wrong, as bits of `Status`."""
        graph, (count, fault) = self.graph, health
        total: Scalar = 0.0
        for x in (*new[0], *new[1]):
            total = total + x
        finite = graph.node("finite", graph.lift(total))
        wrong = select(finite - 0.5, 0.0, float(Status.OVERFLOW))
        wrong = select(graph.lift(sound), wrong, float(Status.SINGULAR))
        fault = select(fault, fault, wrong)
        good = 1.0 - graph.node("flag", graph.lift(fault))
        return count + last * good, self.ended(new[0], fault, last)

    def ended(self, q: Vector, fault: Scalar, last: Scalar) -> Scalar:
        """What failed, or that a joint passed a limit, which ends the motion after this step."""
        if not self.plan.limited or self.plan.stop:
            return fault
        lower, upper = (self.inputs[name] for name in PLACES)
        passed = select(outside(self.plan.limited, lower, upper, q), float(Status.LIMIT), 0.0)
        return select(fault, fault, last * passed)

    def frozen(self, old: State, new: State, fault: Scalar) -> State:
        """The state as it was, where the motion has ended."""
        pairs = zip(old, new, strict=True)
        return tuple(b.each(lambda y, x: select(fault, x, y), a) for a, b in pairs)

    def write(self, step: Step, new: State) -> None:
        """Every k-th state, at the end of its step."""
        size, every = self.tree.nq + self.tree.nv, self.plan.every * len(self.plan.phases)
        for k, value in enumerate((*new[0], *new[1])):
            step.write("samples", value, k, size, every=every)
