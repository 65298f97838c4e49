"""Where CPython and NumPy keep things in memory: measured in this process, never assumed.

The compiled entry reads a few fields of objects directly. Their offsets differ between builds of
Python (the free-threaded one has a longer header), so they are derived from the size of the header
and then checked on real objects. Where a check fails, the compiled entry is not used.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes."""

    type: int  # of any object
    data: int  # of an array, as all below
    ndim: int
    shape: int
    strides: int
    dtype: int
    flags: int
    weakrefs: int
    capsule: int  # the pointer in a capsule
    length: int  # of a tuple
    items: int
    counted: bool  # whether an object begins with the number of its references, in 32 bits


@cache
def layout() -> Layout | None:
    """The layout of this process, or None where objects are not where they are looked for."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    header = object.__basicsize__
    found = Layout(header - 8, header, header + 8, header + 16, header + 24, header + 40,
                   header + 48, header + 56, header, header, tuple.__basicsize__,
                   _counted())  # fmt: skip
    return found if _holds(found) else None


def _counted() -> bool:
    """Whether references are counted in one place; free-threaded builds count in two."""
    thing = object()
    alone = ctypes.c_uint32.from_address(id(thing)).value
    others = [thing] * 1000
    return (alone, ctypes.c_uint32.from_address(id(thing)).value) == (1, 1 + len(others))


def _holds(at: Layout) -> bool:
    probe = np.zeros((3, 5), np.float32)[:, ::2]

    def read(offset: int, kind: Any) -> Any:
        return kind.from_address(id(probe) + offset).value

    pair, holder, weak = ctypes.c_int64 * 2, capsule(12345), weakref.ref(probe)
    words = ("first", "second")
    return bool(
        read(at.type, ctypes.c_void_p) == id(np.ndarray)
        and read(at.data, ctypes.c_void_p) == probe.__array_interface__["data"][0]
        and read(at.ndim, ctypes.c_int) == 2
        and tuple(pair.from_address(read(at.shape, ctypes.c_void_p))) == probe.shape
        and tuple(pair.from_address(read(at.strides, ctypes.c_void_p))) == probe.strides
        and read(at.dtype, ctypes.c_void_p) == id(probe.dtype)
        and read(at.flags, ctypes.c_int) & 0x501 == 0x500  # aligned, writeable, not contiguous
        and read(at.weakrefs, ctypes.c_void_p) == id(weak)
        and ctypes.c_int64.from_address(id(words) + at.length).value == len(words)
        and ctypes.c_void_p.from_address(id(words) + at.items + 8).value == id(words[1])
        and ctypes.c_void_p.from_address(id(holder) + at.capsule).value == 12345
    )


def capsule(address: int) -> Any:
    """A Python object that holds an address."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return new(address, None, None)


def keep_for_ever(thing: Kept) -> Kept:
    """Let code in memory point to an object, even while the interpreter takes itself apart."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def slot_offset(instance: Any, name: str) -> int | None:
    """Where an instance keeps the value of a slot; None where it is not found."""
    marker = object()
    setattr(instance, name, marker)
    size = type(instance).__basicsize__
    words = (ctypes.c_void_p * (size // 8)).from_address(id(instance))
    places = [8 * k for k, word in enumerate(words) if word == id(marker)]
    return places[0] if len(places) == 1 else None


def data_address(array: Any) -> int:
    """Where an array's numbers are."""
    at = layout()
    if at is None:
        return int(array.__array_interface__["data"][0])
    return ctypes.c_void_p.from_address(id(array) + at.data).value or 0
