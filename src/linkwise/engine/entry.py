"""The compiled entry of this process: built or loaded once, then in front of every call.

`methods` announces the methods of a class that get one. When the first kernel is made, each such
method of the class is replaced by a built-in method with the same name, signature and text, which
takes the usual arguments itself and hands everything else to the method it replaced. Subclasses,
overridden methods, bound methods and pickles see an ordinary method of the class.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from linkwise.backends.llvm import sites
from linkwise.backends.llvm.layout import layout, slot_offset
from linkwise.engine.kernels import build_lock, cached, cpu

_owner: list[Any] = []
_places: dict[str, int] = {}


def methods(owner: type, options: type, *names: str) -> None:
    """Announce a class with a slot ``_slots``, and its methods that shall have an entry.

    Their keywords ``**options`` are shown one by one, as the typed dictionary ``options`` has them.
    """
    assert len(names) <= sites.METHODS
    _owner.append(owner)
    for k, name in enumerate(names):
        _places[name] = k
        method = owner.__dict__[name]
        method.__signature__ = _shown(inspect.signature(method), options)


def _shown(signature: inspect.Signature, options: type) -> inspect.Signature:
    """A signature with the options in place of ``**options``."""
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = inspect.Parameter.KEYWORD_ONLY
    defaults = {"status": False}
    more = [
        inspect.Parameter(name, named, default=defaults.get(name), annotation=kind)
        for name, kind in options.__annotations__.items()
    ]
    return signature.replace(parameters=own + more)


def place(function: str) -> int | None:
    """Where a method's site is in the slots of a robot."""
    return _places.get(function)


def site_address() -> int | None:
    """The address of the entry of a site; None where there is no compiled entry."""
    with build_lock:
        loaded = _loaded()
    return None if loaded is None else int(loaded.address[sites.SITE])


@cache
def _loaded() -> Any:
    """The entry's code, its methods installed."""
    (owner,) = _owner
    offset = slot_offset(owner.__new__(owner), "_slots")
    if layout() is None or offset is None:
        warnings.warn(
            "this Python keeps its objects where linkwise does not expect them: calls work, and "
            "each takes some microseconds longer",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    backend = cpu()
    parts = ("entry", layout(), offset, sites.RUNTIME, backend.identity)
    code = cached(parts, lambda: backend.build_entry(backend.render_entry(offset)))
    loaded = backend.load_entry(code)
    for name, k in _places.items():
        method = owner.__dict__[name]
        if inspect.isfunction(method):  # not where somebody put something else in its place
            address = loaded.address[f"{sites.METHOD}{k}"]
            setattr(owner, name, sites.method_of_class(owner, name, k, address, _text(method)))
    return loaded


def _text(method: Callable[..., Any]) -> str:
    """A method's signature and docstring, in the form that built-in methods carry them."""
    shown = inspect.signature(method)
    bare = [p.replace(annotation=p.empty) for p in shown.parameters.values()]
    plain = inspect.Signature(bare)
    text = str(plain).replace("(self", "($self", 1)
    return f"{method.__name__}{text}\n--\n\n{inspect.getdoc(method)}"
