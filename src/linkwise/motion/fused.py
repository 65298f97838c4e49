"""A simulation by its own kernel: all that acts is compiled, and each run takes many steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from linkwise.backends.base import BATCH, ONE, Kernel
from linkwise.backends.process import available_cores
from linkwise.engine.compiled import CompiledFunction
from linkwise.motion.laws import Numbered
from linkwise.motion.record import Record
from linkwise.motion.rollout import HEALTH, UNSAMPLED, Rollout
from linkwise.motion.setup import Array
from linkwise.trace.status import Status

FEW = 256  # rows up to which a step is not worth a second thread
WIDEST = 16  # states side by side in the widest registers
IN_CACHE = 1 << 20  # bytes of states that one thread writes before they are put in order
AT_ONCE = 1 << 28  # bytes of states that a GPU writes before they are fetched
REFINEMENTS = 4  # of the time at which a joint met its limit


class Fused:
    """Advances a record by a compiled loop."""

    def __init__(self, record: Record, threads: int | None) -> None:
        self.record, self.threads, self.setup = record, threads, record.setup
        robot, dtype = self.setup.robot, self.setup.dtype
        self.plan, self.samples, rollout = self._rollout()
        self.kernel = self._kernel(rollout)
        both = robot.nq + robot.nv
        written = self.samples * both
        on_gpu = self.setup.machine.kind != "cpu"
        most = AT_ONCE if on_gpu else IN_CACHE
        fit = max(most // max(written * np.dtype(dtype).itemsize, 1), WIDEST)
        some = min(record.rows, fit // WIDEST * WIDEST * (threads or available_cores()))
        self.written = np.empty((some if written else 0, written), dtype)
        self.end, self.health = (np.empty((record.rows, n), dtype) for n in (both, HEALTH))
        self.tau: Array | None = None  # of a controller of Python, at the present step
        self.bound = self._bound() if self.setup.controller is not None else None

    def _rollout(self) -> tuple[Rollout, int, CompiledFunction]:
        """The plan, how many states a run keeps, and the compiled loop; made once of each kind."""
        setup, law = self.setup, self.setup.law
        robot, model = setup.robot, setup.law_tree
        kind = (
            "rollout", setup.dynamics, setup.integrator, law.forms,
            tuple([x.per_step for x in law.inputs]), setup.hold, setup.every,
            setup.controller is None, setup.limits.joints, setup.limits.stop, setup.drift,
            model and model.digest, tuple([each for each, _ in setup.parameters]),
        )  # fmt: skip
        rollout: tuple[Rollout, int, CompiledFunction] | None = robot._calls.functions.get(kind)
        if rollout is None:
            plan = self._plan()
            function = robot._calls.compiled(plan.equations(robot.tree))
            rollout = robot._calls.functions[kind] = plan, plan.samples(robot.tree), function
        return rollout

    def _plan(self) -> Rollout:
        setup, law = self.setup, self.setup.law
        per_step = tuple(x.per_step for x in law.inputs)
        hold = setup.hold and law.depends_on_state
        plan = Rollout(setup.dynamics, setup.integrator, law.forms, per_step, hold, UNSAMPLED,
                       setup.limits.joints, setup.limits.stop, setup.drift,
                       setup.law_tree, tuple(each for each, _ in setup.parameters))  # fmt: skip
        if setup.every is None or setup.controller is not None:
            return plan
        sampled = replace(plan, every=setup.every)
        return sampled if sampled.samples(setup.robot.tree) else plan

    def _kernel(self, rollout: CompiledFunction) -> Kernel | None:
        if not self.record.rows or not self.setup.robot.nv:
            return None
        setup = self.setup
        alone = not setup.leading and setup.dtype == "float64" and setup.machine.kind == "cpu"
        return rollout.kernel(setup.dtype, ONE if alone else BATCH, setup.machine)

    def room(self) -> int:
        """Steps that can be taken at once."""
        setup, step = self.setup, self.record.step
        if setup.controller is not None:
            return 1
        left = setup.steps - step
        if setup.every and not self.samples:  # the end of a run is what is kept
            left = min(left, setup.every - step % setup.every)
        return min(self.plan.steps(setup.robot.tree), left)

    def advance(self, steps: int) -> None:
        """Take some steps at once."""
        record, every = self.record, self.plan.every
        if self.samples and steps < self.room():  # whole samples: the next run begins at one
            steps = min(max(steps // every * every, every), self.room())
        if self.setup.controller is not None:
            self.tau = record.ask(record.step * self.setup.dt, record.q, record.qd)
            record.keep_torques(self.tau)
        if self.bound is not None:
            self._step()
        elif self.kernel is not None:
            self._run(steps)
        record.reach(steps)
        if self.kernel is None:
            record.done += steps
        if not self.samples or record.step == self.setup.steps:
            record.keep()

    def _bound(self) -> tuple[tuple[Array, Array, Array], Callable[[], None]] | None:
        """The inputs of one step under a controller of Python, and the call that takes it."""
        bind = getattr(self.kernel, "bound", None)
        if bind is None or self.samples or self.setup.limits.event or self.record.rows > FEW:
            return None
        self.tau = np.zeros((self.record.rows, self.setup.robot.nv), self.setup.dtype)
        inputs = [np.array(x, order="C") for x in self._given(self.setup.dt, 1, self._law(0))]
        return (inputs[0], inputs[1], inputs[4]), bind(inputs, [self.end, self.health])

    def _step(self) -> None:
        """Take one step of few rows: the arrays of the call are always the same."""
        assert self.bound is not None
        record, nq = self.record, self.setup.robot.nq
        (q, qd, tau), run = self.bound
        q[...], qd[...], tau[...] = record.q, record.qd, self.tau
        run()
        record.q, record.qd = self.end[:, :nq].copy(), self.end[:, nq:].copy()
        record.count(*self.health.T)

    def _run(self, steps: int) -> None:
        """Run the kernel on all rows, some at a time where states on the way are kept: those stay
        in a cache until they are where they belong.
        """
        record, nq = self.record, self.setup.robot.nq
        given = self._given(self.setup.dt, steps, self._law(record.step))
        at_once = len(self.written) if self.samples else record.rows
        for a in range(0, record.rows, at_once):
            rows = slice(a, min(a + at_once, record.rows))
            written = [self.written[: rows.stop - a]] if self.samples else []
            self._call([x[rows] for x in given], [*written, self.end[rows], self.health[rows]])
            if self.samples:
                self._keep_samples(rows, written[0].reshape(rows.stop - a, self.samples, -1), steps)
        ended = record.fault == int(Status.LIMIT)  # before this run: where they are, they stay
        q, qd = self.end[:, :nq].copy(), self.end[:, nq:].copy()
        if ended.any():
            q[ended], qd[ended] = record.q[ended], record.qd[ended]
        record.q, record.qd = q, qd
        before = record.fault.copy()
        record.count(*self.health.T)
        self._locate((before == 0) & (record.fault == int(Status.LIMIT)))

    def _call(self, inputs: list[Array], outputs: list[Array]) -> None:
        assert self.kernel is not None
        self.kernel(inputs, outputs, self.threads)

    def _given(self, dt: float, steps: int, law: list[Array]) -> list[Array]:
        record, setup = self.record, self.setup
        limits = [self._wide(setup.limits.numbers[name]) for name in self.plan.limit_names]
        wrenches = [x for _, x in setup.f_ext]
        same = (self._wide(np.array([x])) for x in (dt, steps))
        constants = [x for _, x in setup.parameters]
        return [record.q, record.qd, *same, *law, *wrenches, *limits, *constants]

    def _wide(self, x: Array) -> Array:
        typed = np.asarray(x, self.setup.dtype)
        return np.broadcast_to(typed, (self.record.rows, len(x)))

    def _keep_samples(self, rows: slice, states: Array, steps: int) -> None:
        new, first = steps // self.plan.every, self.record.step // self.plan.every + 1
        self.record.kept[rows, first : first + new] = states[:, :new]

    def _law(self, step: int) -> list[Array]:
        """The numbers of the law as rows; of numbers per step, those of the steps to come."""
        if self.setup.controller is not None:
            assert self.tau is not None
            return [self.tau]
        return [self._rows_of(x, step) for x in self.setup.law.inputs]

    def _rows_of(self, x: Numbered, step: int) -> Array:
        setup, size, rows = self.setup, x.values.shape[-1], self.record.rows
        if not x.per_step:
            values = x.values.astype(setup.dtype, copy=False)
            return np.broadcast_to(values, (*setup.leading, size)).reshape(rows, size)
        room, count = self.plan.steps(setup.robot.tree), x.values.shape[-2]
        part = x.values[..., np.minimum(np.arange(step, step + room), count - 1), :]
        wide = np.broadcast_to(part, (*setup.leading, room, size))
        return np.ascontiguousarray(wide.reshape(rows, -1), setup.dtype)

    def _law_of_last_step(self, rows: Array) -> list[Array]:
        """The numbers that acted in the last step of some rows, each at a step of its own."""
        setup = self.setup
        if setup.controller is not None:
            return [x[rows] for x in self._law(self.record.step)]
        steps, room = np.maximum(self.record.done[rows] - 1, 0), self.plan.steps(setup.robot.tree)
        batch = np.unravel_index(rows, setup.leading) if setup.leading else ()
        found = []
        for x in setup.law.inputs:
            whole = np.broadcast_to(x.values, (*setup.leading, *x.values.shape[len(x.leading) :]))
            if x.per_step:
                at = np.minimum(steps, x.values.shape[-2] - 1)
                own = np.tile(whole[(*batch, at)], room)  # one step follows: that is the first
            else:
                own = whole[batch].reshape(len(rows), -1)
            found.append(np.ascontiguousarray(own, setup.dtype))
        return found

    def _locate(self, ended: Array) -> None:
        """When, and where, joints met their limits, for as many rows at once as a run takes."""
        rows = np.flatnonzero(ended)
        at_once = len(self.written) if self.samples else self.record.rows
        for a in range(0, len(rows), at_once):
            self._locate_rows(rows[a : a + at_once])

    def _locate_rows(self, rows: Array) -> None:
        """When, and where, joints met their limits, by Newton's method on the last step.

        The state beyond the limit is taken back in time by steps of the integrator itself, and is
        no state of the motion.
        """
        record, limits, setup = self.record, self.setup.limits, self.setup
        nq, count = setup.robot.nq, len(rows)
        given = [x[rows] for x in self._given(0.0, 1, [])]
        given[4:4] = self._law_of_last_step(rows)
        q, qd = given[:2]
        back, dof = np.zeros(count), limits.first_met(q, qd)
        written, end, health = (
            np.empty((count, x.shape[1]), setup.dtype)
            for x in (self.written, self.end, self.health)
        )
        for _ in range(REFINEMENTS):
            back = np.clip(back - limits.time_beyond(q, qd, dof), -setup.dt, 0.0)
            given[2] = np.asarray(back, setup.dtype)[:, None]
            self._call(given, [*([written] if self.samples else []), end, health])
            q, qd = end[:, :nq].copy(), end[:, nq:].copy()
        record.event_q[rows], record.event_qd[rows] = q, qd
        record.event_t[rows] = record.done[rows] * setup.dt + back
        record.event_dof[rows] = [limits.joints[k].v for k in dof]
        record.done[rows] -= 1
