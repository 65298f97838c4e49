"""Inertial parameters from measured motions: ``lw.identify``.

Least squares over all that is unknown (``unknowns.py``, ``fit.py``); where the data say nothing,
the robot's own values stay. Then, if asked, the best of the bodies that can exist (``bodies.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.errors import IdentificationWarning, warn
from linkwise.identification.base import RANK
from linkwise.identification.bodies import Found, best_bodies
from linkwise.identification.fit import Fit, fitted, residuals
from linkwise.identification.unknowns import Unknowns, measured
from linkwise.model.build import members_of
from linkwise.model.parameters import body_of, in_frame, numbers_of, place_of
from linkwise.robot import Robot
from linkwise.text import aligned

Array = NDArray[np.float64]
POOR = 1e4  # condition from which data tell combinations apart only poorly
NAMED = 6  # names in a message


@dataclass(frozen=True, repr=False, eq=False)
class Identification:
    """The result of `identify`: parameters, standard errors, and torques left unexplained."""

    parameters: Array  # (n, 10), as `Robot.inertial_parameters`
    errors: Array  # (n, 10) standard errors; infinite where the data do not tell, 0 where not asked
    rotor: Array  # (nv)
    friction: Array  # (nv, 2): viscous, Coulomb
    residual: Array  # (nv): root mean square of the torques that are left unexplained
    residuals: Array  # (states, nv): torques that are left unexplained
    names: tuple[str, ...]  # (k) of the unknown numbers: those of bodies, then of joints
    values: Array  # (k)
    covariance: Array  # (k, k) of least squares: infinite variance where the data do not tell
    missed: tuple[str, ...]  # combinations that torques depend on and these data do not tell
    rank: int  # combinations that the data tell
    combinations: int  # combinations that torques depend on
    condition: float  # of those that are told, columns scaled: the excitation; near 1 is good
    converged: bool  # whether the search for bodies that can exist came to an end
    steps: int  # of that search: 0 where least squares had found such bodies, or none were asked
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
    def told(self) -> NDArray[np.bool_]:
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
            f"combinations told, of {self.unknowns} numbers ({int(self.told.sum())} told by "
            f"themselves); condition {self.condition:.3g}"
        )
        lines = [found, "unexplained: " + ", ".join(f"{x:.3g}" for x in self.residual)]
        if self.missed:
            lines.append(f"not excited: {_few(self.missed)}")
        if self.steps:
            ended = "converged" if self.converged else "stopped, not converged,"
            lines.append(f"search for bodies that can exist: {ended} after {self.steps} steps")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Every number with its standard error, below the summary."""
        rows = [
            [name, f"{x:.5g}", f"{e:.2g}" if np.isfinite(e) else "not told"]
            for name, x, e in zip(self.names, self.values, self.standard_errors, strict=True)
        ]
        return f"{self!r}\n{aligned(['number', 'value', 'standard error'], rows)}"


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
    """Identify the robot's inertial parameters from measured motions and torques.

    ``q`` (..., nq) in rad or m, ``qd`` and ``qdd`` (..., nv), ``tau`` (..., nv) in N m or N: one
    state per row, in SI units. ``bodies`` names the unknown bodies (`Robot.body_names`), all unless
    given; ``rotor`` and ``friction`` ask for rotor inertias, and viscous and Coulomb friction, too.
    Numbers that the data do not determine stay the robot's own, and a warning names those that
    other motions would determine. With ``consistent`` the fit is the best of all physically
    consistent ones: pseudo-inertias are positive definite, rotors and friction are not negative.

    >>> import numpy as np, linkwise as lw
    >>> arm = lw.load("puma560")
    >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 200, 6))
    >>> tau = arm.with_payload("link6", 2.0, com=(0, 0, 0.1)).inverse_dynamics(q, qd, qdd)
    >>> found = lw.identify(arm, q, qd, qdd, tau, bodies=["link6"])
    >>> round(found.robot.mass - arm.mass, 6)
    2.0
    """
    asked = Unknowns(robot, bodies, rotor, friction)
    motion, torque = measured(robot, q, qd, qdd, tau)
    A = asked.matrix(motion)
    b = torque - asked.known(motion, A)
    _refuse_nothing(A, asked)
    fit = fitted(A, b, asked.start)
    columns = asked.combinations()
    missed = _missed(A, columns, asked.names) if fit.rank < len(columns) else ()
    found = Found(fit.values, True, 0)
    if consistent:
        found = best_bodies(A, b, fit, asked.start, len(asked.bodies))
    _warn(fit, missed, len(columns), found)
    return _result(asked, A, b, fit, found, missed, len(columns))


def _result(
    asked: Unknowns, A: Array, b: Array, fit: Fit, found: Found, missed: tuple[str, ...], most: int
) -> Identification:
    own, x = asked.robot.inertial_parameters, found.values
    ten = asked.of_bodies(x, own)
    errors = asked.of_bodies(np.sqrt(np.diag(fit.covariance)), np.zeros_like(own))
    rotors, viscous, dry = (asked.of_joints(x, kind) for kind in range(3))
    return Identification(
        parameters=ten,
        errors=errors,
        rotor=rotors,
        friction=np.stack([viscous, dry], axis=-1),
        residual=residuals(A, b, x),
        residuals=b - A @ x,
        names=asked.names,
        values=x,
        covariance=fit.covariance,
        missed=missed,
        rank=fit.rank,
        combinations=most,
        condition=fit.condition,
        converged=found.converged,
        steps=found.steps,
        asked=asked,
    )


# -- what data do not tell -------------------------------------------------------------------------


def _refuse_nothing(A: Array, asked: Unknowns) -> None:
    if not A.any():
        raise ValueError(
            f"identify: in these {len(A)} states no torque depends on any of {_few(asked.names)}; "
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
            f"the data tell {fit.rank} of the {most} combinations that torques depend on, and "
            f"nothing certain of {_few(missed)}; these stay near the robot's own values. Motions "
            "with more variety would tell them (lw.excitation)"
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


def _few(names: Sequence[str]) -> str:
    """The first of many names."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


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
