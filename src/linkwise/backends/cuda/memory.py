"""Arrays on a GPU that are not another library's: made, sent, copied; and others as we see them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from linkwise.backends.base import Array, View, contiguous
from linkwise.backends.cuda.driver import Driver, Function, Start, libraries
from linkwise.trace.program import FLAGS_C, FLAGS_DTYPE

NUMBERS = {"float32": "float", "float64": "double", "int64": "long long", FLAGS_DTYPE: FLAGS_C}
COPY = """\
#define THREADS 128
extern "C" __global__ void __launch_bounds__(THREADS)
linkwise(const long long count, const {source}* from, {target}* to{arguments})
{{
    long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x, at = 0, there = 0;
    if (k >= count) return;
{axes}
    to[there] = ({target})from[at];
}}
"""
# numbers from places; and the status flags that any of many states has
GATHER = """\
#define THREADS 128
extern "C" __global__ void __launch_bounds__(THREADS)
linkwise(const long long count, const {source}* from, {source}* to, const long long* places)
{{
    const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < count) to[k] = from[places[k]];
}}
"""
SUM_UP = """\
#define THREADS 256
extern "C" __global__ void __launch_bounds__(THREADS)
linkwise(const long long count, const unsigned short* from, unsigned short* to)
{{
    __shared__ unsigned short found[THREADS];
    unsigned all = 0;
    for (long long k = threadIdx.x; k < count; k += THREADS) all |= from[k];
    found[threadIdx.x] = (unsigned short)all;
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < THREADS; ++k) all |= found[k];
{rules}
    *to = (unsigned short)all;
}}
"""
AXIS = "    at += k % n{i} * from{i}; there += k % n{i} * to{i}; k /= n{i};"


class Block:
    """An array on a device, for as long as this object lives."""

    def __init__(self, view: View, stream: int, owner: Any) -> None:
        self.view, self._stream, self.owner = view, stream, owner

    @property
    def shape(self) -> tuple[int, ...]:
        """Its axes."""
        return self.view.shape

    @property
    def dtype(self) -> str:
        """The type of its numbers."""
        return self.view.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For libraries that take it; they wait for the stream on which it is filled."""
        dtype = np.dtype(self.dtype)
        return {
            "shape": self.shape,
            "typestr": dtype.str,
            "data": (self.view.pointer, False),
            "strides": tuple(dtype.itemsize * s for s in self.view.strides),
            "stream": self._stream,
            "version": 3,
        }


class Memory:
    """Arrays of our own on one device, made and filled on the driver's default stream."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._made: dict[str, Function] = {}

    @property
    def stream(self) -> int:
        """The stream of work with these arrays."""
        return self._driver.stream

    def wait(self) -> None:
        """Until everything on the stream is done."""
        self._driver.wait()

    def capturing(self, stream: int) -> bool:
        """Whether work on a stream of anybody's is not done now but recorded for a graph."""
        return self._driver.capturing(stream)

    def take(self, size: int, stream: int) -> int:
        """The address of so many bytes, for work on a stream of anybody's from now on."""
        return self._driver.take(size, stream)

    def give(self, pointer: int, stream: int) -> None:
        """Give memory back that was taken, once the work on the stream so far is done."""
        self._driver.give(pointer, stream)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Block:
        """A new array without gaps."""
        lent = self._driver.lend(prod(shape) * np.dtype(dtype).itemsize)
        return self.borrowed(View(lent.pointer, shape, contiguous(shape), dtype), lent)

    def borrowed(self, view: View, owner: Any) -> Block:
        """An array of somebody else's numbers."""
        return Block(view, self.stream, owner)

    def sent(self, numbers: Array) -> Block:
        """Numbers of the host as an array on the device."""
        plain = np.ascontiguousarray(numbers)
        lent = self._driver.lend(plain.nbytes)
        lent.send(plain)
        view = View(lent.pointer, numbers.shape, contiguous(numbers.shape), plain.dtype.name)
        return self.borrowed(view, lent)

    def fetch(self, block: Block, numbers: Array) -> None:
        """Copy an array of ours to one without gaps on the host, once our stream is done."""
        block.owner.fetch(numbers)

    def copy(self, source: View, target: View) -> None:
        """Copy numbers between arrays of one shape, whatever their strides and number types."""
        count, axes = prod(target.shape), len(target.shape)
        if not count:
            return
        function = self._of(copy_text(source.dtype, target.dtype, axes))
        each = zip(target.shape, source.strides, target.strides, strict=True)
        numbers = [number for axis in each for number in axis]
        blocks = -(-count // function.facts.threads)
        start = function.prepare(blocks, [count, None, None, *numbers])
        start(self.stream, (source.pointer, target.pointer))

    def gatherer(self, places: Array, dtype: str) -> Start:
        """Starts filling an array from places of another: pointers of that and of the array."""
        listed = self.sent(np.asarray(places, np.int64))
        function = self._of(GATHER.format(source=NUMBERS[dtype]))
        blocks = -(-len(places) // function.facts.threads)
        ready = function.prepare(blocks, [len(places), None, None, None])
        return lambda stream, pointers: ready(stream, (*pointers, listed.view.pointer))

    def summer(self, count: int, rules: Sequence[tuple[int, int]]) -> Start:
        """Return a start that finds the status flags that any of ``count`` has: pointers of these
        and of the result.

        Rules, one after another: where one of the first bits is set, only the second are left.
        """
        lines = [f"    if (all & {bits}u) all &= {left}u;" for bits, left in rules]
        return self._of(SUM_UP.format(rules="\n".join(lines))).prepare(1, [count, None, None])

    def _of(self, text: str) -> Function:
        """The function of a text, made once."""
        if text not in self._made:
            self._made[text] = self._driver.load(self._driver.compile(text, {}))
        return self._made[text]


def copy_text(source: str, target: str, axes: int) -> str:
    """CUDA source of a copy: a thread per number, whose place the axes tell, the last one first."""
    words = [f", const long long {name}{i}" for i in range(axes) for name in ("n", "from", "to")]
    steps = [AXIS.format(i=i) for i in reversed(range(axes))]
    return COPY.format(
        source=NUMBERS[source],
        target=NUMBERS[target],
        arguments="".join(words),
        axes="\n".join(steps),
    )


def seen(array: Any, stream: int = -1) -> tuple[View, int | None]:
    """An array of another library, and its GPU (None: memory of the host).

    Work on the stream waits for the array; -1: nobody waits.
    """
    libraries()  # says what is missing
    from cuda.core.utils import StridedMemoryView

    found = StridedMemoryView.from_any_interface(array, stream_ptr=stream)
    shape = tuple(found.shape)
    view = View(int(found.ptr), shape, found.strides or contiguous(shape), str(found.dtype))
    return view, found.device_id if found.is_device_accessible else None
