"""Numbers and tables as a terminal shows them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import TextWrapper

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import printable

LINE = 100  # columns that prose fills; tables may be wider


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


def progress(message: str) -> None:
    """Say on stderr what is going on, for work that takes a while."""
    print(f"linkwise: {printable(message)}", file=sys.stderr, flush=True)
