"""Derivatives of any function of a robot: what users call.

By a configuration, a derivative is along the joints' rates, so that its axis has nv numbers in the
convention of ``qd``; docs/derivatives.md has a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import ArrayLike

from linkwise.differentiation import solutions
from linkwise.differentiation.arguments import by_name, rows, tangents
from linkwise.differentiation.columns import MOST_WRITTEN, by_columns, columns, weighted
from linkwise.differentiation.equations import equations_of
from linkwise.differentiation.plan import (
    CURVATURE,
    GRADIENT,
    HVP,
    JACOBIAN,
    JVP,
    VJP,
    Asked,
    Part,
    Plan,
    options_of,
)
from linkwise.engine import devices
from linkwise.engine.arrays import check_out, wrenches
from linkwise.engine.calls import Calls, Options, Wrenches
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.tasks import Key, frames_of
from linkwise.trace.diff import Mode
from linkwise.trace.program import OperationCount, count_operations

Name = str | Callable[..., Any]  # of a function: its name, or the robot's method
Given = Sequence[Any] | Mapping[str, Any]  # for each argument, in order or by name


class Made:
    """A plan with its kernels."""

    def __init__(self, calls: Calls, asked: Asked) -> None:
        self._calls, self.plan = calls, Plan(calls.tasks, asked)
        self._functions: dict[bool, CompiledFunction] = {}
        self.wide: list[list[Made] | None] = []  # what makes its columns, once that is known

    def __call__(
        self, given: Sequence[Any], out: Any, threads: int | None, status: bool, device: str | None
    ) -> tuple[Any, Any]:
        """All parts (..., size), and the status or None."""
        found = self.function(status)(given, out, threads, device)
        return found if status else (found, None)

    def function(self, status: bool) -> CompiledFunction:
        """The plan, compiled when it is first called."""
        function = self._functions.get(status)
        if function is None:
            equations = equations_of(self.plan, status)
            remake = self._calls.remade_by(_function, self.plan.asked, status)
            function = self._functions[status] = self._calls.compiled(equations, remake)
        return function

    def operations(self) -> OperationCount:
        """Of one state."""
        equations = equations_of(self.plan, False)
        return count_operations(self._calls.kernels.program(equations))


def _function(calls: Calls, request: Asked, status: bool) -> CompiledFunction:
    return Made(calls, request).function(status)


class Usual:
    """A product of one kind of call whose arguments are vectors, without looking at them twice."""

    def __init__(self, function: CompiledFunction, parts: Sequence[Part]) -> None:
        self._function, self._slices = function, []
        start = 0
        for part in parts:
            self._slices.append((..., slice(start, start + part.size) if part.shape else start))
            start += part.size

    def __call__(self, *values: Any) -> list[Any] | None:
        """All parts; None if the arguments need Python's attention."""
        found = self._function.fast(*values)
        if found is NotImplemented:
            return None
        parts = [found[part] for part in self._slices]
        return [part if part.shape else part[()] for part in parts]  # numbers, not arrays of none


def _cut(rows: Any, parts: Sequence[Part]) -> list[Any]:
    """The parts of an array (..., size), as views of it."""
    found, start, lead = [], 0, tuple(rows.shape[:-1])
    for part in parts:
        piece = rows if len(parts) == 1 else rows[..., start : start + part.size]
        shaped = piece.reshape(lead + part.shape)
        found.append(shaped if shaped.shape else shaped[()])
        start += part.size
    return found


