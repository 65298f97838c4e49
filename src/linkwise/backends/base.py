"""What a backend is to the engine: programs in, kernels out.

    text   = backend.render(program, dtype, form)   source code, for people and for `build`
    code   = backend.build(text)                    what the disk cache keeps
    kernel = backend.load(code, signature, dtype, form)

A form is what a kernel is made for: ``ONE`` state with the least delay, or a ``BATCH`` of them at
the highest rate. Both give the same bits.

A backend may also have a `Front`: compiled code that takes the usual calls of a robot without
Python, and leaves all others to it. ``choice.py`` has the table of backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from linkwise.trace.program import Program, Signature

ONE, BATCH = "one", "batch"

Array = NDArray[Any]
# code of a backend for a key, from the disk cache or made now
Keep = Callable[["Backend", tuple[Any, ...], Callable[[], bytes]], bytes]


class Rows(NamedTuple):
    """An array on a device as a kernel takes it: (states, size), numbers of a row side by side."""

    pointer: int
    states: int
    size: int
    dtype: str
    row: int  # numbers from one row to the next


class View(NamedTuple):
    """An array on a device: strides in numbers, not bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


class Effort(NamedTuple):
    """What it takes to build a program, as far as its number of operations tells."""

    seconds: float  # of one operation of a small program
    moderate: int  # operations at which one takes twice as long
    bytes: int  # of memory, per operation

    def estimate(self, operations: int) -> float:
        """Seconds."""
        return self.seconds * operations * (1.0 + operations / self.moderate)


USUAL = Effort(90e-6, 60_000, 4_000)  # of LLVM, measured on chains of 7 to 60 joints


class Kernel(Protocol):
    """Compiled code for one program, one number type and one form."""

    signature: Signature

    def __call__(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int | None = None
    ) -> None:
        """Fill the outputs (states, size) from the inputs (states, size).

        Rows of inputs may have any strides. Raises unless every array has the number of states,
        the size, the type and the alignment that the code relies on.
        """


class DeviceKernel(Kernel, Protocol):
    """A kernel that also fills arrays that are on its device already."""

    def launch(self, inputs: Sequence[Rows], outputs: Sequence[Rows], stream: int) -> None:
        """Start filling the outputs on a stream; returns before that is done.

        Raises for arrays that do not fit, as a call with arrays of the host does.
        """

    def starter(self, states: int, rows: Sequence[int]) -> Callable[[int, Sequence[int]], None]:
        """Starts the kernel for so many states, and numbers from row to row of each input.

        It is given a stream and pointers, to arrays known to fit: each input's, each output's.
        """

    @property
    def compiled_launch(self) -> Launch:
        """How compiled code starts it; raises NotImplementedError for a kernel of counted loops."""


class Launch(NamedTuple):
    """What compiled code needs to start a kernel of a GPU without Python: addresses and numbers.

    ``launch`` and ``set_current`` are functions of CUDA's driver: cuLaunchKernel, and
    cuCtxSetCurrent for a thread that has no device yet, which the driver tells by ``not_current``.
    """

    signature: Signature
    function: int  # the kernel
    launch: int
    set_current: int
    context: int
    not_current: int
    threads: int  # of a block
    turns: int  # most states of a thread
    busy: int  # blocks up to which a thread has one


class Site(Protocol):
    """One kind of call of one robot, as a front takes it."""

    @property
    def run(self) -> Callable[..., Any]:
        """``run(*values, out=None, threads=None)``: the result, or NotImplemented where Python
        must look at the arguments.
        """

    def connect(self, kernel: Kernel) -> None:
        """Use a kernel from now on."""


class Front(Protocol):
    """Compiled code before the kernels of one robot."""

    handle: Any  # what compiled methods look for at the end of their path from the robot

    def site(self, sizes: Sequence[int], shape: Sequence[int], status: bool) -> Site | None:
        """The site of a kind of call: numbers of each input, shape of the result for one state.

        None where such calls, or this interpreter, have none.
        """

    def site_in_parts(
        self, sizes: Sequence[int], shape: Sequence[int], parts: int, part: Sequence[int]
    ) -> Site | None:
        """The site of a call that returns a tuple: parts of its result, each of the shape ``part``,
        from the result's beginning on. It takes single states only.
        """

    def serve(self, method: str, site: Site, frame: str | None, status: bool) -> None:
        """Let a method of the robot's class use a site where no option is given but these."""


