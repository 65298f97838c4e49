"""What each integrator is for: long motions, stiff damping, controllers asked at every stage."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arms import iiwa14

import linkwise as lw
from linkwise.algorithms.implicit import CREEP
from linkwise.algorithms.momentum import lagrangian, pulled, pushed

# -- derivatives of the Lagrangian ----------------------------------------------------------------


def test_derivatives_of_the_lagrangian(kinds: lw.Robot) -> None:
    """The momentum is M qd; the force is how L changes along each joint, by differences."""
    rng = np.random.default_rng(0)
    q, qd = kinds.random_q(rng), rng.normal(size=kinds.nv)
    momentum, force = (np.array(x, float) for x in lagrangian(kinds.tree, list(q), list(qd)))
    np.testing.assert_allclose(momentum, kinds.mass_matrix(q) @ qd, atol=1e-12)

    def L(step: Any) -> float:
        at = kinds.integrate(q, step)
        return float(kinds.kinetic_energy(at, qd) - kinds.potential_energy(at))

    along = 1e-5 * np.eye(kinds.nv)
    expected = [(L(e) - L(-e)) / 2e-5 for e in along]
    np.testing.assert_allclose(force, expected, atol=1e-7)


def test_momenta_along_a_chart(kinds: lw.Robot) -> None:
    """``p · dexp`` is the power of p where the chart changes, by differences; pulled undoes it."""
    rng = np.random.default_rng(1)
    u, e, p = 0.05 * rng.normal(size=kinds.nv), *rng.normal(size=(2, kinds.nv))
    q, h = kinds.random_q(rng), 1e-5
    at = kinds.integrate(q, u)
    ends = [kinds.difference(at, kinds.integrate(q, u + k * h * e)) for k in (1, -1)]
    rates = (ends[0] - ends[1]) / (2 * h)
    power = np.array(pushed(kinds.tree, list(-u), list(p))) @ e
    assert power == pytest.approx(p @ rates, rel=1e-8)
    back = pulled(kinds.tree, list(u), pushed(kinds.tree, list(u), list(p)))
    np.testing.assert_allclose(np.array(back, float), p, atol=1e-13)


# -- long motions ---------------------------------------------------------------------------------


def test_the_energy_of_a_million_variational_steps_has_no_trend(puma: lw.Robot) -> None:
    """The greatest error of the last 10⁵ steps is at most twice that of the first 10⁵."""
    found = lw.simulate(puma, puma.neutral(), duration=1000.0, integrator="midpoint", every=10)
    assert found.status == 0
    energy = found.energy
    error = np.abs(energy.total - energy.total[0])
    assert error[-10_000:].max() <= 2.0 * error[:10_001].max()
    assert error.max() <= 1e-5 * energy.kinetic.max()


def test_the_variational_method_conserves_momenta(kinds: lw.Robot) -> None:
    """Of a free-flying tree without gravity, about the world's origin, to rounding times steps."""
    robot = kinds.with_gravity([0.0, 0.0, 0.0])
    rng = np.random.default_rng(2)
    q, qd = robot.random_q(rng), rng.normal(size=robot.nv)
    found = lw.simulate(robot, q, qd, duration=1.0, dt=1e-3, integrator="midpoint", every=100)
    assert found.status == 0

    def momentum(q: Any, qd: Any) -> Any:
        """What the base's joint carries, taken from its own axes to those of the world."""
        own = (robot.mass_matrix(q) @ qd)[:6]
        R, r = _rotation(q[:4]), q[4:7]
        force = R @ own[3:]
        return np.concatenate([R @ own[:3] + np.cross(r, force), force])

    all_ = np.array([momentum(*state) for state in zip(found.q, found.qd, strict=True)])
    assert np.abs(all_ - all_[0]).max() <= 1000 * 1e-14 * np.abs(all_[0]).max()


