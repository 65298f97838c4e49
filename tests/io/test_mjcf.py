"""MJCF files against MuJoCo itself: poses, mass matrix, bias, inverse and forward dynamics."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.io.xml import ReadLimits

mujoco = pytest.importorskip("mujoco", reason="MuJoCo (pip install mujoco) is not installed")

STATES = 120
FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)

BLOCK = '<geom type="box" size=".1 .2 .3" pos=".05 -.1 .02" euler="20 30 40"/>'
ROD = '<geom type="capsule" fromto="0 0 0 .3 .1 -.2" size=".04"/>'

MODELS = {
    "hinges": f"""
<mujoco model="hinges">
  <compiler angle="radian"/>
  <worldbody>
    <body name="a" pos="0 0 1" euler=".3 .2 .1">
      <joint name="ja" axis="0 0 1"/>{ROD}
      <body name="b" pos=".3 .1 0" quat=".8 .1 .5 -.2">
        <joint name="jb" axis="1 2 -1"/>{BLOCK}
        <body name="weld" pos="0 .2 0" axisangle="1 1 0 .7"><geom size=".05" pos=".1 0 0"/></body>
      </body>
      <body name="c" pos="-.3 0 .2" zaxis="1 1 1"><joint name="jc" axis="0 1 0"/>{ROD}</body>
    </body>
  </worldbody>
</mujoco>""",
    "anchors and refs": f"""
<mujoco>
  <compiler angle="degree"/>
  <worldbody>
    <body name="a" pos="0 0 1" euler="10 20 30">
      <joint name="ja" axis="0 1 1" pos=".1 .2 .3" ref="35"/>{ROD}
      <body name="b" pos=".3 .1 0">
        <joint name="jb" type="slide" axis="1 0 2" ref=".4" pos="1 2 3"/>{BLOCK}
        <body name="c" pos="0 .2 0" axisangle="0 1 0 90">
          <joint name="jc" axis="1 0 0" pos="0 -.1 0" ref="-120"/>{ROD}
          <site name="tip" pos=".3 .1 -.2" euler="90 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    "several joints": f"""
<mujoco>
  <worldbody>
    <body name="gantry" pos="0 0 1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0" ref=".2"/>
      <joint name="yaw" axis="0 0 1" pos=".1 0 0" ref="15"/>{BLOCK}
      <body name="wrist" pos=".4 0 0" euler="0 30 0">
        <joint name="w1" axis="1 0 0" pos="0 .1 0"/>
        <joint name="w2" axis="0 1 0" pos="0 0 .2"/>
        <joint name="w3" axis="0 .1 1"/>{ROD}
        <body name="ball" pos=".3 .1 -.2">
          <joint name="slip" type="slide" axis="0 0 1"/>
          <joint name="socket" type="ball" pos=".05 .02 0"/>{BLOCK}
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    "balls": f"""
<mujoco>
  <worldbody>
    <body name="a" euler="40 0 10"><joint name="ja" type="ball" pos=".1 0 .2"/>{ROD}
      <body name="b" pos=".3 .1 -.2" xyaxes="0 1 0 -1 0 0"><joint name="jb" type="ball"/>{BLOCK}
        <body name="c" pos="0 0 .4"><joint name="jc"/>{ROD}</body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    "free": f"""
<mujoco>
  <option gravity="1 -2 -3"/>
  <worldbody>
    <body name="craft" pos="1 2 3" euler="10 20 30"><freejoint name="fly"/>{BLOCK}
      <body name="arm" pos=".2 .1 .3"><joint name="shoulder" axis="0 1 0" pos="0 0 .1"/>{ROD}
        <body name="hand" pos=".3 .1 -.2"><joint name="grip" type="slide" axis="1 1 0"/>{ROD}
          <site name="palm" pos="0 0 .1" quat="1 1 0 0"/>
        </body>
      </body>
    </body>
    <body name="debris" pos="-1 0 0"><joint name="drift" type="free"/>{ROD}</body>
  </worldbody>
</mujoco>""",
    "inertials": f"""
<mujoco>
  <worldbody>
    <body name="a">
      <joint name="ja" axis="0 0 1" armature=".3" damping="2" frictionloss=".5" range="-60 90"/>
      <inertial pos=".1 .2 .3" mass="2" fullinertia=".05 .06 .07 .01 -.005 .002"/>{BLOCK}
      <body name="b" pos=".5 0 0">
        <joint name="jb" type="slide" axis="0 1 0" armature="1.5" range="-.1 .3"/>
        <inertial pos="0 0 .1" quat=".9 .1 .2 .3" mass="1" diaginertia=".02 .03 .04"/>
        <body name="c" pos="0 .2 0"><joint name="jc" type="ball" armature=".02"/>{ROD}</body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    "defaults": f"""
<mujoco>
  <compiler inertiafromgeom="true" angle="radian" eulerseq="zyx" autolimits="true"/>
  <option gravity="0 -9.7 0"/>
  <default>
    <joint axis="0 1 0" armature=".01"/><geom density="700"/>
    <default class="heavy"><geom density="4000"/><joint axis="1 0 0" range="-1 1"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <site name="origin" pos=".1 .2 .3"/>
    <body name="fixed" pos="0 .2 0" euler=".1 .2 .3">{BLOCK}
      <body name="a" childclass="heavy" pos="0 0 1"><joint name="ja"/>{BLOCK}
        <inertial pos="0 0 0" mass="99" diaginertia="1 1 1"/>
        <frame pos=".1 .1 .1" euler=".4 0 0">
          <body name="b" pos=".3 0 0"><joint name="jb" class="main"/>{ROD}</body>
        </frame>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    "unnamed": f"""
<mujoco>
  <worldbody>
    <body pos="0 0 1"><joint axis="1 0 0"/><joint axis="0 1 0"/>{ROD}
      <body pos=".1 0 0"><joint/>{ROD}<site pos=".1 .1 .1"/></body>
    </body>
    <replicate count="3" offset="0 .5 0" euler="0 0 20">
      <body name="copy" pos="0 1 0"><joint axis="1 0 0"/>{ROD}</body>
    </replicate>
  </worldbody>
</mujoco>""",
    "geared rotors": f"""
<mujoco>
  <worldbody>
    <body name="a"><joint name="ja" armature=".1"/>{BLOCK}
      <body name="b" pos=".1 .2 .3"><joint name="jb" type="slide"/>{ROD}</body>
    </body>
  </worldbody>
  <actuator><motor joint="ja" gear="5" armature=".02"/><general joint="jb" gainprm="9"/></actuator>
</mujoco>""",
    "rotors of several axes": f"""
<mujoco>
  <worldbody>
    <body name="a"><joint name="ja" type="free" armature=".3"/>{BLOCK}
      <body name="b" pos=".1 .2 .3"><joint name="jb" type="ball" armature=".1"/>{ROD}</body>
    </body>
    <body name="c"><freejoint name="jc"/>{BLOCK}</body>
  </worldbody>
  <actuator>
    <motor joint="jb" gear="5 1 2" armature=".02"/><motor jointinparent="jb" armature=".04"/>
    <motor joint="jc" gear="2 1 1 0 0 3" armature=".05"/>
  </actuator>
</mujoco>""",
    "rotors on tendons": f"""
