"""The equations of docs/scan.md as they are printed there, in NumPy; nothing of them is linkwise's.

Forward dynamics of a chain by pieces, in any grouping, against linkwise's articulated bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import linkwise as lw

N, ROTOR = 13, 0.02
Array = np.ndarray


class Piece(NamedTuple):
    A: Array
    C: Array
    J: Array
    eta: Array
    b: Array


NO_LINK = Piece(np.eye(6), np.zeros((6, 6)), np.zeros((6, 6)), np.zeros(6), np.zeros(6))
ONE = np.eye(6)


def skew(v: Array) -> Array:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def cross(v: Array) -> Array:
    """v x, for motions."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def one_link(S: Array, inertia: Array, X: Array, c: Array, p: Array, tau: float) -> Piece:
    """A link with its joint."""
    D = S @ inertia @ S + ROTOR
    K = inertia @ S / D
    Pi = ONE - np.outer(K, S)
    A = X.T @ Pi
    C = X.T @ Pi @ inertia @ X
    b = X.T @ (Pi @ inertia @ c + K * (tau - S @ p) + p)
    J = np.outer(S, S) / D
    eta = Pi.T @ c + S * (tau - S @ p) / D
    return Piece(A, C, J, eta, b)


def join(i: Piece, o: Piece) -> Piece:
    """An inner piece and the outer one after it, as one."""
    W = np.linalg.inv(ONE + o.C @ i.J)
    return Piece(
        A=i.A @ W @ o.A,
        C=i.C + i.A @ W @ o.C @ i.A.T,
        J=o.J + o.A.T @ i.J @ W @ o.A,
        eta=o.eta + o.A.T @ W.T @ (i.eta - i.J @ o.b),
        b=i.b + i.A @ W @ (o.b + o.C @ i.eta),
    )


def share(i: Piece, o: Piece, C: Array, b: Array, u: Array) -> tuple[Array, Array, Array]:
    """What the inner piece feels after it, and the acceleration that the outer one is given."""
    W = np.linalg.inv(ONE + C @ o.J)
    felt_C, felt_b = o.C + o.A @ W @ C @ o.A.T, o.b + o.A @ W @ (b + C @ o.eta)
    y = np.linalg.solve(ONE + i.J @ felt_C, i.A.T @ u + i.eta - i.J @ felt_b)
    return felt_C, felt_b, y


def scan(pieces: list[Piece], C: Array, b: Array, u: Array) -> list[tuple[Array, Array, Array]]:
    """What each piece is given at its ends, by halves."""
    if len(pieces) == 1:
        return [(C, b, u)]
    half = len(pieces) // 2
    i, o = whole(pieces[:half]), whole(pieces[half:])
    felt_C, felt_b, y = share(i, o, C, b, u)
    return scan(pieces[:half], felt_C, felt_b, u) + scan(pieces[half:], C, b, y)


def whole(pieces: list[Piece]) -> Piece:
    """All of them joined, by halves."""
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    return join(whole(pieces[:half]), whole(pieces[half:]))


class Chain(NamedTuple):
    robot: lw.Robot
    q: Array
    qd: Array
    tau: Array
    links: list[tuple[Array, Array, Array, Array, Array]]  # S, inertia, X, c, p
    pieces: list[Piece]


@pytest.fixture(scope="module")
def chain() -> Chain:
    robot = lw.chain(N, "random", joints=("revolute", "prismatic"), armature=ROTOR)
    rng = np.random.default_rng(3)
    q, qd, tau = rng.normal(size=(3, N))
    v, links = np.zeros(6), []
    for k, link in enumerate(robot.tree.links):
        parent = robot.forward_kinematics(q, f"link{k}" if k else "base")
        pose = np.linalg.inv(parent) @ robot.forward_kinematics(q, f"link{k + 1}")
        E, r = pose[:3, :3].T, pose[:3, 3]
        X = np.block([[E, np.zeros((3, 3))], [-E @ skew(r), E]])
        S = ONE[2 if k % 2 == 0 else 5]
        v = X @ v + S * qd[k]
        second, h, m = link.inertia.second, skew(np.array([*link.inertia.h], float)), link.inertia.m
        s = np.array([second.xx, second.yy, second.zz])
        inertia = np.block([[np.diag(s.sum() - s), h], [h.T, m * np.eye(3)]])
        p = -cross(v).T @ inertia @ v
        links.append((S, inertia, X, cross(v) @ S * qd[k], p))
    pieces = [one_link(*link, tau[k]) for k, link in enumerate(links)]
    return Chain(robot, q, qd, tau, links, pieces)


