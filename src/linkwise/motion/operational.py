"""Laws of a frame's motion: operational-space control and Cartesian impedance.

    u = acceleration + kp e + kd (velocity - J v)                        operational space
    Γ = Jᵀ F + (1 - Jᵀ Λ J M⁻¹) τ,   F = Λ (u + J M⁻¹ b - J̇ v) + force

    F = Λ (acceleration + J M⁻¹ b - J̇ v) + K e + D (velocity - J v)      impedance

with e the turn and the way to the target (``algorithms/tracking.py``), Λ = (J M⁻¹ Jᵀ)⁻¹ and τ the
torques of another law, for the posture (``algorithms/task_torques.py`` derives it, with damping
near singular poses and for joints without motors). J has any rows of the frame's Jacobian.

A `Plan` says which of all this is compiled. Gains, targets and the other numbers are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from linkwise.algorithms import ldl
from linkwise.algorithms.closed_task import closed_task_torques
from linkwise.algorithms.dense import dot, mirrored, transpose
from linkwise.algorithms.response import Response
from linkwise.algorithms.softening import damped, plain
from linkwise.algorithms.task_torques import NOTHING, Beside, Rows, task_torques
from linkwise.algorithms.tracking import Tracked, pose_error, tracked
from linkwise.algorithms.yielding import diagonal
from linkwise.engine.equations import Equations, flags, straight_line
from linkwise.model.tree import Frame, Tree
from linkwise.motion.laws import Form, law_torques
from linkwise.robot import Robot
from linkwise.spatial import Mat3, Matrix, Scalar, Vec3, Vector, total
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import CONFIGURATION, VELOCITY, Port, Slot
from linkwise.trace.status import UNIT_TOLERANCE, status_of

TITLE = {False: "OperationalSpace", True: "impedance"}  # by whether it is an impedance
ASKED = (("target", 16), ("target_velocity", 6), ("target_acceleration", 6))  # by every call
WRITTEN_OUT = "crba"  # code link by link, with sparse factors of M
REPORT = (Slot("damping"), Slot("error", (6,)), Slot("wrench", (6,)))


class Report(NamedTuple):
    """What a law of a frame's motion did besides its torques.

    ``damping`` (...): the part of the damping that was in use, from 0 (none: the frame accelerates
    as wanted) to 1 (all of it: the pose is singular). ``error`` (..., 6): the turn (rotation
    vector) and the way to the target. ``wrench`` (..., 6): moment and force F at the frame that the
    torques stand for. Both in base axes.
    """

    damping: Any
    error: Any
    wrench: Any


@dataclass(frozen=True)
class Plan:
    """What the code of a law of a frame's motion depends on, besides the robot."""

    frame: Frame
    axes: str  # of rows and gains
    rows: tuple[tuple[float, ...], ...]  # of the motion, then those of the force
    duals: tuple[tuple[float, ...], ...]  # (K Kᵀ)⁻¹ K of the rows of each of the two
    motion: int  # how many rows are of the motion
    impedance: bool
    inertia: bool  # whether a wanted inertia is given
    force: bool  # whether each call is given a wrench
    damped: bool
    posture: tuple[Form, ...]
    passive: tuple[int, ...]  # degrees of freedom without a motor
    method: str = WRITTEN_OUT  # another: made of kernels for robots of any size (`by_response`)
    external: tuple[Frame, ...] = ()  # where known wrenches act

    @property
    def title(self) -> str:
        """What messages call it."""
        return TITLE[self.impedance]

    @property
    def turns(self) -> bool:
        """Whether the frame's axes are to follow the target's."""
        return any(x for row in self.rows[: self.motion] for x in row[:3])

    @property
    def asked(self) -> tuple[tuple[str, int], ...]:
        """What each call is given besides the state."""
        wrenches = ((f"f_ext[{k}]", 6) for k in range(len(self.external)))
        return (*ASKED, *((("force", 6),) if self.force else ()), *wrenches)

    @property
    def gains(self) -> list[tuple[str, int]]:
        """What is given once, of the frame's motion."""
        own = [("kp", 6), ("kd", 6)]
        own += [("mobility", 36)] if self.inertia else []
        return own + ([("damping", len(self.rows))] if self.damped else [])

    def settled(self, tree: Tree) -> list[tuple[str, int]]:
        """All that is given once: gains, and the numbers of the posture."""
        forms = enumerate(self.posture)
        return self.gains + [
            (f"posture[{k}].{name}", n) for k, form in forms for name, n in form.sizes(tree)
        ]

    def form(self, tree: Tree) -> Form:
        """The kind of term that this is in a law."""
        name = "impedance" if self.impedance else "operational space"
        keys = tuple(form.key for form in self.posture)
        content = (self.frame, self.axes, self.rows, self.motion, self.inertia, self.force,
                   self.damped, keys, self.passive, self.method, self.external)  # fmt: skip
        inputs = (*self.asked, *self.settled(tree))
        return Form(name, inputs, partial(_torques, self), content=content)


