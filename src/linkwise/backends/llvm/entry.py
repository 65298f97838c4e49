"""Ways into a tile: a loop over a batch, and a function that Python calls directly.

``batch(ports, begin, end)`` runs rows [begin, end) of contiguous row-major arrays. The last
incomplete tile is copied to scratch rows, padded with its last state, so the same tile function
computes every state and nothing is read or written out of bounds.

``call(self, args, nargs, kwnames)`` is a METH_FASTCALL | METH_KEYWORDS function for one state: it
checks its NumPy arguments itself, and hands everything unusual to ``self``, the general path.
Addresses of Python objects are external symbols, bound when the object is loaded, so that a cached
object holds none.
"""

from __future__ import annotations

from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.program import BYTE, Signature

# offsets in CPython's and NumPy's structures (64-bit builds with the GIL; checked when loaded)
OBJECT_TYPE, TUPLE_SIZE, TUPLE_ITEMS = 8, 16, 24
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 56, 64
READABLE, WRITABLE = 0x101, 0x501  # C-contiguous and aligned; and writeable


def render_batch(signature: Signature, lanes: Lanes) -> str:
    """IR of the loop over tiles."""
    T, W = lanes.number.llvm, lanes.width
    inputs = [(T, port.size) for port in signature.inputs]
    outputs = [("i8" if slot.kind == BYTE else T, slot.size) for slot in signature.outputs]
    arrays = [*inputs, *outputs]
    k, last = len(arrays), len(inputs)
    bases = "\n".join(
        f"  %at{i} = getelementptr ptr, ptr %ports, i64 {i}\n  %base{i} = load ptr, ptr %at{i}"
        for i in range(k)
    )
    rows = "\n".join(
        f"  %o{i} = mul i64 %row, {n}\n  %p{i} = getelementptr {E}, ptr %base{i}, i64 %o{i}"
        for i, (E, n) in enumerate(arrays)
    )
    rooms = "\n".join(f"  %pad{i} = alloca [{W * n} x {E}]" for i, (E, n) in enumerate(arrays))
    pads = "\n".join(_copy_in(i, n, E) for i, (E, n) in enumerate(inputs))
    copies = "\n".join(_copy_out(last + i, n, E) for i, (E, n) in enumerate(outputs))
    pointers = ", ".join(f"ptr %p{i}" for i in range(k))
    padded = ", ".join(f"ptr %pad{i}" for i in range(k))
    return f"""
define void @batch(ptr %ports, i64 %begin, i64 %end) #2 {{
entry:
{rooms}
{bases}
  br label %head
head:
  %row = phi i64 [ %begin, %entry ], [ %next, %body ]
  %next = add i64 %row, {W}
  %whole = icmp sle i64 %next, %end
  br i1 %whole, label %body, label %tail
body:
{rows}
  call void @tile({pointers})
  br label %head
tail:
  %left = sub i64 %end, %row
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %pad, label %done
pad:
  %final = sub i64 %end, 1
  br label %lanes
lanes:
  %lane = phi i64 [ 0, %pad ], [ %lane1, %lane_end ]
  %ahead = add i64 %row, %lane
  %state = call i64 @llvm.smin.i64(i64 %ahead, i64 %final)
  br label %in0_start
{pads}
in{last}_start:
  br label %lane_end
lane_end:
  %lane1 = add i64 %lane, 1
  %filled = icmp eq i64 %lane1, {W}
  br i1 %filled, label %run, label %lanes
run:
  call void @tile({padded})
  br label %out{last}_start
{copies}
out{k}_start:
  br label %done
done:
  ret void
}}
"""


def _copy_in(i: int, n: int, T: str) -> str:
    """Copy one row of one input to its scratch lane."""
    return f"""in{i}_start:
  %src{i}o = mul i64 %state, {n}
  %src{i} = getelementptr {T}, ptr %base{i}, i64 %src{i}o
  %dst{i}o = mul i64 %lane, {n}
  %dst{i} = getelementptr {T}, ptr %pad{i}, i64 %dst{i}o
  br label %in{i}_loop
in{i}_loop:
  %j{i} = phi i64 [ 0, %in{i}_start ], [ %j{i}n, %in{i}_step ]
  %more{i} = icmp slt i64 %j{i}, {n}
  br i1 %more{i}, label %in{i}_step, label %in{i + 1}_start
in{i}_step:
  %s{i} = getelementptr {T}, ptr %src{i}, i64 %j{i}
  %v{i} = load {T}, ptr %s{i}
  %d{i} = getelementptr {T}, ptr %dst{i}, i64 %j{i}
  store {T} %v{i}, ptr %d{i}
  %j{i}n = add i64 %j{i}, 1
  br label %in{i}_loop"""


def _copy_out(i: int, n: int, T: str) -> str:
    """Copy the rows that were asked for from scratch to one output."""
    return f"""out{i}_start:
  %total{i} = mul i64 %left, {n}
  %goal{i}o = mul i64 %row, {n}
  %goal{i} = getelementptr {T}, ptr %base{i}, i64 %goal{i}o
  br label %out{i}_loop
out{i}_loop:
  %c{i} = phi i64 [ 0, %out{i}_start ], [ %c{i}n, %out{i}_step ]
  %cmore{i} = icmp slt i64 %c{i}, %total{i}
  br i1 %cmore{i}, label %out{i}_step, label %out{i + 1}_start
out{i}_step:
  %cp{i} = getelementptr {T}, ptr %pad{i}, i64 %c{i}
  %cv{i} = load {T}, ptr %cp{i}
  %cq{i} = getelementptr {T}, ptr %goal{i}, i64 %c{i}
  store {T} %cv{i}, ptr %cq{i}
  %c{i}n = add i64 %c{i}, 1
  br label %out{i}_loop"""


