"""Damping and friction of a file, off unless asked for, and what is said of it; effort limits."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import FrictionWarning

URDF = """
<robot name="door">
  <link name="base"/>
  <link name="leaf"><inertial><origin xyz=".4 0 .1"/><mass value="3"/>
    <inertia ixx=".1" ixy="0" ixz="0" iyy=".2" iyz="0" izz=".3"/></inertial></link>
  <link name="knob"><inertial><origin xyz=".1 0 0"/><mass value="0.5"/>
    <inertia ixx=".01" ixy="0" ixz="0" iyy=".02" iyz="0" izz=".02"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="leaf"/>
    <axis xyz="0 1 0"/><dynamics damping="0.7" friction="0.4"/></joint>
  <joint name="turn" type="continuous"><parent link="leaf"/><child link="knob"/>
    <origin xyz=".8 0 0"/><axis xyz="1 0 0"/><dynamics damping="0.1"/></joint>
</robot>
"""
MJCF = """
<mujoco model="door"><option><flag contact="disable"/></option><worldbody>
  <body name="leaf"><joint name="hinge" axis="0 1 0" damping=".7" frictionloss="{friction}"/>
    <inertial pos=".4 0 .1" mass="3" diaginertia=".1 .2 .3"/>
    <body name="knob" pos=".8 0 0"><joint name="turn" axis="1 0 0" damping=".1"/>
      <inertial pos=".1 0 0" mass=".5" diaginertia=".01 .02 .02"/></body></body>
</worldbody></mujoco>
"""
Q, QD, TAU = np.array([0.3, -0.4]), np.array([1.2, -2.0]), np.array([0.5, 0.2])


def frictions(function: Any) -> list[str]:
    """Texts of the friction warnings of a call; other warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", FrictionWarning)
        function()
    return [str(each.message) for each in caught]


def test_mjcf_warns_once_when_it_is_loaded() -> None:
    pytest.importorskip("mujoco")
    text = MJCF.format(friction=".4")
    robot = [None]

    def load() -> None:
        robot[0] = lw.load(text)  # type: ignore[call-overload]
        lw.simulate(robot[0], Q, duration=0.002)  # type: ignore[arg-type]

    (message,) = frictions(load)
    assert 'damping of 2 joints (largest 0.7, joint "hinge")' in message
    assert 'Coulomb friction of 1 joint (largest 0.4, joint "hinge")' in message
    assert "friction=True" in message and "robot.with_friction()" in message


def test_urdf_warns_in_its_first_simulation() -> None:
    robot = lw.load(URDF)  # warnings are errors
    simulate = lambda: lw.simulate(robot, Q, duration=0.002)  # noqa: E731
    (message,) = frictions(simulate)
    assert message.startswith("simulate: robot 'door': damping of 2 joints (largest 0.7")
    assert frictions(simulate) == []
    heavy = robot.with_payload("knob", 1.0)  # an edited robot does not say it again
    assert frictions(lambda: lw.simulate(heavy, Q, duration=0.002)) == []


@pytest.mark.parametrize("friction", [True, False])
def test_a_choice_is_silent(friction: bool) -> None:
    pytest.importorskip("mujoco")
    for text in (URDF, MJCF.format(friction=".4")):
        robot = lw.load(text, friction=friction)
        lw.simulate(robot, Q, duration=0.002)
        lw.simulate(pickle.loads(pickle.dumps(robot)), Q, duration=0.002)
    lw.simulate(lw.load(URDF).with_friction(friction), Q, duration=0.002)
    lw.simulate(lw.load("iiwa14"), [0.1] * 7, duration=0.002)  # has none


def test_friction_that_is_set_in_code_and_left_out_is_said() -> None:
    robot = lw.load("puma560").with_joint("joint2", damping=0.5)
    (message,) = frictions(lambda: lw.simulate(robot, [0.1] * 6, duration=0.002))
    assert 'damping of 1 joint (largest 0.5, joint "joint2") is left out' in message


