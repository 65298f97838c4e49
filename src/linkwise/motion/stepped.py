"""A simulation step by step in Python, with the robot's own functions.

For what cannot be compiled into one kernel: controllers of Python that are asked at every stage,
and robots of so many links that their functions are loops over them, whose laws of control are
computed by calls. The integrators are the same.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from linkwise.algorithms.configurations import chart_rate
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.equations import flags, straight_line
from linkwise.motion.integrators import INTEGRATORS, PROJECT, System
from linkwise.motion.laws import torques_by_calls
from linkwise.motion.record import Record
from linkwise.motion.rollout import Rollout, Traced
from linkwise.motion.setup import Array, Setup
from linkwise.motion.vectors import Numbers, Vec
from linkwise.spatial import Scalar
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import CONFIGURATION, TORQUE, VELOCITY, WRENCH, Port, Slot
from linkwise.trace.status import Status, status_of


class Stepped:
    """Advances a record by steps of arrays; it is also the system that explicit methods ask."""

    def __init__(self, record: Record, threads: int | None) -> None:
        self.record, self.setup, self.threads = record, record.setup, threads
        self.integrator = INTEGRATORS[self.setup.integrator]
        self.turns = self.setup.robot.nq != self.setup.robot.nv  # it has quaternions
        # one row is asked as a state alone, which takes a third of the time of a batch of one
        self.alone = record.rows == 1 and self.setup.dtype == "float64"
        pushes = self.setup.f_ext
        self.f_ext = {name: x[0] if self.alone else x for name, x in pushes} or None
        self.time = 0.0
        self.held: Array | None = None
        self.stabilized = _stabilized(self.setup) if isinstance(self.setup.drift, float) else None
        self.bits = np.zeros(record.rows, np.uint16)

    def room(self) -> int:
        """Steps that can be taken at once."""
        return 1

    def advance(self, _steps: int) -> None:
        """Take one step."""
        record, setup = self.record, self.setup
        now = record.step * setup.dt
        tau = self.torques(now, record.q, record.qd)
        if setup.controller is not None:
            record.keep_torques(tau)
        changes = setup.controller is not None or setup.law.depends_on_state
        self.held = tau if setup.hold or not changes else None
        state = self.integrator.begin(record.q, record.qd)
        with np.errstate(over="ignore", invalid="ignore"):  # rows that fail are told by status
            for phase in self.integrator.phases:
                self.time = now + phase.time * setup.dt
                body = self.integrator.bodies[phase.body]
                state = body(cast(System, self), state, setup.dt, phase.numbers)
        q, qd = state[:2]
        if setup.drift == PROJECT:
            q, qd = setup.robot.project(q, qd, threads=self.threads)
        record.q, record.qd = (np.asarray(x, setup.dtype) for x in (q, qd))
        finite = np.isfinite(record.q).all(-1) & np.isfinite(record.qd).all(-1)
        singular = (self.bits & int(Status.SINGULAR)) > 0
        fault = np.where(singular, int(Status.SINGULAR), np.where(finite, 0, int(Status.OVERFLOW)))
        record.count(fault == 0, fault, np.zeros(record.rows))
        record.reach(1)
        record.keep()

    def torques(self, time: float, q: Array, qd: Array) -> Array:
        """What acts on the joints."""
        setup, record = self.setup, self.record
        if setup.controller is not None:
            return record.ask(time, q, qd)
        law, shape = setup.law, (*setup.leading, setup.robot.nv)
        numbers = [x.at(record.step).astype(setup.dtype, copy=False) for x in law.inputs]
        states = q.reshape(*setup.leading, -1), qd.reshape(shape)
        found = torques_by_calls(law.robot, law.forms, numbers, *states, self.threads)
        return np.broadcast_to(found, shape).reshape(record.rows, -1)

    # -- the system ------------------------------------------------------------------------------

    def acceleration(self, q: Vec, v: Vec) -> Vec:
        """How the rates change."""
        tau = self.torques(self.time, q, v) if self.held is None else self.held
        robot, given = self.setup.robot, [x[0] for x in (q, v, tau)] if self.alone else [q, v, tau]
        if self.stabilized is None:
            found, bits = robot.forward_dynamics(
                *given, f_ext=self.f_ext, status=True, threads=self.threads
            )
        else:
            wrenches = (self.f_ext or {}).values()
            found, bits = self.stabilized([*given, *wrenches], threads=self.threads)
        self.bits |= bits
        return found[None] if self.alone else found

    def moved(self, q: Vec, u: Vec) -> Vec:
        """``q ⊕ u``."""
        return self.setup.robot.integrate(q, u, threads=self.threads) if self.turns else q + u

    def chart_rate(self, u: Vec, v: Vec) -> Vec:
        """How u changes where ``q ⊕ u`` moves at the rates v."""
        if not self.turns:
            return v
        columns: list[Any] = chart_rate(self.setup.robot.tree, list(u.T), list(v.T))
        return np.stack(np.broadcast_arrays(*columns), -1).astype(v.dtype, copy=False)


def _stabilized(setup: Setup) -> CompiledFunction:
    """Return the joint accelerations with Baumgarte's stabilisation as a compiled function."""
    tree = setup.robot.tree
    plan = Rollout(setup.dynamics, setup.integrator, drift=setup.drift)
    wrenches = (Port(f"f_ext[{k}]", 6, kind=WRENCH) for k in range(len(setup.f_ext)))
    ports = (
        Port("q", tree.nq, kind=CONFIGURATION),
        Port("qd", tree.nv, kind=VELOCITY),
        Port("tau", tree.nv, kind=TORQUE),
        *wrenches,
    )

    def trace(_graph: Graph, inputs: list[list[Expr]]) -> list[Scalar]:
        q, v, tau, *wrenches = map(Numbers, inputs)
        system = Traced(plan, tree, (), wrenches)
        system.held = tau
        return list(system.acceleration(q, v))

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        return status_of(graph, tree, ports, inputs, results)

    key = (setup.dynamics.algorithm.method, setup.dynamics.external, setup.drift)
    outputs = (Slot("result", (tree.nv,)), *flags(True))
    equations = straight_line("stabilized dynamics", key, ports, outputs, trace, bits)
    return setup.robot._calls.compiled(equations)