class Followed(NamedTuple):
    """The torques of a law of a frame's motion, and what `Report` has."""

    torques: list[Scalar]
    damping: Scalar
    error: list[Scalar]
    wrench: list[Scalar]


def follow(plan: Plan, tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> Followed:
    """The law, on scalars of any kind; numbers as ``plan.form`` names them."""
    given = _given(plan, numbers)
    at = tracked(tree, q, v, plan.frame, plan.axes)
    error, u, w = _aimed(plan, at, given)
    columns = {j: picked(plan.rows, column) for j, column in at.columns.items()}
    rows = Rows(columns, picked(plan.rows, at.drift))
    beside = _beside(plan, tree, given.posture, q, v)
    wrenches = tuple(zip(plan.external, given.external, strict=True))
    law = closed_task_torques if tree.is_closed else task_torques
    found = law(tree, q, v, rows, u, w, beside, given.damping, plan.passive, wrenches)
    wrench = picked(list(zip(*plan.rows, strict=True)), found.force)
    return Followed(found.torques, found.damping, error, at.in_base(wrench))


def _torques(
    plan: Plan, tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector
) -> Sequence[Scalar]:
    return follow(plan, tree, numbers, q, v).torques


class Answered(NamedTuple):
    """The wrench F at a frame in its own axes, and what `Report` has."""

    wrench: list[Scalar]
    damping: Scalar
    error: list[Scalar]
    in_base: list[Scalar]


def answer(plan: Plan, response: Vector, numbers: Sequence[Vector]) -> Answered:
    """The wrench F of the law, from how the frame responds (``algorithms/frame_response.py``):

    ``Γ = τ + Jᵀ F,  F = Λ (u - a) + w``, with a the frame's acceleration under τ alone.
    """
    own, given = Response.of(response), _given(plan, numbers)
    turn = Mat3.identity() if plan.axes == "base" else own.pose.R.T
    at = Tracked(own.pose, turn, {}, [], [])
    at = at._replace(velocity=at.seen(own.velocity), drift=at.seen(own.acceleration))
    error, u, w = _aimed(plan, at, given)
    columns = [at.seen(row) for row in own.mobility]  # Λ⁻¹ is symmetric
    turned = [at.seen(row) for row in transpose(columns)]
    inverse = mirrored(
        [picked(plan.rows, row) for row in transpose([picked(plan.rows, row) for row in turned])]
    )
    wanted = [x - y for x, y in zip(u, picked(plan.rows, at.drift), strict=True)]
    if plan.damped:
        factors, part = damped(inverse, given.damping)
    else:
        factors, part = plain(inverse, _sizes(plan, own.mobility))
    force = [x + y for x, y in zip(ldl.solve(factors, wanted), w, strict=True)]
    in_base = at.in_base(picked(list(zip(*plan.rows, strict=True)), force))
    body = at._replace(turn=own.pose.R.T)
    return Answered(body.seen(in_base), part, error, in_base)


def _sizes(plan: Plan, mobility: Matrix) -> list[Scalar]:
    """Beside which the pivots of the rows' mobility are compared with rounding: Λ⁻¹ is found in
    other axes, so that rounding of its largest angular and linear parts is in all of them.
    """
    own = diagonal(mobility)
    turning, moving = own[0] + own[1] + own[2], own[3] + own[4] + own[5]
    squares = [[x * x for x in row] for row in plan.rows]
    return [total(x[:3]) * turning + total(x[3:]) * moving for x in squares]


class _Given(NamedTuple):
    """The numbers of a law by their names."""

    target: Vector
    velocity: Vector
    acceleration: Vector
    force: Vector
    external: Sequence[Vector]
    kp: Vector
    kd: Vector
    mobility: Vector
    damping: Vector
    posture: Sequence[Vector]


def _given(plan: Plan, numbers: Sequence[Vector]) -> _Given:
    target, velocity, acceleration, *rest = map(list, numbers)
    force = rest.pop(0) if plan.force else [0.0] * 6
    external = [rest.pop(0) for _ in plan.external]
    kp, kd = rest.pop(0), rest.pop(0)
    mobility = rest.pop(0) if plan.inertia else []
    damping = rest.pop(0) if plan.damped else []
    return _Given(target, velocity, acceleration, force, external, kp, kd, mobility, damping, rest)


def _aimed(
    plan: Plan, at: Tracked, given: _Given
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """The error in base axes, and accelerations u and forces w of the rows."""
    error = pose_error(at.pose, given.target)
    lag = [a - b for a, b in zip(at.seen(given.velocity), at.velocity, strict=True)]
    springs = [k * e for k, e in zip(given.kp, at.seen(error), strict=True)]
    pull = [s + k * x for s, k, x in zip(springs, given.kd, lag, strict=True)]
    wanted, pushed = at.seen(given.acceleration), at.seen(given.force)
    if plan.impedance:
        return error, *_impedance(plan, wanted, pull, given.mobility, pushed)
    return error, *_motion(plan, wanted, pull, given.kd, at, pushed)


def picked(rows: Sequence[Vector], x: Vector) -> list[Scalar]:
    """``rows x``."""
    return [dot(row, x) for row in rows]


def _motion(
    plan: Plan, wanted: Vector, pull: Vector, kd: Vector, at: Tracked, force: Vector
) -> tuple[list[Scalar], list[Scalar]]:
    """Accelerations and forces of the rows: of the motion it follows the target, of the force it
    is damped, and the force acts.
    """
    track = [a + b for a, b in zip(wanted, pull, strict=True)]
    brake = [-(k * x) for k, x in zip(kd, at.velocity, strict=True)]
    moving, pressing = plan.rows[: plan.motion], plan.rows[plan.motion :]
    u = picked(moving, track) + picked(pressing, brake)
    return u, [0.0] * plan.motion + picked(plan.duals[plan.motion :], force)


def _impedance(
    plan: Plan, wanted: Vector, pull: Vector, mobility: Vector, force: Vector
) -> tuple[list[Scalar], list[Scalar]]:
    """Accelerations and forces of the rows: springs and dampers pull at the inertia that the arm
    has, or at the wanted one, on which the measured wrench then acts alike.
    """
    if not plan.inertia:
        return picked(plan.rows, wanted), picked(plan.duals, pull)
    both = [a + b for a, b in zip(pull, force, strict=True)]
    yields = [dot(mobility[6 * k : 6 * k + 6], both) for k in range(6)]
    track = [a + b for a, b in zip(wanted, yields, strict=True)]
    return picked(plan.rows, track), picked(plan.duals, [-x for x in force])


def _beside(plan: Plan, tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> Beside:
    """What the posture asks for: accelerations where its law is made of them."""
    if not plan.posture:
        return NOTHING
    alone = plan.posture[0] if len(plan.posture) == 1 and not plan.passive else None
    if alone is not None and alone.accelerations is not None:
        return Beside(accelerations=alone.accelerations(tree, numbers, q, v))
    return Beside(torques=law_torques(plan.posture, tree, numbers, q, v))


def follow_equations(robot: Robot, plan: Plan, report: bool, status: bool) -> Equations:
    """A law of a frame's motion as a function of states, targets, and all its other numbers."""
    tree, settled = robot.tree, plan.settled(robot.tree)
    ports = (
        Port("q", tree.nq, kind=CONFIGURATION),
        Port("qd", tree.nv, kind=VELOCITY),
        *(Port(name, size) for name, size in plan.asked),
        Port("numbers", sum(size for _, size in settled)),
    )

    def trace(_graph: Graph, inputs: list[list[Expr]]) -> list[Scalar]:
        q, v, *asked, packed = inputs
        rest = iter(packed)
        own = [[next(rest) for _ in range(size)] for _, size in settled]
        found = follow(plan, tree, [*asked, *own], q, v)
        more = [found.damping, *found.error, *found.wrench] if report else []
        return [*found.torques, *more]

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        given = [not_a_turn(graph, inputs[2])] if plan.turns else []
        return status_of(graph, tree, ports, inputs, results, given)

    more = REPORT if report else ()
    outputs = (Slot("result", (tree.nv,)), *more, *flags(status))
    key = (*plan.form(tree).key, report, status)
    return straight_line(plan.title, key, ports, outputs, trace, bits if status else None)


def not_a_turn(graph: Graph, target: Sequence[Expr]) -> Expr:
    """1 where the axes of a pose are not of unit length and perpendicular, else 0."""
    axes = [Vec3(*target[4 * k : 4 * k + 3]) for k in range(3)]
    pairs = [(a, b) for a in range(3) for b in range(a + 1)]
    off = [axes[a].dot(axes[b]) - float(a == b) for a, b in pairs]
    square: Scalar = 0.0
    for x in off:
        square = square + x * x
    return graph.node("flag", square - (2.0 * UNIT_TOLERANCE) ** 2)
