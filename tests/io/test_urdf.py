"""Reading URDF: what a good file becomes, and what each kind of bad file is told."""

from __future__ import annotations

import importlib.metadata
import io
import re
import warnings
from collections.abc import Iterator
from math import cos, inf, isfinite, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.errors import RobotFileError, RobotFileWarning
from linkwise.io.files import FileRoots
from linkwise.io.read import describe, read
from linkwise.io.rpy import rpy_rotation
from linkwise.io.xml import DEFAULT_LIMITS, ReadLimits, parse_xml
from linkwise.model.description import IDENTITY, Geometry, Limits, RobotDescription

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.2 0.3" rpy="0 0 0"/>
      <mass value="2.5"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0.02" iyy="0.2" iyz="0.03" izz="0.3"/>
    </inertial>
    <visual>
      <origin xyz="0 0 1"/>
      <geometry><box size="1 2 3"/></geometry>
      <material name="red"><color rgba="1 0 0 1"/></material>
    </visual>
    <collision><geometry><sphere radius="0.5"/></geometry></collision>
  </link>
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="fore"/>
  <link name="hand"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="2" velocity="3" effort="4"/>
    <dynamics damping="0.5" friction="0.25"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="fore"/>
  </joint>
  <joint name="wrist" type="fixed">
    <parent link="fore"/>
    <child link="hand"/>
  </joint>
