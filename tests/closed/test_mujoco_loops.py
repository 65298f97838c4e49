"""Closed loops of MJCF files, against MuJoCo's own mass matrix, bias and constraint Jacobian.

MuJoCo's constraints are springs, so its accelerations are not compared; what the constraints hold
is: rows of its Jacobian, and how far its loops are from closed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

mujoco = pytest.importorskip("mujoco")

ROD = '<geom type="capsule" size=".03" fromto="0 0 0 .3 .05 .1" mass="1"/>'
BODIES = f"""
  <site name="on_world" pos=".5 .2 .6" euler="20 30 10"/>
  <body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/>{ROD}
    <body name="b" pos=".3 .1 0"><joint name="jb" axis="1 1 0"/>{ROD}
      <body name="c" pos=".2 .1 .1"><joint name="jc" axis="0 0 1" ref="20"/>{ROD}
        <body name="d" pos=".1 .2 .1" euler="0 40 10"><joint name="jd" axis="0 1 1"/>{ROD}
          <site name="tip" pos=".1 .1 .2" euler="0 10 70"/></body></body></body>
  </body>
  <body name="e" pos=".5 0 1"><joint name="je" type="ball"/>{ROD}
    <body name="f" pos=".1 .2 .1" euler="10 20 30"><joint name="jf" type="slide" axis="0 1 1"/>
      {ROD}</body></body>
  <body name="g" pos="1 1 1"><freejoint name="jg"/>{ROD}
    <site name="grip" pos=".1 0 .1" euler="5 6 7"/></body>"""
LOOPS = {
    "connect": '<connect body1="d" body2="f" anchor=".1 .2 .3"/>',
    "connect to the world": '<connect body1="d" anchor=".1 .2 .3"/>',
    "connect of sites": '<connect site1="tip" site2="on_world"/>',
    "weld": '<weld body1="d" body2="f" anchor=".1 0 .2"/>',
    "weld at a pose": '<weld body1="c" body2="g" relpose=".1 .2 .3 .9 .3 .1 .3"/>',
    "weld of sites": '<weld site1="tip" site2="grip"/>',
    "weld to the world": '<weld body1="g"/>',
    "curve": '<joint joint1="jf" joint2="jc" polycoef=".1 .5 -.3 .2 .05"/>',
    "joint held": '<joint joint1="jc" polycoef=".2 0 0 0 0"/><connect body1="d" body2="f"'
    ' anchor="0 0 .1"/>',
    "several": '<connect body1="d" body2="f" anchor="0 0 .1"/><weld body1="c" body2="g"/>',
}


def model_of(loop: str) -> str:
    bodies, option = (
        f"<worldbody>{BODIES}</worldbody>",
        '<option><flag contact="disable"/></option>',
    )
    return f"<mujoco>{option}{bodies}<equality>{loop}</equality></mujoco>"


def as_mujoco(robot: lw.Robot, model: Any, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, ...]:
    """A state in MuJoCo's numbers, and the matrix that takes our rates to its own."""
    qpos, columns = np.zeros(model.nq), np.zeros((model.nv, robot.nv))
    for link in robot.tree.links:
        joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, link.joint_name)
        a, b = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
        own = q[link.q_index : link.q_index + link.joint.nq]
        k = link.v_index
        if link.kind == "free":
            w, x, y, z = own[:4]
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, own[:4])
            qpos[a : a + 7] = [*own[4:], w, x, y, z]
            columns[b : b + 3, k + 3 : k + 6] = R.reshape(3, 3)
            columns[b + 3 : b + 6, k : k + 3] = np.eye(3)
        else:
            qpos[a : a + link.joint.nq] = own
            columns[b : b + link.joint.nv, k : k + link.joint.nv] = np.eye(link.joint.nv)
    return qpos, columns @ qd, columns


