"""Kernels of programs that are in no table of algorithms, made and kept as those are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from linkwise.backends.base import Backend, Kernel
from linkwise.backends.choice import cpu
from linkwise.backends.process import build_lock
from linkwise.engine.build import built, progress
from linkwise.engine.kernels import Kernels, cached, kept_by_text
from linkwise.errors import quote
from linkwise.trace.program import Program, Signature


class Recipe(NamedTuple):
    """How a kernel is made: what its program depends on besides the robot, arrays, and trace."""

    name: str  # what messages call it
    key: tuple[Any, ...]
    signature: Signature
    trace: Callable[[], Program]


_made: WeakKeyDictionary[Kernels, dict[tuple[Any, ...], Kernel]] = WeakKeyDictionary()


def kernel_of(
    kernels: Kernels, recipe: Recipe, dtype: str, form: str, machine: Backend | None = None
) -> Kernel:
    """The kernel of a recipe for a robot: from memory, from the disk cache, or made now.

    It runs on the processor, unless another machine is named.
    """
    backend, tree = machine or cpu(), kernels.tree
    key = (*recipe.key, dtype, form)

    def make() -> bytes:
        with progress(f"tracing {recipe.name} of {quote(kernels.name)}"):
            program = backend.ordered(recipe.trace(), dtype, form)
        return built(backend, program, dtype, form, kernels.name)

    with build_lock:
        own = _made.setdefault(kernels, {})
        place = (*key, backend)
        if place not in own:
            code = cached(backend, (tree.digest, *key), make)
            own[place] = backend.load(code, recipe.signature, dtype, form)
        return own[place]


def kernel_of_loops(
    kernels: Kernels, recipe: Recipe, dtype: str, form: str, machine: Backend | None = None
) -> Kernel:
    """The kernel of a recipe whose program is loops over links."""
    backend = machine or cpu()
    with build_lock:
        own = _made.setdefault(kernels, {})
        place = ("loops", *recipe.key, dtype, form, backend)
        if place not in own:
            with progress(f"tracing {recipe.name} of {quote(kernels.name)}"):
                program = backend.ordered(recipe.trace(), dtype, form)
            own[place] = kept_by_text(backend, program, dtype, form, kernels.name)
        return own[place]
