"""Doubts of measured data: whether torques, their signs and the accelerations can be right.

Each doubt compares two things that should agree, and is silent where the data cannot say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.identification.base import RANK
from linkwise.identification.bodies import pseudo_inertia
from linkwise.identification.unknowns import Motion, Unknowns, few
from linkwise.model.parameters import TEN

Array = NDArray[np.float64]
UNEXPLAINED = 0.5  # share of a joint's torques: more is no fit
WORSE = 2.0  # squares of consistent bodies, relative to those of least squares
OPPOSED = 1.5  # unexplained share that noise alone does not reach: torques against the model's
SMALL = 0.02  # share of all torques: residuals below are no reason for doubts
ON_BOUNDARY = 1e-5  # eigenvalue of a pseudo-inertia, relative to its largest, and the robot's
AGAINST = -0.3  # correlation with the torques of the robot as it is: opposite signs are tried
MUCH_BETTER = 0.25  # squares with opposite signs: then they are the cause
SMOOTH, ROUGH = 0.95, 0.5  # correlation of neighbouring samples: of positions, and of accelerations
LAG_SHARE = 0.3  # of the squares left: less may be other errors of the model
LAG_ERRORS = 8.0  # standard errors of a lag: it is no chance beyond
EPS = 1e-300


def unexplained(torque: Array, left: Array) -> Array:
    """Share (nv) of each joint's torques, as root mean squares, that is left."""
    size = np.sqrt(np.mean(torque**2, axis=0))
    rounding = 1e-9 * max(1.0, float(size.max(initial=0.0)))
    return np.where(left > rounding, left / np.maximum(size, EPS), 0.0)


def boundary(x: Array, start: Array, names: list[str]) -> tuple[str, ...]:
    """Bodies whose pseudo-inertia is almost singular, by the size of the robot's own."""
    on = []
    for k, name in enumerate(names):
        part = slice(TEN * k, TEN * k + TEN)
        values, axes = np.linalg.eigh(pseudo_inertia(start[part]))
        half = axes / np.sqrt(np.maximum(values, 1e-6 * max(float(values[-1]), EPS)))
        ratio = np.linalg.eigvalsh(half.T @ pseudo_inertia(x[part]) @ half)
        if not ratio[0] > ON_BOUNDARY * ratio[-1] or ratio[-1] < ON_BOUNDARY:
            on.append(name)
    return tuple(on)


def of_residuals(joints: tuple[str, ...], share: Array, left: Array, torque: Array) -> list[str]:
    """Joints whose torques the result does not explain; noise of a joint without load is none."""
    size = SMALL * float(np.sqrt(np.mean(torque**2, axis=0)).max())
    names = [f"{name} ({100 * x:.0f} %)" for name, x, y in zip(joints, share, left, strict=True)
             if (x > UNEXPLAINED and y > size) or x > OPPOSED]  # fmt: skip
    if not names:
        return []
    return [f"much of the torques is left unexplained, of {few(names)}; expected noise and less. "
            "Look at units, order of joints, signs, accelerations and friction "
            "(friction=True)"]  # fmt: skip


def of_consistency(free: float, consistent: float, total: float, on: tuple[str, ...]) -> list[str]:
    """Whether bodies that are consistent fit much worse than numbers that are not."""
    if consistent <= WORSE * free or consistent <= SMALL**2 * total:
        return []
    bodies = f" {few(on)} lie on the boundary of consistency;" if on else ""
    return [f"physically consistent bodies explain the torques much worse than inconsistent ones "
            f"(root mean square {(consistent / free) ** 0.5:.3g} times as large);{bodies} expected "
            "about the same. Look at signs, units and accelerations"]  # fmt: skip


def of_signs(
    unknowns: Unknowns, motion: Motion, torque: Array, again: Callable[[Array], Array]
) -> list[str]:
    """Whether torques fit much better with opposite signs; ``again`` fits other torques.

    Its residuals are compared as shares of each joint's torques, of the joints in question: weights
    of the fit hide a joint that does not fit.
    """

    def squares(signs: Array) -> Array:
        return unexplained(torque, again(np.where(signs, -torque, torque))) ** 2

    friction = unknowns.robot.with_friction() if 1 in unknowns.kinds else unknowns.robot
    usual = friction.inverse_dynamics(*motion)
    size = np.linalg.norm(usual, axis=0) * np.linalg.norm(torque, axis=0)
    agree = np.sum(usual * torque, axis=0) / np.maximum(size, EPS)
    against = agree < AGAINST
    if not against.any():
        return []
    most = bool(np.median(agree) < AGAINST)  # rather a matter of all
    tries = [np.ones_like(against), against] if most else [against]
    after = [squares(signs) for signs in tries]
    best = int(np.argmin([x.sum() for x in after]))
    signs, before = tries[best], squares(np.zeros_like(against))
    worst = before[signs].sum()
    if worst < SMALL**2 or after[best][signs].sum() > MUCH_BETTER * worst:
        return []
    names = [n for n, x in zip(unknowns.columns_of_joints, signs, strict=True) if x]
    which = "the torques" if signs.all() else f"the torques of {few(names)}"
    return [f"{which} seem to have the opposite sign: they fit much better as -tau. Expected "
            "torques of the motors on the links, positive along the joints' axes"]  # fmt: skip


