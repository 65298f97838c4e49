"""The picture of docs/derivatives.md: what a derivative by a configuration is along.

python tools/tangent_picture.py    docs/pictures/tangent_space.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from pages import DOCS

matplotlib.use("svg")
from matplotlib import pyplot as plt

INK, PALE, TURN, SHIFT, MOVED = "#222222", "#eef2f6", "#c2571a", "#1f6fb2", "#2a7f3f"
plt.rcParams.update(
    {"svg.hashsalt": "linkwise", "svg.fonttype": "none", "font.size": 10, "text.color": INK}
)
VIEW = np.array([[-0.5, 0.86, 0.0], [-0.3, -0.18, 0.93]])  # x, y, z of space on the sheet


def flat(points: Any) -> Any:
    """Points of space (..., 3) on the sheet."""
    return np.asarray(points, float) @ VIEW.T


def arrow(axes: Any, a: Any, b: Any, colour: str, **more: Any) -> None:
    """From one point of space to another."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "shrinkA": 0, "shrinkB": 0} | more
    axes.annotate("", flat(b), flat(a), arrowprops=style)


def label(axes: Any, at: Any, text: str, colour: str = INK, **more: Any) -> None:
    """Words at a point of space."""
    axes.text(*flat(at), text, color=colour, **({"ha": "center", "va": "center"} | more))


def manifold(axes: Any) -> None:
    """A sphere, which stands for the unit quaternions, its tangent plane, and a motion on it."""
    angle = np.linspace(0, 2 * np.pi, 100)
    around = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    axes.add_patch(plt.Circle((0, 0), 1.0, facecolor=PALE, edgecolor=INK, lw=1.1))
    for height in (-0.5, 0.0, 0.5):
        ring = around * np.sqrt(1 - height**2) + [0, 0, height]
        seen = ring @ np.cross(VIEW[0], VIEW[1]) > 0
        axes.plot(*flat(np.where(seen[:, None], ring, np.nan)).T, color="0.75", lw=0.8)
    q = np.array([0.45, 0.3, 0.0])
    q[2] = np.sqrt(1 - q @ q)
    first = np.cross([-0.75, 0.45, 0.5], q)  # towards who looks on, so that the way is seen
    first /= np.linalg.norm(first)
    second = np.cross(first, q)
    corners = [q + 0.58 * (a * first + b * second) for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    axes.fill(*flat(corners).T, facecolor="white", edgecolor=INK, lw=1.0, alpha=0.8)
    arrow(axes, q, q + 0.55 * first, TURN)
    arrow(axes, q, q + 0.5 * second, TURN)
    label(axes, q + 0.47 * first + 0.16 * second, "$e_j$", TURN)
    label(axes, q + 0.5 * second - 0.14 * first, "$e_k$", TURN)
    t = np.linspace(0, 1.25, 40)[:, None]
    axes.plot(*flat(np.cos(t) * q + np.sin(t) * first).T, color=MOVED, lw=2)
    axes.plot(*flat(q), "o", color=INK, ms=5)
    label(axes, q - 0.14 * first - 0.08 * second, "q")
    axes.text(0.0, -1.22, "integrate(q, $e_j$, t)", color=MOVED, ha="center")
    axes.text(0.0, -1.45, "∂f/∂q, column j:  d/dt f(integrate(q, $e_j$, t)) at t = 0", ha="center")
    axes.text(0.0, 1.5, "configurations q (nq numbers),\nrates in the tangent plane (nv numbers)",
              ha="center", va="center")  # fmt: skip


def link(axes: Any) -> None:
    """A link of a free joint: three turns about its own axes, three shifts along them."""
    c, s = np.cos(-0.25), np.sin(-0.25)
    own = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    own = own @ np.array([[1, 0, 0], [0, 0.99, 0.1], [0, -0.1, 0.99]])
    half = np.array([0.34, 0.26, 0.2])
    faces = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    for a, b, normal in faces:
        middle = half[normal] * own[normal]
        corners = [middle + i * half[a] * own[a] + j * half[b] * own[b]
                   for i, j in ((1, 1), (1, -1), (-1, -1), (-1, 1))]  # fmt: skip
        axes.fill(*flat(corners).T, facecolor=PALE, edgecolor=INK, lw=1.0)
    angle = np.linspace(0.4, 5.2, 60)[:, None]
    for k, axis in enumerate(own):
        arrow(axes, half[k] * axis, 1.2 * axis, SHIFT)
        label(axes, 1.32 * axis, f"{'xyz'[k]}: {k + 3}", SHIFT)
        u, v = own[(k + 1) % 3], own[(k + 2) % 3]
        ring = 0.72 * axis + 0.17 * (np.cos(angle) * u + np.sin(angle) * v)
        axes.plot(*flat(ring).T, color=TURN, lw=1.6)
        arrow(axes, ring[-4], ring[-1], TURN)
        label(axes, 0.72 * axis + 0.33 * (u if k == 1 else v), f"{k}", TURN)
    axes.text(0.0, 1.5, "a free joint: rates along the link's own axes", ha="center", va="center")
    axes.text(-0.1, -1.22, "0, 1, 2: turns, rad", color=TURN, ha="center")
    axes.text(-0.1, -1.45, "3, 4, 5: shifts, m", color=SHIFT, ha="center")


def picture() -> Any:
    """Both halves side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4.2), layout="constrained")
    manifold(left)
    link(right)
    for axes in (left, right):
        axes.set(xlim=(-1.75, 1.75), ylim=(-1.6, 1.75), aspect="equal")
        axes.axis("off")
    return figure


def main() -> None:
    """Draw it."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "pictures"
    picture().savefig(target / "tangent_space.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
