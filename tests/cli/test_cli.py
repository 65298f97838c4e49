"""The command line: what it prints, how it fails, and that the demo's self-check passes."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.bench import selfcheck
from linkwise.bench.bodies import depth_first
from linkwise.bench.calls import DYNAMICS, STYLES, CallRow, Calls, beyond_states, calls_table
from linkwise.bench.contest import Settings, Times, race
from linkwise.bench.limit import Peak
from linkwise.bench.peers import PEERS, differences, find_peers
from linkwise.bench.selfcheck import Check, self_check
from linkwise.bench.states import tip
from linkwise.bench.suite import GOALS, XARM7, Goal, Line, Suite, find_robot, suite_table
from linkwise.bench.timing import Way, one_core
from linkwise.cli.main import INTERRUPTED, main
from linkwise.cli.output import as_options, say_json
from linkwise.models import BUNDLED
from linkwise.study.counts import compare
from linkwise.study.generic import generic_chain
from linkwise.text import Progress, aligned, duration, file_size

LINK = """<link name="{name}"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="{mass}"/>
<inertia ixx="{ixx}" iyy="0.2" izz="0.25" ixy="0.01" ixz="0" iyz="0.02"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0.3 0.1 0.2" rpy="0.3 0.5 -0.2"/><axis xyz="0 0.6 0.8"/>
<limit lower="-1" upper="1" effort="10" velocity="5"/></joint>"""
TINY = ("--seconds", "0.001", "--batch", "64")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@cache
def info_of_puma() -> str:
    result = run("info", "puma560")
    assert result.exit_code == 0
    return result.output


def linkwise(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the real thing, in its own process."""
    home = str(Path(lw.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": home, "PYTHONIOENCODING": "utf-8"} | environment
    command = [sys.executable, "-m", "linkwise.cli.main", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8")


def branching(folder: Path, ixx: float = 0.2, kind: str = "revolute") -> str:
    """A URDF with a branch, a slide, and links listed so that subtrees are torn apart."""
    names = ("base", "a", "b", "c", "d")
    links = [LINK.format(name=n, mass=1 + k, ixx=ixx) for k, n in enumerate(names)]
    edges = (("base", "a", kind), ("a", "b", "prismatic"), ("a", "c", "revolute"),
             ("b", "d", "continuous"))  # fmt: skip
    joints = [JOINT.format(name=f"j{c}", kind=k, parent=p, child=c) for p, c, k in edges]
    path = folder / "branching.urdf"
    path.write_text("\n".join(('<robot name="branching">', *links, *joints, "</robot>")))
    return str(path)


@pytest.fixture
def pendulum(tmp_path: Path) -> str:
    """A URDF of two joints, for what asks for nothing more of a robot."""
    body = {"mass": 1.0, "com": (0.0, 0.1, -0.5), "inertia": (0.1, 0.1, 0.01)}
    builder = lw.Builder("double_pendulum").link("base", **body)
    builder.link("upper", **body).link("lower", **body)
    builder.joint("shoulder", "revolute", parent="base", child="upper", axis=(0, 1, 0))
    builder.joint("elbow", "revolute", parent="upper", child="lower", axis=(1, 0, 0))
    builder.build().save(tmp_path / "pendulum.urdf")
    return str(tmp_path / "pendulum.urdf")


# six degrees of freedom in one joint: with it, even a pendulum has every function
FLYING = ("--base", "free")


# -- help and version ----------------------------------------------------------------------------


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in ("info", "view", "report", "ops", "bench", "source", "cache", "demo"):
        assert f"\n  {name} " in result.output


@pytest.mark.parametrize(
    "name", ["info", "view", "report", "ops", "bench", "source", "cache", "demo"]
)
def test_every_command_has_help(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: main {name} ")
    assert len(result.output.splitlines()) > 5


def test_version() -> None:
    assert run("--version").output == f"linkwise, version {lw.__version__}\n"


# -- info ----------------------------------------------------------------------------------------


def test_info_shows_the_robot() -> None:
    robot, text = lw.load("puma560"), info_of_puma()
    assert str(robot) in text
    assert robot.tree.digest in text
    drawn = text.index("base\n└─ link1  (joint1, revolute)\n   └─ link2  (joint2, revolute)\n")
    assert text.index(str(robot)) < drawn < text.index("\ninverse_dynamics ")
    assert "regressor" not in text  # `ops` has them all


def test_info_draws_branches_and_not_long_chains(tmp_path: Path) -> None:
    from linkwise.summary import drawn

    tree = lw.load("iiwa14").with_attached(lw.load("iiwa14"), "link3", prefix="b_").tree
    lines = drawn(tree).splitlines()
    assert lines[3:5] == [
        "      └─ link3  (joint3, revolute)",
        "         ├─ link4  (joint4, revolute)",
    ]
    assert lines[8] == "         └─ b_link1  (b_joint1, revolute)"
    assert drawn(lw.chain(1000).tree) == "base\n└─ a chain of 1,000 links"


def test_info_json_counts_what_the_robot_counts(pendulum: str) -> None:
    facts = json.loads(run("info", pendulum, "--json").output)
    assert facts["nv"] == 2
    chosen = {c["function"]: c for c in facts["operations"] if c["chosen"]}
    count = lw.load(pendulum).operation_count("forward_dynamics")
    assert chosen["forward_dynamics"]["multiplications"] == count.multiplications


def test_info_of_a_short_robot_leaves_out_what_it_cannot_have(tmp_path: Path) -> None:
    result = run("info", branching(tmp_path))
    assert result.exit_code == 0
    assert "operational_inertia " not in result.output


def test_info_shows_what_auto_picks_and_points_to_the_rest() -> None:
    text = info_of_puma()
    assert re.search(r"\nforward_dynamics +crba ", text)
    assert "pcg" not in text
    assert text.endswith("Every function and method: linkwise ops puma560\n")


# -- convert -------------------------------------------------------------------------------------


def test_convert_writes_a_robot_that_is_the_same(pendulum: str, tmp_path: Path) -> None:
    path = tmp_path / "out.urdf"
    result = run("convert", pendulum, "-o", str(path))
    assert result.exit_code == 0
    assert result.output == f"{path}: 2 degrees of freedom, 2 moving links\n"
    assert lw.load(path).tree.digest == lw.load(pendulum).tree.digest
    fails(run("convert", pendulum, "-o", str(path)), "out.urdf exists", "--force")
    facts = json.loads(run("convert", pendulum, "-o", str(path), "--force", "--json").output)
    assert facts == {"written": str(path), "joints": 2, "links": 2, "same_order": True}
    fails(run("convert", pendulum, "-o", str(tmp_path / "out.xml")), "ends in .urdf")


def test_the_module_is_the_command() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "linkwise", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"linkwise, version {lw.__version__}\n"


# -- ops -----------------------------------------------------------------------------------------


def test_ops_counts_every_method(pendulum: str) -> None:
    result = run("ops", pendulum, *FLYING)
    assert result.exit_code == 0
    robot = lw.load(pendulum, base="free")
    rows = {tuple(line.split()[:2]): line.split() for line in result.output.splitlines() if line}
    for function, methods in FUNCTIONS.items():
        for method in methods:
            assert (function, method) in rows or (function, f"{method},") in rows
    count = robot.operation_count("forward_dynamics", "aba")
    expected = (count.multiplications, count.additions, count.divisions, 0, count.sincos)
    found = [int(x.replace(",", "")) for x in rows["forward_dynamics", "aba"][2:7]]
    assert found == list(expected)
    body = robot.operation_count("forward_dynamics", "pcg").iteration
    assert body is not None
    assert rows["forward_dynamics", "pcg,"][2:5] == ["an", "iteration", str(body.multiplications)]


def test_ops_json_is_what_the_robot_counts(pendulum: str) -> None:
    facts = json.loads(run("ops", pendulum, "--json").output)
    rows = {(c["function"], c["method"]): c for c in facts["operations"]}
    count = lw.load(pendulum).operation_count("forward_dynamics", "ccg")
    assert rows["forward_dynamics", "ccg"]["square_roots"] == 0
    assert rows["forward_dynamics", "ccg"]["additions"] == count.additions
    assert rows["forward_dynamics", "ccg"]["iteration"]["divisions"] == 2
    assert rows["forward_dynamics", "aba"]["iteration"] is None


def test_ops_of_a_general_arm_stand_beside_the_claims() -> None:
    result = run("ops", "--generic", "3", "--seed", "0")
    assert result.exit_code == 0
    assert result.output.startswith("A general arm of 3 joints (revolute, seed 0)")
    claim = next(line for line in result.output.splitlines() if "CRBA" in line)
    ours = lw.Robot(generic_chain(3)).operation_count("mass_matrix", "crba")
    assert "124 / 122" in claim and "above" not in claim
    assert f" {ours.multiplications} / {ours.additions} " in claim


def test_ops_of_a_general_arm_as_json() -> None:
    facts = json.loads(run("ops", "--generic", "3", "--kind", "mixed", "--json").output)
    assert (facts["joints"], facts["kind"], facts["seed"]) == (3, "mixed", 0)
    rnea = next(r for r in facts["papers"] if r["claim"] == "RNEA")
    assert rnea["printed"] == {"multiplications": 171, "additions": 143}
    assert rnea["holds"]
    assert len(facts["operations"]) > 30


def test_ops_of_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkwise.cli.ops.compare", lambda _, **arm: compare((6,), **arm))
    result = run("ops", "--papers")
    assert result.exit_code == 0
    assert "1,647 / 1,621" in result.stdout
    facts = json.loads(run("ops", "--papers", "--json").stdout)
    assert {row["n"] for row in facts["papers"]} == {6}


def test_a_robot_without_six_joints_has_counts(pendulum: str) -> None:
    assert run("ops", pendulum).exit_code == 0


# -- errors --------------------------------------------------------------------------------------


def fails(result: Result, *parts: str) -> None:
    assert result.exit_code == 1
    message = result.stderr.strip()
    assert message.startswith("linkwise: error: ") and "\n" not in message
    for part in parts:
        assert part in message


def test_missing_file_names_the_bundled_robots() -> None:
    for command in ("info", "ops"):
        fails(run(command, "nowhere.urdf"), "nowhere.urdf: no such file", "iiwa14, puma560")


def test_bad_urdf_says_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.urdf"
    joint = JOINT.format(name="j", kind="wobbly", parent="base", child="a")
    path.write_text(f'<robot name="bad">\n<link name="base"/>\n<link name="a"/>\n{joint}</robot>')
    fails(run("info", str(path)), "bad.urdf:4:", "wobbly", "revolute")


def test_malformed_xml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text("<robot name='x'>\n<link")
    fails(run("bench", str(path)), "broken.urdf:2")


def test_impossible_body_is_refused_taken_or_repaired(tmp_path: Path) -> None:
    path = branching(tmp_path, ixx=9.0)
    fails(run("info", path), "branching.urdf:", "at most the sum of the other two")
    taken = run("info", path, "--no-strict")
    assert taken.exit_code == 0
    assert taken.stderr.startswith("linkwise: warning: ") and "as written" in taken.stderr
    repaired = run("info", path, "--repair", "nearest")
    assert repaired.exit_code == 0
    assert repaired.stderr.startswith("linkwise: note: ") and "repaired" in repaired.stderr


def test_unknown_function_lists_them() -> None:
    fails(run("source", "puma560", "mass"), "function 'mass'", *FUNCTIONS)


def test_unknown_frame_suggests() -> None:
    fails(
        run("source", "puma560", "jacobian", "--frame", "lnik6"), "'lnik6'", "did you mean 'link6'"
    )


def test_unknown_method() -> None:
    fails(run("source", "puma560", "bias", "--method", "aba"), "method 'aba'", "'rnea'")


def test_unwritable_output() -> None:
    """A folder that is missing is told before the work, not after it."""
    for words in (("source", "puma560", "bias"), ("report", "puma560"), ("convert", "puma560")):
        result = run(*words, "-o", "/nowhere/at/all.c")
        assert result.exit_code == 2
        assert 'there is no folder "/nowhere/at"; expected one that exists' in result.output


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("source", "puma560", "bias", "--backend", "fortran"), "'c', 'llvm', 'asm'"),
        (("source", "puma560", "jacobian"), "needs --frame, one of: base,"),
        (("bench",), "Missing argument 'ROBOT'"),
        (("bench", "puma560", "--suite"), "--suite takes no ROBOT"),
        (("bench", "puma560", "--batch", "0"), "x>=1"),
        (("bench", "--suite", "--threads", "2"), "--threads has no meaning with --suite"),
        (("bench", "--suite", "--base", "free"), "are for a ROBOT"),
        (("bench", "puma560", "--calls", "--dtype", "float32"), "--dtype has no meaning with --ca"),
        (("bench", "puma560", "--seconds", "0"), "x>0"),
        (("info",), "Missing argument 'ROBOT'"),
        (("ops",), "Missing ROBOT; or --generic N, or --papers."),
        (("ops", "puma560", "--generic", "4"), "--generic and --papers take no ROBOT"),
        (("ops", "puma560", "--papers"), "--generic and --papers take no ROBOT"),
        (("ops", "--generic"), "'--generic' requires an argument"),
        (("ops", "--generic", "0"), "'--generic': 0 is not in the range 1<=x<=30"),
        (("ops", "--generic", "31"), "31 is not in the range 1<=x<=30"),
        (("ops", "--generic", "-2"), "-2 is not in the range 1<=x<=30"),
        (("ops", "--generic", "2.5"), "'2.5' is not a valid integer"),
        (("ops", "--generic", "puma560"), "'puma560' is not a valid integer"),
        (("ops", "--papers", "--generic", "4"), "--papers has its own lengths"),
        (("ops", "puma560", "--seed", "1"), "--seed and --kind are for --generic"),
        (("ops", "--generic", "3", "--seed", "-1"), "x>=0"),
        (("ops", "--generic", "3", "--kind", "ball"), "'revolute', 'prismatic', 'mixed'"),
        (("ops", "--generic", "3", "--base", "free"), "are for a ROBOT"),
        (("dance",), "No such command 'dance'"),
    ],
)
def test_usage_errors_exit_with_2(arguments: tuple[str, ...], part: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert part in result.stderr and "Traceback" not in result.stderr


def test_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("linkwise.cli.info.load_robot", interrupt)
    result = run("info", "puma560")
    assert result.exit_code == INTERRUPTED == 130
    assert result.stderr == "linkwise: interrupted\n"


def test_missing_backend_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise lw.BackendUnavailable("llvmlite is not installed: pip install llvmlite")

    monkeypatch.setattr("linkwise.cli.source.load_robot", unavailable)
    fails(run("source", "puma560", "bias"), "pip install llvmlite")


# -- source --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "sign"), [("c", "#include <math.h>"), ("llvm", "define "), ("asm", ".text")]
)
def test_source_backends(backend: str, sign: str) -> None:
    result = run("source", "puma560", "gravity_torque", "--backend", backend)
    assert result.exit_code == 0
    assert sign in result.stdout


def test_source_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "fd.c"
    result = run("source", "puma560", "forward_dynamics", "--method", "aba", "-o", str(path))
    assert (result.exit_code, result.output) == (0, "")
    robot = lw.load("puma560")
    assert path.read_text() == robot.source("forward_dynamics", method="aba")


def test_source_of_a_frame_in_float32() -> None:
    arguments = ("jacobian", "--frame", "link6", "--dtype", "float32", "--backend", "llvm")
    result = run("source", "puma560", *arguments)
    assert result.exit_code == 0
    assert "float32" in result.stdout


def test_info_lists_every_link_without_mass(tmp_path: Path, pendulum: str) -> None:
    """Twelve links on a line, of which ten have no mass, and the last one carries a body."""
    empty = "".join(f'<link name="l{k}"/>' for k in range(11))
    body = LINK.format(name="l11", mass=1, ixx=0.2)
    axes = ("1 0 0", "0 1 0", "0 0 1")
    joints = "".join(
        f'<joint name="j{k}" type="prismatic"><parent link="l{k}"/><child link="l{k + 1}"/>'
        f'<axis xyz="{axes[k % 3]}"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for k in (8, 9, 10)
    )
    fixed = "".join(
        f'<joint name="f{k}" type="fixed"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
        for k in range(8)
    )
    path = tmp_path / "bare.urdf"
    path.write_text(f'<robot name="bare">{empty}{body}{fixed}{joints}</robot>')
    result = run("info", str(path))
    assert result.exit_code == 0
    assert "\nlinks without mass  l9, l10\n" in result.output
    assert "links without mass" not in run("info", pendulum).output


# -- cache ---------------------------------------------------------------------------------------


def test_cache_shows_and_clears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    lw.load("puma560").gravity_torque(np.zeros((2, 6)))
    facts = json.loads(run("cache", "--json").output)
    assert facts["folder"] == str(tmp_path) and facts["enabled"]
    assert facts["entries"] >= 1 and facts["bytes"] > 0
    assert str(tmp_path) in run("cache").output
    assert "removed" in run("cache", "--clear").output
    assert json.loads(run("cache", "--json").output)["entries"] == 0


def test_cache_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    assert "off" in run("cache", "--clear").output
    assert json.loads(run("cache", "--json").output)["enabled"] is False


# -- bench ---------------------------------------------------------------------------------------


def test_bench_prints_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWISE_PROGRESS", "on")
    result = run("bench", "puma560", *TINY)
    assert result.exit_code == 0
    for word in ("machine", "versions", "forward_dynamics", "crba *", "jacobian", "ns per state"):
        assert word in result.stdout
    assert "timing forward_dynamics" in result.stderr


def test_bench_json(pendulum: str) -> None:
    result = run("bench", pendulum, *TINY, "--json", "--dtype", "float32", "--threads", "2")
    facts = json.loads(result.stdout)
    modes = {(row["function"], row["mode"]) for row in facts["rows"]}
    assert {("forward_dynamics", "batch"), ("forward_dynamics", "call")} <= modes
    assert all(row["ours"] > 0 for row in facts["rows"])
    assert facts["settings"]["threads"] == 2


def test_bench_of_call_styles(pendulum: str) -> None:
    result = run("bench", pendulum, "--calls", "--seconds", "0.001", "--json")
    facts = json.loads(result.stdout)
    rows = {(row["function"], row["style"]): row for row in facts["rows"]}
    assert all(row["ours"] > 0 for row in rows.values()) and facts["empty"]["ours"] > 0
    for function in DYNAMICS:
        assert {style.name for style in STYLES if style.applies(function)} == {
            style for name, style in rows if name == function and "first call" not in style
        }
    assert ("mass_matrix", "f_ext") not in rows and ("mass_matrix", "16, broadcast q") not in rows
    assert ("forward_dynamics", "first call, one state") in rows


def test_call_styles_compute_the_same(rng: np.random.Generator) -> None:
    """Whatever the layout, a style's call gives the result of its states, not of others."""
    contest = Calls(lw.load("puma560"), 0.001).contest
    plain = contest.robot.forward_dynamics(*contest.states.arrays)
    for style in STYLES:
        way = contest.ours("forward_dynamics", style)
        result = eval(way.statement, dict(way.names))
        found = np.asarray(result[0] if "status" in style.extra else result).reshape(-1, 6)
        if "f_ext" not in style.extra and style.first is None:
            tolerance = 1e-3 if "float32" in style.name else 1e-12
            np.testing.assert_allclose(found, plain[: style.states], tolerance, tolerance)


def beside(ours: float, peer: float) -> Times:
    return Times(ours, {"pinocchio": peer}, {"pinocchio": "them"})


def test_calls_table_says_what_a_batch_costs_beyond_its_states() -> None:
    rows = beyond_states(
        [
            CallRow("f", "one state", 1, False, beside(300.0, 900.0)),
            CallRow("f", "batch of 4", 4, True, beside(1000.0, 3600.0)),
            CallRow("f", "4096, out=", 4096, True, Times(409600.0)),
        ]
    )
    assert [row.beyond for row in rows] == [None, 600.0, None]
    text = calls_table(rows)
    assert "3.0×" in text and "3.6×" in text and "600" in text


def test_bench_without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    result = run("bench", "puma560", *TINY)
    assert result.exit_code == 0
    assert "pinocchio  not installed" in result.stdout
    assert "mujoco     not installed" in result.stdout


def test_suite_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkwise.bench.suite.XARM7", XARM7.with_name("nobody.urdf"))
    fails(run("bench", "--suite"), "nobody.urdf not found", "example-robot-data")


def test_suite_table_says_which_goals_are_met() -> None:
    goal, quick = Goal(2, 3), Goal(20e6, 10e6, time=True)
    lines = [
        Line("one", beside(10.0, 35.0), goal, 0.5),
        Line("two", beside(10.0, 25.0), goal),
        Line("three", beside(10.0, 15.0), goal),
        Line("four", Times(10.0), goal),
        Line("five", Times(5e6), quick),
        Line("six", Times(15e6), quick),
        Line("seven", Times(25e6), quick),
    ]
    found = [line.goal.met(line.times) for line in lines]
    assert found == ["aim", "required", "no", "-", "aim", "required", "no"]
    text = suite_table(lines)
    assert "3.5×" in text and "50%" in text and "≤ 10 ms" in text and "≥ 2×" in text


def test_every_line_of_the_suite_has_a_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines are there without Pinocchio too, beside which the goals are set, not MuJoCo."""
    try:
        table = Suite(Settings(batch=16, seconds=0.001))
    except ValueError as error:
        pytest.skip(str(error))
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    monkeypatch.setattr("linkwise.bench.suite.TALOS", XARM7)
    monkeypatch.setattr("linkwise.bench.suite.first_calls", lambda *_: (4e8, 1e7))
    monkeypatch.setattr("linkwise.bench.suite.import_time", lambda: 3e8)
    table = Suite(Settings(batch=16, seconds=0.001))
    lines = list(table.rows(lambda *_: None))
    assert [line.what for line in lines] == list(GOALS)
    assert "pinocchio: not installed." in table.text(lines)
    met = [row["met"] for row in table.facts(lines)["rows"]]
    assert met[:6] == ["-"] * 6 and met[-3:] == ["required", "required", "no"]


@pytest.mark.parametrize("name", ["puma560", "iiwa14", "branching", "xarm7"])
def test_peers_compute_the_same_robot(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    if name == "xarm7":
        try:
            path = str(find_robot(XARM7))
        except ValueError as error:
            pytest.skip(str(error))
    else:
        path = branching(tmp_path) if name == "branching" else name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linkwise.errors.Where.warn", lambda *_: None)
        robot = lw.load(path)
    peers, missing = find_peers(robot, tip(robot), PEERS)
    assert "pinocchio" not in missing
    functions = ["forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse",
                 "bias", "gravity_torque", "jacobian"]  # fmt: skip
    for peer in peers:
        for function, error in differences(robot, tip(robot), peer, functions).items():
            assert error < 1e-11, (peer.name, function)


def test_peers_get_subtrees_in_one_piece(tmp_path: Path) -> None:
    robot = lw.load(branching(tmp_path))
    names = [robot.link_names[i] for i in depth_first(robot.tree)]
    assert names.index("d") == names.index("b") + 1
    assert sorted(names) == ["a", "b", "c", "d"]


# -- demo ----------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> str:
    """A URDF of two branches; all of its functions exist on a flying base."""
    body = {"mass": 1.5, "com": (0.1, -0.2, 0.1), "inertia": (0.3, 0.2, 0.25)}
    builder = lw.Builder("tree").link("base", **body)
    for name, kind in (("left", "revolute"), ("right", "prismatic")):
        builder.link(name, **body)
        builder.joint(name, kind, parent="base", child=name, xyz=(0.2, 0.1, 0.3))
    builder.build().save(tmp_path / "tree.urdf")
    return str(tmp_path / "tree.urdf")


@pytest.mark.parametrize(
    "arguments", [FLYING, pytest.param(("puma560",), marks=pytest.mark.full)], ids=" ".join
)
def test_demo_passes_its_self_check(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tree: str
) -> None:
    checks: list[Check] = []

    def checked(robot: lw.Robot, report: object) -> list[Check]:
        checks.extend(self_check(robot))
        return checks

    monkeypatch.setattr("linkwise.report.findings.self_check", checked)
    robot = () if "puma560" in arguments else (tree,)
    result = run("demo", *robot, *arguments, "--seconds", "0.001")
    assert result.exit_code == 0
    for title in ("Robot", "A worked state", "Self-check", "Operation counts", "Speed"):
        assert f"\n{title}\n{'=' * len(title)}\n" in result.stdout
    assert "checks passed" in result.stdout and "FAILED" not in result.stdout
    found = {(check.function, check.against.split(",")[0]) for check in checks}
    every = {(f, m) for f, methods in FUNCTIONS.items() for m, x in methods.items() if not x.scans}
    assert every <= found  # scans are for chains, and these robots branch


def test_demo_fails_when_a_check_does(monkeypatch: pytest.MonkeyPatch, pendulum: str) -> None:
    bad = [Check("bias", "nothing", 1.0), Check("bias", "nothing", float("nan"))]
    monkeypatch.setattr("linkwise.report.findings.self_check", lambda robot, report: bad)
    result = run("demo", pendulum, "--seconds", "0.001")
    assert result.exit_code == 1
    assert "2 of 2 checks FAILED" in result.stdout


def tilted(joints: int) -> lw.Robot:
    """Turns about vertical axes, written as tilted ones in a tilted frame: gravity does no work."""
    builder = lw.Builder("tilted")
    for k in range(joints):
        rpy = (0.0, -math.atan2(0.6, 0.8), 0.0) if k == 0 else (0.0, 0.0, 0.0)
        builder.link(f"l{k}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.15))
        builder.joint(f"j{k}", "revolute", parent=f"l{k - 1}" if k else "base", child=f"l{k}",
                      axis=(0.6, 0.0, 0.8), xyz=(0.1, 0.3, 0.2), rpy=rpy)  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("joints", [1, 3])
def test_self_check_passes_results_that_are_zero_to_rounding(joints: int) -> None:
    """Such as the bias, the kinematic Hessian, and an inertia that no force can move."""
    assert [check.cells for check in self_check(tilted(joints)) if not check.ok] == []


def test_self_check_notices_a_wrong_function(monkeypatch: pytest.MonkeyPatch, tree: str) -> None:
    robot = lw.load(tree, base="free")
    right = lw.Robot.kinetic_energy
    monkeypatch.setattr(lw.Robot, "kinetic_energy", lambda self, q, qd: 1.001 * right(self, q, qd))
    failed = {check.function for check in selfcheck.self_check(robot) if not check.ok}
    assert failed == {"kinetic_energy"}


# -- pieces --------------------------------------------------------------------------------------


def test_tables_line_up() -> None:
    text = aligned(("name", "ns", "<via"), [("a", "1.0", "x"), ("longer", "1,000.0", "yy")])
    assert text.splitlines() == [
        "name         ns  via",
        "------  -------  ---",
        "a           1.0  x",
        "longer  1,000.0  yy",
    ]


def test_units() -> None:
    assert [duration(x) for x in (5.0, 1500.0, 2.5e6, 3e9)] == ["5 ns", "1.5 µs", "2.5 ms", "3 s"]
    assert [file_size(x) for x in (5, 2048, 3 << 20)] == ["5 bytes", "2.0 KiB", "3.0 MiB"]


def test_measuring_leaves_out_what_is_missing() -> None:
    way = Way("nothing", "pass", {}, states=10)
    times = race(way, {"them": replace(way, label="how", states=1), "nobody": None}, 0.001)
    assert times.ours > 0 and times.via == {"them": "how"} and times.ratio("nobody") is None
    assert (times.ratio("them") or 0.0) > 3  # the same statement, ten times as many states


def test_one_core_gives_back_the_others() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("no affinity on this system")
    before = os.sched_getaffinity(0)
    with ThreadPoolExecutor(1) as pool:
        with one_core() as pinned:
            inside = pool.submit(os.sched_getaffinity, 0).result()  # a thread started while pinned
            assert not pinned or len(os.sched_getaffinity(0)) == len(inside) == 1
        assert pool.submit(os.sched_getaffinity, 0).result() == before
    assert os.sched_getaffinity(0) == before


def test_limit_counts_the_busier_pipe() -> None:
    count = lw.OperationCount(multiplications=100, additions=100, divisions=0, sincos=0, fused=50)
    assert Peak(multiplies=1.0, mixed=2.0).bound(count, 4) == pytest.approx(25.0)
    assert Peak(multiplies=2.0, mixed=2.0).bound(count, 4) == pytest.approx(18.75)


# -- real processes ------------------------------------------------------------------------------


def test_process_prints_and_exits() -> None:
    done = linkwise("info", "puma560")
    assert done.returncode == 0 and done.stderr == ""
    assert "puma560" in done.stdout


def test_process_prints_what_the_encoding_has() -> None:
    done = linkwise("info", "puma560", PYTHONIOENCODING="iso8859-5")
    assert done.returncode == 0 and done.stderr == ""
    assert "m/s?" in done.stdout


def test_process_fails_without_a_traceback() -> None:
    done = linkwise("info", "nowhere.urdf")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("linkwise: error: ") and "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_process_ends_quietly_when_nobody_reads() -> None:
    home = str(Path(lw.__file__).parents[1])
    command = f'"{sys.executable}" -m linkwise.cli.main source iiwa14 forward_dynamics | true'
    env = os.environ | {"PYTHONPATH": home}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True)
    assert done.stderr == ""


def test_cache_that_cannot_be_used_is_a_warning(tmp_path: Path, pendulum: str) -> None:
    place = tmp_path / "a file"
    place.write_text("in the way")
    done = linkwise("bench", pendulum, *TINY, LINKWISE_CACHE=str(place))
    assert done.returncode == 0, done.stderr
    assert "linkwise: warning: kernel cache not used" in done.stderr


@pytest.mark.parametrize("command", [["ops"], ["bench"], ["bench", "--calls"], ["demo"]])
def test_a_robot_without_joints_has_nothing_to_measure(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "box.urdf"
    path.write_text('<robot name="box"><link name="base"/></robot>')
    result = CliRunner().invoke(main, [*command, str(path)])
    assert result.exit_code == 2
    assert "box has no joint that moves: there is nothing to count or to measure" in result.output
    assert CliRunner().invoke(main, ["info", str(path)]).exit_code == 0


# -- manners -------------------------------------------------------------------------------------


def test_ways_out_are_written_as_options(tmp_path: Path) -> None:
    text = Path(branching(tmp_path, ixx=0.9)).read_text()
    (tmp_path / "bad.urdf").write_text(text)
    told = run("info", str(tmp_path / "bad.urdf")).stderr
    assert "--repair nearest takes the nearest physically consistent body, --no-strict this" in told
    assert "strict=False" not in told
    taken = run("info", str(tmp_path / "bad.urdf"), "--no-strict").stderr
    assert "the sum of the other two: taken as written" in taken and "--no-strict" not in taken
    assert as_options("declare package_dirs=['/a', '/b'] or\npackage_dirs=") == (
        "declare --package-dir '/a', '/b' or --package-dir "
    )


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("inf",), "info"),
        (("info", "iiwa41"), "iiwa14"),
        (("sim", "iiwa14", "--integrator", "rk5"), "rk4"),
        (("source", "iiwa14", "bias", "--method", "rnae"), "rnea"),
        (("source", "iiwa14", "jacobain"), "jacobian"),
        (("cache", "--cler"), "--clear"),
    ],
)
def test_what_was_meant(words: tuple[str, ...], meant: str) -> None:
    result = run(*words)
    assert result.exit_code != 0
    assert re.search(rf"[Dd]id you mean '{meant}'", result.output), result.output


def test_a_file_beside_is_what_was_meant(pendulum: str) -> None:
    near = pendulum.replace("pendulum.urdf", "pendulm.urdf")
    fails(run("info", near), f"{near}: no such file", f"did you mean '{pendulum}'?")


@pytest.mark.parametrize("name", ["puma560", "iiwa14"])
def test_a_bundled_robot_says_whose_numbers_it_has_and_has_limits(
    name: str, tmp_path: Path
) -> None:
    known = BUNDLED[name]
    text = " ".join(run("info", name).output.split())
    assert known.source in text and all(note in text for note in known.notes)
    robot = lw.load(name)
    for limits in (robot.position_limits, robot.velocity_limits, robot.effort_limits):
        assert np.isfinite(limits).all()
    assert (robot.armature > 0.1).all()
    result = run("convert", name, "-o", str(tmp_path / "out.urdf"))
    assert result.exit_code == 0 and "taken as written" in result.stderr


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run("info", "nowhere.urdf").stderr
    assert "\x1b" not in plain
    coloured = CliRunner().invoke(main, ["info", "nowhere.urdf"], color=True).stderr
    assert coloured.startswith("\x1b[31m") and click.unstyle(coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert CliRunner().invoke(main, ["info", "nowhere.urdf"], color=True).stderr == plain


def test_progress_is_a_bar_on_a_terminal_and_a_line_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINKWISE_PROGRESS", "on")
    told = Progress()
    for k in range(3):
        told(f"step {k}", k, 3)
    told.end()
    assert capsys.readouterr().err == "linkwise: step 0\n"  # the others are within ten seconds
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for k in range(3):
        told(f"step {k}", k, 3)
    assert "\r[########................] 1/3 0 s left, step 1 " in capsys.readouterr().err
    told.end()
    assert capsys.readouterr().err.strip() == ""
    monkeypatch.setenv("LINKWISE_PROGRESS", "off")
    told("nothing")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("linkwise inf", "plain,info"),
        ("linkwise info i", "plain,iiwa14"),
        ("linkwise info i", "file,i"),
        ("linkwise ik iiwa14 link", "plain,link7"),
        ("linkwise source iiwa14 gravity", "plain,gravity_torque"),
        ("linkwise sim iiwa14 --integrator ", "plain,rk4"),
    ],
)
def test_shells_complete(words: str, expected: str) -> None:
    at = str(len(words.split(" ")) - 1)
    env = {"_LINKWISE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": at}
    result = CliRunner().invoke(main, [], prog_name="linkwise", env=env)
    assert expected in result.output.split()


def test_without_a_robot_no_frame_completes() -> None:
    words = "linkwise view --frame "
    env = {"_LINKWISE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "3"}
    result = CliRunner().invoke(main, [], prog_name="linkwise", env=env)
    assert result.exit_code == 0 and not result.output.strip()


def test_json_has_only_what_json_has() -> None:
    given = {"a": np.array([1.0, np.nan]), "b": (np.inf, np.int64(3)), "c": {"d": np.bool_(True)}}
    with CliRunner().isolation() as (out, *_):
        say_json(given)
        text = out.getvalue().decode()
    assert json.loads(text) == {"a": [1.0, None], "b": [None, 3], "c": {"d": True}}


@pytest.mark.parametrize("option", [["--duration", "inf"], ["--duration", "nan"], ["--dt", "nan"]])
def test_a_simulation_takes_a_finite_time(option: list[str]) -> None:
    result = CliRunner().invoke(main, ["sim", "iiwa14", *option])
    assert result.exit_code == 2
    assert f"{option[0]} {option[1]}" in result.stderr
    assert "expected finite numbers of seconds" in result.stderr


def test_a_repair_never_overwrites_a_file(tmp_path: Path) -> None:
    bad, other = tmp_path / "bad.urdf", tmp_path / "other.urdf"
    bad.write_text('<robot name="r"><link name="a"/><lnk name="b"/></robot>')
    other.write_text("mine")
    result = CliRunner().invoke(main, ["check", str(bad), "--repair", str(other)])
    assert result.exit_code == 1 and "exists; expected the name of a new file" in result.stderr
    assert other.read_text() == "mine"


def test_a_model_in_memory_is_not_a_file() -> None:
    with pytest.raises(TypeError, match=r"load: source is a dict; expected .*from_pinocchio"):
        lw.load({})  # type: ignore[arg-type]


def test_a_misspelt_frame_is_told_without_a_chain_of_errors() -> None:
    with pytest.raises(ValueError, match="frame 'lnk7'") as told:
        lw.load("iiwa14", strict=False).jacobian([0.0] * 7, "lnk7")
    assert told.value.__context__ is None
