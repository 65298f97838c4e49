"""Safeea, Neto, Bearee 2018: the mass matrix by GDAHJ, its symmetric variant, and mixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.model.joints import make_joint
from linkwise.model.tree import BASE, Follows, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.study.generic import generic_chain

METHODS = ("gdahj", "gdahj-symmetric", "mixed")
STATES = 10
KINDS = ("revolute", "prismatic", "helical", "universal", "planar", "spherical", "free")

method = pytest.mark.parametrize("method", METHODS)


def link(i: int, parent: int, kind: str, at: tuple[int, int], rng: np.random.Generator) -> Link:
    """A link that carries five points of mass, on a joint with a rotor."""
    m, p = rng.uniform(0.2, 1.0, 5), rng.uniform(-0.3, 0.3, (5, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    body = RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))
    x, z = rng.uniform(-3, 3, 2)
    turns = (
        Turn("x", float(np.cos(x)), float(np.sin(x))),
        Turn("z", float(np.cos(z)), float(np.sin(z))),
    )
    place = Transform(Vec3(*rng.uniform(-0.4, 0.4, 3).tolist()), turns)
    joint = make_joint(kind, 0.1)
    rotors = tuple(rng.uniform(0.01, 0.1, joint.nv).tolist())
    return Link(f"l{i}", f"j{i}", parent, joint, place, body, rotors, *at)


def grow(parents: list[int], kinds: list[str], seed: int) -> Tree:
    rng = np.random.default_rng(seed)
    links: list[Link] = []
    nq = nv = 0
    for i, (parent, kind) in enumerate(zip(parents, kinds, strict=True)):
        links.append(link(i, parent, kind, (nq, nv), rng))
        nq, nv = nq + links[-1].joint.nq, nv + links[-1].joint.nv
    return Tree(tuple(links))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Trees of every kind of joint; several may stand on the base."""
    n = draw(st.integers(1, 10))
    parents = [draw(st.integers(-1, i - 1)) for i in range(n)]
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(n)]
    return grow(parents, kinds, draw(st.integers(0, 2**32 - 1)))


def related(tree: Tree) -> np.ndarray:
    """Which degrees of freedom lie on one way to the base."""
    out = np.zeros((tree.nv, tree.nv), dtype=bool)
    for i, own in enumerate(tree.links):
        inward = [k for j in tree.path(i) for k, _ in tree.links[j].dofs]
        for k, _ in own.dofs:
            out[k, inward] = out[inward, k] = True
    return out


@method
@given(tree=trees())
@settings(max_examples=60)
def test_every_joint_and_every_tree(method: str, tree: Tree, evaluate: Any, assert_close: Any):
    robot = Robot.from_tree(tree)
    q = robot.random_q(seed=3, size=STATES)
    expected = evaluate(robot, "mass_matrix", q, method="crba")
    actual = evaluate(robot, "mass_matrix", q, method=method)
    assert_close(actual, expected)
    assert np.array_equal(actual, actual.mT)
    assert not actual[:, ~related(tree)].any()


@method
def test_described_trees(
    method: str, random_robot: Any, evaluate: Any, assert_close: Any, rng: Any
):
    """Fixed links, massless links, parallel and crossing axes."""
    for _ in range(10):
        robot = lw.Robot(random_robot(rng, 12))
        q = robot.random_q(rng, size=STATES)
        expected = evaluate(robot, "mass_matrix", q, method="crba")
        assert_close(evaluate(robot, "mass_matrix", q, method=method), expected)


@method
def test_real_robots(method: str, real_robot: Any, evaluate: Any, assert_close: Any):
    robot = real_robot.robot
    q = robot.random_q(seed=1, size=STATES)
    expected = evaluate(robot, "mass_matrix", q, method="crba")
    assert_close(evaluate(robot, "mass_matrix", q, method=method), expected)


