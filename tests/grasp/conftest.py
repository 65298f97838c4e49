"""Random grasps, and dense equations of arms and object that judge them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from rotations import random_rotation

import linkwise as lw


def pose(rng: np.random.Generator, reach: float = 0.5) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = random_rotation(rng), rng.uniform(-reach, reach, 3)
    return T


def skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0.0]])


def shift(r: np.ndarray) -> np.ndarray:
    """Motion of a body at one point -> at a point that lies at r from it."""
    return np.block([[np.eye(3), np.zeros((3, 3))], [-skew(r), np.eye(3)]])


def of(robot: lw.Robot, function: str, *values: np.ndarray, frame: str | None = None) -> np.ndarray:
    """A function of an arm by itself, uncompiled."""
    return np.array(robot.evaluate(function, *(x.tolist() for x in values), frame=frame), float)


def held_by(contact: lw.Contact) -> np.ndarray:
    """What a contact holds, as its kind says: rows (angular, linear) in the object's axes."""
    place = np.eye(4) if contact.pose_in_object is None else np.asarray(contact.pose_in_object)
    n = np.array([0.0, 0.0, 1.0] if contact.normal is None else contact.normal, float)
    n, none, slide = n / np.linalg.norm(n), np.zeros(3), np.eye(6)[3:]
    kinds = {
        "rigid": np.eye(6),
        "point": slide,
        "soft": np.vstack([slide, np.concatenate([n, none])]),
        "frictionless": np.concatenate([none, n])[None],
    }
    given = contact.directions
    rows = kinds[contact.kind] if given is None else np.asarray(given, float)
    return np.asarray(rows @ np.kron(np.eye(2), place[:3, :3].T))


class Answer(NamedTuple):
    """What the dense equations say, and how sensitive they are."""

    qdd: np.ndarray
    acceleration: np.ndarray
    forces: np.ndarray
    condition: float  # of the accelerations that unit forces of contacts give, scaled
    determined: bool  # whether the contact forces are, too; else they are the smallest of all


