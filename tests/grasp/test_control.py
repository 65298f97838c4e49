"""Controllers of grasps: compiled, called, and of Python at every stage of a step."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

BAR = lw.RigidBody(1.5, (0.0, 0.1, 0.0), (0.02, 0.03, 0.04))


def arm() -> lw.Robot:
    """Three joints in a plane."""
    b = lw.Builder("arm")
    for i in range(3):
        b = b.link(f"l{i}", mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    axis=(0, 1, 0), xyz=(0.3 if i else 0.0, 0.0, 0.0))  # fmt: skip
    return b.frame("tip", "l2", xyz=(0.3, 0.0, 0.0)).build()


def grasp(kind: str = "rigid") -> tuple[lw.Grasp, np.ndarray]:
    """Two arms that face each other, and a state that closes both contacts."""
    facing = np.diag([-1.0, 1.0, -1.0, 1.0])
    facing[0, 3] = 1.0
    q = np.array([0.6, -1.1, 0.4, 0.5, -1.0, 0.6])
    if kind == "rigid":
        first = lw.Grasp([arm(), arm()], BAR, ["tip", "tip"], [np.eye(4), facing])
        return first.holding(q), q
    hands = [T @ arm().forward_kinematics(x, "tip") for T, x in
             zip((np.eye(4), facing), np.split(q, 2), strict=True)]  # fmt: skip
    contacts = [lw.Contact(i, "tip", "soft", pose_in_object=T) for i, T in enumerate(hands)]
    found = lw.Grasp([arm(), arm()], BAR, contacts, [np.eye(4), facing])
    return found, np.concatenate([q, [1.0, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_passive_joints_of_arms_get_no_torque(kind: str) -> None:
    """By controllers, and by inverse dynamics, which still gives the motion."""
    whole, q = grasp(kind)
    arms = [arm(), arm().with_actuated(["j0", "j1"])]
    bases = [np.eye(4), np.diag([-1.0, 1.0, -1.0, 1.0])]
    bases[1][0, 3] = 1.0
    robot = lw.Grasp(arms, BAR, whole.contacts, bases)
    passive = [5, *range(6, robot.nv)]
    assert np.flatnonzero(~robot.actuated).tolist() == passive
    for same in (robot.with_gravity((0, 0, -1)), robot.parametric("gravity"), robot.open):
        assert np.array_equal(same.actuated, robot.actuated)
    qd, tau = np.zeros(robot.nv), np.ones(robot.nv)
    tau[passive] = 0.0
    qdd = robot.forward_dynamics(q, qd, tau)
    found = robot.inverse_dynamics(q, qd, qdd)
    assert np.abs(found[passive]).max() < 1e-12 and found @ found <= tau @ tau + 1e-9
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, found), qdd, rtol=1e-9, atol=1e-9)
    target = robot.neutral()
    for law in (
        lw.control.pd(robot, 30.0, 2.0, target),
        lw.control.gravity_compensation(robot),
        lw.control.computed_torque(robot, 30.0, 2.0, target),
    ):
        torques = law(0.0, q, qd)
        assert np.isfinite(torques).all() and not torques[passive].any()
    with pytest.raises(ValueError, match=r"motors are those of its arms; expected another"):
        robot.with_actuated(["arm0/j0"])


def test_passive_joints_that_need_nothing_are_no_failure() -> None:
    """What a passive joint needs may be zero; its torque vanishes but for rounding."""
    bases = [np.eye(4), np.diag([-1.0, 1.0, -1.0, 1.0])]
    bases[1][0, 3] = 1.0
    still, q = np.zeros(6), grasp()[1]
    balanced = arm().with_inertia("l2", 1.0, (0, 0, 0), (0.01, 0.02, 0.02))
    arms = [arm(), balanced.with_actuated(["j0", "j1"])]
    robot = lw.Grasp(arms, BAR, grasp()[0].contacts, bases)
    assert robot.open.gravity_torque(q)[5] == 0.0
    tau, status = robot.inverse_dynamics(q, still, still, status=True)
    assert np.isfinite(tau).all() and tau[5] == 0.0 and not status & lw.Status.SINGULAR
    np.testing.assert_allclose(robot.forward_dynamics(q, still, tau), 0.0, atol=1e-9)


def test_floating_bases_of_arms_get_no_torque_of_controllers() -> None:
    """Inverse dynamics returns the wrench there, as of an open robot."""
    body = arm().with_inertia("base", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    robot = lw.Grasp([body.with_free_base()], BAR, ["tip"])
    assert np.flatnonzero(~robot.actuated).tolist() == list(range(6))
    rng = np.random.default_rng(5)
    q, qd = robot.random_q(rng), rng.normal(size=robot.nv)
    tau = lw.control.computed_torque(robot, 30.0, 2.0)(0.0, q, qd)
    qdd = robot.forward_dynamics(q, qd, tau)
    wanted = 30.0 * robot.difference(q, robot.neutral()) - 2.0 * qd
    assert not tau[:6].any()
    np.testing.assert_allclose(qdd[6:], wanted[6:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_a_controller_of_python_at_every_stage(integrator: str) -> None:
    """As the same controller compiled."""
    robot, q = grasp()
    compiled = lw.control.pd(robot, 30.0, 2.0, target=q + 0.1)

    def controller(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.asarray(30.0 * (target - q) - 2.0 * qd)

    target = q + 0.1
    options = {"duration": 0.05, "dt": 1e-3, "hold": False, "integrator": integrator}
    runs = [lw.simulate(robot, q, controller=c, **options) for c in (compiled, controller)]
    assert (runs[1].status == 0).all() and np.abs(runs[1].qd[-1]).max() > 0.01
    for name in ("q", "qd"):
        a, b = (getattr(run, name) for run in runs)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_laws_by_calls_are_the_compiled_ones(kind: str) -> None:
    """Code of loops over the links, as that of robots of many links, or written out."""
    robot, q = grasp(kind)
    qd = np.random.default_rng(1).uniform(-1, 1, robot.nv)
    for make in (
        lambda own: lw.control.pd(own, 30.0, 2.0),
        lw.control.gravity_compensation,
        lambda own: lw.control.computed_torque(own, 30.0, 2.0),
    ):
        written, rolled = (make(robot.with_codegen(x))(0.0, q, qd) for x in ("unrolled", "rolled"))
        assert rolled.shape == (robot.nv,)
        if kind == "rigid":
            assert np.isfinite(written).all()
        np.testing.assert_allclose(rolled, written, rtol=1e-9, atol=1e-9)
        if kind == "soft" and np.isfinite(rolled).all():
            assert (rolled[6:] == 0.0).all()


def test_compensation_holds_an_object_between_points_still() -> None:
    """Soft contacts in one plane leave the object free to move out of it, where nothing pushes."""
    robot, q = grasp("soft")
    still = np.zeros(robot.nv)
    tau = lw.control.gravity_compensation(robot)(0.0, q, still)
    np.testing.assert_allclose(robot.forward_dynamics(q, still, tau), 0.0, atol=1e-9)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, still, still), rtol=1e-9, atol=1e-12)


def test_one_name_is_one_function() -> None:
    """The method that is chosen, its operations, its derivatives and its expressions."""
    robot, q = grasp()
    method = robot.method_for("forward_dynamics")
    tau = np.arange(6.0)
    state = q, 0.1 * tau, tau
    qdd = robot.forward_dynamics(*state)
    assert robot.forward_dynamics(*state, method=method).tobytes() == qdd.tobytes()
    count = robot.operation_count("forward_dynamics")
    assert count == robot.operation_count("forward_dynamics", method)
    value, by_q, by_qd, by_tau = robot.forward_dynamics_derivatives(*state, value=True)
    np.testing.assert_allclose(value, qdd, rtol=1e-9)
    by = robot.derivative("forward_dynamics", value=True)
    again, parts = by(*state)
    np.testing.assert_allclose(again, qdd, rtol=1e-9)
    for part, own in zip(parts, (by_q, by_qd, by_tau), strict=True):
        np.testing.assert_allclose(part, own, rtol=1e-9, atol=1e-9 * np.abs(own).max())
    np.testing.assert_allclose(
        np.ravel(robot.evaluate("forward_dynamics", *(x.tolist() for x in state))), qdd, rtol=1e-9
    )
    pytest.importorskip("casadi", reason="CasADi (pip install casadi) is not installed")
    found = robot.casadi("forward_dynamics")(*state).full()
    np.testing.assert_allclose(found[:, 0], qdd, rtol=1e-9, atol=1e-12)


def test_computed_torque_refuses_bases_that_contact_forces_move() -> None:
    """Of one robot whose link carries the object, they act inside the whole, and it works."""
    b = lw.Builder("torso").link("base", mass=5.0, inertia=(1.0, 1.0, 1.0))
    for side, y in (("l", 0.3), ("r", -0.3)):
        b.link(side, mass=1.0, com=(0.0, 0.0, 0.1), inertia=(0.02, 0.02, 0.01))
        b.joint(f"j{side}", "spherical", parent="base", child=side, xyz=(0, y, 0.2))
    robot, body = b.build().with_free_base(), lw.RigidBody(2.0, inertia=(0.06, 0.05, 0.01))
    contacts = [lw.Contact(0, "l"), lw.Contact(0, "r", "point")]
    lw.control.computed_torque(lw.Grasp([robot], body, contacts), 30.0, 2.0)
    for grasp in (lw.Grasp([robot], body, contacts, object_state=True),
                  lw.Grasp([robot], body, [lw.Contact(0, x, "point") for x in "lr"])):  # fmt: skip
        with pytest.raises(ValueError, match=r"move the floating base .base. .*control\.pd"):
            lw.control.computed_torque(grasp, 30.0, 2.0)
        lw.control.pd(grasp, 30.0, 2.0)
