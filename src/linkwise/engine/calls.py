"""The functions of a robot, from the arguments of a public method to a compiled function.

`Calls` has a `CompiledFunction` for each kind of call (`Key`) of the functions of the table, and
for whatever else is compiled for the robot. Arrays and kernels are ``compiled.py``'s business.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Required, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.base import Methods
from linkwise.engine import arrays, devices, iterative, lazy
from linkwise.engine.compiled import CompiledFunction, Entry, Remake, Runtime, announced
from linkwise.engine.equations import Equations
from linkwise.engine.kernels import Kernels
from linkwise.engine.parameters import Parameters
from linkwise.engine.tasks import TITLES, Key, Tasks
from linkwise.errors import ContactWarning, meant, warn
from linkwise.model.parameters import KINDS, Parameter
from linkwise.model.tree import Tree
from linkwise.trace.status import Status
from linkwise.trace.tracer import CONTACT_FUNCTIONS, Task, evaluate, flatten

Array = NDArray[Any]
Wrenches = Mapping[str, ArrayLike]
Result = Array  # with ``status=True`` the pair (array, status bits), whose parts are then Any
Pair = tuple[Array, Array]


class Constants(TypedDict, total=False):
    """What functions of a robot that `Robot.parametric` made take, those that it names."""

    inertia: Any  # (..., n, 10)
    gravity: Any  # (..., 3)
    payload: Any  # (..., 10)
    rotor: Any  # (..., nv)
    friction: Any  # (..., nv, 2)
    placement: Any  # (..., n, 6)


class Usual(Constants, total=False):
    """What every function takes, whatever it returns."""

    out: Any  # an array to write the result to
    threads: int | None  # the most threads to use; None: as many as the work is worth


class Options(Usual, total=False):
    """What every function takes besides its own arguments."""

    status: bool  # also return, per state, what was wrong with it: bits of `Status`
    device: str | None  # "cuda" or "cuda:1": move arrays of NumPy to that GPU, and the result back


class Plain(Usual, total=False):
    """Options of a call that returns an array."""

    status: Literal[False]
    device: str | None


class Told(Usual, total=False):
    """Options of a call that returns a `Pair`."""

    status: Required[Literal[True]]
    device: str | None


class PlainDynamics(Plain, total=False):
    """Those of dynamics, of a call that returns an array."""

    method: str
    f_ext: Wrenches | None


class ToldDynamics(Told, total=False):
    """Those of dynamics, of a call that returns a `Pair`."""

    method: str
    f_ext: Wrenches | None


NONE = Options()
USUAL = Options(out=None, threads=None, status=False, device=None)
OPTIONS = frozenset(USUAL)


class Calls:
    """The functions of one robot: those of the table by `Key`, and all others that it compiled."""

    __slots__ = (
        "_table",
        "_unilateral",
        "functions",
        "handle",
        "parameters",
        "runtime",
        "tasks",
    )

    def __init__(self, tree: Tree, name: str, parameters: tuple[Parameter, ...] = ()) -> None:
        self.tasks = Tasks(tree, name, parameters)
        self.parameters = Parameters(tree, parameters)
        self.runtime = Runtime(tree, name)
        self._unilateral = tree.unilateral  # some contact can only push
        self._table: dict[tuple[Any, ...], CompiledFunction] = {}
        self.functions: dict[Any, Any] = {}  # what else is compiled for the robot
        # ``handle``, which compiled methods look for, is set with the first kernel

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what kernels are made from; as bytes, since protocols 0 and 1 know no slots."""
        made_of = (self.tasks.tree, self.tasks.name, self.tasks.parameters)
        return _unpickled, (pickle.dumps(made_of),)

    @property
    def kernels(self) -> Kernels:
        """The kernels of the robot."""
        return self.runtime.kernels

    def run(
        self,
        function: str,
        values: tuple[Any, ...],
        options: Options = NONE,
        *,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Wrenches | None = None,
        damping: Array | None = None,
    ) -> Result:
        """Run a function of the table."""
        if self._unilateral and function in CONTACT_FUNCTIONS and not options.get("status"):
            watched: Options = {**options, "status": True}
            result, bits = self.run(function, values, watched, method=method, frame=frame,
                                    axes=axes, f_ext=f_ext, damping=damping)  # fmt: skip
            warn_of_pulls(function, bits)
            return result  # type: ignore[no-any-return]
        out = threads = device = None
        status = False
        constants: tuple[Any, ...] = ()
        if self.tasks.parameters:
            options, constants = self.parameters.taken(function, values, options)
        if options:
            out, threads, status, device = unpacked(function, options)
        external: tuple[str, ...] = ()
        if f_ext is not None:
            external, wrenches = arrays.wrenches(f_ext)
            values = (*values, *wrenches)
        if damping is not None:
            values = (*values, damping)
        if constants:
            values = (*values, *constants)
        key = (function, method, frame, axes, external, damping is not None, status)
        try:
            call = self._table.get(key)
        except TypeError:  # a name that is no text
            call = None
        if call is None:
            call = self.function(key)
        result = call(values, out, threads, device)
        if self.runtime.handle is not None:
            self.handle = self.runtime.handle
        return result  # type: ignore[no-any-return]

    def function(self, key: tuple[Any, ...]) -> CompiledFunction:
        """A function of the table for a kind of call (a `Key`), compiled when it is called."""
        try:
            function = self._table.get(key)
        except TypeError:
            self._refuse_names(Key(*key))
            raise
        if function is None:
            kind = Key(*key)  # of two threads that make one, both use the first one's
            function = self._table.setdefault(kind, self._new(kind))
        return function

    def _new(self, key: Key) -> CompiledFunction:
        tasks, tree, kernels = self.tasks, self.tasks.tree, self.runtime.kernels
        usual = tasks.task(key)

        def equations(dtype: str, kind: str) -> Equations:
            first = (dtype, kind) == ("float64", "cpu")
            return kernels.equations(usual if first else tasks.task(key, dtype, kind))

        inputs = [(port.name, port) for port in usual.ports(tree)]
        for k, name in enumerate(key.external, len(usual.algorithm.inputs)):
            inputs[k] = (f"f_ext[{name!r}]", inputs[k][1])
        plain = Key(key.function, frame=key.frame)
        served = key in (plain, plain._replace(frame=None, status=True)) and not tasks.parameters
        matrices = usual.algorithm.matrices if key == plain else 0
        served = served and (bool(matrices) or not usual.algorithm.matrices)
        return CompiledFunction(
            self.runtime,
            TITLES.get(key.function, key.function),
            equations,
            inputs,
            usual.slots(tree),
            entry=Entry(key.function, key.frame, key.status, served, matrices),
            constant=None if tree.nv else partial(_without_joints, usual, tree),
            remake=self.remade_by(_function_of, tuple(key)),
            any_norm=key.function == "normalize",
        )

    def _refuse_names(self, key: Key) -> None:
        """Say which of the names is no text."""
        if not (isinstance(key.method, str) and isinstance(key.axes, str)):
            raise ValueError(f"method {key.method!r}, axes {key.axes!r}: expected two names")
        for name in (key.frame, *key.external):
            if name is not None:
                self.tasks.frame(name)

    def remade_by(self, make: Callable[..., Any], *arguments: Any) -> Remake:
        """How another process makes a function of this robot: ``make(calls, *arguments)``.

        Only what calls are made from is kept: functions of a robot need not end with it.
        """
        made_of = (self.tasks.tree, self.tasks.name, self.tasks.parameters)
        return lambda: (_remade, (made_of, make, arguments))

    def compiled(self, equations: Equations, remake: Remake | None = None) -> CompiledFunction:
        """A function of the robot that is not in the table, by its equations."""
        function: CompiledFunction | None = self.functions.get(equations)
        if function is None:
            inputs = [(port.name, port) for port in equations.inputs]
            new = CompiledFunction(
                self.runtime, equations.name, equations, inputs, equations.outputs, remake=remake
            )
            function = self.functions.setdefault(equations, new)
        return function

    def iterate(
        self,
        values: tuple[Any, ...],
        options: Options,
        method: str,
        f_ext: Wrenches | None = None,
        stop: iterative.Stop = iterative.ANY,
    ) -> Result:
        """Forward dynamics by conjugate gradients; by articulated bodies where they fail."""
        constants: tuple[Any, ...] = ()
        if self.tasks.parameters:
            options, constants = self.parameters.taken("forward_dynamics", values, options)
        out, threads, status, device = unpacked("forward_dynamics", options)
        external, wrenches = arrays.wrenches(f_ext)
        key = ("iteration", method, external, status)
        call = self.functions.get(key)
        if call is None:
            kind = Key("forward_dynamics", method, external=external)
            call = self.functions.setdefault(key, iterative.function(self, kind, status))
        limits = stop.arrays(values, self.tasks.tree.nv)
        results = call((*values, *wrenches, *constants, *limits), out, threads, device)
        return iterative.split(results) if status else results  # type: ignore[return-value]


