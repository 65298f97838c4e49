"""Kernels on demand: from memory, from the disk cache, or traced and compiled now."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from linkwise.backends.llvm import compile as llvm_compile
from linkwise.backends.llvm import run
from linkwise.backends.llvm.module import BATCH, CALL, render_module
from linkwise.backends.llvm.target import host
from linkwise.engine.cache import default_cache
from linkwise.engine.identity import source_digest
from linkwise.errors import BackendUnavailable
from linkwise.model.tree import Tree
from linkwise.trace.guard import guard
from linkwise.trace.tracer import Task, trace

_build = threading.RLock()  # one compilation at a time in a process


class Kernels:
    """All kernels of one tree, made when first asked for."""

    def __init__(self, tree: Tree) -> None:
        prepare_compiler()
        self.tree = tree
        self._batch: dict[tuple[Task, str], run.BatchKernel] = {}
        self._call: dict[Task, Callable[..., Any]] = {}

    def batch(self, task: Task, dtype: str) -> run.BatchKernel:
        """The kernel for many states."""
        found = self._batch.get((task, dtype))
        if found is None:
            with _build:
                found = self._batch.get((task, dtype))
                if found is None:
                    found = self._new_batch(task, dtype)
                    self._batch[task, dtype] = found
        return found

    def _new_batch(self, task: Task, dtype: str) -> run.BatchKernel:
        code = self._code(task, dtype, BATCH)
        return run.BatchKernel(code, host(), task.signature(self.tree), dtype)

    def call(
        self, task: Task, name: str, doc: str, general: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """The function for one float64 state, or None where the interpreter does not allow it."""
        if not run.fast_calls_possible():
            return None
        with _build:
            found = self._call.get(task)
            if found is None:
                code = self._code(task, "float64", CALL)
                found = run.fast_function(code, host(), "float64", name, doc, general)
                self._call[task] = found
            return found

    def _code(self, task: Task, dtype: str, entry: str) -> bytes:
        cache = default_cache() if source_digest() is not None else None
        key = self._key(task, dtype, entry)
        code = cache.get(key) if cache else None
        if code is None:
            code = llvm_compile.to_object(self.ir(task, dtype, entry), host())
            if cache:
                cache.put(key, code)
        return code

    def ir(self, task: Task, dtype: str, entry: str = BATCH) -> str:
        """LLVM IR of a kernel."""
        return render_module(guard(trace(task, self.tree)), host(), dtype, entry)

    def assembly(self, task: Task, dtype: str) -> str:
        """Machine code of a batch kernel, as text."""
        return llvm_compile.to_assembly(self.ir(task, dtype), host())

    def _key(self, task: Task, dtype: str, entry: str) -> str:
        parts = (
            self.tree.digest, task.name, task.frame, task.axes, task.external, task.status,
            task.damped, dtype, entry, host().identity, source_digest(),
        )  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def prepare_compiler() -> None:
    """Bring llvmlite in with the first robot, so that the first call does not wait for it.

    Without llvmlite robots still load and trace; asking for a CPU kernel then says what is missing.
    """
    try:
        host()
        source_digest()
    except BackendUnavailable:
        pass


_held_over_fork: list[Any] = []


def _before_fork() -> None:
    """Wait until no thread is in the compiler: in the child it would stay there for ever."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    llvmlite_lock = getattr(getattr(ffi, "lib", None), "_lock", None)
    locks = (_build, llvm_compile._lock, getattr(llvmlite_lock, "_lock", None))
    for lock in locks:
        if lock is not None:
            lock.acquire()
    _held_over_fork.extend(locks)


def _after_fork() -> None:
    locks = list(_held_over_fork)
    _held_over_fork.clear()
    for lock in reversed(locks):
        if lock is not None:
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
