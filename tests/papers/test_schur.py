"""Schur complements: interbody forces, block factors, operational inertia, joint wrenches.

[Fijany, Djouani, Fried and Pontnau], corrected: every method against articulated and composite
bodies, on chains and trees of every joint kind, with rotors; the paper's identities to 50 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import blocks, interbody, orders, schur, schur_operational, wrenches
from linkwise.model.joints import (
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from linkwise.model.tree import Follows, Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import Motion, RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.trace.status import Status

FORWARD = ["schur", "schur-bcr", "schur-published"]
INVERSE = ["schur", "recursive"]
INERTIA = ["schur", "schur-direct", "recursive"]

R, P, H, U, L, S, F = (
    Revolute(), Prismatic(), Helical(0.2), Universal(), Planar(), Spherical(), Free(),
)  # fmt: skip
TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
MACHINES: dict[str, tuple[tuple[Joint, ...], tuple[int, ...]]] = {
    "chain of revolutes": ((R,) * 7, tuple(range(-1, 6))),
    "chain of all kinds": ((R, P, H, U, L, S, F, R), tuple(range(-1, 7))),
    "free base": ((F, R, R, U, R, P, R), tuple(range(-1, 6))),
    "tree": ((R, S, H, U, L, R, R, P, R), (-1, 0, 0, 0, 1, 1, -1, 6, 6)),
    "free base with legs": ((F, R, R, R, U, P, R, R), (-1, 0, 1, 0, 3, 0, 5, 2)),
}


def placement(rng: np.random.Generator) -> Transform:
    turns = [
        Turn(axis, float(np.cos(a)), float(np.sin(a)))
        for axis, a in zip("zxz", rng.uniform(-3, 3, 3), strict=True)
    ]
    return Transform(Vec3(*rng.uniform(-0.3, 0.3, 3).tolist()), tuple(turns))


def body(rng: np.random.Generator) -> RigidInertia:
    """Four points of mass: first and second moments about the origin."""
    m, p = rng.uniform(0.2, 1.0, 4), rng.uniform(-0.3, 0.3, (4, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    return RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))


def grow(joints: Any, parents: Any, rng: np.random.Generator, rotors: bool) -> Tree:
    links: list[Link] = []
    nq = nv = 0
    for i, (joint, parent) in enumerate(zip(joints, parents, strict=True)):
        armature = tuple(float(x) for x in rng.uniform(0.1, 0.5, joint.nv) * rng.integers(0, 2))
        links.append(
            Link(
                f"l{i}", f"j{i}", parent, joint, placement(rng), body(rng),
                armature if rotors else (0.0,) * joint.nv, nq, nv, damping=0.1,
            )
        )  # fmt: skip
        nq, nv = nq + joint.nq, nv + joint.nv
    frames = {f"l{i}": Frame(i, (0.1, -0.2, 0.3), TURN) for i in range(len(links))}
    return Tree(tuple(links), (1.0, -2.0, -9.0), frames)


# with rotors or without, by turns; all in a full run
WITH = [
    pytest.param(f"{name}{rotors}", marks=() if (i + k) % 2 == 0 else pytest.mark.full)
    for i, name in enumerate(MACHINES)
    for k, rotors in enumerate(("", ", rotors"))
]


@pytest.fixture(params=WITH)
def robot(request: pytest.FixtureRequest) -> Robot:
    name = request.param.removesuffix(", rotors")
    tree = grow(*MACHINES[name], np.random.default_rng(4), name != request.param)
    return Robot.from_tree(tree)


def states(robot: Robot, rng: np.random.Generator, n: int = 3) -> Any:
    return robot.random_q(rng, size=n), *rng.uniform(-2, 2, (2, n, robot.nv))


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).reshape(len(x), -1).max(axis=1)


@pytest.fixture
def size_of_qdd(evaluate: Any, mobility: Any) -> Any:
    """What an error of qdd is measured by: the lightest link's mobility times the wrenches that
    joints carry, and what the solve of the method compared with costs."""

    def size(robot: Robot, q: Any, qd: Any, tau: Any, qdd: Any, f_ext: Any = None) -> np.ndarray:
        held = largest(evaluate(robot, "joint_wrenches", q, qd, qdd, f_ext=f_ext))
        load = largest(tau) + largest(evaluate(robot, "bias", q, qd, f_ext=f_ext))
        M = evaluate(robot, "mass_matrix", q)
        inverse = np.linalg.norm(np.linalg.inv(M), 2, axis=(1, 2))
        return mobility(robot.tree) * held + np.linalg.cond(M) * largest(qdd) + inverse * load

    return size


# -- forward dynamics ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", FORWARD)
def test_forward_dynamics(
    robot: Robot,
    method: str,
    rng: np.random.Generator,
    evaluate: Any,
    assert_close: Any,
    size_of_qdd: Any,
) -> None:
    q, qd, tau = states(robot, rng)
    f_ext = {robot.frame_names[-1]: rng.uniform(-5, 5, (len(q), 6))}
    actual, aba = (
        evaluate(robot, "forward_dynamics", q, qd, tau, method=m, f_ext=f_ext)
        for m in (method, "aba")
    )
    assert_close(actual, aba, scale=size_of_qdd(robot, q, qd, tau, aba, f_ext))


def chain(n: int) -> Robot:
    """Slender links under gravity, each joint across the last."""
    body = RigidInertia(1.0, Vec3(0.15, 0.0, 0.0), Sym3(0.03, 0.0, 0.0, 2e-4, 0.0, 2e-4))
    place = Transform(Vec3(0.3, 0.0, 0.0), (Turn("x", 0.6, 0.8),))
    links = [Link(f"l{i}", f"j{i}", i - 1, R, place, body, (0.0,), i, i) for i in range(n)]
    return Robot.from_tree(Tree(tuple(links)))


def error_of(robot: Robot, method: str, rng: np.random.Generator) -> float:
    """Of plain floats, relative to articulated bodies in 30 digits."""
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    import linkwise.spatial.precise  # noqa: F401  (teaches the algebra mpmath's numbers)

    values = rng.uniform(-1, 1, (3, robot.nv)).tolist()
    with mpmath.workdps(30):
        exact = robot.evaluate(
            "forward_dynamics", *([mpmath.mpf(x) for x in v] for v in values), method="aba"
        )
    found = robot.evaluate("forward_dynamics", *values, method=method)
    off = max(abs(float(a - b)) for a, b in zip(exact, found, strict=True))
    return off / max(abs(float(x)) for x in exact)


def test_the_bias_inside_keeps_the_digits_that_subtracting_it_loses() -> None:
    robot = chain(60)
    inside, reduced, published = (
        error_of(robot, method, np.random.default_rng(1)) for method in FORWARD
    )
    assert max(inside, reduced) < 1e-11
    assert published > 10 * max(inside, reduced)


def test_cyclic_reduction_takes_log2_rounds() -> None:
    one = [[1.0]]
    A: blocks.Matrix = {(i, i): one for i in range(15)} | {(i + 1, i): one for i in range(14)}
    assert orders.every_other(A) == [*range(14, -1, -2), *range(13, 0, -4), 11, 3, 7]


# -- the paper, equation by equation ---------------------------------------------------------------


@pytest.fixture
def dense(rng: np.random.Generator) -> Any:
    """A serial robot, its state, and the paper's global matrices, tip first."""
    robot = Robot.from_tree(grow((R, R, P, R, R, P, R), tuple(range(-1, 6)), rng, False))
    q, qd = robot.random_q(rng), rng.uniform(-2, 2, robot.nv)
    return robot, q, qd, robot.operators(q, robot.frame_names[-1])


