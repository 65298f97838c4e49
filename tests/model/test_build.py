"""Descriptions -> trees: bodies that cannot exist are refused, named, or repaired on request."""

import logging
from math import pi

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.errors import RobotFileError, RobotFileWarning
from linkwise.text import pairs

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
    assert "0.02, 0.03, 0.09" in message and "each at most the sum of the other two" in message
    assert 'repair="nearest"' in message and "strict=False" in message


def test_indefinite_inertia_is_refused(tmp_path):
    with pytest.raises(RobotFileError, match=r"arm\.urdf:3: .*expected none negative"):
        lw.load(urdf(tmp_path, NEGATIVE))


NEARLY = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.052"/>'


def test_the_triangle_inequality_missed_by_little_is_told(tmp_path):
    with pytest.warns(
        RobotFileWarning, match=r"\(0.02, 0.03, 0.052\) kg m², the largest 4 % above"
    ):
        robot = lw.load(urdf(tmp_path, NEARLY))
    np.testing.assert_allclose(robot.mass_matrix([0.0])[0, 0], 0.052, rtol=1e-15)


def test_a_link_with_inertia_and_no_mass_is_taken(tmp_path):
    with pytest.warns(RobotFileWarning, match="'hinge' has inertia and no mass: taken as written"):
        robot = lw.load(urdf(tmp_path, mass="0"))
    np.testing.assert_allclose(robot.mass_matrix([0.0])[0, 0], 0.04, rtol=1e-15)


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


def test_a_long_value_takes_several_lines():
    names = ", ".join(f"frame_number_{k}" for k in range(40))
    lines = pairs([("frames", names), ("digest", "0" * 120)]).splitlines()
    assert max(map(len, lines[:-1])) <= 100 and lines[-1] == "digest  " + "0" * 120
    assert all(line.startswith("        frame_") for line in lines[1:-1])
    assert " ".join(lines[:-1]).split() == ["frames", *names.split()]


# -- numbers next to zero -------------------------------------------------------------------------

TINY = '<inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" iyz="0" izz="{0}"/>'


@pytest.mark.parametrize("mass", ["5e-324", "1e-320", "1e-308", "1e-160", "9e-61"])
def test_a_mass_whose_products_vanish_is_refused(tmp_path, mass):
    for options in ({}, {"strict": False}, {"repair": "nearest"}):
        with pytest.raises(RobotFileError, match=r"kg; expected zero, or at least 1e-60 kg: its"):
            lw.load(urdf(tmp_path, mass=mass), **options)


@pytest.mark.parametrize("inertia", ["5e-324", "1e-320", "1e-308", "1e-160", "9e-61"])
def test_an_inertia_whose_products_vanish_is_refused(tmp_path, inertia):
    with pytest.raises(RobotFileError, match=r"expected each at least 1e-60: their products"):
        lw.load(urdf(tmp_path, TINY.format(inertia)))


@pytest.mark.parametrize("inertia", ["0", "1e-30"])
def test_a_point_mass_on_the_axis_moves_nothing(tmp_path, inertia):
    """What is left of its inertia about the centre is rounding, of either sign."""
    text = urdf(tmp_path).read_text()
    for xyz in ("0 0 0.3", "0 0 -0.7", "0 0 7"):
        moved = text.replace("<inertial>", f'<inertial><origin xyz="{xyz}"/>')
        (tmp_path / "arm.urdf").write_text(moved.replace(GOOD, TINY.format(inertia)))
        with pytest.warns(lw.RobotFileWarning, match="and no inertia: taken as a point"):
            robot = lw.load(tmp_path / "arm.urdf")
        with pytest.raises(ValueError, match="no joint moves any inertia"):
            robot.forward_dynamics([0.0], [0.0], [0.0])


def test_a_point_mass_is_told_of_a_file_and_not_of_code(tmp_path):
    place = '<inertial><origin xyz="0.3 0 0.2"/>'
    text = urdf(tmp_path, TINY.format("0")).read_text().replace("<inertial>", place)
    with pytest.warns(lw.RobotFileWarning, match='text>:3: <link name="arm">: .* a point'):
        robot = lw.load(text)
    assert np.isfinite(robot.forward_dynamics([0.1], [0.2], [0.3])).all()
    built = lw.Builder().link("ball", mass=1.0, com=(0.3, 0.0, 0.0))
    assert built.joint("pivot", "revolute", parent="base", child="ball").build().nv == 1


@pytest.mark.parametrize("size", ["1e-59", "1e-40", "1e-20"])
def test_small_bodies_have_all_their_digits(tmp_path, size):
    """The same robot in other units: torques scale, accelerations do not."""
    small = lw.load(urdf(tmp_path, TINY.format(size), mass=size))
    whole = lw.load(urdf(tmp_path, TINY.format("1"), mass="1"))
    state = ([0.3], [0.4], [0.5])
    torque = whole.inverse_dynamics(*state)
    np.testing.assert_allclose(small.inverse_dynamics(*state), float(size) * torque, rtol=1e-14)
    for method in ("aba", "crba"):
        actual = small.forward_dynamics(state[0], state[1], float(size) * torque, method=method)
        np.testing.assert_allclose(actual, state[2], rtol=1e-12)


# -- links without mass, and joints that follow others --------------------------------------------

FINGERS = """<robot name="hand">
<link name="palm"/>
<link name="first">{first}</link>
<link name="second">{second}</link>
<joint name="driver" type="continuous"><parent link="palm"/><child link="first"/>
  <axis xyz="0 0 1"/></joint>
<joint name="follower" type="continuous"><parent link="{on}"/><child link="second"/>
  <origin xyz="0.1 0 0" rpy="{turn} 0 0"/><axis xyz="0 0 1"/>
  <mimic joint="driver" multiplier="{multiplier}"/></joint>
</robot>"""
BODY = f'<inertial><origin xyz="0.1 0.2 0.3"/><mass value="1"/>{GOOD}</inertial>'


