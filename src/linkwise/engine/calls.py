"""From a call to a kernel: one path for every function, option and kind of array.

A `Call` is one kind of call (`Key`): it knows the names and sizes of its arguments and has the
kernels. An `Entry` puts the compiled entry before it, which takes the usual arguments in C and
leaves the rest to `Call.general`. `Calls` has all entries of one robot.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.base import BATCH, ONE
from linkwise.backends.llvm import sites
from linkwise.backends.llvm.layout import capsule
from linkwise.engine import arrays, entry, iterative
from linkwise.engine.kernels import Kernels, build_lock
from linkwise.engine.tasks import Key, Tasks
from linkwise.model.tree import Tree
from linkwise.trace.tracer import Task, evaluate, flatten

Array = NDArray[Any]
Wrenches = Mapping[str, ArrayLike]
Result = Any  # an array; with ``status=True`` the pair (array, status bits)


class Options(TypedDict, total=False):
    """What every function takes besides its own arguments."""

    out: Any  # an array to write the result to
    threads: int | None  # the most threads to use; None: as many as the work is worth
    status: bool  # also return, per state, what was wrong with it: bits of `Status`


NONE = Options()
# what users call the functions that stand behind another
TITLES = {"dynamics_and_inverse": "operational_dynamics"} | dict.fromkeys(
    ("pivots", "factor", "factor_inverse", "apply_factor", "apply_factor_inverse",
     "apply_factor_transpose", "apply_factor_inverse_transpose"), "innovations",
)  # fmt: skip
THREADED = 200_000  # nanoseconds of work from which Python decides about threads
QUICK = 20_000  # nanoseconds of work during which other Python threads wait


class Call:
    """One kind of call of one robot."""

    def __init__(self, tasks: Tasks, kernels: Kernels, key: Key) -> None:
        self._tasks, self._kernels, self.key = tasks, kernels, key
        self.title = TITLES.get(key.function, key.function)
        task = tasks.task(key)
        self._by_dtype = {"float64": task}
        self.ports = [(port.name, port.size) for port in task.ports(tasks.tree)]
        self.output = task.algorithm.output_shape(tasks.tree)
        self.iterates = task.algorithm.iterates
        for k, name in enumerate(key.external, len(task.algorithm.inputs)):
            self.ports[k] = (f"f_ext[{name!r}]", 6)
        self.again: Callable[..., Result] | None = None  # the compiled entry, where there is one
        self.site = sites.Site()
        self.sizes = [size for _, size in self.ports]
        self.usual = not self.iterates and sites.fill(
            self.site, self.sizes, self.output, 1 + key.status
        )

    def task(self, dtype: str) -> Task:
        """The task for a number type: the best method may differ."""
        found = self._by_dtype.get(dtype)
        if found is None:
            found = self._by_dtype[dtype] = self._tasks.task(self.key, dtype)
        return found

    def general(self, *values: Any, out: Any = None, threads: int | None = None) -> Result:
        """Any dtype, layout, batch and ``out``."""
        wide = None if self.again is None else arrays.widened(values)
        if self.again is not None and wide is not None:
            return self.again(*wide, out=out, threads=threads)
        arrays.check_threads(threads)
        batch = arrays.prepare(self.title, self.ports, values)
        result = arrays.target(out, (*batch.shape, *self.output), batch)
        bits = np.empty(batch.shape, np.uint8) if self.key.status else None
        if not self._tasks.tree.nv:
            self._fill_without_joints(result, bits)
        elif batch.states:
            outputs = [x.reshape(batch.states, -1) for x in (result, bits) if x is not None]
            self.kernel(batch)(batch.rows, outputs, threads)
        done = arrays.deliver(out, result)
        return done if bits is None else (done, bits if bits.shape else bits[()])

    def _fill_without_joints(self, result: Array, bits: Array | None) -> None:
        """Write the numbers of a robot without joints, which are the same in every state."""
        if result.size:
            zeros = [[0.0] * size for size in self.sizes]
            numbers = list(flatten(evaluate(self.task("float64"), self._tasks.tree, *zeros)))
            result[...] = np.array(numbers, float).reshape(self.output)
        if bits is not None:
            bits[...] = 0

    def kernel(self, batch: arrays.Batch) -> Any:
        """The kernel for a batch; from now on the compiled entry has it too."""
        form = BATCH if batch.shape or batch.dtype != "float64" else ONE
        kernel = self._kernels.kernel(self.task(batch.dtype), batch.dtype, form)
        if form == ONE:
            self.site.one = kernel.address
        else:
            self.site.most_rows = max(self.site.most_rows, int(THREADED / kernel.cost))
            self.site.quick_rows = max(self.site.quick_rows, int(QUICK / kernel.cost))
            field = "wide" if batch.dtype == "float64" else "narrow"
            setattr(self.site, field, kernel.address)
        return kernel

    def iterate(
        self, values: tuple[Any, ...], stop: iterative.Stop, out: Any, threads: int | None
    ) -> tuple[Array, iterative.Iterations]:
        """Solve by iteration, and by articulated bodies where that does not converge."""
        arrays.check_threads(threads)
        batch = arrays.prepare(self.title, self.ports[:-2], values)
        task = self.task(batch.dtype)
        tolerance, limit = stop.numbers(batch.dtype, self._tasks.tree.nv)
        full = arrays.constant_rows(batch, tolerance, limit)
        result = arrays.target(out, (*batch.shape, *self.output), batch)
        info = iterative.solve(self._kernels, task, full, result, tolerance, threads)
        return arrays.deliver(out, result), iterative.Iterations(
            *(x.reshape(batch.shape) for x in info)
        )


class Entry:
    """A call behind the compiled entry, where this interpreter allows one."""

    def __init__(self, call: Call) -> None:
        self.call, self._general = call, call.general
        call.site.general = id(self._general)
        call.site.most_rows = 1
        self.run: Callable[..., Result] = self._general
        address = entry.site_address() if call.usual else None
        if address is not None:
            self.run = call.again = sites.site_function(address, call.site)
            weakref.finalize(self, sites.drop_spares, call.site).atexit = False


class Calls:
    """All calls of one robot."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tasks = Tasks(tree, name)
        self.kernels = Kernels(tree, name)
        self._entries: dict[tuple[Any, ...], Entry] = {}
        self._slots = (sites.Slot * sites.METHODS)()
        self._names: list[str] = []  # of frames, held for as long as the slots point to them

    @property
    def capsule(self) -> Any:
        """The address of the slots, as the compiled methods of `Robot` look for it."""
        return capsule(ctypes.addressof(self._slots))

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
        out = threads = None
        status = False
        if options:
            out, threads, status = _unpacked(function, options)
        external, wrenches = arrays.wrenches(f_ext)
        values = (*values, *wrenches)
        if damping is not None:
            values = (*values, damping)
        key = (function, method, frame, axes, external, damping is not None, status)
        try:
            found = self._entries[key]
        except (KeyError, TypeError):  # a new kind of call, or a name that is no text
            found = self.entry(key)
        if threads is not None:
            return found.run(*values, out=out, threads=threads)
        return found.run(*values) if out is None else found.run(*values, out=out)

    def entry(self, key: tuple[Any, ...]) -> Entry:
        """The entry of a kind of call (a `Key`), made when it is first needed."""
        try:
            found = self._entries.get(key)
        except TypeError:
            self._refuse_names(Key(*key))
            raise
        if found is None:
            made = Key(*key)
            fresh = Entry(Call(self.tasks, self.kernels, made))
            with build_lock:  # of two threads that made one, the first one's is used by both
                found = self._entries.setdefault(made, fresh)
                if found is fresh:
                    self._connect(made, found)
        return found

    def _connect(self, key: Key, found: Entry) -> None:
        """Let the compiled method of `Robot` find the entry of a call without options."""
        place = entry.place(key.function)
        plain = Key(key.function, frame=key.frame)
        if place is None or key not in (plain, plain._replace(frame=None, status=True)):
            return
        slot, site = self._slots[place], ctypes.addressof(found.call.site)
        if key.frame is None and key.status:
            slot.watched = site
        elif key.frame is None:
            slot.site = site
        elif slot.count < sites.FRAMES:
            self._names.append(key.frame)
            slot.named[slot.count] = sites.NamedSite(id(key.frame), site)
            slot.count += 1

    def _refuse_names(self, key: Key) -> None:
        """Say which of the names is no text."""
        if not (isinstance(key.method, str) and isinstance(key.axes, str)):
            raise ValueError(f"method {key.method!r}, axes {key.axes!r}: expected two names")
        for name in (key.frame, *key.external):
            if name is not None:
                self.tasks.frame(name)

    def iterate(
        self,
        values: tuple[Any, ...],
        options: Options,
        method: str,
        f_ext: Wrenches | None = None,
        stop: iterative.Stop = iterative.ANY,
    ) -> Result:
        """Forward dynamics by conjugate gradients."""
        out, threads, status = _unpacked("forward_dynamics", options)
        external, wrenches = arrays.wrenches(f_ext)
        values = (*values, *wrenches)
        key = Key("forward_dynamics", method, external=external)
        result, info = self.entry(key).call.iterate(values, stop, out, threads)
        return (result, info) if status else result


def _unpacked(function: str, options: Options) -> tuple[Any, int | None, bool]:
    """``out``, ``threads`` and ``status``; any other keyword is a mistake."""
    known = ("out" in options) + ("threads" in options) + ("status" in options)
    if known != len(options):
        wrong = next(name for name in options if name not in Options.__annotations__)
        title = TITLES.get(function, function)
        raise TypeError(f"Robot.{title}() got an unexpected keyword argument {wrong!r}")
    return options.get("out"), options.get("threads"), bool(options.get("status"))
