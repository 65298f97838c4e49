"""Identities of mechanics on random trees of every joint kind: followers, rotors, free bases.

A case is a random tree at a random state. ``LINKWISE_CASES`` is the number of cases of each
identity, 45 unless set; ``make identities`` runs 10,400 of each. Equations run uncompiled over
NumPy batches. A derivative along a motion is a complex step: quaternions move at half their product
with the turning rate, and `test_configuration.py` holds ``integrate`` to that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rotations import random_rotation

from linkwise.algorithms import FUNCTIONS, configurations
from linkwise.model import edit
from linkwise.model.bodies import Policy
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.robot import Robot

CASES = int(os.environ.get("LINKWISE_CASES", "45"))
STATES = 3 if CASES < 1000 else 20  # of each tree; a batch costs little more than one state
STEP = 1e-30  # a complex step has no difference to cancel, so it may be this small
METHODS = ["crba", "aba"]
SIMPLE = ("revolute", "continuous", "prismatic", "fixed")  # joints with one axis
LOSSES = Policy(friction=True)

physics = settings(
    max_examples=max(1, CASES // STATES),
    derandomize=CASES < 1000,
    suppress_health_check=list(HealthCheck),
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

    @property
    def weight(self) -> float:
        """Moment of all links at a metre."""
        mass = sum(link.mass for link in self.robot.tree.links)
        return float(np.linalg.norm(self.robot.gravity) * mass)


@pytest.fixture(scope="session")
def draw(descriptions: Any, random_states: Any, all_kinds: Any) -> Callable[..., State]:
    def one(
        data: st.DataObject,
        max_joints: int = 12,
        policy: Policy | None = None,
        mimic: bool = True,
        base: str = "any",
        kinds: tuple[str, ...] = all_kinds,
    ) -> State:
        trees = descriptions(
            max_joints, kinds=kinds, mimic=mimic, base=base, friction=policy is not None
        )
        description = data.draw(trees)
        robot = Robot(description, policy)
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        return State(description, robot, *random_states(robot, rng, STATES), rng)

    return one


@pytest.fixture(scope="session")
def rate(q_rate: Any) -> Callable[..., np.ndarray]:
    def derivative(
        robot: Robot, f: Callable[..., np.ndarray], q: np.ndarray, v: np.ndarray, *moving: Any
    ) -> np.ndarray:
        """Derivative of ``f(q, ...)`` as q moves at rates v, and each other value at its rate."""
        pairs = ((q, q_rate(robot, q, v)), *moving)
        return f(*(value + 1j * STEP * speed for value, speed in pairs)).imag / STEP

    return derivative


def largest(x: np.ndarray) -> np.ndarray:
    """Largest entry of each state."""
    return np.abs(x).reshape(len(x), -1).max(axis=1)


def condition(s: State, evaluate: Any) -> np.ndarray:
    """Condition number of what is inverted: with followers, also of the tree without ties."""
    cond = np.linalg.cond(evaluate(s.robot, "mass_matrix", s.q))
    if s.robot.tree.coupled:
        loose = Robot(edit.free_mimics(s.description))
        q = np.stack(
            [np.concatenate([np.asarray(x) for x in s.robot.tree.per_link_q(row)]) for row in s.q]
        )
        cond = cond * np.linalg.cond(evaluate(loose, "mass_matrix", q))
    return cond


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
    least = np.linalg.eigvalsh(evaluate(s.robot, "mass_matrix", s.q))[:, 0]
    assert_close(qdd, s.u, cond=tied(s, evaluate), scale=largest(s.u) + largest(tau) / least)


def tied(s: State, evaluate: Any) -> Any:
    """What ties between joints add to a condition number."""
    return condition(s, evaluate) if s.robot.tree.coupled else 1.0


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
    s = draw(data, max_joints=6)
    M = evaluate(s.robot, "mass_matrix", s.q)
    inverse = evaluate(s.robot, "mass_matrix_inverse", s.q, method=method)
    identity = np.broadcast_to(np.eye(s.robot.nv), M.shape)
    assert_close(inverse @ M, identity, cond=condition(s, evaluate))


@given(data=st.data())
@physics
def test_articulated_bodies_agree_with_composite_bodies(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data, policy=LOSSES)
    aba, crba = (
        evaluate(s.robot, "forward_dynamics", s.q, s.qd, s.u, method=method)
        for method in ("aba", "crba")
    )
    assert_close(aba, crba, cond=condition(s, evaluate))


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
    assert_close(regrouped, plain, cond=condition(s, evaluate) if solves else 1.0)


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
    data: Any, draw: Any, evaluate: Any, assert_close: Any, rate: Any
) -> None:
    s = draw(data)
    n = s.robot.nv
    q = np.repeat(s.q[:1], n, axis=0)
    energy = lambda q: evaluate(s.robot, "potential_energy", q)  # noqa: E731
    gradient = rate(s.robot, energy, q, np.eye(n))
    torque = evaluate(s.robot, "gravity_torque", s.q[:1])
    assert_close(torque, gradient[None], scale=largest(torque) + s.weight)


@given(data=st.data())
@physics
def test_gravity_torque_is_linear_in_gravity(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    s = draw(data)
    first, second = s.rng.uniform(-10, 10, (2, 3))

    def torque(gravity: np.ndarray) -> np.ndarray:
        robot = Robot(edit.with_gravity(s.description, gravity.tolist()))
        return evaluate(robot, "gravity_torque", s.q)

    both = torque(first) + 2.0 * torque(second)
    assert_close(torque(first + 2.0 * second), both, scale=largest(both) + s.weight)
    assert np.array_equal(torque(np.zeros(3)), np.zeros_like(both))


@given(data=st.data())
@physics
def test_power_balance(data: Any, draw: Any, evaluate: Any, assert_close: Any, rate: Any) -> None:
    """``d/dt (T + V) = tau · qd`` along any motion."""
    s = draw(data)

    def energy(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        kinetic = evaluate(s.robot, "kinetic_energy", q, qd)
        return kinetic + evaluate(s.robot, "potential_energy", q)

    power = rate(s.robot, energy, s.q, s.qd, (s.qd, s.u))
    tau = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    assert_close(power, (tau * s.qd).sum(axis=1), scale=np.abs(tau * s.qd).sum(axis=1) + s.weight)


@given(data=st.data())
@physics
def test_losses_take_their_power(data: Any, draw: Any, evaluate: Any, assert_close: Any) -> None:
    """``(tau - tau without losses) · qd = Σ damping rate² + friction |rate|`` over all joints."""
    s = draw(data, policy=LOSSES)
    ideal = Robot(s.description)
    tau, without = (
        evaluate(robot, "inverse_dynamics", s.q, s.qd, s.u) for robot in (s.robot, ideal)
    )
    described = {joint.name: joint for joint in s.description.joints}
    lost = np.zeros(STATES)
    for link in s.robot.tree.links:
        joint = described[link.joint_name]
        rates = s.qd[:, link.v_index : link.v_index + link.joint.nv]
        rates = rates * (joint.mimic.multiplier if joint.mimic else 1.0)
        lost += (joint.damping * rates**2 + joint.friction * np.abs(rates)).sum(axis=1)
    taken = ((tau - without) * s.qd).sum(axis=1)
    assert np.all(lost >= 0.0)
    assert_close(taken, lost, scale=lost + np.abs(tau * s.qd).sum(axis=1))


# -- kinematics ---------------------------------------------------------------------------------


@given(data=st.data())
@physics
def test_jacobian_is_the_derivative_of_forward_kinematics(
    data: Any, draw: Any, evaluate: Any, assert_close: Any, rate: Any
) -> None:
    s = draw(data)
    n, frame = s.robot.nv, s.frame
    q = np.repeat(s.q[:1], n, axis=0)
    pose = evaluate(s.robot, "forward_kinematics", s.q[:1], frame=frame)[0]
    poses = lambda q: evaluate(s.robot, "forward_kinematics", q, frame=frame)  # noqa: E731
    dT = rate(s.robot, poses, q, np.eye(n))
    spin = dT[:, :3, :3] @ pose[:3, :3].T  # w~ for each rate
    columns = [spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0], *dT[:, :3, 3].T]
    J = evaluate(s.robot, "jacobian", s.q[:1], frame=frame)[0]
    assert_close(J, np.array(columns), scale=1.0 + abs(pose).max() + abs(J).max())


@pytest.mark.parametrize("axes", ["base", "moving"])
@given(data=st.data())
@physics
def test_jacobian_dot_qd_is_the_rate_of_J_at_constant_qd(
    axes: str, data: Any, draw: Any, evaluate: Any, assert_close: Any, rate: Any
) -> None:
    s, frame = (drawn := draw(data)), drawn.frame

    def velocity(q: np.ndarray) -> np.ndarray:
        J = evaluate(s.robot, "jacobian", q, frame=frame, axes=axes.replace("moving", "body"))
        return (J @ s.qd[:, :, None])[:, :, 0]

    expected = rate(s.robot, velocity, s.q, s.qd)
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
    assert_close(body, turned, scale=1.0 + largest(base))


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
    assert_close(change, expected, scale=largest(alone) + (1 + largest(J)) * largest(wrench))


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
    size = largest(pushed) + largest(wrench)
    assert_close(actual, pushed, cond=condition(s, evaluate), scale=size)


# -- what results must not depend on ------------------------------------------------------------


def same_mechanics(s: State, other: RobotDescription, evaluate: Any, assert_close: Any) -> None:
    """Torques, masses and energy of the two descriptions agree, joint by joint."""
    robot = Robot(other)
    starts = {link.joint_name: link for link in s.robot.tree.links}
    pairs = [(starts[link.joint_name], link) for link in robot.tree.links if link.follows is None]
    qs = [mine.q_index + k for mine, link in pairs for k in range(link.joint.nq)]
    vs = [mine.v_index + k for mine, link in pairs for k in range(link.joint.nv)]
    moved = s.q[:, qs], s.qd[:, vs], s.u[:, vs]
    tau = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    M = evaluate(s.robot, "mass_matrix", s.q)
    V = evaluate(s.robot, "potential_energy", s.q)
    added = largest(evaluate(s.robot, "joint_wrenches", s.q, s.qd, s.u)) + largest(tau)
    assert_close(evaluate(robot, "inverse_dynamics", *moved), tau[:, vs], scale=added)
    assert_close(evaluate(robot, "mass_matrix", moved[0]), M[:, vs][:, :, vs])
    assert_close(evaluate(robot, "potential_energy", moved[0]), V, scale=np.abs(V) + s.weight)
    qdd = evaluate(s.robot, "forward_dynamics", s.q, s.qd, s.u, method="aba")
    other_qdd = evaluate(robot, "forward_dynamics", *moved, method="aba")
    solved = condition(s, evaluate) * largest(qdd)
    solved = solved + np.linalg.norm(np.linalg.inv(M), 2, axis=(1, 2)) * (added + largest(s.u))
    assert_close(other_qdd, qdd[:, vs], scale=solved)


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
    s = draw(data, max_joints=30, kinds=SIMPLE, mimic=False, base="fixed")
    i = int(s.rng.choice([k for k, x in enumerate(s.description.links) if x.inertia is not None]))
    link = s.description.links[i]
    R, p, share = random_rotation(s.rng), s.rng.uniform(-0.3, 0.3, 3), s.rng.uniform(0.1, 0.9)
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
    s = draw(data, max_joints=30, kinds=SIMPLE, mimic=False, base="fixed")
    turned = {"base": (np.eye(3), np.zeros(3))}
    for joint in s.description.joints:
        turned[joint.child] = (
            random_rotation(s.rng),
            s.rng.uniform(-0.3, 0.3) * np.array(joint.axis),
        )
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


# -- free flight --------------------------------------------------------------------------------


def momentum(robot: Robot, evaluate: Any) -> Callable[..., np.ndarray]:
    """(angular, linear) about the origin in base axes: what the first six rows of M carry."""
    fly = robot.tree.links[0]

    def of(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        own = np.einsum("bij,bj->bi", evaluate(robot, "mass_matrix", q)[:, :6], qd)
        T = evaluate(robot, "forward_kinematics", q, frame=fly.name)
        angular, linear = (
            np.einsum("bij,bj->bi", T[:, :3, :3], h) for h in (own[:, :3], own[:, 3:])
        )
        return np.hstack([angular + np.cross(T[:, :3, 3], linear), linear])

    return of


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@physics
def test_momentum_of_a_free_flying_robot_changes_by_its_weight_only(
    method: str, data: Any, draw: Any, evaluate: Any, assert_close: Any, rate: Any
) -> None:
    """Motors and losses inside a robot cannot push it: without gravity momentum is conserved."""
    s = draw(data, base="free", policy=LOSSES)
    robot = s.robot
    weightless = Robot(edit.with_gravity(s.description, (0.0, 0.0, 0.0)), LOSSES)
    inside = s.u.copy()
    inside[:, :6] = 0.0
    for one, gravity in ((weightless, np.zeros(3)), (robot, robot.gravity)):
        qdd = evaluate(one, "forward_dynamics", s.q, s.qd, inside, method=method)
        change = rate(one, momentum(one, evaluate), s.q, s.qd, (s.qd, qdd))
        mass = sum(link.mass for link in one.tree.links)
        M = evaluate(one, "mass_matrix", s.q)
        size = largest(M) * (largest(qdd) + largest(s.qd) ** 2) + s.weight
        force = np.broadcast_to(mass * gravity, (STATES, 3))
        assert_close(change[:, 3:], force, cond=tied(s, evaluate), scale=size)
        if not gravity.any():
            assert_close(change[:, :3], 0 * force, cond=tied(s, evaluate), scale=3.0 * size)


REVERSIBLE = ("fixed", "revolute", "continuous", "prismatic", "helical", "universal", "spherical")


def way_to(description: RobotDescription, link: str) -> list[JointDescription]:
    """Joints from a link back to the flying base, or nothing where one cannot be turned round."""
    inboard = {joint.child: joint for joint in description.joints}
    joints = []
    while inboard[link].parent != description.base:
        joints.append(inboard[link])
        link = joints[-1].parent
    return joints if all(joint.kind in REVERSIBLE for joint in joints) else []


def turned_round(joint: JointDescription) -> tuple[JointDescription, ...]:
    """The joint with its child as parent: its opposite motion, then its origin undone."""
    R, p = np.array(joint.origin.rotation), np.array(joint.origin.translation)
    back = Pose(tuple(map(tuple, R.T.tolist())), tuple((-R.T @ p).tolist()))
    if joint.kind == "fixed":
        return (replace(joint, parent=joint.child, child=joint.parent, origin=back),)
    middle = f"{joint.name} middle"
    axes = (joint.axis, joint.second_axis)
    axis, second = axes[::-1] if joint.kind == "universal" else axes
    opposite = replace(
        joint, parent=joint.child, child=middle, origin=Pose(), axis=axis, second_axis=second
    )
    return opposite, JointDescription(f"{middle} joint", "fixed", middle, joint.parent, back)


def rerooted(description: RobotDescription, link: str) -> RobotDescription:
    """The same flying robot, with its free joint on another link."""
    way = {joint.name for joint in way_to(description, link)}
    fly = description.joints[0]
    joints = [replace(fly, child=link)]
    links = list(description.links)
    for joint in description.joints[1:]:
        joints += turned_round(joint) if joint.name in way else (joint,)
        if joint.name in way and joint.kind != "fixed":
            links.append(LinkDescription(f"{joint.name} middle"))
    return replace(description, joints=tuple(joints), links=tuple(links))


def quaternion(R: np.ndarray) -> np.ndarray:
    """Of a rotation matrix: the eigenvector of Bar-Itzhack's symmetric matrix."""
    K = np.zeros((4, 4))
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.linalg.eigh(K)[1][:, -1]


