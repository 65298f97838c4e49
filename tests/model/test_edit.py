"""Editing is physics too: what an edit means is known from the robot before it."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rotations import random_rotation

import linkwise as lw
from linkwise.model import edit
from linkwise.model.description import Limits, RobotDescription
from linkwise.model.find import outward, way_to
from linkwise.robot import Robot

STATES = 3
SEEDS = range(12)
FUNCTIONS = ("inverse_dynamics", "mass_matrix", "potential_energy")
FLAT = (0.02, 0.03, 0.04)


def arm() -> lw.Robot:
    """Two links and a finger that follows the elbow."""
    b = lw.Builder("arm")
    b.link("upper", mass=2.0, com=(0.1, 0.0, 0.2), inertia=FLAT)
    b.link("fore", mass=1.0, com=(0.0, 0.1, 0.1), inertia=FLAT)
    b.link("finger", mass=0.1, inertia=(1e-3, 1e-3, 1e-3)).link("pad")
    b.joint("shoulder", "revolute", parent="base", child="upper", limits=(-1.0, 2.0), damping=0.5)
    b.joint("elbow", "revolute", parent="upper", child="fore", axis=(0, 1, 0), xyz=(0, 0, 0.5))
    b.joint(
        "grip", "prismatic", parent="fore", child="finger", axis=(1, 0, 0), xyz=(0, 0, 0.3),
        mimic=("elbow", 0.5, 0.1),
    )  # fmt: skip
    b.joint("glue", "fixed", parent="finger", child="pad", xyz=(0, 0, 0.02))
    return b.build()


def flier(robot: lw.Robot) -> lw.Robot:
    return robot.with_inertia("base", 4.0, inertia=FLAT).with_free_base()


def slices(robot: lw.Robot) -> dict[str, tuple[slice, slice]]:
    """Where each joint's own numbers are in q and in v."""
    return {
        x.joint_name: (
            slice(x.q_index, x.q_index + x.joint.nq),
            slice(x.v_index, x.v_index + x.joint.nv),
        )
        for x in robot.tree.links
        if x.follows is None
    }


def columns(robot: lw.Robot, other: lw.Robot, part: int, prefix: str = "") -> list[int]:
    """For each number of ``robot``, which number of ``other`` it is."""
    theirs = slices(other)
    return [i for name in slices(robot) for i in range(*theirs[prefix + name][part].indices(999))]


def q_of(robot: lw.Robot, other: lw.Robot, q: np.ndarray, prefix: str = "") -> np.ndarray:
    """The configuration of ``robot``, whose joints are among those of ``other``."""
    return q[:, columns(robot, other, 0, prefix)]


def same_dynamics(
    robot: lw.Robot, other: lw.Robot, states: Any, evaluate: Any, assert_close: Any
) -> None:
    """The two agree, joint by joint."""
    q, qd, u = states
    mine = columns(robot, other, 1)
    values = q_of(robot, other, q), qd[:, mine], u[:, mine]
    tau = evaluate(other, "inverse_dynamics", q, qd, u)[:, mine]
    M = evaluate(other, "mass_matrix", q)[:, mine][:, :, mine]
    assert_close(evaluate(robot, "inverse_dynamics", *values), tau, scale=abs(tau).max() + 10.0)
    assert_close(evaluate(robot, "mass_matrix", values[0]), M)


def pose(rng: np.random.Generator) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = random_rotation(rng), rng.uniform(-1, 1, 3)
    return T


