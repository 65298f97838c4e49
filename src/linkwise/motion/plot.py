"""A figure of a trajectory, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import printable
from linkwise.motion.limits import limited_positions

if TYPE_CHECKING:
    from linkwise.motion.trajectory import Trajectory

MOST = 12  # lines of one picture, each of which has its name in the legend
# colours of Okabe and Ito, which colour-blind people tell apart, and dashes for those who see grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9")
DASHES = ("-", "--", "-.", ":")


def plot(traj: Trajectory, frame: str | None, row: Any) -> Any:
    """Configuration, rates, torques and energy over time; the path of a frame where asked for."""
    shown = _one(traj, row)
    figure = figure_of("Trajectory.plot", (10, 7.5 if frame is None else 10))
    axes = figure.subplots(2 if frame is None else 3, 2, sharex=frame is None)
    title = f"{printable(shown.name)}, {shown.integrator}, dt = {shown.dt:g} s"
    figure.suptitle(title + _which(traj, row))
    named = _names(shown)
    pictures = [
        (axes[0, 0], "q", shown.q, named[0]),
        (axes[0, 1], "qd, 1/s", shown.qd, named[1]),
        (axes[1, 0], "tau", shown.tau, named[1]),
    ]
    for (at, label, values, names), limits in zip(pictures, _limits(shown), strict=True):
        _lines(at, shown.t, label, values, names, limits)
    _energy(axes[1, 1], shown)
    if frame is not None:
        _path(axes[2, 0], axes[2, 1], shown, frame)
    return figure


def figure_of(what: str, size: tuple[float, float]) -> Any:
    """An empty figure; raises ImportError with the command that installs matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError(f"{what} needs matplotlib: pip install 'linkwise[plot]'") from None
    from linkwise.figures import Figure

    return Figure(figsize=size, layout="constrained")


def _which(traj: Trajectory, row: Any) -> str:
    """Which row of a batch is drawn."""
    lead = traj.q.shape[:-2]
    if not lead:
        return ""
    index = ", ".join(str(k) for k in np.atleast_1d((0,) * len(lead) if row is None else row))
    return f", row {index} of {'×'.join(map(str, lead))}"


def _one(traj: Trajectory, row: Any) -> Trajectory:
    """One row of a batch: the first, unless another is asked for."""
    lead = traj.q.ndim - 2
    if row is None:
        row = (0,) * lead
    if len(traj.t) < 2:
        raise ValueError(
            f"Trajectory.plot: {len(traj.t)} time(s) were kept; expected at least two (every=...)"
        )
    return traj.at(*np.atleast_1d(row)) if lead else traj


def _names(traj: Trajectory) -> tuple[list[str], list[str]]:
    from linkwise.motion.trajectory import names_of

    if traj.robot is None:
        return [f"q{k}" for k in range(traj.q.shape[-1])], [
            f"{k}" for k in range(traj.qd.shape[-1])
        ]
    return names_of(traj.robot, "q"), names_of(traj.robot, "v")


def _limits(traj: Trajectory) -> list[Any]:
    """Lower and upper limits of q, rates and torques."""
    if traj.robot is None:
        return [None, None, None]
    both = (traj.robot.velocity_limits, traj.robot.effort_limits)
    return [limited_positions(traj.robot), *((-x, x) for x in both)]


def _lines(at: Any, t: Any, label: str, values: Any, names: list[str], limits: Any) -> None:
    """The curves of all joints; of many joints, those of a dozen, and a band that holds all.

    Limits are dotted lines, unless they are farther from a curve than it is high.
    """
    shown = np.arange(len(names))
    if len(names) > MOST:
        shown = np.linspace(0, len(names) - 1, MOST).round().astype(int)
        band = values.min(-1), values.max(-1)
        at.fill_between(t, *band, color="0.85", lw=0, label=f"all {len(names):,}")
        first, second, last = (printable(names[k]) for k in shown[[0, 1, -1]])
        title = f"{MOST} of {len(names):,}: {first}, {second}, … {last}"
        at.set_title(title, fontsize="small")
    for i, k in enumerate(shown):
        at.plot(t, values[:, k], label=printable(names[k]).lstrip("_"), **style(i))
        low, high = np.nanmin(values[:, k]), np.nanmax(values[:, k])
        for limit in () if limits is None else (limits[0][k], limits[1][k]):
            if 2 * low - high <= limit <= 2 * high - low:
                at.axhline(limit, color=style(i)["color"], ls=":", lw=0.8)
    at.set(ylabel=label, xlabel="t, s")
    at.grid(alpha=0.3)
    at.legend(fontsize="x-small", ncols=2)


def style(i: int) -> dict[str, Any]:
    """Colour and dashes of line number i: neighbours differ in both."""
    dashes = DASHES[(i + i // len(COLOURS)) % len(DASHES)]
    return {"color": COLOURS[i % len(COLOURS)], "ls": dashes, "lw": 1.2}


def _energy(at: Any, traj: Trajectory) -> None:
    at.set(ylabel="energy, J", xlabel="t, s")
    at.grid(alpha=0.3)
    if traj.robot is None:
        at.text(0.5, 0.5, "needs the robot", ha="center", transform=at.transAxes)
        return
    for i, (name, values) in enumerate(traj.energy._asdict().items()):
        at.plot(traj.t, values, label=name, **style(i))
    at.legend(fontsize="x-small")


def _path(plan: Any, side: Any, traj: Trajectory, frame: str) -> None:
    x, y, z = traj.path(frame).T
    for at, (a, b), names in ((plan, (x, y), "xy"), (side, (x, z), "xz")):
        at.plot(a, b, lw=1)
        at.plot(a[:1], b[:1], "o", ms=4)
        at.set(xlabel=f"{names[0]}, m", ylabel=f"{names[1]} of {printable(frame)}, m")
        at.set_aspect("equal", "datalim")
        at.grid(alpha=0.3)
