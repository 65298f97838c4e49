"""Grasps in `lw.simulate`: contacts stay closed, and what is conserved is."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

BAR = lw.RigidBody(1.5, (0.0, 0.0, 0.4), (0.08, 0.08, 0.002))


def base(x: float, turn: float) -> np.ndarray:
    c, s = np.cos(turn), np.sin(turn)
    return np.array([[c, -s, 0, x], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


@pytest.fixture(scope="module")
def two_arms() -> tuple[lw.Grasp, np.ndarray]:
    """Two pumas that hold a bar at its ends, and where they hold it."""
    arm = lw.load("puma560")
    grasp = lw.Grasp([arm, arm], BAR, ["link6", "link6"], bases=[base(0.0, 0.0), base(1.0, np.pi)])
    q = np.array([0.1, -0.7, 0.2, 0.3, 0.9, -0.2, -0.3, -0.8, 0.4, -0.2, 0.7, 0.5])
    return grasp.holding(q), q


def closure(grasp: lw.Grasp, traj: lw.Trajectory) -> float:
    """The largest error of contacts, m and rad, and per second."""
    off = grasp.residual(traj.q, traj.qd)
    return float(max(np.abs(off.position).max(), np.abs(off.velocity).max()))


def run(grasp: lw.Grasp, q: np.ndarray, steps: int, every: int = 10) -> lw.Trajectory:
    rng = np.random.default_rng(2)
    q, qd = grasp.project(q, 0.3 * rng.normal(size=grasp.nv))
    return lw.simulate(grasp, q, qd, duration=steps * 1e-3, dt=1e-3, every=every)


def test_contacts_stay_closed_and_energy_stays(two_arms: tuple[lw.Grasp, np.ndarray]) -> None:
    """RK4 of 1 ms, a free fall of both arms with the bar between them."""
    traj = run(*two_arms, 500)
    assert (traj.status == 0).all()
    assert closure(two_arms[0], traj) <= 1e-9
    energy = traj.energy.total
    assert np.abs(energy - energy[0]).max() <= 1e-6 * np.abs(traj.energy.kinetic).max()


@pytest.mark.full
def test_contacts_stay_closed_over_a_million_steps(two_arms: tuple[lw.Grasp, np.ndarray]) -> None:
    """1000 s, with springs that keep the arms moving about where they began."""
    grasp, q = two_arms
    spring = lw.control.pd(grasp, kp=200.0, kd=0.0, target=q)
    start, rates = grasp.project(q, 0.3 * np.random.default_rng(2).normal(size=grasp.nv))
    traj = lw.simulate(grasp, start, rates, spring, duration=1e3, dt=1e-3, every=100, hold=False)
    assert (traj.status == 0).all()
    assert np.abs(traj.qd[-100:]).max() > 0.1, "they still move"
    assert closure(grasp, traj) <= 1e-9


@pytest.mark.full
def test_gravity_compensation_holds_the_arms_and_the_object(
    two_arms: tuple[lw.Grasp, np.ndarray],
) -> None:
    grasp, q = two_arms
    law = lw.control.gravity_compensation(grasp)
    torques = grasp.inverse_dynamics(q, np.zeros(12), np.zeros(12))
    np.testing.assert_allclose(law(0.0, q, np.zeros(12)), torques, rtol=1e-9)
    held = lw.simulate(grasp, q, controller=law, duration=0.1)
    assert np.abs(held.q - q).max() < 1e-9


def test_an_open_contact_is_told_by_name(two_arms: tuple[lw.Grasp, np.ndarray]) -> None:
    grasp, q = two_arms
    off = q.copy()
    off[7] += 0.1
    with pytest.raises(ValueError, match=r"does not respect contact 1 \(arm 1, 'link6'\), which is "
                                         r"open by .* m or rad"):  # fmt: skip
        lw.simulate(grasp, off, np.zeros(12), duration=0.01)
    with pytest.raises(ValueError, match=r"contact 1 .* comes apart at"):
        lw.simulate(grasp, q, np.ones(12), duration=0.01)


def test_an_object_between_points_has_a_state_in_simulations() -> None:
    """Two arms that slide along x push a ball-held object; its quaternion stays of unit length."""
    b = lw.Builder("slider")
    for i, axis in enumerate(np.eye(3).tolist()):
        b = b.link(f"l{i}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        b = b.joint(f"j{i}", "prismatic", parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    axis=axis)  # fmt: skip
    arm = b.build(gravity=(0.0, 0.0, 0.0))
    places = [base(-0.2, 0.0), base(0.2, 0.0)]
    contacts = [lw.Contact(i, "l2", "point", pose_in_object=places[i]) for i in range(2)]
    body = lw.RigidBody(1.0, (0.0, 0.03, 0.0), (0.02, 0.03, 0.04))
    grasp = lw.Grasp([arm, arm], body, contacts)
    q = np.array([-0.2, 0, 0, 0.2, 0, 0, 1, 0, 0, 0, 0, 0, 0.0])
    qd = np.array([0, 0, 0, 0, 0.0, 0, 0.5, 0.3, 0.2, 0, 0, 0])
    q, qd = grasp.project(q, qd)
    traj = lw.simulate(grasp, q, qd, duration=0.5, dt=1e-3, every=50)
    assert closure(grasp, traj) <= 1e-9
    assert np.abs(np.linalg.norm(traj.q[:, 6:10], axis=1) - 1.0).max() <= 1e-12
    h = grasp.centroidal_momentum(traj.q, traj.qd)
    assert np.abs(h[:, 3:] - h[0, 3:]).max() <= 1e-9 * np.abs(h[0]).max()
    kinetic = traj.energy.kinetic
    assert np.abs(kinetic - kinetic[0]).max() <= 1e-9 * kinetic[0]