<mujoco>
  <worldbody>
    <body name="a"><joint name="ja"/>{BLOCK}
      <body name="b" pos=".1 .2 .3"><joint name="jb" type="slide"/>{ROD}</body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" armature=".5"><joint joint="ja" coef="2"/></fixed>
    <fixed name="u"><joint joint="jb" coef="3"/><joint joint="ja" coef="0"/></fixed>
    <fixed name="v" armature="3"><joint joint="jb" coef="0"/></fixed>
  </tendon>
  <actuator><motor tendon="u" gear="10" armature=".02"/></actuator>
</mujoco>""",
}


# -- conventions --------------------------------------------------------------------------------


@dataclass
class Both:
    """One robot in both libraries, and random states of it."""

    robot: lw.Robot
    model: Any
    data: Any
    q: np.ndarray  # linkwise's
    qd: np.ndarray
    qdd: np.ndarray
    qpos: np.ndarray  # MuJoCo's
    qvel: np.ndarray
    qacc: np.ndarray

    def jacobian(self, k: int) -> np.ndarray:
        """``d qvel / d qd``: linkwise's rates to MuJoCo's, at state k."""
        J = np.eye(self.model.nv)
        for q, v in free_joints(self.model):
            R = rotation(self.qpos[k, q + 3 : q + 7])
            J[v : v + 6, v : v + 6] = np.block(
                [[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]]
            )
        return J

    def answers(self, read: Any) -> np.ndarray:
        """``read(data, k)`` after a forward pass at every state."""
        out = []
        for k in range(STATES):
            self.data.qpos[:], self.data.qvel[:] = self.qpos[k], self.qvel[k]
            mujoco.mj_forward(self.model, self.data)
            out.append(np.array(read(self.data, k)))
        return np.array(out)

    def masses(self) -> np.ndarray:
        """MuJoCo's mass matrices for linkwise's rates."""

        def full(data: Any, k: int) -> np.ndarray:
            M = np.zeros((self.model.nv, self.model.nv))
            mujoco.mj_fullM(self.model, data, M)
            return self.jacobian(k).T @ M @ self.jacobian(k)

        return self.answers(full)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    t = 2.0 * np.cross(q[..., 1:], v)
    return v + q[..., :1] * t + np.cross(q[..., 1:], t)


def rotation(quat: np.ndarray) -> np.ndarray:
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, quat)
    return flat.reshape(3, 3)


def free_joints(model: Any) -> list[tuple[int, int]]:
    """Where free joints start in qpos and qvel."""
    return [
        (int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j]))
        for j in range(model.njnt)
        if model.jnt_type[j] == FREE
    ]


def to_mujoco(model: Any, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Any:
    """linkwise's states as MuJoCo's: a free joint is turned and its blocks swapped.

    ``v_world = R v``, so ``a_world = R (a + w x v)``: rates along body axes turn with the body.
    """
    qpos, qvel, qacc = q.copy(), qd.copy(), qdd.copy()
    for i, j in free_joints(model):
        turn, place = q[:, i : i + 4], q[:, i + 4 : i + 7]
        w, v = qd[:, j : j + 3], qd[:, j + 3 : j + 6]
        alpha, a = qdd[:, j : j + 3], qdd[:, j + 3 : j + 6] + np.cross(w, v)
        qpos[:, i : i + 7] = np.hstack([place, turn])
        qvel[:, j : j + 6] = np.hstack([rotated(turn, v), w])
        qacc[:, j : j + 6] = np.hstack([rotated(turn, a), alpha])
    return qpos, qvel, qacc


def only_dynamics(model: Any) -> Any:
    """The model without contacts, constraints, limits, springs, damping and actuators."""
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_CONSTRAINT | flags.mjDSBL_ACTUATION
    for name in ("mjDSBL_PASSIVE", "mjDSBL_SPRING", "mjDSBL_DAMPER"):
        model.opt.disableflags |= getattr(flags, name, 0)
    model.dof_damping[:] = 0.0
    return model


def both(robot: lw.Robot, model: Any, seed: int = 5) -> Both:
    rng = np.random.default_rng(seed)
    q = robot.random_q(rng, size=STATES)
    qd, qdd = rng.uniform(-2.0, 2.0, (2, STATES, robot.nv))
    model = only_dynamics(model)
    return Both(robot, model, mujoco.MjData(model), q, qd, qdd, *to_mujoco(model, q, qd, qdd))


def write(folder: Path, text: str, name: str = "robot.xml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    path = write(tmp_path_factory.mktemp("mjcf"), MODELS[request.param])
    return both(lw.load(path, friction=False), mujoco.MjModel.from_xml_path(str(path)))


# -- against MuJoCo -----------------------------------------------------------------------------


def test_same_numbers(case: Both) -> None:
    assert (case.robot.nq, case.robot.nv) == (case.model.nq, case.model.nv)
    np.testing.assert_array_equal(case.robot.gravity, case.model.opt.gravity)


def test_poses_of_bodies(case: Both, assert_close: Any) -> None:
    for i in range(case.model.nbody):
        name = case.model.body(i).name or f"body{i}"

        def pose(data: Any, _: int, i: int = i) -> np.ndarray:
            return np.column_stack([data.xmat[i].reshape(3, 3), data.xpos[i]])

        actual = case.robot.forward_kinematics(case.q, name)[:, :3]
        assert_close(actual, case.answers(pose))


def test_poses_of_sites(case: Both, assert_close: Any) -> None:
    for i in range(case.model.nsite):
        name = case.model.site(i).name or f"site{i}"

        def pose(data: Any, _: int, i: int = i) -> np.ndarray:
            return np.column_stack([data.site_xmat[i].reshape(3, 3), data.site_xpos[i]])

        assert_close(case.robot.forward_kinematics(case.q, name)[:, :3], case.answers(pose))


def test_mass_matrix(case: Both, assert_close: Any) -> None:
    assert_close(case.robot.mass_matrix(case.q), case.masses())


def test_inverse_dynamics(case: Both, assert_close: Any) -> None:
    def torques(data: Any, k: int) -> np.ndarray:
        data.qacc[:] = case.qacc[k]
        mujoco.mj_inverse(case.model, data)
        return case.jacobian(k).T @ data.qfrc_inverse

    actual = case.robot.inverse_dynamics(case.q, case.qd, case.qdd)
    assert_close(actual, case.answers(torques))


def test_bias(case: Both, assert_close: Any) -> None:
    """MuJoCo's bias is at zero world acceleration: another point for a free joint."""
    at_rest = np.zeros_like(case.qdd)
    _, _, qacc = to_mujoco(case.model, case.q, case.qd, at_rest)
    M = case.masses()
    extra = [case.jacobian(k).T @ qacc[k] for k in range(STATES)]  # J^-1 is its transpose
    bias = case.answers(lambda data, k: case.jacobian(k).T @ data.qfrc_bias)
    expected = bias + np.einsum("kij,kj->ki", M, extra)
    assert_close(case.robot.bias(case.q, case.qd), expected, scale=np.abs(expected).max())


