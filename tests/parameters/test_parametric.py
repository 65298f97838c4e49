"""Robots whose constants are arguments: one compiled function for every payload and every guess."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linkwise as lw

ALL = ("inertia", "gravity", "payload", "rotor", "friction", "placement")
EPS = float(np.finfo(float).eps)


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("iiwa14").with_friction()


def ten(mass: float, com: Any, about_com: Any) -> np.ndarray:
    """A body as `inertial_parameters` has it, from mass, centre and inertia about the centre."""
    c = np.array(com, float)
    inertia = np.diag(about_com) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *(mass * c), *inertia[np.tril_indices(3)]])


def states(robot: lw.Robot, rng: np.random.Generator, size: Any = 6) -> tuple[np.ndarray, ...]:
    shape = (*np.atleast_1d(size), robot.nv)
    return robot.random_q(rng, size=size), rng.normal(size=shape), rng.normal(size=shape)


def close(found: Any, expected: Any, rounding: float = 1e3) -> bool:
    """To rounding of the largest number, times how far solving a mass matrix carries it."""
    found, expected = np.asarray(found), np.asarray(expected)
    return bool(np.abs(found - expected).max() <= rounding * EPS * np.abs(expected).max())


def test_what_is_not_given_is_the_robots_own(arm: lw.Robot, rng: Any) -> None:
    q, qd, tau = states(arm, rng)
    free = arm.parametric(*ALL)
    assert free.parameters == ALL
    assert close(free.inverse_dynamics(q, qd, tau), arm.inverse_dynamics(q, qd, tau))
    assert close(
        free.forward_dynamics(q, qd, tau, method="crba"),
        arm.forward_dynamics(q, qd, tau, method="crba"), 1e5,
    )  # fmt: skip
    assert close(free.forward_kinematics(q, "link7"), arm.forward_kinematics(q, "link7"))
    assert free.parametric().parameters == ()


def test_bodies_of_another_robot(arm: lw.Robot, rng: Any) -> None:
    q, qd, qdd = states(arm, rng)
    other = arm.with_payload("link7", 3.0, (0.1, -0.2, 0.3), (0.1, 0.12, 0.15))
    other = other.with_inertia("link3", 7.0, (0.0, 0.1, 0.05), (0.3, 0.2, 0.25))
    free = arm.parametric("inertia", "gravity")
    found = free.inverse_dynamics(
        q, qd, qdd, inertia=other.inertial_parameters, gravity=[1.0, -2.0, 3.0]
    )
    expected = other.with_gravity((1.0, -2.0, 3.0)).inverse_dynamics(q, qd, qdd)
    assert close(found, expected)


def test_every_state_has_its_own_payload(arm: lw.Robot, rng: Any) -> None:
    q, qd, tau = states(arm, rng)
    free = arm.parametric(payload="link7")
    masses = np.linspace(0.5, 3.0, len(q))
    loads = np.array([ten(m, (0.0, 0.1, 0.2), (0.01, 0.02, 0.03)) for m in masses])
    found = free.forward_dynamics(q, qd, tau, payload=loads)
    for k, m in enumerate(masses):
        one = arm.with_payload("link7", m, (0.0, 0.1, 0.2), (0.01, 0.02, 0.03))
        assert close(found[k], one.forward_dynamics(q[k], qd[k], tau[k]), 1e5)


def test_a_payload_is_fixed_to_any_frame(arm: lw.Robot, rng: Any) -> None:
    pose = np.eye(4)
    pose[:3] = [[0.0, 0.0, 1.0, 0.1], [0.6, 0.8, 0.0, -0.2], [-0.8, 0.6, 0.0, 0.3]]
    tool = arm.with_frame("tool", "link5", pose)
    q, qd, qdd = states(arm, rng)
    found = tool.parametric(payload="tool").inverse_dynamics(
        q, qd, qdd, payload=ten(2.0, (0.1, 0.0, 0.2), (0.01, 0.02, 0.015))
    )
    R, p = pose[:3, :3], pose[:3, 3]
    inertia = R @ np.diag([0.01, 0.02, 0.015]) @ R.T
    held = arm.with_payload("link5", 2.0, R @ [0.1, 0.0, 0.2] + p, inertia)
    assert close(found, held.inverse_dynamics(q, qd, qdd))


def test_rotors_and_friction(arm: lw.Robot, rng: Any) -> None:
    q, qd, tau = states(arm, rng)
    rotor, viscous, dry = rng.uniform(0.1, 1.0, (3, arm.nv))
    other = arm
    for k, name in enumerate(arm.joint_names):
        other = other.with_joint(name, armature=rotor[k], damping=viscous[k], friction=dry[k])
    free = arm.parametric("rotor", "friction")
    given = {"rotor": rotor, "friction": np.stack([viscous, dry], axis=-1)}
    assert close(free.inverse_dynamics(q, qd, tau, **given), other.inverse_dynamics(q, qd, tau))
    for method in ("crba", "aba", "fd3"):
        found = free.forward_dynamics(q, qd, tau, method=method, **given)
        assert close(found, other.forward_dynamics(q, qd, tau), 1e5)
    with pytest.raises(ValueError, match="method 'schur': it divides by the inertia of each rotor"):
        free.forward_dynamics(q, qd, tau, method="schur", **given)


def test_displaced_joints(rng: Any) -> None:
    """The same displacements in the file's own origins, on axes that are no link frame's z."""
    text = """<robot name="two"><link name="base"/><link name="a"/><link name="b"/>
      <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
        <origin xyz="{}" rpy="{}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
      <joint name="k" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 2"/>
        <origin xyz="{}" rpy="{}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
    </robot>"""
    places = [np.array([0.1, 0.2, 0.3]), np.array([0.3, -0.2, 0.5])]
    turns = [np.array([0.3, 0.2, -0.4]), np.array([0.1, 0.7, 0.2])]
    by = rng.normal(scale=0.1, size=(2, 6))
    words, moved = [], []
    for p, rpy, d in zip(places, turns, by, strict=True):
        words += [" ".join(map(repr, map(float, x))) for x in (p, rpy)]
        T = lw.se3.exp([*rpy_vector(rpy), 0, 0, 0])
        T[:3, 3] = p
        step = lw.se3.exp([*d[:3], 0, 0, 0])
        step[:3, 3] = d[3:]
        T = T @ step
        moved += [" ".join(map(repr, map(float, x))) for x in (T[:3, 3], rpy_of(T[:3, :3]))]
    robot, other = (lw.load(text.format(*x)) for x in (words, moved))
    q = robot.random_q(rng, size=5)
    found = robot.parametric("placement").forward_kinematics(q, "b", placement=by)
    assert close(found, other.forward_kinematics(q, "b"))
    found = robot.parametric("placement").jacobian(q, "b", placement=by)
    assert close(found, other.jacobian(q, "b"))


def rpy_matrix(rpy: Any) -> np.ndarray:
    x, y, z = (lw.se3.exp([*axis, 0, 0, 0])[:3, :3] for axis in np.diag(rpy))
    return z @ y @ x


def rpy_vector(rpy: Any) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = rpy_matrix(rpy)
    return lw.se3.log(T)[:3]


def rpy_of(R: np.ndarray) -> np.ndarray:
    return np.array(
        [np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])]
    )


@pytest.mark.parametrize("name", ALL)
def test_derivatives_by_parameters(random_robot: Any, rng: Any, name: str) -> None:
    """Those of torques, beside differences; by inertia they are the regressor."""
    robot = lw.Robot(random_robot(np.random.default_rng(5), 3, kinds=("revolute", "prismatic")))
    free = robot.parametric(payload=robot.link_names[-1]) if name == "payload" else (
        robot.parametric(name)
    )  # fmt: skip
    q, qd, qdd = states(robot, rng, 4)
    own = free._calls.parameters._usual[np.dtype(float)][name]
    own = own.reshape(free._calls.parameters._shapes[name])
    found = free.derivative("inverse_dynamics", wrt=name)(q, qd, qdd)
    assert found.shape == (4, robot.nv, *own.shape)
    along, h = rng.normal(size=own.shape), 1e-5
    ends = [free.inverse_dynamics(q, qd, qdd, **{name: own + s * h * along}) for s in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * h)
    # the square of the step, and rounding over the step
    error = np.abs(np.tensordot(found, along, own.ndim) - expected).max()
    assert error < (h**2 + 1e3 * EPS / h) * max(np.abs(expected).max(), np.abs(ends).max())
    if name == "inertia":
        Y = robot.regressor(q, qd, qdd).reshape(found.shape)
        assert np.abs(found - Y).max() <= 1e3 * EPS * np.abs(Y).max()


def test_second_derivatives_by_placements_that_are_zero(random_robot: Any, rng: Any) -> None:
    """Near no turn a series stands for sines: its second derivative beside that of turns further
    off, where there is none.
    """
    robot = lw.Robot(random_robot(np.random.default_rng(5), 1, kinds=("revolute",)))
    free = robot.parametric("placement")
    first, second = (free.derivative("potential_energy", wrt="placement", order=k) for k in (1, 2))
    q, along, h = robot.random_q(rng), rng.normal(size=(1, 6)), 1e-4
    for at in (np.zeros((1, 6)), np.full((1, 6), 0.0057), np.full((1, 6), 0.3)):
        ends = [first(q, placement=at + s * h * along) for s in (1, -1)]
        found = np.tensordot(second(q, placement=at), along, 2)
        size = np.abs(ends).max()
        assert np.abs(found - (ends[0] - ends[1]) / (2 * h)).max() < 10 * size * (h**2 + EPS / h)


def test_every_kind_of_joint(random_robot: Any, rng: Any) -> None:
    """Trees with branches, followers, free bases and joints of several columns."""
    for seed in range(4):
        drawn = random_robot(np.random.default_rng(seed), 6, mimic=seed % 2 == 0)
        robot = lw.Robot(drawn)
        robot = robot.with_free_base() if seed == 3 else robot
        q, qd, qdd = states(robot, rng, 4)
        scaled = robot.inertial_parameters * 1.5
        free = robot.parametric("inertia", "rotor", "friction")
        assert close(free.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd))
        bare = free.mass_matrix(q, inertia=scaled, rotor=np.zeros(robot.nv))
        expected = free.mass_matrix(q, rotor=np.zeros(robot.nv))
        if not robot.tree.coupled:  # followers keep the rotors that they have
            assert close(bare, 1.5 * expected)


def test_arrays_broadcast_and_keep_their_type(arm: lw.Robot, rng: Any) -> None:
    free = arm.parametric("inertia", "gravity")
    q, qd, tau = states(arm, rng, (3, 1))
    guesses = arm.inertial_parameters * rng.uniform(0.9, 1.1, (4, 1, 1))
    found = free.inverse_dynamics(q, qd, tau, inertia=guesses)
    assert found.shape == (3, 4, arm.nv)
    one = free.inverse_dynamics(q[1, 0], qd[1, 0], tau[1, 0], inertia=guesses[2])
    assert np.array_equal(found[1, 2], one)  # the same bits alone
    narrow = [x.astype(np.float32) for x in (q, qd, tau)]
    assert free.inverse_dynamics(*narrow).dtype == np.float32
    assert free.inverse_dynamics(*narrow, gravity=np.zeros(3, np.float32)).dtype == np.float32
    assert free.inverse_dynamics(*narrow, gravity=np.zeros(3)).dtype == np.float64
    out = np.empty((3, 4, arm.nv))
    assert free.inverse_dynamics(q, qd, tau, inertia=guesses, out=out, threads=2) is out
    assert np.array_equal(out, found)


def test_bodies_that_cannot_exist_are_told(arm: lw.Robot, rng: Any) -> None:
    q, qd, qdd = states(arm, rng, 8)
    free = arm.parametric("inertia")
    own = arm.inertial_parameters
    for k in (3, 6):  # as published, these two cannot exist
        own[k] = ten(own[k, 0], (0.0, 0.02, 0.01), (0.02, 0.03, 0.025))
    inertia = np.tile(own, (8, 1, 1))
    inertia[1, 2, 0] = -1.0  # a mass below zero
    inertia[2, 3, 4] = 10.0  # Ixx more than Iyy + Izz
    inertia[3, 0, 1] = 9.0  # a centre of mass too far out for so little inertia
    inertia[4, 6, 5] = 1.0  # a product of inertia too large
    inertia[5, 1] = 0.0  # nothing: can exist
    inertia[6, 1] = ten(2.0, (0.1, 0.2, 0.3), (0.0, 0.0, 0.0))  # a point: can exist
    inertia[7, 4, 9] = np.nan
    found, status = free.inverse_dynamics(q, qd, qdd, inertia=inertia, status=True)
    bad, lost = lw.Status.NOT_RIGID, lw.Status.NOT_FINITE
    assert status.tolist() == [0, bad, bad, bad, bad, 0, 0, lost]
    assert np.isfinite(found[:7]).all() and np.isnan(found[7]).all()


def test_a_robot_in_everything_else(arm: lw.Robot) -> None:
    free = arm.parametric("inertia", payload="link7")
    assert free != arm and free == arm.parametric("inertia", payload="link7")
    again = pickle.loads(pickle.dumps(free))
    assert again == free and again.parameters == ("inertia", "payload")
    assert free.with_gravity((0, 0, -1.6)).parameters == ("inertia", "payload")
    q = free.neutral()
    traj = lw.simulate(free, q, np.zeros(7), duration=0.01)
    assert np.allclose(traj.q, lw.simulate(arm, q, np.zeros(7), duration=0.01).q, atol=1e-12)
    pose = arm.forward_kinematics(q + 0.1, "link7")
    assert np.allclose(
        free.inverse_kinematics(pose, "link7"), arm.inverse_kinematics(pose, "link7")
    )
    assert free.operation_count("bias").total > arm.operation_count("bias").total
    assert close(free.evaluate("bias", q, q), arm.evaluate("bias", q, q))


def test_bodies_are_named(arm: lw.Robot) -> None:
    assert arm.body_names == arm.link_names
    assert arm.inertial_parameters.shape == (7, 10)
    assert np.isclose(arm.inertial_parameters[:, 0].sum(), arm.mass)


def test_messages(arm: lw.Robot) -> None:
    q = np.zeros(7)
    with pytest.raises(ValueError, match=r"parameter 'mass'; expected one of 'inertia', 'gravity'"):
        arm.parametric("mass")
    with pytest.raises(ValueError, match="parameter 'gravity' is named twice; expected once"):
        arm.parametric("gravity", "gravity")
    with pytest.raises(ValueError, match="frame 'hand'"):
        arm.parametric(payload="hand")
    base = next(name for name in arm.frame_names if arm.frame(name).link == "base")
    with pytest.raises(ValueError, match="is fixed to the base; expected a frame that moves"):
        arm.parametric(payload=base)
    with pytest.raises(ValueError, match=r"no chain of moving links; expected payload='name"):
        arm.with_attached(arm, base, prefix="b_").parametric("payload")
    with pytest.raises(
        ValueError, match=r"has 1,001 moving links; expected at most 1,000: functions"
    ):
        lw.chain(1001).parametric("gravity")
    assert lw.chain(1001).parametric().parameters == ()
    free = arm.parametric("inertia", "gravity")
    with pytest.raises(ValueError, match=r"inertia has shape \(7, 9\); expected \(\.\.\., 7, 10\)"):
        free.bias(q, q, inertia=np.zeros((7, 9)))
    with pytest.raises(ValueError, match=r"gravity has shape \(2,\); expected \(\.\.\., 3\)"):
        free.bias(q, q, gravity=np.zeros(2))
    with pytest.raises(TypeError, match=r"inertia cannot be read as an array .* \(\.\.\., 7, 10\)"):
        free.bias(q, q, inertia=[[1.0], [2.0, 3.0]])
    with pytest.raises(
        TypeError, match=r"keyword argument 'gravity'; robot.parametric\('gravity'\)"
    ):
        arm.bias(q, q, gravity=np.zeros(3))
    with pytest.raises(ValueError, match=r"leading axes do not broadcast: .*inertia"):
        free.bias(np.zeros((3, 7)), q, inertia=np.zeros((2, 7, 10)))


def test_a_payload_is_carried_whichever_parameter_is_named_first():
    arm, q = lw.load("puma560", strict=False), np.full(6, 0.3)
    body = [2.0, 0.2, 0.0, 0.1, 0.005, 0.0, 0.025, -0.01, 0.0, 0.02]
    expected = arm.with_payload("link6", 2.0, (0.1, 0.0, 0.05)).gravity_torque(q)
    for names in (("payload", "inertia"), ("inertia", "payload")):
        found = arm.parametric(*names, payload="link6").gravity_torque(q, payload=body)
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12), names


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
@pytest.mark.parametrize("called", ["hull", "base"])
def test_parameters_are_in_the_joint_frame_if_a_link_has_the_joints_name(
    called: str, codegen: str, rng: Any
) -> None:
    """A fixed link called like the free joint of the base ("base") has a frame of its own."""
    b = lw.Builder("rover").link("foot", mass=2.0, com=(0.1, 0.2, 0.3), inertia=(1.0, 1.1, 1.2))
    b = b.link(called, mass=3.0, com=(0.0, 0.1, 0.0), inertia=(0.5, 0.6, 0.7))
    b = b.link("arm", mass=1.0, com=(0.0, 0.0, 0.4), inertia=(0.1, 0.1, 0.02))
    b = b.joint(
        "mount", "fixed", parent="foot", child=called, xyz=(0.3, -0.2, 0.5), rpy=(0.4, -0.3, 0.9)
    )
    b = b.joint(
        "shoulder",
        "revolute",
        parent=called,
        child="arm",
        axis=(0.0, 1.0, 0.0),
        xyz=(0.0, 0.0, 0.1),
    )
    robot = b.build(base="free").with_codegen(codegen)
    q, qd, qdd = states(robot, rng, ())
    pose, body = robot.frame(called).pose, robot.inertia(called)
    R, p = pose[:3, :3], pose[:3, 3]
    c = p + R @ np.array(body.com)
    inertia = R @ np.array(body.inertia) @ R.T + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    expected = ten(2.0, (0.1, 0.2, 0.3), (1.0, 1.1, 1.2))
    expected += np.array([body.mass, *(body.mass * c), *inertia[np.tril_indices(3)]])
    assert close(robot.inertial_parameters[0], expected)
    assert close(robot.link_poses(q)[0], robot.forward_kinematics(q, "foot"))
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert close(robot.regressor(q, qd, qdd) @ robot.inertial_parameters.ravel(), tau)
    heavy = robot.with_payload("foot", 5.0, (0.3, 0.1, 0.2), (0.2, 0.25, 0.3))
    free = robot.with_codegen("unrolled").parametric("inertia")
    changed = robot.inertial_parameters.copy()
    changed[0] += ten(5.0, (0.3, 0.1, 0.2), (0.2, 0.25, 0.3))
    assert close(
        free.inverse_dynamics(q, qd, qdd, inertia=changed), heavy.inverse_dynamics(q, qd, qdd)
    )


def test_a_frame_on_the_base_is_placed_in_the_base_although_a_link_is_called_base() -> None:
    b = lw.Builder("lamp").link("foot").link("plate", mass=1.0).link("base", mass=1.0)
    b = b.joint("glue", "fixed", parent="foot", child="plate", xyz=(0.0, 0.0, 0.5))
    b = b.joint(
        "turn", "revolute", parent="plate", child="base", axis=(0.0, 0.0, 1.0), xyz=(1.0, 0.0, 0.0)
    )
    place = b.build(strict=False).frame("plate")
    assert place.link == "base"
    assert place.pose[:3, 3].tolist() == [0.0, 0.0, 0.5]
