"""Operational-space control of long chains: the tip does what it is told, whatever the length."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import OperationalSpace

EPS = np.finfo(float).eps
full = pytest.mark.full
METHODS = ["recursive", "scan", pytest.param("schur", marks=full),
           pytest.param("schur-bcr", marks=full)]  # fmt: skip


def moving(robot: lw.Robot, seed: int = 0) -> tuple[Any, Any, Any]:
    """A state, and a pose of the tip to go to."""
    rng = np.random.default_rng(seed)
    q, qd = rng.normal(size=robot.nv) * 0.4, rng.normal(size=robot.nv) / np.sqrt(robot.nv)
    target = robot.forward_kinematics(q, "tip")
    target[:3, 3] += [0.1, 0.2, -0.05]
    return q, qd, target


def wanted(robot: lw.Robot, q: Any, qd: Any) -> Any:
    """``kp e - kd J qd`` with the usual gains; 16 numbers a link are too many at 10⁵ links."""
    e = np.array([0.0, 0.0, 0.0, 0.1, 0.2, -0.05])
    ahead, behind = (robot.forward_kinematics(q + h * qd, "tip") for h in (1e-6, -1e-6))
    turned = (ahead - behind)[:3, :3] / 2e-6 @ robot.forward_kinematics(q, "tip")[:3, :3].T
    w = np.array([turned[2, 1], turned[0, 2], turned[1, 0]])
    v = np.concatenate([w, (ahead - behind)[:3, 3] / 2e-6])
    return 100.0 * e - 20.0 * v


def accelerates(robot: lw.Robot, q: Any, qd: Any, tau: Any) -> Any:
    """The tip's acceleration, by articulated bodies and the joints' accelerations."""
    qdd = robot.forward_dynamics(q, qd, tau, method="aba")
    return robot.jacobian(q, "tip") @ qdd + robot.jacobian_dot_qd(q, qd, "tip")


@pytest.mark.parametrize("method", METHODS)
def test_the_tip_accelerates_as_wanted(method: str) -> None:
    """v̇ = u to rounding times the condition of Λ⁻¹, with motions of the joints beside it."""
    robot = lw.chain(1_000, "random")
    q, qd, target = moving(robot)
    asked = np.random.default_rng(1).normal(size=6)
    posture = lw.control.pd(robot, 0.0, 0.02) + lw.control.gravity_compensation(robot)
    law = OperationalSpace(robot, "tip", posture=posture, method=method)
    tau, report, bits = law(q, qd, target, None, asked, report=True, status=True)
    u = asked + 100.0 * report.error - 20.0 * robot.jacobian(q, "tip") @ qd
    found = accelerates(robot, q, qd, tau)
    cond = np.linalg.cond(robot.operational_inertia_inverse(q, "tip"))
    rounding = 100 * EPS * cond * np.abs(u).max()
    # Schur complements lose digits, most of them under large torques (docs/chain_accuracy.md)
    lost = (1.0, 1.0) if method in ("recursive", "scan") else (1e6, 1e2)
    assert np.abs(found - u).max() <= lost[0] * rounding
    assert bits == 0 and report.damping == 0.0
    bare = OperationalSpace(robot, "tip", method=method)(q, qd, target, None, asked)
    assert np.abs(tau - bare).max() > 1.0  # the posture does act
    assert np.abs(accelerates(robot, q, qd, bare) - u).max() <= lost[1] * rounding


@full
@pytest.mark.parametrize("method", ["recursive", "scan"])
def test_a_hundred_thousand_links(method: str) -> None:
    robot = lw.chain(100_000, "tapered")
    q, qd, target = moving(robot)
    tau = OperationalSpace(robot, "tip", method=method)(q, qd, target)
    u = wanted(robot, q, qd)
    found = robot.tip_acceleration(q, qd, tau, "tip")
    assert np.abs(found - u).max() <= 1e-6 * np.abs(u).max()  # u by differences


def test_kernels_in_a_row_are_the_law_that_is_written_out() -> None:
    """Of an arm, with all that a law can have: rows, forces, body axes, damping, wrenches."""
    arm, rng = lw.load("iiwa14"), np.random.default_rng(2)
    q, qd = arm.random_q(rng, size=5), rng.normal(size=(5, 7))
    target = arm.forward_kinematics(arm.random_q(rng, size=5), "link7")
    options: dict[str, Any] = {
        "rows": np.eye(6)[:5], "force_rows": np.eye(6)[5:], "axes": "body",
        "damping": 1e-3, "posture": arm.neutral(),
    }  # fmt: skip
    given: dict[str, Any] = {
        "force": rng.normal(size=6), "f_ext": {"link4": rng.normal(size=(5, 6))}, "report": True,
        "status": True,
    }  # fmt: skip
    plain, parts = (
        OperationalSpace(arm, "link7", method=m, **options)(q, qd, target, **given)
        for m in ("crba", "recursive")
    )
    cond = np.linalg.cond(arm.operational_inertia_inverse(q, "link7")).max()
    scale = 1e3 * EPS * cond * np.abs(plain[0]).max()
    np.testing.assert_allclose(parts[0], plain[0], rtol=0, atol=scale)
    for a, b in zip(parts[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e3 * EPS * cond * max(1.0, np.abs(b).max()))
    assert not parts[2].any() and parts[2].shape == (5,)


def test_known_wrenches_are_made_up_for() -> None:
    """v̇ = u under wrenches that the law is told of, whatever the posture is made of."""
    arm, rng = lw.load("iiwa14"), np.random.default_rng(3)
    q, qd = arm.random_q(rng, size=8), rng.normal(size=(8, 7))
    target = arm.forward_kinematics(q, "link7")
    pushes = {"link6": rng.normal(size=6) * 20.0, "link3": rng.normal(size=(8, 6)) * 20.0}
    u = -20.0 * np.einsum("...ij,...j->...i", arm.jacobian(q, "link7"), qd)
    cond = np.linalg.cond(arm.operational_inertia_inverse(q, "link7"))
    law = OperationalSpace(arm, "link7", posture=arm.neutral())
    tau = law(q, qd, target, f_ext=pushes)
    found = arm.tip_acceleration(q, qd, tau, "link7", f_ext=pushes)
    assert (np.abs(found - u).max(-1) <= 1e3 * EPS * cond * np.abs(tau).max(-1)).all()
    alone = law(q, qd, target)
    qdd, unpushed = (
        arm.forward_dynamics(q, qd, tau, f_ext=pushes),
        arm.forward_dynamics(q, qd, alone),
    )
    bound = 1e3 * EPS * np.linalg.cond(arm.mass_matrix(q)) * np.abs(unpushed).max(-1)
    assert (np.abs(qdd - unpushed).max(-1) <= bound).all(), "the posture too"
    unaware = arm.tip_acceleration(q, qd, alone, "link7", f_ext=pushes)
    assert np.abs(unaware - u).max() > 1.0
    same = law.law(target, f_ext=pushes)(0.0, q, qd)
    np.testing.assert_allclose(same, tau, rtol=0, atol=1e-12 * np.abs(tau).max())


def test_laws_of_large_robots_are_those_of_small_ones() -> None:
    """Laws by calls and laws in kernels: the same torques, and the same motion."""
    small = lw.chain(5, "random").with_codegen("unrolled")
    loops = small.with_codegen("rolled")
    rng = np.random.default_rng(4)
    q, qd = 0.3 * rng.normal(size=(2, 5)), rng.normal(size=(2, 5))

    def law(robot: lw.Robot) -> Any:
        steps = lw.control.PerStep(np.linspace(0.0, 0.1, 30)[:, None] * np.ones(5))
        return (
            lw.control.computed_torque(robot, 20.0, 3.0)
            + lw.control.pd(robot, 0.1, 0.1, target=steps)
            + lw.control.gravity_compensation(robot)
            + lw.control.constant(robot, 0.1)
            + OperationalSpace(robot, "tip", rows="position").law(np.array([0.3, 0.1, 0.2]))
        )

    one, other = law(small)(0.0, q, qd, step=4), law(loops)(0.0, q, qd, step=4)
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-9 * np.abs(one).max())
    a, b = (
        lw.simulate(r, q, qd, controller=law(r), duration=0.02, dt=1e-3, hold=False)
        for r in (small, loops)
    )
    np.testing.assert_allclose(b.q, a.q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(b.tau, a.tau, rtol=0, atol=1e-5 * np.abs(a.tau).max())


def test_a_long_law_is_pickled_and_says_what_it_cannot() -> None:
    robot = lw.chain(60)
    law = OperationalSpace(robot, "tip", rows="position")
    assert law.plan.method == "recursive"
    assert pickle.loads(pickle.dumps(law)).plan.method == "recursive"
    with pytest.raises(ValueError, match=r"method is 'aba'; expected one of 'auto', 'crba', 'rec"):
        OperationalSpace(robot, "tip", method="aba")
    with pytest.raises(ValueError, match=r"method 'scan', frame 'link3': the frame is not on the l"
                       r"ast link.*; expected one of 'crba', 'recursive', 'schur'"):  # fmt: skip
        OperationalSpace(robot, "link3", rows=[0, 0, 0, 1, 0, 0], method="scan")
    names = list(robot.joint_names[:1])
    with pytest.raises(ValueError, match=r"'recursive' \(which is taken because the robot has 60 l"
                       r"inks\), frame 'tip': joints without a motor"):  # fmt: skip
        OperationalSpace(robot, "tip", rows="position", passive=names)