@pytest.mark.parametrize("method", ["crba", "aba"])
def test_forward_dynamics(case: Both, method: str, assert_close: Any) -> None:
    tau = np.random.default_rng(9).uniform(-5.0, 5.0, (STATES, case.robot.nv))

    def accelerations(data: Any, k: int) -> np.ndarray:
        data.qfrc_applied[:] = case.jacobian(k) @ tau[k]
        mujoco.mj_forward(case.model, data)
        out = case.jacobian(k).T @ data.qacc
        for _, v in free_joints(case.model):
            out[v + 3 : v + 6] -= np.cross(case.qd[k, v : v + 3], case.qd[k, v + 3 : v + 6])
        return out

    expected = case.answers(accelerations)
    actual = case.robot.forward_dynamics(case.q, case.qd, tau, method=method)
    assert_close(actual, expected, cond=np.linalg.cond(case.masses()))


# -- what a description says --------------------------------------------------------------------


def load_text(folder: Path, text: str, **options: Any) -> lw.Robot:
    return lw.load(write(folder, text), **options)


def joint(robot: lw.Robot, name: str) -> Any:
    return next(joint for joint in robot.description.joints if joint.name == name)


def test_joint_data(tmp_path: Path) -> None:
    robot = load_text(tmp_path, MODELS["inertials"], friction=False)
    ja, jb = joint(robot, "ja"), joint(robot, "jb")
    assert (ja.kind, ja.armature, ja.damping, ja.friction) == ("revolute", 0.3, 2.0, 0.5)
    np.testing.assert_allclose([ja.limits.lower, ja.limits.upper], np.radians([-60.0, 90.0]))
    assert (jb.kind, jb.limits.lower, jb.limits.upper) == ("prismatic", -0.1, 0.3)
    assert ja.where.line == 5 and ja.where.element == '<joint name="ja">'


def test_damping_counts_when_asked_for(tmp_path: Path) -> None:
    still, moving = np.zeros(5), np.array([0.7, 0, 0, 0, 0])
    with_friction = load_text(tmp_path, MODELS["inertials"], friction=True)
    without = load_text(tmp_path, MODELS["inertials"], friction=False)
    q = without.neutral()
    extra = with_friction.inverse_dynamics(q, moving, still) - without.bias(q, moving)
    np.testing.assert_allclose(extra[0], 2.0 * 0.7 + 0.5, rtol=1e-12)


def test_names_of_links_between_joints(tmp_path: Path) -> None:
    robot = load_text(tmp_path, MODELS["several joints"])
    assert robot.link_names[:3] == ("gantry/x", "gantry/y", "gantry")
    assert robot.joint_names[:6] == ("x", "y", "yaw", "w1", "w2", "w3")
    assert "gantry/yaw" in robot.frame_names  # where its anchor is


def test_name_and_gravity(tmp_path: Path) -> None:
    assert load_text(tmp_path, MODELS["hinges"]).name == "hinges"
    assert load_text(tmp_path, MODELS["free"]).name == "robot"  # the file's
    np.testing.assert_array_equal(load_text(tmp_path, MODELS["free"]).gravity, [1, -2, -3])
    changed = load_text(tmp_path, MODELS["free"], gravity=(0, 0, 1))
    np.testing.assert_array_equal(changed.gravity, [0, 0, 1])
    flag = MODELS["balls"].replace("<worldbody>", '<option><flag gravity="disable"/></option>', 1)
    flag = flag.replace("</option>", "</option><worldbody>")
    np.testing.assert_array_equal(load_text(tmp_path, flag).gravity, [0, 0, 0])


def test_shapes(tmp_path: Path) -> None:
    robot = load_text(tmp_path, MODELS["hinges"])
    a, b = robot.description.links[1], robot.description.links[2]
    assert [shape.kind for shape in a.visuals + b.collisions] == ["capsule", "box"]
    assert b.collisions[0].size == (0.2, 0.4, 0.6)
    np.testing.assert_allclose(a.visuals[0].size, (0.04, np.sqrt(0.14)))


MIMIC = f"""
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="a"><joint name="ja" ref=".3"/>{ROD}
      <body name="b" pos=".3 0 0"><joint name="jb" axis="0 1 0" ref="-.2"/>{BLOCK}
        <body name="c" pos=".3 0 0"><joint name="jc" type="slide" axis="0 1 1"/>{ROD}</body>
      </body>
    </body>
  </worldbody>
  <equality>
    <joint joint1="jc" joint2="jb" polycoef=".05 .5 0 0 0"/>
    <joint joint1="jb" joint2="ja" polycoef=".1 -2 0 0 0"/>
  </equality>
</mujoco>"""


def test_equality_of_joints_is_a_mimic(tmp_path: Path, assert_close: Any) -> None:
    """``y - y0 = c0 + c1 (x - x0)``, through a joint that follows itself."""
    robot = load_text(tmp_path, MIMIC)
    assert robot.joint_names == ("ja",)
    model = mujoco.MjModel.from_xml_string(MIMIC)
    case = both(load_text(tmp_path, MIMIC, mimic="free"), model)
    case.qpos[:, 1] = -0.2 + 0.1 - 2.0 * (case.qpos[:, 0] - 0.3)
    case.qpos[:, 2] = 0.05 + 0.5 * (case.qpos[:, 1] + 0.2)
    G = np.array([1.0, -2.0, -1.0])
    expected = G @ case.masses() @ G
    assert_close(robot.mass_matrix(case.qpos[:, :1])[:, 0, 0], expected)
    pose = robot.forward_kinematics(case.qpos[:, :1], "c")[:, :3, 3]
    assert_close(pose, case.answers(lambda data, _: data.body("c").xpos))


FINGERS = f"""<mujoco>
  <worldbody>
    <body name="a"><joint name="ja"/>{ROD}
      <body name="b" pos=".3 .1 0"><joint name="jb"/>{BLOCK}
        <body name="c" pos=".2 0 .1"><joint name="jc"/>{BLOCK}</body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="jc" joint2="jb" polycoef="0 -2 0 0 0"/></equality>
  <tendon>
    <fixed name="t" armature=".5"><joint joint="jb" coef="3"/><joint joint="jc" coef=".5"/></fixed>
  </tendon>
</mujoco>"""


def test_a_tendon_of_joints_that_follow_is_one_rotor(tmp_path: Path, assert_close: Any) -> None:
    """The joints are on one branch: between branches, MuJoCo has no place for the coupling."""
    robot = load_text(tmp_path, FINGERS)
    q = np.random.default_rng(3).uniform(-1, 1, (STATES, 2))
    G = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]])
    model = mujoco.MjModel.from_xml_string(FINGERS)
    data, expected = mujoco.MjData(model), []
    for row in q:
        data.qpos[:] = G @ row
        mujoco.mj_forward(model, data)
        M = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, M)
        expected.append(G.T @ M @ G)
    assert_close(robot.mass_matrix(q), np.array(expected))


def test_a_tendon_that_couples_joints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        lw.RobotFileError,
        match=r"<fixed name=\"t\">: armature 0\.5 .*couples 2 joints in the .*; .*strict=False",
    ):
        load_text(tmp_path, FINGERS, mimic="free")
    with pytest.warns(lw.RobotFileWarning, match=r"couples 2 joints .*: left out"):
        load_text(tmp_path, FINGERS, mimic="free", strict=False)
    string = '<spatial name="t" armature="1"><site site="x"/><site site="y"/></spatial>'
    text = (
        f'<mujoco><worldbody><site name="x"/><body pos="1 0 0"><joint/>{ROD}'
        f'<site name="y" pos="0 1 0"/></body></worldbody>'
        f"<tendon>{string}</tendon></mujoco>"
    )
    with pytest.raises(lw.RobotFileError, match=r'<spatial name="t">: armature 1 .*with the conf'):
        load_text(tmp_path, text)


