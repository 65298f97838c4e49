"""Robots written as URDF come back as they were."""

from __future__ import annotations

import importlib.metadata
import shutil
import warnings
from dataclasses import replace
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.io.read import read
from linkwise.io.rpy import rotation_rpy, rpy_rotation
from linkwise.io.urdf_write import write_urdf
from linkwise.model import edit
from linkwise.model.description import (
    BodyInertia,
    Geometry,
    JointDescription,
    Limits,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.models import BUNDLED

STATES = 3
ANGLE = st.floats(-4.0, 4.0) | st.sampled_from([0.0, pi / 2, -pi / 2, pi, -pi, pi / 4, 1.5708])


def again(description: RobotDescription) -> RobotDescription:
    """Written and read, whatever there is to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        again = read(write_urdf(description))
    return replace(again, gravity=description.gravity)


def without_poses(description: RobotDescription) -> RobotDescription:
    """All that must come back exactly: everything but rotations."""

    def flat(shape: Geometry) -> Geometry:
        return replace(shape, origin=Pose(translation=shape.origin.translation))

    links = [
        replace(x, visuals=tuple(map(flat, x.visuals)), collisions=tuple(map(flat, x.collisions)))
        for x in description.links
    ]
    joints = [replace(x, origin=Pose(translation=x.origin.translation)) for x in description.joints]
    return replace(description, links=tuple(links), joints=tuple(joints))


def turned(description: RobotDescription) -> np.ndarray:
    return np.array([joint.origin.rotation for joint in description.joints])


# --- round trips ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_bundled_robot_comes_back(name: str, tmp_path: Path) -> None:
    robot = lw.load(name)
    robot.save(tmp_path / "out.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        assert lw.load(tmp_path / "out.urdf", strict=False) == robot


def public_robots() -> list[Path]:
    """URDF files of example-robot-data, those that can be read."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    broken = ("alex_psyonic_hands.urdf", "ur3.urdf")
    found = (Path(str(f.locate())) for f in files if f.suffix == ".urdf" and "robots" in f.parts)
    return sorted(f for f in found if f.name not in broken)


PUBLIC = public_robots()


@pytest.mark.skipif(not PUBLIC, reason="example-robot-data is not installed")
@pytest.mark.parametrize("file", PUBLIC, ids=lambda f: f.name)
def test_a_public_robot_comes_back(file: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        robot = read(file)
        (tmp_path / "out.urdf").write_text(write_urdf(robot, str(tmp_path)), encoding="utf-8")
        packages = [file.parent, *file.parents[1:5]]
        again = read(tmp_path / "out.urdf", packages)
    assert without_poses(again) == without_poses(robot)
    np.testing.assert_allclose(turned(again), turned(robot), rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", range(30))
def test_a_robot_of_every_kind_of_joint_comes_back(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    described = random_robot(rng, 9, kinds=all_kinds, mimic=True, friction=True)
    limits = Limits(-1.5, float(rng.choice([2.0, np.inf])), 3.0, float(rng.choice([4.0, np.inf])))
    joints = [
        replace(j, limits=limits) if j.kind in ("revolute", "prismatic", "planar") else j
        for j in described.joints
    ]
    described = replace(described, joints=tuple(plain_axis(joint) for joint in joints))
    read = again(described)
    assert without_poses(read) == without_poses(described)
    robot, other = lw.Robot(described), lw.Robot(read)
    states = random_states(robot, rng, STATES)
    tau = evaluate(robot, "inverse_dynamics", *states)
    assert_close(evaluate(other, "inverse_dynamics", *states), tau)
    M = evaluate(robot, "mass_matrix", states[0])
    assert_close(evaluate(other, "mass_matrix", states[0]), M)


def plain_axis(joint: JointDescription) -> JointDescription:
    """Kinds without an axis are read with the default one."""
    none = joint.kind in ("fixed", "free", "spherical")
    return replace(joint, axis=JointDescription.axis) if none else joint


def test_frames_come_back_as_frames(tmp_path: Path) -> None:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rpy_rotation(0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    robot = lw.load("iiwa14").with_frame("tcp", "link7", T)
    robot.save(tmp_path / "out.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        read = lw.load(tmp_path / "out.urdf", strict=False)
    assert set(read.frame_names) == set(robot.frame_names)
    q = np.linspace(-1, 1, 7)
    expected = robot.forward_kinematics(q, "tcp")
    np.testing.assert_allclose(read.forward_kinematics(q, "tcp"), expected, rtol=0, atol=1e-15)


def test_edited_robots_come_back(random_robot: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    described = edit.with_inertia(random_robot(rng, 8), "base", 1.0, None, (0.1, 0.1, 0.1))
    robot = lw.Robot(edit.with_gravity(described, (0, 0, -9.81)))
    robot = robot.change_base("l5").with_payload("l2", 1.0, (0.1, 0, 0))
    robot = robot.with_gravity((0, 0, -9.81)).with_free_base()
    robot.save(tmp_path / "out.urdf")
    read = lw.load(tmp_path / "out.urdf")
    assert read.joint_names == robot.joint_names
    q, qd = robot.random_q(rng), rng.normal(size=robot.nv)
    np.testing.assert_allclose(read.bias(q, qd), robot.bias(q, qd), rtol=1e-12, atol=1e-11)


# --- rotations -----------------------------------------------------------------------------


@settings(max_examples=500)
@given(ANGLE, ANGLE, ANGLE)
def test_roll_pitch_and_yaw_give_the_rotation_back(roll: float, pitch: float, yaw: float) -> None:
    R = rpy_rotation(roll, pitch, yaw)
    found = rpy_rotation(*rotation_rpy(R))
    np.testing.assert_allclose(found, R, rtol=0, atol=2e-15)


@pytest.mark.parametrize("near", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_gimbal_lock_loses_no_digits(near: float, side: float) -> None:
    R = rpy_rotation(0.7, side * (pi / 2 - near), -1.9)
    np.testing.assert_allclose(rpy_rotation(*rotation_rpy(R)), R, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "rpy", [(0.1, 0.2, 0.3), (-1.57, 0.0, 3.14159), (0.0, 0.0, 2.5), (0, 0, 0)]
)
def test_short_decimals_come_back_as_written(rpy: tuple[float, float, float]) -> None:
    assert rotation_rpy(rpy_rotation(*rpy)) == rpy


# --- words and numbers ---------------------------------------------------------------------


def one(**changes: Any) -> RobotDescription:
    link = LinkDescription(
        "b", BodyInertia(1.0, (0.1, 0.2, 0.3), (0.2, 0.01, 0.02, 0.25, 0.03, 0.3))
    )
    joint = JointDescription("j", "revolute", "a", "b", limits=Limits(-1.0, 1.0, 2.0, 3.0))
    parts: dict[str, Any] = {"links": (LinkDescription("a"), link), "joints": (joint,)}
    return RobotDescription("r", base="a", **(parts | changes))


@pytest.mark.parametrize("limits", [Limits(), Limits(0.0), Limits(upper=1e-300, effort=5.0)])
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar"])
def test_limits_come_back_exactly_and_silently(kind: str, limits: Limits) -> None:
    joint = JointDescription("j", kind, "a", "b", limits=limits)
    described = one(joints=(joint,))
    assert read(write_urdf(described)) == described


@pytest.mark.filterwarnings("ignore:.*centre of mass is 1e:linkwise.RobotFileWarning")
def test_numbers_keep_every_bit() -> None:
    body = BodyInertia(1 / 3, (1e-300, -2 / 3, 1e22), (0.1, 1e-17, 0.0, 0.2, -0.03, 5e-324))
    described = one(links=(LinkDescription("a"), LinkDescription("b", body)))
    assert read(write_urdf(described)) == described


@pytest.mark.parametrize("name", ['a "b" <c> & d\'s', "élan/β", "two\nlines\tand tabs", " edge "])
def test_names_are_escaped(name: str) -> None:
    described = edit.rename(one(), {"b": name, "j": name + "!"}, name + "?")
    assert read(write_urdf(described)) == described


@pytest.mark.parametrize("name", ["bell\x07", "lone \ud800", "xacro ${x}"])
def test_names_that_no_file_can_hold_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"link name .* cannot be written"):
        write_urdf(edit.rename(one(), {"b": name}, None))


def test_shapes_come_back() -> None:
    place = Pose(rpy_rotation(0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    shapes = (
        Geometry("box", (1.0, 2.0, 3.0), origin=place, rgba=(0.1, 0.2, 0.3, 1.0)),
        Geometry("sphere", (0.5,)),
        Geometry("cylinder", (0.1, 2.0), rgba=(1.0, 0.0, 0.0, 0.5)),
        Geometry("capsule", (0.1, 2.0)),
        Geometry("mesh", path="package://nowhere/part.stl", scale=(1e-3, 1e-3, -1e-3)),
    )
    link = LinkDescription("a", None, shapes, shapes[:2])
    described = one(links=(link, one().links[1]))
    assert read(write_urdf(described)) == described


def test_gravity_is_told_to_be_left_out() -> None:
    with pytest.warns(lw.RobotFileWarning, match=r"gravity \(0.0, 0.0, -1.6\) is not written"):
        write_urdf(one(gravity=(0.0, 0.0, -1.6)))


def test_only_urdf_files_are_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a name that ends in \.urdf"):
        lw.load("iiwa14").save(tmp_path / "out.xml")


def test_a_robot_made_from_a_tree_has_nothing_to_save(tmp_path: Path) -> None:
    robot = lw.Robot.from_tree(lw.load("iiwa14").tree)
    with pytest.raises(
        ValueError, match=r"made from a tree .*; expected one that was loaded, or made by"
    ):
        robot.save(tmp_path / "out.urdf")


# --- meshes --------------------------------------------------------------------------------


@pytest.fixture
def meshed(tmp_path: Path) -> Path:
    """A robot file with a mesh beside it."""
    home = tmp_path / "home"
    (home / "meshes").mkdir(parents=True)
    (home / "meshes" / "part.stl").write_text("solid")
    mesh = LinkDescription("a", None, (Geometry("mesh", path="meshes/part.stl"),))
    (home / "arm.urdf").write_text(write_urdf(one(links=(mesh, one().links[1]))))
    return home / "arm.urdf"


def mesh_of(robot: lw.Robot) -> str:
    return robot.description.links[0].visuals[0].path


def test_meshes_beside_the_file_are_named_relative_to_it(meshed: Path) -> None:
    robot = lw.load(meshed)
    robot.save(meshed.with_name("new.urdf"))
    assert 'filename="meshes/part.stl"' in meshed.with_name("new.urdf").read_text()
    assert lw.load(meshed.with_name("new.urdf")) == robot
    moved = meshed.parent.with_name("moved")
    shutil.move(meshed.parent, moved)
    assert mesh_of(lw.load(moved / "new.urdf")) == str(moved.resolve() / "meshes" / "part.stl")


def test_meshes_elsewhere_are_found_when_told_where(meshed: Path, tmp_path: Path) -> None:
    robot = lw.load(meshed)
    (tmp_path / "away").mkdir()
    out = tmp_path / "away" / "out.urdf"
    with pytest.warns(lw.RobotFileWarning, match=r"load it with package_dirs=\['.*meshes'\]"):
        robot.save(out)
    assert mesh_of(lw.load(out)) == "package://meshes/part.stl"
    assert lw.load(out, package_dirs=[meshed.parent / "meshes"]) == robot
    assert lw.load(out, package_dirs=[meshed.parent]) == robot


def test_meshes_of_a_package_are_named_by_it(meshed: Path, tmp_path: Path) -> None:
    (meshed.parent / "package.xml").write_text("<package/>")
    robot = lw.load(meshed)
    (meshed.parent / "urdf").mkdir()
    out = meshed.parent / "urdf" / "out.urdf"
    robot.save(out)
    assert 'filename="package://home/meshes/part.stl"' in out.read_text()
    assert lw.load(out) == robot
