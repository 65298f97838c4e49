"""Methods of a class with a compiled entry, in the form that this Python has for them.

``PyFunction_SetVectorcall`` (Python 3.12) gives a plain function an entry: the interpreter then
calls the entry, and all else about the function stays as it was. Before, the interpreter runs a
function's code whatever its entry is. There an object of a type of our own takes the function's
place in the class: it is called by the same entry, is bound as a function is, and shows the
function behind it (``__wrapped__``) to whoever inspects it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, cache
from types import FunctionType
from typing import Any

from linkwise.backends.llvm.layout import keep_for_ever
from linkwise.backends.llvm.sites import functions, set_entry

Function = Callable[..., Any]
# the rest of what code that inspects functions looks at
_INSPECTED = ("__annotations__", "__code__", "__defaults__", "__kwdefaults__", "__signature__")


def give_entry(owner: type, function: Function, place: int, address: int) -> None:
    """Let calls of a method go to the compiled code for ``place`` in the slots of its robots."""
    functions[place] = id(keep_for_ever(function))
    if hasattr(ctypes.pythonapi, "PyFunction_SetVectorcall"):
        set_entry(function, address)
    elif getattr(owner, function.__name__) is function:  # and not a wrapper that a user set
        setattr(owner, function.__name__, _compiled(owner, function, address))


# -- Python 3.11 -----------------------------------------------------------------------------------

_CALL, _BIND, _MEMBERS = 50, 54, 72  # Py_tp_call, Py_tp_descr_get, Py_tp_members
_SIZE, _READ_ONLY = 19, 1  # T_PYSSIZET, READONLY
_FLAGS = 1 << 18 | 1 << 17 | 1 << 11  # default, method descriptor, has a vectorcall entry
_HEADER = object.__basicsize__


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def _compiled(owner: type, function: Function, address: int) -> Any:
    """A method that is called by compiled code, with the attributes of the function behind it."""
    new = ctypes.pythonapi.PyType_GenericAlloc
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_ssize_t]
    made: Any = keep_for_ever(new(_kind(), 0))
    ctypes.c_void_p.from_address(id(made) + _HEADER).value = address
    for name in (*WRAPPER_ASSIGNMENTS, *_INSPECTED):
        if hasattr(function, name):
            setattr(made, name, getattr(function, name))
    made.__wrapped__, made.__objclass__ = function, owner
    return made


@cache
def _kind() -> Any:
    """The type of such methods: an entry and a dictionary, bound as functions are."""
    offsets = {"__vectorcalloffset__": _HEADER, "__dictoffset__": _HEADER + 8}
    members = [_Member(k.encode(), _SIZE, at, _READ_ONLY, None) for k, at in offsets.items()]
    table = keep_for_ever((_Member * 3)(*members))
    slot_of = ctypes.pythonapi.PyType_GetSlot
    slot_of.restype, slot_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    bind, known = slot_of(FunctionType, _BIND), ctypes.addressof(table)
    pairs = ((_CALL, call), (_BIND, bind), (_MEMBERS, known))
    slots = keep_for_ever((_Slot * (len(pairs) + 1))(*(_Slot(*pair) for pair in pairs)))
    spec = keep_for_ever(
        _Spec(b"linkwise.compiled_method", _HEADER + 16, 0, _FLAGS, ctypes.addressof(slots))
    )
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    kind = make(ctypes.addressof(spec))
    kind.__reduce__ = lambda self: (getattr, (self.__objclass__, self.__name__))
    kind.__repr__ = lambda self: f"<compiled {self.__wrapped__!r}>"
    return kind
