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


def consistent(case: Case, evaluate: Any) -> Case:
    """The case at rest where directions depend on each other: they would contradict each other at
    random velocities, and any answer is then a compromise.
    """
    J = jacobian(case.robot, case.q, evaluate)
    full = np.linalg.matrix_rank(J, rtol=1e-9) == J.shape[-2]
    return case._replace(qd=case.qd * full[:, None])


def base_wrenches(case: Case, forces: np.ndarray, evaluate: Any) -> np.ndarray:
    """Forces along directions as wrenches on frames a (states, loops, 6), in base axes."""
    found, first = [], 0
    for loop in case.robot.loops:
        rows = directions(loop)
        R = np.eye(3)
        if loop.frame_b is not None:
            R = evaluate(case.robot, "forward_kinematics", case.q, frame=loop.frame_b)
            R = R[..., :3, :3]
        own = forces[..., first : first + len(rows)] @ rows
        turned = [(R @ own[..., part, None])[..., 0] for part in (slice(0, 3), slice(3, 6))]
        found.append(np.concatenate(turned, axis=-1))
        first += len(rows)
    return np.stack(found, axis=1)


def compare(case: Case, evaluate: Any, q_rate: Any) -> int:
    """Accelerations, and forces: the least where several would do. Returns in how many states some
    method has other forces: a direction that is redundant was taken for a weak one.
    """
    others = np.zeros(len(case.q), bool)
    robot, q, qd, tau = case = consistent(case, evaluate)
    qdd, forces, cond, _ = kkt(case, evaluate, q_rate)
    want, size = base_wrenches(case, forces, evaluate), np.linalg.norm(qdd, axis=-1)
    pushed = np.linalg.norm(forces, axis=-1) + np.linalg.norm(tau, axis=-1)
    for method in METHODS:
        if method != "ltl" and robot.tree.coupled:
            continue
        found = evaluate(robot, "forward_dynamics", q, qd, tau, method=method)
        error = np.linalg.norm(found - qdd, axis=-1) / size
        assert (error <= BOUND * cond).all(), (method, error, cond)
        wrenches = evaluate(robot, "constraint_forces", q, qd, tau, method=method)
        off = np.linalg.norm(wrenches - want, axis=-1).max(axis=-1) / pushed
        others |= off > BOUND * cond
    return int(others.sum())


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_with_loops_equal_a_dense_solve(
    seed: int, random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    case = random_case(seed, random_robot, random_states, followers=seed % 4 == 0)
    assert compare(case, evaluate, q_rate) == 0


@pytest.mark.full
def test_a_thousand_random_trees_with_loops_equal_a_dense_solve(
    random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    """In some, directions depend on each other: forces are the least but for one state in 1,000."""
    others = 0
    for seed in range(1000, 2000):
        case = random_case(seed, random_robot, random_states, followers=seed % 4 == 0)
        others += compare(case, evaluate, q_rate)
    assert others <= STATES


@pytest.mark.parametrize(
    "seed",
    [pytest.param(k, marks=[pytest.mark.full] if k not in (1, 2) else []) for k in range(40)],
)
def test_redundant_loops(
    seed: int, random_robot: Any, random_states: Any, evaluate: Any, q_rate: Any
) -> None:
    """A loop that is closed again: accelerations as without, forces the least, and flagged."""
    case = random_case(seed, random_robot, random_states, followers=False)
    once = consistent(case, evaluate)
    twice = once._replace(robot=once.robot.close_loops(once.robot.loops[:1]))
    assert compare(twice._replace(qd=once.qd * 0.0), evaluate, q_rate) == 0
    for method in METHODS:  # in motion too: the same direction twice does not contradict itself
        found, alone = (
            evaluate(x.robot, "forward_dynamics", *x[1:], method=method) for x in (twice, once)
        )
        assert np.allclose(found, alone, rtol=1e-6, atol=1e-9 * np.abs(alone).max())
    _, bits = twice.robot.forward_dynamics(*twice[1:], status=True)
    assert (bits & lw.Status.REDUNDANT).all()