</robot>
"""


def changed(*edits: str) -> str:
    """Return the arm with each ``old`` (once in the file) replaced by the ``new`` after it."""
    text = ARM
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def parse_urdf(
    text: str | bytes, label: str, limits: ReadLimits = DEFAULT_LIMITS
) -> RobotDescription:
    return describe(parse_xml(text, label), FileRoots.of(None), limits=limits)


def quietly(text: str | bytes) -> RobotDescription:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotFileWarning)
        return parse_urdf(text, "arm.urdf")


# --- good files ----------------------------------------------------------------------------


def test_links_and_joints_keep_the_order_of_the_file() -> None:
    robot = parse_urdf(ARM, "arm.urdf")
    assert (robot.name, robot.base) == ("arm", "base")
    assert [link.name for link in robot.links] == ["base", "upper", "fore", "hand"]
    assert [joint.name for joint in robot.joints] == ["shoulder", "elbow", "wrist"]
    assert [joint.kind for joint in robot.joints] == ["revolute", "continuous", "fixed"]
    assert [joint.parent for joint in robot.joints] == ["base", "upper", "fore"]


def test_a_joint_is_read_whole() -> None:
    joint = parse_urdf(ARM, "arm.urdf").joints[0]
    assert joint.axis == (0.0, 0.0, 1.0)
    assert joint.origin.translation == (1.0, 2.0, 3.0)
    assert joint.origin.rotation == ((0, -1, 0), (1, 0, 0), (0, 0, 1))
    assert joint.limits == Limits(-1.0, 2.0, 3.0, 4.0)
    assert (joint.damping, joint.friction) == (0.5, 0.25)
    assert str(joint.where) == 'arm.urdf:20: <joint name="shoulder">'


def test_a_link_is_read_whole() -> None:
    base, upper, *_ = parse_urdf(ARM, "arm.urdf").links
    assert base.inertia is None
    assert upper.inertia is not None
    assert (upper.inertia.mass, upper.inertia.com) == (2.5, (0.1, 0.2, 0.3))
    assert upper.inertia.tensor == (0.1, 0.01, 0.02, 0.2, 0.03, 0.3)
    assert upper.collisions == (Geometry("sphere", (0.5,)),)
    assert upper.visuals[0].size == (1.0, 2.0, 3.0)
    assert upper.visuals[0].origin.translation == (0.0, 0.0, 1.0)
    assert upper.visuals[0].rgba == (1.0, 0.0, 0.0, 1.0)
    assert str(upper.where) == 'arm.urdf:4: <link name="upper">'


def test_defaults_are_those_of_urdf() -> None:
    elbow = parse_urdf(ARM, "arm.urdf").joints[1]
    assert elbow.axis == (1.0, 0.0, 0.0)
    assert (elbow.origin.rotation, elbow.origin.translation) == (IDENTITY, (0.0, 0.0, 0.0))
    assert elbow.limits == Limits()
    assert (elbow.damping, elbow.friction, elbow.armature) == (0.0, 0.0, 0.0)


def test_a_continuous_joint_has_no_range() -> None:
    limit = '<limit lower="2" upper="1" velocity="3" effort="4"/>'
    old = 'type="continuous">'
    elbow = parse_urdf(changed(old, old + limit), "arm.urdf").joints[1]
    assert elbow.limits == Limits(-inf, inf, 3.0, 4.0)


def test_one_missing_bound_is_zero() -> None:
    shoulder = parse_urdf(changed('lower="-1" ', ""), "arm.urdf").joints[0]
    assert (shoulder.limits.lower, shoulder.limits.upper) == (0.0, 2.0)


def test_a_fixed_joint_may_write_zeros() -> None:
    extra = '<axis xyz="0 0 0"/><limit lower="0" upper="0" effort="0" velocity="0"/>'
    wrist = parse_urdf(changed('type="fixed">', f'type="fixed">{extra}'), "arm.urdf").joints[2]
    assert wrist.limits == Limits()


@pytest.mark.parametrize("scale", ["1e300", "1e-300", "5e-324", "3"])
def test_an_axis_of_any_length_is_normalised(scale: str) -> None:
    text = changed('"0 0 2"', f'"0 -{scale} {scale}"')
    x, y, z = parse_urdf(text, "arm.urdf").joints[0].axis
    assert x == 0.0
    assert [y, z] == pytest.approx([-(0.5**0.5), 0.5**0.5], rel=1e-15)


def test_the_inertia_tensor_is_turned_into_link_axes() -> None:
    quarter = changed('rpy="0 0 0"', f'rpy="0 0 {pi / 2}"')
    inertia = parse_urdf(quarter, "arm.urdf").links[1].inertia
    assert inertia is not None
    assert inertia.tensor == (0.2, -0.01, -0.03, 0.1, 0.02, 0.3)
    assert inertia.com == (0.1, 0.2, 0.3)


ANGLES = st.floats(-10.0, 10.0)


@given(ANGLES, ANGLES, ANGLES)
def test_roll_pitch_yaw_turn_about_fixed_axes(roll: float, pitch: float, yaw: float) -> None:
    x, y, z = 0.3, -0.5, 0.7
    y, z = cos(roll) * y - sin(roll) * z, sin(roll) * y + cos(roll) * z
    x, z = cos(pitch) * x + sin(pitch) * z, -sin(pitch) * x + cos(pitch) * z
    x, y = cos(yaw) * x - sin(yaw) * y, sin(yaw) * x + cos(yaw) * y
    turned = [r[0] * 0.3 - r[1] * 0.5 + r[2] * 0.7 for r in rpy_rotation(roll, pitch, yaw)]
    assert turned == pytest.approx([x, y, z], abs=2e-15)


@pytest.mark.parametrize("roll", [-pi, -pi / 2, 0.0, pi / 2, pi])
@pytest.mark.parametrize("pitch", [-pi, -pi / 2, 0.0, pi / 2, pi])
@pytest.mark.parametrize("yaw", [-pi, -pi / 2, 0.0, pi / 2, pi])
def test_right_angles_are_exact(roll: float, pitch: float, yaw: float) -> None:
    entries = [entry for row in rpy_rotation(roll, pitch, yaw) for entry in row]
    assert set(entries) <= {-1.0, 0.0, 1.0}
    assert "-0.0" not in map(str, entries)


def test_shapes_and_named_colours() -> None:
    shapes = (
        '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>'
        '<collision><geometry><capsule radius="3" length="4"/></geometry></collision>'
        '<visual><geometry><mesh filename="m.stl" scale="1 -1 0.5"/></geometry>'
        '<material name="blue"/></visual>'
        '<visual><geometry><sphere radius="1"/></geometry><material name="none"/></visual>'
    )
    blue = '<material name="blue"><color rgba="0 0 1 1"/></material><material name="bare"/>'
    old = '<link name="base"/>'
    text = changed(old, f'<link name="base">{shapes}</link>{blue}')
    base = parse_urdf(text, "arm.urdf").links[0]
    assert [(g.kind, g.size) for g in base.collisions] == [
        ("cylinder", (1.0, 2.0)),
        ("capsule", (3.0, 4.0)),
    ]
    mesh, ball = base.visuals
    assert (mesh.path, mesh.scale, mesh.rgba) == ("m.stl", (1.0, -1.0, 0.5), (0.0, 0.0, 1.0, 1.0))
    assert ball.rgba is None


def test_extensions_without_mechanics_are_silent() -> None:
    extra = "<gazebo><joint/></gazebo><mujoco/><ros2_control><joint/></ros2_control><sensor/>"
    assert parse_urdf(changed("</robot>", extra + "</robot>"), "arm.urdf").base == "base"


def test_a_namespace_left_by_xacro_is_accepted() -> None:
    text = changed('name="arm"', 'name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"')
    assert parse_urdf(text, "arm.urdf").name == "arm"


def test_a_single_link_is_a_robot() -> None:
    robot = parse_urdf('<robot name="rock"><link name="rock"/></robot>', "rock.urdf")
    assert (robot.base, robot.joints) == ("rock", ())


def test_a_long_chain_is_read_without_recursion() -> None:
    count = 5000
    links = "".join(f'<link name="l{i}"/>' for i in range(count))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in reversed(range(count - 1))
    )
    robot = parse_urdf(f'<robot name="r">{links}{joints}</robot>', "chain.urdf")
    assert (robot.base, len(robot.joints)) == ("l0", count - 1)


# --- warnings ------------------------------------------------------------------------------


SHOULDER_LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            changed(SHOULDER_LIMIT, ""),
            ['arm.urdf:20: <joint name="shoulder">: has no <limit>: the joint is not limited'],
        ),
        (
            changed(SHOULDER_LIMIT, '<limit velocity="1" effort="1"/>'),
            [
                'arm.urdf:25: <joint name="shoulder"> <limit>: has neither lower nor upper: '
                "the joint's range is not limited"
            ],
        ),
        (
            changed('lower="-1" upper="2"', 'lower="2" upper="-1"'),
            [
                'arm.urdf:25: <joint name="shoulder"> <limit>: lower=2 is above upper=-1: the '
                "joint's range is not limited"
            ],
        ),
        (
            changed('<box size="1 2 3"/>', "<ellipsoid/>"),
            [
                '<link name="upper"> <geometry>: has no shape that is read (mesh, box, cylinder, '
                "sphere, capsule): left out",
            ],
        ),
        (
            changed('<box size="1 2 3"/>', '<box size="1 2 3"/><sphere radius="1"/>'),
            ['<link name="upper"> <geometry>: has 2 shapes; the first is taken'],
        ),
        (
            changed('<box size="1 2 3"/>', '<box size="1 -2 3"/>'),
            [
                '<link name="upper"> <box>: size="1 -2 3" is too small; expected at least 0: the '
                "shape is left out"
            ],
        ),
        (
            changed('<sphere radius="0.5"/>', '<sphere radius="-1"/>'),
            ['<sphere>: radius="-1" is too small; expected at least 0: the shape is left out'],
        ),
        (
            changed('<box size="1 2 3"/>', '<mesh scale="1 1 1 1" filename="m.stl"/>'),
            ["has 4; expected 3 finite decimal numbers: the shape is left out"],
        ),
        (
            changed('<box size="1 2 3"/>', "<mesh/>"),
            ["<mesh>: has no filename attribute; expected filename=...: the shape is left out"],
        ),
        (
            changed('rgba="1 0 0 1"', 'rgba="1 0 0"'),
            ["has 3; expected 4 finite decimal numbers: the shape is left out"],
        ),
    ],
)
def test_what_is_ignored_is_told_once_with_its_place(text: str, expected: list[str]) -> None:
    with pytest.warns(RobotFileWarning) as told:
        parse_urdf(text, "arm.urdf")
    messages = [str(w.message) for w in told]
    assert len(messages) == len(expected)
    assert all(part in message for part, message in zip(expected, messages, strict=True))


WRIST_END = '<child link="hand"/>'
HEAVY = (
    '<link name="fore"/>',
    '<link name="fore"><inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>',
)
WRIST_MOVES = 'name="wrist" type="fixed"', 'name="wrist" type="continuous"'
SILENT = {
    "a robot without name": (' name="arm"', ""),
    "a robot with a blank name": (' name="arm"', ' name=""'),
    "transmissions": ("</robot>", '<transmission name="t"/><transmission/></robot>'),
    "words of other tools": ("</robot>", '<clothes name="t"/></robot>'),
    "attributes of other tools": ('damping="0.5"', 'damping="0.5" wear="1"'),
    "an axis with angles": ('<axis xyz="0 0 2"/>', '<axis xyz="0 0 2" rpy="0 0 0"/>'),
    "a symmetric inertia": ('ixy="0.01"', 'ixy="0.01" iyx="0.01"'),
    "a mesh on the network": ('<box size="1 2 3"/>', '<mesh filename="https://h/m.stl"/>'),
    "a mesh that is not there": ('<box size="1 2 3"/>', '<mesh filename="../../m.stl"/>'),
    "a mesh anywhere": ('<box size="1 2 3"/>', '<mesh filename="file:///etc/passwd"/>'),
    "a mimic of a fixed joint": (WRIST_END, f'{WRIST_END}<mimic joint="none"/>'),
}


@pytest.mark.parametrize("kind", SILENT)
def test_what_changes_nothing_is_silent(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_urdf(changed(*SILENT[kind]), "arm.urdf")


def test_a_kind_of_problem_is_told_once_per_file(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    old, heavy = HEAVY
    bare = heavy.replace("</link>", "\n" + 3 * "<visual><geometry/></visual>" + "</link>")
    path.write_text(changed('izz="0.3"', 'izz="0.2"', old, bare))
    with pytest.warns(RobotFileWarning) as told:
        lw.load(path)
    assert [str(w.message) for w in told] == [
        f'{path}:19: <link name="fore"> <geometry>: has no shape that is read (mesh, box, '
        "cylinder, sphere, capsule): left out (the first of 3 such places)"
    ]
    assert told[0].filename == __file__


LENIENT = {
    "two inertials": (
        "</inertial>", "</inertial><inertial/>", "a second <inertial>.*: the first is taken",
    ),
    "no mass": ('<mass value="2.5"/>', "", "has no <mass>.*: taken as zero"),
    "an attribute that is not URDF": (
        'rpy="0 0 0"', 'quat="1 0 0 0"', "unknown attribute quat=.*: ignored",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LENIENT)
def test_what_is_doubtful_is_told_where_that_is_asked_for(kind: str, tmp_path: Path) -> None:
    old, new, message = LENIENT[kind]
    path = tmp_path / "arm.urdf"
    path.write_text(changed(old, new, 'izz="0.3"', 'izz="0.2"', *HEAVY))
    with pytest.raises(RobotFileError, match="strict=False"):
        lw.load(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lw.load(path, strict=False)
    assert re.search(message, str(told[0].message))
    assert [p.severity for p in lw.check(path) if p.code.otherwise] == ["error"]
    assert [p.severity for p in lw.check(path, strict=False) if p.code.otherwise] == ["warning"]


def test_mimics_that_cannot_be_followed_may_be_let_free(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    edits = (*WRIST_MOVES, WRIST_END, f'{WRIST_END}<mimic joint="none"/>', 'izz="0.3"', 'izz="0.2"')
    path.write_text(changed(*edits))
    with pytest.raises(RobotFileError, match=r'joint="none" does not exist.*mimic="free"'):
        lw.load(path)
    with pytest.warns(RobotFileWarning, match="move no inertia"):
        assert lw.load(path, mimic="free").nv == 3


def test_a_mimic_of_a_mimic_follows_the_joint_at_the_end(tmp_path: Path) -> None:
    """All three joints move as they do in the robot whose joints are free."""
    path = tmp_path / "arm.urdf"
    elbow = '<child link="fore"/><mimic joint="shoulder" multiplier="2" offset="0.3"/>'
    wrist = f'{WRIST_END}<mimic joint="elbow" multiplier="-0.5" offset="0.1"/>'
    edits = (*WRIST_MOVES, WRIST_END, wrist, '<child link="fore"/>', elbow)
    path.write_text(changed(*edits, 'izz="0.3"', 'izz="0.2"'))
    with pytest.warns(RobotFileWarning, match="move no inertia"):
        tied, free = lw.load(path), lw.load(path, mimic="free")
    assert tied.joint_names == ("shoulder",)
    assert tied.joint("wrist").follows == ("shoulder", -1.0, pytest.approx(-0.05))
    q = 0.4
    each = {"shoulder": q, "elbow": 2.0 * q + 0.3, "wrist": -0.5 * (2.0 * q + 0.3) + 0.1}
    expected = free.forward_kinematics([each[name] for name in free.joint_names], "hand")
    np.testing.assert_allclose(tied.forward_kinematics([q], "hand"), expected, atol=1e-15)


def test_blank_lines_before_the_declaration_change_nothing() -> None:
    assert parse_urdf("\n \n" + ARM, "arm.urdf") == parse_urdf(ARM, "arm.urdf")
    with pytest.raises(RobotFileError, match=r"arm\.urdf:9: <link name="):
        parse_urdf("\n\n" + changed('value="2.5"', 'value="x"'), "arm.urdf")


# --- defects -------------------------------------------------------------------------------

# line, element, what was found, what was expected, edits to the arm that make the defect
JOINT = '<joint name="shoulder">'
LINK = '<link name="upper">'
CLOSING_JOINT = '<joint name="j" type="fixed"><parent link="hand"/><child link="base"/></joint>'
# fmt: off
DEFECTS: dict[str, tuple[int, str, str, str, tuple[str, ...]]] = {
    "root element": (
        2, '<sdf name="arm">', "<sdf>", "expected <robot>",
        ('<robot name="arm">', '<sdf name="arm">', "</robot>", "</sdf>"),
    ),
    "link without name": (
        3, '<robot name="arm"> <link>', "no name", "expected name=",
        ('<link name="base"/>', "<link/>"),
    ),
    "link with empty name": (
        3, '<link name=" ">', 'name=" "', "expected some text",
        ('<link name="base"/>', '<link name=" "/>'),
    ),
    "inertia that is not symmetric": (
        8, f"{LINK} <inertia>", "iyx=0.5 differs from ixy=0.01", "expected a symmetric inertia",
        ('ixy="0.01"', 'ixy="0.01" iyx="0.5"'),
    ),
    "joint without name": (
        28, '<robot name="arm"> <joint>', "no name", "expected name=",
        ('<joint name="elbow" type', "<joint type"),
    ),
    "joint without type": (
        28, '<joint name="elbow">', "no type", "expected type=",
        (' type="continuous"', ""),
    ),
    "unknown joint": (
        28, '<joint name="elbow">', 'type="ball"',
        "expected one of revolute, continuous, prismatic, fixed, floating, planar, spherical",
        ('"continuous"', '"ball"'),
    ),
    "joint type in capitals": (
        28, '<joint name="elbow">', 'type="Revolute"', 'did you mean "revolute"?',
        ('"continuous"', '"Revolute"'),
    ),
    "joint type without its end": (
        28, '<joint name="elbow">', 'type="revolut"', 'did you mean "revolute"?',
        ('"continuous"', '"revolut"'),
    ),
    "duplicate link": (
        19, '<link name="fore">', '"fore" is already used (line 18)', "expected a new name",
        ('<link name="hand"/>', '<link name="fore"/>'),
    ),
    "duplicate joint": (
        32, '<joint name="elbow">', '"elbow" is already used (line 28)', "expected a new name",
        ('name="wrist"', 'name="elbow"'),
    ),
    "unknown parent": (
        32, '<joint name="wrist">', 'parent link "foree"', 'perhaps "fore"',
        ('<parent link="fore"/>', '<parent link="foree"/>'),
    ),
    "unknown child": (
        32, '<joint name="wrist">', 'child link "gripper"', "expected a name in this file",
        (WRIST_END, '<child link="gripper"/>'),
    ),
    "no parent": (
        32, '<joint name="wrist">', "no <parent>", "expected exactly one",
        ('<parent link="fore"/>', ""),
    ),
    "no child": (
        32, '<joint name="wrist">', "no <child>", "expected exactly one",
        (WRIST_END, ""),
    ),
    "parent without link": (
        33, '<joint name="wrist"> <parent>', "no link attribute", "expected link=",
        ('<parent link="fore"/>', "<parent/>"),
    ),
    "two parents elements": (
        33, '<joint name="wrist"> <parent>', "second <parent>", "expected one",
        ('<parent link="fore"/>', '<parent link="fore"/><parent link="base"/>'),
    ),
    "link with two parents": (
        32, '<joint name="wrist">', 'child of joint "elbow" (line 28)',
        "expected one parent joint",
        ('<child link="fore"/>', '<child link="hand"/>'),
    ),
    "self joint": (
        32, '<joint name="wrist">', 'both "hand"', "expected two links",
        ('<parent link="fore"/>', '<parent link="hand"/>'),
    ),
    "cycle beside the base": (
        28, '<joint name="elbow">', 'cycle of 2 links ("fore" -> "hand")', "expected a tree",
        ('<parent link="upper"/>', '<parent link="hand"/>'),
    ),
    "cycle through the base": (
        36, '<joint name="j">', "cycle of 4 links", "expected a tree",
        ("</robot>", CLOSING_JOINT + "\n</robot>"),
    ),
    "several roots": (
        19, '<link name="lost">', 'nor "base" (line 3)', "expected one root link, got 2",
        ('<link name="hand"/>', '<link name="hand"/><link name="lost"/>'),
    ),
    "zero axis": (
        24, f"{JOINT} <axis>", 'xyz="0 0 0" has no direction', "expected a vector",
        ('"0 0 2"', '"0 0 0"'),
    ),
    "axis without xyz": (
        24, f"{JOINT} <axis>", "no xyz attribute", "expected xyz=",
        ('<axis xyz="0 0 2"/>', "<axis/>"),
    ),
    "axis with two numbers": (
        24, f"{JOINT} <axis>", 'xyz="0 1" has 2', "expected 3 finite decimal numbers",
        ('"0 0 2"', '"0 1"'),
    ),
    "axis with nan": (
        24, f"{JOINT} <axis>", '"nan"', "expected 3 finite decimal numbers",
        ('"0 0 2"', '"0 nan 1"'),
    ),
    "axis with inf": (
        24, f"{JOINT} <axis>", '"inf"', "expected 3 finite decimal numbers",
        ('"0 0 2"', '"0 0 inf"'),
    ),
    "origin with a word": (
        23, f"{JOINT} <origin>", '"two"', "expected 3 finite decimal numbers",
        ('"1 2 3" rpy', '"1 two 3" rpy'),
    ),
    "origin with four numbers": (
        23, f"{JOINT} <origin>", "has 4", "expected 3 finite decimal numbers",
        ('"1 2 3" rpy', '"1 2 3 4" rpy'),
    ),
    "empty rpy": (
        23, f"{JOINT} <origin>", 'rpy=""', "expected some text",
        ('"0 0 1.5707963267948966"', '""'),
    ),
    "quaternion origin": (
        23, f"{JOINT} <origin>", 'quat_xyzw="0 0 0 1"', "expected rpy or xyz",
        ('rpy="0 0 1.5707963267948966"', 'quat_xyzw="0 0 0 1"'),
    ),
    "misspelt xyz": (
        23, f"{JOINT} <origin>", "rpz=", "expected rpy",
        ('"1 2 3" rpy', '"1 2 3" rpz'),
    ),
    "swapped letters in an attribute": (
        24, f"{JOINT} <axis>", 'xzy="0 0 2"', "expected xyz",
        ('<axis xyz="0 0 2"/>', '<axis xzy="0 0 2"/>'),
    ),
    "two origins": (
        24, f"{JOINT} <origin>", "second <origin>", "expected one",
        ('<axis xyz="0 0 2"/>', '<origin/><axis xyz="0 0 2"/>'),
    ),
    "two axes": (
        24, f"{JOINT} <axis>", "second <axis>", "expected one",
        ('<axis xyz="0 0 2"/>', '<axis xyz="0 0 2"/><axis xyz="0 0 2"/>'),
    ),
    "two limits": (
        25, f"{JOINT} <limit>", "second <limit>", "expected one",
        (SHOULDER_LIMIT, SHOULDER_LIMIT * 2),
    ),
    "negative velocity": (
        25, f"{JOINT} <limit>", 'velocity="-3" is too small', "expected at least 0",
        ('velocity="3"', 'velocity="-3"'),
    ),
    "negative effort": (
        25, f"{JOINT} <limit>", 'effort="-4" is too small', "expected at least 0",
        ('effort="4"', 'effort="-4"'),
    ),
    "limit with underscore": (
        25, f"{JOINT} <limit>", 'effort="1_000"', "expected 1 finite decimal number",
        ('effort="4"', 'effort="1_000"'),
    ),
    "misspelt limit attribute": (
        25, f"{JOINT} <limit>", 'efort="4"', "expected effort",
        ('effort="4"', 'efort="4"'),
    ),
    "negative damping": (
        26, f"{JOINT} <dynamics>", 'damping="-0.5" is too small', "expected at least 0",
        ('damping="0.5"', 'damping="-0.5"'),
    ),
    "negative friction": (
        26, f"{JOINT} <dynamics>", 'friction="-1" is too small', "expected at least 0",
        ('friction="0.25"', 'friction="-1"'),
    ),
    "two dynamics": (
        26, f"{JOINT} <dynamics>", "second <dynamics>", "expected one",
        ("<dynamics", "<dynamics/><dynamics"),
    ),
    "negative mass": (
        7, f"{LINK} <mass>", 'value="-2.5" is too small', "expected at least 0",
        ('value="2.5"', 'value="-2.5"'),
    ),
    "infinite mass": (
        7, f"{LINK} <mass>", 'value="1e999"', "expected 1 finite decimal number",
        ('value="2.5"', 'value="1e999"'),
    ),
    "hexadecimal mass": (
        7, f"{LINK} <mass>", 'value="0x2"', "expected 1 finite decimal number",
        ('value="2.5"', 'value="0x2"'),
    ),
    "mass in other digits": (
        7, f"{LINK} <mass>", "\u0662", "expected 1 finite decimal number",
        ('value="2.5"', 'value="\u0662"'),
    ),
    "mass as text": (
        7, f"{LINK} <mass>", "no value", "expected value=",
        ('<mass value="2.5"/>', "<mass>2.5</mass>"),
    ),
    "no mass": (
        5, f"{LINK} <inertial>", "no <mass>", "expected exactly one",
        ('<mass value="2.5"/>', ""),
    ),
    "two masses": (
        7, f"{LINK} <mass>", "second <mass>", "expected one",
        ('<mass value="2.5"/>', '<mass value="2.5"/><mass value="1"/>'),
    ),
    "no inertia": (
        5, f"{LINK} <inertial>", "no <inertia>", "expected exactly one",
        ("<inertia ", "<gazebo ", 'izz="0.3"/>', "/>"),
    ),
    "five entries of inertia": (
        8, f"{LINK} <inertia>", "no iyz", "expected iyz=",
        ('iyz="0.03" ', ""),
    ),
    "inertia not a number": (
        8, f"{LINK} <inertia>", 'ixx="nan"', "expected 1 finite decimal number",
        ('ixx="0.1"', 'ixx="nan"'),
    ),
    "inertia beyond all measure": (
        8, f"{LINK} <inertia>", 'ixx="1e308" is too large', "expected at most 1e+30",
        ('ixx="0.1"', 'ixx="1e308"'),
    ),
    "two inertials": (
        9, f"{LINK} <inertial>", "second <inertial>", "expected one (the first is on line 5;",
        ("</inertial>", "</inertial><inertial/>"),
    ),
    "misspelt inertial": (
        5, f"{LINK} <inertail>", "<inertail>", "expected <inertial>",
        ("<inertial>", "<inertail>", "</inertial>", "</inertail>"),
    ),
    "misspelt origin": (
        23, f"{JOINT} <orgin>", "<orgin>", "expected <origin>",
        ('<origin xyz="1 2 3"', '<orgin xyz="1 2 3"'),
    ),
    "misspelt joint": (
        28, '<joit name="elbow">', "<joit>", "expected <joint>",
        ('<joint name="elbow" type="continuous">', '<joit name="elbow">',
         '<child link="fore"/>\n  </joint>', '<child link="fore"/>\n  </joit>'),
    ),
    "misspelt limit": (
        25, f"{JOINT} <limits>", "<limits>", "expected <limit>",
        ("<limit", "<limits"),
    ),
    "capital letters": (
        19, '<Link name="hand">', "<Link>", "expected <link>",
        ('<link name="hand"/>', '<Link name="hand"/>'),
    ),
    "inertia outside inertial": (
        9, f"{LINK} <mass>", "<mass> inside <link>", "expected it inside <inertial>",
        ("</inertial>", "</inertial><mass/>"),
    ),
    "link inside a joint": (
        34, '<link name="x">', "<link> inside <joint>", "expected it inside <robot>",
        (WRIST_END, f'{WRIST_END}<link name="x"/>'),
    ),
    "mimic of an unknown joint": (
        34, '<joint name="wrist"> <mimic>', 'joint="elbw" does not exist', 'perhaps "elbow"',
        (*WRIST_MOVES, WRIST_END, f'{WRIST_END}<mimic joint="elbw"/>'),
    ),
    "mimic of itself": (
        34, '<joint name="wrist"> <mimic>', 'joint="wrist" is the joint itself',
        "expected another joint",
        (*WRIST_MOVES, WRIST_END, f'{WRIST_END}<mimic joint="wrist"/>'),
    ),
    "mimics in a circle": (
        30, '<joint name="elbow"> <mimic>', 'joint "elbow" follows itself through "wrist"',
        "expected joints that end at one that follows none",
        (*WRIST_MOVES, WRIST_END, f'{WRIST_END}<mimic joint="elbow"/>', '<child link="fore"/>',
         '<child link="fore"/><mimic joint="wrist"/>'),
    ),
    "mimic with a bad multiplier": (
        34, '<joint name="wrist"> <mimic>', 'multiplier="x"', "expected 1 finite decimal number",
        (WRIST_END, f'{WRIST_END}<mimic joint="elbow" multiplier="x"/>'),
    ),
    "mimic with a bad offset": (
        34, '<joint name="wrist"> <mimic>', 'offset="1 2" has 2',
        "expected 1 finite decimal number",
        (WRIST_END, f'{WRIST_END}<mimic joint="elbow" offset="1 2"/>'),
    ),
    "xacro element": (
        19, '<xacro:hand name="h">', "needs xacro", "run xacro first",
        ('<link name="hand"/>', '<xacro:hand name="h"/>'),
    ),
    "xacro expression": (
        7, f"{LINK} <mass>", 'value="${m}"', "run xacro first",
        ('value="2.5"', 'value="${m}"'),
    ),
    "doctype": (
        2, "<!DOCTYPE robot>", "DOCTYPE", "expected none",
        ('<robot name="arm">', '<!DOCTYPE robot>\n<robot name="arm">'),
    ),
    "mismatched tag": (
        9, "", "mismatched tag", "expected an XML document",
        ("</inertial>", "</inertia>"),
    ),
}
# fmt: on


def test_there_are_many_kinds_of_defect() -> None:
    assert len(DEFECTS) >= 70


@pytest.mark.parametrize("kind", DEFECTS)
def test_a_defect_is_refused_with_place_value_and_expectation(kind: str, tmp_path: Path) -> None:
    line, element, found, expected, edits = DEFECTS[kind]
    file = tmp_path / "arm.urdf"
    file.write_text(changed(*edits), encoding="utf-8")
    with warnings.catch_warnings(), pytest.raises(RobotFileError) as caught:
        warnings.simplefilter("ignore", RobotFileWarning)
        read(file)
    message = str(caught.value)
    place = f"{file}:{line}: {element}: " if element else f"{file}:{line}: "
    assert message.startswith(place), message
    assert found in message.removeprefix(place), message
    assert expected in message.removeprefix(place), message


def test_a_robot_without_links_is_refused() -> None:
    with pytest.raises(RobotFileError) as caught:
        parse_urdf('<robot name="r"/>', "r.urdf")
    assert str(caught.value) == 'r.urdf:1: <robot name="r">: has no <link>; expected at least one'


def test_too_many_links_are_refused() -> None:
    with pytest.raises(RobotFileError) as caught:
        parse_urdf(ARM, "arm.urdf", limits=ReadLimits(max_links=2))
    place = 'arm.urdf:18: <link name="fore">'
    assert str(caught.value) == f"{place}: 4 links; expected max_links of at most 2"


def test_a_long_cycle_is_shown_in_short() -> None:
    links = "".join(f'<link name="l{i}"/>' for i in range(100))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{(i + 1) % 100}"/>'
        "</joint>"
        for i in range(100)
    )
    with pytest.raises(RobotFileError, match=r"cycle of 100 links \(.* -> \.\.\.\)"):
        parse_urdf(f'<robot name="r">{links}{joints}</robot>', "r.urdf")


# --- meshes --------------------------------------------------------------------------------


def test_meshes_are_located_and_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "arm_pkg"
    (package / "urdf").mkdir(parents=True)
    (package / "m.stl").write_text("solid")
    file = package / "urdf" / "arm.urdf"
    file.write_text(changed('<box size="1 2 3"/>', '<mesh filename="package://arm_pkg/m.stl"/>'))
    opened: list[object] = []
    real_open = io.open

    def watch(name: str, *args: Any) -> object:
        opened.append(name)
        return real_open(name, *args)

    monkeypatch.setattr("builtins.open", watch)
    robot = read(str(file), [tmp_path])
    assert robot.links[1].visuals[0].path == str((package / "m.stl").resolve())
    assert opened == [str(file)]


# --- fuzz ----------------------------------------------------------------------------------


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw the arm with a few spans overwritten, dropped, repeated or swapped."""
    data = bytearray(ARM.encode())
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 30)))
        kind = draw(st.sampled_from(["bytes", "drop", "repeat", "move"]))
        if kind == "bytes":
            data[start:stop] = draw(st.binary(max_size=8))
        elif kind == "drop":
            del data[start:stop]
        elif kind == "repeat":
            data[stop:stop] = data[start:stop] * draw(st.integers(1, 5))
        else:
            span = data[start:stop]
            del data[start:stop]
            place = draw(st.integers(0, len(data)))
            data[place:place] = span
    return bytes(data)