def test_rotors_of_a_free_joint_that_differ_are_refused() -> None:
    """Their share of the mass matrix would change as the body turns."""
    model = mujoco.MjModel.from_xml_string(MODELS["rotors of several axes"])
    model.dof_armature[1] = 1.0
    with pytest.raises(
        lw.RobotFileError, match=r"armature \[0\.3, 1\.0, 0\.3\] of a free joint dif"
    ):
        lw.from_mujoco(model)


def test_rotors_turn_with_the_world(tmp_path: Path, assert_close: Any) -> None:
    """C qd is the velocity part of the bias, and Christoffel's sum is C, rotors included."""
    robot = load_text(tmp_path, MODELS["rotors of several axes"])
    rng = np.random.default_rng(4)
    q, qd = robot.random_q(rng, size=20), rng.uniform(-2, 2, (20, robot.nv))
    expected = robot.bias(q, qd) - robot.gravity_torque(q)
    for method in ("composite", "mixed"):
        C = robot.coriolis_matrix(q, qd, method=method)
        assert_close(np.einsum("kij,kj->ki", C, qd), expected, scale=np.abs(expected).max())
    assert_close(np.einsum("aijk,ak->aij", robot.christoffel(q), qd), C, scale=np.abs(C).max())


def test_every_method_knows_the_rotors(tmp_path: Path, assert_close: Any) -> None:
    robot = load_text(tmp_path, MODELS["rotors of several axes"])
    rng = np.random.default_rng(6)
    q, (qd, tau) = robot.random_q(rng, size=20), rng.uniform(-2, 2, (2, 20, robot.nv))
    M = robot.mass_matrix(q)
    expected = robot.forward_dynamics(q, qd, tau, method="crba")
    for method in ("aba", "schur", "fd1", "fd4"):
        actual = robot.forward_dynamics(q, qd, tau, method=method)
        assert_close(actual, expected, cond=np.linalg.cond(M))


READ_LOOPS = {
    "connect": '<connect body1="a" body2="c" anchor="0 0 0"/>',
    "weld": '<weld body1="a"/>',
}
CURVES = {
    "<joint> that holds one joint still": '<joint joint1="ja"/>',
    r"<joint> whose polycoef .* is not a straight line": (
        '<joint joint1="ja" joint2="jb" polycoef="0 1 2 0 0"/>'
    ),
    'a second one on joint "ja"': (
        '<joint joint1="ja" joint2="jb"/>\n<joint joint1="ja" joint2="jc"/>'
    ),
}
TENDONS = {  # by what is said of them if they are left out, with the fixed tendons of OPEN
    "<tendon>": '<tendon tendon1="t"/>',
}
LOOPS = {
    "<tendon> that ties 3 joints together": '<tendon tendon1="all"/>',
    "<tendon> that is a curve over sums": (
        '<tendon tendon1="pair" tendon2="t" polycoef="0 1 1 0 0"/>'
    ),
}
OPEN = f"""<mujoco>
  <worldbody>
    <body name="a"><joint name="ja"/>{ROD}
      <body name="b" pos=".3 .1 0"><joint name="jb"/>{BLOCK}<body name="rigid"/></body>
      <body name="c" pos=".2 0 .1"><joint name="jc"/>{BLOCK}</body>
    </body>
    <body name="m" mocap="true"/>
  </worldbody>
  <tendon><fixed name="t"><joint joint="ja" coef="1"/></fixed>
    <fixed name="pair"><joint joint="ja" coef="2"/><joint joint="jb" coef="-.5"/></fixed>
    <fixed name="all"><joint joint="ja" coef="1"/><joint joint="jb" coef="1"/><joint joint="jc"
      coef="1"/></fixed></tendon>
<equality>%s</equality></mujoco>"""


@pytest.mark.filterwarnings("ignore:.*mocap body is taken as fixed")
@pytest.mark.parametrize("name", READ_LOOPS)
def test_a_loop_is_closed_unless_it_shall_be_open(name: str, tmp_path: Path) -> None:
    text = OPEN % READ_LOOPS[name]
    robot = load_text(tmp_path, text)  # dynamics: tests/closed/test_mujoco_loops.py
    assert robot.nv == 3 and len(robot.loops) == 1
    with pytest.warns(lw.RobotFileWarning, match=name + r'.* is left out \(loops="open"\)'):
        assert not load_text(tmp_path, text, loops="open").loops


@pytest.mark.filterwarnings("ignore:.*mocap body is taken as fixed")
@pytest.mark.parametrize("name", {**LOOPS, **CURVES, **TENDONS})
def test_constraints_that_are_no_loops_are_refused_by_name(name: str, tmp_path: Path) -> None:
    text = OPEN % (LOOPS | CURVES | TENDONS)[name]
    if name not in LOOPS:  # dynamics: tests/closed/test_mujoco_loops.py
        assert isinstance(load_text(tmp_path, text).loops[0], lw.Coupling)
    else:
        with pytest.raises(lw.RobotFileError, match=name) as caught:
            load_text(tmp_path, text)
        said = r'the equality constraint .* is neither of joints of one.*; expected loops="open"'
        assert re.search(rf"robot\.xml:13: <\w+>: {said}", str(caught.value))
    with pytest.warns(lw.RobotFileWarning) as told:
        assert load_text(tmp_path, text, loops="open").nv == 3 - ("second" in name)
    assert any(re.search(name + r'.* is left out \(loops="open"\)', str(w.message)) for w in told)


@pytest.mark.filterwarnings("ignore:.*mocap body is taken as fixed")
def test_constraints_that_tie_nothing_are_no_loops(tmp_path: Path) -> None:
    for nothing in ('<weld body1="a" active="false"/>', '<weld body1="b" body2="rigid"/>'):
        assert load_text(tmp_path, OPEN % nothing).nv == 3
    with pytest.warns(lw.RobotFileWarning, match=r":13: <weld>: a constraint to a mocap body is l"):
        assert load_text(tmp_path, OPEN % '<weld body1="m" body2="c"/>').nv == 3


@pytest.mark.parametrize(
    "equality",
    [
        '<tendon tendon1="t" polycoef="0.3 0 0 0 0"/>',
        '<tendon tendon1="pair" polycoef="0.1 0 0 0 0"/>',
        '<tendon tendon1="c" tendon2="t" polycoef="0.1 2 -0.4 0.3 0"/>',
        '<tendon tendon1="c" tendon2="ab" polycoef="0.2 3 0 0 0"/>',
    ],
)
def test_equalities_of_fixed_tendons_are_couplings(equality: str) -> None:
    """Where our coupling holds, MuJoCo's constraint does, and their velocities agree."""
    text = (OPEN % equality).replace('<joint name="jb"/>', '<joint name="jb" ref="20"/>')
    more = '<fixed name="c"><joint joint="jc" coef="3"/></fixed>'
    more += '<fixed name="ab"><joint joint="ja" coef="1.5"/></fixed>'
    text = text.replace('<fixed name="pair">', f'{more}<fixed name="pair">')
    with pytest.warns(lw.RobotFileWarning, match="mocap"):
        robot = lw.load(text)
    (coupling,) = robot.loops
    assert isinstance(coupling, lw.Coupling)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    q, qd = robot.project(rng.uniform(-0.5, 0.5, (5, 3)), rng.normal(size=(5, 3)))
    for row, rates in zip(q, qd, strict=True):
        data.qpos = row
        mujoco.mj_forward(model, data)
        assert data.nefc == 1 and abs(data.efc_pos[0]) < 1e-9
        assert abs(data.efc_J.reshape(1, 3) @ rates) < 1e-9


