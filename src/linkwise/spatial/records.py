"""Records of numbers taken apart and put together again: what a walk keeps of each link.

A record is made of vectors, inertias, frame changes, named tuples and lists; its leaves are numbers
of any kind. Walks written out link by link pass records on as they are; loops over links keep their
numbers in memory, and need to know which of them are constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Unlike:
    """In place of a part that is not made alike in all links; using it is a mistake."""

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            f"a walk uses {name!r} of a state that is made differently in other links; expected "
            "walks to use only what every link has"
        )


UNLIKE = Unlike()
_ALGEBRA = __name__.rpartition(".")[0]  # classes of this package are records


def is_number(x: Any) -> bool:
    """Whether something is a leaf of a record."""
    return not (x is None or isinstance(x, (str, Unlike)) or parts(x) is not None)


def parts(x: Any) -> tuple[Any, ...] | None:
    """The parts of a record; None of what is no record: numbers, names, nothing."""
    if isinstance(x, (tuple, list)):
        return tuple(x)
    if not type(x).__module__.startswith(_ALGEBRA) or isinstance(x, Unlike):
        return None
    return tuple(getattr(x, name) for name in _slots(x))


def _slots(x: Any) -> list[str]:
    return [n for kind in reversed(type(x).__mro__) for n in getattr(kind, "__slots__", ())]


def remade(x: Any, new: tuple[Any, ...]) -> Any:
    """A record of the same kind with other parts."""
    if isinstance(x, list):
        return list(new)
    if isinstance(x, tuple):
        return type(x)(*new) if hasattr(x, "_fields") else tuple(new)
    record = object.__new__(type(x))
    for name, part in zip(_slots(x), new, strict=True):
        object.__setattr__(record, name, part)
    return record


def mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """The record with every number changed."""
    inside = parts(x)
    if inside is not None:
        return remade(x, tuple(mapped(change, part) for part in inside))
    return change(x) if is_number(x) else x


def leaves(x: Any) -> list[Any]:
    """The numbers of a record, in order."""
    inside = parts(x)
    if inside is not None:
        return [leaf for part in inside for leaf in leaves(part)]
    return [x] if is_number(x) else []


def joined(a: Any, b: Any, number: Callable[[Any, Any], Any]) -> Any:
    """What two records have in common; numbers are joined by a rule."""
    first, second = parts(a), parts(b)
    if first is not None and second is not None:
        if type(a) is type(b) and len(first) == len(second):
            pairs = zip(first, second, strict=True)
            return remade(a, tuple(joined(x, y, number) for x, y in pairs))
        return UNLIKE
    if is_number(a) and is_number(b):
        return number(a, b)
    return a if type(a) is type(b) and a == b else UNLIKE
