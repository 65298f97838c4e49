"""Inertial parameters from measured motions: ``lw.identify``.

Least squares over all that is unknown (``unknowns.py``, ``fit.py``); where the data say nothing,
the robot's own values stay. Then, if asked, the best of the bodies that can exist (``bodies.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.errors import IdentificationWarning, warn
from linkwise.identification import doubts
from linkwise.identification.base import RANK
from linkwise.identification.bodies import Found, best_bodies
from linkwise.identification.fit import Fit, Rows, fitted, residuals
from linkwise.identification.logs import logged
from linkwise.identification.unknowns import Motion, Unknowns, few, measured
from linkwise.model.build import members_of
from linkwise.model.parameters import body_of, in_frame, numbers_of, place_of
from linkwise.robot import Robot
from linkwise.text import aligned

Array = NDArray[np.float64]
POOR = 1e4  # condition from which data tell combinations apart only poorly


@dataclass(frozen=True, repr=False, eq=False)
class Identification:
    """The result of `identify`: parameters, standard errors, and torques left unexplained."""

    parameters: Array  # (n, 10), as `Robot.inertial_parameters`
    errors: Array  # (n, 10) standard errors; infinite: not identifiable; 0: not asked
    rotor: Array  # (nv)
    friction: Array  # (nv, 2): viscous, Coulomb
    residual: Array  # (nv): root mean square of the torques that are left unexplained
    residuals: Array  # (states, nv): torques that are left unexplained
    unexplained: Array  # (nv): the residual as a share of each joint's torques
    validation: Array  # (nv): as `residual`, of states that were kept for validation; NaN: none
    names: tuple[str, ...]  # (k) of the unknown numbers: those of bodies, then of joints
    values: Array  # (k)
    covariance: Array  # (k, k) of least squares: infinite variance: not identifiable
    unidentifiable: tuple[str, ...]  # combinations that torques depend on, and these data do not
    rank: int  # combinations that the data determine
    combinations: int  # combinations that torques depend on
    condition: float  # of the determined ones, columns scaled: the excitation; near 1 is good
    converged: bool  # whether the search for bodies that can exist came to an end
    steps: int  # of that search: 0 where least squares had found such bodies, or none were asked
    gap: float  # bound on the squares above their least, as a share of the torques' squares
    boundary: tuple[str, ...]  # bodies on the boundary of physical consistency
    doubts: tuple[str, ...]  # what is doubtful of the data, as the warnings say
    asked: Unknowns  # what the numbers are numbers of

    @cached_property
    def robot(self) -> Robot:
        """The robot with these parameters; raises where bodies are physically inconsistent."""
        viscous, dry = self.friction.T
        try:
            return _changed(self.asked, self.parameters, self.rotor, viscous, dry)
        except ValueError as error:
            raise ValueError(
                f"identify: what was found is no robot ({error}); expected identify(..., "
                "consistent=True), or a call of robot.parametric('inertia') with these parameters"
            ) from None

    @property
    def unknowns(self) -> int:
        """How many unknown numbers there were."""
        return len(self.names)

    @property
    def identifiable(self) -> NDArray[np.bool_]:
        """(k): whether the data determine each number by itself, not only in combinations."""
        return np.isfinite(np.diag(self.covariance))

    @property
    def standard_errors(self) -> Array:
        """(k): of each unknown number; infinite where the data do not determine it by itself."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def __repr__(self) -> str:
        """What was found, in a few lines."""
        found = (
            f"identification of {self.asked.robot.name}: {self.rank} of {self.combinations} "
            f"combinations identified, of {self.unknowns} numbers ({int(self.identifiable.sum())} "
            f"by themselves); condition {self.condition:.3g}"
        )
        lines = [found, "unexplained: " + ", ".join(f"{x:.3g}" for x in self.residual)]
        if np.isfinite(self.validation).all():
            lines.append("validation: " + ", ".join(f"{x:.3g}" for x in self.validation))
        if self.unidentifiable:
            lines.append(f"not excited: {few(self.unidentifiable)}")
        if self.steps:
            ended = "converged" if self.converged else "stopped, not converged,"
            lines.append(f"search for bodies that can exist: {ended} after {self.steps} steps")
        if self.boundary:
            lines.append(f"on the boundary of physical consistency: {few(self.boundary)}")
        lines += [f"doubtful: {text}" for text in self.doubts]
        return "\n".join(lines)

    def __str__(self) -> str:
        """Every number with its standard error, below the summary."""
        rows = [
            [name, f"{x:.5g}", f"{e:.2g}" if np.isfinite(e) else "not identifiable"]
            for name, x, e in zip(self.names, self.values, self.standard_errors, strict=True)
        ]
        return f"{self!r}\n{aligned(['number', 'value', 'standard error'], rows)}"