def is_finite(robot: RobotDescription) -> bool:
    numbers = [n for j in robot.joints for n in (*j.axis, *j.origin.translation)]
    numbers += [n for r in robot.links if r.inertia for n in (r.inertia.mass, *r.inertia.tensor)]
    return all(map(isfinite, numbers))


@settings(max_examples=800)
@given(mutated())
def test_mutated_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        robot = quietly(data)
    except RobotFileError as refused:
        assert str(refused).startswith("arm.urdf")
    else:
        assert is_finite(robot)


TOKENS = ["<", ">", "/>", '"', "0", "nan", "-", "1e999", "link", "joint", "name", "base", " ", "&"]


@settings(max_examples=400)
@given(st.integers(0, len(ARM)), st.integers(0, 12), st.lists(st.sampled_from(TOKENS), max_size=4))
def test_mutated_words_are_read_or_refused(start: int, length: int, words: list[str]) -> None:
    try:
        robot = quietly(ARM[:start] + "".join(words) + ARM[start + length :])
    except RobotFileError as refused:
        assert str(refused).startswith("arm.urdf")
    else:
        assert is_finite(robot)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RobotFileError, match=r"^arm\.urdf"):
        quietly(data)


# --- public robots -------------------------------------------------------------------------

# files that no reader can use, and the reason they are refused for
BROKEN = {
    "alex_psyonic_hands.urdf": 'joint="index_q1" does not exist',
    "ur3.urdf": "has no <link>",
}


