"""Kernels on demand: from memory, from the disk cache, or traced and compiled now."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from linkwise.backends.base import BATCH, ONE
from linkwise.engine.build import built, traced
from linkwise.engine.cache import default_cache
from linkwise.engine.identity import source_digest
from linkwise.model.tree import Tree
from linkwise.trace.guard import guard
from linkwise.trace.program import Program
from linkwise.trace.schedule import alone, together
from linkwise.trace.tracer import Task

if TYPE_CHECKING:
    from linkwise.backends.llvm.backend import Llvm
    from linkwise.backends.llvm.run import LlvmKernel

MOST_NODES = 400_000  # of programs kept in memory for another number type, form or status

build_lock = threading.RLock()  # one compilation at a time in a process


@cache
def cpu() -> Llvm:
    """The backend of this machine's processor; imports the compiler."""
    from linkwise.backends.llvm.backend import Llvm

    return Llvm()


class Kernels:
    """All kernels of one tree, made when first asked for."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name
        self._kernels: dict[tuple[Task, str, str], LlvmKernel] = {}
        self._programs: dict[Task, Program] = {}

    def kernel(self, task: Task, dtype: str, form: str) -> LlvmKernel:
        """The kernel of a task, for one number type and one form."""
        key = (task, dtype, form)
        found = self._kernels.get(key)
        if found is None:
            with build_lock:
                found = self._kernels.get(key)
                if found is None:
                    found = self._kernels[key] = self._new(*key)
        return found

    def _new(self, task: Task, dtype: str, form: str) -> LlvmKernel:
        backend = cpu()
        code = cached(
            (self.tree.digest, *_content(task), dtype, form, backend.identity),
            lambda: built(backend, self._ready(task, form), dtype, form, self.name),
        )
        return backend.load(code, task.signature(self.tree), dtype, form)

    def program(self, task: Task) -> Program:
        """The traced program of a task; kept for its next kernel, where it is not too large."""
        with build_lock:
            found = self._programs.get(task)
            if found is None:
                found = traced(task, self.tree, self.name)
                self._programs[task] = found
                while len(self._programs) > 1 and self._nodes() > MOST_NODES:
                    del self._programs[next(iter(self._programs))]
            return found

    def _ready(self, task: Task, form: str) -> Program:
        """The program as a backend gets it: in an order for the form, and guarded."""
        program = self.program(task)
        return guard(alone(program) if form == ONE else together(program))

    def _nodes(self) -> int:
        return sum(sum(1 for _ in p.nodes()) for p in self._programs.values())

    def source(self, task: Task, dtype: str, form: str = BATCH) -> str:
        """LLVM IR of a kernel."""
        return cpu().render(self._ready(task, form), dtype, form)

    def assembly(self, task: Task, dtype: str, form: str = BATCH) -> str:
        """Machine code of a kernel, as text."""
        return cpu().assembly(self.source(task, dtype, form))


def cached(parts: tuple[Any, ...], make: Callable[[], bytes]) -> bytes:
    """Code from the disk cache, or made now and kept there."""
    cache, identity = default_cache(), source_digest()
    if cache is None or identity is None:
        return make()
    key = hashlib.sha256(repr((*parts, identity)).encode()).hexdigest()
    code = cache.get(key)
    if code is None:
        code = make()
        cache.put(key, code)
    return code


def _content(task: Task) -> tuple[Any, ...]:
    """All that makes the program of one task differ from another's on the same tree."""
    asked = (task.external, task.status, task.damped, task.parameters)
    return (task.name, task.frame, task.axes, *asked)


_held_over_fork: list[Any] = []


def _before_fork() -> None:
    """Wait until no thread is in the compiler: in the child it would stay there for ever."""
    compiler = sys.modules.get("linkwise.backends.llvm.compile")
    locks = [build_lock, *getattr(compiler, "locks", list)()]  # none while it is being imported
    for lock in locks:
        lock.acquire()
    _held_over_fork.extend(locks)


def _after_fork() -> None:
    locks = list(_held_over_fork)
    _held_over_fork.clear()
    for lock in reversed(locks):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
