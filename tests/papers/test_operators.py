"""Rodriguez and Kreutz, Part I: identities (a.1)-(a.51) of the appendix.

On chains of every kind of joint, with and without rotors. Rotors R are not in the paper: with them
D = HPHᵀ + R, and (a.47) gains the term L R Lᵀ; every other identity is untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.crba import crba
from linkwise.algorithms.innovations_matrices import factor, factor_inverse, pivots
from linkwise.algorithms.operator_dynamics import fd1, fd3
from linkwise.model.joints import make_joint
from linkwise.model.tree import BASE, Follows, Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.study.operators import Operators

CHAINS = {
    "revolute": ("revolute",) * 6,
    "prismatic": ("prismatic",) * 4,
    "helical": ("helical",) * 4,
    "one degree": ("revolute", "prismatic", "helical", "prismatic", "revolute", "revolute"),
    "universal": ("universal",) * 4,
    "planar": ("planar",) * 4,
    "spherical": ("spherical",) * 4,
    "several degrees": ("universal", "planar", "spherical", "revolute", "planar"),
    "free base": ("free", "spherical", "prismatic", "universal", "revolute"),
}


def body(rng: np.random.Generator) -> RigidInertia:
    m, p = rng.uniform(0.2, 1.0, 5), rng.uniform(-0.3, 0.3, (5, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    return RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))


def placement(rng: np.random.Generator) -> Transform:
    turns = [Turn(axis, np.cos(x), np.sin(x)) for axis, x in zip("zxz", rng.uniform(-3, 3, 3))]  # noqa: B905
    return Transform(Vec3(*rng.uniform(-0.4, 0.4, 3).tolist()), tuple(turns))


def chain(kinds: tuple[str, ...], rotors: bool, seed: int = 5) -> Tree:
    rng = np.random.default_rng(seed)
    links: list[Link] = []
    nq = nv = 0
    for i, kind in enumerate(kinds):
        joint = make_joint(kind, 0.1)
        rotor = tuple(rng.uniform(0.01, 0.1, joint.nv).tolist()) if rotors else (0.0,) * joint.nv
        links.append(Link(f"l{i}", f"j{i}", i - 1, joint, placement(rng), body(rng), rotor, nq, nv))
        nq, nv = nq + joint.nq, nv + joint.nv
    spin = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    frames = {
        "tool": Frame(len(links) - 1, (0.1, -0.2, 0.3), spin),
        "root": Frame(0, (0, 0, 0), spin),
    }
    return Tree(tuple(links), frames=frames)


class Case:
    """A chain at a configuration, and its operators under the paper's names."""

    def __init__(self, kinds: tuple[str, ...], rotors: bool) -> None:
        self.tree = chain(kinds, rotors)
        self.robot = Robot.from_tree(self.tree)
        self.q = self.robot.random_q(np.random.default_rng(11))
        self.o = self.robot.operators(self.q, "tool")
        self.M = np.array(crba(self.tree, self.q.tolist()))
        self.cond = float(np.linalg.cond(self.M))

    def tip_first(self, A: np.ndarray) -> np.ndarray:
        return A[np.ix_(self.o.order, self.o.order)]


@pytest.fixture(params=[(n, r) for n in CHAINS for r in (False, True)], scope="module",
                ids=lambda p: f"{p[0]}{'-rotors' * p[1]}")  # fmt: skip
def case(request: pytest.FixtureRequest) -> Case:
    name, rotors = request.param
    return Case(CHAINS[name], rotors)


class Names:
    """The paper's letters, tildes and units, for writing identities as it does."""

    def __init__(self, o: Operators) -> None:
        self.o = o
        self.phi, self.Phi, self.psi, self.Psi = o.phi, o.Phi, o.psi, o.Psi
        self.H, self.M, self.P, self.D, self.G, self.L = o.H, o.M, o.P, o.D, o.G, o.L
        self.S, self.dphi, self.dpsi, self.R = o.S, o.delta_phi, o.delta_psi, o.R
        self.one, self.unit = np.eye(len(o.phi)), np.eye(len(o.H))
        self.phi_, self.psi_ = o.phi - self.one, o.psi - self.one  # the tildes
        self.LH, self.Di = o.L @ o.H, np.linalg.inv(o.D)