def identify(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    bandwidth: float | None = None,
    validation: float = 0.0,
    bodies: Sequence[str] | None = None,
    rotor: bool = False,
    friction: bool = False,
    consistent: bool = True,
) -> Identification:
    """Identify the robot's inertial parameters from measured motions and torques.

    Numbers that the data do not determine stay the robot's own, and a warning names those that
    other motions would determine. Data that cannot be right are warned of: `Identification.doubts`.

    Args:
        robot: The robot with the values that are known; without closed loops.
        q: Positions (..., nq) in rad or m, one state per row.
        qd: Velocities (..., nv).
        qdd: Accelerations (..., nv).
        tau: Torques of the motors on the links (..., nv) in N m or N.
        t: Times (n,) in s, of a log ``q`` and ``tau`` (n, nv) without ``qd`` and ``qdd``: they are
            derivatives of filtered positions.
        bandwidth: Of the filter of a log, in Hz: amplitudes there are halved, without phase;
            torques and regressor are filtered alike.
        validation: Share of the states, the last ones, that are not fitted:
            `Identification.validation` is what is left of their torques.
        bodies: Names of the unknown bodies (`Robot.body_names`); all unless given.
        rotor: Whether to identify rotor inertias, too.
        friction: Whether to identify viscous and Coulomb friction, too.
        consistent: Whether the fit is the best of all physically consistent ones, whose
            pseudo-inertias are positive definite, rotors and friction not negative.

    Returns:
        Parameters, standard errors, what is left of the torques, and doubts.

    >>> import numpy as np, linkwise as lw
    >>> arm = lw.load("puma560")
    >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 200, 6))
    >>> tau = arm.with_payload("link6", 2.0, com=(0, 0, 0.1)).inverse_dynamics(q, qd, qdd)
    >>> found = lw.identify(arm, q, qd, qdd, tau, bodies=["link6"])
    >>> round(found.robot.mass - arm.mass, 6)
    2.0
    """
    for name, choice in (("rotor", rotor), ("friction", friction), ("consistent", consistent)):
        if not isinstance(choice, bool | np.bool_):
            raise TypeError(f"identify: {name} is {choice!r}; expected True or False")
    asked = Unknowns(robot, bodies, rotor, friction)
    data = _equations(asked, (q, qd, qdd, tau), t, bandwidth)
    data, later = _split(data, validation)
    A, b = data.A, data.b
    _refuse_nothing(A, asked)
    fit = fitted(A, b, asked.start)
    columns = asked.combinations()
    missed = _missed(A, columns, asked.names) if fit.rank < len(columns) else ()
    found = Found(fit.values, True, 0)
    if consistent:
        rows = Rows.of(A, b, fit.weights)
        found = best_bodies(rows, fit, asked.start, len(asked.bodies))
    _warn(fit, missed, len(columns), found)
    return _result(asked, data, later, fit, found, missed, len(columns))


class _Data(NamedTuple):
    """Equations ``A x = b`` of some states, and where they come from."""

    motion: Motion
    torque: Array  # (states, nv) measured
    A: Array  # (states, nv, k)
    b: Array  # (states, nv): torques of what is not known
    slope: Array | None = None  # (states, nv): of a log, filtered: time derivatives of torques
    step: float = 0.0  # s, between samples of a log


