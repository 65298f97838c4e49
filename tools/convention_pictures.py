"""Pictures of docs/conventions.md: frames and velocities, and the manifold of configurations."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
DARK, BLUE, ORANGE, GREY = "#222222", "#0072b2", "#d55e00", "#888888"


def arrow(ax: plt.Axes, start: np.ndarray, end: np.ndarray, colour: str, width: float = 2) -> None:
    """Draw an arrow."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": width}
    ax.annotate("", end, start, arrowprops=style, annotation_clip=False)


def axes_at(ax: plt.Axes, origin: np.ndarray, angle: float, name: str, size: float = 0.55) -> None:
    """Draw the axes of a frame."""
    x = size * np.array([np.cos(angle), np.sin(angle)])
    y = np.array([-x[1], x[0]])
    for way, word in ((x, "x"), (y, "y")):
        arrow(ax, origin, origin + way, DARK)
        ax.text(*(origin + 1.12 * way), word, ha="center", va="center", color=DARK)
    ax.text(*(origin - 0.45 * (x + y)), name, ha="center", va="center", weight="bold")


def frames() -> None:
    """A frame's pose and velocity."""
    fig, ax = plt.subplots(figsize=(6.4, 3.0))
    base, elbow, link = np.array([0.0, 0.0]), np.array([1.6, 1.2]), np.array([3.6, 0.9])
    for a, b in ((base, elbow), (elbow, link)):
        ax.plot(*zip(a, b, strict=True), color="#cccccc", lw=14, solid_capstyle="round", zorder=0)
    axes_at(ax, base, 0.0, "base")
    axes_at(ax, link, -0.5, "frame")
    arrow(ax, link, link + np.array([0.3, 1.0]), ORANGE, 3)
    ax.text(
        *(link + np.array([0.38, 1.05])),
        "linear velocity of the\nframe's origin, in base axes",
        color=ORANGE,
    )
    turn = np.linspace(0.6, 2.6, 40)
    circle = link + 0.75 * np.stack([np.cos(turn), np.sin(turn)], -1)
    ax.plot(*circle.T, color=BLUE, lw=2)
    arrow(ax, circle[-2], circle[-1], BLUE)
    ax.text(2.75, 1.75, "angular velocity", color=BLUE, ha="right")
    ax.annotate("", link - np.array([0.12, 0.06]), np.array([0.15, 0.02]),
                arrowprops={"arrowstyle": "-|>", "color": GREY, "ls": "--"})  # fmt: skip
    ax.text(1.9, 0.2, "pose: $x_{base} = T\\, x_{frame}$", color=GREY)
    save(fig, ax, "convention_frames")


def tangent() -> None:
    """Ways along the manifold."""
    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    turn = np.linspace(0.15 * np.pi, 0.85 * np.pi, 200)
    ax.plot(2 * np.cos(turn), 2 * np.sin(turn), color="#cccccc", lw=6, zorder=0)
    a, b = 0.66 * np.pi, 0.36 * np.pi
    points = [2 * np.array([np.cos(x), np.sin(x)]) for x in (a, b)]
    way = np.array([np.sin(a), -np.cos(a)])
    arrow(ax, points[0], points[0] + 1.4 * way, ORANGE, 3)
    ax.text(*(points[0] + 1.5 * way), " qd: a rate in the tangent space (nv numbers)", color=ORANGE,
            va="center")  # fmt: skip
    arc = np.linspace(a - 0.03, b + 0.04, 60)
    ax.plot(1.9 * np.cos(arc), 1.9 * np.sin(arc), color=BLUE, lw=2)
    ends = [1.9 * np.array([np.cos(x), np.sin(x)]) for x in arc[-2:]]
    arrow(ax, *ends, BLUE)
    for point, name in zip(points, ("q0", "q1"), strict=True):
        ax.plot(*point, "o", color=DARK, ms=8)
        ax.text(*(1.12 * point), name, ha="center", va="center", weight="bold")
    ax.text(
        0.1, 1.35, "q1 = integrate(q0, qd, dt)\nqd dt = difference(q0, q1)", color=BLUE, ha="center"
    )
    ax.text(-1.5, 0.75, "configurations: quaternions\nof unit length (nq numbers)", color=GREY)
    save(fig, ax, "convention_tangent")


def save(fig: plt.Figure, ax: plt.Axes, name: str) -> None:
    """Write a picture."""
    ax.set_aspect("equal")
    ax.axis("off")
    fig.savefig(PICTURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(fig)


if __name__ == "__main__":
    mpl.rcParams |= {"svg.hashsalt": "linkwise", "font.size": 10}
    frames()
    tangent()
