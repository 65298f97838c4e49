"""``linkwise check`` of MJCF files: every problem, also in included files, and what is repaired."""

from __future__ import annotations

import json
import random
import sys
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.checking.mend import repair
from linkwise.cli.check import MOST
from linkwise.cli.main import main

pytest.importorskip("mujoco", reason="MuJoCo (pip install mujoco) is not installed")

GOOD = """<mujoco model="arm">
  <!-- a note -->
  <compiler angle="radian"/>
  <default>
    <default class="arm"><joint damping="1"/></default>
  </default>
  <asset><material name="steel"/></asset>
  <worldbody>
    <body name="upper" pos="0 0 1" quat="1 0 0 0">
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
      <joint name="shoulder" class="arm" axis="0 0 1" range="-1 2"/>
      <body name="fore" pos="0 0 .5">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <geom name="rod" type="box" size=".1 .1 .2" mass="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def changed(*edits: str) -> str:
    """The arm with each ``old`` (once in the file) replaced by the ``new`` after it."""
    text = GOOD
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def with_section(section: str) -> tuple[str, str]:
    return "</mujoco>", f"{section}</mujoco>"


def run(path: Path, text: str, *arguments: str) -> Result:
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(main, ["check", str(path), *arguments])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arm.xml"


def test_a_clean_file(path: Path) -> None:
    result = run(path, GOOD)
    assert (result.exit_code, result.output) == (0, "0 errors, 0 warnings\n")


UPPER, FORE = '<body name="upper">', '<body name="fore">'
SHOULDER, ELBOW = '<joint name="shoulder">', '<joint name="elbow">'
INERTIAL = f"{UPPER} <inertial>"

ONE = {
    "misspelt element": (
        ("<inertial ", "<inertail "),
        10, f"{UPPER} <inertail>", "unknown element <inertail>; expected <inertial>",
        "rename it to <inertial>",
    ),
    "misspelt attribute": (
        ('axis="0 0 1"', 'axsi="0 0 1"'),
        11, SHOULDER, 'unknown attribute axsi="0 0 1"; expected axis', "rename it to axis=",
    ),
    "unknown attribute": (
        ('mass="2"', 'mass="2" colour="red"'),
        10, INERTIAL, 'unknown attribute colour="red"; expected one that <inertial> takes',
        "delete colour=, or see <inertial> in MuJoCo's XML reference",
    ),
    "misplaced": (
        with_section('<body name="c"/>'),
        18, '<body name="c">', "<body> inside <mujoco>; expected it inside <worldbody> or <body>",
        "move it into <worldbody> or <body>",
    ),
    "unknown element": (
        with_section("<robot/>"),
        18, "<robot>", "<robot> inside <mujoco>; expected an element that <mujoco> takes",
        "delete it",
    ),
    "in a frame": (
        ('<joint name="elbow" type="hinge" axis="0 1 0"/>',
         '<frame><frame><joint name="elbow" typ="hinge"/></frame></frame>'),
        13, ELBOW, 'unknown attribute typ="hinge"; expected type', "rename it to type=",
    ),
    "xacro": (
        ('<geom name="rod"', '<xacro:arm/><geom name="rod"'),
        14, f"{FORE} <xacro:arm>", "this file needs xacro; xacro runs code and is never expanded",
        "run xacro on this file and check what it writes",
    ),
    "second child": (
        ('<joint name="shoulder"', '<inertial pos="0 0 0" mass="1"/><joint name="shoulder"'),
        11, INERTIAL, "a second <inertial>; expected one (the first is on line 10;",
        "keep one <inertial> and delete the other",
    ),
    "not a number": (
        ('mass="2"', 'mass="2_0"'),
        10, INERTIAL, 'mass="2_0": "2_0" is not a finite decimal number; expected finite decimal',
        "write finite decimal numbers, such as 0.5 or 1e-3",
    ),
    "no number": (
        ('damping="1"', 'damping=""'),
        5, "<joint>", 'damping="" is empty; expected some text', "write the value",
    ),
    "negative mass": (
        ('mass="2"', 'mass="-2"'),
        10, INERTIAL, 'mass="-2" is too small; expected at least 0', "write a number of 0 or more",
    ),
    "negative moment": (
        ('diaginertia="1 1 1"', 'diaginertia="1 1 -1"'),
        10, INERTIAL, 'diaginertia="1 1 -1" is too small', "write a number of 0 or more",
    ),
    "negative in a class": (
        ('damping="1"', 'damping="1" armature="-1"'),
        5, "<joint>", 'armature="-1" is too small', "write a number of 0 or more",
    ),
    "no axis": (
        ('axis="0 0 1"', 'axis="0 1e-13 0"'),
        11, SHOULDER, 'axis="0 1e-13 0" has no direction; expected a vector that is not zero',
        "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
    ),
    "no orientation": (
        ('quat="1 0 0 0"', 'quat="0 0 0 0"'),
        9, UPPER, 'quat="0 0 0 0" has no direction',
        "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
    ),
    "two orientations": (
        ('quat="1 0 0 0"', 'quat="1 0 0 0" euler="0 0 1"'),
        9, UPPER, "orientation",
        "keep one of quat, axisangle, euler, xyaxes and zaxis; none beside fullinertia",
    ),
    "too few": (
        ('pos="0 0 1"', 'pos="0 0"'),
        9, UPPER, "attribute 'pos' does not have enough data", "write more numbers in pos=",
    ),
    "too many": (
        ('pos="0 0 1"', 'pos="0 0 1 0"'),
        9, UPPER, "attribute 'pos' has too much data", "write fewer numbers in pos=",
    ),
    "range exchanged": (
        ('range="-1 2"', 'range="2 -1"'),
        11, SHOULDER, 'range="2 -1" starts above its end; expected lower <= upper',
        "exchange its two numbers, if that was meant",
    ),
    "range of one number": (
        ('range="-1 2"', 'range="2"'),
        11, SHOULDER, 'range="2" has 1; expected 2 finite decimal numbers',
        "write 2 finite decimal numbers, such as 0.5 or 1e-3",
    ),
    "control range exchanged": (
        with_section('<actuator><motor joint="elbow" ctrlrange="1 -1"/></actuator>'),
        18, "<motor>", 'ctrlrange="1 -1" starts above its end',
        "exchange its two numbers, if that was meant",
    ),
    "required attribute": (
        (' mass="2"', ""),
        10, INERTIAL, "required attribute missing: 'mass'", 'write mass="..."',
    ),
    "two of one name": (
        ('<joint name="elbow"', '<joint name="shoulder"'),
        13, SHOULDER, "repeated name 'shoulder' in joint", "give one of the two another name",
    ),
    "two classes of one name": (
        ("</default>\n  </default>", '</default><default class="arm"/>\n  </default>'),
        5, "<default>", "repeated default class name", "give one of the classes another name",
    ),
    "class without name": (
        ("</default>\n  </default>", "</default><default/>\n  </default>"),
        5, "<default>", "empty class name", 'write class="..."',
    ),
    "unknown class": (
        ('class="arm" axis', 'class="amr" axis'),
        11, SHOULDER, "unknown default class name 'amr' (says MuJoCo's compiler); perhaps \"arm\"",
        'write "arm", if that was meant',
    ),
    "unknown class of children": (
        ('<body name="fore"', '<body name="fore" childclass="legs"'),
        12, FORE, "unknown default childclass",
        "name a class that <default> declares, or declare it there",
    ),
    "unknown type": (
        ('type="hinge"', 'type="screw"'),
        13, ELBOW, 'invalid keyword: type="screw" of a <joint>', "use hinge, slide, ball or free",
    ),
    "type of a URDF": (
        ('type="hinge"', 'type="revolute"'),
        13, ELBOW, 'invalid keyword: type="revolute" of a <joint>', 'write type="hinge"',
    ),
    "slide of a URDF": (
        ('type="hinge"', 'type="prismatic"'),
        13, ELBOW, 'invalid keyword: type="prismatic" of a <joint>', 'write type="slide"',
    ),
    "unknown shape": (
        ('type="box"', 'type="cube"'),
        14, '<geom name="rod">', 'invalid keyword: type="cube" of a <geom>',
        "use plane, hfield, sphere, capsule, ellipsoid, cylinder, box or mesh",
    ),
    "unknown limited": (
        ('range="-1 2"', 'range="-1 2" limited="yes"'),
        11, SHOULDER, 'invalid keyword: limited="yes" of a <joint>', "use true, false or auto",
    ),
    "unknown unit": (
        ('angle="radian"', 'angle="grad"'),
        3, "<compiler>", 'invalid keyword: angle="grad" of a <compiler>', "use degree or radian",
    ),
    "unknown switch": (
        with_section('<option><flag gravity="off"/></option>'),
        18, "<flag>", 'invalid keyword: gravity="off" of a <flag>', "use enable or disable",
    ),
    "unknown keyword": (
        with_section('<option integrator="magic"/>'),
        18, "<option>", 'invalid keyword: integrator="magic" of a <option>',
        "see integrator= of <option> in MuJoCo's XML reference",
    ),
    "nested free joint": (
        ('type="hinge"', 'type="free"'),
        12, FORE, "free joint can only be used on top level",
        'make it type="ball", or move the body into <worldbody>',
    ),
    "free joint beside others": (
        ('<joint name="shoulder"', '<freejoint/><joint name="shoulder"'),
        9, UPPER, "more than 6 dofs in body 'upper'",
        "a free joint is the only joint of its body: delete the others",
    ),
    "joint of the world": (
        ("  </worldbody>", "<joint/></worldbody>"),
        17, "<joint>", "World body cannot have joints", "move it into a <body>",
    ),
    "limited by nothing": (
        ('type="hinge"', 'type="hinge" limited="true"'),
        13, ELBOW, "range[0] should be smaller than range[1] in joint",
        "write range= with lower < upper, or leave limited= out",
    ),
    "no mass": (
        ('mass="2"', 'mass="0"'),
        9, UPPER, "mass and inertia of moving bodies must be larger than mjMINVAL",
        "give the body an <inertial> or a <geom> with mass, or delete its joint",
    ),
    "triangle": (
        ('diaginertia="1 1 1"', 'diaginertia="1 1 3"'),
        9, UPPER, "inertia must satisfy A + B >= C",
        'take mass, centre and inertia from one source; <compiler balanceinertia="true"/> '
        "averages it",
    ),
    "indefinite": (
        ('diaginertia="1 1 1"', 'fullinertia="1 1 1 2 0 0"'),
        9, UPPER, "inertia must have positive eigenvalues",
        "take mass, centre and inertia from one source",
    ),
    "too large": (
        ('pos="0 0 1"', 'pos="0 0 1e300"'),
        9, UPPER, 'pos="0 0 1e300" is too large; expected at most 1e+100',
        "check the unit and the exponent",
    ),
    "mass too large": (
        ('mass="2"', 'mass="1e300"'),
        10, INERTIAL, 'mass="1e300" is too large; expected at most 1e+100',
        "check the unit and the exponent",
    ),
    "size": (
        ('size=".1 .1 .2"', 'size=".1 0 .2"'),
        14, '<geom name="rod">', "size 1 must be positive in geom",
        "write size= with lengths above 0",
    ),
    "unknown mesh": (
        ('type="box"', 'type="mesh" mesh="cube"'),
        14, '<geom name="rod">', "mesh 'cube' not found in geom 0",
        "name a mesh of <asset>, or add it there",
    ),
    "no mesh": (
        ('type="box"', 'type="mesh"'),
        14, '<geom name="rod">', "must have valid meshid",
        "write mesh= with the name of a mesh of <asset>",
    ),
    "unknown material": (
        ('type="box"', 'type="box" material="gold"'),
        14, '<geom name="rod">', "material 'gold' not found in geom",
        "name a material of <asset>, or add it there",
    ),
    "misspelt material": (
        ('type="box"', 'type="box" material="stele"'),
        14, '<geom name="rod">', "material 'stele' not found in geom",
        'write "steel", if that was meant',
    ),
    "motor of nothing": (
        with_section("<actuator><motor/></actuator>"),
        18, "<motor>", "missing transmission target for actuator",
        "write joint= with the joint that it drives",
    ),
    "motor of an unknown joint": (
        with_section('<actuator><motor joint="wrist"/></actuator>'),
        18, "<motor>", "unknown transmission target 'wrist' for actuator",
        "name a joint, tendon, site or body of this model",
    ),
    "motor of a misspelt joint": (
        with_section('<actuator><motor joint="elbwo"/></actuator>'),
        18, "<motor>", "unknown transmission target 'elbwo' for actuator",
        'write "elbow", if that was meant',
    ),
    "tendon of an unknown joint": (
        with_section('<tendon><fixed name="t"><joint joint="wrist" coef="1"/>'
                     '<joint joint="elbow" coef="1"/></fixed></tendon>'),
        18, '<fixed name="t"> <joint>', "joint 'wrist' not found in tendon",
        "name a joint of this model",
    ),
    "equality of an unknown joint": (
        with_section('<equality><joint joint1="wrist" joint2="elbow"/></equality>'),
        18, "<joint>", "unknown element 'wrist' in equality constraint",
        "name an element of this model",
    ),
    "equality with itself": (
        with_section('<equality><joint joint1="elbow" joint2="elbow"/></equality>'),
        18, "<joint>", "element 'elbow' is repeated in equality constraint",
        "name two different elements",
    ),
    "equality in a circle": (
        with_section('<equality><joint joint1="elbow" joint2="shoulder"/>\n'
                     '<joint joint1="shoulder" joint2="elbow"/></equality>'),
        19, "<joint>", 'joint "shoulder" follows itself through "elbow"',
        "let one of these joints follow none",
    ),
    "unknown bodies": (
        with_section('<contact><exclude body1="hand" body2="upper"/></contact>'),
        18, "<exclude>", "body 'hand' not found", "name a body of this model",
    ),
    "unknown sensor": (
        with_section('<sensor><jointpos joint="wrist"/></sensor>'),
        18, "<jointpos>", "unrecognized name 'wrist' of sensorized object",
        "name an element of this model",
    ),
    "missing include": (
        with_section('<include file="no.xml"/>'),
        18, "<include>", 'file="no.xml" is not there; expected a file to include',
        "put the file into the folder of the model, or delete the <include>",
    ),
    "include of nothing": (
        with_section("<include/>"),
        18, "<include>", "has no file attribute; expected file=...",
        'write file="..." with a value',
    ),
    "include from outside": (
        with_section('<include file="/etc/passwd"/>'),
        18, "<include>", '"/etc/passwd" leads out of the declared folders',
        "declare its folder with package_dirs=, or keep the file in the folder of the model",
    ),
    "model in the model": (
        ('<material name="steel"/>', '<material name="steel"/><model name="m" file="m.xml"/>'),
        7, '<model name="m">', "a model inside a model is not read",
        "write its elements here, or <include> them",
    ),
    "too many copies": (
        ("  </worldbody>", '<replicate count="99999"><geom size="1"/></replicate></worldbody>'),
        17, "<replicate>", "99999 copies; expected at most 20000", "write a smaller whole number",
    ),
    "another of MuJoCo's": (
        with_section('<option timestep="-1"/><sensor><user name="u" dim="-1"/></sensor>'),
        18, '<user name="u">', "(says MuJoCo's compiler)",
        "see <user> in MuJoCo's XML reference",
    ),
    "broken XML": (
        ("</body>\n    </body>", "</body>\n    </bdy>"),
        16, "</bdy>", "not well-formed XML: mismatched tag",
        "repair the XML first: the rest of the file was not looked at",
    ),
    "nothing moves": (
        (GOOD[GOOD.index("<worldbody>"):], "</mujoco>"),
        1, "<mujoco>", "has no <body>; expected at least one",
        "add a <body>",
    ),
    "an include alone": (
        ('<mujoco model="arm">', "<mujocoinclude>", "</mujoco>", "</mujocoinclude>"),
        1, "<mujocoinclude>", "the root element is <mujocoinclude>; expected <mujoco>",
        "check the file that includes this one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE)
def test_one_defect_is_one_problem_with_place_and_suggestion(kind: str, path: Path) -> None:
    edits, line, element, message, suggestion = ONE[kind]
    result = run(path, changed(*edits))
    errors = [p for p in lw.check(path) if p.severity == "error"]
    assert result.exit_code == 1
    assert len(errors) == 1, result.output
    (error,) = errors
    assert (error.file, error.line, error.element) == (str(path), line, element)
    assert message in error.message
    assert error.suggestion == suggestion


# -- many at once ---------------------------------------------------------------------------------

MANY = changed(
    'angle="radian"', 'angle="grad"',
    '<material name="steel"/>', '<material name="steel"/></asset><include file="part.xml"/><asset>',
    '<body name="upper"', '<bdoy name="upper"',
    "    </body>\n  </worldbody>", "    </bdoy>\n  </worldbody>",
    'diaginertia="1 1 1"', 'diaginertia="1 1 3"',
    'axis="0 0 1" range="-1 2"', 'axis="0 0 0" range="2 -1"',
    'type="hinge"', 'type="hinje"',
    'size=".1 .1 .2"', 'size=".1 .1 x"',
    "</mujoco>", '<actuator><motor joint="elbwo"/>\n<motor joint="nothing"/></actuator></mujoco>',
)  # fmt: skip
PART = """<mujocoinclude>
  <worldbody>
    <body name="other" quat="0 0 0 0">
      <joint name="elbow" damping="nan"/>
      <geom size=".1"/>
    </body>
  </worldbody>
