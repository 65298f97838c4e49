"""What a backend is to the engine: programs in, kernels out.

    text   = backend.render(program, dtype, form)   source code, for people and for `build`
    code   = backend.build(text)                    what the disk cache keeps
    kernel = backend.load(code, signature, dtype, form)

A form is what a kernel is made for: ``ONE`` state with the least delay, or a ``BATCH`` of them at
the highest rate. Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from linkwise.trace.program import Program, Signature

ONE, BATCH = "one", "batch"

Array = NDArray[Any]


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


class Backend(Protocol):
    """A machine that runs programs."""

    name: str

    @property
    def identity(self) -> str:
        """Everything that built code depends on besides its program: part of the cache key."""

    def render(self, program: Program, dtype: str, form: str) -> str:
        """The program as source code."""

    def build(self, text: str, *, apart: bool = False) -> bytes:
        """Compile source code; ``apart``: where an interrupt can end it at once."""

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> Kernel:
        """Bring compiled code into this process."""
