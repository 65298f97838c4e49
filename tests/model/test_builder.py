"""Robots written in Python: the same as from a file, and refused for the same reasons."""

from __future__ import annotations

from math import inf, pi
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.io.read import read
from linkwise.model.description import Geometry, Limits, Mimic

URDF = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>
  <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
  <visual><geometry><box size="1 2 3"/></geometry></visual></link>
<link name="fore"><inertial><mass value="1"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>
<link name="tip"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 3 4"/>
  <limit lower="-1" upper="2" velocity="3" effort="4"/>
  <dynamics damping="0.5" friction="0.25" armature="0.125"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/>
  <axis xyz="0 0 1"/><mimic joint="shoulder" multiplier="2" offset="0.5"/></joint>
<joint name="glue" type="fixed"><parent link="fore"/><child link="tip"/></joint>
</robot>"""


def arm() -> lw.Builder:
    b = lw.Builder("arm")
    box = Geometry("box", (1.0, 2.0, 3.0))
    inertia = (0.02, 0.001, 0, 0.03, 0, 0.04)
    b.link("upper", mass=2, com=(0.1, 0, 0.2), inertia=inertia, visuals=[box])
    b.link("fore", mass=1, inertia=(0.02, 0.03, 0.04)).link("tip")
    b.joint(
        "shoulder", "revolute", parent="base", child="upper", axis=(0, 3, 4), xyz=(1, 2, 3),
        rpy=(0.1, 0.2, 0.3), limits=(-1, 2), velocity=3, effort=4, damping=0.5, friction=0.25,
        armature=0.125,
    )  # fmt: skip
    b.joint("elbow", "continuous", parent="upper", child="fore", mimic=("shoulder", 2, 0.5))
    return b.joint("glue", "fixed", parent="fore", child="tip")


def test_a_builder_says_what_a_file_says() -> None:
    assert arm().describe() == read(URDF)
    assert arm().build() == lw.Robot(read(URDF))


def test_every_kind_of_joint_can_be_built() -> None:
    b = lw.Builder("all")
    details: dict[str, dict[str, Any]] = {
        "revolute": {}, "continuous": {}, "prismatic": {}, "fixed": {}, "planar": {},
        "spherical": {}, "free": {}, "helical": {"pitch": 0.1},
        "universal": {"axis": (1, 0, 0), "second_axis": (0, 1, 0)},
    }  # fmt: skip
    parent = "base"
    for kind, more in details.items():
        b.link(kind, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"to {kind}", kind, parent=parent, child=kind, xyz=(0, 0, 0.1), **more)
        parent = kind
    assert b.build().nv == 1 + 1 + 1 + 0 + 3 + 3 + 6 + 1 + 2


def test_a_pendulum_swings_as_it_should() -> None:
    b = lw.Builder("pendulum", gravity=(0, 0, -10))
    b.link("rod", mass=2.0, com=(0, 0, -0.5), inertia=np.diag([0.3, 0.4, 0.1]))
    robot = b.joint("pivot", "revolute", parent="base", child="rod", axis=(0, 1, 0)).build()
    np.testing.assert_allclose(robot.mass_matrix([0.3]), [[0.4 + 2 * 0.25]], rtol=1e-15)
    expected = 2 * 10 * 0.5 * np.sin(0.3)
    np.testing.assert_allclose(robot.gravity_torque([0.3]), [expected], rtol=1e-15)


def test_options_are_those_of_load() -> None:
    b = arm().link("base", mass=5, inertia=(0.1, 0.1, 0.1))
    assert b.build(base="free").nv == 7
    assert b.build(friction=True).with_friction(False) == b.build()
    with pytest.raises(ValueError, match="base 'flying': expected 'fixed' or 'free'"):
        b.build(base="flying")


def test_frames_may_be_added() -> None:
    robot = arm().frame("tcp", "tip", xyz=(0, 0, 0.1), rpy=(pi, 0, 0)).build()
    pose = robot.frame("tcp").pose
    np.testing.assert_allclose(pose[:3, 3], [0, 0, 0.1], atol=1e-16)
    assert np.array_equal(pose[:3, :3], np.diag([1.0, -1.0, -1.0]))


def test_a_root_may_have_any_name() -> None:
    b = lw.Builder().link("world").link("rod", mass=1, inertia=(1, 1, 1))
    assert b.joint("j", "revolute", parent="world", child="rod").describe().base == "world"


def test_a_builder_goes_on_after_building() -> None:
    b = arm()
    before = b.build()
    b.link("more", mass=1, inertia=(1, 1, 1))
    b.joint("last", "prismatic", parent="tip", child="more")
    assert (before.nv, b.build().nv) == (1, 2)
    assert repr(b) == "<Builder 'arm': 4 links, 4 joints>"


def test_defaults_are_no_limits_and_no_losses() -> None:
    b = lw.Builder().link("a", mass=1, inertia=(1, 1, 1))
    b.link("b", mass=1, inertia=(1, 1, 1))
    b.joint("j", "revolute", parent="base", child="a")
    b.joint("k", "revolute", parent="a", child="b", mimic="j")
    j, k = b.describe().joints
    assert j.limits == Limits(-inf, inf, inf, inf)
    assert (j.armature, j.damping, j.friction, j.axis) == (0.0, 0.0, 0.0, (0.0, 0.0, 1.0))
    assert k.mimic == Mimic("j", 1.0, 0.0)


PLACE = "<builder 'arm'>"
DEFECTS: dict[str, tuple[Any, str]] = {
    "unknown child": (
        lambda b: b.joint("j", "fixed", parent="tip", child="tipp"),
        f'{PLACE}: joint "j": child link "tipp" does not exist; expected a name in this robot, '
        'perhaps "tip"',
    ),
    "two parents": (
        lambda b: b.joint("j", "fixed", parent="upper", child="tip"),
        f'{PLACE}: joint "j": child link "tip" is also the child of joint "glue"; expected one',
    ),
    "two roots": (
        lambda b: b.link("stray"),
        f'{PLACE}: link "stray": no joint has this link as child, nor "base"; expected one root',
    ),
    "cycle": (
        lambda b: b.link("a").link("b").joint("ab", "fixed", parent="a", child="b")
        .joint("ba", "fixed", parent="b", child="a"),
        "closes a cycle of 2 links",
    ),
    "itself": (
        lambda b: b.link("a").joint("aa", "fixed", parent="a", child="a"),
        'parent and child are both "a"; expected two links',
    ),
    "same link": (
        lambda b: b.link("tip"),
        f'{PLACE}: link "tip": link name "tip" is already used; expected a new name',
    ),
    "same joint": (
        lambda b: b.link("a").joint("glue", "fixed", parent="tip", child="a"),
        'joint name "glue" is already used',
    ),
    "kind": (
        lambda b: b.joint("j", "hinge", parent="tip", child="a"),
        "joint 'j': kind is 'hinge'; expected one of fixed, revolute",
    ),
    "axis": (
        lambda b: b.joint("j", "revolute", parent="tip", child="a", axis=(0, 0, 0)),
        "joint 'j': axis is (0, 0, 0), which has no direction",
    ),
    "second axis": (
        lambda b: b.joint("j", "universal", parent="tip", child="a", second_axis=(0, 1, 1)),
        "joint 'j': second_axis is (0, 1, 1); expected a right angle to axis (0.0, 0.0, 1.0)",
    ),
    "position": (
        lambda b: b.joint("j", "fixed", parent="tip", child="a", xyz=(0, 1)),
        "joint 'j': xyz is (0, 1); expected 3 finite numbers",
    ),
    "word for a number": (
        lambda b: b.link("a", mass="heavy"),
        "link 'a': mass is 'heavy'; expected a finite number",
    ),
    "ragged": (
        lambda b: b.link("a", mass=1, com=[1, [2, 3]]),
        "link 'a': com is [1, [2, 3]]; expected 3 finite numbers",
    ),
    "limits": (
        lambda b: b.joint("j", "revolute", parent="tip", child="a", limits=1),
        "joint 'j': limits are 1; expected (lower, upper)",
    ),
    "armature": (
        lambda b: b.joint("j", "revolute", parent="tip", child="a", armature=-1),
        "joint 'j': armature is -1; expected zero or more",
    ),
    "mimic": (
        lambda b: b.joint("j", "revolute", parent="tip", child="a", mimic=("x",)),
        "joint 'j': mimic is ('x',); expected a joint's name, or (name, multiplier, offset)",
    ),
    "mimic is a number": (
        lambda b: b.joint("j", "revolute", parent="tip", child="a", mimic=3),
        "joint 'j': mimic is 3; expected a joint's name",
    ),
    "parent": (
        lambda b: b.joint("j", "revolute", parent=None, child="a"),
        "joint 'j': parent is None; expected some text",
    ),
    "child": (
        lambda b: b.joint("j", "revolute", parent="tip", child=["a"]),
        "joint 'j': child is ['a']; expected some text",
    ),
    "visuals": (lambda b: b.link("a", visuals=3), "link 'a': visuals has 3; expected linkwise."),
    "mimic of nothing": (
        lambda b: b.link("a").joint("j", "revolute", parent="tip", child="a", mimic="sholder"),
        f'{PLACE}: joint "j": mimic: joint="sholder" does not exist; expected a name in this '
        'robot, perhaps "shoulder"',
    ),
    "mimics in a circle": (
        lambda b: (
            b.link("a").joint("j", "revolute", parent="tip", child="a", mimic="k")
            .link("c").joint("k", "revolute", parent="a", child="c", mimic="j")
        ),
        'joint "j" follows itself through "k"',
    ),
    "mimic of a ball": (
        lambda b: b.link("a").joint("j", "spherical", parent="tip", child="a", mimic="shoulder"),
        '"j" is spherical; expected one of revolute',
    ),
    "frame": (lambda b: b.frame("tcp", "tipp"), "did you mean 'tip'?"),
    "frame name": (lambda b: b.frame("tip", "upper"), "has a link, joint or frame of that name"),
    "no name": (lambda b: b.link(""), "link: name is ''; expected some text"),
}  # fmt: skip


@pytest.mark.parametrize("case", DEFECTS)
def test_what_cannot_be_is_refused(case: str) -> None:
    act, message = DEFECTS[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        act(arm()).build()
    assert message in str(caught.value)


def test_nothing_is_no_robot() -> None:
    with pytest.raises(lw.RobotFileError, match="has no link; expected at least one"):
        lw.Builder("arm").describe()


def test_limits_and_ties_are_shown() -> None:
    b = lw.Builder("gripper")
    for name in ("left", "right", "thumb"):
        b.link(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("a", "prismatic", parent="base", child="left", velocity=0.5, effort=20.0)
    b.joint("b", "prismatic", parent="base", child="right", mimic=("a", -2.0, 0.1), effort=5.0)
    robot = b.joint("c", "spherical", parent="base", child="thumb", velocity=3.0).build()
    assert robot.velocity_limits.tolist() == [0.5, 3.0, 3.0, 3.0]
    assert robot.effort_limits.tolist() == [20.0, inf, inf, inf]
    assert str(robot).endswith("\n\nb has no number of its own in q: it is -2 × a + 0.1")
