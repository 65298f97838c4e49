"""Claims of papers and what was counted, as a table and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.study.counts import Pair, Row
from linkwise.text import aligned

HEAD = ("n", "<claim", "printed", "corrected", "ours", "ours / claim", "<")
NOTE = """\
Multiplications / additions; papers count arms of revolute joints. docs/counts.md says what each
claim includes, and what of ours it is compared with."""


def number(x: float) -> int | float:
    """Without a fraction where there is none."""
    return int(x) if x == int(x) else x


def cell(pair: Pair) -> str:
    """Multiplications / additions."""
    return " / ".join(f"{number(x):,}" for x in pair)


def claims_table(rows: Sequence[Row]) -> str:
    """Multiplications / additions as claimed and as counted."""
    lines = [
        (str(r.n), r.claim.name, cell(r.printed), cell(r.corrected), cell(r.ours),
         f"{r.ratio:.2f}", "" if r.holds else "above")
        for r in rows
    ]  # fmt: skip
    return f"{aligned(HEAD, lines, words=0)}\n\n{NOTE}"


def claims_facts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {"claim": r.claim.name, "source": r.claim.source, "n": r.n, "printed": _pair(r.printed),
         "corrected": _pair(r.corrected), "ours": _pair(r.ours), "holds": r.holds}
        for r in rows
    ]  # fmt: skip


def _pair(pair: Pair) -> dict[str, int | float]:
    return {"multiplications": number(pair[0]), "additions": number(pair[1])}