def _equations(
    asked: Unknowns, states: tuple[Any, ...], t: ArrayLike | None, bandwidth: float | None
) -> _Data:
    """Equations of states, or of a log, filtered."""
    q, qd, qdd, tau = states
    if t is None:
        if bandwidth is not None:
            raise TypeError("identify: bandwidth is that of a log's filter, and t is missing; "
                            "expected identify(robot, q, tau=tau, t=t, bandwidth=10)")  # fmt: skip
        motion, torque = measured(asked.robot, q, qd, qdd, tau)
        A = asked.matrix(motion)
        return _Data(motion, torque, A, torque - asked.known(motion, A))
    if qd is not None or qdd is not None:
        raise TypeError("identify: t is given, and qd or qdd; expected one of them: of a log, "
                        "velocities and accelerations come from the filter")  # fmt: skip
    motion, torque, lowpass = logged(asked.robot, t, q, tau, bandwidth)
    A = asked.matrix(motion)
    b = torque - asked.known(motion, A)
    kept = Motion(*(x[lowpass.kept] for x in motion))
    slope = lowpass(torque, 1)[lowpass.kept]
    torque, A, b = (lowpass.equations(x) for x in (torque, A, b))
    return _Data(kept, torque, A, b, slope, lowpass.step)


def _split(data: _Data, share: float) -> tuple[_Data, _Data]:
    """States to be fitted, and the last ones, for validation."""
    if isinstance(share, bool) or not isinstance(share, (int, float, np.number)):
        raise TypeError(f"identify: validation is {share!r}; expected a share of the states, as "
                        "validation=0.2")  # fmt: skip
    if not 0.0 <= share < 1.0:
        raise ValueError(f"identify: validation is {share}; expected a share of the states, from 0 "
                         "to less than 1")  # fmt: skip
    n = len(data.b) - int(share * len(data.b))

    def part(rows: slice) -> _Data:
        motion = Motion(*(x[rows] for x in data.motion))
        slope = None if data.slope is None else data.slope[rows]
        return _Data(motion, data.torque[rows], data.A[rows], data.b[rows], slope, data.step)

    return part(slice(n)), part(slice(n, None))


def _result(
    asked: Unknowns, data: _Data, later: _Data, fit: Fit, found: Found, missed: tuple[str, ...],
    most: int,
) -> Identification:  # fmt: skip
    own, x = asked.robot.inertial_parameters, found.values
    ten = asked.of_bodies(x, own)
    errors = asked.of_bodies(np.sqrt(np.diag(fit.covariance)), np.zeros_like(own))
    rotors, viscous, dry = (asked.of_joints(x, kind) for kind in range(3))
    left = residuals(data.A, data.b, x)
    nothing = np.full_like(left, np.nan)
    validation = residuals(later.A, later.b, x) if len(later.b) else nothing
    share = doubts.unexplained(data.torque, left)
    names = [asked.robot.body_names[i] for i in asked.bodies]
    boundary = doubts.boundary(x, asked.start, names) if found.steps else ()
    return Identification(
        parameters=ten,
        errors=errors,
        rotor=rotors,
        friction=np.stack([viscous, dry], axis=-1),
        residual=left,
        residuals=data.b - data.A @ x,
        unexplained=share,
        validation=validation,
        names=asked.names,
        values=x,
        covariance=fit.covariance,
        unidentifiable=missed,
        rank=fit.rank,
        combinations=most,
        condition=fit.condition,
        converged=found.converged,
        steps=found.steps,
        gap=found.gap,
        boundary=boundary,
        doubts=_doubts(asked, data, fit, found, share, boundary, left, validation),
        asked=asked,
    )


def _doubts(
    asked: Unknowns, data: _Data, fit: Fit, found: Found, share: Array, boundary: tuple[str, ...],
    left: Array, validation: Array,
) -> tuple[str, ...]:  # fmt: skip
    """Warn of all that is doubtful of the data."""
    joints, x = asked.columns_of_joints, found.values
    texts = doubts.of_accelerations(data.motion, joints) if data.slope is None else []
    fits = doubts.of_consistency(
        _squares(data, fit.values, fit), _squares(data, x, fit),
        float(np.sum((data.torque * fit.weights) ** 2)), boundary,
    )  # fmt: skip
    fits += doubts.of_residuals(joints, share, left, data.torque)

    def again(torque: Array) -> Array:  # residuals of consistent bodies for other torques
        b = data.b - data.torque + torque
        least = fitted(data.A, b, asked.start)
        rows = Rows.of(data.A, b, least.weights)
        return residuals(data.A, b, best_bodies(rows, least, asked.start, len(asked.bodies)).values)

    texts += doubts.of_signs(asked, data.motion, data.torque, again)
    texts += fits
    if data.slope is not None:
        texts += doubts.of_lag(data.A, data.b, data.motion, data.slope, fit.weights, data.step)
    log = data.slope is not None
    texts += doubts.of_errors(data.motion, data.b - data.A @ x, joints, share, boundary, log)
    texts += doubts.of_validation(left, validation)
    for text in texts:
        _say(text)
    return tuple(texts)


