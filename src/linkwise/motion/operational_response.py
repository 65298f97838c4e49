"""Laws of a frame's motion for robots of any size, put together of three kernels.

    q, qd, τ  ->  how the frame responds: pose, velocity, acceleration under τ, and Λ⁻¹
    that      ->  the wrench F that makes it move as wanted (``operational.answer``)
    q, F      ->  Jᵀ F, which is added to τ

The first and the last are loops over the links or scans, whose code does not grow with the robot
(``algorithms/frame_response.py``); nothing of the size of J is formed. τ, of the posture, is found
by the robot's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import DIVIDES, Algorithm, frame_response, scan_response
from linkwise.algorithms.mobility import why_not as cannot_invert_inertias
from linkwise.algorithms.orders import no_chain
from linkwise.algorithms.reaches import branches, hollow
from linkwise.algorithms.response import SIZE
from linkwise.algorithms.tied import why_not as has_followers
from linkwise.algorithms.wrench_torques import by_scan, wrench_torques
from linkwise.backends.base import BATCH, ONE, Backend, Kernel
from linkwise.engine import arrays
from linkwise.engine.auto import MOST_PIECES, in_loops
from linkwise.engine.compiled import AnyBatch, CompiledFunction
from linkwise.engine.devices import DeviceBatch
from linkwise.engine.equations import Equations, flags, straight_line
from linkwise.errors import NoProgram
from linkwise.model.tree import Tree
from linkwise.motion.laws import COMPUTED, Form, computed_called, torques_by_calls
from linkwise.motion.operational import REPORT, WRITTEN_OUT, Plan, answer, not_a_turn
from linkwise.robot import Robot
from linkwise.spatial import Scalar
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import (
    CONFIGURATION,
    FLAGS_DTYPE,
    NUMBER,
    VELOCITY,
    Port,
    Program,
    Slot,
)
from linkwise.trace.status import status_of
from linkwise.trace.tracer import Task

Array = NDArray[Any]
STATE = (("q", "nq"), ("qd", "nv"), ("tau", "nv"))


def _response(method: str, driver: Callable[..., Any], **own: Any) -> Algorithm:
    return Algorithm("OperationalSpace", method, driver, STATE, (SIZE,),
                     takes_frame=True, takes_external=True, **own)  # fmt: skip


def _pull(method: str, driver: Callable[..., Any], **own: Any) -> Algorithm:
    inputs = (("q", "nq"), ("wrench", 6))
    return Algorithm("torques of a wrench", method, driver, inputs, ("nv",),
                     takes_frame=True, needs=(), **own)  # fmt: skip


def _always(_tree: Tree) -> str:
    return ""


_of_chains: dict[str, Any] = {"needs": (*DIVIDES, has_followers, cannot_invert_inertias),
                              "rolls": no_chain}  # fmt: skip
_scans: dict[str, Any] = {"scans": True, "rolls": _always, "tip_only": True}
RESPONSES = {
    x.method: x
    for x in (
        _response(
            "recursive", frame_response.recursive, needs=(*DIVIDES, has_followers), rolls=_always
        ),
        _response("schur", frame_response.schur, **_of_chains),
        _response("schur-bcr", frame_response.schur_bcr, **_of_chains),
        _response("scan", scan_response.response, needs=(*DIVIDES, branches, hollow), **_scans),
    )
}
PULLS = {
    "scan": _pull("scan", by_scan, **_scans),
    "recursive": _pull("recursive", wrench_torques, rolls=_always),
}


def composed_equations(robot: Robot, plan: Plan, report: bool, status: bool) -> Equations:
    """A controller of a frame's motion of a large robot: three kernels, one after another."""
    tree, settled = robot.tree, plan.settled(robot.tree)
    ports = (
        Port("q", tree.nq, kind=CONFIGURATION),
        Port("qd", tree.nv, kind=VELOCITY),
        *(Port(name, size) for name, size in plan.asked),
        Port("numbers", sum(size for _, size in settled)),
    )
    outputs = (Slot("result", (tree.nv,)), *(REPORT if report else ()), *flags(status))
    key = ("composed", plan.method, *plan.form(tree).key, report, status)

    def trace(_effort: Any) -> Program:
        raise NoProgram(
            f"{plan.title}: method {plan.method!r} is put together of several kernels; expected "
            "method='crba'"
        )

    run = _Composed(robot, plan, report, status).run
    return Equations(plan.title, key, ports, outputs, trace, run=run)


