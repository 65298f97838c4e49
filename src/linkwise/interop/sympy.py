"""``robot.sympy``: a function of the robot as expressions of SymPy."""

from __future__ import annotations

from functools import cache
from typing import Any

from linkwise.engine.build import progress
from linkwise.engine.calls import Calls
from linkwise.engine.tasks import Key
from linkwise.errors import ProgramTooLarge, quote
from linkwise.interop.package import package
from linkwise.interop.symbolic import Scalars, Wanted, register, wanted
from linkwise.trace.program import Port

# numbers, symbols and operators of expressions that share nothing: iiwa14's forward dynamics has
# 1e8 and takes SymPy 5 s
MOST_WRITTEN = 1e10
CHOICE = 100.0  # as large a choice of two is to SymPy, which compares those within each other


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
        [sp.Symbol(name, real=True) for name in _names(port)] for port in asked.ports
    ]
    _refuse_large(asked, values)
    with progress(f"writing {asked.task.name} of {quote(calls.tasks.name)} as expressions"):
        numbers = asked.run("sympy", values)
    shape = asked.shape
    if not shape:
        return sp.sympify(numbers[0])
    if len(shape) > 2:
        return sp.ImmutableDenseNDimArray(numbers, shape)
    return sp.ImmutableMatrix(*(*shape, 1)[:2], numbers)


def _names(port: Port) -> list[str]:
    """Names of the symbols of an argument: q0, q1; f_ext_link7_0, f_ext_link7_1."""
    between = "_" if port.name[-1].isdigit() else ""
    return [f"{port.name}{between}{k}" for k in range(port.size)]


def _refuse_large(asked: Wanted, values: list[list[Any]]) -> None:
    """Raise where expressions would be so large that SymPy takes minutes or more."""
    known = [[float(x) if x.is_number else None for x in value] for value in values]
    size = asked.written_size(known, CHOICE)
    if size > MOST_WRITTEN:
        raise ProgramTooLarge(
            f"sympy: {asked.task.name} of {quote(asked.calls.tasks.name)}: expressions of about "
            f"{size:.0e} numbers and operators, which SymPy cannot write in minutes (at most "
            f"{MOST_WRITTEN:.0e}); expected a function of fewer joints, numbers for some arguments "
            "(robot.sympy(function, q, qd, ...)), or robot.casadi, whose expressions share parts"
        )


def _check(ports: Any, given: tuple[Any, ...]) -> None:
    expected = ", ".join(f"{port.name} ({port.size})" for port in ports)
    for value in given:
        if not hasattr(value, "__len__"):
            raise TypeError(f"sympy: was given {value!r}; expected a list for each of {expected}")
    sizes = [len(value) for value in given]
    if sizes != [port.size for port in ports]:
        raise ValueError(f"sympy: was given values of length {sizes}; expected {expected}")
