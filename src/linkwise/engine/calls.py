"""From a call to a kernel: one path for every function, option and kind of array.

A `Call` is one kind of call (`Key`): the names and sizes of its arguments, and its tasks. `Calls`
has all calls of one robot and runs them: on the front of the backend (`backends/base.py`), which
takes the usual arguments without Python, or in `Calls.general`, which takes all.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Required, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.base import (
    BATCH,
    ONE,
    Backend,
    DeviceBackend,
    Front,
    Keep,
    Kernel,
    Methods,
    Site,
)
from linkwise.backends.choice import cpu, gpu
from linkwise.backends.process import build_lock
from linkwise.engine import arrays, columns, devices, iterative, lazy
from linkwise.engine.kernels import Kernels, cached
from linkwise.engine.parameters import Parameters
from linkwise.engine.quaternions import warn_of_norms
from linkwise.engine.tasks import TITLES, Key, Tasks
from linkwise.errors import ContactWarning, meant, warn
from linkwise.model.parameters import KINDS, Parameter
from linkwise.model.tree import Tree
from linkwise.trace.program import FLAGS_DTYPE
from linkwise.trace.status import Status
from linkwise.trace.tracer import CONTACT_FUNCTIONS, Task, evaluate, flatten

Array = NDArray[Any]
Wrenches = Mapping[str, ArrayLike]
AnyBatch = arrays.Batch | devices.DeviceBatch
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


class Call:
    """One kind of call of one robot."""

    def __init__(self, tasks: Tasks, key: Key) -> None:
        self._tasks, self.key = tasks, key
        self.title = TITLES.get(key.function, key.function)
        task = tasks.task(key)
        self._tasks_made = {("float64", "cpu"): task}
        self.ports = [(port.name, port.size) for port in task.ports(tasks.tree)]
        self.output = task.algorithm.output_shape(tasks.tree)
        # until the front refuses it
        self.for_front = not (task.algorithm.iterates or task.in_pieces)
        for k, name in enumerate(key.external, len(task.algorithm.inputs)):
            self.ports[k] = (f"f_ext[{name!r}]", 6)
        self.plans: devices.Plans = {}  # of arrays on devices, by their layout
        self.site: Site | None = None  # from the first kernel on, where the front has one
        self.parted: Site | None = None  # the method's own, where that returns parts of the result
        self.matrices = task.algorithm.matrices

    @property
    def sizes(self) -> list[int]:
        """Numbers of each argument for one state."""
        return [size for _, size in self.ports]

    def task(self, dtype: str, device: str = "cpu") -> Task:
        """The task for a number type and a kind of device: the best method may differ."""
        found = self._tasks_made.get((dtype, device))
        if found is None:
            found = self._tasks.task(self.key, dtype, device)
            self._tasks_made[dtype, device] = found
        return found


class Calls:
    """All calls of one robot."""

    __slots__ = (
        "_calls",
        "_front",
        "_parameters",
        "_unilateral",
        "handle",
        "kernels",
        "served",
        "tasks",
    )

    def __init__(self, tree: Tree, name: str, parameters: tuple[Parameter, ...] = ()) -> None:
        self.tasks = Tasks(tree, name, parameters)
        self._parameters = Parameters(tree, parameters)
        self._unilateral = tree.unilateral  # some contact can only push
        self.kernels = Kernels(tree, name)
        self._calls: dict[tuple[Any, ...], Call] = {}
        self._front: Front | None = None  # made with the first kernel, as is its ``handle``
        self.served: dict[Any, Any] = {}  # functions of states that are in no table (served.py)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what kernels are made from; as bytes, since protocols 0 and 1 know no slots."""
        made_of = (self.tasks.tree, self.tasks.name, self.tasks.parameters)
        return _unpickled, (pickle.dumps(made_of),)

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
        """Run a function."""
        if self._unilateral and function in CONTACT_FUNCTIONS and not options.get("status"):
            told: Options = {**options, "status": True}
            found, bits = self.run(function, values, told, method=method, frame=frame, axes=axes,
                                   f_ext=f_ext, damping=damping)  # fmt: skip
            warn_of_pulls(function, bits)
            return found  # type: ignore[no-any-return]
        out = threads = device = None
        status = False
        own = self._parameters if self.tasks.parameters else None
        options, constants = own.taken(function, values, options) if own else (options, ())
        if options:
            out, threads, status, device = unpacked(function, options)
        external: tuple[str, ...] = ()
        if f_ext is not None:
            external, wrenches = arrays.wrenches(f_ext)
            values = (*values, *wrenches)
        softened = () if damping is None else (damping,)
        values = (*values, *softened, *constants)
        key = (function, method, frame, axes, external, damping is not None, status)
        try:
            known = self._calls.get(key)
        except TypeError:  # a name that is no text
            known = None
        call = self.call(key) if known is None else known  # a new kind of call is made
        result: Result
        if device is not None:
            result = self._moved(call, values, out, threads, devices.number(device))
            return result
        if call.plans and threads is None:
            result = devices.repeated(call.plans, values, out)
            if result is not None:
                return result
        if call.site is not None:
            run, plain = call.site.run, out is None and threads is None
            result = run(*values) if plain else run(*values, out=out, threads=threads)
            if result is not NotImplemented:
                return result
        result = self.general(call, values, out, threads)
        return result

    def call(self, key: tuple[Any, ...]) -> Call:
        """A kind of call (a `Key`), made when it is first needed."""
        try:
            found = self._calls.get(key)
        except TypeError:
            self._refuse_names(Key(*key))
            raise
        if found is None:
            made = Key(*key)  # of two threads that make one, both use the first one's
            found = self._calls.setdefault(made, Call(self.tasks, made))
        return found

    def _refuse_names(self, key: Key) -> None:
        """Say which of the names is no text."""
        if not (isinstance(key.method, str) and isinstance(key.axes, str)):
            raise ValueError(f"method {key.method!r}, axes {key.axes!r}: expected two names")
        for name in (key.frame, *key.external):
            if name is not None:
                self.tasks.frame(name)

    def general(self, call: Call, values: tuple[Any, ...], out: Any, threads: Any) -> Any:
        """Run a call with any dtype, layout, batch and ``out``."""
        wide = None if call.site is None else arrays.widened(values)
        if call.site is not None and wide is not None:
            found = call.site.run(*wide, out=out, threads=threads)
            if found is not NotImplemented:
                return found
        return self._direct(call, values, out, threads)

    def _direct(
        self,
        call: Call,
        values: tuple[Any, ...],
        out: Any,
        threads: Any,
        moved_to: Backend | None = None,
    ) -> Any:
        """Run a call without the front."""
        if lazy.packages(values):
            return lazy.run(self, call, values, out, threads)

        def run(batch: AnyBatch, backend: Backend, out: Any) -> Any:
            outputs = [(call.output, batch.dtype)]
            if call.key.status:
                outputs.append(((), FLAGS_DTYPE))
            if not self.tasks.tree.nv:
                found = batch.spread(self._without_joints(call), outputs, out)
            else:
                task = call.task(batch.dtype, backend.kind)
                if task.of_columns is not None:
                    return columns.run(self.kernels, task, batch, backend, out, threads)
                kernel = self._kernel(call, task, batch, backend) if batch.states else None
                found = batch.run(kernel, outputs, out, threads)
                devices.keep_plan(call.plans, batch, kernel, outputs, values, out)
            return found[0] if len(found) == 1 else tuple(found)

        found = self.where_they_are(call.title, call.ports, values, out, threads, run, moved_to)
        if self.tasks.tree.quaternions and not call.key.status:
            self._look_at_quaternions(call, values)
        return found

    def _look_at_quaternions(self, call: Call, values: tuple[Any, ...]) -> None:
        """Warn of configurations whose quaternions are far from unit length, in arrays of NumPy."""
        if call.key.function == "normalize" or devices.elsewhere(values):
            return
        for (name, size), x in zip(call.ports, values, strict=False):
            if name.startswith("q") and size == self.tasks.tree.nq:
                warn_of_norms(self.tasks.tree, call.title, name, x)

    def _moved(
        self, call: Call, values: tuple[Any, ...], out: Any, threads: Any, number: int | None
    ) -> Any:
        """Run a call with arrays of NumPy on a GPU, or on the CPU after all."""
        if number is None:
            return self.general(call, values, out, threads)
        return self._direct(call, values, out, threads, gpu(number))

    def where_they_are(
        self,
        title: str,
        ports: list[tuple[str, int]],
        values: tuple[Any, ...],
        out: Any,
        threads: Any,
        run: Callable[[AnyBatch, Backend, Any], Any],
        moved_to: Backend | None,
    ) -> Any:
        """``run(batch, backend, out)`` with the arguments as a batch, on their device.

        Arrays of NumPy can be moved to another; arrays of other libraries come back as theirs.
        """
        arrays.check_threads(threads)
        if not devices.elsewhere(values):
            batch = arrays.prepare(title, ports, values)
            return run(batch, moved_to or cpu(), out)
        if moved_to is not None:
            raise TypeError(
                f"{title}: device= is for arrays of NumPy; arrays of other libraries are "
                "computed where they are"
            )
        at = devices.where(title, [name for name, _ in ports], values)
        if at.place != "cpu":
            return run(devices.prepare(title, ports, values, at), gpu(at.device), out)
        return devices.on_host(
            at.library,
            values,
            out,
            lambda host, out: run(arrays.prepare(title, ports, host), cpu(), out),
        )

    def _without_joints(self, call: Call) -> list[Array]:
        """The results of a robot without joints, which are the same in every state."""
        result = np.zeros(call.output)
        if result.size:
            zeros = [[0.0] * size for size in call.sizes]
            numbers = list(flatten(evaluate(call.task("float64"), self.tasks.tree, *zeros)))
            result[...] = np.array(numbers, float).reshape(call.output)
        return [result, np.zeros(())] if call.key.status else [result]

    def _kernel(self, call: Call, task: Task, batch: AnyBatch, backend: Backend) -> Kernel:
        """The kernel for a batch; from now on the front of its backend has it too."""
        there = isinstance(batch, devices.DeviceBatch)
        if there or batch.shape or batch.dtype != "float64":
            kernel = self._batch_kernel(call, task, batch, backend)
        else:
            kernel = self.kernels.kernel(task, batch.dtype, ONE, backend)
        if backend.front is not None and call.for_front:
            if call.site is None:
                with build_lock:
                    self._make_site(call, backend.front)
            for site in (call.site, call.parted):
                if site is not None:
                    site.connect(kernel)
        return kernel

    def _batch_kernel(self, call: Call, task: Task, batch: AnyBatch, backend: Backend) -> Kernel:
        """The kernel for many states; a graph that is being captured can load none."""
        key = (task, batch.dtype, BATCH, backend)
        if isinstance(batch, devices.DeviceBatch) and not self.kernels.loaded(*key):
            devices.refuse_loading(call.title, batch.where)
        return self.kernels.kernel(*key)

    def _make_site(self, call: Call, new_front: Callable[[Methods, Keep], Front]) -> None:
        """Put the front before a call, and before the method of the robot's class."""
        if call.site is not None:
            return  # by another thread, meanwhile
        front, key = self._front_of(new_front), call.key
        site = call.site = front.site(call.sizes, call.output, key.status)
        call.for_front = site is not None
        plain = Key(key.function, frame=key.frame)
        usual = key in (plain, plain._replace(frame=None, status=True))
        if call.matrices:
            site = call.parted = self._parted(call, front) if key == plain else None
        if site is not None and usual and not self.tasks.parameters:
            front.serve(key.function, site, key.frame, key.status)

    def _parted(self, call: Call, front: Front) -> Site | None:
        """The site of a method that returns matrices which its result begins with."""
        square = (call.output[-1],) * 2
        return front.site_in_parts(call.sizes, call.output, call.matrices, square)

    def _front_of(self, new_front: Callable[[Methods, Keep], Front]) -> Front:
        """The front of this robot; the caller holds the lock of builds."""
        if self._front is None:
            (methods,) = _announced
            self._front = new_front(methods, cached)
            self.handle = self._front.handle
        return self._front

    def other_site(
        self, backend: Backend, sizes: Sequence[int], shape: Sequence[int], status: bool
    ) -> Site | None:
        """A site for calls that are no function of the robot alone; None where there is none."""
        if backend.front is None:
            return None
        with build_lock:
            return self._front_of(backend.front).site(sizes, shape, status)

    def iterate(
        self,
        values: tuple[Any, ...],
        options: Options,
        method: str,
        f_ext: Wrenches | None = None,
        stop: iterative.Stop = iterative.ANY,
    ) -> Result:
        """Forward dynamics by conjugate gradients; by articulated bodies where they fail."""
        options, constants = self._parameters.taken("forward_dynamics", values, options)
        out, threads, status, device = unpacked("forward_dynamics", options)
        number = None if device is None else devices.number(device)
        external, wrenches = arrays.wrenches(f_ext)
        call, nv = self.call(Key("forward_dynamics", method, external=external)), self.tasks.tree.nv

        def run(batch: AnyBatch, backend: Backend, out: Any) -> tuple[Any, iterative.Iterations]:
            def kernel(task: Task) -> Kernel:
                loops = task.rolled and task.algorithm.can_roll(self.tasks.tree)
                return self._batch_kernel(call, replace(task, rolled=loops), batch, backend)

            task = call.task(batch.dtype, backend.kind)
            if isinstance(batch, devices.DeviceBatch):
                there = cast(DeviceBackend, backend)
                return iterative.solve_there(kernel, task, batch, stop, nv, out, there)
            return iterative.solve(kernel, task, batch, stop, nv, out, threads)

        moved_to = None if number is None else gpu(number)
        values = (*values, *wrenches, *constants)
        ports = call.ports[:-2]
        found = self.where_they_are(call.title, ports, values, out, threads, run, moved_to)
        result: Result = found if status else found[0]
        return result


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


_announced: list[Methods] = []  # one: the class of robots


def announce(owner: type, slot: str, *names: str) -> None:
    """Name the methods of a class of robots, and its slot for `Calls`, that a front looks for.

    Their keywords ``**options`` are shown to users one by one, as `Options` has them.
    """
    functions = {name: getattr(owner, name) for name in names}
    _announced.append(Methods(((owner, slot), (Calls, "handle")), functions))
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
