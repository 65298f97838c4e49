"""A simulation under way: rows of states, advanced by its kernel run by run."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.base import BATCH, ONE, Kernel
from linkwise.engine.tasks import Key
from linkwise.motion.kernels import kernel
from linkwise.motion.laws import Numbered
from linkwise.motion.progress import Progress
from linkwise.motion.rollout import UNSAMPLED, Rollout
from linkwise.motion.setup import Array, Controller, Setup
from linkwise.motion.trajectory import Trajectory
from linkwise.trace.status import UNIT_TOLERANCE, Status

WIDEST = 16  # states side by side in the widest registers
IN_CACHE = 1 << 20  # bytes of states that one thread writes before they are put in order


class Run:
    """A simulation under way: rows of states, advanced run by run of its kernel."""

    def __init__(self, setup: Setup, threads: int | None) -> None:
        self.setup, self.threads = setup, threads
        robot = setup.robot
        self.nq, self.rows = robot.nq, len(setup.q)
        self.q, self.qd = setup.q.copy(), setup.qd.copy()
        self.at = setup.sampled
        T = len(self.at)
        self.kept_q = np.empty((self.rows, T, robot.nq), setup.dtype)
        self.kept_qd = np.empty((self.rows, T, robot.nv), setup.dtype)
        shape = (self.rows, T, robot.nv) if setup.controller else (0, 0, 0)
        self.kept_tau = np.empty(shape, setup.dtype)
        self.done = np.zeros(self.rows, np.int64)  # healthy steps of each row
        self.fault = np.zeros(self.rows, np.uint8)
        self.step = 0
        self.plan = self._plan()
        self.kernel = self._kernel()
        both, size = robot.nq + robot.nv, self.q.dtype.itemsize
        written = self.plan.samples(robot.tree) * both
        fit = max(IN_CACHE // max(written * size, 1), WIDEST) // WIDEST * WIDEST
        some = min(self.rows, fit * (threads or os.cpu_count() or 1))
        self.written = np.empty((some if written else 0, written), setup.dtype)
        self.end, self.health = (np.empty((self.rows, n), setup.dtype) for n in (both, 2))

    def _plan(self) -> Rollout:
        setup = self.setup
        robot, law = setup.robot, setup.law
        frames = tuple(name for name, _ in setup.f_ext)
        task = robot._calls.tasks.task(Key("forward_dynamics", external=frames), setup.dtype)
        hold = setup.hold and law.depends_on_state
        per_step = tuple(x.per_step for x in law.inputs)
        plan = Rollout(task, setup.integrator, law.forms, per_step, hold, UNSAMPLED)
        if setup.every is None or setup.controller is not None:
            return plan
        sampled = replace(plan, every=setup.every)
        return sampled if sampled.samples(robot.tree) else plan

    def _kernel(self) -> Kernel | None:
        if not self.rows or not self.setup.robot.nv:
            return None
        form = BATCH if self.setup.leading or self.setup.dtype != "float64" else ONE
        recipe = self.plan.recipe(self.setup.robot.tree)
        return kernel(self.setup.robot, recipe, self.setup.dtype, form)

    def run(self) -> Trajectory:
        """All steps, or as many as there are before an interrupt."""
        interrupted = False
        self._keep(0)
        try:
            with Progress("simulating", self.setup.steps) as progress:
                while self.step < self.setup.steps:
                    self.advance(progress.worth(self.room()))
                    progress.at(self.step)
        except KeyboardInterrupt:
            interrupted = True
            time = self.step * self.setup.dt
            warnings.warn(
                f"simulate: interrupted; the trajectory ends at {time:.6g} s", stacklevel=3
            )
        return self.trajectory(interrupted)

    def room(self) -> int:
        """Steps that the next run of the kernel may take."""
        if self.setup.controller is not None:
            return 1
        setup, left = self.setup, self.setup.steps - self.step
        room = self.plan.steps(setup.robot.tree)
        if setup.every and not self.plan.samples(setup.robot.tree):  # the end of a run is kept
            left = min(left, setup.every - self.step % setup.every)
        return min(room, left)

    def advance(self, steps: int) -> None:
        """Take some steps at once."""
        plan, tree = self.plan, self.setup.robot.tree
        samples = plan.samples(tree)
        if samples and steps < self.room():  # whole samples, so that the next run begins at one
            steps = max(steps // plan.every * plan.every, plan.every)
        law = self._law_inputs(steps)
        if self.kernel is None:
            self.step += steps
            self.done += steps
        else:
            self._run_kernel(steps, law, samples)
        if not samples or self.step == self.setup.steps:
            self._keep(self.step)

    def _run_kernel(self, steps: int, law: list[Array], samples: int) -> None:
        """Advance all rows, some at a time where states on the way are kept: those stay in a cache
        until they are where they belong.
        """
        setup, nq, rows = self.setup, self.nq, self.rows
        assert self.kernel is not None
        numbers = [self._same(setup.dt), self._same(steps)]
        given = [self.q, self.qd, *numbers, *law, *(x for _, x in setup.f_ext)]
        end, health = self.end, self.health
        at_once = len(self.written) if samples else rows
        for a in range(0, rows, at_once):
            b = min(a + at_once, rows)
            written = [self.written[: b - a]] if samples else []
            outputs = [*written, end[a:b], health[a:b]]
            self.kernel([x[a:b] for x in given], outputs, self.threads)
            if samples:
                self._keep_samples(slice(a, b), written[0].reshape(b - a, samples, -1), steps)
        self.q, self.qd = end[:, :nq].copy(), end[:, nq:].copy()
        healthy = self.fault == 0
        self.done[healthy] += health[healthy, 0].astype(np.int64)
        self.fault[healthy] = health[healthy, 1].astype(np.uint8)
        self.step += steps

    def _keep_samples(self, rows: slice, states: Array, steps: int) -> None:
        every = self.plan.every
        new, first = steps // every, self.step // every + 1
        self.kept_q[rows, first : first + new] = states[:, :new, : self.nq]
        self.kept_qd[rows, first : first + new] = states[:, :new, self.nq :]

    def _keep(self, step: int) -> None:
        """Keep the present state, if the step is one of those to keep."""
        k = int(np.searchsorted(self.at, step))
        if k < len(self.at) and self.at[k] == step:
            self.kept_q[:, k], self.kept_qd[:, k] = self.q, self.qd

    def _same(self, x: float) -> Array:
        return np.broadcast_to(np.asarray(x, self.setup.dtype), (self.rows, 1))

    def _law_inputs(self, steps: int) -> list[Array]:
        """The numbers of the law as rows; of numbers per step, those of the steps to come."""
        if self.setup.controller is not None:
            return [self._asked(self.setup.controller)]
        return [self._rows_of(x) for x in self.setup.law.inputs]

    def _rows_of(self, x: Numbered) -> Array:
        setup, dtype = self.setup, self.setup.dtype
        if not x.per_step:
            values = x.values.astype(dtype, copy=False)
            wide = np.broadcast_to(values, (*setup.leading, values.shape[-1]))
            return wide.reshape(self.rows, values.shape[-1])
        room = self.plan.steps(setup.robot.tree)
        part = x.values[..., self.step : self.step + room, :].astype(dtype, copy=False)
        missing = room - part.shape[-2]
        if missing:
            last = np.repeat(part[..., -1:, :], missing, axis=-2)
            part = np.concatenate([part, last], axis=-2)
        wide = np.broadcast_to(part, (*setup.leading, *part.shape[-2:]))
        return wide.reshape(self.rows, -1)

    def _asked(self, controller: Controller) -> Array:
        """The torques of a controller of Python, for the whole batch; kept where a state is."""
        setup, nv = self.setup, self.setup.robot.nv
        shaped = [x.reshape(*setup.leading, x.shape[-1]).copy() for x in (self.q, self.qd)]
        tau = controller(self.step * setup.dt, *shaped)
        rows = _torques(tau, setup.leading, nv, setup.dtype).reshape(self.rows, nv)
        k = int(np.searchsorted(self.at, self.step))
        if k < len(self.at) and self.at[k] == self.step:
            self.kept_tau[:, k] = rows
        if self.step == setup.steps - 1:
            self.kept_tau[:, -1] = rows
        return rows

    def trajectory(self, interrupted: bool) -> Trajectory:
        """What was computed, with NaN in rows from where they failed."""
        setup, leading = self.setup, self.setup.leading
        shown = self.at if not interrupted else self.at[self.at <= self.step]
        T = len(shown)
        failed = self.fault > 0
        first_bad = np.where(failed, self.done + 1, -1)
        for kept in (self.kept_q, self.kept_qd, self.kept_tau):
            for row in np.flatnonzero(failed) if kept.size else ():
                kept[row, self.at >= first_bad[row]] = np.nan

        def shaped(x: Array) -> Array:
            return x[:, :T].reshape(*leading, T, x.shape[-1])

        return Trajectory(
            robot=setup.robot,
            t=shown * setup.dt,
            q=shaped(self.kept_q),
            qd=shaped(self.kept_qd),
            status=self._status().reshape(leading),
            failed_at=first_bad.reshape(leading),
            steps=shown,
            dt=setup.dt,
            integrator=setup.integrator,
            controller=setup.controller or setup.law,
            f_ext={name: x.reshape(*leading, 6) for name, x in setup.f_ext},
            held_tau=shaped(self.kept_tau) if setup.controller else None,
            interrupted=interrupted,
            held=setup.hold and (setup.controller is not None or setup.law.depends_on_state),
        )

    def _status(self) -> NDArray[np.uint8]:
        """What went wrong with each row, as bits of `Status`."""
        setup = self.setup
        bits = self.fault.copy()
        given = [setup.q, setup.qd, *(x for _, x in setup.f_ext)]
        lost = np.zeros(self.rows, bool)
        for x in given:
            lost |= ~np.isfinite(x).all(-1)
        for numbers in setup.law.inputs if setup.controller is None else ():
            axes = (-2, -1) if numbers.per_step else -1
            own = ~np.isfinite(numbers.values).all(axis=axes)
            lost |= np.broadcast_to(own, setup.leading).reshape(self.rows)
        bits[lost & (bits > 0)] = int(Status.NOT_FINITE)
        if setup.robot.nq == setup.robot.nv:  # no quaternions
            return bits
        with np.errstate(invalid="ignore"):  # rows that are not finite
            off = np.abs(setup.robot.normalize(setup.q) - setup.q).max(-1) > UNIT_TOLERANCE
        return bits | np.where(off & ~lost, int(Status.NOT_UNIT), 0).astype(np.uint8)


def _torques(tau: Any, leading: tuple[int, ...], nv: int, dtype: str) -> Array:
    """What a controller returned, as an array (..., nv) of the batch."""
    expected = (*leading, nv)
    try:
        array = np.asarray(tau)
        if array.dtype.kind not in "iuf":
            raise TypeError
        return np.broadcast_to(array.astype(dtype, copy=False), expected)
    except (TypeError, ValueError):
        shape = getattr(tau, "shape", None)
        what = f"an array of shape {shape}" if shape is not None else f"{type(tau).__name__}"
        raise ValueError(
            f"simulate: the controller returned {what}; expected torques of shape {expected}"
        ) from None
