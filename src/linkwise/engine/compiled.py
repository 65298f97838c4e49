"""`CompiledFunction`: from arrays to a kernel, one path for whatever is compiled for a robot.

    fast entry (compiled; the usual arrays), or else: lists, dtypes, Dask, other libraries, GPUs
    -> a batch: rows of one dtype, where the arrays are  ->  a kernel fills the outputs

Functions of the table, derivatives, inverse kinematics, controllers, grasps and the functions of
PyTorch and JAX are compiled functions, so that ``out``, ``threads``, ``device``, dtypes, lazy
arrays and the fast entry are the same for all of them. Only what fills the outputs may differ
(`Equations.run`): columns of large matrices, and iterations whose products are kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from linkwise.backends.base import BATCH, ONE, Backend, Front, Keep, Kernel, Methods, Site
from linkwise.backends.choice import cpu, gpu
from linkwise.backends.process import build_lock
from linkwise.engine import arrays, devices, lazy
from linkwise.engine.equations import Equations
from linkwise.engine.kernels import Kernels, cached
from linkwise.engine.quaternions import warn_of_norms
from linkwise.model.tree import Tree
from linkwise.trace.program import FLAGS, FLAGS_DTYPE, NUMBER, Port, Slot

Array = NDArray[Any]
AnyBatch = arrays.Batch | devices.DeviceBatch
# the equations for a dtype and a kind of device: the best method may differ
Choice = Callable[[str, str], Equations]


Remake = Callable[[], tuple[Any, ...]]  # what `__reduce__` returns


class Runtime:
    """What all compiled functions of a robot share: kernels, and the fast entry before them."""

    __slots__ = ("_front", "handle", "kernels", "name", "tree")

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name
        self.kernels = Kernels(tree, name)
        self.handle: Any = None  # what compiled methods look for, once there is a front
        self._front: Front | None = None

    def front(self, new_front: Callable[[Methods, Keep], Front]) -> Front:
        """The front of this robot; the caller holds the lock of builds."""
        if self._front is None:
            (methods,) = announced
            self._front = new_front(methods, cached)
            self.handle = self._front.handle
        return self._front


announced: list[Methods] = []  # one: the class of robots


class Entry(NamedTuple):
    """The method of the robot's class that stands before a compiled function."""

    method: str
    frame: str | None
    status: bool
    served: bool  # whether calls of the method may go straight to it
    matrices: int = 0  # of which the result consists, and which the method returns one by one


