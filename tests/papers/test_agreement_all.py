"""Every method of every function against a textbook that knows poses only, to 50 digits.

The textbook has the pose of each link as a product of 4x4 matrices, and differences of poses over
steps of 1e-20 in 80 digits: velocities, Jacobians, accelerations, changes of M. Everything else is
the definition: M = Σ Jᵀ I J, torques by d'Alembert, Γ by Koszul's formula, Λ⁻¹ = J M⁻¹ Jᵀ.

Drivers run in 50 digits must agree with it to more than 30: they are right. Kernels in float64 and
float32 must agree to rounding times the condition of what they solve: they are accurate. The
constants of that are `bound`'s, and docs/accuracy.md has what is measured.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, configurations
from linkwise.engine.iterative import STALLED, TOLERANCE
from linkwise.engine.tasks import TITLES, Key
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
from linkwise.model.tree import BASE, Follows, Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.trace.tracer import evaluate as evaluate_task

mp = pytest.importorskip("mpmath", reason="mpmath is not installed")
import linkwise.spatial.precise  # noqa: E402  (teaches the algebra mpmath's numbers)

STATES = 2
TRUTH, DIGITS = 80, 50  # of the textbook, and of drivers
STEP = "1e-20"
METHODS = [  # tests/physics/test_manifold.py has those of configurations
    (f, m) for f, methods in FUNCTIONS.items() for m in methods if f not in configurations.FUNCTIONS
]
PLACES = [(f, m) for f, methods in FUNCTIONS.items() for m in methods]
DTYPES = [np.float64, np.float32]
# robots of one method after another, which have every kind of operation; the large one seldom
COMPILED = {np.float64: ("tree", "free base", "free base"), np.float32: ("free base",)}

R, P, H, U, L, S, F = (
    Revolute(), Prismatic(), Helical(0.2), Universal(), Planar(), Spherical(), Free(),
)  # fmt: skip
# joints, parents, and whether there are rotors; the tip, last, moves in six directions or more
MACHINES: dict[str, tuple[tuple[Joint, ...], tuple[int, ...], bool]] = {
    "slides": ((R, P, R, R, P, R, P), tuple(range(-1, 6)), True),
    "every kind": ((R, P, H, U, L, S), tuple(range(-1, 5)), False),
    "tree": ((R, P, R, H, U, U), (-1, 0, 0, -1, 1, 4), True),
    "free base": ((F, R, U), (-1, 0, 0), False),
    "followers": ((R, R, P, R, R, R, R, R), tuple(range(-1, 7)), True),
    "massless": ((R,) * 7, tuple(range(-1, 6)), True),
}
ROBOTS = ("iiwa14", "puma560", *MACHINES)


# -- robots ---------------------------------------------------------------------------------------


def _turns(rng: np.random.Generator) -> tuple[Turn, ...]:
    angles = zip("zxz", rng.uniform(-3, 3, 3), strict=True)
    return tuple(Turn(axis, float(np.cos(a)), float(np.sin(a))) for axis, a in angles)


def _body(rng: np.random.Generator) -> RigidInertia:
    """Four points of mass: first and second moments about the origin."""
    m, p = rng.uniform(0.2, 1.0, 4), rng.uniform(-0.3, 0.3, (4, 3))
    second = np.einsum("k,ki,kj->ij", m, p, p)[np.triu_indices(3)]
    return RigidInertia(float(m.sum()), Vec3(*(m @ p).tolist()), Sym3(*second.tolist()))


def _link(i: int, parent: int, joint: Joint, rotor: bool, rng: np.random.Generator) -> Link:
    place = Transform(Vec3(*rng.uniform(-0.3, 0.3, 3).tolist()), _turns(rng))
    armature = tuple((rng.uniform(0.1, 0.5, joint.nv) * (rotor and i % 2)).tolist())
    return Link(f"l{i}", f"j{i}", parent, joint, place, _body(rng), armature, 0, 0)


def _grow(name: str) -> Tree:
    joints, parents, rotors = MACHINES[name]
    rng = np.random.default_rng(7)
    links: list[Link] = []
    nq = nv = 0
    for i, (joint, parent) in enumerate(zip(joints, parents, strict=True)):
        link = replace(_link(i, parent, joint, rotors, rng), q_index=nq, v_index=nv)
        if name == "followers" and i == 5:
            at = links[2].q_index
            link = replace(link, follows=Follows(2, -0.5, 0.1), q_index=at, v_index=at)
        else:
            nq, nv = nq + joint.nq, nv + joint.nv
        if name == "massless" and i == 3:
            link = replace(link, inertia=RigidInertia.zero())
        links.append(link)
    tip = Frame(
        len(links) - 1, (0.1, -0.2, 0.3), ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    )
    return Tree(tuple(links), (1.0, -2.0, -9.0), {"tip": tip})


@cache
def robot_of(name: str) -> Robot:
    if name in MACHINES:
        return Robot.from_tree(_grow(name))
    return lw.load(name)


def frame_of(robot: Robot) -> str:
    return robot.frame_names[-1]


@cache
def states_of(name: str) -> dict[str, np.ndarray]:
    """Numbers that float32 holds exactly, so that both kernels are given the same states."""
    robot, rng = robot_of(name), np.random.default_rng(3)
    names = ("q", "qd", "qdd", "tau", "rhs", "x", "qdd0")
    values = [robot.random_q(rng, size=STATES), *rng.uniform(-2, 2, (5, STATES, robot.nv))]
    values.append(np.zeros((STATES, robot.nv)))
    return {k: v.astype(np.float32).astype(float) for k, v in zip(names, values, strict=True)}


# -- the textbook ---------------------------------------------------------------------------------


def array(nested: Any) -> np.ndarray:
    return np.array(nested, dtype=object)


def skew(v: Any) -> np.ndarray:
    return array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def cross(a: Any, b: Any) -> np.ndarray:
    return skew(a) @ b


def turned(axis: str, c: Any, s: Any) -> np.ndarray:
    return array(
        {"x": [[1, 0, 0], [0, c, -s], [0, s, c]], "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]]}[axis]
    )


def of_quaternion(q: Any) -> np.ndarray:
    w, u = q[0], array(q[1:4])
    n = w * w + u @ u
    return np.eye(3, dtype=int) + 2 * (w * skew(u) + skew(u) @ skew(u)) / n


def joint_pose(joint: Joint, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and translation of a joint."""
    spin = lambda axis, a: turned(axis, mp.cos(a), mp.sin(a))  # noqa: E731
    none, one = array([0, 0, 0]), np.eye(3, dtype=int)
    match joint:
        case Revolute():
            return spin("z", q[0]), none
        case Prismatic():
            return one, array([0, 0, q[0]])
        case Helical():
            return spin("z", q[0]), array([0, 0, joint.pitch * q[0]])
        case Universal():
            return spin("z", q[0]) @ spin("x", q[1]), none
        case Planar():
            return spin("z", q[2]), array([q[0], q[1], 0])
        case Spherical():
            return of_quaternion(q), none
        case Free():
            return of_quaternion(q), array(q[4:7])
    raise AssertionError(joint)


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Gauss and Jordan; A is positive definite, or unit triangular."""
    n = len(A)
    T = np.concatenate([A, B.reshape(n, -1)], axis=1)
    for k in range(n):
        T[k] = T[k] / T[k, k]
        for i in range(n):
            if i != k:
                T[i] = T[i] - T[i, k] * T[k]
    return T[:, n:].reshape(B.shape)


Poses = list[tuple[np.ndarray, np.ndarray]]
# xx, xy, yy, xz, yz, zz
UNIT_INERTIAS = [
    np.array([[int({i, j} == {r, c}) for c in range(3)] for r in range(3)], dtype=object)
    for i in range(3)
    for j in range(i + 1)
]


class Textbook:
    """One state of one robot, from poses alone."""

    def __init__(self, tree: Tree, frame: Frame, state: dict[str, np.ndarray]) -> None:
        self.tree = tree.with_constants_like(mp.mpf(1))
        self.frame = frame
        self.h = mp.mpf(STEP)
        lifted = {k: array([mp.mpf(float(x)) for x in v]) for k, v in state.items()}
        self.q, self.qd, self.qdd, self.tau = (lifted[k] for k in ("q", "qd", "qdd", "tau"))
        self.rhs, self.x, self.n = lifted["rhs"], lifted["x"], tree.nv
        self.g = array([mp.mpf(float(x)) for x in tree.gravity])

    # kinematics: poses, and their differences

    @cached_property
    def placements(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Axes and origin of every joint on the parent's link."""
        out = []
        for link in self.tree.links:
            A = np.eye(3, dtype=int)
            for t in link.placement.turns:
                A = A @ turned(t.axis, t.c, t.s)
            out.append((A, array(list(link.placement.r))))
        return out

    def poses(self, q: np.ndarray) -> Poses:
        """Axes and origin of every link, and of the frame last."""
        out: Poses = []
        for link, (A, a) in zip(self.tree.links, self.placements, strict=True):
            own = q[link.q_index : link.q_index + link.joint.nq]
            if link.follows is not None:
                own = own * link.follows.multiplier + link.follows.offset
            B, b = joint_pose(link.joint, own)
            parent = (np.eye(3, dtype=int), array([0, 0, 0]))
            R, p = parent if link.parent == BASE else out[link.parent]
            out.append((R @ A @ B, p + R @ (a + A @ b)))
        R, p = out[self.frame.link]
        here = array([mp.mpf(x) for x in self.frame.origin])
        return [*out, (R @ array(self.frame.rotation), p + R @ here)]

    def q_rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """How a configuration changes at rates v."""
        out = 0 * q
        for link in (x for x in self.tree.links if x.follows is None):
            a, b, joint = link.q_index, link.v_index, link.joint
            if not joint.quasi:
                out[a : a + joint.nq] = v[b : b + joint.nv]
                continue
            w, u, turn = q[a], q[a + 1 : a + 4], v[b : b + 3]
            out[a] = -u @ turn / 2
            out[a + 1 : a + 4] = (w * turn + cross(u, turn)) / 2
            if isinstance(joint, Free):
                out[a + 4 : a + 7] = of_quaternion(q[a : a + 4]) @ v[b + 3 : b + 6]
        return out

    def moved(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = self.h * self.q_rate(q, v)
        return q + step, q - step

    def velocities(self, q: np.ndarray, v: np.ndarray, here: Poses | None = None) -> np.ndarray:
        """(angular, linear) of every link and of the frame at rates v; ``here`` are poses of q."""
        ahead, behind = (self.poses(x) for x in self.moved(q, v))
        out = []
        for (R, _), (Ra, pa), (Rb, pb) in zip(here or self.poses(q), ahead, behind, strict=True):
            W = (Ra - Rb) @ R.T
            out.append([W[2, 1], W[0, 2], W[1, 0], *(pa - pb)])
        return array(out) / (2 * self.h)

    def jacobians(self, q: np.ndarray) -> np.ndarray:
        """(links and frame, 6, n)."""
        here, rates = self.poses(q), np.eye(self.n, dtype=int).astype(object)
        columns = [self.velocities(q, row, here) for row in rates]
        return np.stack(columns, axis=-1)

    @cached_property
    def J(self) -> np.ndarray:
        return self.jacobians(self.q)

    @cached_property
    def drift(self) -> np.ndarray:
        """Accelerations of every link and of the frame at constant rates."""
        ahead, behind = (self.velocities(x, self.qd) for x in self.moved(self.q, self.qd))
        return (ahead - behind) / (2 * self.h)

    @cached_property
    def changes(self) -> tuple[np.ndarray, np.ndarray]:
        """Of M and of the frame's Jacobian, along each rate."""
        pairs = []
        for row in np.eye(self.n, dtype=int).astype(object):
            at = [(x, self.jacobians(x)) for x in self.moved(self.q, row)]
            M = [self.mass(x, J) for x, J in at]
            pairs.append(
                ((M[0] - M[1]) / (2 * self.h), (at[0][1][-1] - at[1][1][-1]) / (2 * self.h))
            )
        return array([m for m, _ in pairs]), array([j for _, j in pairs])

    # dynamics: the definitions

    def inertias(self, q: np.ndarray) -> list[np.ndarray]:
        """6x6, of every link at its origin in base axes."""
        out = []
        for link, (R, _) in zip(self.tree.links, self.poses(q), strict=False):
            x = link.inertia.second
            second = array([[x.xx, x.xy, x.xz], [x.xy, x.yy, x.yz], [x.xz, x.yz, x.zz]])
            second, h = R @ second @ R.T, R @ array(list(link.inertia.h))
            turn = np.trace(second) * np.eye(3, dtype=int) - second
            mass = link.inertia.m * np.eye(3, dtype=int)
            out.append(np.block([[turn, skew(h)], [skew(h).T, mass]]))
        return out

    def mass(self, q: np.ndarray, J: np.ndarray) -> np.ndarray:
        M = sum(j.T @ own @ j for j, own in zip(J, self.inertias(q), strict=False))
        for link in self.tree.links:
            for (i, factor), rotor in zip(link.dofs, link.armature, strict=True):
                M[i, i] += rotor * factor**2
        return np.asarray(M)

    @cached_property
    def M(self) -> np.ndarray:
        return self.mass(self.q, self.J)

    def loads(self, spin: np.ndarray, acceleration: np.ndarray) -> list[np.ndarray]:
        """Wrench that each link's motion needs, gravity's taken off, at its origin."""
        out = []
        for own, v, a in zip(self.inertias(self.q), spin, acceleration, strict=False):
            turn, m, w, lin = own[:3, :3], own[3, 3], v[:3], a[3:] - self.g
            h = array([own[2, 4], own[0, 5], own[1, 3]])
            f = m * lin + cross(a[:3], h) + cross(w, cross(w, h))
            n = turn @ a[:3] + cross(w, turn @ w) + cross(h, lin)
            out.append(np.concatenate([n, f]))
        return out

    def torques(self, spin: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        pairs = zip(self.J, self.loads(spin, acceleration), strict=False)
        return np.asarray(sum(J.T @ f for J, f in pairs))

    @cached_property
    def moving(self) -> np.ndarray:
        return self.J @ self.qd

    @cached_property
    def bias(self) -> np.ndarray:
        return self.torques(self.moving, self.drift)

    @cached_property
    def gravity_torque(self) -> np.ndarray:
        return self.torques(0 * self.moving, 0 * self.drift)

    @cached_property
    def inverse_dynamics(self) -> np.ndarray:
        return self.M @ self.qdd + self.bias

    @cached_property
    def mass_matrix(self) -> np.ndarray:
        return self.M

    @cached_property
    def mass_matrix_inverse(self) -> np.ndarray:
        return solve(self.M, np.eye(self.n, dtype=int).astype(object))

    @cached_property
    def forward_dynamics(self) -> np.ndarray:
        return solve(self.M, self.tau - self.bias)

    @cached_property
    def solve_mass(self) -> np.ndarray:
        return solve(self.M, self.rhs)

    @cached_property
    def mass_product(self) -> np.ndarray:
        return self.M @ self.x

    @cached_property
    def diagonal_solve(self) -> np.ndarray:
        """The block of each joint on the diagonal of M."""
        found = self.x.copy()
        for link in self.tree.links:
            own = [i for i, _ in link.dofs]
            if link.follows is None:
                found[own] = solve(self.M[np.ix_(own, own)], self.x[own])
        return found

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        return array(self.qd @ self.M @ self.qd / 2)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        poses = zip(self.tree.links, self.poses(self.q), strict=False)
        moments = (R @ array(list(x.inertia.h)) + x.inertia.m * p for x, (R, p) in poses)
        return array(-self.g @ sum(moments))

    @cached_property
    def forward_kinematics(self) -> np.ndarray:
        R, p = self.poses(self.q)[-1]
        return np.block([[R, p[:, None]], [array([[0, 0, 0, 1]])]])

    @cached_property
    def jacobian(self) -> np.ndarray:
        return self.J[-1]

    @cached_property
    def link_poses(self) -> np.ndarray:
        out = []
        for (R, p), frame in zip(self.poses(self.q), self.tree.joint_frames, strict=False):
            origin, R = p + R @ array(frame.origin), R @ array(frame.rotation)
            out.append(np.block([[R, origin[:, None]], [array([[0, 0, 0, 1]])]]))
        return array(out)

    @cached_property
    def frame_velocity(self) -> np.ndarray:
        return self.jacobian @ self.qd

    @cached_property
    def frame_acceleration(self) -> np.ndarray:
        return self.jacobian @ self.qdd + self.jacobian_dot_qd

    @cached_property
    def generalized_jacobian(self) -> np.ndarray:
        reaction = solve(self.M[:6, :6], self.M[:6, 6:])
        return self.jacobian[:, 6:] - self.jacobian[:, :6] @ reaction

    @cached_property
    def jacobian_dot_qd(self) -> np.ndarray:
        return self.drift[-1]

    @cached_property
    def tip_acceleration(self) -> np.ndarray:
        return self.jacobian @ self.forward_dynamics + self.jacobian_dot_qd

    # M = F D Fᵀ: Cholesky from the last degree of freedom to the first

    @cached_property
    def factored(self) -> tuple[np.ndarray, np.ndarray]:
        A, F = self.M.copy(), np.eye(self.n, dtype=int).astype(object)
        for k in reversed(range(self.n)):
            F[:k, k] = A[:k, k] / A[k, k]
            A[:k, :k] = A[:k, :k] - np.outer(F[:k, k], A[:k, k])
        return F, np.diag(A).copy()

    @cached_property
    def factor(self) -> np.ndarray:
        return self.factored[0]

    @cached_property
    def pivots(self) -> np.ndarray:
        return self.factored[1]

    @cached_property
    def factor_inverse(self) -> np.ndarray:
        return solve(self.factor, np.eye(self.n, dtype=int).astype(object))

    @cached_property
    def apply_factor(self) -> np.ndarray:
        return self.factor @ self.x

    @cached_property
    def apply_factor_inverse(self) -> np.ndarray:
        return self.factor_inverse @ self.x

    @cached_property
    def apply_factor_transpose(self) -> np.ndarray:
        return self.factor.T @ self.x

    @cached_property
    def apply_factor_inverse_transpose(self) -> np.ndarray:
        return self.factor_inverse.T @ self.x

    @cached_property
    def operational_inertia_inverse(self) -> np.ndarray:
        return self.jacobian @ solve(self.M, self.jacobian.T)

    @cached_property
    def dynamics_and_inverse(self) -> np.ndarray:
        inverse = self.operational_inertia_inverse.reshape(-1)
        return np.concatenate([self.forward_dynamics, inverse])

    @cached_property
    def position_inertia(self) -> np.ndarray:
        inverse = self.operational_inertia_inverse[3:, 3:]
        return solve(inverse, np.eye(3, dtype=int).astype(object))

    @cached_property
    def operational_inertia(self) -> np.ndarray:
        return solve(self.operational_inertia_inverse, np.eye(6, dtype=int).astype(object))

    @cached_property
    def joint_wrenches(self) -> np.ndarray:
        return self.wrenches(self.qdd)

    @cached_property
    def wrenches_of_torques(self) -> np.ndarray:
        return self.wrenches(self.forward_dynamics)

    def wrenches(self, qdd: np.ndarray) -> np.ndarray:
        """In the frame that the joint is named by, else in the link's own."""
        poses, frames = self.poses(self.q), self.tree.frames
        loads = self.loads(self.moving, self.drift + self.J @ qdd)
        out = []
        for i, link in enumerate(self.tree.links):
            R, p = poses[i]
            named = frames.get(link.joint_name) or frames.get(link.name)
            if named is not None:
                p, R = p + R @ array(named.origin), R @ array(named.rotation)
            total = array([0] * 6)
            for k in range(i, len(self.tree.links)):
                if i in self.tree.path(k):
                    n, f = loads[k][:3], loads[k][3:]
                    total = total + np.concatenate([n + cross(poses[k][1] - p, f), f])
            out.append(np.concatenate([R.T @ total[:3], R.T @ total[3:]]))
        return array(out)

    # what bodies of one unit parameter each need, in the frames that joints are named by

    def units(self) -> Iterator[Any]:
        """Axes, lever and Jacobian of each joint's frame, and its body's motion there."""
        bodies = zip(self.tree.joint_frames, self.poses(self.q), self.J, self.drift, strict=False)
        for frame, (R, p), J, drift in bodies:
            A, r = R @ array(frame.rotation), R @ array([mp.mpf(x) for x in frame.origin])
            own, acceleration = (
                np.concatenate([J[:3], J[3:] - skew(r) @ J[:3]]),
                drift + J @ self.qdd,
            )
            w, dw = own[:3] @ self.qd, acceleration[:3]
            a = acceleration[3:] - self.g + cross(dw, r) + cross(w, cross(w, r))
            yield A, p + r, own, w, dw, a

    @cached_property
    def regressor(self) -> np.ndarray:
        columns = []
        for A, _, J, w, dw, a in self.units():
            columns.append(J[3:].T @ a)
            for h in A.T:
                f = cross(dw, h) + cross(w, cross(w, h))
                columns.append(J[:3].T @ cross(h, a) + J[3:].T @ f)
            for one in UNIT_INERTIAS:
                turn = A @ one @ A.T
                columns.append(J[:3].T @ (turn @ dw + cross(w, turn @ w)))
        return array(columns).T

    @cached_property
    def energy_regressor(self) -> np.ndarray:
        columns = []
        for A, p, J, w, _, _ in self.units():
            v = J[3:] @ self.qd
            columns.append([v @ v / 2, -self.g @ p])
            columns += [[v @ cross(w, h), -self.g @ h] for h in A.T]
            columns += [[w @ (A @ one @ A.T) @ w / 2, 0] for one in UNIT_INERTIAS]
        return array(columns).T

    # derivatives of the dynamics: differences, in more digits, for they are third differences

    def torque_rates(self, qdd: np.ndarray) -> np.ndarray:
        """Rows of ∂τ/∂q, ∂τ/∂q̇ and M at accelerations, and τ."""
        with mp.workdps(TRUTH + 40):
            units = np.eye(self.n, dtype=int).astype(object)
            moved = [[(x, self.qd) for x in self.moved(self.q, row)] for row in units]
            faster = [[(self.q, self.qd + k * self.h * row) for k in (1, -1)] for row in units]
            halves = [array([self._slope(pair, qdd) for pair in by]).T for by in (moved, faster)]
        return np.concatenate([*halves, self.M, [self.M @ qdd + self.bias]])

    def _slope(self, pair: Any, qdd: np.ndarray) -> np.ndarray:
        ahead, behind = (self._torques(*state, qdd) for state in pair)
        return (ahead - behind) / (2 * self.h)

    def _torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Of another state of the same robot."""
        other = object.__new__(Textbook)
        kept = ("tree", "frame", "h", "tau", "rhs", "x", "n", "g", "placements")
        other.__dict__.update({k: getattr(self, k) for k in kept}, q=q, qd=qd, qdd=qdd)
        return other.inverse_dynamics

    @cached_property
    def inverse_dynamics_derivatives(self) -> np.ndarray:
        return self.torque_rates(self.qdd)

    @cached_property
    def torques_to_cancel(self) -> np.ndarray:
        return self.torque_rates(self.forward_dynamics)[: 2 * self.n]

    @cached_property
    def forward_dynamics_derivatives(self) -> np.ndarray:
        """With these accelerations, inverse dynamics gives the torques back, whatever changes."""
        halves = (-solve(self.M, x) for x in np.split(self.torques_to_cancel, 2))
        return np.concatenate([*halves, self.mass_matrix_inverse, [self.forward_dynamics]])

    # the centre of mass, and momentum about it

    def center(self, q: np.ndarray) -> np.ndarray:
        poses = zip(self.tree.links, self.poses(q), strict=False)
        moments = (R @ array(list(x.inertia.h)) + x.inertia.m * p for x, (R, p) in poses)
        return array(sum(moments) / sum(x.inertia.m for x in self.tree.links))

    def momenta(self, q: np.ndarray) -> np.ndarray:
        """Momentum about the centre of mass per rate: of every link, moved there, and added up."""
        c, total = self.center(q), 0
        bodies = zip(self.inertias(q), self.jacobians(q), self.poses(q), strict=False)
        for own, J, (_, p) in bodies:
            h = own @ J
            total = total + np.concatenate([h[:3] + skew(p - c) @ h[3:], h[3:]])
        return array(total)

    @cached_property
    def center_of_mass(self) -> np.ndarray:
        return self.center(self.q)

    @cached_property
    def com_jacobian(self) -> np.ndarray:
        rates = np.eye(self.n, dtype=int).astype(object)
        pairs = [[self.center(x) for x in self.moved(self.q, row)] for row in rates]
        return array([(a - b) / (2 * self.h) for a, b in pairs]).T

    @cached_property
    def com_bias(self) -> np.ndarray:
        return self.centroidal_bias[3:] / sum(x.inertia.m for x in self.tree.links)

    @cached_property
    def centroidal_momentum_matrix(self) -> np.ndarray:
        return self.momenta(self.q)

    @cached_property
    def centroidal_momentum(self) -> np.ndarray:
        return self.momenta(self.q) @ self.qd

    @cached_property
    def centroidal_momentum_matrix_rate(self) -> np.ndarray:
        ahead, behind = (self.momenta(x) for x in self.moved(self.q, self.qd))
        return (ahead - behind) / (2 * self.h)

    @cached_property
    def centroidal_bias(self) -> np.ndarray:
        return self.centroidal_momentum_matrix_rate @ self.qd

    # changes of M and J

    @cached_property
    def kinematic_hessian(self) -> np.ndarray:
        return np.moveaxis(self.changes[1], 0, 1)

    def volume(self, J: np.ndarray) -> Any:
        """``√det(J Jᵀ)``, or of ``Jᵀ J`` where that is smaller."""
        moving = J[:, [j for j in range(self.n) if np.any(self.jacobian[:, j] != 0)]]
        gram = moving @ moving.T if moving.shape[1] >= 6 else moving.T @ moving
        return mp.sqrt(mp.det(mp.matrix(gram.tolist())))

    @cached_property
    def manipulability(self) -> np.ndarray:
        return array(self.volume(self.jacobian))

    @cached_property
    def manipulability_gradient(self) -> np.ndarray:
        J, h = self.jacobian, self.h
        pairs = [(self.volume(J + h * dJ), self.volume(J - h * dJ)) for dJ in self.changes[1]]
        return array([(a - b) / (2 * h) for a, b in pairs])

    @cached_property
    def brackets(self) -> np.ndarray:
        """``c[l, a, b]``: how much of rate l is in the bracket of motions a and b."""
        c = np.zeros((self.n,) * 3, dtype=int).astype(object)
        for link in (x for x in self.tree.links if x.joint.quasi):
            unit = np.eye(6, dtype=int)[: link.joint.nv]
            own = slice(link.v_index, link.v_index + link.joint.nv)
            for a, x in enumerate(unit):
                for b, y in enumerate(unit):
                    both = [*cross(x[:3], y[:3]), *(cross(x[:3], y[3:]) + cross(x[3:], y[:3]))]
                    c[own, link.v_index + a, link.v_index + b] = both[: link.joint.nv]
        return c

    @cached_property
    def christoffel(self) -> np.ndarray:
        """Koszul: 2 Γ_ijk = k M_ij + j M_ki - i M_jk + [k, j]·i - [k, i]·j - [j, i]·k."""
        dM = np.moveaxis(self.changes[0], 0, -1)  # M_ij along k
        B = np.einsum("il,lab->iab", self.M, self.brackets)  # [a, b]·i
        return (
            dM + np.einsum("kij->ijk", dM) - np.einsum("jki->ijk", dM)
            + np.einsum("ikj->ijk", B) - np.einsum("jki->ijk", B) - np.einsum("kji->ijk", B)
        ) / 2  # fmt: skip

    @cached_property
    def coriolis_matrix(self) -> np.ndarray:
        return self.christoffel @ self.qd

    @cached_property
    def inertial_power(self) -> np.ndarray:
        """What any such array must make of a motion."""
        return self.bias - self.gravity_torque


@cache
def books_of(name: str) -> list[Textbook]:
    robot, states = robot_of(name), states_of(name)
    frame = robot.tree.frames[frame_of(robot)]
    rows = [{k: v[i] for k, v in states.items()} for i in range(STATES)]
    with mp.workdps(TRUTH):
        return [Textbook(robot.tree, frame, row) for row in rows]


def exact(name: str, quantity: str, state: int = 0) -> np.ndarray:
    with mp.workdps(TRUTH):
        return array(getattr(books_of(name)[state], quantity))


def rounded(name: str, quantity: str) -> np.ndarray:
    """Of every state, in float64."""
    return np.stack([exact(name, quantity, i).astype(float) for i in range(STATES)])


def quasi(name: str) -> bool:
    return any(link.joint.quasi for link in robot_of(name).tree.links)


def applies(name: str, function: str, method: str) -> bool:
    return FUNCTIONS[function][method].exists_for(robot_of(name).tree)


CASES = [(name, f, m) for name in ROBOTS for f, m in METHODS if applies(name, f, m)]
REFUSED = [(name, f, m) for name in ROBOTS for f, m in METHODS if not applies(name, f, m)]


# -- right ----------------------------------------------------------------------------------------


def in_fifty_digits(name: str, function: str, method: str) -> np.ndarray:
    robot, states = robot_of(name), states_of(name)
    algorithm = FUNCTIONS[function][method]
    frame = frame_of(robot) if algorithm.takes_frame else None
    task = robot._calls.tasks.task(Key(function, method, frame))
    values = [[mp.mpf(float(x)) for x in states[k][0]] for k, _ in algorithm.inputs]
    values += [[1e-36], [400]] if algorithm.iterates else []
    found = array(evaluate_task(task, robot.tree, *values))
    return found[: robot.nv] if algorithm.iterates else found


def turn_of(name: str, function: str, method: str) -> int:
    """Methods of a robot one after another; on the next robot they begin with the next."""
    return PLACES.index((function, method)) + ROBOTS.index(name)


def long(name: str, function: str) -> bool:
    """Whether a case is for full runs: derivatives of large robots, which are third differences."""
    return function.endswith("_derivatives") and name != "free base"


EVERY_OTHER = [
    pytest.param(*x, marks=() if turn_of(*x) % 2 and not long(*x[:2]) else pytest.mark.full)
    for x in CASES
]


@pytest.mark.parametrize(("name", "function", "method"), EVERY_OTHER)
def test_fifty_digits_agree_with_the_textbook(name: str, function: str, method: str) -> None:
    with mp.workdps(DIGITS):
        found, expected = in_fifty_digits(name, function, method), exact(name, function)
        if function == "inertial_power":
            if not quasi(name):
                symmetric = (found + found.swapaxes(1, 2)) / 2
                assert np.max(abs(symmetric - exact(name, "christoffel"))) < 1e-30
            qd = books_of(name)[0].qd
            found = found @ qd @ qd
        assert found.shape == expected.shape
        assert np.max(abs(array(found - expected))) < 1e-30 * np.max(abs(expected))


@pytest.mark.parametrize(("name", "function", "method"), REFUSED)
def test_a_method_that_does_not_apply_names_the_reason_and_those_that_do(
    name: str, function: str, method: str
) -> None:
    robot, states = robot_of(name), states_of(name)
    why = {"massless": "link 'l3' has no mass", "followers": "joint 'j5' follows 'j2'"}.get(name)
    if method == "scan" and name != "followers":
        branch = "link '.*' does not follow the link before it"
        why = "the joint of link 'l3' moves no inertia" if name == "massless" else branch
    if function == "generalized_jacobian":
        why = "the robot has no flying base to react"
    at = f", frame '{frame_of(robot)}'" if FUNCTIONS[function][method].takes_frame else ""
    title = TITLES.get(function, function)
    with pytest.raises(ValueError, match=f"{title}, method '{method}'{at}: {why}") as caught:
        call(robot, function, method, states, 0)
    able = [m for f, m in METHODS if f == function and applies(name, f, m)]
    instead = (
        "; expected one of " + ", ".join(map(repr, able)) if able else "; no method can compute it"
    )
    assert str(caught.value).endswith(instead)


# -- accurate -------------------------------------------------------------------------------------


def norm(A: np.ndarray) -> np.ndarray:
    return np.linalg.norm(A, 2, axis=(-2, -1))


def largest(x: np.ndarray) -> np.ndarray:
    return np.abs(x).reshape(len(x), -1).max(axis=1)


def bound(name: str, function: str, method: str, mobility: Any) -> np.ndarray:
    """What an error is to be measured by, state by state."""
    if function != "forward_dynamics_derivatives":
        return bound_of_values(name, function, method, mobility)
    s, size = states_of(name), largest(rounded(name, function))
    M, inverse = norm(rounded(name, "M")), norm(rounded(name, "mass_matrix_inverse"))
    load = largest(rounded(name, "torques_to_cancel")) + largest(s["tau"])
    qdd = bound(name, "forward_dynamics", "crba", mobility)  # a part of each derivative
    moved = largest(rounded(name, "inverse_dynamics_derivatives")) * inverse
    return M * inverse * size + inverse * load + moved * qdd


def bound_of_values(name: str, function: str, method: str, mobility: Any) -> np.ndarray:
    """What an error is to be measured by, state by state: sizes of what is added up, times the
    condition of what is solved.

    A Schur complement is what is left of the mobility of each link alone once its joints hold it,
    so that mobility is where others have ‖M⁻¹‖ or ‖Λ⁻¹‖.
    """
    s, size = states_of(name), largest(rounded(name, function))
    M, inverse = norm(rounded(name, "M")), norm(rounded(name, "mass_matrix_inverse"))
    schur = method.startswith("schur")
    free = mobility(robot_of(name).tree) * np.ones(STATES) if schur else None
    if function == "dynamics_and_inverse":
        parts = ("forward_dynamics", "operational_inertia_inverse")
        return np.asarray(sum(bound(name, part, method, mobility) for part in parts))
    if function == "tip_acceleration":
        moved = bound(name, "forward_dynamics", "fd3", mobility)
        return norm(rounded(name, "jacobian")) * moved + bound(
            name, "jacobian_dot_qd", "sweep", mobility
        )
    if "factor" in function or function == "pivots":  # gains are entries of P over pivots
        factors = norm(rounded(name, "factor")) * norm(rounded(name, "factor_inverse"))
        return factors * (size + largest(s["x"]) if "apply" in function else M * inverse * size)
    if function == "forward_dynamics":
        held = largest(rounded(name, "wrenches_of_torques"))
        load = largest(s["tau"]) + largest(rounded(name, "bias"))
        solved = M * inverse * size + inverse * load
        if free is None:
            return solved
        return free * held + (solved if method == "schur-published" else 0.0)
    if function == "diagonal_solve":  # entries of M that are sums
        return size * M * inverse
    if function == "mass_product":
        return size + M * largest(s["x"])
    if function in ("mass_matrix_inverse", "operational_inertia_inverse", "solve_mass"):
        return M * inverse * size if free is None else free
    if function in ("operational_inertia", "position_inertia"):
        flexible = norm(rounded(name, "operational_inertia_inverse"))
        return norm(rounded(name, function)) ** 2 * (
            M * inverse * flexible if free is None else free
        )
    speed = largest(s["qd"])
    return size + {
        "inverse_dynamics": largest(rounded(name, "joint_wrenches")),
        "inverse_dynamics_derivatives": largest(rounded(name, "joint_wrenches")),
        "bias": largest(rounded(name, "joint_wrenches")),
        "inertial_power": largest(rounded(name, "joint_wrenches")),
        "gravity_torque": largest(rounded(name, "joint_wrenches")),
        "potential_energy": 10.0 * largest(rounded(name, "gravity_torque")),
        "jacobian_dot_qd": speed**2 * norm(rounded(name, "jacobian")),
        "frame_velocity": speed * norm(rounded(name, "jacobian")),
        "frame_acceleration": (speed**2 + largest(s["qdd"])) * norm(rounded(name, "jacobian")),
        # the base's inertia is a part of M, whose condition is no greater
        "generalized_jacobian": M * inverse * norm(rounded(name, "jacobian")),
        "manipulability": size * stretch(name),
        "manipulability_gradient": size * stretch(name) ** 2,
        "coriolis_matrix": speed * M,
        "christoffel": M,
        # sums of moments about the base
        "center_of_mass": moments(name) / robot_of(name).tree.mass,
        "com_jacobian": moments(name) / robot_of(name).tree.mass,
        "com_bias": speed**2 * moments(name) / robot_of(name).tree.mass,
        "centroidal_momentum_matrix": moments(name),
        "centroidal_momentum_matrix_rate": speed * moments(name),
        "centroidal_momentum": speed * moments(name),
        "centroidal_bias": speed**2 * moments(name),
    }.get(function, np.zeros(STATES))  # fmt: skip


def stretch(name: str) -> np.ndarray:
    """The condition of the frame's Jacobian, without columns that are zero."""
    return np.array([np.linalg.cond(J[:, np.any(J != 0, 0)]) for J in rounded(name, "jacobian")])


def moments(name: str) -> np.ndarray:
    """Momentum per joint rate, about points as far away as the base."""
    reach = 1.0 + largest(rounded(name, "center_of_mass"))
    return norm(rounded(name, "centroidal_momentum_matrix")) * reach


def call(robot: Robot, function: str, method: str, states: Any, at: Any, dtype: Any = float) -> Any:
    """A function of a robot at some states, or one."""
    algorithm = FUNCTIONS[function][method]
    parts = function.endswith("_derivatives")  # which robots return one by one
    run = None if parts else getattr(robot, function, None)
    run = run or partial(robot.compute, function)
    options: dict[str, Any] = {"frame": frame_of(robot)} if algorithm.takes_frame else {}
    if "method" in inspect.signature(getattr(Robot, function, Robot.compute)).parameters:
        options["method"] = method
    names = [name for name, _ in algorithm.inputs if name != "qdd0"]
    return run(*(np.ascontiguousarray(states[k][at], dtype) for k in names), **options)


def contracted(name: str, found: np.ndarray) -> np.ndarray:
    """Inertial power, as the torques it makes of a motion."""
    qd = states_of(name)["qd"]
    return np.einsum("bijk,bj,bk->bi", found, qd, qd)


def compiled_cases() -> Iterator[Any]:
    """All of them in a full run; else the methods of float64 and of float32 by turns, each on a
    robot of its number type. tests/engine/test_kernels.py has the other turns.
    """
    for name, function, method in (x for x in CASES if x[0] != "massless"):
        place = PLACES.index((function, method))
        for dtype in DTYPES:
            robots = COMPILED[dtype]
            short = dtype is DTYPES[place % 2] and robots[place % len(robots)] == name
            short = short and not long(name, function)
            marks = () if short else (pytest.mark.full,)
            label = f"{name}-{function}-{method}-{np.dtype(dtype).name}"
            yield pytest.param(name, function, method, dtype, marks=marks, id=label)


@pytest.mark.parametrize(("name", "function", "method", "dtype"), list(compiled_cases()))
def test_kernels_are_accurate(
    name: str, function: str, method: str, dtype: Any, assert_close: Any, mobility: Any
) -> None:
    """Close to the textbook; and a state alone has the bits that it has in a batch."""
    robot, states = robot_of(name), states_of(name)
    found = call(robot, function, method, states, slice(None), dtype)
    assert found.dtype == dtype
    for i in range(STATES):
        alone = call(robot, function, method, states, i, dtype)
        assert alone.tobytes() == found[i].tobytes()
    if function == "inertial_power":
        found = contracted(name, found)
    limit, expected = bound(name, function, method, mobility), rounded(name, function)
    if FUNCTIONS[function][method].iterates:
        tolerance = STALLED * TOLERANCE[np.dtype(dtype).name]
        b = states["tau"] - rounded(name, "bias")
        solved = norm(rounded(name, "mass_matrix_inverse")) * np.linalg.norm(b, axis=1) * tolerance
        limit = limit + solved / np.finfo(dtype).eps
    assert_close(found, expected, dtype=dtype, scale=limit)


def traced_cases() -> Iterator[Any]:
    """All in a full run; else every sixth method of each robot, among those that fifty digits
    leave to a full run.
    """
    for case in (x for x in CASES if not FUNCTIONS[x[1]][x[2]].iterates):
        full = turn_of(*case) % 6 or long(*case[:2])
        yield pytest.param(*case, marks=pytest.mark.full if full else ())


@pytest.mark.parametrize("dtype", DTYPES)  # above, so that both follow one another: traced once
@pytest.mark.parametrize(("name", "function", "method"), list(traced_cases()))
def test_programs_are_accurate(
    name: str, function: str, method: str, dtype: Any, interpreted: Any, assert_close: Any,
    mobility: Any,
) -> None:  # fmt: skip
    """What is compiled, run by the interpreter: every operation rounds as in a kernel."""
    robot, algorithm = robot_of(name), FUNCTIONS[function][method]
    values = [states_of(name)[k].astype(dtype) for k, _ in algorithm.inputs]
    frame = frame_of(robot) if algorithm.takes_frame else None
    found = interpreted(robot, function, method, frame, values)
    assert found.dtype == dtype
    if function == "inertial_power":
        found = contracted(name, found)
    limit = bound(name, function, method, mobility)
    assert_close(found, rounded(name, function), dtype=dtype, scale=limit)
