"""The Python of docs/grasps.md and docs/floating_bases.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["grasps.md", "floating_bases.md"])
def test_the_page_runs(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    exec("\n".join(blocks), {})


COUNTS = {  # rows of the table, and the kinds of contacts
    "two iiwa14, rigid and rigid": ("rigid", "rigid"),
    "two iiwa14, point and soft": ("point", "soft"),
    "three iiwa14, point, point and point": ("point", "point", "point"),
}


@pytest.mark.parametrize(
    "row", [pytest.param(x, marks=pytest.mark.full if k else ()) for k, x in enumerate(COUNTS)]
)
def test_operations_are_those_of_the_page(row: str) -> None:
    """Counts may only fall: then the page is to be updated."""
    bases = [np.eye(4) for _ in range(3)]
    bases[1][:2, :2], bases[1][0, 3], bases[2][1, 3] = -np.eye(2), 1.2, 1.2
    kinds, arm = COUNTS[row], lw.load("iiwa14")
    body = lw.RigidBody(2.0, (0.0, 0.1, 0.3), (0.06, 0.05, 0.02))
    contacts = [lw.Contact(i, "link7", kind) for i, kind in enumerate(kinds)]
    grasp = lw.Grasp([arm] * len(kinds), body, contacts, bases[: len(kinds)])
    (line,) = (x for x in (DOCS / "grasps.md").read_text().splitlines() if f"| {row} |" in x)
    told = [int(x.replace(",", "")) for x in line.split("|")[2:5]]
    methods = ("ltl", "pv", "recursive")
    counted = [grasp.operation_count("motion", method).total for method in methods]
    assert counted == told