class CompiledFunction:
    """A function of states of one robot, compiled when it is first called."""

    def __init__(
        self,
        runtime: Runtime,
        title: str,
        equations: Equations | Choice,
        inputs: Sequence[tuple[str, Port]],
        outputs: Sequence[Slot],
        *,
        entry: Entry | None = None,
        constant: Callable[[], list[Array]] | None = None,
        remake: Remake | None = None,
        any_norm: bool = False,
    ) -> None:
        """Args:
        equations: to be compiled, or which of them are for a dtype and a kind of device.
        inputs: the arguments, with the names that messages call them.
        entry: the method that calls it, which can then begin in compiled code.
        constant: the results if they are the same in all states (a robot without joints).
        remake: returns how another process makes it, as ``__reduce__`` does.
        any_norm: quaternions may have any norm.
        """
        self.runtime, self.title, self.entry = runtime, title, entry
        self._choice: Choice = (
            (lambda _dtype, _kind: equations) if isinstance(equations, Equations) else equations
        )
        self.ports = [(name, port.size) for name, port in inputs]
        self.outputs = tuple(outputs)
        self.plans: devices.Plans = {}  # of repeated calls with arrays on devices
        self.fast: Callable[..., Any] = declined  # the entry's: NotImplemented if it declines
        self.site: Site | None = None
        self.parted: Site | None = None  # the method's, if that returns parts of the result
        self._constant, self._remake = constant, remake
        flags = [slot.kind == FLAGS for slot in self.outputs]
        self.status = any(flags)
        self._fits_front = flags in ([False], [False, True])
        watched = runtime.tree.quaternions and not any_norm and not self.status
        numbered = enumerate(inputs) if watched else ()
        self._watched = [(k, name) for k, (name, port) in numbered if port.configuration]
        self._equations: dict[tuple[str, str], Equations] = {}
        self._kernels: dict[tuple[str, str, Backend], Kernel] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self._remake is None:
            raise TypeError(f"{self.title}: this compiled function cannot be pickled")
        return self._remake()

    def __call__(
        self,
        values: Sequence[Any],
        out: Any = None,
        threads: int | None = None,
        device: str | None = None,
    ) -> Any:
        """Run it on arrays (..., size), one for each input; several outputs are a tuple.

        Args:
            values: of any array library; lists and numbers go where the arrays are.
            out: an array for the first output.
            threads: the most threads of the processor.
            device: "cuda": arrays of NumPy are moved to that GPU, and the results back.
        """
        if device is not None:
            number = devices.number(device)
            if number is not None:
                return self._direct(values, out, threads, gpu(number))
        elif self.plans and threads is None:
            result = devices.repeated(self.plans, values, out)
            if result is not None:
                return result
        if out is None and threads is None:
            result = self.fast(*values)
        else:
            result = self.fast(*values, out=out, threads=threads)
        return self.general(values, out, threads) if result is NotImplemented else result

    def general(self, values: Sequence[Any], out: Any = None, threads: Any = None) -> Any:
        """The same for arguments that the fast entry declined."""
        wide = None if self.site is None else arrays.widened(values)
        if wide is not None:
            result = self.fast(*wide, out=out, threads=threads)
            if result is not NotImplemented:
                return result
        return self._direct(values, out, threads)

    def _direct(
        self, values: Sequence[Any], out: Any, threads: Any, moved_to: Backend | None = None
    ) -> Any:
        """Run it without the fast entry."""
        if lazy.packages(values):
            return lazy.run(self, values, out, threads)

        def run(batch: AnyBatch, backend: Backend, out: Any) -> Any:
            results = self._results(batch, backend, values, out, threads)
            return results[0] if len(results) == 1 else tuple(results)

        results = where_they_are(self.title, self.ports, values, out, threads, run, moved_to)
        if self._watched and not devices.elsewhere(values):
            for k, name in self._watched:
                warn_of_norms(self.runtime.tree, self.title, name, values[k])
        return results

    def _results(
        self, batch: AnyBatch, backend: Backend, values: Sequence[Any], out: Any, threads: Any
    ) -> Sequence[Any]:
        """All outputs of a batch."""
        if self._constant is not None:
            return batch.spread(self._constant(), self.shapes(batch), out)
        equations = self.equations(batch.dtype, backend.kind)
        if equations.run is not None:
            return equations.run(self, batch, backend, out, threads)
        kernel, shapes = self.kernel_for(batch, backend), self.shapes(batch)
        results = batch.run(kernel, shapes, out, threads)
        devices.keep_plan(self.plans, batch, kernel, shapes, values, out)
        return results

    def shapes(self, batch: AnyBatch) -> list[tuple[tuple[int, ...], str]]:
        """The shape and dtype of each output of a batch."""
        number = batch.dtype
        return [(x.shape, number if x.kind == NUMBER else FLAGS_DTYPE) for x in self.outputs]

    # -- kernels ---------------------------------------------------------------------------------

    def equations(self, dtype: str = "float64", kind: str = "cpu") -> Equations:
        """The equations for a dtype and a kind of device."""
        chosen = self._equations.get((dtype, kind))
        if chosen is None:
            chosen = self._equations[dtype, kind] = self._choice(dtype, kind)
        return chosen

    def kernel_for(self, batch: AnyBatch, backend: Backend) -> Kernel | None:
        """The kernel for a batch; None without states, or of functions without results."""
        if not (batch.states and any(slot.size for slot in self.outputs)):
            return None
        if isinstance(batch, devices.DeviceBatch):
            if (batch.dtype, BATCH, backend) not in self._kernels:
                devices.refuse_loading(self.title, batch.where)
            return self.kernel(batch.dtype, BATCH, backend)
        many = batch.shape or batch.dtype != "float64" or backend.kind != "cpu"
        return self.kernel(batch.dtype, BATCH if many else ONE, backend)

    def kernel(self, dtype: str, form: str = BATCH, backend: Backend | None = None) -> Kernel:
        """The kernel for a dtype and form, of the processor unless another backend is named.

        From then on the fast entry has it too.
        """
        machine = backend or cpu()
        kernel = self._kernels.get((dtype, form, machine))
        if kernel is None:
            equations = self.equations(dtype, machine.kind)
            kernel = self.runtime.kernels.kernel(equations, dtype, form, machine)
            if self._fits_front and machine.front is not None and equations.segments is None:
                self._connect(kernel, machine.front)
            self._kernels[dtype, form, machine] = kernel
        return kernel

    def _connect(self, kernel: Kernel, new_front: Callable[[Methods, Keep], Front]) -> None:
        """Let the fast entry use a kernel."""
        with build_lock:  # calls may run in the site already: there is one for ever
            if self.site is None:
                self._make_site(self.runtime.front(new_front))
            for site in (self.site, self.parted):
                if site is not None:
                    site.connect(kernel)
        if self.site is not None:
            self.fast = self.site.run

    def _make_site(self, front: Front) -> None:
        """Put the front before this function, and before the method that calls it."""
        sizes, shape, entry = [size for _, size in self.ports], self.outputs[0].shape, self.entry
        site = self.site = front.site(sizes, shape, self.status)
        self._fits_front = site is not None
        if entry is None or not entry.served:
            return
        if entry.matrices:
            square = (shape[-1],) * 2
            site = self.parted = front.site_in_parts(sizes, shape, entry.matrices, square)
        if site is not None:
            front.serve(entry.method, site, entry.frame, entry.status)


def declined(*_values: Any, out: Any = None, threads: Any = None) -> Any:
    """What the fast entry answers to arguments that it does not take."""
    return NotImplemented


def where_they_are(
    title: str,
    ports: Sequence[tuple[str, int]],
    values: Sequence[Any],
    out: Any,
    threads: Any,
    run: Callable[[AnyBatch, Backend, Any], Any],
    moved_to: Backend | None = None,
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
