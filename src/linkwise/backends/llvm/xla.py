"""Kernels as handlers of XLA's foreign-function interface: compiled code that XLA calls itself.

XLA forgets no handler, so there is one for each number of inputs and outputs and each dtype, never
one for a kernel: `handler` calls kernels of the processor; `launcher` starts those of a GPU on the
stream of XLA's call, by the driver's function, so that no call passes through Python on either. A
call names its kernel by two attributes, and the handler looks it up in a table of slots:

    slot    64-bit words: 0 calls that run now, 1 the slot's number, 2 its digest, 3... the kernel
    number  the slot's index, and above it how many kernels of this process had a slot before
    digest  of a kernel's program: an executable that XLA reads back may be of another process

An `Entry` is a kernel in the table. A call counts itself in word 0, then compares number and
digest; where they differ, the kernel is gone and the call is an error. `sweep` clears the number,
then reads word 0, and frees a kernel that no call runs. Either the call sees the cleared number or
`sweep` sees the call.

Offsets are those of the structures of xla/ffi/api/c_api.h, version 0, on 64-bit machines:

    call frame   8 extensions, 16 functions of XLA, 24 context, 72 arguments' buffers, 112 results',
                 136 number of attributes, 144 their types (3: scalar), 160 attributes, by name
    functions   48 make an error, 80 get the stream
    extension    8 its type; type 1 asks for the version of the handler: 24 the answer's address
    answer      24, 28 version of the interface, 32 traits
    buffer      24 data, 32 rank, 40 dimensions
    scalar       8 address of its value
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from linkwise.backends.llvm.compile import Loaded, to_object
from linkwise.backends.llvm.layout import keep_for_ever
from linkwise.backends.llvm.sites import lacked
from linkwise.backends.llvm.target import host

GRAPHS = 1  # trait: the handler only puts work on the stream, which XLA may record and repeat
SLOTS, WORDS = 1 << 17, 16  # of the table, which takes memory where slots are in use only
SCALARS = 3 | 3 << 32  # the types of two attributes
GONE = (
    "linkwise: the robot of this function is gone; keep lw.jax's function as long as what was "
    "compiled from it"
)
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, INTERNAL = 3, 8, 9, 13

HANDLER = """
target triple = "{triple}"
@message = private constant [{length} x i8] c"{message}\\00"
@gone = private constant [{gone_length} x i8] c"{gone}\\00"
define internal ptr @fail(ptr %frame, ptr %text, i32 %code) {{
  %args = alloca [4 x i64]
  store i64 28, ptr %args
  %a1 = getelementptr i8, ptr %args, i64 8
  store ptr null, ptr %a1
  %a2 = getelementptr i8, ptr %args, i64 16
  store ptr %text, ptr %a2
  %a3 = getelementptr i8, ptr %args, i64 24
  store i32 %code, ptr %a3
  %apip = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %apip
  %fp = getelementptr i8, ptr %api, i64 48
  %make = load ptr, ptr %fp
  %error = call ptr %make(ptr %args)
  ret ptr %error
}}
define ptr @xla(ptr %frame) {{
entry:
  %ep = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %ep
  %none = icmp eq ptr %extension, null
  br i1 %none, label %run, label %look
look:
  %tp = getelementptr i8, ptr %extension, i64 8
  %type = load i32, ptr %tp
  %asks = icmp eq i32 %type, 1
  br i1 %asks, label %answer, label %run
answer:
  %mp = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %mp
  %major = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %metadata, i64 28
  store i32 1, ptr %minor
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 {traits}, ptr %traits
  ret ptr null
run:
  %countp = getelementptr i8, ptr %frame, i64 136
  %count = load i64, ptr %countp
  %two = icmp eq i64 %count, 2
  br i1 %two, label %typed, label %gone
typed:
  %typesp = getelementptr i8, ptr %frame, i64 144
  %types = load ptr, ptr %typesp
  %kinds = load i64, ptr %types
  %scalars = icmp eq i64 %kinds, {scalars}
  br i1 %scalars, label %named, label %gone
named:
  %attributesp = getelementptr i8, ptr %frame, i64 160
  %attributes = load ptr, ptr %attributesp
  %digest = call i64 @value(ptr %attributes, i64 0)
  %number = call i64 @value(ptr %attributes, i64 1)
  %index = and i64 %number, {last}
  %table = inttoptr i64 {table} to ptr
  %slot = getelementptr [{words} x i64], ptr %table, i64 %index
  %before = atomicrmw add ptr %slot, i64 1 seq_cst
  %np = getelementptr i64, ptr %slot, i64 1
  %n = load atomic i64, ptr %np seq_cst, align 8
  %dp = getelementptr i64, ptr %slot, i64 2
  %d = load i64, ptr %dp
  %numbered = icmp eq i64 %n, %number
  %digested = icmp eq i64 %d, %digest
  %there = and i1 %numbered, %digested
  br i1 %there, label %call, label %cleared
call:
  %result = call ptr @work(ptr %frame, ptr %slot)
  %within = atomicrmw sub ptr %slot, i64 1 seq_cst
  ret ptr %result
cleared:
  %passed = atomicrmw sub ptr %slot, i64 1 seq_cst
  br label %gone
gone:
  %error = call ptr @fail(ptr %frame, ptr @gone, i32 {gone_code})
  ret ptr %error
}}
define internal i64 @value(ptr %attributes, i64 %which) {{
  %pp = getelementptr ptr, ptr %attributes, i64 %which
  %scalar = load ptr, ptr %pp
  %vp = getelementptr i8, ptr %scalar, i64 8
  %place = load ptr, ptr %vp
  %value = load i64, ptr %place
  ret i64 %value
}}
define internal ptr @work(ptr %frame, ptr %slot) {{
start:
{buffers}
  %ap = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %ap
  %rp = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rp
{pointers}
{rows}
call:
{call}
done:
  ret ptr null
}}
"""

# rows are all axes of the first argument but the last
ROWS = """\
  %rankp = getelementptr i8, ptr %b0, i64 32
  %rank = load i64, ptr %rankp
  %axes = sub i64 %rank, 1
  %dimsp = getelementptr i8, ptr %b0, i64 40
  %dims = load ptr, ptr %dimsp
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %i1, %more ]
  %rows = phi i64 [ 1, %start ], [ %rows1, %more ]
  %going = icmp slt i64 %i, %axes
  br i1 %going, label %more, label %ready