class _Composed:
    """The kernels of a controller of a frame's motion, and what happens between them."""

    def __init__(self, robot: Robot, plan: Plan, report: bool, status: bool) -> None:
        self.robot, self.plan = robot, plan
        self.status = status
        self._answer = robot._calls.compiled(_answer(robot, plan, report, status))

    def run(
        self,
        _function: CompiledFunction,
        batch: AnyBatch,
        backend: Backend,
        out: Any,
        threads: int | None,
    ) -> list[Any]:
        """All outputs of a batch: the torques, then those of the wrench's equations."""
        plan, robot = self.plan, self.robot
        if isinstance(batch, DeviceBatch):
            raise ValueError(
                f"{plan.title}: method {plan.method!r} is put together of several kernels of "
                "the processor; expected arrays of NumPy"
            )
        q, qd, *asked, numbers = batch.rows
        first, wrenches = _parted(asked, len(asked) - len(plan.external))
        gains, posture = np.split(numbers, [sum(size for _, size in plan.gains)], axis=1)
        tau = self._posture(q, qd, posture, self._named(wrenches), threads)
        made = arrays.target(out, (*batch.shape, robot.nv), batch)
        form = BATCH if batch.shape or batch.dtype != "float64" else ONE

        def filled(kernel: Kernel, inputs: Sequence[Array]) -> list[Array]:
            slots = kernel.signature.outputs
            kinds = [batch.dtype if x.kind == NUMBER else FLAGS_DTYPE for x in slots]
            pairs = zip(slots, kinds, strict=True)
            results = [np.empty((batch.states, x.size), kind) for x, kind in pairs]
            if batch.states:
                kernel(inputs, results, threads)
            return results

        own = robot._calls.kernels
        response, pull = (
            own.kernel(own.equations(task), batch.dtype, form, backend) for task in self._tasks()
        )
        moved, *wrong = filled(response, [q, qd, tau, *wrenches])
        kernel = self._answer.kernel(batch.dtype, form, backend)
        wrench, *rest = filled(kernel, [moved, *first, gains])
        (pulled,) = filled(pull, [q, wrench])
        np.add(tau, pulled, out=made.reshape(batch.states, robot.nv))
        if wrong:  # of the state, and of the target
            rest[-1] = np.where(wrong[0] > 0, wrong[0], rest[-1])
        shapes = [x.shape for x in self._answer.outputs[1:]]
        more = [x.reshape((*batch.shape, *s)) for x, s in zip(rest, shapes, strict=True)]
        return [arrays.deliver(out, made), *(arrays.deliver(None, x) for x in more)]

    def _tasks(self) -> tuple[Task, Task]:
        """How the frame responds, and the torques of a wrench."""
        plan, tree = self.plan, self.robot.tree
        found, pull = RESPONSES[plan.method], PULLS.get(plan.method, PULLS["recursive"])
        return (
            Task(found, plan.frame, external=plan.external, status=self.status,
                 rolled=_rolled(tree, found)),
            Task(pull, plan.frame, rolled=_rolled(tree, pull)),
        )  # fmt: skip

    def _named(self, wrenches: Sequence[Array]) -> dict[str, Array]:
        """Known wrenches by a name of their frame; one frame may have several names."""
        names = {frame: name for name, frame in self.robot.tree.frames.items()}
        found: dict[str, Array] = {}
        for frame, wrench in zip(self.plan.external, wrenches, strict=True):
            found[names[frame]] = found.get(names[frame], np.zeros_like(wrench)) + wrench
        return found

    def _posture(
        self, q: Array, qd: Array, numbers: Array, known: dict[str, Array], threads: int | None
    ) -> Array:
        """The torques of the posture, (states, nv); computed ones make up for known wrenches."""
        forms = self.plan.posture
        sizes = [size for form in forms for _, size in form.sizes(self.robot.tree)]
        own = np.split(numbers, np.cumsum(sizes)[:-1], axis=1) if sizes else []
        if known and forms == (COMPUTED,):
            return computed_called(self.robot, own, q, qd, threads, known)
        return torques_by_calls(self.robot, forms, own, q, qd, threads)


def _parted(items: list[Array], at: int) -> tuple[list[Array], list[Array]]:
    return items[:at], items[at:]


def _rolled(tree: Tree, algorithm: Algorithm) -> bool:
    """Whether code is loops over the links, or pieces of a chain."""
    if algorithm.scans and tree.loops is None:
        return tree.n_links > MOST_PIECES
    return in_loops("forward_dynamics", tree) and algorithm.can_roll(tree)


def _answer(robot: Robot, plan: Plan, report: bool, status: bool) -> Equations:
    """The wrench F from how the frame responds, as a function of its own."""
    tree, without = robot.tree, plan.asked[: len(plan.asked) - len(plan.external)]
    ports = (
        Port("response", SIZE),
        *(Port(name, size) for name, size in without),
        Port("numbers", sum(size for _, size in plan.gains)),
    )

    def trace(_graph: Graph, inputs: list[list[Expr]]) -> list[Scalar]:
        moved, *asked, packed = inputs
        rest = iter(packed)
        own = [[next(rest) for _ in range(size)] for _, size in plan.gains]
        none: list[list[Scalar]] = [[0.0] * 6 for _ in plan.external]
        found = answer(plan, moved, [*asked, *none, *own])
        more = [found.damping, *found.error, *found.in_base] if report else []
        return [*found.wrench, *more]

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        given = [not_a_turn(graph, inputs[1])] if plan.turns else []
        return status_of(graph, tree, ports, inputs, results, given)

    key = ("wrench of a frame", *plan.form(tree).key, report, status)
    outputs = (Slot("result", (6,)), *(REPORT if report else ()), *flags(status))
    return straight_line(plan.title, key, ports, outputs, trace, bits if status else None)


def law_form(robot: Robot, plan: Plan) -> Form:
    """The kind of term that a law is, which robots of many links compute by calls."""
    if plan.method == WRITTEN_OUT:
        return plan.form(robot.tree)

    def called(
        robot: Robot, numbers: Sequence[Array], q: Array, v: Array, threads: int | None
    ) -> Array:
        asked, settled = _parted(list(numbers), len(plan.asked))
        wide = np.broadcast_shapes(*(x.shape[:-1] for x in settled))
        packed = np.concatenate([np.broadcast_to(x, (*wide, x.shape[-1])) for x in settled], -1)
        function = robot._calls.compiled(composed_equations(robot, plan, False, False))
        found: Array = function([q, v, *asked, packed], threads=threads)
        return found

    return replace(plan.form(robot.tree), called=called)
