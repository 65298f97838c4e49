"""A simulation by an adaptive solver of SciPy: the precise answer, in steps of its own choice.

Each row has a solver of its own, so that no row depends on another, and states in between come from
its dense output. Quaternions are integrated as four numbers and set to unit length when they are
kept. Torques that are held over steps of ``dt`` begin the solver anew at every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.backends.base import ONE
from linkwise.motion.integrators import PROJECT
from linkwise.motion.laws import ports_of
from linkwise.motion.record import Record, torques_of
from linkwise.motion.rollout import Rollout
from linkwise.motion.setup import Array, Setup
from linkwise.motion.system import acceleration_of
from linkwise.trace.status import Status

WINDOWS = 200  # of a simulation, between which it can be interrupted with what is there
SHORTEST = 3e-7  # seconds: a solver whose steps within a dt are shorter on average has failed
FEWEST = 3000  # steps within a dt that are allowed in any case
LOCATED = 1e-14  # of the step in which a joint met its limit, when the search for it ends


class _Lost(ArithmeticError):
    """The equations of motion have no answer in a state."""


class Adaptive:
    """Advances a record by solvers of SciPy."""

    def __init__(self, record: Record, _threads: int | None) -> None:
        self.record, self.setup = record, record.setup
        self.rates = Rates(self.setup)
        self.held = self.setup.hold and self.setup.law.depends_on_state
        self.by_step = self.held or self.setup.law.steps is not None
        if self.setup.controller is not None and self.setup.hold:
            self.held = self.by_step = True
        self.solvers: list[Any] = [None] * record.rows
        if self.setup.controller is not None and not self.held:
            record.keep_torques(record.ask(0.0, record.q, record.qd))
        lost = ~(np.isfinite(record.q).all(-1) & np.isfinite(record.qd).all(-1))
        record.fault[lost & (record.fault == 0)] = int(Status.NOT_FINITE)

    def room(self) -> int:
        """Steps of ``dt`` that can be taken at once."""
        left = self.setup.steps - self.record.step
        return 1 if self.by_step else min(left, max(1, self.setup.steps // WINDOWS))

    def advance(self, steps: int) -> None:
        """Take each row to the end of some steps."""
        record = self.record
        self.rates.step = record.step
        tau = self._torques()
        if tau is not None and self.setup.controller is not None:
            record.keep_torques(tau)
        record.q, record.qd = record.q.copy(), record.qd.copy()  # some rows are ahead of others
        for row in np.flatnonzero(record.fault == 0).tolist():
            self.rates.row = row
            self.rates.tau = None if tau is None else tau[row]
            self._advance(row, steps)
        record.reach(steps)

    def _torques(self) -> Array | None:
        """Torques that are held over a step."""
        record, setup = self.record, self.setup
        if not self.held:
            return None
        if setup.controller is not None:
            return record.ask(record.step * setup.dt, record.q, record.qd)
        q, qd = (x.reshape(*setup.leading, x.shape[-1]) for x in (record.q, record.qd))
        found: Array = setup.law(None, q, qd, record.step)
        return found.reshape(record.rows, setup.robot.nv)

    def _advance(self, row: int, steps: int) -> None:
        record, setup = self.record, self.setup
        end = (record.step + steps) * setup.dt
        solver = self.solvers[row]
        if solver is None or self.by_step:
            start = np.concatenate([record.q[row], record.qd[row]]).astype(np.float64)
            begin, last = record.step * setup.dt, end if self.by_step else setup.steps * setup.dt
            try:
                solver = self.solvers[row] = _solver(setup, self.rates, begin, start, last)
            except _Lost:
                self._fail(row, Status.OVERFLOW)
                return
        else:
            self._keep(row, solver, record.step, end)
        try:
            self._solve(row, solver, end)
        except _Lost:
            self._fail(row, Status.OVERFLOW)
        except ArithmeticError:
            self._fail(row, Status.NOT_CONVERGED)

    def _solve(self, row: int, solver: Any, end: float) -> None:
        """Take steps of the solver to the end, or to an event.

        A motion that diverges turns ever faster, and the solver would follow it in ever shorter
        steps without end: too many of them within one dt are a failure.
        """
        record, most = self.record, max(FEWEST, self.setup.dt / SHORTEST)
        done, taken = record.done[row], 0
        while solver.t < end and record.fault[row] == 0:
            # not before: states after the end are still to be read from the step before it
            if self.setup.drift == PROJECT and solver.t_old is not None:
                solver = self.solvers[row] = self._projected(solver)
            problem = solver.step()
            if solver.status == "failed":
                raise ArithmeticError(problem)
            self._keep(row, solver, record.step, end)
            done, taken = (done, taken + 1) if record.done[row] == done else (record.done[row], 0)
            if taken > most:
                raise ArithmeticError("too many steps within one dt")

    def _projected(self, solver: Any) -> Any:
        """A solver that goes on from the nearest state in which closed loops are closed."""
        state = self._unit(solver.y[None])[0]
        first = min(solver.h_abs, solver.t_bound - solver.t)
        return _solver(self.setup, self.rates, solver.t, state, solver.t_bound, first)

    def _fail(self, row: int, why: Status) -> None:
        self.record.fault[row] = int(why)

    def _keep(self, row: int, solver: Any, first: int, end: float) -> None:
        """Keep the states of whole steps that the solver has passed by now, up to an event."""
        record, setup, nq = self.record, self.setup, self.setup.robot.nq
        if solver.t_old is None:
            return
        between = solver.dense_output()
        met = self._met(row, solver, between, min(solver.t, end))
        now = min(solver.t, end) if met is None else met
        reached = int(np.floor(now / setup.dt * (1 + 4e-16) + 1e-9))
        passed = np.arange(record.done[row] + 1, reached + 1)
        states = self._unit(between(passed * setup.dt).T) if len(passed) else np.empty((0, 0))
        for step, state in zip(passed, states, strict=True):
            place = record.place(int(step))
            if place is not None:
                record.kept_q[row, place], record.kept_qd[row, place] = state[:nq], state[nq:]
                if setup.controller is not None and not self.held:  # one row, asked at any time
                    record.tau[...] = record.ask(
                        step * setup.dt, state[None, :nq], state[None, nq:]
                    )
                    record.kept_tau[:, place] = record.tau
        if len(passed):
            record.done[row] = reached
            record.q[row], record.qd[row] = states[-1, :nq], states[-1, nq:]

    def _unit(self, states: Array) -> Array:
        """States with quaternions of unit length, and closed loops closed if drift is projected."""
        robot, setup = self.setup.robot, self.setup
        if robot.nq == robot.nv and setup.drift != PROJECT:
            return states
        q, qd = (np.ascontiguousarray(x) for x in np.split(states, [robot.nq], axis=1))
        if robot.nq != robot.nv:
            q = robot.normalize(q)
        if setup.drift == PROJECT:
            row = self.rates.row
            constants = {x.name: v[row].reshape(x.shape(robot.tree)) for x, v in setup.parameters}
            q, qd = robot.project(q, qd, **constants)
        return np.concatenate([q, qd], 1)

    def _met(self, row: int, solver: Any, between: Any, end: float) -> float | None:
        """When a joint met a limit that ends the motion, if it did in the solver's last step."""
        record, limits, nq = self.record, self.setup.limits, self.setup.robot.nq
        if not limits.event:
            return None
        beyond = limits.beyond(between(end)[None, :nq])[0]
        if beyond.max() <= 0:
            return None
        low, high = solver.t_old, end
        while high - low > LOCATED * max(high, 1e-3):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            out = limits.beyond(between(middle)[None, :nq]).max() > 0
            low, high = (low, middle) if out else (middle, high)
        state = self._unit(between(high)[None])[0]
        record.event_t[row] = high
        which = int(limits.beyond(between(high)[None, :nq])[0].argmax())
        record.event_dof[row] = limits.joints[which].v
        record.event_q[row], record.event_qd[row] = state[:nq], state[nq:]
        self._fail(row, Status.LIMIT)
        return float(high)