@method
@pytest.mark.parametrize("driver", ["ancestor", "other branch", "descendant"])
def test_followers(method: str, driver: str, evaluate: Any, assert_close: Any):
    """A joint tied to another adds to its driver's row and column."""
    tree = grow([-1, 0, 1, 0, 3], ["revolute", "prismatic", "revolute", "revolute", "revolute"], 4)
    leader, follower = {"ancestor": (0, 2), "other branch": (2, 4), "descendant": (2, 1)}[driver]
    links, n = [], 0
    for i, own in enumerate(tree.links):
        links.append(own if i == follower else replace(own, q_index=n, v_index=n))
        n += i != follower
    at = links[leader].q_index
    links[follower] = replace(
        links[follower], follows=Follows(leader, -1.7, 0.2), q_index=at, v_index=at
    )
    robot = Robot.from_tree(tree.with_links(links))
    q = robot.random_q(seed=2, size=STATES)
    expected = evaluate(robot, "mass_matrix", q, method="crba")
    assert_close(evaluate(robot, "mass_matrix", q, method=method), expected)


@method
def test_compiled_is_evaluated(method: str, evaluate: Any, assert_close: Any):
    robot = lw.Robot(generic_chain(9, kind="mixed"))
    q = robot.random_q(seed=4, size=STATES)
    expected = evaluate(robot, "mass_matrix", q, method=method)
    assert_close(robot.mass_matrix(q, method=method), expected)
    assert_close(robot.mass_matrix(q[0], method=method)[None], expected[:1])


# -- digits ---------------------------------------------------------------------------------------


def exact(robot: lw.Robot, q: np.ndarray) -> np.ndarray:
    with mpmath.workdps(40):
        M = robot.evaluate("mass_matrix", [mpmath.mpf(x) for x in q], method="crba")
        return np.array([[float(x) for x in row] for row in M])


@method
@pytest.mark.parametrize("n", [7, 60])
def test_digits_of_long_chains(method: str, n: int, evaluate: Any):
    """Eq. 32's metric and the largest entry's error, against 40 digits: as good as CRBA."""
    import linkwise.spatial.precise  # noqa: F401

    robot = lw.Robot(generic_chain(n))
    q = robot.random_q(seed=5, size=1)
    A = exact(robot, q[0])
    M = evaluate(robot, "mass_matrix", q, method=method)[0]
    assert np.abs(M - A).max() < 20 * np.finfo(float).eps * np.abs(A).max()
    assert np.abs(M - A).sum() / np.abs(A).max() < n * n * np.finfo(float).eps


@method
@pytest.mark.parametrize("kind", ["revolute", "free"])
def test_a_far_base_costs_no_digits(method: str, kind: str, evaluate: Any, assert_close: Any):
    """A fixed point at the base's origin loses a digit squared for each of distance."""
    near = grow([-1, 0, 1, 2, 3], [kind, "revolute", "revolute", "prismatic", "revolute"], 8)
    far = Transform(Vec3(1e6, -2e6, 3e5), near.links[0].placement.turns)
    moved = near.with_links([replace(near.links[0], placement=far), *near.links[1:]])
    q = Robot.from_tree(near).random_q(seed=6, size=STATES)
    expected = evaluate(Robot.from_tree(near), "mass_matrix", q, method="crba")
    if kind == "free":
        q[:, 4:7] *= 1e6  # and the robot itself may go far
    assert_close(evaluate(Robot.from_tree(moved), "mass_matrix", q, method=method), expected)


# -- what the paper says, entry by entry ----------------------------------------------------------