def public_robots() -> Iterator[Path]:
    """Find the URDF files of example-robot-data, if it is installed."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.suffix == ".urdf" and "robots" in file.parts:
            yield Path(str(file.locate()))


ROBOTS = sorted(public_robots())
installed = pytest.mark.skipif(not ROBOTS, reason="example-robot-data is not installed")


@installed
@pytest.mark.parametrize("file", [f for f in ROBOTS if f.name not in BROKEN], ids=lambda f: f.name)
def test_a_public_robot_is_read(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotFileWarning)
        robot = read(file)
    assert len(robot.joints) == len(robot.links) - 1
    assert is_finite(robot)


@installed
@pytest.mark.parametrize("file", [f for f in ROBOTS if f.name in BROKEN], ids=lambda f: f.name)
def test_a_broken_public_robot_is_refused(file: Path) -> None:
    with pytest.raises(RobotFileError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:")
    assert BROKEN[file.name] in str(caught.value)


@installed
def test_the_meshes_of_a_public_package_are_found() -> None:
    file = next(f for f in ROBOTS if f.name == "panda.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotFileWarning)
        robot = read(file)
    paths = [g.path for link in robot.links for g in link.visuals if g.kind == "mesh"]
    assert paths
    assert all(Path(path).is_file() for path in paths)


def test_numbers_for_a_vendors_controllers_are_passed_over_silently(tmp_path: Path) -> None:
    """As Franka's files have them; they change nothing here."""
    text = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia '
        'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
        'type="continuous"><parent link="a"/><child link="b"/>'
        '<dynamics damping="0.1" D="1.0" K="7000" mu_coulomb="0" mu_viscous="16"/></joint></robot>'
    )
    assert lw.load(text).damping.tolist() == [0.1]
    assert lw.check(text) == []


@pytest.mark.parametrize("link", ["<link/>", '<link name=""/>', "<link/><link/>"])
def test_links_without_names_are_reported(link: str) -> None:
    found = lw.check(f'<robot name="x">{link}</robot>')
    assert any("name" in str(problem) for problem in found)