def _rotation(q: Any) -> Any:
    w, v = q[0], q[1:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def test_steps_too_long_for_the_iteration_are_flagged() -> None:
    """Wrists at hundreds of rad/s and steps of 10 ms: told, not hidden."""
    robot = iiwa14()
    qd = np.array([0, 0, 0, 0, 200.0, 100.0, 300.0])
    with pytest.warns(
        RuntimeWarning, match=r"1 of 1 rows failed, .*NOT_CONVERGED; .* a smaller dt"
    ):
        found = lw.simulate(robot, robot.neutral() + 0.3, qd, duration=0.1, dt=1e-2,
                            integrator="midpoint")  # fmt: skip
    assert lw.Status(int(found.status)) & lw.Status.NOT_CONVERGED


# -- stiff damping and friction -------------------------------------------------------------------


def test_damping_that_explicit_methods_cannot_take(new_pendulum: Callable[..., lw.Robot]) -> None:
    """Damping of 1e4: the rod creeps down at g/d, with steps of ten thousand times 2 M/d."""
    robot = new_pendulum(damping=1e4)
    q, dt = np.array([0.3]), 0.01
    for name in ("euler", "rk4"):
        with pytest.warns(RuntimeWarning, match="OVERFLOW; .* or integrator='implicit' for stiff"):
            assert not lw.simulate(robot, q, duration=3.0, dt=dt, integrator=name).ok
    found = lw.simulate(robot, q, duration=3.0, dt=dt, integrator="implicit")
    expected = -robot.gravity_torque(found.q) / 1e4
    np.testing.assert_allclose(found.qd[5:], expected[5:], rtol=1e-3)


def test_a_small_step_is_the_same_with_either_method(puma: lw.Robot) -> None:
    """Without damping it is semi-implicit Euler; with it, both come to the same motion."""
    q = puma.random_q(seed=1)
    plain = [lw.simulate(puma, q, duration=0.1, integrator=x).q for x in ("euler", "implicit")]
    np.testing.assert_allclose(*plain, rtol=0, atol=1e-11)
    damped = puma.with_friction()
    for joint in damped.joint_names:
        damped = damped.with_joint(joint, damping=5.0, friction=0.0)
    ends = [lw.simulate(damped, q, duration=0.1, dt=1e-5, integrator=x, every=None).q
            for x in ("rk4", "implicit")]  # fmt: skip
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-5)


def test_friction_brings_a_joint_to_rest_and_holds_it(
    new_pendulum: Callable[..., lw.Robot],
) -> None:
    """Slowed by f, m and gravity as Coulomb says, then held: below the rate of creep, for good."""
    robot = new_pendulum(friction=8.0).with_gravity([0.0, 0.0, 0.0])
    inertia = float(robot.mass_matrix(np.zeros(1))[0, 0])
    found = lw.simulate(robot, [0.0], [2.0], duration=0.2, dt=2e-5, integrator="implicit")
    stop = 2.0 * inertia / 8.0
    moving = found.t < 0.95 * stop
    expected = 2.0 - 8.0 / inertia * found.t[moving]
    np.testing.assert_allclose(found.qd[moving, 0], expected, atol=2e-3)
    assert found.q[-1, 0] == pytest.approx(2.0 * stop / 2, rel=5e-3)
    held = new_pendulum(friction=8.0)  # the weight asks for 4.9 N m at most
    found = lw.simulate(held, [0.2], duration=2.0, dt=1e-3, integrator="implicit")
    assert np.abs(found.qd).max() <= CREEP
    assert np.abs(found.q - 0.2).max() <= 2.0 * CREEP


# -- controllers asked at every stage -------------------------------------------------------------


