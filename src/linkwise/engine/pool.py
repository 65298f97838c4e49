"""Memory of large results, used again.

The system hands out large arrays page by page, and clears every page: of a result beyond 32 MB that
takes longer than to compute it. So memory of large results goes to a pool when an array and all its
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
    for key, room in reversed(list(_free.items())):
        fits = size + LINE <= room.nbytes <= SLACK * size + LINE
        if fits and _free.pop(key, None) is not None:  # no other thread was faster
            return room
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
        # without a lock, since this may run in the midst of anything; by names that live as long as
        # this module does, which the end of the interpreter may have taken
        if _free is not None and _most_kept is not None:
            _free[id(self._room)] = self._room
            _drop_oldest(_free, _most_kept)


def _drop_oldest(free: dict[int, Array], most: int) -> None:
    """Give the system back what is beyond a number of bytes."""
    rooms = list(free.items())
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
