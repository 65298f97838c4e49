"""From a call to a kernel: names checked, arguments prepared, the right code run."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.llvm.run import BatchKernel
from linkwise.engine import arrays, iterative
from linkwise.engine.auto import choose_method
from linkwise.engine.kernels import Kernels
from linkwise.model.tree import Frame, Tree
from linkwise.trace.tracer import Task

Array = NDArray[Any]
Wrenches = Mapping[str, ArrayLike]
Result = Any  # an array; with ``status=True`` the pair (array, status bits)
# (function, task, frame, axes) -> compiled code for one plain state, or None
Single = Callable[[str, Task, str | None, str], Callable[..., Array] | None]


class Plan(NamedTuple):
    """What one kind of call needs, worked out when it is first made."""

    ports: list[tuple[str, int]]  # arguments and their lengths
    output: tuple[int, ...]
    tasks: dict[str, Task]  # by dtype, for which the best method may differ
    kernels: dict[str, BatchKernel]


class Calls:
    """All calls of one robot."""

    def __init__(self, tree: Tree, name: str, single: Single) -> None:
        self.tree, self.name = tree, name
        self.kernels = Kernels(tree)
        self._single = single
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def frame(self, name: str) -> Frame:
        """A frame by its name."""
        frame = self.tree.frames.get(name) if isinstance(name, str) else None
        if frame is None:
            near = difflib.get_close_matches(str(name), self.tree.frames, 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(
                f"frame {name!r}: robot {self.name!r} has no such frame{hint} "
                "(robot.frame_names lists them)"
            )
        return frame

    def algorithm(
        self, function: str, method: str, dtype: str = "float64", frame: Frame | None = None
    ) -> Algorithm:
        """A function's method; ``auto`` takes the fastest."""
        methods = FUNCTIONS.get(function)
        if methods is None:
            raise ValueError(f"function {function!r}: expected one of {', '.join(FUNCTIONS)}")
        if method == "auto":
            method = choose_method(function, self.tree, dtype, frame)
        if method not in methods:
            names = ", ".join(repr(m) for m in ("auto", *methods))
            raise ValueError(f"method {method!r}: {function} expects one of {names}")
        return methods[method]

    def _check_applies(self, algorithm: Algorithm, damped: bool) -> None:
        """Say why a method is not for this robot or call, and which methods are."""
        reason = ""
        if not algorithm.exists_for(self.tree):
            reason = algorithm.why_not(self.tree)
        elif damped and not algorithm.takes_damping:
            reason = "takes no damping, for it never forms the inverse that damping is added to"
        if reason:
            others = [x for x in FUNCTIONS[algorithm.function].values() if x.exists_for(self.tree)]
            able = [x.method for x in others if x.takes_damping or not damped]
            instead = f"expected one of {', '.join(map(repr, able))}" if able else "no method can"
            raise ValueError(
                f"{algorithm.function}, method {algorithm.method!r}: {reason}; {instead}"
            )

    def task(
        self,
        function: str,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        external: tuple[str, ...] = (),
        damped: bool = False,
        dtype: str = "float64",
    ) -> Task:
        """What to compute, every name checked."""
        at = self.frame(frame) if frame is not None else None
        algorithm = self.algorithm(function, method, dtype, at)
        known = algorithm.axes or ("base", "body")
        if axes not in known:
            raise ValueError(f"axes {axes!r}: expected {' or '.join(map(repr, known))}")
        if algorithm.takes_frame and at is None:
            raise ValueError(f"{function}: expected a frame (robot.frame_names lists them)")
        self._check_applies(algorithm, damped)
        wrenches = tuple(self.frame(name) for name in external)
        return Task(algorithm, at, axes, wrenches, damped=damped)

    def run(
        self,
        function: str,
        values: tuple[ArrayLike, ...],
        out: Array | None,
        threads: int | None,
        status: bool = False,
        method: str = "auto",
        *,
        frame: Any = None,
        axes: Any = "base",
        f_ext: Wrenches | None = None,
        damping: Array | None = None,
        name: str = "",
    ) -> Result:
        """The general path: any dtype, layout, batch and option; ``name`` is for messages."""
        wrenches = arrays.wrenches(f_ext)
        more = [*wrenches.values(), *([] if damping is None else [damping])]
        key = (function, method, frame, axes, tuple(wrenches), damping is not None)
        self._check_names(method, frame, axes)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(*key)
        batch = arrays.prepare(name or function, plan.ports, (*values, *more))
        shape = (*batch.shape, *plan.output)
        arrays.check_threads(threads)
        kernel = plan.kernels.get(batch.dtype)
        if kernel is not None and batch.shape and not status:
            return arrays.fill(out, shape, batch, kernel, threads)
        task = plan.tasks.get(batch.dtype)
        if task is None:
            task = plan.tasks[batch.dtype] = self.task(*key, dtype=batch.dtype)
        if task.algorithm.iterates:
            return self.iterate(values, out, threads, status, method, f_ext, None, None)
        if status:
            return self._run_with_status(task, batch, shape, out, threads)
        if method == "auto" and not more and not batch.shape and arrays.plain_state(values):
            fast = self._single(function, task, frame, axes)
            if fast is not None and out is None:
                return fast(*values)
        if kernel is None:
            kernel = plan.kernels[batch.dtype] = self.kernels.batch(task, batch.dtype)
        return arrays.fill(out, shape, batch, kernel, threads)

    def _check_names(self, method: Any, frame: Any, axes: Any) -> None:
        """Raise unless method and axes are text, and the frame too where there is one."""
        if not (isinstance(method, str) and isinstance(axes, str)):
            raise ValueError(f"method {method!r}, axes {axes!r}: expected two names")
        if not (frame is None or isinstance(frame, str)):
            self.frame(frame)  # raises: no such frame

    def _plan(
        self,
        function: str,
        method: str,
        frame: str | None,
        axes: str,
        external: tuple[str, ...],
        damped: bool = False,
    ) -> Plan:
        """What to compute for a call, and the names and sizes of its arguments."""
        task = self.task(function, method, frame, axes, external, damped)
        arguments = list(task.algorithm.input_sizes(self.tree))
        wrenches = [(f"f_ext[{name!r}]", 6) for name in external]
        extra = [("damping", 6)] if damped else []
        shape = task.algorithm.output_shape(self.tree)
        return Plan(arguments + wrenches + extra, shape, {"float64": task}, {})

    def iterate(
        self,
        values: tuple[ArrayLike, ...],
        out: Array | None,
        threads: int | None,
        status: bool,
        method: str,
        f_ext: Wrenches | None,
        tol: float | None,
        max_iterations: int | None,
    ) -> Result:
        """Forward dynamics by conjugate gradients."""
        iterative.check_options(tol, max_iterations)
        arrays.check_threads(threads)
        wrenches = arrays.wrenches(f_ext)
        plan = self._plan("forward_dynamics", method, None, "base", tuple(wrenches))
        given = (*values, *wrenches.values())
        batch = arrays.prepare("forward_dynamics", plan.ports, given)
        task = plan.tasks["float64"]  # no choice of method here
        rows, info = iterative.solve(self.kernels, task, batch, tol, max_iterations, threads)
        result = arrays.deliver(out, rows.reshape((*batch.shape, *plan.output)), batch.dtype)
        if not status:
            return result
        return result, iterative.Iterations(*(x.reshape(batch.shape) for x in info))

    def _run_with_status(
        self,
        task: Task,
        batch: arrays.Batch,
        shape: tuple[int, ...],
        out: Array | None,
        threads: int | None,
    ) -> tuple[Array, Array]:
        """The result, and one byte per state (see `Status`)."""
        watched = dataclasses.replace(task, status=True)
        rows, bits = np.empty(shape, batch.dtype), np.empty(batch.shape, np.uint8)
        if bits.size:
            kernel = self.kernels.batch(watched, batch.dtype)
            kernel(batch.rows, [rows.reshape(bits.size, -1), bits.reshape(-1)], threads)
        return arrays.deliver(out, rows, batch.dtype), bits
