"""What is exported: a function's text, ``jacobian@tool``, becomes a program and a name in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from linkwise.algorithms import functions_of
from linkwise.backends.cstyle.render import word
from linkwise.engine.kernels import Kernels
from linkwise.engine.tasks import Key, Tasks
from linkwise.errors import NoProgram, quote
from linkwise.model.tree import Tree
from linkwise.trace.program import Port, Program
from linkwise.trace.schedule import together

MOST_STACK = 1 << 20  # bytes of arrays of one function

# function[method]@frame, the method and the frame where they are needed
_FORM = re.compile(r"(?P<function>\w+)(\[(?P<method>[\w-]+)\])?(@(?P<frame>.+))?")


@dataclass(frozen=True)
class Wanted:
    """One function of the robot, and its program."""

    name: str  # in C
    key: Key
    program: Program

    @property
    def title(self) -> str:
        """For people: ``forward_dynamics[crba]``, and its frame."""
        at = f" of frame {self.key.frame}" if self.key.frame is not None else ""
        return f"{self.program.name}{at}"

    def scratch(self, dtype: str) -> int:
        """Bytes of arrays that the function has on the stack, besides its single numbers."""
        return self.program.signature.scratch * (8 if dtype == "float64" else 4)


class Asked(NamedTuple):
    """What all functions are asked for, as far as they know it."""

    axes: str = "base"
    external: tuple[str, ...] = ()  # frames with wrenches
    status: bool = False


def wanted(
    tasks: Tasks,
    kernels: Kernels,
    functions: str | Iterable[str],
    prefix: str,
    dtype: str,
    asked: Asked,
) -> list[Wanted]:
    """The programs of functions, each checked: that it exists, and that C can have it."""
    if not isinstance(functions, Iterable):
        raise TypeError(
            f"export: functions is {functions!r}; expected a name such as 'forward_dynamics', or "
            "several"
        )
    texts = [functions] if isinstance(functions, str) else list(functions)
    if not texts:
        raise ValueError("export: functions is empty; expected names such as 'forward_dynamics'")
    keys = [_key(tasks.tree, text, asked) for text in texts]
    if asked.external and not any(key.external for key in keys):
        raise ValueError(f"export: f_ext is for dynamics; {', '.join(texts)} take no wrenches")
    if asked.axes != "base" and not any(key.axes == asked.axes for key in keys):
        raise ValueError(f"export: axes {asked.axes!r}: none of {', '.join(texts)} takes axes")
    new, found = unique(), []
    for key in keys:
        name = new("_".join(filter(None, (prefix, *_parts(key)))))
        one = Wanted(name, key, _program(tasks, kernels, key, dtype))
        _refuse_large(one, dtype, tasks.name)
        found.append(one)
    return found


def _key(tree: Tree, text: str, asked: Asked) -> Key:
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(
            f"export: function {text!r}; expected a text such as 'mass_matrix', "
            "'forward_dynamics[aba]' (a method) or 'jacobian@tool' (a frame)"
        )
    function, method = match["function"], match["method"] or "auto"
    methods = functions_of(tree).get(function, {}).values()
    external = asked.external if any(x.takes_external for x in methods) else ()
    axes = asked.axes if any(x.axes for x in methods) else "base"
    return Key(function, method, match["frame"], axes, external, status=asked.status)


def _parts(key: Key) -> tuple[str, ...]:
    method = "" if key.method == "auto" else key.method
    axes = "" if key.axes == "base" else key.axes
    return key.function, identifier(method), identifier(key.frame or ""), axes


def _program(tasks: Tasks, kernels: Kernels, key: Key, dtype: str) -> Program:
    """The program that is exported, its inputs named as C names them."""
    task = tasks.task(key, dtype)
    if task.of_columns is not None or (task.rolled and task.algorithm.products):
        calls = task.algorithm.columns or ", ".join(task.algorithm.products)
        raise NoProgram(
            f"export: {task.name} of {quote(tasks.name)} is put together of results of other "
            f"functions and has no program of its own; expected these ({calls}), another method, "
            "or robot.with_codegen('unrolled')"
        )
    return kernels.ready(kernels.equations(task), together)


def _refuse_large(one: Wanted, dtype: str, robot: str) -> None:
    if one.scratch(dtype) > MOST_STACK:
        raise NoProgram(
            f"export: {one.title} of {quote(robot)} needs {one.scratch(dtype):,} bytes of arrays, "
            f"and C that allocates nothing has them on the stack; expected at most {MOST_STACK:,}: "
            "a robot of fewer links"
        )


def ports(one: Wanted) -> list[tuple[Port, str]]:
    """Inputs, and what each is, where its name does not say it."""
    external = {f"f_ext[{k}]": frame for k, frame in enumerate(one.key.external)}
    said = {port.name: "" for port in one.program.inputs}
    said |= {
        name: f"wrench (moment, force) on frame {frame}, at its origin, in base axes"
        for name, frame in external.items()
    }
    said |= {
        "tol": "of the residual beside the right-hand side, such as 1e-10",
        "limit": "the most iterations",
        "qdd0": "where iterations begin",
    }
    return [(port, said[port.name]) for port in one.program.inputs]


def identifier(name: str) -> str:
    """A name as part of an identifier of C, in ASCII."""
    return word(name.encode("ascii", "replace").decode())


def unique() -> Callable[[str], str]:
    """Makes names unique: those that were there before get numbers."""
    seen: set[str] = set()

    def new(name: str) -> str:
        k, found = 1, name
        while found.lower() in seen:
            k += 1
            found = f"{name}_{k}"
        seen.add(found.lower())
        return found

    return new
