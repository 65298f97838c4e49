"""Order of joints, and layouts of Pinocchio and MuJoCo: the same physics in their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.filterwarnings("ignore::linkwise.RobotFileWarning")
EPS = np.finfo(float).eps


def state(robot: lw.Robot, seed: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    return robot.random_q(rng), *rng.normal(size=(2, robot.nv))


def close(a: Any, b: Any, factor: float = 1.0) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert abs(a - b).max() <= 1e4 * EPS * factor * max(1.0, abs(b).max())


UNNAMED = """<mujoco><worldbody><body><freejoint/><geom size=".1"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
    <body pos=".3 0 0"><joint name="joint1" axis="0 0 1"/><geom size=".1" pos=".1 .1 0"/></body>
  </body></body></worldbody></mujoco>"""


def test_models_of_mujoco_with_joints_that_have_no_names() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(UNNAMED)
    data = mujoco.MjData(model)
    for robot in (lw.from_mujoco(model), lw.load(UNNAMED)):
        q, qd, qdd = state(robot)
        data.qpos, data.qvel = (
            robot.to_mujoco_q(q, model=model),
            robot.to_mujoco_v(qd, q, model=model),
        )
        data.qacc = robot.to_mujoco_a(qdd, qd, q, model=model)
        mujoco.mj_inverse(model, data)
        close(robot.from_mujoco_tau(data.qfrc_inverse, q, model=model),
              robot.evaluate("inverse_dynamics", q, qd, qdd))  # fmt: skip
        close(robot.from_mujoco_q(data.qpos, model=model), q)


@pytest.mark.parametrize("library", ["pinocchio", "mujoco"])
def test_what_is_no_model_is_named(library: str) -> None:
    robot = lw.load("puma560")
    with pytest.raises(TypeError, match=rf"model is 5; expected a {library}\.M"):
        getattr(robot, f"to_{library}_q")(robot.neutral(), model=5)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_pinocchio_of_real_robots(real_robot: Any, base: str) -> None:
    robot = lw.load(real_robot.path, strict=False, mimic="free", base=base)
    path = str(real_robot.path)
    model = (
        pin.buildModelFromUrdf(path)
        if base == "fixed"
        else pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    )
    check_pinocchio(robot, model)


def check_pinocchio(robot: lw.Robot, model: Any, given: Any = None) -> None:
    data = model.createData()
    q, qd, qdd = state(robot)
    theirs = robot.to_pinocchio_q(q, model=given)
    v, a = robot.to_pinocchio_v(qd, q, model=given), robot.to_pinocchio_a(qdd, qd, q, model=given)
    assert theirs.shape == (model.nq,)
    tau = pin.rnea(model, data, theirs, v, a)
    own = np.array(robot.evaluate("inverse_dynamics", q, qd, qdd))
    close(robot.from_pinocchio_tau(tau, q, model=given), own)
    close(robot.to_pinocchio_tau(own, q, model=given), tau)
    close(pin.normalize(model, robot.to_pinocchio_q(robot.from_pinocchio_q(theirs, model=given),
                                                    model=given)), theirs)  # fmt: skip
    close(robot.from_pinocchio_v(v, q, model=given), qd)
    close(robot.from_pinocchio_a(a, qd, q, model=given), qdd)
    frame = robot.link_names[-1]
    pin.framesForwardKinematics(model, data, theirs)
    J = pin.computeFrameJacobian(
        model, data, theirs, model.getFrameId(frame), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    )
    ours = np.array(robot.evaluate("jacobian", q, frame=frame))
    close(robot.to_pinocchio_jacobian(ours, q, model=given), J)
    close(robot.from_pinocchio_jacobian(J, q, model=given), ours)


def test_order_of_pinocchio(real_robot: Any) -> None:
    model = pin.buildModelFromUrdf(str(real_robot.path))
    robot = lw.load(real_robot.path, strict=False, mimic="free", order="pinocchio")
    assert robot.joint_names == tuple(model.names)[1:]
    if all(joint.nq == 1 for joint in model.joints[1:]):
        q, qd, qdd = state(robot)
        tau = robot.evaluate("inverse_dynamics", q, qd, qdd)
        close(tau, pin.rnea(model, model.createData(), q, qd, qdd))


def test_mujoco_of_real_robots(real_robot: Any, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = lw.load(real_robot.path, strict=False, mimic="free")
    model = mujoco.MjModel.from_xml_string(skeleton(real_robot.path))
    check_mujoco(mujoco, robot, model)


def skeleton(path: Path) -> str:
    """A robot file without shapes and masses of its own, some of which MuJoCo refuses."""
    import xml.etree.ElementTree as ElementTree

    body = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
              iyz="0"/></inertial>"""
    root = ElementTree.parse(path).getroot()
    for link in root.iter("link"):
        link[:] = [ElementTree.fromstring(body)]
    return ElementTree.tostring(root, "unicode")


