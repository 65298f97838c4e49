"""``lw.control.OperationalSpace`` and ``lw.control.impedance``: control of a frame's motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.engine import arrays, devices
from linkwise.engine.arrays import read
from linkwise.engine.compiled import CompiledFunction
from linkwise.motion.laws import Law, Numbered, PerStep, Term
from linkwise.motion.operational import REPORT, WRITTEN_OUT, Plan, Report, follow_equations
from linkwise.motion.operational_arguments import (
    as_poses,
    asked_numbers,
    force_of,
    gain_pair,
    planned,
    refuse_force,
)
from linkwise.motion.operational_response import composed_equations, law_form
from linkwise.robot import Robot

Array = NDArray[Any]
GAINS = (100.0, 20.0)  # critically damped, ten radians per second


@final
class OperationalSpace:
    """Torques with which a frame follows a target: Khatib's operational-space control.

    >>> import numpy as np
    >>> import linkwise as lw
    >>> robot = lw.load("iiwa14")
    >>> q, qd = 0.3 + robot.neutral(), np.zeros(7)
    >>> osc = lw.control.OperationalSpace(robot, "link7", posture=robot.neutral())
    >>> target = robot.forward_kinematics(q, "link7")
    >>> target[2, 3] += 0.1
    >>> tau = osc(q, qd, target)
    >>> acceleration = robot.tip_acceleration(q, qd, tau, "link7")
    >>> np.round(acceleration, 6) + 0.0  # kp times 0.1 m
    array([ 0.,  0.,  0.,  0.,  0., 10.])

    The frame accelerates by ``u = target_acceleration + kp e + kd (target_velocity - J qd)``, e
    being the turn (a rotation vector) and the way to the target: ``Γ = Jᵀ Λ (u + J M⁻¹ (C + g) -
    J̇ qd)`` with ``Λ = (J M⁻¹ Jᵀ)⁻¹``. Friction and rotors of the robot are compensated too.
    ``osc(q, qd, target, ...)`` computes the torques; ``osc.law(target, ...)`` is a `Law` that
    `simulate` compiles, and that can be added to others.

    - ``rows``: which directions follow: "pose", "position", "orientation", six booleans or zeros
      and ones (turning about x, y, z, moving along x, y, z), or any independent rows (k, 6).
    - ``gains``: ``(kp, kd)`` in 1/s² and 1/s, numbers or six each (angular, linear); for
      simulations also ``PerStep`` of them.
    - ``posture``: what the joints do besides, where it does not move the frame: a law τ of
      `linkwise.control`, which acts as ``(1 - Jᵀ Λ J M⁻¹) τ``; or a configuration (nq) that the
      joints are drawn to (`computed_torque` with gains 25 and 10). None: nothing acts there, so
      that such motions of a redundant arm are neither damped nor held against gravity.
    - ``damping``: for poses at which the rows depend on each other: with d, ``Λ = (J M⁻¹ Jᵀ + α
      d)⁻¹``, where α is 0, and nothing changes, as long as every pivot of J M⁻¹ Jᵀ exceeds d, and
      grows to 1 where one vanishes; ``report=True`` tells α. In rad/s² per N m and m/s² per N: no
      force much larger than u/d is asked for. None: the torques of a singular pose are NaN.
    - ``force_rows``: directions in which the frame is not to move but to press, as ``rows``; each
      call is then given ``force``, the wrench that the frame puts on what it touches. In them it
      is braked by kd. Rows of motion must be others: give ``rows`` too.
    - ``axes``: "base", or "body" for rows and gains along the frame's own axes. Targets are always
      in base axes.
    - ``passive``: names of joints without a motor, which get no torque. Flying bases have none in
      any case: the frame is moved against the base's reaction (`Robot.generalized_jacobian`).
    - ``method``: "crba", code written out link by link; or, for robots of any number of links,
      "recursive", of chains also "schur" and "schur-bcr", and "scan" for a frame at the tip of one
      chain. "auto": "crba" up to some forty links, and "recursive" beyond.
    """

    robot: Robot
    frame: str
    plan: Plan

    def __init__(
        self,
        robot: Robot,
        frame: str,
        *,
        rows: ArrayLike | str | None = None,
        gains: tuple[ArrayLike, ArrayLike] = GAINS,
        posture: Law | ArrayLike | None = None,
        damping: ArrayLike | None = None,
        force_rows: ArrayLike | str | None = None,
        axes: str = "base",
        passive: Sequence[str] = (),
        method: str = "auto",
    ) -> None:
        pair, soft = gain_pair("OperationalSpace", gains), ("damping", damping)
        made = planned(robot, frame, rows, force_rows, pair, posture, soft, axes, passive, method)
        self._set(robot, frame, *made)

    def _set(self, robot: Robot, frame: str, plan: Plan, settled: Sequence[Numbered]) -> None:
        self.robot, self.frame, self.plan = robot, frame, plan
        self._settled = tuple(settled)
        self._functions: dict[tuple[Any, ...], CompiledFunction] = {}
        self._usual, self._watched = (
            self._function(plan, (), False, status) for status in (False, True)
        )
        types = map(np.dtype, ("float64", "float32"))
        self._packed = {dtype: packed(self._settled, dtype) for dtype in types}

    @classmethod
    def _made(cls, robot: Robot, frame: str, plan: Plan, settled: Sequence[Numbered]) -> Any:
        law = cls.__new__(cls)
        law._set(robot, frame, plan, settled)
        return law

    def _function(
        self, plan: Plan, wrenches: tuple[str, ...], report: bool, status: bool
    ) -> CompiledFunction:
        """The controller with known wrenches at some frames, compiled when it is first called."""
        key = (wrenches, report, status)
        if key not in self._functions:
            unrolled = plan.method == WRITTEN_OUT
            new = follow_equations if unrolled else composed_equations
            equations = new(self.robot, plan, report, status)
            self._functions[key] = self.robot._calls.compiled(equations)
        return self._functions[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return OperationalSpace._made, (self.robot, self.frame, self.plan, self._settled)

    def __repr__(self) -> str:
        rows = f"{len(self.plan.rows)} rows of {self.frame!r}"
        return f"<{self.plan.title} for {self.robot.name!r}: {rows}>"

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        target: ArrayLike,
        target_velocity: ArrayLike | None = None,
        target_acceleration: ArrayLike | None = None,
        *,
        force: ArrayLike | None = None,
        f_ext: Mapping[str, ArrayLike] | None = None,
        report: bool = False,
        status: bool = False,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Any:
        """Torques (..., nv) in states that are to follow a target.

        ``q`` (..., nq), ``qd`` (..., nv), ``target`` (..., 4, 4) the pose that the frame should
        have, or (..., 3) its place where no row turns it; ``target_velocity`` and
        ``target_acceleration`` (..., 6) of that pose, (angular, linear) in base axes, zero unless
        given; ``force`` (..., 6), (moment, force) in base axes, where the law takes one. ``f_ext``
        are known wrenches on the robot by frame, as `forward_dynamics` takes them: the frame moves
        as wanted under them. Leading axes broadcast; ``out`` and ``threads`` as for all functions
        of a robot.

        With ``report=True`` the result is ``(torques, Report)``. With ``status=True`` its last part
        are bits of `Status`: SINGULAR where rows depend on each other and nothing is damped, and
        the torques are NaN; NOT_UNIT where the target's axes are not perpendicular unit vectors.
        """
        kind = self._packed.get(getattr(q, "dtype", None))  # type: ignore[arg-type]
        shape = target.shape if type(target) is np.ndarray else ()
        if kind is not None and shape[-2:] == (4, 4) and not report and f_ext is None:
            still, numbers = kind
            values: list[Any] = [
                q,
                qd,
                target.reshape(16 if len(shape) == 2 else (*shape[:-2], 16)),  # type: ignore[union-attr]
                still if target_velocity is None else target_velocity,
                still if target_acceleration is None else target_acceleration,
                numbers,
            ]
            if self.plan.force or force is not None:
                values.insert(5, force)
            fast = (self._watched if status else self._usual).fast
            if out is None and threads is None:
                found = fast(*values)
            else:
                found = fast(*values, out=out, threads=threads)
            if found is not NotImplemented:
                return found
        given = (q, qd, target, target_velocity, target_acceleration, force)
        return self._general(given, f_ext, bool(report), bool(status), out, threads)

    def law(
        self,
        target: ArrayLike | PerStep,
        target_velocity: ArrayLike | PerStep | None = None,
        target_acceleration: ArrayLike | PerStep | None = None,
        *,
        force: ArrayLike | PerStep | None = None,
        f_ext: Mapping[str, ArrayLike | PerStep] | None = None,
    ) -> Law:
        """The law with its targets: to be given to `simulate`, and to be added to other laws.

        Arguments as those of a call. ``PerStep`` of any of them has one for each step:
        ``osc.law(PerStep(poses))`` with poses (..., steps, 4, 4).
        """
        plan, _, wrenches = self._pushed(f_ext)
        given = (target, target_velocity, target_acceleration, force, wrenches)
        numbers = (*asked_numbers(plan, given), *self._settled)
        return Law(self.robot, (Term(law_form(self.robot, plan), numbers),))

    def _pushed(self, f_ext: Any) -> tuple[Plan, tuple[str, ...], tuple[Any, ...]]:
        """The plan with known wrenches at some frames, their names, and the wrenches."""
        names, wrenches = arrays.wrenches(f_ext)
        frames = tuple(self.robot._calls.tasks.frame(name) for name in names)
        return replace(self.plan, external=frames), names, wrenches

    def _general(
        self, given: tuple[Any, ...], f_ext: Any, report: bool, status: bool, out: Any, threads: Any
    ) -> Any:
        """Torques in states of any kind of array."""
        plan, names, wrenches = self._pushed(f_ext)
        there = devices.elsewhere((*given, *wrenches))
        values = self._foreign(given) if there else self._values(given)
        pushes = zip(names, wrenches, strict=True)
        values += [x if there else read(plan.title, f"f_ext[{n!r}]", 6, x) for n, x in pushes]
        known = [np.float64] if there else [x for x in values if x is not None]
        kind = self._packed[np.result_type(*known)]
        if kind is None:
            raise ValueError(
                f"{self.plan.title}: gains or posture have numbers for each step; expected a "
                "simulation with the controller .law(...), or the same numbers at all times"
            )
        still, numbers = (x.tolist() for x in kind) if there else kind
        if not there:
            self._refuse_axes(names, values, numbers)
        full = [*(still if x is None else x for x in values), numbers]
        found = self._function(plan, names, report, status)(full, out, threads)
        if not report:
            return found
        tau, *rest = found
        return (tau, Report(*rest[: len(REPORT)]), *rest[len(REPORT) :])

    def _refuse_axes(
        self, names: Sequence[str], values: Sequence[Array | None], numbers: Array
    ) -> None:
        """Raise where leading axes do not broadcast, in the words of a call."""
        called = [
            "q",
            "qd",
            *(name for name, _ in self.plan.asked),
            *map("f_ext[{!r}]".format, names),
        ]
        pairs = [*zip(called, values, strict=True), ("gains and posture", numbers)]
        shapes = [(name, x.shape[:-1]) for name, x in pairs if x is not None and x.ndim > 1]
        try:
            np.broadcast_shapes(*(shape for _, shape in shapes))
        except ValueError:
            given = ", ".join(f"{name} {shape}" for name, shape in shapes)
            raise ValueError(
                f"{self.plan.title}: leading axes do not broadcast: {given}; expected axes that "
                "NumPy could add, before those of one state"
            ) from None

    def _values(self, given: tuple[Any, ...]) -> list[Array | None]:
        """The arguments of a call as arrays; None for zeros."""
        q, qd, target, velocity, acceleration, force = given
        plan, robot = self.plan, self.robot
        if np.ndim(q) == 0:
            raise TypeError(
                f"{plan.title}: q is {q!r}; expected configurations (..., {robot.nq}), or, as a "
                "controller of simulate, the law with its target: .law(target)"
            )
        values: list[Array | None] = [
            read(plan.title, "q", robot.nq, q),
            read(plan.title, "qd", robot.nv, qd),
            as_poses(plan.title, target, plan.turns),
        ]
        asked = zip(plan.asked[1:3], (velocity, acceleration), strict=True)
        values += [None if x is None else read(plan.title, name, 6, x) for (name, _), x in asked]
        if plan.force:
            values.append(read(plan.title, "force", 6, force_of(plan, force)))
        elif force is not None:
            refuse_force(plan)
        return values

    def _foreign(self, given: tuple[Any, ...]) -> list[Any]:
        """The arguments of a call with arrays of another library; None for zeros."""
        q, qd, target, velocity, acceleration, force = given
        if tuple(target.shape[-2:]) != (4, 4):
            raise ValueError(
                f"{self.plan.title}: target has shape {tuple(target.shape)}; expected (..., 4, 4)"
            )
        flat = target.reshape((*target.shape[:-2], 16))
        values = [q, qd, flat, velocity, acceleration]
        if self.plan.force:
            values.append(force if force is not None else force_of(self.plan, None).tolist())
        elif force is not None:
            refuse_force(self.plan)
        return values


def packed(settled: Sequence[Numbered], dtype: np.dtype[Any]) -> tuple[Array, Array] | None:
    """A zero velocity, and all that is given once as one array; None for numbers per step."""
    if any(x.per_step for x in settled):
        return None
    leading = np.broadcast_shapes(*(x.leading for x in settled))
    wide = [np.broadcast_to(x.values, (*leading, x.values.shape[-1])) for x in settled]
    return np.zeros(6, dtype), np.concatenate(wide, axis=-1).astype(dtype)


def impedance(
    robot: Robot,
    frame: str,
    stiffness: ArrayLike,
    damping: ArrayLike,
    *,
    inertia: ArrayLike | None = None,
    rows: ArrayLike | str | None = None,
    posture: Law | ArrayLike | None = None,
    singular_damping: ArrayLike | None = None,
    axes: str = "base",
    passive: Sequence[str] = (),
    method: str = "auto",
) -> OperationalSpace:
    """Torques with which a frame yields like a mass on springs and dampers: Cartesian impedance.

    ``Λ (v̇ - target_acceleration) = K e + D (target_velocity - v) + f`` under a wrench f from
    outside, with the arm's own inertia Λ, which needs no force sensor. With ``inertia`` H, a
    number, six or a matrix (6, 6), that takes the place of Λ; f is then measured and given to each
    call as ``force``, the wrench (..., 6) on the frame in base axes (zero unless given).

    ``stiffness`` and ``damping`` are K and D, numbers or six each (angular in N m/rad and N m s,
    linear in N/m and N s/m); ``singular_damping`` is what `OperationalSpace` calls ``damping``.
    The result is called as an `OperationalSpace` is, and its other arguments are the same.
    """
    gains = [("stiffness", stiffness), ("damping", damping)]
    soft = ("singular_damping", singular_damping)
    made = planned(robot, frame, rows, None, gains, posture, soft, axes, passive, method,
                   impedance=True, inertia=inertia)  # fmt: skip
    law: OperationalSpace = OperationalSpace._made(robot, frame, *made)
    return law