def _without_joints(task: Task, tree: Tree) -> list[Array]:
    """The results of a robot without joints, which are the same in every state."""
    result = np.zeros(task.algorithm.output_shape(tree))
    if result.size:
        zeros = [[0.0] * port.size for port in task.ports(tree)]
        numbers = list(flatten(evaluate(task, tree, *zeros)))
        result[...] = np.array(numbers, float).reshape(result.shape)
    return [result, *(np.zeros(()) for _ in task.slots(tree)[1:])]


def warn_of_pulls(what: str, status: Any) -> None:
    """Warn if some state has a contact that pulls and can only push."""
    if lazy.packages((status,)) or devices.elsewhere((status,)):
        return
    pulls = (np.atleast_1d(status) & int(Status.PULLING)) > 0
    if pulls.any():
        first = tuple(int(k) for k in np.unravel_index(int(pulls.argmax()), pulls.shape))
        row = first[0] if len(first) == 1 else first
        rows = f" in {int(pulls.sum()):,} of {pulls.size:,} states, the first is {row}"
        warn(
            ContactWarning,
            f"{what}: a contact that can only push pulls{rows if np.ndim(status) else ''}; the "
            "result is that of a contact that holds. robot.constraint_forces has the forces, "
            "status=True the states (Status.PULLING)",
        )


