"""Inverse kinematics from a call to a kernel: arguments, checked, and results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.backends.base import BATCH, ONE, Backend
from linkwise.engine import arrays, devices, lazy, libraries
from linkwise.engine.calls import Calls
from linkwise.engine.compiled import AnyBatch, CompiledFunction
from linkwise.engine.reach_plan import NAME, RIGID, Plan
from linkwise.engine.tasks import Tasks
from linkwise.errors import ConvergenceWarning, LimitWarning, warn
from linkwise.model import configuration
from linkwise.model.tree import Tree
from linkwise.model.values import mask
from linkwise.trace.status import Status

DIRECTIONS = {
    "pose": (True,) * 6,
    "position": (False,) * 3 + (True,) * 3,
    "orientation": (True,) * 3 + (False,) * 3,
}
MOST_DOFS = 120  # that move a frame, beyond which a search is not compiled
MOST_RESTARTS = 10_000
LEAST_TOLERANCE = 1e-12
NOT_RIGID = int(Status.NOT_RIGID)
UNSOLVED = int(Status.NOT_FINITE | Status.NOT_CONVERGED | Status.OVERFLOW)
REASONS = {
    Status.NOT_FINITE: "the target or q0 is NaN or infinite",
    Status.OVERFLOW: "a quaternion of q0 cannot be normalized",
    Status.NOT_CONVERGED: "out of reach within the joint limits, or not found in all restarts "
    "(q0, restarts, tol, directions, limits=False)",
}


class Asked(NamedTuple):
    """What a search shall find and how long it may take, as the user said it."""

    directions: Any
    limits: Any
    restarts: Any
    tol: Any


class Reach(NamedTuple):
    """One kind of search of one robot."""

    plan: Plan
    function: CompiledFunction


def inverse_kinematics(
    calls: Calls,
    target: Any,
    frame: Any,
    q0: Any,
    asked: Asked,
    out: Any,
    threads: int | None,
    status: bool,
    device: str | None,
) -> Any:
    """Find configurations that bring frames to targets."""
    plan, function = _reach(calls, frame, asked, bool(status))
    tolerance, starts = _numbers(asked)
    rows = flat(target, None if isinstance(frame, str) else len(plan.frames), plan.turning)
    first = _first(plan, rows) if q0 is None else q0
    if devices.elsewhere((rows, first)):
        numbers: tuple[Any, Any] = tolerance.tolist(), starts.tolist()
    elif all(getattr(x, "dtype", None) == arrays.FLOATS[0] for x in (rows, first)):
        numbers = tolerance.astype(np.float32), starts.astype(np.float32)  # widen nothing
    else:
        numbers = tolerance, starts
    q, bits = function((rows, first, *numbers), out, threads, device)
    return (q, bits) if status else _without_status(q, bits)


def _seen(bits: Any) -> Any:
    """Status flags for a look by NumPy; those on a GPU would have to be waited for, and are not."""
    library = libraries.library_of(bits)
    if library is None:
        return bits
    return library.to_numpy(bits) if library.place(bits) == "cpu" else np.uint16(0)


def _first(plan: Plan, rows: Any) -> Any:
    """The first start unless one is given, of the targets' dtype."""
    if not isinstance(rows, np.ndarray):
        return plan.first.tolist()
    return plan.first.astype(rows.dtype) if rows.dtype == arrays.FLOATS[0] else plan.first


def _solve(
    plan: Plan,
    function: CompiledFunction,
    batch: AnyBatch,
    backend: Backend,
    out: Any,
    threads: int | None,
) -> list[Any]:
    """Searches are in float64; of float32, results are rounded."""
    outputs = plan.outputs
    if isinstance(batch, devices.DeviceBatch):  # which has a thread for each search
        if batch.dtype != "float64":
            raise TypeError(
                f"{NAME}: arrays on {batch.where.place} are {batch.dtype}; expected float64, as a "
                "search needs its digits"
            )
        return batch.run(function.kernel_for(batch, backend), outputs, out)
    form = BATCH if batch.shape or backend.kind != "cpu" else ONE
    kernel = function.kernel("float64", form, backend) if batch.states else None
    if batch.dtype == "float64":
        return batch.run(kernel, outputs, out, threads)
    wide = arrays.Batch(tuple(x.astype(np.float64) for x in batch.rows), batch.shape, "float64")
    q, bits = wide.run(kernel, outputs, None, threads)
    result = arrays.target(out, q.shape, batch)
    result[...] = _rounded(plan, q)
    return [arrays.deliver(out, result), bits]


