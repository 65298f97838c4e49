"""Identities of mechanics on random trees: one per test, n = 1 to 30.

Equations run uncompiled over small NumPy batches, real or complex: a derivative is a complex step,
exact to rounding. `test_compiled_kernels_agree` ties the compiled functions to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwise.algorithms import FUNCTIONS
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.robot import Robot

STATES = 3
STEP = 1e-30  # a complex step has no difference to cancel, so it may be this small
METHODS = ["crba", "aba"]

physics = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@dataclass
class State:
    """A random robot, a few of its states, and a source of further numbers."""

    description: RobotDescription
    robot: Robot
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray  # joint accelerations or torques
    rng: np.random.Generator

    @property
    def frame(self) -> str:
        return str(self.rng.choice(self.robot.frame_names))


@pytest.fixture(scope="session")
def draw(descriptions: Any) -> Callable[..., State]:
    def one(data: st.DataObject, max_joints: int = 30) -> State:
        description = data.draw(descriptions(max_joints))
        robot = Robot(description)
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        return State(description, robot, *rng.uniform(-3, 3, (3, STATES, robot.nv)), rng)

    return one


def rate(f: Callable[..., np.ndarray], *moving: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Derivative of ``f`` as each value moves at its rate, by a complex step."""
    return f(*(value + 1j * STEP * speed for value, speed in moving)).imag / STEP


def largest(x: np.ndarray) -> np.ndarray:
    """Largest entry of each state."""
    return np.abs(x).reshape(len(x), -1).max(axis=1)


