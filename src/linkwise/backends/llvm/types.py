"""Number types and lanes as LLVM writes them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Number:
    """A floating-point type: its LLVM names and the constants of its sincos."""

    dtype: str
    llvm: str
    suffix: str  # of intrinsics
    bits: int
    shift: float  # 1.5 * 2**mantissa: adding it rounds to an integer in the low bits

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
    "float64": Number("float64", "double", "f64", 64, 1.5 * 2.0**52),
    "float32": Number("float32", "float", "f32", 32, 1.5 * 2.0**23),
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
    """IR text under construction."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._count = 0
        self.current = "entry"  # label of the block being written

    def add(self, line: str) -> None:
        """Append a line."""
        self.text.append(line)

    def let(self, instruction: str) -> str:
        """Append an instruction and name its result."""
        name = f"%t{self._count}"
        self._count += 1
        self.text.append(f"  {name} = {instruction}")
        return name

    def start(self, label: str) -> None:
        """Begin a block."""
        self.text.append(f"{label}:")
        self.current = label

    def label(self, stem: str) -> str:
        """A fresh label."""
        self._count += 1
        return f"{stem}{self._count}"