more:
  %np = getelementptr i64, ptr %dims, i64 %i
  %n = load i64, ptr %np
  %rows1 = mul i64 %rows, %n
  %i1 = add i64 %i, 1
  br label %head
ready:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %call, label %done"""

# the kernel, and an error if it counted that it got no memory
CALL = """\
  %lacked = inttoptr i64 {lacked} to ptr
  %before = load i64, ptr %lacked
  %kp = getelementptr i64, ptr %slot, i64 3
  %kernel = load ptr, ptr %kp
  call void %kernel(ptr %ports, ptr %steps, i64 0, i64 %rows)
  %after = load i64, ptr %lacked
  %fine = icmp eq i64 %before, %after
  br i1 %fine, label %done, label %fail
fail:
  %error = call ptr @fail(ptr %frame, ptr @message, i32 {code})
  ret ptr %error"""

# the stream of the call, a launch on it, once more where the thread has no device yet, and an error
LAUNCH = """\
  %apip = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %apip
  %cp = getelementptr i8, ptr %frame, i64 24
  %of_call = load ptr, ptr %cp
  store i64 32, ptr %query
  %a1 = getelementptr i8, ptr %query, i64 8
  store ptr null, ptr %a1
  %a2 = getelementptr i8, ptr %query, i64 16
  store ptr %of_call, ptr %a2
  %gp = getelementptr i8, ptr %api, i64 80
  %get = load ptr, ptr %gp
  %refused = call ptr %get(ptr %query)
  %known = icmp eq ptr %refused, null
  br i1 %known, label %prepare, label %refuse
refuse:
  ret ptr %refused
prepare:
  %a3 = getelementptr i8, ptr %query, i64 24
  %stream = load ptr, ptr %a3
{blocks}
  %code = call i32 %launch({arguments})
  %not_current = trunc i64 %not_current_word to i32
  %away = icmp eq i32 %code, %not_current
  br i1 %away, label %enter, label %look_again
enter:
  %entered = call i32 %set_current(ptr %context)
  %again = call i32 %launch({arguments})
  br label %look_again
look_again:
  %last = phi i32 [ %code, %prepare ], [ %again, %enter ]
  %fine = icmp eq i32 %last, 0
  br i1 %fine, label %done, label %fail
