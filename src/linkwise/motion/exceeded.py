"""Limits of joints that a motion exceeded and nothing enforced, for one warning per simulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.engine.calls import warn_of_pulls
from linkwise.motion.limits import limited_positions
from linkwise.motion.setup import Setup
from linkwise.motion.trajectory import Trajectory, names_of
from linkwise.robot import Robot
from linkwise.trace.status import Status

Array = NDArray[Any]
CLOSE = 1e-6  # by how much of 1, or of a limit above 1, a number may exceed it
MOST_TORQUES = 1 << 16  # states in which a controller's torques are computed for the check
ADVICE = {  # nothing enforces limits of velocities
    "position": "limits='stop' or 'event' for positions",
    "effort": "lw.control.saturated(controller) for efforts",
}


class Excess(NamedTuple):
    """The largest excess of one kind of limit: of which joint, and which rows exceed any."""

    kind: str
    joint: str
    value: float
    limit: float
    rows: NDArray[np.bool_]

    def __str__(self) -> str:
        """Say by how much the limit is exceeded."""
        beyond = abs(self.value - self.limit)
        number = f"{self.value:.4g}, {beyond:.2g} beyond its limit {self.limit:.4g}"
        return f"{self.kind} of {self.joint!r} {number}"


def exceeded(setup: Setup, traj: Trajectory) -> str | None:
    """The text of the warning; None if no limit is exceeded that nothing enforces.

    The states that were kept are looked at; torques in 65,536 of them at most, or in one per row.
    """
    if setup.limits.ignore or not len(setup.q) or _surely_within(setup, traj):
        return None
    worst = [x for x in _excesses(setup, traj) if x is not None]
    if not worst:
        return None
    rows = np.any([x.rows for x in worst], axis=0)
    where = ""
    if setup.leading:
        first = tuple(int(k) for k in np.unravel_index(int(rows.argmax()), setup.leading))
        row = first[0] if len(first) == 1 else first
        where = f" in {int(rows.sum()):,} of {rows.size:,} rows, the first is row {row}"
    ways = [ADVICE[x.kind] for x in worst if x.kind in ADVICE]
    if len(ways) < len(worst):
        ways.append("a slower motion for velocities")
    ways.append("limits='ignore' for no warning")
    return (
        f"simulate: robot {setup.robot.name!r} exceeds limits that nothing enforces{where}: "
        f"{'; '.join(map(str, worst))} (SI units); expected {', or '.join(ways)}"
    )


class Bounds(NamedTuple):
    """Limits of a robot with their tolerance, and whether any joint has an effort limit."""

    lower: Array
    upper: Array
    velocity: Array
    effort: bool


def _bounds(robot: Robot) -> Bounds:
    limits: Bounds | None = robot._calls.functions.get("limits")
    if limits is None:
        lower, upper = limited_positions(robot)
        bounds = np.maximum(np.abs(lower), np.abs(upper))
        off = CLOSE * np.maximum(np.where(np.isfinite(bounds), bounds, 1.0), 1.0)
        most = robot.velocity_limits
        wide = most + CLOSE * np.maximum(np.where(np.isfinite(most), most, 1.0), 1.0)
        effort = bool(np.isfinite(robot.effort_limits).any())
        limits = robot._calls.functions["limits"] = Bounds(lower - off, upper + off, wide, effort)
    return limits


def _surely_within(setup: Setup, traj: Trajectory) -> bool:
    """Whether a look at all states at once is enough; not if torques may matter, or any is NaN."""
    bounds = _bounds(setup.robot)
    if bounds.effort and (setup.controller is not None or setup.law.terms):
        return False
    fast = np.abs(traj.qd) <= bounds.velocity
    free = setup.limits.event or setup.limits.stop
    return bool(
        fast.all() and (free or ((traj.q >= bounds.lower) & (traj.q <= bounds.upper)).all())
    )


def _excesses(setup: Setup, traj: Trajectory) -> Iterator[Excess | None]:
    robot, rows, times = setup.robot, len(setup.q), len(traj.t)
    failed = (np.asarray(traj.failed_at) >= 0) & (np.asarray(traj.status) & int(Status.LIMIT) == 0)
    failed = failed.reshape(rows)  # these have a warning of their failure
    if not (setup.limits.event or setup.limits.stop):
        bounds = limited_positions(robot)
        yield _worst(robot, "position", "q", traj.q.reshape(rows, times, robot.nq), *bounds, failed)
    most = robot.velocity_limits
    yield _worst(
        robot, "velocity", "v", traj.qd.reshape(rows, times, robot.nv), -most, most, failed
    )
    most = robot.effort_limits
    if np.isfinite(most).any():
        tau = _torques(setup, traj)
        if tau is not None:
            tau = tau.reshape(rows, tau.shape[-2], robot.nv)
            yield _worst(robot, "effort", "v", tau, -most, most, failed)


def _torques(setup: Setup, traj: Trajectory) -> Array | None:
    """The torques of the controller in some of the states."""
    if setup.controller is not None:
        return traj.tau
    if not setup.law.terms:
        return None
    stride = max(1, -(-len(setup.q) * len(traj.t) // MOST_TORQUES))
    at = np.minimum(traj.steps, max(int(traj.steps[-1]) - 1, 0))[::stride]
    q, qd = traj.q[..., ::stride, :], traj.qd[..., ::stride, :]
    tau: Array = setup.law(None, q, qd, step=at)
    return np.broadcast_to(tau, qd.shape)


def warn_of_contacts(setup: Setup, traj: Trajectory) -> None:
    """Warn if contacts that can only push pull in states of the motion."""
    robot = setup.robot
    if not robot.tree.unilateral or not len(setup.q):
        return
    stride = max(1, -(-len(setup.q) * len(traj.t) // MOST_TORQUES))
    q, qd = traj.q[..., ::stride, :], traj.qd[..., ::stride, :]
    tau = _torques(setup, traj)
    if tau is None:
        tau = np.zeros_like(qd)
    elif setup.controller is not None:
        tau = tau[..., ::stride, :]
    times = (slice(None),) * len(setup.leading) + (None,)
    wrenches = {name: x[times] for name, x in traj.f_ext.items()}
    numbers: dict[str, Any] = {name: x[times] for name, x in traj.parameters.items()}
    _, status = robot.constraint_forces(q, qd, tau, f_ext=wrenches, status=True, **numbers)
    warn_of_pulls("simulate", (np.asarray(status) & int(Status.PULLING)).max(-1))


def _worst(
    robot: Robot, kind: str, of: str, x: Array, lower: Array, upper: Array, failed: Array
) -> Excess | None:
    """Of numbers (rows, T, n) the one farthest beyond its limit, of rows that did not fail."""
    some = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    if not len(some):
        return None
    with np.errstate(invalid="ignore"):
        high, low = (f.reduce(x, axis=1)[:, some] for f in (np.fmax, np.fmin))
        beyond = np.nan_to_num(np.maximum(high - upper[some], lower[some] - low), nan=-1.0)
    beyond[failed] = -1.0
    bounds = np.maximum(np.abs(lower), np.abs(upper))[some]
    sizes = np.maximum(np.where(np.isfinite(bounds), bounds, 1.0), 1.0)
    rows = (beyond > CLOSE * sizes).any(-1)
    if not rows.any():
        return None
    row, k = np.unravel_index(int((beyond / sizes).argmax()), beyond.shape)
    j = int(some[k])
    above = high[row, k] - upper[j] >= lower[j] - low[row, k]
    value, limit = (high[row, k], upper[j]) if above else (low[row, k], lower[j])
    return Excess(kind, names_of(robot, of)[j], float(value), float(limit), rows)