def check_mujoco(mujoco: Any, robot: lw.Robot, model: Any) -> None:
    data = mujoco.MjData(model)
    q, qd, _ = state(robot)
    data.qpos, data.qvel = robot.to_mujoco_q(q), robot.to_mujoco_v(qd, q)
    mujoco.mj_forward(model, data)
    names = [model.joint(i).name for i in range(model.njnt)]
    assert [name for name in names if name] == [
        name for name in robot.reorder("mujoco").joint_names if name in names
    ]
    close(robot.from_mujoco_q(data.qpos), q)
    close(robot.from_mujoco_v(data.qvel, q), qd)
    body = model.nbody - 1
    frame = model.body(body).name
    jacp, jacr = np.zeros((2, 3, model.nv))
    mujoco.mj_jacBody(model, data, jacp, jacr, body)
    J = np.concatenate([jacp, jacr])
    ours = np.array(robot.evaluate("jacobian", q, frame=frame))
    close(robot.to_mujoco_jacobian(ours, q), J)
    close(robot.from_mujoco_jacobian(J, q), ours)


@pytest.mark.full
def test_every_public_robot(robot_path: Any) -> None:
    """All of example-robot-data that the others read too: order, q, rates, torques, Jacobians."""
    mujoco = pytest.importorskip("mujoco")
    compared = [0, 0]
    for path in sorted(robot_path("ur5").parents[2].rglob("*.urdf")):
        try:
            model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
            robot = lw.load(path, strict=False, mimic="free", base="free")
        except ValueError:
            continue  # no robot, or not one for both
        if robot.nv > 6:
            check_pinocchio(robot, model)
            compared[0] += 1
        try:
            other = mujoco.MjModel.from_xml_string(skeleton(path))
        except ValueError:
            continue
        if other.nv == robot.nv - 6 > 0:
            check_mujoco(mujoco, lw.load(path, strict=False, mimic="free"), other)
            compared[1] += 1
    assert compared[0] >= 60
    assert compared[1] >= 50


FLYING = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="trunk" pos="0 0 1"><freejoint name="root"/>
 <inertial pos="0.1 0 0.02" mass="2" diaginertia="0.3 0.2 0.1"/>
 <body name="ball" pos="0 0.1 0"><joint name="hip" type="ball"/>
  <inertial pos="0 0 0.2" mass="1" diaginertia="0.02 0.03 0.01"/></body>
 <body name="leg" pos="0 -0.1 0"><joint name="knee" axis="0 1 0"/>
  <inertial pos="0 0.1 0.2" mass="1" diaginertia="0.02 0.03 0.01"/></body>
</body></worldbody></mujoco>"""


def test_mujoco_of_a_flying_base(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(FLYING)
    robot = lw.load(FLYING)
    check_mujoco(mujoco, robot, model)
    data = mujoco.MjData(model)
    q, qd, tau = state(robot)
    data.qpos, data.qvel = robot.to_mujoco_q(q), robot.to_mujoco_v(qd, q)
    data.qfrc_applied = robot.to_mujoco_tau(tau, q)
    mujoco.mj_forward(model, data)
    qdd = robot.forward_dynamics(q, qd, tau)
    close(robot.to_mujoco_a(qdd, qd, q, model=model), data.qacc)
    close(robot.from_mujoco_a(data.qacc, qd, q), qdd)
    close(robot.from_mujoco_tau(data.qfrc_applied, q), tau)


def planar_model() -> Any:
    model = pin.Model()
    body = pin.Inertia(2.0, np.array([0.1, 0.2, 0.3]), np.diag([0.3, 0.2, 0.25]))
    at = pin.SE3.Random()
    joints = [
        ("z_plane", pin.JointModelPlanar()),
        ("a_turn", pin.JointModelRUBX()),
        ("ball", pin.JointModelSpherical()),
        ("slide", pin.JointModelPY()),
    ]
    parent = 0
    for name, joint in joints:
        parent = model.addJoint(parent, joint, at, name)
        model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        model.addBodyFrame(f"{name}_link", parent, pin.SE3.Identity(), 0)
    second = model.addJoint(1, pin.JointModelRY(), at, "branch")
    model.appendBodyToJoint(second, body, pin.SE3.Identity())
    model.addBodyFrame("branch_link", second, pin.SE3.Identity(), 0)
    return model


def test_pinocchio_of_every_layout() -> None:
    model = planar_model()
    check_pinocchio(lw.from_pinocchio(model), model, model)
    kept = lw.from_pinocchio(model, order="pinocchio")
    assert kept.joint_names == tuple(model.names)[1:]
    check_pinocchio(kept, model, model)


MIMIC = """<robot name="gripper"><link name="hand"/>
<link name="b"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
 <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="a"><inertial><mass value="2"/><origin xyz="0 0.2 0"/>
 <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lead" type="revolute"><parent link="hand"/><child link="b"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="after" type="revolute"><parent link="hand"/><child link="a"/><axis xyz="0 0 1"/>
 <mimic joint="lead" multiplier="-2" offset="0.3"/>
 <limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""


