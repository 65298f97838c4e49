"""What a simulation under way keeps: rows of states, how far each came, and what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.motion.setup import Array, Setup
from linkwise.motion.trajectory import Event, Trajectory
from linkwise.trace.status import UNIT_TOLERANCE, Status

# what the last iteration of a step may still change, relative to the rates
CONVERGED = {"float64": 1e-9, "float32": 1e-4}


class Record:
    """The present state of every row, and those that are kept."""

    def __init__(self, setup: Setup) -> None:
        self.setup, robot = setup, setup.robot
        self.rows, self.at, self.step = len(setup.q), setup.sampled, 0
        self.q, self.qd = setup.q.copy(), setup.qd.copy()
        T = len(self.at)
        # side by side, as kernels write them: copied in one piece
        self.kept = np.empty((self.rows, T, robot.nq + robot.nv), setup.dtype)
        asked = (self.rows, robot.nv) if setup.controller else (0, 0)
        self.tau = np.full(asked, np.nan, setup.dtype)  # the last torques of a controller
        self.kept_tau = np.full((asked[0], T, asked[1]), np.nan, setup.dtype)
        self.done = np.zeros(self.rows, np.int64)  # healthy steps of each row
        self.fault = np.zeros(self.rows, np.uint16)
        self.faulty = False  # whether something may have gone wrong in some row
        self.slack = np.zeros(self.rows)  # squares of what iterations left to do
        if setup.limits.event:
            self.event_t = np.full(self.rows, np.nan)
            self.event_dof = np.full(self.rows, -1)
            self.event_q = np.full_like(self.q, np.nan)
            self.event_qd = np.full_like(self.qd, np.nan)
        self.last = self.step, self.q, self.qd  # replaced at once, whenever an interrupt comes
        self._end_beyond_limits()
        self.keep()

    @property
    def kept_q(self) -> Array:
        """Configurations that are kept, (rows, T, nq)."""
        return self.kept[..., : self.setup.robot.nq]

    @property
    def kept_qd(self) -> Array:
        """Rates that are kept, (rows, T, nv)."""
        return self.kept[..., self.setup.robot.nq :]

    def _end_beyond_limits(self) -> None:
        """Rows that begin beyond a limit which ends motions have ended already."""
        limits = self.setup.limits
        if limits.event:
            beyond = limits.beyond(self.q)
            ended = beyond.max(-1) > 0
            self.faulty = True
            self.fault[ended] = int(Status.LIMIT)
            self.event_t[ended] = 0.0
            self.event_dof[ended] = [limits.joints[k].v for k in beyond[ended].argmax(-1)]
            self.event_q[ended], self.event_qd[ended] = self.q[ended], self.qd[ended]

    def reach(self, steps: int) -> None:
        """All rows, in new arrays, have taken some steps."""
        self.step += steps
        self.last = self.step, self.q, self.qd

    def keep(self) -> None:
        """Keep the present state, if its step is one of those to keep."""
        k = self.place(self.step)
        if k is not None:
            self.kept_q[:, k], self.kept_qd[:, k] = self.q, self.qd

    def place(self, step: int) -> int | None:
        """The index of the state of a step among those that are kept."""
        every, last = self.setup.every, len(self.at) - 1
        if step == self.at[last]:
            return last
        if every is None or step % every:
            return None
        return step // every if step // every <= last else None

    def ask(self, time: float, q: Array, qd: Array) -> Array:
        """The torques of a controller of Python for rows of states, (rows, nv)."""
        setup, controller = self.setup, self.setup.controller
        assert controller is not None
        if setup.leading:
            shaped = [x.reshape(*setup.leading, x.shape[-1]).copy() for x in (q, qd)]
        else:
            shaped = [x[0].copy() for x in (q, qd)]
        tau = controller(time, *shaped)
        if type(tau) is not np.ndarray or tau.dtype != q.dtype or tau.shape != shaped[1].shape:
            tau = torques_of(tau, setup)
        return np.ascontiguousarray(tau.reshape(qd.shape))

    def keep_torques(self, tau: Array) -> None:
        """Keep what acts from the present step on."""
        k = self.place(self.step)
        if k is not None:
            self.kept_tau[:, k] = tau
        self.tau[...] = tau

    def count(self, healthy: Array, fault: Array, slack: Array) -> None:
        """Add the healthy steps of a run, and what went wrong in it, to rows that were well."""
        if not (self.faulty or fault.any()):
            self.done += healthy.astype(np.int64)
            if slack.any():
                self.slack = np.fmax(self.slack, slack)
            return
        self.faulty = True
        well = self.fault == 0
        self.done[well] += healthy[well].astype(np.int64)
        self.fault[well] = fault[well].astype(np.uint16)
        self.slack = np.fmax(self.slack, slack)

    def _end_here(self) -> None:
        """Drop the places of steps that not all rows have reached; the last is the present one."""
        self.step, self.q, self.qd = self.last
        last = int(np.searchsorted(self.at, self.step))
        self.at = np.append(self.at[:last], self.step)
        self.kept, self.kept_tau = self.kept[:, : last + 1], self.kept_tau[:, : last + 1]
        self.keep()

    def trajectory(self, interrupted: bool) -> Trajectory:
        """What was computed, with NaN in rows from where they failed."""
        setup, leading = self.setup, self.setup.leading
        if interrupted:
            self._end_here()
        self.kept_tau[:, -1] = self.tau  # a controller is not asked in the last state
        T = len(self.at)
        failed = self.fault > 0
        missing = np.where(failed, self.done + 1, -1)
        for kept in (self.kept_q, self.kept_qd, self.kept_tau):
            for row in np.flatnonzero(failed) if kept.size else ():
                kept[row, self.at >= missing[row]] = np.nan

        def shaped(x: Array) -> Array:
            return x.reshape(*leading, T, x.shape[-1])

        return Trajectory(
            robot=setup.robot,
            t=self.at * setup.dt,
            q=shaped(self.kept_q),
            qd=shaped(self.kept_qd),
            status=self._status().reshape(leading),
            failed_at=missing.reshape(leading),
            steps=self.at,
            dt=setup.dt,
            integrator=setup.integrator,
            controller=setup.controller or setup.law,
            f_ext={name: x.reshape(*leading, 6) for name, x in setup.f_ext},
            held_tau=shaped(self.kept_tau) if setup.controller else None,
            interrupted=interrupted,
            held=self._held(),
            events=self._events() if setup.limits.event else None,
            limits=setup.limits if setup.limits.joints else None,
            parameters={
                each.name: x.reshape(*leading, *each.shape(setup.robot.tree))
                for each, x in setup.parameters
            },
        )

    def _held(self) -> bool:
        """Whether torques change from step to step only."""
        setup = self.setup
        if setup.controller is not None or setup.law.depends_on_state:
            return setup.hold
        return setup.law.steps is not None

    def _events(self) -> Event:
        leading, robot = self.setup.leading, self.setup.robot
        q = self.event_q.reshape(*leading, robot.nq)
        qd = self.event_qd.reshape(*leading, robot.nv)
        return Event(self.event_t.reshape(leading), self.event_dof.reshape(leading), q, qd)

    def _status(self) -> NDArray[np.uint16]:
        """What went wrong with each row, as bits of `Status`."""
        setup, bits = self.setup, self.fault.copy()
        lost = np.zeros(self.rows, bool)
        constants = [x for _, x in setup.parameters]
        for x in (setup.q, setup.qd, *(x for _, x in setup.f_ext), *constants):
            lost |= ~np.isfinite(x).all(-1)
        for numbers in setup.law.inputs if setup.controller is None else ():
            axes = (-2, -1) if numbers.per_step else -1
            own = ~np.isfinite(numbers.values).all(axis=axes)
            lost |= np.broadcast_to(own, setup.leading).reshape(self.rows)
        bits[lost & (bits > 0)] = int(Status.NOT_FINITE)
        loose = (self.slack > CONVERGED[setup.dtype] ** 2) & ~lost
        bits |= np.where(loose, int(Status.NOT_CONVERGED), 0).astype(np.uint16)
        if setup.robot.nq == setup.robot.nv:  # no quaternions
            return bits
        with np.errstate(invalid="ignore"):  # rows that are not finite
            off = np.abs(setup.robot.normalize(setup.q) - setup.q).max(-1) > UNIT_TOLERANCE
        return bits | np.where(off & ~lost, int(Status.NOT_UNIT), 0).astype(np.uint16)


def torques_of(tau: Any, setup: Setup) -> Array:
    """What a controller returned, as an array (..., nv) of the batch."""
    expected = (*setup.leading, setup.robot.nv)
    shape = getattr(tau, "shape", None)
    what = f"an array of shape {shape}" if shape is not None else f"{type(tau).__name__}"
    try:
        array = np.asarray(tau)
        if array.dtype.kind not in "iuf":
            what += "" if array.dtype.kind == "O" else f" of type {array.dtype}"
            raise TypeError
        return np.broadcast_to(array.astype(setup.dtype, copy=False), expected)
    except (TypeError, ValueError):
        raise ValueError(
            f"simulate: the controller returned {what}; expected torques of shape {expected}, "
            "real numbers"
        ) from None