def _rounded(plan: Plan, q: Any) -> Any:
    """Configurations in float32, still within limits."""
    narrow = q.astype(np.float32)
    for k, lower, upper in (*plan.search.limits.values(), *plan.search.idle):
        least = -np.inf if lower is None else _inward(lower, np.inf)
        most = np.inf if upper is None else _inward(upper, -np.inf)
        narrow[..., k] = np.clip(narrow[..., k], least, most)
    return narrow


def _inward(limit: float, inside: float) -> Any:
    """A limit in float32, rounded to the side that infinity of a sign is on."""
    near = np.float32(limit)
    wide = float(near)  # NumPy would round the limit, too, to compare it with a float32
    beyond = wide < limit if inside > 0 else wide > limit
    return np.nextafter(near, np.float32(inside)) if beyond else near


def _reach(calls: Calls, frame: Any, asked: Asked, status: bool) -> Reach:
    """The search of a call, every name checked; made once."""
    names = tuple(frame) if isinstance(frame, list) else frame
    own: dict[tuple[Any, ...], Reach] = calls.functions.setdefault(NAME, {})
    key = (names, asked.directions, asked.limits, status)
    try:
        return own[key]
    except KeyError:
        found = own[key] = _new_reach(calls, frame, asked, status)
    except TypeError:  # directions in a list, or a name that is no text
        directions = _directions(asked.directions)
        new = _new_reach(calls, frame, asked, status)
        found = own.setdefault((names, directions, asked.limits, status), new)
    return found


def _new_reach(calls: Calls, frame: Any, request: Asked, status: bool) -> Reach:
    plan = new_plan(calls.tasks, frame, request, status)
    equations = replace(plan.equations, run=partial(_solve, plan))
    inputs = [(port.name, port) for port in plan.ports]
    function = CompiledFunction(
        calls.runtime,
        NAME,
        equations,
        inputs,
        equations.outputs,
        remake=calls.remade_by(_function, frame, request, status),
    )
    return Reach(plan, function)


def _function(calls: Calls, frame: Any, request: Asked, status: bool) -> CompiledFunction:
    return _reach(calls, frame, request, status).function


def new_plan(tasks: Tasks, frame: Any, asked: Asked, status: bool) -> Plan:
    """A search, every name checked."""
    names = [frame] if isinstance(frame, str) else frame
    if not isinstance(names, list | tuple) or not names:
        raise ValueError(f"{NAME}: frame is {frame!r}; expected a name, or a list of names")
    frames = tuple(tasks.frame(name) for name in names)
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise ValueError(f"{NAME}: frame {twice!r} is there twice; expected each frame once")
    if not isinstance(asked.limits, bool | np.bool_):
        raise ValueError(f"{NAME}: limits is {asked.limits!r}; expected True or False")
    tree = tasks.tree
    for name, at in zip(names, frames, strict=True):
        count = len(jacobian_columns(tree, list(configuration.neutral(tree)), at, "base"))
        if not 0 < count <= MOST_DOFS:
            raise ValueError(
                f"{NAME}: frame {name!r} is moved by {count} degrees of freedom; expected 1 to "
                f"{MOST_DOFS}"
            )
    if asked.limits:
        _warn_of_empty_ranges(tree)
    return Plan(tree, frames, _directions(asked.directions), bool(asked.limits), not status)


def _warn_of_empty_ranges(tree: Tree) -> None:
    """Warn if limits of a joint and of those that follow it exclude each other."""
    empty = {q for q, (lower, upper) in configuration.allowed(tree).items() if lower > upper}
    driver = next((x for x, q, _ in configuration.own_joints(tree) if q.start in empty), None)
    if driver is not None:
        warn(
            LimitWarning,
            f"{NAME}: limits of joint {driver.joint_name!r} ({driver.limits.lower:g} to "
            f"{driver.limits.upper:g}) and of the joints that follow it exclude each other; "
            f"{len(empty)} such joint(s) keep their own limits only (repair the file, or load it "
            "with mimic='free')",
        )


