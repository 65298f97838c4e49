"""Pictures of docs/scan.md.

python tools/scan_pictures.py    docs/pictures/scan_*.svg
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from pages import DOCS

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

INWARD, OUTWARD, INK, PALE = "#c2571a", "#1f6fb2", "#222222", "#eef2f6"
plt.rcParams.update(
    {"svg.hashsalt": "linkwise", "svg.fonttype": "none", "font.size": 10, "text.color": INK}
)


def canvas(width: float, height: float, x: float, y: float) -> tuple[Any, Any]:
    """An empty sheet of x by y units."""
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set(xlim=(0, x), ylim=(0, y), aspect="equal")
    axes.axis("off")
    return figure, axes


def box(
    axes: Any, x: float, y: float, w: float, h: float, text: str = "", colour: str = PALE
) -> None:
    """A piece: a rounded box around its middle (x, y)."""
    axes.add_patch(
        FancyBboxPatch(
            (x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=colour, edgecolor=INK, lw=1.1,
        )
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", linespacing=1.5)


def arrow(axes: Any, a: Sequence[float], b: Sequence[float], colour: str, **more: Any) -> None:
    """From one point to another."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.4, "shrinkA": 0, "shrinkB": 0} | more
    axes.annotate("", b, a, arrowprops=style)


def sweeps() -> Any:
    """The three recursions of forward dynamics along a chain."""
    figure, axes = canvas(7.6, 2.9, 15.2, 5.8)
    axes.add_patch(Rectangle((0.2, 2.2), 0.35, 1.6, facecolor="0.8", edgecolor=INK, hatch="///"))
    for k in range(6):
        x = 1.3 + 2.2 * k
        box(axes, x + 1.1, 3.0, 1.7, 0.55, f"link {k + 1}" if k < 5 else "link n")
        axes.plot(x, 3.0, "o", ms=7, mfc="white", mec=INK)
        axes.plot([x - 0.25 if k else 0.55, x - 0.1], [3.0, 3.0], color=INK, lw=1)
    rows = (
        (4.3, OUTWARD, "1  velocities, from each link to the next", False),
        (1.9, INWARD, "2  articulated inertia and bias force, from the tip back", True),
        (0.8, OUTWARD, "3  accelerations, from each link to the next", False),
    )
    for y, colour, text, back in rows:
        for k in range(5):
            ends = (2.0 + 2.2 * k, y), (4.0 + 2.2 * k, y)
            arrow(axes, *(reversed(ends) if back else ends), colour, connectionstyle="arc3,rad=0")
        axes.text(7.6, y + 0.22, text, ha="center", va="bottom", color=colour)
    return figure


def piece() -> Any:
    """What goes into a piece and what comes out."""
    figure, axes = canvas(7.6, 2.5, 15.2, 5.0)
    box(axes, 7.6, 2.6, 5.2, 2.6, "")
    for k in range(4):
        box(axes, 5.8 + 1.2 * k, 2.9, 0.85, 0.5, "", "white")
        axes.plot(5.25 + 1.2 * k, 2.9, "o", ms=5, mfc="white", mec=INK)
    axes.text(7.6, 1.85, "piece: A, C, J, η, b", ha="center", fontsize=11)
    axes.text(2.4, 4.55, "inner end", ha="center", weight="bold")
    axes.text(12.8, 4.55, "outer end", ha="center", weight="bold")
    arrow(axes, (0.9, 3.3), (4.9, 3.3), OUTWARD)
    axes.text(2.8, 3.5, "acceleration  u", ha="center", color=OUTWARD)
    arrow(axes, (4.9, 1.9), (0.9, 1.9), INWARD)
    axes.text(2.6, 1.3, "wrench  f′ = A f + C u + b", ha="center", color=INWARD, size=9)
    arrow(axes, (14.3, 1.9), (10.3, 1.9), INWARD)
    axes.text(12.4, 1.3, "wrench  f", ha="center", color=INWARD)
    arrow(axes, (10.3, 3.3), (14.3, 3.3), OUTWARD)
    axes.text(12.7, 3.5, "acceleration  y = Aᵀu + η − J f", ha="center", color=OUTWARD, size=9)
    return figure


def joined() -> Any:
    """Two pieces that share a link are one piece."""
    figure, axes = canvas(7.6, 2.6, 15.2, 5.2)
    axes.add_patch(
        FancyBboxPatch(
            (2.3, 0.7), 10.6, 3.8, boxstyle="round,pad=0,rounding_size=0.2", facecolor="white",
            edgecolor=INK, lw=1.0, linestyle="--",
        )
    )  # fmt: skip
    axes.text(7.6, 4.7, "one piece again", ha="center")
    for x, name in ((4.6, "inner"), (10.6, "outer")):
        box(axes, x, 2.6, 3.2, 2.2, f"{name}\nA, C, J, η, b")
    for a, b in ((0.3, 3.0), (6.2, 9.0), (12.2, 14.9)):
        arrow(axes, (a, 3.1), (b, 3.1), OUTWARD)
        arrow(axes, (b, 2.1), (a, 2.1), INWARD)
    axes.text(7.6, 3.3, "y = u of outer", ha="center", color=OUTWARD, fontsize=9)
    axes.text(7.6, 1.6, "f = f′ of outer", ha="center", color=INWARD, fontsize=9)
    for x, texts in ((1.2, ("u", "f′")), (14.0, ("y", "f"))):
        axes.text(x, 3.3, texts[0], ha="center", color=OUTWARD)
        axes.text(x, 1.5, texts[1], ha="center", color=INWARD)
    return figure