class Methods(NamedTuple):
    """The methods of a class of robots that a front may give a compiled entry."""

    path: tuple[tuple[type, str], ...]  # classes, and slots of theirs, from a robot to its handle
    functions: dict[str, Callable[..., Any]]  # by name, as the class was written


class Backend(Protocol):
    """A machine that runs programs."""

    name: str
    kind: str  # of device: whose measured times decide which method ``auto`` takes (engine/auto.py)
    apart: bool  # a build that takes long can run where an interrupt ends it
    effort: Effort  # of a build

    @property
    def identity(self) -> str:
        """Everything that built code depends on besides its program: part of the cache key."""

    def tile(self, dtype: str) -> int:
        """States of a batch that lie side by side in inputs that are tiled (`Port`)."""

    def ordered(self, program: Program, dtype: str, form: str) -> Program:
        """The program in an order of execution that suits the machine."""

    def render(self, program: Program, dtype: str, form: str) -> str:
        """The program as source code."""

    def build(self, text: str, *, apart: bool = False) -> bytes:
        """Compile source code; ``apart``: where an interrupt can end it at once."""

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> Kernel:
        """Bring compiled code into this process."""

    @property
    def front(self) -> Callable[[Methods, Keep], Front] | None:
        """Makes the front of one robot; None: this backend has no such thing."""


class Block(Protocol):
    """An array of our own on a device; it offers ``__cuda_array_interface__``."""

    @property
    def view(self) -> View:
        """Where it is."""


class DeviceMemory(Protocol):
    """Arrays of our own on one device, made and filled on its default stream."""

    @property
    def stream(self) -> int:
        """That stream."""

    def wait(self) -> None:
        """Until everything on the stream is done."""

    def capturing(self, stream: int) -> bool:
        """Whether work on a stream of anybody's is not done now but recorded for a graph."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Block:
        """A new array without gaps."""

    def borrowed(self, view: View, owner: Any) -> Block:
        """An array of somebody else's numbers."""

    def sent(self, numbers: Array) -> Block:
        """Numbers of the host as an array on the device."""

    def fetch(self, block: Any, numbers: Array) -> None:
        """Copy an array of ours to one without gaps on the host, once our stream is done."""

    def copy(self, source: View, target: View) -> None:
        """Copy numbers between arrays of one shape, whatever their strides and number types."""

    def gatherer(self, places: Array, dtype: str) -> Callable[[int, Sequence[int]], None]:
        """Starts filling an array from places of another, given a stream and two pointers: of that
        and of the array.
        """

    def summer(
        self, count: int, rules: Sequence[tuple[int, int]]
    ) -> Callable[[int, Sequence[int]], None]:
        """Return a start that finds the status flags that any of ``count`` has, given a stream and
        two pointers: of these and of the result. Rules apply in order: if one of the first flags
        is set, only the second are left.
        """

    def take(self, size: int, stream: int) -> int:
        """The address of so many bytes, for work on a stream of anybody's from now on."""

    def give(self, pointer: int, stream: int) -> None:
        """Give memory back that was taken, once the work on the stream so far is done."""


class DeviceTree(Protocol):
    """Pieces of a chain, joined in a tree, or given their shares; see ``trace/stages.py``.

    Levels lie one after another, each half as long as the one before, rounded up.
    """

    def starts(self, pieces: int) -> list[Callable[[int, Sequence[int]], None]]:
        """Start all levels, one after another, given a stream and pointers: the maps of all levels,
        and outward what the chain and what the pieces of all levels are given.
        """


class DeviceBackend(Backend, Protocol):
    """A machine with a memory of its own."""

    @property
    def memory(self) -> DeviceMemory:
        """Its memory."""

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> DeviceKernel:
        """Bring compiled code to the device."""

    def render_tree(self, program: Program, dtype: str) -> list[str]:
        """A tree of pairs as source code, each pair by a program; perhaps several, of which each
        level takes the best.
        """

    def load_tree(self, codes: Sequence[bytes], program: Program, dtype: str) -> DeviceTree:
        """Bring the compiled code of a tree to the device."""
