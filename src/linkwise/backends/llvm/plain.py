"""What takes the compiled entry's place where there is none: plain single states, in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.backends.base import ONE, Array, Kernel
from linkwise.backends.llvm.run import LlvmKernel

FLOAT64 = np.dtype("float64")
_ONE_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Room:
    """Arrays of one call at a time, and the table of their addresses.

    To copy a state takes less time than to ask NumPy where it is.
    """

    def __init__(self, sizes: Sequence[int], shape: Sequence[int]) -> None:
        self.rows = [np.empty(size) for size in sizes]
        self.result: Array = np.empty(tuple(shape))
        addresses = [a.ctypes.data for a in (*self.rows, self.result)]
        self._ports = (ctypes.c_void_p * len(addresses))(*addresses)
        self.address = ctypes.addressof(self._ports)

    def filled(self, values: Sequence[Any]) -> bool:
        """Copy the inputs; False unless each is a plain float64 array of the right shape."""
        if len(values) != len(self.rows):
            return False
        for row, value in zip(self.rows, values, strict=True):
            if type(value) is not np.ndarray or value.dtype is not FLOAT64:
                return False
            if value.shape != row.shape:
                return False
            row[:] = value
        return True


class PlainSite:
    """One kind of call; whatever is not plain is left to Python's general way."""

    def __init__(self, sizes: Sequence[int], shape: Sequence[int]) -> None:
        self._sizes, self._shape = sizes, shape
        self._kernel: LlvmKernel | None = None
        self._one: Any = None
        self._free: list[Room] = []  # a call takes one, so that threads do not meet

    def connect(self, kernel: Kernel) -> None:
        """Use the kernel of a single state from now on."""
        assert isinstance(kernel, LlvmKernel)
        if kernel.form == ONE and not kernel.needs_memory:
            self._kernel, self._one = kernel, _ONE_TYPE(kernel.address)

    def run(self, *values: Any, out: Any = None, threads: Any = None) -> Any:
        """The result of one plain state, or NotImplemented."""
        if self._one is None or out is not None or threads is not None:
            return NotImplemented
        try:
            room = self._free.pop()
        except IndexError:
            room = Room(self._sizes, self._shape)
        done = room.filled(values)
        if done:
            self._one(room.address)
        result = room.result.copy() if self._shape else room.result[()]
        self._free.append(room)
        return result if done else NotImplemented