def test_a_wrong_word_for_loops(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"loops 'close': expected 'closed' or 'open'"):
        load_text(tmp_path, MIMIC, loops="close")


ARM_ALONE = f"""<mujoco>
  <worldbody><body name="a"><joint name="ja"/>{ROD}</body></worldbody>
</mujoco>"""


# -- includes and files -------------------------------------------------------------------------


def test_includes_are_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    body = f'<body name="a"><include file="parts/joint.xml"/>{ROD}</body>'
    write(tmp_path / "parts", f"<mujocoinclude>{body}</mujocoinclude>", "arm.xml")
    write(tmp_path / "parts", '<mujoco>\n\n<joint name="ja"/></mujoco>', "joint.xml")
    text = '<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>'
    robot = load_text(tmp_path, text)
    assert robot.joint_names == ("ja",)
    where = joint(robot, "ja").where
    assert where.path.endswith("parts/joint.xml") and where.line == 3


def test_an_error_in_an_included_file_is_placed_there(tmp_path: Path) -> None:
    write(
        tmp_path, '<mujocoinclude>\n<body name="a">\n<joint typ="x"/></body></mujocoinclude>', "i"
    )
    with pytest.raises(
        lw.RobotFileError,
        match=r'/i:3: <body name="a"> <joint>: unknown attribute typ="x"; .* type',
    ):
        load_text(tmp_path, '<mujoco><worldbody><include file="i"/></worldbody></mujoco>')


def folders(top: Path, *names: str) -> Path:
    """Folders in one another; the innermost."""
    inner = top.joinpath(*names)
    inner.mkdir(parents=True)
    return inner


def test_include_outside_the_tree_is_refused(tmp_path: Path) -> None:
    inner = folders(tmp_path, "up", "in")
    outside = write(tmp_path, f"<mujoco><worldbody>{ROD}</worldbody></mujoco>", "out.xml")
    for name in ("../../out.xml", str(outside), "/etc/passwd"):
        text = f'<mujoco>\n<include file="{name}"/></mujoco>'
        with pytest.raises(
            lw.RobotFileError, match=r"robot\.xml:2: <include>: .*leads out of"
        ) as e:
            load_text(inner, text)
        folder = os.path.dirname(os.path.realpath(inner / name))
        assert f"expected package_dirs=['{folder}']" in str(e.value)
    (inner / "link.xml").symlink_to(outside)
    with pytest.raises(lw.RobotFileError, match="leads out of the declared folders"):
        load_text(inner, '<mujoco><include file="link.xml"/></mujoco>')


@pytest.mark.parametrize("mark", ["package.xml", "pyproject.toml", "setup.py", ".git"])
def test_files_of_the_package_or_repository_are_read(tmp_path: Path, mark: str) -> None:
    inner = folders(tmp_path, "repository", "robots", "arm", "mjcf")
    write(tmp_path / "repository", "", mark)
    write(folders(tmp_path, "repository", "parts"), ARM_ALONE, "arm.xml")
    assert load_text(inner, '<mujoco><include file="../../../parts/arm.xml"/></mujoco>').nv == 1
    write(tmp_path, ARM_ALONE, "arm.xml")
    with pytest.raises(lw.RobotFileError, match="leads out of the declared folders"):
        load_text(inner, '<mujoco><include file="../../../../arm.xml"/></mujoco>')


def test_a_python_package_is_a_tree(tmp_path: Path) -> None:
    inner = folders(tmp_path, "lib", "envs", "assets", "arm")
    for module in ("lib", "lib/envs"):
        write(tmp_path / module, "", "__init__.py")
    write(folders(tmp_path, "lib", "parts"), ARM_ALONE, "arm.xml")
    assert load_text(inner, '<mujoco><include file="../../../parts/arm.xml"/></mujoco>').nv == 1


def test_folders_of_all_and_the_home_folder_are_no_tree(tmp_path: Path, monkeypatch: Any) -> None:
    main = '<mujoco><include file="../arm.xml"/></mujoco>'
    inner = folders(tmp_path, "shared", "in")
    write(inner.parent, ARM_ALONE, "arm.xml")
    assert load_text(inner, main).nv == 1
    inner.parent.chmod(0o777)
    with pytest.raises(lw.RobotFileError, match="leads out of the declared folders"):
        load_text(inner, main)
    inner.parent.chmod(0o755)
    monkeypatch.setenv("HOME", str(inner.parent))
    write(inner.parent, "", ".git")
    with pytest.raises(lw.RobotFileError, match="leads out of the declared folders"):
        load_text(inner, main)


def test_includes_beside_the_included_file(tmp_path: Path) -> None:
    """MuJoCo looks beside the main file first, then beside the included one."""
    parts = folders(tmp_path, "parts")
    write(parts, '<mujoco><include file="arm.xml"/></mujoco>', "all.xml")
    write(parts, ARM_ALONE, "arm.xml")
    main = '<mujoco><include file="parts\\all.xml"/></mujoco>'
    assert joint(load_text(tmp_path, main), "ja").where.path == str(parts / "arm.xml")
    write(tmp_path, ARM_ALONE.replace("mujoco", "anything"), "arm.xml")
    assert joint(load_text(tmp_path, main), "ja").where.path == str(tmp_path / "arm.xml")


def test_meshes_beside_the_included_file(tmp_path: Path) -> None:
    """The second look-up leaves meshdir out."""
    parts = folders(tmp_path, "parts")
    text = MESH.format(inertial="").replace('file="no.png"', 'builtin="flat" width="8" height="8"')
    write(parts, text, "arm.xml")
    beside = write(parts, TETRAHEDRON, "part.obj")
    main = '<mujoco><include file="parts/arm.xml"/></mujoco>'
    robot = load_text(tmp_path, main)
    assert robot.description.links[1].visuals[0].path == str(beside.resolve())
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")).body_mass[1] == pytest.approx(
        robot.tree.links[0].mass
    )
    first = write(folders(tmp_path, "meshes"), TETRAHEDRON, "part.obj")
    assert load_text(tmp_path, main).description.links[1].visuals[0].path == str(first.resolve())


def test_package_dirs_declare_more_folders(tmp_path: Path) -> None:
    inner = folders(tmp_path, "up", "in")
    write(tmp_path, ARM_ALONE, "out.xml")
    main = '<mujoco><include file="../../out.xml"/></mujoco>'
    assert load_text(inner, main, package_dirs=[tmp_path]).nv == 1


TRIANGLE = "".join(f"v {x}\n" for x in ("0 0 0", ".1 0 0", "0 .2 0", "0 0 .3"))
TETRAHEDRON = TRIANGLE + "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
MESH = """<mujoco>
  <compiler meshdir="meshes"/>
  <asset>
    <mesh name="part" file="part.obj" scale="2 2 2"/>
    <texture name="paint" type="2d" file="no.png"/><material name="m" texture="paint"/>
  </asset>
  <worldbody>
    <body name="a">
      <joint name="ja"/>{inertial}
      <geom type="mesh" mesh="part" pos=".1 0 0" material="m"/>
    </body>
  </worldbody>
</mujoco>"""
INERTIAL = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'


