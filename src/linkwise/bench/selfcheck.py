"""Every public function against an independent evaluation of the same thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.bench.states import States, exists, random_states, tip
from linkwise.engine.calls import Array
from linkwise.model import configuration
from linkwise.robot import Robot
from linkwise.text import aligned

STATES = 5
LIMIT = 1e-11  # relative; what is left of 16 digits after a hard problem
ITERATED = 1e-6  # two iterations that stop at the same tolerance
STEP = 1e-30  # of a derivative along the imaginary axis, which has no rounding to balance
FLOAT32_LIMIT = 1e-4


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


def check_table(checks: list[Check]) -> str:
    """Checks as a table."""
    rows = [
        (c.function, c.against, f"{c.error:.1e}", f"{c.limit:.0e}", "ok" if c.ok else "FAILED")
        for c in checks
    ]
    return aligned(("function", "against", "error", "limit", "<result"), rows, 2)


def self_check(robot: Robot) -> list[Check]:
    """All checks, on random states."""
    checker = _Checker(robot)
    groups = (checker.uncompiled, checker.dynamics, checker.kinematics, checker.batches)
    return [check for group in groups for check in group()]


class _Checker:
    """A robot and the states it is checked on."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.frame = robot, tip(robot)
        self.states: States = random_states(robot, STATES, seed=2)
        self.M = robot.mass_matrix(self.states.q)
        # errors of whatever solves with M grow with its condition
        self.solving = max(LIMIT, 1e-13 * float(np.linalg.cond(self.M).max()))

    def uncompiled(self) -> Iterator[Check]:
        """The compiled function against its equations run on Python floats."""
        for function, methods in FUNCTIONS.items():
            if not exists(self.robot, function, self.frame):
                continue
            for method, algorithm in methods.items():
                if not algorithm.exists_for(self.robot.tree):
                    continue
                error = max(self._uncompiled(algorithm, k) for k in range(STATES))
                limit = LIMIT if function != "operational_inertia" else self._operational_limit()
                limit = max(limit, ITERATED if algorithm.iterates else 0.0)
                yield Check(function, f"{method}, uncompiled", error, max(limit, self.solving))

    def _uncompiled(self, algorithm: Algorithm, k: int) -> float:
        values = self._values(algorithm, k)
        frame = self.frame if algorithm.takes_frame else None
        plain = [[float(x) for x in value] for value in values]
        expected = self.robot.evaluate(
            algorithm.function, *plain, method=algorithm.method, frame=frame
        )
        found = self._call(algorithm, *values)
        if algorithm.iterates:
            expected = expected[: self.robot.nv]
        return relative(found, np.array(expected, dtype=float))

    def _call(self, algorithm: Algorithm, *values: Array) -> Array:
        options: dict[str, Any] = {"frame": self.frame} if algorithm.takes_frame else {}
        if len(FUNCTIONS[algorithm.function]) > 1:
            options["method"] = algorithm.method
        if algorithm.iterates:  # its last argument is where it starts, at rest by itself
            values = values[:-1]
        call = getattr(self.robot, algorithm.function, None)
        if call is None or "dt" in dict(algorithm.inputs):  # a method's dt has no axis of its own
            call = partial(self.robot.compute, algorithm.function)
        result: Array = call(*values, **options)
        return result

    def _values(self, algorithm: Algorithm, k: int | slice) -> list[Array]:
        s = self.states
        arrays = {
            "q": s.q, "qd": s.qd, "tau": s.tau, "qdd": s.tau, "rhs": s.tau, "x": s.tau,
            "qdd0": np.zeros_like(s.tau), "v": s.qd, "q0": s.q, "q1": s.q[::-1],
            "dt": np.full((STATES, 1), 0.1),
        }  # fmt: skip
        return [arrays[name][k] for name, _ in algorithm.inputs]

    def dynamics(self) -> Iterator[Check]:
        """Identities between functions of joint space."""
        robot, M, (q, qd, tau) = (
            self.robot,
            self.M,
            (self.states.q, self.states.qd, self.states.tau),
        )
        bias, g = robot.bias(q, qd), robot.gravity_torque(q)
        qdd = robot.forward_dynamics(q, qd, tau)
        again, torques = robot.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, tau)
        product = M @ robot.mass_matrix_inverse(q)
        kinetic = np.einsum("si,sij,sj->s", qd, M, qd) / 2
        still = robot.inverse_dynamics(q, qd, 0 * qd)
        unit = np.eye(robot.nv)
        columns, solving = self._columns(q, g), self.solving
        yield Check("forward_dynamics", "inverse_dynamics undoes it", relative(again, tau), solving)
        yield Check("inverse_dynamics", "M qdd + bias", relative(torques, _times(M, tau) + bias))
        yield Check("mass_matrix", "columns from inverse_dynamics", relative(M, columns))
        yield Check("mass_matrix", "its transpose", relative(M, M.swapaxes(-1, -2)))
        yield Check("mass_matrix", "positive definite", 0.0 if _positive(M) else np.inf)
        yield Check("mass_matrix_inverse", "M M⁻¹ = 1", relative(product, unit), solving)
        yield Check("bias", "inverse_dynamics at qdd = 0", relative(bias, still))
        yield Check("gravity_torque", "slope of potential_energy", relative(g, self._slope()))
        yield Check("kinetic_energy", "½ qdᵀ M qd", relative(robot.kinetic_energy(q, qd), kinetic))

    def _columns(self, q: Array, g: Array) -> Array:
        """``M e = ID(q, 0, e) - g`` for every unit vector e."""
        units = np.eye(self.robot.nv)
        still = np.zeros((len(q), 1, self.robot.nv))
        tau = self.robot.inverse_dynamics(q[:, None, :], still, units)
        return np.asarray((tau - g[:, None, :]).swapaxes(-1, -2))

    def _slope(self) -> Array:
        slopes = [
            [self._derivative("potential_energy", q, unit) for unit in np.eye(self.robot.nv)]
            for q in self.states.q
        ]
        return np.array(slopes)

    def _derivative(self, function: str, q: Array, direction: Array, *rest: Array) -> Array:
        """Derivative at joint rates ``direction``, from a step along the imaginary axis."""
        step = 1j * STEP * configuration.rate(self.robot.tree, q, direction)
        values = [[np.complex128(x) for x in v] for v in (q + step, *rest)]
        takes_frame = next(iter(FUNCTIONS[function].values())).takes_frame
        frame = self.frame if takes_frame else None
        result = self.robot.evaluate(function, *values, frame=frame)
        return np.array(result, dtype=complex).imag / STEP

    def kinematics(self) -> Iterator[Check]:
        """Identities between functions of the tip."""
        robot, frame, q, qd = self.robot, self.frame, self.states.q, self.states.qd
        pose, J = robot.forward_kinematics(q, frame), robot.jacobian(q, frame)
        R = pose[:, :3, :3]
        yield Check("forward_kinematics", "R Rᵀ = 1", relative(R @ R.swapaxes(-1, -2), np.eye(3)))
        yield Check("jacobian", "derivative of forward_kinematics",
                    relative(J, self._jacobian(q, R)))  # fmt: skip
        rates = [
            self._derivative("jacobian", *state) @ state[1] for state in zip(q, qd, strict=True)
        ]
        yield Check("jacobian_dot_qd", "derivative of jacobian",
                    relative(robot.jacobian_dot_qd(q, qd, frame), np.array(rates)))  # fmt: skip
        if exists(robot, "operational_inertia", frame):
            mobility = J @ np.linalg.inv(self.M) @ J.swapaxes(-1, -2)
            product = robot.operational_inertia(q, frame) @ mobility
            yield Check("operational_inertia", "Λ J M⁻¹ Jᵀ = 1", relative(product, np.eye(6)),
                        self._operational_limit())  # fmt: skip

    def _operational_limit(self) -> float:
        J = self.robot.jacobian(self.states.q, self.frame)
        mobility = J @ np.linalg.inv(self.M) @ J.swapaxes(-1, -2)
        return max(self.solving, 1e-13 * float(np.linalg.cond(mobility).max()))

    def _jacobian(self, q: Array, R: Array) -> Array:
        """Columns (angular, linear), from how the pose changes with each joint."""
        columns = np.empty((len(q), 6, self.robot.nv))
        for s in range(len(q)):
            for i, unit in enumerate(np.eye(self.robot.nv)):
                rate = self._derivative("forward_kinematics", q[s], unit)
                spin = rate[:3, :3] @ R[s].T  # skew matrix of the angular velocity
                columns[s, :, i] = spin[2, 1], spin[0, 2], spin[1, 0], *rate[:3, 3]
        return columns

    def batches(self) -> Iterator[Check]:
        """Many states at once against one at a time, and float32 against float64."""
        algorithm = FUNCTIONS["inverse_dynamics"]["rnea"]
        values = self._values(algorithm, slice(None))
        many = self.robot.inverse_dynamics(*values)
        single = [self.robot.inverse_dynamics(*self._values(algorithm, k)) for k in range(STATES)]
        yield Check("inverse_dynamics", "one state at a time", relative(many, np.array(single)))
        short = self.robot.inverse_dynamics(*(v.astype(np.float32) for v in values))
        yield Check("inverse_dynamics", "in float32", relative(short, many), FLOAT32_LIMIT)


def relative(result: Any, expected: Any) -> float:
    """Largest difference, relative to the largest number expected."""
    result, expected = np.asarray(result), np.asarray(expected)
    size = float(np.abs(expected).max(initial=0.0))
    error = float(np.abs(result - expected).max(initial=0.0))
    return error / size if size else error


def _times(matrices: Array, vectors: Array) -> Array:
    product: Array = (matrices @ vectors[..., None])[..., 0]
    return product


def _positive(matrices: Array) -> bool:
    return bool(np.all(np.linalg.eigvalsh(matrices) > 0))
