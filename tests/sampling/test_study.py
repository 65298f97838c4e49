"""Studies: chunks that depend on their number only, merged as if at once, resumed after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.main import main
from linkwise.sampling import chunks
from linkwise.sampling.spec import read_spec, spec_of
from linkwise.sampling.store import Store

pytest.importorskip("zarr")

BASE: dict[str, Any] = {
    "robot": "puma560", "measure": "inverse_dynamics", "states": 2500, "chunk": 1000, "seed": 3,
    "draw": {"q": "limits", "qd": {"normal": 1.0}, "qdd": {"uniform": [-2, 2]}},
    "keep": {"worst": 4, "bins": 16},
}  # fmt: skip


def all_at_once(spec: Any) -> tuple[Any, Any]:
    """Every state of a study, and what it measures."""
    robot, states, found = spec.load(), [], []
    for k in range(spec.chunks):
        rng = np.random.default_rng([spec.seed, k])
        state = chunks.drawn(spec, robot, rng, spec.size(k))
        found.append(chunks.measured(spec, robot, state))
        states.append(np.concatenate(list(state.values()), 1))
    return np.concatenate(states), np.concatenate(found)


def test_chunks_are_what_all_states_at_once_are(tmp_path: Path) -> None:
    spec = spec_of(BASE)
    assert [spec.size(k) for k in range(spec.chunks)] == [1000, 1000, 500]
    store = Store.opened(tmp_path / "s.zarr", spec)
    for k in (2, 0, 1):  # in any order
        store.write(k, chunks.computed(spec, k, store.ranges))
    found = Store.opened(tmp_path / "s.zarr").read()
    states, numbers = all_at_once(spec)
    assert int(found["count"]) == 2500
    assert np.allclose(found["mean"], numbers.mean(0), rtol=1e-12, atol=1e-12)
    assert np.allclose(found["spread"] / 2500, numbers.var(0), rtol=1e-12)
    assert np.array_equal(found["least"], numbers.min(0))
    assert found["histogram"].sum(1).tolist() == [2500] * 6
    order = np.argsort(-np.abs(numbers), axis=0)[:4]
    for joint in range(6):
        assert np.array_equal(found["worst"][joint], np.abs(numbers[order[:, joint], joint]))
        assert np.array_equal(found["worst_states"][joint], states[order[:, joint]])


def test_rows_without_an_answer_are_counted() -> None:
    spec = spec_of(BASE)
    numbers = np.array([[1.0, np.nan], [2.0, 3.0]])
    kept = chunks.reduced(spec, numbers, {"q": np.eye(2)}, np.array([[0.0, 4.0], [0.0, 4.0]]))
    assert (int(kept["count"]), int(kept["failed"])) == (1, 1)
    assert kept["mean"].tolist() == [2.0, 3.0]
    none = chunks.reduced(spec, numbers * np.nan, {"q": np.eye(2)}, np.array([[0.0, 4.0]] * 2))
    both = chunks.merged([kept, none])
    assert both["mean"].tolist() == [2.0, 3.0]
    assert both["worst"][0, 0] == 2.0


@pytest.mark.parametrize("measure", ["workspace", "rollout", "manipulability"])
def test_other_measures(measure: str) -> None:
    spec = spec_of({
        "robot": "puma560", "measure": measure, "states": 40, "chunk": 40, "draw": {"q": "limits"},
        "rollout": {"duration": 0.5, "dt": 5e-3},
    })  # fmt: skip
    kept = chunks.computed(spec, 0, chunks.pilot(spec))
    assert int(kept["count"]) == 40
    reach = {"workspace": 2.0, "rollout": 3.2, "manipulability": 5.0}
    assert 0.0 < np.abs(kept["most"]).max() < reach[measure]


def test_payloads_are_points_of_mass() -> None:
    payload = {"link": "link6", "mass": {"uniform": [1, 2]}, "com": 0.1}
    draw = {"q": "limits", "payload": payload}
    spec = spec_of(BASE | {"measure": "gravity_torque", "draw": draw})
    robot, rng = spec.load(), np.random.default_rng(0)
    state = chunks.drawn(spec, robot, rng, 3)
    found = chunks.measured(spec, robot, state)
    for q, body, tau in zip(state["q"], state["payload"], found, strict=True):
        one = lw.load("puma560", strict=False).with_payload("link6", body[0], body[1:4] / body[0])
        assert np.allclose(one.gravity_torque(q), tau, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measur": 1}, r"the study has no 'measur'; did you mean 'measure'"),
        ({"measure": "inverse_dynamic"}, r"did you mean 'inverse_dynamics'"),
        ({"states": 0}, r"states is 0; expected a whole number 1 to"),
        (
            {"draw": {"tau": 1.0}},
            r"\[draw\] has no 'tau'; inverse_dynamics takes q, qd, qdd, payload",
        ),
        ({"draw": {"qd": {"gauss": 1}}}, r"qd is drawn by .*; expected a number, \{uniform"),
        ({"keep": {"best": 3}}, r"\[keep\] has no 'best'; did you mean 'worst'|expected worst"),
        ({"frame": "link9"}, r"frame 'link9': robot 'puma560' has no such frame"),
        ({"dtype": "half"}, r"dtype is 'half'; expected 'float32' or 'float64'"),
    ],
)
def test_messages(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spec_of(BASE | change)


def test_a_study_is_not_taken_for_another(tmp_path: Path) -> None:
    Store.opened(tmp_path / "s.zarr", spec_of(BASE))
    with pytest.raises(ValueError, match=r"holds another study, which differs in states, seed"):
        Store.opened(tmp_path / "s.zarr", spec_of(BASE | {"states": 100, "seed": 4}))
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match=r"other: holds no study"):
        Store.opened(tmp_path / "other", spec_of(BASE))
    broken = tmp_path / "broken.toml"
    broken.write_text("robot = ")
    with pytest.raises(ValueError, match=r"broken\.toml: not TOML"):
        read_spec(broken)


SPEC = """robot = "puma560"
measure = "gravity_torque"
states = 60_000
chunk = 1_000
[draw]
q = "limits"
"""


def started(folder: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "linkwise",
        "study",
        "s.toml",
        "-o",
        "s.zarr",
        "--workers",
        "1",
    ]
    return subprocess.Popen(
        [*command, "--json"], cwd=folder, text=True, stdout=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.full
def test_a_study_goes_on_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SPEC)
    first = started(tmp_path)
    done, until = 0, time.monotonic() + 120
    while done < 5 and time.monotonic() < until:
        time.sleep(0.05)
        if (tmp_path / "s.zarr" / "zarr.json").exists():
            with_attributes = "digest" in (tmp_path / "s.zarr" / "zarr.json").read_text()
            done = int(Store.opened(tmp_path / "s.zarr").done.sum()) if with_attributes else 0
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    before = int(Store.opened(tmp_path / "s.zarr").done.sum())
    assert 5 <= before < 60
    facts = json.loads(started(tmp_path).communicate()[0])
    assert facts["chunks_computed"] == 60 - before
    assert facts["states"] == 60_000
    _, numbers = all_at_once(read_spec(tmp_path / "s.toml"))
    assert np.allclose(facts["mean"], numbers.mean(0), atol=1e-9)
    assert np.allclose([w[0] for w in facts["worst"]], np.abs(numbers).max(0))


def test_the_command_has_help() -> None:
    assert "study" in main.commands
