"""Torques of a motion with the load shared, and what squeezes the object."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

GRASPS = {
    "carried": ([6, 7], ["rigid", "rigid"]),
    "points": ([7, 7, 6], ["point", "point", "soft"]),
}


@pytest.fixture(scope="module", params=GRASPS)
def case(request: pytest.FixtureRequest, random_grasp: Any, moving: Any, evaluate: Any) -> Any:
    """A grasp, states, and a motion that its contacts allow: that of some torques."""
    rng = np.random.default_rng(list(GRASPS).index(request.param))
    grasp = random_grasp(rng, *GRASPS[request.param])
    q, qd, tau = moving(grasp, rng, 2)
    rows = evaluate(grasp, "motion", q, qd, tau)
    n = grasp.nv
    return grasp, q, qd, tau, rows[:, :n], rows[:, n + 6 :]


def share(evaluate: Any, case: Any, weights: np.ndarray) -> np.ndarray:
    grasp, q, qd, _, qdd, _ = case
    w = np.broadcast_to(weights, qd.shape)
    return np.asarray(evaluate(grasp, "weighted_inverse_dynamics", q, qd, qdd, w))


def wrench(grasp: lw.Grasp, q: np.ndarray, forces: np.ndarray, evaluate: Any) -> np.ndarray:
    """Of all contact forces on the object, at its frame's origin."""
    at = evaluate(grasp, "forward_kinematics", q, frame="object")[:, :3, 3]
    total = np.zeros((len(q), 6))
    for i, contact in enumerate(grasp.contacts):
        name = f"arm{contact.arm}/{contact.frame}"
        r = evaluate(grasp, "forward_kinematics", q, frame=name)[:, :3, 3]
        n, f = forces[:, 6 * i : 6 * i + 3], forces[:, 6 * i + 3 : 6 * i + 6]
        total += np.concatenate([n + np.cross(r - at, f), f], axis=1)
    return total


def test_torques_produce_the_motion_and_are_the_smallest(case: Any, evaluate: Any) -> None:
    grasp, q, qd, tau, qdd, forces = case
    least = share(evaluate, case, np.ones(grasp.nv))
    again = evaluate(grasp, "motion", q, qd, least)
    size, pushes = np.abs(qdd).max(), again[:, grasp.nv + 6 :]
    assert np.abs(again[:, : grasp.nv] - qdd).max() <= 1e-7 * size
    arms = sum(robot.nv for robot in grasp.arms)
    assert np.abs(least[:, arms:]).max(initial=0.0) <= 1e-9 * np.abs(least).max()
    assert (np.linalg.norm(least, axis=1) <= np.linalg.norm(tau, axis=1)).all()
    same = wrench(grasp, q, pushes, evaluate) - wrench(grasp, q, forces, evaluate)
    assert np.abs(same).max() <= 1e-8 * np.abs(forces).max(), "the object feels the same"


def test_weights_take_load_off_an_arm(case: Any, evaluate: Any) -> None:
    grasp, first = case[0], case[0].arms[0].nv
    weights = np.ones(grasp.nv)
    weights[:first] = 100.0
    even, spared = (share(evaluate, case, w) for w in (np.ones(grasp.nv), weights))
    sizes = [np.linalg.norm(x[:, :first], axis=1) for x in (spared, even)]
    assert (sizes[0] < 0.97 * sizes[1]).all()


def test_internal_forces_move_nothing_and_leave_the_least(
    case: Any, evaluate: Any, dense: Any
) -> None:
    grasp, q, qd, tau, _, forces = case
    inside = evaluate(grasp, "internal_forces", q, forces).reshape(forces.shape)
    size = np.abs(forces).max()
    assert np.abs(inside).max() > 1e-3 * size
    assert np.abs(wrench(grasp, q, inside, evaluate)).max() <= 1e-11 * size
    outside = forces - inside
    lengths = [dense(grasp, *row).length() for row in zip(q, qd, tau, strict=True)]
    per = np.tile(np.repeat([1.0, 0.0], 3), len(grasp.contacts)) / np.square(lengths)[:, None]
    weights = np.where(per > 0.0, per, 1.0)  # of moments, by the length; of forces
    product = (outside * inside * weights).sum(axis=1)
    assert np.abs(product).max() <= 1e-11 * size**2, "orthogonal"
    again = evaluate(grasp, "internal_forces", q, outside)
    assert np.abs(again).max() <= 1e-11 * size


def test_compiled(random_grasp: Any) -> None:
    grasp = random_grasp(np.random.default_rng(8), [3, 3], ["rigid", "point"])
    rng = np.random.default_rng(9)
    q, zero = grasp.random_q(rng, size=3), np.zeros((3, grasp.nv))
    tau = grasp.inverse_dynamics(q, zero, zero)
    assert tau.shape == (3, 6)
    qdd, _, forces = grasp.motion(q, zero, tau)
    assert np.abs(qdd).max() <= 1e-8, "torques of rest"
    single = [x.astype(np.float32) for x in (q, zero, zero)]
    shared = grasp.inverse_dynamics(*single, weights=np.ones(6))
    assert shared.dtype == np.float32
    np.testing.assert_allclose(shared, tau, rtol=1e-3, atol=1e-3)
    inside = grasp.internal_forces(q, forces)
    assert inside.shape == (3, 2, 6)
    _, status = grasp.inverse_dynamics(q, zero, zero, status=True)
    assert (status == 0).all()
    with pytest.raises(ValueError, match=r"inverse_dynamics: weights are .*; expected 6 positive"):
        grasp.inverse_dynamics(q, zero, zero, weights=[1, 2])
    for wrong in ("heavy", [np.inf] + [1.0] * 5, {}):
        with pytest.raises(ValueError, match=r"inverse_dynamics: weights are .*; expected 6 posit"):
            grasp.inverse_dynamics(q, zero, zero, weights=wrong)


def test_motions_of_an_object_that_contacts_leave_free(random_grasp: Any) -> None:
    """One point holds three directions of six. Motions that it allows have torques; rest, which
    would need a moment on the object, has none.
    """
    grasp = random_grasp(np.random.default_rng(3), [6], ["point"])
    rng = np.random.default_rng(4)
    q, rest = grasp.random_q(rng, size=4), np.zeros((4, grasp.nv))
    given = rng.normal(size=(4, 6))
    torques = grasp.torques(given)
    qdd = grasp.forward_dynamics(q, rest, torques)
    tau, bits = grasp.inverse_dynamics(q, rest, qdd, status=True)
    assert (bits == lw.Status.REDUNDANT).all() and (tau[:, 6:] == 0.0).all()
    np.testing.assert_allclose(tau, torques, rtol=0, atol=1e-9 * np.abs(qdd).max())
    qdd[1] = 0.0
    tau, bits = grasp.inverse_dynamics(q, rest, qdd, status=True)
    assert (bits & lw.Status.SINGULAR).tolist() == [0, int(lw.Status.SINGULAR), 0, 0]
    assert np.isnan(tau[1]).all() and np.isfinite(tau[[0, 2, 3]]).all()
