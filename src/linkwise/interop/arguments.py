"""Arguments of the functions that doors hand out: their names, and how many there must be."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.trace.program import Port


def names(ports: Sequence[Port], external: Sequence[str]) -> list[str]:
    """The name of each argument; wrenches have those of their frames."""
    wrenches = {f"f_ext[{k}]": f"f_ext_{frame}" for k, frame in enumerate(external)}
    return [wrenches.get(port.name, port.name) for port in ports]


def frames(f_ext: str | Sequence[str]) -> tuple[str, ...]:
    """The frames whose wrenches are arguments."""
    return (f_ext,) if isinstance(f_ext, str) else tuple(f_ext)


def check_count(function: str, wanted: Sequence[str], given: int, what: str) -> None:
    """Raise TypeError unless there is one value for each argument."""
    if given != len(wanted):
        expected = ", ".join(wanted)
        raise TypeError(f"{function}: was given {given} {what}(s); expected {expected}")