class Dense(NamedTuple):
    """One state of a grasp in NumPy, from functions of the arms and six equations of the object."""

    grasp: lw.Grasp
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    f_ext: Any = ()  # (place, wrench in world axes): arm and frame, or None for the object

    def parts(self) -> list[tuple[Any, ...]]:
        q, qd, tau = (self.grasp.split(x) for x in (self.q, self.qd, self.tau))
        return list(zip(self.grasp.arms, q, qd, tau, strict=False))

    @property
    def object_motion(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose of the object's frame, and its velocity, in world axes."""
        T = of(self.grasp.open, "forward_kinematics", self.q, frame="object")
        return T, of(self.grasp.open, "jacobian", self.q, frame="object") @ self.qd

    def contact(self, i: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Arm, place, Jacobian, velocity and bias acceleration of a contact's frame; world axes."""
        c = self.grasp.contacts[i]
        robot, q, qd, _ = self.parts()[c.arm]
        base = self.grasp._bases[c.arm]
        R, p = np.array(base.rotation), np.array(base.translation)
        turn = np.kron(np.eye(2), R)
        J = turn @ of(robot, "jacobian", q, frame=c.frame)
        r = p + R @ of(robot, "forward_kinematics", q, frame=c.frame)[:3, 3]
        return c.arm, r, J, J @ qd, turn @ of(robot, "jacobian_dot_qd", q, qd, frame=c.frame)

    def rows(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """What contacts hold: matrix of all accelerations, terms of velocities, and directions."""
        T, v = self.object_motion
        w, nv = v[:3], [robot.nv for robot in self.grasp.arms]
        starts = np.cumsum([0, *nv])
        rows, known, spread = [], [], []
        for i, contact in enumerate(self.grasp.contacts):
            arm, r, J, va, drift = self.contact(i)
            D = held_by(contact) @ np.kron(np.eye(2), T[:3, :3].T)
            A = shift(r - T[:3, 3])
            row = np.zeros((6, starts[-1] + 6))
            row[:, starts[arm] : starts[arm] + nv[arm]], row[:, starts[-1] :] = J, -A
            relative = va - A @ v
            still = np.concatenate([
                drift[:3] - np.cross(w, relative[:3]),
                drift[3:] - np.cross(w, va[3:] - v[3:]) - np.cross(w, relative[3:]),
            ])  # fmt: skip
            rows.append(D @ row)
            known.append(D @ still)
            spread.append(D)
        return np.concatenate(rows), np.concatenate(known), spread

    def length(self) -> float:
        """What moments are divided by: the mean distance of contacts from the centre of mass."""
        if self.grasp.length is not None:
            return self.grasp.length
        T, _ = self.object_motion
        com = T[:3, 3] + T[:3, :3] @ np.asarray(self.grasp.object.com)
        places = [self.contact(i)[1] for i in range(len(self.grasp.contacts))]
        return float(np.sqrt(np.mean([(p - com) @ (p - com) for p in places])))

    def at_contacts(self, arm: int) -> np.ndarray:
        """Rows of the Jacobian of one arm, along all that its contacts hold."""
        T, _ = self.object_motion
        turn = np.kron(np.eye(2), T[:3, :3].T)
        own = [(i, c) for i, c in enumerate(self.grasp.contacts) if c.arm == arm]
        rows = [held_by(c) @ turn @ self.contact(i)[2] for i, c in own]
        return np.concatenate(rows)

    def consistent(self) -> np.ndarray:
        """The rates nearest to those given with which contacts hold, in the grasp's numbers."""
        J, _, _ = self.rows()
        T, v = self.object_motion
        arms = sum(robot.nv for robot in self.grasp.arms)
        rates = np.concatenate([self.qd[:arms], v])
        rates = rates - np.linalg.pinv(J, rcond=1e-10) @ (J @ rates)
        if not self.grasp.object_is_state:
            return rates[:arms]
        own = np.kron(np.eye(2), T[:3, :3].T) @ rates[arms:]
        return np.concatenate([rates[:arms], own])

    def solve(self) -> Answer:
        """Joint accelerations, the object's, and forces, of one system of equations."""
        grasp, parts = self.grasp, self.parts()
        T, v = self.object_motion
        Rc, w = T[:3, :3], v[:3]
        body = grasp.object
        own = np.array(body.inertia)
        inertia = Rc @ (np.diag(own) if own.ndim == 1 else own) @ Rc.T
        com = Rc @ np.asarray(body.com)
        g = grasp.gravity
        M_c = np.block([
            [inertia - body.mass * skew(com) @ skew(com), body.mass * skew(com)],
            [-body.mass * skew(com), body.mass * np.eye(3)],
        ])  # fmt: skip
        f = body.mass * (np.cross(w, np.cross(w, com)) - g)
        b_c = np.concatenate([np.cross(w, inertia @ w) + np.cross(com, f), f])
        nv = [r.nv for r, *_ in parts]
        starts = np.cumsum([0, *nv])
        n = starts[-1]
        M, rhs = np.zeros((n + 6, n + 6)), np.zeros(n + 6)
        for (robot, q, qd, tau), k, base in zip(parts, starts, grasp._bases, strict=False):
            down = np.array(base.rotation).T @ g
            own = slice(k, k + robot.nv)
            M[own, own] = of(robot, "mass_matrix", q)
            rhs[own] = tau - of(robot.with_gravity(down), "bias", q, qd)
        M[n:, n:], rhs[n:] = M_c, -b_c
        for at, wrench in self.f_ext:
            if at is None:
                rhs[n:] += wrench
                continue
            k, robot = at[0], grasp.arms[at[0]]
            turn = np.kron(np.eye(2), np.array(grasp._bases[k].rotation))
            J = turn @ of(robot, "jacobian", parts[k][1], frame=at[1])
            rhs[starts[k] : starts[k] + robot.nv] += J.T @ wrench
        J, drift, spread = self.rows()
        inverse = np.linalg.inv(M)
        Omega = J @ inverse @ J.T
        size = 1.0 / np.sqrt(np.diag(Omega))
        scaled = Omega * np.outer(size, size)
        free = J @ inverse @ rhs + drift
        found = np.linalg.lstsq(scaled, -free * size, rcond=1e-10)
        lam = found[0] * size
        qdd = inverse @ (rhs + J.T @ lam)
        values, vectors = np.linalg.eigh(scaled)
        loose = values <= 1e-10 * values[-1]
        kept, Z = values[~loose], size[:, None] * vectors[:, loose]
        ends = np.cumsum([0, *(len(D) for D in spread)])
        size = np.repeat([1.0 / self.length(), 1.0], 3)  # of moments and forces
        B = np.zeros((6 * len(spread), len(lam)))
        for i, D in enumerate(spread):
            B[6 * i : 6 * i + 6, ends[i] : ends[i + 1]] = size[:, None] * D.T
        lam = lam - Z @ np.linalg.pinv(B @ Z) @ B @ lam  # the smallest that do the same
        forces = [-D.T @ lam[a:b] for D, a, b in zip(spread, ends[:-1], ends[1:], strict=True)]
        condition = float(np.linalg.cond(M) * kept[-1] / kept[0])
        return Answer(qdd[:n], qdd[n:], np.array(forces), condition, len(kept) == len(values))


KINDS = ("rigid", "point", "soft", "frictionless")
ROWS = "rows"  # two directions of any kind


@pytest.fixture(scope="session")
def chain(random_robot: Any) -> Callable[..., lw.Robot]:
    """A random arm of so many joints, whose tip moves in as many directions as these can.

    Other kinds of joints, followers or a free base where asked for.
    """

    def made(rng: np.random.Generator, joints: int, **options: Any) -> lw.Robot:
        options = {"kinds": ("revolute",), "chain": True} | options
        while True:
            robot = lw.Robot(random_robot(rng, joints, **options))
            J = robot.evaluate("jacobian", robot.random_q(rng).tolist(), frame=tip(robot))
            if np.linalg.svd(np.array(J))[1][min(6, robot.nv) - 1] > 0.05:
                return robot

    return made


def tip(robot: lw.Robot) -> str:
    return robot.tree.links[-1].name


@pytest.fixture(scope="session")
def random_grasp(chain: Any) -> Callable[..., lw.Grasp]:
    """Arms of so many joints each, every one with a contact of a kind at its tip."""

    def made(
        rng: np.random.Generator, joints: list[int], kinds: list[str], **options: Any
    ) -> lw.Grasp:
        arms = [chain(rng, n, **options) for n in joints]
        contacts = [
            lw.Contact(
                arm=i,
                frame=tip(arms[i]),
                kind="rigid" if kind == ROWS else kind,
                pose_in_object=pose(rng),
                normal=None if kind in ("rigid", "point", ROWS) else rng.normal(size=3),
                directions=rng.normal(size=(2, 6)) if kind == ROWS else None,
            )
            for i, kind in enumerate(kinds)
        ]
        body = lw.RigidBody(
            rng.uniform(0.5, 3.0), rng.uniform(-0.2, 0.2, 3), rng.uniform(0.02, 0.03, 3)
        )
        bases = [pose(rng, 1.0) for _ in arms]
        return lw.Grasp(arms, body, contacts, bases, gravity=rng.uniform(-9, 9, 3))

    return made


@pytest.fixture(scope="session")
def dense() -> type[Dense]:
    return Dense


@pytest.fixture(scope="session")
def moving() -> Callable[..., tuple[np.ndarray, ...]]:
    """Random states of a grasp: configurations, rates that contacts allow, and torques of arms."""

    def made(grasp: lw.Grasp, rng: np.random.Generator, states: int) -> tuple[np.ndarray, ...]:
        q = grasp.random_q(rng, size=states)
        qd, tau = rng.uniform(-1, 1, (2, states, grasp.nv))
        tau *= 10.0
        if grasp.object_is_state:
            tau[:, -6:] = 0.0
        rows = zip(q, qd, tau, strict=True)
        return q, np.array([Dense(grasp, *row).consistent() for row in rows]), tau

    return made
