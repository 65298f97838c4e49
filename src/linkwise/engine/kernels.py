"""Kernels on demand: from memory, from the disk cache, or traced and compiled now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from linkwise.backends.base import (
    BATCH,
    USUAL,
    Backend,
    DeviceBackend,
    DeviceKernel,
    DeviceTree,
    Effort,
    Kernel,
)
from linkwise.backends.choice import cpu
from linkwise.backends.process import build_lock
from linkwise.engine.build import built, progress, traced
from linkwise.engine.cache import default_cache
from linkwise.engine.device_scans import DeviceScanKernel
from linkwise.engine.identity import source_digest
from linkwise.engine.scans import PieceKernel, ScanKernel
from linkwise.errors import NoProgram, quote
from linkwise.model.tree import Tree
from linkwise.trace.guard import guard
from linkwise.trace.program import Program
from linkwise.trace.tracer import Task

MOST_NODES = 400_000  # of programs kept in memory for another number type, form or status


class Kernels:
    """All kernels of one tree, made when first asked for."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name
        self._kernels: dict[tuple[Task, str, str, Backend], Kernel] = {}
        self._programs: dict[Task, Program] = {}

    def kernel(self, task: Task, dtype: str, form: str, backend: Backend | None = None) -> Kernel:
        """The kernel of a task for one number type and form, on the processor unless told."""
        machine = backend or cpu()
        key = (task, dtype, _form(task, form), machine)
        found = self._kernels.get(key)
        if found is None:
            with build_lock:
                found = self._kernels.get(key)
                if found is None:
                    found = self._kernels[key] = self._new(*key)
        return found

    def loaded(self, task: Task, dtype: str, form: str, backend: Backend) -> bool:
        """Whether a kernel is in memory."""
        return (task, dtype, _form(task, form), backend) in self._kernels

    def _new(self, task: Task, dtype: str, form: str, backend: Backend) -> Kernel:
        def make() -> bytes:
            program = self.ready(
                task, partial(backend.ordered, dtype=dtype, form=form), backend.effort
            )
            return built(backend, program, dtype, form, self.name)

        if task.in_pieces:
            return self._new_scan(task, dtype, backend)
        if task.rolled:
            return self._new_rolled(task, dtype, form, backend)
        code = cached(backend, (self.tree.digest, *_content(task), dtype, form), make)
        return backend.load(code, task.signature(self.tree), dtype, form)

    def _new_rolled(self, task: Task, dtype: str, form: str, backend: Backend) -> Kernel:
        program = self.ready(task, partial(backend.ordered, dtype=dtype, form=form), backend.effort)
        return kept_by_text(backend, program, dtype, form, self.name)

    def _new_scan(self, task: Task, dtype: str, backend: Backend) -> Kernel:
        """All kernels of an algorithm that scans; code is the same for any number of pieces."""
        codes: dict[str, bytes] = {}

        def code(text: str) -> bytes:
            if text not in codes:
                codes[text] = cached(backend, (text, dtype, BATCH), lambda: backend.build(text))
            return codes[text]

        def load(program: Program) -> Kernel:
            ready = backend.ordered(program, dtype, BATCH)
            made = code(backend.render(ready, dtype, BATCH))
            return backend.load(made, ready.signature, dtype, BATCH)

        with progress(f"tracing and compiling {task.name} of {quote(self.name)}"):
            if backend.kind == "cpu":
                pieces = cast(Callable[[Program], PieceKernel], load)
                return ScanKernel(task, self.tree, dtype, pieces, backend.tile(dtype))
            return self._device_scan(task, dtype, cast(DeviceBackend, backend), load, code)

    def _device_scan(
        self,
        task: Task,
        dtype: str,
        backend: DeviceBackend,
        load: Callable[[Program], Kernel],
        code: Callable[[str], bytes],
    ) -> DeviceScanKernel:
        def load_tree(program: Program) -> DeviceTree:
            codes = [code(text) for text in backend.render_tree(program, dtype)]
            return backend.load_tree(codes, program, dtype)

        kernels = cast(Callable[[Program], DeviceKernel], load)
        return DeviceScanKernel(task, self.tree, dtype, backend, kernels, load_tree)

    def program(self, task: Task, effort: Effort = USUAL) -> Program:
        """The traced program of a task; kept for its next kernel, where it is not too large."""
        if task.in_pieces:
            raise NoProgram(
                f"{task.name} of {quote(self.name)}: a scan by loops is several programs; expected "
                "another method, or for a short chain robot.with_codegen('unrolled')"
            )
        with build_lock:
            found = self._programs.get(task)
            if found is None:
                found = traced(task, self.tree, self.name, effort)
                self._programs[task] = found
                while len(self._programs) > 1 and self._nodes() > MOST_NODES:
                    del self._programs[next(iter(self._programs))]
            return found

    def ready(
        self, task: Task, order: Callable[[Program], Program], effort: Effort = USUAL
    ) -> Program:
        """The program as a backend gets it: in an order that suits the machine, and guarded."""
        return guard(order(self.program(task, effort)))

    def _nodes(self) -> int:
        return sum(sum(1 for _ in p.nodes()) for p in self._programs.values())


def _form(task: Task, form: str) -> str:
    """The form that is made; of a scan, whose rows are pieces, there is one."""
    return BATCH if task.in_pieces else form


def cached(backend: Backend, parts: tuple[Any, ...], make: Callable[[], bytes]) -> bytes:
    """Code of a backend from the disk cache, or made now and kept there."""
    cache, sources = default_cache(), source_digest()
    if cache is None or sources is None:
        return make()
    key = hashlib.sha256(repr((*parts, backend.name, backend.identity, sources)).encode())
    code = cache.get(key.hexdigest())
    if code is None:
        code = make()
        cache.put(key.hexdigest(), code)
    return code


def kept_by_text(backend: Backend, program: Program, dtype: str, form: str, robot: str) -> Kernel:
    """The kernel of a program of loops, in the order of its form; its code is kept by its text: it
    is the same for all robots of as many links of the same classes, and tables come with the
    program.
    """
    text = backend.render(program, dtype, form)
    code = cached(backend, (text, dtype, form), lambda: built(backend, program, dtype, form, robot))
    return backend.load(code, program.signature, dtype, form)


def _content(task: Task) -> tuple[Any, ...]:
    """All that makes the program of one task differ from another's on the same tree."""
    asked = (task.external, task.status, task.damped, task.parameters)  # rolled: see _new_rolled
    return (task.name, task.frame, task.axes, *asked)
