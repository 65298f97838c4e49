"""Arguments of the functions that doors hand out: names, shapes, and how many there must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.engine.tasks import Tasks
from linkwise.trace.program import Port


def names(ports: Sequence[Port], external: Sequence[str]) -> list[str]:
    """The name of each argument; wrenches have those of their frames."""
    wrenches = {f"f_ext[{k}]": f"f_ext_{frame}" for k, frame in enumerate(external)}
    return [wrenches.get(port.name, port.name) for port in ports]


def shapes(ports: Sequence[Port], tasks: Tasks) -> list[tuple[int, ...]]:
    """The shape of each argument for one state; parameters have that of `Robot.parametric`."""
    own = {each.name: each.shape(tasks.tree) for each in tasks.parameters}
    return [own.get(port.name, (port.size,)) for port in ports]


def leading_axes(function: str, name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> Any:
    """The axes before those of one state; raises ValueError where these are not as wanted."""
    start = len(given) - len(wanted)
    if start < 0 or given[start:] != wanted:
        expected = ", ".join(("...", *map(str, wanted)))
        raise ValueError(f"{function}: {name} has shape {given}; expected ({expected})")
    return given[:start]


def check_count(function: str, wanted: Sequence[str], given: int, what: str) -> None:
    """Raise TypeError unless there is one value for each argument."""
    if given != len(wanted):
        expected = ", ".join(wanted)
        raise TypeError(f"{function}: was given {given} {what}(s); expected {expected}")


def only_robot(call: str, function: str, values: Sequence[Any]) -> None:
    """Raise TypeError if values are given where a function of them is made."""
    if values:
        raise TypeError(
            f"{call}: was given {len(values)} more argument(s) by position; it returns a function "
            f"of arrays, which takes these; expected {call}({function})(q, ...)"
        )


def check_dtype(function: str, name: str, dtype: str) -> None:
    """Raise TypeError for a dtype that plain calls refuse: half, bool, complex."""
    dtype = dtype.removeprefix("torch.")
    whole = dtype.removeprefix("u").startswith("int")
    if dtype not in ("float32", "float64") and not whole:
        raise TypeError(
            f"{function}: {name} has dtype {dtype}; expected float32, float64 or integers"
        )