def _directions(given: Any) -> tuple[bool, ...]:
    """Which of six directions, (angular, linear), count."""
    if isinstance(given, str) and given in DIRECTIONS:
        return DIRECTIONS[given]
    chosen = mask(given)
    if chosen is None or not chosen.any():
        names = ", ".join(map(repr, DIRECTIONS))
        raise ValueError(
            f"{NAME}: directions is {given!r}; expected {names} or six booleans (or zeros and "
            "ones), (angular, linear) in the target's axes, at least one of them True"
        )
    return tuple(chosen.tolist())


def _numbers(asked: Asked) -> tuple[arrays.Array, arrays.Array]:
    """The tolerance and the number of starts; raises for numbers that no search can use."""
    tol, restarts = asked.tol, asked.restarts
    number = isinstance(tol, float | int | np.floating) and not isinstance(tol, bool)
    if not number or not LEAST_TOLERANCE <= tol < np.inf:
        raise ValueError(
            f"{NAME}: tol is {tol!r}; expected a number from {LEAST_TOLERANCE:g} on, in rad and m"
        )
    whole = isinstance(restarts, int | np.integer) and not isinstance(restarts, bool)
    if not whole or not 0 <= restarts <= MOST_RESTARTS:
        raise ValueError(
            f"{NAME}: restarts is {restarts!r}; expected an integer from 0 to {MOST_RESTARTS}"
        )
    return np.array([tol], float), np.array([restarts + 1], float)


def flat(target: Any, frames: int | None, turning: bool) -> Any:
    """Targets with their last axes made one; an array of another library stays one of that.

    Where no direction of turning counts, places (..., 3) are targets enough.
    """
    own = () if frames is None else (frames,)
    place = (*own, 3)
    if not (devices.elsewhere((target,)) or lazy.packages((target,))):
        arrays.refuse_mask(NAME, "target", target)
        try:
            target = np.asarray(target)
        except (ValueError, TypeError) as error:
            raise TypeError(f"{NAME}: target cannot be read as an array ({error})") from None
        real = target.dtype.kind in "iuf"
        if not turning and real and target.shape[-len(place) :] == place:
            target = _poses(target)
    last = (*own, 4, 4)
    shape = tuple(target.shape)
    if shape[-len(last) :] != last:
        wanted = ", ".join(map(str, last))
        each = "" if frames is None else ", one pose for each frame"
        spots = f", or places (..., {', '.join(map(str, place))}) of NumPy"
        if turning:
            spots = "; places (..., 3) are for 'position' only" if shape[-1:] == (3,) else ""
        raise ValueError(f"{NAME}: target has shape {shape}; expected (..., {wanted}){each}{spots}")
    return target.reshape(*shape[: -len(last)], 16 * (frames or 1))


def _poses(places: arrays.Array) -> arrays.Array:
    """Poses at places (..., 3), with the axes of the base."""
    kind = places.dtype if places.dtype == np.float32 else np.dtype(np.float64)
    poses = np.zeros((*places.shape[:-1], 4, 4), kind)
    poses[...] = np.eye(4)
    poses[..., :3, 3] = places
    return poses


def _without_status(q: Any, bits: Any) -> Any:
    """The result without its status: raise for bad targets, and warn of rows without a solution."""
    if lazy.packages((bits,)):  # computed later
        return q
    bits = _seen(bits)
    if not (bits.any() if isinstance(bits, np.ndarray) else bits):
        return q
    bent = np.argwhere(bits & NOT_RIGID)
    if len(bent):
        raise ValueError(
            f"{NAME}: {_row('target', bent[0])} is no rigid motion; expected a right-handed "
            f"rotation (rows of unit length at right angles, to {RIGID:g}), a place, and a last "
            "row 0 0 0 1 (with status=True, such states are flagged instead)"
        )
    lost = np.argwhere(bits & UNSOLVED)
    if len(lost):
        first = Status(int(np.asarray(bits)[tuple(lost[0])]) & UNSOLVED)
        reason = REASONS[next(flag for flag in REASONS if flag & first)]
        warn(
            ConvergenceWarning,
            f"{NAME}: {len(lost)} of {np.size(bits)} rows have no solution and are NaN, the first "
            f"{_row('target', lost[0])}: {reason}; status=True returns the best configuration "
            "found, with a status per row, and no warning",
        )
    return q


def _row(name: str, index: Any) -> str:
    """``target[3, 0]``; of a single state ``target``."""
    return f"{name}[{', '.join(map(str, index.tolist()))}]" if len(index) else name