def test_a_function_asked_at_every_stage(puma: lw.Robot, rk4: Callable[..., Any]) -> None:
    """``hold=False``: the classical RK4 of the closed loop, time and all."""
    times = []

    def controller(t: float, q: Any, qd: Any) -> Any:
        times.append(t)
        return 20.0 * np.sin(9.0 * t) - 3.0 * qd

    q = puma.random_q(seed=0, size=2)
    found = lw.simulate(puma, q, None, controller, 0.05, hold=False)
    del times[: times.index(0.0)]
    assert times[:9] == pytest.approx([0, 0, 5e-4, 5e-4, 1e-3, 1e-3, 1e-3, 1.5e-3, 1.5e-3])
    expected = rk4(puma, q, np.zeros((2, 6)), 1e-3, 50, controller)
    np.testing.assert_allclose(found.q, expected[0].swapaxes(0, 1), atol=1e-12)
    np.testing.assert_allclose(found.qd, expected[1].swapaxes(0, 1), atol=1e-11)
    law = lw.control.pd(puma, 0.0, 3.0)
    compiled = lw.simulate(puma, q, None, law, 0.05, hold=False)
    python = lw.simulate(puma, q, None, lambda t, q, qd: -3.0 * qd, 0.05, hold=False)
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-12)


def test_turning_joints_step_by_step(kinds: lw.Robot) -> None:
    rng = np.random.default_rng(0)
    q, qd = kinds.random_q(rng, size=2), rng.normal(size=(2, kinds.nv))
    law = lw.control.pd(kinds, 0.0, 0.2)
    rate = 0.2 * kinds.actuated
    fused = lw.simulate(kinds, q, qd, law, 0.02, hold=False)
    steps = lw.simulate(kinds, q, qd, lambda t, q, qd: -rate * qd, 0.02, hold=False)
    np.testing.assert_allclose(steps.q, fused.q, atol=1e-11)


def test_robots_that_are_loops_over_their_links() -> None:
    """The same motion by loops, in Python's steps, and by code written out, in one kernel."""
    robot = lw.chain(12)
    loops = robot.with_codegen("rolled")
    q, tau = 0.1 * np.cos(np.arange(12.0)), np.linspace(0, 1, 12)
    law = lw.control.constant(robot, tau)
    expected = lw.simulate(robot, q, controller=law, duration=0.05)
    found = lw.simulate(loops, q, controller=lw.control.constant(loops, tau), duration=0.05)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-10)
    found = lw.simulate(loops, q, controller=lambda t, q, qd: tau, duration=0.05, every=7)
    np.testing.assert_allclose(found.q, expected.q[found.steps], atol=1e-10)
    bad = np.tile(q, (3, 1))
    bad[1, 3] = np.nan
    with pytest.warns(RuntimeWarning, match=r"1 of 3 rows failed, the first at step 1: NOT_FINITE"):
        found = lw.simulate(loops, bad, duration=0.01)
    assert found.status.tolist() == [0, lw.Status.NOT_FINITE, 0]


def test_a_row_of_loops_has_the_same_bits_alone_and_in_a_batch() -> None:
    """Alone it is asked as a state, not as a batch of one; with pushes, and torques of Python."""
    loops, rng = lw.chain(12).with_codegen("rolled"), np.random.default_rng(0)
    q, push = rng.normal(size=(3, 12)), rng.normal(size=(3, 6))
    run: Any = {"controller": lambda t, q, qd: -0.01 * qd, "duration": 0.02, "hold": False}
    many = lw.simulate(loops, q, f_ext={"link7": push}, **run)
    alone = lw.simulate(loops, q[1], f_ext={"link7": push[1]}, **run)
    np.testing.assert_array_equal(alone.q, many.q[1])
    np.testing.assert_array_equal(alone.qd, many.qd[1])
    small = lw.simulate(loops, q[1].astype(np.float32), f_ext={"link7": push[1]}, **run)
    assert small.q.dtype == np.float32
    np.testing.assert_allclose(small.q[-1], alone.q[-1], atol=1e-3)


