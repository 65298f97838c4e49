"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import inspect
import sys
from pathlib import Path

import pytest

import linkwise

MODULES = (
    "linkwise", "linkwise.robot", "linkwise.functions", "linkwise.derivatives", "linkwise.builder",
    "linkwise.differentiation.calls", "linkwise.chain", "linkwise.checking.collect",
    "linkwise.conversions", "linkwise.grasp", "linkwise.identification.base",
    "linkwise.identification.identify", "linkwise.load", "linkwise.model.closures",
    "linkwise.model.contacts", "linkwise.model.friction", "linkwise.motion.actuators",
    "linkwise.motion.laws", "linkwise.motion.operational_space",
    "linkwise.motion.simulate", "linkwise.motion.trajectory", "linkwise.se3",
    "linkwise.io.dh", "linkwise.trace.program", "linkwise.trace.status",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str) -> None:
    found = doctest.testmod(sys.modules[module])
    assert found.attempted and not found.failed


def test_examples_of_every_module_are_run() -> None:
    libraries = {"linkwise.interop.jax", "linkwise.interop.torch"}  # to be skipped
    folder = Path(linkwise.__file__).parent
    found = set()
    for path in folder.rglob("*.py"):
        if ">>> " in path.read_text(encoding="utf-8"):
            found.add(".".join(path.relative_to(folder.parent).with_suffix("").parts))
    assert {name.removesuffix(".__init__") for name in found} == {*MODULES, *libraries}


def test_every_public_function_has_an_example() -> None:
    """Of the classes that users call; properties have their units and shapes in a sentence."""
    without = set()
    for owner in (linkwise.Robot, linkwise.Trajectory, linkwise.Grasp):
        for name, member in inspect.getmembers(owner, callable):
            documented = not name.startswith("_") and not inspect.isclass(member)
            if documented and ">>>" not in (inspect.getdoc(member) or ""):
                without.add(name)
    assert without == {"from_tree", "numpy"}  # for joints that no file has; arrays of a GPU
