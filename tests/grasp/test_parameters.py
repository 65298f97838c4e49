"""Grasps under other constants: by every method, as grasps that were built with these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

BODY = lw.RigidBody(2.0, (0.05, 0.1, 0.2), (0.06, 0.05, 0.02))
AXES = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0.3, 0, 1)]
METHODS = ("ltl", "pv", "pv-r", "recursive")


def base(x: float, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, x], [s, c, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def rpy_of(w: np.ndarray) -> list[float]:
    """Roll, pitch and yaw of a rotation vector."""
    pose = lw.se3.exp(np.concatenate([w, np.zeros(3)]))
    R = pose[:3, :3]
    return [np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])]


def arm_of(
    rng: np.random.Generator, name: str, rotors: np.ndarray, placement: np.ndarray
) -> lw.Robot:
    """An arm of six joints with random bodies."""
    b = lw.Builder(name)
    for i, axis in enumerate(AXES):
        b = b.link(f"{name}{i}", mass=rng.uniform(1, 2), com=rng.uniform(-0.1, 0.1, 3),
                   inertia=rng.uniform(0.02, 0.03, 3))  # fmt: skip
        b = b.joint(f"{name}_joint{i}", "revolute", parent=f"{name}{i - 1}" if i else "base",
                    child=f"{name}{i}", axis=axis, xyz=placement[i, 3:] + [0.3, 0.0, 0.05],
                    rpy=rpy_of(placement[i, :3]), armature=rotors[i])  # fmt: skip
    return b.frame(f"{name}_tip", f"{name}5", xyz=(0.1, 0.0, 0.2)).build()


def two_arms(
    seed: int,
    body: lw.RigidBody = BODY,
    rotors: Any = 0.0,
    placement: Any = 0.0,
    load: Any = None,
    **options: Any,
) -> lw.Grasp:
    """Arms with random bodies; the first carries the object unless it has a state of its own."""
    rng = np.random.default_rng(seed)
    turned, moved = np.zeros(12) + rotors, np.zeros((12, 6)) + placement
    arms = [arm_of(rng, name, turned[k : k + 6], moved[k : k + 6])
            for name, k in (("left", 0), ("right", 6))]  # fmt: skip
    if load is not None:
        arms[0] = arms[0].with_payload("left5", *load)
    contacts = [lw.Contact(0, "left_tip"), lw.Contact(1, "right_tip", "soft", normal=(0, 1, 0.2))]
    bases = [base(0.0, 0.3), base(1.2, 2.5)]
    return lw.Grasp(arms, body, contacts, bases, **options)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def check(grasp: lw.Grasp, values: Any, given: dict[str, Any], answer: Any) -> None:
    """Each method under other constants, without compilation, against dense equations."""
    parameters = [np.ravel(given[name]).tolist() for name in grasp.parameters]
    state = [x.tolist() for x in values]
    for method in METHODS:
        row = np.array(grasp.evaluate("motion", *state, *parameters, method=method), float)
        qdd, acceleration, forces = np.split(row, [grasp.nv, grasp.nv + 6])
        close(qdd[:12], answer.qdd)
        close(acceleration, answer.acceleration)
        close(forces, answer.forces.ravel())
        alone = grasp.evaluate("forward_dynamics", *state, *parameters, method=method)
        close(np.array(alone, float), qdd)


def state(grasp: lw.Grasp) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(5)
    q, (qd, tau) = grasp.random_q(rng), rng.uniform(-1, 1, (2, grasp.nv))
    tau[12:] = 0.0
    return q, qd, tau


@pytest.mark.parametrize("object_state", [False, True])
def test_constants_of_another_grasp_by_every_method(object_state: bool, dense: Any) -> None:
    """Bodies of the links, gravity, rotors, friction and places of the joints of one grasp as
    arguments of another.
    """
    rng = np.random.default_rng(2)
    rotors, friction = rng.uniform(0.1, 0.5, 12), rng.uniform(0.1, 2.0, (12, 2))
    placement = rng.uniform(-0.2, 0.2, (12, 6))
    names = ("inertia", "gravity", "rotor", "friction", "placement")
    grasp = two_arms(0, object_state=object_state).parametric(*names)
    other = two_arms(
        1, BODY, rotors, placement, gravity=(1.0, -2.0, -6.0), object_state=object_state
    )
    q, qd, tau = values = state(other)
    more = grasp.nv - 12  # of the object's own joint
    given = {
        "inertia": other.inertial_parameters,
        "gravity": other.gravity,
        "rotor": np.pad(rotors, (0, more)),
        "friction": np.pad(friction, ((0, more), (0, 0))),
        "placement": np.pad(placement, ((0, more // 6), (0, 0))),
    }
    lost = friction[:, 0] * qd[:12] + friction[:, 1] * np.sign(qd[:12])
    answer = dense(other, q, qd, tau - np.pad(lost, (0, more))).solve()
    check(grasp, values, given, answer)


@pytest.mark.parametrize("frame", ["object", "left5"])
@pytest.mark.parametrize("object_state", [False, True])
def test_a_payload_is_of_what_its_frame_is_fixed_to(
    frame: str, object_state: bool, dense: Any
) -> None:
    """On the object's frame contacts carry it, also the rigid one whose link has the object in its
    body; on the link beside it the arm does.
    """
    m, c, moments = 0.7, np.array([0.1, -0.2, 0.1]), np.array([0.03, 0.02, 0.025])
    J = np.diag(moments) + m * (c @ c * np.eye(3) - np.outer(c, c))
    ten = [m, *(m * c), J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]]
    if frame == "object":
        other = two_arms(0, together(BODY, m, c, moments), object_state=object_state)
    else:
        other = two_arms(0, load=(m, c, moments), object_state=object_state)
    nominal = two_arms(0, object_state=object_state)
    values = state(nominal)
    answer = dense(other, *values).solve()
    check(nominal.parametric(payload=frame), values, {"payload": ten}, answer)


def together(body: lw.RigidBody, m: float, c: np.ndarray, moments: np.ndarray) -> lw.RigidBody:
    """Two bodies as one."""
    masses, centres = (body.mass, m), (np.array(body.com), c)
    com = sum(k * r for k, r in zip(masses, centres, strict=True)) / sum(masses)
    inertia = np.diag(body.inertia) + np.diag(moments)
    for k, r in zip(masses, centres, strict=True):
        d = r - com
        inertia += k * (d @ d * np.eye(3) - np.outer(d, d))
    return lw.RigidBody(sum(masses), com, inertia)
