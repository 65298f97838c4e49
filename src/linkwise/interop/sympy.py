"""``robot.sympy``: a function of the robot as expressions of SymPy."""

from __future__ import annotations

from functools import cache
from typing import Any

from linkwise.engine.calls import Calls
from linkwise.engine.tasks import Key
from linkwise.interop.package import package
from linkwise.interop.symbolic import Scalars, register, wanted


@cache
def _sympy() -> Any:
    """The package, whose scalars equations can be run on from now on."""
    sp = package("sympy", "robot.sympy")

    def select(condition: Any, a: Any, b: Any) -> Any:
        return sp.Piecewise((a, condition > 0), (b, True))

    register(Scalars(sp.Expr, sp.sin, sp.cos, sp.sqrt, sp.sign, sp.atan2, select))
    return sp


def expressions(calls: Calls, key: Key, given: tuple[Any, ...]) -> Any:
    """The result that a key names, of the values given, or of symbols."""
    sp = _sympy()
    asked = wanted(calls, key)
    if given:
        _check(asked.ports, given)
    values = [[sp.sympify(x) for x in value] for value in given] or [
        sp.symbols(f"{port.name}:{port.size}", real=True) for port in asked.ports
    ]
    numbers = asked.run("sympy", values)
    shape = asked.shape
    if not shape:
        return sp.sympify(numbers[0])
    if len(shape) > 2:
        return sp.ImmutableDenseNDimArray(numbers, shape)
    return sp.ImmutableMatrix(*(*shape, 1)[:2], numbers)


def _check(ports: Any, given: tuple[Any, ...]) -> None:
    expected = ", ".join(f"{port.name} ({port.size})" for port in ports)
    for value in given:
        if not hasattr(value, "__len__"):
            raise TypeError(f"sympy: was given {value!r}; expected a list for each of {expected}")
    sizes = [len(value) for value in given]
    if sizes != [port.size for port in ports]:
        raise ValueError(f"sympy: was given values of length {sizes}; expected {expected}")