def rows_of(model: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's constraint Jacobian as a dense array, and its errors of position."""
    J = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(
            J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        )
    else:
        J[...] = data.efc_J.reshape(data.nefc, model.nv)
    return J, data.efc_pos.copy()


def jacobian(robot: lw.Robot, model: Any, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """MuJoCo's constraint Jacobian in our rates, its errors, mass matrix and bias at rest."""
    data = mujoco.MjData(model)
    data.qpos, _, columns = as_mujoco(robot, model, q, np.zeros(robot.nv))
    mujoco.mj_forward(model, data)
    J, error = rows_of(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return J @ columns, error, columns.T @ M @ columns, columns.T @ data.qfrc_bias


IN_EVERY_RUN = ("connect", "weld at a pose")


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[] if x in IN_EVERY_RUN else pytest.mark.full) for x in LOOPS]
)
def test_loops_of_a_file_are_those_of_mujoco(name: str) -> None:
    text = model_of(LOOPS[name])
    robot, model = lw.load(text), mujoco.MjModel.from_xml_string(text)
    rng = np.random.default_rng(3)
    start = robot.integrate(robot.neutral(), rng.uniform(-0.2, 0.2, (5, robot.nv)))
    q, qd = robot.project(start, rng.normal(size=(5, robot.nv)))
    assert np.isfinite(q).all()
    tau = rng.normal(size=(5, robot.nv))
    for k in range(5):
        J, error, M, bias = jacobian(robot, model, q[k])
        assert np.abs(error).max() < 1e-13
        units = np.eye(robot.nv)
        ours = np.stack([robot.residual(q[k], unit).velocity for unit in units], axis=-1)
        held = np.linalg.matrix_rank(ours, rtol=1e-9)
        assert held == np.linalg.matrix_rank(np.vstack([ours, J]), rtol=1e-9)
        at_rest = robot.forward_dynamics(q[k], np.zeros(robot.nv), tau[k])
        zero = np.zeros((len(J), len(J)))
        K = np.block([[M, -J.T], [J, zero]])
        want = np.linalg.lstsq(K, np.r_[tau[k] - bias, np.zeros(len(J))], rcond=1e-12)[0]
        size = np.abs(want[: robot.nv]).max() * np.linalg.cond(M)
        assert np.abs(at_rest - want[: robot.nv]).max() < 1e-12 * size
        # in motion the loops stay closed to second order: rates of MuJoCo's rows
        step = 1e-5
        ahead, behind = (jacobian(robot, model, robot.integrate(q[k], qd[k], h))[0]
                         for h in (step, -step))  # fmt: skip
        qdd = robot.forward_dynamics(q[k], qd[k], tau[k])
        drift = (ahead - behind) @ qd[k] / (2 * step)
        assert np.abs(J @ qdd + drift).max() < 1e-7 * (1 + np.abs(qdd).max())


def test_open_loops_are_asked_for() -> None:
    with pytest.warns(lw.RobotFileWarning, match=r'<weld> is left out \(loops="open"\)'):
        robot = lw.load(model_of(LOOPS["weld"]), loops="open")
    assert not robot.loops
    assert lw.load(model_of(LOOPS["weld"])).loops[0].frames == ("loop0", "loop0/to")


@pytest.mark.full
def test_loops_are_read_on_a_flying_base() -> None:
    robot = lw.load(model_of(LOOPS["connect to the world"]), base="free")
    q = robot.project(robot.neutral())
    assert robot.nv == 20 and np.abs(robot.residual(q).position).max() < 1e-12
    still = robot.neutral()
    still[4:7] += 1.0  # the base and all on it
    assert np.allclose(robot.residual(still).position, robot.residual(robot.neutral()).position)


def test_a_weld_without_torques_lets_turn_and_disabled_loops_are_none() -> None:
    weld = '<weld body1="d" body2="f" anchor=".1 0 .2" torquescale="{}"/>'
    free, stiff = (lw.load(model_of(weld.format(scale))).loops[0] for scale in (0, 2))
    assert free.directions == (False,) * 3 + (True,) * 3 and all(stiff.directions)
    text = model_of(LOOPS["weld"]).replace('"disable"', '"disable" equality="disable"')
    assert not lw.load(text).loops


SMALL = """<mujoco><worldbody>
  <body name="a"><joint name="ja" axis="0 1 0" ref="10"/>{rod}
    <body name="b" pos=".3 .1 0"><joint name="jb" axis="1 1 0" ref="-20"/>{rod}
      <body name="c" pos=".2 .1 .1"><joint name="jc" axis="0 0 1"/>{rod}</body></body></body>
</worldbody><equality>{loop}</equality></mujoco>"""


