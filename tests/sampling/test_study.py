"""Studies: chunks that depend on their number only, merged as if at once, resumed after kill -9."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import linkwise as lw
from linkwise import StudyWarning
from linkwise.cli.main import main
from linkwise.sampling import chunks
from linkwise.sampling.draws import PIECE, Draws
from linkwise.sampling.measures import Measure
from linkwise.sampling.reduction import Kept, Reduction, merged, quantiles
from linkwise.sampling.run import Sent, run
from linkwise.sampling.spec import Spec, read_spec, spec_of
from linkwise.sampling.store import Store

zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

BASE: dict[str, Any] = {
    "robot": "puma560", "measure": "inverse_dynamics", "states": 2500, "chunk": 1000, "seed": 3,
    "draw": {"q": "limits", "qd": {"normal": 1.0}, "qdd": {"uniform": [-2, 2]}},
    "keep": {"worst": 4, "bins": 16, "limit": [8, 30, 8, 0.3, 0.3, 0.1]},
}  # fmt: skip


def all_at_once(spec: Spec) -> tuple[Any, Any]:
    """Every state of a study, and what it measures."""
    robot, states, found = spec.load(), [], []
    for k in range(spec.chunks):
        for state in Draws(spec, robot).chunk(k):
            found.append(np.array(Measure(spec, robot)(state)))
            states.append(np.concatenate(list(state.values()), 1))
    return np.concatenate(states), np.concatenate(found)


def same(a: Kept, b: Kept) -> bool:
    """Whether two results are the same to the last bit."""
    return a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)


def test_chunks_are_what_all_states_at_once_are(tmp_path: Path) -> None:
    spec = spec_of(BASE)
    assert [spec.size(k) for k in range(spec.chunks)] == [1000, 1000, 500]
    store = Store.opened(tmp_path / "s.zarr", spec)
    for k in (2, 0, 1):  # in any order
        store.write(k, chunks.computed(spec, k, store.ranges))
    found = Store.opened(tmp_path / "s.zarr").finish()
    states, numbers = all_at_once(spec)
    assert int(found["count"]) == len(numbers) == 2500
    assert np.allclose(found["mean"], numbers.mean(0), rtol=1e-12, atol=1e-12)
    assert np.allclose(found["spread"] / 2500, numbers.var(0), rtol=1e-12)
    order = np.argsort(-np.abs(numbers), axis=0)[:4]
    for j in range(6):
        assert found["least"][j] == numbers[:, j].min()
        assert np.array_equal(found["least_states"][j], states[numbers[:, j].argmin()])
        assert np.array_equal(found["most_states"][j], states[numbers[:, j].argmax()])
        assert np.array_equal(found["worst"][j], np.abs(numbers[order[:, j], j]))
        assert np.array_equal(found["worst_states"][j], states[order[:, j]])
        low, high = store.ranges[j]
        edges = np.linspace(low, high, 17)
        inside = np.histogram(np.clip(numbers[:, j], low, np.nextafter(high, low)), edges)[0]
        assert found["histogram"][j].tolist() == inside.tolist()
    over = np.abs(numbers) > BASE["keep"]["limit"]
    assert 0 < over.sum() < over.size
    assert found["beyond"].tolist() == over.sum(0).tolist()
    assert int(found["beyond_any"]) == over.any(1).sum()
    values, errors = quantiles(found, store.ranges, (0.1, 0.5, 0.99))
    exact = np.quantile(numbers, (0.1, 0.5, 0.99), axis=0, method="inverted_cdf").T
    assert (np.abs(values - exact) <= errors).all()


def test_the_result_is_arrays_with_names(tmp_path: Path) -> None:
    spec = spec_of(BASE | {"draw": {**BASE["draw"], "payload": {"mass": 2.0}}})
    store = Store.opened(tmp_path / "s.zarr", spec)
    for k in range(3):
        assert "result" not in store.finish() and not (tmp_path / "s.zarr" / "result").exists()
        store.write(k, chunks.computed(spec, k, store.ranges))
    found = store.finish()
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="r")["result"]
    assert np.array_equal(group["mean"][:], found["mean"])
    assert group["worst_states"].metadata.dimension_names == ("number", "rank", "column")
    assert group.attrs["number"] == list(spec.load().joint_names)
    assert group.attrs["column"][0] == "q[0]" and group.attrs["column"][18] == "payload mass"
    assert group["worst_states"].shape == (6, 4, len(group.attrs["column"]))
    assert (group["worst_states"][..., 18] == 2.0).all()


def test_rows_without_an_answer_are_counted() -> None:
    keep = {"bins": 4, "worst": 3}
    ranges = np.array([[0.0, 4.0], [0.0, 4.0]])
    one, none = (Reduction(2, 2, keep, ranges, None) for _ in range(2))
    numbers = np.array([[1.0, np.nan], [2.0, 3.0], [np.inf, 0.0]])
    one.add(numbers, {"q": np.arange(6.0).reshape(3, 2)})
    none.add(numbers * np.nan, {"q": np.zeros((3, 2))})
    kept = one.result()
    assert (int(kept["count"]), int(kept["failed"])) == (1, 2)
    assert kept["most_states"].tolist() == [[2.0, 3.0]] * 2
    for parts in ([one.result(), none.result()], [none.result(), one.result()]):
        both = merged(parts)
        assert (int(both["count"]), int(both["failed"])) == (1, 5)
        assert both["mean"].tolist() == [2.0, 3.0] and both["spread"].tolist() == [0.0, 0.0]
        assert both["worst"][:, 0].tolist() == [2.0, 3.0]


def test_pieces_of_a_chunk_are_one() -> None:
    """More states than a piece has, and numbers far from zero beside their spread."""
    rng, n = np.random.default_rng(0), PIECE + 1000
    x = 1e6 + rng.normal(size=(n, 1))
    kept = Reduction(1, 1, {"bins": 8, "worst": 2}, np.array([[1e6 - 2, 1e6 + 2]]), None)
    for a in (0, PIECE):
        kept.add(x[a : a + PIECE], {"q": x[a : a + PIECE]})
    found = kept.result()
    assert np.allclose(found["mean"], x.mean(0), rtol=1e-15)
    assert np.allclose(found["spread"] / n, x.var(0), rtol=1e-9)
    assert found["histogram"].sum() == n and found["worst"][0, 0] == x.max()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_states_are_drawn_as_asked(dtype: str) -> None:
    draw = {"q": "limits", "qd": {"normal": [1.0, 0.5]}, "qdd": {"uniform": [-2, 3]}}
    wanted = {"robot": "iiwa14", "draw": draw, "dtype": dtype, "keep": {}}
    spec = spec_of(BASE | wanted | {"states": 20_000, "chunk": 20_000})
    robot = spec.load()
    state: dict[str, list[Any]] = {name: [] for name in draw}
    for piece in Draws(spec, robot).chunk(0):
        for name, x in piece.items():
            state[name].append(x.copy())
    q, qd, qdd = (np.concatenate(x) for x in state.values())
    assert q.shape == (20_000, 7) and q.dtype == dtype
    low, high = robot.position_limits
    assert (q >= low - 1e-6).all() and (q <= high + 1e-6).all()
    assert np.allclose(q.mean(0), (low + high) / 2, atol=0.1)
    assert np.allclose([qd.mean(), qd.std(), qdd.mean(), qdd.std()], [1, 0.5, 0.5, 5 / 12**0.5],
                       atol=0.02)  # fmt: skip
    again = next(iter(Draws(spec, robot).chunk(0)))
    assert np.array_equal(again["qd"], qd[:PIECE])
    other = next(iter(Draws(spec_of(BASE | wanted | {"seed": 4}), robot).chunk(0)))
    assert not np.array_equal(other["qd"][:100], qd[:100])


def test_a_lattice_is_even_and_knows_each_state_by_its_number() -> None:
    wanted = {"robot": "iiwa14", "draw": {"q": "limits"}, "measure": "gravity_torque",
              "sequence": "lattice", "keep": {}}  # fmt: skip
    long = spec_of(BASE | wanted | {"states": 4000, "chunk": 4000})
    short = spec_of(BASE | wanted | {"states": 4000, "chunk": 1000})
    robot = long.load()
    whole = next(iter(Draws(long, robot).chunk(0)))["q"].copy()
    parts = [next(iter(Draws(short, robot).chunk(k)))["q"].copy() for k in range(4)]
    assert np.array_equal(whole, np.concatenate(parts))
    low, high = robot.position_limits
    u = np.sort((whole - low) / (high - low), axis=0)
    even = np.abs(u - (np.arange(4000)[:, None] + 0.5) / 4000).max(0)
    assert (even < 0.003).all()  # random draws would be ten times further off
    assert abs(np.corrcoef(whole.T) - np.eye(7)).max() < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measur": 1}, r"the study has no 'measur'; did you mean 'measure'"),
        ({"measure": "inverse_dynamic"}, r"did you mean 'inverse_dynamics'"),
        ({"states": 0}, r"states is 0; expected a whole number 1 to"),
        (
            {"draw": {"tau": 1.0}},
            r"\[draw\] has no 'tau'; inverse_dynamics takes q, qd, qdd, payload, parameters",
        ),
        ({"draw": {"qd": {"gauss": 1}}}, r"qd is drawn by .*; expected a number, \{uniform"),
        ({"draw": {"qd": {"uniform": [1, "x"]}}}, r"qd is drawn by .*; expected a number"),
        ({"keep": {"best": 3}}, r"\[keep\] has no 'best'; did you mean 'worst'|expected worst"),
        ({"keep": {"bins": 1}}, r"\[keep\] bins is 1; expected a whole number 2 to"),
        ({"keep": {"limit": "torque"}}, r"\[keep\] limit is 'torque'; expected a number"),
        ({"frame": "link9"}, r"frame 'link9': robot 'puma560' has no such frame"),
        ({"dtype": "half"}, r"dtype is 'half'; expected 'float32' or 'float64'"),
        ({"sequence": "sobol"}, r"sequence is 'sobol'; expected 'random' or 'lattice'"),
        ({"sequence": "lattice"}, r"qd is drawn by .* has uniform draws only"),
        ({"rollout": {"law": "lqr"}}, r"\[rollout\] law is 'lqr'; expected 'computed_torque'"),
        ({"draw": {"parameters": {"mass": 1}}}, r"\[draw.parameters\] has no 'mass'"),
        ({"draw": {"payload": {"mass": {"normal": 1}}}}, r"payload mass .* may be negative"),
        ({"draw": {"payload": {"mass": -1}}}, r"payload mass .* may be negative"),
        (
            {"sequence": "lattice", "draw": {"payload": {"com": {"normal": 0.1}}}},
            r"payload com is drawn by .* has uniform draws only",
        ),
        ({"draw": {"q": {"uniform": [-math.inf, 1]}}}, r"q is drawn by .*; expected finite"),
        ({"draw": {"qd": math.nan}}, r"qd is drawn by nan; expected finite numbers"),
        ({"draw": {"qd": {"uniform": [0, 10**400]}}}, r"qd is drawn by .*; expected finite"),
        ({"draw": {"q": {"uniform": [1, -1]}}}, r"q .*expected \[low, high\], low not above"),
        ({"draw": {"q": {"uniform": [-1e308, 1e308]}}}, r"q .* and their difference finite"),
        ({"draw": {"qd": {"normal": -1}}}, r"qd .* has a negative deviation; expected"),
        ({"draw": {"qd": {"normal": [0, [1, 1, 1, 1, 1, -1]]}}}, r"qd .* negative deviation"),
        ({"rollout": {"duration": 0}}, r"\[rollout\] duration is 0; expected a number of seconds"),
        ({"rollout": {"dt": -1e-3}}, r"\[rollout\] dt is -0.001; expected a number of seconds"),
        ({"rollout": {"kp": "high"}}, r"\[rollout\] kp is 'high'; expected a finite number"),
        ({"rollout": {"kd": math.inf}}, r"\[rollout\] kd is inf; expected a finite number"),
        ({"rollout": {"duration": 1e30}}, r"1e\+33 steps; expected 10,000,000 at most"),
        ({"rollout": {"law": ["pd"]}}, r"\[rollout\] law is \['pd'\]; expected 'computed_torque'"),
        ({"robot": 5}, r"robot is 5; expected a text"),
        ({"robot": ["a"]}, r"robot is \['a'\]; expected a text"),
        ({"measure": ["a"]}, r"measure is \['a'\]; expected a text"),
        ({"frame": 3}, r"frame is 3; expected a text"),
        ({"base": {}}, r"base is {}; expected a text"),
        ({"strict": "no"}, r"strict is 'no'; expected true or false"),
        ({"draw": [1]}, r"\[draw\] is \[1\]; expected a table"),
        ({"draw": {"payload": 5}}, r"\[draw.payload\] is 5; expected a table"),
        ({"draw": {"payload": {"link": ["a"]}}}, r"\[draw.payload\] link is \['a'\]; expected"),
        ({"draw": {"parameters": "all"}}, r"\[draw.parameters\] is 'all'; expected a table"),
        ({"draw": {"q": ["limits"]}}, r"q is drawn by \['limits'\]; expected a number"),
        ({"draw": {"qd": {"normal": {}}}}, r"qd is drawn by {'normal': {}}; expected a number"),
        ({"draw": {"payload": {"mass": "1"}}}, r"payload mass is drawn by '1'; expected"),
        ({"keep": 5}, r"\[keep\] is 5; expected a table"),
        ({"keep": {"limit": {"a": 1}}}, r"\[keep\] limit is {'a': 1}; expected a number"),
    ],
)
def test_messages(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spec_of(BASE | change)


def test_a_robot_without_effort_limits_is_named(tmp_path: Path) -> None:
    rows = [lw.DHRow(a=0.5, mass=1.0, inertia=(0.1, 0.1, 0.1)) for _ in range(2)]
    lw.from_dh(rows, name="weak").save(tmp_path / "weak.urdf")
    change = {"robot": str(tmp_path / "weak.urdf"), "keep": {"limit": "effort"}}
    with pytest.raises(ValueError, match=r"has no effort limits"):
        spec_of(BASE | change)


def test_a_study_is_not_taken_for_another(tmp_path: Path) -> None:
    Store.opened(tmp_path / "s.zarr", spec_of(BASE))
    with pytest.raises(ValueError, match=r"holds another study, which differs in states, seed"):
        Store.opened(tmp_path / "s.zarr", spec_of(BASE | {"states": 100, "seed": 4}))
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match=r"other: holds no study"):
        Store.opened(tmp_path / "other", spec_of(BASE))
    with pytest.raises(FileNotFoundError, match=r"none\.zarr: no such study"):
        Store.opened(tmp_path / "none.zarr")
    with pytest.raises(ValueError, match=r"limit has 2 numbers, and inverse_dynamics has 6"):
        Store.opened(tmp_path / "t.zarr", spec_of(BASE | {"keep": {"limit": [1, 2]}}))
    broken = tmp_path / "broken.toml"
    broken.write_text("robot = ")
    with pytest.raises(ValueError, match=r"broken\.toml: not TOML"):
        read_spec(broken)


SLIDE = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="MASS"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def slide(folder: Path, mass: float) -> Spec:
    """A study of the mass matrix of one prismatic joint, which is a mass, in a file."""
    (folder / "r.urdf").write_text(SLIDE.replace("MASS", f"{mass:g}"))
    return spec_of({"robot": "r.urdf", "measure": "mass_matrix", "states": 10}, folder=folder)


def test_a_robot_whose_file_was_changed_is_noticed(tmp_path: Path) -> None:
    store = Store.opened(tmp_path / "s.zarr", slide(tmp_path, 1.0))
    changed = slide(tmp_path, 2.0)
    with pytest.raises(ValueError, match=r"differs in the robot's file, which was changed"):
        Store.opened(tmp_path / "s.zarr", changed)
    with pytest.raises(ValueError, match=r"differs in the robot's file, which was changed"):
        Sent(None, store, [0])  # changed after it was opened


def test_chunks_are_of_the_robot_they_come_with(tmp_path: Path) -> None:
    ranges = np.array([[0.0, 10.0]])
    for mass in (1.0, 7.0):
        spec = slide(tmp_path, mass)
        robot = pickle.dumps(spec.load())
        for kept in (chunks.computed(spec, 0, ranges, robot), chunks.computed(spec, 0, ranges)):
            assert kept["mean"].tolist() == [mass]


@pytest.mark.parametrize("mass", [1.0, 5e3, 2e4, 1e9])
def test_numbers_that_are_constant_have_a_histogram(tmp_path: Path, mass: float) -> None:
    spec = slide(tmp_path, mass)
    kept = chunks.computed(spec, 0, chunks.pilot(spec))
    assert kept["mean"].tolist() == [mass] and kept["histogram"].sum() == 10


def test_rounding_puts_nothing_outside_the_bins() -> None:
    low = 20_000.0
    high = np.nextafter(low, np.inf)
    kept = Reduction(1, 1, {"bins": 4, "worst": 1}, np.array([[low, high]]), None)
    kept.add(np.array([[low], [high]]), {"q": np.zeros((2, 1))})
    assert kept.result()["histogram"].tolist() == [[1, 0, 0, 1]]


def test_results_are_read_without_the_file_of_the_robot(tmp_path: Path) -> None:
    spec = slide(tmp_path, 3.0)
    store = Store.opened(tmp_path / "s.zarr", spec)
    store.write(0, chunks.computed(spec, 0, store.ranges))
    (tmp_path / "r.urdf").unlink()
    again = Store.opened(tmp_path / "s.zarr")
    assert again.finish()["mean"].tolist() == [3.0]
    with pytest.raises((ValueError, OSError), match=r"r\.urdf"):
        again.load()


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    Store.opened(tmp_path / "s.zarr", spec_of(BASE))
    zarr.open_group(str(tmp_path / "s.zarr"), mode="r+").attrs["version"] = 1
    with pytest.raises(ValueError, match=r"study in version 1 of the format, .* has version 3;"):
        Store.opened(tmp_path / "s.zarr")


def test_a_study_killed_before_it_was_one_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(zarr.Group, "create_array", killed)
        Store.opened(tmp_path / "s.zarr", spec_of(BASE))
    with pytest.raises(ValueError, match=r"it is of one that ended before anything was kept"):
        Store.opened(tmp_path / "s.zarr")
    store = Store.opened(tmp_path / "s.zarr", spec_of(BASE))
    assert not store.done.any() and len(store.done) == 3


def test_nothing_that_is_not_ours_is_removed(tmp_path: Path) -> None:
    own = zarr.open_group(str(tmp_path / "mine"), mode="w-", attributes={"owner": "me"})
    own.create_array("rows", shape=(3,), dtype="f8")[:] = 1.0
    with pytest.raises(ValueError, match=r"holds no study of linkwise: it is a Zarr group of some"):
        Store.opened(tmp_path / "mine", spec_of(BASE))
    assert zarr.open_group(str(tmp_path / "mine"), mode="r")["rows"][:].tolist() == [1.0] * 3
    (tmp_path / "bare" / "rows").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"it is a folder of rows; expected a name that is not"):
        Store.opened(tmp_path / "bare", spec_of(BASE))
    (tmp_path / "file").write_text("text")
    with pytest.raises(ValueError, match=r"it is a file; expected a name that is not taken"):
        Store.opened(tmp_path / "file", spec_of(BASE))
    assert (tmp_path / "bare" / "rows").is_dir() and (tmp_path / "file").read_text() == "text"


def test_lost_workers_are_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        """Chunks whose workers are killed again and again."""

        def __init__(self, **_: Any) -> None: ...

        def add(self, _: Any) -> None: ...

        def __next__(self) -> None:
            raise distributed.KilledWorker("computed", SimpleNamespace(address="tcp://w"), 3)

    class Client:
        """A client of no workers."""

        def nthreads(self) -> dict[str, int]:
            return {}

        def submit(self, *_: Any, **__: Any) -> Any:
            return SimpleNamespace(key="k")

    monkeypatch.setattr(distributed, "as_completed", Lost)
    monkeypatch.setattr("linkwise.sampling.run._client", lambda *_: nullcontext(Client()))
    (tmp_path / "s.toml").write_text(SPEC)
    words = ["study", str(tmp_path / "s.toml"), "-o", str(tmp_path / "s.zarr")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "too little memory" in result.output and "goes on from there" in result.output


SPEC = """robot = "puma560"
measure = "gravity_torque"
states = 60_500
chunk = 1_000
[draw]
q = "limits"
"""


def test_workers_of_any_number_and_a_resumed_run_give_the_same_bits(tmp_path: Path) -> None:
    spec = spec_of({"robot": "puma560", "measure": "gravity_torque", "states": 9500,
                    "chunk": 1000, "draw": {"q": "limits"}})  # fmt: skip
    alone = Store.opened(tmp_path / "alone.zarr", spec)
    for k in range(spec.chunks):
        alone.write(k, chunks.computed(spec, k, alone.ranges))
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:  # fmt: skip
        many = Store.opened(tmp_path / "many.zarr", spec)
        assert run(many, scheduler=cluster.scheduler_address) == 10
        part = Store.opened(tmp_path / "part.zarr", spec)
        for k in (7, 1, 9):
            part.write(k, chunks.computed(spec, k, part.ranges))
        told: list[tuple[int, int]] = []
        assert run(part, cluster.scheduler_address, tell=lambda *x: told.append(x)) == 7
        assert told == [(k, 10) for k in range(4, 11)]
        assert run(part, cluster.scheduler_address) == 0
    assert same(alone.finish(), many.finish()) and same(alone.finish(), part.finish())


def command(folder: Path, name: str, workers: int) -> subprocess.Popen[str]:
    words = ["-m", "linkwise", "study", "s.toml", "-o", name, "--workers", str(workers), "--json"]
    return subprocess.Popen([sys.executable, *words], cwd=folder, text=True,
                            stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip


def until_done(path: Path, count: int) -> int:
    """Wait until some chunks of a study are done; returns how many are."""
    done, until = 0, time.monotonic() + 120
    while done < count and time.monotonic() < until:
        time.sleep(0.02)
        done = len([p for p in (path / "done" / "c").glob("*") if p.name.isdigit()])
    return done


@pytest.mark.full
def test_a_study_goes_on_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SPEC)
    first = command(tmp_path, "s.zarr", 1)
    until_done(tmp_path / "s.zarr", 5)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    before = int(Store.opened(tmp_path / "s.zarr").done.sum())
    assert 5 <= before < 61
    facts = json.loads(command(tmp_path, "s.zarr", 1).communicate()[0])
    assert facts["chunks_computed"] == 61 - before
    assert facts["states"] == 60_500
    _, numbers = all_at_once(read_spec(tmp_path / "s.toml"))
    assert np.allclose(facts["mean"], numbers.mean(0), atol=1e-9)
    assert np.allclose([w[0] for w in facts["worst"]], np.abs(numbers).max(0))


def workers_of(parent: int) -> list[int]:
    """Processes of Dask's workers below a process: those whose own parent is not that process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, parent_of = path.parent.name, int(path.read_text().rsplit(")", 1)[1].split()[1])
            words = (path.parent / "cmdline").read_bytes().decode().replace("\0", " ")
        except (OSError, IndexError):
            continue
        if parent_of == parent and re.search(r"spawn_main", words):
            found.append(int(number))
    return found


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_killed_worker_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SPEC)
    study = command(tmp_path, "s.zarr", 2)
    until_done(tmp_path / "s.zarr", 5)
    killed = workers_of(study.pid)
    assert len(killed) == 2
    os.kill(killed[0], signal.SIGKILL)
    facts = json.loads(study.communicate()[0])
    assert facts["chunks_computed"] == 61 and facts["states"] == 60_500
    spec = read_spec(tmp_path / "s.toml")
    alone = Store.opened(tmp_path / "alone.zarr", spec)
    for k in range(spec.chunks):
        alone.write(k, chunks.computed(spec, k, alone.ranges))
    assert same(alone.finish(), Store.opened(tmp_path / "s.zarr").read())


