"""``linkwise check``: every problem with its place and a suggestion; repairs on request."""

from __future__ import annotations

import json
import sys
import warnings
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.checking.mend import repair
from linkwise.cli.check import MOST
from linkwise.cli.main import main

GOOD = """<?xml version="1.0"?>
<!-- whose it is -->
<robot name="arm">
  <!-- a note -->
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
    </inertial>
  </link>
  <link name="fore">
    <inertial>
      <mass value="1"/>
      <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" velocity="3" effort="4"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 1 0"/>
  </joint>
</robot>
"""


def changed(*edits: str) -> str:
    """The arm with each ``old`` (once in the file) replaced by the ``new`` after it."""
    text = GOOD
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def run(path: Path, text: str, *arguments: str) -> Result:
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["check", str(path), *arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arm.urdf"


# -- what is told ---------------------------------------------------------------------------------


def test_a_clean_file(path: Path) -> None:
    result = run(path, GOOD)
    assert (result.exit_code, result.output) == (0, "0 errors, 0 warnings\n")


def test_hints_alone_exit_with_0(path: Path) -> None:
    result = run(path, changed("</robot>", '<clothes name="t"/></robot>'))
    assert result.exit_code == 0
    assert result.output == (
        f'{path}:30: hint: <clothes name="t">: <clothes> is not read: ignored, with all it '
        "contains\n    suggestion: delete it if it is not needed\n0 errors, 0 warnings, 1 hint\n"
    )


ONE = {
    "misspelt element": (
        ('<mass value="2"/>', '<mas value="2"/>'),
        9, '<link name="upper"> <mas>', "unknown element <mas>; expected <mass>",
        "rename it to <mass>",
    ),
    "misspelt attribute": (
        ('xyz="0 0 0.1"', 'xzy="0 0 0.1"'),
        8, '<link name="upper"> <origin>', 'unknown attribute xzy="0 0 0.1"; expected xyz',
        "rename it to xyz=",
    ),
    "not a number": (
        ('<mass value="2"/>', '<mass value="nan"/>'),
        9, '<link name="upper"> <mass>', '"nan" is not a finite decimal number; expected 1 finite',
        "write 1 finite decimal number, such as 0.5 or 1e-3",
    ),
    "too small": (
        ('velocity="3"', 'velocity="-3"'),
        23, '<joint name="shoulder"> <limit>', 'velocity="-3" is too small; expected at least 0',
        "write a number of 0 or more",
    ),
    "too large": (
        ('<mass value="2"/>', '<mass value="1e99"/>'),
        9, '<link name="upper"> <mass>', 'value="1e99" is too large; expected at most 1e+30',
        "check the unit and the exponent",
    ),
    "no axis": (
        ('"0 0 1"', '"0 0 0"'),
        22, '<joint name="shoulder"> <axis>', 'xyz="0 0 0" has no direction',
        "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
    ),
    "unknown parent": (
        ('<parent link="upper"/>', '<parent link="uper"/>'),
        25, '<joint name="elbow">', 'parent link "uper" does not exist',
        'write "upper", if that was meant',
    ),
    "unknown child": (
        ('<child link="fore"/>', '<child link="nowhere"/>'),
        25, '<joint name="elbow">', 'child link "nowhere" does not exist',
        "name a link of this file, or add that link",
    ),
    "no parent": (
        ('<parent link="upper"/>', ""),
        25, '<joint name="elbow">', "has no <parent>; expected exactly one",
        "add one <parent .../>",
    ),
    "no type": (
        (' type="continuous"', ""),
        25, '<joint name="elbow">', "has no type attribute",
        'write type="..." with a value',
    ),
    "unknown type": (
        ('type="continuous"', 'type="ball"'),
        25, '<joint name="elbow">', 'type="ball" is not supported',
        "use revolute, continuous, prismatic, fixed, floating or planar",
    ),
    "two of one name": (
        ('<joint name="elbow"', '<joint name="shoulder"'),
        25, '<joint name="shoulder">', 'joint name "shoulder" is already used (line 19)',
        "give one of them another name",
    ),
    "itself": (
        ('<parent link="upper"/>', '<parent link="fore"/>'),
        25, '<joint name="elbow">', 'parent and child are both "fore"',
        "name two different links",
    ),
    "stray link": (
        ('<link name="base"/>', '<link name="base"/><link name="stray"/>'),
        5, '<link name="stray">', "expected one root link, got 2",
        "add a joint that holds this link, or delete the link",
    ),
    "cycle": (
        ('<parent link="base"/>', '<parent link="fore"/>'),
        19, '<joint name="shoulder">', "closes a cycle of 2 links",
        "let one of these joints start at a link outside the cycle",
    ),
    "mimic": (
        ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="wrist"/>'),
        28, '<joint name="elbow"> <mimic>', 'joint="wrist" does not exist',
        "write the whole name of the joint to follow, with its prefix",
    ),
    "impossible inertia": (
        ('iyy="0.2" iyz="0" izz="0.2"', 'iyy="0.2" iyz="0" izz="0.9"'),
        13, '<link name="fore">', "has principal inertias (0.2, 0.2, 0.9)",
        "take mass, centre and inertia from one source; --repair writes the nearest possible",
    ),
    "mass next to zero": (
        ('<mass value="1"/>', '<mass value="1e-320"/>'),
        13, '<link name="fore">', "kg; expected zero, or at least 1e-60 kg: its products would",
        "check the unit and the exponent",
    ),
    "inertia next to zero": (
        ('ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"',
         'ixx="1e-310" ixy="0" ixz="0" iyy="1e-310" iyz="0" izz="1e-310"'),
        13, '<link name="fore">', "kg m²; expected each at least 1e-60: their products would",
        "check the unit and the exponent",
    ),
    "misplaced": (
        ('<link name="base"/>', '<link name="base"/><limit lower="1"/>'),
        5, '<robot name="arm"> <limit>', "<limit> inside <robot>; expected it inside <joint>",
        "move it into <joint>",
    ),
    "xacro": (
        ('xyz="0 0 0.1"', 'xyz="0 0 ${h}"'),
        8, '<link name="upper"> <origin>', "is a xacro expression",
        "run xacro on this file and check what it writes",
    ),
    "broken XML": (
        ('<mass value="2"/>', '<mass value="2">'),
        11, "</inertial>", "not well-formed XML: mismatched tag",
        "repair the XML first: the rest of the file was not looked at",
    ),
    "another format": (
        ('<robot name="arm">', '<sdf name="arm">', "</robot>", "</sdf>"),
        3, '<sdf name="arm">', "the root element is <sdf>; expected <robot>",
        "give a URDF file, whose root element is <robot>, or an MJCF file, with <mujoco>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE)
def test_one_defect_is_one_problem_with_place_and_suggestion(kind: str, path: Path) -> None:
    edits, line, element, message, suggestion = ONE[kind]
    result = run(path, changed(*edits))
    assert result.exit_code == 1
    first, second, last = result.output.splitlines()
    assert first.startswith(f"{path}:{line}: error: {element}: ")
    assert message in first
    assert second == f"    suggestion: {suggestion}"
    assert last == "1 error, 0 warnings"


def test_angles_in_degrees_are_told(path: Path) -> None:
    """They are read in radians, and the robot is another one."""
    degrees = changed('xyz="0 0 0.1"', 'xyz="0 0 0.1" rpy="0 -90 0"')
    result = run(path, degrees)
    assert result.exit_code == 0
    assert result.output == (
        f'{path}:8: warning: <link name="upper"> <origin>: rpy="0 -90 0" is more than a full turn; '
        "expected radians: taken as written\n"
        "    suggestion: write angles in radians: 90 degrees are 1.5708\n0 errors, 1 warning\n"
    )
    assert "0 warnings" in run(path, degrees.replace("-90", "-6.2832")).output


MANY = changed(
    '<mass value="2"/>', '<mas value="2"/>',
    'izz="0.1"', 'izz="0.9"',
    '<mass value="1"/>', '<mass value="1_0"/>',
    '"0 0 1"', '"0 0 2"',
    'lower="-1" upper="2"', 'lower="2" upper="-1"',
    '<parent link="upper"/>', '<parent link="uper"/><parent link="uper"/>',
    'type="continuous"', 'type="revolute"',
)  # fmt: skip


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="arm.xacro"/>
  <xacro:arm prefix="left"/>
</robot>
"""


def test_a_xacro_file_is_told_to_be_one_and_nothing_else(path: Path) -> None:
    """Without its macros it has no link; that is not what is wrong with it."""
    result = run(path, XACRO)
    assert result.output == (
        f'{path}:2: error: <robot name="arm"> <xacro:include>: this file needs xacro; xacro runs '
        "code and is never expanded implicitly: run xacro first, then read its output\n"
        "    suggestion: run xacro on this file and check what it writes\n1 error, 0 warnings\n"
    )
    with pytest.raises(lw.RobotFileError, match="this file needs xacro"):
        lw.load(path)


def test_every_problem_of_a_bad_file_is_told_in_order_of_lines(path: Path) -> None:
    result = run(path, MANY)
    places = [x for x in result.output.splitlines() if x.startswith(str(path))]
    found = [(int(x.split(":")[1]), x.split(": ")[1]) for x in places]
    assert found == [
        (6, "error"),  # the body, once its mass could be read
        (9, "error"),
        (15, "error"),
        (22, "hint"),
        (23, "warning"),
        (25, "error"),
        (25, "warning"),
        (26, "error"),
    ]
    assert result.output.endswith("5 errors, 2 warnings, 1 hint\n")


def test_there_is_an_end_to_it(path: Path) -> None:
    links = "".join(f'<link name="l{k}"><inertail/></link>\n' for k in range(2 * MOST))
    result = run(path, changed('<link name="base"/>', '<link name="base"/>' + links))
    assert result.output.count(": error: ") == MOST
    more = 4 * 2 * MOST - MOST  # each link is misspelt inside, stray, without mass and inertia
    assert result.output.endswith(f"{more} more problems\n{more + MOST} errors, 0 warnings\n")


def test_json(path: Path) -> None:
    result = run(path, changed('"0 0 1"', '"0 0 0"'), "--json")
    assert result.exit_code == 1
    facts = json.loads(result.output)
    assert (facts["errors"], facts["warnings"]) == (1, 0)
    assert facts["problems"] == [
        {
            "code": "NO_DIRECTION",
            "file": str(path),
            "line": 22,
            "element": '<joint name="shoulder"> <axis>',
            "severity": "error",
            "message": 'xyz="0 0 0" has no direction; expected a vector that is not zero',
            "suggestion": "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
        }
    ]


def test_the_base_is_a_body_where_it_flies(path: Path) -> None:
    """As for `load`: a fixed base is never judged."""
    body = '<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/>'
    text = changed('<link name="base"/>', f'<link name="base"><inertial>{body}</inertial></link>')
    assert run(path, text).exit_code == 0
    result = run(path, text, "--base", "free")
    assert result.exit_code == 1
    assert f"{path}:5: error: <link name=\"base\">: the body moved by joint 'base'" in result.output
    assert [p.code.name for p in lw.check(path, base="free")] == ["TRIANGLE"]
    mended = path.with_name("mended.urdf")
    assert run(path, text, "--base", "free", "--repair", str(mended)).exit_code == 0
    assert lw.load(mended, base="free").nv == lw.load(path).nv + 6


@pytest.mark.parametrize("end", ['<child link="tipp"/>', "<child/>", ""])
def test_a_body_that_lost_a_part_is_not_judged(path: Path, end: str) -> None:
    """Without its end, the arm breaks the triangle inequality."""
    rest = 'ixy="0" ixz="0" iyz="0"/></inertial></link>'
    mass = '<inertial><mass value="1"/><inertia'
    text = (
        '<robot name="r"><link name="base"/>'
        f'<link name="a">{mass} ixx="1" iyy=".4" izz=".4" {rest}'
        f'<link name="end">{mass} ixx="1" iyy="1" izz="1" {rest}'
        '<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>'
        '<joint name="k" type="fixed"><parent link="a"/>{}</joint></robot>'
    )
    path.write_text(text.format('<child link="end"/>'))
    assert [p.code.name for p in lw.check(path)] == ["HIDDEN_TRIANGLE"]  # a warning, of the link
    path.write_text(text.format(end))
    (problem,) = lw.check(path)
    assert "TRIANGLE" not in problem.code.name


UNITS = [
    ('<origin xyz="0 0 0.1"/>', '<origin xyz="0 0 100"/>', "FAR_CENTRE", "100 m from the link's"),
    ('<origin xyz="0 0 0.1"/>', '<origin xyz="0 0 6"/>', "DISTANT_CENTRE", "6 m from the link's"),
    ('lower="-1" upper="2"', 'lower="-170" upper="90"', "DEGREES", "look like degrees; expected r"),
    ('lower="-1" upper="2"', 'lower="-31.4" upper="31.4"', "WIDE_RANGE", "radians, 9.99 turns"),
    ('lower="-1" upper="2"', 'lower="-100" upper="100"', "WIDE_RANGE", "are radians, 31.8 turns"),
]


@pytest.mark.parametrize(("old", "new", "code", "expected"), UNITS)
def test_numbers_that_may_be_of_other_units(
    path: Path, old: str, new: str, code: str, expected: str
) -> None:
    """Hints; warnings when the file is loaded, where hardly anything else can be meant."""
    path.write_text(changed(old, new))
    (problem,) = lw.check(path)
    assert problem.code.name == code and expected in problem.message, problem
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.load(path)
    told = code in ("FAR_CENTRE", "DEGREES")
    assert problem.severity == ("warning" if told else "hint") and len(caught) == told


@pytest.mark.parametrize("limits", ['lower="-1e6" upper="1e6"', 'lower="-6.3" upper="6.3"'])
def test_ranges_that_are_no_matter_of_units(path: Path, limits: str) -> None:
    path.write_text(changed('lower="-1" upper="2"', limits))
    assert lw.check(path) == []


@pytest.mark.parametrize("moment", ["-1e-3", "0.1"])
def test_what_a_whole_body_hides_is_repaired(path: Path, moment: str) -> None:
    """An inertia that cannot exist, of a link merged with another."""
    rest = 'ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
    path.write_text(
        '<robot name="r"><link name="base"/>'
        f'<link name="a"><inertial><mass value="1"/><inertia ixx="{moment}" {rest}'
        '<link name="b"><inertial><mass value="9"/>'
        f'<inertia ixx="0.4" {rest.replace("0.01", "0.4")}'
        '<joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>'
        '<joint name="k" type="fixed"><parent link="a"/><child link="b"/></joint></robot>'
    )
    with pytest.warns(lw.RobotFileWarning, match="check --repair` writes the nearest"):
        lw.load(path)
    mended = path.with_name("mended.urdf")
    done = CliRunner().invoke(main, ["check", str(path), "--repair", str(mended)])
    assert "written, 1 change; left: 0 errors, 0 warnings" in done.output
    lw.load(mended)


def test_impossible_bodies_are_warnings_where_asked(path: Path) -> None:
    text = changed('iyy="0.2" iyz="0" izz="0.2"', 'iyy="0.2" iyz="0" izz="0.9"')
    result = run(path, text, "--no-strict")
    assert result.exit_code == 0
    assert f'{path}:13: warning: <link name="fore">: the body moved by joint' in result.output
    assert run(path, text, "--strict").exit_code == 1


def test_text_is_checked_as_a_file_is() -> None:
    (problem,) = lw.check(changed('<mass value="2"/>', '<mass value="two"/>'))
    assert (problem.file, problem.line, problem.code.name) == ("<text>", 9, "NOT_A_NUMBER")
    assert lw.check(GOOD) == []


def test_a_problem_in_a_list_is_one_short_line() -> None:
    (problem,) = lw.check("nowhere.urdf")
    told = "error: cannot be read: No such file or directory; expected a readable file"
    assert repr(problem) == f"<Problem UNREADABLE: nowhere.urdf: {told}>"


def test_check_takes_the_options_of_load(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    folder, more = tmp_path / "robot", tmp_path / "more"
    folder.mkdir(), more.mkdir()
    (more / "rest.xml").write_text('<mujocoinclude><option timestep="0.01"/></mujocoinclude>')
    rod = '<joint axis="0 1 0"/><geom type="capsule" size=".1" fromto="0 0 0 0 0 1"/>'
    loop = '<equality><connect body1="a" body2="b" anchor="0 0 1"/></equality>'
    bodies = f'<body name="a">{rod}</body><body name="b">{rod}</body>'
    file = folder / "robot.xml"
    file.write_text(
        f'<mujoco>{loop}<include file="{more}/rest.xml"/><worldbody>{bodies}</worldbody></mujoco>'
    )
    (folder / "package.xml").write_text("<package/>")
    assert {p.severity for p in lw.check(file)} == {"error"}
    assert lw.check(file, package_dirs=[more]) == []
    (problem,) = lw.check(file, loops="open", package_dirs=[more])
    assert problem.severity == "warning" and "loop" in problem.message
    options = ["--loops", "open", "--package-dir", str(more)]
    result = CliRunner().invoke(main, ["check", str(file), *options])
    assert result.exit_code == 0 and "0 errors, 1 warning" in result.output
    with pytest.raises(ValueError, match="loops 'refuse': expected 'closed' or 'open'"):
        lw.check(file, loops="refuse")


def test_usage_errors_exit_with_2(path: Path) -> None:
    assert CliRunner().invoke(main, ["check"]).exit_code == 2
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code == 2
    result = run(path, GOOD, "--repair", str(path))
    assert result.exit_code == 2
    assert "give another file than FILE" in result.output
    assert path.read_text() == GOOD


def test_help_says_what_is_repaired() -> None:
    result = CliRunner().invoke(main, ["check", "--help"])
    assert result.exit_code == 0
    assert "--repair OUT" in result.output and "exit code is 1" in result.output


# -- repairs --------------------------------------------------------------------------------------


def test_a_repair_writes_another_file_and_lists_every_change(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    text = MANY.replace('value="1_0"', 'value="1"')
    result = run(path, text, "--repair", str(out))
    assert path.read_text() == text
    told = [x for x in result.output.splitlines() if x.startswith(("repaired", str(out)))]
    assert told == [
        f'repaired: {path}:6: inertia of link "upper" replaced by the nearest consistent one',
        f"repaired: {path}:9: <mas> renamed to <mass>",
        f'repaired: {path}:22: axis xyz="0 0 2" normalised',
        f'repaired: {path}:23: lower="2" and upper="-1" exchanged',
        f'repaired: {path}:25: parent link "uper" changed to "upper"',
        f'repaired: {path}:25: joint "elbow": type revolute changed to continuous',
        f"repaired: {path}:26: removed the second <parent>",
        f"{out}: written, 7 changes; left: 0 errors, 0 warnings",
    ]
    assert result.exit_code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = lw.load(out)
    assert robot.nv == 2
    assert robot.position_limits[:, 0].tolist() == [-1.0, 2.0]


def test_the_rest_of_the_file_stays(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    run(path, changed('"0 0 1"', '"0 0 2"'), "--repair", str(out))
    assert out.read_text() == GOOD


def test_the_nearest_inertia_is_physical_and_near(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    run(path, changed('iyy="0.2" iyz="0" izz="0.2"', 'iyy="0.2" iyz="0" izz="0.41"'),
        "--repair", str(out))  # fmt: skip
    inertia = ET.parse(out).getroot().find("link[@name='fore']/inertial/inertia")
    assert inertia is not None
    moments = [float(inertia.get(key, "")) for key in ("ixx", "iyy", "izz")]
    assert np.allclose(moments, [0.205, 0.205, 0.41], rtol=1e-4)
    assert moments[0] + moments[1] >= moments[2]


def test_what_cannot_be_repaired_is_left_and_told(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    text = changed('"0 0 1"', '"0 0 0"', '<mass value="2"/>', '<mas value="2"/>')
    result = run(path, text, "--repair", str(out))
    assert result.exit_code == 1
    assert result.output.endswith(f"{out}: written, 1 change; left: 1 error, 0 warnings\n")
    assert 'xyz="0 0 0"' in out.read_text()


def test_a_second_child_that_differs_is_left(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    text = changed('<mass value="2"/>', '<mass value="2"/><mass value="3"/>')
    result = run(path, text, "--repair", str(out), "--json")
    repair = json.loads(result.output)["repair"]
    assert repair == {"path": str(out), "changes": [], "errors_left": 1}
    assert '<mass value="2"/><mass value="3"/>' in out.read_text()


def test_an_unreadable_number_is_never_overwritten(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    text = changed('ixx="0.1"', 'ixx="nan"', 'izz="0.1"', 'izz="0.9"', 'lower="-1"', 'lower="inf"')
    result = run(path, text, "--repair", str(out))
    assert result.exit_code == 1
    assert f"{out}: written, 0 changes; left: 2 errors, 0 warnings" in result.output
    assert out.read_text().split("\n", 1)[1] == text.split("\n", 1)[1]


def test_problems_at_parts_that_were_missing(path: Path, tmp_path: Path) -> None:
    """What is missing leaves a hole; nothing is said about the body that has it."""
    out = tmp_path / "out.urdf"
    text = changed('<mass value="2"/>', "<weight/>", 'izz="0.1"', 'izz="0.9"')
    result = run(path, text, "--repair", str(out))
    assert "has no <mass>" in result.output and "left: 1 error, 0 warnings, 1 hint" in result.output
    assert "<weight/>" in out.read_text()


def test_broken_xml_is_not_written(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    result = run(path, "<robot", "--repair", str(out))
    assert result.exit_code == 1
    assert f"{out}: not written: the file cannot be read" in result.output
    assert not out.exists()


# -- any file -------------------------------------------------------------------------------------


sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from check_combined import by_element  # noqa: E402
from faults.combined import files  # noqa: E402
from faults.defects import COMBINABLE, DEFECTS, close_cycle, together  # noqa: E402
from faults.document import ROBOTS, Document, robots_folder  # noqa: E402
from faults.spoil import spoiled  # noqa: E402

TOLD = {
    "zero mass": "INERTIA_WITHOUT_MASS",
    "<visual> without geometry": "NO_SHAPE",
    "a geometry without shape": "NO_SHAPE",
    "a geometry of two shapes": "MANY_SHAPES",
    "lower above upper": "LIMITS_SWAPPED",
    "no inertia on a moving body": "UNMOVED",
    "zero inertia": "POINT_MASS UNMOVED",
}


def test_no_defect_goes_unseen_and_none_breaks_the_check(path: Path) -> None:
    """Every kind of defect of the reliability suite, in this small arm."""
    document = Document(ET.fromstring(GOOD))
    ET.indent(document.root)
    for defect in DEFECTS:
        if defect.name == "MJCF in place of URDF" and find_spec("mujoco") is None:
            continue  # refused for want of MuJoCo
        for text in spoiled(document, defect):
            path.write_text(text, encoding="utf-8")
            problems = lw.check(path)
            found = {p.code.name for p in problems}
            if defect.name in TOLD:
                assert found == set(TOLD[defect.name].split()), defect.name
            else:
                assert "error" in {p.severity for p in problems}, defect.name
            assert all(p.suggestion and p.line for p in problems), defect.name


def test_a_missing_limit_is_not_told_of_a_joint_whose_type_is_unknown(path: Path) -> None:
    document = Document(ET.fromstring(GOOD))
    joint = document.limited[0]
    joint.set("type", "revolutte")
    joint.remove(next(joint.iter("limit")))
    path.write_text(document.text(), encoding="utf-8")
    assert [p.code.name for p in lw.check(path)] == ["UNKNOWN_TYPE"]


def test_a_point_mass_is_not_told_of_a_link_that_lost_its_joint(path: Path) -> None:
    """It may have been fixed to another link, and then the body is no point."""
    document = Document(ET.fromstring(GOOD))
    inertia = list(document.root.iter("inertia"))[-1]
    inertia.attrib |= {"ixx": "0", "iyy": "0", "izz": "0"}
    path.write_text(document.text(), encoding="utf-8")
    assert {p.code.name for p in lw.check(path)} == {"POINT_MASS", "UNMOVED"}
    document.root.remove(document.joints[-1])
    path.write_text(document.text(), encoding="utf-8")
    assert [p.code.name for p in lw.check(path)] == ["SECOND_ROOT"]


def test_defects_ask_about_the_tree_without_other_defects() -> None:
    """A cycle is one whatever was done to the joints in it before."""
    document = Document(ET.fromstring(GOOD)).copy()
    next(document.joints[1].iter("parent")).tag = "parrent"
    close_cycle(document, document.joints[0])
    assert next(document.joints[0].iter("parent")).get("link") == "fore"


@pytest.mark.parametrize(
    "name", ["z1", *(pytest.param(name, marks=pytest.mark.full) for name in ("ur5", "solo12"))]
)
def test_up_to_ten_defects_are_told_each_and_nothing_else(name: str, path: Path) -> None:
    """``python tools/check_combined.py`` does this with a thousand files."""
    folder = robots_folder()
    if folder is None:
        pytest.skip("needs example-robot-data")
    document = Document.read(folder / ROBOTS[name])
    check = by_element(path, document.text())
    for found in files(document, COMBINABLE, check, 30, together=together):
        assert (found.missed, found.invented) == ({}, {}), found.names


WORDS = ("<lnik>", "<jiont>", "<inertail>", "<mas>", "<orgin>", "<axsi>", "xzy=", "vaule=",
         "lowr=", "ixxx=", "a misspelt type", "two <parent>", "two <origin>", "two <inertial>",
         "two <mass>", "negative moment", "triangle", "lower above")  # fmt: skip


@pytest.mark.parametrize("name", ["z1", "kinova"])
def test_repairs_converge_and_load(name: str, path: Path, tmp_path: Path) -> None:
    folder = robots_folder()
    if folder is None:
        pytest.skip("needs example-robot-data")
    document = Document.read(folder / ROBOTS[name])
    mended = [d for d in COMBINABLE if d.name.startswith(WORDS)]
    assert len(mended) >= len(WORDS)
    check, out = by_element(path, document.text()), tmp_path / "out.urdf"
    for found in files(document, mended, check, 10, together=together):
        path.write_text(found.text, encoding="utf-8")
        first = repair(path)
        assert first is not None and first.changes
        out.write_bytes(first.data)
        assert not [p for p in lw.check(out) if p.severity == "error"], found.names
        again = repair(out)
        assert again is not None and (again.changes, again.data) == ([], first.data), found.names
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.RobotFileWarning)
            lw.load(out)


def test_an_mjcf_file_is_read_by_its_own_reader(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    good = (
        '<mujoco><worldbody><body name="b"><joint name="j" axis="0 0 1"/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>'
    )
    path = tmp_path / "arm.xml"
    path.write_text(good)
    done = CliRunner().invoke(main, ["check", str(path)])
    assert (done.exit_code, done.output.strip()) == (0, "0 errors, 0 warnings")
    path.write_text(good.replace('axis="0 0 1"', 'axis="0 0 zero"'))
    done = CliRunner().invoke(main, ["check", str(path)])
    assert done.exit_code == 1 and "arm.xml:1" in done.output and "1 error" in done.output


def test_bundled_robots_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken by name, as by every command; a file of that name wins."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(main, ["check", "iiwa14"])
    assert done.exit_code == 0 and "iiwa14: a bundled robot, of published numbers" in done.output
    assert "note: " in done.output and "0 errors, 0 warnings" in done.output
    facts = json.loads(runner.invoke(main, ["check", "iiwa14", "--json"]).output)
    assert facts == {"problems": [], "errors": 0, "warnings": 0}
    done = runner.invoke(main, ["check", "iiwa14", "--repair", "out.urdf"])
    assert done.exit_code == 2 and "iiwa14 is a bundled robot" in done.output
    assert "does not exist" in runner.invoke(main, ["check", "iiwa15"]).output
    Path("iiwa14").write_text(GOOD)
    assert "a bundled robot" not in runner.invoke(main, ["check", "iiwa14"]).output
