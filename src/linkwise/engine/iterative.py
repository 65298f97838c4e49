"""Forward dynamics by iteration: one program that iterates, looks at the residual, and solves
states that did not converge by articulated bodies.

    inputs    q, qd, tau, the start qdd0, wrenches, parameters, tolerance, the most iterations
    outputs   qdd; with a status also flags, iterations and the residual

The second solver is the body of a loop that a state enters at most once, and only if it failed.
Iterations of large robots run on arrays instead, and their products with M are kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import FUNCTIONS, first_method
from linkwise.algorithms.conjugate_gradient import iterate
from linkwise.backends.base import BATCH, Backend, Effort, Kernel
from linkwise.engine import arrays, devices
from linkwise.engine.arrays import Batch, check_count
from linkwise.engine.compiled import AnyBatch, CompiledFunction
from linkwise.engine.equations import Equations, Values, straight_line
from linkwise.engine.libraries import library_of
from linkwise.engine.tasks import Key
from linkwise.model.tree import Tree
from linkwise.spatial import repeat, select
from linkwise.trace.expr import Expr, Graph, summed
from linkwise.trace.program import FLAGS, Program, Slot
from linkwise.trace.status import Status, not_finite
from linkwise.trace.tracer import Task, evaluate, flatten

if TYPE_CHECKING:
    from linkwise.engine.calls import Calls

Array = NDArray[Any]
USUAL = 0.0  # in place of a tolerance: that of the dtype
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
SMALLEST = float(np.finfo(np.float32).tiny)  # tolerance
STALLED = 10.0  # times the tolerance: a true residual above it was not converged
DIRECT = FUNCTIONS["forward_dynamics"]["aba"]
START = 3  # the input with the start of an iteration


class Iterations(NamedTuple):
    """How an iteration went, per state."""

    status: Array  # flags of `Status`
    iterations: Array
    residual: Array  # true residual over the right-hand side, before any other method was taken


class Stop(NamedTuple):
    """When an iteration shall stop, as the user said it; None: by the dtype and the robot."""

    tol: float | None
    max_iterations: int | None

    def arrays(self, values: Sequence[Any], nv: int) -> tuple[Any, Any]:
        """The tolerance and the most steps, as inputs no wider than the others.

        Raises ValueError for numbers that no iteration can use.
        """
        tol, most = self
        if tol is not None and not (isinstance(tol, float | np.floating) and 0.0 < tol < 1.0):
            raise ValueError(f"tol is {tol!r}; expected a number between 0 and 1")
        check_count("max_iterations", most)
        # too small a number for float32 would be zero there, and mean the usual one
        least = USUAL if tol is None else max(float(tol), SMALLEST)
        stop = least, float(most or 4 * nv + 20)
        if devices.elsewhere(values):
            return [stop[0]], [stop[1]]
        narrow = all(getattr(x, "dtype", None) == np.float32 for x in values)
        dtype = np.float32 if narrow else np.float64
        return np.array(stop[:1], dtype), np.array(stop[1:], dtype)


ANY = Stop(None, None)


def function(calls: Calls, key: Key, status: bool) -> CompiledFunction:
    """The iteration of a robot as a compiled function."""
    tasks, tree = calls.tasks, calls.tasks.tree
    usual = tasks.task(key)

    def equations(dtype: str, kind: str) -> Equations:
        task = replace(tasks.task(key, dtype, kind), status=False)
        if task.rolled:
            run = partial(_by_products, task, status)
            return replace(_equations(task, tree, status, dtype), run=run)
        return _equations(task, tree, status, dtype)

    inputs = [(port.name, port) for port in usual.ports(tree)]
    for k, name in enumerate(key.external, START + 1):
        inputs[k] = (f"f_ext[{name!r}]", inputs[k][1])
    outputs = _outputs(tree, status)
    none = None if tree.nv else lambda: [np.zeros(slot.shape) for slot in outputs]
    return CompiledFunction(
        calls.runtime,
        "forward_dynamics",
        equations,
        inputs,
        outputs,
        constant=none,
        remake=calls.remade_by(function, key, status),
    )


def split(results: tuple[Any, ...]) -> tuple[Any, Iterations]:
    """The result and how its iterations went, from the outputs of `function`."""
    qdd, steps, residual, bits = results
    library = library_of(steps)
    whole: Any = steps.astype(np.int64) if library is None else library.typed(steps, "int64")
    return qdd, Iterations(bits, whole, residual)


def _outputs(tree: Tree, status: bool) -> tuple[Slot, ...]:
    counts = (Slot("iterations"), Slot("residual"), Slot("status", (), FLAGS))
    return (Slot("result", (tree.nv,)), *(counts if status else ()))


def _equations(task: Task, tree: Tree, status: bool, dtype: str) -> Equations:
    inputs, outputs = task.ports(tree), _outputs(tree, status)
    content = (task.external, task.parameters, status, dtype)

    def trace(graph: Graph, values: Values) -> list[Expr]:
        (tol,), usual = values[-2], graph.const(TOLERANCE[dtype])
        values = [*values[:-2], [graph.node("select", tol, tol, usual)], values[-1]]
        iterated = [graph.lift(x) for x in flatten(evaluate(task, tree, *values))]
        *x, steps, square = iterated
        scalars = [number for value in values for number in value]
        broken = graph.node("flag", summed(graph, (not_finite(graph, v) for v in scalars)))
        residual, tolerance = graph.node("sqrt", square), values[-2][0]
        large = graph.node("flag", residual - STALLED * tolerance)
        sound = (1.0 - large) * graph.node("finite", residual)
        failed = (1.0 - broken) * (1.0 - sound)
        qdd = _again(graph, task, tree, values, x, failed)
        nan = graph.const(float("nan"))
        qdd = [graph.lift(select(broken, nan, y)) for y in qdd]
        if not status:
            return qdd
        bits = float(Status.NOT_CONVERGED) * failed + float(Status.NOT_FINITE) * broken
        none = graph.lift(select(broken, 0.0, steps)), graph.lift(select(broken, nan, residual))
        return [*qdd, *none, bits]

    made = straight_line(f"{task.name}, iterated", content, inputs, outputs, trace)

    def unwatched(effort: Effort) -> Program:
        # a pivot that is not positive leaves no small residual: the second solver judges the state
        return replace(made.trace(effort), pivots=())

    return replace(made, trace=unwatched, guarded=False)


def _again(
    graph: Graph, task: Task, tree: Tree, values: Values, x: list[Expr], failed: Expr
) -> list[Expr]:
    """Accelerations by articulated bodies where an iteration failed, else those that it found.

    What a step of a loop computes from the values that it carries is computed in the loop, and not
    by states that never enter it: so the arguments are carried, though they never change.
    """
    direct = replace(task, algorithm=DIRECT)
    inputs = [k for k in range(len(values) - 2) if k != START]
    sizes = [len(values[k]) for k in inputs]

    def step(state: list[Any]) -> tuple[list[Any], Any]:
        carried = iter(state[len(x) :])
        own = [[next(carried) for _ in range(size)] for size in sizes]
        before, graph.pivots = graph.pivots, []
        found = list(flatten(evaluate(direct, tree, *own)))
        pivots, graph.pivots = [pivot for pivot, _ in graph.pivots], before
        positive: Any = graph.one
        for pivot in dict.fromkeys(pivots):
            positive = select(pivot, positive, graph.const(-1.0))
        nan = graph.const(float("nan"))
        return [*(select(positive, y, nan) for y in found), *state[len(x) :]], graph.one

    arguments = [number for k in inputs for number in values[k]]
    return [graph.lift(y) for y in repeat(step, [*x, *arguments], failed)[: len(x)]]


# -- large robots ----------------------------------------------------------------------------------


def _by_products(
    task: Task,
    status: bool,
    function: CompiledFunction,
    batch: AnyBatch,
    backend: Backend,
    out: Any,
    threads: int | None,
) -> list[Any]:
    """The iteration of a large robot on arrays (states, joints); products are rolled kernels."""
    assert isinstance(batch, Batch)  # a GPU has no such tasks
    kernels, nv = function.runtime.kernels, function.outputs[0].size
    *rows, tolerances, limits = batch.rows
    dtype = batch.dtype
    result = arrays.target(out, (*batch.shape, nv), batch)
    if not batch.states:
        counts = [np.empty(batch.shape, x) for x in (dtype, dtype, np.uint16)]
        return [arrays.deliver(out, result), *(counts if status else ())]
    tolerance, limit = float(tolerances[0, 0]) or TOLERANCE[dtype], int(limits[0, 0])

    def kernel(own: Task) -> Kernel:
        rolled = own.rolled and own.algorithm.can_roll(function.runtime.tree)
        return kernels.kernel(kernels.equations(replace(own, rolled=rolled)), dtype, BATCH, backend)

    broken = ~np.all([np.isfinite(a).all(axis=-1) for a in rows], axis=0)
    x, steps, square = _iterated(kernel, task, rows, tolerance, limit, threads)
    flat = result.reshape(batch.states, nv)
    flat[...] = np.where(broken[:, None], np.nan, x)
    with np.errstate(invalid="ignore"):
        residual = np.sqrt(square.reshape(-1))
        failed = ~(residual <= STALLED * np.dtype(dtype).type(tolerance)) & ~broken
    again = np.flatnonzero(failed)
    if again.size:
        few = tuple(a[again] for k, a in enumerate(rows) if k != START)
        direct = kernel(replace(task, algorithm=DIRECT))
        outputs = [((nv,), dtype)]
        (flat[again],) = Batch(few, again.shape, dtype).run(direct, outputs, None, threads)
    made = [arrays.deliver(out, result)]
    if status:
        bits = np.where(
            broken, Status.NOT_FINITE, np.where(failed, Status.NOT_CONVERGED, Status.OK)
        )
        count = np.where(broken, 0, steps.reshape(-1)).astype(dtype)
        residual[broken] = np.nan
        more = (count, residual, bits.astype(np.uint16))
        made += [arrays.deliver(None, y.reshape(batch.shape)) for y in more]
    return made


def _iterated(
    kernel: Callable[[Task], Kernel],
    task: Task,
    rows: Sequence[Array],
    tolerance: float,
    limit: int,
    threads: int | None,
) -> list[Array]:
    """x, iterations and squared residuals, as a kernel of the whole iteration computes them."""
    (q, qd, tau, start), wrenches = rows[:4], rows[4:]
    states, dtype = q.shape[0], start.dtype.name
    if not states:
        return [np.zeros_like(start), np.zeros((0, 1), dtype), np.zeros((0, 1), dtype)]

    def run(function: str, *given: Array, external: bool = False) -> Array:
        own = replace(task, algorithm=first_method(function), status=False)
        own = own if external else replace(own, external=())
        outputs = [((tau.shape[1],), dtype)]
        return Batch(given, (states,), dtype).run(kernel(own), outputs, None, threads)[0]  # type: ignore[no-any-return]

    def dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
        return np.sum(a[0] * b[0], axis=-1, keepdims=True)  # type: ignore[no-any-return]

    times, *scale = (partial(_of_one, run, name, q) for name in task.algorithm.products)
    with np.errstate(all="ignore"):  # states without an answer become NaN
        b = [tau - run("bias", q, qd, *wrenches, external=True)]
        square = np.dtype(dtype).type(tolerance)
        return iterate(times, scale[0] if scale else None, b, [start.copy()], square, limit, dot)


def _of_one(run: Callable[..., Array], function: str, q: Array, x: Sequence[Array]) -> list[Array]:
    """A function of (q, x) of vectors that are one array each."""
    return [run(function, q, x[0])]
