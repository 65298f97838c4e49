"""IR text -> object code -> loaded functions."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from linkwise.backends.llvm.target import Target, binding

_lock = threading.RLock()  # LLVM is entered by one thread at a time
_closing = False  # the interpreter exits
_jit: list[Any] = []
_counter = 0


@contextmanager
def entered() -> Iterator[None]:
    """Let this thread into LLVM, alone; once the interpreter exits, only the main thread.

    A thread that comes too late ends quietly: the process is about to end it anyway.
    """
    with _lock:
        if _closing and threading.current_thread() is not threading.main_thread():
            raise SystemExit
        yield


def exiting() -> bool:
    """Whether the interpreter exits: threads that are started now may never run."""
    return _closing


@atexit.register
def _finish() -> None:
    """Wait for the compiler: LLVM crashes in a process that takes its own memory apart.

    An interrupt ends the process on the spot, which is safe at any time.
    """
    global _closing
    _closing = True
    try:
        with _lock:
            pass
    except KeyboardInterrupt:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(130)


def to_object(ir: str, target: Target) -> bytes:
    """Compile a module for the target."""
    llvm = binding()
    with entered():
        module = llvm.parse_assembly(ir)
        module.verify()
        return bytes(target.machine.emit_object(module))


def to_assembly(ir: str, target: Target) -> str:
    """Machine code of a module, as text."""
    llvm = binding()
    with entered():
        return str(target.machine.emit_assembly(llvm.parse_assembly(ir)))


class Loaded:
    """Object code in this process; alive as long as this record is."""

    def __init__(
        self, code: bytes, target: Target, symbol: str, imports: Mapping[str, int]
    ) -> None:
        global _counter
        llvm = binding()
        with entered():
            if not _jit:
                _jit.append(llvm.create_lljit_compiler(target.machine))
            _counter += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
            for name, address in imports.items():
                builder.import_symbol(name, address)
            self._tracker = builder.link(_jit[0], f"kernel{_counter}")
        self.address = int(self._tracker[symbol])


BATCH_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
