"""Poses of several frames, frames seen from another, and how frames move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

EPS = np.finfo(float).eps
NAMES = ["link3", "iiwa_base", "link7", "joint2"]


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    base = lw.load("iiwa14")
    return base.rename({base.description.base: "iiwa_base"})


def one_by_one(robot: lw.Robot, q: Any, names: list[str]) -> Any:
    return np.stack([robot.forward_kinematics(q, name) for name in names], -3)


@pytest.mark.parametrize("kind", ["unrolled", "rolled", "parametric"])
def test_several_frames_are_each_of_them(robot: lw.Robot, kind: str) -> None:
    ours = robot.parametric("gravity") if kind == "parametric" else robot.with_codegen(kind)
    q = robot.random_q(seed=1, size=(2, 3))
    found = ours.forward_kinematics(q, NAMES)
    assert found.shape == (2, 3, 4, 4, 4)
    assert abs(found - one_by_one(robot, q, NAMES)).max() < 20 * EPS
    seen = ours.forward_kinematics(q[0, 0], "link7", relative_to="link3")
    ends = [robot.forward_kinematics(q[0, 0], name) for name in ("link3", "link7")]
    assert abs(ends[0] @ seen - ends[1]).max() < 20 * EPS
    several = ours.forward_kinematics(q[0, 0], ("iiwa_base", "link7"), relative_to="link3")
    assert abs(several[1] - seen).max() < 20 * EPS
    assert abs(several[0] - np.linalg.inv(ends[0])).max() < 20 * EPS
    poses, bits = ours.forward_kinematics([[np.nan] * 7, [0.1] * 7], NAMES, status=True)
    assert bits.tolist() == [int(lw.Status.NOT_FINITE), 0]
    assert np.isfinite(poses[1]).all()
    out = np.empty((4, 4, 4))
    assert ours.forward_kinematics(q[0, 0], NAMES, out=out) is out
    assert abs(out - found[0, 0]).max() < 20 * EPS


def test_float32_stays(robot: lw.Robot) -> None:
    q = robot.random_q(seed=1, size=5, dtype="float32")
    for ours in (robot, robot.with_codegen("rolled")):
        found = ours.forward_kinematics(q, NAMES)
        assert found.dtype == np.float32
        assert abs(found - one_by_one(robot, q, NAMES)).max() < 1e-5


def test_all_frames_of_a_tree(real_robot: Any) -> None:
    if real_robot.name not in ("solo12", "kinova"):
        return
    ours, q = real_robot.robot, real_robot.robot.random_q(seed=2)
    found = ours.forward_kinematics(q, ours.frame_names)
    for name, pose in zip(ours.frame_names, found, strict=True):
        assert (
            abs(pose - np.array(ours.evaluate("forward_kinematics", q, frame=name))).max() < 1e-14
        )


def test_names_are_checked(robot: lw.Robot) -> None:
    q = robot.neutral()
    with pytest.raises(ValueError, match=r"frame 'link9': .* did you mean 'link"):
        robot.forward_kinematics(q, ["link7", "link9"])
    with pytest.raises(ValueError, match=r"frame 'tool': robot 'iiwa14' has no such frame"):
        robot.forward_kinematics(q, "link7", relative_to="tool")
    with pytest.raises(ValueError, match=r"frame is \[\]; expected a name, or a list of names"):
        robot.forward_kinematics(q, [])
    with pytest.raises(ValueError, match=r"frame is 7; expected a name"):
        robot.forward_kinematics(q, 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"method 'scan': several frames"):
        robot.forward_kinematics(q, ["link7"], method="scan")
    with pytest.raises(ValueError, match=r"moved by 2 joint\(s\); expected at least 3"):
        robot.position_inertia(q, "link2")


def test_poses_of_a_long_chain() -> None:
    chain = lw.chain(2000, kind="mixed", seed=1)
    q = chain.random_q(seed=0)
    poses = chain.link_poses(q)
    names = [chain.link_names[i] for i in (0, 1234, 1999)]
    found = chain.forward_kinematics(q, names)
    assert abs(found - poses[[0, 1234, 1999]]).max() < 1e-9
    assert abs(found - one_by_one(chain, q, names)).max() < 1e-9


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
def test_results_are_written_where_they_are_wanted(robot: lw.Robot, codegen: str) -> None:
    ours, q = robot.with_codegen(codegen), robot.random_q(seed=1, size=3)
    seen = ours.forward_kinematics(q, "link7", relative_to="link3")
    for states, poses in ((q, seen), (q[0], seen[0])):
        out = np.empty(poses.shape)
        assert ours.forward_kinematics(states, "link7", relative_to="link3", out=out) is out
        assert np.array_equal(out, poses)
    wide: Any
    for wide, message in (
        (np.empty((5, 3, 2, 4, 4)), r"out has shape \(5, 3, 2, 4, 4\); expected \(3, 2, 4, 4\)"),
        (np.empty((3, 2, 4, 4), int), r"out has dtype int64; expected float64"),
        ([0.0], r"out is a list; expected a NumPy array of shape \(3, 2, 4, 4\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ours.forward_kinematics(q, ["link7", "link3"], out=wide)
    with pytest.raises(ValueError, match=r"threads is 0; expected a positive integer"):
        ours.forward_kinematics(q, ["link7", "link3"], threads=0)
    names: Any
    for names in (["link7", ["link3"]], b"link7"):
        with pytest.raises(ValueError, match=r"frame is .*; expected a name, or a list of names"):
            ours.forward_kinematics(q, names)
    with pytest.raises(ValueError, match=r"relative_to is \['link3'\]; expected a name"):
        ours.forward_kinematics(q, "link7", relative_to=["link3"])  # type: ignore[arg-type]


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
def test_a_state_that_is_not_finite_has_no_poses(robot: lw.Robot, codegen: str) -> None:
    q = robot.random_q(seed=1, size=3)
    q[1, 6] = np.nan
    poses = robot.with_codegen(codegen).forward_kinematics(q, ["iiwa_base", "link7"])
    lost = np.isnan(poses).all((-1, -2))
    assert lost.tolist() == [[False] * 2, [True] * 2, [False] * 2]


def test_constants_of_a_parametric_robot_move_several_frames(robot: lw.Robot) -> None:
    ours, q = robot.parametric("placement"), robot.random_q(seed=1)
    shift = np.zeros((7, 6))
    shift[0, 3:] = 0.1
    names = ["link3", "link7"]
    found = ours.forward_kinematics(q, names, placement=shift)
    each = [ours.forward_kinematics(q, name, placement=shift) for name in names]
    assert abs(found - np.stack(each)).max() < 10 * EPS
    assert abs(found - robot.forward_kinematics(q, names)).max() > 0.05
