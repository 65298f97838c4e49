"""How far long work has come, told on stderr once it takes over two seconds."""

from __future__ import annotations

import os
import sys
from time import monotonic
from types import TracebackType

from linkwise.engine.build import LONG

FIRST = 4  # steps that are taken before it is known how long one takes
WAIT = 0.5  # seconds between two looks at the clock, and between two messages


class Progress:
    """Counts steps of long work, and says on stderr how many are done.

    ``LINKWISE_PROGRESS=off`` keeps it quiet. On a terminal it is one line that changes; in a log, a
    line every ten seconds.
    """

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total = what, total
        self.quiet = os.environ.get("LINKWISE_PROGRESS", "").lower() in ("off", "0")
        self.began = self.told = self.before = monotonic()
        self.done = 0
        self.rate = 0.0  # seconds per step
        self.spoke = False

    def __enter__(self) -> Progress:
        return self

    def worth(self, room: int) -> int:
        """Steps, at most ``room`` of them, that take half a second or so; a few to begin with."""
        return min(room, FIRST if not self.rate else max(1, int(WAIT / self.rate)))

    def at(self, done: int) -> None:
        """So many steps are done."""
        now = monotonic()
        if done > self.done:
            self.rate = (now - self.before) / (done - self.done)
        self.done, self.before = done, now
        if now - self.began <= LONG:
            return
        live = sys.stderr is not None and sys.stderr.isatty()
        due = WAIT if live else 10.0
        if not self.quiet and (now - self.told > due or not self.spoke):
            self._say(now, live)

    def _say(self, now: float, live: bool) -> None:
        self.told, self.spoke = now, True
        left = (now - self.began) * (self.total - self.done) / max(self.done, 1)
        text = f"linkwise: {self.what}: {self.done:,} of {self.total:,} steps, {left:.0f} s left"
        self._write(f"\r{text}   " if live else f"{text}\n")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):  # a closed stream is no reason to fail
            pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.spoke:
            took = monotonic() - self.began
            live = sys.stderr is not None and sys.stderr.isatty()
            end = f"linkwise: {self.what}: {self.done:,} steps in {took:.1f} s"
            self._write(f"\r{end}{' ' * 20}\n" if live else f"{end}\n")
