"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import sys

import pytest

import linkwise  # noqa: F401

MODULES = (
    "linkwise", "linkwise.robot", "linkwise.functions", "linkwise.derivatives", "linkwise.builder",
    "linkwise.differentiation.calls", "linkwise.chain", "linkwise.checking.collect",
    "linkwise.conversions", "linkwise.grasp", "linkwise.identification.base",
    "linkwise.identification.identify", "linkwise.load", "linkwise.model.closures",
    "linkwise.model.contacts", "linkwise.motion.laws", "linkwise.motion.operational_space",
    "linkwise.motion.simulate", "linkwise.se3",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str) -> None:
    found = doctest.testmod(sys.modules[module])
    assert found.attempted and not found.failed