def test_a_joint_on_a_curve() -> None:
    """``qa - qa0 = p(qb - qb0)``, its rate and its curvature, uncompiled."""
    text = SMALL.format(rod=ROD, loop='<joint joint1="ja" joint2="jb" polycoef=".1 .5 -.3 .2 .1"/>')
    robot, terms = lw.load(text), np.polynomial.Polynomial([0.1, 0.5, -0.3, 0.2, 0.1])
    assert robot.loops[0].title == "joint 'ja' on a curve over joint 'jb'"
    x, rate = 0.7, 1.3
    at = x - np.deg2rad(-20)
    q = [np.deg2rad(10) + terms(at), x, 0.4]
    qd = [terms.deriv()(at) * rate, rate, -0.5]
    np.testing.assert_allclose(robot.evaluate("residual", q, qd), 0.0, atol=1e-14)
    tau = [0.3, -0.2, 0.5]
    qdd = np.array(robot.evaluate("forward_dynamics", q, qd, tau))
    expected = terms.deriv()(at) * qdd[1] + terms.deriv(2)(at) * rate**2
    np.testing.assert_allclose(qdd[0], expected, rtol=1e-12)
    # the curve does no work: its force is along J
    left = np.array(robot.evaluate("inverse_dynamics", q, qd, qdd.tolist()))
    J = np.array([1.0, -terms.deriv()(at), 0.0])
    np.testing.assert_allclose(left - tau, J * ((left - tau) @ J) / (J @ J), atol=1e-12)
    assert len(robot.evaluate("delassus", q)) == 1
    with pytest.raises(ValueError, match=r"'pv': loop 0: joint 'ja' on a curve over joint 'jb' is"):
        robot.forward_dynamics(q, qd, tau, method="pv")


def test_a_curve_between_followers_is_one_between_what_they_follow() -> None:
    loop = (
        '<joint joint1="jb" joint2="ja" polycoef=".1 -2 0 0 0"/>'
        '<joint joint1="jb" joint2="jc" polycoef="0 1 .4 0 0"/>'
    )
    text = SMALL.format(rod=ROD, loop=loop)
    robot, model = lw.load(text), mujoco.MjModel.from_xml_string(text)
    assert robot.nv == 2 and (robot.loops[0].joint, robot.loops[0].driver) == ("ja", "jc")
    qa, qc, *_ = robot.evaluate("project", [0.1, 0.2], [0.0, 0.0])
    data = mujoco.MjData(model)
    a, b = np.deg2rad([10, -20])
    data.qpos = [qa, b + 0.1 - 2 * (qa - a), qc]
    mujoco.mj_forward(model, data)
    assert len(data.efc_pos) == 2 and np.abs(data.efc_pos).max() < 1e-13


@pytest.mark.full
def test_joints_on_curves_in_simulations_searches_and_pictures(tmp_path: Path) -> None:
    loop = '<joint joint1="ja" joint2="jb" polycoef=".1 .5 -.3 .2 .1"/>'
    robot = lw.load(SMALL.format(rod=ROD, loop=loop))
    q, qd = robot.project(robot.neutral(), [0.0, 1.0, 0.5])
    found = lw.simulate(robot, q, qd, duration=1.0)
    off = robot.residual(found.q, found.qd)
    assert np.abs(off.position).max() < 1e-12 and np.abs(off.velocity).max() < 1e-9
    energy = found.energy.total
    assert np.abs(energy - energy[0]).max() < 1e-6 * np.abs(found.energy.kinetic).max()
    goal = robot.forward_kinematics(found.q[300], "c")
    reached = robot.inverse_kinematics(goal, "c", q0=q, directions=[0, 0, 0, 1, 1, 1])
    assert np.abs(robot.residual(reached).position).max() < 1e-5
    there = robot.forward_kinematics(reached, "c")[:3, 3]
    np.testing.assert_allclose(there, goal[:3, 3], atol=1e-5)
    robot.save_html(tmp_path / "curve.html", found)
    with pytest.raises(ValueError, match="does not respect loop 0: joint 'ja' on a curve"):
        lw.simulate(robot, q + 0.1, duration=0.01)


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (lw.Coupling("jx", "ja"), "joint 'jx': robot '<text>' has no such joint"),
        (lw.Coupling("ja", "ja", (0, 1)), "it is its own driver; expected another joint"),
        (lw.Coupling("ja", None, (0, 1)), "without a driver; expected one number, or the name of"),
        (lw.Coupling("ja", "jb", ()), "expected one to 16 numbers, the constant first"),
        (lw.Coupling("ja", "jb", "12"), "expected one to 16 numbers, the constant first"),
        (lw.Coupling("ja", "jb", (0, np.nan)), "expected 2 finite numbers"),
    ],
)
def test_couplings_that_have_no_meaning(coupling: lw.Coupling, message: str) -> None:
    robot = lw.load(SMALL.format(rod=ROD, loop=""))
    with pytest.raises(ValueError, match=re.escape(message)):
        robot.close_loops(coupling)