def tree() -> Any:
    """Up: pieces are joined in pairs. Down: each pair shares what it is given."""
    figure, axes = canvas(7.6, 4.3, 15.2, 8.6)
    levels = [[1.0 + 1.88 * k for k in range(8)]]
    while len(levels[-1]) > 1:
        level = levels[-1]
        levels.append([(a + b) / 2 for a, b in zip(level[::2], level[1::2], strict=True)])
    heights = (0.9, 3.0, 5.1, 7.2)
    for below, above, y, higher in zip(levels, levels[1:], heights, heights[1:], strict=False):
        for k, x in enumerate(below):
            top = above[k // 2]
            arrow(axes, (x - 0.12, y + 0.45), (top - 0.12, higher - 0.45), OUTWARD, lw=1.2)
            arrow(axes, (top + 0.12, higher - 0.45), (x + 0.12, y + 0.45), INWARD, lw=1.2)
    first = 1
    for level, y, count in zip(levels, heights, (1, 2, 4, 8), strict=True):
        for k, x in enumerate(level):
            first = 1 + k * count
            name = f"{first}" if count == 1 else f"{first}–{first + count - 1}"
            box(axes, x, y, 1.25, 0.8, name)
    axes.text(2.0, 7.9, "up: join", color=OUTWARD, ha="center", fontsize=11)
    axes.text(2.0, 7.2, "two pieces become one", color=OUTWARD, ha="center", fontsize=9)
    axes.text(13.2, 7.9, "down: share", color=INWARD, ha="center", fontsize=11)
    axes.text(13.2, 7.2, "each gets what it has at its ends", color=INWARD, ha="center", fontsize=9)
    axes.text(7.6, 8.15, "gravity at the base, nothing at the tip", ha="center", fontsize=9)
    return figure


LINKS, PIECES = 64, 8


def timetable() -> Any:
    """Which link is worked on at which step: one after another, and in pieces."""
    figure, grid = plt.subplots(
        1, 2, figsize=(7.6, 3.5), sharey=True, width_ratios=(192, 60), layout="constrained"
    )
    serial, scan = grid
    start = 0
    for back, colour in ((False, OUTWARD), (True, INWARD), (False, OUTWARD)):
        _march(serial, start, range(LINKS), back, colour)
        start += LINKS
    serial.set(title=f"one after another: {start} steps", xlim=(0, start), ylabel="link")
    steps = _pieces(scan)
    scan.set(title=f"{PIECES} pieces: {steps}", xlim=(0, steps))
    for axes in grid:
        axes.set(ylim=(-1, LINKS), xlabel="step")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _march(axes: Any, start: int, links: range, back: bool, colour: str) -> None:
    """A step for each link in turn."""
    order = list(reversed(links)) if back else list(links)
    axes.plot([start + k for k in range(len(order))], order, "s", ms=2.0, color=colour, mew=0)


def _pieces(axes: Any) -> int:
    """Rates; maps of the pieces; accelerations. Between them the trees, a level a step."""
    each, levels, at = LINKS // PIECES, int(math.log2(PIECES)), 0
    cuts = [range(p * each, (p + 1) * each) for p in range(PIECES)]
    passes = "outward tree outward inward tree outward inward outward"
    for phase in passes.split():
        if phase == "tree":
            axes.axvspan(at - 0.5, at + 2 * levels - 0.5, color="0.88", lw=0)
            axes.text(at + levels - 0.5, LINKS / 2, "tree", rotation=90, ha="center", va="center")
            at += 2 * levels
            continue
        for cut in cuts:
            back = phase == "inward"
            _march(axes, at, cut, back, INWARD if back else OUTWARD)
        at += each
    return at


def depth() -> Any:
    """Steps in a row against the length, for several numbers of workers."""
    figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
    lengths = [10 ** (k / 8) for k in range(8, 57)]
    axes.plot(lengths, [3 * n for n in lengths], color=INK, label="one after another: 3 N")
    for workers, colour in ((8, "C0"), (16_384, "C1"), (math.inf, "C2")):
        steps = [min(3 * n, in_pieces(n, workers)) for n in lengths]
        name = "as many workers as pieces" if workers == math.inf else f"{workers:,} workers"
        axes.plot(lengths, steps, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlabel="links N", ylabel="steps in a row")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def in_pieces(n: float, workers: float) -> float:
    """Six passes over the links of a worker, and two trees, up and down."""
    pieces = min(workers, n / 2)
    return 6 * n / pieces + 4 * math.log2(max(pieces, 1.0))


PICTURES: dict[str, Callable[[], Any]] = {
    "sweeps": sweeps, "piece": piece, "join": joined, "tree": tree, "timetable": timetable,
    "depth": depth,
}  # fmt: skip


def main(folder: Path, kind: str = "svg") -> None:
    """All of them."""
    for name, make in PICTURES.items():
        figure = make()
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(folder / f"scan_{name}.{kind}", metadata=metadata)
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "pictures", *sys.argv[2:3])
