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
from linkwise.engine import columns
from linkwise.engine.build import built, progress, traced
from linkwise.engine.cache import default_cache
from linkwise.engine.device_scans import DeviceScanKernel
from linkwise.engine.equations import Equations
from linkwise.engine.identity import source_digest
from linkwise.engine.scans import PieceKernel, ScanKernel
from linkwise.errors import NoProgram, quote
from linkwise.model.tree import Tree
from linkwise.trace.pipeline import prepared
from linkwise.trace.program import Program
from linkwise.trace.tracer import Task

MOST_NODES = 400_000  # of programs that stay in memory for another dtype, form or status


class Kernels:
    """All kernels of one robot, compiled when they are first needed."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name
        self._kernels: dict[tuple[Equations, str, str, Backend], Kernel] = {}
        self._programs: dict[Equations, Program] = {}
        self._equations: dict[Task, Equations] = {}

    def equations(self, task: Task) -> Equations:
        """The equations of a function of the table."""
        found = self._equations.get(task)
        if found is None:
            found = Equations(
                task.name,
                _content(task),
                task.ports(self.tree),
                task.slots(self.tree),
                partial(traced, task, self.tree, self.name),
                rolled=task.rolled,
                segments=task if task.in_pieces else None,
                run=partial(columns.run, task) if task.of_columns is not None else None,
            )
            found = self._equations.setdefault(task, found)
        return found

    def kernel(
        self, equations: Equations, dtype: str, form: str, backend: Backend | None = None
    ) -> Kernel:
        """The kernel for one dtype and form, of the processor unless another backend is named."""
        key = (equations, dtype, _form(equations, form), backend or cpu())
        found = self._kernels.get(key)
        if found is None:
            with build_lock:
                found = self._kernels.get(key)
                if found is None:
                    found = self._kernels[key] = self._new(*key)
        return found

    def loaded(self, equations: Equations, dtype: str, form: str, backend: Backend) -> bool:
        """Whether a kernel is in memory."""
        return (equations, dtype, _form(equations, form), backend) in self._kernels

    def _new(self, equations: Equations, dtype: str, form: str, backend: Backend) -> Kernel:
        def ready() -> Program:
            order = partial(backend.ordered, dtype=dtype, form=form)
            return self.ready(equations, order, backend.effort)

        if equations.segments is not None:
            return self._new_scan(equations.segments, dtype, backend)
        if equations.rolled:  # its tables come with the program, which is traced in any case
            program = ready()
            text = backend.render(program, dtype, form)
            make = partial(built, backend, program, dtype, form, self.name)
            code = cached(backend, (text, dtype, form), make)
            return backend.load(code, program.signature, dtype, form)
        parts = (self.tree.digest, equations.name, *equations.key, dtype, form)
        code = cached(backend, parts, lambda: built(backend, ready(), dtype, form, self.name))
        return backend.load(code, equations.signature, dtype, form)

    def _new_scan(self, task: Task, dtype: str, backend: Backend) -> Kernel:
        """All kernels of a scan; code is the same for any number of segments."""
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

    def program(self, equations: Equations, effort: Effort = USUAL) -> Program:
        """The traced program; it stays in memory for the next kernel unless it is too large."""
        if equations.segments is not None:
            raise NoProgram(
                f"{equations.name} of {quote(self.name)}: a scan by loops is several programs; "
                "expected another method, or for a short chain robot.with_codegen('unrolled')"
            )
        with build_lock:
            found = self._programs.get(equations)
            if found is None:
                with progress(f"tracing {equations.name} of {quote(self.name)}"):
                    found = equations.trace(effort)
                self._programs[equations] = found
                while len(self._programs) > 1 and self._nodes() > MOST_NODES:
                    del self._programs[next(iter(self._programs))]
            return found

    def ready(
        self,
        equations: Equations,
        order: Callable[[Program], Program],
        effort: Effort = USUAL,
    ) -> Program:
        """The program as a backend renders it, after all passes."""
        return prepared(self.program(equations, effort), order, guarded=equations.guarded)

    def _nodes(self) -> int:
        return sum(sum(1 for _ in p.nodes()) for p in self._programs.values())


def _form(equations: Equations, form: str) -> str:
    """The form that is compiled; of a scan, whose rows are segments, there is one."""
    return form if equations.segments is None else BATCH


def cached(backend: Backend, parts: tuple[Any, ...], make: Callable[[], bytes]) -> bytes:
    """Code of a backend from the disk cache, or compiled now and stored there."""
    cache, sources = default_cache(), source_digest()
    if cache is None or sources is None:
        return make()
    key = hashlib.sha256(repr((*parts, backend.name, backend.identity, sources)).encode())
    code = cache.get(key.hexdigest())
    if code is None:
        code = make()
        cache.put(key.hexdigest(), code)
    return code


def _content(task: Task) -> tuple[Any, ...]:
    """All by which the programs of two tasks of the same name and robot differ."""
    return (task.frame, task.axes, task.external, task.status, task.damped, task.parameters,
            task.rolled)  # fmt: skip
