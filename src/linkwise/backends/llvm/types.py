"""Number types, lanes and operations as LLVM writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Number:
    """A floating-point type as LLVM names it."""

    dtype: str
    llvm: str
    suffix: str  # of intrinsics
    bits: int

    def constant(self, x: float) -> str:
        """A literal, exact: LLVM takes the bits of a double even for a float."""
        value = float(np.float32(x)) if self.bits == 32 else float(x)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    @property
    def eps(self) -> float:
        """Rounding unit."""
        return float(np.finfo(self.dtype).eps)

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.bits // 8

    @property
    def integer(self) -> str:
        """The integer type of the same size."""
        return f"i{self.bits}"


NUMBERS = {
    "float64": Number("float64", "double", "f64", 64),
    "float32": Number("float32", "float", "f32", 32),
}


@dataclass(frozen=True)
class Lanes:
    """A number type, and how many states go side by side in one register."""

    number: Number
    width: int

    def vector(self, scalar: str) -> str:
        """The LLVM type of ``width`` scalars."""
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    @property
    def type(self) -> str:
        """The LLVM type of a value."""
        return self.vector(self.number.llvm)

    @property
    def integer(self) -> str:
        """The LLVM type of a value's bits."""
        return self.vector(self.number.integer)

    @property
    def suffix(self) -> str:
        """Suffix of intrinsics on a value."""
        lanes = "" if self.width == 1 else f"v{self.width}"
        return lanes + self.number.suffix

    def splat(self, literal: str, scalar: str | None = None) -> str:
        """One literal in every lane."""
        return literal if self.width == 1 else f"splat ({scalar or self.number.llvm} {literal})"

    def constant(self, x: float) -> str:
        """One number in every lane."""
        return self.splat(self.number.constant(x))

    def bits(self, x: int) -> str:
        """One integer in every lane."""
        return self.splat(str(x), self.number.integer)