def gravity(robot: lw.Robot) -> Array:
    return np.concatenate((np.zeros(3), -robot.gravity))


def test_pieces_give_the_accelerations_of_articulated_bodies(chain: Chain) -> None:
    """Each link on its own, from what the scan gives it at its ends."""
    nothing = np.zeros((6, 6)), np.zeros(6)
    qdd = []
    for link, given, tau in zip(
        chain.links, scan(chain.pieces, *nothing, gravity(chain.robot)), chain.tau, strict=True
    ):
        (S, inertia, X, c, p), (C, b, u) = link, given
        IA, pA = inertia + C, p + b
        qdd.append((tau - S @ (IA @ (X @ u + c) + pA)) / (S @ IA @ S + ROTOR))
    exact = chain.robot.forward_dynamics(chain.q, chain.qd, chain.tau, method="aba")
    assert np.abs(np.array(qdd) - exact).max() < 1e-11 * np.abs(exact).max()


def left_first(pieces: list[Piece]) -> Piece:
    found = NO_LINK
    for piece in pieces:
        found = join(found, piece)
    return found


def right_first(pieces: list[Piece]) -> Piece:
    found = NO_LINK
    for piece in reversed(pieces):
        found = join(piece, found)
    return found


@pytest.mark.parametrize("grouped", [left_first, right_first])
def test_pieces_may_be_joined_in_any_grouping(
    chain: Chain, grouped: Callable[[list[Piece]], Piece]
) -> None:
    for one, other in zip(grouped(chain.pieces), whole(chain.pieces), strict=True):
        assert np.abs(one - other).max() < 1e-11 * np.abs(other).max()


def test_the_whole_chain_has_the_mobility_of_its_last_link(chain: Chain) -> None:
    """J of all links is J M⁻¹ Jᵀ of the last one; C is what the base feels."""
    found = whole(chain.pieces)
    expected = chain.robot.operational_inertia_inverse(chain.q, f"link{N}", axes="body")
    assert np.abs(found.J - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.abs(found.C - found.C.T).max() < 1e-12 * np.abs(found.C).max()


def test_join_is_inner_inside_outer(chain: Chain) -> None:
    """The inertia seen through two pieces is a Möbius map after another."""
    i, o = chain.pieces[3], chain.pieces[4]
    C = chain.links[5][1]

    def seen(piece: Piece, C: Array) -> Array:
        return piece.C + piece.A @ np.linalg.inv(ONE + C @ piece.J) @ C @ piece.A.T

    assert np.allclose(seen(join(i, o), C), seen(i, seen(o, C)), rtol=1e-11, atol=1e-12)


def test_a_tip_force_and_the_acceleration_of_the_tip(chain: Chain) -> None:
    """y = Aᵀ u + η - J f at the last link, against f_ext and the accelerations of its joints."""
    found, f = whole(chain.pieces), np.array([0.3, -0.2, 0.1, 1.0, 2.0, -1.5])
    y = found.A.T @ gravity(chain.robot) + found.eta - found.J @ f
    R = chain.robot.forward_kinematics(chain.q, f"link{N}")[:3, :3]
    push = -np.concatenate((R @ f[:3], R @ f[3:]))
    qdd = chain.robot.forward_dynamics(
        chain.q, chain.qd, chain.tau, f_ext={f"link{N}": push}, method="aba"
    )
    u = gravity(chain.robot)
    for (S, _, X, c, _), a in zip(chain.links, qdd, strict=True):
        u = X @ u + c + S * a
    assert np.abs(y - u).max() < 1e-10 * np.abs(u).max()