# -- joint-space dynamics -----------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@physics
def test_forward_undoes_inverse_dynamics(
    method: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    tau = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    qdd = evaluate(s.robot, "forward_dynamics", s.q, s.qd, tau, method=method)
    M = evaluate(s.robot, "mass_matrix", s.q)
    least = np.linalg.eigvalsh(M)[:, 0]
    assert_close(qdd, s.u, scale=largest(s.u) + largest(tau) / least)


@given(data=st.data())
@physics
def test_mass_matrix_is_symmetric_and_positive_definite(
    data: Any, draw: Any, evaluate: Any
) -> None:
    s = draw(data)
    M = evaluate(s.robot, "mass_matrix", s.q)
    assert np.array_equal(M, M.mT)
    assert np.linalg.eigvalsh(M).min() > 0.0


@given(data=st.data())
@physics
def test_columns_of_the_mass_matrix_are_torques_of_unit_accelerations(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    n = s.robot.nv
    q, still = np.repeat(s.q[:1], n, axis=0), np.zeros((n, n))
    gravity = evaluate(s.robot, "gravity_torque", s.q[:1])
    columns = evaluate(s.robot, "inverse_dynamics", q, still, np.eye(n)) - gravity
    M = evaluate(s.robot, "mass_matrix", s.q[:1])[0]
    assert_close(columns.T, M, scale=abs(M).max() + abs(gravity).max())


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@physics
def test_mass_matrix_inverse(
    method: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data, max_joints=12)
    M = evaluate(s.robot, "mass_matrix", s.q)
    inverse = evaluate(s.robot, "mass_matrix_inverse", s.q, method=method)
    identity = np.broadcast_to(np.eye(s.robot.nv), M.shape)
    assert_close(inverse @ M, identity, cond=np.linalg.cond(M))


@given(data=st.data())
@physics
def test_articulated_bodies_agree_with_composite_bodies(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    aba, crba = (
        evaluate(s.robot, "forward_dynamics", s.q, s.qd, s.u, method=method)
        for method in ("aba", "crba")
    )
    cond = np.linalg.cond(evaluate(s.robot, "mass_matrix", s.q))
    assert_close(aba, crba, cond=cond)


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "forward_dynamics"])
@given(data=st.data())
@physics
def test_regrouping_inertias_changes_nothing(
    function: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    values = (s.q,) if function == "mass_matrix" else (s.q, s.qd, s.u)
    method = "auto" if function == "inverse_dynamics" else "crba"
    plain, regrouped = (
        evaluate(s.robot, function, *values, method=method, regrouped=chosen)
        for chosen in (False, True)
    )
    solves = function == "forward_dynamics"
    cond = np.linalg.cond(evaluate(s.robot, "mass_matrix", s.q)) if solves else 1.0
    assert_close(regrouped, plain, cond=cond)


# -- energy -------------------------------------------------------------------------------------


@given(data=st.data())
@physics
def test_kinetic_energy_is_half_qd_M_qd(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    M = evaluate(s.robot, "mass_matrix", s.q)
    half = 0.5 * np.einsum("bi,bij,bj->b", s.qd, M, s.qd)
    assert_close(evaluate(s.robot, "kinetic_energy", s.q, s.qd), half, scale=half + largest(M))


@given(data=st.data())
@physics
def test_gravity_torque_is_the_gradient_of_potential_energy(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    n = s.robot.nv
    q = np.repeat(s.q[:1], n, axis=0)
    gradient = rate(lambda q: evaluate(s.robot, "potential_energy", q), (q, np.eye(n)))
    torque = evaluate(s.robot, "gravity_torque", s.q[:1])
    assert_close(torque, gradient[None], scale=largest(torque) + weight(s))


def weight(s: State) -> float:
    """Moment of all links at a metre."""
    return float(np.linalg.norm(s.robot.gravity) * sum(link.mass for link in s.robot.tree.links))


@given(data=st.data())
@physics
def test_power_balance(data: Any, draw: Any, evaluate: Any, assert_close: Any) -> None:
    """``d/dt (T + V) = tau · qd`` along any motion."""
    s = draw(data)
    T = rate(lambda q, qd: evaluate(s.robot, "kinetic_energy", q, qd), (s.q, s.qd), (s.qd, s.u))
    V = rate(lambda q: evaluate(s.robot, "potential_energy", q), (s.q, s.qd))
    tau = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    assert_close(T + V, (tau * s.qd).sum(axis=1), scale=np.abs(tau * s.qd).sum(axis=1) + weight(s))


@pytest.mark.parametrize("method", METHODS)
def test_energy_is_conserved_in_free_swing(
    method: str, random_robot: Any, rng: np.random.Generator
) -> None:
    """Half a second of Runge-Kutta steps: what is left is the integrator's error, O(dt⁴)."""
    robot = Robot(random_robot(rng, 8))
    none = np.zeros(robot.nv)

    def slope(y: np.ndarray) -> np.ndarray:
        q, qd = np.ascontiguousarray(y[0]), np.ascontiguousarray(y[1])
        return np.array([qd, robot.forward_dynamics(q, qd, none, method=method)])

    def energy(y: np.ndarray) -> float:
        return float(robot.kinetic_energy(*y) + robot.potential_energy(y[0]))

    y, dt = rng.uniform(-1, 1, (2, robot.nv)), 1e-4
    start, exchanged = energy(y), 0.0
    for _ in range(5000):
        a = slope(y)
        b = slope(y + dt / 2 * a)
        c = slope(y + dt / 2 * b)
        d = slope(y + dt * c)
        y = y + dt / 6 * (a + 2 * b + 2 * c + d)
        exchanged = max(exchanged, abs(float(robot.kinetic_energy(*y))))
    assert abs(energy(y) - start) < 1e-9 * exchanged


# -- kinematics ---------------------------------------------------------------------------------


@given(data=st.data())
@physics
def test_jacobian_is_the_derivative_of_forward_kinematics(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    n, frame = s.robot.nv, s.frame
    q = np.repeat(s.q[:1], n, axis=0)
    pose = evaluate(s.robot, "forward_kinematics", s.q[:1], frame=frame)[0]
    dT = rate(lambda q: evaluate(s.robot, "forward_kinematics", q, frame=frame), (q, np.eye(n)))
    spin = dT[:, :3, :3] @ pose[:3, :3].T  # w~ for each joint
    columns = [spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0], *dT[:, :3, 3].T]
    J = evaluate(s.robot, "jacobian", s.q[:1], frame=frame)[0]
    assert_close(J, np.array(columns), scale=1.0 + abs(pose).max())


@pytest.mark.parametrize("axes", ["base", "body"])
@given(data=st.data())
@physics
def test_jacobian_dot_qd_is_the_rate_of_J_at_constant_qd(
    axes: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s, frame = (drawn := draw(data)), drawn.frame

    def velocity(q: np.ndarray) -> np.ndarray:
        J = evaluate(s.robot, "jacobian", q, frame=frame, axes=axes)
        return (J @ s.qd[:, :, None])[:, :, 0]

    expected = rate(velocity, (s.q, s.qd))
    actual = evaluate(s.robot, "jacobian_dot_qd", s.q, s.qd, frame=frame, axes=axes)
    assert_close(actual, expected, scale=largest(expected) + (s.qd**2).sum(axis=1))


@given(data=st.data())
@physics
def test_jacobian_in_body_axes_is_the_turned_jacobian(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s, frame = (drawn := draw(data)), drawn.frame
    R = evaluate(s.robot, "forward_kinematics", s.q, frame=frame)[:, :3, :3]
    base, body = (
        evaluate(s.robot, "jacobian", s.q, frame=frame, axes=axes) for axes in ("base", "body")
    )
    turned = np.concatenate([R.mT @ base[:, :3], R.mT @ base[:, 3:]], axis=1)
    assert_close(body, turned)


@pytest.mark.parametrize("function", ["inverse_dynamics", "bias", "gravity_torque"])
@given(data=st.data())
@physics
def test_external_wrench_takes_off_its_generalised_force(
    function: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s, frame = (drawn := draw(data)), drawn.frame
    values = (s.q, s.qd, s.u)[: len(FUNCTIONS[function]["rnea"].inputs)]
    wrench = s.rng.uniform(-10, 10, (STATES, 6))
    J = evaluate(s.robot, "jacobian", s.q, frame=frame)
    alone = evaluate(s.robot, function, *values)
    change = alone - evaluate(s.robot, function, *values, f_ext={frame: wrench})
    expected = np.einsum("bij,bi->bj", J, wrench)
    assert_close(change, expected, scale=largest(alone) + largest(wrench))


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@physics
def test_external_wrench_accelerates_as_its_generalised_force(
    method: str, data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s, frame = (drawn := draw(data)), drawn.frame
    wrench = s.rng.uniform(-10, 10, (STATES, 6))
    push = np.einsum("bij,bi->bj", evaluate(s.robot, "jacobian", s.q, frame=frame), wrench)
    pushed = evaluate(s.robot, "forward_dynamics", s.q, s.qd, s.u + push, method=method)
    actual = evaluate(
        s.robot, "forward_dynamics", s.q, s.qd, s.u, method=method, f_ext={frame: wrench}
    )
    M = evaluate(s.robot, "mass_matrix", s.q)
    assert_close(actual, pushed, cond=np.linalg.cond(M), scale=largest(pushed) + largest(wrench))


# -- what results must not depend on ------------------------------------------------------------


def same_mechanics(s: State, other: RobotDescription, evaluate: Any, assert_close: Any) -> None:
    """Torques, masses and energy of the two descriptions agree, joint by joint."""
    robot = Robot(other)
    order = [robot.joint_names.index(name) for name in s.robot.joint_names]
    back = np.argsort(order)  # this robot's values in the other's order: v[:, back]
    moved = [v[:, back] for v in (s.q, s.qd, s.u)]
    tau = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    M = evaluate(s.robot, "mass_matrix", s.q)
    V = evaluate(s.robot, "potential_energy", s.q)
    assert_close(evaluate(robot, "inverse_dynamics", *moved)[:, order], tau)
    assert_close(evaluate(robot, "mass_matrix", moved[0])[:, order][:, :, order], M)
    assert_close(evaluate(robot, "potential_energy", moved[0]), V, scale=np.abs(V) + weight(s))
    qdd = evaluate(s.robot, "forward_dynamics", s.q, s.qd, s.u, method="aba")
    other_qdd = evaluate(robot, "forward_dynamics", *moved, method="aba")[:, order]
    assert_close(other_qdd, qdd, cond=np.linalg.cond(M))


@given(data=st.data())
@physics
def test_numbering_of_links_does_not_matter(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    shuffled = replace(
        s.description,
        links=tuple(s.description.links[i] for i in s.rng.permutation(len(s.description.links))),
        joints=tuple(s.description.joints[i] for i in s.rng.permutation(len(s.description.joints))),
    )
    same_mechanics(s, shuffled, evaluate, assert_close)


@given(data=st.data())
@physics
def test_splitting_a_link_by_a_fixed_joint_does_not_matter(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    i = int(s.rng.choice([k for k, x in enumerate(s.description.links) if x.inertia is not None]))
    link = s.description.links[i]
    R, p, share = rotation(s.rng), s.rng.uniform(-0.3, 0.3, 3), s.rng.uniform(0.1, 0.9)
    kept, cut = scaled(link.inertia, share), seen_in(scaled(link.inertia, 1 - share), R, p)
    links = list(s.description.links)
    links[i] = replace(link, inertia=kept)
    part = LinkDescription("part", cut)
    weld = JointDescription("weld", "fixed", link.name, "part", pose(R, p))
    split = replace(s.description, links=(*links, part), joints=(*s.description.joints, weld))
    same_mechanics(s, split, evaluate, assert_close)


@given(data=st.data())
@physics
def test_choice_of_link_frames_does_not_matter(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    """Turn every link's frame at random, and slide it along its joint's axis."""
    s = draw(data)
    turned = {"base": (np.eye(3), np.zeros(3))}
    for joint in s.description.joints:
        turned[joint.child] = (rotation(s.rng), s.rng.uniform(-0.3, 0.3) * np.array(joint.axis))
    links = [
        replace(x, inertia=x.inertia and seen_in(x.inertia, *turned[x.name]))
        for x in s.description.links
    ]
    joints = [reframed(x, turned[x.parent], turned[x.child]) for x in s.description.joints]
    other = replace(s.description, links=tuple(links), joints=tuple(joints))
    same_mechanics(s, other, evaluate, assert_close)
    frame = s.description.joints[-1].child
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = turned[frame]
    expected = evaluate(s.robot, "forward_kinematics", s.q, frame=frame) @ G
    moved = evaluate(Robot(other), "forward_kinematics", s.q, frame=frame)
    assert_close(moved, expected)


def rotation(rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def pose(R: np.ndarray, p: np.ndarray) -> Pose:
    return Pose(tuple(map(tuple, R.tolist())), tuple(p.tolist()))


def scaled(body: BodyInertia, share: float) -> BodyInertia:
    return BodyInertia(body.mass * share, body.com, tuple(x * share for x in body.tensor))


def seen_in(body: BodyInertia, R: np.ndarray, p: np.ndarray) -> BodyInertia:
    """The body in a frame that sits at rotation R, origin p of its own."""
    full = np.zeros((3, 3))
    full[np.triu_indices(3)] = body.tensor
    full = R.T @ (full + np.triu(full, 1).T) @ R
    com = R.T @ (np.array(body.com) - p)
    return BodyInertia(body.mass, tuple(com.tolist()), tuple(full[np.triu_indices(3)].tolist()))


def reframed(joint: JointDescription, parent: Any, child: Any) -> JointDescription:
    """The joint between a parent and a child whose frames were turned and slid."""
    (Rp, pp), (Rc, pc) = parent, child
    R, p = np.array(joint.origin.rotation), np.array(joint.origin.translation)
    origin = pose(Rp.T @ R @ Rc, Rp.T @ (p + R @ pc - pp))
    axis = Rc.T @ np.array(joint.axis)
    return replace(joint, origin=origin, axis=tuple((axis / np.linalg.norm(axis)).tolist()))


# -- compiled -----------------------------------------------------------------------------------


FRAMELESS = [f for f, methods in FUNCTIONS.items() if not next(iter(methods.values())).takes_frame]
OF_FRAMES = ["forward_kinematics", "jacobian", "jacobian_dot_qd"]
CUBIC = ["christoffel", "inertial_power"]  # programs of a million operations at thirty joints


@pytest.mark.parametrize("function", FRAMELESS + OF_FRAMES)
@pytest.mark.parametrize("joints", [1, 2, 7, 30])
def test_compiled_kernels_agree(
    joints: int,
    function: str,
    random_robot: Any,
    evaluate: Any,
    rng: np.random.Generator,
    assert_close: Any,
) -> None:
    robot = Robot(random_robot(rng, min(joints, 12) if function in CUBIC else joints))
    names = ("q", "qd", "qdd", "tau", "rhs")
    values = dict(zip(names, rng.uniform(-3, 3, (5, 50, robot.nv)), strict=True))
    cond = np.linalg.cond(evaluate(robot, "mass_matrix", values["q"]))
    for method, algorithm in FUNCTIONS[function].items():
        if algorithm.iterates:
            continue
        frame = {"frame": robot.frame_names[-1]} if algorithm.takes_frame else {}
        choice = {"method": method} if len(FUNCTIONS[function]) > 1 else {}
        arguments = [values[name] for name, _ in algorithm.inputs]
        expected = evaluate(robot, function, *arguments, **frame, **choice)
        actual = getattr(robot, function)(*arguments, **frame, **choice)
        size = largest(expected) + (values["qd"] ** 2).sum(axis=1)
        # Schur complements invert the inertia of each link, too
        worse = 100.0 if method.startswith("schur") else 1.0
        solved = bool(choice) or function == "solve_mass"
        assert_close(actual, expected, cond=worse * cond if solved else 1.0, scale=size)
