"""Inertial parameters from measured motions: which can be known, and what they are.

    tau = Y(q, qd, qdd) π + rotor qdd + viscous qd + dry sign(qd)

is linear in all that is unknown: least squares, rows weighted by how well each joint's torques fit.
Where the data say nothing, the robot's own values stay. A body can exist if its pseudo-inertia
``[[Σ, h], [hᵀ, m]]`` is positive definite; it is then L Lᵀ, and SciPy finds the ten numbers of L,
its diagonal by its logarithm, for which the torques fit best [Rucker and Wensing 2022].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model.build import members_of
from linkwise.model.parameters import body_of, in_frame, numbers_of, place_of
from linkwise.model.values import unknown
from linkwise.robot import Robot

Array = NDArray[np.float64]
RANK = 1e-9  # of the largest singular value: below, a direction counts as not excited
PRIOR = 1e-5  # weight of the robot's own values, beside the data, where bodies are to exist
LEAST = 1e-6  # eigenvalue of a first guess's pseudo-inertia, beside its largest
STEPS = 60  # of the search for bodies that can exist; the best found is taken
LOGARITHMS = -30.0, 10.0  # of L's diagonal: so that no step overflows
LOWER = np.tril_indices(4)


class BaseParameters(NamedTuple):
    """The combinations of inertial parameters that torques depend on."""

    columns: Array  # (rank): numbers of parameters that stand for their combinations
    combinations: Array  # (rank, 10 n): base parameters are ``combinations @ π``

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.columns)


@dataclasses.dataclass(frozen=True)
class Identification:
    """What `identify` found."""

    robot: Robot  # with the new parameters
    parameters: Array  # (n, 10), as `Robot.inertial_parameters`
    errors: Array  # (n, 10) standard errors; infinite where the data do not tell, 0 where not asked
    rotor: Array  # (nv)
    friction: Array  # (nv, 2): viscous, Coulomb
    residual: Array  # (nv): root mean square of the torques that are left unexplained
    rank: int  # combinations that the data tell, of `unknowns`
    unknowns: int
    condition: float  # of those combinations, columns scaled: the excitation; near 1 is good


def base_parameters(robot: Robot, states: int = 0, seed: int = 0) -> BaseParameters:
    """Which combinations of the inertial parameters show in torques, found at random states.

    ``Y π = Y[:, columns] @ (combinations @ π)`` at every state.
    """
    rng = np.random.default_rng(seed)
    count = states or 40 * max(1, len(robot.body_names))
    q, rates = robot.random_q(rng, count), rng.normal(size=(2, count, robot.nv))
    Y = robot.regressor(q, *rates).reshape(-1, 10 * len(robot.body_names))
    basis = np.empty((len(Y), 0))
    chosen: list[int] = []
    size = np.linalg.norm(Y, axis=0)
    for k in range(Y.shape[1]):
        rest = Y[:, k] - basis @ (basis.T @ Y[:, k])
        rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > RANK * size.max():
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            chosen.append(k)
    return BaseParameters(np.array(chosen), np.linalg.lstsq(Y[:, chosen], Y, rcond=None)[0])


def excitation(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> float:
    """How well states (..., n) tell the base parameters apart: a condition number, 1 at best.

    That of the regressor's base columns, each scaled to length 1; infinite where some combination
    does not show at all.
    """
    base = base_parameters(robot)
    Y = robot.regressor(q, qd, qdd).reshape(-1, 10 * len(robot.body_names))[:, base.columns]
    size = np.linalg.norm(Y, axis=0)
    if not size.all() or len(Y) < base.rank:
        return float("inf")
    return float(np.linalg.cond(Y / size))


def identify(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    tau: ArrayLike,
    *,
    bodies: Sequence[str] | None = None,
    rotor: bool = False,
    friction: bool = False,
    consistent: bool = True,
) -> Identification:
    """The robot's inertial parameters from motions ``q, qd, qdd`` and torques ``tau`` (..., nv).

    ``bodies`` names those that are unknown (`Robot.body_names`), all unless given; ``rotor`` and
    ``friction`` ask for rotor inertias, and viscous and Coulomb friction, too. What the data do
    not tell stays the robot's own. With ``consistent`` every body found can exist, which needs
    SciPy (``pip install 'linkwise[ode]'``).

    ``lw.identify(arm, q, qd, qdd, tau, bodies=["link7"]).robot`` knows what link7 holds.
    """
    asked = _numbers(robot, bodies)
    motion = _states(robot, q, qd, qdd, tau)
    names = robot.body_names
    own, n, nv = robot.inertial_parameters, len(names), robot.nv
    chosen = np.array([10 * i + k for i in asked for k in range(10)])
    Y = robot.regressor(*motion[:3])
    parts = [Y[..., chosen]]
    held = np.delete(np.arange(10 * n), chosen)
    fixed = Y[..., held] @ own.ravel()[held]
    _, v, a, torque = motion
    usual = (robot.armature, robot.damping, robot.friction)
    for use, rates, value in zip(
        (rotor, friction, friction), (a, v, np.sign(v)), usual, strict=True
    ):
        if use:
            parts.append(rates[..., None] * np.eye(nv))
        elif rates is a or robot._policy.friction:
            fixed = fixed + rates * value
    A, b = np.concatenate(parts, axis=-1), torque - fixed
    start = np.concatenate([own[asked].ravel(), *(x for x, use in zip(
        usual, (rotor, friction, friction), strict=True) if use)])  # fmt: skip
    weights = np.ones(nv)
    for _ in range(2):  # the second time by how well each joint fits
        found, spread, rank, condition = _solved(A, b, start, weights)
        left = np.sqrt(np.mean((b - A @ found) ** 2, axis=0))
        weights = 1.0 / np.maximum(left, 1e-9 * max(1.0, float(np.abs(b).max())))
    if consistent:
        found = _consistent(A, b, weights, start, found, len(asked))
        left = np.sqrt(np.mean((b - A @ found) ** 2, axis=0))
    ten, errors = own.copy(), np.zeros((n, 10))
    ten[asked], errors[asked] = (x[: len(chosen)].reshape(-1, 10) for x in (found, spread))
    rest = iter(found[len(chosen) :].reshape(-1, nv))
    rotors = next(rest) if rotor else robot.armature
    losses = [next(rest) if friction else x for x in usual[1:]]
    made = _changed(robot, asked, ten, rotors if rotor else None, losses if friction else None)
    return Identification(
        made, ten, errors, rotors, np.stack(losses, axis=-1), left, rank, len(start), condition
    )


def _numbers(robot: Robot, bodies: Sequence[str] | None) -> list[int]:
    names = robot.body_names
    for name in bodies or ():
        if name not in names:
            raise unknown("body", name, robot.name, names)
    return [i for i, name in enumerate(names) if bodies is None or name in bodies]


def _states(robot: Robot, *values: ArrayLike) -> list[Array]:
    """Rows of one length each: states of all of them."""
    found = []
    sizes = (robot.nq, robot.nv, robot.nv, robot.nv)
    for name, size, value in zip(("q", "qd", "qdd", "tau"), sizes, values, strict=True):
        x = np.asarray(value, float)
        if x.ndim < 2 or x.shape[-1] != size:
            raise ValueError(f"identify: {name} has shape {x.shape}; expected (..., {size}), many")
        if not np.isfinite(x).all():
            raise ValueError(f"identify: {name} has numbers that are not finite; expected none")
        found.append(x.reshape(-1, size))
    if len({len(x) for x in found}) > 1:
        counts = ", ".join(str(len(x)) for x in found)
        raise ValueError(f"identify: q, qd, qdd, tau have {counts} states; expected as many each")
    return found


def _solved(A: Array, b: Array, start: Array, weights: Array) -> tuple[Array, Array, int, float]:
    """Least squares nearest to a start: the numbers, their standard errors, rank, condition."""
    W = (A * weights[:, None]).reshape(-1, A.shape[-1])
    y = ((b - A @ start) * weights).ravel()
    size = np.linalg.norm(W, axis=0)
    scale = np.where(size > RANK * size.max(), size, size.max())  # of a column that is noise
    U, s, Vt = np.linalg.svd(W / scale, full_matrices=False)
    told = s > RANK * s.max()
    rank = int(told.sum())
    x = Vt[told].T @ ((U.T @ y)[told] / s[told])
    variance = float(np.sum((y - (W / scale) @ x) ** 2)) / max(1, len(y) - rank)
    spread = np.sqrt(variance * np.sum((Vt[told] / s[told, None]) ** 2, axis=0)) / scale
    # of a number that the data tell, nothing is in the directions that they do not
    hidden = 1.0 - np.sum(Vt[told] ** 2, axis=0) > 1e-6
    spread = np.where(hidden, np.inf, spread)
    return start + x / scale, spread, rank, float(s.max() / s[told].min())


def pseudo_inertia(ten: Array) -> Array:
    """``[[Σ, h], [hᵀ, m]]`` (4, 4) of a body's ten numbers."""
    body = body_of(ten.tolist())
    J = np.empty((4, 4))
    J[:3, :3] = [list(row) for row in body.second.full().rows]
    J[:3, 3] = J[3, :3] = list(body.h)
    J[3, 3] = body.m
    return J