def parts(o: Any) -> tuple[np.ndarray, ...]:
    """𝒫, ℋ, 𝒲, ℐ⁻¹ and β."""
    n = len(o.H)
    H = o.H.T
    kept = [k for k in range(6 * n) if not H[k].any()]  # columns of H are unit vectors
    return np.linalg.inv(o.phi), H, np.eye(6 * n)[:, kept], np.linalg.inv(o.M), o.B.T


def test_the_factorizations_of_both_inverses(dense: Any) -> None:
    """(39), (43), (44), (46), (49)-(51); -S is A without the last link's own inertia."""
    robot, q, _, o = dense
    pos, H, W, inv, beta = parts(o)
    A, B, C = W.T @ pos.T @ inv @ pos @ W, W.T @ pos.T @ inv @ pos @ H, H.T @ pos.T @ inv @ pos @ H
    order, frame = list(o.order), robot.frame_names[-1]
    expected = robot.mass_matrix_inverse(q)[np.ix_(order, order)]
    np.testing.assert_allclose(C - B.T @ np.linalg.solve(A, B), expected, atol=1e-10)
    D, E = beta @ inv @ beta.T, W.T @ pos.T @ inv @ beta.T
    assert np.abs(E[5:]).max() < 1e-12  # (43): the last link's joint alone
    mobility = robot.operational_inertia_inverse(q, frame, axes="body")
    np.testing.assert_allclose(D - E.T @ np.linalg.solve(A, E), mobility, atol=1e-10)
    G = np.linalg.inv(D)
    Rt = G @ E.T
    S = E @ Rt - A
    inertia = robot.operational_inertia(q, frame, axes="body")
    found = G - Rt @ np.linalg.solve(S, Rt.T)
    np.testing.assert_allclose(found, inertia, atol=1e-9 * np.abs(inertia).max())
    assert np.linalg.eigvalsh(-S).min() > 0.0
    without = inv.copy()
    without[:6, :6] = 0.0
    np.testing.assert_allclose(-S, W.T @ pos.T @ without @ pos @ W, atol=1e-9 * np.abs(A).max())


