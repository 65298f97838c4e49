"""``robot.casadi``: a function of the robot as a `casadi.Function`, its equations run on SX."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from linkwise.engine.build import progress
from linkwise.engine.calls import Calls
from linkwise.engine.foreseen import operations
from linkwise.engine.tasks import Key
from linkwise.errors import ProgramTooLarge, quote
from linkwise.interop.package import package
from linkwise.interop.symbolic import MOST_NODES, Scalars, Wanted, register, wanted


@cache
def _casadi() -> Any:
    """The package, whose scalars equations can be run on from now on."""
    cs = package("casadi", "robot.casadi")

    def select(condition: Any, a: Any, b: Any) -> Any:
        return cs.if_else(condition > 0, a, b)

    register(Scalars(cs.SX, cs.sin, cs.cos, cs.sqrt, cs.sign, cs.atan2, select))
    return cs


def function(calls: Calls, key: Key, name: str | None, options: dict[str, Any] | None) -> Any:
    """The function that a key names."""
    cs = _casadi()
    asked = wanted(calls, key)
    _refuse_large(asked)
    inputs = [cs.SX.sym(port.name, port.size) for port in asked.ports]
    with progress(f"writing {asked.task.name} of {quote(calls.tasks.name)} as expressions"):
        numbers = asked.run("casadi", [cs.vertsplit(x) for x in inputs])
    rows = asked.shape[0] if asked.shape else 1
    columns = prod(asked.shape[1:])
    # CasADi lays matrices out by columns
    result = cs.reshape(cs.vertcat(*numbers), columns, rows).T
    called = name or cs.Function.fix_name(f"{calls.tasks.name}_{key.function}")
    names = [cs.Function.fix_name(port.name) for port in asked.ports]
    return cs.Function(called, inputs, [result], names, ["result"], options or {})


def _refuse_large(function: Wanted) -> None:
    """Raise where expressions would be so large that CasADi takes minutes or more."""
    tree, robot = function.calls.tasks.tree, quote(function.calls.tasks.name)
    about = operations(function.task, tree)
    if about > MOST_NODES:
        raise ProgramTooLarge(
            f"casadi: {function.task.name} of {robot}: about {about:.0e} "
            f"operations of {tree.n_links:,} links, each an expression (at most "
            f"{MOST_NODES:.0e}); expected a robot of fewer links, or the functions of the robot "
            "itself and robot.vjp, which are loops"
        )