def published(robot: lw.Robot, q: np.ndarray, y_sign: float, transposed: bool) -> np.ndarray:
    """Eqs. 23-31 in arrays about the world's origin, from masses, centres and tensors."""
    frames = [f"link{i + 1}" for i in range(robot.nv)]
    T = [robot.forward_kinematics(q, frame) for frame in frames]
    bodies = [own.inertia for own in robot.description.links[1:]]
    n = robot.nv
    R, p = [t[:3, :3] for t in T], [t[:3, 3] for t in T]
    k = [r[:, 2] for r in R]
    m = np.array([b.mass for b in bodies])
    p_Cii = [r @ b.com for r, b in zip(R, bodies, strict=True)]
    p_C = [a + b for a, b in zip(p, p_Cii, strict=True)]
    A, b_i, D = np.zeros((n, n)), np.zeros(3), np.zeros((3, 3))
    for i in reversed(range(n)):
        way = p[i + 1] - p[i] if i + 1 < n else np.zeros(3)
        tensor = np.zeros((3, 3))
        tensor[np.triu_indices(3)] = bodies[i].tensor
        tensor += np.triu(tensor, 1).T
        outer = sum((m[j] * skew(p_C[j]) for j in range(i + 1, n)), np.zeros((3, 3)))
        b_i = b_i + m[i] * p_Cii[i] + m[i + 1 :].sum() * way  # (23), (27)
        kappa = -m[i] * skew(p_Cii[i]) @ skew(p_C[i]) - skew(way) @ outer  # (24)
        D = D + R[i] @ tensor @ R[i].T + kappa  # (28)
        d = (D.T if transposed else D) @ k[i]
        y = y_sign * np.cross(b_i, k[i])
        for j in range(i + 1):
            A[i, j] = A[j, i] = k[j] @ d + np.cross(k[j], p[j]) @ y  # (31)
    return A


def skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


@pytest.mark.parametrize("n", [2, 7, 14])
def test_the_paper_as_corrected(n: int, assert_close: Callable[..., None]):
    """y = b x k as in (31); the text's b~ᵀ k has the wrong sign, and D is not symmetric."""
    robot = lw.Robot(generic_chain(n))
    q = robot.random_q(seed=7)
    M = robot.mass_matrix(q)
    assert_close(published(robot, q, 1.0, True)[None], M[None])
    for wrong in (published(robot, q, -1.0, True), published(robot, q, 1.0, False)):
        assert np.abs(wrong - M).max() > 0.01 * np.abs(M).max()


# -- operations -----------------------------------------------------------------------------------

MOST = {  # multiplications, additions; kinematics included
    ("gdahj", 6): (616, 517),
    ("gdahj", 30): (6088, 5161),
    ("gdahj-symmetric", 6): (561, 438),
    ("gdahj-symmetric", 30): (5697, 4527),
}


@pytest.mark.parametrize(("method", "n"), MOST)
def test_no_method_becomes_dearer(method: str, n: int):
    counted = lw.Robot(generic_chain(n)).operation_count("mass_matrix", method)
    assert (counted.multiplications, counted.additions) <= MOST[method, n]
    assert counted.additions <= MOST[method, n][1]


def test_an_entry_costs_two_inner_products():
    """The quadratic part is the paper's: 3 n² multiplications, 2.5 n² additions."""
    for name in METHODS:
        counts = [
            lw.Robot(generic_chain(n)).operation_count("mass_matrix", name) for n in (12, 18, 24)
        ]
        for kind, per_pair in (("multiplications", 6.0), ("additions", 5.0)):
            a, b, c = (getattr(count, kind) for count in counts)
            assert (a - 2 * b + c) / 36 == pytest.approx(per_pair, abs=0.05)


def test_generic_chains_have_no_zeros():
    """A longer chain starts with the shorter; seeds differ; every entry of M depends on q."""
    long, short = generic_chain(5, 1), generic_chain(3, 1)
    assert long.links[:4] == short.links
    assert generic_chain(3, 2) != short
    for row in long.links[1:]:
        assert np.all(np.array([row.inertia.mass, *row.inertia.com, *row.inertia.tensor]) != 0.0)
    with pytest.raises(ValueError, match="n is 0"):
        generic_chain(0)
    with pytest.raises(ValueError, match="kind 'ball'"):
        generic_chain(2, kind="ball")


def test_the_first_joint_on_each_branch_stands_on_the_base():
    """Hands and such: several branches, each seen from its own first link."""
    tree = grow([-1, 0, -1, 2, 2], ["revolute", "prismatic", "free", "spherical", "revolute"], 9)
    assert [own.parent for own in tree.links].count(BASE) == 2
    robot = Robot.from_tree(tree)
    M = np.array(robot.evaluate("mass_matrix", robot.neutral().tolist(), method="gdahj"))
    assert not M[:2, 2:].any()