def test_meshes_under_the_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    path = write(tmp_path / "meshes", TETRAHEDRON, "part.obj")
    robot = load_text(tmp_path, MESH.format(inertial=""))
    shape = robot.description.links[1].visuals[0]
    assert (shape.kind, shape.path, shape.scale) == ("mesh", str(path.resolve()), (2, 2, 2))
    np.testing.assert_allclose(shape.origin.translation, (0.1, 0, 0), atol=1e-6)
    np.testing.assert_allclose(np.array(shape.origin.rotation), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(robot.tree.links[0].mass, 1000 * 0.2 * 0.4 * 0.6 / 6, rtol=1e-6)


def test_a_missing_mesh_is_left_out_where_the_inertia_is_given(tmp_path: Path) -> None:
    robot = load_text(tmp_path, MESH.format(inertial=INERTIAL))
    assert robot.tree.links[0].mass == 2.0
    assert robot.description.links[1].visuals == ()
    (problem,) = lw.check(tmp_path / "robot.xml")
    assert (problem.severity, problem.line, problem.element) == ("hint", 4, '<mesh name="part">')
    assert problem.message == '"part.obj" is not in the declared folders: its shape is left out'


def test_a_missing_mesh_is_an_error_where_the_inertia_comes_from_it(tmp_path: Path) -> None:
    with pytest.raises(lw.RobotFileError) as caught:
        load_text(tmp_path, MESH.format(inertial=""))
    message = str(caught.value)
    assert 'robot.xml:8: <body name="a">: its inertia comes from its shapes' in message
    assert '("part.obj"); expected package_dirs= with its folder, an <inertial>' in message


OUTSIDE = """<mujoco>
  <asset>
    <mesh name="m" file="../../part.obj"/><hfield name="h" size="1 1 1 1" file="../../part.obj"/>
    <texture name="t" type="2d" file="/etc/passwd"/>
  </asset>
  <worldbody>
    <body name="a"><joint name="ja"/>{inertial}<geom type="mesh" mesh="m"/></body>
  </worldbody>
</mujoco>"""


def test_files_outside_the_tree_are_never_opened(tmp_path: Path) -> None:
    """They are no reason to refuse, unless an inertia comes from them."""
    inner = folders(tmp_path, "up", "in")
    write(tmp_path, TETRAHEDRON, "part.obj")
    robot = load_text(inner, OUTSIDE.format(inertial=INERTIAL))
    assert robot.nv == 1 and robot.description.links[1].visuals == ()
    with pytest.raises(lw.RobotFileError, match=r"robot\.xml:7: .*not in the declared folders"):
        load_text(inner, OUTSIDE.format(inertial=""))
    assert load_text(inner, OUTSIDE.format(inertial=""), package_dirs=[tmp_path]).nv == 1


ATTACKS = [
    "../../part.obj", "x/../../../part.obj", "{outside}/part.obj", "//{outside}/part.obj",
    "file://{outside}/part.obj", "file://..%2f..%2fpart.obj", "link.obj", "linked/part.obj",
    "..\\..\\part.obj", "package://../part.obj", "/proc/self/environ", "/dev/zero",
]  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_path_leads_to_a_file_outside(tmp_path: Path, name: str) -> None:
    """Neither an include nor a mesh is opened, by whatever name or link."""
    inner = folders(tmp_path, "up", "in")
    outside = write(tmp_path, TETRAHEDRON, "part.obj").resolve()
    (inner / "link.obj").symlink_to(outside)
    (inner / "linked").symlink_to(outside.parent)
    name = name.format(outside=outside.parent)
    opened: list[str] = []
    watch.append(opened)
    with pytest.raises(lw.RobotFileError):
        load_text(inner, f'<mujoco><include file="{name}"/></mujoco>')
    with pytest.raises(lw.RobotFileError, match="not in the declared folders"):
        load_text(inner, OUTSIDE.format(inertial="").replace("../../part.obj", name))
    watch.remove(opened)
    assert [p for p in opened if p.endswith((".obj", "environ", "zero"))] == []


watch: list[list[str]] = []  # lists of the paths that Python opens


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        for opened in watch:
            opened.append(str(arguments[0]))


sys.addaudithook(_note)


def test_at_most_32_includes(tmp_path: Path) -> None:
    for i in range(40):
        write(tmp_path, f'<mujoco><include file="{i + 1}.xml"/></mujoco>', f"{i}.xml")
    with pytest.raises(lw.RobotFileError, match=r"31\.xml:1: <include>: more than 32 files"):
        lw.load(write(tmp_path, '<mujoco><include file="0.xml"/></mujoco>'))


# -- errors -------------------------------------------------------------------------------------

ARM = """<mujoco>
  <worldbody>
    <body name="a">
      {joint}
      {inertial}
    </body>
  </worldbody>
  {rest}
</mujoco>"""
JOINT = '<joint name="ja"/>'

BROKEN = {
    "no such attribute": (
        {"joint": '<joint name="ja" typ="hinge"/>'},
        r':4: <joint name="ja">: .*typ',
    ),
    "zero axis": (
        {"joint": '<joint name="ja" axis="0 0 0"/>'},
        r":4: .*axis=\"0 0 0\" has no direc",
    ),
    "zero quat": (
        {"inertial": '<geom name="g" size="1" quat="0 0 0 0"/>'},
        r':5: <geom name="g">:',
    ),
    "huge axis": (
        {"joint": '<joint name="ja" axis="0 1e300 0"/>'},
        r":4: .*axis=\"0 1e300 0\" is too large; expected at most 1e\+100",
    ),
    "far away": (
        {"rest": f'<worldbody><body pos="1e300 0 0"><joint/>{ROD}</body></worldbody>'},
        r":8: <body>: pos=\"1e300 0 0\" is too large",
    ),
    "not a number": (
        {"joint": '<joint name="ja" pos="0 nan 0"/>'},
        r':4: .*pos="0 nan 0": "nan" is not a finite',
    ),
    "infinite": (
        {"inertial": INERTIAL.replace("2", "1e999")},
        r':5: <body name="a"> <inertial>: mass',
    ),
    "negative mass": ({"inertial": INERTIAL.replace("2", "-2")}, r":5: .*mass=\"-2\" is too small"),
    "negative rotor": ({"joint": '<joint armature="-1"/>'}, r":4: .*armature=\"-1\" is too small"),
    "too few": (
        {"joint": '<joint name="ja" pos="0 0"/>'},
        r":4: .*'pos' does not have enough data",
    ),
    "no mass": ({"inertial": ""}, r':3: <body name="a">: mass and inertia of moving bodies'),
    "triangle": (
        {"inertial": INERTIAL.replace("1 1 1", "1 1 3")},
        r':3: <body name="a">: inertia must satisfy',
    ),
    "indefinite": (
        {"inertial": '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/>'},
        r':3: <body name="a">: .*positive eigenvalues',
    ),
    "lower above upper": (
        {"joint": '<joint name="ja" range="2 1"/>'},
        r":4: .*range=\"2 1\" starts above its end; expected lower",
    ),
    "misspelt element": (
        {"inertial": '<inertail mass="1"/>'},
        r":5: .*<inertail>: unknown element <inertail>; expected <inertial>",
    ),
    "two of a name": (
        {"rest": '<worldbody><body name="a"/></worldbody>'},
        r":8: .*repeated name 'a'",
    ),
    "unknown joint": (
        {"rest": '<equality><joint joint1="ja" joint2="zz"/></equality>'},
        r":8: <joint>: unknown element 'zz'",
    ),
    "circle of equalities": (
        {
            "inertial": '<joint name="jb" axis="1 0 0"/>' + INERTIAL,
            "rest": '<equality><joint joint1="ja" joint2="jb"/>'
            '<joint joint1="jb" joint2="ja"/></equality>',
        },
        r':8: <joint>: joint "jb" follows itself through "ja"',
    ),
    "model in a model": (
        {"rest": '<asset><model name="m" file="m.xml"/></asset>'},
        r':8: <model name="m">: a model inside a model is not read',
    ),
    "too many copies": (
        {"rest": '<worldbody><replicate count="9999999"><body/></replicate></worldbody>'},
        r":8: <replicate>: 9999999 copies; expected at most",
    ),
    "missing include": (
        {"rest": '<include file="no.xml"/>'},
        r':8: <include>: file="no.xml" is not',
    ),
    "empty number": ({"joint": '<joint damping=""/>'}, r':4: .*damping="" is empty; expected'),
    "negative moment": (
        {"inertial": INERTIAL.replace("1 1 1", "1 1 -1")},
        r':5: .*diaginertia="1 1 -1" is too small; expected at least 0',
    ),
    "quaternion next to zero": (
        {"inertial": '<geom name="g" size="1" quat="1e-200 0 0 0"/>'},
        r':5: <geom name="g">: quat="1e-200 0 0 0" has no direction',
    ),
    "control range": (
        {"rest": '<actuator><motor joint="ja" ctrlrange="1 -1"/></actuator>'},
        r':8: <motor>: ctrlrange="1 -1" starts above its end; expected lower <= upper',
    ),
    "misspelt in a frame": (
        {"joint": '<frame><joint name="ja" axsi="0 0 1"/></frame>'},
        r':4: <joint name="ja">: unknown attribute axsi="0 0 1"; expected axis',
    ),
    "unknown in a frame": (
        {"joint": '<frame><joint name="ja" colour="red"/></frame>'},
        r':4: <joint name="ja">: unknown attribute colour="red"; expected one that <joint> takes',
    ),
    "two in a frame": (
        {"joint": f"<joint/><frame><body name='f'>{INERTIAL}{INERTIAL}</body></frame>"},
        r':4: <body name="f"> <inertial>: a second <inertial>; expected one',
    ),
    "body beside the world": (
        {"rest": '<body name="b"/>'},
        r':8: <body name="b">: <body> inside <mujoco>; expected it inside <worldbody> or <body>',
    ),
    "nothing of MJCF": (
        {"rest": "<robot/>"},
        r":8: <robot>: <robot> inside <mujoco>; expected an element that <mujoco> takes",
    ),
    "xacro": ({"joint": "<xacro:arm/>"}, r":4: .*<xacro:arm>: this file needs xacro; xacro runs"),
    "unknown class": (
        {"joint": '<joint class="amr"/>', "rest": '<default><default class="arm"/></default>'},
        r":4: .*unknown default class name 'amr' \(says MuJoCo's compiler\); perhaps \"arm\"",
    ),
    "unknown keyword": (
        {"joint": '<joint name="ja" type="screw"/>'},
        r':4: <joint name="ja">: invalid keyword: type="screw" of a <joint> \(says MuJoCo',
    ),
    "elements of an include": (
        {"rest": '<include file="robot.xml"><option/></include>'},
        r":8: <include>: has elements of its own",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors_say_where_and_what(name: str, tmp_path: Path) -> None:
    parts, expected = BROKEN[name]
    text = ARM.format(**({"joint": JOINT, "inertial": INERTIAL, "rest": ""} | parts))
    with pytest.raises(lw.RobotFileError, match=r"robot\.xml" + expected) as caught:
        load_text(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_words_of_other_namespaces_are_left_alone(tmp_path: Path) -> None:
    text = ARM.format(joint=JOINT, inertial=INERTIAL, rest="")
    assert load_text(tmp_path, text.replace("<mujoco>", '<mujoco xmlns:a="b" a:c="d">')).nv == 1


def test_frames_may_have_words_that_are_not_known(tmp_path: Path) -> None:
    """MuJoCo's table leaves frames out: what is no misspelling is ignored."""
    frame = '<frame colour="red"><joint name="ja"/></frame>'
    load_text(tmp_path, ARM.format(joint=frame, inertial=INERTIAL, rest=""))
    frame = frame.replace('colour="red"', 'spo="0 0 0"')
    with pytest.raises(lw.RobotFileError, match=r'<frame>: unknown attribute spo=".*expected pos'):
        load_text(tmp_path, ARM.format(joint=frame, inertial=INERTIAL, rest=""))


def test_a_schema_that_cannot_be_read_says_nothing() -> None:
    from linkwise.io.files import FileRoots
    from linkwise.io.mjcf_text import flatten
    from linkwise.io.mjcf_words import check_words
    from linkwise.io.xml import DEFAULT_LIMITS, parse_xml

    root = parse_xml("<mujoco><worldbdoy/></mujoco>", "robot.xml")
    document = flatten(root, FileRoots.of(None), DEFAULT_LIMITS)
    for schema in ("", "another layout: mujoco, worldbody, body", "mujoco"):
        check_words(document, schema)


def test_an_objection_without_a_line_is_placed_by_the_name_in_it() -> None:
    """Some versions of MuJoCo name an element and no line."""
    from linkwise.io.files import FileRoots
    from linkwise.io.mjcf_text import flatten
    from linkwise.io.mjobjections import objection
    from linkwise.io.xml import DEFAULT_LIMITS, parse_xml

    text = ARM.format(joint=JOINT, inertial=INERTIAL, rest="")
    root = parse_xml(text, "robot.xml")
    document = flatten(root, FileRoots.of(None), DEFAULT_LIMITS)
    found = {
        "Error: mass too small\nElement name 'a', id 1": 'robot.xml:3: <body name="a">: mass too',
        "Error: joint 'ja' is odd\nElement name '', id 0": 'robot.xml:4: <joint name="ja">: joint',
        "Error: something is odd": "robot.xml:1: <mujoco>: something is odd (says MuJoCo's",
    }
    for message, expected in found.items():
        said = objection(document, message)
        error = document.elements[said.at].node.problem(said.code, **said.facts)
        assert str(error).startswith(expected)


def test_files_of_other_elements_are_never_opened() -> None:
    """Whatever MuJoCo's schema says: what is not known to be safe is not written."""
    from linkwise.io.files import FileRoots
    from linkwise.io.mjcf_text import check_values, flatten
    from linkwise.io.xml import DEFAULT_LIMITS, parse_xml

    root = parse_xml('<mujoco>\n<plugin file="/etc/passwd"/></mujoco>', "robot.xml")
    with pytest.raises(lw.RobotFileError, match=r':2: <plugin>: file="/etc/passwd": files are not'):
        check_values(flatten(root, FileRoots.of(None), DEFAULT_LIMITS))


def test_mujoco_leaves_no_log_behind(tmp_path: Path, monkeypatch: Any, capfd: Any) -> None:
    """Its warnings would go to the terminal and to a file in the working folder."""
    monkeypatch.chdir(tmp_path)
    hinges = '<joint name="j1"/><joint name="j2"/>'
    with pytest.warns(lw.RobotFileWarning, match='move no inertia: "j1"'):
        load_text(tmp_path, ARM.format(joint=hinges, inertial=INERTIAL, rest=""))
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]
    assert capfd.readouterr() == ("", "")


def test_many_bodies_load_quickly(tmp_path: Path) -> None:
    bodies = "".join(
        f'<body name="b{i}" pos="{i} 0 0"><joint name="j{i}"/>{ROD}</body>' for i in range(1000)
    )
    robot = load_text(tmp_path, f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    assert robot.nv == 1000


def test_malformed_and_dangerous_xml(tmp_path: Path) -> None:
    for text, expected in {
        "<mujoco>\n<worldbody>\n</mujoco>": r"robot\.xml:3: .*not well-formed XML: mismatched tag",
        '<!DOCTYPE a [<!ENTITY b "c">]>\n<mujoco/>': r"robot\.xml:1: <!DOCTYPE a>: .*refused",
        "<mujocoinclude/>": r"robot\.xml:1: .*root element is <mujocoinclude>; expected <mujoco>",
        "<mujoco/>": r"robot\.xml:1: .*has no <body>",
        "<mujoco>" + "<body>" * 200 + "</body>" * 200 + "</mujoco>": "max_depth of at most 100",
    }.items():
        with pytest.raises(lw.RobotFileError, match=expected):
            load_text(tmp_path, text)


def test_same_file_twice(tmp_path: Path) -> None:
    write(tmp_path, "<mujoco/>", "a.xml")
    text = '<mujoco>\n<include file="a.xml"/>\n<include file="./a.xml"/></mujoco>'
    with pytest.raises(lw.RobotFileError, match=r":3: <include>: .*already included .*xml:2"):
        load_text(tmp_path, text)


def test_limits_count_included_elements(tmp_path: Path) -> None:
    from linkwise.io.files import FileRoots
    from linkwise.io.read import describe
    from linkwise.io.xml import read_xml

    for i in range(3):
        write(tmp_path, f"<mujoco>{'<option/>' * 40}</mujoco>", f"{i}.xml")
    main = "".join(f'<include file="{i}.xml"/>' for i in range(3))
    path = write(tmp_path, f"<mujoco>{main}</mujoco>")
    with pytest.raises(lw.RobotFileError, match="too many elements; expected at most max_elements"):
        describe(read_xml(path), FileRoots.of(path), limits=ReadLimits(max_elements=100))


def test_without_mujoco_says_how_to_get_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(lw.BackendUnavailable, match=r"pip install 'linkwise\[mujoco\]'"):
        load_text(tmp_path, MODELS["hinges"])


LEFT_OUT = {
    "mocap": (
        '<worldbody><body name="m" mocap="true"/></worldbody>',
        r':8: <body name="m">: a mocap body is taken as fixed',
    ),
    "fluid": ('<option density="1000"/>', r":1: <mujoco>: the fluid"),
    "spring": (
        f'<worldbody><body><joint stiffness="3"/>{ROD}</body></worldbody>',
        r":8: <joint>: the spring \(stiffness\) is left out",
    ),
    "string": (
        '<tendon><fixed name="t" stiffness="1"><joint joint="ja" coef="1"/></fixed></tendon>',
        r':8: <fixed name="t">: stiffness and damping of the tendon are left out',
    ),
    "servo": (
        '<actuator><motor joint="ja"/><position name="s" joint="ja" kp="9"/>'
        '<velocity joint="jb" kv="2"/><general joint="jb" gainprm="2"/></actuator>',
        r':8: <position name="s">: actuators that are springs or dampers .*: "s", "actuator2";',
    ),
    "gravcomp": (
        f'<worldbody><body gravcomp="1"><joint/>{ROD}</body></worldbody>',
        r":8: <body>: gravcomp is left out",
    ),
}
SILENT = {
    "tendon": '<tendon><fixed name="t"><joint joint="ja" coef="1"/></fixed></tendon>',
    "control": '<actuator><general joint="ja" biastype="affine"/></actuator>',
    "motor": '<actuator><motor joint="ja" gear="3"/></actuator>',
    "pair": '<contact><exclude body1="a" body2="b"/></contact>',
    "sensor": '<sensor><jointpos joint="ja"/></sensor>',
    "inactive": '<equality><joint joint1="ja" joint2="jb" active="false"/></equality>',
    "site named as a body": '<worldbody><site name="a"/></worldbody>',
    "ball range": f'<worldbody><body><joint type="ball" range="0 50"/>{ROD}</body></worldbody>',
}


def with_more(rest: str) -> str:
    body = '<body name="b"><joint name="jb"/><geom size=".1"/></body>' + INERTIAL
    return ARM.format(joint=JOINT, inertial=body, rest=rest)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_changes_the_dynamics_and_is_left_out_is_named(name: str, tmp_path: Path) -> None:
    rest, expected = LEFT_OUT[name]
    with pytest.warns(lw.RobotFileWarning) as caught:
        load_text(tmp_path, with_more(rest))
    messages = [str(w.message) for w in caught]
    assert len(messages) == 1 and re.search(r"robot\.xml" + expected, messages[0]), messages


@pytest.mark.parametrize("name", SILENT)
def test_what_changes_nothing_is_silent(name: str, tmp_path: Path) -> None:
    assert load_text(tmp_path, with_more(SILENT[name])).nv >= 2


def test_friction_of_a_free_joint_is_told(tmp_path: Path) -> None:
    path = tmp_path / "free.xml"
    path.write_text(
        "<mujoco><worldbody><body name='b'><joint type='free' frictionloss='0.3'/>"
        "<geom type='box' size='.1 .2 .3'/></body></worldbody></mujoco>"
    )
    with pytest.warns(lw.RobotFileWarning, match=r"frictionloss 0.3 of a free joint acts along"):
        assert lw.load(path, friction=True).nv == 6


def test_negative_damping_is_told_and_acts_as_in_mujoco(tmp_path: Path) -> None:
    text = f"""<mujoco><worldbody><body><joint damping="-0.5"/>{ROD}
      <body pos=".3 0 0"><joint axis="0 1 0" damping="1"/>{BLOCK}</body></body>
    </worldbody></mujoco>"""
    with pytest.warns(lw.RobotFileWarning, match=r"damping -0.5 is negative: it would drive the"):
        driven = load_text(tmp_path, text, friction=True)
    with pytest.warns(lw.RobotFileWarning, match="is negative"):
        plain = load_text(tmp_path, text, friction=False)
    model = mujoco.MjModel.from_xml_string(text)
    q, qd = plain.random_q(seed=1), np.linspace(1.0, 2.0, plain.nv)
    for robot, off in ((driven, 0), (plain, int(mujoco.mjtDisableBit.mjDSBL_DAMPER))):
        model.opt.disableflags |= off | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        data = mujoco.MjData(model)
        data.qpos, data.qvel = q, qd
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(robot.forward_dynamics(q, qd, 0 * qd), data.qacc, rtol=1e-8)
