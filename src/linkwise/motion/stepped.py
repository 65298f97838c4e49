"""A simulation step by step in Python: the same integrators, on arrays of NumPy.

For steps that cannot be one kernel: controllers of Python that are asked at every stage, and robots
of so many links that their functions are loops over them. The accelerations are those of the same
system that compiled simulations step (``system.py``); of large robots, of their rolled functions.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from linkwise.algorithms.configurations import chart_rate
from linkwise.motion.integrators import INTEGRATORS, PROJECT, System
from linkwise.motion.laws import torques_by_calls
from linkwise.motion.limits import stop_forces
from linkwise.motion.record import Record
from linkwise.motion.rollout import Rollout
from linkwise.motion.setup import Array
from linkwise.motion.system import acceleration_of
from linkwise.motion.vectors import Vec
from linkwise.trace.status import Status

REFINEMENTS = 6  # of the time at which a joint met its limit


class Stepped:
    """Advances a record by steps of arrays; it is also the system that explicit methods ask."""

    def __init__(self, record: Record, threads: int | None) -> None:
        self.record, self.setup, self.threads = record, record.setup, threads
        setup = self.setup
        self.integrator = INTEGRATORS[setup.integrator]
        self.turns = setup.robot.nq != setup.robot.nv  # it has quaternions
        # one row is asked as a state alone, which takes a third of the time of a batch of one
        self.alone = record.rows == 1 and setup.dtype == "float64"
        self.f_ext = {name: self._rows(x) for name, x in setup.f_ext} or None
        self.limits = [
            np.asarray(setup.limits.numbers[name], setup.dtype) for name in self._plan.limit_names
        ]
        self.constants = [self._rows(x) for _, x in setup.parameters]
        self.compiled = (
            None
            if setup.dynamics.rolled
            else acceleration_of(setup.robot._calls, self._plan, setup.robot.tree)
        )
        self.time = 0.0
        self.held: Array | None = None
        self.bits = np.zeros(record.rows, np.uint16)

    @property
    def _plan(self) -> Rollout:
        setup = self.setup
        return Rollout(
            setup.dynamics, setup.integrator, limited=setup.limits.joints, stop=setup.limits.stop,
            drift=setup.drift if isinstance(setup.drift, float) else None,
            parameters=tuple(each for each, _ in setup.parameters),
        )  # fmt: skip

    def _rows(self, x: Array) -> Array:
        """Rows of a batch, or the state that is alone."""
        return x[0] if self.alone else x

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
        q, qd = self._step(record.q, record.qd, now, setup.dt)
        finite = np.isfinite(q).all(-1) & np.isfinite(qd).all(-1)
        singular = (self.bits & int(Status.SINGULAR)) > 0
        fault = np.where(singular, int(Status.SINGULAR), np.where(finite, 0, int(Status.OVERFLOW)))
        if setup.limits.event:
            q, qd = self._end_at_limits(q, qd, fault, now)
        record.q, record.qd = q, qd
        record.count(fault == 0, fault, np.zeros(record.rows))
        record.reach(1)
        record.keep()

    def _step(self, q: Array, qd: Array, now: float, h: Any) -> tuple[Array, Array]:
        """The state after a step of h seconds, one number or one for each row (rows, 1)."""
        setup = self.setup
        state = self.integrator.begin(q, qd)
        with np.errstate(over="ignore", invalid="ignore"):  # rows that fail are known by status
            for phase in self.integrator.phases:
                self.time = now + phase.time * setup.dt
                body = self.integrator.bodies[phase.body]
                state = body(cast(System, self), state, h, phase.numbers)
        new_q, new_qd = state[:2]
        if setup.drift == PROJECT:
            tree = setup.robot.tree
            constants: dict[str, Any] = {
                x.name: v.reshape(-1, *x.shape(tree)) for x, v in setup.parameters
            }
            new_q, new_qd = setup.robot.project(new_q, new_qd, threads=self.threads, **constants)
        return np.asarray(new_q, setup.dtype), np.asarray(new_qd, setup.dtype)

    def _end_at_limits(self, q: Array, qd: Array, fault: Array, now: float) -> tuple[Array, Array]:
        """End rows in which a joint passed a limit, and find when it met it; others go on.

        The state beyond the limit is taken back in time by steps of the integrator itself, and is
        no state of the motion.
        """
        record, limits = self.record, self.setup.limits
        ended = record.fault == int(Status.LIMIT)  # before this step: they stay as they are
        passed = (limits.beyond(q).max(-1) > 0) & (record.fault == 0) & (fault == 0)
        if passed.any():
            back, dof = np.zeros(len(q)), limits.first_met(q, qd)
            at_q, at_qd = q, qd
            for _ in range(REFINEMENTS):
                late = limits.time_beyond(at_q, at_qd, dof)
                back = np.where(passed, np.clip(back - late, -self.setup.dt, 0.0), 0.0)
                at_q, at_qd = self._step(q, qd, now + self.setup.dt, back[:, None])
            rows = np.flatnonzero(passed)
            record.event_q[rows], record.event_qd[rows] = at_q[rows], at_qd[rows]
            record.event_t[rows] = now + self.setup.dt + back[rows]
            record.event_dof[rows] = [limits.joints[k].v for k in dof[rows]]
            fault[rows] = int(Status.LIMIT)
        return np.where(ended[:, None], record.q, q), np.where(ended[:, None], record.qd, qd)

    def torques(self, time: float, q: Array, qd: Array) -> Array:
        """The torques of the controller, for rows of states."""
        setup, record = self.setup, self.record
        if setup.controller is not None:
            return record.ask(time, q, qd)
        law, shape = setup.law, (*setup.leading, setup.robot.nv)
        numbers = [x.at(record.step).astype(setup.dtype, copy=False) for x in law.inputs]
        states = q.reshape(*setup.leading, setup.robot.nq), qd.reshape(shape)
        found = torques_by_calls(law.robot, law.forms, numbers, *states, self.threads)
        return np.broadcast_to(found, shape).reshape(record.rows, setup.robot.nv)

    # -- the system ------------------------------------------------------------------------------

    def acceleration(self, q: Vec, v: Vec) -> Vec:
        """How the velocities change."""
        tau = self.torques(self.time, q, v) if self.held is None else self.held
        robot, wrenches = self.setup.robot, (self.f_ext or {}).values()
        if self.compiled is not None:
            values = [*map(self._rows, (q, v, tau)), *wrenches, *self.limits, *self.constants]
            found, bits = self.compiled(values, threads=self.threads)
        else:
            if self.setup.limits.stop:
                limits: list[Any] = list(self.limits)
                push, _ = stop_forces(self.setup.limits.joints, limits, q.T, v.T)
                tau = tau + np.stack(np.broadcast_arrays(*push, tau[:, 0])[:-1], -1)
            values = [*map(self._rows, (q, v, tau))]
            found, bits = robot.forward_dynamics(
                *values, f_ext=self.f_ext, status=True, threads=self.threads
            )
        self.bits |= bits
        return found[None] if self.alone else found

    def moved(self, q: Vec, u: Vec) -> Vec:
        """``q ⊕ u``."""
        return self.setup.robot.integrate(q, u, threads=self.threads) if self.turns else q + u

    def chart_rate(self, u: Vec, v: Vec) -> Vec:
        """How u changes where ``q ⊕ u`` moves at the velocities v."""
        if not self.turns:
            return v
        columns: list[Any] = chart_rate(self.setup.robot.tree, list(u.T), list(v.T))
        return np.stack(np.broadcast_arrays(*columns), -1).astype(v.dtype, copy=False)
