"""A kernel as a handler of XLA's foreign-function interface: compiled code that XLA calls itself.

Offsets are those of the structures of xla/ffi/api/c_api.h, version 0, on 64-bit machines: a call
frame has its extensions at 8, its arguments' buffers at 72 and its results' at 112; a buffer its
data at 24, its rank at 32 and its dimensions at 40. A frame with an extension of type 1 asks for
the version of the interface, and is answered.
"""

from __future__ import annotations

from linkwise.backends.llvm.compile import Loaded, to_object
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import host


def handler(kernel: LlvmKernel) -> Loaded:
    """Code at ``address["xla"]``: rows are all axes of the first argument but the last."""
    target = host()
    return Loaded(to_object(_text(kernel), target), target, ["xla"])


def _text(kernel: LlvmKernel) -> str:
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    width = 8 if kernel.dtype == "float64" else 4
    k, count = len(inputs), len(inputs) + len(outputs)
    lines = []
    for i in range(count):
        source, place = ("args", i) if i < k else ("rets", i - k)
        lines += [
            f"  %b{i}p = getelementptr ptr, ptr %{source}, i64 {place}",
            f"  %b{i} = load ptr, ptr %b{i}p",
            f"  %d{i}p = getelementptr i8, ptr %b{i}, i64 24",
            f"  %d{i} = load ptr, ptr %d{i}p",
            f"  %o{i} = getelementptr ptr, ptr %ports, i64 {i}",
            f"  store ptr %d{i}, ptr %o{i}",
        ]
    for i, port in enumerate(inputs):
        for j, step in enumerate((port.size * width, width)):
            lines += [
                f"  %s{i}_{j} = getelementptr i64, ptr %steps, i64 {2 * i + j}",
                f"  store i64 {step}, ptr %s{i}_{j}",
            ]
    body = "\n".join(lines)
    return f"""
target triple = "{host().triple}"
define ptr @xla(ptr %frame) {{
entry:
  %ports = alloca [{count} x ptr]
  %steps = alloca [{2 * k} x i64]
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
  ret ptr null
run:
  %ap = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %ap
  %rp = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rp
{body}
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
  br i1 %some, label %call, label %done
call:
  %kernel = inttoptr i64 {kernel.address} to ptr
  call void %kernel(ptr %ports, ptr %steps, i64 0, i64 %rows)
  br label %done
done:
  ret ptr null
}}
"""