</mujocoinclude>
"""


def test_every_problem_is_told_also_in_included_files(path: Path) -> None:
    part = path.with_name("part.xml")
    part.write_text(PART)
    result = run(path, MANY)
    places = [x for x in result.output.splitlines() if ": error: " in x]
    found = [(Path(x.split(":")[0]).name, int(x.split(":")[1])) for x in places]
    main_file = [("arm.xml", k) for k in (3, 9, 9, 11, 11, 13, 13, 14, 18, 19)]
    assert found == [*main_file, ("part.xml", 3), ("part.xml", 4)], result.output
    assert result.output.endswith("12 errors, 0 warnings\n")
    assert f'{part.resolve()}:4: error: <joint name="elbow">: damping="nan"' in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujocoinclude>\n<body", "not well-formed XML"),
        ("<robot><link/></robot>", "<link> inside <mujoco>; expected an element"),
    ],
)
def test_an_include_that_cannot_be_read_hides_nothing(text: str, message: str, path: Path) -> None:
    path.with_name("part.xml").write_text(text)
    edits = ('type="hinge"', 'type="hinje"', "</mujoco>", '<include file="part.xml"/></mujoco>')
    result = run(path, changed(*edits))
    assert message in result.output and 'type="hinje"' in result.output
    assert result.output.endswith("2 errors, 0 warnings\n")


def test_what_an_earlier_change_took_away_is_not_missed(path: Path) -> None:
    """A joint in the wrong place is one problem, not one per motor that drives it."""
    text = changed(
        '<joint name="elbow" type="hinge" axis="0 1 0"/>', '<geom size=".1"/>',
        "</worldbody>", '</worldbody><joint name="elbow"/>',
        "</mujoco>", '<actuator><motor joint="elbow"/></actuator></mujoco>',
    )  # fmt: skip
    errors = [p for p in lint_text(path, text) if p.severity == "error"]
    assert [p.element for p in errors] == [ELBOW]


def lint_text(path: Path, text: str) -> list[object]:
    path.write_text(text)
    return list(lw.check(path))


def test_warnings_have_suggestions(path: Path) -> None:
    result = run(path, changed("</mujoco>", '<option density="1"/></mujoco>'))
    assert result.exit_code == 0
    assert result.output == (
        f"{path}:1: warning: <mujoco>: the fluid (density, viscosity) is left out\n"
        "    suggestion: delete it if linkwise is all that reads this file\n0 errors, 1 warning\n"
    )


def test_joints_along_one_line_are_told(path: Path) -> None:
    text = changed('<joint name="elbow"', '<joint axis="0 1 0"/><joint name="elbow"')
    path.write_text(text, encoding="utf-8")
    (problem,) = lw.check(path)
    assert (problem.code.name, problem.severity, problem.line) == ("UNMOVED", "warning", 12)
    assert problem.message.startswith('joints that move no inertia: "joint1"')


def test_there_is_an_end_to_it(path: Path) -> None:
    sites = "".join(f'<stie name="s{k}"/>\n' for k in range(2 * MOST))
    result = run(path, changed("  </worldbody>", f"{sites}</worldbody>"))
    assert f"{MOST} more problems\n{2 * MOST} errors, 0 warnings" in result.output


# -- repairs --------------------------------------------------------------------------------------


def test_a_repair_writes_the_same_mjcf_with_every_change_listed(path: Path) -> None:
    out = path.with_name("out.xml")
    text = changed(
        "<inertial ", "<inertail ", 'axis="0 0 1"', 'axsi="0 0 1"', 'range="-1 2"', 'range="2 -1"',
        'type="hinge"', 'type="hinje"',
    )  # fmt: skip
    result = run(path, text, "--repair", str(out))
    told = [x for x in result.output.splitlines() if x.startswith(("repaired", str(out)))]
    assert told == [
        f"repaired: {path}:10: <inertail> renamed to <inertial>",
        f"repaired: {path}:11: axsi= renamed to axis=",
        f'repaired: {path}:11: range="2 -1" exchanged',
        f'repaired: {path}:13: type="hinje" changed to hinge',
        f"{out}: written, 4 changes; left: 0 errors, 0 warnings",
    ]
    assert result.exit_code == 0 and path.read_text() == text
    assert ET.canonicalize(out.read_text()) != ET.canonicalize(text)
    assert "<!-- a note -->" in out.read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lw.load(out, friction=False).joint_names == ("shoulder", "elbow")


def test_what_was_meant_is_not_guessed_by_a_repair(path: Path) -> None:
    out = path.with_name("out.xml")
    edits = ('mass="2"', 'mass="-2"', 'class="arm" axis', 'class="amr" axis')
    result = run(path, changed(*edits), "--repair", str(out), "--json")
    facts = json.loads(result.output)
    assert facts["repair"] == {"path": str(out), "changes": [], "errors_left": 2}
    assert 'mass="-2"' in out.read_text() and 'class="amr"' in out.read_text()


def test_an_included_file_is_never_written(path: Path) -> None:
    part = path.with_name("part.xml")
    part.write_text(PART)
    out = path.with_name("out.xml")
    text = changed(
        'type="hinge"', 'type="hinje"', "</mujoco>", '<include file="part.xml"/></mujoco>'
    )
    result = run(path, text, "--repair", str(out))
    assert part.read_text() == PART
    assert f"{out}: written, 1 change; left: 3 errors, 0 warnings" in result.output


# -- any file -------------------------------------------------------------------------------------


sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from faults.combined import choices, combine  # noqa: E402
from faults.mjcf import COMBINABLE, MJCF_DEFECTS, Model  # noqa: E402
from faults.spoil import spoiled  # noqa: E402


@pytest.fixture(scope="module")
def model() -> Model:
    """The arm with more to spoil: sites, motors, a tendon, an equality."""
    body = ET.fromstring(GOOD)
    body.remove(part(body, "default"))
    model = Model(body)
    for k, joint in enumerate(model.joints):
        joint.set("range", f"-{k + 1} {k + 2}")
    model.dress()
    ET.indent(model.root)
    return model


def part(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    assert found is not None
    return found


def errors_of(path: Path, text: str) -> Counter[tuple[int | None, str]]:
    path.write_text(text, encoding="utf-8")
    return Counter((p.line, p.code.name) for p in lw.check(path) if p.severity == "error")


def test_no_defect_goes_unseen_and_none_breaks_the_check(model: Model, path: Path) -> None:
    """Every kind of defect of the reliability suite, in this small arm."""
    assert not errors_of(path, model.text())
    for defect in MJCF_DEFECTS:
        for text in spoiled(model, defect):
            path.write_text(text, encoding="utf-8")
            problems = lw.check(path)
            assert any(p.severity == "error" for p in problems), defect.name
            assert all(p.suggestion and p.line for p in problems), defect.name


def test_of_combined_defects_each_is_told_and_nothing_else(model: Model, path: Path) -> None:
    rng = random.Random(8)
    among = choices(model, COMBINABLE)
    assert len({c.defect.name for c in among}) > 80
    check = lru_cache(lambda text: errors_of(path, text))
    for _ in range(40):
        found = combine(model, among, check, rng, rng.randint(2, 10))
        assert not found.missed and not found.invented, (found.names, found.missed, found.invented)


def lines_of(text: str, start: str, end: str) -> slice:
    """The lines of an element that is written over several, by how it starts and ends."""
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.strip().startswith(start))
    indent = lines[first][: -len(lines[first].lstrip())]
    return slice(first, lines.index(indent + end, first) + 1)


def test_defects_of_an_included_file_are_told_there(model: Model, path: Path) -> None:
    """A body and the motors are moved to a file of their own, where every line keeps its number."""
    clean = model.text()
    moved = [
        lines_of(clean, '<body name="fore"', "</body>"),
        lines_of(clean, "<actuator", "</actuator>"),
    ]
    rng, among = random.Random(7), choices(model, COMBINABLE)
    for _ in range(12):
        found = combine(model, among, lambda text: errors_of(path, text), rng, rng.randint(2, 8))
        lines = found.text.splitlines()
        for k, part in enumerate(moved):
            block = lines[part]
            lines[part] = [f'<include file="part{k}.xml"/>'] + [""] * (len(block) - 1)
            before = "<mujocoinclude>" + "\n" * part.start
            path.with_name(f"part{k}.xml").write_text(
                before + "\n".join(block) + "</mujocoinclude>"
            )
        path.write_text("\n".join(lines))
        problems = [p for p in lw.check(path) if p.severity == "error"]
        assert Counter((p.line, p.code.name) for p in problems) == found.told, found.names
        for p in problems:
            inside = [k for k, part in enumerate(moved) if part.start < (p.line or 0) <= part.stop]
            assert Path(p.file).name == (f"part{inside[0]}.xml" if inside else "arm.xml"), p


MENDED = (
    "<bdoy>", "<Body>", "<jiont>", "<inertail>", "<worldbdoy>", "<equalty>", "axsi=", "nmae=",
    "rnage=", "msas=", "diaginerta=", "a misspelt type of a joint", "lower above upper",
    "a control range turned round",
)  # fmt: skip


def test_repairs_converge_and_load(model: Model, path: Path) -> None:
    rng = random.Random(9)
    among = [c for c in choices(model, MJCF_DEFECTS) if c.defect.name in MENDED]
    assert {c.defect.name for c in among} == set(MENDED)
    for _ in range(30):
        found = combine(model, among, lambda text: errors_of(path, text), rng, rng.randint(1, 8))
        path.write_text(found.text)
        mended = repair(path)
        assert mended is not None
        path.write_bytes(mended.data)
        assert lw.check(path) == [], (found.names, mended.changes)
        assert lw.load(path, friction=False).nv == 1  # the elbow follows the shoulder


def test_names_are_told_as_they_are_written(tmp_path: Path) -> None:
    """A second joint of a name is read without it, which nobody sees."""
    path = tmp_path / "arm.xml"
    body = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    path.write_text(
        f'<mujoco><worldbody><body>{body}<joint name="j"/><body>{body}\n'
        '<joint name="j" type="screw"/></body></body></worldbody></mujoco>'
    )
    problems = lw.check(path)
    assert [p.element for p in problems] == ['<joint name="j">'] * 2
    assert not any("\u205e" in str(p) for p in problems)