@final
class Derivative:
    """Derivatives of one function of a robot; `Robot.derivative` makes them."""

    def __init__(
        self, calls: Calls, asked: Asked, *, order: int, weighted: bool, single: bool
    ) -> None:
        self._made, self._parts_of = Made(calls, asked), (calls, asked, order, weighted, single)
        self._calls, self._plan = calls, self._made.plan
        self._order, self._weighted, self._single = order, weighted, single
        self._columns: list[Made] | None = None  # a product for each, where that is the way
        products = None if order == 2 or weighted else by_columns(calls.tasks, asked)
        if products is not None:
            self._columns = [Made(calls, each) for each in products]
        # a second derivative without weights is computed with unit weights, a row for each
        self._rows = (self._plan.result.size,) if order == 2 and not weighted else ()

    def __repr__(self) -> str:
        order = "second " if self._order == 2 else ""
        return f"<{order}{self._plan.title} by {', '.join(self.wrt)}, of {self._plan.robot!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _derivative, self._parts_of

    @property
    def wrt(self) -> tuple[str, ...]:
        """The arguments that these are derivatives by."""
        return self._plan.wrt

    @property
    def operation_count(self) -> OperationCount:
        """Exact operations of one state."""
        if self._columns is not None:
            sizes = ((each, each.plan.more[0].size) for each in self._columns)
            return reduce(add, (each.operations().repeated(n) for each, n in sizes))
        once = self._made.operations()
        return once.repeated(*self._rows) if self._rows else once

    def __call__(
        self,
        *values: ArrayLike,
        f_ext: Wrenches | None = None,
        damping: ArrayLike | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Derivatives at states, as `Robot.derivative` says."""
        own = values[:-1] if self._weighted else values
        if self._weighted and len(values) <= len(self._plan.inputs):
            raise TypeError(
                f"{self._plan.title}: was given {len(values)} array(s); expected "
                f"{', '.join(self._plan.inputs)} and, at last, weights of the result's shape"
            )
        known = solutions.given(self._calls, self._plan, own, f_ext, damping, options)
        given, (out, threads, status, device) = known.arrays, known.usual
        if self._weighted:
            shape = self._plan.result.shape
            given.append(rows(self._plan, "weights", shape, values[-1], given[0]))
        elif self._rows:
            given = self._with_unit_weights(given)
        if self._columns is not None:
            return self._by_columns(given, out, threads, status, device)
        found, bits = self._made(given, self._target(out), threads, status, device)
        bits = known.status(bits)
        if self._rows and status:
            bits = reduce(or_, (bits[..., i] for i in range(*self._rows)))
        parts = _cut(found, self._plan.parts)
        if self._rows:
            parts = list(map(self._without_rows, self._plan.parts, parts))
        alone = out is not None and len(parts) == 1
        result = out if alone else self._arranged(parts)
        return (result, bits) if status else result

    def _by_columns(
        self, given: list[Any], out: Any, threads: int | None, status: bool, device: str | None
    ) -> Any:
        """Derivatives of a large robot, column by column."""
        assert self._columns is not None
        parts, bits = columns(self._columns, self._plan, given, threads, status, device)
        if out is not None:
            parts = self._put(out, parts)
        result = out if out is not None and len(parts) == 1 else self._arranged(parts)
        return (result, bits) if status else result

    def _put(self, out: Any, parts: list[Any]) -> list[Any]:
        """Parts, written to ``out``."""
        target = self._target(out)
        lead = parts[0].shape[: parts[0].ndim - len(self._plan.parts[0].shape)]
        whole = np.concatenate([np.reshape(x, (*lead, -1)) for x in parts], -1)
        check_out(target, whole.shape, whole.dtype.name)
        target[...] = whole
        return _cut(target, self._plan.parts)

    def _with_unit_weights(self, given: list[Any]) -> list[Any]:
        """Arguments with an axis more, along which each number of the result is weighted alone."""
        there = devices.elsewhere(given)
        wide = [x if hasattr(x, "ndim") else np.asarray(x, float) for x in given]
        known = [x.dtype for x in wide if isinstance(x, np.ndarray)]
        unit = np.eye(*self._rows, dtype=np.float32 if set(known) == {FLOAT32} else np.float64)
        return [*(x[..., None, :] for x in wide), unit.tolist() if there else unit]

    def _target(self, out: Any) -> Any:
        """``out`` as (..., size), where it has the shape of the only part."""
        if not isinstance(out, np.ndarray) or len(self._plan.parts) > 1:
            return out
        shape = (*(self._plan.result.shape if self._rows else ()), *self._plan.parts[0].shape)
        lead = out.shape[: out.ndim - len(shape)]
        if (*lead, *shape) != out.shape or not out.flags.c_contiguous:
            wanted = ", ".join(("...", *map(str, shape)))
            raise ValueError(
                f"{self._plan.title}: out has shape {out.shape} and strides {out.strides}; "
                f"expected ({wanted}) without gaps"
            )
        return out.reshape((*lead, *self._rows, self._plan.size))

    def _without_rows(self, part: Part, x: Any) -> Any:
        """A part (..., numbers of the result, shape) in the axes of the result; the value once."""
        lead = x.shape[: x.ndim - len(part.shape) - 1]
        if part.name == "value":
            return x.reshape((*lead, *self._rows, -1))[..., 0, :].reshape((*lead, *part.shape))
        return x.reshape((*lead, *self._plan.result.shape, *part.shape))

    def _arranged(self, found: list[Any]) -> Any:
        """Parts as users get them: lower orders first, one for each argument or pair."""
        n, rest, value = len(self.wrt), iter(found), self._plan.asked.value

        def of_arguments() -> Any:
            return self._one([next(rest) for _ in range(n)])

        lower = [next(rest)] if value else []
        if value and self._order == 2:
            lower.append(of_arguments())
        own = of_arguments() if self._order == 1 else self._one([of_arguments() for _ in range(n)])
        return (*lower, own) if value else own

    def _one(self, parts: list[Any]) -> Any:
        """One part where one argument was named, else all."""
        return parts[0] if self._single else tuple(parts)


def dynamics_in_columns(calls: Calls, function: str, frames: tuple[str, ...]) -> Derivative | None:
    """Derivatives of a large robot's dynamics and its value, column by column; None of others."""
    if calls.tasks.tree.n_links <= MOST_WRITTEN:
        return None
    asked = Asked(Key(function, external=frames), None, value=True)
    key = ("columns", asked)
    if key not in calls.functions:
        able = by_columns(calls.tasks, asked) is not None
        made = _derivative(calls, asked, 1, False, False) if able else None
        calls.functions.setdefault(key, made)
    found: Derivative | None = calls.functions[key]
    return found


FLOAT32 = np.dtype("float32")


def _derivative(calls: Calls, asked: Asked, order: int, weighted: bool, single: bool) -> Derivative:
    return Derivative(calls, asked, order=order, weighted=weighted, single=single)


class Differentiation:
    """Derivatives of any function; a part of `Robot`."""

    __slots__ = ()
    _calls: Calls

    def derivative(
        self,
        function: Name,
        wrt: str | Sequence[str] | None = None,
        *,
        order: int = 1,
        mode: Mode = "auto",
        value: bool = False,
        weighted: bool = False,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Sequence[str] = (),
        damped: bool = False,
        search: Mapping[str, Any] | None = None,
    ) -> Derivative:
        """A compiled function that computes derivatives of a function of the robot.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, qd = np.full((2, 7), 0.3)
        >>> by_q = robot.derivative("mass_matrix", wrt="q")      # (..., nv, nv, nv)
        >>> by_q(q).shape
        (7, 7, 7)
        >>> energy = robot.derivative("kinetic_energy", wrt=("q", "qd"), value=True)
        >>> T, (by_q, by_qd) = energy(q, qd)
        >>> bool(np.allclose(by_qd, robot.mass_matrix(q) @ qd))
        True

        ``function``: the name of a function, or the method itself. ``wrt``: one of its arguments,
        or several, for a tuple of derivatives; all of them unless given. The axes of an argument
        come after those of the result. A configuration has nv numbers there: entry j is the change
        at the rate ``qd[j] = 1``. Results that are poses or configurations change at rates too: of
        `forward_kinematics` this is the Jacobian (..., 6, nv), of `integrate` (..., nv, nv).
        ``"f_ext"`` is an argument once ``f_ext`` names frames, with axes (frames, 6); so are the
        constants of `parametric`, with their own axes. Units are those of the result per unit of
        the argument: for q rad or m, for qd rad/s or m/s.

        The result is called as the function is: ``by_q(q, out=..., threads=..., status=True)``,
        with batches, float32 and arrays of other libraries; a frame, a method and the axes are
        given here. ``out`` has the shape of the derivative; of several parts, (..., numbers of all
        parts), of which they are views.

        ``mode``: ``"forward"`` (a pass for each number of the arguments) or ``"reverse"`` (one for
        each of the result) through the equations, or ``"auto"``: an algorithm for the derivatives
        where there is one, else whichever takes fewer operations (`Derivative.operation_count`).
        ``value=True`` puts the value before them.

        ``order=2``: second derivatives, with axes of the result, of the first and of the second
        argument: a tuple for each argument of a tuple for each. Entry (..., a, b) is the rate of
        (..., a) along b; a and b of one quaternion do not change places. ``value=True`` returns
        (value, first, second).

        ``weighted=True``: of the sum of the result's numbers times weights, an array of the
        result's shape that is the last argument: ``λᵀ ∂²τ`` costs far less than all of ``∂²τ``.

        Iterations: ``method="pcg"`` finds what is differentiated, and derivatives are those of the
        equations that it solves. ``"inverse_kinematics"`` is called with a target (..., 4, 4) and
        perhaps a start q0, and differentiated by ``"target"``, which moves by twists: (..., nv, 6),
        the smallest rates of the joints with which the frame follows; ``search`` has its options,
        ``{"directions": "position", "tol": 1e-9}``. NaN where nothing was found.
        """
        if order not in (1, 2) or isinstance(order, bool):
            raise ValueError(f"derivative: order is {order!r}; expected 1 or 2")
        kind = CURVATURE if order == 2 else GRADIENT if weighted else JACOBIAN
        if kind != JACOBIAN and mode == "forward":
            raise ValueError(
                "derivative: mode is 'forward'; expected 'auto' or 'reverse', as the gradient of a "
                "weighted sum, and second derivatives, are always found in reverse"
            )
        key = self._key(function, method, frame, axes, frames_of(f_ext), bool(damped))
        asked = Asked(key, _several(wrt), kind, mode, bool(value), options_of(search))
        return _derivative(self._calls, asked, order, bool(weighted), isinstance(wrt, str))

    def jvp(
        self,
        function: Name,
        inputs: Given,
        tangents: Given,
        *,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Wrenches | None = None,
        search: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """``(value, change)``: a function, and its rate while its arguments change at given rates.

        The Jacobian times a vector, without the Jacobian: about as many operations as two calls.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, qd = np.full((2, 7), 0.3)
        >>> pose, twist = robot.jvp("forward_kinematics", (q,), (qd,), frame="link7")
        >>> bool(np.allclose(twist, robot.jacobian(q, "link7") @ qd))
        True

        ``inputs``: the function's arguments, a tuple or a mapping by name. ``tangents``: their
        rates, in the same order, or by name; None, or a name left out, is an argument that does not
        change. Rates of a configuration are (..., nv), in the convention of ``qd``. ``f_ext`` and
        constants of `parametric` are given by keyword, and their rates by name: of wrenches a
        mapping as ``f_ext`` is one, or an array (..., frames, 6). The change is that
        of the result's own numbers, of a pose a twist, of a configuration rates. Other keywords as
        for the function, and ``search`` as for `derivative`; with ``status=True`` the result is
        ``((value, change), status bits)``.
        """
        usual = None
        if f_ext is search is None and not options and type(inputs) is type(tangents) is tuple:
            usual = (JVP, _name(function), None, method, frame, axes)
            alike = len(inputs) == len(tangents)
            found = self._usual(usual, inputs, tangents) if alike else None
            if found is not None:
                return tuple(found)
        key = self._key(function, method, frame, axes, wrenches(f_ext)[0])
        asked = Asked(key, search=options_of(search))
        moved = self._named("tangents", tangents, asked)
        found, bits = self._product(JVP, asked, inputs, moved, None, moved, f_ext, options, usual)
        value, change = found
        return ((value, change), bits) if options.get("status") else (value, change)

    def vjp(
        self,
        function: Name,
        inputs: Given,
        cotangent: ArrayLike,
        *,
        wrt: str | Sequence[str] | None = None,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Wrenches | None = None,
        search: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """``(value, gradients)``: a function, and gradients of its weighted sum by the arguments.

        The transposed Jacobian times a vector, without the Jacobian: a few times the operations of
        a call, however many arguments there are.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, force = np.full(7, 0.3), [0, 0, 0, 0, 0, -5.0]
        >>> pose, (torque,) = robot.vjp("forward_kinematics", (q,), force, frame="link7")
        >>> bool(np.allclose(torque, robot.jacobian(q, "link7").T @ force))
        True

        ``cotangent``: weights of the result's shape; of a pose a wrench (..., 6), of a
        configuration (..., nv). ``wrt``: the arguments by which, all unless given; with one name
        alone, its gradient is returned without a tuple. Everything else as for `jvp`.
        """
        usual, by = None, _several(wrt)
        if f_ext is search is None and not options and type(inputs) is tuple:
            usual = (VJP, _name(function), by, method, frame, axes)
            found = self._usual(usual, inputs, (cotangent,))
            if found is not None:
                return found[0], found[1] if isinstance(wrt, str) else tuple(found[1:])
        key = self._key(function, method, frame, axes, wrenches(f_ext)[0])
        asked = Asked(key, search=options_of(search))
        found, bits = self._product(VJP, asked, inputs, by, cotangent, {}, f_ext, options, usual)
        pair = found[0], found[1] if isinstance(wrt, str) else tuple(found[1:])
        return (pair, bits) if options.get("status") else pair

    def hvp(
        self,
        function: Name,
        inputs: Given,
        cotangent: ArrayLike,
        tangents: Given,
        *,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """``(gradients, changes)``: those of `vjp`, and their rates while arguments change.

        The Hessian of the weighted sum times a vector, without the Hessian, by the arguments that
        have tangents: about three times the operations of `vjp`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, qd, v = np.full((3, 7), 0.3)
        >>> gradients, changes = robot.hvp("kinetic_energy", (q, qd), 1.0, {"qd": v})
        >>> bool(np.allclose(changes[0], robot.mass_matrix(q) @ v))
        True

        ``cotangent`` as for `vjp`, ``tangents`` and all others as for `jvp`.
        """
        key = self._key(function, method, frame, axes, wrenches(f_ext)[0])
        asked = Asked(key)
        moved = self._named("tangents", tangents, asked)
        found, bits = self._product(HVP, asked, inputs, moved, cotangent, moved, f_ext, options)
        gradients = found[1 : 1 + len(moved)]
        pair = tuple(gradients), tuple(found[1 + len(moved) :])
        return (pair, bits) if options.get("status") else pair

    def _usual(
        self, key: tuple[Any, ...], inputs: tuple[Any, ...], vectors: tuple[Any, ...]
    ) -> list[Any] | None:
        """The parts of a product like an earlier one; None if there was none."""
        try:
            usual = self._calls.functions.get(key)
        except TypeError:  # a function that is no name
            return None
        return None if usual is None else usual(*inputs, *vectors)

    def _key(
        self,
        function: Name,
        method: str,
        frame: str | None,
        axes: str,
        f_ext: tuple[str, ...],
        damped: bool = False,
    ) -> Key:
        """The kind of call that is differentiated."""
        name = _name(function)
        if not isinstance(name, str):
            raise TypeError(
                f"derivative: function is {function!r}; expected its name, such as 'mass_matrix', "
                "or a method of the robot"
            )
        return Key(name, method, frame, axes, f_ext, damped)

    def _product(
        self,
        kind: str,
        asked: Asked,
        inputs: Given,
        wrt: Iterable[str] | None,
        cotangent: Any,
        moved: Mapping[str, Any],
        f_ext: Wrenches | None,
        options: Options,
        usual: tuple[Any, ...] | None = None,
    ) -> tuple[list[Any], Any]:
        """The parts of a product, and the status or None; later calls of the same kind may find
        what they need under the key ``usual``.
        """
        by = None if wrt is None else tuple(wrt)
        made = self._kept(asked._replace(wrt=by, kind=kind, value=True))
        plan, own = made.plan, self._named("inputs", inputs, asked)
        values = [own[name] for name in (*plan.inputs, *plan.starts) if name in own]
        known = solutions.given(self._calls, plan, values, f_ext, None, options)
        given, (out, threads, status, device) = known.arrays, known.usual
        if out is not None:
            raise TypeError(
                f"{plan.title}: out is given; expected none, for there are several results"
            )
        weights = None
        if kind != JVP:
            weights = rows(plan, "cotangent", plan.result.shape, cotangent, given[0])
            given.append(weights)
        wide = self._wide(made) if kind == VJP and not plan.task.rolled else None
        if wide is not None:
            parts, bits = columns(wide, plan, given[:-1], threads, status, device)
            return weighted(plan, parts, _like(weights, parts[0])), bits
        given += tangents(plan, moved, given[0])
        found, bits = made(given, None, threads, status, device)
        if usual is not None and all(len(part.shape) < 2 for part in plan.parts):
            # arrays that reached the kernel as they came need no second look
            came = [*own.values(), *(moved.values() if kind == JVP else [cotangent])]
            same = len(came) == len(given) == len(inputs) + (len(inputs) if kind == JVP else 1)
            if same and all(x is y for x, y in zip(came, given, strict=True)):
                self._calls.functions.setdefault(usual, Usual(made.function(False), plan.parts))
        return _cut(found, plan.parts), known.status(bits)

    def _wide(self, made: Made) -> list[Made] | None:
        """Of a large robot: the products that make the columns of a matrix; None of others."""
        if not made.wide:
            products = by_columns(self._calls.tasks, made.plan.asked._replace(kind=JACOBIAN))
            made.wide.append(None if products is None else [self._kept(x) for x in products])
        return made.wide[0]

    def _kept(self, asked: Asked) -> Made:
        """What was asked for, made once."""
        found: Made | None = self._calls.functions.get(asked)
        if found is None:
            found = self._calls.functions.setdefault(asked, Made(self._calls, asked))
        return found

    def _named(self, what: str, given: Given, asked: Asked) -> dict[str, Any]:
        """Values by the names of the function's arguments."""
        plan = self._kept(asked).plan
        found = by_name(plan, what, given)
        if not found:
            raise ValueError(f"{plan.title}: {what} has no arrays; expected one or several")
        return found


def _name(function: Any) -> Any:
    """The name of a function; what has none, as it is."""
    return function if isinstance(function, str) else getattr(function, "__name__", function)


def _like(x: Any, other: Any) -> Any:
    """An array as one of the kind that another is."""
    return np.asarray(x, other.dtype) if isinstance(other, np.ndarray | np.generic) else x


def _several(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of arguments; None for all of them."""
    if names is None:
        return None
    if not isinstance(names, Iterable):
        raise TypeError(
            f"derivative: wrt is {names!r}; expected the name of an argument, such as 'q', or "
            "several"
        )
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found:
        raise ValueError("derivative: wrt names no argument; expected one or several")
    for name in found:
        if found.count(name) > 1:
            raise ValueError(f"derivative: wrt names {name!r} twice; expected each argument once")
    return found
