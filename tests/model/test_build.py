"""Descriptions -> trees: bodies that cannot exist are refused, named, or repaired on request."""

import logging
from math import pi

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import RobotFileError, RobotFileWarning

GOOD = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>'
FLAT = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.09"/>'
NEGATIVE = '<inertia ixx="-0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>'


def urdf(tmp_path, inertia=GOOD, mass="1.5", fixed_mass=None):
    extra = (
        f"""<link name="tool"><inertial><mass value="{fixed_mass}"/>{GOOD}</inertial></link>
        <joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/>
        <origin xyz="0.1 0 0"/></joint>"""
        if fixed_mass
        else ""
    )
    path = tmp_path / "arm.urdf"
    path.write_text(f"""<robot name="arm">
<link name="base"/>
<link name="arm">
  <inertial><mass value="{mass}"/>{inertia}</inertial>
</link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
{extra}</robot>""")
    return path


def test_triangle_inequality_is_refused_with_its_place(tmp_path):
    with pytest.raises(RobotFileError) as caught:
        lw.load(urdf(tmp_path, FLAT))
    message = str(caught.value)
    assert 'arm.urdf:3: <link name="arm">' in message
    assert "0.02, 0.03, 0.09" in message and "triangle inequality" in message


def test_indefinite_inertia_is_refused(tmp_path):
    with pytest.raises(RobotFileError, match=r"arm\.urdf:3: .*expected all positive"):
        lw.load(urdf(tmp_path, NEGATIVE))


def test_massless_body_is_refused(tmp_path):
    with pytest.raises(RobotFileError, match=r"joint 'hinge' has mass 0 kg; expected a positive"):
        lw.load(urdf(tmp_path, mass="0"))


def test_not_strict_takes_it_as_written_and_says_so(tmp_path):
    with pytest.warns(RobotFileWarning, match="taken as written"):
        robot = lw.load(urdf(tmp_path, FLAT), strict=False)
    np.testing.assert_allclose(robot.mass_matrix([0.0])[0, 0], 0.09, rtol=1e-15)


def test_repair_changes_the_body_and_logs_it(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="linkwise"):
        robot = lw.load(urdf(tmp_path, FLAT), repair="nearest")
    assert "repaired" in caplog.text and "arm.urdf:3" in caplog.text
    rotational = robot.tree.links[0].inertia.rotational()
    principal = np.sort([rotational.xx, rotational.yy, rotational.zz])
    assert principal[2] <= principal[0] + principal[1]


def test_repair_has_known_names_only(tmp_path):
    with pytest.raises(ValueError, match="repair 'best': expected None or 'nearest'"):
        lw.load(urdf(tmp_path), repair="best")


def test_fixed_links_count_with_the_body_that_carries_them(tmp_path):
    alone = lw.load(urdf(tmp_path)).mass_matrix([0.0])[0, 0]
    with_tool = lw.load(urdf(tmp_path, fixed_mass="2")).mass_matrix([0.0])[0, 0]
    np.testing.assert_allclose(with_tool, alone + 0.04 + 2 * 0.1**2, rtol=1e-15)


def test_fixed_links_are_frames(tmp_path):
    robot = lw.load(urdf(tmp_path, fixed_mass="2"))
    assert robot.frame_names == ("base", "arm", "tool", "hinge", "mount")
    assert robot.link_names == ("arm",)
    pose = robot.forward_kinematics([pi / 2], "tool")
    np.testing.assert_allclose(pose[:3, 3], [0.0, 0.1, 0.0], atol=1e-16)


def test_no_moving_joint_is_refused(tmp_path):
    path = tmp_path / "rock.urdf"
    path.write_text('<robot name="rock"><link name="rock"/></robot>')
    with pytest.raises(RobotFileError, match="no moving joint"):
        lw.load(path)


def test_missing_file_names_the_bundled_robots():
    with pytest.raises(RobotFileError, match="puma561: no such file; bundled robots are iiwa14"):
        lw.load("puma561")


def test_printing_a_robot_shows_its_joints():
    text = str(lw.load("puma560"))
    lines = text.splitlines()
    assert "6 degrees of freedom" in lines[0]
    assert all(f"joint{i}" in text for i in range(1, 7))
    assert len({len(line) for line in lines[3:4]}) == 1
    assert "17.4" in text