def test_45_moves_the_inertia_by_the_inverse(dense: Any) -> None:
    """D⁻¹ = P̂_N⁻¹ I_N P̂_N⁻ᵀ; as printed, P̂_N in its place, it is another matrix."""
    *_, o = dense
    *_, inv, beta = parts(o)
    D, shift, own = beta @ inv @ beta.T, o.B[:6], o.M[:6, :6]
    back = np.linalg.inv(shift)
    np.testing.assert_allclose(back @ own @ back.T, np.linalg.inv(D), atol=1e-10)
    assert np.abs(shift @ own @ shift.T - np.linalg.inv(D)).max() > 0.1 * np.abs(own).max()


def test_8_adds_the_bias(dense: Any) -> None:
    """F = Λ (v̇ + J M⁻¹ (C + G) - J̇ qd); as printed, with a minus, it is another force."""
    robot, q, qd, _ = dense
    frame, F = robot.frame_names[-1], np.arange(1.0, 7.0)
    J, bias = robot.jacobian(q, frame), robot.bias(q, qd)
    drift = robot.jacobian_dot_qd(q, qd, frame)
    moved = J @ robot.solve_mass(q, bias) - drift
    acceleration = J @ robot.solve_mass(q, J.T @ F - bias) + drift
    inertia = robot.operational_inertia(q, frame)
    np.testing.assert_allclose(inertia @ (acceleration + moved), F, rtol=1e-7)
    assert np.abs(inertia @ (acceleration - moved) - F).max() > 1.0


# -- the paper's identities, to 50 digits ---------------------------------------------------------


@pytest.fixture
def precise() -> Any:
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    import linkwise.spatial.precise  # noqa: F401

    with mpmath.workdps(50):
        yield mpmath


def lifted(mpmath: Any, x: np.ndarray) -> list[Any]:
    return [mpmath.mpf(float(value)) for value in x]


def difference(a: Any, b: Any) -> float:
    """Relative to b's largest entry."""
    a, b = np.array(a, dtype=object), np.array(b, dtype=object)
    return float(abs(a - b).max() / abs(b).max())


