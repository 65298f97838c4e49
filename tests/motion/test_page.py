"""The page about simulation, and the tool beside MuJoCo, run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_blocks_of_the_page_run() -> None:
    text = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, object] = {}
    exec("\n".join(blocks), names)
    swing, braked, ended = names["swing"], names["braked"], names["ended"]
    assert swing.q.shape == (2001, 6) and swing.path("link6").shape == (2001, 3)  # type: ignore[attr-defined]
    assert np.ptp(swing.energy.total) <= 1e-9 and swing.energy.kinetic.max() < 56  # type: ignore[attr-defined]
    assert braked.q.shape == (100, 201, 6)  # type: ignore[attr-defined]
    assert ended.events.dof == 1 and names["stopped"].ok  # type: ignore[attr-defined]


def test_the_tool_beside_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import rollouts  # type: ignore[import-not-found]

    monkeypatch.setattr(rollouts, "ROBOTS", ("iiwa14",))
    table = rollouts.rows(states=64, seconds=0.01, steps=2)
    assert len(table) == 4 and all(float(row[5]) > 0 for row in table)
    for name in ("rollouts", "pages"):
        sys.modules.pop(name, None)