def _solver(
    setup: Setup, rates: Rates, begin: float, start: Array, end: float, first: float | None = None
) -> Any:
    from scipy import integrate

    method = getattr(integrate, setup.integrator)
    options = {"rtol": setup.rtol, "atol": setup.atol, "first_step": first}
    return method(rates, begin, start, end, **options)


class Rates:
    """How the numbers of one row change, for a solver: ``rates(t, y)``."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.row, self.step = setup, 0, 0
        self.tau: Array | None = None  # held over a step, in place of the controller
        # torques are given, by a function or held
        self.given = setup.controller is not None or (setup.hold and setup.law.depends_on_state)
        tree, forms = setup.robot.tree, () if self.given else setup.law.forms
        plan = Rollout(
            setup.dynamics, "rk4", forms, (False,) * len(ports_of(forms, tree)),
            limited=setup.limits.joints, stop=setup.limits.stop,
            drift=setup.drift if isinstance(setup.drift, float) else None,
            law_tree=setup.law_tree, parameters=tuple(each for each, _ in setup.parameters),
        )  # fmt: skip
        self.limits = [np.asarray(setup.limits.numbers[name]) for name in plan.limit_names]
        function = acceleration_of(setup.robot._calls, plan, tree, velocity=True)
        self.kernel = function.kernel("float64", ONE)

    def __call__(self, t: float, y: Array) -> Array:
        """The derivative of (q, qd)."""
        setup, nq = self.setup, self.setup.robot.nq
        q, v = np.ascontiguousarray(y[:nq]), np.ascontiguousarray(y[nq:])
        tau = self.tau
        if tau is None and setup.controller is not None:
            tau = torques_of(setup.controller(t, q.copy(), v.copy()), setup)
        tau = np.zeros(setup.robot.nv) if tau is None else tau
        numbers = [] if self.given else [x.at(self.step) for x in setup.law.inputs]
        wide = [np.broadcast_to(x, (*setup.leading, x.shape[-1])) for x in numbers]
        own = [x.reshape(-1, x.shape[-1])[self.row] for x in wide]
        acting = [x[self.row] for _, x in setup.f_ext]
        constants = [x[self.row] for _, x in setup.parameters]
        inputs = [q, v, tau, *own, *acting, *self.limits, *constants]
        rows = [np.array(x, np.float64, order="C", ndmin=2) for x in inputs]
        out: Array = np.empty((1, len(y)))
        self.kernel(rows, [out])
        if not np.isfinite(out).all():
            raise _Lost
        return out.ravel()
