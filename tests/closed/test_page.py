"""docs/closed_chains.md: its Python runs as it stands, and its counts are those of today."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "closed_chains.md").read_text(encoding="utf-8")


def test_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert names["wrench"].shape == (1, 6) and names["tau"] == pytest.approx([0.3, 0, 0])


@pytest.mark.full
def test_operations_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts may only fall: then `python tools/closed_chains.py --page` writes the page anew."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "tools")])
    tool = pytest.importorskip("closed_chains")
    try:
        rows = tool.counted_rows()
    except SystemExit as missing:
        pytest.skip(str(missing))
    told = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines()]
    assert all(row in told for row in rows)