IDENTITIES: dict[str, Callable[[Names], tuple[Any, Any]]] = {
    "a.1": lambda o: (o.D, blocks(o.H @ o.P @ o.H.T, o.D) + o.R),
    "a.2": lambda o: (o.G @ o.D, o.P @ o.H.T),
    "a.3": lambda o: (o.phi_, np.tril(o.phi, -1) * ~block_diagonal(o.phi)),
    "a.6": lambda o: (o.Phi, o.phi @ o.S),
    "a.7": lambda o: (o.Psi, o.psi @ o.S),
    "a.8": lambda o: (o.Psi @ o.dpsi, o.psi_),
    "a.9": lambda o: (o.Phi @ o.dphi, o.phi_),
    "a.10": lambda o: (o.psi @ (o.one - o.S @ o.dpsi), o.one),
    "a.11": lambda o: (o.phi @ (o.one - o.S @ o.dphi), o.one),
    "a.12": lambda o: (o.L, o.dphi @ o.G),
    "a.13": lambda o: (o.phi_ @ o.G, o.Phi @ o.L),
    "a.14": lambda o: (o.phi, o.psi @ (o.one + o.S @ o.LH @ o.phi)),
    "a.15": lambda o: (o.psi, (o.one - o.Psi @ o.LH) @ o.phi),
    "a.16": lambda o: (o.Phi, o.Psi @ (o.one + o.LH @ o.Phi)),
    "a.17": lambda o: (o.Psi, (o.one - o.Psi @ o.LH) @ o.Phi),
    "a.18": lambda o: (o.phi - o.psi, o.Psi @ o.LH @ o.phi),
    "a.18 (second)": lambda o: (o.phi - o.psi, o.psi @ o.S @ o.LH @ o.phi),
    "a.22": lambda o: (o.phi, (o.one + o.Phi @ o.LH) @ o.psi),
    "a.23": lambda o: (o.psi, o.phi @ (o.one - o.S @ o.LH @ o.psi)),
    "a.24": lambda o: (o.Phi, (o.one + o.Phi @ o.LH) @ o.Psi),
    "a.25": lambda o: (o.Psi, o.Phi @ (o.one - o.LH @ o.Psi)),
    "a.26": lambda o: (o.Phi @ o.LH @ o.psi, o.Psi @ o.LH @ o.phi),
    "a.27": lambda o: (o.Phi @ o.LH @ o.Psi, o.Psi @ o.LH @ o.Phi),
    "a.28": lambda o: (o.phi - o.psi, o.Phi @ o.LH @ o.psi),
    "a.28 (second)": lambda o: (o.phi - o.psi, o.phi @ o.S @ o.LH @ o.psi),
    "a.32": lambda o: (o.H @ o.phi, (o.unit + o.H @ o.Phi @ o.L) @ o.H @ o.psi),
    "a.33": lambda o: (o.H @ o.Phi, (o.unit + o.H @ o.Phi @ o.L) @ o.H @ o.Psi),
    "a.34": lambda o: (o.H @ o.Psi, o.H @ o.Phi @ (o.one - o.LH @ o.Psi)),
    "a.35": lambda o: (o.H @ o.psi, (o.unit - o.H @ o.Psi @ o.L) @ o.H @ o.phi),
    "a.36": lambda o: (o.H @ o.Psi, (o.unit - o.H @ o.Psi @ o.L) @ o.H @ o.Phi),
    "a.37": lambda o: (o.H @ o.Phi, o.H @ o.Psi @ (o.one + o.LH @ o.Phi)),
    "a.38": lambda o: (o.H @ o.Phi @ o.LH @ o.Psi, o.H @ o.Psi @ o.LH @ o.Phi),
    "a.39": lambda o: (o.Phi @ o.L, o.Psi @ o.L @ (o.unit + o.H @ o.Phi @ o.L)),
    "a.40": lambda o: (o.Psi @ o.L, (o.one - o.Psi @ o.LH) @ o.Phi @ o.L),
    "a.41": lambda o: (o.Psi @ o.L, o.Phi @ o.L @ (o.unit - o.H @ o.Psi @ o.L)),
    "a.42": lambda o: (o.Phi @ o.L, (o.one + o.Phi @ o.LH) @ o.Psi @ o.L),
    "a.43": lambda o: (o.Psi @ o.LH @ o.Phi @ o.L, o.Phi @ o.LH @ o.Psi @ o.L),
    "a.46": lambda o: (o.psi @ o.M @ o.phi.T, o.P + o.psi_ @ o.P + o.P @ o.phi_.T),
    "a.47": lambda o: (
        o.psi @ (o.M + o.S @ o.L @ o.R @ o.L.T @ o.S.T) @ o.psi.T,
        o.P + o.psi_ @ o.P + o.P @ o.psi_.T,
    ),
    "a.48": lambda o: (
        o.phi @ o.M @ o.phi.T,
        o.P + o.phi_ @ o.P + o.P @ o.phi_.T
        + o.phi_ @ o.P @ o.H.T @ o.Di @ o.H @ o.P @ o.phi_.T,
    ),
    "a.50": lambda o: (
        (o.unit - o.H @ o.Psi @ o.L).T @ o.Di @ o.H @ o.psi @ o.M @ o.phi.T,
        (o.unit - o.H @ o.Psi @ o.L).T @ o.Di @ o.H @ o.psi_ @ o.P
        + o.L.T @ o.Psi.T @ (o.one - o.G @ o.H).T + o.G.T,
    ),
    "a.51": lambda o: (
        (o.unit - o.H @ o.Psi @ o.L).T @ o.Di @ o.H @ o.P
        @ (o.one + o.phi_.T),
        o.L.T @ o.Psi.T @ (o.one - o.G @ o.H).T + o.G.T,
    ),
}  # fmt: skip


