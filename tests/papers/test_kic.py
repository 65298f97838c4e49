"""Kang's influence coefficients and inertial power, and the Coriolis matrix they lead to.

The paper's properties P1-P10 are tested in their corrected form, on random chains; four of them do
not hold as printed, which is tested too. Derivatives are complex steps, also along the rates of
spherical and free joints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import augmented
from linkwise.algorithms.chains import by_outermost
from linkwise.algorithms.crba import compose
from linkwise.algorithms.inertial_power import Parts, at_centre, parts_of, per_link_parts
from linkwise.algorithms.poses import root_poses
from linkwise.model.joints import Free, Helical, Joint, Planar, Prismatic, Revolute, Spherical
from linkwise.model.joints import Universal as U
from linkwise.model.tree import Follows, Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import Matrix, RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.sweep import tip_to_base

STATES = 3
STEP = 1e-30
R, P, H = Revolute(), Prismatic(), Helical(0.3)
METHODS = ["augmented", "per-link"]

# joints from the base out, each with its parent and, where it follows one, its driver
Machine = tuple[tuple[Joint, int, int | None], ...]
CHAINS: dict[str, Machine] = {
    "revolute": tuple((R, i - 1, None) for i in range(6)),
    "mixed": tuple((j, i - 1, None) for i, j in enumerate((R, P, H, R, P, R, H))),
    "slides first": tuple((j, i - 1, None) for i, j in enumerate((P, P, R, P, R))),
}
COORDINATES: dict[str, Machine] = CHAINS | {
    "tree": ((R, -1, None), (P, 0, None), (R, 0, None), (H, 2, None), (R, 2, None), (R, -1, None),
             (P, 5, None), (R, 4, None)),
    "followers": ((R, -1, None), (R, 0, 0), (P, 1, None), (R, 1, 0), (H, 3, 2), (R, -1, 0)),
    "several columns": ((U(), -1, None), (R, 0, None), (Planar(), 1, None), (U(), 1, None),
                        (P, 3, None)),
}  # fmt: skip
MACHINES: dict[str, Machine] = COORDINATES | {
    "ball": ((R, -1, None), (Spherical(), 0, None), (H, 1, None), (Spherical(), 2, None)),
    "free base": ((Free(), -1, None), (R, 0, None), (U(), 1, None), (P, 0, None), (R, 3, 1)),
    "all kinds": ((Planar(), -1, None), (R, 0, None), (Spherical(), 1, None), (R, 2, 1),
                  (U(), 2, None), (Free(), 4, None), (P, 5, None), (H, 4, None), (Free(), -1, None),
                  (R, 8, 6)),
}  # fmt: skip


def body(rng: np.random.Generator) -> RigidInertia:
    """Four points of mass: first and second moments about the origin."""
    m, p = rng.uniform(0.2, 1.0, 4), rng.uniform(-0.3, 0.3, (4, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    return RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))


def placement(rng: np.random.Generator) -> Transform:
    angles = zip("zxz", rng.uniform(-3, 3, 3), strict=True)
    turns = [Turn(axis, float(np.cos(a)), float(np.sin(a))) for axis, a in angles]
    return Transform(Vec3(*rng.uniform(-0.4, 0.4, 3).tolist()), tuple(turns))


def build(machine: Machine, seed: int = 1, rotors: bool = True) -> Robot:
    """Links in order; frame ``tip`` on the last."""
    rng = np.random.default_rng(seed)
    links: list[Link] = []
    nq = nv = 0
    for i, (joint, parent, driver) in enumerate(machine):
        place, mass = placement(rng), body(rng)
        rotor = float(rng.uniform(0.1, 0.5)) * rotors
        at, follows = (nq, nv), None
        if driver is None:
            nq, nv = nq + joint.nq, nv + joint.nv
        else:
            at = links[driver].q_index, links[driver].v_index
            follows = Follows(driver, float(rng.uniform(-2, 2)), 0.3)
        armature = (rotor,) * joint.nv
        links.append(Link(str(i), str(i), parent, joint, place, mass, armature, *at, follows))
    turned = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    tip = Frame(len(links) - 1, (0.1, -0.2, 0.3), turned)
    return Robot.from_tree(Tree(tuple(links), (1.0, 2.0, -9.0), {"tip": tip}))


def states(robot: Robot, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return robot.random_q(rng, size=STATES), rng.uniform(-2, 2, (STATES, robot.nv))


def q_dot(robot: Robot, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """How the numbers of a configuration change."""
    out = np.zeros((*np.broadcast_shapes(q.shape[:-1], qd.shape[:-1]), robot.nq))
    for link in robot.tree.links:
        if link.follows is not None:
            continue
        at, v = link.q_index, qd[..., link.v_index : link.v_index + link.joint.nv]
        if not link.joint.quasi:
            out[..., at : at + link.joint.nq] = v
            continue
        turn, w = q[..., at : at + 4], v[..., :3]
        out[..., at] = -0.5 * (turn[..., 1:] * w).sum(axis=-1)
        out[..., at + 1 : at + 4] = 0.5 * (turn[..., :1] * w + np.cross(turn[..., 1:], w))
        if isinstance(link.joint, Free):
            t = 2.0 * np.cross(turn[..., 1:], v[..., 3:])
            moved = v[..., 3:] + turn[..., :1] * t + np.cross(turn[..., 1:], t)
            out[..., at + 4 : at + 7] = moved
    return out


def along(
    robot: Robot, f: Callable[[np.ndarray], np.ndarray], q: np.ndarray, qd: np.ndarray
) -> np.ndarray:
    """Derivative of ``f(q)`` along rates, by a complex step."""
    q = np.broadcast_to(q, (*qd.shape[:-1], q.shape[-1]))
    return f(q + 1j * STEP * q_dot(robot, q, qd)).imag / STEP


def symmetric(P: np.ndarray) -> np.ndarray:
    return (P + P.swapaxes(-1, -2)) / 2


def completed(P1: Matrix, P2: Matrix, P3: Matrix) -> Iterator[tuple[tuple[int, int, int], Parts]]:
    """Every order of indices whose outermost is m, from ``P[i][j] = P_ijm`` [P3-P10]."""
    m = len(P1) - 1
    for i in range(m + 1):
        for j in range(m + 1):
            yield (i, j, m), (P1[i][j], P2[i][j], P3[i][j])
    for k in range(m):
        for i in range(m + 1):
            yield (i, m, k), (P1[i][k], 0.0, P2[k][i])
        for j in range(m):
            P1_mjk = -P1[max(j, k)][min(j, k)]
            yield (m, j, k), (P1_mjk, P3[j][k] if j < k else 0.0, -P2[k][j])


def augmented_parts(tree: Tree, q: list[float]) -> list[Any]:
    """P1, P2 and P3 by augmented bodies, every joint a chain of one-degree joints."""
    bodies = by_outermost(tree, q, augmented.augmented_body)
    terms = [
        (chain, list(completed(*augmented.independent(body, chain)))) for chain, body in bodies
    ]
    return parts_of(tree, terms)


def parts(robot: Robot, method: str, q: np.ndarray) -> np.ndarray:
    """P1, P2 and P3 (3, n, n, n) of one state."""
    driver = {"augmented": augmented_parts, "per-link": per_link_parts}[method]
    return np.array(driver(robot.tree, [float(x) for x in q]))


@pytest.fixture(params=MACHINES)
def any_robot(request: pytest.FixtureRequest) -> Robot:
    return build(MACHINES[request.param])


@pytest.fixture(params=COORDINATES)
def plain_robot(request: pytest.FixtureRequest) -> Robot:
    """Every rate the derivative of a coordinate."""
    return build(COORDINATES[request.param])


@pytest.fixture(params=CHAINS)
def chain(request: pytest.FixtureRequest) -> Robot:
    return build(CHAINS[request.param], rotors=False)


@pytest.fixture(params=[name for name in MACHINES if name not in COORDINATES])
def quasi_robot(request: pytest.FixtureRequest) -> Robot:
    return build(MACHINES[request.param], rotors=False)


# -- the paper's properties, corrected ----------------------------------------------------------


def orders(n: int) -> list[tuple[int, int, int]]:
    return [(i, j, k) for i in range(n) for j in range(n) for k in range(n)]


def same(P: np.ndarray, pairs: list[tuple[float, float]]) -> None:
    assert pairs
    left, right = np.array(pairs).T
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-14 * max(1.0, np.abs(P).max()))


def test_P1_P2_effective_inertia_is_symmetric_positive_definite(chain: Robot) -> None:
    M = chain.mass_matrix(states(chain)[0])
    assert np.array_equal(M, M.mT)
    assert np.linalg.eigvalsh(M).min() > 0


@pytest.mark.parametrize("method", METHODS)
def test_P3_P4_P5_of_the_first_term(chain: Robot, method: str) -> None:
    P, n = parts(chain, method, states(chain)[0][0])[0], chain.nv
    same(P, [(P[i, j, k], P[i, k, j]) for i, j, k in orders(n)])
    same(P, [(P[i, j, k], -P[k, j, i]) for i, j, k in orders(n) if j <= k < i])
    zero = [(i, j, k) for i, j, k in orders(n) if (i == k and j <= i) or (i == j and k <= i)]
    same(P, [(P[x], 0.0) for x in zero])


@pytest.mark.parametrize("method", METHODS)
def test_P6_of_the_second_term(chain: Robot, method: str) -> None:
    P = parts(chain, method, states(chain)[0][0])[1]
    same(P, [(P[i, j, k], 0.0) for i, j, k in orders(chain.nv) if j >= k])


@pytest.mark.parametrize("method", METHODS)
def test_P7_P8_of_the_third_term(chain: Robot, method: str) -> None:
    P = parts(chain, method, states(chain)[0][0])[2]
    same(P, [(P[i, j, k], -P[j, i, k]) for i, j, k in orders(chain.nv)])
    same(P, [(P[i, i, k], 0.0) for i, _, k in orders(chain.nv)])


@pytest.mark.parametrize("method", METHODS)
def test_P9_P10_tie_the_second_term_to_the_third(chain: Robot, method: str) -> None:
    _, P2, P3 = parts(chain, method, states(chain)[0][0])
    ordered = [(i, j, k) for i, j, k in orders(chain.nv) if i < j]
    same(P3, [(P3[i, j, k], P2[k, i, j]) for i, j, k in ordered])
    same(P3, [(P3[j, i, k], -P2[k, i, j]) for i, j, k in ordered])


@pytest.mark.parametrize("method", METHODS)
def test_P4_P6_P9_P10_fail_as_printed(method: str) -> None:
    robot = build(CHAINS["revolute"])
    P1, P2, P3 = parts(robot, method, states(robot)[0][0])
    printed = {
        "P4": [(P1[i, j, k], -P1[j, k, i]) for i, j, k in orders(6) if j <= k < i],
        "P6": [(P2[i, j, k], 0.0) for i, j, k in orders(6) if j <= k],
        "P9": [(P3[i, j, k], -P2[k, i, j]) for i, j, k in orders(6) if k < j and i < j],
        "P10": [(P3[j, i, k], -P2[k, i, j]) for i, j, k in orders(6) if j < k < i],
    }
    for name, pairs in printed.items():
        worst = max(abs(a - b) for a, b in pairs)
        assert worst > 1e-3, name


def test_18_and_28_need_the_masses_of_their_links() -> None:
    """Augmented bodies: with the printed masses neither centres nor inertias come out."""
    tree = build(CHAINS["revolute"], rotors=False).tree
    poses = root_poses(tree, states(build(CHAINS["revolute"]))[0][0].tolist())
    composites, _ = tip_to_base(tree, compose, RigidInertia.zero(), [pose.J for pose in poses])
    own = [at_centre(link.inertia, p) for link, p in zip(tree.links, poses, strict=True)]
    whole = [at_centre(body, p) for body, p in zip(composites, poses, strict=True)]
    m, c = np.array([b.m for b in own]), np.array([list(b.c) for b in own])

    def full(I: Sym3) -> np.ndarray:  # noqa: E741
        return np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])

    def about(centre: np.ndarray, k: int, masses: np.ndarray) -> np.ndarray:
        r = c[k:] - centre
        moved = np.einsum("j,jab->ab", masses, [v @ v * np.eye(3) - np.outer(v, v) for v in r])
        return moved + sum(full(b.I) for b in own[k:])

    for k in range(5):
        centre, origin = np.array(list(whole[k].c)), np.array(list(poses[k].p))
        np.testing.assert_allclose(centre, m[k:] @ c[k:] / m[k:].sum(), atol=1e-13)
        outer = np.array(list(whole[k + 1].c))
        printed = origin + (c[k] - origin + outer - origin) / m[k:].sum()
        assert np.abs(printed - centre).max() > 1e-3
        np.testing.assert_allclose(full(whole[k].I), about(centre, k, m[k:]), atol=1e-13)
        wrong = about(centre, k, np.full(len(m) - k, m[k]))
        assert np.abs(wrong - full(whole[k].I)).max() > 1e-4


# -- inertial power -----------------------------------------------------------------------------


def by_derivatives(robot: Robot, evaluate: Any, q: np.ndarray) -> np.ndarray:
    """``½ (∂M_ij/∂q_k + ∂M_ik/∂q_j - ∂M_jk/∂q_i)`` at one configuration."""
    dM = along(robot, lambda q: evaluate(robot, "mass_matrix", q), q, np.eye(robot.nv))
    dM = np.moveaxis(dM, 0, -1)  # dM[i, j, k]: M_ij along k
    return 0.5 * (dM + dM.swapaxes(1, 2) - np.moveaxis(dM, -1, 0))


@pytest.mark.parametrize("method", METHODS)
def test_symmetric_inertial_power_is_christoffel_s(
    plain_robot: Robot, method: str, evaluate: Any, assert_close: Any
) -> None:
    q, _ = states(plain_robot)
    expected = np.stack([by_derivatives(plain_robot, evaluate, x) for x in q])
    power = evaluate(plain_robot, "inertial_power", q, method=method)
    assert_close(symmetric(power), expected)
    symbols = evaluate(plain_robot, "christoffel", q)
    assert_close(symbols, expected)
    assert np.array_equal(symbols, symbols.swapaxes(-1, -2))


def test_the_two_arrays_differ_until_made_symmetric(assert_close: Any) -> None:
    robot = build(CHAINS["revolute"])
    q, _ = states(robot)
    one, other = (robot.inertial_power(q, method=method) for method in METHODS)
    assert np.abs(one - other).max() > 1e-3
    assert_close(symmetric(one), symmetric(other))


@pytest.mark.parametrize("method", METHODS)
def test_inertial_power_of_any_robot_gives_the_velocity_torques(
    any_robot: Robot, method: str, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    power = evaluate(any_robot, "inertial_power", q, method=method)
    bias, g = evaluate(any_robot, "bias", q, qd), evaluate(any_robot, "gravity_torque", q)
    found = np.einsum("bijk,bj,bk->bi", power, qd, qd)
    assert_close(found, bias - g, scale=np.abs(bias).max() + np.abs(g).max())


def test_augmented_sums_its_parts(plain_robot: Robot, evaluate: Any, assert_close: Any) -> None:
    """The three terms formed apart, and together."""
    q, _ = states(plain_robot)
    whole = evaluate(plain_robot, "inertial_power", q, method="augmented")
    apart = np.stack([parts(plain_robot, "augmented", x).sum(axis=0) for x in q])
    assert_close(apart, whole)


@pytest.mark.parametrize("method", METHODS)
def test_a_contraction_of_inertial_power_has_the_skew_property(
    plain_robot: Robot, method: str, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(plain_robot)
    dM = along(plain_robot, lambda q: evaluate(plain_robot, "mass_matrix", q), q, qd)
    power = evaluate(plain_robot, "inertial_power", q, method=method)
    C = np.einsum("bijk,bk->bij", power, qd)
    assert_close(C + C.mT, dM)


@pytest.mark.parametrize("method", METHODS)
def test_a_link_without_mass_is_no_trouble(method: str, assert_close: Any) -> None:
    robot = build(CHAINS["revolute"])
    links = list(robot.tree.links)
    links[-1] = type(links[-1])(**{**vars(links[-1]), "inertia": RigidInertia.zero()})
    bare = Robot.from_tree(robot.tree.with_links(links))
    q, _ = states(bare)
    power = bare.inertial_power(q, method=method)
    assert_close(symmetric(power), bare.christoffel(q))
    assert not power[:, -1].any()


# -- the Coriolis matrix ------------------------------------------------------------------------


def test_coriolis_matrix_times_rates_is_bias_less_gravity(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    C = evaluate(any_robot, "coriolis_matrix", q, qd)
    bias, g = evaluate(any_robot, "bias", q, qd), evaluate(any_robot, "gravity_torque", q)
    scale = np.abs(bias).max() + np.abs(g).max()
    assert_close(np.einsum("bij,bj->bi", C, qd), bias - g, scale=scale)


def test_entries_in_one_frame_are_the_same_matrix(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    one, other = (
        evaluate(any_robot, "coriolis_matrix", q, qd, method=m) for m in ("composite", "mixed")
    )
    assert_close(other, one)
    apart = one == 0.0
    assert not other[apart].any()


def test_mass_matrix_rate_less_twice_coriolis_is_skew(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    dM = along(any_robot, lambda q: evaluate(any_robot, "mass_matrix", q), q, qd)
    C = evaluate(any_robot, "coriolis_matrix", q, qd)
    assert_close(C + C.mT, dM, scale=np.abs(C).max())


def test_coriolis_matrix_is_christoffel_contracted(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    C = evaluate(any_robot, "coriolis_matrix", q, qd)
    symbols = evaluate(any_robot, "christoffel", q)
    assert_close(np.einsum("bijk,bk->bij", symbols, qd), C)


def brackets(robot: Robot) -> np.ndarray:
    """``c[l, k, j]``: how much of rate l is in the bracket of motions k and j."""
    c = np.zeros((robot.nv,) * 3)
    for link in robot.tree.links:
        at = link.v_index
        for k, a in enumerate(link.joint.columns([1.0] * 7) if link.joint.quasi else ()):
            for j, b in enumerate(link.joint.columns([1.0] * 7)):
                c[at : at + link.joint.nv, at + k, at + j] = list(a.cross(b))[: link.joint.nv]
    return c


def test_symbols_of_quasi_velocities_differ_by_their_brackets(
    quasi_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, _ = states(quasi_robot)
    symbols = evaluate(quasi_robot, "christoffel", q)
    M = evaluate(quasi_robot, "mass_matrix", q)
    torsion = np.einsum("bil,lkj->bijk", M, brackets(quasi_robot))
    found = symbols - symbols.swapaxes(-1, -2)
    assert_close(found, torsion, scale=np.abs(symbols).max())
    assert np.abs(torsion).max() > 1e-3


def test_branches_do_not_meet() -> None:
    robot = build(((R, -1, None), (R, 0, None), (P, 0, None)))
    q, qd = states(robot)
    C, symbols = robot.coriolis_matrix(q, qd), robot.christoffel(q)
    assert not C[:, 1, 2].any() and not C[:, 2, 1].any()
    assert not symbols[:, 1, :, 2].any() and not symbols[:, 0, 1, 2].any()


def test_column_rates_make_the_drift() -> None:
    rng = np.random.default_rng(3)
    for joint in (R, P, H, U(), Planar(), Spherical(), Free()):
        q, qd = rng.uniform(-1, 1, joint.nq).tolist(), rng.uniform(-1, 1, joint.nv).tolist()
        rates = np.array([list(column) for column in joint.column_rates(q, qd)])
        np.testing.assert_allclose(qd @ rates, list(joint.drift(q, qd)), rtol=0, atol=1e-15)
        if not joint.quasi:
            step = [x + 1j * STEP * v for x, v in zip(map(np.complex128, q), qd, strict=True)]
            moved = np.array([[np.imag(x) / STEP for x in c] for c in joint.columns(step)])
            np.testing.assert_allclose(rates, moved, rtol=0, atol=1e-15)


# -- influence coefficients ---------------------------------------------------------------------


def test_second_order_coefficients_are_changes_of_the_first(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    (q, *_), n = states(any_robot)[0], any_robot.nv
    found = evaluate(any_robot, "kinematic_hessian", q[None], frame="tip")
    dG = along(any_robot, lambda q: evaluate(any_robot, "jacobian", q, frame="tip"), q, np.eye(n))
    assert_close(found, np.moveaxis(dG, 0, 1)[None])


def test_second_order_coefficients_give_the_acceleration(
    any_robot: Robot, evaluate: Any, assert_close: Any
) -> None:
    q, qd = states(any_robot)
    H = evaluate(any_robot, "kinematic_hessian", q, frame="tip")
    expected = evaluate(any_robot, "jacobian_dot_qd", q, qd, frame="tip")
    scale = np.abs(H).max() * np.abs(qd).max() ** 2
    assert_close(np.einsum("brjk,bj,bk->br", H, qd, qd), expected, scale=scale)


def test_linear_second_order_coefficients_are_symmetric_for_coordinates(plain_robot: Robot) -> None:
    H = plain_robot.kinematic_hessian(states(plain_robot)[0], "tip")[:, 3:]
    np.testing.assert_allclose(H, H.mT, rtol=0, atol=1e-14 * np.abs(H).max())


def test_angular_second_order_coefficients_of_a_chain_are_upper_triangular(chain: Robot) -> None:
    H = chain.kinematic_hessian(states(chain)[0], "tip")[:, :3]
    assert not np.tril(H).any()


def test_kic_is_the_pair() -> None:
    robot = build(MACHINES["free base"])
    q, _ = states(robot)
    G, H = robot.kic(q, "tip")
    assert np.array_equal(G, robot.jacobian(q, "tip"))
    assert np.array_equal(H, robot.kinematic_hessian(q, "tip"))
    out = np.empty_like(G), np.empty_like(H)
    into = robot.kic(q, "tip", out=out, threads=1)
    assert all(a is b for a, b in zip(into, out, strict=True))
    assert np.array_equal(out[1], H)
    (again, _), bits = robot.kic(q, "tip", status=True)
    assert np.array_equal(again, G)
    assert not bits.any()


def test_a_frame_on_the_base_has_no_coefficients() -> None:
    robot = lw.load("puma560")
    base = next(name for name in robot.frame_names if robot.frame(name).link == "base")
    G, H = robot.kic(np.zeros(6), base)
    assert not G.any()
    assert not H.any()


# -- compiled, precise, cheap -------------------------------------------------------------------


def test_fifty_digits_of_the_skew_property() -> None:
    """``qdᵀ (Ṁ - 2C) = -(...)ᵀ`` far below rounding, so that no error hides in a tolerance."""
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    import linkwise.spatial.precise  # noqa: F401

    robot = build(COORDINATES["several columns"])
    q, qd = (value[0] for value in states(robot))
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -20
        x, v = ([mpmath.mpf(float(y)) for y in value] for value in (q, qd))

        def M(sign: int) -> np.ndarray:
            moved = [a + sign * h * b for a, b in zip(x, v, strict=True)]
            return np.array(robot.evaluate("mass_matrix", moved), dtype=object)

        C = np.array(robot.evaluate("coriolis_matrix", x, v), dtype=object)
        error = (M(1) - M(-1)) / (2 * h) - (C + C.T)
        assert max(abs(e) for e in error.ravel()) < mpmath.mpf(10) ** -35


def chain_of(n: int) -> Robot:
    return build(tuple((R, i - 1, None) for i in range(n)))


def test_the_recursion_is_cheaper_than_the_symbols() -> None:
    """One grows with the square of a chain's length, the other with the cube."""
    functions = (("coriolis_matrix", "mixed"), ("christoffel", "composite"))
    C, symbols = ([chain_of(n).operation_count(*f).total for n in (8, 16)] for f in functions)
    contraction = 2 * 16**3 / 3  # of the symbols that are not zero by position, about
    assert C[1] < symbols[1] + contraction
    assert C[1] < 4 * C[0]
    assert symbols[1] > 4.2 * symbols[0]


def test_augmented_bodies_cost_less_than_the_paper_counts() -> None:
    """A general arm of six: 1647 multiplications and 1621 additions, as its steps add up."""
    rows = [
        lw.DHRow(d=0.1 + i, a=0.2 + i, alpha=0.3 + i, mass=1.0, com=(0.1, 0.2, 0.3),
                 inertia=(0.4, 0.01, 0.02, 0.5, 0.03, 0.6))
        for i in range(6)
    ]  # fmt: skip
    robot = lw.from_dh(rows, "standard")
    count = robot.operation_count("inertial_power", "augmented")
    assert count.multiplications < 1647
    assert count.additions < 1621
    assert count.total < robot.operation_count("inertial_power", "per-link").total
