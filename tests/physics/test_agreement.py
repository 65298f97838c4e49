"""`tools/agreement.py` on a sample of robots, and its table's completeness."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = [
    "a1_description/urdf/a1.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "asr_twodof_description/urdf/TwoDofs.urdf",
    "bolt_description/robots/bolt.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
    "iris_description/robots/iris.urdf",
    "iris_description/robots/iris_simple.urdf",
    "kinova_description/robots/kinova.urdf",
    "panda_description/urdf/panda.urdf",  # a finger follows the other
    "quadruped_description/urdf/quadruped.urdf",
    "so_arm_description/urdf/so101.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "ur_description/urdf/ur3_gripper.urdf",
    "z1_description/urdf/z1.urdf",
]


@pytest.fixture(scope="module")
def agreement() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "tools"))
        module = importlib.import_module("agreement")
    try:
        module.robots_folder()
    except SystemExit:
        pytest.skip("example-robot-data is not installed")
    return module


# the kinds of these are in others of the sample, or their robots in test_peers.py
MORE = (
    "a1", "allegro_left_hand", "TwoDofs", "finger_edu", "iris", "kinova", "talos_left_arm",
    "ur3_gripper", "z1",
)  # fmt: skip
COMPILED = ("double_pendulum_continuous", "bolt")


@pytest.mark.parametrize(
    "path",
    [pytest.param(x, marks=pytest.mark.full if Path(x).stem in MORE else ()) for x in SAMPLE],
)
def test_robots_agree_with_pinocchio(
    path: str, agreement: Any, request: pytest.FixtureRequest
) -> None:
    """A pendulum and legs by their kernels, the others uncompiled; all by kernels in a full run."""
    compiled = Path(path).stem in COMPILED or not request.config.option.markexpr
    rows = agreement.rows_of(path, states=4, compiled=compiled)
    assert {row.base for row in rows} == {"fixed", "free"}
    for row in rows:
        assert row.errors or row.note.startswith("refused: ")
        assert row.bad == []


def test_the_list_of_refused_robots_is_exact(agreement: Any) -> None:
    """Every robot on it is refused, in the words that were reviewed; some left in version 6."""
    there = set(agreement.all_robots())
    assert len(there & set(agreement.REFUSED)) >= 2
    for path in there & set(agreement.REFUSED):
        for base in ("fixed", "free"):
            assert agreement.compare(path, base).note.startswith("refused: ")
    for path in there & set(agreement.REFUSED_MIMIC):
        assert agreement.compare(path, "fixed", "follow").note.startswith("refused: ")


def test_robots_without_inertia_are_compared_but_for_forward_dynamics(agreement: Any) -> None:
    there = set(agreement.all_robots()) & set(agreement.MASSLESS)
    assert there
    for path in there:
        row = agreement.compare(path, "fixed", states=2, compiled=False)
        assert set(row.errors) == {"pose", "J", "M", "ID"} and row.bad == []
        assert row.note.startswith("no forward dynamics")


def test_a_robot_that_is_not_on_the_list_must_load(
    agreement: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "ur_description/urdf/ur3.urdf"
    monkeypatch.delitem(agreement.REFUSED, path)
    with pytest.raises(agreement.Disagreement, match=r"refused and not on the list: .*no <link>"):
        agreement.compare(path, "fixed")
    sound = "asr_twodof_description/urdf/TwoDofs.urdf"
    monkeypatch.setitem(agreement.REFUSED, sound, ("any", "any"))
    with pytest.raises(agreement.Disagreement, match="loads, though it is on the reviewed list"):
        agreement.compare(sound, "fixed")


def test_an_error_above_its_limit_is_bad(agreement: Any) -> None:
    errors = {"M": 2e-10, "ID": 1e-11, "FD aba": 1e-9, "FD crba": np.nan}
    row = agreement.Row("x", "fixed", "free", cond=1e6, errors=errors)
    assert row.bad == ["M", "FD crba"]


def test_the_table_lists_every_robot(agreement: Any) -> None:
    text = agreement.TABLE.read_text(encoding="utf-8")
    assert [path for path in agreement.all_robots() if f"| {path} " not in text] == []
    assert "above limit" not in text
