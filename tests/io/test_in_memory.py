"""Robots from models of other libraries in memory, against those libraries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwise as lw

STATES = 100

# -- Pinocchio ----------------------------------------------------------------------------------

pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")

AXIS = np.array([1.0, -2.0, 2.0]) / 3.0
SECOND = np.array([2.0, 2.0, 1.0]) / 3.0


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    t = 2.0 * np.cross(q[..., 1:], v)
    return v + q[..., :1] * t + np.cross(q[..., 1:], t)


def composite(*joints: Any) -> Any:
    """Joints one after another."""
    whole = pin.JointModelComposite()
    for k, joint in enumerate(joints):
        turn = pin.exp3((k + 1.0) * AXIS)
        whole.addJoint(joint, pin.SE3(turn, np.array([0.1, 0.2 * k, -0.3])))
    return whole


def parts(joint: Any) -> list[Any]:
    """The joints that a joint is made of."""
    if joint.shortname() != "JointModelComposite":
        return [joint]
    own = joint.extract() if hasattr(joint, "extract") else joint
    return [part for sub in own.joints for part in parts(sub)]


JOINTS = {
    "RX": pin.JointModelRX(),
    "RY": pin.JointModelRY(),
    "RZ": pin.JointModelRZ(),
    "RevoluteUnaligned": pin.JointModelRevoluteUnaligned(AXIS),
    "RUBX": pin.JointModelRUBX(),
    "RUBY": pin.JointModelRUBY(),
    "RUBZ": pin.JointModelRUBZ(),
    "PX": pin.JointModelPX(),
    "PY": pin.JointModelPY(),
    "PZ": pin.JointModelPZ(),
    "PrismaticUnaligned": pin.JointModelPrismaticUnaligned(AXIS),
    "HX": pin.JointModelHX(0.2),
    "HY": pin.JointModelHY(-0.1),
    "HZ": pin.JointModelHZ(0.3),
    "HelicalUnaligned": pin.JointModelHelicalUnaligned(AXIS, 0.15),
    "Universal": pin.JointModelUniversal(AXIS, SECOND),
    "Planar": pin.JointModelPlanar(),
    "Spherical": pin.JointModelSpherical(),
    "SphericalZYX": pin.JointModelSphericalZYX(),
    "Translation": pin.JointModelTranslation(),
    "FreeFlyer": pin.JointModelFreeFlyer(),
    "Oblique": pin.JointModelUniversal(np.array([1.0, 0, 0]), np.array([0.6, 0.8, 0])),
    "Composite": composite(pin.JointModelRX(), pin.JointModelSpherical(), pin.JointModelPZ()),
    "Nested": composite(
        pin.JointModelRUBX(), composite(pin.JointModelPlanar(), pin.JointModelRY())
    ),
}


@dataclass
class Both:
    """A robot in both libraries; states are drawn in linkwise's numbers."""

    robot: lw.Robot
    model: Any
    data: Any

    def q(self, q: np.ndarray) -> np.ndarray:
        """A configuration as Pinocchio writes it."""
        out = np.zeros(self.model.nq)
        for joint, a, _ in self.joints():
            own = q[a : a + self._size(joint)]
            kind = joint.shortname().removeprefix("JointModel")
            if kind.startswith(("RUB", "RevoluteUnbounded")):
                own = [np.cos(own[0]), np.sin(own[0])]
            elif kind == "Planar":
                own = [own[0], own[1], np.cos(own[2]), np.sin(own[2])]
            elif kind == "Spherical":
                own = own[[1, 2, 3, 0]]
            elif kind == "FreeFlyer":
                own = own[[4, 5, 6, 1, 2, 3, 0]]
            out[joint.idx_q : joint.idx_q + joint.nq] = own
        return out

    def joints(self) -> list[tuple[Any, int, int]]:
        """Joints with numbers, and where linkwise's numbers for them start in q and v."""
        starts = {}
        for link in self.robot.tree.links:
            if link.follows is None:
                starts[link.joint_name] = (link.q_index, link.v_index)
        out = []
        for i, name in enumerate(self.model.names):
            if i and self.model.joints[i].nv:
                for k, part in enumerate(parts(self.model.joints[i]), 1):
                    out.append((part, *starts.get(name, starts.get(f"{name}/{k}"))))
        return out

    @staticmethod
    def _size(joint: Any) -> int:
        """How many numbers linkwise has for it."""
        return joint.nq - (joint.shortname() == "JointModelPlanar") - ("RUB" in joint.shortname())

    def G(self, q: np.ndarray) -> np.ndarray:
        """``v = G qd``: linkwise's rates to Pinocchio's."""
        G = np.zeros((self.model.nv, self.robot.nv))
        for joint, a, b in self.joints():
            block = np.eye(joint.nv)
            if joint.shortname() == "JointModelFreeFlyer":
                block = block[[3, 4, 5, 0, 1, 2]]
            elif joint.shortname() == "JointModelPlanar":
                c, s = np.cos(q[a + 2]), np.sin(q[a + 2])
                block = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])
            G[joint.idx_v : joint.idx_v + joint.nv, b : b + joint.nv] = block
        return G

    def G_dot(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """``dG/dt``: a planar joint's rates turn with its link."""
        out = np.zeros((self.model.nv, self.robot.nv))
        for joint, a, b in self.joints():
            if joint.shortname() == "JointModelPlanar":
                c, s = np.cos(q[a + 2]), np.sin(q[a + 2])
                turn = np.array([[-s, c, 0], [-c, -s, 0], [0, 0, 0.0]]) * qd[b + 2]
                out[joint.idx_v : joint.idx_v + 3, b : b + 3] = turn
        return out

    def states(self, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        q = self.robot.random_q(rng, size=STATES)
        return q, *rng.uniform(-2.0, 2.0, (2, STATES, self.robot.nv))

    def mass(self, q: np.ndarray) -> np.ndarray:
        out = []
        for row in q:
            data = self.model.createData()  # with mimic joints, crba adds to what is there
            upper = np.triu(pin.crba(self.model, data, self.q(row)))
            G = self.G(row)
            out.append(G.T @ (upper + np.triu(upper, 1).T) @ G)
        return np.array(out)


def both(model: Any, **options: Any) -> Both:
    return Both(lw.from_pinocchio(model, **options), model, model.createData())


def check_dynamics(
    case: Both, evaluate: Any, assert_close: Any, methods: tuple[str, ...] = ("crba", "aba")
) -> None:
    """Equations, uncompiled: what is tested here is the robot that was read."""
    q, qd, u = case.states()
    M = case.mass(q)
    assert_close(evaluate(case.robot, "mass_matrix", q), M)
    torques, accelerations = [], []
    for row, v, a in zip(q, qd, u, strict=True):
        G, turning = case.G(row), case.G_dot(row, v) @ v
        torques.append(G.T @ pin.rnea(case.model, case.data, case.q(row), G @ v, G @ a + turning))
        back = pin.aba(case.model, case.data, case.q(row), G @ v, np.linalg.solve(G.T, a))
        accelerations.append(np.linalg.solve(G, back - turning))
    assert_close(evaluate(case.robot, "inverse_dynamics", q, qd, u), torques)
    cond = np.linalg.cond(M)
    for method in methods:
        found = evaluate(case.robot, "forward_dynamics", q, qd, u, method=method)
        assert_close(found, accelerations, cond=cond)


def check_frames(case: Both, evaluate: Any, assert_close: Any) -> None:
    q, _, _ = case.states()
    names = [frame.name for frame in case.model.frames]
    for i, frame in enumerate(case.model.frames):
        if names.index(frame.name) != i or frame.name not in case.robot.frame_names:
            continue

        def pose(row: np.ndarray, i: int = i) -> np.ndarray:
            pin.framesForwardKinematics(case.model, case.data, case.q(row))
            return case.data.oMf[i].homogeneous

        expected = np.array([pose(row) for row in q[:20]])
        found = evaluate(case.robot, "forward_kinematics", q[:20], frame=frame.name)
        assert_close(found, expected)


def random_model(*kinds: str, branch: bool = False) -> Any:
    """A chain (or a branching tree) of joints, every one of them with a body."""
    pin.seed(7)
    model = pin.Model()
    model.name = "made"
    model.gravity.linear = np.array([1.0, -2.0, -9.0])
    parent = 0
    for i, kind in enumerate(kinds):
        name = f"j{i}_{kind}"
        joint = model.addJoint(parent, JOINTS[kind], pin.SE3.Random(), name)
        model.appendBodyToJoint(joint, pin.Inertia.FromBox(1.5, 0.3, 0.4, 0.6), pin.SE3.Random())
        model.addFrame(pin.Frame(f"tool{i}", joint, 0, pin.SE3.Random(), pin.FrameType.OP_FRAME))
        parent = joint if not branch or i % 3 else max(joint - 1, 0)
    return model


@pytest.mark.filterwarnings("ignore:.*links without mass")
@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_kind(kind: str, evaluate: Any, assert_close: Any) -> None:
    """Every joint, with rotors that differ between its axes."""
    model = random_model("RY", kind, "RevoluteUnaligned")
    model.armature = np.linspace(0.5, 2.0, model.nv)
    for joint in (part for whole in model.joints for part in parts(whole)):
        if joint.shortname() == "JointModelPlanar":  # along the link's axes: equal ones only
            model.armature[joint.idx_v + 1] = model.armature[joint.idx_v]
    case = both(model)
    check_dynamics(case, evaluate, assert_close)
    check_frames(case, evaluate, assert_close)
    tool = case.robot.frame("tool1")
    assert tool.link in case.robot.link_names


@pytest.mark.filterwarnings("ignore:.*links without mass")
def test_all_kinds_at_once(evaluate: Any, assert_close: Any) -> None:
    kinds = [kind for kind in JOINTS if kind not in ("FreeFlyer", "Translation")]
    case = both(random_model("FreeFlyer", *kinds, branch=True))
    check_dynamics(case, evaluate, assert_close, ("auto",))
    check_frames(case, evaluate, assert_close)


def test_joint_data_comes_along() -> None:
    model = random_model("RX", "PrismaticUnaligned", "Spherical")
    model.armature = np.array([0.1, 0.2, 0.3, 0.3, 0.3])
    model.damping[:] = 0.4
    model.lowerPositionLimit[:2], model.upperPositionLimit[:2] = [-1, -2], [3, 4]
    robot = lw.from_pinocchio(model, name="mine")
    joints = robot.description.joints
    assert [joint.armature for joint in joints] == [0.1, 0.2, 0.3]
    assert {joint.damping for joint in joints} == {0.4}
    assert (joints[0].limits.lower, joints[1].limits.upper) == (-1.0, 4.0)
    assert robot.name == "mine"
    np.testing.assert_array_equal(robot.gravity, [1, -2, -9])
    free = lw.from_pinocchio(model, base="free", gravity=(0, 0, -1), friction=True)
    assert free.nv == robot.nv + 6


@pytest.mark.parametrize("kind", ["RZ", "RevoluteUnaligned", "PY", "PrismaticUnaligned"])
def test_mimic_joints(kind: str, assert_close: Any) -> None:
    model = random_model("RX", kind, "RY")
    follower = pin.transformJointIntoMimic(model, 1, 2, -1.5, 0.2)
    case = both(follower)
    assert case.robot.nv == 2
    q, qd, u = case.states()
    assert_close(case.robot.mass_matrix(q), case.mass(q))
    torques = [pin.rnea(follower, case.data, *rows) for rows in zip(q, qd, u, strict=True)]
    assert_close(case.robot.inverse_dynamics(q, qd, u), torques)
    assert lw.from_pinocchio(follower, mimic="free").nv == 3


REFUSED = {
    "Ellipsoid": (pin.JointModelEllipsoid(), "a JointModelEllipsoid; expected a revolute"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_known_is_named(kind: str) -> None:
    joint, expected = REFUSED[kind]
    model = pin.Model()
    model.name = "odd"
    model.addJoint(0, joint, pin.SE3.Identity(), "elbow")
    with pytest.raises(lw.RobotFileError, match=rf"'odd'>: <joint name=\"elbow\">: .*{expected}"):
        lw.from_pinocchio(model)


@pytest.mark.parametrize("kind", ["HX", "HelicalUnaligned"])
def test_a_helical_follower_is_refused(kind: str) -> None:
    """Pinocchio 4 loses its pitch, or its process."""
    model = pin.transformJointIntoMimic(random_model("RX", kind), 1, 2, 2.0, 0.0)
    with pytest.raises(lw.RobotFileError, match="mimic joint"):
        lw.from_pinocchio(model)


def test_unequal_rotors_of_a_planar_joint_are_refused_and_no_mass_told() -> None:
    """Rotors along the link's axes are no constants along the joint's, unless they are equal."""
    model = random_model("Planar")
    model.armature = np.array([1.0, 2.0, 3.0])
    with pytest.raises(
        lw.RobotFileError, match=r"armature \[1\.0, 2\.0, 3\.0\] of a planar joint d"
    ):
        lw.from_pinocchio(model)
    model = random_model("Spherical")
    model.damping = np.array([1.0, 2.0, 3.0])
    with pytest.raises(lw.RobotFileError, match=r"damping \[1\.0, 2\.0, 3\.0\] differs"):
        lw.from_pinocchio(model)
    model = random_model("RX", "RY")
    model.addJoint(2, pin.JointModelRX(), pin.SE3.Random(), "loose")
    with pytest.warns(lw.RobotFileWarning, match='move no inertia: "loose"'):
        lw.from_pinocchio(model)


@pytest.mark.filterwarnings("ignore:.*links without mass")
def test_links_without_mass_between_others(evaluate: Any, assert_close: Any) -> None:
    """A gimbal: hinges with no mass between them."""
    model = pin.Model()
    parent = 0
    for i, kind in enumerate(("PX", "PY", "RZ", "RX", "RY")):
        parent = model.addJoint(parent, JOINTS[kind], pin.SE3.Identity(), f"j{i}")
    model.appendBodyToJoint(parent, pin.Inertia.FromBox(1.5, 0.3, 0.4, 0.6), pin.SE3.Random())
    check_dynamics(both(model), evaluate, assert_close)
    model = pin.Model()
    for i in range(2):
        parent = model.addJoint(i, pin.JointModelRZ(), pin.SE3.Identity(), f"j{i}")
    model.appendBodyToJoint(parent, pin.Inertia.FromBox(1.5, 0.3, 0.4, 0.6), pin.SE3.Random())
    with pytest.warns(lw.RobotFileWarning, match='move no inertia: "j0"'):
        lw.from_pinocchio(model)


ROBOTS = (
    "ur5",
    "panda",
    "kinova",
    "anymal",
    "solo12",
    "talos",
)


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "free-flyer"])
@pytest.mark.parametrize("name", ROBOTS)
def test_real_robots(
    name: str, free: bool, robot_path: Any, evaluate: Any, assert_close: Any
) -> None:
    path = str(robot_path(name))
    root = [pin.JointModelFreeFlyer()] if free else []
    model = pin.buildModelFromUrdf(path, *root)
    if free and model.inertias[1].mass == 0.0:
        pytest.skip("its base has no mass")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        case = both(model, strict=False)
    check_dynamics(case, evaluate, assert_close, ("auto",))
    check_frames(case, evaluate, assert_close)


@pytest.mark.parametrize("name", ["ur5", "solo12"])
def test_same_robot_as_from_its_file(
    name: str, robot_path: Any, load_robot: Any, assert_close: Any
) -> None:
    from_file = load_robot(name)
    robot = lw.from_pinocchio(pin.buildModelFromUrdf(str(robot_path(name))), strict=False)
    assert set(robot.joint_names) == set(from_file.joint_names)
    order = [robot.joint_names.index(joint) for joint in from_file.joint_names]
    q = from_file.random_q(seed=1, size=50)
    back = np.empty_like(q)
    back[:, order] = q
    M = robot.mass_matrix(back)[:, order][:, :, order]
    assert_close(M, from_file.mass_matrix(q))
    for frame in from_file.frame_names:
        if frame in robot.frame_names:
            expected = from_file.forward_kinematics(q, frame)
            assert_close(robot.forward_kinematics(back, frame), expected)


def test_no_import_of_pinocchio_is_needed() -> None:
    """Anything with the attributes will do: here one joint, written by hand."""

    def se3(rotation: Any, translation: Any) -> Any:
        return SimpleNamespace(rotation=np.array(rotation), translation=np.array(translation))

    joint = SimpleNamespace(shortname=lambda: "JointModelRZ", idx_q=0, idx_v=0, nv=1)
    body = SimpleNamespace(mass=2.0, lever=np.array([0.5, 0, 0]), inertia=np.eye(3))
    here = se3(np.eye(3), np.zeros(3))
    model = SimpleNamespace(
        name="bare", njoints=2, names=["universe", "hinge"], joints=[None, joint], parents=[0, 0],
        jointPlacements=[here, here], inertias=[None, body], nq=1, frames=[],
        gravity=SimpleNamespace(linear=np.zeros(3)), armature=[0.25], damping=[0.0],
        velocityLimit=[np.inf], effortLimit=[np.inf],
        lowerPositionLimit=[-1.0], upperPositionLimit=[1.0],
    )  # fmt: skip
    np.testing.assert_allclose(lw.from_pinocchio(model).mass_matrix([0.1]), [[1.75]])


# -- MuJoCo -------------------------------------------------------------------------------------

MJCF = """
<mujoco model="arm">
  <worldbody>
    <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" ref="20"/><joint axis="1 0 0"/>
      <geom type="box" size=".1 .2 .3"/><site name="s"/>
      <body name="b" pos="0 0 .4"><joint type="ball"/><geom size=".1" pos=".1 0 0"/></body>
    </body>
  </worldbody>
</mujoco>"""


def test_mujoco_model_in_memory_is_its_file(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    robot = lw.from_mujoco(mujoco.MjModel.from_xml_string(MJCF))
    assert robot == lw.load(path)
    assert robot.name == "arm" and "s" in robot.frame_names
    assert lw.from_mujoco(mujoco.MjModel.from_xml_string(MJCF), name="mine").name == "mine"


def test_mujoco_model_changed_in_memory() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.body_mass[2] *= 3.0
    model.opt.gravity[:] = 1.0, 2.0, 3.0
    robot = lw.from_mujoco(model, friction=True)
    assert robot.tree.links[-1].mass == model.body_mass[2]
    np.testing.assert_array_equal(robot.gravity, [1, 2, 3])
    np.testing.assert_array_equal(lw.from_mujoco(model, gravity=(0, 0, 0)).gravity, [0, 0, 0])


def test_mujoco_errors_in_memory_name_the_element() -> None:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.dof_damping[3] = 1.0
    with pytest.raises(
        lw.RobotFileError, match=r"<mujoco.MjModel 'arm'>: <joint name=\"joint2\">: damping \["
    ):
        lw.from_mujoco(model)
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.body_mass[2] = -1.0
    with pytest.raises(lw.RobotFileError, match=r"joint 'joint2' has mass -1 kg"):
        lw.from_mujoco(model)
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.jnt_stiffness[1] = 1.0
    with pytest.warns(lw.RobotFileWarning, match=r"<joint name=\"joint1\">: the spring"):
        lw.from_mujoco(model)


def test_numbers_that_are_not_finite_are_refused() -> None:
    mujoco = pytest.importorskip("mujoco")
    for key, index, element in (
        ("body_pos", 2, "body name=.b."),
        ("body_inertia", 1, "body name=.a."),
        ("jnt_axis", 0, "joint name=.ja."),
        ("dof_armature", 0, "joint name=.ja."),
    ):
        model = mujoco.MjModel.from_xml_string(MJCF)
        getattr(model, key)[index] = np.nan
        with pytest.raises(lw.RobotFileError, match=rf"<{element}>: .*nan.*expected finite"):
            lw.from_mujoco(model)
    model = mujoco.MjModel.from_xml_string(MJCF)
    model.jnt_axis[0] = 0.0
    with pytest.raises(lw.RobotFileError, match=r"\[0\.0, 0\.0, 0\.0\]; expected a vector of leng"):
        lw.from_mujoco(model)
    made = random_model("RX", "RY")
    made.jointPlacements[2].translation = np.array([0.0, np.inf, 0.0])
    with pytest.raises(lw.RobotFileError, match=r"j1_RY.>: translation is \[0\.0, inf, 0\.0\]"):
        lw.from_pinocchio(made)


def test_a_free_joint_of_both_libraries_moves_alike() -> None:
    """The conversion of a free joint's state that `from_mujoco` documents."""
    mujoco = pytest.importorskip("mujoco")
    body = '<body name="a"><freejoint/><geom size=".1"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(text)
    robot, data = lw.from_mujoco(model), mujoco.MjData(model)
    rng = np.random.default_rng(2)
    q, qd = robot.random_q(rng), rng.normal(size=6)
    data.qpos[:] = [*q[4:], *q[:4]]
    data.qvel[:] = [*rotated(q[:4], qd[3:]), *qd[:3]]
    mujoco.mj_forward(model, data)
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 1, velocity, 0)
    np.testing.assert_allclose(robot.jacobian(q, "a") @ qd, velocity, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("make", [lw.from_mujoco, lw.from_pinocchio])
def test_what_is_no_model_is_refused(make: Any) -> None:
    message = f"{make.__name__}: model is a 'str'; expected a .*Model .load takes files."
    with pytest.raises(TypeError, match=message):
        make("arm.xml")


def test_a_name_is_text() -> None:
    with pytest.raises(TypeError, match="from_pinocchio: name is 3; expected text"):
        lw.from_pinocchio(pin.Model(), name=3)  # type: ignore[arg-type]
