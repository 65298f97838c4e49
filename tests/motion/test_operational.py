"""Operational-space control as a controller: what the frame does under its torques."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mpmath
import numpy as np
import pytest
from arms import iiwa14

import linkwise as lw
import linkwise.spatial.precise  # mpmath numbers as scalars
from linkwise.algorithms.crba import crba
from linkwise.algorithms.kinematics import jacobian, jacobian_dot_qd
from linkwise.algorithms.rnea import bias
from linkwise.algorithms.softening import damped
from linkwise.control import OperationalSpace, PerStep
from linkwise.motion.laws import PD, law_torques
from linkwise.motion.operational import follow

FRAME = "link7"
EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def iiwa() -> lw.Robot:
    return iiwa14()


@pytest.fixture(scope="module")
def osc(iiwa: lw.Robot) -> OperationalSpace:
    """The law that most tests ask, compiled once."""
    return OperationalSpace(iiwa, FRAME, posture=iiwa.neutral())


def states(robot: lw.Robot, size: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Configurations, rates, and poses of the tip to go to."""
    rng = np.random.default_rng(seed)
    q, goal = robot.random_q(rng, size=size), robot.random_q(rng, size=size)
    return q, rng.normal(size=(size, robot.nv)), robot.forward_kinematics(goal, FRAME)


def rotation_vector(R: Any) -> Any:
    """Of matrices (..., 3, 3), away from half a turn."""
    vee = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0],
                    R[..., 1, 0] - R[..., 0, 1]], -1) / 2  # fmt: skip
    sine = np.linalg.norm(vee, axis=-1, keepdims=True)
    cosine = (np.trace(R, axis1=-2, axis2=-1)[..., None] - 1) / 2
    return vee / sine * np.arctan2(sine, cosine)


def errors(robot: lw.Robot, q: Any, target: Any, frame: str = FRAME) -> Any:
    now = robot.forward_kinematics(q, frame)
    turn = rotation_vector(target[..., :3, :3] @ np.swapaxes(now[..., :3, :3], -1, -2))
    return np.concatenate([turn, target[..., :3, 3] - now[..., :3, 3]], -1)


def pulled(robot: lw.Robot, q: Any, qd: Any, target: Any, frame: str = FRAME) -> Any:
    """``kp e - kd J qd`` with the usual gains."""
    velocity = np.einsum("...ij,...j->...i", robot.jacobian(q, frame), qd)
    return 100.0 * errors(robot, q, target, frame) - 20.0 * velocity


def condition(robot: lw.Robot, q: Any, frame: str = FRAME) -> Any:
    """Of what is solved: the mass matrix, and then the rows' mobility."""
    return np.linalg.cond(robot.operational_inertia_inverse(q, frame))


# -- the frame does what it is told ---------------------------------------------------------------