fail:
  %error = call ptr @fail(ptr %frame, ptr @message, i32 {code})
  ret ptr %error"""

ARGUMENTS = (
    "ptr %function, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0, ptr %stream, "
    "ptr %places, ptr null"
)

# as many blocks as `CudaKernel` takes, and the number of rows among the arguments
BLOCKS = """\
  store i64 %rows, ptr %values
  %block = trunc i64 %threads to i32
  %rows_and = add i64 %rows, %threads
  %above = sub i64 %rows_and, 1
  %full = udiv i64 %above, %threads
  %crowded = icmp ugt i64 %full, %busy
  %least = select i1 %crowded, i64 %busy, i64 %full
  %full_and = add i64 %full, %turns
  %above_turns = sub i64 %full_and, 1
  %shared = udiv i64 %above_turns, %turns
  %larger = icmp ugt i64 %shared, %least
  %blocks = select i1 %larger, i64 %shared, i64 %least
  %grid = trunc i64 %blocks to i32"""

# the words of a slot with a kernel of a GPU: the fields of `Launch` after its signature
FIELDS = (
    ("ptr", "function"), ("ptr", "launch"), ("ptr", "set_current"), ("ptr", "context"),
    ("i64", "not_current_word"), ("i64", "threads"), ("i64", "turns"), ("i64", "busy"),
)  # fmt: skip

EXCHANGE = """
target triple = "{triple}"
define i64 @exchange(ptr %slot, i64 %number) {{
  %np = getelementptr i64, ptr %slot, i64 1
  %before = atomicrmw xchg ptr %np, i64 %number seq_cst
  %running = load atomic i64, ptr %slot seq_cst, align 8
  ret i64 %running
}}
"""

_table = keep_for_ever(np.zeros((SLOTS, WORDS), np.int64))
_indices, _generations = count(), count(1)
_free: deque[int] = deque()
_retired: deque[tuple[int, Any]] = deque()  # indices and kernels of entries that are gone
_sweeping = threading.Lock()


class Entry:
    """A kernel in the table, which calls of XLA may name as long as this record lives."""

    def __init__(self, kernel: Any, words: Sequence[int], content: object) -> None:
        """``words``: the kernel's address, or on a GPU the fields of its `Launch` after the
        signature; ``content``: all that its results depend on.

        Raises:
            RuntimeError: if the table has no free slot.
        """
        try:
            index = _free.popleft()
        except IndexError:
            index = next(_indices)
        if index >= SLOTS:
            raise RuntimeError(f"XLA can call {SLOTS:,} kernels of robots; expected fewer robots")
        digest = hashlib.sha256(repr(content).encode()).digest()
        self.number = next(_generations) * SLOTS + index
        self.digest = int.from_bytes(digest[:8], "little", signed=True)
        _table[index, 2] = self.digest
        _table[index, 3 : 3 + len(words)] = words
        _exchange()(_address(index), self.number)
        weakref.finalize(self, _retired.append, (index, kernel)).atexit = False


def sweep(idle: Callable[[], bool]) -> None:
    """Free the kernels of entries that are gone, unless XLA may be about to call them.

    ``idle`` tells whether all that was started before it is called is done. A garbage collection,
    which may happen anywhere, only notes that an entry is gone: here is the place to ask XLA.
    """
    if not _retired or not _sweeping.acquire(blocking=False):
        return
    try:
        number = len(_retired)
        if not idle():
            return
        for _ in range(number):
            index, kernel = _retired.popleft()
            if _exchange()(_address(index), 0):  # a call runs
                _retired.append((index, kernel))
            else:
                _free.append(index)
    finally:
        _sweeping.release()


def _address(index: int) -> int:
    return int(_table.ctypes.data) + 8 * WORDS * index


@cache
def _exchange() -> Callable[[int, int], int]:
    """Code that sets the number of a slot, then reads how many calls run."""
    target = host()
    code = Loaded(to_object(EXCHANGE.format(triple=target.triple), target), target, ["exchange"])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return kind(keep_for_ever(code).address["exchange"])


@cache
def handler(inputs: int, outputs: int, dtype: str) -> Loaded:
    """Code at ``address["xla"]`` that calls kernels of the processor."""
    total, width = inputs + outputs, 8 if dtype == "float64" else 4
    buffers = f"  %ports = alloca [{total} x ptr]\n  %steps = alloca [{2 * inputs} x i64]"
    lines = [*_pointers(inputs, "%ports", range(total))]
    for i in range(inputs):
        lines += _size(i)
        lines.append(f"  %bytes{i} = mul i64 %size{i}, {width}")
        lines += _stored("%steps", 2 * i, f"%bytes{i}")
        lines += _stored("%steps", 2 * i + 1, width)
    call = CALL.format(lacked=addressof(lacked), code=RESOURCE_EXHAUSTED)
    message = "linkwise: out of memory: could not allocate the scratch buffer of a kernel"
    return _loaded(buffers, lines, call, 0, message)


@cache
def launcher(inputs: int, outputs: int) -> Loaded:
    """Code at ``address["xla"]`` that starts kernels of a GPU on the stream of XLA's call.

    The kernel's arguments are the number of rows, for each input its address and the numbers from
    row to row, and the address of each output; the driver takes the address of each argument.
    """
    total = inputs + outputs
    arguments = 1 + inputs + total
    places = [2 * i + 1 if i < inputs else inputs + 1 + i for i in range(total)]
    buffers = (
        f"  %values = alloca [{arguments} x i64]\n  %places = alloca [{arguments} x ptr]\n"
        "  %query = alloca [4 x i64]"
    )
    lines = [*_pointers(inputs, "%values", places)]
    for i in range(inputs):
        lines += _size(i)
        lines += _stored("%values", 2 * i + 2, f"%size{i}")
    for i in range(arguments):
        lines += [
            f"  %v{i} = getelementptr i64, ptr %values, i64 {i}",
            f"  %p{i} = getelementptr ptr, ptr %places, i64 {i}",
            f"  store ptr %v{i}, ptr %p{i}",
        ]
    for i, (kind, name) in enumerate(FIELDS):
        lines += [
            f"  %{name}_p = getelementptr i64, ptr %slot, i64 {3 + i}",
            f"  %{name} = load {kind}, ptr %{name}_p",
        ]
    call = LAUNCH.format(blocks=BLOCKS, arguments=ARGUMENTS, code=INTERNAL)
    return _loaded(buffers, lines, call, GRAPHS, "linkwise: the GPU refused a kernel")


def _loaded(buffers: str, pointers: Sequence[str], call: str, traits: int, message: str) -> Loaded:
    target = host()
    text = HANDLER.format(
        triple=target.triple,
        buffers=buffers,
        pointers="\n".join(pointers),
        rows=ROWS,
        call=call,
        traits=traits,
        message=message,
        length=len(message) + 1,
        gone=GONE,
        gone_length=len(GONE) + 1,
        gone_code=FAILED_PRECONDITION,
        scalars=SCALARS,
        table=_address(0),
        last=SLOTS - 1,
        words=WORDS,
    )
    return Loaded(to_object(text, target), target, ["xla"])


def _pointers(inputs: int, into: str, places: Sequence[int]) -> Iterator[str]:
    """The addresses of the arrays of arguments and results, written to a table of 64-bit words."""
    for i, place in enumerate(places):
        source, number = ("args", i) if i < inputs else ("rets", i - inputs)
        yield f"  %b{i}p = getelementptr ptr, ptr %{source}, i64 {number}"
        yield f"  %b{i} = load ptr, ptr %b{i}p"
        yield f"  %d{i}p = getelementptr i8, ptr %b{i}, i64 24"
        yield f"  %d{i} = load ptr, ptr %d{i}p"
        yield f"  %o{i} = getelementptr ptr, ptr {into}, i64 {place}"
        yield f"  store ptr %d{i}, ptr %o{i}"


def _size(i: int) -> Iterator[str]:
    """The last dimension of an argument."""
    yield f"  %r{i}p = getelementptr i8, ptr %b{i}, i64 32"
    yield f"  %r{i} = load i64, ptr %r{i}p"
    yield f"  %l{i} = sub i64 %r{i}, 1"
    yield f"  %n{i}p = getelementptr i8, ptr %b{i}, i64 40"
    yield f"  %n{i} = load ptr, ptr %n{i}p"
    yield f"  %z{i} = getelementptr i64, ptr %n{i}, i64 %l{i}"
    yield f"  %size{i} = load i64, ptr %z{i}"


def _stored(into: str, place: int, number: int | str) -> Iterator[str]:
    """A number, written to a table."""
    yield f"  %s{place} = getelementptr i64, ptr {into}, i64 {place}"
    yield f"  store i64 {number}, ptr %s{place}"