class Lines:
    """IR text under construction; ``stem`` begins the names of its values."""

    def __init__(self, stem: str = "%t") -> None:
        self.text: list[str] = []
        self._stem = stem
        self._count = 0
        self.current = "entry"  # label of the block being written

    def add(self, line: str) -> None:
        """Append a line."""
        self.text.append(line)

    def let(self, instruction: str) -> str:
        """Append an instruction and name its result."""
        name = f"{self._stem}{self._count}"
        self._count += 1
        self.text.append(f"  {name} = {instruction}")
        return name

    def element(self, kind: str, base: str, index: int | str, times: str = "") -> str:
        """The address of an element of an array, or of one at a multiple of an index."""
        index = self.let(f"mul i64 {index}, {times}") if times else index
        return self.let(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def load(self, kind: str, base: str, index: int | str, align: int = 0) -> str:
        """Read an element of an array."""
        at = self.element(kind, base, index)
        return self.let(f"load {kind}, ptr {at}" + (f", align {align}" if align else ""))

    def store(self, kind: str, value: str, base: str, index: int | str, align: int = 0) -> None:
        """Write an element of an array."""
        at = self.element(kind, base, index)
        self.add(f"  store {kind} {value}, ptr {at}" + (f", align {align}" if align else ""))

    def prefetch(self, kind: str, base: str, index: int | str) -> None:
        """Send for an element that will be read soon; there need not be one."""
        at = self.element(kind, base, index)
        self.add(f"  call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    @contextmanager
    def counting(self, count: int | str, first: str = "0", step: int = 1) -> Iterator[str]:
        """A loop around what is written inside, over ``first, first + step ...`` below a count."""
        before, head, body, done = self.current, *map(self.label, ("head", "body", "done"))
        self.add(f"  br label %{head}")
        self.start(head)
        at = len(self.text)  # the phi goes here, once the back edge is known
        k = f"%{head}.k"
        more = self.let(f"icmp slt i64 {k}, {count}")
        self.add(f"  br i1 {more}, label %{body}, label %{done}")
        self.start(body)
        yield k
        following = self.let(f"add i64 {k}, {step}")
        phi = f"  {k} = phi i64 [ {first}, %{before} ], [ {following}, %{self.current} ]"
        self.text.insert(at, phi)
        self.add(f"  br label %{head}")
        self.start(done)

    def function(self, head: str) -> str:
        """The lines as the body of an internal function."""
        body = "\n".join(self.text)
        return f"\ndefine internal void {head} {{\nentry:\n{body}\n  ret void\n}}\n"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.text.append(f"{label}:")
        self.current = label

    def label(self, stem: str) -> str:
        """A fresh label."""
        self._count += 1
        return f"{stem}{self._count}"


# operation -> its instruction, or several: {0} and {1} are its values, further numbers what the
# instructions before have made. T, I and B are lanes of numbers, integers and masks, S the suffix
# of intrinsics on numbers.
INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("fadd {T} {0}, {1}",),
    "sub": ("fsub {T} {0}, {1}",),
    "mul": ("fmul {T} {0}, {1}",),
    "div": ("fdiv {T} {0}, {1}",),
    "neg": ("fneg {T} {0}",),
    "abs": ("call {T} @llvm.fabs.{S}({T} {0})",),
    "sqrt": ("call {T} @llvm.sqrt.{S}({T} {0})",),
    "fma": ("call {T} @llvm.fma.{S}({T} {0}, {T} {1}, {T} {2})",),
    "fms": ("fneg {T} {2}", "call {T} @llvm.fma.{S}({T} {0}, {T} {1}, {T} {3})"),
    "fnma": ("fneg {T} {0}", "call {T} @llvm.fma.{S}({T} {3}, {T} {1}, {T} {2})"),
    "choose": ("select {B} {0}, {T} {1}, {T} {2}",),
    "greater": ("fcmp ogt {T} {0}, {1}",),
    "equal": ("fcmp oeq {T} {0}, {1}",),
    "unequal": ("icmp ne {I} {0}, {1}",),
    "below": ("icmp slt {I} {0}, {1}",),
    "differ": ("xor {B} {0}, {1}",),
    "both": ("and {B} {0}, {1}",),
    "bits": ("bitcast {T} {0} to {I}",),
    "from_bits": ("bitcast {I} {0} to {T}",),
    "to_number": ("sitofp {I} {0} to {T}",),
    "plus": ("add {I} {0}, {1}",),
    "minus": ("sub {I} {0}, {1}",),
    "times": ("mul {I} {0}, {1}",),
    "and": ("and {I} {0}, {1}",),
    "or": ("or {I} {0}, {1}",),
    "xor": ("xor {I} {0}, {1}",),
    "left": ("shl {I} {0}, {1}",),
    "right": ("lshr {I} {0}, {1}",),
    "right_signed": ("ashr {I} {0}, {1}",),
    "carry": ("icmp ult i64 {0}, {1}", "zext i1 {2} to i64"),
    "high": (
        "zext i64 {0} to i128",
        "zext i64 {1} to i128",
        "mul i128 {2}, {3}",
        "lshr i128 {4}, 64",
        "trunc i128 {5} to i64",
    ),
    "word": ("getelementptr i64, ptr @two_pi_inverse, i64 {0}", "load i64, ptr {1}"),
}
APART: dict[str, tuple[str, ...]] = {  # multiply-adds of a machine that has none
    "fma": ("fmul {T} {0}, {1}", "fadd {T} {3}, {2}"),
    "fms": ("fmul {T} {0}, {1}", "fsub {T} {3}, {2}"),
    "fnma": ("fmul {T} {0}, {1}", "fsub {T} {2}, {3}"),
}


class Code:
    """Operations on lanes, written as IR; what `elementary.py` writes its functions with."""

    def __init__(self, out: Lines, lanes: Lanes, fused: bool) -> None:
        self.out, self.lanes, self.fused = out, lanes, fused
        self.bits = lanes.number.bits
        self.number, self.integer = lanes.constant, lanes.bits
        self._table = INSTRUCTIONS if fused else INSTRUCTIONS | APART
        self._names = {
            "T": lanes.type, "I": lanes.integer, "B": lanes.vector("i1"), "S": lanes.suffix,
        }  # fmt: skip

    def do(self, operation: str, *values: str) -> str:
        """One more operation; returns its result."""
        for instruction in self._table[operation]:
            values = (*values, self.out.let(instruction.format(*values, **self._names)))
        return values[-1]

    def any(self, mask: str) -> str:
        """Whether the mask holds in any lane."""
        width = self.lanes.width
        if width == 1:
            return mask
        together = self.out.let(f"bitcast {self.lanes.vector('i1')} {mask} to i{width}")
        return self.out.let(f"icmp ne i{width} {together}, 0")
