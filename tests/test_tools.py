"""The tools that write pages of docs/, each on the smallest thing it measures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.engine.auto import CANDIDATES
from linkwise.trace.tracer import Task

TOOLS = Path(__file__).resolve().parents[1] / "tools"


@pytest.fixture(scope="module")
def tool() -> Iterator[Callable[[str], ModuleType]]:
    """Import a tool as its own script does, with its folder first in the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield importlib.import_module
    for name in ("pages", "accuracy", "cg_study", "compile_curve", "cost_model", "gdahj_crossover",
                 "precise_chain", "chain_accuracy", "long_chains"):  # fmt: skip
        sys.modules.pop(name, None)


def test_tables_line_up(tool: Callable[[str], ModuleType]) -> None:
    text = tool("pages").markdown(["a", "long"], [["1", "2"], ["three", "4"]])
    assert text.splitlines() == [
        "| a     | long |",
        "|-------|------|",
        "| 1     | 2    |",
        "| three | 4    |",
    ]


def test_accuracy_measures_rounding(tool: Callable[[str], ModuleType]) -> None:
    pytest.importorskip("mpmath")
    accuracy = tool("accuracy")
    for dtype, eps in (("float64", 2e-15), ("float32", 1e-6)):
        cell = accuracy.measure("puma560", FUNCTIONS["gravity_torque"]["rnea"], dtype)
        assert 0 < np.max(cell.errors) < eps
    too_long = accuracy.measure("n = 60", FUNCTIONS["christoffel"]["composite"], "float64")
    assert too_long is None, "n³ entries are for short chains"


def test_compile_curve_measures_a_kernel(tool: Callable[[str], ModuleType]) -> None:
    curve = tool("compile_curve")
    costs = [curve.measure(curve.generic(n, 1), "generic chain", "mass_matrix") for n in (1, 2)]
    assert [cost.n for cost in costs] == [1, 2] and costs[0].nodes < costs[1].nodes
    assert all(cost.compile > 0 and cost.state > 0 for cost in costs)
    assert "mass_matrix" in curve.growth(costs, "mass_matrix")


def test_costs_are_measured_in_every_mode(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of joints alone, and one of a frame."""
    model = tool("cost_model")
    monkeypatch.setattr(model, "SECONDS", 1e-3)
    monkeypatch.setattr(model, "STATES", 8)
    robot = lw.load("puma560")
    for function in ("mass_matrix", "operational_inertia_inverse"):
        algorithms = [FUNCTIONS[function][method] for method in CANDIDATES[function][:2]]
        at = robot.tree.frames[robot.frame_names[-1]] if algorithms[0].takes_frame else None
        for mode in model.MODES:
            times = model._times(robot, {a.method: Task(a, at) for a in algorithms}, mode)
            assert list(times) == list(CANDIDATES[function][:2]) and min(times.values()) > 0


def test_numbers_for_a_gpu_choose_the_faster_method(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods that win on long chains, by a jump that no sum follows."""
    model = tool("cost_model")
    monkeypatch.setattr(model, "STEPS", 600)
    rows = [
        {"robot": f"chain {n}", "nv": n, "function": function, "mode": mode, "kept_out": False,
         "features": (2, n - 2, n * (n - 1) / 2, n**3 / 6, n, n * n),
         "times": {m: (1 + k if n < 12 else 4 - k) * n for k, m in enumerate(methods)}}
        for function, methods in CANDIDATES.items()
        for mode in model.DTYPES
        for n in (3, 5, 7, 9, 14, 16, 20)
    ]  # fmt: skip
    table = model.fit_gpu(rows)
    assert max(model._choice(row, table)[2] for row in rows) == 0.0
    page = model.gpu_page(rows, table, "GPU")
    assert "| `forward_dynamics`            | float64 | 0.0%" in page
    assert "| chain 20 | 20 | 80,000 | 60,000 | 40,000 | fd3  |" in page


def test_a_length_of_chain_is_timed(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    crossover = tool("gdahj_crossover")
    monkeypatch.setattr(crossover, "SECONDS", 1e-3)
    row = crossover.one_length(2, timed=True)
    for times in (row.single, row.batch):
        assert list(times) == list(crossover.METHODS) and min(times.values()) > 0
    assert max(row.error.values()) < 1e-14
    assert "| 2 |" in crossover.times_table([row]) and "| 2 |" in crossover.operations_table([row])


def test_conjugate_gradients_take_a_step_per_joint(tool: Callable[[str], ModuleType]) -> None:
    study = tool("cg_study")
    steps = study.medians(study.random_chain(3, 0.0))
    assert steps["none (ccg)"] == 3 and steps["10 ms ago"] <= 3 and steps["float32"] <= 2
    assert "| none (ccg) |" in study.table("arm", {"three joints": steps})


def test_chains_are_judged_by_many_digits(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Articulated bodies are right to rounding, float32 too; another length is another problem."""
    pytest.importorskip("mpmath")
    accuracy = tool("chain_accuracy")
    monkeypatch.setattr(accuracy, "KEPT", tmp_path)
    monkeypatch.setattr(accuracy, "WRITTEN_OUT", 0)
    rows = []
    for name, case in accuracy.CASES.items():
        exact = accuracy.judged((name, 12))
        assert (accuracy.judged((name, 12)) == exact).all(), "the same, from its file"
        robot, state = accuracy.robot_of(case, 12), accuracy.state_of(case, 12)
        row = accuracy.measure(robot, state, exact, ["aba"]) | accuracy.conditions(case, 12)
        row |= {"case": name}
        for dtype in accuracy.DTYPES:
            limit = 10 * max(row["sensitivity"], 1.0) * accuracy.rounding(dtype)
            assert 0 < row["error"][f"aba {dtype}"] < limit
            assert row["residual"][f"aba {dtype}"] < 100
        assert row["condition"] > 1e3
        rows.append(row)
    assert len(list(tmp_path.iterdir())) == len(accuracy.CASES)
    page = accuracy.page(rows, accuracy.kept("## What to take away\n\nmuch\n## Beside articulated"))
    assert "## What to take away\n\nmuch\n" in page and "| mixed mass | `aba`  | 32   |" not in page


def test_long_chains_are_timed_and_peers_fail_in_their_own_words(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = tool("long_chains")
    row = chains.child("linkwise", 70)
    assert row["n"] == 70 and row["seconds"]["fd aba 1"] > 0 and row["peak"] > 10
    lost = chains.child("nobody", 70, limited=True)
    assert lost["failed"].startswith("KeyError: 'nobody' (exit 1, ")
    found = {"linkwise": [row], "peers": [lost | {"who": "mujoco"}], "gpu": [], "machine": "one",
             "versions": {"pinocchio": "1", "mujoco": "2"}}  # fmt: skip
    text = chains.section(found)
    assert "| mujoco | 70    |             |         | KeyError: 'nobody'" in text
    assert "| 70    |" in text and "fails" in text and "not tried" in text
    assert [chains.duration(t) for t in (2.5e-7, 1.234e-4, 0.5, 12.0, 2345.6)] == [
        "0.25 µs", "123 µs", "500 ms", "12 s", "2346 s",
    ]  # fmt: skip