def render_call(signature: Signature, lanes: Lanes) -> str:
    """IR of the function Python calls for one state; its program has one output."""
    (result,) = signature.outputs
    out = Lines()
    k = len(signature.inputs)
    data = [
        _checked_array(out, i, (port.size,), READABLE) for i, port in enumerate(signature.inputs)
    ]
    checks = "\n".join(out.text)
    given = Lines()
    given._count = 10_000
    target = _checked_array(given, k, result.shape, WRITABLE)
    for port, source in zip(signature.inputs, data, strict=True):
        _apart(given, lanes, (source, port.size), (target, result.size))
    inputs = "".join(f"ptr {p}, " for p in data)
    shape = ", ".join(f"i64 {n}" for n in result.shape)
    nd = len(result.shape)
    defaults = "ptr null, ptr null, i32 0, ptr null"  # strides, data, flags, parent
    return f"""
@ndarray = external global i8
@dtype = external global i8
@name_out = external global i8
declare ptr @new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @as_result(ptr)
declare ptr @vectorcall(ptr, ptr, i64, ptr)
declare void @incref(ptr)
@shape = private constant [{nd} x i64] [{shape}]

define ptr @call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #2 {{
entry:
  %count = icmp eq i64 %nargs, {k}
  br i1 %count, label %inputs, label %slow
inputs:
{checks}
  %plain = icmp eq ptr %kwnames, null
  br i1 %plain, label %fresh, label %keyword
fresh:
  call void @incref(ptr @dtype)
  %new = call ptr @new_array(ptr @ndarray, ptr @dtype, i32 {nd}, ptr @shape, {defaults})
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %error, label %run
run:
  %newp = getelementptr i8, ptr %new, i64 {ARRAY_DATA}
  %newd = load ptr, ptr %newp
  call void @tile({inputs}ptr %newd)
  %result = call ptr @as_result(ptr %new)
  ret ptr %result
keyword:
  %kwp = getelementptr i8, ptr %kwnames, i64 {TUPLE_SIZE}
  %kwn = load i64, ptr %kwp
  %one = icmp eq i64 %kwn, 1
  br i1 %one, label %named, label %slow
named:
  %kwi = getelementptr i8, ptr %kwnames, i64 {TUPLE_ITEMS}
  %kw = load ptr, ptr %kwi
  %isout = icmp eq ptr %kw, @name_out
  br i1 %isout, label %target, label %slow
target:
{chr(10).join(given.text)}
  call void @tile({inputs}ptr {target})
  call void @incref(ptr %a{k})
  ret ptr %a{k}
slow:
  %answer = call ptr @vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
error:
  ret ptr null
}}
"""


def _checked_array(out: Lines, i: int, shape: tuple[int, ...], flags: int) -> str:
    """Go on only if argument i is an exact ndarray of our dtype, layout and shape."""
    out.add(f"  %ap{i} = getelementptr ptr, ptr %args, i64 {i}")
    out.add(f"  %a{i} = load ptr, ptr %ap{i}")
    conditions = [
        out.let(f"icmp eq ptr {_field(out, i, OBJECT_TYPE, 'ptr')}, @ndarray"),
    ]
    _require(out, conditions[0])
    have = out.let(f"and i32 {_field(out, i, ARRAY_FLAGS, 'i32')}, {flags}")
    checks = [
        out.let(f"icmp eq ptr {_field(out, i, ARRAY_DTYPE, 'ptr')}, @dtype"),
        out.let(f"icmp eq i32 {have}, {flags}"),
        out.let(f"icmp eq i32 {_field(out, i, ARRAY_NDIM, 'i32')}, {len(shape)}"),
    ]
    both = out.let(f"and i1 {checks[0]}, {checks[1]}")
    _require(out, out.let(f"and i1 {both}, {checks[2]}"))
    if shape:
        dims = _field(out, i, ARRAY_SHAPE, "ptr")
        fits = ""
        for axis, n in enumerate(shape):
            at = out.let(f"getelementptr i64, ptr {dims}, i64 {axis}")
            size = out.let(f"load i64, ptr {at}")
            same = out.let(f"icmp eq i64 {size}, {n}")
            fits = out.let(f"and i1 {fits}, {same}") if fits else same
        _require(out, fits)
    return _field(out, i, ARRAY_DATA, "ptr")


def _field(out: Lines, i: int, offset: int, kind: str) -> str:
    at = out.let(f"getelementptr i8, ptr %a{i}, i64 {offset}")
    return out.let(f"load {kind}, ptr {at}")


def _require(out: Lines, condition: str) -> None:
    """Take the general path unless the condition holds."""
    good = out.label("ok")
    out.add(f"  br i1 {condition}, label %{good}, label %slow, !prof !1")
    out.start(good)


def _apart(out: Lines, lanes: Lanes, a: tuple[str, int], b: tuple[str, int]) -> None:
    """Take the general path if two arrays overlap: the kernel reads and writes in any order."""
    ends = []
    for pointer, size in (a, b):
        ends.append(out.let(f"getelementptr {lanes.number.llvm}, ptr {pointer}, i64 {size}"))
    before = out.let(f"icmp ule ptr {ends[0]}, {b[0]}")
    after = out.let(f"icmp ule ptr {ends[1]}, {a[0]}")
    _require(out, out.let(f"or i1 {before}, {after}"))
