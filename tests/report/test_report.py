"""The report: one page, with everything on it, that needs nothing else."""

import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import linkwise as lw
from linkwise.bench.selfcheck import Check
from linkwise.cli.main import main
from linkwise.report import sections as parts
from linkwise.report.findings import Findings, begin
from linkwise.report.sections import report
from linkwise.report.treepicture import MOST, picture

TITLES = ["Look at it", "Tree", "Joints", "Inertias", "Problems found", "Agreement of methods",
          "Agreement with other libraries", "Operation counts", "Speed", "Workspace",
          "A swing"]  # fmt: skip
ARM = """<robot name="{name}">
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><origin xyz="0.2 0 0"/>
    <inertia ixx="0.004" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.001" iyy="0.005" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="0.2" effort="50" velocity="2"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.fixture
def quick(monkeypatch):
    """The checks are tested elsewhere: two of them, one that failed."""
    checks = [Check("bias", "something", 1e-16), Check("jacobian", "other", 1.0)]
    monkeypatch.setattr("linkwise.report.findings.self_check", lambda robot, report: checks)


def sections(page):
    return dict(re.findall(r"<section.*?><h2>(.*?)</h2>(.*?)</section>", page, re.S))


def test_a_report_tells_what_it_found(quick, tmp_path):
    pytest.importorskip("matplotlib")
    path, out = tmp_path / "arm.urdf", tmp_path / "arm.html"
    path.write_text(ARM.format(name="arm"))
    done = CliRunner().invoke(main, ["report", str(path), "-o", str(out), "--seconds", "0"])
    assert done.exit_code == 1 and "1 of 2 checks FAILED" in done.output  # one of ours did
    page = out.read_text()
    found = sections(page)
    assert list(found) == [
        t for t in TITLES if t not in ("Speed", "Agreement with other libraries")
    ]
    assert "-1</td>" in found["Joints"] and "50</td>" in found["Joints"]
    # about its centre of mass: what the file says
    assert "0.004  0.03  0.03" in found["Inertias"] and "no</td>" not in found["Inertias"]
    assert "1 of 2 checks failed" in found["Agreement of methods"]
    count = lw.load(str(path)).operation_count("inverse_dynamics").total
    assert f"{count:,}</td>" in found["Operation counts"]
    assert "Not computed" not in page and found["Workspace"].count("<img") == 3
    assert re.search(r"Energy changes by \d\.\de-1\d of", found["A swing"])
    assert found["Tree"].count("<circle") == 3
    assert not re.findall(r"https?://|<link\b|@import|src=\"(?!data:)", page)


def test_problems_of_a_file_are_listed():
    robot = lw.load("puma560")
    problems = lw.check("<robot name='r'><link nam='base'/></robot>")
    shown = parts._problems(Findings(robot, "r.urdf", problems))
    assert "nam" in shown and "error</td>" in shown
    assert "None." in parts._problems(Findings(robot, "r.urdf", []))
    assert "bundled robot" in parts._problems(Findings(robot, "puma560"))


def test_text_of_a_robot_file_is_data(quick, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    evil = "&lt;script&gt;alert(1)&lt;/script&gt;"
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(name=evil).replace('"elbow"', f'"{evil}"'))
    page = report(Findings(lw.load(str(path)), str(path), [], seconds=0.0))
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page


def test_what_cannot_be_computed_says_why(quick):
    robot = lw.Builder("bare").link("a").link("b")
    robot = robot.joint("j", "revolute", parent="a", child="b").build()
    found = Findings(robot, "bare")
    assert "Not computed: " in parts._swing(found)
    assert "<iframe" in parts._view(found)  # it can be looked at all the same


def test_pictures_name_the_command_where_matplotlib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = parts._workspace(Findings(lw.load("puma560"), "puma560"))
    assert "pip install &#x27;linkwise[plot]&#x27;" in shown


def test_long_trees_are_cut():
    drawn = picture(lw.chain(500).tree)
    assert drawn.count("<circle") == MOST + 1 and f"and {500 - MOST} links more" in drawn


def test_a_swing_begins_within_limits_and_with_loops_closed(tmp_path):
    robot = lw.load(ARM.format(name="arm"))
    assert np.allclose(begin(robot), [0.2, 0.4])
    arm = lw.load("puma560")
    closed = arm.close_loops(lw.Loop("link6", None, [0, 0, 0, 1, 1, 1]), at=np.full(6, 0.3))
    assert np.abs(closed.residual(begin(closed)).position).max() < 1e-9


def test_a_robot_that_flies_swings_in_place():
    body = (
        '<inertial><mass value="5"/><inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    text = ARM.format(name="arm").replace('<link name="base"/>', f'<link name="base">{body}</link>')
    robot = lw.load(text, base="free")
    found = Findings(robot, "arm")
    assert found.flies and np.abs(found.swing.path("lower")).max() < 3.0  # it does not fall
    energy = found.swing.energy
    assert energy.kinetic[0] > 0 and np.ptp(energy.total) < 1e-9 * energy.kinetic.max()
    assert "Without gravity" in parts._swing(found)


@pytest.mark.full
def test_a_whole_report_of_a_bundled_robot(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "puma.html"
    done = CliRunner().invoke(main, ["report", "puma560", "-o", str(out), "--seconds", "0.001"])
    assert done.exit_code == 0, done.output
    found = sections(out.read_text())
    assert list(found) == TITLES and "checks passed" in found["Agreement of methods"]
    assert "Not computed" not in out.read_text()