def opposite(kind: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configuration of a joint turned round, and the matrix of its rates."""
    if kind == "universal":
        return -q[::-1], -np.eye(2)[::-1]
    if kind == "spherical":
        w, u = q[0], q[1:]
        cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        return np.r_[w, -u], -(np.eye(3) + 2 * w * cross + 2 * cross @ cross)
    return -q, -np.eye(1)


def seen_from(s: State, other: Robot, link: str, evaluate: Any) -> tuple[np.ndarray, ...]:
    """The states with the free joint on another link: q', v' = B v, and the part of v̇' of B."""
    T = evaluate(s.robot, "forward_kinematics", s.q, frame=link)
    J = evaluate(s.robot, "jacobian", s.q, frame=link, axes="body")
    drift = evaluate(s.robot, "jacobian_dot_qd", s.q, s.qd, frame=link, axes="moving")
    turned = {joint.name for joint in way_to(s.description, link)}
    q, B = np.zeros((STATES, other.nq)), np.zeros((STATES, other.nv, s.robot.nv))
    mine = {x.joint_name: x for x in s.robot.tree.links}
    for k in range(STATES):
        for x in other.tree.links:
            old = mine[x.joint_name]
            a = slice(x.q_index, x.q_index + x.joint.nq)
            b = slice(x.v_index, x.v_index + x.joint.nv)
            own = s.q[k, old.q_index : old.q_index + old.joint.nq]
            columns = slice(old.v_index, old.v_index + old.joint.nv)
            if x is other.tree.links[0]:
                q[k, a], B[k, b] = np.r_[quaternion(T[k, :3, :3]), T[k, :3, 3]], J[k]
            elif x.joint_name in turned:
                q[k, a], B[k, b, columns] = opposite(x.kind, own)
            else:
                q[k, a], B[k, b, columns] = own, np.eye(x.joint.nv)
    rest = np.zeros((STATES, other.nv))
    rest[:, :6] = drift
    return q, B, rest


@given(data=st.data())
@physics
def test_choice_of_root_does_not_matter(
    data: Any, draw: Any, evaluate: Any, assert_close: Any
) -> None:
    """A free-flying robot is the same robot whichever link carries its free joint."""
    s = draw(data, base="free", mimic=False)
    links = [joint.child for joint in s.description.joints if way_to(s.description, joint.child)]
    root = str(s.rng.choice(links or [s.description.joints[0].child]))
    other = Robot(rerooted(s.description, root))
    q, B, rest = seen_from(s, other, root, evaluate)
    v, a = (np.einsum("bij,bj->bi", B, x) for x in (s.qd, s.u))
    size = 1.0 + largest(B)
    for frame in s.rng.choice([x.name for x in s.description.links], 3):
        poses = [
            evaluate(robot, "forward_kinematics", at, frame=str(frame))
            for robot, at in ((s.robot, s.q), (other, q))
        ]
        assert_close(poses[1], poses[0], scale=size)
    M, moved = evaluate(s.robot, "mass_matrix", s.q), evaluate(other, "mass_matrix", q)
    assert_close(B.mT @ moved @ B, M, scale=size**2 * largest(moved))
    tau = evaluate(other, "inverse_dynamics", q, v, a + rest)
    expected = evaluate(s.robot, "inverse_dynamics", s.q, s.qd, s.u)
    actual = np.einsum("bij,bi->bj", B, tau)
    assert_close(actual, expected, scale=size * (largest(tau) + largest(expected) + s.weight))
    T = [evaluate(*each) for each in ((s.robot, "kinetic_energy", s.q, s.qd),
                                      (other, "kinetic_energy", q, v))]  # fmt: skip
    assert_close(T[1], T[0], scale=size * T[0])


# -- long motions -------------------------------------------------------------------------------


def bracket(robot: Robot, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``[a, b]`` of rates: turns and screws do not commute, all else does."""
    out = np.zeros_like(a)
    for link in robot.tree.links:
        turn = slice(link.v_index, link.v_index + 3)
        push = slice(link.v_index + 3, link.v_index + 6)
        if link.kind in ("spherical", "free"):
            out[turn] = cross(a[turn], b[turn])
        if link.kind == "free":
            out[push] = cross(a[turn], b[push]) + cross(a[push], b[turn])
    return out


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.cross is slow on one pair."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def swing(
    robot: Robot, q: np.ndarray, qd: np.ndarray, dt: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Runge-Kutta-Munthe-Kaas steps of order four, through ``integrate``."""
    none = np.zeros(robot.nv)

    def slope(x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the rates x that lead from q to where it is now, and of qd."""
        once = bracket(robot, x, v)
        dx = v + once / 2 + bracket(robot, x, once) / 12
        return dx, robot.forward_dynamics(robot.integrate(q, x), v, none)

    for _ in range(steps):
        x1, a1 = qd, robot.forward_dynamics(q, qd, none)
        x2, a2 = slope(dt / 2 * x1, qd + dt / 2 * a1)
        x3, a3 = slope(dt / 2 * x2, qd + dt / 2 * a2)
        x4, a4 = slope(dt * x3, qd + dt * a3)
        q = robot.integrate(q, dt / 6 * (x1 + 2 * x2 + 2 * x3 + x4))
        qd = qd + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, qd


SWINGS = {
    "revolute": ("revolute", "revolute"),
    "ball": ("spherical", "revolute"),
    "cardan": ("universal", "helical"),
    "plane": ("planar", "revolute"),
    "flight": ("free", "spherical"),
}


def swinging(name: str, random_robot: Any) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Two links of a metre and their first state, of energies that are not small."""
    rng = np.random.default_rng(12)
    drawn = random_robot(rng, 2, kinds=("revolute",), chain=True)
    joints = [
        replace(j, kind=kind, axis=(0.0, 0.0, 1.0), armature=0.0, pitch=0.1)
        for j, kind in zip(drawn.joints, SWINGS[name], strict=True)
    ]
    free = "free" in SWINGS[name]
    gravity = (0.0, 0.0, 0.0) if free else drawn.gravity
    robot = Robot(replace(drawn, joints=tuple(joints), gravity=gravity))
    return robot, robot.random_q(rng), rng.uniform(-1, 1, robot.nv)


def energy(robot: Robot, q: np.ndarray, qd: np.ndarray) -> float:
    return float(robot.kinetic_energy(q, qd) + robot.potential_energy(q))


@pytest.mark.parametrize("name", SWINGS)
def test_energy_is_conserved_in_free_swing(name: str, random_robot: Any, evaluate: Any) -> None:
    """Ten seconds in steps of a millisecond: drift below 1e-9 of the energy exchanged."""
    robot, q, qd = swinging(name, random_robot)
    start = energy(robot, q, qd)
    turned, moving, exchanged = q, qd, float(robot.kinetic_energy(q, qd))
    for _ in range(10):
        turned, moving = swing(robot, turned, moving, 1e-3, 1000)
        exchanged = max(exchanged, float(robot.kinetic_energy(turned, moving)))
    assert abs(energy(robot, turned, moving) - start) < 1e-9 * exchanged
    if "free" in SWINGS[name]:
        of = momentum(robot, evaluate)
        before, after = of(q[None], qd[None]), of(turned[None], moving[None])
        assert np.abs(after - before).max() < 1e-9 * np.abs(before).max()


@pytest.mark.parametrize("name", SWINGS)
def test_observed_order_is_four(name: str, random_robot: Any) -> None:
    """Halving the step divides the error by 2⁴, to a tenth of an order."""
    robot, q, qd = swinging(name, random_robot)
    ends = [swing(robot, q, qd, 0.4 / n, n) for n in (100, 200, 400)]
    errors = [
        np.linalg.norm(np.r_[robot.difference(a[0], b[0]), a[1] - b[1]]) for a, b in pairwise(ends)
    ]
    assert abs(np.log2(errors[0] / errors[1]) - 4.0) < 0.1


@pytest.mark.parametrize("name", SWINGS)
def test_losses_slow_the_swing(name: str, random_robot: Any) -> None:
    """Energy falls with every step, and by what damping and friction take."""
    robot, q, qd = swinging(name, random_robot)
    joints = [replace(j, damping=0.3, friction=0.05) for j in robot.description.joints]
    lossy = Robot(replace(robot.description, joints=tuple(joints)), LOSSES)
    levels = [energy(lossy, q, qd)]
    taken = 0.0
    for _ in range(50):  # too short for a rate to change its sign and meet dry friction's step
        before = (0.3 * qd**2 + 0.05 * np.abs(qd)).sum()
        q, qd = swing(lossy, q, qd, 1e-4, 1)
        taken += 0.5e-4 * (before + (0.3 * qd**2 + 0.05 * np.abs(qd)).sum())
        levels.append(energy(lossy, q, qd))
    assert np.all(np.diff(levels) < 0.0)
    assert abs(levels[0] - levels[-1] - taken) < 1e-4 * taken


# -- compiled -----------------------------------------------------------------------------------


FRAMELESS = [
    f for f, methods in FUNCTIONS.items() if not next(iter(methods.values())).takes_frame
    and f not in configurations.FUNCTIONS
]  # fmt: skip
OF_FRAMES = ["forward_kinematics", "jacobian", "jacobian_dot_qd"]
CUBIC = ["christoffel", "inertial_power"]  # programs of a million operations at thirty joints


@pytest.mark.parametrize("function", FRAMELESS + OF_FRAMES)
@pytest.mark.parametrize(
    "joints", [1, 4, *(pytest.param(n, marks=pytest.mark.full) for n in (7, 30))]
)
def test_compiled_kernels_agree(
    joints: int,
    function: str,
    random_robot: Any,
    evaluate: Any,
    rng: np.random.Generator,
    assert_close: Any,
    mobility: Any,
) -> None:
    """Of simple joints; tests/papers/test_agreement_all.py has every kind."""
    robot = Robot(random_robot(rng, min(joints, 12) if function in CUBIC else joints))
    names = ("q", "qd", "qdd", "tau", "rhs", "x")
    values = dict(zip(names, rng.uniform(-3, 3, (6, 50, robot.nv)), strict=True))
    cond = np.linalg.cond(evaluate(robot, "mass_matrix", values["q"]))
    qdd = evaluate(robot, "forward_dynamics", *(values[k] for k in ("q", "qd", "tau")))
    for method, algorithm in FUNCTIONS[function].items():
        if algorithm.iterates or algorithm.why_not(robot.tree):
            continue
        frame = {"frame": robot.frame_names[-1]} if algorithm.takes_frame else {}
        choice = {"method": method} if len(FUNCTIONS[function]) > 1 else {}
        arguments = [values[name] for name, _ in algorithm.inputs]
        expected = evaluate(robot, function, *arguments, **frame, **choice)
        parts = function.endswith("_derivatives")  # returned one by one
        call = (not parts and getattr(robot, function, None)) or partial(robot.compute, function)
        actual = call(*arguments, **frame, **choice)
        size = largest(expected) + (values["qd"] ** 2).sum(axis=1)
        size = size * (cond if choice or "innovations" in method else 1.0)
        if method.startswith("schur"):
            held = largest(evaluate(robot, "joint_wrenches", values["q"], values["qd"], qdd))
            size = size + mobility(robot.tree) * (held if function == "forward_dynamics" else 1.0)
        assert_close(actual, expected, scale=size)
