"""Closed loops against Pinocchio's `constraintDynamics`; robots of tools/closed_chains.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pinocchio")

TOOLS = str(Path(__file__).parents[2] / "tools")


@pytest.fixture(scope="module")
def tool() -> Any:
    """The module that times both, without running it."""
    sys.path.insert(0, TOOLS)
    try:
        import closed_chains
    finally:
        sys.path.remove(TOOLS)
    return closed_chains


@pytest.mark.parametrize(
    "name", ["four-bar", "iiwa14, tip held", "solo12, four feet", "ANYmal B, four feet"]
)
def test_accelerations_are_those_of_pinocchio(tool: Any, name: str, evaluate: Any) -> None:
    """In the four-bar a direction is redundant, for which Pinocchio iterates, to 1e-14."""
    try:
        case = tool.CASES[name]()
    except SystemExit as missing:
        pytest.skip(str(missing))
    q, qd, tau = tool.states_of(case, 20)
    peer = tool.Peer(case)
    want = peer.accelerations(peer.states(q, qd, tau))
    for method in tool.WAYS:
        found = evaluate(case.robot, "forward_dynamics", q, qd, tau, method=method)
        assert np.abs(found - want).max() < 1e-11 * np.abs(want).max(), method
