"""A second backend is a few functions: here C, compiled by the system's compiler.

It has no front and needs no llvmlite; its kernels and cache entries stay apart from LLVM's.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.base import BATCH, USUAL, Backend, Kernel
from linkwise.backends.choice import cpu
from linkwise.backends.cstyle.render import render_c
from linkwise.engine import compiled
from linkwise.engine.cache import KernelCache
from linkwise.engine.tasks import Key
from linkwise.trace.program import Program, Signature

COMPILER = shutil.which("cc")
Q = np.linspace(-1.0, 1.0, 24).reshape(4, 6)


class CKernel:
    """A C function of one state, called for each row."""

    def __init__(self, library: Path, name: str, signature: Signature) -> None:
        self.signature = signature
        self._function = getattr(ctypes.CDLL(str(library)), name)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], threads: int | None = None
    ) -> None:
        for rows in zip(*(np.ascontiguousarray(a) for a in inputs), *outputs, strict=True):
            self._function(*(ctypes.c_void_p(row.ctypes.data) for row in rows))


class CBackend:
    """C99, double only."""

    name = "c"
    kind = "cpu"
    apart = False
    effort = USUAL
    identity = "cc -O1"
    front = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ordered(self, program: Program, dtype: str, form: str) -> Program:
        return program

    def render(self, program: Program, dtype: str, form: str) -> str:
        assert dtype == "float64"
        return render_c(program, "robot")

    def build(self, text: str, *, apart: bool = False) -> bytes:
        source, library = self._folder / "k.c", self._folder / "k.so"
        source.write_text(text)
        assert COMPILER is not None
        subprocess.run(
            [COMPILER, "-O1", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True
        )
        name = re.findall(r"^void (\w+)\(", text, re.M)[0]
        return f"{name}\n".encode() + library.read_bytes()

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> CKernel:
        name, image = code.split(b"\n", 1)
        library = self._folder / f"{len(list(self._folder.glob('*.so')))}.so"  # never a loaded one
        library.write_bytes(image)
        return CKernel(library, name.decode(), signature)


def _is_a_backend(backend: CBackend) -> Backend:
    return backend  # mypy looks


@pytest.fixture
def in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CBackend:
    if COMPILER is None:
        pytest.skip("no C compiler")
    backend = CBackend(tmp_path)
    monkeypatch.setattr(compiled, "cpu", lambda: backend)
    return backend


def test_calls_run_on_it(in_c: CBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = lw.load("puma560")
    found = [robot.mass_matrix(Q), robot.mass_matrix(Q[0]), robot.mass_matrix(Q, status=True)]
    (call, watched) = robot._calls._table.values()
    assert call.site is None and watched.site is None
    monkeypatch.undo()
    by_llvm = robot.mass_matrix(Q)
    assert call.site is not None, "the next backend's front is put before the call"
    np.testing.assert_allclose(found[0], by_llvm, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found[1], by_llvm[0], rtol=1e-13, atol=1e-14)
    assert found[2][1].tolist() == [0] * 4


def test_kernels_of_two_backends_live_side_by_side(
    in_c: CBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = KernelCache(tmp_path / "cache")
    monkeypatch.setenv("LINKWISE_CACHE", str(cache.folder))
    robot = lw.load("puma560")
    kernels_of = robot._calls.kernels
    equations = kernels_of.equations(robot._calls.tasks.task(Key("gravity_torque")))

    def both() -> list[Kernel]:
        kernel = kernels_of.kernel
        return [kernel(equations, "float64", BATCH, backend) for backend in (in_c, cpu())]

    kernels = both()
    assert len(cache.entries()) == 2
    results = [np.empty((4, 6)) for _ in kernels]
    for kernel, out in zip(kernels, results, strict=True):
        kernel([Q], [out])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-13, atol=1e-13)
    assert [kernels_of.kernel(equations, "float64", BATCH, b) for b in (in_c, cpu())] == kernels


def test_a_machine_without_llvmlite_can_use_it(in_c: CBackend) -> None:
    code = f"""
        import sys
        from pathlib import Path
        sys.modules["llvmlite"] = None  # not installed
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy as np
        import linkwise as lw
        import test_backends as here
        from linkwise.engine import compiled
        robot = lw.load("puma560")
        try:
            robot.mass_matrix(here.Q)
        except lw.BackendUnavailable as error:
            print(error)
        backend = here.CBackend(Path({str(in_c._folder)!r}))
        compiled.cpu = lambda: backend
        print(robot.mass_matrix(here.Q).shape)
    """
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "LINKWISE_CACHE": "off"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == (
        "CPU kernels are compiled by llvmlite, which is not installed: pip install llvmlite\n"
        "(4, 6, 6)\n"
    )


def test_a_text_that_does_not_exist_is_refused() -> None:
    refused = "backend 'fortran': expected 'c', 'llvm', 'asm' or 'cuda'"
    with pytest.raises(ValueError, match=refused):
        lw.load("puma560").source("bias", "fortran")
