"""Every public function against an independent evaluation of the same thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.bench.contest import Report, unheard
from linkwise.bench.magnitude import Magnitude, size_of
from linkwise.bench.states import algorithms_of, any_method, exists, frame_for, random_states, tip
from linkwise.engine.calls import Array
from linkwise.model import configuration
from linkwise.robot import Robot
from linkwise.text import aligned
from linkwise.trace.tracer import flatten

STATES = 5
LIMIT = 1e-11  # relative; what is left of 16 digits after a hard problem
ITERATED = 1e-6  # two iterations that stop at the same tolerance
STEP = 1e-30  # of a derivative along the imaginary axis, which has no rounding to balance
FLOAT32_LIMIT = 1e-4
# of the size of its terms: a result that is smaller is compared with this, so that an error may be
# some tens of roundings of the terms (LIMIT × NOTHING = 45 of 2⁻⁵²)
NOTHING = 1e-3


@dataclass(frozen=True)
class Check:
    """A function, what it was held against, and how far off it was."""

    function: str
    against: str
    error: float
    limit: float = LIMIT

    @property
    def ok(self) -> bool:
        """Whether the error is within its limit; a NaN is not."""
        return self.error <= self.limit

    @property
    def cells(self) -> tuple[str, ...]:
        """The check as a row of a table."""
        verdict = "ok" if self.ok else "FAILED"
        return self.function, self.against, f"{self.error:.1e}", f"{self.limit:.0e}", verdict


def check_table(checks: list[Check]) -> str:
    """Checks as a table."""
    rows = [check.cells for check in checks]
    return aligned(("function", "against", "error", "limit", "<result"), rows, 2)


def self_check(robot: Robot, report: Report = unheard) -> list[Check]:
    """All checks, on random states; identities are those of the robot with its loops open."""
    checker = _Checker(robot.open)
    groups = (checker.dynamics, checker.kinematics, checker.batches)
    checks = [check for group in groups for check in group()]
    return [*_Checker(robot).uncompiled(report), *checks]


class _Checker:
    """A robot, the states it is checked on, and how well conditioned its equations are there."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.frame = robot, tip(robot)
        self.states = random_states(robot, STATES, seed=2)
        self.M = robot.mass_matrix(self.states.q)
        self.J = robot.jacobian(self.states.q, self.frame)
        # errors of whatever solves with a matrix grow with its condition
        self.solving = max(LIMIT, 1e-13 * float(np.linalg.cond(self.M).max()))

    @cached_property
    def mobility(self) -> Array:
        """``J M⁻¹ Jᵀ``, whose inverse is the operational inertia."""
        return np.asarray(self.J @ np.linalg.inv(self.M) @ _transposed(self.J))

    @cached_property
    def operational(self) -> float:
        """The limit on errors of functions that solve with ``J M⁻¹ Jᵀ`` too."""
        return max(self.solving, 1e-13 * float(np.linalg.cond(self.mobility).max()))

    @property
    def dexterity(self) -> float:
        """The limit on errors of functions that solve with ``J Jᵀ``."""
        return max(self.solving, 1e-13 * float(np.linalg.cond(self.J @ _transposed(self.J)).max()))

    def uncompiled(self, report: Report) -> Iterator[Check]:
        """The compiled function against its equations run on Python floats."""
        # of project, a random state may be far from any in which the loops are closed
        several = [x for x in algorithms_of(self.robot) if x.function != "project"]
        for k, algorithm in enumerate(several):
            report(f"checking {algorithm.function} ({algorithm.method})", k, len(several))
            error = max(self._uncompiled(algorithm, k) for k in range(STATES))
            limit = max(self.solving, ITERATED if algorithm.iterates else 0.0)
            if algorithm.function == "operational_inertia":
                limit = self.operational
            if algorithm.function == "manipulability_gradient":
                limit = self.dexterity
            yield Check(algorithm.function, f"{algorithm.method}, uncompiled", error, limit)

    def _uncompiled(self, algorithm: Algorithm, k: int) -> float:
        function, method = algorithm.function, algorithm.method
        frame = frame_for(self.robot, algorithm)
        values = [x[k] for x in self.states.given(algorithm)]
        plain = [[float(x) for x in value] for value in values]
        expected = self.robot.evaluate(function, *plain, method=method, frame=frame)
        options: dict[str, Any] = {"frame": frame} if frame else {}
        if algorithm.closed or len(FUNCTIONS[function]) > 1:
            options["method"] = method
        if algorithm.iterates:  # the last argument is where it starts, by itself at rest
            values, expected = values[:-1], expected[: self.robot.nv]
        call = getattr(self.robot, function, None)
        # a method's dt has no axis of its own, and some methods return their result in parts
        in_parts = algorithm.closed or function.endswith("_derivatives")
        if call is None or in_parts or "dt" in dict(algorithm.inputs):
            call = partial(self.robot.compute, function)
        # no answer in this state, as of a frame that cannot move in some direction: both say so
        result, expected = np.asarray(call(*values, **options)), np.array(expected, dtype=float)
        if np.isnan(expected).all() and np.isnan(result).all():
            return 0.0
        error = relative(result, expected)
        if error <= LIMIT:
            return error
        least = self.least(function, *plain, method=method, frame=frame)
        if function == "manipulability_gradient":  # of a floating base it is zero to rounding
            least = max(least, float(self.robot.manipulability(*values, **options)))
        return relative(result, expected, least)

    def least(self, function: str, *values: Any, **options: Any) -> float:
        """The size below which a result of this function is rounding of its terms."""
        numbers = [[Magnitude(x) for x in value] for value in values]
        result = self.robot.evaluate(function, *numbers, **options)
        sizes = [size_of(cast(float, x)) for x in flatten(result)]
        return NOTHING * max((x for x in sizes if np.isfinite(x)), default=0.0)

    def dynamics(self) -> Iterator[Check]:
        """Identities between functions of joint space."""
        robot, M, (q, qd, tau) = self.robot, self.M, self.states.arrays
        bias, g = robot.bias(q, qd), robot.gravity_torque(q)
        force = max(self.least("bias", *state) for state in zip(q, qd, strict=True))
        qdd = robot.forward_dynamics(q, qd, tau)
        again, torques = robot.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, tau)
        product = M @ robot.mass_matrix_inverse(q)
        kinetic = np.einsum("si,sij,sj->s", qd, M, qd) / 2
        still = robot.inverse_dynamics(q, qd, 0 * qd)
        units, sum_of_both = np.eye(robot.nv), np.einsum("sij,sj->si", M, tau) + bias
        # M e = ID(q, 0, e) - g for every unit vector e
        rows = robot.inverse_dynamics(q[:, None], 0 * qd[:, None], units) - g[:, None]
        definite = 0.0 if np.all(np.linalg.eigvalsh(M) > 0) else np.inf
        slopes = [[self._derivative("potential_energy", x, unit) for unit in units] for x in q]
        solving = self.solving
        yield Check("forward_dynamics", "inverse_dynamics undoes it", relative(again, tau), solving)
        yield Check("inverse_dynamics", "M qdd + bias", relative(torques, sum_of_both, force))
        yield Check("mass_matrix", "columns from inverse_dynamics", relative(_transposed(M), rows))
        yield Check("mass_matrix", "its transpose", relative(M, _transposed(M)))
        yield Check("mass_matrix", "positive definite", definite)
        yield Check("mass_matrix_inverse", "M M⁻¹ = 1", relative(product, units), solving)
        yield Check("bias", "inverse_dynamics at qdd = 0", relative(bias, still, force))
        error = relative(g, np.array(slopes), force)
        yield Check("gravity_torque", "slope of potential_energy", error)
        yield Check("kinetic_energy", "½ qdᵀ M qd", relative(robot.kinetic_energy(q, qd), kinetic))

    def kinematics(self) -> Iterator[Check]:
        """Identities between functions of the tip."""
        robot, frame, (q, qd, _) = self.robot, self.frame, self.states.arrays
        R = robot.forward_kinematics(q, frame)[:, :3, :3]
        bent = robot.jacobian_dot_qd(q, qd, frame)
        rates = [self._derivative("jacobian", x, v) @ v for x, v in zip(q, qd, strict=True)]
        drift = max(
            self.least("jacobian_dot_qd", *state, frame=frame) for state in zip(q, qd, strict=True)
        )
        against = "derivative of forward_kinematics"
        yield Check("forward_kinematics", "R Rᵀ = 1", relative(R @ _transposed(R), np.eye(3)))
        yield Check("jacobian", against, relative(self.J, self._jacobian(q, R)))
        error = relative(bent, np.array(rates), drift)
        yield Check("jacobian_dot_qd", "derivative of jacobian", error)
        if exists(robot, "operational_inertia", frame):
            error = relative(robot.operational_inertia(q, frame) @ self.mobility, np.eye(6))
            yield Check("operational_inertia", "Λ J M⁻¹ Jᵀ = 1", error, self.operational)

    def _jacobian(self, q: Array, R: Array) -> Array:
        """Columns (angular, linear), from how the pose changes with each joint."""
        columns = np.empty((len(q), 6, self.robot.nv))
        for s in range(len(q)):
            for i, unit in enumerate(np.eye(self.robot.nv)):
                rate = self._derivative("forward_kinematics", q[s], unit)
                spin = rate[:3, :3] @ R[s].T  # skew matrix of the angular velocity
                columns[s, :, i] = spin[2, 1], spin[0, 2], spin[1, 0], *rate[:3, 3]
        return columns

    def _derivative(self, function: str, q: Array, direction: Array) -> Array:
        """Derivative at joint rates ``direction``, from a step along the imaginary axis."""
        step = 1j * STEP * configuration.rate(self.robot.tree, q, direction)
        frame = frame_for(self.robot, any_method(function))
        result = self.robot.evaluate(function, [np.complex128(x) for x in q + step], frame=frame)
        return np.array(result, dtype=complex).imag / STEP

    def batches(self) -> Iterator[Check]:
        """Many states at once against one at a time, and float32 against float64."""
        call, states = self.robot.inverse_dynamics, self.states.arrays
        many = call(*states)
        single = [call(*state) for state in zip(*states, strict=True)]
        short = call(*(x.astype(np.float32) for x in states))
        yield Check("inverse_dynamics", "one state at a time", relative(many, np.array(single)))
        yield Check("inverse_dynamics", "in float32", relative(short, many), FLOAT32_LIMIT)


def relative(result: Any, expected: Any, least: float = 0.0) -> float:
    """Largest difference, relative to the largest number expected, or to more than that."""
    result, expected = np.asarray(result), np.asarray(expected)
    size = float(np.abs(expected).max(initial=least))
    error = float(np.abs(result - expected).max(initial=0.0))
    return error / size if size else error


def _transposed(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)