def _squares(data: _Data, x: Array, fit: Fit) -> float:
    """Weighted sum of squares of what is left."""
    return float(np.sum(((data.b - data.A @ x) * fit.weights) ** 2))


# -- what data do not tell -------------------------------------------------------------------------


def _refuse_nothing(A: Array, asked: Unknowns) -> None:
    if not A.any():
        raise ValueError(
            f"identify: in these {len(A)} states no torque depends on any of {few(asked.names)}; "
            "expected motions that excite them"
        )


def _missed(A: Array, columns: list[int], names: Sequence[str]) -> tuple[str, ...]:
    """Combinations that the data do not tell, by the numbers that stand for them."""
    base = A.reshape(-1, A.shape[-1])[:, columns]
    size = np.linalg.norm(base, axis=0)
    scale = np.where(size > RANK * size.max(), size, size.max())
    _, s, Vt = np.linalg.svd(base / scale)
    told = Vt[: len(s)][s > RANK * s.max()]
    hidden = 1.0 - np.sum(told**2, axis=0) > 1e-6
    return tuple(names[k] for k, lost in zip(columns, hidden, strict=True) if lost)


def _warn(fit: Fit, missed: tuple[str, ...], most: int, found: Found) -> None:
    """Say what the result is not, and what would help."""
    if missed:
        _say(
            f"the data determine {fit.rank} of the {most} combinations that torques depend on, and "
            f"nothing certain of {few(missed)}; these stay near the robot's own values. Motions "
            "with more variety would determine them (lw.excitation)"
        )
    elif fit.condition > POOR:
        _say(
            f"the data tell combinations apart only poorly (condition {fit.condition:.2g}); "
            "small errors of torques become large ones of parameters (lw.excitation)"
        )
    if not found.converged:
        _say(
            f"the search for bodies that can exist was stopped after {found.steps} steps; its last "
            "bodies can exist, and others may fit better"
        )


def _say(text: str) -> None:
    warn(IdentificationWarning, f"identify: {text}")


# -- the robot that was found ----------------------------------------------------------------------


def _changed(asked: Unknowns, ten: Array, rotors: Array, viscous: Array, dry: Array) -> Robot:
    """The robot with other bodies; each is its joint's child link, to which others are fixed."""
    made = asked.robot
    for i in asked.bodies:
        made = _with_body(made, asked.robot, i, ten[i])
    rotor, friction = 0 in asked.kinds, 1 in asked.kinds
    for name, k in zip(asked.joints, asked.dofs, strict=True):
        numbers = {"armature": float(rotors[k])} if rotor else {}
        if friction:
            numbers |= {"damping": float(viscous[k]), "friction": float(dry[k])}
        made = made.with_joint(name, **numbers) if numbers else made
    return made.with_friction() if friction else made


def _with_body(made: Robot, robot: Robot, i: int, ten: Array) -> Robot:
    """A robot whose i-th body has ten other numbers."""
    tree = robot.tree
    child, *fixed = members_of(made.description, tree.links[i].joint_name)
    links = [
        dataclasses.replace(x, inertia=None) if x in fixed else x for x in made.description.links
    ]
    made = made._edited(dataclasses.replace(made.description, links=tuple(links)))
    placed = place_of(tree.joint_frames[i]).body_back(body_of(ten.tolist()))
    m, *rest = numbers_of(in_frame(placed, tree.frames[child.name]))
    c = np.array(rest[:3]) / m
    inertia = np.zeros((3, 3))
    inertia[np.tril_indices(3)] = rest[3:]
    inertia = inertia + np.tril(inertia, -1).T - m * (c @ c * np.eye(3) - np.outer(c, c))
    return made.with_inertia(child.name, m, c, inertia)
