"""Memory of large results, used again.

The system hands out large arrays page by page, and clears every page, which may take longer than to
compute a result: always beyond 32 MB, which C's allocator never keeps, and below where it gives
memory back. So memory of results from `LARGE` bytes on goes to a pool when an array and all its
views are dropped, and the next result of about that size is written there. The pool keeps
`MOST_KEPT` bytes at most, and no more than an eighth of the machine's memory.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
LARGE = 1 << 23  # bytes from which a result's memory is kept
MOST_KEPT = 1 << 29  # bytes
SLACK = 1.25  # how much larger than a result its memory may be
LINE = 64  # bytes of a line of the cache, with which each begins

_free: dict[int, Array] = {}  # by identity; what was given back last comes last


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """A new array, not filled."""
    number = np.dtype(dtype)
    size = math.prod(shape) * number.itemsize
    if size < LARGE:
        return np.empty(shape, number)
    return np.asarray(_Lent(_taken(size), shape, number))


def _taken(size: int) -> Array:
    """Memory from the pool, where some fits, else new."""
    for key in reversed(list(_free)):
        room = _free.get(key)  # unless another thread was faster
        if room is None or not size + LINE <= room.nbytes <= SLACK * size + LINE:
            continue
        if _free.pop(key, None) is room:
            return room
    try:
        return np.empty(size + LINE, np.uint8)
    except MemoryError:
        _free.clear()
        return np.empty(size + LINE, np.uint8)


class _Lent:
    """Memory that an array uses, and every view of it holds; at its end it goes to the pool."""

    base = None  # for those who follow an array's bases up to the last

    def __init__(self, room: Array, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._room, address = room, room.ctypes.data
        self.__array_interface__ = {
            "version": 3,
            "data": (address + -address % LINE, False),
            "shape": shape,
            "typestr": dtype.str,
        }

    def __del__(self) -> None:
        # No lock: this may run during any other statement. At exit, names may be None.
        if _free is not None:
            _free[id(self._room)] = self._room
            _drop_oldest(_free, _most_kept)


def _drop_oldest(free: dict[int, Array], most: int) -> None:
    """Give the system back what is beyond a number of bytes."""
    rooms = [(key, room) for key in list(free) if (room := free.get(key)) is not None]
    kept = sum(room.nbytes for _, room in rooms)
    for key, room in rooms:
        if kept <= most:
            return
        free.pop(key, None)
        kept -= room.nbytes


def _limit() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return MOST_KEPT
    return min(MOST_KEPT, memory // 8)


_most_kept = _limit()