def test_what_robots_that_are_loops_cannot() -> None:
    """Each refusal says all that works, and that a robot of few links can be written out."""
    loops = lw.chain(12).with_codegen("rolled")
    wrong: dict[str, dict[str, Any]] = {
        "integrator 'midpoint' is": {"integrator": "midpoint"},
        "integrator 'DOP853' is": {"integrator": "DOP853"},
        "device 'cuda' is": {"device": "cuda"},
    }
    works = (
        "for code written out link by link; expected integrator 'rk4' or 'euler', and "
        "device=None; or, of a robot of few links, robot.with_codegen('unrolled')"
    )
    for what, arguments in wrong.items():
        with pytest.raises(ValueError, match=re.escape(f"over them, and {what} {works}")):
            lw.simulate(loops, loops.neutral(), **arguments)
    lw.simulate(
        loops.with_codegen("unrolled"), loops.neutral(), duration=0.01, integrator="implicit"
    )


def test_what_cannot_be_asked_at_every_stage(puma: lw.Robot) -> None:
    run: Any = {"q0": puma.neutral(), "controller": lambda t, q, qd: -qd, "hold": False}
    with pytest.raises(ValueError, match="hold=False asks a function of Python at every stage, "
                       "which integrator 'midpoint' cannot; expected 'rk4'"):  # fmt: skip
        lw.simulate(puma, integrator="midpoint", **run)


@pytest.mark.parametrize("limits", ["stop", "event"])
def test_limits_are_the_same_for_every_stepper(puma: lw.Robot, limits: str) -> None:
    """Compiled steps, steps of Python, rolled code, and a solver of SciPy."""
    arm = puma
    for name in arm.joint_names:
        arm = arm.with_joint(name, limits=(-0.4, 0.4))
    q = np.array([[0.3, 0.0, -0.1, 0.0, 0.1, 0.0], [0.0, 0.1, 0.0, 0.2, -0.2, 0.3]])
    qd = np.array([[1.5, 0.2, 0.1, 0.0, 0.0, 0.1], [0.1, 0.0, 0.2, 0.0, 0.1, 1.5]])
    run: Any = {"duration": 0.3, "dt": 1e-3, "limits": limits, "integrator": "rk4"}
    weak = lw.control.pd(arm, 1.0, 0.1)

    def asked(t: float, q: Any, qd: Any) -> Any:
        return weak(t, q, qd)

    compiled = lw.simulate(arm, q, qd, weak, hold=False, **run)
    others = [
        lw.simulate(arm, q, qd, asked, hold=False, **run),
        lw.simulate(arm.with_codegen("rolled"), q, qd, weak, hold=False, **run),
        lw.simulate(arm, q, qd, weak, hold=False, **run | {"integrator": "DOP853"}),
    ]
    for found, near in zip(others, (1e-9, 1e-9, 2e-3), strict=True):
        assert found.failed_at.tolist() == compiled.failed_at.tolist()
        np.testing.assert_allclose(found.q, compiled.q, atol=near)
        if limits == "event":
            assert found.events.dof.tolist() == compiled.events.dof.tolist()
            np.testing.assert_allclose(found.events.t, compiled.events.t, atol=near)
            np.testing.assert_allclose(found.events.q, compiled.events.q, atol=near)


def test_parameters_are_the_same_for_every_stepper(puma: lw.Robot) -> None:
    heavy, q = puma.parametric("gravity"), np.zeros((2, 6))
    run: Any = {"duration": 0.02, "parameters": {"gravity": [[0.0, 1.0, -3.0], [0.0, 0.0, -20.0]]}}
    compiled = lw.simulate(heavy, q, **run)
    asked = lw.simulate(heavy, q, None, lambda t, q, qd: 0.0 * qd, hold=False, **run)
    np.testing.assert_allclose(asked.q, compiled.q, atol=1e-12)
    adaptive = lw.simulate(heavy, q, integrator="DOP853", rtol=1e-11, atol=1e-11, **run)
    np.testing.assert_allclose(adaptive.q, compiled.q, atol=1e-7)
    nominal = lw.simulate(puma, q, duration=0.02)
    assert np.abs(nominal.q[1] - compiled.q[1]).max() > 1e-4
