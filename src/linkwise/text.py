"""Numbers and tables as a terminal shows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import TextWrapper
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import printable

LINE = 100  # columns that prose fills; tables may be wider
BAR = 24  # characters of a bar of progress
LOG = 10.0  # seconds between two lines about one piece of work in a log


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Columns that line up: the first ``words`` to the left, the rest, numbers, to the right.

    A head that starts with ``<`` is a column of words wherever it stands.
    """
    left = [k < words or name.startswith("<") for k, name in enumerate(head)]
    names = [name.removeprefix("<") for name in head]
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in (names, *rows)) for k in range(len(names))]

    def line(cells: Sequence[str]) -> str:
        columns = zip(cells, widths, left, strict=True)
        return "  ".join(c.ljust(w) if is_left else c.rjust(w) for c, w, is_left in columns)

    rule = "  ".join("-" * w for w in widths)
    return "\n".join(text.rstrip() for text in (line(names), rule, *map(line, rows)))


def pairs(items: Sequence[tuple[str, str]]) -> str:
    """Names and values, the values under each other; a long value takes several lines."""
    shown = [(printable(name), printable(value)) for name, value in items]
    width = max(len(name) for name, _ in shown)
    wrapper = TextWrapper(LINE - width - 2, break_long_words=False, break_on_hyphens=False)
    indent = "\n" + " " * (width + 2)
    return "\n".join(f"{n.ljust(width)}  {indent.join(wrapper.wrap(v))}" for n, v in shown)


def vector(values: ArrayLike) -> str:
    """A vector in one line."""
    return " ".join(f"{x:9.4f}" for x in np.atleast_1d(np.asarray(values)))


def nanoseconds(x: float | None) -> str:
    """A time in nanoseconds, to three or four digits."""
    if x is None:
        return "-"
    return f"{x:,.1f}" if x < 100 else f"{x:,.0f}"


def duration(ns: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def ratio(x: float | None) -> str:
    """How many times faster."""
    if x is None:
        return "-"
    digits = 2 if x < 1 else 1 if x < 100 else 0
    return f"{x:.{digits}f}×"


def file_size(size: int) -> str:
    """Bytes, for people."""
    if size < 1024:
        return f"{size} bytes"
    for unit, one in (("GiB", 1024**3), ("MiB", 1024**2)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size / 1024:.1f} KiB"


def note(message: str) -> None:
    """Say on stderr what a user needs to know."""
    print(f"linkwise: {printable(message)}", file=sys.stderr, flush=True)


class Progress:
    """What is going on, on stderr: a line per message; of many steps, a bar.

    In a log the bar is a line when the work begins and one every ten seconds.
    ``LINKWISE_PROGRESS=off`` keeps it quiet.
    """

    def __init__(self) -> None:
        self._began = self._told = 0.0
        self._first, self._total = 0, -1  # steps that were done when the work began, and all
        self._drawn = False

    def __call__(self, message: str, done: int = 0, total: int = 0) -> None:
        """Say what is done next; ``done`` of ``total`` steps are behind it."""
        if os.environ.get("LINKWISE_PROGRESS", "").lower() in ("off", "0") or sys.stderr is None:
            return
        now, begins = monotonic(), not done or total != self._total
        if begins:
            self._began, self._first, self._total = now, done, total
        if total and sys.stderr.isatty():
            self._draw(f"{bar(done, total)} {self._left(now, done, total)}{printable(message)}")
        elif begins or now - self._told >= LOG:
            self._told = now
            self.end()
            count = f": {self._left(now, done, total)}{done:,} of {total:,} done" if done else ""
            note(f"{message}{count}")

    def end(self) -> None:
        """Take the bar away, where one is drawn."""
        if self._drawn and sys.stderr is not None:
            print(f"\r{'':<{_columns()}}\r", end="", file=sys.stderr, flush=True)
        self._drawn = False

    def _draw(self, text: str) -> None:
        self._drawn, width = True, _columns()
        print(f"\r{text[:width]:<{width}}", end="", file=sys.stderr, flush=True)

    def _left(self, now: float, done: int, total: int) -> str:
        """Seconds left, once it is known how long a step takes."""
        steps = done - self._first
        return f"{(now - self._began) * (total - done) / steps:,.0f} s left, " if steps else ""


def _columns() -> int:
    """Columns of a line that changes, one less than the terminal has."""
    return min(get_terminal_size().columns, LINE) - 1


progress = Progress()


def bar(done: int, total: int) -> str:
    """How many of the steps are done, as a bar of text and as numbers."""
    full = BAR * done // total
    return f"[{'#' * full}{'.' * (BAR - full)}] {done:,}/{total:,}"