def test_friction_is_off_for_forward_dynamics_and_simulate_alike() -> None:
    free, rubbing = lw.load(URDF, friction=False), lw.load(URDF, friction=True)
    for robot in (free, rubbing):
        found = lw.simulate(robot, Q, QD, duration=1e-6, dt=1e-6, integrator="euler")
        step = (found.qd[-1] - QD) / 1e-6
        np.testing.assert_allclose(step, robot.forward_dynamics(Q, QD, 0 * QD), rtol=1e-6)
    resisted = [0.7 * QD[0] + 0.4 * np.sign(QD[0]), 0.1 * QD[1]]
    np.testing.assert_allclose(rubbing.bias(Q, QD) - free.bias(Q, QD), resisted)


def test_friction_off_agrees_with_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(URDF)
    for robot in (lw.load(URDF), lw.from_pinocchio(model, friction=False)):
        q = robot.to_pinocchio_q(Q, model=model)
        expected = pin.aba(model, model.createData(), q, QD, TAU)
        np.testing.assert_allclose(robot.forward_dynamics(Q, QD, TAU), expected, rtol=1e-10)


def test_friction_on_agrees_with_mujoco() -> None:
    """Damping acts in MuJoCo's qacc; its friction loss is a soft constraint, so it is zero here."""
    mujoco = pytest.importorskip("mujoco")
    text = MJCF.format(friction="0")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qfrc_applied = Q, QD, TAU
    mujoco.mj_forward(model, data)
    on, off = lw.load(text, friction=True), lw.load(text, friction=False)
    np.testing.assert_allclose(on.forward_dynamics(Q, QD, TAU), data.qacc, rtol=1e-9)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_DAMPER)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(off.forward_dynamics(Q, QD, TAU), data.qacc, rtol=1e-9)


ACTUATORS = """
<mujoco><worldbody>
  <body><joint name="a" axis="0 1 0" {a}/><geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></body>
</worldbody>
<tendon><fixed name="t"><joint joint="a" coef=".5"/><joint joint="b" coef="-2"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>
"""
MOTOR = '<motor joint="a" gear="50" ctrlrange="-1 1"/>'
EFFORTS: dict[str, tuple[str, str, Sequence[float]]] = {
    "gear times the range of the control": ("", MOTOR, (50, np.inf)),
    "a range of forces": ("", '<motor joint="a" gear="-50" forcerange="-.1 .3"/>', (15, np.inf)),
    "the smaller of both": (
        "",
        '<motor joint="a" gear="50" ctrlrange="-1 1" forcerange="-.5 .5"/>',
        (25, np.inf),
    ),
    "what the joint allows": ('actuatorfrcrange="-9 12"', MOTOR, (12, np.inf)),
    "a gain": ("", '<general joint="a" gainprm="7" ctrlrange="-2 1"/>', (14, np.inf)),
    "a servo of unbounded force": (
        "",
        '<position joint="a" kp="9" ctrlrange="-1 1"/>',
        (np.inf, np.inf),
    ),
    "a servo of bounded force": (
        "",
        '<position joint="a" kp="9" ctrlrange="-1 1" forcerange="-87 87"/>',
        (87, np.inf),
    ),
    "two motors": ("", MOTOR + '<motor joint="a" gear="3" ctrlrange="-1 1"/>', (53, np.inf)),
    "a tendon": ("", '<motor tendon="t" gear="10" ctrlrange="-1 1"/>', (5, 20)),
}


@pytest.mark.filterwarnings("ignore:.*springs or dampers:linkwise.RobotFileWarning")
@pytest.mark.parametrize("name", EFFORTS)
def test_effort_limits_are_the_largest_torques_of_the_actuators(name: str) -> None:
    """MuJoCo's own actuator torques reach the limit, and never exceed it, whatever the controls."""
    mujoco = pytest.importorskip("mujoco")
    at_joint, actuators, expected = EFFORTS[name]
    text = ACTUATORS.format(a=at_joint, actuators=actuators)
    robot = lw.load(text)
    np.testing.assert_allclose(robot.effort_limits, expected)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    largest = np.zeros(2)
    for sign in np.array(np.meshgrid(*[[-1e3, 1e3]] * model.nu)).reshape(model.nu, -1).T:
        data.ctrl, data.qpos = sign, [-sign[0], 0.0]  # a servo far from its target
        mujoco.mj_forward(model, data)
        largest = np.maximum(largest, np.abs(data.qfrc_actuator))
    limited = np.isfinite(expected)
    np.testing.assert_allclose(largest[limited], np.asarray(expected)[limited])