def block_diagonal(A: np.ndarray) -> np.ndarray:
    """True inside the 6x6 blocks on the diagonal."""
    return np.kron(np.eye(len(A) // 6), np.ones((6, 6))) > 0


def blocks(A: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A where ``like`` has entries."""
    return np.where(like != 0.0, A, 0.0)


def whitener(o: Operators) -> np.ndarray:
    """``1 - HΨL``, the inverse of ``o.factor``."""
    return np.eye(len(o.H)) - o.H @ o.Psi @ o.L


def close(assert_close: Any, actual: Any, expected: Any, cond: float) -> None:
    scale = max(np.abs(actual).max(), np.abs(expected).max(), 1.0)
    assert_close(np.asarray(actual)[None], np.asarray(expected)[None], cond=cond, scale=scale)


@pytest.mark.parametrize("number", IDENTITIES)
def test_identity(case: Case, number: str, assert_close: Any) -> None:
    close(assert_close, *IDENTITIES[number](Names(case.o)), case.cond)


def block(A: np.ndarray, k: int, m: int) -> np.ndarray:
    return A[6 * k : 6 * k + 6, 6 * m : 6 * m + 6]


def test_steps_are_on_the_diagonals(case: Case) -> None:
    """(a.4) and (a.5): every step but the last, to the base, is also under φ's diagonal."""
    o, n = case.o, len(case.tree.links)
    for k in range(n - 1):
        assert np.array_equal(block(o.delta_phi, k, k), block(o.phi, k + 1, k))
        assert np.array_equal(block(o.delta_psi, k, k), block(o.psi, k + 1, k))
    for A in (o.delta_phi, o.delta_psi, o.P, o.M):
        assert not A[~block_diagonal(A)].any()


@pytest.mark.parametrize("swapped", [False, True], ids=["a.19-a.21", "a.29-a.31"])
def test_telescoping_sums(case: Case, swapped: bool, assert_close: Any) -> None:
    """T(k, m) three ways; (a.29)-(a.31) is the same with φ and ψ exchanged."""
    o, n = case.o, len(case.tree.links)
    LH = np.array([block(o.L @ o.H, i, i) for i in range(n)])
    a, b = (o.phi, o.psi) if swapped else (o.psi, o.phi)
    sign = -1.0 if swapped else 1.0
    for k in range(n):
        for m in range(k):
            steps = range(m, k)
            terms = [
                block(a, k, i + 1) @ block(b, i + 1, m) - block(a, k, i) @ block(b, i, m)
                for i in steps
            ]
            third = sum(block(a, k, i + 1) @ LH[i] @ block(b, i, m) for i in steps)
            second = block(b, k, m) - block(a, k, m)
            close(assert_close, sum(terms), second, case.cond)
            close(assert_close, sign * third, second, case.cond)


@pytest.mark.parametrize("left", ["psi", "phi"], ids=["lemma a.1", "corollary a.1"])
def test_lemma_a1(case: Case, left: str, assert_close: Any) -> None:
    """(a.44), (a.45): for any inertias M; here others than the robot's own."""
    o, n = case.o, len(case.tree.links)
    rng = np.random.default_rng(2)
    M = rng.normal(size=o.M.shape) * block_diagonal(o.M)
    a, steps = getattr(o, left), getattr(o, f"delta_{left}")
    r = np.zeros_like(M)
    inner = np.zeros((6, 6))
    for k in range(n):
        inner = inner + block(M, k, k)
        r[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = inner
        inner = block(steps, k, k) @ inner @ block(o.delta_phi, k, k).T
    one = np.eye(len(a))
    expected = r + (a - one) @ r + r @ (o.phi - one).T
    close(assert_close, a @ M @ o.phi.T, expected, case.cond)


def test_a49_riccati(case: Case, assert_close: Any) -> None:
    """(4.5), (a.49): P(1) = M(1), P(k+1) = φ (P - P Hᵀ D⁻¹ H P) φᵀ + M(k+1)."""
    o, n = case.o, len(case.tree.links)
    left = o.P - o.P @ o.H.T @ np.linalg.inv(o.D) @ o.H @ o.P
    moved = o.delta_phi @ left @ o.delta_phi.T
    close(assert_close, block(o.P, 0, 0), block(o.M, 0, 0), case.cond)
    for k in range(n - 1):
        expected = block(moved, k, k) + block(o.M, k + 1, k + 1)
        close(assert_close, block(o.P, k + 1, k + 1), expected, case.cond)


# -- what the identities are for ------------------------------------------------------------------


def test_mass_matrix(case: Case, assert_close: Any) -> None:
    """(3.20) and Fact 4.1: M = HφMφᵀHᵀ + R = (1 + HΦL) D (1 + HΦL)ᵀ."""
    o, M = case.o, case.tip_first(case.M)
    close(assert_close, o.mass_matrix, M, 1.0)
    close(assert_close, o.factor @ o.D @ o.factor.T, M, 1.0)


def test_inverse(case: Case, assert_close: Any) -> None:
    """Fact 4.2 and Theorem 4.1; the abstract's 1 - HΦL is a misprint."""
    o, M = case.o, case.tip_first(case.M)
    unit = np.eye(len(M))
    close(assert_close, whitener(o) @ o.factor, unit, case.cond)
    inverse = whitener(o).T @ np.linalg.inv(o.D) @ whitener(o)
    close(assert_close, inverse, np.linalg.inv(M), case.cond)
    misprint = unit - o.H @ o.Phi @ o.L
    assert not np.allclose(misprint @ o.factor, unit)


def test_innovations_are_these(case: Case, assert_close: Any) -> None:
    """The sweeps eliminate column by column: D's blocks are u diag(d) uᵀ, u unit triangular."""
    o, q = case.o, case.q.tolist()
    F, W = (case.tip_first(np.array(f(case.tree, q))) for f in (factor, factor_inverse))
    d = np.array(pivots(case.tree, q))[list(o.order)]
    link_of = [k for k, link in enumerate(case.tree.links) for _ in link.dofs]
    link_of = np.array(link_of)[list(o.order)]
    u = np.where(link_of[:, None] == link_of, F, 0.0)  # the blocks of D
    close(assert_close, u @ np.diag(d) @ u.T, o.D, case.cond)
    close(assert_close, o.factor @ u, F, case.cond)
    close(assert_close, np.linalg.solve(u, whitener(o)), W, case.cond)


def test_jacobian(case: Case, evaluate: Any, assert_close: Any) -> None:
    """(3.13): J = Bᵀ φᵀ Hᵀ, in the frame's own axes."""
    J = evaluate(case.robot, "jacobian", case.q[None], frame="tool", axes="body")
    assert_close(case.o.jacobian[None], J[:, :, list(case.o.order)])


def test_forward_dynamics(case: Case, assert_close: Any) -> None:
    """FD1 without bias: qdd = (1 - HΨL)ᵀ D⁻¹ (1 - HΨL) T, by arrays and by sweeps."""
    o, tree = case.o, case.tree.without_gravity()
    T = np.random.default_rng(3).normal(size=tree.nv)
    still = [0.0] * tree.nv
    by_arrays = whitener(o).T @ np.linalg.solve(o.D, whitener(o) @ T[list(o.order)])
    for sweeps in (fd1, fd3):
        qdd = np.array(sweeps(tree, case.q.tolist(), still, T.tolist()))
        close(assert_close, qdd[list(o.order)], by_arrays, case.cond)


# -- what is refused ------------------------------------------------------------------------------


def test_only_serial_robots() -> None:
    tree = chain(CHAINS["revolute"], False)
    branched = tree.with_links([*tree.links[:-1], _on(tree.links[-1], 1)])
    with pytest.raises(
        ValueError, match=r"link 'l5' hangs from link 'l1'; expected a serial robot"
    ):
        Robot.from_tree(branched).operators(np.zeros(6))
    two = tree.with_links([tree.links[0], _on(tree.links[1], BASE)])
    with pytest.raises(ValueError, match=r"link 'l1' hangs from the base"):
        Robot.from_tree(two).operators(np.zeros(2))


def test_followers_are_refused() -> None:
    tree = chain(CHAINS["revolute"][:2], False)
    tied = replace(tree.links[1], follows=Follows(0, 2.0, 0.0), q_index=0, v_index=0)
    with pytest.raises(ValueError, match=r"joint 'j1' follows 'j0'"):
        Robot.from_tree(tree.with_links([tree.links[0], tied])).operators([0.0])


def test_shape_and_frame_are_checked() -> None:
    robot = Robot.from_tree(chain(CHAINS["revolute"], False))
    with pytest.raises(ValueError, match=r"q has shape \(2, 6\); expected \(6,\)"):
        robot.operators(np.zeros((2, 6)))
    with pytest.raises(ValueError, match=r"not on the last link; expected one of 'l5'"):
        robot.operators(np.zeros(6), "root")


def test_a_bundled_robot(assert_close: Any) -> None:
    robot = lw.load("puma560")
    q = robot.random_q(seed=1)
    o = robot.operators(q)
    assert_close(o.mass_matrix[::-1, ::-1][None], robot.mass_matrix(q)[None])
    assert o.order == (5, 4, 3, 2, 1, 0)


def _on(link: Link, parent: int) -> Link:
    return replace(link, parent=parent)
