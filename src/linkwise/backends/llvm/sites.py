"""Sites: what the compiled entry must know of one call of one robot, as C structures.

A site is filled by ``front.py``, which keeps alive what it points to, and read by the code of
``entry.py``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from linkwise.backends.llvm.layout import capsule, keep_for_ever

SITE, METHOD, TABLE = "site", "method", "runtime"  # symbols of the entry: method0, method1, ...
MOST_INPUTS = 12
MOST_OUTPUTS = 2
SPARES = 2  # one may still be held by the variable that the next result goes to
MOST_PARTS = 4  # arrays that one result may be returned as
OUT_AXES = 3
SCRATCH = 512  # numbers of one call that may need to be copied to a row of their own
METHODS = 64  # methods of a class that may have a compiled entry
FRAMES = 16  # names of frames that a method looks up by itself

_FASTCALL_KEYWORDS = 0x0080 | 0x0002


class Site(ctypes.Structure):
    """One call: sizes, limits and kernels."""

    _fields_ = (
        ("one", ctypes.c_void_p),  # one(ports): a single float64 state
        ("wide", ctypes.c_void_p),  # batch(ports, steps, begin, end): float64 states
        ("narrow", ctypes.c_void_p),  # the same for float32
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),  # 1, or 2: the second has the flags of each state
        ("axes", ctypes.c_int64),  # of the first output
        ("shape", ctypes.c_int64 * OUT_AXES),
        ("size", ctypes.c_int64),
        ("most_rows", ctypes.c_int64),  # more are left to Python: threads and interrupts
        ("quick_rows", ctypes.c_int64),  # up to these, other threads are not let in
        ("sizes", ctypes.c_int64 * MOST_INPUTS),
        ("spares", ctypes.c_void_p * SPARES),  # results of single states, to be used again
        ("next_spare", ctypes.c_int64),
        # a result that is returned as several arrays, equal parts of it from its beginning on:
        ("parts", ctypes.c_int64),  # how many; 0: as one array
        ("part_axes", ctypes.c_int64),
        ("part_shape", ctypes.c_int64 * OUT_AXES),
        ("part_bytes", ctypes.c_int64),
        ("wholes", ctypes.c_void_p * SPARES),  # the arrays whose parts the spares, tuples, have
    )


class NamedSite(ctypes.Structure):
    """A site for one name of a frame."""

    _fields_ = (("name", ctypes.c_void_p), ("site", ctypes.c_void_p))


class Slot(ctypes.Structure):
    """What one method of one robot leads to: a site, or sites by the name of a frame."""

    _fields_ = (
        ("site", ctypes.c_void_p),
        ("watched", ctypes.c_void_p),  # the site for status=True
        ("count", ctypes.c_int64),
        ("named", NamedSite * FRAMES),
    )


def offset_of(structure: type[ctypes.Structure], name: str) -> int:
    """Bytes from the start of a structure to a field."""
    return int(getattr(structure, name).offset)


# -- addresses of this process ---------------------------------------------------------------------

# objects and functions that the entry uses, in the order of its table
RUNTIME = (
    "ndarray", "float64", "float32", "uint16", "name_out", "name_status", "name_threads", "none",
    "true", "false", "declined", "list", "tuple", "float", "int", "number", "holder",
    "owner", "new_array", "as_result", "python_code", "is_subtype", "incref", "decref",
    "save_thread", "restore_thread", "tuple_new", "tuple_set", "sequence_size", "sequence_item",
    "as_double", "error_occurred", "error_clear", "set_base", "functions", "lacked",
)  # fmt: skip
_PYTHON = {
    "is_subtype": "PyType_IsSubtype",
    "incref": "Py_IncRef", "decref": "Py_DecRef",
    "save_thread": "PyEval_SaveThread", "restore_thread": "PyEval_RestoreThread",
    "tuple_new": "PyTuple_New", "tuple_set": "PyTuple_SetItem", "sequence_size": "PySequence_Size",
    "sequence_item": "PySequence_GetItem", "as_double": "PyFloat_AsDouble",
    "error_occurred": "PyErr_Occurred", "error_clear": "PyErr_Clear",
}  # fmt: skip
_NUMPY = {
    "new_array": 94,
    "as_result": 76,
    "set_base": 282,
}  # places in NumPy's function table, fixed by its ABI

functions = keep_for_ever((ctypes.c_void_p * METHODS)())  # the Python function behind each method

lacked = keep_for_ever(ctypes.c_int64())  # how often a kernel of this process got no memory


@cache
def runtime_table(owner: type, holder: type) -> Any:
    """The table of addresses that the compiled entry reads, for robots of a class; ``holder``: of
    a robot's handle.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    numpy_table = ctypes.cast(pointer(api, None), ctypes.POINTER(ctypes.c_void_p))
    objects = (
        np.ndarray, *map(np.dtype, ("float64", "float32", "uint16")),
        *map(sys.intern, ("out", "status", "threads")), None, True, False, NotImplemented, list,
        tuple, float, int, np.float64, holder, owner,
    )  # fmt: skip
    known = dict(zip(RUNTIME, map(id, objects), strict=False))
    known |= {name: _address(getattr(ctypes.pythonapi, c)) for name, c in _PYTHON.items()}
    known |= {name: numpy_table[k] or 0 for name, k in _NUMPY.items()}
    known["python_code"] = python_code()
    known["functions"] = ctypes.addressof(functions)
    known["lacked"] = ctypes.addressof(lacked)
    keep_for_ever(objects)
    return keep_for_ever((ctypes.c_void_p * len(RUNTIME))(*(known[name] for name in RUNTIME)))


def python_code() -> int:
    """The address of what runs a function's Python code, in the place of its entry."""

    def probe() -> None: ...

    if not hasattr(ctypes.pythonapi, "PyFunction_SetVectorcall"):  # functions keep theirs
        return _address(ctypes.pythonapi.PyObject_Vectorcall)
    words = (ctypes.c_void_p * (type(probe).__basicsize__ // 8)).from_address(id(probe))
    before, other = list(words), _address(ctypes.pythonapi.PyObject_Vectorcall)
    set_entry(probe, other)
    (usual,) = (x for x, now in zip(before, words, strict=True) if x != now == other)
    return usual or 0


def set_entry(function: Any, address: int) -> None:
    """Let calls of a Python function go to compiled code (Python 3.12)."""
    give = ctypes.pythonapi.PyFunction_SetVectorcall
    give.restype, give.argtypes = None, [ctypes.py_object, ctypes.c_void_p]
    give(function, address)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


# -- functions -------------------------------------------------------------------------------------


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _site_definition(address: int) -> _MethodDef:
    return keep_for_ever(_MethodDef(b"site", address, _FASTCALL_KEYWORDS, b""))


def site_function(address: int, site: Site) -> Callable[..., Any]:
    """A built-in function that runs a site; the caller keeps the site alive."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    definition = _site_definition(address)
    function: Callable[..., Any] = new(
        ctypes.addressof(definition), capsule(ctypes.addressof(site)), None
    )
    return function


def drop_spares(site: Site) -> None:
    """Give up the results that a site kept for its next calls."""
    decref = ctypes.pythonapi.Py_DecRef
    decref.argtypes = [ctypes.c_void_p]
    for kept in (site.spares, site.wholes):
        for k, spare in enumerate(kept):
            kept[k] = None
            if spare:
                decref(spare)
