"""The page about operational space, and the tool beside Pinocchio, run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_the_blocks_of_the_page_run() -> None:
    text = (ROOT / "docs" / "operational_space.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    np.testing.assert_allclose(names["moved"], [0, 0, 0, 0, 0, 4.0], atol=1e-9)
    assert names["report"].damping == pytest.approx(1.0, abs=1e-5) and names["bits"] == 0
    assert names["run"].ok and not names["base"].any() and names["joints"].any()


@pytest.mark.full
def test_the_tool_beside_pinocchio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both laws agree, and ours takes a tenth of the time even on a busy machine."""
    pytest.importorskip("pinocchio")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import operational_space as tool  # type: ignore[import-not-found]

    monkeypatch.setattr(tool, "BATCH", 100)
    for held in (False, True):
        row = tool.row("iiwa14", tool.ROBOTS["iiwa14"](), held, 0.2)
        assert float(row[-1]) < 1e-9 and float(row[4]) >= tool.GOAL
    for name in ("operational_space", "pages"):
        sys.modules.pop(name, None)