def quaternion(R: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of rotations, by the eigenvector that is best known."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R.reshape(-1, 9).T
    K = np.array(
        [
            [xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, xx - yy - zz, xy + yx, xz + zx],
            [xz - zx, xy + yx, yy - xx - zz, yz + zy],
            [yx - xy, xz + zx, yz + zy, zz - xx - yy],
        ]
    )
    return np.linalg.eigh(np.moveaxis(K, 2, 0))[1][:, :, -1]


def flying(robot: lw.Robot, T: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Configurations of a robot on a free base at poses T."""
    return np.concatenate([quaternion(T[:, :3, :3]), T[:, :3, 3], q], axis=1)


def heavy_base(description: RobotDescription) -> RobotDescription:
    return edit.with_inertia(description, description.base, 3.0, (0.1, 0.2, -0.1), FLAT)


# --- lock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_locked_robot_is_the_robot_with_joints_that_do_not_move(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    robot = Robot(random_robot(rng, 9, kinds=all_kinds, mimic=True))
    q, qd, u = random_states(robot, rng, STATES)
    names = robot.joint_names
    held = [name for name in names[1:] if rng.random() < 0.5]
    q[:] = q[0]
    for name in held:
        qd[:, slices(robot)[name][1]] = u[:, slices(robot)[name][1]] = 0.0
    locked = robot.lock({name: q[0, slices(robot)[name][0]] for name in held})
    assert locked.joint_names == tuple(name for name in names if name not in held)
    assert set(locked.frame_names) == set(robot.frame_names)
    same_dynamics(locked, robot, (q, qd, u), evaluate, assert_close)
    for frame in robot.frame_names:
        expected = evaluate(robot, "forward_kinematics", q, frame=frame)
        actual = evaluate(locked, "forward_kinematics", q_of(locked, robot, q), frame=frame)
        assert_close(actual, expected, scale=1.0 + abs(expected).max())


def test_a_locked_driver_holds_its_followers() -> None:
    robot, held = arm(), arm().lock({"elbow": 0.8})
    assert held.joint_names == ("shoulder",)
    expected = robot.forward_kinematics([0.3, 0.8], "pad")
    np.testing.assert_allclose(held.forward_kinematics([0.3], "pad"), expected, atol=1e-15)
    grip = next(joint for joint in held.description.joints if joint.name == "grip")
    assert (grip.kind, grip.mimic) == ("fixed", None)
    assert grip.origin.translation == pytest.approx((0.5 * 0.8 + 0.1, 0.0, 0.3))


def test_a_joint_locked_at_a_right_angle_keeps_exact_zeros() -> None:
    held = arm().lock({"elbow": np.pi / 2})
    elbow = next(joint for joint in held.description.joints if joint.name == "elbow")
    assert elbow.origin.rotation == ((0, 0, 1), (0, 1, 0), (-1, 0, 0))


# --- payload, inertia, joints --------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_payload_is_a_wrench_of_its_weight_and_inertia(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    plain = Robot(random_robot(rng, 7, kinds=all_kinds, mimic=True))
    q, qd, u = random_states(plain, rng, STATES)
    link, com = str(rng.choice(plain.link_names)), rng.uniform(-0.3, 0.3, 3)
    at_com = np.eye(4)
    at_com[:3, 3] = com
    plain = plain.with_frame("centre", link, at_com)
    inertia = np.diag([0.02, 0.03, 0.04])
    loaded = plain.with_payload(link, 1.5, com, inertia)
    R = evaluate(plain, "forward_kinematics", q, frame="centre")[:, :3, :3]
    J = evaluate(plain, "jacobian", q, frame="centre")
    w = (J @ qd[:, :, None])[:, :3, 0]
    a = (J @ u[:, :, None])[:, :, 0] + evaluate(plain, "jacobian_dot_qd", q, qd, frame="centre")
    turned = R @ inertia @ R.mT
    moment = np.einsum("bij,bj->bi", turned, a[:, :3])
    moment += np.cross(w, np.einsum("bij,bj->bi", turned, w))
    needed = np.concatenate([moment, 1.5 * (a[:, 3:] - plain.gravity)], axis=1)
    expected = evaluate(plain, "inverse_dynamics", q, qd, u, f_ext={"centre": -needed})
    actual = evaluate(loaded, "inverse_dynamics", q, qd, u)
    assert_close(actual, expected, scale=abs(expected).max(axis=1) + abs(needed).max(axis=1))


def test_a_payload_is_a_link_and_a_frame() -> None:
    loaded = arm().with_payload("pad", 2.0, name="cup")
    assert "cup" in loaded.frame_names
    assert loaded.frame("cup").link == "finger"
    assert len(set(loaded.frame_names)) == len(loaded.frame_names)


def test_a_payload_counts_in_its_body_and_is_a_link_of_its_own() -> None:
    plain = arm()
    loaded = plain.with_payload("finger", 2.0, (0.0, 0.0, 0.1), (0.1, 0.2, 0.2), name="cup")
    row = plain.body_names.index("finger")
    added = loaded.inertial_parameters[row] - plain.inertial_parameters[row]
    assert added[0] == pytest.approx(loaded.mass - plain.mass) == 2.0
    np.testing.assert_allclose(added[1:4], [0.0, 0.0, 0.2], atol=1e-15)
    assert loaded.inertia("finger").mass == plain.inertia("finger").mass
    assert (loaded.inertia("cup").mass, loaded.inertia("cup").com) == (2.0, (0.0, 0.0, 0.1))


def test_inertias_change_one_number_at_a_time() -> None:
    robot = arm().with_inertia("upper", mass=5.0)
    upper = next(link for link in robot.description.links if link.name == "upper")
    assert upper.inertia is not None
    assert upper.inertia.mass == 5.0
    assert upper.inertia.com == (0.1, 0.0, 0.2)
    assert upper.inertia.tensor == (0.02, 0.0, 0.0, 0.03, 0.0, 0.04)
    full = robot.with_inertia("upper", inertia=[[1, 0.1, 0], [0.1, 1, 0], [0, 0, 1]])
    assert full.mass_matrix([0.0, 0.0])[0, 0] > robot.mass_matrix([0.0, 0.0])[0, 0] + 0.9


def test_joints_take_other_numbers() -> None:
    robot = arm().with_joint("shoulder", limits=(-2, 3), effort=50, armature=0.3, friction=0.1)
    assert robot.description.joints[0].limits == Limits(-2.0, 3.0, effort=50.0)
    assert robot.armature.tolist() == [0.3, 0.0]
    assert robot.damping.tolist() == [0.5, 0.0]
    assert robot.friction.tolist() == [0.1, 0.0]
    q = np.zeros(2)
    change = robot.mass_matrix(q) - arm().mass_matrix(q)
    np.testing.assert_allclose(change, np.diag([0.3, 0.0]), atol=1e-16)


def test_friction_is_used_when_asked_for() -> None:
    robot = arm()
    q, qd, none = np.zeros(2), np.array([2.0, 0.0]), np.zeros(2)
    lossy = robot.with_friction()
    change = lossy.inverse_dynamics(q, qd, none) - robot.inverse_dynamics(q, qd, none)
    np.testing.assert_allclose(change, [1.0, 0.0], atol=1e-15)
    assert lossy.with_friction(False) == robot
    assert lossy.damping.tolist() == robot.damping.tolist() == [0.5, 0.0]


# --- joining and taking apart --------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_joined_robots_have_the_energy_of_one_and_of_the_other_carried(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    robot = Robot(random_robot(rng, 5, kinds=all_kinds, mimic=True))
    other = Robot(heavy_base(random_robot(rng, 4, kinds=all_kinds, mimic=True)))
    link, place = str(rng.choice(robot.link_names)), pose(rng)
    both = robot.with_attached(other, link, place, prefix="o_")
    q, qd, _ = random_states(both, rng, STATES)
    q1, q2 = q_of(robot, both, q), q_of(other, both, q, "o_")
    v1, v2 = qd[:, columns(robot, both, 1)], qd[:, columns(other, both, 1, "o_")]

    mount = evaluate(both, "forward_kinematics", q, frame="o_base")
    on = evaluate(robot, "forward_kinematics", q1, frame=link) @ place
    assert_close(mount, on, scale=10.0)
    v0 = (evaluate(both, "jacobian", q, frame="o_base", axes="body") @ qd[:, :, None])[:, :, 0]
    carried = other.with_free_base("fly")
    T = evaluate(robot, "kinetic_energy", q1, v1) + evaluate(
        carried, "kinetic_energy", flying(other, mount, q2), np.concatenate([v0, v2], axis=1)
    )
    assert_close(evaluate(both, "kinetic_energy", q, qd), T)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sub_chain_is_the_robot_with_the_rest_held_and_weightless(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    whole = random_robot(rng, 10, kinds=all_kinds)
    tip = max((link.name for link in whole.links), key=lambda name: len(way_to(whole, name)))
    way = way_to(whole, tip)
    base = way[len(way) // 3].parent if way[len(way) // 3].kind != "fixed" else way[0].parent
    chain = Robot(edit.sub_chain(whole, base, tip))
    kept = {link.name for link in chain.description.links}
    links = [x if x.name in kept - {base} else replace(x, inertia=None) for x in whole.links]
    full = Robot(whole)
    rest = {
        name: full.neutral()[own]
        for name, (own, _) in slices(full).items()
        if name not in chain.joint_names
    }
    held = Robot(edit.lock(replace(whole, links=tuple(links)), rest))
    states = random_states(held, rng, STATES)
    same_dynamics(chain, held, states, evaluate, assert_close)
    start = evaluate(held, "forward_kinematics", states[0], frame=base)
    for frame in chain.frame_names:
        expected = evaluate(held, "forward_kinematics", states[0], frame=frame)
        actual = start @ evaluate(chain, "forward_kinematics", states[0], frame=frame)
        assert_close(actual, expected, scale=10.0)


def test_a_sub_chain_keeps_what_is_fixed_to_it_and_drops_branches() -> None:
    robot = arm().with_payload("upper", 0.5, name="box").with_frame("eye", "fore")
    chain = robot.sub_chain("base", "upper")
    assert [link.name for link in chain.description.links] == ["base", "upper", "box"]
    assert chain.joint_names == ("shoulder",)
    assert "eye" not in chain.frame_names


# --- another base --------------------------------------------------------------------------


def rebased(rng: np.random.Generator, random_robot: Any, kinds: Any) -> tuple[Any, Any]:
    """A robot, and the same held by another link, the deepest that joints allow."""
    robot = heavy_base(random_robot(rng, 9, kinds=kinds, mimic=True, chain=rng.random() < 0.3))
    able = [
        link.name
        for link in robot.links
        if all(joint.kind in edit.REVERSIBLE for joint in way_to(robot, link.name))
    ]
    new = max(able, key=lambda name: len(way_to(robot, name)))
    return robot, edit.change_base(robot, new)


@pytest.mark.parametrize("seed", range(20))
def test_changing_the_base_changes_no_relative_pose(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    old, new = map(Robot, rebased(rng, random_robot, all_kinds))
    q, _, _ = random_states(old, rng, STATES)
    start = evaluate(old, "forward_kinematics", q, frame=new.description.base)
    for link in old.description.links:
        expected = evaluate(old, "forward_kinematics", q, frame=link.name)
        own = evaluate(new, "forward_kinematics", q_of(new, old, q), frame=link.name)
        assert_close(start @ own, expected, scale=10.0)


@pytest.mark.parametrize("seed", range(20))
def test_in_free_flight_it_does_not_matter_which_link_is_the_base(
    seed: int, random_robot: Any, all_kinds: Any, random_states: Any, evaluate: Any,
    assert_close: Any,
) -> None:  # fmt: skip
    """``M_old = Aᵀ M_new A`` for the map A of rates; the same potential: the same Lagrangian."""
    rng = np.random.default_rng(seed)
    held = rebased(rng, random_robot, all_kinds)
    old, new = (Robot(edit.with_free_base(x, "fly")).with_gravity((1.0, 2.0, -9.0)) for x in held)
    q, _, _ = random_states(old, rng, STATES)
    base = held[1].base
    T = evaluate(old, "forward_kinematics", q, frame=base)
    q_new = q_of(new, old, q)
    q_new[:, :7] = flying(new, T, q_new[:, 7:])[:, :7]
    A = np.zeros((STATES, new.nv, old.nv))
    A[:, range(new.nv), columns(new, old, 1)] = 1.0
    A[:, :6] = evaluate(old, "jacobian", q, frame=base, axes="body")
    expected = evaluate(old, "mass_matrix", q)
    M = evaluate(new, "mass_matrix", q_new)
    assert_close(A.mT @ M @ A, expected, scale=abs(M).max() * abs(A).max() ** 2)
    V = evaluate(old, "potential_energy", q)
    assert_close(evaluate(new, "potential_energy", q_new), V, scale=abs(V) + 1000.0)


def test_going_back_to_the_old_base_gives_the_old_dynamics(
    random_robot: Any, random_states: Any, evaluate: Any, assert_close: Any
) -> None:
    rng = np.random.default_rng(5)
    robot = Robot(heavy_base(random_robot(rng, 8, mimic=True)))
    tip = list(outward(robot.description))[-1].child
    back = robot.change_base(tip).change_base("base")
    assert_close(back.gravity[None], robot.gravity[None])
    same_dynamics(back, robot, random_states(robot, rng, STATES), evaluate, assert_close)


def test_a_turned_joint_keeps_limits_rotor_and_followers() -> None:
    robot = arm().with_inertia("base", 4.0, inertia=FLAT).with_joint("shoulder", armature=0.2)
    turned = robot.change_base("fore")
    assert turned.joint_names == ("elbow", "shoulder")
    assert turned.position_limits[:, 1].tolist() == [-1.0, 2.0]
    assert turned.armature.tolist() == [0.0, 0.2]
    assert turned.link_names == ("upper", "base", "finger")


def test_the_same_base_is_the_same_robot() -> None:
    assert arm().change_base("base") == arm()


# --- names and frames ----------------------------------------------------------------------


def test_renaming_reaches_every_mention() -> None:
    robot = arm().with_frame("tcp", "pad")
    names = {"elbow": "e", "fore": "f", "pad": "p", "tcp": "tool", "base": "root"}
    renamed = robot.rename(names, name="arm2")
    assert renamed.name == "arm2"
    assert renamed.joint_names == ("shoulder", "e")
    assert set(renamed.frame_names) == {names.get(name, name) for name in robot.frame_names}
    assert renamed.description.base == "root"
    back = {new: old for old, new in names.items()}
    assert renamed.rename(back, name="arm") == robot
    q, qd = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    assert np.array_equal(renamed.bias(q, qd), robot.bias(q, qd))


def test_names_may_be_swapped() -> None:
    swapped = arm().rename({"upper": "fore", "fore": "upper"})
    assert swapped.link_names == ("fore", "upper", "finger")


def test_frames_are_of_links_joints_and_users() -> None:
    T = np.eye(4)
    T[:3, 3] = 0.1, 0.2, 0.3
    robot = arm().with_frame("tcp", "pad", T)
    names = ["base", "upper", "fore", "finger", "pad", "shoulder", "elbow", "grip", "glue", "tcp"]
    assert list(robot.frame_names) == names
    q = [0.5, -0.4]
    expected = robot.forward_kinematics(q, "pad") @ T
    np.testing.assert_allclose(robot.forward_kinematics(q, "tcp"), expected, atol=1e-15)


def test_a_pose_of_seven_digits_is_made_a_rotation() -> None:
    c, s = np.float32(np.cos(0.3)), np.float32(np.sin(0.3))
    T = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
    frame = arm().with_frame("tcp", "pad", T).description.frames[0]
    R = np.array(frame.origin.rotation)
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-15)


# --- content -------------------------------------------------------------------------------


def test_robots_compare_hash_and_pickle_by_content(tmp_path: Any) -> None:
    robot = arm()
    paths = [tmp_path / "a" / "arm.urdf", tmp_path / "b" / "other.urdf"]
    for path in paths:
        path.parent.mkdir()
        robot.save(path)
    one, two = map(lw.load, paths)
    assert one == two == robot
    assert hash(one) == hash(two) == hash(robot)
    assert pickle.loads(pickle.dumps(robot)) == robot
    assert len({one, two, robot, robot.with_inertia("upper", mass=2.0)}) == 1
    others = {
        robot.with_inertia("upper", mass=2.5), robot.with_joint("elbow", limits=(0, 1)),
        robot.with_gravity((0, 0, -1)), robot.rename(name="x"), robot.with_friction(),
        robot.with_frame("tcp", "pad"), robot.lock({"shoulder": 0.0}),
    }  # fmt: skip
    assert len(others) == 7
    assert robot not in others


def test_editing_leaves_the_robot_as_it_was() -> None:
    robot = arm()
    robot.lock({"elbow": 1.0})
    robot.with_joint("shoulder", damping=3.0)
    robot.change_base("base")
    assert robot == arm()


# --- refusals ------------------------------------------------------------------------------

BAD_POSE = np.diag([1.0, 1.0, -1.0, 1.0])
MESSAGES = {
    "unknown joint": (
        lambda r: r.lock({"elbo": 1.0}),
        "'elbo': robot 'arm' has no such joint; did you mean 'elbow'?",
    ),
    "no joint like it": (
        lambda r: r.lock({"x": 1.0}),
        "it has 'shoulder', 'elbow', 'grip', 'glue'",
    ),
    "follower": (
        lambda r: r.lock({"grip": 1.0}),
        "joint 'grip' follows 'elbow'; expected 'elbow' to be locked",
    ),
    "fixed": (lambda r: r.lock({"glue": 1.0}), "joint 'glue' is fixed; expected one that moves"),
    "value": (
        lambda r: r.lock({"elbow": [1, 2]}),
        "value of joint 'elbow' is [1, 2]; expected a finite number",
    ),
    "nan": (
        lambda r: r.lock({"elbow": np.nan}),
        "value of joint 'elbow' is nan; expected a finite number",
    ),
    "quaternion": (
        lambda r: flier(r).lock({"base": [0.0] * 7}),
        "expected it to start with a unit quaternion",
    ),
    "unknown link": (
        lambda r: r.with_payload("uper", 1.0),
        "link 'uper': robot 'arm' has no such link; did you mean 'upper'?",
    ),
    "negative mass": (
        lambda r: r.with_payload("pad", -1.0),
        "payload 'payload': mass is -1; expected zero or more",
    ),
    "inertia": (
        lambda r: r.with_payload("pad", 1.0, inertia=[1, 2]),
        "inertia is [1, 2]; expected 3 finite numbers or 6 finite numbers",
    ),
    "asymmetric": (
        lambda r: r.with_inertia("pad", 1, inertia=np.arange(9.0).reshape(3, 3)),
        "expected it to be symmetric",
    ),
    "name taken": (
        lambda r: r.with_payload("pad", 1.0, name="fore"),
        "payload 'fore': robot 'arm' has a link, joint or frame of that name",
    ),
    "pose": (
        lambda r: r.with_frame("tcp", "pad", BAD_POSE),
        "expected a rotation (orthonormal, right-handed)",
    ),
    "pose shape": (
        lambda r: r.with_frame("tcp", "pad", np.eye(3)),
        "expected a 4 by 4 array of finite numbers",
    ),
    "no name": (lambda r: r.with_frame("", "pad"), "frame: name is ''; expected some text"),
    "clash": (lambda r: r.with_attached(r, "pad"), "both have 'base', 'upper', 'fore'"),
    "clash hint": (lambda r: r.with_attached(r, "pad"), "(prefix= goes before the other's)"),
    "not further out": (
        lambda r: r.sub_chain("fore", "upper"),
        "'upper' is not further out than 'fore'; expected a base on the way to 'upper': 'base'",
    ),
    "no driver": (
        lambda r: r.sub_chain("fore", "finger"),
        "joint 'grip' follows 'elbow', which is not on the chain",
    ),
    "irreversible": (
        lambda r: flier(r).change_base("upper"),
        "joint 'base' on the way to 'upper' is free; expected only fixed, revolute",
    ),
    "unknown base": (lambda r: r.change_base("foree"), "did you mean 'fore'?"),
    "limits": (
        lambda r: r.with_joint("elbow", limits=(2, 1)),
        "joint 'elbow': limits are (2, 1); expected lower <= upper",
    ),
    "damping": (
        lambda r: r.with_joint("elbow", damping=-1),
        "joint 'elbow': damping is -1; expected zero or more",
    ),
    "fixed joint": (lambda r: r.with_joint("glue", damping=1), "joint 'glue' is fixed"),
    "rename unknown": (
        lambda r: r.rename({"elbw": "e"}),
        "'elbw': robot 'arm' has no such link, joint or frame; did you mean 'elbow'?",
    ),
    "rename taken": (lambda r: r.rename({"elbow": "fore"}), "two things would be called 'fore'"),
    "rename twice": (
        lambda r: r.rename({"elbow": "e", "fore": "e"}),
        "two things would be called 'e'",
    ),
    "gravity": (lambda r: r.with_gravity((0, 0)), "gravity is (0, 0); expected 3 finite numbers"),
    "too large": (lambda r: r.with_payload("pad", 1e31), "expected at most 1e+30"),
    "tree": (
        lambda r: lw.Robot.from_tree(r.tree).lock({"elbow": 0}),
        "made from a tree (chain, from_tree) and cannot be edited or saved",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_what_cannot_be_is_refused_with_its_name_and_value(case: str) -> None:
    act, message = MESSAGES[case]
    with pytest.raises(ValueError) as caught:
        act(arm())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda r: r.lock("elbow"), "lock: configuration is 'elbow'; expected a mapping"),
        (lambda r: r.rename("a"), "rename: names is 'a'; expected a mapping {old: new}"),
        (lambda r: r.with_attached("pad", r), "with_attached: other is 'pad'; expected a robot"),
        (lambda r: r.with_attached(r, "pad", prefix=3), "prefix is 3; expected some text"),
        (lambda r: r.with_free_base(3), "with_free_base: joint is 3; expected some text"),
        (lambda r: r.with_friction("no"), "friction is 'no'; expected True or False"),
        (lambda r: r.with_gravity(np.ma.array([1, 2, 3], mask=[0, 1, 0])), "3 finite numbers"),
        (lambda r: r.lock({"elbow": True}), "is True; expected a finite number or one in a list"),
        (lambda r: lw.Robot("arm.urdf"), "description is 'arm.urdf'; expected a RobotDescription"),
        (lambda r: lw.load("iiwa14", strict="no"), "strict 'no': expected True or False"),
        (lambda r: lw.load("a\nb"), "a\\nb: no such file; bundled robots are iiwa14, puma560"),
        (lambda r: r.random_q(size=1.5), "random_q: size is 1.5; expected a number of states, or"),
        (lambda r: r.compute([], [0.0]), "function is a list; expected the name of a function"),
        (lambda r: r.operation_count("bias", []), "method []: bias expects one of 'auto', 'rnea'"),
        (lambda r: r.operation_count("bias", frame="pad"), "frame is 'pad'; this function takes"),
        (lambda r: r.method_for("bias", dtype="f4"), "dtype 'f4': expected 'float64' or 'float32'"),
        (lambda r: r.kic([0.0, 0.0], "pad", out=3), "kic: out is a int; expected two arrays"),
    ],
)
def test_arguments_of_another_kind_are_refused(act: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        act(arm())


@pytest.mark.parametrize("values", [(), ([0.0],), ([0.0] * 3, [0.0] * 2), ([0.0] * 2,) * 3])
def test_equations_take_as_many_numbers_as_there_are(values: tuple[list[float], ...]) -> None:
    lengths = [len(x) for x in values]
    message = f"evaluate: bias was given values of length {lengths}; expected q (2), qd (2)"
    with pytest.raises(ValueError, match=re.escape(message)):
        arm().evaluate("bias", *values)


def test_numbers_of_numpy_are_numbers() -> None:
    assert arm().random_q(seed=0, size=np.int64(3)).shape == (3, 2)  # type: ignore[arg-type]
    limited = arm().with_joint("elbow", effort=np.float32(np.inf))
    assert limited.description == arm().with_joint("elbow", effort=np.inf).description


class Mine(lw.Robot):
    """A robot with something of its own."""

    __slots__ = ("__dict__", "mark")

    def __init__(self, robot: lw.Robot, note: str) -> None:
        super().__init__(robot.description)
        self.note = self.mark = note


def test_an_edited_robot_keeps_its_class_and_attributes() -> None:
    mine = Mine(arm(), "kept")
    for act in (
        lambda r: r.lock({"elbow": 0.0}),
        lambda r: r.with_friction(),
        lambda r: r.with_codegen("rolled"),
    ):
        edited = act(mine)
        assert edited == act(arm())
        for each in (edited, copy.copy(edited), pickle.loads(pickle.dumps(edited))):
            assert type(each) is Mine and each.note == each.mark == "kept"


def test_an_edited_robot_keeps_its_loops() -> None:
    assert arm().with_codegen("rolled").lock({"elbow": 0.0}).tree.loops is True
    assert arm().lock({"elbow": 0.0}).tree.loops is None


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(TypeError, match="dampin"):
        arm().with_joint("elbow", dampin=1.0)


def test_a_body_that_an_edit_made_impossible_is_blamed_on_the_edit() -> None:
    robot = lw.load(
        "<robot name='r'><link name='base'/><link name='arm'><inertial><mass value='1'/>"
        "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        "<joint name='j' type='continuous'><parent link='base'/><child link='arm'/></joint></robot>"
    )
    with pytest.raises(lw.RobotFileError, match='<link name="arm"> changed by with_inertia: the '):
        robot.with_inertia("arm", inertia=(1.0, 1.0, 5.0))


def test_a_frame_or_joint_in_place_of_a_link_names_its_link() -> None:
    robot = lw.load("iiwa14").with_frame("tool", "link7", np.eye(4))
    with pytest.raises(ValueError, match=r"'tool' is a frame, expected its link 'link7'"):
        robot.with_payload("tool", 1.0)
    with pytest.raises(ValueError, match=r"'joint3' is a joint, expected its link 'link3'"):
        robot.inertia("joint3")


@pytest.mark.parametrize("inertia", [(-1.0, 0.1, 0.1), (0.1, 0.0, 0.0, 0.1, 0.5, 0.1)])
def test_edits_refuse_bodies_with_a_negative_moment(inertia: tuple[float, ...]) -> None:
    """Bundled robots have bodies as published, which are not judged; what users add is."""
    robot = lw.load("iiwa14")
    for change in (
        lambda: robot.with_payload("link7", 1.0, inertia=inertia),
        lambda: robot.with_inertia("link7", inertia=inertia),
    ):
        with pytest.raises(ValueError, match=r"a principal moment -[\d.]+; expected none below 0"):
            change()
    with pytest.raises(ValueError, match=r"below 0 \(the order of six numbers is xx, xy, xz, yy"):
        robot.with_payload("link7", 1.0, inertia=(0.1, 0.1, 0.1, 0, 0, 0))  # as if xx, yy, zz, ...
    with pytest.raises(ValueError, match=r"moments 1, 1 and 5; expected each at most the sum of"):
        robot.with_payload("link7", 1.0, inertia=(1, 5, 1))
    robot.with_payload("link7", 1.0, inertia=(0.083, 0.083, 0.167))  # a plate, in three digits


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_chain_pickles(protocol: int) -> None:
    chain = lw.chain(3, "random")
    again = pickle.loads(pickle.dumps(chain, protocol))
    assert again == chain and again.link_names == chain.link_names


@pytest.mark.parametrize(
    ("options", "message"),
    [({"joints": 3}, "chain: joint '3'; expected one of"), ({"name": 3}, "name is 3; expected")],
)
def test_a_chain_names_what_is_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lw.chain(3, **options)