def test_the_command_has_help() -> None:
    assert "study" in main.commands


# -- damaged stores --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A study that is done, without its result, and that."""
    path = tmp_path_factory.mktemp("damage") / "s.zarr"
    store = Store.opened(path, spec_of(BASE))
    for k in range(3):
        store.write(k, chunks.computed(store.spec, k, store.ranges))
    return path, store.read()


def completed(path: Path) -> Kept:
    """The study, after what was lost is computed again."""
    store = Store.opened(path, spec_of(BASE))
    store.damaged()
    for k in np.flatnonzero(~store.done).tolist():
        store.write(k, chunks.computed(store.spec, k, store.ranges))
    return store.read()


def read_only(path: Path) -> Kept | None:
    """The study as a reader has it; None where chunks are missing, which the count shows."""
    store = Store.opened(path)
    return store.read() if store.done.all() else None


@pytest.mark.parametrize("flips", [16, pytest.param(600, marks=pytest.mark.full)])
def test_no_flipped_bit_changes_a_result_silently(
    finished: Any, tmp_path: Path, flips: int
) -> None:
    path, truth = finished
    rng, files = np.random.default_rng(flips), sorted(p for p in path.rglob("*") if p.is_file())
    files = [p for p in files if p.parent.parent.parent.name == "rows"] * 5 + files
    outcomes = {"named": 0, "right": 0}
    for n in range(flips):
        copy = tmp_path / f"{n}.zarr"
        shutil.copytree(path, copy)
        file = copy / files[rng.integers(len(files))].relative_to(path)
        data = bytearray(file.read_bytes())
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        file.write_bytes(data)
        for read in (read_only, completed):
            try:
                result = read(copy)
            except (ValueError, FileNotFoundError) as error:
                assert f"{n}.zarr" in str(error)
                outcomes["named"] += 1
            else:
                assert result is None or same(result, truth), file
                outcomes["right"] += 1
        shutil.rmtree(copy)
    assert min(outcomes.values()) > flips // 4


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_does_not_wait_for_a_chunk(tmp_path: Path) -> None:
    """A chunk of some 100 s, and Ctrl-C: over within seconds, and the study is kept."""
    (tmp_path / "s.toml").write_text(
        'robot = "puma560"\nmeasure = "rollout"\nstates = 1_000_000\nchunk = 1_000_000\n'
        '[draw]\nq = "limits"\n[rollout]\nduration = 20.0\ndt = 1e-3\n'
    )
    words = [sys.executable, "-m", "linkwise", "study", "s.toml", "-o", "s.zarr", "--workers", "1"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 60.0
    while not (tmp_path / "s.zarr" / "rows").exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(15.0)  # until a worker computes
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert process.returncode == 130 and b"linkwise: interrupted" in rest
    assert time.monotonic() - began < 10.0  # two of them on an idle machine


@pytest.mark.parametrize("damage", ["lost", "cut", "empty"])
def test_a_row_that_is_lost_is_computed_again(finished: Any, tmp_path: Path, damage: str) -> None:
    path, truth = finished
    shutil.copytree(path, copy := tmp_path / "s.zarr")
    row = Store.opened(copy).file(1)
    data = row.read_bytes()
    row.unlink()
    if damage != "lost":
        row.write_bytes(data[: len(data) // 2 if damage == "cut" else 0])
    with pytest.raises(ValueError, match=r"s.zarr/rows/c/1/0: is lost or damaged.* 1000 states"):
        Store.opened(copy).finish()
    store = Store.opened(copy, spec_of(BASE))
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:  # fmt: skip
        with pytest.warns(StudyWarning, match=r"rows/c/1/0: lost or damaged; computed again"):
            assert run(store, cluster.scheduler_address) == 1
    assert same(store.finish(), truth)


def test_a_study_whose_description_is_damaged_is_not_removed(finished: Any, tmp_path: Path) -> None:
    """A key that is spelt wrong is no study that was killed at its beginning."""
    path, _ = finished
    shutil.copytree(path, copy := tmp_path / "s.zarr")
    words = (copy / "zarr.json").read_text(encoding="utf-8")
    (copy / "zarr.json").write_text(words.replace('"digest"', '"digesu"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"s.zarr.zarr.json: is damaged"):
        Store.opened(copy, spec_of(BASE))
    assert len(list((copy / "rows" / "c").iterdir())) == 3
