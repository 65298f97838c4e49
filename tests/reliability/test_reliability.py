"""The reliability suite of ``tools/`` at a size that fits; ``make reliability`` runs all of it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import linkwise as lw

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from faults import attacks, engine, files, states  # noqa: E402
from faults.card import Card, Line  # noqa: E402
from faults.defects import DEFECTS  # noqa: E402
from faults.document import ROBOTS, Document, robots_folder  # noqa: E402
from faults.mjcf import MJCF_DEFECTS, Model  # noqa: E402
from faults.spoil import Defect, F, spoiled  # noqa: E402

from reliability import FULL, QUICK, SMALL  # noqa: E402

needs_robots = pytest.mark.skipif(robots_folder() is None, reason="needs example-robot-data")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    with engine.cache_in(str(tmp_path / "cache")):
        yield


def folder() -> Path:
    found = robots_folder()
    assert found is not None
    return found


def assert_met(line: Line) -> None:
    assert line.met, Card([line], "test")


def assert_noticed(line: Line) -> None:
    """Every defect is refused, most, or told; and named."""
    noticed = (line.refused or 0) + (line.told or 0)
    assert noticed == line.named == line.cases, Card([line], "test")
    assert (line.silent, line.non_finite, line.wrong) == (0, 0, 0)
    assert (line.refused or 0) > 0.9 * line.cases
    assert_met(line)


PANDA = [pytest.param(x, marks=() if x == "panda" else pytest.mark.full) for x in QUICK.robots]


@needs_robots
@pytest.mark.parametrize("name", PANDA)
def test_defects_in_real_robots_are_refused_and_named(name: str, tmp_path: Path) -> None:
    line = files.urdf_defects(folder(), [name], tmp_path)
    assert line.cases > 400
    assert_noticed(line)


@needs_robots
@pytest.mark.parametrize("name", PANDA)
def test_defects_in_mjcf_are_refused_and_named(name: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    line = files.mjcf_defects(folder(), [name], tmp_path)
    assert line.cases > 350
    assert_noticed(line)


def test_defects_in_tables_are_refused_and_named() -> None:
    assert_noticed(files.dh_defects((3, 4)))


@needs_robots
def test_damaged_bytes_are_read_or_refused(tmp_path: Path) -> None:
    line = files.byte_fuzz(folder(), SMALL, 400, tmp_path)
    assert line.refused is not None and line.refused > 200
    assert_met(line)


def test_hostile_xml_does_nothing(tmp_path: Path) -> None:
    assert_met(attacks.run_xml_attacks(tmp_path.resolve()))


def test_hostile_paths_open_nothing(tmp_path: Path) -> None:
    assert_met(attacks.run_path_attacks(tmp_path.resolve()))


@pytest.mark.parametrize("methods", ["one", pytest.param("all", marks=pytest.mark.full)])
def test_bad_states_stay_alone(methods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One method of each function on small robots, or all of them on an arm of six joints."""
    robots = {"six links": lw.from_dh([engine.LINK] * 6)}
    if methods == "one":
        body = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": (0.2, 0.3, 0.4)}
        stone = lw.Builder("stone").link("stone", **body)
        stone.joint("flight", "free", parent="base", child="stone")
        robots = {"two links": lw.from_dh([engine.LINK] * 2), "a stone in flight": stone.build()}
        every = states.calls
        monkeypatch.setattr(states, "calls", lambda robot: first_calls(robot, every(robot)))
    assert_met(states.isolation(robots, 515))


def first_calls(robot: lw.Robot, calls: list[Any]) -> list[Any]:
    """One method of each function: what needs six degrees of freedom in flight, else the arm's."""
    first = {call[0]: call for call in reversed(calls)}
    return [x for x in first.values() if (x[0] == "operational_inertia") == (robot.nv == 6)]


def test_a_damaged_cache_is_noticed(tmp_path: Path) -> None:
    assert_met(engine.cache_faults(120, tmp_path))


def test_killed_compilers_leave_nothing_half(tmp_path: Path) -> None:
    assert_met(engine.kills(2, tmp_path))


def test_threads_agree() -> None:
    assert_met(engine.threads(16, 300, 24))


# -- the suite itself -----------------------------------------------------------------------------