def test_followers_have_numbers_of_their_own_there() -> None:
    robot, model = lw.load(MIMIC), pin.buildModelFromXML(MIMIC)
    q, qd, qdd = np.array([0.4]), np.array([0.7]), np.array([-1.1])
    assert robot.to_pinocchio_q(q).tolist() == [0.3 - 0.8, 0.4]  # by name: "after", "lead"
    v, a = robot.to_pinocchio_v(qd), robot.to_pinocchio_a(qdd)
    tau = pin.rnea(model, model.createData(), robot.to_pinocchio_q(q), v, a)
    close(robot.from_pinocchio_tau(tau), robot.inverse_dynamics(q, qd, qdd))
    assert robot.to_pinocchio_tau([5.0]).tolist() == [0.0, 5.0]
    assert robot.from_pinocchio_q([9.0, 0.4]).tolist() == [0.4]
    with pytest.raises(ValueError, match=r"'after' follows another.*mimic=\"free\""):
        robot.to_pinocchio_jacobian(np.zeros((6, 1)))


def test_models_whose_followers_have_no_numbers_are_refused() -> None:
    text = MIMIC.replace('"after"', '"trail"')  # Pinocchio orders joints by name, drivers first
    robot, model = lw.load(text), pin.buildModelFromXML(text, mimic=True)
    match = r"model has nq 1 and nv 1, and all its joints have nq 2 and nv 2 .*without mimic=True"
    with pytest.raises(ValueError, match=match):
        robot.to_pinocchio_q([0.4], model=model)


def test_batches_and_number_types() -> None:
    robot = lw.load("iiwa14", base="free")
    q = robot.random_q(seed=0, size=(3, 5), dtype="float32")
    there = robot.to_pinocchio_q(q)
    assert (there.shape, there.dtype) == ((3, 5, 14), np.float32)
    assert np.array_equal(robot.from_pinocchio_q(there), q)
    v = robot.to_mujoco_v(np.ones(13), q)  # one rate for all configurations
    assert v.shape == (3, 5, 13)
    close(np.linalg.norm(v[..., :3], axis=-1), np.full((3, 5), 3**0.5), 1e9)


def test_messages() -> None:
    robot = lw.load("iiwa14", base="free")
    with pytest.raises(TypeError, match=r"to_mujoco_v: joint 'base' has rates in other axes"):
        robot.to_mujoco_v(np.zeros(13))
    with pytest.raises(TypeError, match=r"expected qd= too, our rates \(\.\.\., 13\)"):
        robot.to_mujoco_a(np.zeros(13), q=robot.neutral())
    with pytest.raises(ValueError, match=r"from_pinocchio_q: q has shape \(13,\); expected"):
        robot.from_pinocchio_q(np.zeros(13))
    with pytest.raises(TypeError, match=r"q has dtype <U1; expected real numbers"):
        robot.to_pinocchio_q(["a"] * 14)
    with pytest.raises(ValueError, match=r"jacobian has shape \(3, 13\); expected \(\.\.\., 6"):
        robot.to_pinocchio_jacobian(np.zeros((3, 13)))
    with pytest.raises(ValueError, match=r"joint 'z_plane': robot 'iiwa14' has no such joint"):
        robot.to_pinocchio_q(robot.neutral(), model=planar_model())


