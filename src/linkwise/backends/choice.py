"""The backends there are, each imported when it is first needed: the one place that names them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from linkwise.backends.base import BATCH, Backend, DeviceBackend, View
from linkwise.trace.program import Program
from linkwise.trace.schedule import together


@cache
def cpu() -> Backend:
    """The processor of this machine; its compiler is imported with the first kernel."""
    from linkwise.backends.llvm.backend import Llvm

    return Llvm()


@cache
def gpu(device: int) -> DeviceBackend:
    """An NVIDIA GPU of this machine, by its number."""
    from linkwise.backends.cuda.backend import Cuda

    return Cuda(device)


def seen(array: Any, stream: int = -1) -> tuple[View, int | None]:
    """An array that offers DLPack or ``__cuda_array_interface__``, and its GPU (None: the host's).

    Work on the stream waits for the array; -1: nobody waits.
    """
    from linkwise.backends.cuda.memory import seen

    return seen(array, stream)


class Text(NamedTuple):
    """A text that programs can be shown as."""

    render: Callable[[Program, str, str], str]  # of a program, dtype and the name of the robot
    order: Callable[[Program, str], Program] = lambda program, dtype: together(program)
    kind: str = "cpu"  # of device: `Backend.kind`


def _c(program: Program, dtype: str, robot: str) -> str:
    from linkwise.backends.cstyle.render import render_c

    return render_c(program, robot, dtype)


def _assembly(program: Program, dtype: str, robot: str) -> str:
    from linkwise.backends.llvm.backend import Llvm

    machine = Llvm()
    return machine.assembly(machine.render(program, dtype, BATCH))


_TEXTS = {
    "c": Text(_c),
    "llvm": Text(lambda program, dtype, robot: cpu().render(program, dtype, BATCH)),
    "asm": Text(_assembly),
    "cuda": Text(
        lambda program, dtype, robot: gpu(0).render(program, dtype, BATCH),
        lambda program, dtype: gpu(0).ordered(program, dtype, BATCH),
        "cuda",
    ),
}


def text_of(name: str) -> Text:
    """How programs are shown by a backend; raises ValueError for one that does not exist."""
    found = _TEXTS.get(name) if isinstance(name, str) else None
    if found is None:
        *others, last = map(repr, _TEXTS)
        raise ValueError(f"backend {name!r}: expected {', '.join(others)} or {last}")
    return found