def of_accelerations(motion: Motion, joints: tuple[str, ...]) -> list[str]:
    """Whether accelerations are noise, of a motion whose positions are smooth."""
    if motion.q.shape != motion.qdd.shape or len(motion.q) < 10:
        return []
    smooth, rough = _neighbours(motion.q), _neighbours(motion.qdd)
    names = [f"{name} ({x:.2f})" for name, x, y in zip(joints, rough, smooth, strict=True)
             if y > SMOOTH and x < ROUGH]  # fmt: skip
    if not names:
        return []
    return [f"accelerations are mostly noise: those of neighbouring samples hardly correlate, of "
            f"{few(names)}, though positions are smooth. Give the log, and linkwise filters it: "
            "identify(robot, q, tau=tau, t=t, bandwidth=10)"]  # fmt: skip


def of_lag(
    A: Array, b: Array, motion: Motion, slope: Array, weights: Array, step: float
) -> list[str]:
    """Whether torques (states, nv) of a log come later than the motion, or earlier.

    Torques that are late by d are ``tau - d dtau/dt`` to first order. Their derivative ``slope``
    explains residuals that nothing else explains, friction among it, which resembles a lag.
    """
    eye = np.eye(b.shape[-1])
    friction = [x[..., None] * eye for x in (motion.qd, np.sign(motion.qd))]
    W = np.concatenate([A, *friction], axis=-1) * weights[:, None]
    W = W.reshape(-1, W.shape[-1])
    size = np.linalg.norm(W, axis=0)
    U, s, _ = np.linalg.svd(W / np.where(size > RANK * size.max(), size, size.max()), False)
    U = U[:, s > RANK * s[0]]
    y, z = ((x * weights).ravel() for x in (b, slope))
    y, z = y - U @ (U.T @ y), z - U @ (U.T @ z)
    before, late, spare = float(y @ y), float(z @ z), len(y) - U.shape[1] - 1
    if spare < 1 or not late > 0.0:
        return []
    lag = -float(z @ y) / late
    after = max(before - lag**2 * late, 0.0)
    error = (after / spare / late) ** 0.5
    if abs(lag) < max(0.5 * step, LAG_ERRORS * error) or after > (1.0 - LAG_SHARE) * before:
        return []
    seen = "after" if lag > 0.0 else "before"
    return [f"torques seem to come {abs(lag):.2g} s {seen} the motion, as a filter of a sensor or "
            f"different clocks make them: this explains {100 * (1 - after / before):.0f} % of the "
            "squares that are left. Expected torques and positions of the same times; shift one "
            "of them"]  # fmt: skip


def of_errors(
    motion: Motion, residuals: Array, joints: tuple[str, ...], share: Array, on: tuple[str, ...],
    log: bool,
) -> list[str]:  # fmt: skip
    """Whether residuals (states, nv) of a log, or of a smooth motion, follow it: no noise does.

    Standard errors are those of noise, and of least squares without the constraints of bodies that
    lie on the boundary.
    """
    if len(residuals) < 10 or not (log or (_neighbours(motion.q) > SMOOTH).all()):
        return []
    follows = _neighbours(residuals)
    names = [f"{name} ({x:.2f})" for name, x, y in zip(joints, follows, share, strict=True)
             if x > ROUGH and y > SMALL]  # fmt: skip
    if not names:
        return []
    bodies = f"{few(on)}: on the boundary of physical consistency. " if on else ""
    return [f"standard errors are too small: residuals of neighbouring samples correlate, of "
            f"{few(names)}, so that they are no noise. {bodies}Look at times of torques and "
            "positions, units and friction (friction=True)"]  # fmt: skip


def of_validation(left: Array, validation: Array) -> list[str]:
    """Whether samples that were not fitted are explained much worse."""
    here, there = float(np.linalg.norm(left)), float(np.linalg.norm(validation))
    if not there > 2.0 * here > 0.0:  # NaN: none was kept
        return []
    return [f"what is left of the torques is {there / here:.3g} times as large in the samples kept "
            "for validation; expected about the same. More various motions help"]  # fmt: skip


def _neighbours(x: Array) -> Array:
    """Correlation (nv) of each column with itself one sample later; 1 of one that does not move."""
    x = x - x.mean(axis=0)
    size = np.sum(x * x, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.sum(x[1:] * x[:-1], axis=0) / size
    return np.where(size > 0.0, r, 1.0)
