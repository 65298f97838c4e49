"""Pictures of what a robot can do, by matplotlib: its workspace, and maps over two of its joints.

Colours are of one hue order from dark to light, so that they are told apart in grey and by
colour-blind people; contour lines carry their numbers. Each function returns a figure:
``lw.plots.workspace(robot).savefig("workspace.png")``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import printable
from linkwise.model.values import unknown
from linkwise.motion.plot import figure_of
from linkwise.robot import Robot
from linkwise.view.arguments import home
from linkwise.view.scene import SHIFT, Slider, configuration, sliders_of, tip_of, values_of

Array = NDArray[Any]
COLOURS = "cividis"
PROBES = 25  # values of each joint that are tried to find the two that matter most


def workspace(
    robot: Robot, frame: str | None = None, *, samples: int = 100_000, seed: int = 0
) -> Any:
    """Draw where a frame can be: how often random configurations bring it to each place.

    ``samples`` configurations within the joint limits, seen from above and from the side, in m, in
    base axes; ``frame`` is the tip unless given. The lighter a place, the more of them lead there.
    Returns a figure of matplotlib: ``lw.plots.workspace(robot).savefig("workspace.png")``.
    """
    name = _frame("workspace", robot, frame)
    _whole("workspace: samples", samples, 100)
    points = robot.forward_kinematics(robot.random_q(seed=seed, size=samples), name)[:, :3, 3]
    figure = figure_of("plots.workspace", (10, 4.8))
    axes = figure.subplots(1, 2)
    bins = int(np.clip(np.sqrt(samples) / 4, 20, 160))
    for at, (a, b) in zip(axes, ((0, 1), (0, 2)), strict=True):
        x, y = points[:, a], points[:, b]
        counts, edges_x, edges_y = np.histogram2d(x, y, bins, _square(x, y))
        shown = np.ma.masked_equal(counts.T, 0)  # no configuration leads there: white
        most = np.percentile(counts[counts > 0], 99)  # a few cells hold far more than others
        mesh = at.pcolormesh(edges_x, edges_y, shown, cmap=COLOURS, vmax=most, rasterized=True)
        figure.colorbar(mesh, ax=at, label="configurations in a cell", extend="max")
        at.plot(0, 0, "+", color="k", ms=10)
        at.set(xlabel=f"{'xyz'[a]}, m", ylabel=f"{'xyz'[b]}, m", aspect="equal")
        at.grid(alpha=0.3)
    reach = float(np.linalg.norm(points, axis=1).max())
    figure.suptitle(
        f"workspace of {printable(name)}, {printable(robot.name)}: up to {reach:.3g} m from the "
        "base (+)"
    )
    return figure


def inertia(
    robot: Robot,
    frame: str | None = None,
    joints: Sequence[str] | None = None,
    *,
    q: Any = None,
    points: int = 121,
) -> Any:
    """Draw how heavy a frame feels: its effective mass in kg over the ranges of two joints.

    The mass that responds to a force as the frame does, on average over all directions: ``3 / tr(J
    M⁻¹ Jᵀ)``, J of the frame's position. ``joints`` names two joints of one degree of freedom,
    those that change it most unless given; the others stay as in ``q`` (nq), by default at rest.
    Returns a figure of matplotlib.
    """
    name = _frame("inertia", robot, frame)

    def mass(states: Array) -> Array:
        yielding = robot.operational_inertia_inverse(states, name)[..., 3:, 3:]
        return np.asarray(3.0 / np.trace(yielding, axis1=-2, axis2=-1))

    title = f"effective mass of {printable(name)}, kg"
    return _map("inertia", robot, mass, joints, q, points, title)


def singularities(
    robot: Robot,
    frame: str | None = None,
    joints: Sequence[str] | None = None,
    *,
    q: Any = None,
    points: int = 121,
) -> Any:
    """Draw a frame's manipulability over the ranges of two joints: where poses are singular.

    `Robot.manipulability` divided by the largest on the map: dark places are singular. Arguments
    and result as for `inertia`.
    """
    name = _frame("singularities", robot, frame)

    def measure(states: Array) -> Array:
        return np.asarray(robot.manipulability(states, name))

    title = f"manipulability of {printable(name)}, by its largest"
    return _map("singularities", robot, measure, joints, q, points, title, relative=True)


# --- maps ------------------------------------------------------------------------------------


def _map(
    what: str,
    robot: Robot,
    value: Callable[[Array], Array],
    joints: Sequence[str] | None,
    q: Any,
    points: int,
    title: str,
    relative: bool = False,
) -> Any:
    """A map of a number over two joints."""
    _whole(f"{what}: points", points, 2)
    start = home(robot) if q is None else np.asarray(q, float)
    if start.shape != (robot.nq,) or not np.isfinite(start).all():
        raise ValueError(f"{what}: q has shape {start.shape}; expected ({robot.nq},), all finite")
    sliders = sliders_of(robot.tree, 1.0)
    first, second = _two(what, robot, value, sliders, joints, start)
    x, y = (_range(sliders[k], points) for k in (first, second))
    states = _states(sliders, start, robot.nq, {first: x[:, None], second: y[None, :]})
    found = value(states)
    found = found / np.nanmax(found) if relative and np.nanmax(found) > 0 else found
    figure = figure_of(f"plots.{what}", (6.4, 5.2))
    at = figure.subplots()
    shown_x, shown_y = (_shown(sliders[k], v) for k, v in ((first, x), (second, y)))
    mesh = at.pcolormesh(
        shown_x, shown_y, np.ma.masked_invalid(found.T), cmap=COLOURS, shading="gouraud",
        rasterized=True,
    )  # fmt: skip
    if np.ptp(found[np.isfinite(found)], axis=None) > 1e-9 * np.abs(np.nanmax(found)):
        _lines(at, shown_x, shown_y, found.T)
    at.set(xlabel=_label(sliders[first]), ylabel=_label(sliders[second]))
    figure.colorbar(mesh, label=title)
    figure.suptitle(printable(robot.name))
    return figure


def _lines(at: Any, x: Array, y: Array, found: Array) -> None:
    """Contour lines with their numbers, white with a dark edge: legible on every colour."""
    from matplotlib.patheffects import withStroke

    lines = at.contour(x, y, found, 6, colors="w", linewidths=0.9)
    lines.set(path_effects=[withStroke(linewidth=1.9, foreground="0.15")])
    for label in at.clabel(lines, fontsize="small"):
        label.set(path_effects=[withStroke(linewidth=2.2, foreground="0.15")])


def _two(
    what: str,
    robot: Robot,
    value: Callable[[Array], Array],
    sliders: Sequence[Slider],
    joints: Sequence[str] | None,
    start: Array,
) -> tuple[int, int]:
    """Numbers of the sliders of two joints: those that are named, or that change a value most."""
    names = {slider.name: k for k, slider in enumerate(sliders) if slider.dof >= 0}
    if len(names) < 2:
        raise ValueError(
            f"{what}: robot {robot.name!r} has {len(names)} joint(s) with a number of their own; "
            "expected at least two, which a map is drawn over"
        )
    if joints is not None:
        if isinstance(joints, str) or len(joints) != 2 or joints[0] == joints[1]:
            raise ValueError(f"{what}: joints are {joints!r}; expected the names of two joints")
        for name in joints:
            if name not in names:
                raise unknown("joint", name, robot.name, names)
        return names[joints[0]], names[joints[1]]
    spread = {}
    for k in names.values():
        states = _states(sliders, start, robot.nq, {k: _range(sliders[k], PROBES)})
        found = value(states)
        spread[k] = float(np.nanmax(found) - np.nanmin(found))
    first, second = sorted(sorted(spread, key=lambda k: -spread[k])[:2])
    return first, second


def _states(sliders: Sequence[Slider], start: Array, nq: int, moved: dict[int, Array]) -> Array:
    """Configurations (..., nq) with some sliders at other values, which broadcast."""
    shape = np.broadcast_shapes(*(x.shape for x in moved.values()))
    q = np.broadcast_to(configuration(sliders, values_of(sliders, start), nq), (*shape, nq)).copy()
    for k, x in moved.items():
        q[..., sliders[k].q] = x
    return q


def _range(slider: Slider, points: int) -> Array:
    return np.linspace(slider.lower, slider.upper, points)


def _shown(slider: Slider, x: Array) -> Array:
    return x if slider.unit == SHIFT else np.degrees(x)


def _label(slider: Slider) -> str:
    return f"{printable(slider.name)}, {'m' if slider.unit == SHIFT else 'degrees'}"


def _frame(what: str, robot: Robot, frame: str | None) -> str:
    if not isinstance(robot, Robot):
        raise TypeError(f"{what}: robot is a {type(robot).__name__}; expected a Robot")
    if frame is not None and frame not in robot.tree.frames:
        raise unknown("frame", frame, robot.name, robot.tree.frames)
    return tip_of(robot) if frame is None else frame


def _whole(what: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{what} is {value!r}; expected a whole number from {least}")


def _square(x: Array, y: Array) -> Any:
    """Ranges of both axes, of the same length, so that cells are square."""
    half = max(np.ptp(x), np.ptp(y), 1e-6) * 0.52
    return [[(v.max() + v.min()) / 2 - half, (v.max() + v.min()) / 2 + half] for v in (x, y)]


__all__ = ["inertia", "singularities", "workspace"]