def few(choices: Sequence[Any]) -> Sequence[Any]:
    """The first, the last and one between, of many."""
    return [choices[0], choices[len(choices) // 2], choices[-1]] if len(choices) > 3 else choices


def test_identities_to_fifty_digits(robot: Robot, precise: Any, rng: np.random.Generator) -> None:
    q, qd, tau = (lifted(precise, x[0]) for x in states(robot, rng, 1))
    exact = robot.evaluate("forward_dynamics", q, qd, tau, method="crba")
    for method in FORWARD:
        found = robot.evaluate("forward_dynamics", q, qd, tau, method=method)
        assert difference(found, exact) < 1e-38
    inverse = robot.evaluate("mass_matrix_inverse", q, method="crba")
    assert difference(robot.evaluate("mass_matrix_inverse", q, method="schur"), inverse) < 1e-38
    for frame in few(robot.frame_names):
        mobility = robot.evaluate("operational_inertia_inverse", q, method="crba", frame=frame)
        for method in INVERSE:
            found = robot.evaluate("operational_inertia_inverse", q, method=method, frame=frame)
            assert difference(found, mobility) < 1e-38


def test_operational_inertia_to_fifty_digits(
    robot: Robot, precise: Any, rng: np.random.Generator
) -> None:
    q = lifted(precise, states(robot, rng, 1)[0][0])
    path, links = robot.tree.path, robot.tree.links
    moved = [sum(links[k].joint.nv for k in path(i)) for i in range(len(links))]
    for i in few([i for i, joints in enumerate(moved) if joints > 6]):
        exact = robot.evaluate("operational_inertia", q, method="crba", frame=f"l{i}")
        for method in INERTIA:
            found = robot.evaluate("operational_inertia", q, method=method, frame=f"l{i}")
            assert difference(found, exact) < 1e-30


def test_A_is_symmetric_and_positive_definite(robot: Robot, rng: np.random.Generator) -> None:
    q = states(robot, rng, 1)[0][0].tolist()
    s = interbody.system(robot.tree, q, orders.one_by_one)
    sizes = {i: len(block) for (i, j), block in s.A.items() if i == j}
    starts = {i: sum(n for k, n in sizes.items() if k < i) for i in sizes}
    A = np.zeros((sum(sizes.values()),) * 2)
    for (i, j), block in s.A.items():
        rows, columns = (
            slice(starts[i], starts[i] + sizes[i]),
            slice(starts[j], starts[j] + sizes[j]),
        )
        A[rows, columns], A[columns, rows] = block, np.transpose(block)
    assert abs(A - A.T).max() <= 1e-13 * abs(A).max()
    assert np.linalg.eigvalsh(A).min() > 0.0
    rotors = sum(1 for link in robot.tree.links for rotor in link.armature if rotor)
    assert len(A) == 6 * robot.tree.n_links - robot.nv + rotors


# -- operational space ----------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["base", "body"])
def test_operational_inertia_inverse(
    robot: Robot,
    axes: str,
    rng: np.random.Generator,
    evaluate: Any,
    assert_close: Any,
    mobility: Any,
) -> None:
    q = states(robot, rng)[0]
    cond = np.linalg.cond(evaluate(robot, "mass_matrix", q))
    for frame in few(robot.frame_names):
        function = "operational_inertia_inverse"
        J = evaluate(robot, "jacobian", q, frame=frame, axes=axes)
        expected = J @ np.linalg.inv(evaluate(robot, "mass_matrix", q)) @ J.mT
        for method in ("crba", *INVERSE):
            found = evaluate(robot, function, q, method=method, frame=frame, axes=axes)
            assert np.array_equal(found, found.mT)
            free = mobility(robot.tree) if method == "schur" else 0.0
            assert_close(found, expected, scale=cond * largest(expected) + free)


def test_one_factorization_serves_dynamics_and_operational_inertia(
    robot: Robot, rng: np.random.Generator
) -> None:
    q, qd, tau = (x[0].tolist() for x in states(robot, rng, 1))
    n, frame = robot.nv, robot.tree.frames["l3"]
    found = schur_operational.dynamics_and_inverse(robot.tree, q, qd, tau, frame=frame)
    assert found[:n] == schur.forward_dynamics(robot.tree, q, qd, tau)
    assert np.array(found[n:]).reshape(
        6, 6
    ).tolist() == schur_operational.operational_inertia_inverse(robot.tree, q, frame=frame)


def test_operational_dynamics() -> None:
    rng = np.random.default_rng(2)
    robot = Robot.from_tree(grow((R, P, R), (-1, 0, 1), rng, False))
    q, qd, tau = rng.normal(size=(3, 10, 3))
    push = {"l2": rng.normal(size=6)}
    qdd, inverse = robot.operational_dynamics(q, qd, tau, "l2", f_ext=push)
    expected = robot.forward_dynamics(q, qd, tau, method="schur", f_ext=push)
    np.testing.assert_allclose(qdd, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    wanted = robot.operational_inertia_inverse(q, "l2", method="schur")
    np.testing.assert_allclose(inverse, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
    q[3] = np.nan
    (qdd, inverse), bits = robot.operational_dynamics(q, qd, tau, "l2", status=True)
    assert bits.tolist() == [0, 0, 0, Status.NOT_FINITE, 0, 0, 0, 0, 0, 0]
    assert np.isnan(qdd[3]).all()
    assert np.isnan(inverse[3]).all()
    both = robot.operation_count("dynamics_and_inverse", frame="l2").total
    apart = robot.operation_count("forward_dynamics", "schur").total
    apart += robot.operation_count("operational_inertia_inverse", "schur", frame="l2").total
    assert both < 0.8 * apart  # one factorization less


@pytest.mark.parametrize("method", INERTIA)
def test_singular_poses_are_flagged(method: str) -> None:
    robot = lw.load("iiwa14")
    straight, frame = np.zeros(robot.nv), robot.frame_names[-1]
    for nothing in (None, 0, 0.0):
        _, status = robot.operational_inertia(
            straight, frame, method=method, damping=nothing, status=True
        )
        assert Status(int(status)) & (Status.SINGULAR | Status.OVERFLOW)
    assert robot.operational_inertia_inverse(straight, frame, status=True)[1] == 0


def test_fewer_than_six_joints_have_an_inverse_inertia_only() -> None:
    robot = Robot.from_tree(grow((R, R, R), (-1, 0, 1), np.random.default_rng(1), False))
    q = np.array([0.1, 0.2, 0.3])
    for method in INERTIA:
        with pytest.raises(ValueError, match="moved by 3 joint"):
            robot.operational_inertia(q, "l2", method=method)
    ranks = [np.linalg.matrix_rank(robot.operational_inertia_inverse(q, "l2", method=m), 1e-9)
             for m in ("crba", *INVERSE)]  # fmt: skip
    assert ranks == [3, 3, 3]


# -- damping --------------------------------------------------------------------------------------

DAMPED = ["crba", "schur", "recursive"]


@pytest.mark.parametrize(
    ("method", "axes"),
    [
        pytest.param(method, axes, marks=() if k % 2 == i else pytest.mark.full)
        for k, method in enumerate(DAMPED)
        for i, axes in enumerate(("base", "body"))
    ],
)
def test_damped_inertia_at_a_singular_pose(method: str, axes: str) -> None:
    """``(Λ⁻¹ + diag(d))⁻¹``, healthy where Λ is not, in either axes, single and batch."""
    robot = lw.load("puma560")
    frame = robot.frame_names[-1]
    q = np.stack([np.zeros(robot.nv), *robot.random_q(seed=3, size=4)])
    six = np.array([0.3, 0.1, 0.2, 0.01, 0.02, 0.03])
    mobility = robot.operational_inertia_inverse(q, frame, axes=axes)
    for damping in (1e-2, six, np.tile(six, (len(q), 1))):
        found, status = robot.operational_inertia(
            q, frame, method=method, axes=axes, damping=damping, status=True
        )
        assert not status.any()
        d = np.broadcast_to(damping, (len(q), 6))
        product = found @ (mobility + d[..., None] * np.eye(6))
        assert np.abs(product - np.eye(6)).max() < 1e-8
        assert np.linalg.eigvalsh(found).max() <= (1.0 + 1e-8) / d.min()
        alone = robot.operational_inertia(q[1], frame, method=method, axes=axes, damping=d[1])
        assert np.array_equal(alone, found[1])


@pytest.mark.parametrize("method", DAMPED)
def test_damped_inertia_of_fewer_than_six_joints(method: str) -> None:
    robot = Robot.from_tree(grow((R, R, R), (-1, 0, 1), np.random.default_rng(1), False))
    q = np.array([0.1, 0.2, 0.3])
    found = robot.operational_inertia(q, "l2", method=method, damping=0.5)
    mobility = robot.operational_inertia_inverse(q, "l2")
    assert np.allclose(found @ (mobility + 0.5 * np.eye(6)), np.eye(6), atol=1e-12)
    still = np.sort(np.linalg.eigvalsh(found))[3:]  # three directions do not move
    assert np.allclose(still, 2.0)


def test_damping_keeps_the_dtype_and_spoils_no_undamped_call() -> None:
    robot = lw.load("iiwa14")
    q, frame = robot.random_q(seed=1), robot.frame_names[-1]
    before = robot.operational_inertia(q, frame)
    assert robot.operational_inertia(q.astype("f4"), frame, damping=0.1).dtype == np.float32
    assert robot.operational_inertia(q, frame, damping=np.float32(0.1)).dtype == np.float64
    assert np.array_equal(robot.operational_inertia(q, frame), before)
    assert np.array_equal(robot.operational_inertia(q, frame, damping=0.0), before)
    _, status = robot.operational_inertia(q, frame, damping=np.nan, status=True)
    assert status == Status.NOT_FINITE


@pytest.mark.parametrize("wrong", [-1e-9, [0.1] * 5, [1, 1, 1, 1, 1, -1], "much", [[1], [1, 2]]])
def test_wrong_damping_is_named(wrong: Any) -> None:
    robot = lw.load("iiwa14")
    with pytest.raises(ValueError, match=r"damping is .*; expected a number that is not negative"):
        robot.operational_inertia(np.zeros(7), robot.frame_names[-1], damping=wrong)


def test_a_method_without_damping_names_those_with() -> None:
    robot = lw.load("iiwa14")
    with pytest.raises(
        ValueError, match=r"'schur-direct'.*: takes no damping.*'crba', 'recursive', 'schur', 's"
    ):
        robot.operational_inertia(
            np.zeros(7), robot.frame_names[-1], method="schur-direct", damping=0.1
        )


def test_a_follower_is_no_degree_of_freedom(rng: np.random.Generator) -> None:
    tree = grow((R,) * 6, tuple(range(-1, 5)), rng, False)
    follower = replace(tree.links[5], follows=Follows(2, -0.5, 0.1), q_index=2, v_index=2)
    robot = Robot.from_tree(tree.with_links([*tree.links[:5], follower]))
    with pytest.raises(ValueError, match="moved by 5 joint"):
        robot.operational_inertia(np.zeros(5), "l5")


# -- joint wrenches -------------------------------------------------------------------------------


def test_joint_wrenches_are_the_forces_that_schur_finds(
    robot: Robot, rng: np.random.Generator, assert_close: Any, mobility: Any
) -> None:
    q, qd, tau = (x[0].tolist() for x in states(robot, rng, 1))
    s = interbody.system(robot.tree, q, orders.one_by_one)
    qdd, found = schur.accelerations(s, q, qd, tau)
    needed = wrenches.link_frame_wrenches(robot.tree, q, qd, qdd)
    expected = np.array([list(f) for f in needed])
    M = np.array(robot.evaluate("mass_matrix", q), dtype=float)
    size = np.abs(expected).max() * max(np.linalg.cond(M), mobility(robot.tree) * np.abs(M).max())
    assert_close(np.array([[list(f) for f in found]]), expected[None], scale=size)


def test_joint_wrenches_hold_the_torques_and_the_weight(rng: np.random.Generator) -> None:
    robot = lw.load("iiwa14")
    q, qd, qdd = rng.uniform(-2, 2, (3, 8, robot.nv))
    found = robot.joint_wrenches(q, qd, qdd)
    assert found.shape == (8, robot.nv, 6)
    along = np.einsum("bni,ni->bn", found[..., :3], [link.axis for link in robot.tree.links])
    rotors = np.array([link.armature[0] for link in robot.tree.links])
    torques = robot.inverse_dynamics(q, qd, qdd) - rotors * qdd
    assert np.allclose(along, torques, rtol=0, atol=1e-10 * np.abs(torques).max())
    still = np.zeros(robot.nv)
    base = robot.joint_wrenches(q[0], still, still)[0, 3:]
    weight = 9.81 * sum(link.mass for link in robot.tree.links)
    assert np.isclose(np.linalg.norm(base), weight, rtol=1e-5)


# -- what does not apply --------------------------------------------------------------------------


def test_followers(
    rng: np.random.Generator, evaluate: Any, assert_close: Any, size_of_qdd: Any, mobility: Any
) -> None:
    tree = grow((R,) * 9, tuple(range(-1, 8)), rng, True)
    follower = replace(tree.links[5], follows=Follows(2, -0.5, 0.1), q_index=2, v_index=2)
    after = [replace(k, q_index=k.q_index - 1, v_index=k.v_index - 1) for k in tree.links[6:]]
    links = [*tree.links[:5], follower, *after]
    robot = Robot.from_tree(tree.with_links(links))
    q, qd, tau = states(robot, rng)
    free = mobility(robot.tree)
    for method in FORWARD:
        actual, crba = (
            evaluate(robot, "forward_dynamics", q, qd, tau, method=m) for m in (method, "crba")
        )
        assert_close(actual, crba, scale=size_of_qdd(robot, q, qd, tau, crba))
    actual, crba = (evaluate(robot, "mass_matrix_inverse", q, method=m) for m in ("schur", "crba"))
    assert_close(actual, crba, scale=free + largest(crba))
    for method in ("schur", "schur-direct"):
        actual, crba = (
            evaluate(robot, "operational_inertia", q, method=m, frame="l8")
            for m in (method, "crba")
        )
        assert_close(actual, crba, scale=free * np.linalg.norm(crba, 2, axis=(1, 2)) ** 2)
    with pytest.raises(
        ValueError, match=r"'j5' follows 'j2'.*'crba', 'schur', 'schur-bcr', 'schur-direct'"
    ):
        robot.evaluate("operational_inertia", q[0].tolist(), method="recursive", frame="l8")


def test_a_link_without_mass_is_named(rng: np.random.Generator) -> None:
    tree = grow((R,) * 7, tuple(range(-1, 6)), rng, True)
    links = list(tree.links)
    links[3] = replace(links[3], inertia=RigidInertia.zero())
    robot = Robot.from_tree(tree.with_links(links))
    q = [0.1 * i for i in range(7)]
    for method in FORWARD:
        with pytest.raises(ValueError, match=r"link 'l3' has no mass.*'aba'"):
            robot.evaluate("forward_dynamics", q, q, q, method=method)
    with pytest.raises(ValueError, match="link 'l3'"):
        robot.operational_inertia(np.array(q), "l6", method="schur-direct")
    assert robot.operational_inertia(np.array(q), "l6", method="recursive").shape == (6, 6)


def test_a_turret_needs_no_more_than_its_moment(rng: np.random.Generator) -> None:
    """The PUMA's first link has no published mass: its joint never moves it."""
    robot = lw.load("puma560")
    q, qd, tau = rng.uniform(-2, 2, (3, 16, robot.nv))
    crba = robot.forward_dynamics(q, qd, tau, method="crba")
    for method in FORWARD:
        assert np.allclose(robot.forward_dynamics(q, qd, tau, method=method), crba, rtol=1e-8)


class Skew(Joint):
    """Columns that are not unit vectors, and no word about which wrenches it withstands."""

    nq = nv = 1

    def transform(self, q: Any) -> Transform:
        return Transform(Vec3(0.0, 0.6 * q[0], 0.8 * q[0]))

    def columns(self, q: Any) -> tuple[Motion, ...]:
        return (Motion(Vec3.zero(), Vec3(0.0, 0.6, 0.8)),)


def test_a_joint_that_does_not_say_what_it_withstands_is_named(rng: np.random.Generator) -> None:
    robot = Robot.from_tree(grow((R, Skew()), (-1, 0), rng, False))
    with pytest.raises(ValueError, match=r"joint Skew.*directions"):
        robot.evaluate("forward_dynamics", [0.1] * 2, [0.1] * 2, [0.1] * 2, method="schur")