def _ten(J: Array) -> Array:
    """Ten numbers of a pseudo-inertia; linear in it."""
    inertia = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.array([J[3, 3], *J[:3, 3], *inertia[np.tril_indices(3)]])


def _factor(ten: Array) -> Array:
    """Numbers of L for a body near by that can exist."""
    values, axes = np.linalg.eigh(pseudo_inertia(ten))
    values = np.maximum(values, LEAST * max(float(values.max()), LEAST))
    L = np.linalg.cholesky(axes @ np.diag(values) @ axes.T)
    L[np.diag_indices(4)] = np.log(np.diag(L))
    return np.asarray(L[LOWER])


def _body(theta: Array) -> tuple[Array, Array]:
    """Ten numbers of the body of a factor, and how they change with the factor's (10, 10)."""
    L = np.zeros((4, 4))
    L[LOWER] = theta
    L[np.diag_indices(4)] = np.exp(np.diag(L))
    columns = []
    for i, j in zip(*LOWER, strict=True):
        dL = np.zeros((4, 4))
        dL[i, j] = L[i, j] if i == j else 1.0
        columns.append(_ten(dL @ L.T + L @ dL.T))
    return _ten(L @ L.T), np.array(columns).T


def _consistent(
    A: Array, b: Array, weights: Array, start: Array, found: Array, count: int
) -> Array:
    """The best fit of bodies that can exist; rotors and friction are not below zero."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise ImportError(
            "identify: bodies that can exist need SciPy: pip install 'linkwise[ode]'; or ask for "
            "consistent=False"
        ) from None
    W = (A * weights[:, None]).reshape(-1, A.shape[-1])
    both: Array = np.linalg.qr(np.column_stack([W, (b * weights).ravel()])).R
    R, y = both[:, :-1], both[:, -1]
    prior = PRIOR * np.linalg.norm(W) / np.maximum(np.abs(start), np.abs(start).max() * 1e-2)

    def numbers(theta: Array) -> tuple[Array, Array]:
        x, D = theta.copy(), np.eye(len(theta))
        for k in range(0, 10 * count, 10):
            x[k : k + 10], D[k : k + 10, k : k + 10] = _body(theta[k : k + 10])
        return x, D

    def residual(theta: Array) -> Any:
        x, _ = numbers(theta)
        return np.concatenate([R @ x - y, prior * (x - start)])

    def slope(theta: Array) -> Any:
        _, D = numbers(theta)
        return np.concatenate([R @ D, prior[:, None] * D])

    first = [_factor(found[k : k + 10]) for k in range(0, 10 * count, 10)]
    guess = np.concatenate([*first, np.maximum(found[10 * count :], 1e-12)])
    lower, upper = np.zeros(len(guess)), np.full(len(guess), np.inf)
    lower[: 10 * count] = -np.inf
    diagonal = [k for k in range(10 * count) if LOWER[0][k % 10] == LOWER[1][k % 10]]
    lower[diagonal], upper[diagonal] = LOGARITHMS
    best = least_squares(
        residual, guess, slope, bounds=(lower, upper), x_scale="jac", max_nfev=STEPS
    )
    return numbers(best.x)[0]


def _changed(
    robot: Robot, asked: list[int], ten: Array, rotors: Array | None, losses: list[Array] | None
) -> Robot:
    """The robot with other bodies; each is its joint's child link, to which others are fixed."""
    tree, made = robot.tree, robot
    for i in asked:
        child, *fixed = members_of(made.description, tree.links[i].joint_name)
        links = [
            dataclasses.replace(x, inertia=None) if x in fixed else x
            for x in made.description.links
        ]
        made = made._edited(dataclasses.replace(made.description, links=tuple(links)))
        placed = place_of(tree.joint_frames[i]).body_back(body_of(ten[i].tolist()))
        m, *rest = numbers_of(in_frame(placed, tree.frames[child.name]))
        c = np.array(rest[:3]) / m
        inertia = np.zeros((3, 3))
        inertia[np.tril_indices(3)] = rest[3:]
        inertia = inertia + np.tril(inertia, -1).T - m * (c @ c * np.eye(3) - np.outer(c, c))
        made = made.with_inertia(child.name, m, c, inertia)
    for joint in (x for x in tree.links if x.follows is None and x.joint.nv == 1):
        k = joint.v_index
        numbers = {} if rotors is None else {"armature": float(rotors[k])}
        if losses is not None:
            numbers |= {"damping": float(losses[0][k]), "friction": float(losses[1][k])}
        made = made.with_joint(joint.joint_name, **numbers) if numbers else made
    return made.with_friction() if losses is not None else made
