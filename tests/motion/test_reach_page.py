"""The page about inverse kinematics, and its tool, run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reaching.md"


def test_the_blocks_of_the_page_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert (names["status"] == 0).mean() > 0.999 and names["near"].shape == (1000, 7)
    assert np.isfinite(names["place"]).all() and np.isfinite(names["bored"]).all()
    assert np.isfinite(names["both"]).all(axis=1).mean() > 0.9
    robot, w = names["robot"], names["w"]
    assert (robot.manipulability(names["better"], "link7") > w).mean() > 0.9


@pytest.mark.full
def test_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import reaching  # type: ignore[import-not-found]

    monkeypatch.setattr(reaching, "ARMS", {"iiwa14": ("", "link7")})
    (row,) = reaching.solved_rows(poses=200, seconds=0.01)
    assert row[0] == "iiwa14" and float(row[2].split()[0]) >= 99.0 and float(row[4]) <= 1.1e-6
    page = reaching.written("a\n<!-- solved -->\n| old |\nb\n", "solved", ["x"], [["1"]])
    assert page == "a\n<!-- solved -->\n| x |\n|---|\n| 1 |\nb\n"
    for name in ("reaching", "pages"):
        sys.modules.pop(name, None)
