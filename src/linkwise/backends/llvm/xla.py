"""A kernel as a handler of XLA's foreign-function interface: compiled code that XLA calls itself.

`handler` calls a kernel of the processor; `launcher` starts one of a GPU on XLA's own stream, by
the driver's function, so that no call passes through Python on either.

Offsets are those of the structures of xla/ffi/api/c_api.h, version 0, on 64-bit machines:

    call frame   8 extensions, 16 functions of XLA, 24 context, 72 arguments' buffers, 112 results'
    functions   48 make an error, 80 get the stream
    extension    8 its type; type 1 asks what the handler is: 24 the answer's place
    answer      24, 28 version of the interface, 32 traits
    buffer      24 data, 32 rank, 40 dimensions
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import addressof

from linkwise.backends.base import Launch
from linkwise.backends.llvm.compile import Loaded, to_object
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.sites import lacked
from linkwise.backends.llvm.target import host
from linkwise.trace.program import Signature

GRAPHS = 1  # trait: the handler only puts work on the stream, which XLA may record and repeat

HANDLER = """
target triple = "{triple}"
@message = private constant [{length} x i8] c"{message}\\00"
define ptr @xla(ptr %frame) {{
entry:
{room}
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
  %ap = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %ap
  %rp = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rp
{buffers}
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
  %i = phi i64 [ 0, %run ], [ %i1, %more ]
  %rows = phi i64 [ 1, %run ], [ %rows1, %more ]
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

# the kernel, and an error (8: resource exhausted) if it counted that it got no memory
CALL = """\
  %lacked = inttoptr i64 {lacked} to ptr
  %before = load i64, ptr %lacked
  %kernel = inttoptr i64 {address} to ptr
  call void %kernel(ptr %ports, ptr %steps, i64 0, i64 %rows)
  %after = load i64, ptr %lacked
  %fine = icmp eq i64 %before, %after
  br i1 %fine, label %done, label %fail
fail:
  store i64 28, ptr %asked
  %a1 = getelementptr i8, ptr %asked, i64 8
  store ptr null, ptr %a1
  %a2 = getelementptr i8, ptr %asked, i64 16
  store ptr @message, ptr %a2
  %a3 = getelementptr i8, ptr %asked, i64 24
  store i32 8, ptr %a3
  %apip = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %apip
  %fp = getelementptr i8, ptr %api, i64 48
  %make = load ptr, ptr %fp
  %error = call ptr %make(ptr %asked)
  ret ptr %error"""

# the stream of the call, a launch on it, once more where the thread has no device yet, and an error
LAUNCH = """\
  %apip = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %apip
  %cp = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %cp
  store i64 32, ptr %asked
  %a1 = getelementptr i8, ptr %asked, i64 8
  store ptr null, ptr %a1
  %a2 = getelementptr i8, ptr %asked, i64 16
  store ptr %context, ptr %a2
  %gp = getelementptr i8, ptr %api, i64 80
  %get = load ptr, ptr %gp
  %refused = call ptr %get(ptr %asked)
  %known = icmp eq ptr %refused, null
  br i1 %known, label %prepare, label %refuse
refuse:
  ret ptr %refused
prepare:
  %a3 = getelementptr i8, ptr %asked, i64 24
  %stream = load ptr, ptr %a3
{blocks}
  %function = inttoptr i64 {handle} to ptr
  %launch = inttoptr i64 {launch} to ptr
  %code = call i32 %launch({arguments})
  %away = icmp eq i32 %code, {not_current}
  br i1 %away, label %enter, label %look_again
enter:
  %set = inttoptr i64 {set_current} to ptr
  %own = inttoptr i64 {context} to ptr
  %entered = call i32 %set(ptr %own)
  %again = call i32 %launch({arguments})
  br label %look_again
look_again:
  %last = phi i32 [ %code, %prepare ], [ %again, %enter ]
  %fine = icmp eq i32 %last, 0
  br i1 %fine, label %done, label %fail
fail:
  store i64 28, ptr %asked
  store ptr @message, ptr %a2
  store i32 13, ptr %a3
  %fp = getelementptr i8, ptr %api, i64 48
  %make = load ptr, ptr %fp
  %error = call ptr %make(ptr %asked)
  ret ptr %error"""

ARGUMENTS = (
    "ptr %function, i32 %grid, i32 1, i32 1, i32 {threads}, i32 1, i32 1, i32 0, ptr %stream, "
    "ptr %places, ptr null"
)


def handler(kernel: LlvmKernel) -> Loaded:
    """Code at ``address["xla"]`` that calls a kernel of the processor."""
    inputs, count = kernel.signature.inputs, _count(kernel.signature)
    width = 8 if kernel.dtype == "float64" else 4
    room = f"  %ports = alloca [{count} x ptr]\n  %steps = alloca [{2 * len(inputs)} x i64]\n"
    room += "  %asked = alloca [4 x i64]"
    lines = [*_pointers(kernel.signature, "%ports", range(count))]
    for i, port in enumerate(inputs):
        lines += _stored("s", "%steps", 2 * i, port.size * width)
        lines += _stored("s", "%steps", 2 * i + 1, width)
    call = CALL.format(address=kernel.address, lacked=addressof(lacked))
    message = "linkwise: out of memory: could not allocate the scratch buffer of a kernel"
    return _loaded(room, lines, call, 0, message)


def launcher(launch: Launch) -> Loaded:
    """Code at ``address["xla"]`` that starts a kernel of a GPU on the stream of XLA's call.

    The kernel's arguments are the number of rows, for each input where it is and the numbers from
    row to row, and where each output is; the driver is told the place of each.
    """
    inputs, count = launch.signature.inputs, _count(launch.signature)
    k = len(inputs)
    arguments = 1 + k + count
    places = [2 * i + 1 if i < k else k + 1 + i for i in range(count)]
    room = (
        f"  %values = alloca [{arguments} x i64]\n  %places = alloca [{arguments} x ptr]\n"
        "  %asked = alloca [4 x i64]"
    )
    lines = [*_pointers(launch.signature, "%values", places)]
    for i, port in enumerate(inputs):
        lines += _stored("s", "%values", 2 * i + 2, port.size)
    for i in range(arguments):
        lines += [
            f"  %v{i} = getelementptr i64, ptr %values, i64 {i}",
            f"  %p{i} = getelementptr ptr, ptr %places, i64 {i}",
            f"  store ptr %v{i}, ptr %p{i}",
        ]
    call = LAUNCH.format(
        blocks="\n".join(_blocks(launch)),
        handle=launch.function,
        launch=launch.launch,
        arguments=ARGUMENTS.format(threads=launch.threads),
        set_current=launch.set_current,
        context=launch.context,
        not_current=launch.not_current,
    )
    return _loaded(room, lines, call, GRAPHS, "linkwise: the GPU refused a kernel")


def _loaded(room: str, buffers: Sequence[str], call: str, traits: int, message: str = "") -> Loaded:
    target = host()
    text = HANDLER.format(
        triple=target.triple,
        room=room,
        buffers="\n".join(buffers),
        rows=ROWS,
        call=call,
        traits=traits,
        message=message,
        length=len(message) + 1,
    )
    return Loaded(to_object(text, target), target, ["xla"])


def _count(signature: Signature) -> int:
    return len(signature.inputs) + len(signature.outputs)


def _pointers(signature: Signature, into: str, places: Sequence[int]) -> Iterator[str]:
    """Where the numbers of each argument and result are, written to a table of 64 bits each."""
    k = len(signature.inputs)
    for i, place in enumerate(places):
        source, number = ("args", i) if i < k else ("rets", i - k)
        yield f"  %b{i}p = getelementptr ptr, ptr %{source}, i64 {number}"
        yield f"  %b{i} = load ptr, ptr %b{i}p"
        yield f"  %d{i}p = getelementptr i8, ptr %b{i}, i64 24"
        yield f"  %d{i} = load ptr, ptr %d{i}p"
        yield f"  %o{i} = getelementptr ptr, ptr {into}, i64 {place}"
        yield f"  store ptr %d{i}, ptr %o{i}"


def _stored(name: str, into: str, place: int, number: int) -> Iterator[str]:
    """A number, written to a table."""
    yield f"  %{name}{place} = getelementptr i64, ptr {into}, i64 {place}"
    yield f"  store i64 {number}, ptr %{name}{place}"


def _blocks(launch: Launch) -> Iterator[str]:
    """As many blocks as `CudaKernel` takes, and the number of rows among the arguments."""
    yield "  store i64 %rows, ptr %values"
    yield f"  %above = add i64 %rows, {launch.threads - 1}"
    yield f"  %whole = udiv i64 %above, {launch.threads}"
    if launch.turns > 1:
        yield f"  %crowded = icmp ugt i64 %whole, {launch.busy}"
        yield f"  %least = select i1 %crowded, i64 {launch.busy}, i64 %whole"
        yield f"  %more_turns = add i64 %whole, {launch.turns - 1}"
        yield f"  %shared = udiv i64 %more_turns, {launch.turns}"
        yield "  %larger = icmp ugt i64 %shared, %least"
        yield "  %blocks = select i1 %larger, i64 %shared, i64 %least"
    else:
        yield "  %blocks = add i64 %whole, 0"
    yield "  %grid = trunc i64 %blocks to i32"
