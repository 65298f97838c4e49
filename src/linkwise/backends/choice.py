"""The backends there are, each imported when it is first needed: the one place that names them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from linkwise.backends.base import BATCH, Backend
from linkwise.trace.program import Program


@cache
def cpu() -> Backend:
    """The processor of this machine; its compiler is imported with the first kernel."""
    from linkwise.backends.llvm.backend import Llvm

    return Llvm()


def _c(program: Program, dtype: str, robot: str) -> str:
    from linkwise.backends.cstyle.render import render_c

    return render_c(program, robot)


def _llvm(program: Program, dtype: str, robot: str) -> str:
    return cpu().render(program, dtype, BATCH)


def _assembly(program: Program, dtype: str, robot: str) -> str:
    from linkwise.backends.llvm.backend import Llvm

    machine = Llvm()
    return machine.assembly(machine.render(program, dtype, BATCH))


# the texts that a program can be shown as: (program, dtype, name of the robot) -> text
_TEXTS: dict[str, Callable[[Program, str, str], str]] = {"c": _c, "llvm": _llvm, "asm": _assembly}


def text_of(name: str) -> Callable[[Program, str, str], str]:
    """How a program is shown by a backend; raises ValueError for one that does not exist."""
    found = _TEXTS.get(name)
    if found is None:
        *others, last = map(repr, _TEXTS)
        raise ValueError(f"backend {name!r}: expected {', '.join(others)} or {last}")
    return found