def test_any_order_gives_the_same_robot() -> None:
    """Breadth first: no subtree is together, and every result is the same numbers elsewhere."""
    from linkwise.algorithms import functions_of

    robot = lw.load(FLYING).with_attached(lw.load("iiwa14"), "leg")
    names = [*robot.joint_names]
    other = [names[0], names[2], names[3], names[1], *names[4:]]
    moved = robot.reorder(other)
    assert moved.joint_names == tuple(other)
    at_q = np.concatenate([np.r_[robot.joint(name).q_slice] for name in other])
    at_v = np.concatenate([np.r_[robot.joint(name).v_slice] for name in other])
    q, qd, qdd = state(robot)
    for function, many in functions_of(robot.tree).items():
        for method, algorithm in many.items():
            if algorithm.iterates or not algorithm.exists_for(robot.tree):
                continue
            if algorithm.inputs[-1][0] == "qdd" and algorithm.output == ("nv",):
                a = robot.evaluate(function, q, qd, qdd, method=method)
                b = moved.evaluate(function, q[at_q], qd[at_v], qdd[at_v], method=method)
                close(b, np.asarray(a)[at_v])
            elif function in ("mass_matrix", "mass_matrix_inverse") and method != "scan":
                a = np.asarray(robot.evaluate(function, q, method=method))
                b = moved.evaluate(function, q[at_q], method=method)
                close(b, a[at_v][:, at_v], 1e3)
    close(moved.forward_dynamics(q[at_q], qd[at_v], qdd[at_v]),
          robot.forward_dynamics(q, qd, qdd)[at_v], 1e3)  # fmt: skip
    J = np.array(robot.evaluate("jacobian", q, frame="link7"))
    close(moved.evaluate("jacobian", q[at_q], frame="link7"), J[:, at_v])


def test_orders_that_cannot_be_are_refused() -> None:
    robot = lw.load("puma560")
    names = list(robot.joint_names)
    with pytest.raises(ValueError, match=r"order is 'drake'; expected 'mujoco' or 'pinocchio'"):
        robot.reorder("drake")
    with pytest.raises(ValueError, match=r"joint 'joint2' comes before 'joint1', which carries"):
        robot.reorder([names[1], names[0], *names[2:]])
    with pytest.raises(ValueError, match=r"order: 'joint6' missing"):
        robot.reorder(names[:-1])
    with pytest.raises(ValueError, match=r"joint 'joint6' is there twice"):
        robot.reorder([*names, "joint6"])
    with pytest.raises(ValueError, match=r"joint 'jont6': .* did you mean 'joint6'"):
        robot.reorder([*names[:-1], "jont6"])
    with pytest.raises(TypeError, match=r"order is 3; expected a list"):
        lw.load("puma560", order=3)  # type: ignore[arg-type]


def test_orders_outlive_edits() -> None:
    robot = lw.load(FLYING)
    moved = robot.reorder(["root", "knee", "hip"])
    assert moved.lock({"knee": 0.2}).joint_names == ("root", "hip")
    assert moved.rename({"knee": "bend"}).joint_names == ("root", "bend", "hip")
    tool = lw.load("iiwa14")
    both = moved.with_attached(tool, "leg")
    assert both.joint_names == ("root", "knee", *tool.joint_names, "hip")


def test_accessors() -> None:
    robot = lw.load(MIMIC)
    after = robot.joint("after")
    assert after.follows == ("lead", -2.0, 0.3)
    assert (after.q_slice, after.parent, after.link) == (slice(0, 1), "base", "a")
    assert robot.joint("lead").limits.upper == 1.0
    body = robot.inertia("a")
    assert (body.mass, tuple(body.com)) == (2.0, (0.0, 0.2, 0.0))
    assert np.array_equal(body.inertia, 0.1 * np.eye(3))
    assert robot.inertia("hand").mass == 0.0
    with pytest.raises(ValueError, match=r"joint 'laed': .* did you mean 'lead'"):
        robot.joint("laed")
    with pytest.raises(ValueError, match=r"link 'c': robot 'gripper' has no such link"):
        robot.inertia("c")
    assert lw.chain(1000).joint("joint500").q_slice == slice(499, 500)
    assert robot.neutral(dtype=np.float32).dtype == np.float32