def fingers(tmp_path, first=BODY, second=BODY, on="first", turn=1.0, multiplier=1.0, **options):
    path = tmp_path / "hand.urdf"
    path.write_text(
        FINGERS.format(first=first, second=second, on=on, turn=turn, multiplier=multiplier)
    )
    return lw.load(path, **options)


@pytest.mark.parametrize("mimic", ["follow", "free"])
def test_a_follower_without_mass_moves_nothing_as_a_joint_on_its_own(tmp_path, mimic):
    """The recursive algorithms solve for followers too, and tie them afterwards."""
    options = {} if mimic == "follow" else {"mimic": mimic}
    for on in ("palm", "first"):
        with pytest.warns(RobotFileWarning, match='move no inertia: "follower"'):
            fingers(tmp_path, second="", on=on, **options)


def test_a_driver_without_mass_is_told_where_it_carries_nothing(tmp_path):
    """Its follower's inertia is beside it, not beyond it."""
    with pytest.warns(RobotFileWarning, match='move no inertia: "driver"'):
        fingers(tmp_path, first="", on="palm")


@pytest.mark.filterwarnings("ignore:.*links without mass")
@pytest.mark.parametrize("multiplier", [1.0, -1.0, 0.0])
def test_a_driver_without_mass_may_carry_its_follower(tmp_path, multiplier):
    robot = fingers(tmp_path, first="", turn=1.0, multiplier=multiplier)
    q, qd, tau = [0.3], [0.4], [0.5]
    assert robot.mass_matrix(q)[0, 0] > 1e-3
    expected = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias(q, qd))
    for method in ("aba", "crba", "fd1", "fd3"):
        actual = robot.forward_dynamics(q, qd, tau, method=method)
        np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::linkwise.RobotFileWarning")
def test_ties_cannot_make_what_passes_singular(tmp_path):
    """``Gᵀ M G`` of a regular M: whatever is accepted has a positive mass matrix and dynamics."""
    rng = np.random.default_rng(3)
    accepted = 0
    for _ in range(60):
        first, second = rng.choice(["", BODY], 2)
        turn, on = rng.choice([0.0, 0.7]), rng.choice(["palm", "first"])
        multiplier = rng.choice([-1.0, 0.0, 2.0])
        robot = fingers(tmp_path, first, second, on, turn, multiplier)
        if robot.tree.unmoved:
            continue
        accepted += 1
        q = rng.uniform(-1.0, 1.0, (5, 1))
        assert (robot.mass_matrix(q)[:, 0, 0] > 1e-6).all()
        assert not robot.forward_dynamics(q, q, q, method="aba", status=True)[1].any()
    assert accepted > 10


# -- objects without joints -----------------------------------------------------------------------


@pytest.fixture
def rock(tmp_path):
    path = tmp_path / "rock.urdf"
    body = f'<inertial><origin xyz="0.1 0 0"/><mass value="2"/>{GOOD}</inertial>'
    path.write_text(
        f'<robot name="rock"><link name="rock">{body}</link><link name="top"/>'
        '<joint name="on" type="fixed"><parent link="rock"/><child link="top"/>'
        '<origin xyz="0 0 3"/></joint></robot>'
    )
    return path


@pytest.mark.parametrize("batch", [(), (3,), (2, 0)])
def test_every_function_of_an_object_without_joints(rock, batch):
    robot = lw.load(rock)
    assert (robot.nq, robot.nv, robot.neutral().shape) == (0, 0, (0,))
    for function, methods in FUNCTIONS.items():
        for method, algorithm in methods.items():
            if algorithm.iterates or algorithm.needs_of_frame:
                continue
            if not algorithm.exists_for(robot.tree):
                assert function.startswith(("com_", "center", "centroidal", "generalized")), (
                    function
                )
                continue
            values = [np.zeros((*batch, n)) for _, n in algorithm.input_sizes(robot.tree)]
            options = {"frame": "top"} if algorithm.takes_frame else {}
            result, status = robot.compute(function, *values, method=method, status=True, **options)
            assert result.shape == (*batch, *algorithm.output_shape(robot.tree))
            assert not np.any(status) and np.isfinite(result).all()
    pose = robot.forward_kinematics(np.zeros((*batch, 0)), "top")
    assert (pose[..., 2, 3] == 3.0).all()
    with pytest.raises(ValueError, match="is moved by 0 joint"):
        robot.operational_inertia(np.zeros((*batch, 0)), "top")
    with pytest.raises(ValueError, match=r"center_of_mass.*no link moves \(base='free' lets"):
        robot.center_of_mass(np.zeros((*batch, 0)))


def test_an_object_without_joints_may_fly(rock):
    robot = lw.load(rock, base="free")
    assert robot.nv == 6
    fall = robot.forward_dynamics(robot.neutral(), np.zeros(6), np.zeros(6))
    np.testing.assert_allclose(fall, [0, 0, 0, 0, 0, -9.81], atol=1e-14)


def test_a_robot_with_every_joint_locked_is_an_object():
    robot = lw.load("puma560")
    held = robot.lock(dict.fromkeys(robot.joint_names, 0.3))
    assert held.nv == 0
    expected = robot.forward_kinematics([0.3] * 6, robot.frame_names[-1])
    np.testing.assert_allclose(
        held.forward_kinematics([], held.frame_names[-1]), expected, atol=1e-15
    )