def test_the_full_size_is_what_was_promised() -> None:
    assert len(DEFECTS) >= 45 and len(FULL.robots) >= 10
    assert len(MJCF_DEFECTS) >= 100 and len(FULL.mjcf) >= 10
    for defects in (DEFECTS, MJCF_DEFECTS):
        assert len({defect.name for defect in defects}) == len(defects)
    assert FULL.fuzz >= 2000 and FULL.cache >= 2000 and FULL.states >= 4096
    assert len(attacks.xml_attacks(Path("/secret"))) >= 20
    assert len(set(attacks.path_attacks("/secret.stl"))) >= 40
    assert {file.partition("/")[0] for file in ROBOTS.values()}.__len__() >= 10


@needs_robots
def test_every_defect_finds_a_place_and_changes_the_file() -> None:
    documents = [Document.read(folder() / ROBOTS[name]) for name in ("panda", "talos_arm")]
    for defect in DEFECTS:
        assert_spoils(defect, documents)


@needs_robots
def test_every_defect_of_mjcf_finds_a_place_and_changes_the_file() -> None:
    pytest.importorskip("mujoco")
    models = [Model.of_urdf(folder() / ROBOTS[name]) for name in ("panda", "a1", "so101")]
    for defect in MJCF_DEFECTS:
        assert_spoils(defect, models)


def assert_spoils(defect: Defect[F], documents: list[F]) -> None:
    texts = [(d.text(), bad) for d in documents for bad in spoiled(d, defect)]
    assert texts, defect.name
    assert all(bad != good for good, bad in texts), defect.name


def test_the_watch_sees_files_and_addresses(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with attacks.watched() as seen:
        file.read_text()
    assert ("open", str(file)) in seen
    with attacks.watched() as seen:
        pass
    assert not seen


def test_the_watch_knows_its_own_threads(tmp_path: Path) -> None:
    """A thread that the watched code starts is watched; one that ran before is not."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    for file in (mine, other):
        file.write_text("")
    go, done = threading.Event(), threading.Event()

    def stranger() -> None:
        go.wait(60)
        other.read_text()
        done.set()

    running = threading.Thread(target=stranger)
    running.start()
    with attacks.watched() as seen:
        go.set()
        assert done.wait(60)
        own = threading.Thread(target=mine.read_text)
        own.start()
        own.join()
    running.join()
    assert ("open", str(mine)) in seen and ("open", str(other)) not in seen


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ('a.urdf:2: <link name="b">: no', True),
        ('a.urdf:2: <link name="b"> <mass>: no', False),
        ('a.urdf:1: <link name="b">: no', False),
        ('a.urdf:9: <link name="b">: no', False),
        ('b.urdf:2: <link name="b">: no', False),
        ("a.urdf:2: no", False),
        ("KeyError: 'b'", False),
    ],
)
def test_a_message_names_a_place_only_if_it_is_there(message: str, named: bool) -> None:
    assert files.is_named(message, "a.urdf", '<robot>\n<link name="b"/>\n</robot>') is named


def test_a_case_that_goes_wrong_is_counted() -> None:
    def hang() -> lw.Robot:
        while True:
            pass

    def crash() -> lw.Robot:
        raise KeyError("name")

    line = Line("probe", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.deadline.__wrapped__, "__defaults__", (0.05,))
        files.attempt(line, "hang", hang, lambda _: True)
    files.attempt(line, "crash", crash, lambda _: True)
    files.attempt(line, "accepted", lambda: lw.load("puma560"), lambda _: True)
    assert (line.cases, line.wrong, line.silent, line.refused) == (3, 2, 1, None)
    assert "Hang" in line.failures[0] and "KeyError" in line.failures[1]


def test_the_card_says_what_was_missed() -> None:
    good = Line("good", "all well", cases=10, refused=10, met=True)
    bad = Line("bad", "none wrong", cases=1000, wrong=3, failures=["case 7: KeyError"])
    card = Card([good, bad], "quick")
    lines = str(card).splitlines()
    assert lines[0].split() == [
        *("experiment", "cases", "refused", "told", "named", "silent", "non-finite", "wrong", "s")
    ]
    assert lines[3].split() == ["bad", "1,000", "-", "-", "-", "-", "-", "3", "0", "MISSED"]
    assert "bad: case 7: KeyError" in lines
    assert not card.met and Card([good], "quick").met
    assert json.loads(json.dumps(card.facts()))["lines"][1]["failures"] == ["case 7: KeyError"]
