"""Closed loops against a dense KKT solve on random trees: 20 in every run, 1,000 in `make full`.

    [M  -Jᵀ] [qdd]   [tau - bias]
    [J   0 ] [ λ ] = [  -J̇ qd   ]

J is made of the Jacobians of frames, and J̇ qd is its derivative by a complex step, so that neither
knows the equations of algorithms/closures.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwise as lw

STEP = 1e-30
STATES = 4
METHODS = ("ltl", "pv", "pv-r")
BOUND = 1e-11  # times the condition of the KKT matrix


class Case(NamedTuple):
    """A random tree with loops, and states that do not respect them."""

    robot: lw.Robot
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray


def skew(d: np.ndarray) -> np.ndarray:
    """``d~`` (..., 3, 3)."""
    return -np.cross(d[..., None, :], np.eye(3))


def directions(loop: lw.Loop) -> np.ndarray:
    """The rows of a loop (k, 6)."""
    given = np.asarray(loop.directions)
    return np.eye(6)[given] if given.dtype == bool else given


def jacobian(robot: lw.Robot, q: np.ndarray, evaluate: Any) -> np.ndarray:
    """``J`` (states, m, nv) of all loops from poses and Jacobians of their frames, in complex q."""
    rows = []
    for loop in robot.loops:
        Ta = evaluate(robot, "forward_kinematics", q, frame=loop.frame_a)
        Ja = evaluate(robot, "jacobian", q, frame=loop.frame_a)
        if loop.frame_b is None:
            Tb, Jb = np.broadcast_to(np.eye(4), Ta.shape), np.zeros_like(Ja)
        else:
            Tb = evaluate(robot, "forward_kinematics", q, frame=loop.frame_b)
            Jb = evaluate(robot, "jacobian", q, frame=loop.frame_b)
        d = Ta[..., :3, 3] - Tb[..., :3, 3]
        back = np.swapaxes(Tb[..., :3, :3], -1, -2)
        turning = back @ (Ja[..., :3, :] - Jb[..., :3, :])
        moving = back @ (Ja[..., 3:, :] - Jb[..., 3:, :] + skew(d) @ Jb[..., :3, :])
        rows.append(directions(loop) @ np.concatenate([turning, moving], axis=-2))
    return np.concatenate(rows, axis=-2)


def kkt(case: Case, evaluate: Any, q_rate: Any) -> tuple[np.ndarray, ...]:
    """``qdd``, ``λ`` (least), the condition without redundant rows, and the rank of J, by state."""
    robot, q, qd, tau = case
    J = jacobian(robot, q, evaluate)
    moved = q + 1j * STEP * q_rate(robot, q, qd)
    drift = np.imag(jacobian(robot, moved, evaluate) @ qd[..., None])[..., 0] / STEP
    M = evaluate(robot, "mass_matrix", q)
    bias = evaluate(robot, "bias", q, qd)
    m, n = J.shape[-2:]
    found = []
    for k in range(len(q)):
        K = np.block([[M[k], -J[k].T], [J[k], np.zeros((m, m))]])
        scale = np.sqrt(np.abs(np.linalg.eigvalsh(M[k])).max())
        s = np.linalg.svd(K)[1]
        rank = np.linalg.matrix_rank(J[k], rtol=1e-9)
        x = np.linalg.lstsq(K, np.r_[tau[k] - bias[k], -drift[k]], rcond=1e-11)[0]
        found.append((x[:n], x[n:], s[0] / s[n + rank - 1], rank, scale))
    qdd, forces, cond, ranks, _ = zip(*found, strict=True)
    return np.array(qdd), np.array(forces), np.array(cond), np.array(ranks)


def random_case(
    seed: int, random_robot: Any, random_states: Any, followers: bool, most: int | None = None
) -> Case:
    """One to three loops of one to four directions each on a random tree, fewer than it has
    degrees of freedom unless ``most`` says otherwise.
    """
    rng = np.random.default_rng(seed)
    base = str(rng.choice(["fixed", "free"]))
    description = random_robot(rng, int(rng.integers(4, 11)), mimic=followers, base=base)
    robot = lw.Robot(description)
    on_link = {name: frame.link for name, frame in robot.tree.frames.items()}
    moving = [name for name, link in on_link.items() if link >= 0]
    loops: list[lw.Loop] = []
    room = robot.nv - 1 if most is None else most
    for _ in range(int(rng.integers(1, 4)) if most is None else 3):
        a = str(rng.choice(moving))
        others = [name for name, link in on_link.items() if link != on_link[a]]
        b = None if rng.random() < 0.4 or not others else str(rng.choice(others))
        rank = int(rng.integers(1, 5)) if most is None else 4
        rows: Any = rng.normal(size=(rank, 6))
        if rng.random() < 0.6:
            rows = np.zeros(6, bool)
            rows[rng.permutation(6)[:rank]] = True
        if rank <= room:
            loops.append(lw.Loop(a, b, rows))
            room -= rank
    closed = robot.close_loops(loops or [lw.Loop(moving[-1], None, np.eye(6)[[4]])])
    return Case(closed, *random_states(closed, rng, STATES))


@pytest.mark.parametrize("seed", range(6))
def test_delassus_matrices_by_every_method(
    seed: int, random_robot: Any, random_states: Any, evaluate: Any
) -> None:
    """``J M⁻¹ Jᵀ`` by a dense solve; up to 12 directions, which are cut where six go on."""
    robot, q, _, _ = random_case(seed, random_robot, random_states, followers=False, most=12)
    J, M = jacobian(robot, q, evaluate), evaluate(robot, "mass_matrix", q)
    want = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
    size = np.abs(want).max(axis=(-1, -2)) * np.linalg.cond(M)
    for method in (*METHODS, "efp"):
        found = evaluate(robot, "delassus", q, method=method)
        assert (np.abs(found - want).max(axis=(-1, -2)) <= 1e-13 * size).all(), method
        assert (found == np.swapaxes(found, -1, -2)).all(), method


def compare(case: Case, evaluate: Any, q_rate: Any, compiled: bool = False) -> None:
    qdd, forces, cond, rank = kkt(case, evaluate, q_rate)
    robot, q, qd, tau = case
    first = np.cumsum([0] + [len(directions(loop)) for loop in robot.loops])
    for method in METHODS:
        if method != "ltl" and robot.tree.coupled:
            continue
        if compiled:
            found = robot.forward_dynamics(q, qd, tau, method=method)
        else:
            found = evaluate(robot, "forward_dynamics", q, qd, tau, method=method)
        size = np.linalg.norm(qdd, axis=-1)
        full = rank == forces.shape[-1]  # others contradict each other at random velocities
        error = np.linalg.norm(found - qdd, axis=-1) / size
        assert (error[full] <= BOUND * cond[full]).all(), (method, error, cond)
        wrenches = evaluate(robot, "constraint_forces", q, qd, tau, method=method)
        for k, loop in enumerate(robot.loops):
            rows = directions(loop)
            R = np.eye(3)
            if loop.frame_b is not None:
                R = evaluate(robot, "forward_kinematics", q, frame=loop.frame_b)[..., :3, :3]
            own = forces[..., first[k] : first[k + 1]] @ rows
            turned = [(R @ own[..., part, None])[..., 0] for part in (slice(0, 3), slice(3, 6))]
            want = np.concatenate(turned, axis=-1)
            off = np.linalg.norm(wrenches[:, k] - want, axis=-1)
            allowed = (
                BOUND * cond * (np.linalg.norm(forces, axis=-1) + np.linalg.norm(tau, axis=-1))
            )
            assert (off[full] <= allowed[full]).all(), (method, off, allowed)


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_with_loops_equal_a_dense_solve(
    seed: int, random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    case = random_case(seed, random_robot, random_states, followers=seed % 4 == 0)
    compare(case, evaluate, q_rate)


@pytest.mark.full
def test_a_thousand_random_trees_with_loops_equal_a_dense_solve(
    random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    """Some have more directions than degrees of freedom, or the same loop twice: flagged."""
    for seed in range(1000, 2000):
        case = random_case(seed, random_robot, random_states, followers=seed % 4 == 0)
        compare(case, evaluate, q_rate)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(k, marks=[pytest.mark.full] if k not in (1, 2) else []) for k in range(40)],
)
def test_redundant_loops(
    seed: int, random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    """A loop that is closed again: accelerations as without, forces the least, and flagged."""
    case = random_case(seed, random_robot, random_states, followers=False)
    once = case.robot
    twice = once.close_loops(once.loops[:1])
    again = case._replace(robot=twice)
    qdd, _, cond, _ = kkt(again, evaluate, q_rate)
    for method in METHODS:
        found = evaluate(twice, "forward_dynamics", *case[1:], method=method)
        error = np.linalg.norm(found - qdd, axis=-1) / np.linalg.norm(qdd, axis=-1)
        assert (error <= BOUND * cond).all(), (method, error, cond)
        alone = evaluate(once, "forward_dynamics", *case[1:], method=method)
        assert np.allclose(found, alone, rtol=1e-6)
        shared = evaluate(twice, "constraint_forces", *case[1:], method=method)
        whole = evaluate(once, "constraint_forces", *case[1:], method=method)
        size = np.abs(whole).max()
        assert np.abs(shared[:, 0] - whole[:, 0] / 2).max() < 1e-9 * size
        assert np.abs(shared[:, -1] - whole[:, 0] / 2).max() < 1e-9 * size
    _, bits = twice.forward_dynamics(*case[1:], status=True)
    assert (bits & lw.Status.REDUNDANT).all()
