"""Joints of several columns: no algorithm assumes that a joint has one.

Cylindrical, planar and translational joints are compared with chains of one-column joints and
massless links in between. A planar joint's rates are those of its link in its own axes, not
derivatives of its configuration, so its columns couple with what they carry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from linkwise.algorithms import FUNCTIONS
from linkwise.model.joints import Joint, Prismatic, Revolute
from linkwise.model.tree import Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import Motion, RigidInertia, Sym3, Transform, Turn, Vec3, sincos

STATES = 20
X, Y, Z, O = (Vec3(*row) for row in (*np.eye(3).tolist(), [0.0, 0.0, 0.0]))  # noqa: E741
NOTHING = RigidInertia.zero()


class Own(Joint):
    """A joint defined here: constant columns, a transform, and a part of Σ that it leaves alone."""

    def __init__(
        self, columns: tuple[Motion, ...], transform: Callable[[Any], Transform], slides: bool
    ) -> None:
        self._columns, self._transform, self._slides = columns, transform, slides
        self.nq = self.nv = len(columns)  # type: ignore[misc]

    def transform(self, q: Any) -> Transform:
        return self._transform(q)

    def columns(self, q: Any) -> tuple[Motion, ...]:
        return self._columns

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        return RigidInertia(0.0, O, body.second) if self._slides else NOTHING


def turn(angle: Any) -> tuple[Turn, ...]:
    s, c = sincos(angle)
    return (Turn("z", c, s),)


PUSH = {axis: Motion(O, axis) for axis in (X, Y, Z)}
REVOLUTE, PRISMATIC = Revolute(), Prismatic()
CYLINDRICAL = Own(
    (Motion(Z, O), PUSH[Z]), lambda q: Transform(Vec3(0.0, 0.0, q[1]), turn(q[0])), False
)
PLANAR = Own(
    (PUSH[X], PUSH[Y], Motion(Z, O)),
    lambda q: Transform(Vec3(q[0], q[1], 0.0), turn(q[2])),
    False,
)
TRANSLATION = Own((PUSH[X], PUSH[Y], PUSH[Z]), lambda q: Transform(Vec3(q[0], q[1], q[2])), True)
SLIDE_X = Own((PUSH[X],), lambda q: Transform(Vec3(q[0], 0.0, 0.0)), True)
SLIDE_Y = Own((PUSH[Y],), lambda q: Transform(Vec3(0.0, q[0], 0.0)), True)

CHAIN_OF = {
    REVOLUTE: (REVOLUTE,),
    CYLINDRICAL: (REVOLUTE, PRISMATIC),
    PLANAR: (SLIDE_X, SLIDE_Y, REVOLUTE),
    TRANSLATION: (SLIDE_X, SLIDE_Y, PRISMATIC),
}

# joints from the base out, each with its parent: a chain, and a tree with three branches
MACHINES = {
    "chain": ((CYLINDRICAL, -1), (REVOLUTE, 0), (PLANAR, 1), (REVOLUTE, 2), (TRANSLATION, 3)),
    "tree": (
        (TRANSLATION, -1), (REVOLUTE, 0), (CYLINDRICAL, 1), (PLANAR, 1), (REVOLUTE, 3),
        (CYLINDRICAL, 4), (PLANAR, -1), (TRANSLATION, 6),
    ),
    "one": ((PLANAR, -1),),
}  # fmt: skip


class Pair(NamedTuple):
    """A machine, its chain of one-column joints, and rates of one in terms of the other."""

    whole: Robot
    parts: Robot
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray
    A: np.ndarray  # rates of the parts = A @ rates of the whole
    drift: np.ndarray  # dA/dt @ qd

    def part_rates(self, v: np.ndarray) -> np.ndarray:
        return np.einsum("bij,bj->bi", self.A, v)

    def whole_torques(self, tau: np.ndarray) -> np.ndarray:
        return np.einsum("bij,bi->bj", self.A, tau)


def body(rng: np.random.Generator) -> RigidInertia:
    """Four points of mass: first and second moments about the origin."""
    m, p = rng.uniform(0.2, 1.0, 4), rng.uniform(-0.3, 0.3, (4, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    return RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))


def placement(rng: np.random.Generator) -> Transform:
    angles = rng.uniform(-3, 3, 3)
    turns = [
        Turn(axis, float(np.cos(a)), float(np.sin(a)))
        for axis, a in zip("zxz", angles, strict=True)
    ]
    return Transform(Vec3(*rng.uniform(-0.4, 0.4, 3).tolist()), tuple(turns))


def grow(machine: str, rng: np.random.Generator, apart: bool) -> Tree:
    """The machine's tree; ``apart``: with each joint as its chain."""
    links: list[Link] = []
    last: list[int] = []  # index of each body among the links
    q = 0
    for joint, parent in MACHINES[machine]:
        place, mass, rotor = placement(rng), body(rng), float(rng.uniform(0.1, 0.5))
        rotor = 0.0 if joint is PLANAR else rotor  # its rotors would not be in base axes
        pieces = CHAIN_OF[joint] if apart else (joint,)
        at = last[parent] if parent >= 0 else -1
        for piece in pieces:
            end = piece is pieces[-1]
            name = f"{len(links)}"
            links.append(
                Link(
                    name, name, at, piece, place, mass if end else NOTHING,
                    (rotor,) * piece.nv, q, q,
                )
            )  # fmt: skip
            q, at, place = q + piece.nv, len(links) - 1, Transform(O)
        last.append(at)
    spin = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    tip = Frame(last[-1], (0.1, -0.2, 0.3), spin)
    middle = Frame(last[len(last) // 2], (-0.1, 0.2, 0.1), spin)
    return Tree(tuple(links), (1.0, -2.0, -9.0), {"tip": tip, "middle": middle})


@pytest.fixture(params=MACHINES)
def pair(request: pytest.FixtureRequest, rng: np.random.Generator) -> Pair:
    whole, parts = (
        Robot.from_tree(grow(request.param, np.random.default_rng(3), apart))
        for apart in (False, True)
    )
    q, qd, u = rng.uniform(-2, 2, (3, STATES, whole.nv))
    A = np.broadcast_to(np.eye(whole.nv), (STATES, whole.nv, whole.nv)).copy()
    drift = np.zeros_like(qd)
    for link in whole.tree.links:
        if link.joint is PLANAR:
            i = link.v_index
            c, s, w = np.cos(q[:, i + 2]), np.sin(q[:, i + 2]), qd[:, i + 2]
            A[:, i : i + 2, i : i + 2] = np.moveaxis(np.array([[c, -s], [s, c]]), -1, 0)
            dA = np.moveaxis(w * np.array([[-s, -c], [c, -s]]), -1, 0)
            drift[:, i : i + 2] = np.einsum("bij,bj->bi", dA, qd[:, i : i + 2])
    return Pair(whole, parts, q, qd, u, A, drift)


def test_sizes(pair: Pair) -> None:
    assert (pair.whole.nq, pair.whole.nv) == (pair.parts.nq, pair.parts.nv)


def test_inverse_dynamics(pair: Pair, evaluate: Any, assert_close: Any) -> None:
    qd, qdd = pair.part_rates(pair.qd), pair.part_rates(pair.u) + pair.drift
    expected = pair.whole_torques(evaluate(pair.parts, "inverse_dynamics", pair.q, qd, qdd))
    assert_close(evaluate(pair.whole, "inverse_dynamics", pair.q, pair.qd, pair.u), expected)


def test_external_wrench(
    pair: Pair, evaluate: Any, rng: np.random.Generator, assert_close: Any
) -> None:
    f_ext = {"tip": rng.uniform(-5, 5, (STATES, 6)), "middle": rng.uniform(-5, 5, (STATES, 6))}
    still = np.zeros_like(pair.qd)
    parts = evaluate(pair.parts, "gravity_torque", pair.q, f_ext=f_ext)
    actual = evaluate(pair.whole, "inverse_dynamics", pair.q, still, still, f_ext=f_ext)
    assert_close(actual, pair.whole_torques(parts))


def test_mass_matrix(pair: Pair, evaluate: Any, assert_close: Any) -> None:
    M = evaluate(pair.parts, "mass_matrix", pair.q)
    assert_close(evaluate(pair.whole, "mass_matrix", pair.q), pair.A.mT @ M @ pair.A)


def test_regrouping(pair: Pair, evaluate: Any, assert_close: Any) -> None:
    for function in ("inverse_dynamics", "mass_matrix"):
        values = (pair.q, pair.qd, pair.u)[: len(next(iter(FUNCTIONS[function].values())).inputs)]
        plain = evaluate(pair.whole, function, *values, regrouped=False)
        assert_close(evaluate(pair.whole, function, *values), plain)


@pytest.mark.parametrize("method", ["crba", "aba"])
def test_mass_matrix_inverse(pair: Pair, method: str, evaluate: Any, assert_close: Any) -> None:
    M = evaluate(pair.whole, "mass_matrix", pair.q)
    actual = evaluate(pair.whole, "mass_matrix_inverse", pair.q, method=method)
    assert_close(actual, np.linalg.inv(M), cond=np.linalg.cond(M))


@pytest.mark.parametrize("method", ["crba", "aba"])
def test_forward_dynamics(pair: Pair, method: str, evaluate: Any, assert_close: Any) -> None:
    """It undoes inverse dynamics, with velocities, rotors and external wrenches."""
    f_ext = {"tip": np.ones((STATES, 6))}
    tau = evaluate(pair.whole, "inverse_dynamics", pair.q, pair.qd, pair.u, f_ext=f_ext)
    qdd = evaluate(pair.whole, "forward_dynamics", pair.q, pair.qd, tau, method=method, f_ext=f_ext)
    cond = np.linalg.cond(evaluate(pair.whole, "mass_matrix", pair.q))
    assert_close(qdd, pair.u, cond=cond, scale=np.abs(tau).max(axis=1))


@pytest.mark.parametrize("method", ["crba", "aba"])
def test_forward_dynamics_of_the_parts(
    pair: Pair, method: str, evaluate: Any, assert_close: Any
) -> None:
    tau = np.linalg.solve(pair.A.mT, pair.u[:, :, None])[:, :, 0]
    qd = pair.part_rates(pair.qd)
    parts = evaluate(pair.parts, "forward_dynamics", pair.q, qd, tau, method=method)
    expected = np.einsum("bji,bj->bi", pair.A, parts - pair.drift)  # A is orthogonal
    actual = evaluate(pair.whole, "forward_dynamics", pair.q, pair.qd, pair.u, method=method)
    assert_close(actual, expected, cond=np.linalg.cond(evaluate(pair.parts, "mass_matrix", pair.q)))


def test_energies(pair: Pair, evaluate: Any, assert_close: Any) -> None:
    parts = evaluate(pair.parts, "kinetic_energy", pair.q, pair.part_rates(pair.qd))
    assert_close(evaluate(pair.whole, "kinetic_energy", pair.q, pair.qd), parts)
    parts = evaluate(pair.parts, "potential_energy", pair.q)
    actual = evaluate(pair.whole, "potential_energy", pair.q)
    assert_close(actual, parts, scale=np.abs(parts).max())


@pytest.mark.parametrize("frame", ["tip", "middle"])
def test_forward_kinematics(pair: Pair, frame: str, evaluate: Any, assert_close: Any) -> None:
    parts = evaluate(pair.parts, "forward_kinematics", pair.q, frame=frame)
    assert_close(evaluate(pair.whole, "forward_kinematics", pair.q, frame=frame), parts)


@pytest.mark.parametrize("axes", ["base", "body"])
@pytest.mark.parametrize("frame", ["tip", "middle"])
def test_jacobian(pair: Pair, frame: str, axes: str, evaluate: Any, assert_close: Any) -> None:
    J = evaluate(pair.parts, "jacobian", pair.q, frame=frame, axes=axes)
    assert_close(evaluate(pair.whole, "jacobian", pair.q, frame=frame, axes=axes), J @ pair.A)


@pytest.mark.parametrize("axes", ["base", "body", "moving"])
@pytest.mark.parametrize("frame", ["tip", "middle"])
def test_jacobian_dot_qd(
    pair: Pair, frame: str, axes: str, evaluate: Any, assert_close: Any
) -> None:
    at = {"frame": frame, "axes": axes}
    J = evaluate(pair.parts, "jacobian", pair.q, frame=frame, axes=axes.replace("moving", "body"))
    parts = evaluate(pair.parts, "jacobian_dot_qd", pair.q, pair.part_rates(pair.qd), **at)
    expected = parts + np.einsum("bij,bj->bi", J, pair.drift)
    actual = evaluate(pair.whole, "jacobian_dot_qd", pair.q, pair.qd, **at)
    assert_close(actual, expected, scale=(pair.qd**2).sum(axis=1))


def test_operational_inertia(pair: Pair, evaluate: Any, assert_close: Any) -> None:
    J = evaluate(pair.whole, "jacobian", pair.q, frame="tip")
    if np.linalg.matrix_rank(J).min() < 6:
        pytest.skip("the frame cannot move in six directions")
    M = evaluate(pair.whole, "mass_matrix", pair.q)
    inverse = J @ np.linalg.solve(M, J.mT)
    actual = evaluate(pair.whole, "operational_inertia", pair.q, frame="tip")
    cond = np.linalg.cond(M) + np.linalg.cond(inverse)
    assert_close(actual, np.linalg.inv(inverse), cond=cond)


COMPILED: dict[str, Callable[[Pair], tuple[np.ndarray, ...]]] = {
    "inverse_dynamics": lambda p: (p.q, p.qd, p.u),
    "forward_dynamics": lambda p: (p.q, p.qd, p.u),
    "mass_matrix": lambda p: (p.q,),
    "mass_matrix_inverse": lambda p: (p.q,),
}


@pytest.mark.parametrize("function", COMPILED)
def test_compiled(pair: Pair, function: str, evaluate: Any, assert_close: Any) -> None:
    values = COMPILED[function](pair)
    cond = np.linalg.cond(evaluate(pair.whole, "mass_matrix", pair.q))
    actual = getattr(pair.whole, function)(*values)
    assert_close(actual, evaluate(pair.whole, function, *values), cond=cond)