def test_the_frame_accelerates_as_wanted(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """v̇ = u to rounding times condition, by forward dynamics and the Jacobian."""
    q, qd, target = states(iiwa, 200)
    given = np.random.default_rng(1).normal(size=(2, 200, 6))
    tau = osc(q, qd, target, *given)
    qdd = iiwa.forward_dynamics(q, qd, tau)
    found = np.einsum("...ij,...j->...i", iiwa.jacobian(q, FRAME), qdd)
    found += iiwa.jacobian_dot_qd(q, qd, FRAME)
    u = pulled(iiwa, q, qd, target) + 20.0 * given[0] + given[1]
    limit = 20 * EPS * condition(iiwa, q) * np.abs(u).max(-1)
    assert (np.abs(found - u).max(-1) <= limit).all()
    assert (np.abs(found - u).max(-1) <= 1e-6 * np.abs(u).max(-1)).all()


def test_posture_and_task_do_not_disturb_each_other(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """What the posture adds accelerates no row; and it is the projected torque, to rounding."""
    q, qd, target = states(iiwa, 100)
    bare = OperationalSpace(iiwa, FRAME)
    added = osc(q, qd, target) - bare(q, qd, target)
    J, M = iiwa.jacobian(q, FRAME), iiwa.mass_matrix(q)
    moved = np.linalg.solve(M, added[..., None])
    disturbed = np.abs(J @ moved).max((-2, -1))
    cond = condition(iiwa, q)
    assert (disturbed <= 1e3 * EPS * cond * np.abs(moved).max((-2, -1))).all()
    assert np.abs(added).max() > 10.0  # the posture does act
    tau = iiwa.inverse_dynamics(q, qd, 25.0 * (iiwa.neutral() - q) - 10.0 * qd)
    Minv = np.linalg.inv(M)
    N = np.eye(7) - np.swapaxes(J, -1, -2) @ np.linalg.inv(J @ Minv @ np.swapaxes(J, -1, -2)) @ (
        J @ Minv
    )
    expected = (N @ tau[..., None])[..., 0]
    scale = cond * np.abs(tau).max(-1) * np.linalg.cond(M)
    assert (np.abs(added - expected).max(-1) <= 10 * EPS * scale).all()


@pytest.mark.parametrize("axes", [pytest.param("base", marks=pytest.mark.full), "body"])
def test_any_rows_follow(iiwa: lw.Robot, axes: str) -> None:
    """Rows of any directions accelerate as wanted, in base axes or the frame's own."""
    rows = np.random.default_rng(3).normal(size=(4, 6))
    law = OperationalSpace(iiwa, FRAME, rows=rows, axes=axes, gains=(7.0, 3.0))
    q, qd, target = states(iiwa, 20)
    given = np.random.default_rng(1).normal(size=(2, 20, 6))
    tau = law(q, qd, target, *given)
    found = iiwa.tip_acceleration(q, qd, tau, FRAME)
    velocity = np.einsum("...ij,...j->...i", iiwa.jacobian(q, FRAME), qd)
    u = 7.0 * errors(iiwa, q, target) + 3.0 * (given[0] - velocity) + given[1]
    if axes == "body":
        R = iiwa.forward_kinematics(q, FRAME)[..., :3, :3]
        rows = rows @ np.block([[np.swapaxes(R, -1, -2), np.zeros_like(R)],
                                [np.zeros_like(R), np.swapaxes(R, -1, -2)]])  # fmt: skip
    off = np.einsum("...ij,...j->...i", rows, found - u)
    assert np.abs(off).max() <= 1e-10 * np.abs(u).max()


def test_rows_have_names(iiwa: lw.Robot) -> None:
    """Three ways to ask for the place only; a place is then target enough."""
    q, qd, target = states(iiwa, 3)
    ways = ["position", [False] * 3 + [True] * 3, np.eye(6)[3:]]
    laws = [OperationalSpace(iiwa, FRAME, rows=way) for way in ways]
    found = [law(q, qd, target) for law in laws]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(laws[0](q, qd, target[..., :3, 3]), found[0])
    one = laws[0](q[0], qd[0], target[0, :3, 3])
    np.testing.assert_array_equal(one, found[0][0])


def test_forces_in_some_directions(iiwa: lw.Robot) -> None:
    """Against a wall that gives way to nothing, the frame presses as told and moves as told."""
    wall = np.eye(6)[[5]]
    law = OperationalSpace(iiwa, FRAME, rows=np.eye(6)[:5], force_rows=wall)
    q, qd, target = states(iiwa, 20)
    J = iiwa.jacobian(q, FRAME)
    qd = qd - np.einsum("...ji,...j->...i", wall @ J, np.linalg.solve(  # along the wall
        wall @ J @ np.swapaxes(wall @ J, -1, -2), (wall @ J @ qd[..., None]))[..., 0])  # fmt: skip
    press = np.zeros(6)
    press[5] = -30.0  # on the wall below
    tau = law(q, qd, target, force=press)
    # what the wall gives back, so that the frame does not move into it: a dense solve
    M, b = iiwa.mass_matrix(q), iiwa.bias(q, qd)
    drift = iiwa.jacobian_dot_qd(q, qd, FRAME)
    rows, lines = wall @ J, np.zeros((20, 1, 1))
    KKT = np.block([[M, -np.swapaxes(rows, -1, -2)], [rows, lines]])
    rhs = np.concatenate([tau - b, -drift[:, 5:]], -1)
    found = np.linalg.solve(KKT, rhs[..., None])[..., 0]
    np.testing.assert_allclose(found[:, 7], 30.0, rtol=1e-7)
    acceleration = np.einsum("...ij,...j->...i", J, found[:, :7]) + drift
    u = pulled(iiwa, q, qd, target)
    np.testing.assert_allclose(acceleration[:, :5], u[:, :5], rtol=1e-7, atol=1e-6)


def test_half_a_turn_away_is_not_there(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """The error of a target turned by exactly half a turn is half a turn, in some direction."""
    q = 0.3 + iiwa.neutral()
    target = iiwa.forward_kinematics(q, FRAME)
    target[:3, :3] = target[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    _, report = osc(q, np.zeros(7), target, report=True)
    assert np.linalg.norm(report.error[:3]) == pytest.approx(np.pi, rel=1e-12)


# -- against dense formulas, in more digits -------------------------------------------------------


def dense(plan: Any, tree: Any, q: Any, v: Any, numbers: Any) -> Any:
    """The law by textbook algebra with inverses, in 40 digits, for joints with and without
    motors: torques that have the least ``τᵀ M_r⁻¹ τ`` of those with the wanted acceleration.
    """
    mp, frame = mpmath.matrix, plan.frame
    velocity, acceleration, kp, kd, tau, e = numbers
    M, J = mp(crba(tree, q)), mp(jacobian(tree, q, frame=frame))
    b, drift = mp(bias(tree, q, v)), mp(jacobian_dot_qd(tree, q, v, frame=frame))
    rate = J * mp(v)
    u = mp([acceleration[k] + kp[k] * e[k] + kd[k] * (velocity[k] - rate[k]) for k in range(6)])
    K = mp([list(row) for row in plan.rows])
    J, wanted, n = K * J, K * (u - drift), len(v)
    motors = [k for k in range(n) if k not in plan.passive]
    S = mp(len(motors), n)
    for i, k in enumerate(motors):
        S[i, k] = 1
    Minv = M**-1
    A, Mr = J * Minv * S.T, (S * Minv * S.T) ** -1
    Jg = A * Mr
    Lambda = (Jg * Mr**-1 * Jg.T) ** -1
    own = S * mp(tau)
    F = Lambda * (wanted + J * Minv * (b - S.T * own))
    return S.T * (own + Jg.T * F)


@pytest.mark.parametrize(
    "case", [0, 1, 2, *(pytest.param(k, marks=pytest.mark.full) for k in (3, 4, 5))]
)
def test_random_robots_with_every_kind_of_joint(
    case: int, random_robot: Any, all_kinds: Sequence[str]
) -> None:
    """40 digits give the dense formula's result to 30; floats give it to rounding times the
    condition of what they solve.
    """
    rng, found = np.random.default_rng(40 + case), None
    while found is None or np.isnan(found.torques).any():  # until motors can move the frame so
        made = random_robot(rng, 6, kinds=all_kinds, chain=case % 2 == 0, mimic=case in (1, 4),
                            base="free" if case in (2, 5) else "fixed")  # fmt: skip
        robot = lw.Robot(made)
        posture = lw.control.pd(robot, 9.0, 2.0)
        rows = rng.normal(size=(1 + case % 3, 6))
        try:
            law = OperationalSpace(robot, "l5", rows=rows, posture=posture)
        except ValueError:
            continue  # too few joints move the frame
        plan, tree = law.plan, robot.tree
        q, v = robot.random_q(rng), rng.normal(size=robot.nv)
        goal = robot.forward_kinematics(robot.random_q(rng), "l5")
        given = [goal.ravel(), *rng.normal(size=(2, 6)), *(x.values for x in law._settled)]
        found = follow(plan, tree, [list(x) for x in given], list(q), list(v))
    np.testing.assert_allclose(found.error, errors(robot, q, goal, "l5"), rtol=0, atol=1e-13)
    mpmath.mp.dps = 40
    exact = [[mpmath.mpf(float(x)) for x in y] for y in (*given, q, v)]
    more = tree.with_constants_like(mpmath.mpf(1))
    precise = follow(plan, more, exact[:-2], *exact[-2:])
    tau = law_torques((PD,), more, exact[5:-2], *exact[-2:])
    expected = dense(plan, more, *exact[-2:], [*exact[1:5], tau, precise.error])
    size = max(abs(x) for x in expected)
    off = [abs(a - b) for a, b in zip(precise.torques, expected, strict=True)]
    assert max(off) < 1e-30 * size
    J = np.array(plan.rows) @ robot.jacobian(q, "l5")
    M = robot.mass_matrix(q)
    cond = np.linalg.cond(M) * np.linalg.cond(J @ np.linalg.solve(M, J.T))
    lost = np.abs(np.array(found.torques) - np.array([float(x) for x in expected])).max()
    assert lost <= 50 * EPS * cond * float(size)
    assert all(found.torques[k] == 0.0 for k in plan.passive)


# -- near singular poses --------------------------------------------------------------------------


def stretched(iiwa: lw.Robot) -> Any:
    """The arm straight up: no force along its length moves the tip."""
    return np.zeros(iiwa.nq)


def test_a_singular_pose_is_nan_and_flagged_and_alone(
    iiwa: lw.Robot, osc: OperationalSpace
) -> None:
    q, qd, target = states(iiwa, 9)
    alone = osc(q, qd, target)
    q[4] = stretched(iiwa)
    tau, bits = osc(q, qd, target, status=True)
    assert np.isnan(tau[4]).all() and bits[4] == lw.Status.SINGULAR
    others = np.arange(9) != 4
    np.testing.assert_array_equal(tau[others], alone[others])
    assert not bits[others].any()
    one, bit = osc(q[4], qd[4], target[4], status=True)
    assert np.isnan(one).all() and bit == lw.Status.SINGULAR


def test_damping_acts_only_near_singular_poses(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """Where none is reported the torques are those without; at the pose all of it acts."""
    soft_law = OperationalSpace(iiwa, FRAME, posture=iiwa.neutral(), damping=1e-3)
    q, qd, target = states(iiwa, 200)
    q[0] = stretched(iiwa)
    tau, report, bits = soft_law(q, qd, target, report=True, status=True)
    assert np.isfinite(tau).all() and not bits.any()
    assert report.damping[0] == pytest.approx(1.0, abs=1e-5)
    free = report.damping == 0.0
    assert 20 < free.sum() < 200
    np.testing.assert_allclose(tau[free], osc(q, qd, target)[free], rtol=1e-9, atol=1e-9)
    # elsewhere: the law with the damping that is reported
    k = int(np.argmax((report.damping > 0.01) & (report.damping < 0.5)))
    J, M = iiwa.jacobian(q[k], FRAME), iiwa.mass_matrix(q[k])
    a = 25.0 * (iiwa.neutral() - q[k]) - 10.0 * qd[k]
    soft = J @ np.linalg.solve(M, J.T) + 1e-3 * report.damping[k] * np.eye(6)
    u = pulled(iiwa, q[k], qd[k], target[k]) - iiwa.jacobian_dot_qd(q[k], qd[k], FRAME)
    F = np.linalg.solve(soft, u - J @ a)
    np.testing.assert_allclose(report.wrench[k], F, rtol=1e-7, atol=1e-7 * np.abs(F).max())
    expected = iiwa.inverse_dynamics(q[k], qd[k], a) + J.T @ F
    np.testing.assert_allclose(tau[k], expected, rtol=1e-7, atol=1e-7)


def test_how_much_damping_acts() -> None:
    """``(1 - s)²``, s the least ratio of a pivot to its damping; all where a pivot vanishes, the
    first one too, after which the others mean nothing.
    """
    L = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-2.0, 0.3, 1.0]])
    d = [0.1, 0.2, 0.4]
    for pivots, s in (([0.3, 0.05, 7.0], 0.25), ([1.0, 0.2, 0.4], 1.0), ([0.0, 3.0, 3.0], 0.0)):
        inverse = L @ np.diag(pivots) @ L.T
        (factor, inv_d), part = damped(inverse.tolist(), d)
        assert part == pytest.approx((1.0 - s) ** 2, abs=1e-12)
        made = np.array(factor) @ np.diag(1.0 / np.array(inv_d)) @ np.array(factor).T
        np.testing.assert_allclose(made, inverse + part * np.diag(d), atol=1e-12)


def test_damping_and_wrenches_are_those_of_the_rows(iiwa: lw.Robot) -> None:
    """Of rows K it is the diagonal of ``K diag(d) Kᵀ``; a report's wrench is in base axes."""
    rows = np.random.default_rng(9).normal(size=(2, 6))
    d = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    law = OperationalSpace(iiwa, FRAME, rows=rows, damping=d, axes="body")
    numbers = [x.values for x in law._settled]
    np.testing.assert_allclose(numbers[2], np.diag(rows @ np.diag(d) @ rows.T), rtol=1e-14)
    q, qd, target = (x[0] for x in states(iiwa, 1))
    given = [list(x) for x in (target.ravel(), np.zeros(6), np.zeros(6), *numbers)]
    found = follow(law.plan, iiwa.tree, given, list(q), list(qd))
    pulled_ = iiwa.jacobian(q, FRAME).T @ np.array(found.wrench)
    np.testing.assert_allclose(found.torques, pulled_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("damping", [0.02, pytest.param(None, marks=pytest.mark.full)])
def test_a_path_through_a_near_singular_pose(iiwa: lw.Robot, damping: float | None) -> None:
    """The tip goes up until the arm is all but straight, and comes back: it stays close, no
    torque is large, and the damping that made this possible is told. Without it the motion fails.
    """
    q = np.array([0.0, 0.4, 0.0, -0.8, 0.0, 0.4, 0.0])
    start = iiwa.forward_kinematics(q, FRAME)
    top = iiwa.forward_kinematics(np.zeros(7), FRAME)
    dt, steps = 1e-3, 4000
    turns = 2 * np.pi * np.arange(steps) / steps
    way, pace = (top - start)[:3, 3], 2 * np.pi / (steps * dt)
    path = np.broadcast_to(start, (steps, 4, 4)).copy()
    path[:, :3, 3] += (0.5 - 0.5 * np.cos(turns))[:, None] * way
    rates = np.zeros((2, steps, 6))
    rates[0, :, 3:] = 0.5 * pace * np.sin(turns)[:, None] * way
    rates[1, :, 3:] = 0.5 * pace**2 * np.cos(turns)[:, None] * way
    law = OperationalSpace(iiwa, FRAME, rows="position", posture=q, damping=damping)
    follows = law.law(*map(PerStep, (path, *rates)))
    if damping is None:
        with pytest.warns(RuntimeWarning, match="1 of 1 rows failed"):
            lw.simulate(iiwa, q, controller=follows, duration=steps * dt, dt=dt)
        return
    run = lw.simulate(iiwa, q, controller=follows, duration=steps * dt, dt=dt)
    assert run.status == 0
    tip = iiwa.forward_kinematics(run.q[:-1], FRAME)[:, :3, 3]
    off = np.linalg.norm(tip - path[:, :3, 3], axis=-1)
    tau, report = law(run.q[:-1], run.qd[:-1], path, *rates, report=True)
    assert 0.2 < report.damping.max() < 0.5 and (report.damping == 0.0).mean() > 0.8
    assert off.max() < 0.01 and off[-1] < 1e-3
    assert np.abs(tau).max() < 60.0


# -- one kernel, many ways to call it -------------------------------------------------------------


def test_one_state_many_states_and_threads_give_the_same_bits(
    iiwa: lw.Robot, osc: OperationalSpace
) -> None:
    q, qd, target = states(iiwa, 300)
    tau = osc(q, qd, target)
    np.testing.assert_array_equal(tau, osc(q, qd, target, threads=2))
    for k in (0, 7, 299):
        np.testing.assert_array_equal(osc(q[k], qd[k], target[k]), tau[k])
    np.testing.assert_array_equal(osc(q, qd, target[3])[3], tau[3])  # one target for all
    out = np.empty_like(tau)
    assert osc(q, qd, target, out=out) is out
    np.testing.assert_array_equal(out, tau)
    strided = np.repeat(target, 2, axis=0)[::2]
    np.testing.assert_array_equal(osc(q, qd, strided), tau)
    np.testing.assert_array_equal(osc(q[0].tolist(), list(qd[0]), target[0].tolist()), tau[0])
    boxed = (x.reshape(3, 100, *x.shape[1:]) for x in (q, qd, target))
    np.testing.assert_array_equal(osc(*boxed).reshape(300, 7), tau)


def test_threads_may_share_a_law(iiwa: lw.Robot) -> None:
    """A law that is new to all of them, asked for one state and for many."""
    law = OperationalSpace(iiwa, FRAME, posture=iiwa.neutral())
    q, qd, target = states(iiwa, 64)
    expected = OperationalSpace(iiwa, FRAME, posture=iiwa.neutral())(q, qd, target)

    def ask(_: int) -> bool:
        alone = (np.array_equal(law(*x), y) for *x, y in zip(q, qd, target, expected, strict=True))
        return all(alone) and np.array_equal(law(q, qd, target), expected)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(40)))


def test_float32_stays_float32(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    q, qd, target = states(iiwa, 50)
    tau = osc(q, qd, target)
    narrow = osc(*(x.astype(np.float32) for x in (q, qd, target)))
    assert narrow.dtype == np.float32
    off, cond = np.abs(narrow - tau).max(-1) / np.abs(tau).max(-1), condition(iiwa, q)
    assert (off <= np.finfo(np.float32).eps * cond)[cond < 1e6].all()
    assert np.nanmedian(off) < 1e-5


def test_gains_can_differ_from_state_to_state(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """Gains are inputs: other gains compile nothing, and a batch may have one each."""
    q, qd, target = states(iiwa, 4)
    kp = np.full((4, 6), 100.0)
    kp[1:] = 50.0
    law = OperationalSpace(iiwa, FRAME, gains=(kp, 20.0), posture=iiwa.neutral())
    tau = law(q, qd, target)
    np.testing.assert_array_equal(tau[0], osc(q[0], qd[0], target[0]))
    assert not np.array_equal(tau[1], osc(q[1], qd[1], target[1]))
    rising = PerStep(np.linspace(0.0, 100.0, 30)[:, None] * np.ones(6))
    law = OperationalSpace(iiwa, FRAME, gains=(rising, 20.0), posture=iiwa.neutral())
    at = iiwa.forward_kinematics(0.3 + iiwa.neutral(), FRAME)
    run = lw.simulate(iiwa, 0.2 + iiwa.neutral(), controller=law.law(at), duration=0.03, every=10)
    assert run.ok and (run.tau[0] != run.tau[1]).all()
    np.testing.assert_allclose(run.tau[3], osc(run.q[3], run.qd[3], at), rtol=1e-9)


def test_a_bad_target_is_flagged(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    q, qd, target = states(iiwa, 4)
    target[1, :3, :3] *= 1.01
    target[2, 0, 0] = np.nan
    tau, bits = osc(q, qd, target, status=True)
    assert bits.tolist() == [0, lw.Status.NOT_UNIT, lw.Status.NOT_FINITE, 0]
    assert np.isnan(tau[2]).all() and np.isfinite(tau[[0, 1, 3]]).all()


@pytest.mark.full
@pytest.mark.parametrize("axes", ["base", "body"])
def test_the_wrench_of_a_report_is_what_the_torques_stand_for(iiwa: lw.Robot, axes: str) -> None:
    """Without a posture ``tau = Jᵀ F``, with J in base axes, whatever rows and axes of the law."""
    rows = np.random.default_rng(6).normal(size=(5, 6))
    law = OperationalSpace(iiwa, FRAME, rows=rows[:3], force_rows=rows[3:], axes=axes)
    q, qd, target = states(iiwa, 10)
    tau, report = law(q, qd, target, force=[1.0, 2.0, 3.0, 40.0, 50.0, 60.0], report=True)
    expected = np.einsum("...ji,...j->...i", iiwa.jacobian(q, FRAME), report.wrench)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-9 * np.abs(tau).max())
    np.testing.assert_allclose(report.error, errors(iiwa, q, target), rtol=0, atol=1e-12)
    # what the force adds: its part along the rows of force, in their axes
    more, _ = law(q, qd, target, force=np.zeros(6), report=True)
    R, K = iiwa.forward_kinematics(q, FRAME)[:, :3, :3], rows[3:]
    turn = np.zeros((10, 6, 6))
    turn[:, :3, :3] = turn[:, 3:, 3:] = np.eye(3) if axes == "base" else R
    along = turn @ (K.T @ np.linalg.solve(K @ K.T, K)) @ np.swapaxes(turn, -1, -2)
    push = along @ np.array([1.0, 2.0, 3.0, 40.0, 50.0, 60.0])
    expected = np.einsum("...ji,...j->...i", iiwa.jacobian(q, FRAME), push)
    np.testing.assert_allclose(tau - more, expected, rtol=0, atol=1e-9 * np.abs(tau).max())


@pytest.mark.full
def test_an_impedance_in_some_rows(iiwa: lw.Robot) -> None:
    """Springs pull along its rows only; the rest of the arm is as free as it was."""
    K = np.random.default_rng(7).normal(size=(2, 6))
    law = lw.control.impedance(iiwa, FRAME, 300.0, 30.0, rows=K)
    q, qd, target = states(iiwa, 10)
    velocity = np.einsum("...ij,...j->...i", iiwa.jacobian(q, FRAME), qd)
    pull = 300.0 * errors(iiwa, q, target) - 30.0 * velocity
    found = iiwa.tip_acceleration(q, qd, law(q, qd, target), FRAME) @ K.T
    soft = K @ iiwa.operational_inertia_inverse(q, FRAME) @ K.T
    expected = np.einsum("...ij,...j->...i", soft @ np.linalg.solve(K @ K.T, K), pull)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


# -- in simulations -------------------------------------------------------------------------------


def test_a_law_is_compiled_into_the_simulation(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    """As the same law asked in Python once per step; numbers per step, added to another law."""
    steps, dt = 40, 2e-3
    q = np.stack([0.3 + iiwa.neutral(), 0.5 * np.cos(np.arange(7.0))])
    start = iiwa.forward_kinematics(q, FRAME)
    path = np.repeat(start[:, None], steps, 1)
    path[..., 0, 3] += 0.02 * np.arange(steps) / steps
    brake = lw.control.pd(iiwa, 0.0, 0.1)
    law = osc.law(PerStep(path), target_acceleration=np.array([0, 0, 0, 0.2, 0, 0])) + brake
    inside = lw.simulate(iiwa, q, controller=law, duration=steps * dt, dt=dt)

    def controller(t: float, q: Any, qd: Any) -> Any:
        k = round(t / dt)
        return osc(q, qd, path[:, k], None, [0, 0, 0, 0.2, 0, 0]) + brake(t, q, qd)

    outside = lw.simulate(iiwa, q, controller=controller, duration=steps * dt, dt=dt)
    np.testing.assert_allclose(inside.q, outside.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(inside.tau[:, :-1], outside.tau[:, :-1], rtol=0, atol=1e-8)
    assert "operational space + pd" in repr(law)


@pytest.mark.full
@pytest.mark.parametrize("integrator", ["rk4", "implicit", "midpoint", "DOP853"])
def test_every_integrator_takes_the_law(
    iiwa: lw.Robot, osc: OperationalSpace, integrator: str
) -> None:
    """Asked at every stage, it leads to the same motion as RK4's with small steps."""
    q = 0.3 + iiwa.neutral()
    target = iiwa.forward_kinematics(0.35 + iiwa.neutral(), FRAME)
    law, run = osc.law(target), {"duration": 0.1, "hold": False}
    fine = lw.simulate(iiwa, q, controller=law, dt=1e-3, **run)  # type: ignore[arg-type]
    found = lw.simulate(iiwa, q, controller=law, dt=5e-3, integrator=integrator, **run)  # type: ignore[arg-type]
    off = np.abs(found.q[-1] - fine.q[-1]).max()
    assert off <= {"rk4": 1e-6, "implicit": 1e-2, "midpoint": 1e-4, "DOP853": 1e-6}[integrator]


def test_a_simulation_that_becomes_singular_says_so(iiwa: lw.Robot, osc: OperationalSpace) -> None:
    target = iiwa.forward_kinematics(0.3 + iiwa.neutral(), FRAME)
    q = np.stack([0.3 + iiwa.neutral(), stretched(iiwa)])
    with pytest.warns(RuntimeWarning, match="SINGULAR"):
        run = lw.simulate(iiwa, q, controller=osc.law(target), duration=0.01, dt=1e-3)
    assert run.status.tolist() == [0, lw.Status.SINGULAR]
    assert np.isfinite(run.q[0]).all() and np.isnan(run.q[1, 1:]).all()


# -- impedance ------------------------------------------------------------------------------------


def test_an_impedance_yields_as_springs_and_dampers(iiwa: lw.Robot) -> None:
    """Under a wrench from outside: with the arm's own inertia, and with a wanted one."""
    K, D = np.array([50.0] * 3 + [400.0] * 3), np.array([8.0] * 3 + [40.0] * 3)
    q, qd, target = states(iiwa, 10)
    wrench = np.random.default_rng(5).normal(size=(10, 6)) * [2, 2, 2, 20, 20, 20]
    velocity = np.einsum("...ij,...j->...i", iiwa.jacobian(q, FRAME), qd)
    pull = K * errors(iiwa, q, target) - D * velocity
    soft = iiwa.operational_inertia_inverse(q, FRAME)
    law = lw.control.impedance(iiwa, FRAME, K, D)
    tau = law(q, qd, target)
    found = iiwa.tip_acceleration(q, qd, tau, FRAME, f_ext={FRAME: wrench})
    expected = np.einsum("...ij,...j->...i", soft, pull + wrench)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    H = np.diag([0.5, 0.5, 0.4, 6.0, 5.0, 5.0])
    shaped = lw.control.impedance(iiwa, FRAME, K, D, inertia=H)
    tau = shaped(q, qd, target, force=wrench)
    found = iiwa.tip_acceleration(q, qd, tau, FRAME, f_ext={FRAME: wrench})
    expected = np.linalg.solve(H, (pull + wrench)[..., None])[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(shaped(q, qd, target), shaped(q, qd, target, force=0 * wrench))
    assert repr(shaped) == "<impedance for 'iiwa14': 6 rows of 'link7'>"


def test_laws_are_pickled_and_copied(iiwa, osc):
    q, qd, target = states(iiwa, 3)
    law = osc.law(target) + lw.control.pd(iiwa, 0.0, 0.1)
    for other in (pickle.loads(pickle.dumps(osc)), copy.deepcopy(osc)):
        assert np.array_equal(other(q, qd, target), osc(q, qd, target))
    again = pickle.loads(pickle.dumps(law))
    assert np.array_equal(again(0.0, q, qd), law(0.0, q, qd))