def _unpickled(tree_and_name: bytes) -> Calls:
    return Calls(*pickle.loads(tree_and_name))


def _remade(made_of: tuple[Any, ...], make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return make(Calls(*made_of), *arguments)


def _function_of(calls: Calls, key: tuple[Any, ...]) -> CompiledFunction:
    return calls.function(key)


def announce(owner: type, slot: str, *names: str) -> None:
    """Name the methods of a class of robots, and its slot for `Calls`, that a front looks for.

    Their keywords ``**options`` are shown to users one by one, as `Options` has them.
    """
    functions = {name: getattr(owner, name) for name in names}
    announced.append(Methods(((owner, slot), (Calls, "handle")), functions))
    for function in functions.values():
        show_options(function, Options, USUAL)


def show_options(function: Any, options: type, usual: Mapping[str, Any]) -> None:
    """Give a function the signature that has its options in place of ``**options``."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kinds = {name: getattr(x, "__forward_arg__", x) for name, x in options.__annotations__.items()}
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=usual[name], annotation=kind
        )
        for name, kind in kinds.items()
        if name in usual
    ]
    function.__signature__ = signature.replace(parameters=own + more)


def with_constants(function: str, constants: Constants, **usual: Any) -> Options:
    """Options of a function that takes only some of the usual ones, and a robot's parameters."""
    for wrong in OPTIONS.intersection(constants):
        raise TypeError(f"Robot.{function}() got an unexpected keyword argument {wrong!r}")
    return cast(Options, {**constants, **usual})


def unpacked(function: str, options: Options) -> tuple[Any, int | None, bool, str | None]:
    """``out``, ``threads``, ``status`` and ``device``; any other keyword is a mistake."""
    if not OPTIONS.issuperset(options):
        wrong = next(name for name in options if name not in OPTIONS)
        title = TITLES.get(function, function)
        asked = f"; robot.parametric({wrong!r}) has it" if wrong in KINDS else meant(wrong, OPTIONS)
        raise TypeError(f"Robot.{title}() got an unexpected keyword argument {wrong!r}{asked}")
    status = options.get("status")
    if isinstance(status, np.ndarray):
        raise TypeError(f"{function}: status is an array; expected True or False")
    return options.get("out"), options.get("threads"), bool(status), options.get("device")
