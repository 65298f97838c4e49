"""The reliability card: what was tried, what became of it, and whether that is good enough."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
WORST = 12  # failures kept word for word


@dataclass
class Line:
    """One experiment. Counts that have no meaning for it are None."""

    what: str
    goal: str
    cases: int = 0
    refused: int | None = None  # an error was raised, or the fault was detected
    told: int | None = None  # accepted with a warning that the whole file does not give
    named: int | None = None  # the error or warning names file, line and element
    silent: int | None = None  # accepted without a word
    non_finite: int | None = None  # accepted, and then NaN or Inf came out
    wrong: int = 0  # crashes, hangs, other exceptions, opens outside, wrong numbers
    seconds: float = 0.0
    met: bool = False
    failures: list[str] = field(default_factory=list)

    def fail(self, message: str) -> None:
        """Keep what went wrong, the first few times."""
        if len(self.failures) < WORST:
            self.failures.append(" ".join(message.split())[:300])

    def count(self, name: str, by: int = 1) -> None:
        """Add to one of the counts."""
        setattr(self, name, (getattr(self, name) or 0) + by)


@dataclass
class Card:
    """All lines."""

    lines: list[Line]
    size: str  # "full" or "quick"

    @property
    def met(self) -> bool:
        """Whether every goal is met."""
        return all(line.met for line in self.lines)

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {"size": self.size, "met": self.met, "lines": [asdict(line) for line in self.lines]}

    def __str__(self) -> str:
        head = (
            "experiment", "cases", "refused", "told", "named", "silent", "non-finite", "wrong", "s",
            "",
        )  # fmt: skip
        rows = [
            (
                line.what, *(_count(n) for n in (line.cases, line.refused, line.told, line.named,
                                                 line.silent, line.non_finite, line.wrong)),
                f"{line.seconds:.0f}", "met" if line.met else "MISSED",
            )
            for line in self.lines
        ]  # fmt: skip
        notes = [f"{line.what}: {text}" for line in self.lines for text in line.failures]
        goals = [f"  {line.what}: {line.goal}" for line in self.lines]
        return "\n".join(
            [_table(head, rows), "", "goals", *goals, *([""] if notes else []), *notes]
        )


def _count(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(c.rjust(w) for c, w in others)]).rstrip()

    return "\n".join((line(head), "  ".join("-" * w for w in widths), *map(line, rows)))


def shown(what: str, cases: Iterable[T], total: int) -> Iterator[T]:
    """Go through the cases and say on stderr how far it is, every two seconds."""
    began = said = time.monotonic()
    for k, case in enumerate(cases):
        yield case
        now = time.monotonic()
        if now - said > 2.0:
            said = now
            print(f"{what}: {k + 1} of {total}, {now - began:.0f} s", file=sys.stderr, flush=True)
